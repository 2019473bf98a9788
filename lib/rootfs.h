/* SPDX-License-Identifier: MIT */
/*
 * The root file system of a sandbox, and of a session that has one of its own:
 * another file system as it is, with an upper side that takes what is written.
 */
#ifndef SB_ROOTFS_H
#define SB_ROOTFS_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct rootfs {
	const char *source; /* absolute: "/", or a directory */
	const char *target; /* absolute: the directory it is mounted at */
	int statefd; /* a directory for upper sides, kept from run to run */
	const char *home; /* shown empty and writable; NULL: none */
	const char *const *mask; /* directories that are covered */
	size_t nmasks;
};

/*
 * Mounts it, in our own mount namespace:
 *
 *   1. An overlay over source. Where the kernel refuses that (the root of an
 *      ordinary user's namespace has mounts that cannot be taken off), a
 *      directory of binds: read-only what belongs to others, an overlay over
 *      each directory of the top that is the user's.
 *   2. Each mount below source in the same way: an overlay, or read-only where
 *      it is so, or cannot be a lower directory. /proc, /sys, /dev, /run,
 *      /tmp, home and what is masked are not looked at.
 *   3. /sys read-only; a /dev with the devices that every program expects; an
 *      empty /run; /tmp, /var/tmp and home out of statefd. /proc and terminals
 *      are for each session to mount.
 *   4. Masks. The names of resolv.conf(5), which may have pointed into /run.
 *      Where we have one id only, an image's apt(8) is told so.
 *
 * readonly gets a line for each mount of step 2 that cannot be written though
 * its original can. -1 with errno, and why says what was impossible.
 */
int rootfs_make(const struct rootfs *r, struct buf *readonly, struct buf *why);

/*
 * Makes root, a mount, the root of our mount namespace, with our fresh /proc,
 * terminals and shared memory (at most bytes, if not 0), and the tree that is
 * mounted at dirfd/tree at the absolute path target in it. Nothing of the old
 * root can be seen afterwards.
 */
int rootfs_enter(const char *root, int dirfd, const char *tree,
    const char *target, uint64_t bytes, struct buf *why);

#endif
