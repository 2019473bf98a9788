/* SPDX-License-Identifier: MIT */
/* Connecting to a stream socket, within a time. Close-on-exec. */
#ifndef SB_DIAL_H
#define SB_DIAL_H

#include <stdint.h>

/*
 * dirfd/name, however long the path to dirfd is. -1 with errno: ENOENT no such
 * socket, ECONNREFUSED nobody listens, ETIMEDOUT after ms.
 */
int dial_unix(int dirfd, const char *name, int ms);

/* host: an address, or a name that the system resolves. EADDRNOTAVAIL: it
 * does not. */
int dial_tcp(const char *host, uint16_t port, int ms);

#endif
