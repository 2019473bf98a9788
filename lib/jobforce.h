/* SPDX-License-Identifier: MIT */
/*
 * The process of a job that does not answer, jobctl.h: stopped, or stuck. It
 * is known by what it has open, as /proc shows: the job's lock or directory.
 */
#ifndef SB_JOBFORCE_H
#define SB_JOBFORCE_H

#include "job.h"

/* Lets it go on if it was stopped. How many were, or -1 with errno. */
int job_continue(const struct job *j);

/*
 * Kills it, and with it all processes of the job, which it keeps; then the job
 * is settled as one that was cancelled. A job that is over is left as it is. -1
 * with errno: ESRCH when nobody was found, ETIMEDOUT when he does not end.
 */
int job_force(struct job *j);

#endif
