/* SPDX-License-Identifier: MIT */
/*
 * A tree that is being put together below an open directory, entry by entry in
 * any order. Parents that are missing are made, mode 0700; what is there
 * already is replaced. No link is followed. Nothing is synced.
 *
 * All return -1 with errno when the entry could not be made as asked; what is
 * there then is undefined.
 */
#ifndef SB_TREE_H
#define SB_TREE_H

#include <sys/stat.h>
#include <sys/types.h>

#include "buf.h"
#include "state.h"

/*
 * A file with the text, or where that is NULL the content of from; its owner
 * is from's. A text is as old as it is, a copy has the time of from. Returns
 * its size.
 */
off_t tree_file(int dirfd, const char *path, const struct buf *text,
    struct state *from, unsigned mode, const struct buf *xattrs);

/*
 * A directory; path CHANGE_ROOT is dirfd itself. It can always be entered and
 * written by its owner, whatever mode says: more may follow below it.
 */
int tree_dir(int dirfd, const char *path, const struct stat *st, unsigned mode,
    const struct buf *xattrs);

/* A symbolic link. */
int tree_link(
    int dirfd, const char *path, const char *target, const struct stat *st);

#endif
