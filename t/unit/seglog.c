/* SPDX-License-Identifier: MIT */
/* The log in two segments: budget, rotation, repair, and what is dropped. */
#include "seglog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "lock.h"
#include "path.h"

#include "tap.h"

#define NAME "log"

static struct seglog small = { .name = NAME, .max_bytes = 200, .max_line = 60 };
static int dir;

static void
check(bool good)
{
	if (!good) {
		perror("seglog");
		exit(111);
	}
}

/* An empty directory. */
static void
begin(void)
{
	struct names v = NAMES_INIT;

	check(names_read(dir, &v) == 0);
	for (size_t i = 0; i < v.n; i++)
		check(path_rm_tree(dir, v.name[i]) == 0);
	names_release(&v);
}

static void
put(const char *name, const char *text, size_t n)
{
	int fd =
	    openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	check(fd != -1 && io_write_all(fd, text, n) == 0 && io_close(fd) == 0);
}

static bool
is(const char *name, const char *text)
{
	struct buf b = BUF_INIT;
	bool good = io_read_file_at(dir, name, &b, 1 << 24) == 0 &&
	    strcmp(buf_str(&b), text) == 0;

	if (!good)
		printf("# %s: %s\n", name, buf_str(&b));
	buf_release(&b);
	return good;
}

static bool
is_missing(const char *name)
{
	struct stat st;

	return path_lstat(dir, name, &st) == -1 && errno == ENOENT;
}

static off_t
size(const char *name)
{
	struct stat st;

	return path_lstat(dir, name, &st) == -1 ? 0 : st.st_size;
}

static bool
counts(const struct seglog *log, uint64_t busy, uint64_t storage,
    uint64_t oversized, uint64_t truncated)
{
	uint64_t n[SEGLOG_COUNTS];
	bool good = seglog_counts(dir, log, n) == 0 && n[SEGLOG_BUSY] == busy &&
	    n[SEGLOG_STORAGE] == storage && n[SEGLOG_OVERSIZED] == oversized &&
	    n[SEGLOG_TRUNCATED] == truncated;

	if (!good)
		printf("# busy %" PRIu64 " storage %" PRIu64
		       " oversized %" PRIu64 " truncated %" PRIu64 "\n",
		    n[SEGLOG_BUSY], n[SEGLOG_STORAGE], n[SEGLOG_OVERSIZED],
		    n[SEGLOG_TRUNCATED]);
	return good;
}

static void
add(const char *lines)
{
	seglog_append(dir, &small, lines, strlen(lines));
}

/* A line of n bytes, its newline included. */
static const char *
line(char c, size_t n)
{
	static char text[4096];

	memset(text, c, n - 1);
	text[n - 1] = '\n';
	text[n] = '\0';
	return text;
}

static void
test_append(void)
{
	begin();
	errno = ENOTTY;
	add("one\n");
	ok(errno == ENOTTY, "errno is left alone");
	add("two\nthree\n");
	ok(is(NAME, "one\ntwo\nthree\n") && is_missing(NAME ".1"),
	    "lines stand behind each other");
	ok(counts(&small, 0, 0, 0, 0) && is_missing(NAME ".counts"),
	    "nothing is counted when nothing is lost");
}

static void
test_rotation(void)
{
	begin();
	add(line('a', 50));
	add(line('b', 49));
	ok(size(NAME) == 99 && is_missing(NAME ".1"),
	    "one byte less than full");
	add("\n");
	ok(size(NAME) == 100 && is_missing(NAME ".1"), "exactly full");
	add("x\n");
	ok(is(NAME, "x\n") && size(NAME ".1") == 100,
	    "one more rotates before");
	add(line('c', 60));
	add(line('d', 60));
	ok(size(NAME) == 60 && size(NAME ".1") == 62,
	    "the older segment goes when the newer one is full");
	begin();
	seglog_append(dir, &small,
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	    "bbbbbbbbb\nccccccccccccccccccccccccccccccccccccccc\nd\n",
	    112);
	ok(size(NAME ".1") == 70 && size(NAME) == 42,
	    "lines that are appended together are parted where a segment ends");
	begin();
	add(line('e', 101));
	add("f\n");
	ok(is(NAME, "f\n") && counts(&small, 0, 0, 1, 0),
	    "a line longer than a segment is dropped and counted");
}

