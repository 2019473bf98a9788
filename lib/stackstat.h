/* SPDX-License-Identifier: MIT */
/* The stack, its leases and what they take, as it is now. Only reads. */
#ifndef SB_STACKSTAT_H
#define SB_STACKSTAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "conf.h"
#include "measure.h"
#include "path.h"
#include "stack.h"

struct stackstat_layer {
	bool has_bytes; /* else they are a lower bound */
	uint64_t bytes;
	bool has_allocated;
	uint64_t allocated;
	uint64_t leased; /* live leases whose newest layer it is */
};

/* A session and what it was made on; n is 0 where that cannot be read. */
struct stackstat_session {
	char id[ID_MAX + 1];
	struct manifest lease;
};

struct stackstat {
	struct manifest m; /* head */
	struct stackstat_layer *layer; /* of each */
	struct stackstat_session *session; /* sorted by id */
	size_t nsessions;
	size_t cap; /* private */
	uint64_t leases; /* sessions, and live ones of short work */
	struct measure storage;
	bool has_staging;
	uint64_t staging; /* entries */
};

#define STACKSTAT_INIT { .layer = NULL }

/*
 * Reads the sessions and their leases. A line is appended to errors for each
 * that cannot be read.
 */
void stackstat_sessions(struct stackstat *s, struct buf *errors);

/*
 * Reads head and leases and measures; the budget of each walk is conf's. -1
 * with errno when the stack cannot be observed: why (emptied first) says what.
 * Sessions come first.
 */
int stackstat_read(
    struct stackstat *s, const struct conf *conf, struct buf *why);
void stackstat_release(struct stackstat *s);

/* What a walk may cost. */
struct measure stackstat_budget(const struct conf *conf);

/* Sums over the layers; false when one is unknown. */
bool stackstat_bytes(const struct stackstat *s, uint64_t *sum);
bool stackstat_allocated(const struct stackstat *s, uint64_t *sum);

/* The member name: the number, or null. */
void stackstat_out(struct buf *b, const char *name, bool known, uint64_t n);

#endif
