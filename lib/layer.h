/* SPDX-License-Identifier: MIT */
/* Layer directories and uppers: scanning, digests. */
#ifndef SB_LAYER_H
#define SB_LAYER_H

#include <stdbool.h>

#include "change.h"
#include "hash.h"

/*
 * Walks the tree at dirfd (an upper, or a layer when in_layer) in path_cmp
 * order and calls fn for each entry, the root itself excepted. from is "u",
 * or a layer id. in_layer: the .wh..wh..opq entry is the opaque mark and
 * .wh.NAME files are whiteouts of NAME; else a name beginning .wh. is an
 * ordinary entry. An opaque directory is CHANGE_OPAQUE, other specials are
 * CHANGE_SPECIAL. c is borrowed for the call. fn returns 0 to go on, -1 with
 * errno to stop. On failure *where (caller frees) is the path at fault.
 */
int layer_scan(int dirfd, const char *from, bool in_layer,
    int (*fn)(void *arg, const struct change *c), void *arg, char **where);

/*
 * Layer digest (sb-store(5)): fed with each change in bytewise path order
 * (strcmp, not path_cmp!). fd: the open content for CHANGE_WRITE, else -1.
 */
int layer_digest_add(struct hash *h, const struct change *c, int fd);

#endif
