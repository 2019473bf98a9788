/* SPDX-License-Identifier: MIT */
/* One request to a gateway, and its answer. */
#ifndef SB_CALL_H
#define SB_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "endpoint.h"
#include "failure.h"

#define KIND_CONFIG     "config_error"
#define KIND_CONNECTION "connection_error"
#define KIND_PROTOCOL   "protocol_error"

enum {
	CALL_CONNECT_MS = 10000
};

struct call {
	const struct endpoint *to;
	const char *line; /* the request, with its newline */
	size_t n;
	int connect_ms;
	uint64_t answer_ms; /* without a line of the gateway; 0: any time */

	/* A line of progress, decoded. May be NULL. */
	void (*said)(void *arg, const char *text);
	void *arg;
};

/*
 * Appends the answer, one JSON value, as it came, without its newline. False:
 * f is set, in the words of the interface. SIGPIPE may be at its default.
 */
bool call_run(const struct call *c, struct buf *reply, struct failure *f);

/* Has the answer a member "error"? */
bool call_is_error(const struct buf *reply);

/* A random id of a request, RFC 9562 version 4. */
void call_uuid(char out[37]);

#endif
