/* SPDX-License-Identifier: MIT */
/*
 * Where a gateway is: HOST:PORT, [V6]:PORT, either behind tcp://,
 * unix:///PATH, or npipe://./pipe/NAME, which is only parsed here.
 */
#ifndef SB_ENDPOINT_H
#define SB_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum endpoint_kind {
	ENDPOINT_TCP,
	ENDPOINT_UNIX,
	ENDPOINT_PIPE
};

struct endpoint {
	enum endpoint_kind kind;
	char *host; /* of TCP, without brackets */
	uint16_t port;
	char *path; /* of a socket: absolute */
};

#define ENDPOINT_INIT { .kind = ENDPOINT_TCP }

/*
 * False: *why is a static text, in the words of the interface. Caller
 * releases after success.
 */
bool endpoint_parse(const char *s, struct endpoint *e, const char **why);
void endpoint_release(struct endpoint *e);

/*
 * Begins to connect, to the nth address, as dial_unix_start and dial_tcp_start.
 * -1 with errno; EOPNOTSUPP: of another system.
 */
int endpoint_start(const struct endpoint *e, size_t nth);

#endif
