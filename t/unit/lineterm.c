/* SPDX-License-Identifier: MIT */
/*
 * The line model by itself: each input whole, split at each byte, and byte by
 * byte gives the same rows. lib/screen's tests go on with it.
 */
#include <stdlib.h>
#include <sys/resource.h>

#include "buf.h"
#include "lineterm.h"
#include "mem.h"

#include "rowtest.h"
#include "tap.h"

struct test {
	const char *what;
	const char *in;
	size_t n;
	const char *out; /* all rows, LF after each */
	size_t nout;
};

static const struct test line_tests[] = {
	{ "lines, with CR or without", S("a\r\nb\nc"), S("a\nb\nc\n") },
	{ "nothing is no row", S(""), S("") },
	{ "LF ends rows that are empty too", S("\n\r\na\n\n"), S("\n\na\n\n") },
	{ "blanks and TABs written stay", S("a  \r\n\tb\tc\t\n"),
	    S("a  \n\tb\tc\t\n") },
	{ "CR alone changes nothing", S("abc\rdef\r\r\n"), S("def\n") },
	{ "CR at the end changes nothing", S("abc\r"), S("abc\n") },
	{ "CR writes over", S("10%\r50%\r100%\nabc\rX\n"), S("100%\nXbc\n") },
	{ "blanks written over text wipe it out",
	    S("Loading ...\rDone       \nabc\r     \n"), S("Done\n\n") },
	{ "erase to the end", S("abc\rHello\033[K\nabcdef\033[3D\033[K!\n"),
	    S("Hello\nabc!\n") },
	{ "erase to the start", S("abcdef\033[3D\033[1Kx\n"), S("   xef\n") },
	{ "erase all", S("abc\033[2Kd\nabc\r\033[2Kd\n"), S("   d\nd\n") },
	{ "an erased line begins anew", S("abc\r\033[Kd  \nabc\r\033[K"),
	    S("d  \n") },
	{ "backspace", S("abc\b\bX\nN\bNO\bO\n\b\bx\n"), S("aXc\nNO\nx\n") },
	{ "cursor right and left", S("a\033[3Cb\033[2Dc\nab\033[C\n"),
	    S("a  cb\nab\n") },
	{ "cursor to a column", S("abc\033[Gx\033[5Gy\nabc\033[2`z\n"),
	    S("xbc y\nazc\n") },
	{ "the window bounds moves to the right", S("ab\033[999Cz\n"),
	    S("ab        z\n") },
	{ "not so when the line is longer",
	    S("0123456789abcdefghij\033[5D\033[999Cz\n"),
	    S("0123456789abcdefghijz\n") },
	{ "insert", S("abc\r\033[2@xy\nabc\r\033[C\033[@\n"),
	    S("xyabc\na bc\n") },
	{ "delete", S("abcdef\r\033[2P\nabc\r\033[C\033[9P\n"),
	    S("cdef\na\n") },
	{ "erase characters", S("abcdef\r\033[2X\nabc\r\033[C\033[9X\n"),
	    S("  cdef\na\n") },
	{ "repeat", S("ab\033[3b\na\r\033[C-\033[4b\n"), S("abbbb\na-----\n") },
	{ "tabs forth and back", S("a\033[Ib\033[2Zc\n"), S("c       b\n") },
	{ "a TAB over text moves, behind it stays",
	    S("abcdefghij\r\tX\nabc\r\tX\nabc\rx\033[2C\tY\n"),
	    S("abcdefghXj\nabc     X\nxbc\tY\n") },
	{ "a TAB written over becomes blanks", S("a\tb\r\033[2CX\n"),
	    S("a X     b\n") },
	{ "colours leave nothing",
	    S("\033[0m\033[01;34mdir\033[0m \033[38;2;1;2;3;48:5:9mx\033[m\n"),
	    S("dir x\n") },
	{ "colours that grep writes", S("a\033[01;31m\033[Kb\033[m\033[Kc\n"),
	    S("abc\n") },
	{ "titles and links leave nothing",
	    S("\033]0;t\007a\033]8;;u\033\\b\033]8;;\033\\c\n"), S("abc\n") },
	{ "LF ends a title that is not ended", S("a\033]0;t\nb\n"),
	    S("a\nb\n") },
	{ "other strings leave nothing",
	    S("a\033Pq#0~-\n\007x\033\\b\033_G\007x\033\\c\033^p\033\\\033Xs\nd\n"),
	    S("abc\nd\n") },
	{ "ESC ends a sequence and begins one",
	    S("a\033[3\033[31mb\033]x\033[mc"), S("abc\n") },
	{ "CAN and SUB end a sequence", S("a\033[3\030mb\033]x\032c"),
	    S("ambc\n") },
	{ "control characters count within a sequence", S("a\033[3\n1mb\n"),
	    S("a\nb\n") },
	{ "a byte above 0x7f ends a sequence", S("a\033[3\303\251b"),
	    S("a\303\251b\n") },
	{ "a sequence without end", S("a\033[3"), S("a\n") },
	{ "a very long sequence",
	    S("a\033[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;"
	      "26;27;28;29;30;31;32Ab"),
	    S("ab\n") },
	{ "modes and queries leave nothing",
	    S("\033[?25l\033[?2004h\033[>1u\033[=5u\033[<u\033[6n\033[c\033[>c"
	      "\033[?u\033[?1h\033=\033>\033(B\033[2 q\033[4l\033[20t\033[1;2sa\n"),
	    S("a\n") },
	{ "VT and FF end a row, of other control characters nothing is left",
	    S("a\0b\013c\014d\001\007\016\017\177\031e\302\205f\n"),
	    S("ab\nc\ndef\n") },
	{ "what is not UTF-8",
	    S("\377a\303(\342\202b\355\240\200\300\200\360\237\230\033[mc\364"
	      "\220\342\202\n\342\202"),
	    S("\357\277\275a\357\277\275(\357\277\275b\357\277\275\357\277\275"
	      "\357\277\275\357\277\275\357\277\275\357\277\275c\357\277\275"
	      "\357\277\275\357\277\275\n\357\277\275\n") },
	{ "UTF-8 of each length",
	    S("\302\240\337\277\340\240\200\357\277\277"
	      "\360\220\200\200\364\217\277\277\n"),
	    S("\302\240\337\277\340\240\200\357\277\277\360\220\200\200"
	      "\364\217\277\277\n") },
	{ "half a wide character written over is blank",
	    S("\346\274\242\345\255\227\rX\n\346\274\242\345\255\227\r\033[CX\n"
	      "ab\b\346\274\242\bY\n"),
	    S("X \345\255\227\n X\345\255\227\na Y\n") },
	{ "a wide character over two", S("a\346\274\242b\r\345\255\227\n"),
	    S("\345\255\227 b\n") },
	{ "marks go with their characters",
	    S("e\314\201a\rx\na\314\201bc\r\033[2CX\nabc\rx\314\201\n"
	      "\360\237\221\215\360\237\217\275 ok\r\033[5C!\n"),
	    S("xa\na\314\201bX\nx\314\201bc\n"
	      "\360\237\221\215\360\237\217\275 !k\n") },
	{ "two marks at most, where it was written over",
	    S("a\314\201\314\202\314\203b\r\033[Cc\n"),
	    S("a\314\201\314\202c\n") },
	{ "many marks in a line that only grew",
	    S("\314\201a\314\201\314\202\314\203\314\204b\n"),
	    S("\314\201a\314\201\314\202\314\203\314\204b\n") },
	{ "pip",
	    S("Collecting x\r\n  Downloading x.whl (10 kB)\r\n\033[?25l     "
	      "\033[90m\342\224\201\342\224\201\033[0m \033[32m1/2 kB\033[0m"
	      "\r\033[2K     \033[90m\342\224\201\342\224\201\033[0m 2/2 kB\r\n"
	      "\033[?25hInstalled\r\n"),
	    S("Collecting x\n  Downloading x.whl (10 kB)\n     "
	      "\342\224\201\342\224\201 2/2 kB\nInstalled\n") },
	{ "cargo",
	    S("\033[32m   Compiling\033[0m a\r\n"
	      "\033[36m    Building\033[0m [=>     ] 1/3: a     \r\033[K"
	      "\033[32m   Compiling\033[0m b\r\n"
	      "\033[36m    Building\033[0m [====>  ] 2/3: b     \r\033[K"
	      "\033[32m    Finished\033[0m dev\r\n"),
	    S("   Compiling a\n   Compiling b\n    Finished dev\n") },
	{ "npm",
	    S("\033[1G\033[0K\342\240\231\033[1G\033[0K\342\240\271\033[1G\033[0K"
	      "\r\nadded 9 packages in 1s\r\n\033[1G\033[0K\342\240\231\033[1G"
	      "\033[0K"),
	    S("\nadded 9 packages in 1s\n") },
	{ "curl", S("  %  Total\r\n\r  0   100    0\r100   100  100\r\n"),
	    S("  %  Total\n100   100  100\n") },
	{ "readline edits a line",
	    S("$ echo hello\b\b\b\b\b\033[1@x\b\b\033[2Py\r\n"),
	    S("$ echoyello\n") },
};

