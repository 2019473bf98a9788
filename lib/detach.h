/* SPDX-License-Identifier: MIT */
/*
 * For a process that outlives the one that started it.
 */
#ifndef SB_DETACH_H
#define SB_DETACH_H

#include <stddef.h>

/*
 * Closes everything above 2 but keep[0 … n), at most 8 of them, where -1
 * stands for none, and makes those close-on-exec. EBADF for one not open.
 */
int detach_close(const int *keep, size_t n);

/*
 * Becomes the leader of a new session, in the directory /, with nothing to
 * read, nowhere to print, and file words in dirfd for messages.
 */
int detach(int dirfd, const char *words);

/*
 * Signals that nobody here wants to die of are blocked; TERM and INT come out
 * of the descriptor that is returned, which does not block. -1 with errno.
 */
int detach_signals(void);

#endif
