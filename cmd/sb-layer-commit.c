/* SPDX-License-Identifier: MIT */
/*
 * sb-layer-commit: turn resolved changes into a layer that nothing names yet.
 * Shape: sink; prints the layer's id.
 *
 *   1. Read the whole stream and check it; nothing is made before its full
 *      stop.
 *   2. Make staging/ID.lock, held as long as we live, and staging/ID.staging;
 *      build the tree in it, parents first.
 *   3. Sync the files, then give directories their attributes, from below,
 *      when nothing changes in them any more, and sync those.
 *   4. Write the digest; note the id in the lease, if one is named; rename the
 *      tree to layers/ID and sync layers/.
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
#include <sys/stat.h>
#include <unistd.h>

#include "attr.h"
#include "buf.h"
#include "change.h"
#include "err.h"
#include "hash.h"
#include "io.h"
#include "layer.h"
#include "lock.h"
#include "mem.h"
#include "path.h"
#include "stack.h"
#include "stage.h"
#include "store.h"
#include "whiteout.h"

static const char usage[] = "sb-layer-commit [-C dir] [-M dir] [-l lease]";

enum {
	LOCK_MS = 30000
};

static int upper = -1, merged = -1, stackfd = -1, staging = -1, tree = -1;
static int metadata = -1;
static char id[ID_MAX + 1];
static uint64_t bytes;
static bool visible, delivered;

/*
 * Undoes everything unless the id was delivered: nobody could name the layer.
 * The lock goes last, it is what keeps sweeps away from the rest.
 */
static void
unstage(void)
{
	char name[ID_MAX + 16], layer[ID_MAX + 16];

	snprintf(name, sizeof name, "%s.staging", id);
	if (!delivered) {
		snprintf(layer, sizeof layer, "layers/%s", id);
		if (visible)
			renameat(stackfd, layer, staging, name);
		io_many_fds();
		path_rm_tree(staging, name);
		snprintf(name, sizeof name, "%s.digest", id);
		unlinkat(metadata, name, 0);
		snprintf(name, sizeof name, "%s.bytes", id);
		unlinkat(metadata, name, 0);
	}
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
is_dir(const struct change *c)
{
	return c->kind == CHANGE_DIR || c->kind == CHANGE_OPAQUE;
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

/* Write-back of the copy is only started: the disk is busy while we go on. */
static void
put_file(int dir, const char *name, const struct change *c)
{
	struct stat st, after;
	int from = open_source(c, 0, &st), to;
	off_t n;

	if (!S_ISREG(st.st_mode) || st.st_size != c->size)
		die(EXIT_SYS, "%s changed before publish", c->path);
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
	/* Only a hint: what is not written here is written by fsync. */
	sync_file_range(to, 0, 0, SYNC_FILE_RANGE_WRITE);
	io_drop(&from);
	if (io_close(to) == -1)
		die_sys("unable to close %s", c->path);
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

static void
build(const struct changes *cs)
{
	const char *name;
	int dir;

	for (size_t i = 0; i < cs->n; i++) {
		const struct change *c = &cs->v[i];

		if (c->kind == CHANGE_SPECIAL)
			continue;
		dir = path_open_parent(tree, c->path, &name);
		if (dir == -1)
			die_sys("unable to open the directory of %s", c->path);
		if (c->kind == CHANGE_WRITE)
			put_file(dir, name, c);
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
digest_and_sync(const struct changes *cs, char hex[HASH_HEX + 1])
{
	const struct change **sorted = xcalloc(cs->n, sizeof *sorted);
	struct hash h;
	int fd;

	for (size_t i = 0; i < cs->n; i++)
		sorted[i] = &cs->v[i];
	qsort(sorted, cs->n, sizeof *sorted, by_bytes);
	hash_init(&h);
	for (size_t i = 0; i < cs->n; i++) {
		fd = -1;
		if (sorted[i]->kind == CHANGE_WRITE) {
			fd = path_open(tree, sorted[i]->path, O_RDONLY, 0);
			if (fd == -1)
				die_sys(
				    "unable to open %s again", sorted[i]->path);
		}
		if (layer_digest_add(&h, sorted[i], fd) == -1)
			die_sys("unable to read %s again", sorted[i]->path);
		if (fd != -1 && fsync(fd) == -1)
			die_sys("unable to sync %s", sorted[i]->path);
		io_drop(&fd);
	}
	free(sorted);
	hash_hex(&h, hex);
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
		if (fsync(to) == -1)
			die_sys("unable to sync %s", c->path);
		io_drop(&from);
		io_drop(&to);
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

/*
 * The merged root shows the attributes of the topmost layer's root, so each
 * layer carries those of the upper's, which were the base's. Returns the mode.
 */
static unsigned
finish_root(void)
{
	char name[] = "the root";
	struct change c = { .path = name, .mode = 0755 };
	struct manifest m;
	struct stat st;
	int from = upper;

	if (from == -1) {
		read_head(&m);
		from = m.n ? stack_open_layer(stackfd, m.id[0]) : -1;
		if (m.n && from == -1)
			die_sys("unable to open layer %s", m.id[0]);
	}
	if (from != -1) {
		if (fstat(from, &st) == -1)
			die_sys("unable to look at the root");
		c.mode = st.st_mode & 07777;
		put_attrs(from, tree, &st, &c);
	}
	/* Only who may write a directory may rename it elsewhere. */
	if (fchmod(tree, c.mode | 0200) == -1 || fsync(tree) == -1)
		die_sys("unable to finish the layer's root");
	return c.mode;
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
	struct manifest m;
	uint64_t version = read_head(&m) + 1;
	char name[ID_MAX + 16];
	struct stat st;
	uint32_t r;

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

static void
sidecar(const char *suffix, const char *text)
{
	char name[ID_MAX + 16];

	snprintf(name, sizeof name, "%s.%s", id, suffix);
	if (stage_file(metadata, name, text, strlen(text), 0600) == -1)
		die_sys("unable to write .layer-metadata/%s", name);
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
	const char *lease = NULL;
	char hex[HASH_HEX + 1], size[24];
	unsigned mode;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+C:M:l:h")) != -1) {
		if (opt == 'C')
			upper = open_dir(optarg);
		else if (opt == 'M')
			merged = open_dir(optarg);
		else if (opt == 'l')
			lease = optarg;
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
	if (lease)
		require_lease(lease);
	umask(0);
	allocate();

	build(&cs);
	digest_and_sync(&cs, hex);
	finish_dirs(&cs);
	mode = finish_root();
	/* The tree's own name in staging/ needs no sync: it is renamed. */
	snprintf(size, sizeof size, "%" PRIu64, bytes);
	sidecar("digest", hex);
	sidecar("bytes", size);
	publish(lease, mode);

	puts(id);
	stdout_done();
	delivered = true;
	return EXIT_OK;
}
