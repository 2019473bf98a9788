/* SPDX-License-Identifier: MIT */
/*
 * Messages of JSON-RPC 2.0, as clients of the Model Context Protocol send and
 * take them: what a message is, and replies. Ids are tokens, given back as the
 * bytes that came.
 */
#ifndef SB_MCPRPC_H
#define SB_MCPRPC_H

#include <stdbool.h>

#include "buf.h"
#include "json.h"

enum {
	RPC_PARSE = -32700,
	RPC_REQUEST = -32600,
	RPC_METHOD = -32601,
	RPC_PARAMS = -32602,
	RPC_VERSION = -32022 /* of the protocol, not supported */
};

enum rpc_kind {
	RPC_CALL, /* a request: it is answered */
	RPC_NOTE, /* a notification: it is not */
	RPC_REPLY, /* to what we never asked */
	RPC_BAD /* none of these */
};

struct rpc {
	enum rpc_kind kind;
	struct span id; /* p is NULL: none that can be given back */
	struct buf method;
	struct span params; /* p is NULL: none */
};

#define RPC_INIT { .kind = RPC_BAD }

/* Of a value that json_is_valid accepted; spans are of it. Caller releases. */
void rpc_read(struct span text, struct rpc *m);
void rpc_release(struct rpc *m);

/*
 * Puts U+FFFD in place of each half of a surrogate pair that stands alone in
 * the n bytes of a text: JSON has it by its grammar, and no character is
 * meant. Did it find one?
 */
bool rpc_mend(char *text, size_t n);

/* Equal ids: of one type, with one value. */
bool rpc_same_id(struct span a, struct span b);

/*
 * Appends a reply without its newline. result is an object; data (NULL: none)
 * any value; an id that is not there is left out.
 */
void rpc_result(struct span id, const struct buf *result, struct buf *out);
void rpc_error(struct span id, int code, const char *message, const char *data,
    struct buf *out);

/*
 * Appends a JSON text as JSON.stringify of JavaScript prints what it parses,
 * but for integers beyond 2^53: clients compare the two.
 */
void rpc_normal(struct span text, struct buf *out);

#endif
