/* SPDX-License-Identifier: MIT */
/*
 * A log of lines in two segments, NAME and NAME.1, to which many processes
 * append, and which never takes more than its budget. The lock NAME.lock is
 * tried and never waited for: what cannot be written at once, for whatever
 * reason, is dropped and counted in NAME.counts and NAME.counts.1.
 *
 * After every append each segment has at most half of the budget and ends with
 * a whole line. Nothing is synced but a segment that is written anew because
 * it was damaged. Readers take no lock.
 */
#ifndef SB_SEGLOG_H
#define SB_SEGLOG_H

#include <stddef.h>
#include <stdint.h>

struct seglog {
	const char *name;
	uint64_t max_bytes; /* of both segments */
	size_t max_line; /* with its newline */
};

/* What is counted, in lines. */
enum seglog_count {
	SEGLOG_BUSY, /* dropped: the lock was held */
	SEGLOG_STORAGE, /* dropped: an error of the file system */
	SEGLOG_OVERSIZED, /* dropped: longer than a line or a segment may be */
	SEGLOG_TRUNCATED, /* written, but shortened by who made them */
	SEGLOG_COUNTS
};

/*
 * Appends n bytes, which are whole lines of at most max_line, in one write(2)
 * or, where the first segment becomes full in between, in two. It begins with
 * the repair of both segments, if their ends or sizes are not as they should
 * be: then too long lines, and what is not a whole line, go as well. errno is
 * left alone.
 */
void seglog_append(
    int dirfd, const struct seglog *log, const char *lines, size_t n);

/* Adds n to a count; errno is left alone. Lost where that cannot be written. */
void seglog_add(
    int dirfd, const struct seglog *log, enum seglog_count which, uint64_t n);

/* The counts. -1 with errno; without a file all are 0. */
int seglog_counts(
    int dirfd, const struct seglog *log, uint64_t out[SEGLOG_COUNTS]);

#endif
