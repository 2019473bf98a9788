/* SPDX-License-Identifier: MIT */
/* Windows of lines: what is a line, what is in them, in whatever pieces. */
#include "window.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define T(text) text, sizeof text - 1

/* text NULL: invalid. */
static const struct {
	const char *in;
	size_t n;
	uint64_t first, limit;
	const char *text;
	uint64_t num, lines, next;
} v[] = {
	{ T(""), 1, 9, "", 0, 0, 0 },
	{ T("\n"), 1, 9, "", 1, 1, 0 },
	{ T("\n\n"), 1, 9, "\n", 2, 2, 0 },
	{ T("a"), 1, 9, "a", 1, 1, 0 },
	{ T("a\n"), 1, 9, "a", 1, 1, 0 },
	{ T("line1\nline2\nline3\n"), 1, 9, "line1\nline2\nline3", 3, 3, 0 },
	{ T("line1\nline2\nline3\n"), 2, 1, "line2", 1, 3, 3 },
	{ T("line1\nline2\nline3\n"), 3, 1, "line3", 1, 3, 0 },
	{ T("line1\nline2\nline3\n"), 1, 3, "line1\nline2\nline3", 3, 3, 0 },
	{ T("line1\nline2\nline3\n"), 4, 1, "", 0, 3, 0 },
	{ T("line1\nline2\nline3"), 99, 5, "", 0, 3, 0 },
	{ T("a\n"), UINT64_MAX, UINT64_MAX, "", 0, 1, 0 },
	{ T("\n\n\n"), 2, 1, "", 1, 3, 3 },
	{ T("\xef\xbb\xbf"
	    "a\r\nb\rc\n"),
	    1, 9, "a\nb\nc", 3, 3, 0 },
	{ T("\xef\xbb\xbf"), 1, 9, "", 0, 0, 0 },
	{ T("a\xef\xbb\xbf"
	    "b"),
	    1, 9,
	    "a\xef\xbb\xbf"
	    "b",
	    1, 1, 0 },
	{ T("\r\n\r\n"), 1, 9, "\n", 2, 2, 0 },
	{ T("\r\r\n\n\r"), 1, 9, "\n\n\n", 4, 4, 0 },
	{ T("\n\r"), 1, 9, "\n", 2, 2, 0 },
	{ T("a\r\nb"), 2, 1, "b", 1, 2, 0 },
	{ T("h\xc3\xa9\n\xe2\x82\xac\xf0\x9f\x98\x80"), 1, 9,
	    "h\xc3\xa9\n\xe2\x82\xac\xf0\x9f\x98\x80", 2, 2, 0 },
	{ T("a\xff"), 1, 9, NULL, 0, 0, 0 },
	{ T("\xc3"), 1, 9, NULL, 0, 0, 0 },
	{ T("\xe2\x82"), 1, 9, NULL, 0, 0, 0 },
	{ T("\x80"), 1, 9, NULL, 0, 0, 0 },
	{ T("\xed\xa0\x80"), 1, 9, NULL, 0, 0, 0 },
	{ T("\xc3\xc3\xa9"), 1, 9, NULL, 0, 0, 0 },
	{ T("fine\nfine\nnot \xf0\x9f\x98 fine\n"), 1, 1, NULL, 0, 0, 0 },
	{ T("\xef\xbb"), 1, 9, NULL, 0, 0, 0 },
};

static void
test_pieces(void)
{
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		bool good = true;

		for (size_t step = 1; step <= v[i].n + 1; step++) {
			struct window w;

			window_init(&w, v[i].first, v[i].limit, 100);
			for (size_t at = 0; at < v[i].n; at += step)
				window_feed(&w, v[i].in + at,
				    at + step < v[i].n ? step : v[i].n - at);
			window_end(&w);
			good = good && w.invalid == !v[i].text;
			if (v[i].text)
				good = good && !w.overflow &&
				    w.bytes == v[i].n && w.num == v[i].num &&
				    w.lines == v[i].lines &&
				    window_next(&w) == v[i].next &&
				    strcmp(buf_str(&w.text), v[i].text) == 0;
			window_release(&w);
		}
		if (!ok(good, "a text in pieces of every size"))
			printf("# case %zu\n", i);
	}
}

static void
test_limit(void)
{
	static const char text[] = "12345\n789\n";
	struct window w;

	window_init(&w, 1, 2, 9);
	window_feed(&w, text, sizeof text - 1);
	window_end(&w);
	ok(!w.overflow && w.text.len == 9, "as many bytes as may be");
	window_release(&w);
	window_init(&w, 1, 2, 8);
	window_feed(&w, text, sizeof text - 1);
	window_end(&w);
	ok(w.overflow && w.lines == 2 && w.text.len <= 8, "one byte too many");
	window_release(&w);
	window_init(&w, 2, 1, 3);
	window_feed(&w, text, sizeof text - 1);
	window_end(&w);
	ok(!w.overflow && strcmp(buf_str(&w.text), "789") == 0,
	    "what is outside does not count");
	window_release(&w);
	window_init(&w, 1, 9, 9);
	window_feed(&w, "a\0b\n\0", 5);
	window_end(&w);
	ok(w.lines == 2 && w.text.len == 5 &&
		memcmp(w.text.data, "a\0b\n\0", 5) == 0,
	    "NUL is a character");
	window_release(&w);
}

static bool
fits(const char *in, size_t n, size_t max, size_t bytes, const char *text,
    uint64_t num, uint64_t next)
{
	struct window w;
	bool good;

	window_init(&w, 1, 9, bytes);
	window_feed(&w, in, n);
	window_end(&w);
	window_fit(&w, max);
	good = text ? !w.overflow && strcmp(buf_str(&w.text), text) == 0 &&
		w.num == num && window_next(&w) == next
		    : w.overflow;
	window_release(&w);
	return good;
}

static void
test_fit(void)
{
	static const char text[] = "a\"\nb\n\tc";
	size_t n = sizeof text - 1;

	ok(fits(text, n, 11, 99, text, 3, 0), "all of it, as JSON");
	ok(fits(text, n, 10, 99, "a\"\nb", 2, 3), "whole lines");
	ok(fits(text, n, 6, 99, "a\"\nb", 2, 3), "just two lines");
	ok(fits(text, n, 5, 99, "a\"", 1, 2), "one line");
	ok(fits(text, n, 6, 6, "a\"\nb", 2, 3),
	    "what was too much before is not any more");
	ok(fits(text, n, 99, 6, NULL, 0, 0), "and is, where it fits");
	ok(fits("0123456789\nx", 12, 7, 99,
	       "[... the rest of this line is cut ...]", 1, 2),
	    "a line that is too long by itself is cut");
}

int
main(void)
{
	test_pieces();
	test_limit();
	test_fit();
	return done();
}
