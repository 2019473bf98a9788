/* SPDX-License-Identifier: MIT */
/*
 * The files of rows: what is written is read, in any part, also by a reader
 * beside the writer; with a limit the oldest rows behind the first make a gap,
 * and numbers stay what they are; a full disk loses rows and nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "path.h"
#include "rows.h"

#include "rowtest.h"
#include "tap.h"

static char dir[] = "/tmp/rows.XXXXXX";
static int dirfd;

static void
must(bool good, const char *what)
{
	if (good)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* An empty directory for a log. */
static int
fresh(const char *name)
{
	int fd;

	must(path_rm_tree(dirfd, name) == 0 && mkdirat(dirfd, name, 0700) == 0,
	    name);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(fd != -1, name);
	return fd;
}

/* What row i of a test says: its number, and up to max bytes by chance. */
static void
row_text_of(struct buf *b, uint64_t i, unsigned max)
{
	size_t n;

	buf_cut(b, 0);
	buf_addf(b, "%ju:", (uintmax_t)i);
	n = (size_t)(i * UINT64_C(0x9e3779b97f4a7c15) >> 40) % (max + 1);
	while (n-- > 0)
		buf_addc(b, (char)(' ' + (i + n) % 90));
}

/* What a reader is told, checked against row_text_of. */
struct told {
	uint64_t next; /* row that must come */
	uint64_t rows, gaps, gap, past; /* the last gap */
	unsigned max;
	bool bad;
};

static bool
check(uint64_t row, const char *text, size_t n, unsigned flags, void *arg)
{
	struct buf want = BUF_INIT;
	struct told *t = arg;

	if (row != t->next)
		t->bad = true;
	if ((flags & ROW_GAP) != 0) {
		if (text != NULL || n == 0)
			t->bad = true;
		t->gaps++;
		t->gap = row;
		t->past = t->next = row + n;
		return true;
	}
	row_text_of(&want, row, t->max);
	if (want.len != n || memcmp(want.data, text, n) != 0 ||
	    flags != (row % 7 == 0 ? ROW_WRAPPED : 0)) {
		t->bad = true;
		printf("# row %ju\n", (uintmax_t)row);
		show("want", want.data, want.len);
		show("got ", text, n);
	}
	t->rows++;
	t->next = row + 1;
	buf_release(&want);
	return true;
}

/* Adds rows from..to-1 as row_text_of has them. */
static void
add(struct rows_log *l, uint64_t from, uint64_t to, unsigned max)
{
	struct buf b = BUF_INIT;

	for (; from < to; from++) {
		row_text_of(&b, from, max);
		rows_log_add(b.data, b.len, from % 7 == 0 ? ROW_WRAPPED : 0, l);
	}
	buf_release(&b);
}

static bool
reads(const struct rows_file *f, uint64_t first, uint64_t n, uint64_t count,
    unsigned max, struct told *t)
{
	int64_t got;
	uint64_t want;

	memset(t, 0, sizeof *t);
	t->next = first;
	t->max = max;
	got = rows_read(f, first, n, check, t);
	want = first >= count ? 0 : n < count - first ? n : count - first;
	if (got == (int64_t)want && !t->bad && t->next == first + want)
		return true;
	printf("# rows %ju and %ju more: %jd, not %ju; next %ju; %s\n",
	    (uintmax_t)first, (uintmax_t)n, (intmax_t)got, (uintmax_t)want,
	    (uintmax_t)t->next, strerror(errno));
	return false;
}

static bool
take(uint64_t row, const char *text, size_t n, unsigned flags, void *arg)
{
	(void)row;
	collect(text, n, flags, arg);
	return ((struct buf *)arg)->len < 6;
}

