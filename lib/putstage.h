/* SPDX-License-Identifier: MIT */
/*
 * What sb-layer-commit needs for a layer with one file: a tree as an upperdir
 * would have it, in staging/LEASE.staging, the records of what is in it, who
 * wrote its lines, and what is noted of the layer. One at a time; it goes with
 * the program. As put.h, this module ends the program by itself.
 */
#ifndef SB_PUTSTAGE_H
#define SB_PUTSTAGE_H

#include "put.h"

struct staged {
	int tree; /* a directory */
	int changes, owners, meta; /* memory files */
};

/* old is what head shows at the path, content what takes its place. */
void stage_put(struct staged *s, const struct tree *t, const struct put *p,
    const struct file *old, const struct buf *content);

/* Also when there is none. */
void stage_drop(void);

/* A new memory file with the bytes of b, or empty when that is NULL. */
int memory_file(const char *name, const struct buf *b);

#endif
