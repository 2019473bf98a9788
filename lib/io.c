/* SPDX-License-Identifier: MIT */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"

int
io_write_all(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t w = write(fd, at, n);

		if (w == -1 && errno == EINTR)
			continue;
		if (w == -1)
			return -1;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

ssize_t
io_read_some(int fd, void *p, size_t n)
{
	ssize_t r;

	do
		r = read(fd, p, n);
	while (r == -1 && errno == EINTR);
	return r;
}

ssize_t
io_read_all(int fd, void *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = io_read_some(fd, (char *)p + got, n - got);

		if (r == -1)
			return -1;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

/*
 * Most files are small: the buffer does not grow before it is full, and each
 * piece of it is larger than the one before.
 */
int
io_read_buf(int fd, struct buf *b, size_t max)
{
	size_t piece = 4096, room = 0;
	ssize_t r;

	for (;;) {
		if (room == 0) {
			room = b->len < max ? max - b->len : 0;
			if (room > piece)
				room = piece;
			if (piece < 1 << 16)
				piece *= 4;
			/* One byte beyond the limit tells "too large" from
			 * "full". */
			buf_reserve(b, ++room);
		}
		r = io_read_some(fd, b->data + b->len, room);
		if (r == -1)
			return -1;
		if (r == 0)
			return 0;
		if (b->len > max || (size_t)r > max - b->len) {
			errno = EFBIG;
			return -1;
		}
		room -= (size_t)r;
		buf_cut(b, b->len + (size_t)r);
	}
}

int
io_read_file_at(int dirfd, const char *path, struct buf *b, size_t max)
{
	int fd, rc;

	/* Non-blocking, so that a FIFO in the place of the file cannot hang. */
	fd =
	    openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1)
		return -1;
	rc = io_read_buf(fd, b, max);
	io_drop(&fd);
	return rc;
}

/* At most n bytes through a buffer; less only at end of file. */
static off_t
copy_loop(int in, int out, off_t n)
{
	static char data[1 << 17];
	off_t total = 0;

	while (total < n) {
		size_t want = n - total < (off_t)sizeof data
		    ? (size_t)(n - total)
		    : sizeof data;
		ssize_t r = io_read_some(in, data, want);

		if (r == -1)
			return -1;
		if (r == 0)
			break;
		if (io_write_all(out, data, (size_t)r) == -1)
			return -1;
		total += r;
	}
	return total;
}

/* At most n bytes as they come; less only at end of file. */
static off_t
copy_bytes(int in, int out, off_t n)
{
	const off_t most = 1 << 30;
	off_t total = 0, rest;

	while (total < n) {
		size_t want = (size_t)(n - total < most ? n - total : most);
		ssize_t r = copy_file_range(in, NULL, out, NULL, want, 0);

		if (r > 0) {
			total += r;
			continue;
		}
		/* 0 is also what some file systems say that cannot do it. */
		if (r == -1 && errno == EINTR)
			continue;
		if (r == 0 && total > 0)
			break;
		if (r == -1 && errno != EXDEV && errno != EINVAL &&
		    errno != ENOSYS && errno != EOPNOTSUPP && errno != EBADF)
			return -1;
		rest = copy_loop(in, out, n - total);
		return rest == -1 ? -1 : total + rest;
	}
	return total;
}

/* From the offset at of in to the offset to of out, only what is no hole. */
static off_t
copy_data(int in, int out, off_t at, off_t to)
{
	off_t start = at, shift = to - at, data, end, n;

	for (;;) {
		data = lseek(in, at, SEEK_DATA);
		if (data == -1 && errno == ENXIO)
			break;
		end = data == -1 ? -1 : lseek(in, data, SEEK_HOLE);
		if (end == -1 || lseek(in, data, SEEK_SET) == -1 ||
		    lseek(out, data + shift, SEEK_SET) == -1)
			return -1;
		n = copy_bytes(in, out, end - data);
		if (n == -1)
			return -1;
		at = data + n;
		if (n < end - data)
			break; /* it became shorter meanwhile */
	}
	end = lseek(in, 0, SEEK_END);
	if (end == -1)
		return -1;
	if (end < at)
		end = at;
	/* What ends in a hole gets its size here. */
	if (ftruncate(out, end + shift) == -1 ||
	    lseek(out, end + shift, SEEK_SET) == -1)
		return -1;
	return end - start;
}

/*
 * Has in, read from at, holes that out, written at its end, can have as well?
 * Over what out has already, or where it appends by itself, they are bytes.
 */
static bool
can_have_holes(int in, int out, off_t at, off_t to)
{
	struct stat a, b;
	int flags;

	if (at == -1 || to == -1 || fstat(in, &a) == -1 ||
	    !S_ISREG(a.st_mode) || a.st_blocks >= a.st_size / 512 ||
	    fstat(out, &b) == -1 || !S_ISREG(b.st_mode) || b.st_size != to)
		return false;
	flags = fcntl(out, F_GETFL);
	return flags != -1 && (flags & O_APPEND) == 0;
}

off_t
io_copy(int in, int out)
{
	off_t at = lseek(in, 0, SEEK_CUR), to = lseek(out, 0, SEEK_CUR);

	if (at == 0 && to == 0 && ioctl(out, FICLONE, in) == 0)
		return lseek(out, 0, SEEK_END);
	if (can_have_holes(in, out, at, to))
		return copy_data(in, out, at, to);
	return copy_bytes(in, out, INT64_MAX);
}

int
io_same(int a, int b)
{
	static char x[1 << 16], y[1 << 16];
	ssize_t n, m;

	if (lseek(a, 0, SEEK_SET) == -1 || lseek(b, 0, SEEK_SET) == -1)
		return -1;
	do {
		n = io_read_all(a, x, sizeof x);
		m = io_read_all(b, y, sizeof y);
		if (n == -1 || m == -1)
			return -1;
		if (n != m || memcmp(x, y, (size_t)n) != 0)
			return 0;
	} while (n > 0);
	return 1;
}

int
io_ready_fd(int fd)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void
io_ready(int *fd)
{
	if (*fd != -1 && io_write_all(*fd, "\n", 1) == -1)
		errno = 0;
	io_drop(fd);
}

int
io_wait(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int rc;

	do
		rc = poll(&p, 1, ms);
	while (rc == -1 && errno == EINTR);
	if (rc == 0)
		errno = ETIMEDOUT;
	return rc == 1 ? 0 : -1;
}

int
io_close(int fd)
{
	int err = errno;

	if (close(fd) == -1)
		return -1;
	errno = err;
	return 0;
}

void
io_drop(int *fd)
{
	int err = errno;

	if (*fd != -1)
		close(*fd);
	*fd = -1;
	errno = err;
}

void
io_many_fds(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

void
stdout_done(void)
{
	/* What is there cannot be followed by an error. */
	err_on_death(NULL);
	if (fflush(stdout) != 0 || ferror(stdout))
		die_sys("unable to write to stdout");
	/* Closing is where a full or broken device says so at last. */
	if (close(STDOUT_FILENO) == -1)
		die_sys("unable to close stdout");
}
