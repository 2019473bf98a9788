/* SPDX-License-Identifier: MIT */
/*
 * Files that are appended to without end and keep a bounded part: the
 * beginning, and what came last. What lies between is given back to the file
 * system by punching a hole, so that every byte stays at its true offset. So
 * does what comes after bytes that could not be written, as on a full device.
 * The one gap that both make is written down in NAME.gap.
 */
#ifndef SB_SPOOL_H
#define SB_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define LOG_NAME "log"

enum {
	SPOOL_BLOCK =
	    4096, /* a gap that was punched begins and ends with one */
	SPOOL_HEAD = 65536 /* bytes of the beginning that stay */
};

struct gap {
	off_t from, to; /* bytes; from == to: none */
};

struct spool {
	int fd, gapfd;
	off_t len; /* bytes that were written, kept or not */
	off_t keep; /* bytes of the end that stay, at least */
	struct gap gap;
	bool full; /* holes cannot be punched here: what comes is dropped */
	bool untold; /* the gap has grown, and is not written down yet */
	bool cut; /* the file ends before the gap does */
};

#define SPOOL_INIT { .fd = -1, .gapfd = -1 }

/* Makes dirfd/name, which is not there yet, and name.gap. */
int spool_make(struct spool *s, int dirfd, const char *name, off_t keep);

/*
 * Appends. What falls out of the bounds is gone after this. -1 with errno when
 * something could not be written: that lies in the gap then, which reaches to
 * what comes next, and what the gap had before it goes with it.
 */
int spool_add(struct spool *s, const void *p, size_t n);
void spool_close(struct spool *s);

/* The gap of dirfd/name as it is now. A missing file has none. */
int spool_gap(int dirfd, const char *name, struct gap *gap);

/*
 * Writes the number from and the number behind the last of a gap to an open
 * NAME.gap: also used for gaps that are counted in something else.
 */
int gap_write(int fd, const struct gap *gap);

/* Gives a range of bytes back; EOPNOTSUPP where the file system cannot. */
int spool_punch(int fd, off_t from, off_t to);

#endif
