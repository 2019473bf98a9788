/* SPDX-License-Identifier: MIT */
/*
 * What comes after a job: its session, when that is automatic (the file
 * "auto" is in its directory), is published and ended by the last job in it.
 */
#ifndef SB_JOBEND_H
#define SB_JOBEND_H

#include <stdbool.h>

#include "job.h"

bool job_session_is_automatic(const char *session);

/*
 * If the session of j is automatic and no other job is active in it: runs
 * sb-publish. Refused, or failed, the session is kept: explicit from then on,
 * without processes, and marked conflicted (a file with the answer); that
 * answer is the job's file "publish" too. Fills in the rest of e. Nothing is
 * left to do when somebody else has done it.
 */
void job_finalise(struct job *j, const char *session, struct job_end *e);

/*
 * Ends what a killed process left of a job (JOB_DEAD): kills its processes,
 * finalises its session, writes its status. 1 when it did, 0 when there was
 * nothing to do, -1 errno.
 */
int job_settle(struct job *j);

/* The job's cgroup is JOB_LEAF-NAME: one name for each job of each store. */
#define JOB_LEAF "sbjob"
void job_leaf_name(const struct job *j, char *out, size_t n);

#endif
