/* SPDX-License-Identifier: MIT */
/*
 * Overlay mounts from descriptors: overlayfs in the kernel's documentation,
 * fsopen(2), fsconfig(2). Options are the same for root and for an ordinary
 * user: userxattr,metacopy=off,index=off,xino=off,redirect_dir=nofollow.
 */
#ifndef SB_OVERLAY_H
#define SB_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

#define OVERLAY_LAYERS_MAX 500

/* How layers are handed to the kernel. */
enum overlay_way {
	OVERLAY_AUTO, /* the first of these that this kernel has */
	OVERLAY_FD, /* lowerdir+ by descriptor, Linux 6.13 */
	OVERLAY_STRING, /* lowerdir+ by /proc/self/fd/N, Linux 6.8 */
	OVERLAY_PAGE, /* one option page of mount(2) */
};

/*
 * Mounts the n layers (descriptors of directories, newest first, at most 500)
 * on the directory target; upper and work are descriptors, both -1 for a
 * read-only mount; one layer alone is then bound, as it is. On failure -1 with
 * errno, and text, if the kernel gave any, is its own explanation.
 */
int overlay_mount(const int *layer, size_t n, int upper, int work, int target,
    enum overlay_way way, struct buf *text);

/*
 * The same with the n layers id of the stack. On failure -1 with errno, and
 * text says what was impossible: which layer, or what the kernel says of the
 * mount. Many layers need many descriptors: io_many_fds first.
 */
int overlay_mount_ids(int stackfd, char *const *id, size_t n, int upper,
    int work, int target, enum overlay_way way, struct buf *text);

/* "fd", "string", "page"; false for other words. */
bool overlay_parse_way(const char *s, enum overlay_way *way);

#endif
