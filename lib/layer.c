/* SPDX-License-Identifier: MIT */
#include "layer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "path.h"
#include "whiteout.h"

/*
 * Directories whose descriptor is kept while we are below them. A deeper walk
 * closes the oldest and finds it again by its path, so depth is bounded by the
 * length of paths only.
 */
enum {
	OPEN_MAX_DIRS = 32
};

struct level {
	int fd; /* -1 while closed for room */
	dev_t dev;
	ino_t ino;
	size_t path_len; /* of this directory, in scan.path */
	struct names name; /* as they are on disk, in order of show() */
	size_t next;
};

struct scan {
	int root; /* borrowed */
	const char *from;
	bool in_layer;
	int (*fn)(void *arg, const struct change *c);
	void *arg;
	struct buf path; /* of what is looked at */
	struct level *v;
	size_t n, cap;
};

/* Under which name an entry of a directory appears. */
static const char *
show(const struct scan *s, const char *name)
{
	if (s->in_layer && strncmp(name, WHITEOUT_PREFIX, 4) == 0 &&
	    name[4] != '\0')
		return name + 4;
	return name;
}

/*
 * A directory is named before what is below it and path_cmp puts '/' lowest,
 * so bytewise order of the names shown by each directory is the order of all
 * paths. Markers precede the name that they hide.
 */
static int
by_shown(const void *a, const void *b, void *arg)
{
	const char *p = *(char *const *)a, *q = *(char *const *)b;
	int rc = strcmp(show(arg, p), show(arg, q));

	return rc != 0 ? rc : (p == show(arg, p)) - (q == show(arg, q));
}

/* Takes fd. */
static int
enter(struct scan *s, int fd)
{
	struct level *l;
	struct stat st;

	if (s->n >= OPEN_MAX_DIRS)
		io_drop(&s->v[s->n - OPEN_MAX_DIRS].fd);
	if (s->n == s->cap)
		s->v = xgrow(s->v, &s->cap, sizeof *s->v);
	l = &s->v[s->n++];
	*l = (struct level){ .fd = fd, .path_len = s->path.len };
	if (fstat(fd, &st) == -1 || names_read(fd, &l->name) == -1)
		return -1;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	if (l->name.n > 1)
		qsort_r(
		    l->name.name, l->name.n, sizeof *l->name.name, by_shown, s);
	return 0;
}

static void
leave(struct scan *s)
{
	struct level *l = &s->v[--s->n];

	io_drop(&l->fd);
	names_release(&l->name);
}

