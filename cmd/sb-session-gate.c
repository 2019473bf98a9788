/* SPDX-License-Identifier: MIT */
/*
 * sb-session-gate: run a program while holding a session's gate, shared or
 * exclusively. Shape: chain. The gate's descriptor is inherited by the
 * program and ends with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "err.h"
#include "num.h"
#include "session.h"
#include "spawn.h"

static const char usage[] = "sb-session-gate [-x] [-t ms] session prog...";

int
main(int argc, char **argv)
{
	bool exclusive = false;
	struct session s;
	uint64_t ms = 0;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+xt:h")) != -1) {
		if (opt == 'x')
			exclusive = true;
		else if (opt == 't' && num_dec(optarg, 0, INT32_MAX, &ms))
			continue;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (argc - optind < 2)
		usage_die(usage);
	if (session_open(&s, argv[optind]) == -1)
		die(EXIT_USAGE, "no such session: %s", argv[optind]);
	if (session_gate(&s, exclusive, (int)ms) == -1) {
		if (errno == EAGAIN)
			die(EXIT_BUSY, "session %s is in use", s.id);
		if (errno == ETIMEDOUT)
			die(EXIT_TIMEOUT, "session %s is in use", s.id);
		die_sys("unable to take the gate of session %s%s", s.id,
		    session_trouble());
	}
	if (setenv("SB_SESSION", s.id, 1) == -1 ||
	    fcntl(s.gatefd, F_SETFD, 0) == -1)
		die_sys("unable to hand the gate on");
	spawn_exec(argv + optind + 1);
	warn_sys("unable to run %s", argv[optind + 1]);
	return spawn_exec_code(errno);
}
