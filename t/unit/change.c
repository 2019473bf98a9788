/* SPDX-License-Identifier: MIT */
/* Change records: reading, writing, order; and the digests of layers. */
#include "change.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "layer.h"

#include "tap.h"

#define STR(s) s, sizeof s - 1

static FILE *
stream(const void *p, size_t n)
{
	FILE *f = tmpfile();

	if (!f || fwrite(p, 1, n, f) != n || fflush(f) != 0)
		exit(111);
	rewind(f);
	return f;
}

/* Reads a whole stream, writes it again to again if it is good. */
static enum rec_kind
read_all(const void *p, size_t n, struct buf *again)
{
	FILE *in = stream(p, n), *out = stream("", 0);
	char last[8192] = "";
	enum rec_kind kind;
	struct change c;
	struct rec r;

	rec_init(&r, in, '\0');
	for (;;) {
		kind = change_read(&r, &c, *last ? last : NULL);
		if (kind != REC_ITEM)
			break;
		change_write(out, &c);
		snprintf(last, sizeof last, "%s", c.path);
		change_release(&c);
	}
	change_stop(out);
	rec_release(&r);
	fclose(in);
	if (fflush(out) != 0 || lseek(fileno(out), 0, SEEK_SET) == -1 ||
	    io_read_buf(fileno(out), again, 1 << 20) == -1)
		exit(111);
	fclose(out);
	return kind;
}

static void
test_round_trip(void)
{
	static const char text[] = "d 0755 - u -\ta b\0"
				   "w 4755 0 u s\ta b/-x\0"
				   "l 0777 - m -\ta b/l\nk\0../\xff\tt\0"
				   "w 0644 9223372036854775807 m i\ta b/z\0"
				   "o 1777 - L000002-000000d8 -\tc\xff\0"
				   "x 0000 - - s\td\0"
				   "s 0600 - - -\te\tf\0";
	struct buf b = BUF_INIT;

	ok(read_all(text, sizeof text, &b) == REC_STOP &&
		b.len == sizeof text && memcmp(b.data, text, b.len) == 0,
	    "what is read is written, byte for byte");
	buf_release(&b);
}

