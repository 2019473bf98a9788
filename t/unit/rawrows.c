/* SPDX-License-Identifier: MIT */
/*
 * Raw rows of a bounded log against a model that keeps everything: those that
 * are there are right, those that are not lie in the gap, at least in part.
 */
#include "rawrows.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "path.h"

#include "tap.h"

enum {
	KEEP = 16384
};

/* All that was written, and where its rows begin. */
static struct buf all;
static size_t start[200000];
static size_t rows;

static struct spool spool;
static struct rawrows_log raw;
static int dirfd = -1;

static uint64_t seed = 1;

static unsigned
rnd(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static bool
put(const char *p, size_t n)
{
	int rc;

	for (size_t i = 0; i < n; i++) {
		if (all.len == 0 || all.data[all.len - 1] == '\n')
			start[rows++] = all.len;
		buf_addc(&all, p[i]);
	}
	rc = spool_add(&spool, p, n);
	return rawrows_add(&raw, &spool, p, n) == 0 && rc == 0;
}

/* Row i of the model. */
static const char *
model(size_t i, size_t *n)
{
	size_t end = i + 1 < rows ? start[i + 1] : all.len;

	*n = end - start[i];
	if (*n > 0 && all.data[start[i] + *n - 1] == '\n')
		--*n;
	if (*n > 0 && all.data[start[i] + *n - 1] == '\r')
		--*n;
	return all.data + start[i];
}

struct check {
	uint64_t next, wrong;
};

static bool
compare(uint64_t row, const char *text, size_t n, unsigned flags, void *arg)
{
	struct check *c = arg;
	const char *want;
	size_t len;

	if (flags != 0 || row != c->next || row >= rows) {
		c->wrong++;
		return false;
	}
	want = model(row, &len);
	c->wrong += n != len || memcmp(text, want, n) != 0;
	c->next++;
	return true;
}

/* Everything that can be read is read, in windows of step rows. */
static bool
is_right(int fd, uint64_t step)
{
	struct check c = { 0, 0 };
	struct rawrows r;
	uint64_t lf = 0, from, next;
	bool good = true;

	if (rawrows_open(&r, fd) == -1)
		return false;
	for (size_t i = 0; i < all.len; i++)
		lf += all.data[i] == '\n';
	good = rawrows_count(&r) == rows && rawrows_final(&r) == lf;
	while (good && c.next < rows) {
		from = c.next;
		next = rawrows_next(&r, from);
		for (; good && c.next < next && c.next < rows; c.next++) {
			size_t end =
			    c.next + 1 < rows ? start[c.next + 1] : all.len;

			/* What is said to be gone lies in the gap. */
			good = (off_t)start[c.next] < spool.gap.to &&
			    (off_t)end > spool.gap.from;
		}
		if (c.next > from)
			continue;
		good = rawrows_read(&r, from, step, compare, &c) == 0 &&
		    c.wrong == 0 && c.next > from;
	}
	rawrows_close(&r);
	return good;
}

static bool
open_all(int *fd)
{
	path_rm_tree(dirfd, "t");
	mkdirat(dirfd, "t", 0700);
	buf_cut(&all, 0);
	rows = 0;
	*fd = openat(dirfd, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return spool_make(&spool, *fd, LOG_NAME, KEEP) == 0 &&
	    rawrows_make(&raw, *fd) == 0;
}

static void
close_all(int fd)
{
	spool_close(&spool);
	close(raw.fd);
	buf_release(&raw.at);
	close(fd);
}

/* Lines of up to width bytes in pieces of up to piece. */
static void
test_lines(unsigned width, unsigned piece, bool full)
{
	char *p = malloc(piece), words[120];
	int fd;
	bool good = open_all(&fd) && is_right(fd, 10);

	for (int i = 0; good && all.len < 300000; i++) {
		unsigned n = 1 + rnd(piece);

		for (unsigned k = 0; k < n; k++)
			p[k] = rnd(width) == 0 ? '\n'
			    : rnd(40) == 0     ? '\r'
					       : (char)('a' + rnd(26));
		if (full && spool.gap.to == 0 && all.len > 66000) {
			/* As where holes cannot be punched. */
			spool.full = true;
			spool.gap.from = spool.gap.to = spool.len;
			spool.keep = 1 << 30;
		}
		good = put(p, n);
		if (i % (300000 / (int)piece / 8 + 1) == 0)
			good = good && is_right(fd, 1 + rnd(100));
	}
	snprintf(words, sizeof words,
	    "lines to %u bytes, pieces to %u%s: what is kept is right", width,
	    piece, full ? ", then no holes" : "");
	ok(good && is_right(fd, 1) && is_right(fd, UINT64_MAX), words);
	close_all(fd);
	free(p);
}

static void
test_few(void)
{
	int fd;

	ok(open_all(&fd) && is_right(fd, 1), "nothing is no row");
	ok(put("a", 1) && is_right(fd, 1) && rows == 1,
	    "text without LF is a row");
	ok(put("\r\n", 2) && is_right(fd, 1) && rows == 1, "LF ends it");
	ok(put("\n\0\r\r\n\xff", 6) && is_right(fd, 9) && rows == 4,
	    "an empty row, NUL, one CR of two, a byte that is no UTF-8");
	close_all(fd);
}

/* What it costs is what is read: a line at the end of many. */
static void
test_alone(void)
{
	struct check c = { .next = 99999 };
	struct rawrows r;
	int fd;
	bool good = open_all(&fd);

	for (int i = 0; good && i < 100000; i++)
		good = put("x\n", 2);
	good = good && rawrows_open(&r, fd) == 0;
	ok(good && rawrows_read(&r, 99999, 1, compare, &c) == 0 &&
		c.next == 100000 && c.wrong == 0,
	    "one row alone");
	c.next = 50000;
	ok(good && rawrows_read(&r, 50000, 5, compare, &c) == 0 &&
		c.next == 50000,
	    "in the gap there is nothing");
	if (good)
		rawrows_close(&r);
	close_all(fd);
}

/* 256 MiB without a line: half a MiB of records, most of them in the gap. */
static void
test_disk(void)
{
	static char p[65536];
	struct stat st;
	int fd;
	bool good = open_all(&fd);

	memset(p, 'x', sizeof p);
	for (int i = 0; i < 4096; i++)
		good &= spool_add(&spool, p, sizeof p) == 0 &&
		    rawrows_add(&raw, &spool, p, sizeof p) == 0;
	ok(good && fstat(raw.fd, &st) == 0 && st.st_size == 65536 * 8 &&
		st.st_blocks * 512 <= 2 * 65536,
	    "records in the gap give their place back");
	close_all(fd);
}

/*
 * For a while nothing can be written, to the log or to that and the index;
 * from at on, n bytes. lines: of which rows are made.
 */
static void
test_lost(size_t at, size_t n, unsigned lines, bool both)
{
	char words[120], piece[1500];
	int fd, full = open("/dev/full", O_RDWR | O_CLOEXEC), log, index;
	bool good = open_all(&fd) && full != -1, lost;

	while (good && all.len < at + n + 100000) {
		const size_t len = all.len;
		size_t k;

		for (k = 0; k < sizeof piece; k++)
			piece[k] = rnd(lines) == 0 ? '\n' : 'x';
		k = len < at && len + sizeof piece > at ? at - len
							: sizeof piece;
		log = spool.fd;
		index = raw.fd;
		lost = len >= at && len < at + n;
		if (lost)
			spool.fd = full;
		if (lost && both)
			raw.fd = full;
		good = put(piece, k) != lost;
		spool.fd = log;
		raw.fd = index;
		if (lost && both)
			continue;
		good = good && is_right(fd, 1 + rnd(50)) &&
		    (!lost || spool.gap.to == spool.len);
	}
	good = good &&
	    spool.gap.from == (off_t)(at < SPOOL_HEAD ? at : SPOOL_HEAD);
	snprintf(words, sizeof words,
	    "%zu bytes from %zu on that cannot be written%s, rows to %u", n, at,
	    both ? ", nor the index" : "", lines);
	ok(good && is_right(fd, UINT64_MAX), words);
	close_all(fd);
	close(full);
}

int
main(void)
{
	char name[] = "/tmp/sb-rawrows.XXXXXX";

	if (!mkdtemp(name))
		return 1;
	dirfd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	test_few();
	test_alone();
	test_disk();
	for (int both = 0; both < 2; both++) {
		test_lost(0, 1, 30, both);
		test_lost(0, 10000, 30, both);
		test_lost(4096, 4096, 30, both);
		test_lost(5000, 1, 3, both);
		test_lost(9000, 30000, 1000, both);
		test_lost(70000, 5000, 60, both);
		test_lost(150000, 100000, 60, both);
	}
	for (int full = 0; full < 2; full++) {
		test_lines(2, 100, full);
		test_lines(80, 1000, full);
		test_lines(80, 70000, full);
		test_lines(4096, 4096, full);
		test_lines(20000, 5000, full);
		test_lines(400000, 65536, full);
	}
	path_rm_tree(AT_FDCWD, name);
	close(dirfd);
	buf_release(&all);
	return done();
}
