/* SPDX-License-Identifier: MIT */
/*
 * peak file prog…: runs prog, adds a line to file, of the microseconds that it
 * took and of the KiB that the largest process below it had in memory, and
 * exits as it did. For t/bench.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "io.h"

static int64_t
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int
main(int argc, char **argv)
{
	struct rusage use;
	char line[64];
	int64_t start;
	int fd, n, status;
	pid_t pid;

	err_init();
	if (argc < 3)
		usage_die("peak file prog...");
	fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd == -1)
		die_sys("unable to open %s", argv[1]);
	start = now_us();
	pid = fork();
	if (pid == -1)
		die_sys("unable to fork");
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		die_sys("unable to run %s", argv[2]);
	}
	if (wait4(pid, &status, 0, &use) == -1)
		die_sys("unable to wait");
	n = snprintf(line, sizeof line, "%" PRId64 " %ld\n", now_us() - start,
	    use.ru_maxrss);
	if (io_write_all(fd, line, (size_t)n) == -1)
		die_sys("unable to write %s", argv[1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SYS;
}
