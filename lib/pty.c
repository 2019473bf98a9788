/* SPDX-License-Identifier: MIT */
#include "pty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "num.h"

enum {
	FDS_MAX = 4
};

/* Room for the descriptors of one message, aligned as cmsg(3) wants it. */
union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

bool
pty_parse_size(const char *s, unsigned *rows, unsigned *cols)
{
	char *copy = xstrdup(s), *x = strchr(copy, 'x');
	uint64_t width, height;
	bool good = false;

	if (x) {
		*x = '\0';
		good = num_dec(copy, 1, PTY_SIZE_MAX, &width) &&
		    num_dec(x + 1, 1, PTY_SIZE_MAX, &height);
	}
	if (good) {
		*cols = (unsigned)width;
		*rows = (unsigned)height;
	}
	free(copy);
	return good;
}

int
pty_resize(int master, unsigned rows, unsigned cols)
{
	struct winsize size = { .ws_row = (unsigned short)rows,
		.ws_col = (unsigned short)cols };

	return ioctl(master, TIOCSWINSZ, &size);
}

int
pty_open(int *master, int *slave, unsigned rows, unsigned cols)
{
	struct termios t;
	int unlock = 0;

	*slave = -1;
	*master =
	    open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (*master == -1)
		return -1;
	if (ioctl(*master, TIOCSPTLCK, &unlock) == 0)
		*slave =
		    ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*slave != -1 && tcgetattr(*slave, &t) == 0) {
		/* Erase takes whole characters. */
		t.c_iflag |= IUTF8;
		if (tcsetattr(*slave, TCSANOW, &t) == 0 &&
		    pty_resize(*master, rows, cols) == 0)
			return 0;
	}
	io_drop(slave);
	io_drop(master);
	return -1;
}

int
pty_lead(int slave)
{
	if (setsid() == -1)
		return -1;
	return ioctl(slave, TIOCSCTTY, 0);
}

int
pty_foreground(int slave)
{
	sigset_t ttou, old;
	int rc;

	if (setpgid(0, 0) == -1)
		return -1;
	/* Who is not in the foreground would be stopped for asking. */
	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	sigprocmask(SIG_BLOCK, &ttou, &old);
	rc = tcsetpgrp(slave, getpid());
	sigprocmask(SIG_SETMASK, &old, NULL);
	return rc;
}

int
pty_end_input(int master, bool in_line)
{
	struct termios t;
	char keys[2];

	/* Asked of the master it is about the slave, tty_ioctl(4). */
	if (tcgetattr(master, &t) == -1)
		return -1;
	if (!(t.c_lflag & ICANON) || t.c_cc[VEOF] == _POSIX_VDISABLE) {
		errno = ENOTTY;
		return -1;
	}
	memset(keys, t.c_cc[VEOF], sizeof keys);
	return write(master, keys, in_line ? 2 : 1) == -1 ? -1 : 0;
}

int
fds_send(int sock, const void *p, size_t n, const int *fds, size_t nfds)
{
	union {
		const void *in;
		void *out;
	} u = { .in = p };
	struct iovec iov = { .iov_base = u.out, .iov_len = n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control c = { .align = { 0 } };
	ssize_t rc;

	if (nfds > FDS_MAX) {
		errno = EINVAL;
		return -1;
	}
	if (nfds > 0) {
		struct cmsghdr *h;

		m.msg_control = c.room;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(h), fds, nfds * sizeof(int));
	}
	do
		rc = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (rc == -1 && errno == EINTR);
	return rc == -1 ? -1 : 0;
}

ssize_t
fds_recv(int sock, void *p, size_t n, int *fds, size_t nfds)
{
	struct iovec iov = { .iov_base = p, .iov_len = n };
	union control c = { .align = { 0 } };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = c.room,
		.msg_controllen = sizeof c.room };
	ssize_t rc;

	for (size_t i = 0; i < nfds; i++)
		fds[i] = -1;
	do
		rc = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (rc == -1 && errno == EINTR);
	if (rc == -1)
		return -1;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		size_t got = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < got; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
			if (i < nfds)
				fds[i] = fd;
			else
				io_drop(&fd);
		}
	}
	return rc;
}
