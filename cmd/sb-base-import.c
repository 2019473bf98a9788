/* SPDX-License-Identifier: MIT */
/*
 * sb-base-import: copy a directory into the shared cache, once for each
 * content, and make it the base of the empty store. Shape: sink.
 *
 * Steps:
 *   1. Refuse what cannot be: a store that is used, one inside the other.
 *   2. When an index of the directory exists, walk with it. It ends early at
 *      the first entry that shows that the tree is another one than last time;
 *      if it does not and the cache has an entry of that key, go to 4.
 *   3. Copy aside under a lock, hashing what is written; sync; name the copy by
 *      its key with one rename. When the name is taken, the other copy is the
 *      same: use it and drop ours.
 *   4. Pin the entry, then write into the store: link, digest, manifest,
 *      binding, each synced before the next.
 *
 * Invariants: a name in bases/ that is a key is complete and is not written
 * again. A store with a binding is complete; without one everything in it may
 * be written again, so that a killed import is finished by the next. From the
 * look for an entry to the link that refers to it the cache lock is held
 * shared, and entries are removed only while it is held exclusively.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "attr.h"
#include "base.h"
#include "buf.h"
#include "clock.h"
#include "err.h"
#include "hash.h"
#include "io.h"
#include "json.h"
#include "lock.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "rec.h"
#include "stack.h"
#include "stage.h"
#include "store.h"

static const char usage[] = "sb-base-import [-gqv] [dir]";

#define BINDING     "workspace.json"
#define BASE_LINK   "base"
#define CACHE_LOCK  ".lock"
#define BUILDING    ".building-"
#define GONE        ".gone-"
#define LOCK_SUFFIX ".lock"
#define LOCK_WAIT   10000 /* ms; the locks are held for moments */

struct cache {
	char *path; /* of bases/ */
	char *root_path;
	int root, bases, index;
	struct stat st; /* of root */
};

/* What is left out. */
enum skip {
	SKIP_SOCKET,
	SKIP_FIFO,
	SKIP_DEVICE,
	SKIP_UNREADABLE,
	SKIP_RESERVED,
	SKIP_PSEUDO,
	SKIP_CACHE,
	SKIP_KINDS
};

static const char *const skip_text[SKIP_KINDS] = {
	[SKIP_SOCKET] = "sockets",
	[SKIP_FIFO] = "FIFOs",
	[SKIP_DEVICE] = "devices",
	[SKIP_UNREADABLE] = "unreadable",
	[SKIP_RESERVED] = "names beginning .wh.",
	[SKIP_PSEUDO] = "pseudo file systems",
	[SKIP_CACHE] = "the cache itself",
};

#define SAMPLES 5
#define TICK_MS 1000

struct skipped {
	size_t n;
	char *sample[SAMPLES]; /* the first by name */
};

struct progress {
	bool quiet, verbose;
	int64_t next; /* when the next line may come, or 0 */
	uint64_t entries, bytes;
};

/*
 * Files and directories of the copy that are still to be synced. Their
 * descriptors are kept, because the modes they got may forbid to open them
 * again. More than this many and the whole file system is synced, once: by
 * then that costs less than the many.
 */
#define KEPT_MAX 512

struct kept {
	int fd[KEPT_MAX];
	size_t n, max;
	bool many;
};

/* One walk over the source. */
struct scan {
	const char *dir; /* for messages */
	const struct base_index *old; /* NULL: none */
	bool stop; /* leave at the first sign of another key */
	bool copy;
	bool fresh; /* the index is to be written */
	bool owners; /* owners are copied */
	int links; /* directory of further names of copied inodes, by number */
	dev_t no_clone, real_dev;
	bool no_clone_set, real_dev_set;
	struct stat cache, store; /* never entered */
	const char *store_path;
	int64_t start;
	uint64_t dropped;
	struct base_list list;
	struct base_links seen;
	struct skipped skipped[SKIP_KINDS];
	struct kept *kept;
	struct progress *progress;
	char root[HASH_HEX + 1], key[HASH_HEX + 1]; /* when it is finished */
};

enum verdict {
	GO_ON,
	ANOTHER, /* not the tree of last time, and stop was asked for */
	AGAIN, /* no longer what lstat said */
};

/* What is removed when we end before it has its name. */
static struct {
	int bases; /* of the cache */
	int lock;
	pid_t pid; /* 0: nothing */
	char name[64];
} building;

static void
building_forget(void)
{
	char lock[sizeof building.name + sizeof LOCK_SUFFIX];

	snprintf(lock, sizeof lock, "%s%s", building.name, LOCK_SUFFIX);
	unlinkat(building.bases, lock, 0);
	io_drop(&building.lock);
	building.pid = 0;
}

static void
building_remove(void)
{
	/* A failure leaves what a kill leaves: an unlocked leftover. */
	if (building.pid == getpid() &&
	    base_rm_tree(building.bases, building.name) == 0)
		building_forget();
}

static char *
full_path(const struct scan *s, const char *path)
{
	return *path ? xasprintf("%s/%s", s->dir, path) : xstrdup(s->dir);
}

static void
progress_say(const struct progress *p, const char *end)
{
	info_msg("%" PRIu64 " entries, %" PRIu64 " bytes%s", p->entries,
	    p->bytes, end);
}

/* Seldom enough that with the last there are at most two in a second. */
static void
progress_tick(struct progress *p)
{
	int64_t now;

	if (p->quiet)
		return;
	now = clock_ms();
	if (p->next == 0)
		p->next = p->verbose ? now : now + TICK_MS;
	if (now < p->next)
		return;
	p->next = now + TICK_MS;
	progress_say(p, "");
}

static void
skip(struct scan *s, enum skip why, const char *path)
{
	struct skipped *k = &s->skipped[why];
	size_t at = k->n < SAMPLES ? k->n : SAMPLES;

	k->n++;
	while (at > 0 && strcmp(path, k->sample[at - 1]) < 0) {
		if (at < SAMPLES)
			k->sample[at] = k->sample[at - 1];
		at--;
	}
	if (at < SAMPLES)
		k->sample[at] = xstrdup(path);
}

static void
report(const struct scan *s)
{
	for (size_t why = 0; why < SKIP_KINDS; why++) {
		const struct skipped *k = &s->skipped[why];
		struct buf b = BUF_INIT;

		if (k->n == 0)
			continue;
		for (size_t i = 0; i < k->n && i < SAMPLES; i++)
			buf_addf(&b, "%s%s", i ? ", " : "", k->sample[i]);
		if (k->n > SAMPLES)
			buf_addf(&b, ", +%zu more", k->n - SAMPLES);
		warn_msg("not imported, %s (%zu): %s", skip_text[why], k->n,
		    buf_str(&b));
		buf_release(&b);
	}
	if (s->dropped > 0)
		warn_msg("not imported, extended attributes (%" PRIu64
			 "): security.*, trusted.*, user.overlay.*",
		    s->dropped);
}

