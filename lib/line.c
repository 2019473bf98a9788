/* SPDX-License-Identifier: MIT */
#include "line.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "io.h"

enum {
	CHUNK = 65536,
	DAY_MS = 86400000
};

int
line_left(int64_t t)
{
	int64_t left;

	if (t == LINE_NEVER)
		return DAY_MS;
	left = t - clock_ms();
	return left < 0 ? 0 : left > DAY_MS ? DAY_MS : (int)left;
}

/* 1 ready, 0 too late, -1 errno. */
static int
wait_for(int fd, short events, int64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		int rc = poll(&p, 1, line_left(deadline));

		if (rc == 1)
			return 1;
		if (rc == -1 && errno != EINTR)
			return -1;
		if (rc == 0 && line_left(deadline) == 0)
			return 0;
	}
}

enum line_end
line_read(struct line *l, size_t max, int64_t deadline, size_t *n)
{
	if (l->used > 0) {
		memmove(
		    l->buf.data, l->buf.data + l->used, l->buf.len - l->used);
		buf_cut(&l->buf, l->buf.len - l->used);
		l->used = 0;
	}
	for (;;) {
		char chunk[CHUNK];
		const char *at = l->buf.len > l->seen
		    ? memchr(l->buf.data + l->seen, '\n', l->buf.len - l->seen)
		    : NULL;
		size_t room;
		ssize_t r;
		int rc;

		if (at && (size_t)(at - l->buf.data) < max) {
			*n = (size_t)(at - l->buf.data);
			l->used = *n + 1;
			l->seen = 0;
			return LINE_WHOLE;
		}
		if (l->buf.len >= max) {
			l->seen = at ? l->seen : l->buf.len;
			*n = l->buf.len;
			return LINE_LARGE;
		}
		l->seen = l->buf.len;
		*n = l->buf.len;
		rc = wait_for(l->fd, POLLIN, deadline);
		if (rc < 1)
			return rc == 0 ? LINE_LATE : LINE_ERROR;
		room = max - l->buf.len;
		r = io_read_some(l->fd, chunk, room < CHUNK ? room : CHUNK);
		if (r == -1 && errno == EAGAIN)
			continue;
		if (r < 1)
			return r == 0 ? LINE_EOF : LINE_ERROR;
		buf_add(&l->buf, chunk, (size_t)r);
	}
}

void
line_drop(struct line *l)
{
	buf_release(&l->buf);
	l->seen = l->used = 0;
}

static bool
is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

int
line_write(int fd, const void *p, size_t n, int ms)
{
	const char *at = p;

	if (!is_socket(fd))
		return io_write_all(fd, p, n);
	while (n > 0) {
		ssize_t w = send(fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (w == -1 && errno == EAGAIN) {
			int rc = wait_for(fd, POLLOUT, clock_ms() + ms);

			if (rc == 0)
				errno = ETIMEDOUT;
			if (rc < 1)
				return -1;
			continue;
		}
		if (w == -1 && errno == EINTR)
			continue;
		if (w == -1)
			return -1;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

void
line_finish(int fd, int ms)
{
	int64_t end = clock_ms() + ms;
	char chunk[CHUNK];

	if (!is_socket(fd) || shutdown(fd, SHUT_WR) == -1)
		return;
	while (wait_for(fd, POLLIN, end) == 1) {
		ssize_t r = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);

		if (r == 0 || (r == -1 && errno != EAGAIN && errno != EINTR))
			return;
	}
}
