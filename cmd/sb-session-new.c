/* SPDX-License-Identifier: MIT */
/*
 * sb-session-new: make a session over the current stack. Shape: sink; prints
 * the session's id.
 *
 *   1. Make it, see newsession.h, and start its holder.
 *
 * What a killed run leaves under a dot name goes with the next end of a
 * session; what it leaves under ID is a parked session without changes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "event.h"
#include "io.h"
#include "newsession.h"
#include "out.h"
#include "session.h"

static const char usage[] = "sb-session-new [-a]";

static struct session s = SESSION_INIT;
static bool finished;

static void
undo(void)
{
	if (!finished && s.dirfd != -1 && session_stop(&s) == 0)
		session_remove(&s, true);
}

static int
code_of(int err)
{
	switch (err) {
	case ETIMEDOUT:
		return EXIT_TIMEOUT;
	case EINVAL:
		return EXIT_USAGE;
	default:
		return EXIT_SYS;
	}
}

int
main(int argc, char **argv)
{
	struct buf why = BUF_INIT;
	struct event_span *span;
	bool automatic = false;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+ah")) != -1) {
		if (opt == 'a')
			automatic = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);

	span = event_begin("workspace_session.create");
	out_str(event_attrs(span), "finalize_policy",
	    automatic ? POLICY_AUTOMATIC : POLICY_EXPLICIT);
	if (atexit(undo) != 0)
		die(EXIT_SYS, "out of memory");
	if (session_new(&s, automatic, &why) == -1)
		die(code_of(errno), "%s", buf_str(&why));
	if (automatic && session_sync(&s) == -1)
		die_sys("unable to sync session %s", s.id);
	if (session_start(&s) == -1)
		die_sys(
		    "unable to start session %s%s", s.id, session_trouble());
	puts(s.id);
	stdout_done();
	finished = true;
	return EXIT_OK;
}
