/* SPDX-License-Identifier: MIT */
/*
 * The merged view against the definition of it, taken literally: each path is
 * looked for in each layer anew, component by component, with nothing kept.
 * Random stacks with markers, which the kernel does not know, some of the
 * layers described in meta/, and look-ups in random order, so that directories
 * are entered and left in every way, with descriptors to spare and without.
 * That the view agrees with the kernel is tested by t/sb-layer-list.bats.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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
	LOOKUPS = 200,
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
no_layers(void)
{
	must(path_rm_tree(stackfd, "layers"), "layers");
	must(path_rm_tree(stackfd, "meta"), "meta");
	must(mkdirat(stackfd, "layers", 0700), "layers");
	must(mkdirat(stackfd, "meta", 0700), "meta");
}

static void
describe(const char *id)
{
	char *path = xasprintf("meta/%s.json", id);

	must(mknodat(stackfd, path, S_IFREG | 0600, 0), path);
	free(path);
}

/* Do names beginning .wh. mean themselves in this layer? */
static bool
is_plain(const char *id)
{
	char *path = xasprintf("meta/%s.json", id);
	bool yes = id[0] == 'B' || faccessat(stackfd, path, F_OK, 0) == 0;

	free(path);
	return yes;
}

static void
make_stack(void)
{
	unsigned n = 1 + rnd(5);

	for (size_t i = 0; i < ids.n; i++)
		free(ids.id[i]);
	ids.n = 0;
	no_layers();
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
		if (!base && rnd(2) == 0)
			describe(id);
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
is_deleted(int fd, bool plain, const char *path)
{
	const char *name = path_base(path);
	struct stat st;
	char *mark;
	bool yes;

	mark = xasprintf("%.*s.wh.%s", (int)(name - path), path, name);
	yes = !plain && lstat_is(fd, mark, &st) && S_ISREG(st.st_mode) &&
	    strcmp(name, ".wh..opq") != 0;
	free(mark);
	return yes || (lstat_is(fd, path, &st) && whiteout_is_device(&st));
}

static bool
is_opaque(int fd, bool plain, const char *path)
{
	char *mark = xasprintf("%s/%s", path, WHITEOUT_OPAQUE_NAME);
	struct stat st;
	int sub = path_open(fd, path, O_RDONLY | O_DIRECTORY, 0);
	bool yes;

	must(sub, path);
	yes = whiteout_dir_is_opaque(sub) == 1 ||
	    (!plain && lstat_is(fd, mark, &st));
	free(mark);
	close(sub);
	return yes;
}

/* Where names are not plain, markers are no entries. */
static bool
is_entry(bool plain, const char *path, mode_t mode)
{
	const char *name = path_base(path);

	if (plain)
		return true;
	if (strcmp(name, WHITEOUT_OPAQUE_NAME) == 0)
		return false;
	return !S_ISREG(mode) || strncmp(name, ".wh.", 4) != 0 ||
	    name[4] == '\0';
}

/* What a layer says about a path, together; nothing: 0. */
enum {
	HERE = 1, /* *st */
	DELETED = 2, /* here */
	LAST = 4 /* no layer below has a say */
};

static unsigned
one_layer(int fd, bool plain, const char *path, struct stat *st)
{
	unsigned last = 0;

	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		char *up = xstrndup(path, (size_t)(p - path));
		bool stop = true;

		if (strcmp(path_base(up), WHITEOUT_OPAQUE_NAME) == 0 && !plain)
			;
		else if (is_deleted(fd, plain, up))
			last = LAST;
		else if (!lstat_is(fd, up, st))
			;
		else if (!S_ISDIR(st->st_mode))
			last |= is_entry(plain, up, st->st_mode) ? LAST : 0;
		else
			stop = false;
		if (!stop && is_opaque(fd, plain, up))
			last = LAST;
		free(up);
		if (stop)
			return last;
	}
	if (strcmp(path_base(path), WHITEOUT_OPAQUE_NAME) == 0 && !plain)
		return last;
	if (is_deleted(fd, plain, path))
		return DELETED | LAST;
	if (!lstat_is(fd, path, st) || !is_entry(plain, path, st->st_mode))
		return last;
	return HERE | (S_ISREG(st->st_mode) ? last : LAST);
}

static unsigned
ask_layer(size_t i, const char *path, struct stat *st)
{
	char *layer = xasprintf("layers/%s", ids.id[i]);
	int fd = openat(stackfd, layer, O_RDONLY | O_CLOEXEC);
	unsigned says;

	must(fd, layer);
	says = one_layer(fd, is_plain(ids.id[i]), path, st);
	close(fd);
	free(layer);
	return says;
}

