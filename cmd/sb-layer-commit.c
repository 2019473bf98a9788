/* SPDX-License-Identifier: MIT */
/*
 * sb-layer-commit: turn resolved changes into a layer that nothing names yet.
 * Shape: sink; prints the layer's id.
 *
 *   1. Read the whole stream and check it; nothing is made before its full
 *      stop.
 *   2. Make staging/ID.lock, held as long as we live, and staging/ID.staging;
 *      build the tree in it, parents first. Write-back of each file is started
 *      as soon as it is written.
 *   3. Write the sidecars under their names; give directories their
 *      attributes, from below, when nothing changes in them any more.
 *   4. Sync everything that was made.
 *   5. Note the id in the lease, if one is named; rename the tree to layers/ID
 *      and sync layers/.
 *
 * What is synced, and why nothing of it can be left out. fsync(2) of a file
 * says nothing about its name, and that of a directory nothing about what is in
 * the files it names:
 *   - each file of the layer, once for all its names, and each sidecar, for the
 *     content; but .bytes, which only statistics read;
 *   - each directory of the layer, its root too, for the names in it and its
 *     own attributes. Links and whiteouts have no descriptor to sync, they are
 *     part of their directory;
 *   - .layer-metadata/ and meta/, for the names of the sidecars; layer-stack/
 *     when meta/ had to be made;
 *   - layers/ after the rename, for the layer's own name: the manifest may name
 *     it from the moment on that we print its id.
 * staging/ is not: a rename is one step, also in a crash, and whatever else is
 * lost there was never seen. The order does not matter for safety, only the two
 * sides of the rename do. It does for time: the file written last is synced
 * first. When the disk has that one it has the others as well, and where there
 * is a journal one commit of it takes everything; after that there is nothing
 * left to write.
 *
 * Invariant: what is under layers/ is whole, synced and has its digest. What a
 * killed run leaves is not locked and goes with the next sweep: a tree in
 * staging/, sidecars without a layer, or a layer that nothing names.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attr.h"
#include "base.h"
#include "blame.h"
#include "buf.h"
#include "change.h"
#include "err.h"
#include "hash.h"
#include "history.h"
#include "io.h"
#include "layer.h"
#include "lock.h"
#include "mem.h"
#include "path.h"
#include "stack.h"
#include "stage.h"
#include "store.h"
#include "whiteout.h"

static const char usage[] = "sb-layer-commit [-B file] [-C dir] [-M dir] "
			    "[-l lease] [-m file]";

enum {
	LOCK_MS = 30000,
	KEPT_MAX = 4096, /* descriptors that wait for their fsync */
	SPARE = 32, /* descriptors for everything else */
};

static int upper = -1, merged = -1, stackfd = -1, staging = -1, tree = -1;
static int metadata = -1, meta = -1, top = -1; /* top: root of head's newest */
static char id[ID_MAX + 1];
static uint64_t bytes;
static bool visible, delivered;

/*
 * What has to be synced. Descriptors are kept for it, because the modes that
 * things get may forbid to open them again, and because a sync before the rest
 * is written costs a commit of the journal more.
 */
static struct kept {
	int fd;
	const char *path; /* borrowed */
	int *slot; /* holds the descriptor as well, or NULL */
} kept[KEPT_MAX];
static size_t nkept, nfiles, kept_max; /* files first, directories after */

/* Sources with more names than one, and the first record of each. */
static struct linked {
	struct stat st;
	const struct change *c;
	int *slot;
} *linked;
static size_t nlinked, linked_cap;
static struct base_links inodes = BASE_LINKS_INIT;

/* A layer that is visible already goes back first, or stays as it is: whole. */
static void
undo(void)
{
	static const char *const suffix[] = { "digest", "bytes", "blame",
		"json" };
	char name[ID_MAX + 16], layer[ID_MAX + 16];

	snprintf(name, sizeof name, "%s.staging", id);
	snprintf(layer, sizeof layer, "layers/%s", id);
	if (visible) {
		/* Its root may have a mode by now that forbids to move it. */
		fchmod(tree, 0700);
		if (renameat(stackfd, layer, staging, name) == -1)
			return;
	}
	io_many_fds();
	path_rm_tree(staging, name);
	for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++) {
		snprintf(name, sizeof name, "%s.%s", id, suffix[i]);
		unlinkat(i < 2 ? metadata : meta, name, 0);
	}
}

