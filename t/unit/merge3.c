/* SPDX-License-Identifier: MIT */
/*
 * The merge: golden cases, origins of lines, and properties on random texts
 * with repeated lines. SB_SEED chooses other random texts.
 */
#include "merge3.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "num.h"

#include "tap.h"

static uint64_t rng;

/* Steele, Lea and Flood's SplitMix64. */
static uint64_t
rnd(uint64_t below)
{
	uint64_t z = rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % below;
}

static struct buf
text(const char *s)
{
	struct buf b = BUF_INIT;

	buf_adds(&b, s);
	return b;
}

/* "a b c": the lines a, b and c; a '~' at the end takes away the last LF. */
static struct buf
words(const char *s)
{
	struct buf b = BUF_INIT;

	for (; *s != '\0'; s++)
		if (*s == '~')
			buf_cut(&b, b.len - 1);
		else if (*s != ' ')
			buf_addf(&b, "%c\n", *s);
	return b;
}

static bool
buf_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len &&
	    (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/*
 * Ranges as text: "h2+3" three lines of head from its second, "m+1" one line
 * of mine; hunks as "2+1/2+2/2+0" base, head, mine.
 */
static struct buf
shape(const struct merge *m)
{
	struct buf b = BUF_INIT;

	for (size_t i = 0; i < m->nranges; i++) {
		const struct merge_range *r = &m->range[i];

		buf_adds(&b, i > 0 ? " " : "");
		if (r->origin == ORIGIN_HEAD)
			buf_addf(&b, "h%zu+%zu", r->head, r->count);
		else
			buf_addf(&b, "m+%zu", r->count);
	}
	for (size_t i = 0; i < m->nhunks; i++) {
		const struct merge_hunk *h = &m->hunk[i];

		buf_addf(&b, "%s%zu+%zu/%zu+%zu/%zu+%zu", i > 0 ? " " : "",
		    h->base, h->base_count, h->head, h->head_count, h->mine,
		    h->mine_count);
	}
	return b;
}

/* Merged text NULL: a conflict, of which want describes the hunks. */
static bool
golden(struct buf base, struct buf head, struct buf mine,
    const struct buf *merged, const char *want)
{
	struct merge m = MERGE_INIT, back = MERGE_INIT;
	struct buf got;
	bool good;

	good = merge3(&m, &base, &head, &mine) == 0 &&
	    merge3(&back, &base, &mine, &head) == 0 &&
	    m.nhunks == back.nhunks && buf_same(&m.text, &back.text) &&
	    (merged ? m.nhunks == 0 && buf_same(&m.text, merged)
		    : m.nhunks > 0 && m.text.len == 0 && m.nranges == 0);
	for (size_t i = 0; good && i < m.nhunks; i++)
		good = m.hunk[i].base == back.hunk[i].base &&
		    m.hunk[i].base_count == back.hunk[i].base_count &&
		    m.hunk[i].head == back.hunk[i].mine &&
		    m.hunk[i].head_count == back.hunk[i].mine_count &&
		    m.hunk[i].mine == back.hunk[i].head &&
		    m.hunk[i].mine_count == back.hunk[i].head_count;
	got = shape(&m);
	if (good && strcmp(buf_str(&got), want) != 0)
		good = false;
	if (!good)
		printf("# got %s, %zu hunks, text:\n%s\n", buf_str(&got),
		    m.nhunks, buf_str(&m.text));
	buf_release(&got);
	merge_release(&m);
	merge_release(&back);
	buf_release(&base);
	buf_release(&head);
	buf_release(&mine);
	return good;
}

static const struct {
	const char *what, *base, *head, *mine, *merged, *want;
} table[] = {
	{ "neighbouring lines merge", "a b c", "A b c", "a B c", "A B c",
	    "h1+1 m+1 h3+1" },
	{ "an insertion before a replaced line is a conflict", "a b c",
	    "a i b c", "a B c", NULL, "2+1/2+2/2+1" },
	{ "an insertion after a replaced line merges", "a b", "A b", "a i b",
	    "A i b", "h1+1 m+1 h2+1" },
	{ "an appended line merges with a replaced last one", "a b", "a b c",
	    "a B", "a B c", "h1+1 m+1 h3+1" },
	{ "an appended line merges with a removed last one", "a b", "a b c",
	    "a", "a c", "h1+1 h3+1" },
	{ "two different appended lines are a conflict", "a", "a b", "a c",
	    NULL, "2+0/2+1/2+1" },
	{ "equal insertions into nothing are head's", "", "s", "s", "s",
	    "h1+1" },
	{ "different insertions into nothing are a conflict", "", "s", "t",
	    NULL, "1+0/1+1/1+1" },
	{ "a deletion within a larger deletion is a conflict", "1 2 3 4 5",
	    "1 5", "1 2 4 5", NULL, "2+3/2+0/2+2" },
	{ "a replacement within a larger one is a conflict", "a b c", "X c",
	    "a X c", NULL, "1+2/1+1/1+2" },
	{ "a final LF is added beside a replaced line", "a b~", "A b~", "a b",
	    "A b", "h1+1 m+1" },
	{ "first and last line: the last is mine", "a b c", "A b c", "a b C",
	    "A b C", "h1+2 m+1" },
	{ "lines 2 and 4 merge with line 3", "1 2 3 4 5", "1 B 3 D 5",
	    "1 2 C 4 5", "1 B C D 5", "h1+2 m+1 h4+2" },
	{ "one line changed in two ways is a conflict", "a b c", "a X c",
	    "a Y c", NULL, "2+1/2+1/2+1" },
	{ "equal changes are head's", "a b c", "a X c", "a X c", "a X c",
	    "h1+3" },
	{ "equal changes and one of mine", "a b c d", "a X c d", "a X c D",
	    "a X c D", "h1+3 m+1" },
	{ "a replaced and an appended line are mine, the others not", "a b c",
	    "a b c", "a B c d", "a B c d", "h1+1 m+1 h3+1 m+1" },
	{ "head's index counts its own insertions", "a b c d", "x y a b d",
	    "a b c D", "x y a b D", "h1+4 m+1" },
	{ "after a deletion at head the index goes on", "a b c d", "a d",
	    "a b c d e", "a d e", "h1+2 m+1" },
	{ "equal deletions agree", "a b c", "a c", "a c", "a c", "h1+2" },
	{ "everything deleted by both", "a b c", "", "", "", "" },
	{ "everything deleted by head", "a b c", "", "a b c", "", "" },
	{ "everything deleted against a change is a conflict", "a b c", "",
	    "a B c", NULL, "1+3/1+0/1+3" },
	{ "nothing at all", "", "", "", "", "" },
	{ "a new text is mine", "", "", "a b c", "a b c", "m+3" },
	{ "all conflicts are listed", "a 1 b 2 c 3 d", "a x b 2 c y d",
	    "a p b Q c r d", NULL, "2+1/2+1/2+1 6+1/6+1/6+1" },
	{ "a conflict at the end counts from the last line", "a b c",
	    "a b c x y", "a b c z", NULL, "4+0/4+2/4+1" },
	{ "two insertions of which one begins the other are a conflict", "a",
	    "a b", "a b c", NULL, "2+0/2+1/2+2" },
	{ "insertions at different places of a block merge", "a b c", "a x b c",
	    "a b y c", "a x b y c", "h1+3 m+1 h4+1" },
	{ "an insertion within deleted lines is a conflict", "a b c d", "a d",
	    "a b x c d", NULL, "2+2/2+0/2+3" },
	{ "overlaps chain into one", "1 2 3 4 5 6", "1 A 4 B 6", "1 2 C 6",
	    NULL, "2+4/2+3/2+2" },
	{ "both lost the final LF", "a b", "a b~", "a b~", "a b~", "h1+2" },
	{ "one lost the final LF and it stays away", "a b c", "A b c", "a b c~",
	    "A b c~", "h1+2 m+1" },
	{ "the LF taken from the last line against a line after it", "a b",
	    "a b~", "a b c", NULL, "2+1/2+1/2+2" },
	{ "a last line without LF never runs into the next", "a b", "B~",
	    "a b c", NULL, "1+2/1+1/1+3" },
	{ "a final LF given by both", "a b~", "a b", "a b", "a b", "h1+2" },
	{ "the same insertion among equal lines is known as the same",
	    "p z a a q r", "p z a a a q r", "P z a a a q r", "P z a a a q r",
	    "m+1 h2+6" },
};

static void
test_golden(void)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct buf merged = BUF_INIT;

		if (table[i].merged)
			merged = words(table[i].merged);
		ok(golden(words(table[i].base), words(table[i].head),
		       words(table[i].mine), table[i].merged ? &merged : NULL,
		       table[i].want),
		    table[i].what);
		buf_release(&merged);
	}
}

