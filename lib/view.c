/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "stack.h"
#include "whiteout.h"

struct layer {
	int fd;
	char *id;
	bool plain; /* a base: its names mean themselves, .wh. included */
};

/* One layer's part of a directory. */
struct level {
	size_t layer;
	struct names names; /* all of them; not read when the layer is plain */
	bool markers; /* some name may be a .wh.NAME marker */
};

/*
 * A directory on the way: the layers that show through in it, newest first.
 * None: at this path the view has no directory.
 */
struct frame {
	size_t len; /* of its path, a prefix of view.path */
	struct level *level;
	size_t n, cap;
};

struct view {
	struct layer *layer;
	size_t n;
	struct buf path; /* of the deepest frame */
	struct frame *frame; /* the first is the root's and stays */
	size_t depth, cap;
};

/* What one layer has to say about a name. */
enum say {
	SAY_ERROR = -1,
	SAY_NOTHING, /* ask the next layer */
	SAY_GONE, /* and so are those below */
	SAY_HERE,
};

/* ---- frames ---- */

static void
frame_release(struct frame *f)
{
	for (size_t i = 0; i < f->n; i++)
		names_release(&f->level[i].names);
	free(f->level);
	f->level = NULL;
	f->n = 0;
}

static bool
is_marker_name(const char *name)
{
	return strncmp(name, WHITEOUT_PREFIX, strlen(WHITEOUT_PREFIX)) == 0 &&
	    name[strlen(WHITEOUT_PREFIX)] != '\0';
}