static void
test_budget(void)
{
	struct seglog log = {
		.name = NAME, .max_bytes = 65536, .max_line = 16384
	};
	static char text[16384];
	int rotations = 0;
	bool good = true;
	off_t before = 0;

	begin();
	for (int i = 0; i < 64; i++) {
		memset(text, 'a' + i % 26, sizeof text);
		text[16000 + i] = '\n';
		seglog_append(dir, &log, text, (size_t)(16001 + i));
		rotations += size(NAME) < before;
		before = size(NAME);
		good = good && size(NAME) <= 32768 && size(NAME ".1") <= 32768;
	}
	ok(good && rotations >= 10, "the budget is kept after every append");
}

static void
test_repair(void)
{
	struct buf b = BUF_INIT;

	begin();
	put(NAME, "one\ntwo\nthr", 11);
	put(NAME ".compact.999999", "x", 1);
	add("four\n");
	ok(is(NAME, "one\ntwo\nfour\n"), "half a line at the end goes");
	ok(is_missing(NAME ".compact.999999"),
	    "so does what a killed repair left");
	put(NAME ".1", "old\nhal", 7);
	add("five\n");
	ok(is(NAME ".1", "old\n"), "in the older segment too");

	begin();
	for (int i = 0; i < 400; i++)
		buf_addf(&b, "line %04d\n", i);
	put(NAME, b.data, b.len);
	put(NAME ".1", b.data, b.len);
	add("new\n");
	ok(size(NAME ".1") == 100 && is(NAME, "new\n"),
	    "of segments far too large the newest lines stay");
	ok(strncmp(b.data + b.len - 100, "line 0390\n", 10) == 0 &&
		is(NAME ".1", b.data + b.len - 100),
	    "a line that begins where the rest is cut off is whole");

	begin();
	buf_cut(&b, 0);
	buf_adds(&b, "first\n");
	buf_adds(&b, line('y', 61));
	buf_adds(&b, "last\npart");
	put(NAME, b.data, b.len);
	add("new\n");
	ok(is(NAME, "first\nlast\nnew\n") && counts(&small, 0, 0, 1, 0),
	    "a repair drops too long lines and counts them");

	begin();
	put(NAME, "part without end", 16);
	add("new\n");
	ok(is(NAME, "new\n"), "nothing stays where there is no whole line");

	begin();
	put(NAME ".1", "was active\n", 11);
	add("new\n");
	ok(is(NAME, "new\n") && is(NAME ".1", "was active\n"),
	    "a rotation that was killed in between");
	buf_release(&b);
}

static void
test_busy(void)
{
	int lock;

	begin();
	add("one\n");
	lock = lock_take(dir, NAME ".lock", true, 0);
	check(lock != -1);
	add("two\nthree\n");
	ok(is(NAME, "one\n") && counts(&small, 2, 0, 0, 0),
	    "while the lock is held lines are dropped and counted");
	io_drop(&lock);
	add("four\n");
	ok(is(NAME, "one\nfour\n") && counts(&small, 2, 0, 0, 0),
	    "afterwards it goes on");
	for (int i = 0; i < 6000; i++)
		seglog_add(dir, &small, SEGLOG_TRUNCATED, 2);
	add("five\n");
	for (int i = 0; i < 6000; i++)
		seglog_add(dir, &small, SEGLOG_TRUNCATED, 3);
	add("six\n");
	ok(size(NAME ".counts") < 4096 && counts(&small, 2, 0, 0, 30000),
	    "counts are added up when they become long");
}

