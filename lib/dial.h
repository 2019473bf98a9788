/* SPDX-License-Identifier: MIT */
/* Connecting to a stream socket, within a time or in steps. Close-on-exec. */
#ifndef SB_DIAL_H
#define SB_DIAL_H

#include <stddef.h>
#include <stdint.h>

/*
 * dirfd/name, however long the path to dirfd is. -1 with errno: ENOENT no such
 * socket, ECONNREFUSED nobody listens, ETIMEDOUT after ms.
 */
int dial_unix(int dirfd, const char *name, int ms);

/* host: an address, or a name that the system resolves. EADDRNOTAVAIL: it
 * does not. */
int dial_tcp(const char *host, uint16_t port, int ms);

/*
 * The same without waiting: a socket that does not block and is connected, or
 * will be: when it can be written, dial_error says whether it was. EAGAIN:
 * somebody listens, but has no room; to be tried again later.
 */
int dial_unix_start(int dirfd, const char *name);

/*
 * To the nth of the host's addresses, from 0; EADDRNOTAVAIL where there are not
 * so many. A name is still looked up here and now.
 */
int dial_tcp_start(const char *host, uint16_t port, size_t nth);

/* An errno, or 0: connected. */
int dial_error(int fd);

#endif
