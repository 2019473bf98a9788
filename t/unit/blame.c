/* SPDX-License-Identifier: MIT */
/*
 * Blame: what an owner may be, owners through a merge against a line by line
 * count, the file and every way to cut it short, and the look-up against its
 * definition taken literally, on random stacks.
 */
#include "blame.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "change.h"
#include "io.h"
#include "mem.h"
#include "num.h"
#include "path.h"
#include "rec.h"
#include "whiteout.h"

#include "tap.h"

enum {
	LINES = 40,
	STACKS = 150,
	LAYERS = 7
};

static const char *const who[] = { "workspace_session:a", "operation:r 1",
	"\xc3\xa4", "original" };
static uint64_t state;

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

/* ---- owners ---- */

static void
test_owner(void)
{
	static const char *const bad[] = { "", "a\nb", "a\tb", "\x7f", "\x01",
		"\xc2\x85", "\xff", "a\xc3", "\xed\xa0\x80" };
	char big[OWNER_MAX + 2];
	bool good = true;

	for (size_t i = 0; i < sizeof who / sizeof *who; i++)
		good = good && owner_is_valid(who[i]);
	ok(good && owner_is_valid("*") && owner_is_valid("\xc2\xa0"),
	    "owners are UTF-8, blanks and all");
	good = true;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		good = good && !owner_is_valid(bad[i]);
	ok(good, "nothing, control characters and other bytes are no owner");
	memset(big, 'x', sizeof big);
	big[OWNER_MAX] = '\0';
	good = owner_is_valid(big);
	big[OWNER_MAX] = 'x';
	big[OWNER_MAX + 1] = '\0';
	ok(good && !owner_is_valid(big), "256 bytes are the most");
}

/* The owner of a line (from 0), or NULL beyond the end. */
static const char *
owner_of(const struct owners *o, size_t line)
{
	if (o->whole)
		return o->v[0].owner;
	for (size_t i = 0; i < o->n; i++) {
		if (line < o->v[i].count)
			return o->v[i].owner;
		line -= o->v[i].count;
	}
	return NULL;
}

/* Whole or tiling, no range without lines, no equal neighbours. */
static bool
is_normal(const struct owners *o)
{
	if (o->whole)
		return o->n == 1 && o->v[0].count == 0;
	for (size_t i = 0; i < o->n; i++)
		if (o->v[i].count == 0 ||
		    (i > 0 && strcmp(o->v[i].owner, o->v[i - 1].owner) == 0))
			return false;
	return o->n > 0;
}