static void
plain(void)
{
	struct buf got = BUF_INIT, file = BUF_INIT;
	struct rows_log l, again;
	struct rows_file f;
	int fd;

	fd = fresh("plain");
	ok(rows_open(&f, fd) == -1 && errno == ENOENT,
	    "without files there is nothing to read");
	must(rows_log_open(&l, fd, 0) == 0, "open");
	ok(rows_log_open(&again, fd, 0) == -1 && errno == EEXIST,
	    "a log is not begun twice");
	must(rows_open(&f, fd) == 0, "open");
	ok(rows_count(&f) == 0 && rows_read(&f, 0, 9, take, &got) == 0 &&
		rows_next(&f, 0) == 0,
	    "an empty log has no rows");
	rows_log_add("a", 1, 0, &l);
	rows_log_add("", 0, 0, &l);
	rows_log_add("b\0c", 3, ROW_WRAPPED, &l);
	ok(rows_count(&f) == 0 && rows_log_count(&l) == 3,
	    "rows wait for the flush");
	ok(rows_log_flush(&l) == 0 && rows_count(&f) == 3,
	    "and then the open reader sees them");
	must(io_read_file_at(fd, ROWS_NAME, &file, 100) == 0, "read");
	ok(is(&file, S("a\n\nb\0c\n"), "rows"), "rows: text and LF");
	buf_cut(&file, 0);
	must(io_read_file_at(fd, ROWS_INDEX, &file, 100) == 0, "read");
	ok(is(&file,
	       S("\0\0\0\0\0\0\0\100\2\0\0\0\0\0\0\100\3\0\0\0\0\0\0\300"),
	       "index"),
	    "index: an offset each, marked there and wrapped");
	ok(rows_read(&f, 0, 99, take, &got) == 3 &&
		is(&got, S("a\n\nb\0c\\\n"), "all"),
	    "what was written is read");
	buf_cut(&got, 0);
	ok(rows_read(&f, 1, 1, take, &got) == 1 && is(&got, S("\n"), "one"),
	    "one row of them");
	ok(rows_read(&f, 3, 1, take, &got) == 0 &&
		rows_read(&f, UINT64_MAX, UINT64_MAX, take, &got) == 0,
	    "behind the last there is nothing");
	rows_log_add("d", 1, 0, &l);
	rows_log_add("e", 1, 0, &l);
	must(rows_log_flush(&l) == 0, "flush");
	buf_cut(&got, 0);
	ok(rows_read(&f, 0, 99, take, &got) == 3 &&
		is(&got, S("a\n\nb\0c\\\n"), "some"),
	    "the reader may stop");
	must(pwrite(l.index, "\5\0\0", 3, 40) == 3, "pwrite");
	buf_cut(&got, 0);
	ok(rows_count(&f) == 5 && rows_read(&f, 4, 9, take, &got) == 1 &&
		is(&got, S("e\n"), "last"),
	    "half a record is not there yet");
	must(ftruncate(l.rows, 3) == 0, "ftruncate");
	ok(rows_read(&f, 0, 9, take, &got) == -1 && errno == EILSEQ,
	    "text that is missing is an error");
	ok(rows_log_close(&l) == 0, "close");
	rows_close(&f);
	buf_release(&got);
	buf_release(&file);
	io_drop(&fd);
}

static void
many(void)
{
	struct rows_log l;
	struct rows_file f;
	struct told t;
	struct buf big = BUF_INIT;
	uint64_t i, first;
	bool good;
	int fd;

	fd = fresh("many");
	must(rows_log_open(&l, fd, 0) == 0, "open");
	add(&l, 0, 20000, 60);
	must(rows_log_flush(&l) == 0 && rows_open(&f, fd) == 0, "open");
	good = reads(&f, 0, UINT64_MAX, 20000, 60, &t) && t.rows == 20000;
	for (i = 0; i < 200 && good; i++) {
		first = chance(20100);
		good = reads(&f, first, chance(1500), 20000, 60, &t) &&
		    t.gaps == 0;
	}
	ok(good, "any part of many rows");
	while (big.len < ROW_BYTES_MAX)
		buf_addc(&big, 'x');
	rows_log_add(big.data, big.len, 0, &l);
	must(rows_log_flush(&l) == 0, "flush");
	add(&l, 20001, 20002, 60);
	must(rows_log_flush(&l) == 0, "flush");
	memset(&t, 0, sizeof t);
	t.max = 60;
	t.next = 20001;
	ok(rows_read(&f, 20001, 1, check, &t) == 1 && !t.bad && t.rows == 1,
	    "a row behind a long one");
	buf_cut(&big, 0);
	ok(rows_read(&f, 20000, 1, take, &big) == 1 &&
		big.len == ROW_BYTES_MAX + 1,
	    "and the long one");
	ok(rows_log_close(&l) == 0, "close");
	rows_close(&f);
	buf_release(&big);
	io_drop(&fd);
}

