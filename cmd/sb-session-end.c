/* SPDX-License-Identifier: MIT */
/*
 * sb-session-end: end a session and throw its unpublished changes away. Shape:
 * sink.
 *
 *   1. Take the gate exclusively: no command may run in it.
 *   2. End the holder, wait until its last process is gone.
 *   3. Rename the directory to a dot name: from here on the session does not
 *      exist; then remove it. A killed run's rest goes with the next end.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "err.h"
#include "event.h"
#include "io.h"
#include "job.h"
#include "num.h"
#include "session.h"

static const char usage[] = "sb-session-end [-t ms] session";

int
main(int argc, char **argv)
{
	struct session s;
	uint64_t ms = 0;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+t:h")) != -1) {
		if (opt == 't' && num_dec(optarg, 0, INT32_MAX, &ms))
			continue;
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	event_begin("workspace_session.destroy");
	if (session_open(&s, argv[optind]) == -1 ||
	    session_gate(&s, true, (int)ms) == -1) {
		if (errno == EAGAIN || errno == ETIMEDOUT)
			die(errno == EAGAIN ? EXIT_BUSY : EXIT_TIMEOUT,
			    "session %s is in use: wait for its commands to "
			    "end, or end them",
			    s.id);
		if (errno == ENOENT || errno == EINVAL)
			die(EXIT_NO, "no such session: %s", argv[optind]);
		die_sys("unable to open session %s%s", argv[optind],
		    session_trouble());
	}
	/* A job holds the gate only while it begins and ends. */
	job_refuse_active(s.id);
	if (session_stop(&s) == -1)
		die_sys("unable to end the processes of session %s%s", s.id,
		    session_trouble());
	if (session_remove(&s, true) == -1)
		die_sys(
		    "unable to remove session %s%s", s.id, session_trouble());
	return EXIT_OK;
}