static const struct test raw_tests[] = {
	{ "raw: lines, one CR each", S("a\r\nb\nc\r\r\n\n\r\nd"),
	    S("a\nb\nc\r\n\n\nd\n") },
	{ "raw: a last row of one CR", S("a\n\r"), S("a\n\n") },
	{ "raw: nothing is no row", S(""), S("") },
	{ "raw: all else stays",
	    S("10%\r20%\033[K\033]0;t\007\0\b\tx\177\302\205\016\n"),
	    S("10%\r20%\033[K\033]0;t\007\0\b\tx\177\302\205\016\n") },
	{ "raw: what is not UTF-8", S("\377a\303(\342\202b\r\n\360\237\230"),
	    S("\357\277\275a\357\277\275(\357\277\275b\n\357\277\275\n") },
};

/* Feeds as much as is taken; a sequence that needs a screen is left out. */
static void
feed(struct lineterm *l, const char *p, size_t n)
{
	size_t at;

	for (at = 0; at < n;)
		at += lineterm_feed(l, p + at, n - at);
}

static bool
gives(const struct test *t, bool raw, size_t first, size_t step)
{
	struct buf out = BUF_INIT;
	struct lineterm *l;
	size_t at, k;
	bool good;

	l = lineterm_new(raw, 4, 11, collect, &out);
	feed(l, t->in, first);
	for (at = first; at < t->n; at += k) {
		k = t->n - at < step ? t->n - at : step;
		feed(l, t->in + at, k);
	}
	lineterm_end(l);
	lineterm_free(l);
	good = is(&out, t->out, t->nout, t->what);
	if (!good)
		printf("# first %zu, then %zu\n", first, step);
	buf_release(&out);
	return good;
}

