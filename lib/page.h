/* SPDX-License-Identifier: MIT */
/*
 * Rows of what a command printed, collected for one answer: rendered ones with
 * those that can still change, or raw ones, see rawrows.h.
 */
#ifndef SB_PAGE_H
#define SB_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"

struct page {
	struct buf text; /* valid UTF-8, the rows joined by LF */
	uint64_t first, end; /* the row asked for; behind the last one here */
	uint64_t total;
	bool live;
	uint64_t live_from; /* rows from this one on can change */
	uint64_t lost, lost_from; /* rows that were not kept, and the first */
	bool wrapped; /* some row is only a part of a line */
	bool cut; /* of the only row here the end is missing, as it says */
	/* private */
	bool any, raw, full;
	size_t max;
	size_t room; /* bytes that are left for the text in a JSON string */
};

#define PAGE_INIT { .text = BUF_INIT }

enum {
	PAGE_RAW = 1, /* else rendered, with a line where rows are missing */
	PAGE_DONE = 2 /* nothing more will come: the last row cannot change */
};

/*
 * At most limit rows from first on that are there, of the files in dirfd, and
 * no more than their text has max bytes, and json_max as a JSON string (0: any
 * number); a longer row is alone, and cut, with a mark. Costs what is read.
 * Without such files there are no rows. -1 with errno.
 */
int page_collect(struct page *p, int dirfd, unsigned how, uint64_t first,
    uint64_t limit, uint64_t max, uint64_t json_max);
void page_release(struct page *p);

#endif
