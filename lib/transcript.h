/* SPDX-License-Identifier: MIT */
/*
 * What a command prints, as it comes from a descriptor: bytes to the file
 * "log", see spool.h and rawrows.h, rows to "rows" and "index", see rows.h. The rows that
 * can still change go to "live" when somebody wants to see them: a line with
 * the number of those before, which are final, then for each row "-", or "w"
 * when the next goes on with it, its text, and LF.
 */
#ifndef SB_TRANSCRIPT_H
#define SB_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rawrows.h"
#include "rows.h"
#include "screen.h"
#include "spool.h"

#define LIVE_NAME "live"

struct transcript {
	int fd; /* not blocking; -1: none yet, or it has ended */
	int err; /* errno when not all could be kept, or 0 */
	/* private */
	int dirfd;
	struct spool log;
	struct rawrows_log raw;
	struct rows_log rows;
	struct screen *screen;
	unsigned how, height, width;
};

#define TRANSCRIPT_INIT { .fd = -1, .dirfd = -1 }

/*
 * Makes the files in dirfd, which is borrowed. terminal: of that size, else it
 * is a pipe. keep: bytes of the newest output, and of rows, that are kept.
 */
int transcript_open(struct transcript *t, int dirfd, bool terminal,
    unsigned rows, unsigned cols, uint64_t keep);

/*
 * Takes what is there, 64 KiB at most. False: nothing was. At the end of fd
 * it is closed and -1.
 */
bool transcript_pump(struct transcript *t);

/* Takes everything that was printed before now. */
void transcript_drain(struct transcript *t);

/* The terminal has another size: what was printed before is rendered first. */
void transcript_resize(struct transcript *t, unsigned rows, unsigned cols);

/* Writes live, and all final rows. Nothing to do for one that is not open. */
void transcript_show(struct transcript *t);

/*
 * The command has ended: its live rows are final. What somebody else still
 * prints begins a new one.
 */
void transcript_end(struct transcript *t);

#endif
