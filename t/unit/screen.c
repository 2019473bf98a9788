/* SPDX-License-Identifier: MIT */
/*
 * Both models together. Tables of inputs, rows and live rows, where each input
 * whole, split at each byte, and byte by byte gives the same; what programs
 * that use the whole window write, by hand; the two models against each other;
 * and chance: any bytes, any splits, any sizes.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <vterm.h>

#include "buf.h"
#include "num.h"
#include "screen.h"
#include "vt.h"

#include "rowtest.h"
#include "tap.h"

struct test {
	const char *what;
	unsigned how;
	int h, w;
	const char *in;
	size_t n;
	const char *live; /* before the end; NULL: not looked at */
	size_t nlive;
	const char *out; /* all rows after the end */
	size_t nout;
};

#define NOT_LIVE NULL, 0

static const struct test tests[] = {
	{ "progress, colours and cursor up", 0, 24, 80,
	    S("10%\r50%\r100%\nabc\rHello\033[K\n\033[31mred\033[0m\n"
	      "\033[2A\rHe\033[2B\r"),
	    S("100%\nHello\nred\n"), S("100%\nHello\nred\n") },
	{ "lines written before are redrawn in place", 0, 24, 80,
	    S("a 1%\r\nb 1%\r\n\033[2A\r\033[2Ka 100%\033[1B\r\033[2Kb 100%"
	      "\033[1B\rdone\r\n"),
	    S("a 100%\nb 100%\ndone\n"), S("a 100%\nb 100%\ndone\n") },
	{ "and when they have come to the bottom of the window", 0, 4, 20,
	    S("1\r\n2\r\n3\r\n4\r\n5\r\n\033[2A4x\r\n5x\r\n"), S("3\n4x\n5x\n"),
	    S("1\n2\n3\n4x\n5x\n") },
	{ "the cursor does not go above the window", 0, 3, 20,
	    S("1\r\n2\r\n3\r\n4\r\n\033[9Ax\r\n"), S("x\n4\n"),
	    S("1\n2\nx\n4\n") },
	{ "rows are final when they leave at the top", 0, 3, 20,
	    S("\033[H1\r\n2\r\n3\r\n4"), S("2\n3\n4\n"), S("1\n2\n3\n4\n") },
	{ "what is erased is gone", 0, 5, 20, S("a\r\nb\r\n\033[H\033[2Jc\r\n"),
	    S("c\n"), S("c\n") },
	{ "erase below and above", 0, 5, 20,
	    S("a1\r\nb2\r\nc3\033[2;2H\033[J\033[H\r\nxy\033[2;1H\033[1J"),
	    S("\n y\n"), S("\n y\n") },
	{ "empty rows at the bottom are no rows", 0, 9, 20,
	    S("\033[2J\033[Ha\033[8;1H"), S("a\n"), S("a\n") },
	{ "but those that LF ended are", 0, 9, 20,
	    S("\033[2J\033[Ha\r\n\r\n\r\n"), S("a\n\n\n"), S("a\n\n\n") },
	{ "a line that the window broke is one row", 0, 5, 10,
	    S("\033[H0123456789abcdefghijKLM\r\nx"),
	    S("0123456789abcdefghijKLM\nx\n"),
	    S("0123456789abcdefghijKLM\nx\n") },
	{ "also when part of it has left", 0, 3, 10,
	    S("\033[Ha\r\n0123456789abcdefghijKLMNOPQRSTuvw\r\nx\r\n"),
	    S("0123456789abcdefghijKLMNOPQRSTuvw\nx\n"),
	    S("a\n0123456789abcdefghijKLMNOPQRSTuvw\nx\n") },
	{ "a full line and LF is one row", 0, 3, 5,
	    S("\033[H12345\r\n67890\r\nab\r\n"), NOT_LIVE,
	    S("12345\n67890\nab\n") },
	{ "a line broken in a window of one row", 0, 1, 5,
	    S("\033[H12345678\r\nx"), S("x\n"), S("12345678\nx\n") },
	{ "a wide character that does not fit", 0, 4, 5,
	    S("\033[Habcd\346\274\242e\r\n"), NOT_LIVE,
	    S("abcd\346\274\242e\n") },
	{ "a line broken and erased at its end is two rows", 0, 4, 5,
	    S("\033[Habcdefg\033[A\033[4G\033[K\033[Bx\r\n"), NOT_LIVE,
	    S("abc\nfg x\n") },
	{ "a line of before is as long in the window", 0, 4, 10,
	    S("0123456789abcde\033[A\033[2GX\r\n\r\n"), NOT_LIVE,
	    S("0X23456789abcde\n") },
	{ "CR returns to the row of the window", 0, 4, 10,
	    S("\033[H0123456789abc\rX\r\n"), NOT_LIVE, S("0123456789Xbc\n") },
	{ "after a whole window the line model goes on", 0, 3, 10,
	    S("\033[H1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n0123456789abc\rX\r\n"),
	    S("X123456789abc\n"), S("1\n2\n3\n4\n5\n6\nX123456789abc\n") },
	{ "with the rows shown, broken ones too", 0, 3, 5,
	    S("\033[H1\r\n2\r\n3\r\n4\r\nabcdefg\r\n\033[2Ax\r\n\r\n"),
	    NOT_LIVE, S("1\n2\n3\n4\nxbcdefg\n") },
	{ "TABs stay TABs", 0, 4, 40, S("\033[H\ta\tb\r\nx\ty\t\r\n"), NOT_LIVE,
	    S("\ta\tb\nx\ty\t\n") },
	{ "a TAB written over becomes blanks", 0, 4, 40,
	    S("\033[Ha\tb\r\033[2CX\r\n"), NOT_LIVE, S("a X     b\n") },
	{ "blanks written stay, those that wiped text out do not", 0, 4, 40,
	    S("\033[Ha  \r\nabcdef\rxyz   \r\n"), NOT_LIVE, S("a  \nxyz\n") },
	{ "marks and wide characters", 0, 4, 40,
	    S("\033[He\314\201a\346\274\242\345\255\227\033[3GX\r\n"
	      "a\314\201\314\202\314\203b\r\n"),
	    NOT_LIVE, S("e\314\201aX \345\255\227\na\314\201\314\202b\n") },
	{ "what is not UTF-8", 0, 4, 40,
	    S("\033[H\377a\303(\342\202b\355\240\200\302\205\342\202"),
	    S("\357\277\275a\357\277\275(\357\277\275b\357\277\275\357\277\275"
	      "\357\277\275\n"),
	    S("\357\277\275a\357\277\275(\357\277\275b\357\277\275\357\277\275"
	      "\357\277\275\357\277\275\n") },
	{ "line drawing", 0, 4, 40,
	    S("\033(0lqk\033(B\r\n\033)0\016x\017 \303\251q\r\n"
	      "\033(0\303\251q\033(B"),
	    NOT_LIVE,
	    S("\342\224\214\342\224\200\342\224\220\n\342\224\202 \303\251q\n"
	      "\303\251\342\224\200\n") },
	{ "insert mode, and insert and delete", 0, 4, 20,
	    S("abc\r\033[4hxy\033[4lz\r\n\033[Habcdef\033[3D\033[2P\033[2@\r\n"
	      "\r\n"),
	    NOT_LIVE, S("abc  f\n\n") },
	{ "insert and delete rows", 0, 4, 20,
	    S("1\r\n2\r\n3\r\n4\033[2;1H\033[Lx\033[4;1H\033[My"), NOT_LIVE,
	    S("1\nx\n2\ny\n") },
	{ "deleted rows are gone, also at the top", 0, 3, 20,
	    S("1\r\n2\r\n3\033[H\033[M"), NOT_LIVE, S("2\n3\n") },
	{ "rows scrolled out are final", 0, 3, 20,
	    S("1\r\n2\r\n3\033[2S\033[1;1Hx"), S("x\n"), S("1\n2\nx\n") },
	{ "scrolling down", 0, 3, 20, S("1\r\n2\r\n3\033[H\033[Mx\033[H\033M0"),
	    NOT_LIVE, S("0\nx\n3\n") },
	{ "save and restore the cursor", 0, 4, 20,
	    S("ab\0337\r\nx\0338c\033[s\033[H0\033[ud\r\n"), NOT_LIVE,
	    S("0bcd\nx\n") },
	{ "repeat, columns and rows by number", 0, 4, 20,
	    S("\033[Ha\033[3b\033[3d\033[4Gx\033[2;2Hy\033[3;1fz"), NOT_LIVE,
	    S("aaaa\n y\nz  x\n") },
	{ "next and previous line", 0, 4, 20,
	    S("\033[2;3Ha\033[Eb\033[2Fc\033D\033Ed"), NOT_LIVE,
	    S("c\n  a\nd\n") },
	{ "full reset", 0, 4, 20, S("a\r\n\033[?1049hb\033cc\r\n"), S("c\n"),
	    S("c\n") },
	{ "soft reset", 0, 4, 20,
	    S("1\r\n2\r\n3\r\n\033[2;3r\033[4h\033[?6h\033[!pxy\rz\r\n"),
	    NOT_LIVE, S("1\nzy\n3\n") },
	{ "no wrapping", 0, 4, 5,
	    S("\033[?7labcd\033[H1234567\r\n\033[?7h1234567"), NOT_LIVE,
	    S("12347\n1234567\n") },
	{ "a very long and a strange sequence", 0, 4, 20,
	    S("\033[H\033[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1Ha"
	      "\033[99999999999999999999Cb\033[0;0Hc\033[;Hd\033[99999;99999He"),
	    NOT_LIVE, S("d                  b\n\n\n                   e\n") },
	{ "LF in a pipe returns to the first column", SCREEN_PIPE, 4, 20,
	    S("ab\ncd\n\033[2Ax\ny\n"), S("xb\nyd\n"), S("xb\nyd\n") },
	{ "on a terminal it does not", 0, 4, 20, S("\033[Hab\nc"), NOT_LIVE,
	    S("ab\n  c\n") },
	{ "raw", SCREEN_RAW, 4, 20, S("a\r\n\033[2Ab\r\nc\r"), S("c\n"),
	    S("a\n\033[2Ab\nc\n") },
	{ "a window of one cell", 0, 1, 1,
	    S("\033[Hab\346\274\242\tc\033[2@\r\n\r\n"), NOT_LIVE,
	    S("ab\346\274\242\n\n") },

	{ "alternate screen: live only", 0, 4, 20,
	    S("before\r\n\033[?1049h\033[H\033[2J1\r\n2\r\n3\r\n4\r\n5"),
	    S("2\n3\n4\n5\n"), S("before\n") },
	{ "alternate screen: and then it goes on", 0, 4, 20,
	    S("before\r\n\033[?1049h\033[Hx\033[3;3Hy\033[?1049lafter\r\n"),
	    S("before\nafter\n"), S("before\nafter\n") },
	{ "alternate screen: a row that goes on in the next", 0, 4, 5,
	    S("\033[?47h\033[Habcdefg"), S("abcde\\\nfg\n"), S("") },
	{ "vim", 0, 5, 20,
	    S("$ vim f\r\n\033[?1049h\033[22;0;0t\033[>4;2m\033[?1h\033="
	      "\033[?2004h\033[1;5r\033[?12h\033[?12l\033[22;2t\033[22;1t"
	      "\033[27m\033[23m\033[29m\033[m\033[H\033[2J\033[?25l\033[5;1H"
	      "\"f\" 2L, 8B\033[1;1Hone\r\ntwo\r\n\033[94m~                   "
	      "\033[4;1H~                   \033[m\033[1;1H\033[?25h"
	      "\033[?25l\033[5;1H\033[K\033[5;1H:\033[?25h"),
	    S("one\ntwo\n~\n~\n:\n"), S("$ vim f\n") },
	{ "vim, ended", 0, 5, 20,
	    S("$ vim f\r\n\033[?1049h\033[22;0;0t\033[1;5r\033[H\033[2Jone\r\n"
	      "two\r\n\033[94m~\033[5;1H\033[m:q\r\n\033[5;1H\033[K\033[5;1H"
	      "\033[?2004l\033[>4;m\033[23;2t\033[23;1t\033[?1l\033>"
	      "\033[?1049l\033[23;0;0t\033[?25h$ \r\n"),
	    S("$ vim f\n$ \n"), S("$ vim f\n$ \n") },
	{ "less", 0, 4, 20,
	    S("$ less f\r\n\033[?1049h\033[22;0;0t\033[?1h\033=\r1\r\n2\r\n3\r\n"
	      "\033[7mf\033[27m\033[K\r\033[K4\r\n:\033[K\r\033[K5\r\n:\033[K"),
	    S("3\n4\n5\n:\n"), S("$ less f\n") },
	{ "less, ended", 0, 4, 20,
	    S("$ less f\r\n\033[?1049h\033[22;0;0t\033[?1h\033=\r1\r\n2\r\n3\r\n"
	      ":\033[K\r\033[K\033[?1l\033>\033[?1049l\033[23;0;0t$ ls\r\n"),
	    S("$ less f\n$ ls\n"), S("$ less f\n$ ls\n") },
	{ "top without an alternate screen", 0, 6, 30,
	    S("\033[?1h\033=\033[H\033[J\033[mtop - 10:00\033[m\033[39;49m"
	      "\033[m\033[39;49m\033[K\r\nTasks: \033[1m9\033[m total\033[K\r\n"
	      "\033[K\r\n\033[7m  PID COMMAND     \033[m\033[39;49m\033[K\r\n"
	      "\033[m    1 init      \033[m\033[39;49m\033[K\r\n    2 ps\033[K"
	      "\033[H\033[mtop - 10:03\033[m\033[K\r\n"
	      "Tasks: \033[1m8\033[m total\033[K\r\n\033[K\r\n\r\n    2 sh\033[K"
	      "\033[J\033[?1l\033>\033[6;1H\r\n\033[K"),
	    NOT_LIVE,
	    S("top - 10:03\nTasks: 8 total\n\n  PID COMMAND     \n"
	      "    2 sh\n\n") },
	{ "apt: a scroll region above a progress bar", 0, 5, 20,
	    S("Setting up\r\n\n\0337\033[0;4r\0338\033[1A\0337\033[5;0f\033[42mProgress: "
	      "[ 10%]\033[49m\0338a\r\nb\r\nc\r\nd\r\n\0337\033[5;0fProgress: [ 90%]"
	      "\0338e\r\n\0337\033[0;5r\0338\0337\033[5;0f\033[K\0338ok\r\n"),
	    NOT_LIVE, S("Setting up\na\nb\nc\nd\ne\nok\n") },
	{ "docker: several bars, each moved to and back", 0, 6, 40,
	    S("aa: Pulling\r\nbb: Pulling\r\n\033[2A\033[2K\raa: Downloading  5MB"
	      "\r\033[2B\033[1A\033[2K\rbb: Waiting\r\033[1B\033[2A\033[2K\r"
	      "aa: Pull complete\r\033[2B\033[1A\033[2K\rbb: Pull complete\r\033[1B"
	      "Digest: x\r\n"),
	    NOT_LIVE, S("aa: Pull complete\nbb: Pull complete\nDigest: x\n") },
	{ "a menu drawn again and again", 0, 6, 30,
	    S("? Pick\r\n> a\r\n  b\r\n\033[3A\033[J? Pick\r\n  a\r\n> b\r\n"
	      "\033[3A\033[0J? Pick \033[36mb\033[0m\r\n"),
	    NOT_LIVE, S("? Pick b\n") },
	{ "clear", 0, 4, 20, S("a\r\nb\r\n\033[H\033[2J\033[3Jc\r\n"), S("c\n"),
	    S("c\n") },
};

