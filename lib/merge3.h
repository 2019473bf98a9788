/* SPDX-License-Identifier: MIT */
/*
 * Three-way merge by lines, memory to memory, with the origin of every line
 * of the result; and the line diff below it. A line is the bytes up to and
 * including LF; the last one may lack it. CR is content. Nothing here reads
 * or writes files, and no marker is ever put into a text.
 */
#ifndef SB_MERGE3_H
#define SB_MERGE3_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

enum {
	MERGE_TEXT_MAX = 8388608 /* bytes of one text */
};

/*
 * Why these bytes are not text that can be merged, as the end of a sentence
 * ("is larger than …", "contains a NUL byte", "is not UTF-8"); NULL when they
 * are. UTF-8 is that of RFC 3629: no surrogates, no overlong forms, nothing
 * above U+10FFFF.
 */
const char *text_flaw(const void *p, size_t n);
bool text_is_mergeable(const void *p, size_t n);

/*
 * A text cut into lines. Line i (from 0) is text + start[i], of
 * start[i + 1] - start[i] bytes; start has n + 1 elements. The text is
 * borrowed and must outlive the struct.
 */
struct lines {
	const char *text;
	size_t n;
	size_t *start;
};

void lines_split(struct lines *l, const void *text, size_t len);
void lines_release(struct lines *l);

/* Lines a … a+alen-1 of the old text became b … b+blen-1 of the new one. */
struct diff_region {
	size_t a, alen, b, blen; /* lines from 0; never both lengths 0 */
};

struct diff {
	struct diff_region *region; /* sorted, an unchanged line between two */
	size_t n;
};

#define DIFF_INIT { .region = NULL }

/*
 * Puts into d (DIFF_INIT, or released) how a becomes b. The number of lines
 * taken out and put in is minimal as long as the work stays in its budget
 * (always up to 11 000 lines in both texts together, beyond that when there
 * are few differences among lines that occur on both sides); past it the
 * script is still right, but may be longer. A region that could stand at
 * several places stands at the last. Returns 0, or -1 with EFBIG for more
 * than 2^30 lines together. Caller frees with diff_release.
 */
int diff_lines(const struct lines *a, const struct lines *b, struct diff *d);
void diff_release(struct diff *d);

/*
 * Lines of the three texts that were changed in two ways. All starts count
 * from 1; where a count is 0, the start is the line before which the place
 * lies (one more than the number of lines at the end).
 */
struct merge_hunk {
	size_t base, base_count;
	size_t head, head_count;
	size_t mine, mine_count;
};

enum merge_origin {
	ORIGIN_HEAD,
	ORIGIN_MINE
};

/* Lines start … start+count-1 of the merged text, from 1. */
struct merge_range {
	size_t start, count;
	enum merge_origin origin;
	size_t head; /* ORIGIN_HEAD: its first line in head, from 1; else 0 */
};

/*
 * The result: either nhunks is 0 and text and ranges are filled (the ranges
 * tile the text without gaps), or both are empty and hunks lists every
 * overlap, in order.
 */
struct merge {
	struct buf text;
	struct merge_range *range;
	size_t nranges;
	struct merge_hunk *hunk;
	size_t nhunks;
	size_t range_cap, hunk_cap; /* private */
};

#define MERGE_INIT { .range = NULL }

/*
 * Merges what happened between base and head with what happened between base
 * and mine, into m (MERGE_INIT, or released). Changes that touch without
 * overlapping are merged; two insertions at one place overlap unless they are
 * equal; what both sides made equal belongs to head. To attribute the lines
 * of a text without merging, give base as head. The caller asks
 * text_is_mergeable first; other bytes do no harm. Returns 0 (clean or not,
 * see nhunks), or -1 with EFBIG when a text is above MERGE_TEXT_MAX. Caller
 * frees with merge_release.
 */
int merge3(struct merge *m, const struct buf *base, const struct buf *head,
    const struct buf *mine);
void merge_release(struct merge *m);

#endif