static void
test_refused(void)
{
	static const struct {
		const char *s;
		size_t n;
		enum rec_kind kind;
	} v[] = {
		{ STR("\0"), REC_STOP },
		{ STR(""), REC_CUT },
		{ STR("d 0755 - u -\ta\0"), REC_CUT },
		{ STR("l 0777 - u -\ta\0"), REC_CUT },
		{ STR("l 0777 - u -\ta\0\0"), REC_BAD },
		{ STR("! 2 no\0"), REC_REFUSED },
		{ STR("d 0755 - u -\ta\0! 2 no\0"), REC_REFUSED },
		{ STR("L000002-00000001\0\0"), REC_BAD },
		{ STR("d 0755 - u - a\0\0"), REC_BAD },
		{ STR("d 0755 - u\ta\0\0"), REC_BAD },
		{ STR("d  0755 - u -\ta\0\0"), REC_BAD },
		{ STR("q 0755 - u -\ta\0\0"), REC_BAD },
		{ STR("dd 0755 - u -\ta\0\0"), REC_BAD },
		{ STR("d 0788 - u -\ta\0\0"), REC_BAD },
		{ STR("d 10000 - u -\ta\0\0"), REC_BAD },
		{ STR("d 0755 4 u -\ta\0\0"), REC_BAD },
		{ STR("w 0644 - u -\ta\0\0"), REC_BAD },
		{ STR("w 0644 -1 u -\ta\0\0"), REC_BAD },
		{ STR("w 0644 1x u -\ta\0\0"), REC_BAD },
		{ STR("w 0644 9223372036854775808 u -\ta\0\0"), REC_BAD },
		{ STR("w 0644 1 ../u -\ta\0\0"), REC_BAD },
		{ STR("w 0644 1 u x\ta\0\0"), REC_BAD },
		{ STR("w 0644 1 u ss\ta\0\0"), REC_BAD },
		{ STR("w 0644 1 u -\t\0\0"), REC_BAD },
		{ STR("w 0644 1 u -\t/a\0\0"), REC_BAD },
		{ STR("w 0644 1 u -\ta/../b\0\0"), REC_BAD },
		{ STR("w 0644 1 u -\ta//b\0\0"), REC_BAD },
		{ STR("x 0000 - - -\ta\0x 0000 - - -\ta\0\0"), REC_BAD },
		{ STR("x 0000 - - -\tb\0x 0000 - - -\ta\0\0"), REC_BAD },
		{ STR("x 0000 - - -\ta-b\0x 0000 - - -\ta/b\0\0"), REC_BAD },
		{ STR("x 0000 - - -\ta\0\0\0"), REC_BAD },
		{ STR("d 0755 - u -\t.\0\0"), REC_STOP },
		{ STR("d 0755 - u -\t.\0x 0000 - - -\t-\0\0"), REC_STOP },
		{ STR("o 0755 - u -\t.\0\0"), REC_BAD },
		{ STR("w 0755 1 u -\t.\0\0"), REC_BAD },
		{ STR("x 0000 - - -\t.\0\0"), REC_BAD },
		{ STR("d 0755 - u -\t./a\0\0"), REC_BAD },
		{ STR("d 0755 - u -\t..\0\0"), REC_BAD },
		{ STR("x 0000 - - -\t-\0d 0755 - u -\t.\0\0"), REC_BAD },
		{ STR("d 0755 - u -\t.\0d 0755 - u -\t.\0\0"), REC_BAD },
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct buf b = BUF_INIT;
		enum rec_kind kind = read_all(v[i].s, v[i].n, &b);

		if (!ok(kind == v[i].kind, "how a stream ends"))
			printf("# %s: %d\n", v[i].s, (int)kind);
		buf_release(&b);
	}
}

static void
test_order(void)
{
	static const char *const v[] = { "\x01", "-", ".", "a", "a/\x01", "a/b",
		"a/b/c", "a/b-", "a/\xff", "a\x01", "a ", "a-", "a.", "a0",
		"ab", "b", "\x80", "\xff" };
	const size_t n = sizeof v / sizeof *v;
	bool good = true;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			int rc = path_cmp(v[i], v[k]);

			good =
			    good && (rc < 0) == (i < k) && (rc > 0) == (i > k);
		}
	ok(good, "a directory, all below it, then its siblings");
}

/* ---- digests: the vectors of the format ---- */

struct item {
	enum change_kind kind;
	const char *path, *data;
	size_t n;
};

static int
content(const struct item *it)
{
	FILE *f = stream(it->data, it->n);
	int fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 0);

	fclose(f);
	return fd;
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(
	    ((const struct item *)a)->path, ((const struct item *)b)->path);
}

static void
digest(struct item *it, size_t n, const char *want, const char *what)
{
	char hex[HASH_HEX + 1], path[64], target[64];
	struct hash h;

	qsort(it, n, sizeof *it, by_path);
	hash_init(&h);
	for (size_t i = 0; i < n; i++) {
		struct change c = { .kind = it[i].kind, .path = path };
		int fd = -1;

		snprintf(path, sizeof path, "%s", it[i].path);
		if (c.kind == CHANGE_SYMLINK) {
			snprintf(target, sizeof target, "%s", it[i].data);
			c.target = target;
		}
		if (c.kind == CHANGE_WRITE)
			fd = content(&it[i]);
		if (layer_digest_add(&h, &c, fd) == -1)
			exit(111);
		io_drop(&fd);
	}
	hash_hex(&h, hex);
	if (!ok(strcmp(hex, want) == 0, what))
		printf("# is %s\n", hex);
}