/*
 * Undoes everything unless the id was delivered: nobody could name the layer.
 * The lock goes last, it is what keeps sweeps away from the rest.
 */
static void
unstage(void)
{
	char name[ID_MAX + 16];

	if (!delivered)
		undo();
	snprintf(name, sizeof name, "%s.lock", id);
	unlinkat(staging, name, 0);
}

/* ---- checking ---- */

static int
source_of(const struct change *c)
{
	if (strcmp(c->from, "u") == 0 && upper != -1)
		return upper;
	if (strcmp(c->from, "m") == 0 && merged != -1)
		return merged;
	die(EXIT_USAGE, "%s: there is no directory for content from '%s'",
	    c->path, c->from);
}

static bool
is_root(const struct change *c)
{
	return strcmp(c->path, CHANGE_ROOT) == 0;
}

/* The root is none: it is not made by its record. */
static bool
is_dir(const struct change *c)
{
	return (c->kind == CHANGE_DIR && !is_root(c)) ||
	    c->kind == CHANGE_OPAQUE;
}

/* Every path lies in a directory of the stream, so that its attributes are
 * known; and carries no name that means something else in a layer. */
static size_t
check(const struct changes *cs)
{
	const char *dirs[PATH_BYTES_MAX / 2 + 2];
	size_t depth = 0, n = 0;

	for (size_t i = 0; i < cs->n; i++) {
		const struct change *c = &cs->v[i];
		size_t parent = path_parent_len(c->path);

		if (c->kind == CHANGE_SPECIAL)
			continue;
		if (is_root(c)) {
			source_of(c);
			n++;
			continue;
		}
		if (path_is_reserved(c->path))
			die(EXIT_USAGE,
			    "%s: names beginning .wh. cannot be "
			    "in a layer",
			    c->path);
		while (depth > 0 && !path_is_below(c->path, dirs[depth - 1]))
			depth--;
		if (parent != (depth ? strlen(dirs[depth - 1]) : 0))
			die(EXIT_USAGE,
			    "%s: there is no record of the "
			    "directory that it is in",
			    c->path);
		if (is_dir(c))
			dirs[depth++] = c->path;
		if (c->kind != CHANGE_DELETE)
			source_of(c);
		n++;
	}
	return n;
}

/* ---- syncing ---- */

static void
keep_init(void)
{
	struct rlimit r;

	io_many_fds();
	if (getrlimit(RLIMIT_NOFILE, &r) == -1)
		die_sys("unable to read the limit of open files");
	kept_max = r.rlim_cur > SPARE ? r.rlim_cur - SPARE : 1;
	if (kept_max > KEPT_MAX)
		kept_max = KEPT_MAX;
}

static void
sync_one(struct kept *k)
{
	if (fsync(k->fd) == -1)
		die_sys("unable to sync %s", k->path);
	/* Where a file system says at last that it could not write. */
	if (io_close(k->fd) == -1)
		die_sys("unable to close %s", k->path);
	if (k->slot)
		*k->slot = -1;
}

static void
sync_kept(void)
{
	for (size_t i = nfiles; i-- > 0;)
		sync_one(&kept[i]);
	for (size_t i = nfiles; i < nkept; i++)
		sync_one(&kept[i]);
	nkept = nfiles = 0;
}

/* Takes fd. */
static void
keep(int fd, const char *path, int *slot)
{
	if (nkept == kept_max)
		sync_kept();
	kept[nkept++] = (struct kept){ fd, path, slot };
	if (slot)
		*slot = fd;
}

/* The same for a file, whose write-back begins while we go on. */
static void
keep_file(int fd, const char *path, int *slot)
{
	/* Only a hint: what is not written by it is written by fsync. */
	sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	keep(fd, path, slot);
	nfiles = nkept;
}

/* ---- building ---- */

static int
open_source(const struct change *c, int flags, struct stat *st)
{
	int fd = path_open(source_of(c), c->path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | flags, 0);

	if (fd == -1 || fstat(fd, st) == -1)
		die_sys("unable to open %s", c->path);
	return fd;
}

static void
put_attrs(int from, int to, const struct stat *st, const struct change *c)
{
	struct buf xattrs = BUF_INIT;

	if (attr_xattrs(from, &xattrs, NULL) == -1)
		die_sys("unable to read xattrs of %s", c->path);
	if (attr_set_xattrs(to, buf_str(&xattrs), xattrs.len) == -1 ||
	    attr_set(to, st, c->mode) == -1)
		die_sys("unable to set attributes of %s", c->path);
	buf_release(&xattrs);
}

