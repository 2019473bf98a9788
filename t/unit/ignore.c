/* SPDX-License-Identifier: MIT */
/*
 * Rules of .gitignore files: single rules, what makes a line a rule, patterns
 * made to take for ever, and random bytes. That all of it is what git does is
 * tested by t/ignore.bats. SB_SEED chooses other random bytes.
 */
#include "ignore.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "mem.h"
#include "num.h"
#include "path.h"

#include "tap.h"

static uint64_t rng = 20261130;

/* Steele, Lea and Flood's SplitMix64. */
static uint64_t
rnd(uint64_t limit)
{
	uint64_t z = rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % limit;
}

static enum ignore_say
ask(const char *text, size_t n, const char *path, bool dir, size_t *line)
{
	struct ignore *ig = ignore_compile(text, n);
	enum ignore_say say = ignore_ask(ig, path, dir, line);

	ignore_free(ig);
	return say;
}

/* ---- tables ---- */

/* A path ending in '/' is a directory. */
static void
test_rules(void)
{
	static const struct {
		const char *rule, *yes, *no; /* paths, separated by a blank */
	} v[] = {
		{ "a", "a a/ x/a x/y/a/", "A ab ba a/x" },
		{ "/a", "a a/", "x/a" },
		{ "a/", "a/ x/a/", "a x/a a/x" },
		{ "/a/", "a/", "a x/a/" },
		{ "a/b", "a/b a/b/", "b x/a/b a/b/c" },
		{ "/a/b", "a/b", "x/a/b" },
		{ "*.o", "a.o .o x/a.o", "a.oo ao a.o/x" },
		{ "*", "a x/y", "" },
		{ "a*", "a ab abc x/ab", "ba" },
		{ "a*c*e", "ace abcde accee", "acd aec" },
		{ "/*", "a b/", "a/b" },
		{ "a/*", "a/b", "a/b/c a" },
		{ "*/a", "x/a", "a x/y/a" },
		{ "a?c", "abc a-c", "ac abbc a/c" },
		{ "**", "a a/b a/b/", "" },
		{ "**/", "a/ a/b/", "a a/b" },
		{ "**/a", "a x/a x/y/a", "ab xa" },
		{ "**/a/b", "a/b x/a/b x/y/a/b", "b xa/b" },
		{ "a/**", "a/b a/b/c", "a a/ x/a/b" },
		{ "a/**/b", "a/b a/x/b a/x/y/b", "ab a/xb b" },
		{ "a/**/**/b", "a/b a/x/b", "ab" },
		{ "**/a/**/b", "a/b x/a/y/z/b a/a/b", "ab b/a" },
		{ "/**/a", "a x/a", "ab" },
		{ "a**b/c", "ab/c axb/c", "xab/c a/b a/b/c" },
		{ "?**b/c", "ab/c axb/c", "a/b/c" },
		{ "a/b**", "a/b a/bx a/bx/y", "a/x" },
		{ "**\\/a", "x/a x/y/a", "a" },
		{ "***", "a x/a", "" },
		{ "a***/b", "a/b ax/b", "a/c" },
		{ "[ab]", "a b", "c ab" },
		{ "[!ab]", "c", "a b" },
		{ "[^ab]", "c", "a b" },
		{ "[]a]", "] a", "b" },
		{ "[!]a]", "b", "] a" },
		{ "[a-c]", "a b c", "d -" },
		{ "[a-]", "a -", "b" },
		{ "[-a]", "a -", "b" },
		{ "[a-c-e]", "a b c - e", "d" },
		{ "[c-a]", "c", "a b -" },
		{ "[\\]]", "]", "\\" },
		{ "[a\\-c]", "a - c", "b \\" },
		{ "[%-\\-]", "& - + %", "\\ 0" },
		{ "[[:digit:]]", "0 9", "a [ :" },
		{ "[![:digit:]]", "a", "0" },
		{ "[[:digit:]-z]", "5 - z", "a" },
		{ "[[:upper:]x]", "A x", "y" },
		{ "[[:]", "[ :", "a" },
		{ "[[:a]", "[ : a", "b" },
		{ "[[:none:]]", "", "n : [" },
		{ "[a", "", "a [a" },
		{ "[", "", "[" },
		{ "a[/]b", "", "a/b a[/]b" },
		{ "a[!x]b", "ayb", "a/b axb" },
		{ "\\a", "a", "\\a" },
		{ "\\*", "*", "a" },
		{ "\\\\", "\\", "a" },
		{ "a\\", "", "a a\\" },
		{ "a\\/b", "a/b", "a\\/b" },
		{ "{a,b}", "{a,b}", "a b" },
		{ "a.c", "a.c", "abc" },
		{ "\xff?", "\xff\xfe", "\xff" },
		{ "?", "\xff a", "\xc3\xa9" },
		{ "a//", "", "a/ a" },
		{ "a//b", "", "a/b" },
		{ "//a", "", "a" },
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		bool good = true;

		for (int want = 0; want < 2; want++) {
			const char *p = want ? v[i].yes : v[i].no;

			while (*p != '\0') {
				size_t n = strcspn(p, " ");
				bool dir = p[n - 1] == '/';
				char *path = xstrndup(p, n - dir);
				bool is = ask(v[i].rule, strlen(v[i].rule),
					      path, dir, NULL) == IGNORE_YES;

				if (is != want)
					printf("# %s: %s\n", v[i].rule, path);
				good = good && is == want;
				free(path);
				p += n + (p[n] == ' ');
			}
		}
		ok(good, v[i].rule);
	}
}

