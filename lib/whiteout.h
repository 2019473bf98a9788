/* SPDX-License-Identifier: MIT */
/*
 * Whiteouts and opaque marks, as overlayfs(5) of the kernel documentation has
 * them with "userxattr", both ways. A whiteout is a character device 0:0; the
 * xattr form is read (as store readers must) but never written: the kernel
 * does not honour it. An opaque directory carries user.overlay.opaque=y. The
 * entry .wh..wh..opq is read as the same mark but never written: where a
 * single layer shows a directory the kernel lists it unfiltered, so that ls
 * would show the mark and rm -r would fail on it.
 */
#ifndef SB_WHITEOUT_H
#define SB_WHITEOUT_H

#include <stdbool.h>
#include <sys/stat.h>

#define WHITEOUT_OPAQUE_NAME ".wh..wh..opq"
#define WHITEOUT_PREFIX      ".wh."

/* By stat alone: a character device 0:0. */
bool whiteout_is_device(const struct stat *st);

/*
 * 1 when dirfd/name, whose lstat is st, is a whiteout in either form, 0 when
 * not, -1 with errno when its xattrs cannot be read. Opens nothing; needs
 * /proc. An empty file that we may not read is no whiteout.
 */
int whiteout_is(int dirfd, const char *name, const struct stat *st);

/*
 * The same for an upper, where trusted.overlay.whiteout is not a whiteout: a
 * "userxattr" mount shows such a file as what it is.
 */
int whiteout_is_upper(int dirfd, const char *name, const struct stat *st);

/*
 * 1 when the open directory fd (not O_PATH) is opaque by user.overlay.opaque
 * or trusted.overlay.opaque = exactly "y"; -1 with errno.
 */
int whiteout_dir_is_opaque(int fd);

/* Makes a whiteout, mode 0644 as the format says. EEXIST when taken. */
int whiteout_make(int dirfd, const char *name);

/* Marks the open directory fd of a layer opaque. */
int whiteout_mark_opaque(int fd);

#endif
