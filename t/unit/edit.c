/* SPDX-License-Identifier: MIT */
/* Replacing strings in texts of any line ends. */
#include "edit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define NONE EDIT_NOT_FOUND
#define MANY EDIT_NOT_UNIQUE

static const struct {
	const char *text, *old, *new;
	bool all;
	enum edit_result result;
	size_t count;
	const char *out; /* NULL: as it was */
} v[] = {
	{ "abc", "b", "X", false, EDIT_DONE, 1, "aXc" },
	{ "abc", "d", "X", false, NONE, 0, NULL },
	{ "", "d", "X", false, NONE, 0, NULL },
	{ "abab", "ab", "X", false, MANY, 2, NULL },
	{ "abab", "ab", "X", true, EDIT_DONE, 2, "XX" },
	{ "aaaaa", "aa", "b", true, EDIT_DONE, 2, "bba" },
	{ "aaaaa", "aa", "b", false, MANY, 2, NULL },
	{ "abc", "abc", "", false, EDIT_DONE, 1, "" },
	{ "abc", "a", "aa", false, EDIT_DONE, 1, "aabc" },
	/* Untouched bytes stay untouched. */
	{ "a\r\nb\nc", "c", "C", false, EDIT_DONE, 1, "a\r\nb\nC" },
	{ "a\rb\nc\r\n", "c", "C", false, EDIT_DONE, 1, "a\rb\nC\r\n" },
	{ "\r\r\n\n\rx\n\r", "x", "y", false, EDIT_DONE, 1, "\r\r\n\n\ry\n\r" },
	{ "\xef\xbb\xbf"
	  "a\r\n",
	    "a", "b", false, EDIT_DONE, 1,
	    "\xef\xbb\xbf"
	    "b\r\n" },
	/* Any end is found as any other. */
	{ "a\r\nb\r\n", "a\nb", "x\ny", false, EDIT_DONE, 1, "x\r\ny\r\n" },
	{ "a\nb\n", "a\r\nb", "x\r\ny", false, EDIT_DONE, 1, "x\ny\n" },
	{ "a\rb\r", "a\nb", "a\nx\nb", false, EDIT_DONE, 1, "a\rx\rb\r" },
	{ "a\nb", "\r", "|", false, EDIT_DONE, 1, "a|b" },
	/* A line that stays keeps its end, one that is replaced as well. */
	{ "a\r\nb\nc\n", "a\nb\nc", "a\nB\nc", false, EDIT_DONE, 1,
	    "a\r\nB\nc\n" },
	{ "a\r\nb\nc\n", "a\nb\nc", "x\ny\nz", false, EDIT_DONE, 1,
	    "x\r\ny\nz\n" },
	{ "a\r\nb\nc\n", "a\nb\nc", "a\nc", false, EDIT_DONE, 1, "a\r\nc\n" },
	/* What is added ends as most lines do; as the first, where it is even. */
	{ "a\r\nb\nc\n", "c", "c\nd", false, EDIT_DONE, 1, "a\r\nb\nc\nd\n" },
	{ "a\nb\r\nc\r\n", "a", "x\na", false, EDIT_DONE, 1,
	    "x\r\na\nb\r\nc\r\n" },
	{ "a\r\nb\rc\nd\re\nf", "f", "f\ng", false, EDIT_DONE, 1,
	    "a\r\nb\rc\nd\re\nf\rg" },
	{ "a\r\nb\nc", "c", "c\nd", false, EDIT_DONE, 1, "a\r\nb\nc\r\nd" },
	{ "p 1\rp 2\rx\ny\nz\n", "z", "z\nz", false, EDIT_DONE, 1,
	    "p 1\rp 2\rx\ny\nz\nz\n" },
	{ "abc", "b", "\n", false, EDIT_DONE, 1, "a\nc" },
	{ "a\r\nb\r\n", "b\n", "", false, EDIT_DONE, 1, "a\r\n" },
	{ "a\r\nb\r\n", "a\nb", "ab", false, EDIT_DONE, 1, "ab\r\n" },
	/* Each place for itself. */
	{ "k\r\nv\nk\nv\n", "k\nv", "K\nV", true, EDIT_DONE, 2,
	    "K\r\nV\nK\nV\n" },
};

