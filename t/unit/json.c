/* SPDX-License-Identifier: MIT */
/* The scanner: what is JSON and what is not, spans, strings and integers. */
#include "json.h"

#include <inttypes.h>
#include <string.h>

#include "tap.h"

#define STR(s) s, sizeof s - 1

static void
test_valid(void)
{
	static const struct {
		const char *s;
		size_t n;
		bool good;
	} v[] = {
		{ STR("null"), true },
		{ STR(" true "), true },
		{ STR("false\n"), true },
		{ STR("\t\r\n 0"), true },
		{ STR("\"\""), true },
		{ STR("[]"), true },
		{ STR("{}"), true },
		{ STR("[ ]"), true },
		{ STR("{ }"), true },
		{ STR("[1, [2 , {\"a\" : [ ] }]]"), true },
		{ STR("{\"a\":1,\"a\":2}"), true },
		{ STR("\"\xc3\xa9\xf0\x9f\x98\x80\x7f\""), true },
		{ STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uFFFF\""), true },
		{ STR("\"\\ud83d\\ude00\""), true },
		/* Numbers. */
		{ STR("-0"), true },
		{ STR("10"), true },
		{ STR("-1.50"), true },
		{ STR("0.0"), true },
		{ STR("1e5"), true },
		{ STR("1E+05"), true },
		{ STR("1.2e-3"), true },
		{ STR("123456789012345678901234567890"), true },
		{ STR("1e999"), true },
		{ STR("01"), false },
		{ STR("-"), false },
		{ STR("-01"), false },
		{ STR("+1"), false },
		{ STR(".5"), false },
		{ STR("1."), false },
		{ STR("1.e1"), false },
		{ STR("1e"), false },
		{ STR("1e+"), false },
		{ STR("0x1"), false },
		{ STR("NaN"), false },
		{ STR("Infinity"), false },
		{ STR("1 2"), false },
		/* Structure. */
		{ STR(""), false },
		{ STR(" "), false },
		{ STR("["), false },
		{ STR("[1"), false },
		{ STR("[1,"), false },
		{ STR("[1,]"), false },
		{ STR("[,1]"), false },
		{ STR("[1 2]"), false },
		{ STR("[1}"), false },
		{ STR("]"), false },
		{ STR("{"), false },
		{ STR("{\"a\""), false },
		{ STR("{\"a\":"), false },
		{ STR("{\"a\":1"), false },
		{ STR("{\"a\":1,}"), false },
		{ STR("{a:1}"), false },
		{ STR("{1:1}"), false },
		{ STR("{\"a\" 1}"), false },
		{ STR("{\"a\":1 \"b\":2}"), false },
		{ STR("null,"), false },
		{ STR("nul"), false },
		{ STR("nulll"), false },
		{ STR("True"), false },
		{ STR("'a'"), false },
		{ STR("// x\n1"), false },
		{ STR("1\0"), false },
		{ STR("\0"), false },
		{ STR("[1]\f"), false },
		{ STR("\xef\xbb\xbf[]"), false },
		/* Strings. */
		{ STR("\""), false },
		{ STR("\"a"), false },
		{ STR("\"\\"), false },
		{ STR("\"\\\""), false },
		{ STR("\"\\x\""), false },
		{ STR("\"\\\0\""), false },
		{ STR("\"\\u12\""), false },
		{ STR("\"\\u12g4\""), false },
		{ STR("\"\\U0041\""), false },
		{ STR("\"a\nb\""), false },
		{ STR("\"\0\""), false },
		{ STR("\"\x1f\""), false },
		{ STR("\"\\ud83d\""), false },
		{ STR("\"\\ude00\""), false },
		{ STR("\"\\ud83dx\""), false },
		{ STR("\"\\ud83d\\n\""), false },
		{ STR("\"\\ud83d\\ud83d\""), false },
		{ STR("\"\\ude00\\ud83d\""), false },
		{ STR("\"\xff\""), false },
		{ STR("\"\xc3\""), false },
		{ STR("\"\xed\xa0\x80\""), false },
		{ STR("\"\xc0\x80\""), false },
		{ STR("{\"\\ud800\":1}"), false },
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		const char *why = NULL;
		size_t at = 0;
		bool good = json_is_valid(v[i].s, v[i].n, &why, &at);

		if (!ok(good == v[i].good && (good || (why && at <= v[i].n)),
			good ? "is JSON" : "is no JSON"))
			printf("# %s: %s\n", v[i].s, why ? why : "");
	}
}

static bool
nested(size_t depth, char open, char close)
{
	struct buf b = BUF_INIT;
	bool good;

	for (size_t i = 0; i < depth; i++)
		buf_adds(&b, open == '[' ? "[" : "{\"a\":");
	buf_addc(&b, '1');
	for (size_t i = 0; i < depth; i++)
		buf_addc(&b, close);
	good = json_is_valid(b.data, b.len, NULL, NULL);
	buf_release(&b);
	return good;
}

static void
test_depth(void)
{
	ok(nested(JSON_DEPTH_MAX, '[', ']'), "128 arrays");
	ok(!nested(JSON_DEPTH_MAX + 1, '[', ']'), "129 arrays are too deep");
	ok(nested(JSON_DEPTH_MAX, '{', '}'), "128 objects");
	ok(!nested(JSON_DEPTH_MAX + 1, '{', '}'), "129 objects are too deep");
	ok(!nested(1000000, '[', ']'), "a million arrays are refused");
}

static bool
is(struct span s, const char *want)
{
	if (!want)
		return s.p == NULL;
	return s.p && s.n == strlen(want) && memcmp(s.p, want, s.n) == 0;
}