static void
run(const struct test *t, size_t first, size_t step, struct buf *out,
    struct buf *live)
{
	struct screen *s;
	size_t at, k;

	s = screen_new(t->how, t->h, t->w, collect, out);
	screen_feed(s, t->in, first);
	for (at = first; at < t->n; at += k) {
		k = t->n - at < step ? t->n - at : step;
		screen_feed(s, t->in + at, k);
	}
	screen_live(s, collect, live);
	screen_end(s);
	screen_free(s);
}

static bool
gives(const struct test *t, size_t first, size_t step)
{
	struct buf out = BUF_INIT, live = BUF_INIT;
	bool good;

	run(t, first, step, &out, &live);
	good = is(&out, t->out, t->nout, t->what);
	if (t->live != NULL)
		good &= is(&live, t->live, t->nlive, "live");
	if (!good)
		printf("# first %zu, then %zu\n", first, step);
	buf_release(&out);
	buf_release(&live);
	return good;
}

static void
try(const struct test *t)
{
	size_t i;
	bool good;

	good = gives(t, 0, t->n);
	for (i = 1; i < t->n && good; i++)
		good = gives(t, i, t->n);
	if (good)
		good = gives(t, 0, 1);
	ok(good, t->what);
}

/* --- Sizes. --- */

struct change {
	const char *what;
	int h, w;
	const char *in;
	size_t n;
	int h2, w2;
	const char *more;
	size_t nmore;
	const char *live;
	size_t nlive;
	const char *out;
	size_t nout;
};

