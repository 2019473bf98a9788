/* SPDX-License-Identifier: MIT */
/*
 * The answer about a job: one JSON object, whether it runs or has ended.
 */
#ifndef SB_JOBREPLY_H
#define SB_JOBREPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "job.h"

struct reply {
	bool cursor; /* from where the last one ended, and without a limit */
	uint64_t first, limit; /* otherwise */
	bool err; /* rows of standard error as the output */
	bool raw; /* not rendered; there is another cursor for these */
	bool id; /* always say the job's id */
};

/*
 * Appends the object. Settles a job whose process was killed; asks a running
 * one for what is not on disk yet. state (if not
 * NULL) is the job's. -1 with errno.
 */
int job_reply(
    struct job *j, const struct reply *r, struct buf *b, enum job_state *state);

/* The answer about a job that does not exist. */
void job_reply_unknown(struct buf *b, const char *id);

#endif
