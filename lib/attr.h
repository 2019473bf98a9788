/* SPDX-License-Identifier: MIT */
/*
 * What travels with an entry: mode & 07777, owner and group, mtime, and the
 * user.* xattrs without user.overlay.*. security.* and trusted.* never travel.
 */
#ifndef SB_ATTR_H
#define SB_ATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "buf.h"

/*
 * The travelling xattrs of an open entry (regular file or directory, not
 * O_PATH), serialised in sorted order as name NUL, 8-byte little-endian size,
 * value: equal sets give equal bytes. Appends to out; *dropped, if not NULL,
 * is increased by the number of others (security.*, trusted.*, user.overlay.*;
 * not system.*). A file system without xattrs has none. -1 with errno.
 */
int attr_xattrs(int fd, struct buf *out, size_t *dropped);

/* Sets exactly the serialised set on fd: others of user.* (not overlay) go. */
int attr_set_xattrs(int fd, const char *p, size_t n);

/*
 * Gives the open file or directory fd the owner (if we may), mode and mtime
 * of st. Owner first: chown clears set-id bits.
 */
int attr_set(int fd, const struct stat *st, unsigned mode);

/* Owner (if we may) and mtime of a symbolic link. */
int attr_set_link(int dirfd, const char *name, const struct stat *st);

#endif
