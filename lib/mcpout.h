/* SPDX-License-Identifier: MIT */
/*
 * What an MCP server says: one queue of messages, written as far as goes
 * without waiting, and answers in the form that their requests want.
 */
#ifndef SB_MCPOUT_H
#define SB_MCPOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "json.h"

#define MCP_META "io.modelcontextprotocol/" /* begins keys of _meta */
#define MCP_SERVER                                                         \
	"{\"name\":\"sandbox-mcp\",\"title\":\"EphemeralOS Sandbox MCP\"," \
	"\"version\":\"" SB_VERSION "\"}"

struct mcpout {
	int fd;
	uint64_t said, gone; /* bytes: ever queued, ever written */
	struct buf queue; /* private, as the rest */
	size_t written;
	bool no_socket;
};

#define MCPOUT_INIT(f) { .fd = (f) }

/* Appends a message, and its newline. */
void mcpout_emit(struct mcpout *o, const struct buf *message);

/* So many bytes are not written yet. */
size_t mcpout_left(const struct mcpout *o);

/*
 * Writes when poll(2) says that fd can be written. -1 with errno. SIGPIPE must
 * be ignored.
 */
int mcpout_flush(struct mcpout *o);

/*
 * Requests of one line, which are answered together: waits counts those that
 * have no answer yet, and frees it at the last.
 */
struct mcp_batch {
	struct mcpout *out;
	struct buf replies;
	size_t waits;
};

/* One less; NULL: nothing. */
void mcp_batch_done(struct mcp_batch *b);

/* Whom an answer is for. */
struct mcp_peer {
	struct mcpout *out;
	struct span id; /* p is NULL: none */
	bool modern; /* of the era without handshakes */
	struct mcp_batch *batch; /* NULL: by itself */
};

/* The error code, with data (NULL: none). */
void mcp_refuse(
    const struct mcp_peer *to, int code, const char *message, const char *data);

/*
 * A result of these members, which are released. False: it would be a line of
 * more than max bytes (0: any), and nothing is said.
 */
bool mcp_answer(const struct mcp_peer *to, struct buf *members, size_t max);

#endif