static void
try(const struct test *t, bool raw)
{
	size_t i;
	bool good;

	good = gives(t, raw, 0, t->n);
	for (i = 1; i < t->n && good; i++)
		good = gives(t, raw, i, t->n);
	if (good)
		good = gives(t, raw, 0, 1);
	ok(good, t->what);
}

/* Rows of what is fed, with those still live in another buffer. */
static void
both(bool raw, int h, int w, const char *p, size_t n, struct buf *final,
    struct buf *live)
{
	struct lineterm *l;

	l = lineterm_new(raw, h, w, collect, final);
	feed(l, p, n);
	lineterm_live(l, collect, live);
	lineterm_free(l);
}

static void
live_rows(void)
{
	struct buf final = BUF_INIT, live = BUF_INIT;
	bool good;

	both(false, 3, 10, S("a\r\nb\r\nc\r\nd\r\n"), &final, &live);
	good =
	    is(&final, S("a\nb\n"), "final") && is(&live, S("c\nd\n"), "live");
	ok(good, "rows are final when they have left the window");
	buf_cut(&final, 0);
	buf_cut(&live, 0);
	both(false, 3, 10, S("a\r\n0123456789abcdefghij\r\nb\rc"), &final,
	    &live);
	good = is(&final, S("a\n"), "final") &&
	    is(&live, S("0123456789abcdefghij\nc\n"), "live");
	ok(good, "a long line takes as many rows of the window");
	buf_cut(&final, 0);
	buf_cut(&live, 0);
	both(false, 1, 10, S("a\r\nb\r\nc"), &final, &live);
	good = is(&final, S("a\nb\n"), "final") && is(&live, S("c\n"), "live");
	ok(good, "a window of one row");
	buf_cut(&final, 0);
	buf_cut(&live, 0);
	both(true, 3, 10, S("a\r\nb\r\nc\r"), &final, &live);
	good = is(&final, S("a\nb\n"), "final") && is(&live, S("c\n"), "live");
	ok(good, "raw: all but the row begun is final");
	buf_release(&final);
	buf_release(&live);
}

