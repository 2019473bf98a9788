/* SPDX-License-Identifier: MIT */
/* Writing JSON: escapes, what is UTF-8, commas, paths that are not text. */
#include "out.h"

#include <string.h>

#include "tap.h"

#define STR(s) s, sizeof s - 1

static void
is(struct buf *b, const char *want, const char *what)
{
	if (!ok(strcmp(buf_str(b), want) == 0, what))
		printf("# is %s, wanted %s\n", buf_str(b), want);
	buf_release(b);
}

static void
test_strings(void)
{
	struct buf b = BUF_INIT;

	out_string(&b, STR("\b\t\n\f\r\x01\x0b\x1f\x7f\"\\/a"));
	is(&b, "\"\\b\\t\\n\\f\\r\\u0001\\u000b\\u001f\\u007f\\\"\\\\/a\"",
	    "escapes");
	out_string(&b, STR("\xc3\xa9\xf0\x9f\x98\x80"));
	is(&b, "\"\xc3\xa9\xf0\x9f\x98\x80\"", "other characters stay");
	out_string_ascii(
	    &b, STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\n"));
	is(&b, "\"\\u00e9\\u20ac\\ud83d\\ude00\\udbff\\udfff\\n\"",
	    "ASCII only, with surrogate pairs");
	out_string(&b, STR(""));
	is(&b, "\"\"", "an empty string");
}

static void
test_utf8(void)
{
	static const struct {
		const char *s;
		size_t n;
		bool good;
	} v[] = {
		{ STR(""), true },
		{ STR("a\0b"), true },
		{ STR("\xc2\x80"), true },
		{ STR("\xed\x9f\xbf\xee\x80\x80"), true },
		{ STR("\xf4\x8f\xbf\xbf"), true },
		{ STR("\xf4\x90\x80\x80"), false },
		{ STR("\xf8\x88\x80\x80\x80"), false },
		{ STR("\xed\xa0\x80"), false },
		{ STR("\xed\xbf\xbf"), false },
		{ STR("\xc0\x80"), false },
		{ STR("\xc1\xbf"), false },
		{ STR("\xe0\x9f\xbf"), false },
		{ STR("\xf0\x8f\xbf\xbf"), false },
		{ STR("\x80"), false },
		{ STR("\xff"), false },
		{ STR("\xc3"), false },
		{ STR("\xe2\x82"), false },
		{ STR("\xc3"
		      "a"),
		    false },
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		ok(utf8_is_valid(v[i].s, v[i].n) == v[i].good, "UTF-8 or not");
}

static void
test_members(void)
{
	struct buf b = BUF_INIT;

	buf_addc(&b, '{');
	out_str(&b, "a", "x");
	out_num(&b, "b", UINT64_MAX);
	out_key(&b, "c");
	buf_addc(&b, '[');
	buf_adds(&b, "{");
	out_bool(&b, "d", true);
	buf_adds(&b, "}]");
	out_null(&b, "e");
	out_bool(&b, "f", false);
	buf_addc(&b, '}');
	is(&b,
	    "{\"a\":\"x\",\"b\":18446744073709551615,\"c\":[{\"d\":true}],"
	    "\"e\":null,\"f\":false}",
	    "commas are placed");
}

static void
test_paths(void)
{
	static const struct {
		const char *path, *want;
	} v[] = {
		{ "a b", "\"path\":\"a b\"" },
		{ "\xff", "\"path_b64\":\"/w==\"" },
		{ "\xff\xfe", "\"path_b64\":\"//4=\"" },
		{ "\xff\xfe\xfd", "\"path_b64\":\"//79\"" },
		{ "a/\xe9\n", "\"path_b64\":\"YS/pCg==\"" },
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct buf b = BUF_INIT;

		out_path(&b, "path", v[i].path);
		is(&b, v[i].want, "a path as text or as base64");
	}
}

static void
test_text(void)
{
	struct buf b = BUF_INIT;

	out_text(&b, "good", "\xc3\xa4");
	out_text(&b, "bad", "\xc3\xa4\xff");
	is(&b, "\"good\":\"\xc3\xa4\",\"bad\":\"\\u00e4\\ufffd\"",
	    "text that may be no UTF-8");
}

static void
test_fit(void)
{
	static const char text[] = "a\n\x01\x7f\"\xc3\xa4\xf0\x9f\x98\x80";
	size_t n = sizeof text - 1;
	struct buf b = BUF_INIT;

	out_string(&b, text, n);
	for (size_t max = 0; max <= b.len; max++) {
		struct buf part = BUF_INIT;
		size_t room = max, fit = out_fit(text, n, &room);
		bool good;

		out_string(&part, text, fit);
		good = part.len - 2 + room == max && utf8_is_valid(text, fit) &&
		    (fit == n) == (max >= b.len - 2) &&
		    memcmp(part.data, b.data, part.len - 1) == 0;
		ok(good, "as many characters as have room");
		buf_release(&part);
	}
	buf_release(&b);
}

int
main(void)
{
	test_fit();
	test_strings();
	test_utf8();
	test_members();
	test_paths();
	test_text();
	return done();
}