static int
open_dir(const struct view *v, size_t layer, const char *path)
{
	return path_open(
	    v->layer[layer].fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/*
 * Adds the layer's part of path to f. 1 when what lies below it is hidden, 0
 * when not, -1 with errno. last: nothing lies below, so nobody needs to know.
 */
static int
add_level(const struct view *v, struct frame *f, size_t layer, const char *path,
    bool last)
{
	struct level *l;
	int fd, opaque = 0, rc = -1;

	if (f->n == f->cap)
		f->level = xgrow(f->level, &f->cap, sizeof *f->level);
	l = &f->level[f->n++];
	*l = (struct level){ .layer = layer, .names = NAMES_INIT };
	if (v->layer[layer].plain && last)
		return 0;
	fd = open_dir(v, layer, path);
	if (fd == -1)
		return -1;
	/* The root of a layer is never opaque to the kernel (overlayfs.rst). */
	if (!last && *path != '\0')
		opaque = whiteout_dir_is_opaque(fd);
	if (opaque == -1)
		goto out;
	if (!v->layer[layer].plain) {
		if (names_read(fd, &l->names) == -1)
			goto out;
		for (size_t i = 0; i < l->names.n; i++)
			if (is_marker_name(l->names.name[i]))
				l->markers = true;
		if (l->markers && *path != '\0' &&
		    names_has(&l->names, WHITEOUT_OPAQUE_NAME))
			opaque = 1;
	}
	rc = opaque;
out:
	io_drop(&fd);
	return rc;
}

/* lstat in a layer, whose parent is a directory: 0 when there is none. */
static int
lstat_in(const struct layer *l, const char *path, struct stat *st)
{
	if (path_lstat(l->fd, path, st) == 0)
		return 1;
	if (errno == ENOENT)
		return 0;
	/* A name that no file can have is not there; a path is another case. */
	if (errno == ENAMETOOLONG && strlen(path_base(path)) > 255)
		return 0;
	return -1;
}

/* Does a file .wh.NAME stand beside path in this layer? */
static int
has_marker(const struct view *v, const struct level *l, const char *path)
{
	const char *name = path_base(path);
	struct buf b = BUF_INIT;
	struct stat st;
	int rc = 0;

	buf_add(&b, path, (size_t)(name - path));
	buf_adds(&b, WHITEOUT_PREFIX);
	buf_adds(&b, name);
	if (names_has(&l->names, path_base(b.data)))
		rc = lstat_in(&v->layer[l->layer], b.data, &st);
	buf_release(&b);
	return rc == 1 ? S_ISREG(st.st_mode) : rc;
}

/* What level l, a part of path's parent, says about path. */
static enum say
ask(const struct view *v, const struct level *l, const char *path,
    struct stat *st)
{
	const struct layer *layer = &v->layer[l->layer];
	const char *name = path_base(path);
	int rc;

	if (layer->plain) {
		rc = lstat_in(layer, path, st);
		if (rc != 1)
			return rc == 0 ? SAY_NOTHING : SAY_ERROR;
		return whiteout_is_device(st) ? SAY_GONE : SAY_HERE;
	}
	if (l->markers) {
		if (strcmp(name, WHITEOUT_OPAQUE_NAME) == 0)
			return SAY_NOTHING;
		rc = has_marker(v, l, path);
		if (rc != 0)
			return rc == 1 ? SAY_GONE : SAY_ERROR;
	}
	if (!names_has(&l->names, name))
		return SAY_NOTHING;
	rc = lstat_in(layer, path, st);
	if (rc != 1)
		return rc == 0 ? SAY_NOTHING : SAY_ERROR;
	if (S_ISREG(st->st_mode) && is_marker_name(name))
		return SAY_NOTHING;
	rc = whiteout_is(layer->fd, path, st);
	if (rc == -1)
		return SAY_ERROR;
	return rc == 1 ? SAY_GONE : SAY_HERE;
}

/* Goes down from the deepest frame to the entry name of n bytes. */
static int
push(struct view *v, const char *name, size_t n)
{
	struct frame f = { .n = 0 };
	const struct frame *up;
	size_t len = v->path.len;
	struct stat st;
	enum say say;
	int rc;

	if (v->depth == v->cap)
		v->frame = xgrow(v->frame, &v->cap, sizeof *v->frame);
	up = &v->frame[v->depth - 1];
	if (len > 0)
		buf_addc(&v->path, '/');
	buf_add(&v->path, name, n);
	f.len = v->path.len;
	for (size_t i = 0; i < up->n; i++) {
		say = ask(v, &up->level[i], v->path.data, &st);
		if (say == SAY_ERROR)
			goto fail;
		if (say == SAY_NOTHING)
			continue;
		if (say == SAY_GONE || !S_ISDIR(st.st_mode))
			break;
		rc = add_level(
		    v, &f, up->level[i].layer, v->path.data, i + 1 == up->n);
		if (rc == -1)
			goto fail;
		if (rc == 1)
			break;
	}
	v->frame[v->depth++] = f;
	return 0;
fail:
	rc = errno;
	frame_release(&f);
	buf_cut(&v->path, len);
	errno = rc;
	return -1;
}

/*
 * Makes the deepest frame that of path (len bytes of it). Frames that the
 * path before had too stay: in sorted order each directory is entered once.
 */
static int
enter(struct view *v, const char *path, size_t len)
{
	struct frame *top = &v->frame[v->depth - 1];

	while (top->len > len || memcmp(path, buf_str(&v->path), top->len) ||
	    (top->len > 0 && top->len < len && path[top->len] != '/')) {
		frame_release(top);
		v->depth--;
		top--;
		buf_cut(&v->path, top->len);
	}
	for (size_t at = v->path.len; at < len; at = v->path.len) {
		const char *name = path + at + (at > 0);

		if (push(v, name, strcspn(name, "/")) == -1)
			return -1;
	}
	return 0;
}

/* ---- opening ---- */

struct view *
view_open(int stackfd, const struct ids *ids, size_t *bad)
{
	struct view *v = xcalloc(1, sizeof *v);
	struct frame root = { .n = 0 };
	size_t i = 0;
	int err;

	io_many_fds();
	v->layer = xcalloc(ids->n ? ids->n : 1, sizeof *v->layer);
	v->frame = xgrow(NULL, &v->cap, sizeof *v->frame);
	v->frame[v->depth++] = root;
	for (i = 0; i < ids->n; i++) {
		struct layer *l = &v->layer[i];

		l->fd = stack_open_layer(stackfd, ids->id[i]);
		if (l->fd == -1)
			goto fail;
		l->id = xstrdup(ids->id[i]);
		l->plain = l->id[0] == 'B';
		v->n++;
		if (add_level(v, &v->frame[0], i, "", i + 1 == ids->n) == -1)
			goto fail;
	}
	return v;
fail:
	err = errno;
	view_close(v);
	if (bad)
		*bad = i;
	errno = err;
	return NULL;
}

void
view_close(struct view *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->depth; i++)
		frame_release(&v->frame[i]);
	free(v->frame);
	for (size_t i = 0; i < v->n; i++) {
		io_drop(&v->layer[i].fd);
		free(v->layer[i].id);
	}
	free(v->layer);
	buf_release(&v->path);
	free(v);
}

const char *
view_layer_id(const struct view *v, size_t i)
{
	return v->layer[i].id;
}

/* ---- looking up ---- */

static void
fill(struct node *n, size_t layer)
{
	n->layer = layer;
	if (S_ISREG(n->st.st_mode))
		n->kind = NODE_FILE;
	else if (S_ISLNK(n->st.st_mode))
		n->kind = NODE_SYMLINK;
	else if (S_ISDIR(n->st.st_mode))
		n->kind = NODE_DIR;
	else
		n->kind = NODE_SPECIAL;
}

int
view_get(struct view *v, const char *path, struct node *out)
{
	const struct frame *up;
	enum say say;

	*out = (struct node){ .kind = NODE_ABSENT };
	if (enter(v, path, path_parent_len(path)) == -1)
		return -1;
	up = &v->frame[v->depth - 1];
	if (*path == '\0') {
		if (up->n == 0)
			return 0;
		if (fstat(v->layer[0].fd, &out->st) == -1)
			return -1;
		fill(out, 0);
		return 0;
	}
	for (size_t i = 0; i < up->n; i++) {
		say = ask(v, &up->level[i], path, &out->st);
		if (say == SAY_ERROR)
			return -1;
		if (say == SAY_GONE)
			return 0;
		if (say == SAY_HERE) {
			fill(out, up->level[i].layer);
			return 0;
		}
	}
	return 0;
}

int
view_fd(struct view *v, const char *path, const struct node *n)
{
	if (n->kind == NODE_DIR)
		return open_dir(v, n->layer, path);
	if (n->kind != NODE_FILE) {
		errno = EINVAL;
		return -1;
	}
	return path_open(v->layer[n->layer].fd, path, O_RDONLY | O_NOFOLLOW, 0);
}

int
view_readlink(
    struct view *v, const char *path, const struct node *n, struct buf *out)
{
	char target[PATH_BYTES_MAX + 1];
	ssize_t len;

	len = readlinkat(v->layer[n->layer].fd, path, target, sizeof target);
	if (len == -1)
		return -1;
	if ((size_t)len == sizeof target) {
		errno = ENAMETOOLONG;
		return -1;
	}
	buf_add(out, target, (size_t)len);
	return 0;
}

/* ---- listing ---- */

struct entry {
	char *name; /* owned */
	size_t level; /* index in the frame, of one that knows the name */
	struct node node;
};

struct entries {
	struct entry *v;
	size_t n, cap;
};

static void
entries_release(struct entries *es)
{
	for (size_t i = 0; i < es->n; i++)
		free(es->v[i].name);
	free(es->v);
}

static int
entry_cmp(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order != 0)
		return order;
	return (x->level > y->level) - (x->level < y->level);
}

