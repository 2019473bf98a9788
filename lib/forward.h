/* SPDX-License-Identifier: MIT */
/*
 * A request sent on to the gate of a sandbox, and its answer.
 */
#ifndef SB_FORWARD_H
#define SB_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "box.h"
#include "buf.h"
#include "failure.h"
#include "request.h"

/*
 * Connects and sends op, request_id, scope and args as the bytes that came,
 * the box's token under token_name, if it has one, and _stream_logs when
 * progress is wanted. Returns the connection, or -1 with f.
 */
int forward_send(const struct box *box, const char *run,
    const struct request *r, const char *token_name, struct failure *f);

struct forward {
	int fd; /* of forward_send */
	int peer; /* when this hangs up, nobody waits any more */
	int64_t deadline; /* of line.h */
	uint64_t ms; /* the same, for the message */
	/* A line of progress, with its newline; or NULL: dropped. */
	void (*progress)(const char *line, size_t n);
};

/*
 * Appends the final line, a JSON object, without its newline. False with f;
 * with no kind in f the peer has gone.
 */
bool forward_receive(
    const struct forward *w, struct buf *reply, struct failure *f);

/*
 * Did the answered operation change something? So it did when it succeeded,
 * and when a session was published but could not be ended.
 */
bool forward_is_activity(const struct buf *reply);

#endif
