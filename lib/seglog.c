/* SPDX-License-Identifier: MIT */
#include "seglog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "lock.h"
#include "num.h"
#include "path.h"

enum {
	FILE_NAME = 128, /* of all our files */
	COUNTS_MAX = 1 << 24,
	COUNTS_FOLD = 65536 /* so large, they are added up */
};

static const char *const word[SEGLOG_COUNTS] = {
	[SEGLOG_BUSY] = "busy",
	[SEGLOG_STORAGE] = "storage",
	[SEGLOG_OVERSIZED] = "oversized",
	[SEGLOG_TRUNCATED] = "truncated",
};

struct segment {
	char name[FILE_NAME];
	int fd; /* -1: it is not there */
	off_t size;
};

static uint64_t
cap_of(const struct seglog *log)
{
	return log->max_bytes / 2;
}

/* ---- counts: lines "WORD N", of which each adds N ---- */

static void
counts_name(const struct seglog *log, const char *suffix, char out[FILE_NAME])
{
	snprintf(out, FILE_NAME, "%s.counts%s", log->name, suffix);
}

/* Appended without a lock, so that it can be done when the lock is held. */
void
seglog_add(
    int dirfd, const struct seglog *log, enum seglog_count which, uint64_t n)
{
	char name[FILE_NAME], line[64];
	int err = errno, len, fd;

	if (n == 0)
		return;
	counts_name(log, "", name);
	len = snprintf(line, sizeof line, "%s %" PRIu64 "\n", word[which], n);
	fd = openat(dirfd, name,
	    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
	    0600);
	/* Should it fail, there is nobody to tell. */
	if (fd != -1)
		io_write_all(fd, line, (size_t)len);
	io_drop(&fd);
	errno = err;
}

static void
add_line(char *line, uint64_t out[SEGLOG_COUNTS])
{
	char *blank = strchr(line, ' ');
	uint64_t n;

	if (!blank || !num_dec(blank + 1, 0, UINT64_MAX, &n))
		return;
	*blank = '\0';
	for (int i = 0; i < SEGLOG_COUNTS; i++)
		if (strcmp(line, word[i]) == 0)
			out[i] += n;
}

static int
add_file(int dirfd, const char *name, uint64_t out[SEGLOG_COUNTS])
{
	struct buf b = BUF_INIT;
	char *at, *lf;
	int rc = 0;

	if (io_read_file_at(dirfd, name, &b, COUNTS_MAX) == -1)
		rc = errno == ENOENT ? 0 : -1;
	for (at = b.data; rc == 0 && at; at = lf + 1) {
		lf = strchr(at, '\n');
		if (!lf)
			break;
		*lf = '\0';
		add_line(at, out);
	}
	buf_release(&b);
	return rc;
}

int
seglog_counts(int dirfd, const struct seglog *log, uint64_t out[SEGLOG_COUNTS])
{
	char now[FILE_NAME], old[FILE_NAME];

	counts_name(log, "", now);
	counts_name(log, ".1", old);
	memset(out, 0, SEGLOG_COUNTS * sizeof *out);
	return add_file(dirfd, old, out) == -1 ? -1 : add_file(dirfd, now, out);
}

/*
 * Who adds may have opened the file before we move it, and write afterwards:
 * what was moved is added up the next time, thousands of counts later.
 */
static void
fold_counts(int dirfd, const struct seglog *log)
{
	uint64_t n[SEGLOG_COUNTS] = { 0 };
	char now[FILE_NAME], old[FILE_NAME];
	struct stat st;

	counts_name(log, "", now);
	counts_name(log, ".1", old);
	if (path_lstat(dirfd, now, &st) == -1 || st.st_size <= COUNTS_FOLD ||
	    add_file(dirfd, old, n) == -1)
		return;
	for (int i = 0; i < SEGLOG_COUNTS; i++)
		seglog_add(dirfd, log, (enum seglog_count)i, n[i]);
	renameat(dirfd, now, dirfd, old);
}