static bool
is_same_state(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size &&
	    a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	    a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	    a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	    a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static void
remember(const struct change *c, const struct stat *st, int *slot)
{
	struct base_stat b;

	if (nlinked == linked_cap)
		linked = xgrow(linked, &linked_cap, sizeof *linked);
	linked[nlinked] = (struct linked){ *st, c, slot };
	base_stat_set(&b, st);
	base_link_add(&inodes, &b, nlinked++);
}

/*
 * A further name of a source that is in the layer already becomes a further
 * name there. False when it needs a file of its own: it is the first, or its
 * record wants another mode, or the file system has no room for more names.
 */
static bool
put_again(
    int dir, const char *name, const struct change *c, const struct stat *st)
{
	struct base_stat b;
	struct linked *l;
	const char *base;
	int from, rc;
	size_t i;

	base_stat_set(&b, st);
	i = base_link_find(&inodes, &b);
	if (i == BASE_LINK_NONE)
		return false;
	l = &linked[i];
	if (!is_same_state(&l->st, st))
		die(EXIT_SYS, "%s changed before publish", c->path);
	if (l->c->mode != c->mode)
		return false;
	from = path_open_parent(tree, l->c->path, &base);
	if (from == -1)
		die_sys("unable to open the directory of %s", l->c->path);
	rc = linkat(from, base, dir, name, 0);
	io_drop(&from);
	if (rc == -1 && errno == EMLINK)
		return false;
	if (rc == -1)
		die_sys("unable to make %s in the layer", c->path);
	/* Synced before it had this name: its count of names is not. */
	if (*l->slot == -1) {
		from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (from == -1)
			die_sys("unable to open %s again", c->path);
		keep_file(from, c->path, l->slot);
	}
	return true;
}

static void
put_file(int dir, const char *name, const struct change *c, int *slot)
{
	struct stat st, after;
	int from = open_source(c, 0, &st), to;
	off_t n;

	if (!S_ISREG(st.st_mode) || st.st_size != c->size)
		die(EXIT_SYS, "%s changed before publish", c->path);
	if (st.st_nlink > 1 && put_again(dir, name, c, &st)) {
		io_drop(&from);
		return;
	}
	to = openat(dir, name,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to == -1)
		die_sys("unable to make %s in the layer", c->path);
	n = io_copy(from, to);
	if (n == -1 || fstat(from, &after) == -1)
		die_sys("unable to copy %s", c->path);
	/* A writer that was left running would make a mixture. */
	if (n != c->size || !is_same_state(&st, &after))
		die(EXIT_SYS, "%s changed before publish", c->path);
	put_attrs(from, to, &st, c);
	io_drop(&from);
	keep_file(to, c->path, slot);
	if (st.st_nlink > 1)
		remember(c, &st, slot);
	bytes += (uint64_t)c->size;
}

static void
put_link(int dir, const char *name, const struct change *c)
{
	struct stat st = { .st_mode = 0 };
	const char *base;
	int parent = path_open_parent(source_of(c), c->path, &base);

	if (parent == -1 || path_lstat(parent, base, &st) == -1)
		die_sys("unable to look at %s", c->path);
	if (symlinkat(c->target, dir, name) == -1 ||
	    attr_set_link(dir, name, &st) == -1)
		die_sys("unable to make link %s in the layer", c->path);
	io_drop(&parent);
}

static void
put_dir(int dir, const char *name, const struct change *c)
{
	int fd;

	if (mkdirat(dir, name, 0700) == -1)
		die_sys("unable to make directory %s in the layer", c->path);
	if (c->kind != CHANGE_OPAQUE)
		return;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || whiteout_mark_opaque(fd) == -1)
		die_sys("unable to mark %s opaque", c->path);
	io_drop(&fd);
}

/* open_file has the descriptor of each file, as long as it is kept. */
static void
build(const struct changes *cs, int *open_file)
{
	const char *name;
	int dir;

	for (size_t i = 0; i < cs->n; i++) {
		const struct change *c = &cs->v[i];

		open_file[i] = -1;
		if (c->kind == CHANGE_SPECIAL || is_root(c))
			continue;
		dir = path_open_parent(tree, c->path, &name);
		if (dir == -1)
			die_sys("unable to open the directory of %s", c->path);
		if (c->kind == CHANGE_WRITE)
			put_file(dir, name, c, &open_file[i]);
		else if (c->kind == CHANGE_SYMLINK)
			put_link(dir, name, c);
		else if (c->kind == CHANGE_DELETE) {
			if (whiteout_make(dir, name) == -1)
				die_sys("unable to make a whiteout for %s",
				    c->path);
		} else
			put_dir(dir, name, c);
		io_drop(&dir);
	}
}

