/* SPDX-License-Identifier: MIT */
/*
 * bomb LIMIT: forks as fast as it can, up to LIMIT processes of this user, all
 * of which go on trying, ignore TERM and are no children of who started them.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	rlim_t n = argc == 2 ? (rlim_t)strtoul(argv[1], NULL, 10) : 0;
	struct rlimit limit = { .rlim_cur = n, .rlim_max = n };

	/* No limit holds for root; without other ids it is held to begin with. */
	if (geteuid() == 0 && setuid(54321) == -1)
		(void)0;
	sigemptyset(&ignore.sa_mask);
	if (n == 0 || setrlimit(RLIMIT_NPROC, &limit) == -1 ||
	    sigaction(SIGTERM, &ignore, NULL) == -1 ||
	    sigaction(SIGCHLD, &ignore, NULL) == -1)
		return 111;
	for (;;) {
		if (fork() > 0)
			_exit(0);
		/* Two for each that ends, as long as the limit allows. */
		if (fork() == 0)
			setsid();
	}
}
