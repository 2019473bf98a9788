/* SPDX-License-Identifier: MIT */
/*
 * What clients of a gateway share: where it is, with which token, and the
 * request of an operation.
 */
#ifndef SB_CLIENT_H
#define SB_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "endpoint.h"
#include "op.h"
#include "opcli.h"

struct client {
	struct endpoint to;
	char *token; /* NULL: none */
};

#define CLIENT_INIT { .to = ENDPOINT_INIT }

/*
 * By options (NULL: not given), else SANDBOX_GATEWAY_SOCKET and
 * SANDBOX_GATEWAY_AUTH_TOKEN, else 127.0.0.1:7878 and the file of the token.
 * False: why (emptied first) says what is wrong. Caller releases after success.
 */
bool client_find(
    const char *endpoint, const char *token, struct client *c, struct buf *why);
void client_release(struct client *c);

/* Nothing but blanks? */
bool client_is_blank(const char *s);

struct client_request {
	const struct op *op;
	const struct opcli *given;
	const char *sandbox; /* a JSON string; NULL: the system */
	const char *id; /* NULL: a random one */
	const char *token; /* NULL: none */
	bool progress;
};

/* Appends it, a line. */
void client_print(const struct client_request *r, struct buf *out);

/* How long a gateway may be silent, in milliseconds; 0: any time. */
uint64_t client_patience(const struct op *op, const struct opcli *given);

#endif