/* ---- repair ---- */

static int
open_segment(int dirfd, struct segment *s, int flags)
{
	struct stat st;

	s->fd = openat(dirfd, s->name,
	    O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
		flags,
	    0600);
	if (s->fd == -1)
		return -1;
	if (fstat(s->fd, &st) == 0) {
		s->size = st.st_size;
		if (S_ISREG(st.st_mode))
			return 0;
		errno = EINVAL;
	}
	io_drop(&s->fd);
	return -1;
}

/* 1, 0, -1 errno. */
static int
is_damaged(const struct segment *s, uint64_t cap)
{
	char last;

	if (s->fd == -1 || s->size == 0)
		return 0;
	if ((uint64_t)s->size > cap)
		return 1;
	if (pread(s->fd, &last, 1, s->size - 1) != 1)
		return -1;
	return last != '\n';
}

/* The newest whole lines that fit, of those that are not too long. */
static int
read_good(const struct segment *s, const struct seglog *log, struct buf *out,
    uint64_t *oversized)
{
	uint64_t want = cap_of(log) + 1; /* with the byte before */
	off_t from = (uint64_t)s->size > want ? s->size - (off_t)want : 0;
	struct buf b = BUF_INIT;
	char *at, *lf;
	int rc = -1;

	if (lseek(s->fd, from, SEEK_SET) == -1 ||
	    io_read_buf(s->fd, &b, (size_t)want) == -1)
		goto out;
	at = b.data;
	/* The first is whole if the byte before it ends another. */
	if (at && b.len == want) {
		lf = memchr(at, '\n', b.len);
		at = lf ? lf + 1 : NULL;
	}
	for (; at && at < b.data + b.len; at = lf + 1) {
		lf = memchr(at, '\n', (size_t)(b.data + b.len - at));
		if (!lf)
			break;
		if ((size_t)(lf + 1 - at) <= log->max_line)
			buf_add(out, at, (size_t)(lf + 1 - at));
		else
			++*oversized;
	}
	rc = 0;
out:
	buf_release(&b);
	return rc;
}

/* What killed repairs left: nobody else is at it, we have the lock. */
static void
sweep(int dirfd, const struct seglog *log)
{
	struct names v = NAMES_INIT;
	char prefix[FILE_NAME];
	int n = snprintf(prefix, sizeof prefix, "%s.compact.", log->name);

	if (names_read(dirfd, &v) == -1)
		return;
	for (size_t i = 0; i < v.n; i++)
		if (strncmp(v.name[i], prefix, (size_t)n) == 0)
			unlinkat(dirfd, v.name[i], 0);
	names_release(&v);
}