static const struct change changes[] = {
	{ "narrower: broken lines stay one row", 5, 20,
	    S("\033[H0123456789abcdefghijKL\r\nxy\r\nz"), 5, 8, S("!\r\n"),
	    S("0123456789abcdefghijKL\nxy\nz!\n"),
	    S("0123456789abcdefghijKL\nxy\nz!\n") },
	{ "wider: and get together again", 5, 8,
	    S("\033[H0123456789abcdefghijKL\r\nxy\033[1A\033[1G"), 5, 30,
	    S("\033[2;1H*\r\n"), NOT_LIVE, S("0123456789abcdefghijKL\n*y\n") },
	{ "lower: rows leave at the top", 5, 8, S("\033[H1\r\n2\r\n3\r\n4"), 2,
	    8, S("x"), S("3\n4x\n"), S("1\n2\n3\n4x\n") },
	{ "higher", 2, 8, S("\033[H1\r\n2\r\n3"), 4, 8, S("x\033[Hy"),
	    S("y\n3x\n"), S("1\ny\n3x\n") },
	{ "the alternate screen is cut, the main one is not", 4, 10,
	    S("0123456789ab\r\nx\r\n\033[?1049h\033[H1234567890\r\nb\r\nc\r\nd"),
	    3, 5, S("\033[?1049ly"), S("0123456789ab\nx\ny\n"),
	    S("0123456789ab\nx\ny\n") },
	{ "a saved cursor outside of the window", 9, 40,
	    S("\033[9;40H\0337\033[H"), 2, 5, S("\0338x"), NOT_LIVE,
	    S("\n    x\n") },
	{ "margins outside of the window", 9, 40, S("\033[5;8r\033[8;1Hx"), 3,
	    40, S("\r\ny\r\nz\r\n\033[3;1H\033M"), NOT_LIVE, NULL, 0 },
	{ "in the line model", 5, 20, S("1\r\n2\r\n3\r\n4"), 2, 8,
	    S("x\033[9A0"), S("3 0\n4x\n"), S("1\n2\n3 0\n4x\n") },
	{ "in the line model, after the other", 3, 20,
	    S("\033[H1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7"), 2, 8, S("\033[Hx"),
	    S("x\n7\n"), S("1\n2\n3\n4\n5\nx\n7\n") },
};