static void
resized(void)
{
	struct buf final = BUF_INIT;
	struct lineterm *l;

	l = lineterm_new(false, 5, 10, collect, &final);
	feed(l, S("a\r\nb\r\nc\r\nd"));
	lineterm_resize(l, 2, 10);
	ok(is(&final, S("a\nb\n"), "final"),
	    "what a smaller window does not show is final");
	lineterm_free(l);
	buf_release(&final);
}

static void
stops(void)
{
	static const char *const seq[] = { "[A", "[2B", "[E", "[F", "[H",
		"[1;2H", "[J", "[2J", "[?J", "[L", "[M", "[S", "[T", "[3d",
		"[e", "[f", "[2;5r", "[r", "[s", "[u", "[4h", "[20h", "[?6h",
		"[?47h", "[?1047l", "[?1;1049h", "[?1048h", "[!p", "7", "8",
		"D", "E", "M", "c", "(0", ")0" };
	struct buf out = BUF_INIT;
	const struct seq *q;
	struct lineterm *l;
	size_t i, n, took;
	bool good = true;
	char in[64];

	for (i = 0; i < sizeof seq / sizeof seq[0]; i++) {
		l = lineterm_new(false, 4, 11, collect, &out);
		(void)snprintf(in, sizeof in, "a\033%sb", seq[i]);
		n = strlen(in);
		took = lineterm_feed(l, in, n);
		q = lineterm_stuck(l);
		if (took != n - 1 || q == NULL || q->n != strlen(seq[i]) ||
		    memcmp(q->byte, seq[i], q->n) != 0) {
			printf("# %s: took %zu\n", seq[i], took);
			good = false;
		}
		(void)lineterm_feed(l, in + took, n - took);
		if (lineterm_stuck(l) != NULL)
			good = false;
		buf_cut(&out, 0);
		lineterm_end(l);
		if (!is(&out, S("ab\n"), seq[i]))
			good = false;
		buf_cut(&out, 0);
		lineterm_free(l);
	}
	ok(good, "it stops at each sequence that needs a screen");
	buf_release(&out);
}

/* Lengths of rows and how they end. */
struct lengths {
	size_t n[16];
	unsigned flags[16];
	size_t rows, sum;
};

static void
measure(const char *text, size_t n, unsigned flags, void *arg)
{
	struct lengths *v = arg;

	(void)text;
	if (v->rows < 16) {
		v->n[v->rows] = n;
		v->flags[v->rows] = flags;
	}
	v->rows++;
	v->sum += n;
}

/* A line of n times piece, and LF, in pieces of a length. */
static struct lengths
long_line(bool raw, const char *piece, size_t n, const char *end, size_t step)
{
	struct lengths v = { .rows = 0 };
	struct buf in = BUF_INIT;
	struct lineterm *l;
	size_t at, k;

	while (n-- > 0)
		buf_adds(&in, piece);
	buf_adds(&in, end);
	l = lineterm_new(raw, 24, 80, measure, &v);
	for (at = 0; at < in.len; at += k) {
		k = in.len - at < step ? in.len - at : step;
		feed(l, in.data + at, k);
	}
	lineterm_end(l);
	lineterm_free(l);
	buf_release(&in);
	return v;
}

