/* SPDX-License-Identifier: MIT */
/*
 * Limits of what a program and all that it starts may use, by control groups
 * of either kind: cgroups(7). A group is made where our own is, so that what
 * holds for us holds for it; in a hierarchy of the second kind, where a group
 * with processes cannot limit others, next to it: below the nearest group
 * above that can.
 */
#ifndef SB_LIMIT_H
#define SB_LIMIT_H

#include <stdint.h>

#include "buf.h"
#include "cgroupfs.h"

/* Each 0 for none. */
struct limits {
	uint64_t memory_max; /* bytes; what needs more is killed */
	uint64_t memory_high; /* bytes; what has more is slowed down */
	uint64_t pids; /* processes and threads */
	uint64_t nano_cpus; /* 1 000 000 000 is a whole processor */
};

/* The controllers that we use. */
enum limit_kind {
	LIMIT_MEMORY,
	LIMIT_PIDS,
	LIMIT_CPU,
	LIMIT_KINDS
};
extern const char *const limit_name[LIMIT_KINDS];

/*
 * Makes the group in each hierarchy that has one of our controllers, also
 * those without a limit; an empty one of that name is replaced. Sets the
 * limits, then enters. Whatever cannot be done is left out; where a limit was
 * asked for, why gets "NAME: reason", separated by "; ", and the result is -1.
 */
int limit_enter(const char *group, const struct limits *want, struct buf *why);

/* The same in the hierarchies given, by kind; rootfd -1: there is none. */
int limit_enter_in(const struct cgroupfs h[LIMIT_KINDS], const char *group,
    const struct limits *want, struct buf *why);

/*
 * Removes all groups of that name, and the empty ones below them, wherever they
 * are. None is success. Waits up to ms for processes to end; -1 with EBUSY and
 * the group's path in where when some do not.
 */
int limit_remove(const char *group, int ms, struct buf *where);

#endif