static void
test_lines(void)
{
#define T(text) text, sizeof text - 1
	static const struct {
		const char *text;
		size_t n;
		const char *path;
		enum ignore_say say;
		size_t line;
		const char *what;
	} v[] = {
		{ T(""), "a", IGNORE_NOTHING, 0, "no text, no rule" },
		{ T("a"), "a", IGNORE_YES, 1, "the last line needs no LF" },
		{ T("b\n\n\na\n"), "a", IGNORE_YES, 4, "lines are counted" },
		{ T("a\n!a\n"), "a", IGNORE_NO, 2, "the last rule wins" },
		{ T("!a\na\n"), "a", IGNORE_YES, 2, "also the other way" },
		{ T("*\n!a\n"), "b", IGNORE_YES, 1, "others stay" },
		{ T("#a\n"), "#a", IGNORE_NOTHING, 0, "a comment" },
		{ T("\\#a\n"), "#a", IGNORE_YES, 1, "no comment" },
		{ T("\\!a\n"), "!a", IGNORE_YES, 1, "no negation" },
		{ T("!!a\n"), "!a", IGNORE_NO, 1, "a name with '!'" },
		{ T(" #a\n"), " #a", IGNORE_YES, 1, "blanks in front stay" },
		{ T("a  \n"), "a", IGNORE_YES, 1, "blanks at the end go" },
		{ T("a\\ \n"), "a ", IGNORE_YES, 1, "unless escaped" },
		{ T("a\\  \n"), "a ", IGNORE_YES, 1, "only the escaped one" },
		{ T("a b\n"), "a b", IGNORE_YES, 1, "nor within" },
		{ T("a\t\n"), "a", IGNORE_NOTHING, 0, "a TAB stays" },
		{ T("a\t\n"), "a\t", IGNORE_YES, 1, "and matches" },
		{ T("a\r\nb\r\n"), "a", IGNORE_YES, 1, "CR LF ends a line" },
		{ T("a\r"), "a", IGNORE_YES, 1, "also the last" },
		{ T("a\r\r\n"), "a\r", IGNORE_YES, 1, "only one CR" },
		{ T("a \r\n"), "a", IGNORE_YES, 1, "blanks before it go" },
		{ T("a\r \n"), "a\r", IGNORE_YES, 1, "none behind it" },
		{ T("\xef\xbb\xbf"
		    "a\n"),
		    "a", IGNORE_YES, 1, "a BOM is no part of the rule" },
		{ T("b\n\xef\xbb\xbf"
		    "a\n"),
		    "a", IGNORE_NOTHING, 0, "except at the front" },
		{ T("a\0b\n"), "a", IGNORE_YES, 1, "a NUL ends a rule" },
		{ T("\0a\nb\n"), "b", IGNORE_YES, 2, "but not the file" },
		{ T("\xff\xfe\na\n"), "a", IGNORE_YES, 2,
		    "text need not be UTF-8" },
		{ T("[\na\n"), "a", IGNORE_YES, 2, "a bad line is left out" },
		{ T("!\n/\n!/\n//\n\\\n \n\r\n"), "a", IGNORE_NOTHING, 0,
		    "lines that match nothing" },
	};
#undef T

	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		size_t line = 99;
		enum ignore_say say =
		    ask(v[i].text, v[i].n, v[i].path, false, &line);

		if (!ok(say == v[i].say && line == v[i].line, v[i].what))
			printf("# %d, line %zu\n", (int)say, line);
	}
}

