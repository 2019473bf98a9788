/* SPDX-License-Identifier: MIT */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cgroupfs.h"
#include "clock.h"
#include "io.h"
#include "path.h"

enum {
	TRIES = 3
};

/* A mount of our own that is nowhere to be seen: for a read-only /sys. */
static int
open_detached(void)
{
	int fs = fsopen("cgroup2", FSOPEN_CLOEXEC), fd = -1;

	if (fs != -1 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		fd = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	io_drop(&fs);
	return fd;
}

/* Our cgroup; -1 where it cannot be seen. */
static int
open_parent(bool detached)
{
	struct cgroupfs h = CGROUPFS_INIT;
	int fd = -1, rc;

	if (detached) {
		h.rootfd = open_detached();
		rc = h.rootfd == -1 ? -1 : cgroupfs_own(NULL, &h.own);
	} else {
		rc = cgroupfs_open(&h, NULL);
	}
	if (rc == 0)
		fd = openat(
		    h.rootfd, h.own.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cgroupfs_release(&h);
	return fd;
}

static void
sweep(int parentfd, const char *prefix)
{
	struct names v = NAMES_INIT;

	if (names_read(parentfd, &v) == -1)
		return;
	for (size_t i = 0; i < v.n; i++)
		if (strncmp(v.name[i], prefix, strlen(prefix)) == 0)
			unlinkat(parentfd, v.name[i], AT_REMOVEDIR);
	names_release(&v);
}

static int
take(struct leaf *l)
{
	int fd;

	l->dirfd = openat(l->parentfd, l->name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->dirfd == -1)
		return -1;
	fd = openat(l->dirfd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	if (fd == -1) {
		unlinkat(l->parentfd, l->name, AT_REMOVEDIR);
		io_drop(&l->dirfd);
		return -1;
	}
	io_drop(&fd);
	return 0;
}

static int
make_in(struct leaf *l, int parentfd, const char *prefix)
{
	int rc = -1;

	l->parentfd = parentfd;
	if (l->parentfd != -1) {
		sweep(l->parentfd, prefix);
		rc = mkdirat(l->parentfd, l->name, 0755);
		if (rc == 0)
			rc = take(l);
		if (rc == -1)
			io_drop(&l->parentfd);
	}
	return rc;
}

static int
name(struct leaf *l, const char *prefix, const char *what)
{
	int n = snprintf(l->name, sizeof l->name, "%s-%s", prefix, what);

	if (n >= 0 && (size_t)n < sizeof l->name)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

int
leaf_make(struct leaf *l, const char *prefix, const char *what)
{
	*l = (struct leaf)LEAF_INIT;
	if (name(l, prefix, what) == -1)
		return -1;
	if (make_in(l, open_parent(false), prefix) == 0)
		return 0;
	return geteuid() == 0 ? make_in(l, open_parent(true), prefix) : -1;
}

int
leaf_open(struct leaf *l, const char *prefix, const char *what)
{
	*l = (struct leaf)LEAF_INIT;
	if (name(l, prefix, what) == -1)
		return -1;
	for (int i = 0; i < 2; i++) {
		l->parentfd = open_parent(i == 1);
		if (l->parentfd != -1 && take(l) == 0)
			return 0;
		io_drop(&l->parentfd);
	}
	return -1;
}

bool
leaf_exists(const struct leaf *l)
{
	return l->dirfd != -1;
}

pid_t
leaf_fork(struct leaf *l)
{
	for (int i = 0; i < TRIES && leaf_exists(l); i++) {
		struct clone_args args = { .flags = CLONE_INTO_CGROUP,
			.exit_signal = SIGCHLD,
			.cgroup = (unsigned)l->dirfd };
		pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

		if (pid != -1)
			return pid;
		/* Another sweep took it for a left-over: make it again. */
		io_drop(&l->dirfd);
		if (errno != ENODEV ||
		    mkdirat(l->parentfd, l->name, 0755) == -1 || take(l) == -1)
			break;
	}
	if (l->parentfd != -1)
		leaf_remove(l);
	return fork();
}

/* 1 when somebody is in it. */
static int
is_populated(int events)
{
	char text[128];
	ssize_t n = pread(events, text, sizeof text - 1, 0);

	if (n == -1)
		return errno == ENODEV ? 0 : -1;
	text[n] = '\0';
	return strstr(text, "populated 1") != NULL;
}

int
leaf_kill(const struct leaf *l, int ms)
{
	long end = clock_ms() + ms;
	int fd, rc;

	if (!leaf_exists(l)) {
		errno = ENOENT;
		return -1;
	}
	fd = openat(l->dirfd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	rc = io_write_all(fd, "1", 1);
	io_drop(&fd);
	if (rc == -1)
		return -1;
	fd = openat(l->dirfd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	/* The kernel says POLLPRI when the file has changed since it was read,
	 * cgroup-v2.rst. */
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLPRI };
		long left = end - clock_ms();

		rc = is_populated(fd);
		if (rc != 1)
			break;
		if (left <= 0) {
			errno = ETIMEDOUT;
			rc = -1;
			break;
		}
		poll(&p, 1, (int)left);
	}
	io_drop(&fd);
	return rc;
}

void
leaf_remove(struct leaf *l)
{
	io_drop(&l->dirfd);
	if (l->parentfd != -1)
		unlinkat(l->parentfd, l->name, AT_REMOVEDIR);
	io_drop(&l->parentfd);
}

void
leaf_sweep(const char *prefix)
{
	for (int i = 0; i < 2; i++) {
		int parent = open_parent(i == 1);

		if (parent != -1)
			sweep(parent, prefix);
		io_drop(&parent);
	}
}
