/* SPDX-License-Identifier: MIT */
/* Parts of patches: quoted names, object ids, binary hunks read back. */
#include "gitpatch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "tap.h"

static void
is(struct buf *b, const char *want, const char *what)
{
	if (!ok(strcmp(buf_str(b), want) == 0, what))
		printf("# is %s, wanted %s\n", buf_str(b), want);
	buf_release(b);
}

static void
test_quote(void)
{
	struct buf b = BUF_INIT;

	git_quote(&b, false, "a/", "plain name/~", "");
	is(&b, "a/plain name/~", "a plain name stays");
	git_quote(&b, true, "a/", "x /y", "/");
	is(&b, "\"a/x /y/\"", "quotes by force");
	git_quote(&b, false, "", "\a\b\t\n\v\f\r\"\\", "");
	is(&b, "\"\\a\\b\\t\\n\\v\\f\\r\\\"\\\\\"", "letters");
	git_quote(&b, false, "b/", "\x01\x1f\x7f\x80\xff", "");
	is(&b, "\"b/\\001\\037\\177\\200\\377\"", "octal");
}

static void
test_refuses(void)
{
	ok(git_refuses("a/.git/b", false), "a directory .git");
	ok(git_refuses("a/.gIT", false), "in any case");
	ok(git_refuses("x\\git~1. .", false), "as other systems see it");
	ok(!git_refuses("a/.gitmodules", false), "a file .gitmodules may be");
	ok(git_refuses("a/.gitmodules", true), "a link may not");
	ok(!git_refuses("a/.gitx/git/x.git", true), "others may");
	ok(!git_refuses("g", true) && !git_refuses("~", true), "short names");
}

static void
test_oid(void)
{
	char hex[GIT_OID_HEX + 1];
	struct git_oid o;

	git_oid_init(&o, 0);
	git_oid_hex(&o, hex);
	ok(strcmp(hex, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391") == 0,
	    "the id of nothing");
	git_oid_init(&o, 6);
	git_oid_add(&o, "hel", 3);
	git_oid_add(&o, "", 0);
	git_oid_add(&o, "lo\n", 3);
	git_oid_hex(&o, hex);
	ok(strcmp(hex, "ce013625030ba8dba906f756967f9e9ca394464a") == 0,
	    "the id of a text given in parts");
}

/* Five digits to four bytes, for the length that the line begins with. */
static bool
read_line(const char *p, size_t len, struct buf *out)
{
	static const char digits[] =
	    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%"
	    "&()*+-;<=>?@^_`{|}~";
	size_t n = *p >= 'a' ? (size_t)(*p - 'a') + 27 : (size_t)(*p - 'A') + 1;

	if (n > 52 || len != 1 + (n + 3) / 4 * 5)
		return false;
	p++;
	for (size_t at = 0; at < n; at += 4) {
		uint64_t word = 0;

		for (int i = 0; i < 5; i++) {
			const char *d = strchr(digits, *p++);

			if (!d)
				return false;
			word = word * 85 + (uint64_t)(d - digits);
		}
		if (word > UINT32_MAX)
			return false;
		for (size_t i = 0; i < 4 && at + i < n; i++)
			buf_addc(out, (char)(word >> (24 - 8 * i)));
	}
	return true;
}

/* Is hunk what becomes of the n bytes at p? */
static bool
reads_back(const struct buf *hunk, const char *p, size_t n)
{
	struct buf packed = BUF_INIT;
	unsigned char *got = xmalloc(n + 1);
	uLongf size = n + 1;
	const char *at = hunk->data, *lf = strchr(at, '\n');
	uint64_t said = 0;
	bool good = sscanf(at, "literal %" SCNu64, &said) == 1 && said == n;

	for (at = lf + 1; good && *at != '\n'; at = lf + 1) {
		lf = strchr(at, '\n');
		good = lf && read_line(at, (size_t)(lf - at), &packed);
	}
	good = good && at + 1 == hunk->data + hunk->len &&
	    uncompress(got, &size, (unsigned char *)packed.data, packed.len) ==
		Z_OK &&
	    size == n && memcmp(got, p, n) == 0;
	buf_release(&packed);
	free(got);
	return good;
}

static void
test_literal(void)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 51, 52, 53, 104, 999,
		100000 };
	struct git_literal g;
	struct buf b = BUF_INIT;
	char *p = xmalloc(100000);
	uint32_t seed = 1;
	bool good = true;

	git_literal_begin(&g, &b, 0);
	git_literal_end(&g, &b);
	is(&b, "literal 0\nHcmV?d00001\n\n", "nothing");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		/* Some that shrinks, and some that does not. */
		for (size_t j = 0; j < sizes[i]; j++) {
			seed = seed * 1103515245 + 12345;
			p[j] = (char)(j % 500 < 100 ? 0 : seed >> 16);
		}
		for (size_t piece = 1; piece < 200000; piece *= 7) {
			git_literal_begin(&g, &b, sizes[i]);
			for (size_t at = 0; at < sizes[i]; at += piece)
				git_literal_add(&g, &b, p + at,
				    sizes[i] - at < piece ? sizes[i] - at
							  : piece);
			git_literal_end(&g, &b);
			if (!reads_back(&b, p, sizes[i]))
				good = false;
			buf_release(&b);
		}
	}
	ok(good, "hunks of many sizes, given in pieces, read back");
	free(p);
}

int
main(void)
{
	test_quote();
	test_refuses();
	test_oid();
	test_literal();
	return done();
}
