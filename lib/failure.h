/* SPDX-License-Identifier: MIT */
/*
 * An error that is to be answered, not died of: {"error":{"kind","message",
 * "details"}}. answer.h is the same for commands that end with it.
 */
#ifndef SB_FAILURE_H
#define SB_FAILURE_H

#include <stdbool.h>

#include "answer.h"
#include "buf.h"

#define KIND_BAD_JSON     "bad_json"
#define KIND_BUSY         "server_busy"
#define KIND_INTERNAL     "internal_error"
#define KIND_TOO_LARGE    "request_too_large"
#define KIND_UNAUTHORIZED "unauthorized"
#define KIND_UNKNOWN      "unknown_op"

struct failure {
	const char *kind; /* NULL: none. Static. */
	struct buf message; /* shown as far as it is UTF-8 */
	struct buf details; /* members of an object, perhaps none */
};

#define FAILURE_INIT { .kind = NULL }

/* Sets kind and message, keeps details; always false. */
__attribute__((format(printf, 3, 4))) bool failure_set(
    struct failure *f, const char *kind, const char *fmt, ...);

/* Is it one of this kind? */
bool failure_is(const struct failure *f, const char *kind);

/* Appends the object. */
void failure_print(const struct failure *f, struct buf *out);
void failure_release(struct failure *f);

#endif
