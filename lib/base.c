/* SPDX-License-Identifier: MIT */
#include "base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "mem.h"
#include "path.h"
#include "stage.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

char *
base_cache_dir(const char *xdg_cache_home, const char *home)
{
	if (xdg_cache_home && *xdg_cache_home == '/')
		return xasprintf("%s/sb", xdg_cache_home);
	if (home && *home == '/')
		return xasprintf("%s/.cache/sb", home);
	return NULL;
}

/* One of the two descriptors of a directory, to be found again by "..". */
struct place {
	int fd; /* -1: closed for now, or never there */
	bool used;
	dev_t dev;
	ino_t ino;
};

struct dent {
	ino_t ino;
	size_t at; /* of its name in names */
};

struct walk_dir {
	struct place in, out;
	struct buf names; /* each with its NUL */
	struct dent *v;
	size_t n, next;
	size_t path; /* length of this directory's path */
	size_t data;
};

static int
place_set(struct place *p, int fd)
{
	struct stat st;

	p->fd = fd;
	p->used = fd != -1;
	if (fd == -1)
		return 0;
	if (fstat(fd, &st) == -1)
		return -1;
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	return 0;
}

/* Opens p again, which child was entered from. */
static int
place_reopen(struct place *p, const struct place *child)
{
	struct stat st;
	int fd;

	if (!p->used || p->fd != -1)
		return 0;
	fd = openat(child->fd, "..", OPEN_DIR);
	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == -1) {
		io_drop(&fd);
		return -1;
	}
	if (st.st_dev != p->dev || st.st_ino != p->ino) {
		io_drop(&fd);
		errno = EBUSY;
		return -1;
	}
	p->fd = fd;
	return 0;
}