static void
add_entry(struct entries *es, const char *name, size_t level)
{
	if (es->n == es->cap)
		es->v = xgrow(es->v, &es->cap, sizeof *es->v);
	es->v[es->n++] =
	    (struct entry){ .name = xstrdup(name), .level = level };
}

/* Every name that level i of directory path has something to say about. */
static int
add_names(const struct view *v, const struct frame *f, size_t i,
    const char *path, struct entries *es)
{
	const struct level *l = &f->level[i];
	const struct names *names = &l->names;
	struct names own = NAMES_INIT;
	int fd, rc = 0;

	if (v->layer[l->layer].plain) {
		fd = open_dir(v, l->layer, path);
		if (fd == -1)
			return -1;
		rc = names_read(fd, &own);
		io_drop(&fd);
		names = &own;
	}
	for (size_t k = 0; rc == 0 && k < names->n; k++) {
		const char *name = names->name[k];

		add_entry(es, name, i);
		if (l->markers && is_marker_name(name))
			add_entry(es, name + strlen(WHITEOUT_PREFIX), i);
	}
	names_release(&own);
	return rc;
}

/*
 * Decides about n entries of one name, in the order of their levels; the node
 * goes into the first. 1 visible, 0 not, -1 with errno.
 */
static int
decide(const struct view *v, const struct frame *f, const char *path,
    struct entry *e, size_t n)
{
	struct buf b = BUF_INIT;
	enum say say = SAY_NOTHING;