static void
test_empty(void)
{
	struct ignore *ig = ignore_compile("#\n\n/\n[\n", 8);

	ok(ignore_is_empty(ig), "no rule in it");
	ignore_free(ig);
	ig = ignore_compile("!a", 2);
	ok(!ignore_is_empty(ig), "a negative rule is one");
	ignore_free(ig);
	ignore_free(NULL);
}

/* ---- hostile ---- */

static void
repeat(struct buf *b, const char *s, size_t n)
{
	while (n-- > 0)
		buf_adds(b, s);
}

/*
 * Each of these is out of the reach of backtracking; that the test ends is
 * what is tested.
 */
static void
test_hostile(void)
{
	static const struct {
		const char *part, *end, *path, *path_end;
		bool match;
	} v[] = {
		{ "*a", "b", "a", "", false },
		{ "*a", "*", "a", "", true },
		{ "*a", "b", "a", "b", true },
		{ "*?", "b", "a", "", false },
		{ "a*", "b", "a", "", false },
		{ "*[a-c]", "[!a]", "a", "", false },
		{ "**/", "b", "a/", "a", false },
		{ "**/", "b", "a/", "b", true },
		{ "**/a/", "b", "a/", "a", false },
		{ "**/*a/", "b", "a/", "a", false },
		{ "**/*a*/", "b", "aa/", "a", false },
		{ "**/a*a/", "b", "aaaa/", "a", false },
		{ "**/?*/", "b", "aa/", "aa", false },
		{ "**\\/", "b", "a/", "a", false },
		{ "*/", "b", "a/", "a", false },
		{ "a**", "b", "a", "", false },
		{ "**a", "/b", "a", "/a", false },
		{ "[[:", "]", "a", "", false },
		{ "\\*", "b", "*", "", false },
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct buf path = BUF_INIT;
		bool good = true;

		repeat(&path, v[i].path, 2000 / strlen(v[i].path));
		buf_adds(&path, v[i].path_end);
		for (size_t n = 1; n <= 1000; n = n * 3 + 1) {
			struct buf rule = BUF_INIT;
			enum ignore_say say;

			repeat(&rule, v[i].part, n);
			buf_adds(&rule, v[i].end);
			say = ask(rule.data, rule.len, path.data, false, NULL);
			/* Some need as many repetitions in the path. */
			if (say != (v[i].match ? IGNORE_YES : IGNORE_NOTHING))
				good = false;
			buf_release(&rule);
		}
		if (!ok(good, "a hostile rule"))
			printf("# %s%s\n", v[i].part, v[i].end);
		buf_release(&path);
	}
}