/* Opens the innermost directory again if it had to be closed. */
static int
reopen(struct scan *s)
{
	struct level *l = &s->v[s->n - 1];
	struct stat st;

	buf_cut(&s->path, l->path_len);
	if (l->fd != -1)
		return 0;
	l->fd = path_open(
	    s->root, buf_str(&s->path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (l->fd == -1 || fstat(l->fd, &st) == -1)
		return -1;
	if (st.st_dev != l->dev || st.st_ino != l->ino) {
		errno = ESTALE;
		return -1;
	}
	return 0;
}

static int
give(struct scan *s, enum change_kind kind, const struct stat *st, char *target)
{
	struct change c = {
		.kind = kind,
		.route = '-',
		.path = s->path.data,
		.target = target,
	};
	bool has = kind != CHANGE_DELETE && kind != CHANGE_SPECIAL;

	snprintf(c.from, sizeof c.from, "%s", has ? s->from : "-");
	if (kind != CHANGE_DELETE)
		c.mode = st->st_mode & 07777;
	if (kind == CHANGE_WRITE)
		c.size = st->st_size;
	return s->fn(s->arg, &c);
}

static int
give_link(struct scan *s, int dirfd, const char *name, const struct stat *st)
{
	char target[PATH_BYTES_MAX + 2];
	ssize_t n = readlinkat(dirfd, name, target, sizeof target);

	if (n == -1)
		return -1;
	if (n > PATH_BYTES_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	target[n] = '\0';
	return give(s, CHANGE_SYMLINK, st, target);
}

static int
scan_dir(struct scan *s, int dirfd, const char *name, const struct stat *st)
{
	struct stat mark;
	int fd, opaque;

	fd = openat(
	    dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return -1;
	opaque = whiteout_dir_is_opaque(fd);
	if (opaque == 0 && s->in_layer &&
	    path_lstat(fd, WHITEOUT_OPAQUE_NAME, &mark) == 0)
		opaque = 1;
	if (opaque == -1 ||
	    give(s, opaque ? CHANGE_OPAQUE : CHANGE_DIR, st, NULL) == -1) {
		io_drop(&fd);
		return -1;
	}
	return enter(s, fd);
}

static int
scan_entry(struct scan *s, int dirfd, const char *name)
{
	struct stat st;
	int hidden;

	if (path_lstat(dirfd, name, &st) == -1)
		return -1;
	if (S_ISDIR(st.st_mode))
		return scan_dir(s, dirfd, name, &st);
	if (S_ISLNK(st.st_mode))
		return give_link(s, dirfd, name, &st);
	hidden = s->in_layer ? whiteout_is(dirfd, name, &st)
			     : whiteout_is_upper(dirfd, name, &st);
	if (hidden == -1)
		return -1;
	if (hidden)
		return give(s, CHANGE_DELETE, &st, NULL);
	return give(
	    s, S_ISREG(st.st_mode) ? CHANGE_WRITE : CHANGE_SPECIAL, &st, NULL);
}

/* The next name of the innermost directory. */
static int
scan_next(struct scan *s)
{
	struct level *l = &s->v[s->n - 1];
	const char *name = l->name.name[l->next], *shown = show(s, name);
	bool hides = shown != name;
	size_t i = l->next++;

	if (hides && strcmp(name, WHITEOUT_OPAQUE_NAME) == 0)
		return 0;
	/* What is beside its own marker is not seen. */
	if (!hides && i > 0 && strcmp(shown, show(s, l->name.name[i - 1])) == 0)
		return 0;
	if (reopen(s) == -1)
		return -1;
	if (s->path.len > 0)
		buf_addc(&s->path, '/');
	buf_adds(&s->path, shown);
	if (s->path.len > PATH_BYTES_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (hides)
		return give(s, CHANGE_DELETE, NULL, NULL);
	return scan_entry(s, l->fd, name);
}

int
layer_scan(int dirfd, const char *from, bool in_layer,
    int (*fn)(void *arg, const struct change *c), void *arg, char **where)
{
	struct scan s = {
		.root = dirfd,
		.from = from,
		.in_layer = in_layer,
		.fn = fn,
		.arg = arg,
		.path = BUF_INIT,
	};
	int fd, rc, err;

	fd = path_open(dirfd, "", O_RDONLY | O_DIRECTORY, 0);
	rc = fd == -1 ? -1 : enter(&s, fd);
	while (rc == 0 && s.n > 0)
		if (s.v[s.n - 1].next < s.v[s.n - 1].name.n)
			rc = scan_next(&s);
		else
			leave(&s);
	err = errno;
	if (rc != 0 && where)
		*where = xstrdup(s.path.len ? s.path.data : ".");
	while (s.n > 0)
		leave(&s);
	free(s.v);
	buf_release(&s.path);
	errno = err;
	return rc;
}

int
layer_digest_add(struct hash *h, const struct change *c, int fd)
{
	switch (c->kind) {
	case CHANGE_WRITE:
		hash_adds0(h, "write");
		break;
	case CHANGE_DELETE:
		hash_adds0(h, "delete");
		break;
	case CHANGE_SYMLINK:
		hash_adds0(h, "symlink");
		break;
	case CHANGE_DIR:
		hash_adds0(h, "directory");
		break;
	case CHANGE_OPAQUE:
		hash_adds0(h, "opaque_dir");
		break;
	case CHANGE_SPECIAL:
		return 0; /* never in a layer */
	}
	hash_adds0(h, c->path);
	if (c->kind == CHANGE_WRITE && hash_add_fd(h, fd) == -1)
		return -1;
	if (c->kind == CHANGE_SYMLINK)
		hash_add(h, c->target, strlen(c->target));
	hash_add(h, "", 1);
	return 0;
}