static void
resizes(void)
{
	struct buf out = BUF_INIT, live = BUF_INIT;
	const struct change *t;
	struct screen *s;
	size_t i;
	bool good;

	for (i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		t = &changes[i];
		s = screen_new(0, t->h, t->w, collect, &out);
		screen_feed(s, t->in, t->n);
		screen_resize(s, t->h2, t->w2);
		screen_feed(s, t->more, t->nmore);
		screen_live(s, collect, &live);
		screen_end(s);
		screen_free(s);
		good = t->out == NULL || is(&out, t->out, t->nout, t->what);
		if (t->live != NULL)
			good &= is(&live, t->live, t->nlive, "live");
		ok(good, t->what);
		buf_cut(&out, 0);
		buf_cut(&live, 0);
	}
	buf_release(&out);
	buf_release(&live);
}

/* --- Chance. --- */

static const char *const words[] = { "a", "xyz", "Hello, ", "0123456789", " ",
	"  ", "\t", "\303\251", "\346\274\242\345\255\227", "e\314\201",
	"\360\237\230\200", "\033[31m", "\033[0m", "\033]0;title\007", "%" };
static const char *const edits[] = { "\r", "\b", "\b\b", "\033[K", "\033[1K",
	"\033[2K", "\033[C", "\033[3D", "\033[G", "\033[7G", "\033[P",
	"\033[2@", "\033[3X", "\033[2b" };