static void
test_sizes(void)
{
	struct buf b = BUF_INIT, path = BUF_INIT;

	repeat(&b, "*", 4000000);
	ok(ask(b.data, b.len, "a", false, NULL) == IGNORE_YES,
	    "four million stars");
	buf_cut(&b, 0);
	repeat(&b, "a", 4000000);
	ok(ask(b.data, b.len, "a", false, NULL) == IGNORE_NOTHING,
	    "a name of four million bytes");
	buf_cut(&b, 0);
	repeat(&b, "*a", 2000000);
	ok(ask(b.data, b.len, "a", false, NULL) == IGNORE_NOTHING,
	    "two million stars, each with something behind");
	buf_cut(&b, 0);
	buf_addc(&b, '[');
	repeat(&b, "[:", 2000000);
	buf_adds(&b, "x]");
	ok(ask(b.data, b.len, ":", false, NULL) == IGNORE_YES,
	    "a set of four million bytes");
	buf_cut(&b, 0);
	repeat(&b, "**/", 1000000);
	buf_addc(&b, 'b');
	ok(ask(b.data, b.len, "a/b", false, NULL) == IGNORE_YES,
	    "a million directories or none");
	buf_cut(&b, 0);
	repeat(&b, "x\n", 500000);
	buf_adds(&b, "a");
	ok(ask(b.data, b.len, "a", false, NULL) == IGNORE_YES,
	    "half a million rules");

	repeat(&path, "a/", PATH_BYTES_MAX / 2);
	buf_addc(&path, 'b');
	ok(path.len == PATH_BYTES_MAX &&
		ask("b", 1, path.data, false, NULL) == IGNORE_YES &&
		ask(path.data, path.len, path.data, false, NULL) == IGNORE_YES,
	    "the longest path");
	buf_cut(&b, 0);
	repeat(&b, "?/", PATH_BYTES_MAX / 2);
	buf_addc(&b, '*');
	ok(ask(b.data, b.len, path.data, false, NULL) == IGNORE_YES,
	    "and a rule as long");
	buf_release(&b);
	buf_release(&path);
}

/* ---- random bytes ---- */

static void
random_text(struct buf *b, size_t n)
{
	static const char special[] = "**//??[]!\\-^:#\n\n\r ab ab.";

	buf_cut(b, 0);
	buf_adds(b, "");
	while (n-- > 0) {
		switch (rnd(16)) {
		case 0:
			buf_addc(b, (char)rnd(256));
			break;
		case 1:
			buf_adds(b, "[:alpha:]");
			break;
		case 2:
			buf_adds(b, "**/");
			break;
		default:
			buf_addc(b, special[rnd(sizeof special - 1)]);
			break;
		}
	}
}

static void
random_path(struct buf *b)
{
	do {
		random_text(b, 1 + rnd(20));
		for (size_t i = 0; i < b->len; i++)
			if (b->data[i] == '\0')
				b->data[i] = 'a';
	} while (!path_is_valid(b->data));
}

/*
 * Two texts one after the other say what the second says, or else the first;
 * and a rule that matches what is no directory matches it as one as well.
 */
static void
test_random(void)
{
	struct buf a = BUF_INIT, b = BUF_INIT, path = BUF_INIT;
	size_t said = 0;
	bool joined = true, dirs = true;

	for (int i = 0; i < 20000; i++) {
		const bool dir = rnd(2);
		enum ignore_say first, second, both;

		random_text(&a, rnd(40));
		random_text(&b, rnd(40));
		random_path(&path);
		first = ask(a.data, a.len, path.data, dir, NULL);
		if (memchr(a.data, '\n', a.len) == NULL &&
		    ask(a.data, a.len, path.data, false, NULL) !=
			IGNORE_NOTHING &&
		    ask(a.data, a.len, path.data, true, NULL) == IGNORE_NOTHING)
			dirs = false;
		second = ask(b.data, b.len, path.data, dir, NULL);
		buf_addc(&a, '\n');
		buf_add(&a, b.data, b.len);
		both = ask(a.data, a.len, path.data, dir, NULL);
		if (both != (second == IGNORE_NOTHING ? first : second))
			joined = false;
		said += both != IGNORE_NOTHING;
	}
	ok(joined, "the last text has the last word");
	ok(dirs, "what matches a file matches a directory");
	if (!ok(said > 1000, "random rules match now and then"))
		printf("# %zu\n", said);
	buf_release(&a);
	buf_release(&b);
	buf_release(&path);
}

int
main(void)
{
	const char *env = getenv("SB_SEED");

	if (env)
		num_dec(env, 0, UINT64_MAX, &rng);
	printf("# SB_SEED=%" PRIu64 "\n", rng);
	test_rules();
	test_lines();
	test_empty();
	test_hostile();
	test_sizes();
	test_random();
	return done();
}
