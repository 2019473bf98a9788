/* SPDX-License-Identifier: MIT */
/*
 * The line model: rows of a terminal that has no width. A line is a row,
 * however long it is. Text, TAB, CR, LF, backspace, and what moves, erases,
 * inserts or deletes within the line (CSI @ C D G I K P X Z a b j `) are
 * followed; colours, titles, modes and strings are dropped. At a sequence that
 * needs a screen it stops and says so. lib/screen is what to use.
 *
 * A row is final when it has left the top of the window, or at the end; until
 * then it is live.
 *
 *   text   What is not UTF-8 becomes U+FFFD. TAB stays TAB. Of other
 *          control characters, DEL and U+0080 to U+009F nothing is left.
 *   cells  A line in which text was written over or erased is kept by the
 *          cells of a screen: half of a wide character overwritten leaves a
 *          blank, and a mark goes with its character (two at most in such a
 *          line). Blanks at the end of such a line are dropped: they wiped out
 *          what was there.
 *   LF     ends a row, also an empty one, also without CR; so do VT and FF,
 *          as a terminal moves down a line. What stands after the last is a
 *          row if it is not empty.
 *   limit  A line that reaches ROW_BYTES_MAX bytes is ended there as a row
 *          with ROW_WRAPPED and goes on in the next. A line of more than
 *          LINETERM_CELLS_MAX columns that is written over is ended so too, but
 *          for its last part: it is there that CR returns to. All live rows
 *          but the one begun hold LINETERM_LIVE_MAX bytes: beyond it the oldest
 *          becomes final even if the window would show it. So memory stays
 *          below 10 MiB, and time per byte too has a bound.
 *
 * Raw: rows split at LF, one CR before it removed, what is not UTF-8 replaced,
 * NUL and everything else kept. All but the row begun are final.
 */
#ifndef SB_LINETERM_H
#define SB_LINETERM_H

#include <stdbool.h>
#include <stddef.h>

#include "rows.h"
#include "vt.h"

#define LINETERM_LIVE_MAX  (2 * ROW_BYTES_MAX)
#define LINETERM_CELLS_MAX ((size_t)65536)

struct lineterm;

/*
 * For a window of height rows, at least 1, and width columns, which only bound
 * the cursor's moves to the right. final is called once for each final row,
 * in order. Free with lineterm_free.
 */
struct lineterm *lineterm_new(
    bool raw, int height, int width, rows_fn *final, void *arg);
void lineterm_free(struct lineterm *l);

/*
 * Takes bytes, however split, up to the end of a sequence that needs a screen:
 * then lineterm_stuck is that sequence, until the next call. Returns how many
 * bytes it took; all, if it is not stuck. The next call leaves the sequence
 * out.
 */
size_t lineterm_feed(struct lineterm *l, const char *p, size_t n);
const struct seq *lineterm_stuck(const struct lineterm *l);

/* The live rows, oldest first; the one begun is last, unless it is empty. */
void lineterm_live(const struct lineterm *l, rows_fn *fn, void *arg);

/* A smaller window makes rows final. */
void lineterm_resize(struct lineterm *l, int height, int width);

/* All rows become final. Only lineterm_free may follow. */
void lineterm_end(struct lineterm *l);

/*
 * --- To a screen and back. ---
 */
enum {
	ROW_TRIM = 8, /* blanks at its end will be dropped */
	ROW_BEGUN = 16 /* no LF yet */
};

#define LINETERM_AT_END ((size_t)-1)

/* Column of the cursor in the row begun, or LINETERM_AT_END. */
size_t lineterm_col(const struct lineterm *l);

/* Was the terminal told not to wrap (CSI ? 7 l)? */
bool lineterm_nowrap(const struct lineterm *l);

/*
 * Gives up the live rows: fn gets them oldest first, and last the one begun,
 * even if empty, with ROW_BEGUN.
 */
void lineterm_leave(struct lineterm *l, rows_fn *fn, void *arg);

/*
 * Takes up a live row that LF ended, or with ROW_WRAPPED not; then the row
 * begun, with the column of the cursor in it. Of rows that are too long it
 * makes several.
 */
void lineterm_return(
    struct lineterm *l, const char *text, size_t n, unsigned flags);
void lineterm_return_last(struct lineterm *l, const char *text, size_t n,
    size_t col, unsigned flags, bool nowrap);

#endif
