/* SPDX-License-Identifier: MIT */
/* The upperdir of a session, while it is as it was made. */
#ifndef SB_UPPER_H
#define SB_UPPER_H

/*
 * Gives the root of an upperdir owner, mode, mtime and xattrs of the root of a
 * layer, the one that it will cover. -1 with errno.
 */
int upper_dress(int stackfd, int upperfd, const char *layer);

/* The same from the directory that fd has open. */
int upper_dress_as(int upperfd, int fd);

/*
 * Is nothing in it, and its root as upper_dress made it? 1, 0, -1 errno. With
 * processes at work in the session the answer is that of a moment.
 */
int upper_is_unchanged(int stackfd, int upperfd, const char *layer);

#endif
