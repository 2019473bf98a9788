/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "stack.h"
#include "sys.h"
#include "whiteout.h"

enum {
	SETTLE_VISITS = 4, /* then a directory is worth being read */
	LIST_MAX = 1024, /* names; more are not worth the memory */
	SPARE_MAX = 1024
};

struct layer {
	int fd;
	char *id;
	bool plain; /* its names mean themselves, .wh. included */
};

/* All names in a directory. */
struct list {
	struct buf text; /* of each, its d_type and itself */
	const char **name; /* sorted, into text, behind d_type */
	size_t n;
	bool markers; /* some may be a marker .wh.NAME */
};

/* One layer's part of a directory. */
struct level {
	size_t layer;
	int fd; /* the directory, or one above it in the same layer */
	size_t at; /* length of the path that fd is */
	bool own; /* fd is of this level, not of a frame above */
	struct list *list; /* owned; NULL when not read */
};

/*
 * A directory on the way: the layers that have it, newest first, as far as
 * somebody asked. Whether one of them is opaque is only asked when a layer
 * below has something, or when the frame is settled.
 */
struct frame {
	char *path; /* owned */
	size_t len;
	struct level *level;
	size_t n, cap;
	size_t next; /* level of the frame above to be asked next */
	bool done; /* no more levels */
	size_t clear; /* so many levels, from the first, are not opaque */
	size_t end; /* layers from this one on are hidden */
	unsigned visits;
	bool settled;
	char *name; /* looked up last, which is often looked up again */
	size_t silent; /* levels, from the first, that say nothing about it */
};

struct view {
	struct layer *layer;
	size_t n;
	struct frame *frame; /* the first is the root's and stays */
	size_t depth, cap;
	size_t spare; /* descriptors that levels may still have */
};

/* What one layer has to say about a name. */
enum say {
	SAY_ERROR = -1,
	SAY_NOTHING, /* ask the next layer */
	SAY_GONE, /* and so are those below */
	SAY_HERE,
};

/* ---- one layer ---- */

/* What the descriptor of l calls path, which is the level's or below it. */
static const char *
below(const struct level *l, const char *path)
{
	path += l->at;
	return *path == '/' ? path + 1 : path;
}

static int
open_level(const struct level *l, const char *path, int flags)
{
	return path_open(
	    l->fd, below(l, path), flags | O_DIRECTORY | O_NOFOLLOW, 0);
}

static bool
is_marker_name(const char *name)
{
	return strncmp(name, WHITEOUT_PREFIX, strlen(WHITEOUT_PREFIX)) == 0 &&
	    name[strlen(WHITEOUT_PREFIX)] != '\0';
}

