/* SPDX-License-Identifier: MIT */
/*
 * The environment of a command: some variables of ours, defaults, and what the
 * caller gives, each name once.
 */
#ifndef SB_JOBENV_H
#define SB_JOBENV_H

#include "buf.h"
#include "job.h"

/*
 * Adds NAME=VALUE to what is given (fields that each end in NUL), in the place
 * of one of the same name. EINVAL: it has no such form. EPERM: this one is not
 * to be set from outside, it would change which code runs, or who we are.
 */
int jobenv_give(struct buf *given, const char *pair);

/* Appends everything, fields that each end in NUL. */
void jobenv_make(
    struct buf *env, const struct buf *given, const struct job_meta *m);

#endif
