/* SPDX-License-Identifier: MIT */
/*
 * Calls of tools, all at once in one loop: each a request to the gateway, with
 * a connection of its own, its progress, and its answer or its cancellation.
 */
#ifndef SB_MCPCALL_H
#define SB_MCPCALL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "json.h"
#include "mcpout.h"
#include "mcptool.h"

enum {
	MCP_CALLS_MAX = 200
};

struct mcpcall;

struct mcpcalls {
	const struct mcptools *tools;
	const struct client *client;
	bool ends; /* a command whose call is cancelled, unless the call says */
	struct mcpcall *first; /* private */
	size_t n; /* calls that are not answered */
};

/* The parameters of "tools/call"; those that are wrong are answered at once. */
void mcpcalls_begin(
    struct mcpcalls *c, const struct mcp_peer *to, struct span params);

/*
 * The parameters of "notifications/cancelled": nothing more is said of that
 * call.
 */
void mcpcalls_cancel(struct mcpcalls *c, struct span params);

/*
 * What to wait for: sets c->n elements of p, and *due, of line.h, to an earlier
 * moment where one is.
 */
size_t mcpcalls_poll(const struct mcpcalls *c, struct pollfd *p, int64_t *due);

/* Takes all as far as they go without waiting. */
void mcpcalls_step(struct mcpcalls *c);

#endif
