/* SPDX-License-Identifier: MIT */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attr.h"
#include "io.h"
#include "merge3.h"
#include "out.h"
#include "path.h"

int
state_of_view(struct state *s, struct view *view, const char *path)
{
	struct node n;

	*s = (struct state)STATE_INIT;
	if (view_get(view, path, &n) == -1)
		return -1;
	s->kind = n.kind;
	if (n.kind == NODE_ABSENT)
		return 0;
	s->view = view;
	s->path = path;
	s->st = n.st;
	s->mode = n.st.st_mode & 07777;
	s->layer = view_layer_id(view, n.layer);
	if (n.kind == NODE_SYMLINK)
		return view_readlink(view, path, &n, &s->target);
	return 0;
}

static int
open_change(struct state *s)
{
	bool dir = s->kind == NODE_DIR;
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
	off_t size = s->st.st_size;

	s->fd =
	    path_open(s->dirfd, s->path, dir ? flags | O_DIRECTORY : flags, 0);
	if (s->fd == -1 || fstat(s->fd, &s->st) == -1)
		return -1;
	if (!dir && (!S_ISREG(s->st.st_mode) || s->st.st_size != size)) {
		errno = ESTALE;
		return -1;
	}
	return 0;
}

int
state_of_change(struct state *s, const struct change *c, int dirfd)
{
	*s = (struct state)STATE_INIT;
	s->mode = c->mode;
	if (c->kind == CHANGE_DELETE || c->kind == CHANGE_SPECIAL)
		return 0;
	if (c->kind == CHANGE_SYMLINK) {
		s->kind = NODE_SYMLINK;
		buf_adds(&s->target, c->target);
		return 0;
	}
	s->kind = c->kind == CHANGE_WRITE ? NODE_FILE : NODE_DIR;
	s->dirfd = dirfd;
	s->path = c->path;
	s->st.st_size = c->size;
	if (dirfd == -1) {
		errno = EBADF;
		return -1;
	}
	return open_change(s);
}

int
state_of_dir(struct state *s, int fd)
{
	*s = (struct state)STATE_INIT;
	s->kind = NODE_DIR;
	if (fstat(fd, &s->st) == -1)
		return -1;
	s->mode = s->st.st_mode & 07777;
	s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return s->fd == -1 ? -1 : 0;
}

void
state_release(struct state *s)
{
	io_drop(&s->fd);
	buf_release(&s->target);
	buf_release(&s->xattrs);
	buf_release(&s->text);
	*s = (struct state)STATE_INIT;
}

int
state_fd(struct state *s)
{
	struct node n = { .kind = s->kind };

	if (s->fd != -1 || !s->view) {
		if (s->fd == -1)
			errno = EINVAL;
		return s->fd;
	}
	/* Looked up again: the view may have been elsewhere meanwhile. */
	if (view_get(s->view, s->path, &n) == -1)
		return -1;
	s->fd = view_fd(s->view, s->path, &n);
	return s->fd;
}

const struct buf *
state_xattrs(struct state *s)
{
	int fd;

	if (!s->have_xattrs && (s->kind == NODE_FILE || s->kind == NODE_DIR)) {
		fd = state_fd(s);
		if (fd == -1 || attr_xattrs(fd, &s->xattrs, NULL) == -1)
			return NULL;
	}
	s->have_xattrs = true;
	return &s->xattrs;
}

const struct buf *
state_text(struct state *s)
{
	int fd;

	if (!s->have_text) {
		fd = state_fd(s);
		if (fd == -1 || lseek(fd, 0, SEEK_SET) == -1 ||
		    io_read_buf(fd, &s->text, SIZE_MAX / 4) == -1)
			return NULL;
		s->have_text = true;
	}
	return &s->text;
}

int
state_is_text(struct state *s)
{
	const struct buf *b;

	if (s->st.st_size > MERGE_TEXT_MAX)
		return 0;
	b = state_text(s);
	return b ? text_is_mergeable(buf_str(b), b->len) : -1;
}

const char *
state_digest(struct state *s)
{
	struct hash h;
	int fd;

	if (s->hex[0] != '\0')
		return s->hex;
	fd = state_fd(s);
	hash_init(&h);
	if (fd == -1 || hash_add_fd(&h, fd) == -1)
		return NULL;
	hash_hex(&h, s->hex);
	return s->hex;
}

/* Two views show the very same entry of one layer. */
static bool
is_one_place(const struct state *a, const struct state *b)
{
	return a->layer && b->layer && strcmp(a->layer, b->layer) == 0 &&
	    a->kind == b->kind;
}

int
state_same_content(struct state *a, struct state *b)
{
	int x, y;

	if (is_one_place(a, b))
		return 1;
	if (a->st.st_size != b->st.st_size)
		return 0;
	x = state_fd(a);
	y = state_fd(b);
	return x == -1 || y == -1 ? -1 : io_same(x, y);
}

int
state_same_xattrs(struct state *a, struct state *b)
{
	const struct buf *x, *y;

	if (is_one_place(a, b))
		return 1;
	x = state_xattrs(a);
	y = state_xattrs(b);
	return x && y ? buf_equal(x, y) : -1;
}

int
state_same(struct state *a, struct state *b)
{
	int rc;

	if (a->kind != b->kind)
		return 0;
	if (a->kind == NODE_SYMLINK)
		return strcmp(buf_str(&a->target), buf_str(&b->target)) == 0;
	if (a->kind != NODE_FILE && a->kind != NODE_DIR)
		return a->kind == NODE_ABSENT;
	if (a->mode != b->mode)
		return 0;
	rc = state_same_xattrs(a, b);
	if (rc != 1 || a->kind == NODE_DIR)
		return rc;
	return state_same_content(a, b);
}

int
state_out(struct buf *b, const char *name, struct state *s)
{
	const char *digest;
	char mode[8];

	out_key(b, name);
	buf_addc(b, '{');
	switch (s->kind) {
	case NODE_ABSENT:
		out_str(b, "kind", "absent");
		break;
	case NODE_FILE:
		digest = state_digest(s);
		if (!digest)
			return -1;
		out_str(b, "kind", "file");
		out_str(b, "digest", digest);
		out_bool(b, "executable", (s->mode & 0111) != 0);
		break;
	case NODE_SYMLINK:
		out_str(b, "kind", "symlink");
		out_path(b, "target", buf_str(&s->target));
		break;
	case NODE_DIR:
		out_str(b, "kind", "directory");
		break;
	case NODE_SPECIAL:
		out_str(b, "kind", "special");
		break;
	}
	if (s->kind == NODE_FILE || s->kind == NODE_DIR) {
		snprintf(mode, sizeof mode, "%04o", s->mode);
		out_str(b, "mode", mode);
	}
	buf_addc(b, '}');
	return 0;
}
