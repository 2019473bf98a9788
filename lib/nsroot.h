/* SPDX-License-Identifier: MIT */
/* The view that the processes of a session have of the machine. */
#ifndef SB_NSROOT_H
#define SB_NSROOT_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/*
 * Changes the mounts of our own mount namespace, once:
 *
 *   1. Keep hold of what is mounted at dirfd/tree.
 *   2. Make everything read-only and without devices, but the fresh /proc.
 *   3. Private and empty: /tmp, /var/tmp, /run, home (if not NULL), /dev with
 *      the devices that every program expects and terminals of its own. All
 *      that is stored there is memory: bytes in all, if not 0.
 *   4. The fresh /proc: what of it writes to the host's kernel becomes
 *      read-only, what shows its inside is covered.
 *   5. Cover each of the nmasks directories mask.
 *   6. Move the tree, writable, to target (absolute); where that lies below a
 *      private directory, its path is made in there.
 *
 * After it nothing but the tree and the private directories can be written,
 * and nobody without power over this mount namespace can undo it. On failure
 * -1, and why says what was impossible.
 */
int nsroot_make(int dirfd, const char *tree, const char *target,
    const char *home, uint64_t bytes, const char *const *mask, size_t nmasks,
    struct buf *why);

#endif
