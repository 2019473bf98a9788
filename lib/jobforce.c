/* SPDX-License-Identifier: MIT */
#include "jobforce.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "jobend.h"
#include "ns.h"
#include "num.h"
#include "path.h"
#include "proctree.h"
#include "sys.h"

enum {
	STAT_BYTES = 65536,
	END_MS = 5000,
	WALK_MS = 1000
};

static bool
is_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Has the process one of these open? */
static bool
has_open(int procfd, pid_t pid, const struct stat *file, size_t n)
{
	struct names fds = NAMES_INIT;
	char name[32];
	struct stat st;
	bool yes = false;
	int dirfd;

	snprintf(name, sizeof name, "%ld/fd", (long)pid);
	dirfd = openat(procfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd != -1 && names_read(dirfd, &fds) == 0)
		for (size_t i = 0; i < fds.n && !yes; i++)
			for (size_t k = 0; k < n && !yes; k++)
				yes =
				    fstatat(dirfd, fds.name[i], &st, 0) == 0 &&
				    is_file(&st, &file[k]);
	names_release(&fds);
	io_drop(&dirfd);
	return yes;
}

/* Its name and its state, as /proc/PID/stat has them. */
static bool
read_stat(int procfd, pid_t pid, char name[32], char *state)
{
	struct buf b = BUF_INIT;
	char path[32], *from, *to;
	bool good;

	snprintf(path, sizeof path, "%ld/stat", (long)pid);
	good = io_read_file_at(procfd, path, &b, STAT_BYTES) == 0;
	from = good ? strchr(buf_str(&b), '(') : NULL;
	to = from ? strrchr(from, ')') : NULL;
	good = to && to - from <= 31 && to[1] == ' ';
	if (good) {
		snprintf(name, 32, "%.*s", (int)(to - from - 1), from + 1);
		*state = to[2];
	}
	buf_release(&b);
	return good;
}

/*
 * Is it the job's process, or its child that finalises? Before that has begun
 * it is who makes the job. Others have the job's files open to read them.
 */
static bool
is_it(int procfd, pid_t pid, const struct stat file[2], char *state)
{
	char name[32];

	if (!read_stat(procfd, pid, name, state))
		return false;
	if (strcmp(name, "sb-pty-run") == 0)
		return has_open(procfd, pid, file, 2);
	return strcmp(name, "sb-exec") == 0 && has_open(procfd, pid, file, 1);
}

/* fn is given a pidfd and the state. How many there were, or -1. */
static int
each(const struct job *j, int procfd,
    void (*fn)(int procfd, pid_t pid, int pidfd, char state, int *count))
{
	struct names all = NAMES_INIT;
	struct stat file[2];
	int count = 0, rc;

	rc = names_read(procfd, &all);
	if (rc == 0)
		rc = path_lstat(j->dirfd, "lock", &file[0]);
	if (rc == 0)
		rc = fstat(j->dirfd, &file[1]);
	for (size_t i = 0; i < all.n && rc == 0; i++) {
		uint64_t pid;
		int pidfd;
		char state;

		if (!num_dec(all.name[i], 1, INT32_MAX, &pid) ||
		    (pid_t)pid == getpid())
			continue;
		/* First: what is looked at then is what is signalled. */
		pidfd = sys_pidfd_open((pid_t)pid);
		if (pidfd != -1 && is_it(procfd, (pid_t)pid, file, &state))
			fn(procfd, (pid_t)pid, pidfd, state, &count);
		io_drop(&pidfd);
	}
	names_release(&all);
	return rc == -1 ? -1 : count;
}

static void
go_on(int procfd, pid_t pid, int pidfd, char state, int *count)
{
	(void)procfd;
	(void)pid;
	if (state == 'T' && sys_pidfd_send_signal(pidfd, SIGCONT) == 0)
		++*count;
}

/* Without a cgroup only the tree says who belongs to the job. */
static void
end(int procfd, pid_t pid, int pidfd, char state, int *count)
{
	struct proctree t = PROCTREE_INIT;

	(void)state;
	if (proctree_read(procfd, pid, &t) == 0)
		for (size_t i = 0; i < t.n; i++)
			if (t.one[i].parent == pid)
				proctree_kill(procfd, t.one[i].pid, WALK_MS);
	proctree_release(&t);
	if (sys_pidfd_send_signal(pidfd, SIGKILL) == 0 &&
	    io_wait(pidfd, END_MS) == 0)
		++*count;
}

static int
open_proc(void)
{
	return open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int
job_continue(const struct job *j)
{
	int procfd = open_proc();
	int n = procfd == -1 ? -1 : each(j, procfd, go_on);

	io_drop(&procfd);
	return n;
}

int
job_force(struct job *j)
{
	int procfd = open_proc();
	int n = procfd == -1 ? -1 : each(j, procfd, end);
	enum job_state state;

	io_drop(&procfd);
	if (n == -1)
		return -1;
	if (n == 0) {
		errno = ESRCH;
		return -1;
	}
	if (job_cancelled(j) == -1 || job_state(j, &state) == -1)
		return -1;
	if (state == JOB_OVER)
		return 0;
	errno = ETIMEDOUT;
	return -1;
}