	buf_adds(&b, path);
	if (b.len > 0)
		buf_addc(&b, '/');
	buf_adds(&b, e->name);
	for (size_t i = 0; i < n && say == SAY_NOTHING; i++) {
		const struct level *l = &f->level[e[i].level];

		say = ask(v, l, b.data, &e->node.st);
		if (say == SAY_HERE)
			fill(&e->node, l->layer);
	}
	buf_release(&b);
	return say == SAY_ERROR ? -1 : say == SAY_HERE;
}

/* What is visible in directory path, sorted by name, with its nodes. */
static int
list(struct view *v, const char *path, struct entries *out)
{
	const struct frame *f;
	size_t kept = 0;
	int rc;

	if (enter(v, path, strlen(path)) == -1)
		return -1;
	f = &v->frame[v->depth - 1];
	if (f->n == 0) {
		errno = ENOTDIR;
		return -1;
	}
	for (size_t i = 0; i < f->n; i++)
		if (add_names(v, f, i, path, out) == -1)
			return -1;
	if (out->n > 0)
		qsort(out->v, out->n, sizeof *out->v, entry_cmp);
	for (size_t i = 0, n; i < out->n; i += n) {
		struct entry *e = &out->v[i], swap;

		for (n = 1; i + n < out->n; n++)
			if (strcmp(e->name, e[n].name) != 0)
				break;
		rc = decide(v, f, path, e, n);
		if (rc == -1)
			return -1;
		if (rc == 0)
			continue;
		swap = out->v[kept];
		out->v[kept++] = *e;
		*e = swap;
	}
	for (size_t i = kept; i < out->n; i++)
		free(out->v[i].name);
	out->n = kept;
	return 0;
}

int
view_list(struct view *v, const char *path, struct names *out)
{
	struct entries es = { .n = 0 };
	int rc = list(v, path, &es);

	for (size_t i = 0; rc == 0 && i < es.n; i++)
		names_add(out, es.v[i].name);
	entries_release(&es);
	return rc;
}

static int
walk(struct view *v, struct buf *path,
    int (*fn)(void *arg, const char *path, const struct node *n), void *arg)
{
	struct entries es = { .n = 0 };
	size_t len = path->len;
	int rc = list(v, buf_str(path), &es);

	for (size_t i = 0; rc == 0 && i < es.n; i++) {
		if (len > 0)
			buf_addc(path, '/');
		buf_adds(path, es.v[i].name);
		rc = fn(arg, path->data, &es.v[i].node);
		if (rc == 0 && es.v[i].node.kind == NODE_DIR)
			rc = walk(v, path, fn, arg);
		buf_cut(path, len);
	}
	entries_release(&es);
	return rc;
}

int
view_walk(struct view *v, const char *path,
    int (*fn)(void *arg, const char *path, const struct node *n), void *arg)
{
	struct buf b = BUF_INIT;
	int rc;

	if (enter(v, path, strlen(path)) == -1)
		return -1;
	if (v->frame[v->depth - 1].n == 0)
		return 0;
	buf_adds(&b, path);
	rc = walk(v, &b, fn, arg);
	buf_release(&b);
	return rc;
}
