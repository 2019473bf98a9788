/* SPDX-License-Identifier: MIT */
/*
 * A command that runs, as its job's process knows it: what it prints, its
 * processes, who asks for something, and how it ended. Whoever asks, see
 * jobctl.h, is answered here.
 */
#ifndef SB_RUNNING_H
#define SB_RUNNING_H

#include <stdbool.h>

#include "fate.h"
#include "job.h"
#include "jobserve.h"
#include "ladder.h"
#include "transcript.h"

struct running {
	const struct job *job; /* borrowed */
	const struct job_meta *meta;
	struct transcript out, err;
	struct ladder ladder;
	struct fate fate;
	struct jobserve server;
	int pipefd; /* without a terminal: what is fed goes here, or -1 */
	bool over; /* the result is written */
};

#define RUNNING_INIT                    \
	{ .out = TRANSCRIPT_INIT,       \
		.err = TRANSCRIPT_INIT, \
		.ladder = LADDER_INIT,  \
		.pipefd = -1 }

/* Begins to listen in the job's directory. */
int running_listen(struct running *r);

/* Where what is fed goes, not blocking; -1: nowhere. */
int running_input(const struct running *r);

/* Hands on what waits to be fed. */
void running_feed(struct running *r);

/* Cancels, and ends everything. */
void running_cancel(struct running *r);

/* The end as far as it is known; times are the caller's. */
void running_tell(const struct running *r, struct job_end *e);

#endif