static int
rewrite(int dirfd, const struct seglog *log, struct segment *s)
{
	char tmp[FILE_NAME];
	struct buf b = BUF_INIT;
	uint64_t oversized = 0;
	int fd = -1, rc = -1;

	snprintf(tmp, sizeof tmp, "%s.compact.%ld", log->name, (long)getpid());
	sweep(dirfd, log);
	if (read_good(s, log, &b, &oversized) == -1)
		goto out;
	fd = openat(dirfd, tmp,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		goto out;
	if (io_write_all(fd, buf_str(&b), b.len) == -1 || fdatasync(fd) == -1 ||
	    renameat(dirfd, tmp, dirfd, s->name) == -1) {
		unlinkat(dirfd, tmp, 0);
		goto out;
	}
	seglog_add(dirfd, log, SEGLOG_OVERSIZED, oversized);
	io_drop(&s->fd);
	rc = open_segment(dirfd, s, 0);
out:
	io_drop(&fd);
	buf_release(&b);
	return rc;
}

/* Opens the segment that flags may make; what is wrong with it is mended. */
static int
open_whole(int dirfd, const struct seglog *log, struct segment *s, int flags)
{
	int rc = open_segment(dirfd, s, flags);

	if (rc == -1)
		return errno == ENOENT ? 0 : -1;
	rc = is_damaged(s, cap_of(log));
	return rc == 1 ? rewrite(dirfd, log, s) : rc;
}

/* ---- append ---- */

static size_t
line_len(const char *p, size_t n)
{
	const char *lf = memchr(p, '\n', n);

	return lf ? (size_t)(lf - p) + 1 : n;
}

static uint64_t
count_lines(const char *p, size_t n)
{
	uint64_t lines = 0;

	for (size_t at = 0; at < n; at += line_len(p + at, n - at))
		lines++;
	return lines;
}

/* How much of the lines fits. */
static size_t
fitting(const char *p, size_t n, uint64_t room)
{
	size_t at = 0;

	while (at < n) {
		size_t len = line_len(p + at, n - at);

		if (at + len > room)
			break;
		at += len;
	}
	return at;
}

/* All of it, or nothing; half a line that cannot be taken back is repaired. */
static int
write_lines(struct segment *s, const char *p, size_t n)
{
	int err;

	if (io_write_all(s->fd, p, n) == 0) {
		s->size += (off_t)n;
		return 0;
	}
	err = errno;
	if (ftruncate(s->fd, s->size) == 0)
		errno = err;
	return -1;
}

static int
rotate(int dirfd, struct segment *s, const char *old)
{
	if (renameat(dirfd, s->name, dirfd, old) == -1)
		return -1;
	io_drop(&s->fd);
	return open_segment(dirfd, s, O_CREAT | O_EXCL);
}

/* With the lock; how much was written, or is too long for it. */
static size_t
append(int dirfd, const struct seglog *log, const char *p, size_t n)
{
	struct segment now = { .fd = -1 }, old = { .fd = -1 };
	const uint64_t cap = cap_of(log);
	size_t at = 0, len;

	snprintf(now.name, sizeof now.name, "%s", log->name);
	snprintf(old.name, sizeof old.name, "%s.1", log->name);
	if (open_whole(dirfd, log, &old, 0) == -1 ||
	    open_whole(dirfd, log, &now, O_CREAT) == -1)
		goto out;
	while (at < n) {
		len = fitting(p + at, n - at, cap - (uint64_t)now.size);
		if (len > 0) {
			if (write_lines(&now, p + at, len) == -1)
				break;
			at += len;
			continue;
		}
		len = line_len(p + at, n - at);
		if (len > cap) {
			seglog_add(dirfd, log, SEGLOG_OVERSIZED, 1);
			at += len;
		} else if (rotate(dirfd, &now, old.name) == -1) {
			break;
		}
	}
out:
	io_drop(&now.fd);
	io_drop(&old.fd);
	return at;
}

/* A limit of file sizes is an error like another, and must not end us. */
static void
ignore_limit(struct sigaction *old)
{
	struct sigaction sa = { .sa_handler = SIG_IGN };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGXFSZ, &sa, old);
}

void
seglog_append(int dirfd, const struct seglog *log, const char *lines, size_t n)
{
	struct sigaction limit;
	char name[FILE_NAME];
	int err = errno, lock;
	size_t done;

	ignore_limit(&limit);
	snprintf(name, sizeof name, "%s.lock", log->name);
	lock = lock_take(dirfd, name, true, 0);
	if (lock == -1) {
		seglog_add(dirfd, log,
		    errno == EAGAIN ? SEGLOG_BUSY : SEGLOG_STORAGE,
		    count_lines(lines, n));
	} else {
		done = append(dirfd, log, lines, n);
		seglog_add(dirfd, log, SEGLOG_STORAGE,
		    count_lines(lines + done, n - done));
		fold_counts(dirfd, log);
	}
	io_drop(&lock);
	sigaction(SIGXFSZ, &limit, NULL);
	errno = err;
}