static void
limits(void)
{
	struct lengths v, again;

	v = long_line(false, "x", ROW_BYTES_MAX, "\r\n", 65536);
	ok(v.rows == 1 && v.sum == ROW_BYTES_MAX && v.flags[0] == 0,
	    "a line of a MiB is one row");
	v = long_line(false, "x", 3 * ROW_BYTES_MAX + 5, "\r\n", 4096);
	ok(v.rows == 4 && v.n[0] == ROW_BYTES_MAX && v.n[3] == 5 &&
		v.flags[2] == ROW_WRAPPED && v.flags[3] == 0,
	    "a longer line is several rows, wrapped");
	v = long_line(true, "x", 3 * ROW_BYTES_MAX + 5, "\r\n", 4096);
	ok(v.rows == 4 && v.n[0] == ROW_BYTES_MAX && v.n[3] == 5 &&
		v.flags[2] == ROW_WRAPPED && v.flags[3] == 0,
	    "raw: a longer line is several rows, wrapped");
	v = long_line(false, "\342\202\254", ROW_BYTES_MAX, "\n", 1000);
	again = long_line(false, "\342\202\254", ROW_BYTES_MAX, "\n", 65536);
	ok(v.rows == 4 && v.n[0] == ROW_BYTES_MAX / 3 * 3 &&
		v.sum == 3 * ROW_BYTES_MAX && memcmp(&v, &again, sizeof v) == 0,
	    "characters stay whole");
	v = long_line(false, "x", 60000, "\rabc\033[K\n", 65536);
	ok(v.rows == 1 && v.sum == 3,
	    "a line of 60000 columns may be written over");
	v = long_line(false, "x", 100000, "\rabc\033[K\n", 65536);
	again = long_line(false, "x", 100000, "\rabc\033[K\n", 777);
	ok(v.rows == 2 && v.flags[0] == ROW_WRAPPED &&
		v.n[0] == 100000 - LINETERM_CELLS_MAX / 8 && v.n[1] == 3 &&
		memcmp(&v, &again, sizeof v) == 0,
	    "of a longer one its last part");
	v = long_line(false, "\t", ROW_BYTES_MAX / 2, "\rx\n", 65536);
	again = long_line(false, "\t", ROW_BYTES_MAX / 2, "\rx\n", 777);
	ok(v.rows == 2 &&
		v.n[0] == ROW_BYTES_MAX / 2 - LINETERM_CELLS_MAX / 8 &&
		memcmp(&v, &again, sizeof v) == 0,
	    "also of one of TABs");
	v = long_line(false, "x\b\033[C", 1100000, "\n", 65536);
	again = long_line(false, "x\b\033[C", 1100000, "\n", 777);
	ok(v.rows > 1100000 / LINETERM_CELLS_MAX && v.rows < 40 &&
		v.sum == 1100000 && v.flags[0] == ROW_WRAPPED &&
		memcmp(&v, &again, sizeof v) == 0,
	    "and nothing is lost of one that never ends");
}

#ifndef __SANITIZE_ADDRESS__ /* it keeps memory that was freed */
static void
bounded(void)
{
	static const char *const pieces[] = { "x", "x\b",
		"\342\202\254\314\201", "\t", "\033]", "\033[1", "\n" };
	struct lengths v = { .rows = 0 };
	struct rusage before, after;
	struct lineterm *l;
	char piece[8192];
	size_t i, k, n;
	bool good = true;

	for (i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		n = strlen(pieces[i]);
		for (k = 0; k + n <= sizeof piece; k += n)
			memcpy(piece + k, pieces[i], n);
		n = k;
		(void)getrusage(RUSAGE_SELF, &before);
		l = lineterm_new(false, 1000, 80, measure, &v);
		for (k = 0; k < 8192; k++)
			feed(l, piece, n);
		lineterm_end(l);
		lineterm_free(l);
		(void)getrusage(RUSAGE_SELF, &after);
		if (after.ru_maxrss - before.ru_maxrss < 10240)
			continue;
		good = false;
		show("piece", pieces[i], strlen(pieces[i]));
		printf("# %ld KiB\n", after.ru_maxrss - before.ru_maxrss);
	}
	ok(good, "a line without end eats no memory");
}
#endif

int
main(void)
{
	size_t i;

	for (i = 0; i < sizeof line_tests / sizeof line_tests[0]; i++)
		try(&line_tests[i], false);
	for (i = 0; i < sizeof raw_tests / sizeof raw_tests[0]; i++)
		try(&raw_tests[i], true);
	live_rows();
	resized();
	stops();
#ifndef __SANITIZE_ADDRESS__
	bounded();
#endif
	limits();
	return done();
}
