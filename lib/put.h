/* SPDX-License-Identifier: MIT */
/*
 * Changing one file of a tree, or nothing at all: what putsession and putlayer
 * have in common. As file.h, they end the program by themselves, with the error
 * object.
 */
#ifndef SB_PUT_H
#define SB_PUT_H

#include <stdbool.h>

#include "buf.h"
#include "file.h"

/*
 * What is to be done, and in whose name. make gets what is at the path: a
 * regular file, or nothing. It returns the new content, borrowed, or ends the
 * program. It is called again when somebody else was faster.
 */
struct put {
	const char *path; /* of file_path */
	const char *session; /* NULL: on head */
	const char *owner; /* of what is new on head */
	int ms; /* to wait, as in lock.h */
	bool
	    reads; /* the content depends on the old one, which must be there */
	const struct buf *(*make)(void *arg, const struct file *old);
	void *arg;
};

/*
 * The options -a owner, -s session, -t ms and the operand, a path. Without an
 * owner it is "operation:" and random digits. Ends the program for others.
 */
void put_options(struct put *p, int argc, char **argv, const char *usage);

/*
 * Writes content to the new file fd, with owner, mode and xattrs of the file
 * that it replaces, or mode 0644. -1 with errno.
 */
int put_fill(int fd, const struct file *old, const struct buf *content);

/* Ends the program after lock_take or the like failed, by errno. */
__attribute__((noreturn)) void put_no_lock(const char *what);

#endif