static void
test_storage(void)
{
	struct rlimit old, limit;

	begin();
	check(symlinkat("/dev/full", dir, NAME) == 0);
	add("one\n");
	ok(counts(&small, 0, 1, 0, 0), "a link is not followed, and counted");
	begin();
	check(symlinkat("/dev/full", dir, NAME ".1") == 0);
	add("one\n");
	ok(counts(&small, 0, 1, 0, 0) && is_missing(NAME),
	    "nor in the older segment");
	begin();
	check(mkfifoat(dir, NAME, 0600) == 0);
	add("one\n");
	ok(counts(&small, 0, 1, 0, 0), "a pipe is no segment");
	begin();
	check(mkdirat(dir, NAME ".lock", 0700) == 0);
	add("one\ntwo\n");
	ok(counts(&small, 0, 2, 0, 0), "a lock that cannot be opened");
	begin();
	add("one\n");
	check(getrlimit(RLIMIT_FSIZE, &old) == 0);
	limit = old;
	limit.rlim_cur = 14;
	check(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	add("two\nthree four five\n");
	check(setrlimit(RLIMIT_FSIZE, &old) == 0);
	ok(is(NAME, "one\n") && counts(&small, 0, 2, 0, 0),
	    "no room for all: nothing stays of it, and we live");
	add("six\n");
	ok(is(NAME, "one\nsix\n"), "with room again it goes on");
}

/* Each line is that of one writer, whole. */
static bool
is_sound(const char *name, size_t *lines)
{
	struct buf b = BUF_INIT;
	bool good = true;
	char *at, *lf;

	*lines = 0;
	check(io_read_file_at(dir, name, &b, 1 << 24) == 0 || errno == ENOENT);
	for (at = b.data; at && *at; at = lf + 1) {
		lf = strchr(at, '\n');
		good = good && lf && lf - at == 9 + (at[8] - '0') * 10 &&
		    strspn(at + 9, "x") == (size_t)(lf - at) - 9;
		if (!lf)
			break;
		++*lines;
	}
	buf_release(&b);
	return good;
}

static void
writer(const struct seglog *log, int who, int n)
{
	char text[128];

	for (int i = 0; i < n; i++) {
		int len = snprintf(text, sizeof text, "%02d-%04d-%d%.*s\n", who,
		    i, i % 5, i % 5 * 10,
		    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");

		seglog_append(dir, log, text, (size_t)len);
	}
	_exit(0);
}

static void
many(uint64_t budget, bool all)
{
	enum {
		WRITERS = 8,
		EACH = 1000
	};
	struct seglog log = { NAME, budget, 60 };
	uint64_t n[SEGLOG_COUNTS];
	size_t now, old;
	bool good = true;

	begin();
	fflush(stdout);
	for (int i = 0; i < WRITERS; i++)
		if (fork() == 0)
			writer(&log, i, EACH);
	while (wait(NULL) > 0)
		continue;
	good = is_sound(NAME, &now) && is_sound(NAME ".1", &old) &&
	    seglog_counts(dir, &log, n) == 0;
	ok(good && size(NAME) <= (off_t)budget / 2 &&
		size(NAME ".1") <= (off_t)budget / 2,
	    "writers at once: all lines are whole, the budget is kept");
	if (all)
		ok(now + old + n[SEGLOG_BUSY] == WRITERS * EACH &&
			n[SEGLOG_STORAGE] + n[SEGLOG_OVERSIZED] == 0,
		    "each line is there, or counted");
	printf("# %zu lines, %" PRIu64 " dropped\n", now + old, n[SEGLOG_BUSY]);
}

int
main(void)
{
	char name[] = "/tmp/seglog.XXXXXX";

	if (!mkdtemp(name))
		return 111;
	dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir == -1)
		return 111;
	test_append();
	test_rotation();
	test_budget();
	test_repair();
	test_busy();
	test_storage();
	many(1 << 22, true);
	many(4096, false);
	path_rm_tree(AT_FDCWD, name);
	return done();
}
