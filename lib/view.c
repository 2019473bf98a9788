/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "stack.h"
#include "whiteout.h"

/* A directory on the way: the layers in which it shows, newest first. */
struct frame {
	size_t len; /* of its path; 0 is the root */
	size_t *layer;
	size_t n;
	bool is_dir; /* false: nothing below it shows */
};

struct view {
	struct ids ids;
	int *fd;
	struct frame *frame; /* the chain from the root to the last path */
	size_t nframes, cap;
	struct buf path; /* of the last frame */
};

void
view_close(struct view *v)
{
	for (size_t i = 0; i < v->ids.n; i++) {
		io_drop(&v->fd[i]);
		free(v->ids.id[i]);
	}
	for (size_t i = 0; i < v->nframes; i++)
		free(v->frame[i].layer);
	free(v->ids.id);
	free(v->frame);
	free(v->fd);
	buf_release(&v->path);
	free(v);
}

struct view *
view_open(int stackfd, const struct ids *ids, size_t *bad)
{
	struct view *v = xcalloc(1, sizeof *v);
	struct frame root = { .is_dir = true };

	io_many_fds();
	v->fd = xcalloc(ids->n, sizeof *v->fd);
	root.layer = xcalloc(ids->n, sizeof *root.layer);
	for (size_t i = 0; i < ids->n; i++) {
		v->fd[i] = stack_open_layer(stackfd, ids->id[i]);
		if (v->fd[i] == -1) {
			int err = errno;

			if (bad)
				*bad = i;
			free(root.layer);
			view_close(v);
			errno = err;
			return NULL;
		}
		ids_add(&v->ids, ids->id[i]);
		root.layer[i] = i;
	}
	root.n = ids->n;
	v->frame = xgrow(NULL, &v->cap, sizeof *v->frame);
	v->frame[v->nframes++] = root;
	buf_reserve(&v->path, 0);
	return v;
}

const char *
view_layer_id(const struct view *v, size_t i)
{
	return v->ids.id[i];
}

/* Base layers are imported and hold no markers that stand for others. */
static bool
may_have_markers(const struct view *v, size_t layer)
{
	return v->ids.id[layer][0] != 'B';
}

/* Is there a file .wh.NAME beside path in this layer? 1, 0 or -1. */
static int
marked(const struct view *v, size_t layer, const char *path)
{
	char marker[PATH_BYTES_MAX + 8];
	size_t parent = (size_t)(path_base(path) - path);
	struct stat st;
	int n;

	if (!may_have_markers(v, layer))
		return 0;
	n = snprintf(marker, sizeof marker, "%.*s.wh.%s", (int)parent, path,
	    path_base(path));
	if (n < 0 || (size_t)n >= sizeof marker)
		return 0;
	if (path_lstat(v->fd[layer], marker, &st) == 0)
		return 1;
	return errno == ENOENT || errno == ENAMETOOLONG ? 0 : -1;
}

/*
 * What one layer says of path, whose parent is a directory there: 1 an entry
 * (st), 0 nothing, 2 deleted, -1 errno.
 */
static int
ask(const struct view *v, size_t layer, const char *path, struct stat *st)
{
	int rc = marked(v, layer, path);

	if (rc != 0)
		return rc == 1 ? 2 : -1;
	if (path_lstat(v->fd[layer], path, st) == -1)
		return errno == ENOENT || errno == ENAMETOOLONG ? 0 : -1;
	if (whiteout_is_device(st))
		return 2;
	if (may_have_markers(v, layer) && S_ISREG(st->st_mode) &&
	    st->st_size == 0) {
		rc = whiteout_is(v->fd[layer], path, st);
		if (rc != 0)
			return rc == 1 ? 2 : -1;
	}
	return 1;
}

