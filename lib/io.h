/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing all of it. EINTR is retried, errno is kept, close is
 * called once. Functions return 0 or a count, and -1 with errno.
 */
#ifndef SB_IO_H
#define SB_IO_H

#include <stddef.h>
#include <sys/types.h>

#include "buf.h"

int io_write_all(int fd, const void *p, size_t n);

/* Reads up to n bytes; less only at end of file. */
ssize_t io_read_all(int fd, void *p, size_t n);

/* Appends everything up to end of file; EFBIG when more than max bytes. */
int io_read_buf(int fd, struct buf *b, size_t max);

/* One read(2), EINTR retried. 0 at end of file. */
ssize_t io_read_some(int fd, void *p, size_t n);

/* The whole file at (dirfd, path), not following a last link. */
int io_read_file_at(int dirfd, const char *path, struct buf *b, size_t max);

/*
 * Copies from in to out from their current offsets to the end of in, by
 * reflink, copy_file_range(2) or read/write, whichever the file systems
 * accept. Holes of a file stay holes when out is a file that ends where it is
 * written, and is not open for appending. Returns the number of bytes, holes
 * included; in may be left at any offset.
 */
off_t io_copy(int in, int out);

/*
 * Do two open regular files have equal bytes, from their starts? 1, 0, or -1
 * with errno. Moves both offsets. Whoever knows the sizes compares them first.
 */
int io_same(int a, int b);

/*
 * Readiness on a descriptor that somebody gave us: io_ready_fd keeps it from
 * our children; io_ready writes a newline, whether or not anybody reads, and
 * closes it. -1 does nothing.
 */
int io_ready_fd(int fd);
void io_ready(int *fd);

/*
 * Waits until fd can be read, or is at its end: of a pidfd, until the process
 * has ended. ms as of poll(2). -1 with ETIMEDOUT.
 */
int io_wait(int fd, int ms);

/* Closes once; errno of before is kept when close succeeds. */
int io_close(int fd);

/* Closes if open, keeps errno, forgets a failure: for descriptors only read. */
void io_drop(int *fd);

/* Raises the soft limit of descriptors to the hard one, for deep trees. */
void io_many_fds(void);

/*
 * Flushes stdio's stdout and checks that everything arrived (ENOSPC shows up
 * here). Dies 111 otherwise. The last call of every command that prints.
 */
void stdout_done(void);

#endif
