/* SPDX-License-Identifier: MIT */
/*
 * Starting the command of a job in its session, as the job's files say: meta,
 * session, cmd, env, stdin.
 */
#ifndef SB_LAUNCH_H
#define SB_LAUNCH_H

#include "job.h"
#include "ladder.h"
#include "session.h"
#include "transcript.h"

struct launch {
	const struct job *job; /* borrowed */
	const struct job_meta *meta;
	struct session session;
	/* Of a command without a terminal; with one, inside.h tells. */
	int infd; /* what is fed goes here, or -1 */
	const char *failed; /* what could not be done */
};

/*
 * Opens the session, makes the files of out, and, without a terminal, of err;
 * starts the joiner of inside.h and waits for its end. l is filled in, but for
 * the keeper. The file env is gone after this. Returns the socket with the
 * messages of inside.h, not blocking; -1 with errno and failed.
 */
int launch(struct launch *h, struct ladder *l, struct transcript *out,
    struct transcript *err);

#endif
