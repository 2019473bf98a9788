/* SPDX-License-Identifier: MIT */
/*
 * The bytes that a command printed, a spool "log", by rows as they came: split
 * at LF, nothing rendered. "log.index" says where they begin, for each block
 * of 4096 bytes of the log in eight bytes, little endian: how many LF come
 * before the block, and RAW_AT_START when a row begins with it. The records
 * of blocks that lie in the log's gap are a hole. When the gap ends inside of a
 * block, as one of bytes that could not be written may, the block's record
 * counts what comes before that end. Where the log is cut off instead, see
 * spool.h, the record behind that of the block with the beginning of the gap
 * counts all, as if a block began there.
 *
 * A row of which a part lies in the gap is dropped as a whole.
 */
#ifndef SB_RAWROWS_H
#define SB_RAWROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "rows.h"
#include "spool.h"

#define RAW_INDEX    "log.index"
#define RAW_AT_START ((uint64_t)1 << 63)

/* --- Writing, beside spool_add. --- */

struct rawrows_log {
	int fd; /* private, all of it */
	uint64_t lf;
	off_t len, past;
	bool start;
	struct buf at; /* records that are not written yet */
};

/* Makes the file in dirfd. */
int rawrows_make(struct rawrows_log *l, int dirfd);

/* The bytes that s has counted since the last time, written or lost. */
int rawrows_add(
    struct rawrows_log *l, const struct spool *s, const char *p, size_t n);

/* --- Reading, also while it is written. --- */

struct rawrows {
	int dirfd, log, index; /* private, all of it */
	struct gap gap;
	off_t len;
	uint64_t head, tail; /* rows before the gap; the first one after it */
	uint64_t final, count;
};

/* In dirfd, borrowed. -1 with errno (ENOENT) and nothing to close. */
int rawrows_open(struct rawrows *r, int dirfd);
void rawrows_close(struct rawrows *r);

/* As of rawrows_open: all rows, also the last one without LF; those with. */
uint64_t rawrows_count(const struct rawrows *r);
uint64_t rawrows_final(const struct rawrows *r);

/* The first row from this one on that does not lie in the gap. */
uint64_t rawrows_next(const struct rawrows *r, uint64_t row);

/*
 * Calls fn for at most n rows from first on, without LF and one CR before it,
 * until one is not there, or fn returns false. What it costs is that of a
 * block, and of these rows. -1 with errno.
 */
int rawrows_read(
    struct rawrows *r, uint64_t first, uint64_t n, rows_read_fn *fn, void *arg);

#endif