/* Takes fd, to be synced by keep_sync. */
static void
keep(struct kept *k, int fd)
{
	if (!k->many && k->n < k->max) {
		/* Only a start, so a failure will show up in the end. */
		sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
		k->fd[k->n++] = fd;
		return;
	}
	for (size_t i = 0; i < k->n; i++)
		io_drop(&k->fd[i]);
	k->n = 0;
	k->many = true;
	if (io_close(fd) == -1)
		die_sys("unable to write the copy");
}

static void
keep_sync(struct kept *k, int rootfd)
{
	if (k->many && syncfs(rootfd) == -1)
		die_sys("unable to sync the copy");
	for (size_t i = 0; i < k->n; i++)
		if (fsync(k->fd[i]) == -1 || io_close(k->fd[i]) == -1)
			die_sys("unable to sync the copy");
	k->n = 0;
}

static void
keep_init(struct kept *k)
{
	struct rlimit r;

	k->n = 0;
	k->many = false;
	k->max = KEPT_MAX;
	if (getrlimit(RLIMIT_NOFILE, &r) == -1)
		die_sys("unable to read the limit of open files");
	if (r.rlim_cur < KEPT_MAX * 2) {
		r.rlim_cur =
		    r.rlim_max < KEPT_MAX * 2 ? r.rlim_max : KEPT_MAX * 2;
		if (setrlimit(RLIMIT_NOFILE, &r) == -1)
			die_sys("unable to raise the limit of open files");
		k->max = r.rlim_cur / 2;
	}
}