static bool
equal(const struct owners *a, const struct owners *b)
{
	if (a->whole != b->whole || a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (a->v[i].count != b->v[i].count ||
		    strcmp(a->v[i].owner, b->v[i].owner) != 0)
			return false;
	return true;
}

static void
any_owners(struct owners *o)
{
	if (rnd(4) == 0) {
		owners_set_whole(o, who[rnd(4)]);
		return;
	}
	do
		owners_add(o, rnd(4), who[rnd(4)]);
	while (o->n == 0 || rnd(5) > 0);
}

static void
test_map(void)
{
	bool good = true;

	for (int i = 0; i < 2000 && good; i++) {
		struct owners head = OWNERS_INIT, out = OWNERS_INIT;
		struct merge_range r[LINES];
		const char *want[LINES * 3];
		size_t n = 0, lines = 0, line = 1;
		bool none = rnd(4) == 0;

		if (!none)
			any_owners(&head);
		while (n < LINES && rnd(8) > 0) {
			size_t count = 1 + rnd(3);

			r[n] = (struct merge_range){ .start = lines + 1,
				.count = count,
				.origin = rnd(2) ? ORIGIN_HEAD : ORIGIN_MINE };
			line += rnd(2) * rnd(5);
			if (r[n].origin == ORIGIN_HEAD)
				r[n].head = line;
			for (size_t k = 0; k < count; k++) {
				const char *o = "mine";

				if (r[n].origin == ORIGIN_HEAD)
					o = none
					    ? OWNER_ORIGINAL
					    : owner_of(&head, line - 1 + k);
				want[lines + k] = o ? o : OWNER_UNKNOWN;
			}
			if (r[n].origin == ORIGIN_HEAD)
				line += count;
			lines += count;
			n++;
		}
		owners_map(none ? NULL : &head, r, n, "mine", &out);
		good = is_normal(&out) &&
		    (lines == 0
			    ? out.whole && strcmp(out.v[0].owner, "mine") == 0
			    : owners_lines(&out) == lines);
		for (size_t k = 0; k < lines && good; k++)
			good = strcmp(owner_of(&out, k), want[k]) == 0;
		owners_release(&head);
		owners_release(&out);
	}
	ok(good, "owners go through a merge line by line");
}

/* The worked example: three owners in the end. */
static void
test_example(void)
{
	struct owners first = OWNERS_INIT, second = OWNERS_INIT;
	const struct merge_range s3[] = {
		{ .start = 1, .count = 1, .origin = ORIGIN_HEAD, .head = 1 },
		{ .start = 2, .count = 1, .origin = ORIGIN_MINE },
		{ .start = 3, .count = 1, .origin = ORIGIN_HEAD, .head = 3 },
	};
	const struct merge_range s5[] = {
		{ .start = 1, .count = 2, .origin = ORIGIN_HEAD, .head = 1 },
		{ .start = 3, .count = 1, .origin = ORIGIN_MINE },
	};

	owners_map(NULL, s3, 3, "s3", &first);
	owners_map(&first, s5, 2, "s5", &second);
	ok(second.n == 3 && strcmp(second.v[0].owner, "original") == 0 &&
		strcmp(second.v[1].owner, "s3") == 0 &&
		strcmp(second.v[2].owner, "s5") == 0,
	    "two sessions and the base own one line each");
	owners_release(&first);
	owners_release(&second);
}

/* ---- the file ---- */

struct entry {
	char *path;
	struct owners owners;
};

static struct entry *entries;
static size_t nentries, seen;

static int
by_path(const void *a, const void *b)
{
	return path_cmp(
	    ((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static int
compare(void *arg, const char *path, const struct owners *o)
{
	bool *good = arg;

	*good = *good && seen < nentries &&
	    strcmp(path, entries[seen].path) == 0 &&
	    equal(o, &entries[seen].owners);
	seen++;
	return 0;
}

static int
stop(void *arg, const char *path, const struct owners *o)
{
	(void)arg;
	(void)path;
	(void)o;
	return 7;
}

static int
ignore(void *arg, const char *path, const struct owners *o)
{
	(void)path;
	(void)o;
	++*(int *)arg;
	return 0;
}

static void
make_entries(size_t n, struct buf *text)
{
	static const char *const part[] = { "a", "b", "a-", "a\t", "\xff", "*",
		"1 x\n", "ab" };

	entries = xcalloc(n, sizeof *entries);
	for (nentries = 0; nentries < n; nentries++) {
		struct buf b = BUF_INIT;

		/* A number, so that none comes twice. */
		for (unsigned depth = rnd(4); depth > 0; depth--)
			buf_addf(&b, "%s/", part[rnd(8)]);
		buf_addf(&b, "%s%zu", part[rnd(8)], nentries);
		entries[nentries].path = buf_steal(&b);
		any_owners(&entries[nentries].owners);
	}
	qsort(entries, n, sizeof *entries, by_path);
	for (size_t i = 0; i < n; i++)
		blame_format(text, entries[i].path, &entries[i].owners);
	blame_stop(text);
}

static void
release_entries(void)
{
	for (size_t i = 0; i < nentries; i++) {
		free(entries[i].path);
		owners_release(&entries[i].owners);
	}
	free(entries);
}

static void
test_file(void)
{
	struct buf text = BUF_INIT, empty = BUF_INIT;
	const char *why = NULL;
	bool good = true;
	int n = 0;

	make_entries(60, &text);
	seen = 0;
	ok(blame_parse(&text, compare, &good, &why) == 0 && good &&
		seen == nentries,
	    "what is written is read");
	ok(blame_parse(&text, stop, NULL, &why) == 7, "a callback stops it");
	for (size_t len = 0; len < text.len && good; len++) {
		struct buf cut = { .data = text.data, .len = len };

		why = NULL;
		good = blame_parse(&cut, ignore, &n, &why) == -1 &&
		    errno == EINVAL && why && n == 0;
	}
	ok(good, "cut short anywhere it is refused before it is believed");
	blame_stop(&empty);
	ok(blame_parse(&empty, ignore, &n, &why) == 0 && n == 0,
	    "a file without entries");
	release_entries();
	buf_release(&text);
	buf_release(&empty);
}

/* A text with # for NUL. */
static bool
is_refused(const char *s)
{
	struct buf text = BUF_INIT;
	const char *why = NULL;
	int n = 0, rc;

	buf_adds(&text, s);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '#')
			text.data[i] = '\0';
	rc = blame_parse(&text, ignore, &n, &why);
	buf_release(&text);
	return rc == -1 && errno == EINVAL && why != NULL;
}

static void
test_refused(void)
{
	static const char *const bad[] = { "1 a\tp#", "1 a\tp##x", "1 a p##",
		"\tp##", "0 a\tp##", "01 a\tp##", "-1 a\tp##", "1a\tp##",
		"1 \tp##", "1 a\n\tp##", "1 a\n2 a\tp##", "1 a\n* b\tp##",
		"* b\n1 a\tp##", "* a\n\tp##", "*a\tp##", "1 a\t##",
		"1 a\t/p##", "1 a\tp/../q##", "1 a\tq#1 a\tp##",
		"1 a\tp#1 a\tp##", "1 a\ta-#1 a\ta/b##", "1 \x01\tp##",
		"1 a\tp##1 a\tq##", "1073741825 a\tp##",
		"1073741824 a\n1 b\tp##" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (!is_refused(bad[i]))
			ok(false, bad[i]);
	ok(true, "what no writer makes is refused");
	ok(!is_refused("1073741824 a\tp##") && !is_refused("* a b\ta\tb##"),
	    "the largest count; a TAB in a path");
}

/* ---- looking up ---- */

static char dir[] = "/tmp/blame.XXXXXX";
static int stackfd;

static void
put(const char *path, const void *p, size_t n)
{
	int fd = openat(stackfd, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	must(fd, path);
	must(io_write_all(fd, p, n), path);
	io_drop(&fd);
}

static void
put_text(const char *path, const struct buf *b)
{
	put(path, buf_str(b), b->len);
}

static void
test_bisect(void)
{
	struct buf text = BUF_INIT;
	struct ids ids = IDS_INIT;
	bool good = true;
	struct blame *b;
	struct view *v;
	char *last = NULL;

	make_entries(500, &text);
	must(mkdirat(stackfd, "layers/L1", 0755), "layers/L1");
	for (size_t i = 0; i < nentries; i++) {
		char *path = xasprintf("layers/L1/%s", entries[i].path);

		for (char *p = path + 10; (p = strchr(p, '/')); p++) {
			*p = '\0';
			if (mkdirat(stackfd, path, 0755) == -1 &&
			    errno != EEXIST)
				must(-1, path);
			*p = '/';
		}
		put(path, "", 0);
		free(last);
		last = path;
	}
	put("layers/L1/no", "", 0);
	put("layers/L1/zz", "", 0);
	put_text("meta/L1.blame", &text);
	ids_add(&ids, "L1");
	v = view_open(stackfd, &ids, NULL);
	b = blame_open(stackfd, v);
	for (size_t i = 0; i < nentries && good; i++) {
		struct owners o = OWNERS_INIT;

		good = blame_get(b, entries[i].path, &o) == 1 &&
		    equal(&o, &entries[i].owners);
		owners_release(&o);
	}
	ok(good, "each of 500 entries is found");
	for (int i = 0; i < 2; i++) {
		struct owners o = OWNERS_INIT;

		ok(blame_get(b, i ? "zz" : "no", &o) == 1 && o.whole &&
			strcmp(o.v[0].owner, OWNER_UNKNOWN) == 0,
		    "a file that came without an entry is nobody's");
		owners_release(&o);
	}
	blame_close(b);
	view_close(v);
	/* An entry without a TAB, wherever it is met. */
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '\t')
			text.data[i] = ' ';
	put_text("meta/L1.blame", &text);
	for (int i = 0; i < 2; i++) {
		struct owners o = OWNERS_INIT;

		v = view_open(stackfd, &ids, NULL);
		b = blame_open(stackfd, v);
		ok(blame_get(b, entries[i * 9].path, &o) == -1 &&
			errno == EINVAL && blame_where(b) &&
			strcmp(blame_where(b), "meta/L1.blame") == 0 &&
			o.n == 0,
		    i ? "a file cut short is named" : "a damaged entry is");
		blame_close(b);
		view_close(v);
		text.len -= i == 0;
		put_text("meta/L1.blame", &text);
	}
	free(last);
	release_entries();
	buf_release(&text);
}

/* What a layer has at p, and at d/p. */
enum put {
	NOTHING,
	ENTRY, /* a file and an entry */
	CHMOD, /* a file alone */
	GONE,
	LINK,
	PUTS
};

struct put_layer {
	char id[ID_MAX + 1];
	bool base, meta, opaque;
	enum put put[2];
	char owner[24];
};

static void
make_layer(struct put_layer *l, int stack, int i)
{
	struct owners o = OWNERS_INIT;
	struct buf text = BUF_INIT;
	static const char *const path[] = { "d/p", "p" };
	int fd, sub;
	char *name;

	l->base = i == LAYERS - 1;
	l->meta = rnd(8) > 0;
	l->opaque = rnd(6) == 0;
	snprintf(l->id, sizeof l->id, "%c%d-%d", l->base ? 'B' : 'L', stack, i);
	snprintf(l->owner, sizeof l->owner, "owner %d", i);
	owners_set_whole(&o, l->owner);
	must(mkdirat(stackfd, "layer", 0755), "layer");
	fd = openat(stackfd, "layer", O_RDONLY | O_DIRECTORY);
	must(fd, "layer");
	must(mkdirat(fd, "d", 0755), "d");
	sub = openat(fd, "d", O_RDONLY | O_DIRECTORY);
	must(sub, "d");
	if (l->opaque && !l->base)
		must(whiteout_mark_opaque(sub), "opaque");
	for (int k = 0; k < 2; k++) {
		int at = k == 0 ? sub : fd, file;

		l->put[k] = rnd(3) ? rnd(3) : rnd(PUTS);
		if (l->base && l->put[k] == GONE)
			l->put[k] = NOTHING;
		if (l->put[k] == ENTRY || l->put[k] == CHMOD) {
			file = openat(at, "p", O_WRONLY | O_CREAT, 0644);
			must(file, "p");
			io_drop(&file);
		}
		if (l->put[k] == GONE)
			must(whiteout_make(at, "p"), "whiteout");
		if (l->put[k] == LINK)
			must(symlinkat("t", at, "p"), "link");
		if (l->put[k] == ENTRY)
			blame_format(&text, path[k], &o);
	}
	blame_stop(&text);
	must(renameat(stackfd, "layer", stackfd, "layers/x"), "rename");
	name = xasprintf("layers/%s", l->id);
	must(renameat(stackfd, "layers/x", stackfd, name), name);
	free(name);
	if (l->meta && !l->base) {
		name = xasprintf("meta/%s.blame", l->id);
		put_text(name, &text);
		free(name);
	}
	io_drop(&sub);
	io_drop(&fd);
	buf_release(&text);
	owners_release(&o);
}

/* The definition. NULL: nothing published it. */
static const char *
literally(const struct put_layer *l, int k)
{
	bool published = false;

	for (int i = 0; i < LAYERS; i++) {
		enum put p = l[i].put[k];

		if (p == GONE || p == LINK)
			break;
		if (p != NOTHING) {
			if (l[i].base)
				return NULL;
			published = true;
			if (!l[i].meta)
				return OWNER_UNKNOWN;
			if (p == ENTRY)
				return l[i].owner;
		}
		if (k == 0 && l[i].opaque && !l[i].base)
			break;
	}
	return published ? OWNER_UNKNOWN : NULL;
}

static void
test_stacks(void)
{
	static const char *const path[] = { "d/p", "p" };
	bool good = true;

	for (int i = 0; i < STACKS && good; i++) {
		struct put_layer layer[LAYERS];
		struct ids ids = IDS_INIT;
		struct blame *b;
		struct view *v;

		for (int k = 0; k < LAYERS; k++) {
			make_layer(&layer[k], i, k);
			ids_add(&ids, layer[k].id);
		}
		v = view_open(stackfd, &ids, NULL);
		b = blame_open(stackfd, v);
		for (int k = 0; k < 4 && good; k++) {
			struct owners o = OWNERS_INIT;
			const char *want = literally(layer, k % 2);
			int rc = blame_get(b, path[k % 2], &o);

			good = want ? rc == 1 && o.whole &&
				strcmp(o.v[0].owner, want) == 0
				    : rc == 0 && o.n == 0;
			owners_release(&o);
		}
		blame_close(b);
		view_close(v);
	}
	ok(good, "random stacks answer as the definition does");
}

static void
test_lines(void)
{
	static const struct {
		const char *text;
		size_t n;
		uint64_t lines;
	} t[] = { { "", 0, 0 }, { "\n", 1, 1 }, { "a", 1, 1 }, { "a\nb", 3, 2 },
		{ "a\n\nb\n", 5, 3 }, { "\0\n\0", 3, 2 } };
	bool good = true;
	uint64_t n;
	int fd;

	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		put("text", t[i].text, t[i].n);
		fd = openat(stackfd, "text", O_RDONLY);
		must(fd, "text");
		good = good && lines_count(fd, &n) == 0 && n == t[i].lines;
		io_drop(&fd);
	}
	ok(good, "lines are counted, the last one without its newline too");
	fd = openat(stackfd, ".", O_RDONLY | O_DIRECTORY);
	ok(lines_count(fd, &n) == -1 && errno == EISDIR, "an error is one");
	io_drop(&fd);
}

int
main(void)
{
	const char *seed = getenv("SB_SEED");
	uint64_t value;

	if (!seed || !num_dec(seed, 1, UINT64_MAX, &value))
		value = (uint64_t)time(NULL) * 2 + 1;
	state = value;
	printf("# SB_SEED=%llu\n", (unsigned long long)value);
	must(mkdtemp(dir) ? 0 : -1, dir);
	stackfd = open(dir, O_RDONLY | O_DIRECTORY);
	must(stackfd, dir);
	must(mkdirat(stackfd, "layers", 0700), "layers");
	must(mkdirat(stackfd, "meta", 0700), "meta");

	test_owner();
	test_map();
	test_example();
	test_file();
	test_refused();
	test_bisect();
	test_stacks();
	test_lines();
	must(path_rm_tree(AT_FDCWD, dir), dir);
	return done();
}