static void
test_bytes(void)
{
	struct buf want = text("A\r\nb\r\nC\r\n\r\nend");

	ok(golden(text("a\r\nb\r\nc\r\n\r\nend"),
	       text("A\r\nb\r\nc\r\n\r\nend"), text("a\r\nb\r\nC\r\n\r\nend"),
	       &want, "h1+2 m+1 h4+2"),
	    "CRLF and a missing final newline survive byte for byte");
	buf_release(&want);
	ok(golden(text("a\nb\n"), text("a\r\nb\r\n"), text("A\nB\n"), NULL,
	       "1+2/1+2/1+2"),
	    "CRLF on every line against changed lines is a conflict");
	want = text("<<<<<<< x\n=======\nb\n>>>>>>> y\nz\n");
	ok(golden(text("<<<<<<< x\n=======\na\n>>>>>>> y\n"),
	       text("<<<<<<< x\n=======\nb\n>>>>>>> y\n"),
	       text("<<<<<<< x\n=======\na\n>>>>>>> y\nz\n"), &want,
	       "h1+4 m+1"),
	    "lines that look like conflict marks are content");
	buf_release(&want);
	want = text("\xff\n\x01\n");
	ok(golden(text("\xff\nb\n"), text("\xff\nb\n"), text("\xff\n\x01\n"),
	       &want, "h1+1 m+1"),
	    "bytes that are not text do no harm");
	buf_release(&want);
}

