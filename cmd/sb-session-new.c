/* SPDX-License-Identifier: MIT */
/*
 * sb-session-new: make a session over the current stack. Shape: sink; prints
 * the session's id, or with -v one JSON object.
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

#include "answer.h"
#include "buf.h"
#include "err.h"
#include "event.h"
#include "io.h"
#include "newsession.h"
#include "out.h"
#include "session.h"

static const char usage[] = "sb-session-new [-aNv]";

static struct session s = SESSION_INIT;
static bool finished;

static void
undo(void)
{
	if (!finished && s.dirfd != -1 && session_stop(&s) == 0)
		session_remove(&s, true);
}

static void
print(bool automatic)
{
	struct buf b = BUF_INIT;

	buf_addc(&b, '{');
	out_str(&b, "workspace_session_id", s.id);
	out_str(&b, "network_profile", "shared");
	out_str(&b, "finalize_policy",
	    automatic ? "publish_then_destroy" : "no_op");
	buf_addc(&b, '}');
	puts(b.data);
	buf_release(&b);
}

int
main(int argc, char **argv)
{
	struct buf why = BUF_INIT;
	bool automatic = false, verbose = false, isolated = false;
	struct event_span *span;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+aNvh")) != -1) {
		if (opt == 'a')
			automatic = true;
		else if (opt == 'N')
			isolated = true;
		else if (opt == 'v')
			verbose = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	/* Without -v the answer is a word. */
	if (verbose)
		answer_always();
	if (isolated)
		answer_error(EXIT_SYS, KIND_FAILED, NULL,
		    "a network of its own cannot be given to a session "
		    "here: the network_profile isolated is not available");

	span = event_begin("workspace_session.create");
	out_str(event_attrs(span), "finalize_policy",
	    automatic ? POLICY_AUTOMATIC : POLICY_EXPLICIT);
	if (atexit(undo) != 0)
		die(EXIT_SYS, "out of memory");
	if (session_new(&s, automatic, &why) == -1)
		die(session_new_code(errno), "%s", buf_str(&why));
	if (automatic && session_sync(&s) == -1)
		die_sys("unable to sync session %s", s.id);
	if (session_start(&s) == -1)
		die_sys(
		    "unable to start session %s%s", s.id, session_trouble());
	if (verbose)
		print(automatic);
	else
		puts(s.id);
	stdout_done();
	finished = true;
	return EXIT_OK;
}