static const char *const screens[] = { "\033[A", "\033[3B", "\033[H",
	"\033[2;5H", "\033[J", "\033[1J", "\033[2J", "\033[L", "\033[2M",
	"\033[S", "\033[2T", "\033[2;4r", "\033[r", "\033[?6h", "\033[?6l",
	"\033[?7l", "\033[?7h", "\033[4h", "\033[4l", "\033[?1049h",
	"\033[?1049l", "\033[?47h", "\033[?47l", "\0337", "\0338", "\033[s",
	"\033[u", "\033M", "\033D", "\033E", "\033c", "\033[!p", "\033(0",
	"\033(B", "\016", "\017", "\033H", "\033[3g", "\033[5;70H",
	"\033[999;999H", "\033[2147483648A", "\033[0;0r", "\033[9b", "\033#8",
	"\033[?69h", "\033[3;9s", "\033[E", "\033[2F", "\033[d", "\n", "\r\n",
	"\r\n", "\r\n", "\r\n", "\v", "\f" };

#define ONE_OF(list) list[chance(sizeof list / sizeof list[0])]

/* Lines of text, also written over; or plain ones, without TAB. */
static void
some_lines(struct buf *out, const char *mark, unsigned nlines, bool plain)
{
	const char *word;
	unsigned n, i;

	while (nlines-- > 0) {
		buf_adds(out, mark);
		n = chance(8);
		for (i = 0; i < n; i++) {
			word = !plain && chance(3) == 0 ? ONE_OF(edits)
							: ONE_OF(words);
			if (!plain || word[0] != '\t')
				buf_adds(out, word);
		}
		buf_adds(out, "\r\n");
	}
}

