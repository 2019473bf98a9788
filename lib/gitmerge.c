/* SPDX-License-Identifier: MIT */
#include "gitmerge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io.h"
#include "mem.h"
#include "path.h"
#include "state.h"

#define GIT_DIR ".git"

size_t
git_dir_len(const char *path)
{
	const char *at = path, *end;

	for (end = strchr(at, '/'); end; end = strchr(at, '/')) {
		if (end - at == (ptrdiff_t)strlen(GIT_DIR) &&
		    memcmp(at, GIT_DIR, strlen(GIT_DIR)) == 0)
			return (size_t)(end - path);
		at = end + 1;
	}
	return 0;
}

/* ---- three versions to read from ---- */

struct side {
	const struct git_sides *s;
	struct view *view; /* of head or base */
	bool mine; /* with the changes on top */
	const char *repo;
};

static const struct change *
find(const struct git_sides *s, const char *path)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int order = path_cmp(s->change[mid]->path, path);

		if (order == 0)
			return s->change[mid];
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* Do the changes leave nothing of the view above path to be seen? */
static bool
is_hidden(const struct git_sides *s, const char *path)
{
	char *part = xstrdup(path);
	const struct change *c;
	bool hidden = false;

	for (size_t n = path_parent_len(part); n > 0 && !hidden;
	    n = path_parent_len(part)) {
		part[n] = '\0';
		c = find(s, part);
		hidden = c && c->kind != CHANGE_DIR;
	}
	free(part);
	return hidden;
}

static char *
in_tree(const char *repo, const char *path)
{
	return *path ? xasprintf("%s/%s", repo, path) : xstrdup(repo);
}

static int
read_fd(int fd, size_t max, struct buf *out)
{
	struct stat st;
	int rc = -1;

	if (fd == -1 || fstat(fd, &st) == -1)
		return -1;
	if (!S_ISREG(st.st_mode))
		rc = 0;
	else if (io_read_buf(fd, out, max) == 0)
		rc = 1;
	io_drop(&fd);
	return rc;
}

static int
side_read(void *arg, const char *path, size_t max, struct buf *out)
{
	const struct side *side = arg;
	char *full = in_tree(side->repo, path);
	const struct change *c = side->mine ? find(side->s, full) : NULL;
	struct node n;
	int rc = 0;

	if (c) {
		if (c->kind == CHANGE_WRITE)
			rc = read_fd(path_open(side->s->upper, full,
					 O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0),
			    max, out);
	} else if (!side->mine || !is_hidden(side->s, full)) {
		rc = view_get(side->view, full, &n);
		if (rc == 0 && n.kind == NODE_FILE)
			rc = read_fd(view_fd(side->view, full, &n), max, out);
	}
	free(full);
	return rc;
}

/* Adds the names that the changes have directly below path. */
static void
add_changed(const struct git_sides *s, const char *path, struct names *seen,
    struct names *out)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < s->n; i++) {
		const struct change *c = s->change[i];

		if (path_parent_len(c->path) != len ||
		    !path_is_below(c->path, path))
			continue;
		names_add(seen, path_base(c->path));
		if (c->kind != CHANGE_DELETE && c->kind != CHANGE_SPECIAL)
			names_add(out, path_base(c->path));
	}
	names_sort(seen);
}

static int
side_list(void *arg, const char *path, struct names *out)
{
	const struct side *side = arg;
	char *full = in_tree(side->repo, path);
	const struct change *c = side->mine ? find(side->s, full) : NULL;
	struct names below = NAMES_INIT, seen = NAMES_INIT;
	bool is_dir = c && (c->kind == CHANGE_DIR || c->kind == CHANGE_OPAQUE);
	int rc = 0;

	if ((c && c->kind != CHANGE_DIR) ||
	    (side->mine && is_hidden(side->s, full))) {
		rc = is_dir;
	} else if (view_list(side->view, full, &below) == 0) {
		rc = 1;
	} else if (errno == ENOTDIR) {
		rc = is_dir;
	} else {
		rc = -1;
	}
	if (rc == 1 && side->mine)
		add_changed(side->s, full, &seen, out);
	for (size_t i = 0; rc == 1 && i < below.n; i++)
		if (!names_has(&seen, below.name[i]))
			names_add(out, below.name[i]);
	names_release(&below);
	names_release(&seen);
	free(full);
	return rc;
}

/* ---- what differs ---- */

struct compare {
	const struct git_sides *s;
	char **where;
};

/* 1 when base and head differ at path. */
static int
compare(void *arg, const char *path, const struct node *n)
{
	const struct compare *cmp = arg;
	struct state base = STATE_INIT, head = STATE_INIT;
	int rc = -1;

	(void)n;
	if (state_of_view(&base, cmp->s->base, path) == 0 &&
	    state_of_view(&head, cmp->s->head, path) == 0)
		rc = state_same(&base, &head);
	if (rc == -1)
		*cmp->where = xstrdup(path);
	state_release(&base);
	state_release(&head);
	return rc == -1 ? -1 : !rc;
}

