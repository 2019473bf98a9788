/* SPDX-License-Identifier: MIT */
/* Copies of files: bytes, offsets and holes. */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "mem.h"

#include "tap.h"

#define MIB (1 << 20)

static int
make(int flags)
{
	const char *dir = getenv("TMPDIR");
	char *path = xasprintf("%s/sb-io-XXXXXX", dir ? dir : "/tmp");
	int fd = mkostemp(path, O_CLOEXEC | flags);

	if (fd == -1 || unlink(path) == -1)
		exit(111);
	free(path);
	return fd;
}

static void
put(int fd, off_t at, const char *s)
{
	if (pwrite(fd, s, strlen(s), at) != (ssize_t)strlen(s))
		exit(111);
}

static struct stat
look(int fd)
{
	struct stat st;

	if (fsync(fd) == -1 || fstat(fd, &st) == -1)
		exit(111);
	return st;
}

/* Has fd s at the offset at? */
static bool
has(int fd, off_t at, const char *s)
{
	char got[64];
	size_t n = strlen(s);

	return pread(fd, got, n, at) == (ssize_t)n && memcmp(got, s, n) == 0;
}

/* Data at 1 MiB and at 5 MiB, in a file of 8 MiB: holes also at both ends. */
static int
sparse(void)
{
	int fd = make(0);

	put(fd, 1 * MIB, "one");
	put(fd, 5 * MIB, "five");
	if (ftruncate(fd, 8 * MIB) == -1)
		exit(111);
	return fd;
}

static void
test_holes(void)
{
	int in = sparse(), out = make(0);

	ok(io_copy(in, out) == 8 * MIB && io_same(in, out) == 1,
	    "a sparse file arrives whole, holes at both ends counted");
	ok(look(in).st_blocks < 4 * MIB / 512 &&
		look(out).st_blocks < 4 * MIB / 512,
	    "and needs less room than its size");
	io_drop(&out);

	out = make(0);
	ok(lseek(in, 1 * MIB + 1, SEEK_SET) != -1 &&
		io_copy(in, out) == 7 * MIB - 1 && has(out, 0, "ne") &&
		has(out, 4 * MIB - 1, "five") &&
		look(out).st_size == 7 * MIB - 1 &&
		look(out).st_blocks < 4 * MIB / 512,
	    "the same from the middle on");
	io_drop(&out);

	out = make(0);
	put(out, 0, "head");
	ok(lseek(out, 0, SEEK_END) == 4 && lseek(in, 0, SEEK_SET) == 0 &&
		io_copy(in, out) == 8 * MIB && has(out, 0, "head") &&
		has(out, 4 + 1 * MIB, "one") &&
		look(out).st_size == 8 * MIB + 4 &&
		lseek(out, 0, SEEK_CUR) == 8 * MIB + 4,
	    "behind what is there already; the offset is at the end");
	io_drop(&out);

	out = make(0);
	if (ftruncate(in, 0) == -1 || ftruncate(in, 3 * MIB) == -1)
		exit(111);
	ok(lseek(in, 0, SEEK_SET) == 0 && io_copy(in, out) == 3 * MIB &&
		look(out).st_size == 3 * MIB && look(out).st_blocks == 0,
	    "a file that is nothing but a hole");
	io_drop(&out);
	io_drop(&in);
}

/* Where a hole would show what was there before, zeros are written. */
static void
test_no_holes(void)
{
	int in = sparse(), out = make(0);
	char *old = malloc(8 * MIB);
	int pipefd[2];
	char buf[8];

	if (!old || pipe2(pipefd, O_CLOEXEC) == -1)
		exit(111);
	memset(old, 'x', 8 * MIB);
	if (io_write_all(out, old, 8 * MIB) == -1 ||
	    lseek(out, 0, SEEK_SET) == -1)
		exit(111);
	free(old);
	ok(io_copy(in, out) == 8 * MIB && io_same(in, out) == 1,
	    "over something else, holes are zeros");
	io_drop(&out);

	out = make(O_APPEND);
	put(out, 0, "head");
	ok(lseek(in, 0, SEEK_SET) == 0 && io_copy(in, out) == 8 * MIB &&
		look(out).st_size == 8 * MIB + 4 &&
		has(out, 4 + 5 * MIB, "five"),
	    "a file that appends by itself");
	io_drop(&out);

	ok(lseek(in, 8 * MIB - 4, SEEK_SET) != -1 &&
		io_copy(in, pipefd[1]) == 4 &&
		read(pipefd[0], buf, sizeof buf) == 4 &&
		memcmp(buf, "\0\0\0\0", 4) == 0,
	    "into a pipe");
	io_drop(&in);
	io_drop(&pipefd[0]);
	io_drop(&pipefd[1]);
}

static void
test_bytes(void)
{
	int in = make(0), out = make(0), proc;
	char first[1];

	ok(io_copy(in, out) == 0 && look(out).st_size == 0, "an empty file");
	put(in, 0, "some content");
	ok(lseek(in, 5, SEEK_SET) == 5 && io_copy(in, out) == 7 &&
		has(out, 0, "content") && look(out).st_size == 7,
	    "from the offset to the end");
	ok(io_copy(in, out) == 0 && look(out).st_size == 7, "at the end");
	io_drop(&in);

	/* The kernel says that it has size 0 and copies nothing of it. */
	proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ok(lseek(out, 0, SEEK_SET) == 0 && io_copy(proc, out) > 100 &&
		pread(out, first, 1, 0) == 1 && first[0] == 'N',
	    "a file that the kernel makes up");
	io_drop(&proc);
	ok(io_copy(-1, out) == -1, "no file");
	io_drop(&out);
}

/* Reads a file of n bytes behind "before", max bytes at most in the buffer. */
static bool
reads(int fd, size_t n, size_t max, struct buf *b)
{
	size_t i;

	buf_cut(b, 0);
	buf_adds(b, "before");
	if (ftruncate(fd, (off_t)n) == -1 || lseek(fd, 0, SEEK_SET) == -1 ||
	    io_read_buf(fd, b, max) == -1)
		return false;
	for (i = 6; i < b->len && b->data[i] == '\0'; i++)
		;
	return b->len == n + 6 && i == b->len &&
	    memcmp(b->data, "before", 6) == 0;
}

static void
test_whole(void)
{
	static const size_t size[] = { 0, 1, 4095, 4096, 4097, 20479, 20480,
		20481, 86015, 86016, 86017, 1000000 };
	struct buf b = BUF_INIT, small = BUF_INIT;
	bool all = true, none = true, more = true;
	int fd = make(0);
	size_t i;

	for (i = 0; i < sizeof size / sizeof size[0]; i++) {
		all &= reads(fd, size[i], size[i] + 6, &b);
		more &= reads(fd, size[i], SIZE_MAX / 4, &b);
		if (size[i] > 0)
			none &= !reads(fd, size[i], size[i] + 5, &b) &&
			    errno == EFBIG;
	}
	ok(all, "whole files, as large as they may be");
	ok(more, "whole files, smaller than they may be");
	ok(none, "files that are too large by a byte");
	none = !reads(fd, 1, 3, &b) && errno == EFBIG && reads(fd, 0, 3, &b);
	ok(none, "a buffer that is too full already");
	/* Commands read many, and some stay for long. */
	ok(reads(fd, 100, 1 << 24, &small) && small.cap < 8192,
	    "a small file takes a small buffer");
	buf_release(&b);
	buf_release(&small);
	io_drop(&fd);
}

int
main(void)
{
	test_whole();
	test_bytes();
	test_holes();
	test_no_holes();
	return done();
}