static int
dent_cmp(const void *a, const void *b)
{
	const struct dent *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static int
read_dents(struct walk_dir *d)
{
	static char data[1 << 16] __attribute__((aligned(16)));
	size_t cap = 0;
	ssize_t n;

	for (;;) {
		n = getdents64(d->in.fd, data, sizeof data);
		/* ENOENT: it was removed after it was opened. */
		if (n == 0 || (n == -1 && errno == ENOENT))
			break;
		if (n == -1)
			return -1;
		for (ssize_t at = 0; at < n;) {
			struct dirent64 *de = (void *)(data + at);
			size_t len = strlen(de->d_name);

			at += de->d_reclen;
			if (strcmp(de->d_name, ".") == 0 ||
			    strcmp(de->d_name, "..") == 0)
				continue;
			if (d->n == cap)
				d->v = xgrow(d->v, &cap, sizeof *d->v);
			d->v[d->n].ino = de->d_ino;
			d->v[d->n++].at = d->names.len;
			buf_add(&d->names, de->d_name, len + 1);
		}
	}
	if (d->n > 1)
		qsort(d->v, d->n, sizeof *d->v, dent_cmp);
	return 0;
}

static void
dir_release(struct walk_dir *d)
{
	buf_release(&d->names);
	free(d->v);
}

int
walk_enter(struct walk *w, int fd, int out, size_t data)
{
	struct walk_dir d = {
		.names = BUF_INIT,
		.path = w->path.len,
		.data = data,
	};

	if (place_set(&d.in, fd) == -1 || place_set(&d.out, out) == -1 ||
	    read_dents(&d) == -1) {
		dir_release(&d);
		io_drop(&fd);
		io_drop(&out);
		return -1;
	}
	if (w->n == w->cap)
		w->dir = xgrow(w->dir, &w->cap, sizeof *w->dir);
	w->dir[w->n++] = d;
	if (w->n > WALK_OPEN) {
		io_drop(&w->dir[w->n - 1 - WALK_OPEN].in.fd);
		io_drop(&w->dir[w->n - 1 - WALK_OPEN].out.fd);
	}
	return 0;
}

static enum walk_event
leave(struct walk *w)
{
	struct walk_dir *d = &w->dir[w->n - 1];
	struct walk_dir *up = w->n > 1 ? d - 1 : NULL;

	buf_cut(&w->path, d->path);
	if (up &&
	    (place_reopen(&up->in, &d->in) == -1 ||
		place_reopen(&up->out, &d->out) == -1)) {
		buf_cut(&w->path, up->path);
		return WALK_ERROR;
	}
	w->fd = d->in.fd;
	w->out = d->out.fd;
	w->data = d->data;
	dir_release(d);
	w->n--;
	w->dirfd = up ? up->in.fd : -1;
	w->outfd = up ? up->out.fd : -1;
	w->name = path_base(buf_str(&w->path));
	return WALK_LEAVE;
}

enum walk_event
walk_next(struct walk *w)
{
	struct walk_dir *d;

	io_drop(&w->fd);
	io_drop(&w->out);
	if (w->n == 0)
		return WALK_END;
	d = &w->dir[w->n - 1];
	if (d->next == d->n)
		return leave(w);
	buf_cut(&w->path, d->path);
	if (d->path > 0)
		buf_addc(&w->path, '/');
	w->dirfd = d->in.fd;
	w->outfd = d->out.fd;
	w->name = d->names.data + d->v[d->next++].at;
	buf_adds(&w->path, w->name);
	return WALK_ENTRY;
}

void
walk_release(struct walk *w)
{
	io_drop(&w->fd);
	io_drop(&w->out);
	while (w->n > 0) {
		struct walk_dir *d = &w->dir[--w->n];

		io_drop(&d->in.fd);
		io_drop(&d->out.fd);
		dir_release(d);
	}
	free(w->dir);
	buf_release(&w->path);
	*w = (struct walk)WALK_INIT;
}

/* Opens a directory that is to be emptied, giving itself permission. */
static int
open_doomed(int dirfd, const char *name)
{
	struct stat st;
	int fd;

	fd = openat(dirfd, name, OPEN_DIR);
	if (fd == -1 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
		fd = openat(dirfd, name, OPEN_DIR);
	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == -1 ||
	    ((st.st_mode & 0700) != 0700 && fchmod(fd, 0700) == -1))
		io_drop(&fd);
	return fd;
}

/* 1 when dirfd/name is gone, 0 when it is a directory. */
static int
remove_file(int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 1;
	return errno == EISDIR || errno == EPERM ? 0 : -1;
}

int
base_rm_tree(int dirfd, const char *name)
{
	struct walk w = WALK_INIT;
	enum walk_event ev;
	int fd, rc;

	rc = remove_file(dirfd, name);
	if (rc != 0)
		return rc == 1 ? 0 : -1;
	fd = open_doomed(dirfd, name);
	if (fd == -1)
		return errno == ENOENT ? 0 : -1;
	/* ENOENT: somebody else removes the same tree. */
	rc = walk_enter(&w, fd, -1, 0);
	while (rc != -1 || errno == ENOENT) {
		ev = walk_next(&w);
		if (ev == WALK_END)
			break;
		if (ev == WALK_ERROR) {
			rc = -1;
			break;
		}
		if (ev == WALK_LEAVE) {
			rc = unlinkat(w.dirfd == -1 ? dirfd : w.dirfd,
			    w.dirfd == -1 ? name : w.name, AT_REMOVEDIR);
		} else {
			rc = remove_file(w.dirfd, w.name);
			if (rc != 0)
				continue;
			fd = open_doomed(w.dirfd, w.name);
			rc = fd == -1 ? -1 : walk_enter(&w, fd, -1, 0);
		}
	}
	walk_release(&w);
	return rc == -1 && errno != ENOENT ? -1 : 0;
}

void
base_stat_set(struct base_stat *b, const struct stat *st)
{
	*b = (struct base_stat){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.nlink = st->st_nlink,
		.mtime = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.ctime = st->st_ctim.tv_sec,
		.ctime_ns = (uint32_t)st->st_ctim.tv_nsec,
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
	};
}

void
base_stat_get(const struct base_stat *b, struct stat *st)
{
	*st = (struct stat){
		.st_mode = b->mode,
		.st_uid = b->uid,
		.st_gid = b->gid,
		.st_mtim = { .tv_sec = b->mtime, .tv_nsec = b->mtime_ns },
	};
}

void
base_list_add(struct base_list *l, const struct base_entry *e)
{
	if (l->n == l->cap)
		l->v = xgrow(l->v, &l->cap, sizeof *l->v);
	l->v[l->n++] = *e;
}

static int
entry_cmp(const void *a, const void *b)
{
	const struct base_entry *x = a, *y = b;

	return strcmp(x->path, y->path);
}

void
base_list_sort(struct base_list *l)
{
	if (l->n > 1)
		qsort(l->v, l->n, sizeof *l->v, entry_cmp);
}

void
base_list_release(struct base_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].target);
	}
	free(l->v);
	*l = (struct base_list)BASE_LIST_INIT;
}

