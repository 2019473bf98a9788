/* SPDX-License-Identifier: MIT */
/*
 * The merged view against the definition of it, taken literally: each path is
 * looked for in each layer anew, component by component, with nothing kept.
 * Random stacks with markers, which the kernel does not know, and look-ups in
 * random order, so that directories are entered and left in every way. That
 * the view agrees with the kernel is tested by t/sb-layer-list.bats.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "change.h"
#include "io.h"
#include "mem.h"
#include "num.h"
#include "path.h"
#include "rec.h"
#include "view.h"
#include "whiteout.h"

#include "tap.h"

enum {
	STACKS = 100,
	LOOKUPS = 300,
	DEPTH = 3
};

static const char *const pool[] = { "a", "b", ".wh.a", ".wh.b", ".wh.",
	".wh..wh..opq", "ab", "a-", ".wh..wh.a" };

static uint64_t state;
static char dir[] = "/tmp/view.XXXXXX";
static int stackfd;
static struct ids ids;

/* xorshift64*, the same everywhere for one seed. */
static unsigned
rnd(unsigned n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)(state * UINT64_C(2685821657736338717) >> 33) % n;
}

static void
must(int rc, const char *what)
{
	if (rc != -1)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static const char *
any_name(void)
{
	return pool[rnd(sizeof pool / sizeof *pool)];
}

/* ---- layers ---- */

static void
fill(int fd, int depth)
{
	for (size_t i = 0; i < sizeof pool / sizeof *pool; i++) {
		/* Plain names twice as often as the others. */
		unsigned what = rnd(pool[i][0] == '.' ? 16 : 8);
		const char *name = pool[i];
		int sub;

		if (what == 0) {
			sub = openat(
			    fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			must(sub, name);
			close(sub);
		} else if (what == 1) {
			must(symlinkat(".", fd, name), name);
		} else if (what == 2) {
			must(whiteout_make(fd, name), name);
		} else if (what < 6 && depth < DEPTH) {
			must(mkdirat(fd, name, 0700), name);
			sub = openat(fd, name, O_RDONLY | O_CLOEXEC);
			must(sub, name);
			if (rnd(8) == 0)
				must(whiteout_mark_opaque(sub), name);
			fill(sub, depth + 1);
			close(sub);
		}
	}
}

static void
make_stack(void)
{
	unsigned n = 1 + rnd(5);

	for (size_t i = 0; i < ids.n; i++)
		free(ids.id[i]);
	ids.n = 0;
	must(path_rm_tree(stackfd, "layers"), "layers");
	must(mkdirat(stackfd, "layers", 0700), "layers");
	for (unsigned i = 0; i < n; i++) {
		bool base = i + 1 == n && rnd(2) == 0;
		char *id = xasprintf("%c%u", base ? 'B' : 'L', i);
		char *path = xasprintf("layers/%s", id);
		int fd;

		must(mkdirat(stackfd, path, 0700), path);
		fd = openat(stackfd, path, O_RDONLY | O_CLOEXEC);
		must(fd, path);
		fill(fd, 1);
		close(fd);
		ids_add(&ids, id);
		free(path);
		free(id);
	}
}

/* ---- the definition ---- */

static bool
lstat_is(int fd, const char *path, struct stat *st)
{
	if (path_lstat(fd, path, st) == 0)
		return true;
	must(errno == ENOENT || errno == ENOTDIR ? 0 : -1, path);
	return false;
}

/* Is path deleted in this layer: by a whiteout, or a file beside it? */
static bool
is_deleted(int fd, bool base, const char *path)
{
	const char *name = path_base(path);
	struct stat st;
	char *mark;
	bool yes;

	mark = xasprintf("%.*s.wh.%s", (int)(name - path), path, name);
	yes = !base && lstat_is(fd, mark, &st) && S_ISREG(st.st_mode) &&
	    strcmp(name, ".wh..opq") != 0;
	free(mark);
	return yes || (lstat_is(fd, path, &st) && whiteout_is_device(&st));
}

static bool
is_opaque(int fd, bool base, const char *path)
{
	char *mark = xasprintf("%s/%s", path, WHITEOUT_OPAQUE_NAME);
	struct stat st;
	int sub = path_open(fd, path, O_RDONLY | O_DIRECTORY, 0);
	bool yes;

	must(sub, path);
	yes = whiteout_dir_is_opaque(sub) == 1 ||
	    (!base && lstat_is(fd, mark, &st));
	free(mark);
	close(sub);
	return yes;
}

/* In layers other than a base, markers are no entries. */
static bool
is_entry(bool base, const char *path, mode_t mode)
{
	const char *name = path_base(path);

	if (base)
		return true;
	if (strcmp(name, WHITEOUT_OPAQUE_NAME) == 0)
		return false;
	return !S_ISREG(mode) || strncmp(name, ".wh.", 4) != 0 ||
	    name[4] == '\0';
}

/* 1 here (in *st), 0 ask the next layer, -1 absent. */
static int
one_layer(int fd, bool base, const char *path, struct stat *st)
{
	bool sealed = false;

	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		char *up = xstrndup(path, (size_t)(p - path));
		int say = 2;

		if (strcmp(path_base(up), WHITEOUT_OPAQUE_NAME) == 0 && !base)
			say = 0;
		else if (is_deleted(fd, base, up))
			say = -1;
		else if (!lstat_is(fd, up, st))
			say = 0;
		else if (!S_ISDIR(st->st_mode))
			say = is_entry(base, up, st->st_mode) ? -1 : 0;
		else if (is_opaque(fd, base, up))
			sealed = true;
		free(up);
		if (say != 2)
			return sealed ? -1 : say;
	}
	if (strcmp(path_base(path), WHITEOUT_OPAQUE_NAME) == 0 && !base)
		return sealed ? -1 : 0;
	if (is_deleted(fd, base, path))
		return -1;
	if (lstat_is(fd, path, st) && is_entry(base, path, st->st_mode))
		return 1;
	return sealed ? -1 : 0;
}

static size_t
reference(const char *path, struct stat *st)
{
	for (size_t i = 0; i < ids.n; i++) {
		char *layer = xasprintf("layers/%s", ids.id[i]);
		int fd = openat(stackfd, layer, O_RDONLY | O_CLOEXEC);
		int say;

		must(fd, layer);
		say = one_layer(fd, ids.id[i][0] == 'B', path, st);
		close(fd);
		free(layer);
		if (say != 0)
			return say == 1 ? i : SIZE_MAX;
	}
	return SIZE_MAX;
}

/* ---- comparing ---- */

static bool
agrees(struct view *v, const char *path)
{
	struct stat st = { 0 };
	size_t layer = reference(path, &st);
	struct node n;

	must(view_get(v, path, &n), path);
	if (layer == SIZE_MAX ? n.kind == NODE_ABSENT
			      : n.kind != NODE_ABSENT && n.layer == layer &&
		    n.st.st_ino == st.st_ino)
		return true;
	printf("# %s: %s, layer %zu, wanted %zu\n", path,
	    n.kind == NODE_ABSENT ? "absent" : "there", n.layer, layer);
	return false;
}

static bool
lookups_agree(struct view *v)
{
	struct buf b = BUF_INIT;
	bool good = true;

	for (int i = 0; i < LOOKUPS; i++) {
		buf_cut(&b, 0);
		buf_adds(&b, any_name());
		for (unsigned k = rnd(DEPTH); k > 0; k--)
			buf_addf(&b, "/%s", any_name());
		good = agrees(v, b.data) && good;
	}
	buf_release(&b);
	return good;
}

struct walked {
	struct view *v;
	char *last;
	size_t n;
	bool good;
};

static int
step(void *arg, const char *path, const struct node *n)
{
	struct walked *w = arg;
	struct node m;

	/* Another place in between must not confuse the walk. */
	must(view_get(w->v, "a/b/a", &m), "a/b/a");
	must(view_get(w->v, path, &m), path);
	if (m.kind != n->kind || m.layer != n->layer ||
	    (w->last && path_cmp(w->last, path) >= 0)) {
		printf("# walk differs at %s\n", path);
		w->good = false;
	}
	free(w->last);
	w->last = xstrdup(path);
	w->n++;
	return 0;
}

/* Everything that the definition shows, by trying all names there are. */
static size_t
count(const char *where, int depth)
{
	struct stat st;
	size_t n = 0;

	for (size_t i = 0; i < sizeof pool / sizeof *pool; i++) {
		char *path = *where ? xasprintf("%s/%s", where, pool[i])
				    : xstrdup(pool[i]);

		if (reference(path, &st) != SIZE_MAX) {
			n++;
			if (S_ISDIR(st.st_mode) && depth < DEPTH)
				n += count(path, depth + 1);
		}
		free(path);
	}
	return n;
}

static void
test_random(uint64_t seed)
{
	bool gets = true, walks = true, counts = true;
	size_t bad, all = 0;

	for (int i = 0; i < STACKS; i++) {
		struct walked w = { .good = true };
		struct view *v;

		state = seed * UINT64_C(0x9e3779b97f4a7c15) + (unsigned)i + 1;
		make_stack();
		v = view_open(stackfd, &ids, &bad);
		must(v ? 0 : -1, "view_open");
		gets = lookups_agree(v) && gets;
		w.v = v;
		must(view_walk(v, "", step, &w), "view_walk");
		walks = w.good && walks;
		counts = w.n == count("", 1) && counts;
		all += w.n;
		free(w.last);
		view_close(v);
	}
	printf("# %d stacks, %zu entries\n", STACKS, all);
	ok(gets, "look-ups in any order give what the definition gives");
	ok(walks, "a walk gives what look-ups give, in order");
	ok(counts, "a walk gives everything that the definition shows");
}

static void
test_errors(void)
{
	struct names names = NAMES_INIT;
	struct ids none = IDS_INIT, some = IDS_INIT;
	char name[300], *longer;
	struct view *v;
	struct node n;
	size_t bad = 9;

	v = view_open(stackfd, &none, NULL);
	ok(v && view_get(v, "", &n) == 0 && n.kind == NODE_ABSENT &&
		view_get(v, "a", &n) == 0 && n.kind == NODE_ABSENT &&
		view_walk(v, "", NULL, NULL) == 0,
	    "no layers show nothing");
	view_close(v);

	must(path_rm_tree(stackfd, "layers"), "layers");
	must(mkdirat(stackfd, "layers", 0700), "layers");
	must(mkdirat(stackfd, "layers/L1", 0700), "layers/L1");
	must(mkdirat(stackfd, "layers/L1/d", 0700), "layers/L1/d");
	must(symlinkat("d", stackfd, "layers/L1/l"), "layers/L1/l");
	must(mkfifoat(stackfd, "layers/L1/p", 0600), "layers/L1/p");
	ids_add(&some, "L1");
	ids_add(&some, "L2");
	errno = 0;
	v = view_open(stackfd, &some, &bad);
	ok(!v && errno == ENOENT && bad == 1, "a layer not there is named");
	some.n = 1;
	v = view_open(stackfd, &some, NULL);
	must(v ? 0 : -1, "view_open");

	memset(name, 'x', 299);
	name[299] = '\0';
	ok(view_get(v, name, &n) == 0 && n.kind == NODE_ABSENT,
	    "a name longer than any can be is absent");
	longer = xasprintf("d/%s/x", name);
	ok(view_get(v, longer, &n) == 0 && n.kind == NODE_ABSENT,
	    "so is what is below it");
	ok(view_get(v, "", &n) == 0 && n.kind == NODE_DIR && n.layer == 0,
	    "the root is a directory of the newest layer");
	ok(view_get(v, "l/x", &n) == 0 && n.kind == NODE_ABSENT,
	    "nothing is below a link");
	ok(view_list(v, "l", &names) == -1 && errno == ENOTDIR &&
		view_list(v, "none", &names) == -1 && errno == ENOTDIR &&
		names.n == 0,
	    "only directories can be listed");
	ok(view_walk(v, "l", NULL, NULL) == 0, "a walk below a link is empty");
	ok(view_get(v, "p", &n) == 0 && n.kind == NODE_SPECIAL &&
		view_fd(v, "p", &n) == -1 && errno == EINVAL,
	    "a FIFO is special and is not opened");
	view_close(v);
}

int
main(void)
{
	const char *env = getenv("SEED");
	uint64_t seed;

	if (!env || !num_dec(env, 1, UINT32_MAX, &seed))
		seed = (uint64_t)time(NULL);
	printf("# SEED=%ju\n", (uintmax_t)seed);
	umask(022);
	if (!mkdtemp(dir))
		must(-1, dir);
	stackfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(stackfd, dir);
	test_random(seed);
	test_errors();
	must(path_rm_tree(AT_FDCWD, dir), dir);
	return done();
}