static struct buf
bytes(const char *s, size_t n)
{
	struct buf b = BUF_INIT;

	buf_add(&b, s, n);
	return b;
}

static enum edit_result
edit(struct document *d, const char *old, const char *new, bool all, size_t max,
    size_t *count)
{
	struct edit e = { bytes(old, strlen(old)), bytes(new, strlen(new)),
		all };
	enum edit_result r = document_edit(d, &e, max, count);

	buf_release(&e.old);
	buf_release(&e.new);
	return r;
}

static bool
reads(const struct document *d, const char *want, size_t n)
{
	struct buf out = BUF_INIT, wanted = bytes(want, n);
	bool same;

	document_save(d, &out);
	same = buf_equal(&out, &wanted);
	if (!same)
		printf("# %s\n", buf_str(&out));
	buf_release(&out);
	buf_release(&wanted);
	return same;
}

static void
test_table(void)
{
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct document d = DOCUMENT_INIT;
		const char *want = v[i].out ? v[i].out : v[i].text;
		size_t count = 99;
		bool good;

		document_load(&d, v[i].text, strlen(v[i].text));
		good = edit(&d, v[i].old, v[i].new, v[i].all, 100, &count) ==
			v[i].result &&
		    count == v[i].count;
		good = good && reads(&d, want, strlen(want));
		if (!ok(good, "one edit"))
			printf("# case %zu\n", i);
		document_release(&d);
	}
}

static void
test_sequence(void)
{
	struct document d = DOCUMENT_INIT;
	size_t n;

	document_load(&d, "a\r\nb\r\nc\n", 8);
	ok(edit(&d, "b", "x\ny", false, 100, &n) == EDIT_DONE &&
		edit(&d, "x\ny\nc", "q\nc", false, 100, &n) == EDIT_DONE &&
		reads(&d, "a\r\nq\r\nc\n", 8),
	    "an edit sees what the one before left");
	ok(edit(&d, "no", "x", false, 100, &n) == EDIT_NOT_FOUND &&
		reads(&d, "a\r\nq\r\nc\n", 8),
	    "one that fails leaves it");
	document_release(&d);
	d = (struct document)DOCUMENT_INIT;
	document_load(&d, "a\0b\0c", 5);
	ok(edit(&d, "b", "X", false, 100, &n) == EDIT_DONE &&
		reads(&d, "a\0X\0c", 5),
	    "NUL is a character");
	document_release(&d);
}

static void
test_limit(void)
{
	struct document d = DOCUMENT_INIT;
	size_t n;

	document_load(&d, "aaaa", 4);
	ok(edit(&d, "a", "aaa", true, 11, &n) == EDIT_TOO_LARGE &&
		reads(&d, "aaaa", 4),
	    "larger than it may be");
	ok(edit(&d, "a", "aaa", true, 12, &n) == EDIT_DONE && d.text.len == 12,
	    "as large as it may be");
	ok(edit(&d, "aa", "a", true, 1, &n) == EDIT_DONE && d.text.len == 6,
	    "what gets smaller is not too large");
	document_release(&d);
}

/* Random texts: what comes in comes out, and so does all around an edit. */
static void
test_random(void)
{
	static const char alphabet[] = { 'a', 'b', '\n', '\r' };
	uint32_t seed = 1;
	bool good = true;

	for (int round = 0; round < 20000; round++) {
		char text[24], *at;
		size_t n = 0, count;
		struct document d = DOCUMENT_INIT;
		struct buf want = BUF_INIT;

		for (int i = 0; i < 12; i++) {
			seed = seed * 1664525 + 1013904223;
			text[n++] = alphabet[seed >> 30];
			if (i == 5)
				text[n++] = 'X';
		}
		document_load(&d, text, n);
		good = good && reads(&d, text, n);
		at = memchr(text, 'X', n);
		buf_add(&want, text, (size_t)(at - text));
		buf_adds(&want, "yz");
		buf_add(&want, at + 1, n - (size_t)(at + 1 - text));
		good = good &&
		    edit(&d, "X", "yz", false, 100, &count) == EDIT_DONE &&
		    reads(&d, want.data, want.len);
		buf_release(&want);
		document_release(&d);
	}
	ok(good, "20 000 random texts keep the bytes around an edit");
}

int
main(void)
{
	test_table();
	test_sequence();
	test_limit();
	test_random();
	return done();
}
