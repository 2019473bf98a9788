/* SPDX-License-Identifier: MIT */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
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

int
io_read_buf(int fd, struct buf *b, size_t max)
{
	for (;;) {
		size_t room = b->len < max ? max - b->len : 0;
		ssize_t r;

		if (room > 1 << 16)
			room = 1 << 16;
		/* One byte beyond the limit tells "too large" from "full". */
		buf_reserve(b, room + 1);
		r = io_read_some(fd, b->data + b->len, room + 1);
		if (r == -1)
			return -1;
		if (r == 0)
			return 0;
		if ((size_t)r > max - b->len) {
			errno = EFBIG;
			return -1;
		}
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

static off_t
copy_loop(int in, int out)
{
	static char data[1 << 17];
	off_t total = 0;

	for (;;) {
		ssize_t r = io_read_some(in, data, sizeof data);

		if (r == -1)
			return -1;
		if (r == 0)
			return total;
		if (io_write_all(out, data, (size_t)r) == -1)
			return -1;
		total += r;
	}
}

off_t
io_copy(int in, int out)
{
	off_t total = 0;

	if (lseek(in, 0, SEEK_CUR) == 0 && lseek(out, 0, SEEK_CUR) == 0 &&
	    ioctl(out, FICLONE, in) == 0)
		return lseek(out, 0, SEEK_END);
	for (;;) {
		ssize_t n = copy_file_range(in, NULL, out, NULL, 1 << 30, 0);

		if (n > 0) {
			total += n;
			continue;
		}
		/* 0 is also what some file systems say that cannot do it. */
		if (n == -1 && errno == EINTR)
			continue;
		if (n == 0 && total > 0)
			return total;
		if (n == -1 && errno != EXDEV && errno != EINVAL &&
		    errno != ENOSYS && errno != EOPNOTSUPP && errno != EBADF)
			return -1;
		off_t rest = copy_loop(in, out);

		return rest == -1 ? -1 : total + rest;
	}
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
	if (fflush(stdout) != 0 || ferror(stdout))
		die_sys("unable to write to stdout");
	/* Closing is where a full or broken device says so at last. */
	if (close(STDOUT_FILENO) == -1)
		die_sys("unable to close stdout");
}
