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
	uint64_t max; /* bytes of each text as a JSON string; 0: any number */
	uint64_t at[4]; /* private */
};

/*
 * Appends the object. Settles a job whose process was killed; asks a running
 * one for what is not on disk yet; one that cannot be settled, since nothing
 * can be written, is answered from what is known. state (if not NULL) is the
 * job's. The text of each stream has as many bytes as of its output are kept,
 * and as max says, at most; what there is no room for comes with the next one. -1 with errno.
 */
int job_reply(
    struct job *j, struct reply *r, struct buf *b, enum job_state *state);

/*
 * Prints the object, and moves the cursor when that is done: what was not
 * printed is not read. As stdout_done it ends the program where that fails.
 */
void job_reply_print(
    const struct job *j, const struct reply *r, const struct buf *b);

/* The answer about a job that does not exist. */
void job_reply_unknown(struct buf *b, const char *id);

#endif