static size_t
reference(const char *path, struct stat *st)
{
	for (size_t i = 0; i < ids.n; i++) {
		unsigned says = ask_layer(i, path, st);

		if (says != 0)
			return says & HERE ? i : SIZE_MAX;
	}
	return SIZE_MAX;
}

/* A word for each layer that says something: its number, + inode or -. */
static void
reference_layers(const char *path, struct buf *out)
{
	struct stat st;
	unsigned says = 0;

	for (size_t i = 0; i < ids.n && !(says & LAST); i++) {
		says = ask_layer(i, path, &st);
		if (says & HERE)
			buf_addf(out, "%zu+%ju ", i, (uintmax_t)st.st_ino);
		if (says & DELETED)
			buf_addf(out, "%zu- ", i);
	}
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

static int
tell(void *arg, size_t layer, const struct node *n)
{
	if (n->layer != layer)
		return -1;
	if (n->kind == NODE_ABSENT)
		buf_addf(arg, "%zu- ", layer);
	else
		buf_addf(arg, "%zu+%ju ", layer, (uintmax_t)n->st.st_ino);
	return 0;
}

static bool
layers_agree(struct view *v, const char *path)
{
	struct buf want = BUF_INIT, got = BUF_INIT;
	bool good;

	reference_layers(path, &want);
	must(view_layers(v, path, tell, &got), path);
	good = strcmp(buf_str(&want), buf_str(&got)) == 0;
	if (!good)
		printf("# %s: %s, wanted %s\n", path, buf_str(&got),
		    buf_str(&want));
	buf_release(&want);
	buf_release(&got);
	return good;
}

static bool
lookups_agree(struct view *v, bool (*agree)(struct view *v, const char *path))
{
	struct buf b = BUF_INIT;
	bool good = true;

	for (int i = 0; i < LOOKUPS; i++) {
		unsigned what = b.len > 0 ? rnd(5) : 0;

		/* Else another name in the same directory, or the same. */
		if (what == 0) {
			buf_cut(&b, 0);
			buf_adds(&b, any_name());
			for (unsigned k = rnd(DEPTH); k > 0; k--)
				buf_addf(&b, "/%s", any_name());
		} else if (what < 4) {
			buf_cut(&b, (size_t)(path_base(b.data) - b.data));
			buf_adds(&b, any_name());
		}
		good = agree(v, b.data) && good;
	}
	buf_release(&b);
	return good;
}

static size_t most_spare;

static size_t
open_fds(void)
{
	struct names names = NAMES_INIT;
	int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n;

	must(fd, "/proc/self/fd");
	must(names_read(fd, &names), "/proc/self/fd");
	n = names.n;
	names_release(&names);
	close(fd);
	return n;
}

struct walked {
	struct view *v;
	char *last;
	size_t n;
	size_t fds; /* open at most */
	bool good;
};

static int
step(void *arg, const char *path, const struct node *n)
{
	struct walked *w = arg;
	struct node m;

	if (open_fds() > w->fds)
		w->fds = open_fds();
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
test_random(uint64_t seed, int stacks)
{
	bool gets = true, layers = true, walks = true, counts = true;
	size_t bad, all = 0;

	for (int i = 0; i < stacks; i++) {
		struct walked w = { .good = true };
		size_t before = open_fds();
		struct view *v;

		state = seed * UINT64_C(0x9e3779b97f4a7c15) + (unsigned)i + 1;
		make_stack();
		v = view_open(stackfd, &ids, &bad);
		must(v ? 0 : -1, "view_open");
		gets = lookups_agree(v, agrees) && gets;
		layers = lookups_agree(v, layers_agree) && layers;
		w.v = v;
		must(view_walk(v, "", step, &w), "view_walk");
		walks = w.good && walks;
		counts = w.n == count("", 1) && counts;
		all += w.n;
		if (w.fds > before + ids.n + most_spare)
			most_spare = w.fds - before - ids.n;
		free(w.last);
		view_close(v);
		if (open_fds() != before)
			must(-1, "descriptors are left");
	}
	printf("# %d stacks, %zu entries\n", stacks, all);
	ok(gets, "look-ups in any order give what the definition gives");
	ok(layers, "and so do the layers that say something about a path");
	ok(walks, "a walk gives what look-ups give, in order");
	ok(counts, "a walk gives everything that the definition shows");
}

/* For good: an ordinary user cannot raise the limit again. */
static void
test_few_descriptors(uint64_t seed)
{
	struct rlimit r = { .rlim_cur = 40, .rlim_max = 40 };

	must(setrlimit(RLIMIT_NOFILE, &r), "setrlimit");
	most_spare = 0;
	test_random(seed, STACKS / 4);
	ok(most_spare > 0 && most_spare <= 5,
	    "a view takes an eighth of the descriptors at most");
}

/* More names in a directory than a view remembers. */
static void
test_many_names(void)
{
	struct names names = NAMES_INIT;
	struct ids two = IDS_INIT;
	struct buf b = BUF_INIT;
	struct view *v;
	struct node n;
	bool good = true;

	no_layers();
	ids_add(&two, "L2");
	ids_add(&two, "L1");
	for (size_t i = 0; i < two.n; i++) {
		buf_cut(&b, 0);
		buf_addf(&b, "layers/%s", two.id[i]);
		must(mkdirat(stackfd, b.data, 0700), b.data);
		buf_adds(&b, "/d");
		must(mkdirat(stackfd, b.data, 0700), b.data);
		for (unsigned k = 0; k < 1600; k++) {
			buf_cut(&b, strlen("layers/L1/d"));
			buf_addf(&b, "/%s%u", k < 800 ? "" : ".wh.",
			    i == 0 && k < 800 ? k + 800 : k);
			must(mknodat(stackfd, b.data, S_IFREG | 0600, 0),
			    b.data);
		}
	}
	v = view_open(stackfd, &two, NULL);
	must(v ? 0 : -1, "view_open");
	for (unsigned k = 0; k < 1601; k++) {
		buf_cut(&b, 0);
		buf_addf(&b, "d/%u", k);
		must(view_get(v, b.data, &n), b.data);
		good = n.kind == (k < 800 ? NODE_FILE : NODE_ABSENT) && good;
	}
	must(view_list(v, "d", &names), "d");
	ok(good && names.n == 800, "a large directory shows the same");
	names_release(&names);
	view_close(v);
	buf_release(&b);
}

static int
stop_at(void *arg, size_t layer, const struct node *n)
{
	size_t *calls = arg;

	++*calls;
	return layer == 1 && n->kind == NODE_FILE ? 7 : 0;
}

/* Newest first: changed, changed, something else, changed, a base. */
static void
test_layers(void)
{
	static const char *const id[] = { "L5", "L4", "L3", "L2", "B1" };
	static const char *const made[] = { "L5/f", "L4/f", "B1/f", "L2/g",
		"L2/.wh.h", "L2/h", "B1/h" };
	struct ids five = IDS_INIT;
	struct buf b = BUF_INIT;
	struct view *v;
	size_t calls = 0;

	no_layers();
	for (size_t i = 0; i < sizeof id / sizeof *id; i++) {
		buf_cut(&b, 0);
		buf_addf(&b, "layers/%s", id[i]);
		must(mkdirat(stackfd, b.data, 0700), b.data);
		ids_add(&five, id[i]);
	}
	for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
		buf_cut(&b, 0);
		buf_addf(&b, "layers/%s", made[i]);
		must(mknodat(stackfd, b.data, S_IFREG | 0600, 0), b.data);
	}
	must(mkdirat(stackfd, "layers/L3/f", 0700), "layers/L3/f");
	v = view_open(stackfd, &five, NULL);
	must(v ? 0 : -1, "view_open");
	ok(view_layers(v, "f", stop_at, &calls) == 7 && calls == 2,
	    "what the function returns stops and is returned");
	calls = 0;
	ok(view_layers(v, "g", stop_at, &calls) == 0 && calls == 1 &&
		view_layers(v, "none", stop_at, &calls) == 0 && calls == 1,
	    "a layer that says nothing is passed over");
	calls = 0;
	ok(view_layers(v, "", stop_at, &calls) == 0 && calls == 1,
	    "the root is a directory of the newest layer");
	buf_cut(&b, 0);
	ok(view_layers(v, "h", tell, &b) == 0 &&
		strcmp(buf_str(&b), "3- ") == 0,
	    "a marker deletes the file beside it and ends");
	view_close(v);
	buf_release(&b);
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

	no_layers();
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
	test_random(seed, STACKS);
	test_layers();
	test_many_names();
	test_errors();
	test_few_descriptors(~seed);
	must(path_rm_tree(AT_FDCWD, dir), dir);
	return done();
}