static void
test_members(void)
{
	static const char text[] =
	    " { \"a\" : 1 , \"b\" : { \"a\" : 2 } , \"\\u0063\":[ 1 ] ,"
	    " \"a\\u0000\": 9, \"d\":\"x}\" , \"e\" : null , \"a\" : 3 } ";
	struct span s = { text, sizeof text - 1 };

	ok(json_is_valid(s.p, s.n, NULL, NULL), "the text is valid");
	ok(is(json_member(s, "a"), "3"), "of duplicates the last counts");
	ok(is(json_member(s, "b"), "{ \"a\" : 2 }"), "an object, as bytes");
	ok(is(json_member(json_member(s, "b"), "a"), "2"), "within it");
	ok(is(json_member(s, "c"), "[ 1 ]"), "a name with an escape");
	ok(is(json_member(s, "d"), "\"x}\""), "a string");
	ok(is(json_member(s, "e"), "null"), "null is there");
	ok(is(json_member(s, "f"), NULL), "absent");
	ok(is(json_member(s, ""), NULL), "no empty name");
	ok(is(json_member(json_member(s, "c"), "a"), NULL),
	    "an array has no members");
	ok(is(json_member(json_member(s, "f"), "a"), NULL),
	    "what is absent has no members");
}

static void
test_pairs(void)
{
	static const char text[] =
	    " {\"a\":1 , \"\\u0063\" : [ {\"x\":2} ] ,\"\":\"q,}\",\"a\":null} ";
	static const char *const want[] = { "a", "1", "c", "[ {\"x\":2} ]", "",
		"\"q,}\"", "a", "null" };
	struct span s = { text, sizeof text - 1 }, v;
	struct buf key = BUF_INIT;
	size_t pos = 0, n = 0;

	while (json_pair(s, &pos, &key, &v) && n < 8) {
		ok(strcmp(buf_str(&key), want[n]) == 0, "the name of a pair");
		ok(json_is(v, want[n + 1]), "its value");
		n += 2;
	}
	ok(n == 8, "all pairs, in order");
	pos = 0;
	ok(!json_pair((struct span){ "{ }", 3 }, &pos, &key, &v),
	    "an empty object");
	pos = 0;
	ok(!json_pair((struct span){ "[1]", 3 }, &pos, &key, &v), "no object");
	pos = 0;
	ok(!json_pair((struct span){ NULL, 0 }, &pos, &key, &v), "nothing");
	ok(!json_is((struct span){ NULL, 0 }, ""), "nothing is no text");
	buf_release(&key);
}

static void
test_elements(void)
{
	static const char text[] = " [ 1 , \"],\" , [2,3] , {} ] ";
	static const char *const want[] = { "1", "\"],\"", "[2,3]", "{}" };
	struct span s = { text, sizeof text - 1 }, e;
	size_t pos = 0, n = 0;

	while (json_element(s, &pos, &e))
		ok(n < 4 && is(e, want[n++]), "an element");
	ok(n == 4, "all elements");
	pos = 0;
	ok(!json_element((struct span){ "[ ]", 3 }, &pos, &e),
	    "an empty array");
	pos = 0;
	ok(!json_element((struct span){ "{}", 2 }, &pos, &e), "no array");
	pos = 0;
	ok(!json_element((struct span){ NULL, 0 }, &pos, &e), "nothing");
}

static void
test_values(void)
{
	static const struct {
		const char *s;
		bool good;
		uint64_t want;
	} num[] = {
		{ "0", true, 0 },
		{ "7", true, 7 },
		{ "18446744073709551615", true, UINT64_MAX },
		{ "18446744073709551616", false, 0 },
		{ "-0", false, 0 },
		{ "-1", false, 0 },
		{ "1.0", false, 0 },
		{ "1e1", false, 0 },
		{ "\"1\"", false, 0 },
		{ "null", false, 0 },
	};
	static const char text[] =
	    "\"a\\u0000\\u00e9\\u20ac\\ud83d\\ude00\\/\"";
	static const char bytes[] = "a\0\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/";
	struct buf b = BUF_INIT;

	for (size_t i = 0; i < sizeof num / sizeof *num; i++) {
		struct span s = { num[i].s, strlen(num[i].s) };
		uint64_t v = 42;
		bool good = json_uint(s, &v);

		ok(good == num[i].good && (!good || v == num[i].want),
		    num[i].s);
	}
	ok(json_string((struct span){ text, sizeof text - 1 }, &b) &&
		b.len == sizeof bytes - 1 && memcmp(b.data, bytes, b.len) == 0,
	    "a string is decoded, NUL kept");
	buf_release(&b);
	ok(!json_string((struct span){ "1", 1 }, &b), "a number is no string");
	ok(!json_string((struct span){ NULL, 0 }, &b), "nothing is no string");
	buf_release(&b);
}

static void
test_compact(void)
{
	static const char *const row[][2] = {
		{ " [ 1 , 2 ] ", "[1,2]" },
		{ "{\t\"a b\" :\r\n\"c \\\" d\" }", "{\"a b\":\"c \\\" d\"}" },
		{ "[\"\\\\\" , \" \"]", "[\"\\\\\",\" \"]" },
		{ "1.50e+07 ", "1.50e+07" },
		{ "\" \\u0020 \"", "\" \\u0020 \"" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct buf b = BUF_INIT;

		json_compact((struct span){ row[i][0], strlen(row[i][0]) }, &b);
		ok(strcmp(buf_str(&b), row[i][1]) == 0, row[i][1]);
		buf_release(&b);
	}
}

int
main(void)
{
	test_valid();
	test_depth();
	test_members();
	test_pairs();
	test_elements();
	test_values();
	test_compact();
	return done();
}
