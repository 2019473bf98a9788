/* SPDX-License-Identifier: MIT */
/*
 * The line of a request, taken apart in two steps, so that the token can be
 * compared in between: what it holds, then what that means. The members are
 * spans of the line, which stays as it came.
 */
#ifndef SB_REQUEST_H
#define SB_REQUEST_H

#include <stdbool.h>

#include "buf.h"
#include "failure.h"
#include "json.h"

enum {
	REQUEST_MAX = 16777216 /* bytes of the line, newline included */
};

struct request {
	struct span op, request_id, scope, args, token, stream_logs;
	/* request_decode: */
	char *name; /* of the operation; up to a NUL */
	struct buf id; /* the request's */
	bool system; /* its scope */
	struct buf sandbox_id; /* without NUL, or refused */
	bool progress; /* _stream_logs */
};

#define REQUEST_INIT { .name = NULL }

/*
 * Step one: is the line one JSON object? token_name is the member with the
 * token. False: f is set.
 */
bool request_parse(struct request *r, const char *line, size_t n,
    const char *token_name, struct failure *f);

/* Step two. False: f is set, what was decoded before is there. */
bool request_decode(struct request *r, struct failure *f);
void request_release(struct request *r);

#endif