static void
anything(struct buf *out, unsigned n)
{
	while (n-- > 0)
		switch (chance(10)) {
		case 0:
			buf_addc(out, (char)chance(256));
			break;
		case 1:
		case 2:
		case 3:
			buf_adds(out, ONE_OF(screens));
			break;
		case 4:
		case 5:
			buf_adds(out, ONE_OF(edits));
			break;
		case 6:
			buf_addf(out, "\033[%u;%u%c", chance(40), chance(90),
			    (char)('@' + chance(63)));
			break;
		default:
			buf_adds(out, ONE_OF(words));
			break;
		}
}

/*
 * The same text in both models, narrower than the window: saving the cursor,
 * which nothing restores, keeps the second on the screen.
 */
static bool
models_agree(unsigned long rounds, bool plain, int w)
{
	struct buf in = BUF_INIT, out[2] = { BUF_INIT, BUF_INIT };
	struct screen *s;
	unsigned long i, seed;
	bool good = true;
	int k, h;

	for (i = 0; i < rounds && good; i++) {
		h = 1 + (int)chance(12);
		for (k = 0; k < 2; k++) {
			seed = chance_state;
			buf_cut(&in, 0);
			some_lines(
			    &in, k == 0 ? "" : "\0337", 1 + i % 30, plain);
			if (k == 0)
				chance_state = seed;
			s = screen_new(0, h, w, collect, &out[k]);
			screen_feed(s, in.data, in.len);
			screen_end(s);
			screen_free(s);
		}
		good = is(&out[1], buf_str(&out[0]), out[0].len, "the screen");
		if (!good)
			show("in", in.data, in.len);
		buf_cut(&out[0], 0);
		buf_cut(&out[1], 0);
	}
	buf_release(&in);
	buf_release(&out[0]);
	buf_release(&out[1]);
	return good;
}

/* A row of libvterm's own screen. */
static int
vt_row(int cols, const VTermScreenCell *c, void *arg)
{
	struct buf b = BUF_INIT;
	int i;

	for (i = 0; i < cols; i++)
		if (c[i].chars[0] == 0)
			buf_addc(&b, ' ');
		else if (c[i].chars[0] != (uint32_t)-1)
			utf8_add(&b, c[i].chars[0]);
	while (b.len > 0 && b.data[b.len - 1] == ' ')
		b.len--;
	collect(buf_str(&b), b.len, 0, arg);
	buf_release(&b);
	return 1;
}

/* Blanks at the end do not count here. */
static void
collect_trimmed(const char *text, size_t n, unsigned flags, void *arg)
{
	while (n > 0 && text[n - 1] == ' ')
		n--;
	collect(text, n, flags, arg);
}

static void
vt_rows(VTermScreen *screen, int h, int w, struct buf *out)
{
	VTermScreenCell c[200];
	VTermPos pos;

	for (pos.row = 0; pos.row < h; pos.row++) {
		for (pos.col = 0; pos.col < w; pos.col++)
			(void)vterm_screen_get_cell(screen, pos, &c[pos.col]);
		(void)vt_row(w, c, out);
	}
	while (out->len > 1 && out->data[out->len - 2] == '\n')
		out->len--;
	if (out->len == 1)
		out->len = 0;
}

/*
 * Our cells and libvterm's own, for what both take alike: no wrapping, no wide
 * characters (it keeps halves), no line drawing. What stands before each LF
 * keeps us on the screen.
 */
