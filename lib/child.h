/* SPDX-License-Identifier: MIT */
/*
 * Runs a program as a child: gives it its standard input, whole, keeps its
 * output, hands on what it says on the way, and ends it when it is not needed
 * any more and that does no harm. One poll loop, so that no two pipes block
 * each other.
 */
#ifndef SB_CHILD_H
#define SB_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

enum {
	CHILD_KILL_MS = 2000 /* from TERM to KILL */
};

struct child {
	const char *const *argv;
	const char *in; /* standard input */
	size_t in_n;
	size_t out_max; /* more is thrown away: cut */
	bool ready; /* descriptor 3 is for its readiness */
	bool cancel; /* it may be ended from the start, else when ready */
	int64_t deadline; /* of line.h: then it is ended, if it may be */
	int peer; /* when this hangs up, too; -1: none */

	/* A line of standard error, without newline, while it runs. */
	void (*said)(void *arg, const char *line);
	/* It may be cancelled from now on, and only waits. */
	void (*waits)(void *arg);
	/*
	 * Called in each turn: milliseconds until it wants to be called
	 * again, at the latest.
	 */
	int (*turn)(void *arg);
	void *arg;
};

struct child_end {
	int code; /* of spawn_code */
	struct buf out;
	struct buf last; /* the last line of standard error */
	bool cut, late, gone; /* ended because it was late, or nobody waits */
};

#define CHILD_END_INIT { .code = -1 }

/* -1 with errno when it could not be started. Callbacks may be NULL. */
int child_run(const struct child *c, struct child_end *end);

#endif