#define DIGEST(want, what, ...)                                 \
	do {                                                    \
		struct item it[] = { __VA_ARGS__ };             \
		digest(it, sizeof it / sizeof *it, want, what); \
	} while (0)

static void
test_digests(void)
{
	char all[256];

	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	DIGEST(
	    "3dc94b0f55ac67ab6e3726182b30430bec699304ec421f63fd7a237f1e7ad309",
	    "a file", { CHANGE_WRITE, "src/a.txt", STR("hello\n") });
	DIGEST(
	    "2eaf95222800163d0fac631ba0e05dd101572656c8123786dc7f02ff80d61a66",
	    "a directory", { CHANGE_DIR, "d", NULL, 0 });
	DIGEST(
	    "a94b4d997bdc88828b493a85c698a785923af0dc6b29a92aa6ceb2b40d2c92d4",
	    "a deletion", { CHANGE_DELETE, "gone", NULL, 0 });
	DIGEST(
	    "9a9bb1ecdd97b4e95fbc458181c591732ce697dc4c34cbc0666bc8e1eb9f4480",
	    "a link", { CHANGE_SYMLINK, "l", "t", 1 });
	DIGEST(
	    "2c259e313ba45d3f4651d645179c52ca3c1f2b8b0850f9fcbd9601423334f263",
	    "an opaque directory", { CHANGE_OPAQUE, "d", NULL, 0 });
	DIGEST(
	    "93ef58b6d08b9a63c080aee8e0a0e421ccf2e2927deec05eaf0686a296017dfa",
	    "three", { CHANGE_WRITE, "b", "2", 1 },
	    { CHANGE_DIR, "a", NULL, 0 }, { CHANGE_DELETE, "c", NULL, 0 });
	DIGEST(
	    "93ef58b6d08b9a63c080aee8e0a0e421ccf2e2927deec05eaf0686a296017dfa",
	    "the same in another order", { CHANGE_DELETE, "c", NULL, 0 },
	    { CHANGE_WRITE, "b", "2", 1 }, { CHANGE_DIR, "a", NULL, 0 });
	/* From here on computed by another program from the formula. */
	DIGEST(
	    "922a109d01747a3d6cfad6007233b53d5f365c5c30e794be6170eca6753f0ff2",
	    "an empty file", { CHANGE_WRITE, "empty", "", 0 });
	DIGEST(
	    "e5818795d320271cfcaf79424036788e2695ad7e56d60f5b3149931d8567015c",
	    "all bytes", { CHANGE_WRITE, "bin", all, sizeof all });
	DIGEST(
	    "82b9aa795b037d40f7f5aaee3d51c747daf3c47e7c68ca74adf05f2500feb18c",
	    "a path that is not ASCII",
	    { CHANGE_WRITE, "d\xc3\xa9/\xf0\x9f\x98\x80", "x", 1 });
	DIGEST(
	    "2c594a2b9c018fa2284069ac6a8207f866b016d137778f6861afc151c0f65cc2",
	    "a path that is no text", { CHANGE_WRITE, "\xff\n -", "x", 1 });
	DIGEST(
	    "ef22a1d760e0d4ff748a2ac4a60a4ea1bbbdbe2ec4dc49053a411787bdd510cb",
	    "the order is that of all bytes, also of '/'",
	    { CHANGE_DIR, "a", NULL, 0 }, { CHANGE_WRITE, "a/b", "1", 1 },
	    { CHANGE_WRITE, "a-b", "2", 1 });
	DIGEST(
	    "a94b4d997bdc88828b493a85c698a785923af0dc6b29a92aa6ceb2b40d2c92d4",
	    "special files do not count", { CHANGE_DELETE, "gone", NULL, 0 },
	    { CHANGE_SPECIAL, "fifo", NULL, 0 });
}

int
main(void)
{
	test_round_trip();
	test_refused();
	test_order();
	test_digests();
	return done();
}