static void
test_large(void)
{
	struct buf none = BUF_INIT, b = BUF_INIT;
	struct merge m = MERGE_INIT;
	char *big = xmalloc(MERGE_TEXT_MAX + 1);

	for (int i = 0; i < 210001; i++)
		buf_addf(&b, "line %d\n", i);
	ok(merge3(&m, &none, &none, &b) == 0 && m.nhunks == 0 &&
		m.nranges == 1 && m.range[0].count == 210001 &&
		m.range[0].origin == ORIGIN_MINE && buf_same(&m.text, &b),
	    "210001 new lines are one range");
	merge_release(&m);
	buf_release(&b);

	memset(big, 'x', MERGE_TEXT_MAX + 1);
	ok(text_is_mergeable(big, MERGE_TEXT_MAX), "8 MiB can be merged");
	ok(!text_is_mergeable(big, MERGE_TEXT_MAX + 1), "one byte more cannot");
	buf_add(&b, big, MERGE_TEXT_MAX + 1);
	errno = 0;
	ok(merge3(&m, &none, &b, &none) == -1 && errno == EFBIG,
	    "the merge itself refuses it with EFBIG");
	buf_release(&b);
	free(big);
}

static void
test_utf8(void)
{
	static const struct {
		const char *bytes;
		bool good;
	} t[] = {
		{ "plain\tline\r\n\x7f", true },
		{ "\xc2\x80", true },
		{ "\xdf\xbf", true },
		{ "\xe0\xa0\x80", true },
		{ "\xed\x9f\xbf", true },
		{ "\xee\x80\x80", true },
		{ "\xef\xbf\xbf", true },
		{ "\xf0\x90\x80\x80", true },
		{ "\xf4\x8f\xbf\xbf", true },
		{ "\xef\xbb\xbf"
		  "BOM",
		    true },
		{ "\x80", false }, /* continuation alone */
		{ "\xbf", false },
		{ "\xc0\x80", false }, /* overlong */
		{ "\xc1\xbf", false },
		{ "\xe0\x9f\xbf", false },
		{ "\xf0\x8f\xbf\xbf", false },
		{ "\xed\xa0\x80", false }, /* surrogates */
		{ "\xed\xbf\xbf", false },
		{ "\xf4\x90\x80\x80", false }, /* above U+10FFFF */
		{ "\xf5\x80\x80\x80", false },
		{ "\xf8\x88\x80\x80\x80", false },
		{ "\xfe", false },
		{ "\xff", false },
		{ "\xc2", false }, /* cut short */
		{ "\xe1\x80", false },
		{ "\xf1\x80\x80", false },
		{ "\xc2"
		  "a",
		    false }, /* interrupted */
		{ "\xe1\x80"
		  "a",
		    false },
		{ "\xf1\x80\x80"
		  "a",
		    false },
		{ "\xf1\x80"
		  "a\x80",
		    false },
		{ "abcdefgh\xc3", false },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		if (text_is_mergeable(t[i].bytes, strlen(t[i].bytes)) !=
		    t[i].good) {
			printf("# row %zu\n", i);
			good = false;
		}
	ok(good, "valid and invalid UTF-8");
	ok(text_is_mergeable(NULL, 0), "the empty text can be merged");
	ok(!text_is_mergeable("a\0b", 3) && !text_is_mergeable("\0", 1) &&
		!text_is_mergeable("ab\0", 3),
	    "a NUL anywhere cannot");
	ok(strcmp(text_flaw("\0", 1), "contains a NUL byte") == 0 &&
		strcmp(text_flaw("\xff", 1), "is not UTF-8") == 0 &&
		!text_flaw("a", 1),
	    "the flaw is named");
}

/* Lines of letters from a small alphabet; one in eight lacks its last LF. */
static struct buf
random_text(size_t max, unsigned letters)
{
	struct buf b = BUF_INIT;
	size_t n = rnd(max + 1);

	for (size_t i = 0; i < n; i++)
		buf_addf(&b, "%c\n", 'a' + (int)rnd(letters));
	if (n > 0 && rnd(8) == 0)
		buf_cut(&b, b.len - 1);
	return b;
}

/* The text with some lines taken out, put in or replaced. */
static struct buf
random_edit(const struct buf *from, unsigned letters, unsigned rate)
{
	struct buf b = BUF_INIT;
	struct lines l;

	lines_split(&l, from->data, from->len);
	for (size_t i = 0; i <= l.n; i++) {
		while (rnd(rate) == 0)
			buf_addf(&b, "%c\n", 'a' + (int)rnd(letters));
		if (i < l.n && rnd(rate) != 0)
			buf_addf(&b, "%c\n", l.text[l.start[i]]);
	}
	if (b.len > 0 && rnd(8) == 0)
		buf_cut(&b, b.len - 1);
	lines_release(&l);
	return b;
}

static bool
line_same(const struct lines *a, size_t i, const struct lines *b, size_t j)
{
	size_t n = a->start[i + 1] - a->start[i];

	return n == b->start[j + 1] - b->start[j] &&
	    memcmp(a->text + a->start[i], b->text + b->start[j], n) == 0;
}

/* Longest common subsequence by the table of n times m. */
static size_t
lcs(const struct lines *a, const struct lines *b)
{
	size_t w = b->n + 1, result;
	size_t *t = xcalloc((a->n + 1) * w, sizeof *t);

	for (size_t i = 1; i <= a->n; i++)
		for (size_t j = 1; j <= b->n; j++) {
			size_t up = t[(i - 1) * w + j], left = t[i * w + j - 1];

			t[i * w + j] = up > left ? up : left;
			if (line_same(a, i - 1, b, j - 1))
				t[i * w + j] = t[(i - 1) * w + j - 1] + 1;
		}
	result = t[a->n * w + b->n];
	free(t);
	return result;
}

/* The script turns a into b, its regions are apart; sets the edits it makes. */
static bool
script_is_right(const struct lines *a, const struct lines *b, size_t *edits)
{
	struct diff d = DIFF_INIT;
	size_t i = 0, j = 0;
	bool good = diff_lines(a, b, &d) == 0;

	*edits = 0;
	for (size_t r = 0; good && r <= d.n; r++) {
		struct diff_region end = { .a = a->n, .b = b->n };
		const struct diff_region *at = r < d.n ? &d.region[r] : &end;

		if (at->a < i || at->b < j || at->a - i != at->b - j ||
		    (r > 0 && r < d.n && at->a == i) ||
		    (r < d.n && at->alen + at->blen == 0) ||
		    at->a + at->alen > a->n || at->b + at->blen > b->n) {
			good = false;
			break;
		}
		for (; i < at->a; i++, j++)
			good = good && line_same(a, i, b, j);
		i += at->alen;
		j += at->blen;
		*edits += at->alen + at->blen;
	}
	diff_release(&d);
	return good;
}

static void
test_minimal(void)
{
	bool right = true, minimal = true;

	for (int n = 0; n < 30000 && right && minimal; n++) {
		unsigned letters = 1 + (unsigned)rnd(n % 10 == 0 ? 20 : 4);
		size_t max = n % 100 == 0 ? 150 : 14, edits;
		struct buf ta = random_text(max, letters), tb;
		struct lines a, b;

		tb = n % 2 == 0 ? random_text(max, letters)
				: random_edit(&ta, letters, 6);
		lines_split(&a, ta.data, ta.len);
		lines_split(&b, tb.data, tb.len);
		right = script_is_right(&a, &b, &edits);
		minimal = edits == a.n + b.n - 2 * lcs(&a, &b);
		lines_release(&a);
		lines_release(&b);
		buf_release(&ta);
		buf_release(&tb);
	}
	ok(right, "a diff turns the old text into the new one");
	ok(minimal,
	    "a diff is as short as the longest common subsequence "
	    "allows");
}

/* Beyond the budget a script is longer than needed, but still right. */
static void
test_budget(void)
{
	struct buf ta = BUF_INIT, tb = BUF_INIT;
	struct merge m = MERGE_INIT;
	struct lines a, b;
	size_t edits;

	for (int i = 0; i < 150000; i++) {
		buf_addf(&ta, "%d\n", (int)rnd(40));
		buf_addf(&tb, "%d\n", (int)rnd(40));
	}
	lines_split(&a, ta.data, ta.len);
	lines_split(&b, tb.data, tb.len);
	ok(script_is_right(&a, &b, &edits) && edits < 300000,
	    "a diff over its budget is right and keeps common lines");
	printf("# %zu edits\n", edits);
	ok(merge3(&m, &ta, &tb, &ta) == 0 && m.nhunks == 0 &&
		buf_same(&m.text, &tb),
	    "and merges with an unchanged side");
	merge_release(&m);
	ok(merge3(&m, &ta, &tb, &tb) == 0 && m.nhunks == 0 &&
		buf_same(&m.text, &tb) && m.nranges == 1,
	    "and with an equal one");
	merge_release(&m);
	lines_release(&a);
	lines_release(&b);
	buf_release(&ta);
	buf_release(&tb);
}

/* Ranges tile the text; every line is the one its origin says it is. */
static bool
origins_are_right(
    const struct merge *m, const struct buf *head, const struct buf *mine)
{
	struct lines t, h, i;
	size_t next = 1, hnext = 1, inext = 0;
	bool good = true;

	lines_split(&t, m->text.data, m->text.len);
	lines_split(&h, head->data, head->len);
	lines_split(&i, mine->data, mine->len);
	for (size_t r = 0; good && r < m->nranges; r++) {
		const struct merge_range *at = &m->range[r];

		good = at->start == next && at->count > 0 &&
		    next + at->count - 1 <= t.n &&
		    (at->origin == ORIGIN_MINE) == (at->head == 0);
		for (size_t k = 0; good && k < at->count; k++) {
			size_t line = next - 1 + k;

			if (at->origin == ORIGIN_HEAD) {
				good = at->head + k >= hnext &&
				    at->head + k <= h.n &&
				    line_same(&t, line, &h, at->head + k - 1);
				hnext = at->head + k + 1;
				continue;
			}
			while (inext < i.n && !line_same(&t, line, &i, inext))
				inext++;
			good = inext++ < i.n;
		}
		next += at->count;
	}
	good = good && next == t.n + 1;
	lines_release(&t);
	lines_release(&h);
	lines_release(&i);
	return good;
}

static size_t
mine_lines(const struct merge *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->nranges; i++)
		if (m->range[i].origin == ORIGIN_MINE)
			n += m->range[i].count;
	return n;
}

