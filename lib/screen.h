/* SPDX-License-Identifier: MIT */
/*
 * Bytes of a terminal to rows, by two models: the line model of lineterm.h, and
 * libvterm at the real size of the window. The first sequence that moves the
 * cursor between rows, erases the display, sets a scroll region or an
 * alternate screen, or needs a terminal in another way begins the second; it
 * starts with the live rows of the first. When the cursor is on the last row
 * and a whole window was written without such a sequence, the first goes on.
 *
 * A row is final when it leaves the top of the window, or at the end. A line
 * that the window's width broke is one row: only LF ends rows. TAB stays TAB,
 * where nothing was in its way. The alternate screen is live only: nothing of
 * it becomes final, and below it the rows of the main screen wait.
 *
 * Programs that use this link libvterm. One screen is used by one thread.
 */
#ifndef SB_SCREEN_H
#define SB_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "rows.h"

struct screen;

enum {
	SCREEN_RAW = 1, /* no rendering, see lineterm.h */
	SCREEN_PIPE = 2 /* no tty in between: LF returns to column 0 too */
};

enum {
	SCREEN_SIZE_MAX = 1000
};

/*
 * A window of rows by cols, each brought into 1 to SCREEN_SIZE_MAX; where a
 * terminal says 0, pass 24 and 80. final is called from screen_feed,
 * screen_resize and screen_end, once for each final row, in order; it must not
 * call this module. For files: rows_log_add. Free with screen_free.
 */
struct screen *screen_new(
    unsigned how, int rows, int cols, rows_fn *final, void *arg);
void screen_free(struct screen *s);

/* Takes all n bytes, however split. */
void screen_feed(struct screen *s, const void *p, size_t n);

/*
 * The window has another size. Lines that its width broke are broken anew;
 * what does not fit any more leaves at the top and is final.
 */
void screen_resize(struct screen *s, int rows, int cols);

/*
 * The live rows, top first; no empty ones at the bottom but those that LF
 * ended. In the alternate screen: its rows, each with ROW_ALT, and with
 * ROW_WRAPPED where the width broke a line. Changes nothing.
 */
void screen_live(struct screen *s, rows_fn *fn, void *arg);

/*
 * The end of the job: the live rows of the main screen become final. Feeding
 * afterwards is an error; screen_live has nothing more to say.
 */
void screen_end(struct screen *s);

#endif