static const char *
kind_name(const struct base_entry *e)
{
	if (S_ISDIR(e->st.mode))
		return "directory";
	return S_ISLNK(e->st.mode) ? "symlink" : "file";
}

/* What the entry holds, for either hash: the separators are the caller's. */
static void
add_content(struct hash *h, const struct base_entry *e)
{
	char text[32], hex[HASH_HEX + 1];

	if (S_ISLNK(e->st.mode))
		hash_add(h, e->target, strlen(e->target));
	if (!S_ISREG(e->st.mode))
		return;
	snprintf(text, sizeof text, "%" PRIu64, e->st.size);
	hash_adds0(h, text);
	hash_to_hex(e->content, hex);
	hash_add(h, hex, HASH_HEX);
}

void
base_root_hash(const struct base_list *l, char hex[HASH_HEX + 1])
{
	struct hash h;

	hash_init(&h);
	for (size_t i = 0; i < l->n; i++) {
		const struct base_entry *e = &l->v[i];

		if (*e->path == '\0')
			continue;
		hash_adds0(&h, kind_name(e));
		hash_adds0(&h, e->path);
		add_content(&h, e);
		hash_add(&h, "", 1);
	}
	hash_hex(&h, hex);
}

void
base_key(const struct base_list *l, bool owners, char hex[HASH_HEX + 1])
{
	static const unsigned char none[32];
	const char **first = xcalloc(l->groups + 1, sizeof *first);
	char text[128], xattrs[HASH_HEX + 1];
	struct hash h;

	hash_init(&h);
	hash_adds0(&h, "sb-base 1");
	for (size_t i = 0; i < l->n; i++) {
		const struct base_entry *e = &l->v[i];
		const char *link = "";

		if (first[e->group])
			link = first[e->group];
		else if (e->group != 0)
			first[e->group] = e->path;
		hash_adds0(&h, kind_name(e));
		hash_adds0(&h, e->path);
		snprintf(text, sizeof text, "%04o %" PRId64 ".%09" PRIu32,
		    e->st.mode & 07777, e->st.mtime, e->st.mtime_ns);
		hash_adds0(&h, text);
		if (owners)
			snprintf(text, sizeof text, "%" PRIu32 ":%" PRIu32,
			    e->st.uid, e->st.gid);
		hash_adds0(&h, owners ? text : "");
		if (memcmp(e->xattrs, none, sizeof none) != 0)
			hash_to_hex(e->xattrs, xattrs);
		else
			*xattrs = '\0';
		hash_adds0(&h, xattrs);
		hash_adds0(&h, link);
		add_content(&h, e);
		hash_add(&h, "", 1);
	}
	hash_hex(&h, hex);
	free(first);
}

struct link {
	uint64_t dev, ino;
	size_t value;
};

static int
link_cmp(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->dev < y->dev ? -1 : x->dev > y->dev;
}

size_t
base_link_find(const struct base_links *l, const struct base_stat *st)
{
	struct link key = { st->dev, st->ino, 0 };
	void *found = tfind(&key, &l->root, link_cmp);

	return found ? (*(struct link **)found)->value : BASE_LINK_NONE;
}

void
base_link_add(struct base_links *l, const struct base_stat *st, size_t value)
{
	struct link *new = xmalloc(sizeof *new);

	*new = (struct link){ st->dev, st->ino, value };
	if (!tsearch(new, &l->root, link_cmp))
		die(EXIT_SYS, "out of memory");
}

void
base_links_release(struct base_links *l)
{
	tdestroy(l->root, free);
	l->root = NULL;
}

/* Content of the file dirfd/name, whose other names were not seen before. */
static int
hash_file(int dirfd, const char *name, struct base_entry *e)
{
	struct hash h;
	off_t n;
	int fd;

	fd =
	    openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return -1;
	hash_init(&h);
	n = hash_add_fd(&h, fd);
	io_drop(&fd);
	if (n == -1)
		return -1;
	hash_raw(&h, e->content);
	e->st.size = (uint64_t)n;
	return 0;
}

static char *
read_target(int dirfd, const char *name)
{
	char target[PATH_BYTES_MAX + 2];
	ssize_t n = readlinkat(dirfd, name, target, sizeof target);

	if (n == -1)
		return NULL;
	if ((size_t)n == sizeof target) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return xstrndup(target, (size_t)n);
}