static bool
screens_agree(unsigned long rounds)
{
	static const char *const moves[] = { "\033[A", "\033[3B", "\033[2C",
		"\033[4D", "\033[H", "\033[2;5H", "\033[4;60H", "\033[J",
		"\033[1J", "\033[2J", "\033[K", "\033[1K", "\033[2K", "\033[L",
		"\033[2L", "\033[S", "\033[2T", "\033[2;4r", "\033[r",
		"\033[?6h", "\033[?6l", "\033[4h", "\033[4l", "\033[?1049h",
		"\033[?1049l", "\0338", "\033M", "\033D", "\033E", "\033[3P",
		"\033[2@", "\033[4X", "\b", "\r", "\0337\r\n", "\0337\r\n",
		"\0337\n", "\033[3G", "\033[2d", "\033[2E", "\033[F" };
	static const VTermScreenCallbacks callbacks = { .sb_pushline = vt_row };
	static const char *const text[] = { "a", "xyz", "Hello, ", "0123456789",
		" ", "\303\251", "\357\277\275" };
	struct buf in = BUF_INIT, got = BUF_INIT, want = BUF_INIT;
	struct screen *s;
	VTermScreen *screen;
	VTerm *vt;
	unsigned long i;
	unsigned n;
	bool good = true;
	int h;

	for (i = 0; i < rounds && good; i++) {
		h = 2 + (int)chance(12);
		buf_cut(&in, 0);
		buf_adds(&in, "\033[?7l\033[H");
		for (n = chance(150); n > 0; n--)
			buf_adds(
			    &in, chance(2) == 0 ? ONE_OF(moves) : ONE_OF(text));
		vt = vterm_new(h, 100);
		vterm_set_utf8(vt, 1);
		screen = vterm_obtain_screen(vt);
		vterm_screen_enable_altscreen(screen, 1);
		vterm_screen_set_callbacks(screen, &callbacks, &want);
		vterm_screen_reset(screen, 1);
		(void)vterm_input_write(vt, in.data, in.len);
		s = screen_new(0, h, 100, collect_trimmed, &got);
		screen_feed(s, in.data, in.len);
		good = is(&got, buf_str(&want), want.len, "rows that left");
		buf_cut(&want, 0);
		buf_cut(&got, 0);
		vt_rows(screen, h, 100, &want);
		screen_live(s, collect_trimmed, &got);
		while (got.len > 1 && got.data[got.len - 2] == '\n')
			got.len--;
		if (got.len == 1)
			got.len = 0;
		good &= is(&got, buf_str(&want), want.len, "rows shown");
		if (!good)
			show("in", in.data, in.len);
		screen_free(s);
		vterm_free(vt);
		buf_cut(&want, 0);
		buf_cut(&got, 0);
	}
	buf_release(&in);
	buf_release(&got);
	buf_release(&want);
	return good;
}

/* What holds of every row. */
struct rules {
	struct buf *out;
	bool broken;
};

static void
check(const char *text, size_t n, unsigned flags, void *arg)
{
	const unsigned char *p = (const unsigned char *)text;
	struct rules *r = arg;
	size_t at, k;

	for (at = 0; at < n; at += k) {
		k = 1;
		if (p[at] == '\n' || p[at] == 033)
			break;
		if (p[at] >= 0x80) {
			k = utf8_len(p + at, n - at);
			if (k == 0)
				break;
		}
	}
	if (at < n || n > ROW_BYTES_MAX)
		r->broken = true;
	collect(text, n, flags, r->out);
}

struct step {
	size_t at;
	int h, w; /* 0: no change of the size */
};

static bool
play(const struct buf *in, const struct step *step, size_t nsteps, int h, int w,
    unsigned how, struct buf *out)
{
	struct rules r = { out, false };
	struct screen *s;
	size_t i, at = 0;

	s = screen_new(how, h, w, check, &r);
	for (i = 0; i < nsteps; i++) {
		screen_feed(s, in->data + at, step[i].at - at);
		at = step[i].at;
		if (step[i].h > 0)
			screen_resize(s, step[i].h, step[i].w);
	}
	screen_feed(s, in->data + at, in->len - at);
	buf_adds(out, "live\n");
	screen_live(s, check, &r);
	buf_adds(out, "end\n");
	screen_end(s);
	screen_free(s);
	return !r.broken;
}

