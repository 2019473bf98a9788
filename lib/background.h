/* SPDX-License-Identifier: MIT */
/*
 * What a command left in the background: the file "processes" of its job, a
 * line with their number, then a line "PID COMMAND" for each of some. PID as
 * the session counts, COMMAND printable ASCII.
 */
#ifndef SB_BACKGROUND_H
#define SB_BACKGROUND_H

#include <sys/types.h>

#include "buf.h"

/* Of the processes below root, see proctree.h. Best effort. */
void background_write(int dirfd, int procfd, pid_t root);
void background_remove(int dirfd);

/* Appends members background_count and background_processes, if any. */
void background_out(struct buf *b, int dirfd);

#endif