static uint64_t
disk(int fd)
{
	struct stat a, b;

	must(fstatat(fd, ROWS_NAME, &a, 0) == 0 &&
		fstatat(fd, ROWS_INDEX, &b, 0) == 0,
	    "stat");
	return (uint64_t)(a.st_blocks + b.st_blocks) * 512;
}

/* Rows in flushes of any size under a limit. */
static void
limited(uint64_t limit, unsigned max, uint64_t total, const char *what)
{
	struct rows_log l;
	struct rows_file f;
	struct told t;
	uint64_t at = 0, n, bytes, kept, worst = 0, lost;
	int64_t next;
	bool good = true;
	int fd;

	fd = fresh("limited");
	must(rows_log_open(&l, fd, limit) == 0, "open");
	must(rows_open(&f, fd) == 0, "open");
	while (at < total && good) {
		n = 1 + chance(chance(4) == 0 ? 3000 : 100);
		add(&l, at, at + n, max);
		at += n;
		good = rows_log_flush(&l) == 0 &&
		    rows_count(&f) == (int64_t)at &&
		    reads(&f, 0, UINT64_MAX, at, max, &t) && t.gaps <= 1;
		lost = rows_log_lost(&l, &bytes);
		if (t.rows != at - lost || (t.gaps > 0) != (lost > 0))
			good = false;
		kept = l.off - bytes + 8 * (at - lost) - lost;
		if (kept > limit && t.rows > 2)
			good = false;
		if (disk(fd) > worst)
			worst = disk(fd);
		if (t.gaps == 0)
			continue;
		/* The first quarter, and half of the rest at the least. */
		if (good && max < 1000 && kept < limit / 2)
			good = false;
		n = t.gap;
		next = rows_next(&f, n);
		good &= next == (int64_t)t.past &&
		    rows_next(&f, t.past) == next &&
		    rows_next(&f, (n + t.past) / 2) == next &&
		    rows_next(&f, n - (n > 0)) == (int64_t)(n - (n > 0)) &&
		    reads(&f, n + chance((unsigned)(t.past - n)), chance(2000),
			at, max, &t);
	}
	printf("# limit %ju, at most %ju on the disk, %ju rows, %ju lost\n",
	    (uintmax_t)limit, (uintmax_t)worst, (uintmax_t)at,
	    (uintmax_t)rows_log_lost(&l, NULL));
	ok(good, what);
	ok(worst <= limit + 65536, "also on the disk, but for parts of blocks");
	ok(rows_log_close(&l) == 0 && rows_log_lost(&l, NULL) > 0,
	    "and some were dropped");
	rows_close(&f);
	io_drop(&fd);
}

static void
no_holes(void)
{
	struct rows_log l;
	struct rows_file f;
	struct told t;
	int fd;

	fd = fresh("holes");
	must(rows_log_open(&l, fd, 100000) == 0, "open");
	must(rows_open(&f, fd) == 0, "open");
	l.no_holes = true;
	add(&l, 0, 1000, 60);
	ok(rows_log_flush(&l) == 0,
	    "without holes: up to the limit all is kept");
	add(&l, 1000, 5000, 60);
	ok(rows_log_flush(&l) == -1 && errno == EFBIG,
	    "behind it the new rows are dropped, and that is said");
	add(&l, 5000, 9000, 60);
	ok(rows_log_flush(&l) == -1 && rows_count(&f) == 9000 &&
		reads(&f, 0, UINT64_MAX, 9000, 60, &t) && t.rows == 1000 &&
		t.gap == 1000 && rows_log_lost(&l, NULL) == 8000,
	    "and counted");
	(void)rows_log_close(&l);
	rows_close(&f);
	io_drop(&fd);
}