/* Is what fd is open on made up by the kernel? Asked once per device. */
static bool
is_pseudo(struct scan *s, int fd, dev_t dev)
{
	static const unsigned long magic[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
		SECURITYFS_MAGIC, SELINUX_MAGIC, SMACK_MAGIC,
		DEVPTS_SUPER_MAGIC, BPF_FS_MAGIC, BINFMTFS_MAGIC,
		PSTOREFS_MAGIC, EFIVARFS_MAGIC, NSFS_MAGIC,
		0x19800202, /* mqueue */
		0x65735543, /* fusectl */
		0x62656570, /* configfs */
		0x67596969, /* rpc_pipefs */
	};
	struct statfs fs;

	if (s->real_dev_set && s->real_dev == dev)
		return false;
	if (fstatfs(fd, &fs) == -1)
		die_sys("unable to look at a file system below %s", s->dir);
	for (size_t i = 0; i < sizeof magic / sizeof *magic; i++)
		if ((unsigned long)fs.f_type == magic[i])
			return true;
	s->real_dev = dev;
	s->real_dev_set = true;
	return false;
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * Compares e with what the index has: ANOTHER when the key cannot be that of
 * last time and we were told to stop. *same: nothing needs to be read.
 */
static enum verdict
look_up(struct scan *s, const char *path, struct base_entry *e, bool *same,
    const char **target)
{
	enum base_trust trust = BASE_NEW;

	if (s->old)
		trust = base_index_find(s->old, path, e, target);
	*same = trust == BASE_SAME && !s->copy;
	if (trust != BASE_SAME)
		s->fresh = true;
	return s->stop && trust == BASE_NEW ? ANOTHER : GO_ON;
}

static void
read_xattrs(struct scan *s, const char *path, int fd, struct base_entry *e,
    struct buf *xattrs)
{
	size_t dropped = 0;
	struct hash h;

	buf_cut(xattrs, 0);
	if (attr_xattrs(fd, xattrs, &dropped) == -1)
		die_sys("unable to read the extended attributes of %s",
		    full_path(s, path));
	e->st.dropped = (uint32_t)dropped;
	memset(e->xattrs, 0, sizeof e->xattrs);
	if (xattrs->len == 0)
		return;
	hash_init(&h);
	hash_add(&h, xattrs->data, xattrs->len);
	hash_raw(&h, e->xattrs);
}

static void
write_xattrs(struct scan *s, const char *path, int fd, const struct buf *xattrs)
{
	if (xattrs->len > 0 &&
	    attr_set_xattrs(fd, xattrs->data, xattrs->len) == -1)
		die_sys("unable to set the extended attributes of the copy of "
			"%s",
		    full_path(s, path));
}

static void
add(struct scan *s, const char *path, struct base_entry *e)
{
	s->dropped += e->st.dropped;
	e->path = xstrdup(path);
	base_list_add(&s->list, e);
	s->progress->entries = s->list.n;
}

static enum verdict
visit_link(struct scan *s, struct walk *w, const struct stat *st)
{
	const char *path = buf_str(&w->path), *known = NULL;
	char target[PATH_BYTES_MAX + 2];
	struct base_entry e = { .path = NULL };
	enum verdict v;
	bool same;
	ssize_t n;

	base_stat_set(&e.st, st);
	v = look_up(s, path, &e, &same, &known);
	if (v != GO_ON)
		return v;
	if (same) {
		e.target = xstrdup(known);
	} else {
		n = readlinkat(w->dirfd, w->name, target, sizeof target);
		if (n == -1 && errno == EINVAL)
			return AGAIN;
		if (n == -1 && errno == ENOENT)
			return GO_ON;
		if (n == -1)
			die_sys("unable to read link %s", full_path(s, path));
		if ((size_t)n > PATH_BYTES_MAX)
			die(EXIT_SYS, "target of link %s is too long",
			    full_path(s, path));
		e.target = xstrndup(target, (size_t)n);
		if (s->stop && known && strcmp(known, e.target) != 0)
			return ANOTHER;
	}
	if (s->copy &&
	    (symlinkat(e.target, w->outfd, w->name) == -1 ||
		attr_set_link(w->outfd, w->name, st) == -1))
		die_sys("unable to copy link %s", full_path(s, path));
	add(s, path, &e);
	return GO_ON;
}

static void
hash_zeros(struct hash *h, off_t n)
{
	static const char zeros[1 << 16];

	for (; n > 0; n -= (off_t)sizeof zeros)
		hash_add(h, zeros,
		    n < (off_t)sizeof zeros ? (size_t)n : sizeof zeros);
}

/*
 * Goes to the next data of a sparse file at or after at, and sets *end behind
 * it. False when only a hole is left.
 */
static bool
next_data(struct scan *s, const char *path, int in, off_t *at, off_t *end)
{
	off_t data = lseek(in, *at, SEEK_DATA);

	if (data == -1 && errno == ENXIO)
		return false;
	*end = data == -1 ? -1 : lseek(in, data, SEEK_HOLE);
	if (*end == -1 || lseek(in, data, SEEK_SET) == -1)
		die_sys("unable to read %s", full_path(s, path));
	*at = data;
	return true;
}

/*
 * Hashes in from at to end (or to its end), and writes the same bytes to out
 * if there is one. Through a buffer: what is hashed must be what is written,
 * and to read the copy once more would cost more than copying in the kernel
 * saves. Returns where it ended.
 */
static off_t
pass_data(struct scan *s, const char *path, int in, int out, off_t at,
    off_t end, struct hash *h)
{
	static char data[1 << 17];

	while (at < end) {
		size_t want = end - at < (off_t)sizeof data ? (size_t)(end - at)
							    : sizeof data;
		ssize_t n = io_read_some(in, data, want);

		if (n == -1)
			die_sys("unable to read %s", full_path(s, path));
		if (n == 0)
			break;
		hash_add(h, data, (size_t)n);
		if (out != -1 && io_write_all(out, data, (size_t)n) == -1)
			die_sys("unable to write the copy of %s",
			    full_path(s, path));
		at += n;
		s->progress->bytes += (uint64_t)n;
		progress_tick(s->progress);
	}
	return at;
}

/* Shares the blocks of in, where the file system can. */
static bool
clone_file(struct scan *s, int in, int out, const struct stat *st)
{
	if (s->no_clone_set && s->no_clone == st->st_dev)
		return false;
	if (ioctl(out, FICLONE, in) == 0)
		return true;
	if (errno == EOPNOTSUPP || errno == EXDEV || errno == ENOTTY) {
		s->no_clone = st->st_dev;
		s->no_clone_set = true;
	}
	return false;
}

/* One try: hashes the size bytes of in and copies them to out, if not -1. */
static bool
pass_file(struct scan *s, const char *path, int in, int out,
    const struct stat *st, unsigned char content[32])
{
	off_t at = 0, end, size = st->st_size;
	struct hash h;

	hash_init(&h);
	if (out != -1 && size > 0 && clone_file(s, in, out, st)) {
		at = hash_add_fd(&h, out);
		if (at == -1)
			die_sys("unable to read the copy of %s",
			    full_path(s, path));
		s->progress->bytes += (uint64_t)at;
	} else if (st->st_blocks >= size / 512) {
		at = pass_data(s, path, in, out, 0, size, &h);
	} else {
		while (at < size) {
			off_t hole = at;

			if (!next_data(s, path, in, &at, &end))
				at = end = size;
			hash_zeros(&h, at - hole);
			if (out != -1 && lseek(out, at, SEEK_SET) == -1)
				die_sys("unable to write the copy of %s",
				    full_path(s, path));
			if (pass_data(s, path, in, out, at, end, &h) < end)
				break;
			at = end;
		}
		if (out != -1 && ftruncate(out, at) == -1)
			die_sys("unable to write the copy of %s",
			    full_path(s, path));
	}
	hash_raw(&h, content);
	return at == size;
}

static bool
unchanged(const struct stat *a, const struct stat *b)
{
	return same_file(a, b) && a->st_size == b->st_size &&
	    a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	    a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	    a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	    a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Opens the file that w stands at. -1: *v says what to do, errno why. */
static int
open_file(struct scan *s, struct walk *w, struct stat *st, enum verdict *v)
{
	const char *path = buf_str(&w->path);
	int fd;

	/* Non-blocking: a FIFO may have taken the place of the file. */
	fd = openat(w->dirfd, w->name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	*v = GO_ON;
	if (fd == -1) {
		if (errno == ELOOP || errno == ENXIO)
			*v = AGAIN;
		else if (errno == EACCES || errno == EPERM)
			skip(s, SKIP_UNREADABLE, path);
		else if (errno != ENOENT)
			die_sys("unable to open %s", full_path(s, path));
		return -1;
	}
	if (fstat(fd, st) == -1)
		die_sys("unable to look at %s", full_path(s, path));
	if (!S_ISREG(st->st_mode)) {
		*v = AGAIN;
		io_drop(&fd);
	} else if (is_pseudo(s, fd, st->st_dev)) {
		skip(s, SKIP_PSEUDO, path);
		io_drop(&fd);
	}
	return fd;
}

static int
open_copy(struct scan *s, struct walk *w)
{
	int fd = openat(w->outfd, w->name,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd == -1)
		die_sys("unable to make the copy of %s",
		    full_path(s, buf_str(&w->path)));
	return fd;
}

/* Gives the copy out of e its attributes and takes it. */
static void
finish_copy(struct scan *s, struct walk *w, int out, const struct stat *st,
    const struct buf *xattrs)
{
	const char *path = buf_str(&w->path);
	char number[32];

	write_xattrs(s, path, out, xattrs);
	if (attr_set(out, st, st->st_mode & 07777) == -1)
		die_sys("unable to set the attributes of the copy of %s",
		    full_path(s, path));
	snprintf(number, sizeof number, "%zu", s->list.n);
	if (st->st_nlink > 1 &&
	    linkat(w->outfd, w->name, s->links, number, 0) == -1)
		die_sys("unable to link the copy of %s", full_path(s, path));
	keep(s->kept, out);
}

/*
 * Reads, and copies, until nothing changed meanwhile. False when there is
 * nothing to add: *v says why.
 */
static bool
read_file(struct scan *s, struct walk *w, struct base_entry *e, enum verdict *v)
{
	const char *path = buf_str(&w->path);
	struct buf xattrs = BUF_INIT;
	struct stat before, after;
	int in, out = -1;
	bool good = false;

	for (int tries = 0; !good && tries < 4; tries++) {
		in = open_file(s, w, &before, v);
		if (in == -1)
			break;
		if (s->copy && out == -1)
			out = open_copy(s, w);
		else if (s->copy &&
		    (ftruncate(out, 0) == -1 || lseek(out, 0, SEEK_SET) == -1))
			die_sys("unable to write the copy of %s",
			    full_path(s, path));
		base_stat_set(&e->st, &before);
		good = pass_file(s, path, in, out, &before, e->content);
		read_xattrs(s, path, in, e, &xattrs);
		if (fstat(in, &after) == -1)
			die_sys("unable to look at %s", full_path(s, path));
		good = good && unchanged(&before, &after);
		io_drop(&in);
		if (!good && tries == 3)
			die(EXIT_SYS,
			    "%s changes all the time, so it cannot be copied: "
			    "stop what writes to it and import again",
			    full_path(s, path));
	}
	if (good && out != -1) {
		finish_copy(s, w, out, &before, &xattrs);
	} else if (out != -1) {
		unlinkat(w->outfd, w->name, 0);
		io_drop(&out);
	}
	buf_release(&xattrs);
	return good;
}

/* A further name of an inode that is in the list at i. */
static void
link_file(struct scan *s, struct walk *w, struct base_entry *e, size_t i)
{
	struct base_entry *first = &s->list.v[i];
	char number[32];

	if (first->group == 0)
		first->group = ++s->list.groups;
	*e = *first;
	e->st.dropped = 0;
	snprintf(number, sizeof number, "%zu", i);
	if (s->copy && linkat(s->links, number, w->outfd, w->name, 0) == -1)
		die_sys("unable to link the copy of %s",
		    full_path(s, buf_str(&w->path)));
}

static enum verdict
visit_file(struct scan *s, struct walk *w, const struct stat *st)
{
	const char *path = buf_str(&w->path), *target;
	struct base_entry e = { .path = NULL }, then;
	size_t i = BASE_LINK_NONE;
	enum verdict v;
	bool same;

	base_stat_set(&e.st, st);
	v = look_up(s, path, &e, &same, &target);
	if (v != GO_ON)
		return v;
	if (st->st_nlink > 1)
		i = base_link_find(&s->seen, &e.st);
	then = e;
	if (i != BASE_LINK_NONE)
		link_file(s, w, &e, i);
	else if (!same && !read_file(s, w, &e, &v))
		return v;
	if (s->stop && !same &&
	    (memcmp(e.content, then.content, sizeof e.content) != 0 ||
		memcmp(e.xattrs, then.xattrs, sizeof e.xattrs) != 0))
		return ANOTHER;
	if (i == BASE_LINK_NONE && e.st.nlink > 1)
		base_link_add(&s->seen, &e.st, s->list.n);
	add(s, path, &e);
	progress_tick(s->progress);
	return GO_ON;
}

static int
open_dir(struct scan *s, struct walk *w, struct stat *st, enum verdict *v)
{
	const char *path = buf_str(&w->path);
	int fd;

	fd = openat(w->dirfd, w->name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	*v = GO_ON;
	if (fd == -1) {
		if (errno == ELOOP || errno == ENOTDIR)
			*v = AGAIN;
		else if (errno == EACCES || errno == EPERM)
			skip(s, SKIP_UNREADABLE, path);
		else if (errno != ENOENT)
			die_sys("unable to open %s", full_path(s, path));
		return -1;
	}
	if (fstat(fd, st) == -1)
		die_sys("unable to look at %s", full_path(s, path));
	/* Reached here only through another mount of it. */
	if (same_file(st, &s->store))
		die(EXIT_USAGE, "store %s is inside the directory, as %s",
		    s->store_path, full_path(s, path));
	if (same_file(st, &s->cache))
		skip(s, SKIP_CACHE, path);
	else if (is_pseudo(s, fd, st->st_dev))
		skip(s, SKIP_PSEUDO, path);
	else
		return fd;
	io_drop(&fd);
	return -1;
}

/* Adds the directory fd, which it takes, and goes down into it. */
static enum verdict
enter(struct scan *s, struct walk *w, int fd, int out, const struct stat *st)
{
	const char *path = buf_str(&w->path), *target;
	struct base_entry e = { .path = NULL }, then;
	struct buf xattrs = BUF_INIT;
	enum verdict v;
	bool same;

	base_stat_set(&e.st, st);
	v = look_up(s, path, &e, &same, &target);
	then = e;
	if (v == GO_ON && !same) {
		read_xattrs(s, path, fd, &e, &xattrs);
		if (s->stop &&
		    memcmp(e.xattrs, then.xattrs, sizeof e.xattrs) != 0)
			v = ANOTHER;
		if (s->copy)
			write_xattrs(s, path, out, &xattrs);
	}
	buf_release(&xattrs);
	if (v == ANOTHER) {
		io_drop(&fd);
		return v;
	}
	add(s, path, &e);
	if (walk_enter(w, fd, out, s->list.n - 1) == -1)
		die_sys("unable to read directory %s", full_path(s, path));
	progress_tick(s->progress);
	return GO_ON;
}

static enum verdict
visit_dir(struct scan *s, struct walk *w)
{
	int fd, out = -1;
	enum verdict v;
	struct stat st;

	fd = open_dir(s, w, &st, &v);
	if (fd == -1)
		return v;
	if (s->copy) {
		if (mkdirat(w->outfd, w->name, 0700) == 0)
			out = openat(w->outfd, w->name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (out == -1)
			die_sys("unable to make the copy of %s",
			    full_path(s, buf_str(&w->path)));
	}
	return enter(s, w, fd, out, &st);
}

static enum verdict
visit(struct scan *s, struct walk *w)
{
	const char *path = buf_str(&w->path);
	enum verdict v = AGAIN;
	struct stat st;

	if (strncmp(w->name, ".wh.", 4) == 0) {
		skip(s, SKIP_RESERVED, path);
		return GO_ON;
	}
	for (int tries = 0; v == AGAIN && tries < 100; tries++) {
		if (path_lstat(w->dirfd, w->name, &st) == -1) {
			if (errno == ENOENT)
				return GO_ON;
			if (errno != EACCES && errno != EPERM)
				die_sys(
				    "unable to look at %s", full_path(s, path));
			skip(s, SKIP_UNREADABLE, path);
			return GO_ON;
		}
		v = GO_ON;
		if (S_ISREG(st.st_mode))
			v = visit_file(s, w, &st);
		else if (S_ISDIR(st.st_mode))
			v = visit_dir(s, w);
		else if (S_ISLNK(st.st_mode))
			v = visit_link(s, w, &st);
		else if (S_ISSOCK(st.st_mode))
			skip(s, SKIP_SOCKET, path);
		else if (S_ISFIFO(st.st_mode))
			skip(s, SKIP_FIFO, path);
		else
			skip(s, SKIP_DEVICE, path);
	}
	if (v == AGAIN)
		die(EXIT_SYS,
		    "%s changes its kind all the time: stop what does that "
		    "and import again",
		    full_path(s, path));
	return v;
}

/* The copy of a directory is complete: only now its mode may forbid things. */
static void
leave(struct scan *s, struct walk *w)
{
	struct stat st;

	if (w->out == -1)
		return;
	base_stat_get(&s->list.v[w->data].st, &st);
	if (attr_set(w->out, &st, st.st_mode & 07777) == -1)
		die_sys("unable to set the attributes of the copy of %s",
		    full_path(s, buf_str(&w->path)));
	keep(s->kept, w->out);
	w->out = -1;
}

/*
 * Walks over the directory src and copies it into out, if not -1. Both are
 * taken. False when it is ANOTHER tree than that of the index.
 */
static bool
scan(struct scan *s, int src, int out)
{
	struct walk w = WALK_INIT;
	enum verdict v = GO_ON;
	enum walk_event ev;
	struct stat st;

	s->start = time(NULL);
	if (fstat(src, &st) == -1)
		die_sys("unable to look at %s", s->dir);
	if (is_pseudo(s, src, st.st_dev))
		die(EXIT_USAGE,
		    "%s is a file system that the kernel makes up: name a "
		    "directory of files",
		    s->dir);
	v = enter(s, &w, src, out, &st);
	while (v == GO_ON) {
		ev = walk_next(&w);
		if (ev == WALK_END)
			break;
		if (ev == WALK_ERROR && errno == EBUSY)
			die(EXIT_SYS,
			    "a directory below %s was moved meanwhile: import "
			    "again",
			    full_path(s, buf_str(&w.path)));
		if (ev == WALK_ERROR)
			die_sys("unable to open %s again",
			    full_path(s, buf_str(&w.path)));
		if (ev == WALK_LEAVE)
			leave(s, &w);
		else
			v = visit(s, &w);
	}
	walk_release(&w);
	if (v == ANOTHER)
		return false;
	if (!s->old || s->list.n != s->old->n)
		s->fresh = true;
	base_list_sort(&s->list);
	base_root_hash(&s->list, s->root);
	base_key(&s->list, s->owners, s->key);
	return true;
}

static int
make_dir_how(int dirfd, const char *name, int how, const char *path)
{
	int fd;

	if (mkdirat(dirfd, name, 0700) == -1 && errno != EEXIST)
		die_sys("unable to make directory %s", path);
	fd = openat(dirfd, name, how | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		die_sys("unable to open directory %s", path);
	return fd;
}

static int
make_dir(int dirfd, const char *name, const char *path)
{
	return make_dir_how(dirfd, name, O_RDONLY, path);
}

/* Makes all directories of an absolute path and opens the last. */
static int
make_path(const char *path)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), up;
	char *copy = xstrdup(path), *at = copy, *end;

	while (fd != -1 && *at != '\0') {
		at += strspn(at, "/");
		end = at + strcspn(at, "/");
		if (end == at)
			break;
		if (*end != '\0')
			*end++ = '\0';
		up = fd;
		/* On the way, being allowed to pass through is enough. */
		fd = make_dir_how(
		    up, at, *end == '\0' ? O_RDONLY : O_PATH, path);
		io_drop(&up);
		at = end;
	}
	if (fd == -1)
		die_sys("unable to open /");
	free(copy);
	return fd;
}

static void
cache_open(struct cache *c)
{
	char *path = base_cache_dir(getenv("XDG_CACHE_HOME"), getenv("HOME"));

	if (!path)
		die(EXIT_USAGE,
		    "there is no place for the cache: set XDG_CACHE_HOME or "
		    "HOME to an absolute path");
	c->root = make_path(path);
	if (fstat(c->root, &c->st) == -1)
		die_sys("unable to look at %s", path);
	/* Who can rename in it could show sessions another base. */
	if (c->st.st_uid != geteuid() || (c->st.st_mode & 022) != 0)
		die(EXIT_USAGE,
		    "cache %s belongs to or can be written by others: set "
		    "XDG_CACHE_HOME, or change its owner or mode",
		    path);
	c->bases = make_dir(c->root, "bases", path);
	c->index = make_dir(c->root, "index", path);
	c->root_path = path_of_fd(c->root);
	c->path = path_of_fd(c->bases);
	if (!c->path || !c->root_path)
		die_sys("unable to tell where %s is", path);
	free(path);
}

static int
cache_lock(const struct cache *c, bool exclusive)
{
	int fd = lock_take(c->bases, CACHE_LOCK, exclusive, LOCK_WAIT);

	if (fd == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "somebody else holds %s/%s for too long",
		    c->path, CACHE_LOCK);
	if (fd == -1)
		die_sys("unable to lock %s/%s", c->path, CACHE_LOCK);
	return fd;
}

static bool
has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Renames bases/name to a name that means rubbish. */
static int
doom(const struct cache *c, const char *name)
{
	static unsigned n;
	char to[64];
	int rc;

	do {
		snprintf(to, sizeof to, GONE "%ld-%u", (long)getpid(), n++);
		rc = renameat2(c->bases, name, c->bases, to, RENAME_NOREPLACE);
	} while (rc == -1 && errno == EEXIST);
	return rc;
}

/* "X.lock" of a copy that nobody makes any more; *dir is X, caller frees. */
static bool
is_dead_lock(const struct cache *c, const char *name, char **dir)
{
	size_t len = strlen(name), suffix = strlen(LOCK_SUFFIX);

	if (!has_prefix(name, BUILDING) || len < suffix ||
	    strcmp(name + len - suffix, LOCK_SUFFIX) != 0 ||
	    lock_is_held(c->bases, name) != 0)
		return false;
	*dir = xstrndup(name, len - suffix);
	return true;
}

/* With the cache lock held exclusively: nothing new begins meanwhile. */
static void
doom_leftovers(const struct cache *c, const struct names *v)
{
	char *dir;

	for (size_t i = 0; i < v->n; i++) {
		if (is_dead_lock(c, v->name[i], &dir)) {
			if (doom(c, dir) == 0 || errno == ENOENT)
				unlinkat(c->bases, v->name[i], 0);
			free(dir);
		} else if (has_prefix(v->name[i], "." BUILDING)) {
			/* lock_create was killed before its rename. */
			unlinkat(c->bases, v->name[i], 0);
		}
	}
}

static void
remove_doomed(const struct cache *c)
{
	struct names v = NAMES_INIT;

	if (names_read(c->bases, &v) == -1)
		die_sys("unable to read %s", c->path);
	for (size_t i = 0; i < v.n; i++)
		if (has_prefix(v.name[i], GONE) &&
		    base_rm_tree(c->bases, v.name[i]) == -1 && errno != EBUSY)
			warn_sys("unable to remove %s/%s", c->path, v.name[i]);
	names_release(&v);
}

/* Removes what killed imports left, unless somebody is at work right now. */
static void
sweep(const struct cache *c)
{
	struct names v = NAMES_INIT;
	bool any = false;
	char *dir;
	int lock;

	if (names_read(c->bases, &v) == -1)
		die_sys("unable to read %s", c->path);
	for (size_t i = 0; i < v.n && !any; i++) {
		if (is_dead_lock(c, v.name[i], &dir)) {
			free(dir);
			any = true;
		}
		any = any || has_prefix(v.name[i], "." BUILDING) ||
		    has_prefix(v.name[i], GONE);
	}
	if (any) {
		lock = lock_take(c->bases, CACHE_LOCK, true, 0);
		if (lock != -1)
			doom_leftovers(c, &v);
		io_drop(&lock);
		remove_doomed(c);
	}
	names_release(&v);
}

/* Is the pin at pins/name alive: does the store it names link to entry? */
static bool
pin_is_alive(int pins, const char *name, const char *key,
    const struct stat *entry, struct buf *text)
{
	char target[PATH_BYTES_MAX + 2];
	struct buf stack = BUF_INIT;
	struct stat st;
	ssize_t n;
	int fd;

	buf_cut(text, 0);
	if (io_read_file_at(pins, name, text, PATH_BYTES_MAX + 1) == -1)
		return true; /* it cannot be told, so it stays */
	buf_addf(&stack, "%s/layer-stack", buf_str(text));
	fd = open(buf_str(&stack), O_PATH | O_DIRECTORY | O_CLOEXEC);
	buf_release(&stack);
	if (fd == -1)
		return errno != ENOENT && errno != ENOTDIR;
	n = readlinkat(fd, BASE_LINK, target, sizeof target - 1);
	if (n == -1) {
		io_drop(&fd);
		return errno != ENOENT;
	}
	target[n] = '\0';
	n = fstatat(fd, BASE_LINK, &st, 0);
	io_drop(&fd);
	/* A cache that was moved has links that lead nowhere for now. */
	return n == 0 ? same_file(&st, entry)
		      : strcmp(path_base(target), key) == 0;
}

/* Has the entry bases/key a live pin? Removes dead ones. */
static bool
is_pinned(const struct cache *c, const char *key)
{
	struct names v = NAMES_INIT;
	struct buf text = BUF_INIT;
	bool alive = false;
	int fd, pins = -1;
	struct stat st;

	fd = openat(
	    c->bases, key, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd != -1)
		pins = openat(fd, "pins",
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &st) == -1 ||
	    (pins == -1 && errno != ENOENT) ||
	    (pins != -1 && names_read(pins, &v) == -1))
		die_sys("unable to read %s/%s/pins", c->path, key);
	for (size_t i = 0; i < v.n; i++)
		if (v.name[i][0] != '.' &&
		    pin_is_alive(pins, v.name[i], key, &st, &text))
			alive = true;
		else
			unlinkat(pins, v.name[i], 0);
	names_release(&v);
	buf_release(&text);
	io_drop(&pins);
	io_drop(&fd);
	return alive;
}

static bool
is_key(const char *name)
{
	return strlen(name) == HASH_HEX &&
	    strspn(name, "0123456789abcdef") == HASH_HEX;
}

/* Removes index files of directories that are gone, and rubbish among them. */
static void
collect_index(const struct cache *c)
{
	struct names v = NAMES_INIT;
	struct stat st;
	char *dir;

	if (names_read(c->index, &v) == -1)
		die_sys("unable to read %s/index", c->root_path);
	for (size_t i = 0; i < v.n; i++) {
		dir = base_index_dir(c->index, v.name[i]);
		if (!dir || !is_key(v.name[i]) ||
		    (lstat(dir, &st) == -1 &&
			(errno == ENOENT || errno == ENOTDIR)))
			unlinkat(c->index, v.name[i], 0);
		free(dir);
	}
	names_release(&v);
}

static void
collect(void)
{
	struct names v = NAMES_INIT;
	struct ids removed = IDS_INIT;
	struct cache c;
	int lock;

	cache_open(&c);
	lock = cache_lock(&c, true);
	if (names_read(c.bases, &v) == -1)
		die_sys("unable to read %s", c.path);
	for (size_t i = 0; i < v.n; i++)
		if (is_key(v.name[i]) && !is_pinned(&c, v.name[i])) {
			if (doom(&c, v.name[i]) == -1)
				die_sys("unable to remove %s/%s", c.path,
				    v.name[i]);
			ids_add(&removed, v.name[i]);
		}
	doom_leftovers(&c, &v);
	collect_index(&c);
	if (fsync(c.bases) == -1)
		die_sys("unable to sync %s", c.path);
	io_drop(&lock);
	remove_doomed(&c);
	ids_print(&removed);
	stdout_done();
}

/* What is to be bound to what. */
struct job {
	struct cache cache;
	char *dir, *store; /* canonical */
	int dirfd, storefd, stackfd;
	struct stat store_st;
	char index[HASH_HEX + 1], pin[HASH_HEX + 1]; /* names of files */
	struct progress progress;
};

static void
hash_name(const char *path, char hex[HASH_HEX + 1])
{
	struct hash h;

	hash_init(&h);
	hash_add(&h, path, strlen(path));
	hash_hex(&h, hex);
}

static void
refuse_nesting(const struct job *j)
{
	if (strcmp(j->dir, "/") == 0)
		die(EXIT_USAGE,
		    "/ cannot be imported: name a directory below it");
	if (path_is_below(j->store, j->dir))
		die(EXIT_USAGE,
		    "store %s is inside the directory %s: set SB_STORE, for "
		    "sandboxes SB_STATE, to a place outside it",
		    j->store, j->dir);
	if (path_is_below(j->dir, j->store))
		die(EXIT_USAGE, "directory %s is inside the store %s", j->dir,
		    j->store);
}

/* Reads the binding. False when there is none. */
static bool
read_binding(const struct job *j, struct buf *workspace, struct buf *stack,
    struct buf *root_hash)
{
	struct buf text = BUF_INIT;
	struct span all;

	if (io_read_file_at(j->stackfd, BINDING, &text, 1 << 20) == -1) {
		if (errno == ENOENT)
			return false;
		die_sys("unable to read %s/layer-stack/%s", j->store, BINDING);
	}
	all = (struct span){ buf_str(&text), text.len };
	if (!json_is_valid(all.p, all.n, NULL, NULL) ||
	    !json_string(json_member(all, "workspace_root"), workspace) ||
	    !json_string(json_member(all, "layer_stack_root"), stack) ||
	    !json_string(json_member(all, "base_root_hash"), root_hash))
		die(EXIT_USAGE,
		    "store %s is damaged: %s is not a binding: make another "
		    "store",
		    j->store, BINDING);
	buf_release(&text);
	return true;
}

static void
read_manifest(const struct job *j, struct manifest *m)
{
	const char *why = NULL;

	if (manifest_read(j->stackfd, STACK_MANIFEST, m, &why) == 0)
		return;
	if (errno == EINVAL && why)
		die(EXIT_USAGE, "store %s is damaged: %s: %s", j->store,
		    STACK_MANIFEST, why);
	die_sys("unable to read %s/layer-stack/%s", j->store, STACK_MANIFEST);
}

/* A binding promises all of this. */
static void
check_bound(const struct job *j, const char *root_hash)
{
	struct manifest m = MANIFEST_INIT;
	struct buf digest = BUF_INIT;
	int fd;

	read_manifest(j, &m);
	if (m.version == 0 || !manifest_has(&m, BASE_LAYER))
		die(EXIT_USAGE, "store %s is damaged: %s has no %s", j->store,
		    STACK_MANIFEST, BASE_LAYER);
	fd = stack_open_layer(j->stackfd, BASE_LAYER);
	if (fd == -1)
		die(EXIT_USAGE,
		    "store %s is damaged: its base cannot be opened: %s",
		    j->store, strerror(errno));
	io_drop(&fd);
	fd = openat(j->stackfd, ".layer-metadata",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 ||
	    io_read_file_at(fd, BASE_LAYER ".digest", &digest, 4096) == -1)
		die_sys(
		    "unable to read the digest of the base of %s", j->store);
	io_drop(&fd);
	if (strncmp(buf_str(&digest), root_hash, HASH_HEX) != 0)
		die(EXIT_USAGE,
		    "store %s is damaged: digest of the base and binding "
		    "differ",
		    j->store);
	manifest_release(&m);
	buf_release(&digest);
}

/*
 * Is the store bound to dir already? Ends the program when it is to another
 * one, or when it is neither bound nor empty. *bound: the root hash.
 */
static bool
is_bound(const struct job *j, struct buf *bound)
{
	struct buf workspace = BUF_INIT, stack = BUF_INIT;
	struct manifest m = MANIFEST_INIT;
	char *expect = xasprintf("%s/layer-stack", j->store);

	buf_cut(bound, 0);
	if (read_binding(j, &workspace, &stack, bound)) {
		if (strcmp(buf_str(&workspace), j->dir) != 0)
			die(EXIT_USAGE,
			    "store %s is bound to %s already, so it cannot be "
			    "bound to %s: make another store",
			    j->store, buf_str(&workspace), j->dir);
		if (strcmp(buf_str(&stack), expect) != 0)
			die(EXIT_USAGE,
			    "store %s was made as %s: move it back, or make "
			    "another store",
			    j->store, buf_str(&stack));
		check_bound(j, buf_str(bound));
		return true;
	}
	/* A killed import leaves at most the manifest that it was to make. */
	read_manifest(j, &m);
	if (m.version > 1 || m.n > 1 ||
	    (m.n == 1 && strcmp(m.id[0], BASE_LAYER) != 0))
		die(EXIT_USAGE,
		    "store %s has layers but no %s: import %s into another "
		    "store",
		    j->store, BINDING, j->dir);
	manifest_release(&m);
	buf_release(&workspace);
	buf_release(&stack);
	free(expect);
	return false;
}

/* Ends the program unless the store's base is the one that s found. */
static void
same_base(const struct job *j, const char *bound, const struct scan *s)
{
	char target[PATH_BYTES_MAX + 2];
	ssize_t n;

	if (strcmp(bound, s->root) != 0)
		die(EXIT_USAGE,
		    "store %s is bound to %s as it was, with base %s; now it "
		    "is %s: make another store to import it again",
		    j->store, j->dir, bound, s->root);
	/* Not a link inside a box: then the root hash must do. */
	n = readlinkat(j->stackfd, BASE_LINK, target, sizeof target - 1);
	target[n == -1 ? 0 : n] = '\0';
	if (n != -1 && strcmp(path_base(target), s->key) != 0)
		die(EXIT_USAGE,
		    "store %s is bound to %s as it was, with base entry %s; "
		    "now modes, times or attributes make it %s: make another "
		    "store to import it again",
		    j->store, j->dir, path_base(target), s->key);
}

static void
write_link(const struct job *j, const char *key)
{
	char *target = xasprintf("%s/%s", j->cache.path, key);
	char tmp[64];

	snprintf(tmp, sizeof tmp, ".%s.%ld.tmp", BASE_LINK, (long)getpid());
	if (unlinkat(j->stackfd, tmp, 0) == -1 && errno != ENOENT)
		die_sys("unable to remove %s/layer-stack/%s", j->store, tmp);
	if (symlinkat(target, j->stackfd, tmp) == -1 ||
	    renameat(j->stackfd, tmp, j->stackfd, BASE_LINK) == -1 ||
	    fsync(j->stackfd) == -1)
		die_sys("unable to make link %s/layer-stack/%s", j->store,
		    BASE_LINK);
	free(target);
}

static uint64_t
total_bytes(const struct base_list *list)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < list->n; i++)
		if (S_ISREG(list->v[i].st.mode))
			bytes += list->v[i].st.size;
	return bytes;
}

/* Only statistics read it, so it is not synced: a damaged one is none. */
static void
write_bytes(const struct job *j, const struct base_list *list, int dirfd)
{
	struct buf text = BUF_INIT;
	int fd;

	buf_addf(&text, "%" PRIu64, total_bytes(list));
	fd = openat(dirfd, BASE_LAYER ".bytes",
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1 || io_write_all(fd, text.data, text.len) == -1 ||
	    io_close(fd) == -1)
		die_sys(
		    "unable to write the size of the base into %s", j->store);
	buf_release(&text);
}

static void
write_metadata(const struct job *j, const struct scan *s)
{
	int fd = make_dir(j->stackfd, ".layer-metadata", j->store);

	if (stage_file(fd, BASE_LAYER ".digest", s->root, HASH_HEX, 0600) == -1)
		die_sys(
		    "unable to write the digest of the base into %s", j->store);
	write_bytes(j, &s->list, fd);
	io_drop(&fd);
}

static void
write_manifest(const struct job *j)
{
	struct manifest m = MANIFEST_INIT;
	struct buf text = BUF_INIT;

	m.version = 1;
	manifest_add(&m, BASE_LAYER, BASE_LINK "/" BASE_LAYER);
	manifest_format(&m, &text);
	if (stage_file(j->stackfd, STACK_MANIFEST, text.data, text.len, 0600) ==
	    -1)
		die_sys("unable to write %s/layer-stack/%s", j->store,
		    STACK_MANIFEST);
	manifest_release(&m);
	buf_release(&text);
}

static void
write_binding(const struct job *j, const char *root_hash)
{
	char *stack = xasprintf("%s/layer-stack", j->store);
	struct buf text = BUF_INIT;

	buf_adds(&text, "{\n  \"workspace_root\": ");
	out_string(&text, j->dir, strlen(j->dir));
	buf_adds(&text, ",\n  \"layer_stack_root\": ");
	out_string(&text, stack, strlen(stack));
	buf_addf(&text, ",\n  \"base_root_hash\": \"%s\"\n}", root_hash);
	if (stage_file(j->stackfd, BINDING, text.data, text.len, 0600) == -1)
		die_sys("unable to write %s/layer-stack/%s", j->store, BINDING);
	buf_release(&text);
	free(stack);
}

/* With the cache lock: makes the entry of s, which is there, the base. */
static void
bind_store(const struct job *j, const struct scan *s)
{
	struct buf bound = BUF_INIT;
	int entry, pins = -1, lock;

	/* Also when somebody else has just named it. */
	if (fsync(j->cache.bases) == -1)
		die_sys("unable to sync %s", j->cache.path);
	entry = openat(j->cache.bases, s->key,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (entry != -1)
		pins = make_dir(entry, "pins", j->cache.path);
	if (pins == -1 ||
	    stage_file(pins, j->pin, j->store, strlen(j->store), 0600) == -1)
		die_sys("unable to pin %s/%s", j->cache.path, s->key);
	lock = lock_take(j->stackfd, STACK_LOCK, true, LOCK_WAIT);
	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "somebody else holds %s/layer-stack/%s",
		    j->store, STACK_LOCK);
	if (lock == -1)
		die_sys(
		    "unable to lock %s/layer-stack/%s", j->store, STACK_LOCK);
	if (is_bound(j, &bound)) {
		/* Another import was quicker. */
		same_base(j, buf_str(&bound), s);
	} else {
		write_link(j, s->key);
		write_metadata(j, s);
		write_manifest(j);
		write_binding(j, s->root);
	}
	buf_release(&bound);
	io_drop(&lock);
	io_drop(&pins);
	io_drop(&entry);
}

static void
save_index(const struct job *j, const struct scan *s)
{
	/* Only the next import's time depends on it. */
	if (s->fresh &&
	    base_index_save(
		j->cache.index, j->index, j->dir, s->start, &s->list) == -1)
		warn_sys("unable to write %s/index/%s", j->cache.root_path,
		    j->index);
}

static bool
entry_exists(const struct job *j, const char *key)
{
	struct stat st;

	if (path_lstat(j->cache.bases, key, &st) == 0)
		return true;
	if (errno != ENOENT)
		die_sys("unable to look at %s/%s", j->cache.path, key);
	return false;
}

static void
scan_init(struct scan *s, struct job *j)
{
	*s = (struct scan){
		.dir = j->dir,
		.owners = geteuid() == 0,
		.links = -1,
		.cache = j->cache.st,
		.store = j->store_st,
		.store_path = j->store,
		.progress = &j->progress,
	};
	j->progress.entries = j->progress.bytes = 0;
}

static int
open_source(const struct job *j)
{
	int fd = openat(j->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1)
		die_sys("unable to open %s", j->dir);
	return fd;
}

/* Makes the directory of the copy, locked as long as we live. */
static int
building_make(const struct job *j)
{
	char lock[sizeof building.name + sizeof LOCK_SUFFIX];
	int fd, cache = cache_lock(&j->cache, false);

	for (unsigned n = 0;; n++) {
		snprintf(building.name, sizeof building.name, BUILDING "%ld-%u",
		    (long)getpid(), n);
		snprintf(lock, sizeof lock, "%s%s", building.name, LOCK_SUFFIX);
		building.lock = lock_create(j->cache.bases, lock);
		if (building.lock != -1)
			break;
		if (errno != EEXIST)
			die_sys("unable to make %s/%s", j->cache.path, lock);
	}
	building.bases = j->cache.bases;
	building.pid = getpid();
	io_drop(&cache);
	fd = make_dir(j->cache.bases, building.name, j->cache.path);
	return fd;
}

/* Copies the directory, and gives the copy its name unless that is taken. */
static void
import(struct job *j, struct scan *s)
{
	static struct kept kept;
	int fd, tree, cache;

	fd = building_make(j);
	tree = make_dir(fd, BASE_LAYER, j->cache.path);
	s->links = make_dir(fd, "links", j->cache.path);
	s->copy = true;
	s->kept = &kept;
	keep_init(&kept);
	scan(s, open_source(j), tree);
	io_drop(&s->links);
	if (base_rm_tree(fd, "links") == -1)
		die_sys("unable to remove the links of the copy");
	keep_sync(&kept, fd);
	tree = make_dir(fd, "pins", j->cache.path);
	io_drop(&tree);
	/* This syncs the directory too, after all its entries. */
	if (stage_file(fd, "digest", s->root, HASH_HEX, 0600) == -1)
		die_sys("unable to write the digest of the copy");
	io_drop(&fd);

	cache = cache_lock(&j->cache, false);
	if (renameat(j->cache.bases, building.name, j->cache.bases, s->key) ==
	    0) {
		building_forget();
	} else if (errno != EEXIST && errno != ENOTEMPTY) {
		die_sys("unable to name the copy %s/%s", j->cache.path, s->key);
	}
	save_index(j, s);
	bind_store(j, s);
	io_drop(&cache);
	/* Not while others wait for the lock: it may be large. */
	building_remove();
}

int
main(int argc, char **argv)
{
	struct job j = { .dir = NULL };
	struct base_index old = BASE_INDEX_INIT;
	struct buf bound = BUF_INIT;
	bool garbage = false, is, done = false;
	const char *dir = ".";
	struct scan s;
	int opt, cache;

	err_init();
	while ((opt = getopt(argc, argv, "+ghqv")) != -1) {
		if (opt == 'g')
			garbage = true;
		else if (opt == 'q')
			j.progress.quiet = true;
		else if (opt == 'v')
			j.progress.verbose = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (argc - optind > (garbage ? 0 : 1))
		usage_die(usage);
	if (optind < argc)
		dir = argv[optind];
	umask(077);
	if (garbage) {
		collect();
		return EXIT_OK;
	}

	j.dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j.dirfd == -1)
		die_sys("unable to open directory %s", dir);
	j.dir = path_of_fd(j.dirfd);
	if (!j.dir)
		die_sys("unable to tell where %s is", dir);
	if (!utf8_is_valid(j.dir, strlen(j.dir)))
		die(EXIT_USAGE,
		    "path of %s is not UTF-8, so %s cannot name it: rename it",
		    j.dir, BINDING);
	j.storefd = store_open();
	j.stackfd = store_open_stack();
	j.store = path_of_fd(j.storefd);
	if (!j.store || fstat(j.storefd, &j.store_st) == -1)
		die_sys("unable to tell where %s is", store_path());
	refuse_nesting(&j);
	cache_open(&j.cache);
	if (path_is_below(j.dir, j.cache.root_path))
		die(EXIT_USAGE, "directory %s is inside the cache %s", j.dir,
		    j.cache.root_path);
	is = is_bound(&j, &bound);
	hash_name(j.dir, j.index);
	hash_name(j.store, j.pin);
	atexit(building_remove);
	sweep(&j.cache);

	scan_init(&s, &j);
	if (base_index_load(&old, j.cache.index, j.index, j.dir))
		s.old = &old;
	if (is || s.old) {
		s.stop = !is;
		done = scan(&s, open_source(&j), -1);
	}
	if (is)
		same_base(&j, buf_str(&bound), &s);
	if (done) {
		cache = cache_lock(&j.cache, false);
		save_index(&j, &s);
		done = is || entry_exists(&j, s.key);
		if (done && !is)
			bind_store(&j, &s);
		io_drop(&cache);
	}
	if (!done) {
		scan_init(&s, &j);
		import(&j, &s);
	}
	report(&s);
	if (j.progress.verbose && !j.progress.quiet) {
		j.progress.bytes = total_bytes(&s.list);
		progress_say(
		    &j.progress, done ? ": nothing to copy" : ": copied");
	}
	printf("%s\n", s.root);
	stdout_done();
	return EXIT_OK;
}
