/* SPDX-License-Identifier: MIT */
#include "jobctl.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "io.h"

enum {
	BACKLOG = 64,
	CONNECT_S = 2
};

/* A path of a socket has 107 bytes at most: go by the descriptor. */
static void
address(struct sockaddr_un *a, int dirfd)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path, sizeof a->sun_path, "/proc/self/fd/%d/in", dirfd);
}

int
jobctl_listen(int dirfd)
{
	int fd =
	    socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a;

	if (fd == -1)
		return -1;
	address(&a, dirfd);
	if (bind(fd, (const struct sockaddr *)&a, sizeof a) == -1 ||
	    listen(fd, BACKLOG) == -1)
		io_drop(&fd);
	return fd;
}

int
jobctl_connect(int dirfd)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	const struct timeval limit = { .tv_sec = CONNECT_S };
	struct sockaddr_un a;

	if (fd == -1)
		return -1;
	address(&a, dirfd);
	/* Where nobody takes what is asked, the queue is full some time. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) ==
		-1 ||
	    connect(fd, (const struct sockaddr *)&a, sizeof a) == -1)
		io_drop(&fd);
	return fd;
}

int
jobctl_ask(int sock, enum jobctl_op op, const void *p, size_t n,
    char answer[JOBCTL_ANSWER], int ms)
{
	char packet[JOBCTL_MAX + 1];
	ssize_t got;

	if (n > JOBCTL_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	packet[0] = (char)op;
	if (n > 0)
		memcpy(packet + 1, p, n);
	do
		got = send(sock, packet, n + 1, MSG_NOSIGNAL);
	while (got == -1 && errno == EINTR);
	return got == -1 ? -1 : jobctl_wait(sock, answer, ms);
}

int
jobctl_wait(int sock, char answer[JOBCTL_ANSWER], int ms)
{
	struct pollfd in = { .fd = sock, .events = POLLIN };
	ssize_t got;
	int rc;

	do
		rc = poll(&in, 1, ms);
	while (rc == -1 && errno == EINTR);
	if (rc == 0)
		errno = ETIMEDOUT;
	if (rc != 1)
		return -1;
	do
		got = recv(sock, answer, JOBCTL_ANSWER - 1, 0);
	while (got == -1 && errno == EINTR);
	if (got == 0 || (got == -1 && errno == ECONNRESET)) {
		errno = EPIPE;
		return -1;
	}
	if (got == -1)
		return -1;
	answer[got] = '\0';
	return 0;
}

bool
jobctl_is_alive(int dirfd, int ms)
{
	char word[JOBCTL_ANSWER];
	int sock = jobctl_connect(dirfd);
	bool alive = sock == -1
	    ? errno != EAGAIN
	    : jobctl_ask(sock, JOBCTL_PING, NULL, 0, word, ms) == 0 ||
		(errno != ETIMEDOUT && errno != EAGAIN);

	io_drop(&sock);
	return alive;
}
