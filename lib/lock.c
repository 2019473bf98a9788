/* SPDX-License-Identifier: MIT */
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "clock.h"
#include "io.h"

static void
on_alarm(int sig)
{
	(void)sig;
}

/*
 * F_OFD_SETLKW has no deadline: a timer interrupts it at the deadline, and
 * then repeats, so that a tick just before the call is not the only one.
 */
static int
wait_lock(int fd, struct flock *fl, long deadline)
{
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	struct itimerval timer, off = { { 0, 0 }, { 0, 0 } };
	long left = deadline > clock_ms() ? deadline - clock_ms() : 1;
	int rc, err;

	sigemptyset(&sa.sa_mask);
	sigaction(SIGALRM, &sa, &old);
	timer.it_interval.tv_sec = 0;
	timer.it_interval.tv_usec = 10000;
	timer.it_value.tv_sec = left / 1000;
	timer.it_value.tv_usec = left % 1000 * 1000;
	/* Without the timer it could be for ever. */
	if (setitimer(ITIMER_REAL, &timer, NULL) == -1)
		return -1;
	do
		rc = fcntl(fd, F_OFD_SETLKW, fl);
	while (rc == -1 && errno == EINTR && clock_ms() < deadline);
	err = errno;
	/* A timer that goes on needs our handler. */
	if (setitimer(ITIMER_REAL, &off, NULL) == 0)
		sigaction(SIGALRM, &old, NULL);
	errno = rc == -1 && err == EINTR ? ETIMEDOUT : err;
	return rc;
}

int
lock_fd(int fd, bool exclusive, int ms)
{
	struct flock fl = {
		.l_type = exclusive ? F_WRLCK : F_RDLCK,
		.l_whence = SEEK_SET,
	};
	int rc;

	rc = fcntl(fd, F_OFD_SETLK, &fl);
	if (rc == 0 || (errno != EAGAIN && errno != EACCES) || ms == 0)
		return rc;
	if (ms > 0)
		return wait_lock(fd, &fl, clock_ms() + ms);
	do
		rc = fcntl(fd, F_OFD_SETLKW, &fl);
	while (rc == -1 && errno == EINTR);
	return rc;
}

int
lock_take(int dirfd, const char *name, bool exclusive, int ms)
{
	int fd;

	fd = openat(
	    dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return -1;
	if (lock_fd(fd, exclusive, ms) == -1)
		io_drop(&fd);
	return fd;
}

int
lock_is_held(int dirfd, const char *name)
{
	struct flock fl = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int fd, rc;

	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return errno == ENOENT ? 0 : -1;
	rc = fcntl(fd, F_OFD_GETLK, &fl);
	io_drop(&fd);
	if (rc == -1)
		return -1;
	return fl.l_type != F_UNLCK;
}

int
lock_create(int dirfd, const char *name)
{
	char tmp[300];
	int fd, n;

	n = snprintf(tmp, sizeof tmp, ".%s.%ld", name, (long)getpid());
	if (n < 0 || (size_t)n >= sizeof tmp) {
		errno = ENAMETOOLONG;
		return -1;
	}
	/* A leftover of a killed process that had our number. */
	if (unlinkat(dirfd, tmp, 0) == -1 && errno != ENOENT)
		return -1;
	fd = openat(dirfd, tmp,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return -1;
	if (lock_fd(fd, true, 0) == -1 ||
	    renameat2(dirfd, tmp, dirfd, name, RENAME_NOREPLACE) == -1) {
		int err = errno;

		unlinkat(dirfd, tmp, 0);
		errno = err;
		io_drop(&fd);
	}
	return fd;
}

int
gate_take(int dirfd, const char *name, bool exclusive, int ms)
{
	char turn[300];
	long deadline = clock_ms() + ms;
	int fd, n, turnfd;

	n = snprintf(turn, sizeof turn, "%s.turn", name);
	if (n < 0 || (size_t)n >= sizeof turn) {
		errno = ENAMETOOLONG;
		return -1;
	}
	turnfd = lock_take(dirfd, turn, true, ms);
	if (turnfd == -1)
		return -1;
	if (ms > 0) {
		long left = deadline - clock_ms();

		ms = left > 0 ? (int)left : 0;
	}
	fd = lock_take(dirfd, name, exclusive, ms);
	io_drop(&turnfd);
	return fd;
}