/* Adds the entry that w stands at, going down into a directory. */
static int
hash_entry(struct walk *w, struct base_list *l, struct base_links *links)
{
	struct base_entry e = { .path = NULL };
	struct stat st;
	size_t i;
	int fd;

	if (path_lstat(w->dirfd, w->name, &st) == -1)
		return -1;
	base_stat_set(&e.st, &st);
	if (S_ISLNK(st.st_mode)) {
		e.target = read_target(w->dirfd, w->name);
		if (!e.target)
			return -1;
	} else if (S_ISREG(st.st_mode)) {
		i = st.st_nlink > 1 ? base_link_find(links, &e.st)
				    : BASE_LINK_NONE;
		if (i != BASE_LINK_NONE) {
			memcpy(e.content, l->v[i].content, sizeof e.content);
			e.st.size = l->v[i].st.size;
		} else if (hash_file(w->dirfd, w->name, &e) == -1) {
			return -1;
		} else if (st.st_nlink > 1) {
			base_link_add(links, &e.st, l->n);
		}
	} else if (!S_ISDIR(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	e.path = xstrdup(buf_str(&w->path));
	base_list_add(l, &e);
	if (!S_ISDIR(st.st_mode))
		return 0;
	fd = openat(w->dirfd, w->name, OPEN_DIR);
	return fd == -1 ? -1 : walk_enter(w, fd, -1, 0);
}

int
base_hash_tree(int fd, char hex[HASH_HEX + 1], char **where)
{
	struct base_links links = BASE_LINKS_INIT;
	struct base_list l = BASE_LIST_INIT;
	struct walk w = WALK_INIT;
	enum walk_event ev = WALK_ERROR;
	int root, rc = -1;

	root = openat(fd, ".", OPEN_DIR);
	if (root == -1 || walk_enter(&w, root, -1, 0) == -1)
		goto out;
	do {
		ev = walk_next(&w);
		if (ev == WALK_ENTRY && hash_entry(&w, &l, &links) == -1)
			ev = WALK_ERROR;
	} while (ev != WALK_END && ev != WALK_ERROR);
	if (ev == WALK_ERROR)
		goto out;
	base_list_sort(&l);
	base_root_hash(&l, hex);
	rc = 0;
out:
	if (rc == -1)
		*where = xstrdup(buf_str(&w.path));
	walk_release(&w);
	base_list_release(&l);
	base_links_release(&links);
	return rc;
}

/*
 * An index: this line, a head, the directory's path and its NUL, records in
 * the order of their paths, SHA-256 of all that. It is written without
 * syncing, so after a crash of the machine anything may stand there.
 */
#define INDEX_LINE  "sb-index 1\n"
#define INDEX_ORDER UINT64_C(0x0102030405060708)
#define INDEX_MAX   ((size_t)1 << 32)

struct index_head {
	uint64_t order; /* of bytes */
	uint64_t size; /* of a record, so that another compiler's is foreign */
	uint64_t n;
	int64_t start;
	uint64_t dir; /* length of its path */
};

struct index_rec {
	struct base_stat st;
	unsigned char content[32];
	unsigned char xattrs[32];
	uint32_t path, target; /* lengths; each follows with its NUL */
};

/* Where the records begin; NULL when text is no index. */
static const char *
index_head(const char *p, size_t n, struct index_head *head)
{
	size_t line = strlen(INDEX_LINE);

	if (n < line + sizeof *head || memcmp(p, INDEX_LINE, line) != 0)
		return NULL;
	memcpy(head, p + line, sizeof *head);
	p += line + sizeof *head;
	n -= line + sizeof *head;
	if (head->order != INDEX_ORDER ||
	    head->size != sizeof(struct index_rec) || head->dir >= n ||
	    p[head->dir] != '\0')
		return NULL;
	return p + head->dir + 1;
}

static bool
index_parse(struct base_index *x, const char *dir)
{
	const char *p = buf_str(&x->text), *end;
	unsigned char sum[32];
	struct index_head head;
	struct index_rec r;
	struct hash h;

	if (x->text.len < sizeof sum)
		return false;
	end = p + x->text.len - sizeof sum;
	hash_init(&h);
	hash_add(&h, p, (size_t)(end - p));
	hash_raw(&h, sum);
	if (memcmp(sum, end, sizeof sum) != 0)
		return false;
	p = index_head(p, (size_t)(end - p), &head);
	if (!p || strcmp(p - head.dir - 1, dir) != 0 ||
	    head.n > (size_t)(end - p) / sizeof r)
		return false;
	x->rec = xcalloc(head.n, sizeof *x->rec);
	x->start = head.start;
	for (; x->n < head.n; x->n++) {
		if ((size_t)(end - p) < sizeof r)
			return false;
		memcpy(&r, p, sizeof r);
		x->rec[x->n] = p;
		p += sizeof r;
		if ((size_t)(end - p) < (size_t)r.path + r.target + 2 ||
		    p[r.path] != '\0' || p[r.path + 1 + r.target] != '\0')
			return false;
		p += (size_t)r.path + r.target + 2;
	}
	return p == end;
}

bool
base_index_load(
    struct base_index *x, int dirfd, const char *name, const char *dir)
{
	if (io_read_file_at(dirfd, name, &x->text, INDEX_MAX) == 0 &&
	    index_parse(x, dir))
		return true;
	base_index_release(x);
	return false;
}

static int
rec_cmp(const void *path, const void *rec)
{
	return strcmp(
	    path, *(const char *const *)rec + sizeof(struct index_rec));
}

enum base_trust
base_index_find(const struct base_index *x, const char *path,
    struct base_entry *e, const char **target)
{
	const char **found = NULL;
	const struct base_stat *now = &e->st, *then;
	struct index_rec r;

	if (x->n > 0)
		found = bsearch(path, x->rec, x->n, sizeof *x->rec, rec_cmp);
	if (!found)
		return BASE_NEW;
	memcpy(&r, *found, sizeof r);
	then = &r.st;
	if (now->mode != then->mode || now->mtime != then->mtime ||
	    now->mtime_ns != then->mtime_ns || now->uid != then->uid ||
	    now->gid != then->gid ||
	    (!S_ISDIR(now->mode) && now->size != then->size))
		return BASE_NEW;
	memcpy(e->content, r.content, sizeof e->content);
	memcpy(e->xattrs, r.xattrs, sizeof e->xattrs);
	e->st.dropped = then->dropped;
	*target = *found + sizeof r + r.path + 1;
	if (now->ctime != then->ctime || now->ctime_ns != then->ctime_ns ||
	    now->dev != then->dev || now->ino != then->ino ||
	    now->nlink != then->nlink || now->ctime + 2 >= x->start)
		return BASE_UNSURE;
	return BASE_SAME;
}

int
base_index_save(int dirfd, const char *name, const char *dir, int64_t start,
    const struct base_list *l)
{
	struct index_head head = {
		.order = INDEX_ORDER,
		.size = sizeof(struct index_rec),
		.n = l->n,
		.start = start,
		.dir = strlen(dir),
	};
	struct buf b = BUF_INIT;
	unsigned char sum[32];
	struct hash h;
	int rc;

	buf_adds(&b, INDEX_LINE);
	buf_add(&b, &head, sizeof head);
	buf_add(&b, dir, head.dir + 1);
	for (size_t i = 0; i < l->n; i++) {
		const struct base_entry *e = &l->v[i];
		const char *target = e->target ? e->target : "";
		struct index_rec r = { .st = e->st };

		memcpy(r.content, e->content, sizeof r.content);
		memcpy(r.xattrs, e->xattrs, sizeof r.xattrs);
		r.path = (uint32_t)strlen(e->path);
		r.target = (uint32_t)strlen(target);
		buf_add(&b, &r, sizeof r);
		buf_add(&b, e->path, r.path + (size_t)1);
		buf_add(&b, target, r.target + (size_t)1);
	}
	hash_init(&h);
	hash_add(&h, b.data, b.len);
	hash_raw(&h, sum);
	buf_add(&b, sum, sizeof sum);
	rc = stage_file_nosync(dirfd, name, b.data, b.len, 0600);
	buf_release(&b);
	return rc;
}

char *
base_index_dir(int dirfd, const char *name)
{
	char text[sizeof INDEX_LINE + sizeof(struct index_head) +
	    PATH_BYTES_MAX + 1];
	struct index_head head;
	const char *p;
	ssize_t n;
	int fd;

	fd =
	    openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return NULL;
	n = io_read_all(fd, text, sizeof text);
	io_drop(&fd);
	p = n == -1 ? NULL : index_head(text, (size_t)n, &head);
	return p ? xstrdup(p - head.dir - 1) : NULL;
}

void
base_index_release(struct base_index *x)
{
	buf_release(&x->text);
	free(x->rec);
	*x = (struct base_index)BASE_INDEX_INIT;
}
