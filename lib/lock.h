/* SPDX-License-Identifier: MIT */
/*
 * Open-file-description locks (fcntl(2), F_OFD_SETLK): they belong to the
 * descriptor, are shared with whoever inherits it and end with the last copy,
 * in whatever way the process ends. A lock's descriptor is given only to the
 * process whose life it stands for. Whether a lock is held is asked, never
 * tried: taking a lock to test it makes others see it held.
 */
#ifndef SB_LOCK_H
#define SB_LOCK_H

#include <stdbool.h>

#define LOCK_FOREVER (-1)

/*
 * Opens (creating with mode 0600) dirfd/name and locks it, exclusively or
 * shared. ms: 0 does not wait, LOCK_FOREVER waits as long as it takes.
 * Returns the descriptor, close-on-exec; closing it unlocks. -1 with EAGAIN
 * (held, ms was 0), ETIMEDOUT (held until the end of ms) or another errno.
 */
int lock_take(int dirfd, const char *name, bool exclusive, int ms);

/* The same on a descriptor that is open for reading and writing. */
int lock_fd(int fd, bool exclusive, int ms);

/*
 * Is an exclusive lock held on dirfd/name by another open file description?
 * A missing file is not held. -1 with errno when it cannot be asked.
 */
int lock_is_held(int dirfd, const char *name);

/*
 * Makes dirfd/name exist already locked: made under a dot name, locked,
 * renamed. Fails with EEXIST. Returns the descriptor.
 */
int lock_create(int dirfd, const char *name);

/*
 * A gate is two files, NAME and NAME.turn. Everybody takes the turn first and
 * keeps it only while waiting, so that a waiting exclusive user is not
 * overtaken by a stream of shared ones. Returns the descriptor of NAME.
 */
int gate_take(int dirfd, const char *name, bool exclusive, int ms);

#endif