static int
opaque(const struct view *v, size_t layer, const char *path)
{
	struct stat st;
	int fd, rc;

	fd = openat(v->fd[layer], path,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return -1;
	rc = whiteout_dir_is_opaque(fd);
	if (rc == 0 && may_have_markers(v, layer) &&
	    path_lstat(fd, WHITEOUT_OPAQUE_NAME, &st) == 0)
		rc = 1;
	io_drop(&fd);
	return rc;
}

static void
pop(struct view *v)
{
	free(v->frame[--v->nframes].layer);
	buf_cut(&v->path, v->frame[v->nframes - 1].len);
}

/* Adds the frame of v->path, one component below the last frame. */
static int
push(struct view *v)
{
	const struct frame *up = &v->frame[v->nframes - 1];
	struct frame f = { .len = v->path.len };
	struct stat st;
	int rc = 0;

	f.layer = xcalloc(up->n, sizeof *f.layer);
	for (size_t i = 0; up->is_dir && i < up->n; i++) {
		size_t layer = up->layer[i];

		rc = ask(v, layer, v->path.data, &st);
		if (rc == 0)
			continue;
		if (rc != 1 || !S_ISDIR(st.st_mode))
			break;
		f.layer[f.n++] = layer;
		f.is_dir = true;
		/* Nothing is below the base: spare the look. */
		if (i + 1 == up->n)
			break;
		rc = opaque(v, layer, v->path.data);
		if (rc != 0)
			break;
	}
	if (rc == -1) {
		free(f.layer);
		return -1;
	}
	if (v->nframes == v->cap)
		v->frame = xgrow(v->frame, &v->cap, sizeof *v->frame);
	v->frame[v->nframes++] = f;
	return 0;
}

/* Makes the chain end at the directory path[0 .. len). */
static int
go(struct view *v, const char *path, size_t len)
{
	while (v->path.len > len ||
	    memcmp(v->path.data, path, v->path.len) != 0 ||
	    (v->path.len > 0 && v->path.len < len &&
		path[v->path.len] != '/'))
		pop(v);
	while (v->path.len < len) {
		size_t at = v->path.len ? v->path.len + 1 : 0;
		const char *slash = memchr(path + at, '/', len - at);
		size_t end = slash ? (size_t)(slash - path) : len;

		buf_add(&v->path, path + v->path.len, end - v->path.len);
		if (push(v) == -1) {
			buf_cut(&v->path, v->frame[v->nframes - 1].len);
			return -1;
		}
	}
	return 0;
}

int
view_get(struct view *v, const char *path, struct node *out)
{
	const struct frame *f;
	int rc;

	out->kind = NODE_ABSENT;
	out->layer = 0;
	if (*path == '\0') {
		if (v->ids.n == 0)
			return 0;
		out->kind = NODE_DIR;
		return fstat(v->fd[0], &out->st);
	}
	if (go(v, path, path_parent_len(path)) == -1)
		return -1;
	f = &v->frame[v->nframes - 1];
	for (size_t i = 0; i < f->n; i++) {
		rc = ask(v, f->layer[i], path, &out->st);
		if (rc == -1)
			return -1;
		if (rc == 0)
			continue;
		if (rc == 1) {
			mode_t m = out->st.st_mode;

			out->layer = f->layer[i];
			out->kind = S_ISREG(m) ? NODE_FILE :
			    S_ISDIR(m)         ? NODE_DIR :
			    S_ISLNK(m)         ? NODE_SYMLINK :
						 NODE_SPECIAL;
		}
		break;
	}
	return 0;
}

/* Adds the names that one layer shows in path; hidden grows as they say. */
static int
list_layer(struct view *v, size_t layer, const char *path,
    struct names *shown, struct names *seen)
{
	struct names here = NAMES_INIT, new = NAMES_INIT;
	int fd, rc = -1;

	fd = openat(v->fd[layer], *path ? path : ".",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return -1;
	if (names_read(fd, &here) == -1)
		goto out;
	for (size_t i = 0; i < here.n; i++) {
		const char *name = here.name[i];
		struct stat st;
		int hidden;

		if (may_have_markers(v, layer) &&
		    strncmp(name, WHITEOUT_PREFIX, 4) == 0) {
			if (strcmp(name, WHITEOUT_OPAQUE_NAME) != 0 && name[4])
				names_add(&new, name + 4);
			continue;
		}
		if (names_has(seen, name))
			continue;
		if (path_lstat(fd, name, &st) == -1)
			goto out;
		hidden = whiteout_is_device(&st);
		if (!hidden && may_have_markers(v, layer))
			hidden = whiteout_is(fd, name, &st);
		if (hidden == -1)
			goto out;
		names_add(&new, name);
		if (!hidden)
			names_add(shown, name);
	}
	for (size_t i = 0; i < new.n; i++)
		names_add(seen, new.name[i]);
	names_sort(seen);
	rc = 0;
out:
	io_drop(&fd);
	names_release(&here);
	names_release(&new);
	return rc;
}

int
view_list(struct view *v, const char *path, struct names *out)
{
	struct names seen = NAMES_INIT;
	const struct frame *f;
	int rc = 0;

	if (go(v, path, strlen(path)) == -1)
		return -1;
	f = &v->frame[v->nframes - 1];
	if (!f->is_dir) {
		errno = ENOTDIR;
		return -1;
	}
	for (size_t i = 0; i < f->n && rc == 0; i++)
		rc = list_layer(v, f->layer[i], path, out, &seen);
	names_release(&seen);
	names_sort(out);
	return rc;
}

int
view_fd(struct view *v, const char *path, const struct node *n)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;

	if (n->kind == NODE_DIR)
		flags |= O_DIRECTORY;
	return path_open(v->fd[n->layer], path, flags, 0);
}

int
view_readlink(struct view *v, const char *path, const struct node *n,
    struct buf *out)
{
	ssize_t len;

	buf_reserve(out, PATH_BYTES_MAX + 1);
	len = readlinkat(v->fd[n->layer], path, out->data + out->len,
	    PATH_BYTES_MAX + 1);
	if (len == -1)
		return -1;
	buf_cut(out, out->len + (size_t)len);
	return 0;
}

static int
walk(struct view *v, struct buf *path,
    int (*fn)(void *arg, const char *path, const struct node *n), void *arg)
{
	struct names names = NAMES_INIT;
	size_t len = path->len;
	struct node n;
	int rc;

	rc = view_list(v, buf_str(path), &names);
	for (size_t i = 0; i < names.n && rc == 0; i++) {
		if (len > 0)
			buf_addc(path, '/');
		buf_adds(path, names.name[i]);
		rc = view_get(v, path->data, &n);
		if (rc == 0 && n.kind != NODE_ABSENT)
			rc = fn(arg, path->data, &n);
		if (rc == 0 && n.kind == NODE_DIR)
			rc = walk(v, path, fn, arg);
		buf_cut(path, len);
	}
	names_release(&names);
	return rc;
}

int
view_walk(struct view *v, const char *path,
    int (*fn)(void *arg, const char *path, const struct node *n), void *arg)
{
	struct buf b = BUF_INIT;
	int rc;

	buf_adds(&b, path);
	rc = walk(v, &b, fn, arg);
	buf_release(&b);
	return rc;
}