/* ---- finishing ---- */

/* Digest in strcmp order of the paths, as the format says. */
static int
by_bytes(const void *a, const void *b)
{
	return strcmp((*(const struct change *const *)a)->path,
	    (*(const struct change *const *)b)->path);
}

static void
digest(const struct changes *cs, const int *open_file, char hex[HASH_HEX + 1])
{
	const struct change **sorted = xcalloc(cs->n, sizeof *sorted);
	struct hash h;
	size_t n = 0;

	/* The root is no entry of the layer. */
	for (size_t i = 0; i < cs->n; i++)
		if (!is_root(&cs->v[i]))
			sorted[n++] = &cs->v[i];
	qsort(sorted, n, sizeof *sorted, by_bytes);
	hash_init(&h);
	for (size_t i = 0; i < n; i++) {
		int fd = open_file[sorted[i] - cs->v], own = -1;

		if (sorted[i]->kind == CHANGE_WRITE && fd == -1) {
			own = fd =
			    path_open(tree, sorted[i]->path, O_RDONLY, 0);
			if (fd == -1)
				die_sys(
				    "unable to open %s again", sorted[i]->path);
		}
		if (layer_digest_add(&h, sorted[i], fd) == -1)
			die_sys("unable to read %s again", sorted[i]->path);
		io_drop(&own);
	}
	free(sorted);
	hash_hex(&h, hex);
}

/*
 * Under its final name at once: nothing names the layer yet, and what a killed
 * run leaves is swept.
 */
static int
sidecar(int dir, const char *suffix, const void *p, size_t n)
{
	char name[ID_MAX + 16];
	int fd;

	snprintf(name, sizeof name, "%s.%s", id, suffix);
	fd = openat(dir, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1 || io_write_all(fd, p, n) == -1)
		die_sys("unable to write %s/%s",
		    dir == meta ? "meta" : ".layer-metadata", name);
	return fd;
}

/* blame, members: NULL when there is none. */
static void
write_sidecars(
    const char *hex, const struct buf *blame, const struct buf *members)
{
	char size[24];
	int fd, n = snprintf(size, sizeof size, "%" PRIu64, bytes);

	fd = sidecar(metadata, "bytes", size, (size_t)n);
	if (io_close(fd) == -1)
		die_sys("unable to write .layer-metadata/%s.bytes", id);
	if (blame)
		keep_file(sidecar(meta, "blame", blame->data, blame->len),
		    "the file of -B", NULL);
	if (members)
		keep_file(sidecar(meta, "json", members->data, members->len),
		    "the file of -m", NULL);
	keep_file(
	    sidecar(metadata, "digest", hex, strlen(hex)), "the digest", NULL);
}

static void
finish_dirs(const struct changes *cs)
{
	for (size_t i = cs->n; i-- > 0;) {
		const struct change *c = &cs->v[i];
		struct stat st;
		int from, to;

		if (!is_dir(c))
			continue;
		from = open_source(c, O_DIRECTORY, &st);
		to = path_open(tree, c->path, O_RDONLY | O_DIRECTORY, 0);
		if (to == -1)
			die_sys("unable to open %s in the layer", c->path);
		put_attrs(from, to, &st, c);
		keep(to, c->path, NULL);
		io_drop(&from);
	}
}

static uint64_t
read_head(struct manifest *m)
{
	const char *why = NULL;

	if (manifest_read(stackfd, STACK_MANIFEST, m, &why) == -1)
		die(EXIT_SYS, "unable to read %s: %s", STACK_MANIFEST,
		    why ? why : strerror(errno));
	return m->version;
}

static void
later(struct timespec *t, int fd)
{
	struct stat st;

	if (fd == -1)
		return;
	if (fstat(fd, &st) == -1)
		die_sys("unable to look at the root");
	if (st.st_mtim.tv_sec > t->tv_sec ||
	    (st.st_mtim.tv_sec == t->tv_sec && st.st_mtim.tv_nsec > t->tv_nsec))
		*t = st.st_mtim;
}

