/* SPDX-License-Identifier: MIT */
#include "detach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "io.h"
#include "sys.h"

enum {
	KEEP_MAX = 8
};

static int
by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int
detach_close(const int *keep, size_t n)
{
	unsigned from = STDERR_FILENO + 1;
	int fd[KEEP_MAX];

	if (n > KEEP_MAX) {
		errno = EINVAL;
		return -1;
	}
	memcpy(fd, keep, n * sizeof *fd);
	qsort(fd, n, sizeof *fd, by_number);
	for (size_t i = 0; i < n; i++) {
		if (fd[i] == -1)
			continue;
		if (fcntl(fd[i], F_SETFD, FD_CLOEXEC) == -1)
			return -1;
		if ((unsigned)fd[i] > from)
			sys_close_range(from, (unsigned)fd[i] - 1, 0);
		from = (unsigned)fd[i] + 1;
	}
	return sys_close_range(from, ~0U, 0);
}

int
detach(int dirfd, const char *words)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fd = openat(dirfd, words,
	    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc = -1;

	/* It fails for who leads a group, which then is the new one already. */
	setsid();
	if (null != -1 && fd != -1 && chdir("/") == 0 &&
	    dup2(null, STDIN_FILENO) != -1 && dup2(null, STDOUT_FILENO) != -1 &&
	    dup2(fd, STDERR_FILENO) != -1)
		rc = 0;
	io_drop(&null);
	io_drop(&fd);
	return rc;
}

int
detach_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1)
		return -1;
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1)
		return -1;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
