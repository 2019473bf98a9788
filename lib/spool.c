/* SPDX-License-Identifier: MIT */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io.h"

enum {
	BLOCK = SPOOL_BLOCK,
	GAP_BYTES = 42 /* two numbers of 20 digits, a blank, a newline */
};

static off_t
align(off_t at)
{
	return at - at % BLOCK;
}

int
gap_write(int fd, const struct gap *gap)
{
	char line[GAP_BYTES + 1];

	snprintf(line, sizeof line, "%020jd %020jd\n", (intmax_t)gap->from,
	    (intmax_t)gap->to);
	/* One short write at a fixed place: a reader sees the old or the new
	 * one, as long as both processes live. */
	if (pwrite(fd, line, GAP_BYTES, 0) != GAP_BYTES)
		return -1;
	return 0;
}

int
spool_punch(int fd, off_t from, off_t to)
{
	return fallocate(
	    fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from);
}

static int
make(int dirfd, const char *name)
{
	return openat(dirfd, name,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int
gap_name(char *out, size_t n, const char *name)
{
	int len = snprintf(out, n, "%s.gap", name);

	if (len < 0 || (size_t)len >= n) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return 0;
}

int
spool_make(struct spool *s, int dirfd, const char *name, off_t keep)
{
	char gap[64];

	*s = (struct spool)SPOOL_INIT;
	s->keep = align(keep + BLOCK - 1);
	if (gap_name(gap, sizeof gap, name) == -1)
		return -1;
	s->fd = make(dirfd, name);
	s->gapfd = s->fd == -1 ? -1 : make(dirfd, gap);
	if (s->gapfd == -1 || gap_write(s->gapfd, &s->gap) == -1) {
		spool_close(s);
		return -1;
	}
	return 0;
}

/*
 * The gap grows by a quarter of what is kept at a time. It is written down
 * before the hole is made: nobody takes the hole's zeros for text.
 */
static int
trim(struct spool *s)
{
	const off_t step = s->keep / 4 > BLOCK ? s->keep / 4 : BLOCK;
	struct gap gap = s->gap;
	off_t old = gap.to;

	if (gap.to == 0)
		gap.from = gap.to = old = SPOOL_HEAD;
	if (s->len < gap.to + s->keep + step)
		return 0;
	if (gap.from > SPOOL_HEAD)
		gap.from = old = SPOOL_HEAD;
	gap.to = align(s->len - s->keep);
	if (gap_write(s->gapfd, &gap) == -1)
		return -1;
	if (spool_punch(s->fd, old, gap.to) == -1) {
		if (errno != EOPNOTSUPP && errno != ENOSYS)
			return -1;
		s->full = s->cut = true;
		gap.from = s->len;
		gap.to = s->len;
		/* What was lost before cannot stay in the middle. */
		if (s->gap.to > s->gap.from &&
		    ftruncate(s->fd, s->gap.from) == 0)
			gap.from = s->gap.from;
	}
	s->gap = gap;
	return 0;
}

/* Nothing is written behind a gap that nobody could know of. */
static int
tell(struct spool *s)
{
	if (gap_write(s->gapfd, &s->gap) == -1)
		return -1;
	s->untold = false;
	/* Where this fails, the next bytes make the file as long. */
	s->cut = ftruncate(s->fd, s->gap.to) == -1;
	return 0;
}

/* The next n bytes cannot be written: they lie in the gap. Keeps errno. */
static void
lose(struct spool *s, size_t n)
{
	const off_t old = s->gap.to, len = s->len;
	const int err = errno;

	if (s->gap.to == s->gap.from)
		s->gap.from = len;
	s->gap.to = s->len = len + (off_t)n;
	s->untold = true;
	if (tell(s) == 0 && s->gap.from < old && old < len)
		spool_punch(s->fd, old, len);
	errno = err;
}

int
spool_add(struct spool *s, const void *p, size_t n)
{
	const char *at = p;
	int err = s->untold && n == 0 && tell(s) == -1 ? errno : 0;

	while (n > 0) {
		ssize_t done;

		if (s->full) {
			s->len += (off_t)n;
			s->gap.to = s->len;
			return gap_write(s->gapfd, &s->gap);
		}
		done = s->untold && tell(s) == -1
		    ? -1
		    : pwrite(s->fd, at, n, s->len);
		if (done == -1 && errno == EINTR)
			continue;
		if (done == -1) {
			lose(s, n);
			return -1;
		}
		s->cut = false;
		at += done;
		n -= (size_t)done;
		s->len += done;
		if (trim(s) == -1)
			err = errno;
	}
	if (err != 0)
		errno = err;
	return err != 0 ? -1 : 0;
}

void
spool_close(struct spool *s)
{
	io_drop(&s->fd);
	io_drop(&s->gapfd);
}

int
spool_gap(int dirfd, const char *name, struct gap *gap)
{
	struct buf b = BUF_INIT;
	char file[64];
	int rc = -1;

	*gap = (struct gap){ 0 };
	if (gap_name(file, sizeof file, name) == -1)
		return -1;
	if (io_read_file_at(dirfd, file, &b, GAP_BYTES) == -1) {
		rc = errno == ENOENT ? 0 : -1;
		goto out;
	}
	if (b.len == GAP_BYTES && b.data[20] == ' ' &&
	    b.data[GAP_BYTES - 1] == '\n') {
		gap->from = strtoll(b.data, NULL, 10);
		gap->to = strtoll(b.data + 21, NULL, 10);
		rc = gap->from >= 0 && gap->to >= gap->from ? 0 : -1;
	}
	if (rc == -1)
		errno = EINVAL;
out:
	buf_release(&b);
	return rc;
}