/* Has head another repository than base? */
static int
head_differs(const struct git_sides *s, const char *repo, char **where)
{
	struct compare cmp = { s, where };
	int rc = view_walk(s->head, repo, compare, &cmp);

	return rc == 0 ? view_walk(s->base, repo, compare, &cmp) : rc;
}

/* Has mine changed anything that may name objects: a ref, a log, the index? */
static bool
names_objects(const struct git_sides *s, const char *repo)
{
	size_t len = strlen(repo);

	for (size_t i = 0; i < s->n; i++) {
		const char *path = s->change[i]->path;
		enum git_part part;

		if (strlen(path) <= len || !path_is_below(path, repo) ||
		    s->change[i]->kind == CHANGE_DIR)
			continue;
		part = git_part_of(path + len + 1);
		if (part != GIT_OBJECT && part != GIT_CACHE)
			return true;
	}
	return false;
}

/* ---- the repositories ---- */

static bool
has_changes(const struct git_sides *s, const char *repo)
{
	for (size_t i = 0; i < s->n; i++)
		if (strlen(s->change[i]->path) > strlen(repo) &&
		    path_is_below(s->change[i]->path, repo))
			return true;
	return false;
}

static int
merge_repo(const struct git_sides *s, struct git_repo *repo,
    const struct git_reader reader[3], char **where)
{
	struct compare cmp = { s, where };
	char *index = in_tree(repo->path, "index");
	int moved = compare(&cmp, index, NULL);

	free(index);
	if (moved == -1 ||
	    gitrefs_merge(repo->path, s->session, moved == 1, &reader[0],
		&reader[1], &reader[2], &repo->merge) == -1)
		return -1;
	if (!names_objects(s, repo->path))
		return 0;
	return git_objects_gone(
	    &reader[0], &reader[1], &reader[2], &repo->restore);
}

/* Adds the repository path, if both sides changed it. */
static int
add_repo(const struct git_sides *s, const char *path, struct git_repos *out,
    char **where)
{
	struct side base = { s, s->base, false, path };
	struct side head = { s, s->head, false, path };
	struct side mine = { s, s->base, true, path };
	const struct git_reader reader[3] = {
		{ side_read, side_list, &base },
		{ side_read, side_list, &head },
		{ side_read, side_list, &mine },
	};
	struct git_repo *repo;
	int rc = has_changes(s, path) ? head_differs(s, path, where) : 0;

	if (rc != 1)
		return rc;
	if (out->n == out->cap)
		out->v = xgrow(out->v, &out->cap, sizeof *out->v);
	repo = &out->v[out->n++];
	*repo = (struct git_repo){ .path = xstrdup(path),
		.merge = GIT_MERGE_INIT,
		.restore = NAMES_INIT };
	return merge_repo(s, repo, reader, where);
}

/* Adds the repository of a .git directory, and those of its submodules. */
static int
add_repos(const struct git_sides *s, const char *path, struct git_repos *out,
    char **where)
{
	struct side mine = { s, s->base, true, path };
	const struct git_reader reader = { side_read, side_list, &mine };
	struct names inside = NAMES_INIT;
	int rc = git_repos(&reader, &inside);

	for (size_t i = 0; rc == 0 && i < inside.n; i++) {
		char *repo = in_tree(path, inside.name[i]);

		rc = add_repo(s, repo, out, where);
		if (rc == -1 && !*where)
			*where = xstrdup(repo);
		free(repo);
	}
	names_release(&inside);
	return rc;
}

/* Do both sides have the directory path? Mine must not have cleared it. */
static int
is_shared_dir(const struct git_sides *s, const char *path)
{
	const struct change *c = find(s, path);
	struct node base, head;

	if (c && c->kind != CHANGE_DIR)
		return 0;
	if (is_hidden(s, path))
		return 0;
	if (view_get(s->base, path, &base) == -1 ||
	    view_get(s->head, path, &head) == -1)
		return -1;
	return head.kind == NODE_DIR &&
	    (base.kind == NODE_DIR || base.kind == NODE_ABSENT);
}

int
git_find(const struct git_sides *s, struct git_repos *out, char **where)
{
	char *last = NULL;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		size_t len = git_dir_len(s->change[i]->path);
		char *path;

		if (len == 0)
			continue;
		path = xstrndup(s->change[i]->path, len);
		if (last && strcmp(last, path) == 0) {
			free(path);
			continue;
		}
		free(last);
		last = path;
		rc = is_shared_dir(s, path);
		if (rc == 1)
			rc = add_repos(s, path, out, where);
		if (rc == -1 && !*where)
			*where = xstrdup(path);
	}
	free(last);
	return rc;
}

void
git_repos_release(struct git_repos *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->v[i].path);
		git_merge_release(&r->v[i].merge);
		names_release(&r->v[i].restore);
	}
	free(r->v);
	*r = (struct git_repos)GIT_REPOS_INIT;
}

const struct git_repo *
git_repo_of(const struct git_repos *r, const char *path, const char **inside)
{
	/* The innermost stands last. */
	for (size_t i = r->n; i-- > 0;) {
		size_t len = strlen(r->v[i].path);

		if (strlen(path) <= len || !path_is_below(path, r->v[i].path))
			continue;
		*inside = path + len + 1;
		return &r->v[i];
	}
	return NULL;
}
