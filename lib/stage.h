/* SPDX-License-Identifier: MIT */
/*
 * Making things appear whole: written aside, synced, renamed, the directory
 * synced, in that order, always.
 */
#ifndef SB_STAGE_H
#define SB_STAGE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Replaces dirfd/name (a single component) by a file of n bytes. The sibling
 * ".NAME.PID.tmp" is removed again on failure; after a kill it stays as a
 * dot name that readers ignore. -1 with errno.
 */
int stage_file(
    int dirfd, const char *name, const void *p, size_t n, mode_t mode);

/* The same without syncing: for what a crash of the machine may lose. */
int stage_file_nosync(
    int dirfd, const char *name, const void *p, size_t n, mode_t mode);

/* fsync of a directory by name beneath dirfd ("." is dirfd itself). */
int stage_sync_dir(int dirfd, const char *name);

#endif
