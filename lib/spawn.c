/* SPDX-License-Identifier: MIT */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "io.h"

enum {
	MAP_MAX = 16
};

/*
 * In the child: first move every source above all targets, so that no dup2
 * overwrites a source that is still needed; then put each where it belongs.
 */
static int
apply_map(const struct spawn_fd *map, size_t n)
{
	int high[MAP_MAX];
	int top = 3;

	for (size_t i = 0; i < n; i++)
		if (map[i].theirs >= top)
			top = map[i].theirs + 1;
	for (size_t i = 0; i < n; i++) {
		high[i] = fcntl(map[i].ours, F_DUPFD_CLOEXEC, top);
		if (high[i] == -1)
			return -1;
	}
	for (size_t i = 0; i < n; i++)
		if (dup2(high[i], map[i].theirs) == -1)
			return -1;
	return 0;
}

static void
default_signals(void)
{
	sigset_t none;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* execve's prototype is older than const; it does not write to argv. */
static char *const *
unconst(const char *const argv[])
{
	union {
		const char *const *in;
		char *const *out;
	} u = { .in = argv };

	return u.out;
}

pid_t
spawn(const char *const argv[], const struct spawn_fd *map, size_t n)
{
	int report[2] = { -1, -1 }, out;
	int err = 0;
	ssize_t r;
	pid_t pid;

	if (n > MAP_MAX) {
		errno = EINVAL;
		return -1;
	}
	if (pipe2(report, O_CLOEXEC) == -1)
		return -1;
	/* The pipe must not sit where the map wants to put things. */
	out = fcntl(report[1], F_DUPFD_CLOEXEC, 64);
	io_drop(&report[1]);
	pid = out == -1 ? -1 : fork();
	if (pid == 0) {
		if (apply_map(map, n) == 0) {
			default_signals();
			execvp(argv[0], unconst(argv));
		}
		err = errno;
		if (io_write_all(out, &err, sizeof err) == -1)
			_exit(EXIT_SYS);
		_exit(EXIT_NOENT);
	}
	io_drop(&out);
	if (pid == -1) {
		io_drop(&report[0]);
		return -1;
	}
	r = io_read_all(report[0], &err, sizeof err);
	io_drop(&report[0]);
	if (r == (ssize_t)sizeof err) {
		waitpid(pid, NULL, 0);
		errno = err;
		return -1;
	}
	return pid;
}

int
spawn_code(int status)
{
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status) < 128 ? WEXITSTATUS(status) : 128;
}

int
spawn_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return -1;
	return spawn_code(status);
}

void
spawn_exec(char *const argv[])
{
	default_signals();
	execvp(argv[0], argv);
}

int
spawn_exec_code(int err)
{
	return err == ENOENT ? EXIT_NOENT : EXIT_NOEXEC;
}

void
spawn_kill_first(void)
{
	/* As if it had half of the memory besides its own. */
	static const char score[] = "500";
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	if (fd != -1 && read(fd, text, sizeof text - 1) > 0 &&
	    strtol(text, NULL, 10) < strtol(score, NULL, 10) &&
	    pwrite(fd, score, sizeof score - 1, 0) == -1)
		errno = 0;
	io_drop(&fd);
}
