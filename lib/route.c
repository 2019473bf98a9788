/* SPDX-License-Identifier: MIT */
#include "route.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "ignore.h"
#include "io.h"
#include "mem.h"
#include "path.h"

static const char rules_name[] = ".gitignore";

/* What is known of a directory and so of everything below it. */
enum state {
	DECIDE, /* path by path */
	IGNORED, /* all of it: no rule below may take it back, nor is it git's */
	GIT, /* all of it belongs to git */
};

struct dir {
	size_t len; /* of its path, a prefix of route.path */
	enum state state;
	struct ignore *rules; /* NULL: none */
};

struct route {
	struct view *lease;
	struct buf path; /* of the deepest directory */
	struct dir *dir; /* the first is the root; none before the first look */
	size_t depth, cap;
};

struct route *
route_open(struct view *lease)
{
	struct route *r = xcalloc(1, sizeof *r);

	r->lease = lease;
	return r;
}

static void
pop(struct route *r)
{
	ignore_free(r->dir[--r->depth].rules);
	buf_cut(&r->path, r->depth > 0 ? r->dir[r->depth - 1].len : 0);
}

void
route_close(struct route *r)
{
	if (!r)
		return;
	while (r->depth > 0)
		pop(r);
	free(r->dir);
	buf_release(&r->path);
	free(r);
}

/* The deepest file that has a matching rule decides, its last such rule. */
static bool
is_ignored(const struct route *r, const char *path, bool dir)
{
	for (size_t i = r->depth; i-- > 0;) {
		const struct dir *d = &r->dir[i];
		const char *below = path + d->len + (d->len > 0);
		enum ignore_say say = IGNORE_NOTHING;

		if (d->rules)
			say = ignore_ask(d->rules, below, dir, NULL);
		if (say != IGNORE_NOTHING)
			return say == IGNORE_YES;
	}
	return false;
}

/* Reads the rules of the directory route.path. */
static int
read_rules(struct route *r, struct ignore **out)
{
	struct buf path = BUF_INIT, text = BUF_INIT;
	struct node n;
	int fd = -1, rc = -1;

	*out = NULL;
	buf_add(&path, buf_str(&r->path), r->path.len);
	if (path.len > 0)
		buf_addc(&path, '/');
	buf_adds(&path, rules_name);
	if (path.len > PATH_BYTES_MAX) {
		rc = 0;
		goto out;
	}
	if (view_get(r->lease, path.data, &n) == -1)
		goto out;
	if (n.kind != NODE_FILE) {
		rc = 0;
		goto out;
	}
	fd = view_fd(r->lease, path.data, &n);
	if (fd == -1 || io_read_buf(fd, &text, SIZE_MAX / 2) == -1)
		goto out;
	*out = ignore_compile(buf_str(&text), text.len);
	if (ignore_is_empty(*out)) {
		ignore_free(*out);
		*out = NULL;
	}
	rc = 0;
out:
	io_drop(&fd);
	buf_release(&path);
	buf_release(&text);
	return rc;
}

/* Goes down from the deepest directory to name (n bytes); first to the root. */
static int
push(struct route *r, const char *name, size_t n)
{
	struct dir d = { .state = DECIDE };
	const size_t before = r->path.len;

	if (r->depth > 0) {
		if (before > 0)
			buf_addc(&r->path, '/');
		buf_add(&r->path, name, n);
		d.state = r->dir[r->depth - 1].state;
		if (d.state == DECIDE && n == 4 && memcmp(name, ".git", 4) == 0)
			d.state = GIT;
		else if (d.state == DECIDE && is_ignored(r, r->path.data, true))
			d.state = IGNORED;
	}
	if (d.state == DECIDE && r->lease && read_rules(r, &d.rules) == -1) {
		buf_cut(&r->path, before);
		return -1;
	}
	d.len = r->path.len;
	if (r->depth == r->cap)
		r->dir = xgrow(r->dir, &r->cap, sizeof *r->dir);
	r->dir[r->depth++] = d;
	return 0;
}

/* Makes the deepest directory that of path, len bytes of it. */
static int
enter(struct route *r, const char *path, size_t len)
{
	if (r->depth == 0 && push(r, "", 0) == -1)
		return -1;
	while (r->path.len > len ||
	    memcmp(path, buf_str(&r->path), r->path.len) != 0 ||
	    (r->path.len > 0 && r->path.len < len && path[r->path.len] != '/'))
		pop(r);
	for (size_t at = r->path.len; at < len; at = r->path.len) {
		const char *name = path + at + (at > 0);

		if (push(r, name, strcspn(name, "/")) == -1)
			return -1;
	}
	return 0;
}

int
route_of(struct route *r, const char *path, bool dir)
{
	enum state state;

	if (enter(r, path, path_parent_len(path)) == -1)
		return -1;
	state = r->dir[r->depth - 1].state;
	if (state == GIT)
		return 'g';
	if (state == IGNORED)
		return 'i';
	if (dir && strcmp(path_base(path), ".git") == 0)
		return 's';
	return is_ignored(r, path, dir) ? 'i' : 's';
}