/* A limit for files stands for a disk that is full, anywhere. */
static void
full(void)
{
	struct rlimit was, less;
	struct rows_log l;
	struct rows_file f;
	struct told t;
	uint64_t at, lost, round;
	bool good = true, failed;
	int fd;

	(void)getrlimit(RLIMIT_FSIZE, &was);
	less = was;
	for (round = 0; round < 60 && good; round++) {
		fd = fresh("full");
		must(rows_log_open(&l, fd, 0) == 0, "open");
		must(rows_open(&f, fd) == 0, "open");
		add(&l, 0, 100, 60);
		must(rows_log_flush(&l) == 0, "flush");
		/* Sometimes the text is in the way, sometimes the index. */
		less.rlim_cur = 3000 + chance(1000);
		if (round % 2 == 0) {
			add(&l, 100, 500, 60);
			less.rlim_cur = (rlim_t)l.off + chance(15000);
		} else
			add(&l, 100, 500, 0);
		(void)setrlimit(RLIMIT_FSIZE, &less);
		failed = rows_log_flush(&l) == -1;
		(void)setrlimit(RLIMIT_FSIZE, &was);
		lost = rows_log_lost(&l, NULL);
		good = failed == (lost > 0) && rows_log_flush(&l) == 0;
		at = 500;
		add(&l, at, at + 50, round % 2 == 0 ? 60 : 0);
		good &= rows_log_flush(&l) == 0 && rows_count(&f) == 550;
		memset(&t, 0, sizeof t);
		t.max = 60;
		good &= rows_read(&f, 0, 100, check, &t) == 100 && !t.bad;
		t.max = round % 2 == 0 ? 60 : 0;
		good &= rows_read(&f, 100, 999, check, &t) == 450 && !t.bad &&
		    t.rows == 550 - lost && t.gaps == (lost > 0);
		if (!good)
			printf("# round %ju: lost %ju, told %ju, gaps %ju\n",
			    (uintmax_t)round, (uintmax_t)lost,
			    (uintmax_t)t.rows, (uintmax_t)t.gaps);
		(void)rows_log_close(&l);
		rows_close(&f);
		io_drop(&fd);
	}
	ok(good, "a full disk loses rows, and later ones are right");
}

/* A reader beside a writer that makes holes all the time. */
static void
beside(void)
{
	struct rows_log l;
	struct rows_file f;
	struct told t = { .gaps = 0 };
	uint64_t at = 0, reads_done = 0, first;
	int64_t count;
	bool good = true;
	pid_t pid;
	int fd, status = 0;

	fd = fresh("beside");
	must(rows_log_open(&l, fd, 300000) == 0, "open");
	(void)fflush(stdout);
	pid = fork();
	must(pid != -1, "fork");
	if (pid == 0) {
		chance_state ^= 0x5555;
		while (at < 400000) {
			add(&l, at, at + 500, 60);
			at += 500;
			if (rows_log_flush(&l) == -1)
				_exit(1);
		}
		_exit(0);
	}
	must(rows_open(&f, fd) == 0, "open");
	while (good && waitpid(pid, &status, WNOHANG) == 0) {
		count = rows_count(&f);
		if (count <= 0)
			continue;
		/* Often where the gap grows. */
		first = chance(2) == 0 || t.gaps == 0 ? chance((unsigned)count)
						      : t.past;
		memset(&t, 0, sizeof t);
		t.next = first;
		t.max = 60;
		good = rows_read(&f, first, 1 + chance(4000), check, &t) >= 0 &&
		    !t.bad;
		if (!good)
			printf("# from %ju of %jd: %s\n", (uintmax_t)first,
			    (intmax_t)count, strerror(errno));
		reads_done++;
	}
	if (!good)
		(void)waitpid(pid, &status, 0);
	printf("# %ju reads\n", (uintmax_t)reads_done);
	ok(good && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
		rows_count(&f) == 400000,
	    "a reader beside the writer never reads what is not so");
	rows_close(&f);
	io_drop(&fd);
}

int
main(void)
{
	chance_state = (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
	printf("# seed %ju\n", (uintmax_t)chance_state);
	(void)sigaction(
	    SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	must(mkdtemp(dir) != NULL, dir);
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(dirfd != -1, dir);
	plain();
	many();
	limited(65536, 60, 60000, "a limit: the first and the newest are kept");
	limited(1000000, 200, 60000, "another limit");
	limited(20000, 9000, 3000, "a small limit for long rows");
	no_holes();
	full();
	beside();
	must(path_rm_tree(AT_FDCWD, dir) == 0, dir);
	io_drop(&dirfd);
	return done();
}
