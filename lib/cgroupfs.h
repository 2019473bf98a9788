/* SPDX-License-Identifier: MIT */
/*
 * Where control groups are: cgroups(7). A machine has one hierarchy of the
 * second kind, and perhaps some of the first, each with controllers of its own.
 */
#ifndef SB_CGROUPFS_H
#define SB_CGROUPFS_H

#include <stdbool.h>

#include "buf.h"

struct cgroupfs {
	int rootfd;
	bool unified; /* it is of the second kind */
	struct buf own; /* our group, relative to the root; "." for that */
};

#define CGROUPFS_INIT { .rootfd = -1 }

/*
 * Opens the mounted hierarchy that has the controller, of the first kind where
 * there is one, else of the second, which need not have it; controller NULL:
 * of the second. ENOENT when there is none whose root can be seen.
 */
int cgroupfs_open(struct cgroupfs *h, const char *controller);
void cgroupfs_release(struct cgroupfs *h);

/* Our group in it, as above: for a mount that cgroupfs_open did not make. */
int cgroupfs_own(const char *controller, struct buf *own);

#endif
