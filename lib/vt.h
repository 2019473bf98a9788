/* SPDX-License-Identifier: MIT */
/*
 * What both models of a terminal need: characters and their widths, cells,
 * and where control sequences begin and end. Pure, no allocation but cells_text.
 */
#ifndef SB_VT_H
#define SB_VT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/*
 * --- UTF-8, a byte at a time. All zero at first. ---
 */
struct utf8 {
	uint32_t c;
	unsigned char need, lo, hi; /* bytes missing, bounds of the next */
};

#define UTF8_BAD 0xfffdu /* one for each maximal part of a sequence */

/* Takes a byte >= 0x80. Returns how many characters that made, 0 to 2. */
int utf8_next(struct utf8 *u, unsigned char byte, uint32_t c[2]);

/* Something else follows: was a sequence begun? Then it was UTF8_BAD. */
bool utf8_cut(struct utf8 *u);

/* Length of the valid sequence of more than one byte at p, else 0. */
size_t utf8_len(const unsigned char *p, size_t n);

/* The character of the valid sequence at p. *n: its length. */
uint32_t utf8_char(const char *p, size_t *n);
void utf8_add(struct buf *out, uint32_t c);

/*
 * Columns of a character: 0 (marks, joiners, …), 1 or 2. -1: a control
 * character, which has no picture.
 */
int char_width(uint32_t c);

/* Columns of a valid text that begins in the first one. */
size_t text_columns(const char *text, size_t n);

/*
 * --- Cells. ---
 *
 * 0: blank, nothing was written or it was erased. CELL_TAIL: the rest of a
 * wide character or a TAB. Else a character in the low 21 bits, and above it
 * up to two marks that go with it.
 */
typedef uint64_t cell;

#define CELL_TAIL ((cell)1 << 63)
#define CELL_BITS 21 /* of a character or mark */
#define CELL_CHAR (((cell)1 << CELL_BITS) - 1)

/* The cell with one mark more; as it was when it has two. */
cell cell_mark(cell c, uint32_t mark);

/* Blanks the character whose rest stands at, if one does. */
void cells_split(cell *c, size_t n, size_t at);

/* Makes blanks of [from, to), and of characters that stand partly in it. */
void cells_erase(cell *c, size_t n, size_t from, size_t to);

/* Puts a character of w columns at; at + w <= n. Halves of others go blank. */
void cells_put(cell *c, size_t n, size_t at, size_t w, uint32_t ch);

/* n without the cells at the end that are 0. */
size_t cells_len(const cell *c, size_t n);

/*
 * Appends the text of n cells, without blanks at the end that are 0, with trim
 * without any blanks at the end.
 */
void cells_text(struct buf *out, const cell *c, size_t n, bool trim);

/*
 * --- Control sequences (ECMA-48, xterm). All zero at first. ---
 *
 * ESC begins a new one wherever it stands; CAN and SUB end one. In CSI and
 * ESC sequences other control characters count by themselves; a byte >= 0x80
 * ends them. Strings (OSC, DCS, SOS, PM, APC) end by ST, OSC by BEL too; LF
 * ends all but DCS.
 */
struct seq {
	unsigned char state, n; /* private */
	char byte[62];
};

enum seq_class {
	SEQ_TEXT, /* not of a sequence: text or a control character */
	SEQ_IN, /* of a sequence that goes on */
	SEQ_DROP, /* ends one that changes nothing that is shown as text */
	SEQ_LINE, /* ends one about the line that the cursor is in */
	SEQ_SCREEN /* ends one that needs to know the screen */
};

enum seq_class seq_next(struct seq *q, unsigned char byte);

/*
 * The sequence that just ended: what it does, as its final byte with
 * SEQ_CSI for CSI and SEQ_PRIVATE for CSI ?, or with the byte between ESC and
 * it. 0 when it was too long or is of no use here.
 */
enum {
	SEQ_CSI = 0x100,
	SEQ_PRIVATE = 0x200,
	SEQ_BETWEEN = 0x10000 /* times the intermediate byte */
};

int seq_what(const struct seq *q);

/* Parameter i, 0 where it is missing; at most SEQ_NUMBER_MAX. */
enum {
	SEQ_NUMBER_MAX = 9999
};

int seq_param(const struct seq *q, int i);
int seq_nparams(const struct seq *q);

#endif