static int
name_cmp(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The name in the list, with its d_type before it, or NULL. */
static const char *
list_find(const struct list *list, const char *name)
{
	const char **at = NULL;

	if (list->n > 0)
		at = bsearch(
		    &name, list->name, list->n, sizeof *list->name, name_cmp);
	return at ? *at : NULL;
}

static void
list_free(struct list *list)
{
	if (!list)
		return;
	buf_release(&list->text);
	free(list->name);
	free(list);
}

static void
list_sort(struct list *list)
{
	const char *p = list->text.data;

	list->name = xreallocarray(NULL, list->n + 1, sizeof *list->name);
	for (size_t i = 0; i < list->n; i++) {
		list->name[i] = p + 1;
		if (is_marker_name(p + 1))
			list->markers = true;
		p += strlen(p + 1) + 2;
	}
	if (list->n > 1)
		qsort(list->name, list->n, sizeof *list->name, name_cmp);
}

/* Reads the directory fd; *out is NULL when it has too many names. */
static int
list_read(int fd, struct list **out)
{
	_Alignas(struct dirent64) char entries[16384];
	struct list *list = xcalloc(1, sizeof *list);
	const struct dirent64 *e;
	ssize_t len;

	do {
		len = getdents64(fd, entries, sizeof entries);
		for (ssize_t i = 0; i < len; i += e->d_reclen) {
			e = (const void *)(entries + i);
			if (strcmp(e->d_name, ".") == 0 ||
			    strcmp(e->d_name, "..") == 0)
				continue;
			buf_addc(&list->text, (char)e->d_type);
			buf_add(&list->text, e->d_name, strlen(e->d_name) + 1);
			list->n++;
		}
	} while (len > 0 && list->n <= LIST_MAX);
	*out = NULL;
	if (len != 0) {
		list_free(list);
		return len == -1 ? -1 : 0;
	}
	list_sort(list);
	*out = list;
	return 0;
}

/* lstat below a directory that is there: 0 when there is none. */
static int
lstat_in(int dirfd, const char *path, struct stat *st)
{
	if (path_lstat(dirfd, path, st) == 0)
		return 1;
	if (errno == ENOENT)
		return 0;
	/* A name that no file can have is not there; a path is another case. */
	if (errno == ENAMETOOLONG && strlen(path_base(path)) > NAME_MAX)
		return 0;
	return -1;
}

/* Does a file .wh.NAME stand beside path in this level's layer? */
static int
has_marker(const struct level *l, const char *path)
{
	const char *name = path_base(path);
	struct buf b = BUF_INIT;
	struct stat st;
	int rc;

	path = below(l, path);
	buf_add(&b, path, (size_t)(name - path));
	buf_adds(&b, WHITEOUT_PREFIX);
	buf_adds(&b, name);
	rc = l->list && !list_find(l->list, path_base(b.data))
	    ? 0
	    : lstat_in(l->fd, b.data, &st);
	buf_release(&b);
	return rc == 1 ? S_ISREG(st.st_mode) : rc;
}

/* What level l, a part of path's parent, says about path. */
static enum say
ask(const struct view *v, const struct level *l, const char *path,
    struct stat *st)
{
	const char *name = path_base(path);
	bool plain = v->layer[l->layer].plain;
	int rc;

	if (!plain && (!l->list || l->list->markers)) {
		if (strcmp(name, WHITEOUT_OPAQUE_NAME) == 0)
			return SAY_NOTHING;
		rc = has_marker(l, path);
		if (rc != 0)
			return rc == 1 ? SAY_GONE : SAY_ERROR;
	}
	if (l->list && !list_find(l->list, name))
		return SAY_NOTHING;
	path = below(l, path);
	rc = lstat_in(l->fd, path, st);
	if (rc != 1)
		return rc == 0 ? SAY_NOTHING : SAY_ERROR;
	if (plain)
		return whiteout_is_device(st) ? SAY_GONE : SAY_HERE;
	if (S_ISREG(st->st_mode) && is_marker_name(name))
		return SAY_NOTHING;
	rc = whiteout_is(l->fd, path, st);
	if (rc == -1)
		return SAY_ERROR;
	return rc == 1 ? SAY_GONE : SAY_HERE;
}

/* Is path surely a directory of the level, to tell without a system call? */
static bool
is_listed_dir(const struct view *v, const struct level *l, const char *path)
{
	const char *name;

	if (!l->list || (l->list->markers && !v->layer[l->layer].plain))
		return false;
	name = list_find(l->list, path_base(path));
	return name && name[-1] == DT_DIR;
}

/* 1 when the directory path is opaque in the layer of l, 0 when not, or -1. */
static int
is_opaque(const struct view *v, const struct level *l, const char *path)
{
	bool plain = v->layer[l->layer].plain;
	struct stat st;
	int fd, rc;

	/* Where the kernel can tell it without opening, that is a third. */
	if (plain && sys_has_xattrs(l->fd, below(l, path)) == 0)
		return 0;
	fd = open_level(l, path, O_RDONLY);
	if (fd == -1)
		return -1;
	rc = whiteout_dir_is_opaque(fd);
	if (rc == 0 && !plain)
		rc = lstat_in(fd, WHITEOUT_OPAQUE_NAME, &st);
	io_drop(&fd);
	return rc;
}

/* ---- frames ---- */

/* Forgets all levels but the first n. */
static void
cut_levels(struct view *v, struct frame *f, size_t n)
{
	for (; f->n > n; f->n--) {
		list_free(f->level[f->n - 1].list);
		if (!f->level[f->n - 1].own)
			continue;
		io_drop(&f->level[f->n - 1].fd);
		v->spare++;
	}
	if (f->silent > n)
		f->silent = n;
}

static void
add_level(struct frame *f, struct level l)
{
	if (f->n == f->cap)
		f->level = xgrow(f->level, &f->cap, sizeof *f->level);
	f->level[f->n++] = l;
}

static void
push(struct view *v, const char *path, size_t len)
{
	if (v->depth == v->cap)
		v->frame = xgrow(v->frame, &v->cap, sizeof *v->frame);
	v->frame[v->depth++] = (struct frame){
		.path = xstrndup(path, len),
		.len = len,
		.end = SIZE_MAX,
	};
}

static void
pop(struct view *v)
{
	struct frame *f = &v->frame[--v->depth];

	cut_levels(v, f, 0);
	free(f->level);
	free(f->path);
	free(f->name);
}

/* Finds one more level of frame d: 1, 0 when there is none, -1 with errno. */
static int
more(struct view *v, size_t d)
{
	struct frame *f = &v->frame[d];
	struct level l;
	struct stat st;
	enum say say;
	int rc;

	while (!f->done) {
		const struct frame *up = &v->frame[d - 1];

		if (f->next == up->n) {
			rc = more(v, d - 1);
			if (rc == -1)
				return -1;
			f->done = rc == 0;
			continue;
		}
		l = up->level[f->next];
		say = SAY_HERE;
		st.st_mode = S_IFDIR;
		if (!is_listed_dir(v, &l, f->path))
			say = ask(v, &l, f->path, &st);
		if (say == SAY_ERROR)
			return -1;
		f->next++;
		if (say == SAY_NOTHING)
			continue;
		if (say == SAY_HERE && S_ISDIR(st.st_mode)) {
			l.own = false;
			l.list = NULL;
			add_level(f, l);
			return 1;
		}
		f->done = true;
	}
	return 0;
}

/*
 * Does what layer has in frame d show, or is the directory or one above it
 * opaque in a newer layer? 1, 0, or -1 with errno.
 */
static int
shows(struct view *v, size_t d, size_t layer)
{
	struct frame *f;
	int rc;

	/* The root of a layer is never opaque to the kernel (overlayfs.rst). */
	for (f = &v->frame[1]; f <= &v->frame[d]; f++) {
		while (f->end == SIZE_MAX && f->clear < f->n &&
		    f->level[f->clear].layer < layer) {
			const struct level *l = &f->level[f->clear];

			rc = is_opaque(v, l, f->path);
			if (rc == -1)
				return -1;
			if (rc == 1)
				f->end = l->layer + 1;
			else
				f->clear++;
		}
		if (layer >= f->end)
			return 0;
	}
	return 1;
}

/* Prepares a level for many questions. */
static int
settle_level(struct view *v, const struct frame *f, struct level *l)
{
	/* A base can be as large as it likes, and is one layer only. */
	bool read = v->layer[l->layer].id[0] != 'B' && !l->list;
	bool own = v->spare > 0 && l->at < f->len;
	int fd;

	if (!read && !own)
		return 0;
	fd = open_level(l, f->path, read ? O_RDONLY : O_PATH);
	if (fd == -1)
		return -1;
	if (read && list_read(fd, &l->list) == -1) {
		io_drop(&fd);
		return -1;
	}
	if (!own) {
		io_drop(&fd);
		return 0;
	}
	v->spare--;
	l->fd = fd;
	l->at = f->len;
	l->own = true;
	return 0;
}

/*
 * Finds all levels of the deepest frame, forgets those that are hidden, and
 * prepares the others: most questions are then answered from a list, the rest
 * by a name alone, which takes half the time of a path of twelve. Only of the
 * deepest, as levels of deeper frames would use descriptors that go.
 */
static int
settle(struct view *v)
{
	size_t d = v->depth - 1;
	struct frame *f = &v->frame[d];
	int rc;

	if (f->settled)
		return 0;
	do
		rc = more(v, d);
	while (rc == 1);
	if (rc == -1)
		return -1;
	for (size_t i = 0; i < f->n; i++) {
		rc = shows(v, d, f->level[i].layer);
		if (rc == -1)
			return -1;
		if (rc == 0)
			cut_levels(v, f, i);
		else if (settle_level(v, f, &f->level[i]) == -1)
			return -1;
	}
	f->settled = true;
	return 0;
}

/*
 * Makes the deepest frame that of path (len bytes of it). Frames that the
 * path before had too stay: in sorted order each directory is entered once.
 */
static int
enter(struct view *v, const char *path, size_t len)
{
	struct frame *top = &v->frame[v->depth - 1];

	while (top->len > len || memcmp(path, top->path, top->len) != 0 ||
	    (top->len > 0 && top->len < len && path[top->len] != '/')) {
		pop(v);
		top--;
	}
	if (++top->visits >= SETTLE_VISITS && settle(v) == -1)
		return -1;
	for (size_t at = top->len; at < len;) {
		at += at > 0;
		at += strcspn(path + at, "/");
		push(v, path, at);
	}
	return 0;
}

/* ---- opening ---- */

/* Is there a description of the layer, as only sb-layer-commit writes it? */
static int
is_described(int stackfd, const char *id)
{
	char *path = xasprintf("meta/%s.json", id);
	struct stat st;
	int rc = fstatat(stackfd, path, &st, AT_SYMLINK_NOFOLLOW);

	free(path);
	if (rc == 0)
		return S_ISREG(st.st_mode);
	/* A meta that is no directory is for those to name who write there. */
	return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
}

static int
open_layer(int stackfd, const char *id, struct layer *l)
{
	int rc = 1;

	l->fd = stack_open_layer(stackfd, id);
	if (l->fd == -1)
		return -1;
	if (id[0] != 'B')
		rc = is_described(stackfd, id);
	if (rc == -1) {
		io_drop(&l->fd);
		return -1;
	}
	l->plain = rc == 1;
	l->id = xstrdup(id);
	return 0;
}

/* One eighth of what we may have, for others have views and files as well. */
static size_t
spare_fds(void)
{
	struct rlimit r;

	io_many_fds();
	if (getrlimit(RLIMIT_NOFILE, &r) == -1)
		return 0;
	return r.rlim_cur / 8 < SPARE_MAX ? r.rlim_cur / 8 : SPARE_MAX;
}

struct view *
view_open(int stackfd, const struct ids *ids, size_t *bad)
{
	struct view *v = xcalloc(1, sizeof *v);
	int err;

	v->spare = spare_fds();
	v->layer = xcalloc(ids->n ? ids->n : 1, sizeof *v->layer);
	push(v, "", 0);
	v->frame[0].done = true;
	for (; v->n < ids->n; v->n++) {
		if (open_layer(stackfd, ids->id[v->n], &v->layer[v->n]) == -1)
			goto fail;
		add_level(&v->frame[0],
		    (struct level){
			.layer = v->n,
			.fd = v->layer[v->n].fd,
		    });
	}
	return v;
fail:
	err = errno;
	if (bad)
		*bad = v->n;
	view_close(v);
	errno = err;
	return NULL;
}

void
view_close(struct view *v)
{
	if (!v)
		return;
	while (v->depth > 0)
		pop(v);
	free(v->frame);
	for (size_t i = 0; i < v->n; i++) {
		io_drop(&v->layer[i].fd);
		free(v->layer[i].id);
	}
	free(v->layer);
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

/* The first call is for what shows, so the second is never made. */
static int
first(void *arg, size_t layer, const struct node *n)
{
	struct node *out = arg;

	(void)layer;
	*out = *n;
	return 1;
}

int
view_get(struct view *v, const char *path, struct node *out)
{
	int rc;

	*out = (struct node){ .kind = NODE_ABSENT };
	rc = view_layers(v, path, first, out);
	return rc == -1 ? -1 : 0;
}

int
view_layers(struct view *v, const char *path,
    int (*fn)(void *arg, size_t layer, const struct node *n), void *arg)
{
	struct frame *f;
	struct node n;
	enum say say;
	size_t d;
	int rc;

	if (enter(v, path, path_parent_len(path)) == -1)
		return -1;
	d = v->depth - 1;
	f = &v->frame[d];
	if (*path == '\0') {
		if (v->n == 0)
			return 0;
		if (fstat(v->layer[0].fd, &n.st) == -1)
			return -1;
		fill(&n, 0);
		return fn(arg, 0, &n);
	}
	if (!f->name || strcmp(f->name, path_base(path)) != 0) {
		free(f->name);
		f->name = xstrdup(path_base(path));
		f->silent = 0;
	}
	for (size_t i = f->silent;; i++) {
		if (i == f->n) {
			rc = more(v, d);
			if (rc != 1)
				return rc;
		}
		say = ask(v, &f->level[i], path, &n.st);
		if (say == SAY_ERROR)
			return -1;
		if (say == SAY_NOTHING) {
			f->silent += i == f->silent;
			continue;
		}
		n.layer = f->level[i].layer;
		rc = shows(v, d, n.layer);
		if (rc != 1)
			return rc;
		if (say == SAY_HERE)
			fill(&n, n.layer);
		else
			n = (struct node){ .layer = n.layer };
		rc = fn(arg, n.layer, &n);
		if (rc != 0 || n.kind != NODE_FILE)
			return rc;
	}
}

int
view_fd(struct view *v, const char *path, const struct node *n)
{
	if (n->kind == NODE_DIR)
		return path_open(v->layer[n->layer].fd, path,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
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

/* An entry for a name, and for the name that it deletes if it is a marker. */
static void
add_name(struct entries *es, const char *name, size_t level, bool plain)
{
	add_entry(es, name, level);
	if (!plain && is_marker_name(name))
		add_entry(es, name + strlen(WHITEOUT_PREFIX), level);
}

/* Every name that level i of f has something to say about. */
static int
add_names(
    const struct view *v, const struct frame *f, size_t i, struct entries *es)
{
	const struct level *l = &f->level[i];
	bool plain = v->layer[l->layer].plain;
	struct names names = NAMES_INIT;
	int fd, rc;

	if (l->list) {
		for (size_t k = 0; k < l->list->n; k++)
			add_name(es, l->list->name[k], i, plain);
		return 0;
	}
	fd = open_level(l, f->path, O_RDONLY);
	if (fd == -1)
		return -1;
	rc = names_read(fd, &names);
	io_drop(&fd);
	for (size_t k = 0; rc == 0 && k < names.n; k++)
		add_name(es, names.name[k], i, plain);
	names_release(&names);
	return rc;
}

/*
 * Decides about n entries of one name, in the order of their levels; the node
 * goes into the first. 1 visible, 0 not, -1 with errno.
 */
static int
decide(const struct view *v, const struct frame *f, struct entry *e, size_t n)
{
	struct buf b = BUF_INIT;
	enum say say = SAY_NOTHING;

	buf_add(&b, f->path, f->len);
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

	if (enter(v, path, strlen(path)) == -1 || settle(v) == -1)
		return -1;
	f = &v->frame[v->depth - 1];
	if (f->n == 0) {
		errno = ENOTDIR;
		return -1;
	}
	for (size_t i = 0; i < f->n; i++)
		if (add_names(v, f, i, out) == -1)
			return -1;
	if (out->n > 0)
		qsort(out->v, out->n, sizeof *out->v, entry_cmp);
	for (size_t i = 0, n; i < out->n; i += n) {
		struct entry *e = &out->v[i], swap;

		for (n = 1; i + n < out->n; n++)
			if (strcmp(e->name, e[n].name) != 0)
				break;
		rc = decide(v, f, e, n);
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

	if (enter(v, path, strlen(path)) == -1 || settle(v) == -1)
		return -1;
	if (v->frame[v->depth - 1].n == 0)
		return 0;
	buf_adds(&b, path);
	rc = walk(v, &b, fn, arg);
	buf_release(&b);
	return rc;
}
