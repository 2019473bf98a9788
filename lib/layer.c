/* SPDX-License-Identifier: MIT */
#include "layer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "path.h"
#include "whiteout.h"

struct walk {
	int root;
	const char *from;
	bool in_layer;
	int (*fn)(void *arg, const struct change *c);
	void *arg;
	struct buf path; /* where we are */
};

static int scan_dir(struct walk *w, int fd);

static int
give(struct walk *w, enum change_kind kind, const struct stat *st,
    char *target)
{
	struct change c = { .kind = kind, .route = '-', .path = w->path.data,
		.target = target };
	bool has = kind != CHANGE_DELETE && kind != CHANGE_SPECIAL;

	memcpy(c.from, has ? w->from : "-", has ? strlen(w->from) + 1 : 2);
	if (has)
		c.mode = st->st_mode & 07777;
	if (kind == CHANGE_WRITE)
		c.size = st->st_size;
	return w->fn(w->arg, &c);
}

static int
give_link(struct walk *w, int dirfd, const char *name, const struct stat *st)
{
	char target[PATH_BYTES_MAX + 2];
	ssize_t n = readlinkat(dirfd, name, target, sizeof target - 1);

	if (n == -1)
		return -1;
	if (n > PATH_BYTES_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	target[n] = '\0';
	return give(w, CHANGE_SYMLINK, st, target);
}

static int
scan_subdir(struct walk *w, int dirfd, const char *name,
    const struct stat *st)
{
	int fd, opaque, rc = -1;
	struct stat mark;

	fd = openat(dirfd, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return -1;
	opaque = whiteout_dir_is_opaque(fd);
	if (opaque == 0 && w->in_layer &&
	    path_lstat(fd, WHITEOUT_OPAQUE_NAME, &mark) == 0)
		opaque = 1;
	if (opaque != -1 &&
	    give(w, opaque ? CHANGE_OPAQUE : CHANGE_DIR, st, NULL) == 0)
		rc = scan_dir(w, fd);
	io_drop(&fd);
	return rc;
}

static int
scan_entry(struct walk *w, int dirfd, const char *name)
{
	struct stat st;
	int hidden;

	if (path_lstat(dirfd, name, &st) == -1)
		return -1;
	if (S_ISDIR(st.st_mode))
		return scan_subdir(w, dirfd, name, &st);
	if (S_ISLNK(st.st_mode))
		return give_link(w, dirfd, name, &st);
	hidden = whiteout_is(dirfd, name, &st);
	if (hidden == -1)
		return -1;
	if (hidden)
		return give(w, CHANGE_DELETE, &st, NULL);
	return give(w, S_ISREG(st.st_mode) ? CHANGE_WRITE : CHANGE_SPECIAL, &st,
	    NULL);
}

/* In a layer: .wh..wh..opq is no entry and .wh.NAME says NAME is deleted. */
static int
scan_name(struct walk *w, int fd, const char *name)
{
	size_t len = w->path.len;
	const char *show = name;
	bool logical = false;
	struct stat st;
	int rc;

	if (w->in_layer && strncmp(name, WHITEOUT_PREFIX, 4) == 0) {
		if (strcmp(name, WHITEOUT_OPAQUE_NAME) == 0)
			return 0;
		/* What is beside its own marker is named there already. */
		if (name[4] == '\0' || path_lstat(fd, name + 4, &st) == 0)
			return 0;
		show = name + 4;
		logical = true;
	}
	if (len > 0)
		buf_addc(&w->path, '/');
	buf_adds(&w->path, show);
	if (w->path.len > PATH_BYTES_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	rc = logical ? give(w, CHANGE_DELETE, NULL, NULL) :
		       scan_entry(w, fd, name);
	if (rc == 0)
		buf_cut(&w->path, len);
	return rc;
}

/*
 * A name sorts before everything below it and path_cmp puts '/' lowest, so
 * bytewise order of the names of one directory gives the order of all paths.
 * Depth costs one descriptor a level; paths end at 4095 bytes, so at most
 * 2048 levels: the soft limit is raised by the caller's programs.
 */
static int
scan_dir(struct walk *w, int fd)
{
	struct names v = NAMES_INIT;
	int rc = names_read(fd, &v);

	for (size_t i = 0; i < v.n && rc == 0; i++)
		rc = scan_name(w, fd, v.name[i]);
	names_release(&v);
	return rc;
}

int
layer_scan(int dirfd, const char *from, bool in_layer,
    int (*fn)(void *arg, const struct change *c), void *arg, char **where)
{
	struct walk w = { .root = dirfd, .from = from, .in_layer = in_layer,
		.fn = fn, .arg = arg, .path = BUF_INIT };
	int rc, err;

	buf_reserve(&w.path, 0);
	rc = scan_dir(&w, dirfd);
	err = errno;
	if (rc != 0 && where)
		*where = xstrdup(w.path.len ? w.path.data : ".");
	buf_release(&w.path);
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