static int
by_place(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/*
 * Anything, whole and in pieces, with the same changes of size at the same
 * places: the same rows.
 */
static bool
pieces_agree(unsigned long rounds)
{
	struct buf in = BUF_INIT, out[2] = { BUF_INIT, BUF_INIT };
	struct step step[24];
	unsigned long i;
	size_t nsizes, nsteps, k;
	unsigned how;
	int h, w;
	bool good = true;

	for (i = 0; i < rounds && good; i++) {
		buf_cut(&in, 0);
		anything(&in, 1 + chance(200));
		how = chance(4) == 0 ? SCREEN_PIPE : 0;
		h = 1 + (int)chance(12);
		w = 1 + (int)chance(40);
		nsizes = chance(3) == 0 ? 1 + chance(4) : 0;
		nsteps = nsizes + chance(20);
		for (k = 0; k < nsteps; k++) {
			step[k].at = chance((unsigned)in.len + 1);
			step[k].h = k < nsizes ? 1 + (int)chance(12) : 0;
			step[k].w = 1 + (int)chance(40);
		}
		qsort(step, nsizes, sizeof *step, by_place);
		good = play(&in, step, nsizes, h, w, how, &out[0]);
		/* Splits between the changes, none before one at its place. */
		for (k = nsizes; k < nsteps; k++)
			step[k].h = -(int)k;
		qsort(step, nsteps, sizeof *step, by_place);
		good &= play(&in, step, nsteps, h, w, how, &out[1]);
		good &= is(&out[1], buf_str(&out[0]), out[0].len, "in pieces");
		if (!good) {
			printf("# %d rows, %d columns, how %u, round %lu\n", h,
			    w, how, i);
			for (k = 0; k < nsteps; k++)
				if (step[k].h > 0)
					printf(
					    "# at %zu: %d rows, %d columns\n",
					    step[k].at, step[k].h, step[k].w);
			show("in", in.data, in.len);
		}
		buf_cut(&out[0], 0);
		buf_cut(&out[1], 0);
	}
	buf_release(&in);
	buf_release(&out[0]);
	buf_release(&out[1]);
	return good;
}

/* Nothing but noise, in large amounts. */
static bool
noise(unsigned long rounds)
{
	struct buf in = BUF_INIT, out = BUF_INIT;
	struct step none = { 0, 0, 0 };
	unsigned long i, k;
	bool good = true;

	for (i = 0; i < rounds && good; i++) {
		buf_cut(&in, 0);
		for (k = 0; k < 20000; k++)
			buf_addc(&in, (char)chance(i % 2 == 0 ? 256 : 64));
		good = play(&in, &none, 0, 24, 80, 0, &out);
		buf_cut(&out, 0);
	}
	buf_release(&in);
	buf_release(&out);
	return good;
}

struct lengths {
	size_t rows, sum, longest, last;
	unsigned flags; /* that all but the last have */
};

static void
measure(const char *text, size_t n, unsigned flags, void *arg)
{
	struct lengths *v = arg;

	(void)text;
	if (v->rows++ > 0 && v->flags != ROW_WRAPPED)
		v->longest = SIZE_MAX;
	v->sum += n;
	v->last = n;
	v->flags = flags;
	if (n > v->longest)
		v->longest = n;
}

static void
long_line(void)
{
	struct lengths v = { .rows = 0 };
	struct screen *s;
	char x[4096];
	size_t i;

	memset(x, 'x', sizeof x);
	s = screen_new(0, 3, 80, measure, &v);
	screen_feed(s, "\033[H", 3);
	for (i = 0; i < 768; i++)
		screen_feed(s, x, sizeof x);
	screen_feed(s, "yz\r\n", 4);
	screen_end(s);
	screen_free(s);
	ok(v.rows == 4 && v.sum == 3 * ROW_BYTES_MAX + 2 &&
		v.longest == ROW_BYTES_MAX && v.last == 2 && v.flags == 0,
	    "a line that is too long for a row is several, on the screen too");
}

/* Seed and rounds may be given. */
int
main(int argc, char **argv)
{
	uint64_t seed, rounds = 1500;
	size_t i;

	seed = (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
	if (argc > 1 && !num_dec(argv[1], 1, UINT64_MAX, &seed))
		return 100;
	if (argc > 2 && !num_dec(argv[2], 1, 100000000, &rounds))
		return 100;
	chance_state = seed;
	printf("# seed %ju\n", (uintmax_t)seed);
	for (i = 0; i < sizeof tests / sizeof tests[0]; i++)
		try(&tests[i]);
	resizes();
	long_line();
	ok(models_agree(rounds, false, 150),
	    "both models make the same of lines, also when written over");
	ok(models_agree(rounds, true, 1 + (int)chance(20)),
	    "and of text that the window breaks");
	ok(screens_agree(rounds),
	    "our cells are those of libvterm's own screen");
	ok(pieces_agree(rounds), "pieces do not matter, whatever comes");
	ok(noise(rounds / 50 + 1), "noise does no harm");
	return done();
}