/* Hunks lie in order, within their texts. */
static bool
hunks_are_right(const struct merge *m, const struct buf *base,
    const struct buf *head, const struct buf *mine)
{
	size_t b = 1, h = 1, i = 1;
	struct lines lb, lh, li;
	bool good = true;

	lines_split(&lb, base->data, base->len);
	lines_split(&lh, head->data, head->len);
	lines_split(&li, mine->data, mine->len);
	for (size_t k = 0; k < m->nhunks; k++) {
		const struct merge_hunk *at = &m->hunk[k];

		good = good && at->base >= b && at->head >= h && at->mine >= i;
		b = at->base + at->base_count;
		h = at->head + at->head_count;
		i = at->mine + at->mine_count;
		good = good && b <= lb.n + 1 && h <= lh.n + 1 && i <= li.n + 1;
	}
	lines_release(&lb);
	lines_release(&lh);
	lines_release(&li);
	return good;
}

static void
test_properties(void)
{
	bool head_only = true, mine_only = true, equal = true, symmetric = true;
	bool origins = true, hunks = true, own = true;
	int clean = 0, conflicts = 0;

	for (int n = 0; n < 40000; n++) {
		unsigned letters = 2 + (unsigned)rnd(n % 2 ? 24 : 3);
		struct buf b = random_text(12, letters);
		struct buf x = random_edit(&b, letters, 8);
		struct buf y = random_edit(&b, letters, 8);
		struct merge m = MERGE_INIT, w = MERGE_INIT;
		struct lines lb, lx;

		merge3(&m, &b, &x, &b);
		head_only = head_only && m.nhunks == 0 &&
		    buf_same(&m.text, &x) && mine_lines(&m) == 0 &&
		    origins_are_right(&m, &x, &b);
		merge_release(&m);

		merge3(&m, &b, &b, &x);
		lines_split(&lb, b.data, b.len);
		lines_split(&lx, x.data, x.len);
		mine_only = mine_only && m.nhunks == 0 && buf_same(&m.text, &x);
		own = own && origins_are_right(&m, &b, &x) &&
		    mine_lines(&m) == lx.n - lcs(&lb, &lx);
		lines_release(&lb);
		lines_release(&lx);
		merge_release(&m);

		merge3(&m, &b, &x, &x);
		equal = equal && m.nhunks == 0 && buf_same(&m.text, &x) &&
		    mine_lines(&m) == 0 && origins_are_right(&m, &x, &x);
		merge_release(&m);

		merge3(&m, &b, &x, &y);
		merge3(&w, &b, &y, &x);
		symmetric = symmetric && m.nhunks == w.nhunks &&
		    buf_same(&m.text, &w.text);
		if (m.nhunks == 0)
			origins = origins && origins_are_right(&m, &x, &y) &&
			    origins_are_right(&w, &y, &x);
		hunks = hunks && hunks_are_right(&m, &b, &x, &y);
		clean += m.nhunks == 0;
		conflicts += m.nhunks > 0;
		merge_release(&m);
		merge_release(&w);
		buf_release(&b);
		buf_release(&x);
		buf_release(&y);
	}
	printf("# %d clean, %d with conflicts\n", clean, conflicts);
	ok(clean > 5000 && conflicts > 5000, "both outcomes were met often");
	ok(head_only, "merge(b, x, b) = x, all head's");
	ok(mine_only, "merge(b, b, x) = x");
	ok(own, "merge(b, b, x): mine are just the lines not kept from b");
	ok(equal, "merge(b, x, x) = x, all head's");
	ok(symmetric, "merge(b, x, y) and merge(b, y, x) agree");
	ok(origins, "ranges tile the text and name the right lines");
	ok(hunks, "conflicts are in order and within the texts");
}

int
main(void)
{
	const char *seed = getenv("SB_SEED");

	if (!seed || !num_dec(seed, 0, UINT64_MAX, &rng))
		rng = 20261130;
	printf("# SB_SEED=%" PRIu64 "\n", rng);
	test_golden();
	test_bytes();
	test_large();
	test_utf8();
	test_minimal();
	test_budget();
	test_properties();
	return done();
}