/*
 * The merged root shows the attributes of the topmost layer's root, so each
 * layer has to carry them: those of the root's record, if somebody changed
 * them, else head's. Not those of the upper, which are what they were when the
 * session began. Only its time is taken when it is later: then there is a new
 * name in it. Returns the mode.
 */
static unsigned
finish_root(const struct change *record)
{
	char name[] = "the root";
	struct change c = { .path = name };
	struct stat st = { .st_mode = 0755 };
	int from = top != -1 ? top : upper, own = -1;
	unsigned mode;

	if (record)
		own = from = open_source(record, O_DIRECTORY, &st);
	else if (from != -1 && fstat(from, &st) == -1)
		die_sys("unable to look at the root");
	mode = record ? record->mode : st.st_mode & 07777;
	later(&st.st_mtim, top);
	later(&st.st_mtim, upper);
	/* Only who may write a directory may rename it elsewhere. */
	c.mode = mode | 0200;
	if (from != -1)
		put_attrs(from, tree, &st, &c);
	else if (fchmod(tree, c.mode) == -1)
		die_sys("unable to set the mode of the layer's root");
	io_drop(&own);
	return mode;
}

/* The names in directories that stay open. */
static void
sync_dirs(void)
{
	if (fsync(tree) == -1)
		die_sys("unable to sync the layer's root");
	if (fsync(metadata) == -1)
		die_sys("unable to sync .layer-metadata");
	if (meta != -1 && fsync(meta) == -1)
		die_sys("unable to sync meta");
}

/* Takes the stack lock, shared: sweeps run under the exclusive one. */
static int
share_stack(void)
{
	int lock = lock_take(stackfd, STACK_LOCK, false, LOCK_MS);

	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "gave up waiting for the stack lock");
	if (lock == -1)
		die_sys("unable to lock the stack");
	return lock;
}

/*
 * Allocates the id and makes the tree's root. The lock file stays open, and
 * so held, as long as we live. A sweep must not see it before it is locked.
 */
static void
allocate(void)
{
	int stack = share_stack(), lock = -1;
	struct manifest m = MANIFEST_INIT;
	uint64_t version = read_head(&m) + 1;
	char name[ID_MAX + 16];
	struct stat st;
	uint32_t r;

	/* Under the lock: what head names is there. */
	top = m.n > 0 ? stack_open_layer(stackfd, m.id[0]) : -1;
	if (m.n > 0 && top == -1)
		die_sys("unable to open layer %s", m.id[0]);
	manifest_release(&m);
	for (int i = 0; i < 100 && lock == -1; i++) {
		if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
			die_sys("unable to get random bytes");
		snprintf(
		    id, sizeof id, "L%06" PRIu64 "-%08" PRIx32, version, r);
		snprintf(name, sizeof name, "layers/%s", id);
		if (path_lstat(stackfd, name, &st) == 0)
			continue;
		snprintf(name, sizeof name, "%s.lock", id);
		lock = lock_create(staging, name);
		if (lock == -1 && errno != EEXIST)
			die_sys("unable to make staging/%s", name);
	}
	if (lock == -1)
		die(EXIT_SYS, "unable to find a free layer id");
	if (atexit(unstage) != 0)
		die(EXIT_SYS, "out of memory");
	io_drop(&stack);
	snprintf(name, sizeof name, "%s.staging", id);
	if (mkdirat(staging, name, 0700) == -1)
		die_sys("unable to make staging/%s", name);
	tree = path_open(staging, name, O_RDONLY | O_DIRECTORY, 0);
	if (tree == -1)
		die_sys("unable to open staging/%s", name);
}

/*
 * The layer becomes visible. The digest is there before it, so that no layer
 * is ever without; the lease knows it before any collector can see it.
 */
static void
publish(const char *lease, unsigned mode)
{
	char from[ID_MAX + 24], to[ID_MAX + 24];

	if (lease && stack_lease_add(stackfd, lease, id) == -1)
		die_sys("unable to note %s in lease %s", id, lease);
	snprintf(from, sizeof from, "staging/%s.staging", id);
	snprintf(to, sizeof to, "layers/%s", id);
	if (renameat(stackfd, from, stackfd, to) == -1)
		die_sys("unable to rename %s to %s", from, to);
	visible = true;
	if (!(mode & 0200) && (fchmod(tree, mode) == -1 || fsync(tree) == -1))
		die_sys("unable to set the mode of %s", to);
	if (stage_sync_dir(stackfd, "layers") == -1)
		die_sys("unable to sync layers/");
}

