/* SPDX-License-Identifier: MIT */
/*
 * A window of lines onto a text that comes in pieces. The text must be UTF-8;
 * a byte order mark at its start is left out, and CRLF and a lone CR end a
 * line as LF does. Of a large text nothing is kept but the window. Pure.
 */
#ifndef SB_WINDOW_H
#define SB_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct window {
	bool invalid; /* not UTF-8: the rest means nothing */
	bool overflow; /* the window has more than max bytes: text is cut */
	bool cut; /* window_fit: its one line is not whole */
	struct buf text; /* its lines, joined by LF */
	uint64_t num; /* how many they are */
	uint64_t lines; /* of the whole text: what follows a last LF is none */
	uint64_t bytes; /* of the whole text, as they came */
	/* private */
	uint64_t first, limit;
	size_t max;
	struct buf rest; /* the beginning of a character */
	bool begun; /* something came before rest */
	bool open; /* a line has begun */
	bool cr; /* the last character was CR */
};

/* Lines first, from 1, to first + limit - 1. */
void window_init(struct window *w, uint64_t first, uint64_t limit, size_t max);
void window_feed(struct window *w, const void *p, size_t n);
void window_end(struct window *w);

/*
 * Drops lines from its end until the text is at most max bytes as a JSON
 * string, but not the first line: that is cut, with a mark.
 */
void window_fit(struct window *w, size_t max);

/* The first line behind the window; 0 when there is none. */
uint64_t window_next(const struct window *w);
void window_release(struct window *w);

#endif
