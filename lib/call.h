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
#include "line.h"

#define KIND_CONFIG     "config_error"
#define KIND_CONNECTION "connection_error"
#define KIND_PROTOCOL   "protocol_error"

enum {
	CALL_CONNECT_MS = 10000
};

enum call_state {
	CALL_DIALS, /* a connection is being made */
	CALL_SENDS,
	CALL_WAITS, /* for the answer */
	CALL_GOOD, /* it is there */
	CALL_BAD
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

	/* private, but for state, which is to be read */
	enum call_state state;
	struct line in; /* its fd is the connection; -1: none */
	size_t sent, nth;
	int64_t due;
	int err; /* why an address was not reached, or not all was sent */
	bool progress;
};

/*
 * Appends the answer, one JSON value, as it came, without its newline. False:
 * f is set, in the words of the interface. SIGPIPE may be at its default.
 */
bool call_run(struct call *c, struct buf *reply, struct failure *f);

/*
 * The same in steps, for a loop, between call_start and call_end, which may
 * also come early. A step does what can be done without waiting and returns
 * the state; the next is due when call_fd is ready for call_events, or is none
 * (-1), and call_due (of line.h) at the latest. A name is looked up in a step.
 */
void call_start(struct call *c);
enum call_state call_step(struct call *c, struct buf *reply, struct failure *f);
int call_fd(const struct call *c);
short call_events(const struct call *c);
int64_t call_due(const struct call *c);
void call_end(struct call *c);

/* Has the answer a member "error"? */
bool call_is_error(const struct buf *reply);

/* A random id of a request, RFC 9562 version 4. */
void call_uuid(char out[37]);

#endif
