/* SPDX-License-Identifier: MIT */
/*
 * What comes after a job: its session, when that is automatic (the file
 * "auto" is in its directory), is published and ended by the last job in it.
 */
#ifndef SB_JOBEND_H
#define SB_JOBEND_H

#include <stdbool.h>

#include "job.h"

/*
 * Publishes and ends the session id, if it is automatic: its processes first,
 * then, if it changed anything, sb-publish. Refused, or failed, the session is
 * kept: explicit from then on, without processes, and marked conflicted (a file
 * with the answer).
 *
 * j is a job of it that has ended: then nothing is done while another is
 * active, and of several that ended at once one does it. What became of it is
 * filled into e, and the answer of sb-publish is j's file "publish". NULL: no
 * job of it is left that could do it, and none may come; with one that is not
 * over, or ms as in lock.h not enough for the gate, nothing is done.
 *
 * With e->lost somebody who was killed has begun with it: what he did is looked
 * up. A session that is gone, and none of our programs ended it, is a failure.
 *
 * 1 when it was published or kept, 0 when there was nothing to do.
 */
int job_finalise(const char *id, struct job *j, struct job_end *e, int ms);

/* It was not finalised: the class of that failure, and a word about it. */
void job_end_fail(struct job_end *e, const char *class, const char *text);

enum {
	FINALISE_MS = 60000
};

/*
 * Ends what a killed process left of a job (JOB_DEAD): kills its processes,
 * finalises its session, writes its status. 1 when it did, 0 when there was
 * nothing to do, -1 errno.
 */
int job_settle(struct job *j);

/* The same, of one whose process was killed because somebody wanted its end. */
int job_cancelled(struct job *j);

/* How a job of state JOB_DEAD ended, as far as it was written down. */
void job_end_known(const struct job *j, struct job_end *e);

/* The job's cgroup is JOB_LEAF-NAME: one name for each job of each store. */
#define JOB_LEAF "sbjob"
void job_leaf_name(const struct job *j, char *out, size_t n);

#endif
