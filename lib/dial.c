/* SPDX-License-Identifier: MIT */
#include "dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "io.h"

enum {
	NO_WAIT = -1
};

/* Waits ms for the connection; NO_WAIT: leaves it to be finished. */
static int
dial(int family, const struct sockaddr *sa, socklen_t n, int ms)
{
	struct timeval t = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	struct timeval none = { 0, 0 };
	bool waits = ms != NO_WAIT;
	int fd = socket(family,
	    SOCK_STREAM | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), 0);
	int rc;

	if (fd == -1)
		return -1;
	/* connect(2) heeds it, on unix sockets with a full backlog, too. */
	if (waits)
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
	do
		rc = connect(fd, sa, n);
	while (rc == -1 && errno == EINTR);
	if (rc == -1 && (waits || errno != EINPROGRESS)) {
		if (waits && (errno == EAGAIN || errno == EINPROGRESS))
			errno = ETIMEDOUT;
		io_drop(&fd);
		return -1;
	}
	if (waits)
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
	return fd;
}

int
dial_unix(int dirfd, const char *name, int ms)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int n;

	/* A path has room for 107 bytes only; this one is always short. */
	n = snprintf(sa.sun_path, sizeof sa.sun_path, "/proc/self/fd/%d/%s",
	    dirfd, name);
	if (n < 0 || (size_t)n >= sizeof sa.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return dial(
	    AF_UNIX, (const struct sockaddr *)&sa, (socklen_t)sizeof sa, ms);
}

int
dial_unix_start(int dirfd, const char *name)
{
	return dial_unix(dirfd, name, NO_WAIT);
}

/* From the address number first on, at most count of them. */
static int
dial_addresses(
    const char *host, uint16_t port, size_t first, size_t count, int ms)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *a;
	char service[8];
	int fd = -1, one = 1, err = EADDRNOTAVAIL;

	snprintf(service, sizeof service, "%u", port);
	if (getaddrinfo(host, service, &hints, &list) != 0) {
		errno = EADDRNOTAVAIL;
		return -1;
	}
	for (a = list; a && first > 0; first--)
		a = a->ai_next;
	for (; a && fd == -1 && count > 0; a = a->ai_next, count--) {
		fd = dial(a->ai_family, a->ai_addr, a->ai_addrlen, ms);
		err = errno;
	}
	freeaddrinfo(list);
	if (fd != -1)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	errno = err;
	return fd;
}

int
dial_tcp(const char *host, uint16_t port, int ms)
{
	return dial_addresses(host, port, 0, SIZE_MAX, ms);
}

int
dial_tcp_start(const char *host, uint16_t port, size_t nth)
{
	return dial_addresses(host, port, nth, 1, NO_WAIT);
}

int
dial_error(int fd)
{
	int err = 0;
	socklen_t n = sizeof err;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) == -1 ? errno
								    : err;
}