static int
open_part(const char *name)
{
	int fd = path_open(stackfd, name, O_RDONLY | O_DIRECTORY, 0);

	if (fd == -1)
		die_sys("unable to open layer-stack/%s", name);
	return fd;
}

/* Stores that were made by an older release have none. */
static void
open_meta(void)
{
	if (mkdirat(stackfd, "meta", 0700) == 0) {
		if (stage_sync_dir(stackfd, ".") == -1)
			die_sys("unable to sync layer-stack");
	} else if (errno != EEXIST) {
		die_sys("unable to make layer-stack/meta");
	}
	meta = open_part("meta");
}

static void
read_whole(const char *path, size_t max, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		die_sys("unable to open %s", path);
	if (io_read_buf(fd, out, max) == -1) {
		if (errno == EFBIG)
			die(EXIT_USAGE, "%s is larger than %zu bytes", path,
			    max);
		die_sys("unable to read %s", path);
	}
	io_drop(&fd);
}

static int
take_entry(void *arg, const char *path, const struct owners *o)
{
	(void)arg;
	(void)path;
	(void)o;
	return 0;
}

static void
read_blame(const char *path, struct buf *out)
{
	const char *why = NULL;

	read_whole(path, SIZE_MAX / 4, out);
	if (blame_parse(out, take_entry, NULL, &why) == -1)
		die(EXIT_USAGE, "%s: %s", path, why);
}

/* Its members come to stand in the history: what it would not take is not
 * taken here. */
static void
read_members(const char *path, struct buf *out)
{
	struct buf line = BUF_INIT;

	read_whole(path, HISTORY_META_MAX, out);
	if (history_format(&line, 0, "publish", "L", out) == -1)
		die(EXIT_USAGE,
		    "%s is not one JSON object, or it has a member \"version\", "
		    "\"cause\" or \"layer\"",
		    path);
	buf_release(&line);
}

/* Early: an id noted in a dead lease would protect nothing. */
static void
require_lease(const char *lease)
{
	int held = stack_lease_is_held(stackfd, lease);

	if (held == -1)
		die_sys("unable to look at lease %s", lease);
	if (held == 0)
		die(EXIT_SYS, "lease %s is not held by anybody", lease);
}

static int
open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1)
		die_sys("unable to open directory %s", path);
	return fd;
}

int
main(int argc, char **argv)
{
	struct changes cs = CHANGES_INIT;
	struct buf blame = BUF_INIT, members = BUF_INIT;
	const char *lease = NULL, *blame_file = NULL, *members_file = NULL;
	char hex[HASH_HEX + 1];
	unsigned mode;
	int *open_file;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+B:C:M:l:m:h")) != -1) {
		if (opt == 'B')
			blame_file = optarg;
		else if (opt == 'C')
			upper = open_dir(optarg);
		else if (opt == 'M')
			merged = open_dir(optarg);
		else if (opt == 'l')
			lease = optarg;
		else if (opt == 'm')
			members_file = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	if (lease && !id_is_valid(lease))
		die(EXIT_USAGE, "not a name for a lease: %s", lease);

	stackfd = store_open_stack();
	staging = open_part("staging");
	metadata = open_part(".layer-metadata");
	/* Before anything is made: nobody waits for somebody else's program. */
	changes_read_stdin(&cs, 0);
	if (check(&cs) == 0)
		return EXIT_NO;
	/* After the full stop: who writes the stream may write these as well. */
	if (blame_file)
		read_blame(blame_file, &blame);
	if (members_file)
		read_members(members_file, &members);
	if (lease)
		require_lease(lease);
	umask(0);
	if (blame_file || members_file)
		open_meta();
	allocate();

	keep_init();
	open_file = xcalloc(cs.n, sizeof *open_file);
	build(&cs, open_file);
	digest(&cs, open_file, hex);
	write_sidecars(
	    hex, blame_file ? &blame : NULL, members_file ? &members : NULL);
	finish_dirs(&cs);
	mode = finish_root(is_root(&cs.v[0]) ? &cs.v[0] : NULL);
	sync_kept();
	sync_dirs();
	publish(lease, mode);

	puts(id);
	stdout_done();
	delivered = true;
	return EXIT_OK;
}
