/* SPDX-License-Identifier: MIT */
/*
 * Rows of text, and the files "rows" and "index" of a job that they are kept
 * in. lib/screen makes rows of what a terminal was told.
 *
 *   rows   the text of each row and LF
 *   index  for each row eight bytes, little endian: ROW_AT_PRESENT,
 *          ROW_AT_WRAPPED and the offset of the row in "rows"
 *
 * Both only grow, text before its records, so that a reader needs no lock: a
 * whole record stands for a whole row. A record of zeros is a row that was
 * dropped; dropped rows are holes in both files, and offsets and numbers of
 * the others stay what they are. sb has no compaction: the files go with
 * their job.
 */
#ifndef SB_ROWS_H
#define SB_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "buf.h"

#define ROWS_NAME      "rows"
#define ROWS_INDEX     "index"
#define ROW_AT_WRAPPED ((uint64_t)1 << 63)
#define ROW_AT_PRESENT ((uint64_t)1 << 62)
#define ROW_AT_OFFSET  (ROW_AT_PRESENT - 1)

/* A longer line is several rows, all but the last with ROW_WRAPPED. */
#define ROW_BYTES_MAX ((size_t)1048576)

/* Of a row. */
enum {
	ROW_WRAPPED = 1, /* no LF ended it: the next row goes on with it */
	ROW_ALT = 2, /* live only: of the alternate screen */
	ROW_GAP = 4 /* reader only: rows that were dropped */
};

/*
 * Is given a row: n bytes of UTF-8 without LF, at most ROW_BYTES_MAX,
 * borrowed, not NULL, not always followed by NUL.
 */
typedef void rows_fn(const char *text, size_t n, unsigned flags, void *arg);

/* How many bytes of the text of n are a row: whole characters, as many as go. */
size_t rows_part(const char *text, size_t n);

/* --- Writing: one process. --- */

struct rows_log {
	int rows, index; /* private, all of it */
	uint64_t limit;
	struct buf text, at; /* what waits to be written */
	uint64_t waiting; /* rows in it */
	uint64_t off, total; /* bytes and rows in the files */
	uint64_t gap, past; /* holes go from row gap to before row past */
	uint64_t gap_off, past_off;
	uint64_t lost, lost_bytes; /* without LF */
	int err;
	bool no_holes;
};

/*
 * Makes both files in dirfd, mode 0600; EEXIST where there is one. limit:
 * bytes for both files together, 0 is none. The first quarter of it is kept
 * for good, the rest for the newest rows; what lies between is dropped. The
 * newest row is always kept, whatever the limit. Where the file system
 * makes no holes, or is full, new rows are dropped instead. All rows are
 * counted. -1 with errno and nothing to close.
 */
int rows_log_open(struct rows_log *l, int dirfd, uint64_t limit);

/*
 * A rows_fn whose arg is the log. The row waits for rows_log_flush, or until
 * 256 KiB wait.
 */
void rows_log_add(const char *text, size_t n, unsigned flags, void *log);

/*
 * Writes what waits, with one write for each file. -1 with errno when a row
 * could not be written since the last flush (EFBIG: the limit is reached and
 * the file system makes no holes); the log stays usable and goes on when
 * there is room again.
 */
int rows_log_flush(struct rows_log *l);

/* Rows added so far; and of them dropped, *bytes of text (may be NULL). */
uint64_t rows_log_count(const struct rows_log *l);
uint64_t rows_log_lost(const struct rows_log *l, uint64_t *bytes);

/* Flushes and closes; as rows_log_flush. */
int rows_log_close(struct rows_log *l);

/* --- Reading, also while a log is written. --- */

struct rows_file {
	int rows, index; /* private */
};

/* -1 with errno (ENOENT: no such files) and nothing to close. */
int rows_open(struct rows_file *f, int dirfd);
void rows_close(struct rows_file *f);

/* All rows so far, dropped ones included; -1 with errno. */
int64_t rows_count(const struct rows_file *f);

/* The first row from this one on that is there, or the count; -1 with errno. */
int64_t rows_next(const struct rows_file *f, uint64_t row);

/*
 * Is given a row and its number; or, with ROW_GAP and text NULL, the n rows
 * from this one on, which were dropped. Returns whether to go on.
 */
typedef bool rows_read_fn(
    uint64_t row, const char *text, size_t n, unsigned flags, void *arg);

/*
 * Calls fn for the n rows from first on, or as many as there are; what it
 * costs depends on those alone. Returns how many rows fn was told of, gaps
 * counted by rows; -1 with errno (EILSEQ: the files do not fit together).
 */
int64_t rows_read(const struct rows_file *f, uint64_t first, uint64_t n,
    rows_read_fn *fn, void *arg);

#endif
