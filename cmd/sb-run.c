/* SPDX-License-Identifier: MIT */
/*
 * sb-run: run a program in a session. Shape: chain; ends as the program did.
 *
 *   1. Take the gate shared: the session cannot be published or ended as long
 *      as the program runs.
 *   2. If no holder runs, revive it: let go, take the gate exclusively, look
 *      again, start one, and make the lock a shared one, which is one step.
 *   3. Become sb-ns-enter, which keeps the gate open and the program out of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "lock.h"
#include "num.h"
#include "session.h"
#include "spawn.h"

static const char usage[] = "sb-run [-t ms] session prog...";

static void
gate(struct session *s, bool exclusive, int ms)
{
	if (session_gate(s, exclusive, ms) == 0)
		return;
	if (errno == EAGAIN)
		die(EXIT_BUSY, "session %s is being published or ended", s->id);
	if (errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "session %s is being published or ended",
		    s->id);
	if (errno == ENOENT)
		die(EXIT_USAGE, "no such session: %s", s->id);
	die_sys("unable to take the gate of session %s%s", s->id,
	    session_trouble());
}

static bool
runs(struct session *s)
{
	int rc = session_can_be_entered(s);

	if (rc == -1)
		die_sys(
		    "unable to look at session %s%s", s->id, session_trouble());
	return rc == 1;
}

int
main(int argc, char **argv)
{
	uint64_t ms = 30000;
	struct session s;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+t:h")) != -1) {
		if (opt == 't' && num_dec(optarg, 0, INT32_MAX, &ms))
			continue;
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (argc - optind < 2)
		usage_die(usage);
	if (session_open(&s, argv[optind]) == -1)
		die(EXIT_USAGE, "no such session: %s", argv[optind]);
	gate(&s, false, (int)ms);
	if (!runs(&s)) {
		io_drop(&s.gatefd);
		gate(&s, true, (int)ms);
		if (!runs(&s) && session_start(&s) == -1)
			die_sys("unable to start session %s%s", s.id,
			    session_trouble());
		if (lock_fd(s.gatefd, false, 0) == -1)
			die_sys("unable to share the gate of session %s", s.id);
	}
	if (fcntl(s.gatefd, F_SETFD, 0) == -1)
		die_sys("unable to hand the gate on");
	/* Our own words become those of sb-ns-enter: one argument less. */
	argv[optind - 1] = (char[]){ "sb-ns-enter" };
	spawn_exec(argv + optind - 1);
	warn_sys("unable to run sb-ns-enter");
	return spawn_exec_code(errno);
}
