/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

#include "lineterm.h"
#include "mem.h"
#include "vt.h"

/*
 * libvterm 0.1 writes beyond its buffers when it is given a sequence of more
 * than 16 parameters or half a character, overflows on large parameters, puts
 * whole chunks of text on the stack, knows the widths of Unicode 5, and keeps
 * no note of where it wrapped a line. So it gets only what is taken apart and
 * checked here: sequences of a list, made anew, and text in which other
 * characters than ASCII are represented by two of known width. Its state
 * machine moves the cursor and says what is written, erased and scrolled; the
 * cells are ours.
 */
#define NARROW "\356\200\200" /* U+E000 */
#define WIDE   "\352\260\200" /* U+AC00 */

enum {
	NARROW_CHAR = 0xe000,
	WIDE_CHAR = 0xac00,
	RUN = 64 /* characters handed over at once */
};

struct row {
	cell *c;
	size_t len; /* without the zeros at the end */
	bool wrapped; /* the next row goes on with it */
	bool ended; /* by LF */
	bool trim; /* written over: blanks at its end do not count */
};

struct screen {
	unsigned how;
	size_t h, w;
	rows_fn *final;
	void *arg;
	struct lineterm *lines;

	bool on; /* this model, not lines */
	VTerm *vt; /* NULL before the first time */
	VTermState *state;
	struct row *row[2]; /* main and alternate screen, h rows each */
	bool alt;
	VTermPos main_pos; /* cursor of the main screen, when alt */

	/* Rows that have left at the top and go on in the first one. */
	struct buf head;

	struct utf8 u;
	struct seq q;
	char run[RUN * 3];
	size_t nrun;
	uint32_t ch[RUN]; /* those that NARROW and WIDE stand for */
	size_t nch, atch;
	uint32_t last; /* written last */

	bool writing; /* text, so that a scroll is a wrap */
	bool deleting; /* CSI M: what is scrolled out is gone */
	bool glyph; /* one was written, and the cursor not moved since */
	VTermPos glyph_pos;
	int glyph_end;

	size_t since; /* rows scrolled since a sequence about the screen */
	bool margins, insert, origin, shifted, nowrap;
	bool graphic[2]; /* line drawing, by which set */
	bool quiet; /* what is erased stays */
};

/* --- Rows. --- */

static struct row *
rows_make(size_t h, size_t w)
{
	struct row *row;
	size_t i;

	row = xcalloc(h, sizeof *row);
	for (i = 0; i < h; i++)
		row[i].c = xcalloc(w, sizeof *row[i].c);
	return row;
}

static void
rows_drop(struct row *row, size_t h)
{
	size_t i;

	for (i = 0; row != NULL && i < h; i++)
		free(row[i].c);
	free(row);
}

static struct row *
row_at(const struct screen *s, int i)
{
	return &s->row[s->alt][i];
}

static void
row_clear(struct screen *s, struct row *r)
{
	memset(r->c, 0, s->w * sizeof *r->c);
	r->len = 0;
	r->wrapped = false;
	r->ended = false;
	r->trim = false;
}

/* After cells of the row were changed otherwise than by writing. */
static void
row_changed(struct screen *s, struct row *r)
{
	r->len = cells_len(r->c, s->w);
	r->trim = r->len > 0;
}

static void
give(const char *text, size_t n, unsigned flags, rows_fn *fn, void *arg)
{
	size_t k;

	for (; n > ROW_BYTES_MAX; text += k, n -= k) {
		k = rows_part(text, n);
		fn(text, k, flags | ROW_WRAPPED, arg);
	}
	fn(text, n, flags, arg);
}

static void
row_text(struct buf *out, const struct row *r)
{
	cells_text(out, r->c, r->len, r->trim && !r->wrapped);
}

/* What left at the top does not go on any more. */
static void
head_ends(struct screen *s)
{
	if (s->head.len == 0)
		return;
	give(s->head.data, s->head.len, 0, s->final, s->arg);
	buf_release(&s->head);
}

/* A row of the main screen leaves at the top. */
static void
row_leaves(struct screen *s, struct row *r)
{
	size_t k;

	row_text(&s->head, r);
	if (!r->wrapped) {
		give(s->head.data, s->head.len, 0, s->final, s->arg);
		s->head.len = 0;
		return;
	}
	while (s->head.len > ROW_BYTES_MAX) {
		k = rows_part(s->head.data, s->head.len);
		s->final(s->head.data, k, ROW_WRAPPED, s->arg);
		memmove(s->head.data, s->head.data + k, s->head.len - k);
		buf_cut(&s->head, s->head.len - k);
	}
}

/* The number of rows down to the last that is not empty or that LF ended. */
static size_t
rows_used(const struct screen *s, const struct row *row)
{
	size_t n;

	for (n = s->h; n > 0 && row[n - 1].len == 0 && !row[n - 1].ended; n--)
		;
	return n;
}

/* --- What libvterm says. --- */

static bool
clamp(const struct screen *s, VTermRect *r)
{
	if (r->start_row < 0)
		r->start_row = 0;
	if (r->start_col < 0)
		r->start_col = 0;
	if (r->end_row > (int)s->h)
		r->end_row = (int)s->h;
	if (r->end_col > (int)s->w)
		r->end_col = (int)s->w;
	return r->start_row < r->end_row && r->start_col < r->end_col;
}

static int
on_glyph(VTermGlyphInfo *info, VTermPos pos, void *arg)
{
	struct screen *s = arg;
	struct row *r;
	uint32_t ch;
	size_t at, w;

	if (pos.row < 0 || pos.row >= (int)s->h || pos.col < 0 ||
	    pos.col >= (int)s->w)
		return 1;
	ch = info->chars[0];
	if ((ch == NARROW_CHAR || ch == WIDE_CHAR) && s->atch < s->nch)
		ch = s->ch[s->atch++];
	at = (size_t)pos.col;
	w = info->width == 2 && at + 1 < s->w ? 2 : 1;
	if (s->glyph && at == 0 && s->glyph_end > 0 && pos.row > 0 &&
	    s->glyph_pos.row == pos.row - 1)
		row_at(s, pos.row - 1)->wrapped = true;
	r = row_at(s, pos.row);
	if (at < r->len)
		r->trim = true;
	cells_put(r->c, s->w, at, w, ch);
	r->len = cells_len(r->c, at + w > r->len ? at + w : r->len);
	s->glyph = true;
	s->glyph_pos = pos;
	s->glyph_end = pos.col + (int)w;
	return 1;
}

static int
on_erase(VTermRect rect, int selective, void *arg)
{
	struct screen *s = arg;
	struct row *r;
	int i;

	(void)selective;
	if (s->quiet || !clamp(s, &rect))
		return 1;
	if (!s->alt && rect.start_row == 0 && rect.start_col == 0)
		head_ends(s);
	for (i = rect.start_row; i < rect.end_row; i++) {
		r = row_at(s, i);
		if (rect.start_col == 0 && rect.end_col == (int)s->w) {
			row_clear(s, r);
			continue;
		}
		if (rect.end_col == (int)s->w)
			r->wrapped = false;
		if ((size_t)rect.start_col >= r->len)
			continue;
		cells_erase(
		    r->c, s->w, (size_t)rect.start_col, (size_t)rect.end_col);
		row_changed(s, r);
	}
	return 1;
}

/* wrap: text goes on from the last of the rows to the new one. */
static void
scroll_up(struct screen *s, int start, int end, int n, bool wrap)
{
	struct row out;
	int i;

	row_at(s, end - 1)->wrapped = wrap;
	if (start > 0)
		row_at(s, start - 1)->wrapped = false;
	else if (!s->alt && s->deleting)
		head_ends(s);
	else if (!s->alt) {
		for (i = 0; i < n; i++)
			row_leaves(s, row_at(s, i));
		s->since += (size_t)n;
	}
	for (; n > 0; n--) {
		out = *row_at(s, start);
		memmove(row_at(s, start), row_at(s, start + 1),
		    (size_t)(end - start - 1) * sizeof out);
		row_clear(s, &out);
		*row_at(s, end - 1) = out;
	}
}

static void
scroll_down(struct screen *s, int start, int end, int n)
{
	struct row out;

	if (start > 0)
		row_at(s, start - 1)->wrapped = false;
	else if (!s->alt)
		head_ends(s);
	row_at(s, end - 1)->wrapped = false;
	for (; n > 0; n--) {
		out = *row_at(s, end - 1);
		memmove(row_at(s, start + 1), row_at(s, start),
		    (size_t)(end - start - 1) * sizeof out);
		row_clear(s, &out);
		*row_at(s, start) = out;
		row_at(s, end - 1)->wrapped = false;
	}
}

/* Within a row: deletes n cells from start on, or inserts -n there. */
static void
shift(struct screen *s, struct row *r, int start, int end, int n)
{
	size_t at = (size_t)start, to = (size_t)end, k = (size_t)abs(n);

	if (at >= r->len)
		return;
	cells_split(r->c, s->w, at);
	cells_split(r->c, s->w, n > 0 ? at + k : to - k);
	cells_split(r->c, s->w, to);
	if (n > 0) {
		memmove(r->c + at, r->c + at + k, (to - at - k) * sizeof *r->c);
		memset(r->c + to - k, 0, k * sizeof *r->c);
	} else {
		memmove(r->c + at + k, r->c + at, (to - at - k) * sizeof *r->c);
		memset(r->c + at, 0, k * sizeof *r->c);
	}
	row_changed(s, r);
}

static int
on_scroll(VTermRect rect, int down, int right, void *arg)
{
	struct screen *s = arg;
	int i, rows, cols;
	bool wrap;

	if (!clamp(s, &rect))
		return 1;
	rows = rect.end_row - rect.start_row;
	cols = rect.end_col - rect.start_col;
	wrap = s->writing && s->glyph && down == 1 &&
	    s->glyph_pos.row == rect.end_row - 1;
	if (down != 0)
		s->glyph = false;
	if (down > 0)
		scroll_up(s, rect.start_row, rect.end_row,
		    down < rows ? down : rows, wrap);
	else if (down < 0)
		scroll_down(s, rect.start_row, rect.end_row,
		    -down < rows ? -down : rows);
	if (right > cols)
		right = cols;
	if (right < -cols)
		right = -cols;
	if (right != 0)
		for (i = rect.start_row; i < rect.end_row; i++)
			shift(s, row_at(s, i), rect.start_col, rect.end_col,
			    right);
	return 1;
}

static int
on_property(VTermProp prop, VTermValue *value, void *arg)
{
	struct screen *s = arg;
	bool alt;

	if (prop != VTERM_PROP_ALTSCREEN)
		return 1;
	alt = value->boolean != 0;
	if (alt && !s->alt) {
		vterm_state_get_cursorpos(s->state, &s->main_pos);
		if (s->row[1] == NULL)
			s->row[1] = rows_make(s->h, s->w);
	}
	s->alt = alt;
	s->glyph = false;
	return 1;
}

static const VTermStateCallbacks callbacks = {
	.putglyph = on_glyph,
	.erase = on_erase,
	.scrollrect = on_scroll,
	.settermprop = on_property,
};

/* --- What libvterm is told. --- */

static void *
vt_alloc(size_t n, void *arg)
{
	(void)arg;
	return xcalloc(1, n);
}

static void
vt_free(void *p, void *arg)
{
	(void)arg;
	free(p);
}

static VTermAllocatorFunctions allocator = { vt_alloc, vt_free };

/* Answers to questions about the terminal: nobody listens. */
static void
no_answer(const char *p, size_t n, void *arg)
{
	(void)p;
	(void)n;
	(void)arg;
}

__attribute__((format(printf, 2, 3))) static void
tell(struct screen *s, const char *fmt, ...)
{
	char b[64];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(b, sizeof b, fmt, ap);
	va_end(ap);
	if (n > 0 && n < (int)sizeof b)
		(void)vterm_input_write(s->vt, b, (size_t)n);
}

static VTermPos
cursor(const struct screen *s)
{
	VTermPos pos;

	vterm_state_get_cursorpos(s->state, &pos);
	return pos;
}

static void
go_to(struct screen *s, int row, int col)
{
	tell(s, "\033[%d;%dH", row + 1, col + 1);
}

static void
flush(struct screen *s)
{
	if (s->nrun == 0)
		return;
	s->writing = true;
	(void)vterm_input_write(s->vt, s->run, s->nrun);
	s->writing = false;
	s->nrun = s->nch = s->atch = 0;
}

/* Adds a character that has a width to the text that waits. */
static void
put_text(struct screen *s, uint32_t ch, int w)
{
	/*
	 * Not both in one piece: libvterm takes the ASCII behind other
	 * characters for itself, even if it stands for line drawing.
	 */
	if (s->nrun > 0 &&
	    ((ch < 0x80) != (s->nch == 0) || s->nch == RUN ||
		s->nrun == sizeof s->run))
		flush(s);
	if (ch < 0x80)
		s->run[s->nrun++] = (char)ch;
	else {
		memcpy(s->run + s->nrun, w == 2 && s->w > 1 ? WIDE : NARROW, 3);
		s->nrun += 3;
		s->ch[s->nch++] = ch;
	}
	s->last = ch;
}

static void
put(struct screen *s, uint32_t ch)
{
	struct row *r;
	int w;

	w = char_width(ch);
	if (w > 0) {
		put_text(s, ch, w);
		return;
	}
	if (w == -1)
		return;
	flush(s);
	if (!s->glyph)
		return;
	r = row_at(s, s->glyph_pos.row);
	if (r->c[s->glyph_pos.col] != CELL_TAIL && r->c[s->glyph_pos.col] != 0)
		r->c[s->glyph_pos.col] = cell_mark(r->c[s->glyph_pos.col], ch);
}

static void
tab(struct screen *s)
{
	VTermPos from, to;
	struct row *r;

	from = cursor(s);
	tell(s, "\t");
	to = cursor(s);
	if (to.row != from.row || to.col <= from.col)
		return;
	s->glyph = false;
	r = row_at(s, to.row);
	if ((size_t)from.col < r->len)
		return;
	cells_put(
	    r->c, s->w, (size_t)from.col, (size_t)(to.col - from.col), '\t');
	r->len = (size_t)to.col;
}

static void
defaults(struct screen *s)
{
	s->margins = s->insert = s->origin = false;
	s->graphic[0] = s->graphic[1] = false;
	s->shifted = s->nowrap = false;
	if ((s->how & SCREEN_PIPE) != 0)
		tell(s, "\033[20h");
}

static void
set_mode(struct screen *s, int mode, bool private, bool on)
{
	if (!private && mode == 4)
		s->insert = on;
	else if (!private && mode == 20 && (s->how & SCREEN_PIPE) == 0)
		;
	else if (private && mode == 6)
		s->origin = on;
	else if (private && mode == 7)
		s->nowrap = !on;
	else if (private && mode == 47)
		mode = 1047;
	else if (!private || (mode != 1047 && mode != 1048 && mode != 1049))
		return;
	tell(s, "\033[%s%d%c", private ? "?" : "", mode, on ? 'h' : 'l');
	if (private && mode != 7) /* the others move the cursor */
		s->glyph = false;
}

static void
set_charset(struct screen *s, bool second, bool graphic)
{
	s->graphic[second] = graphic;
	tell(s, "\033%c%c", second ? ')' : '(', graphic ? '0' : 'B');
}

/* A sequence, after its text was written. */
static void
apply(struct screen *s, const struct seq *q)
{
	VTermPos pos;
	int what, n, i;
	uint32_t last;

	what = seq_what(q);
	n = seq_param(q, 0);
	switch (what) {
	case SEQ_CSI + 'K':
	case SEQ_CSI + SEQ_PRIVATE + 'K':
	case SEQ_CSI + 'J':
	case SEQ_CSI + SEQ_PRIVATE + 'J':
	case SEQ_CSI + 'X':
		tell(s, "\033[%d%c", n, what % SEQ_CSI);
		return;
	case SEQ_CSI + '@':
	case SEQ_CSI + 'A':
	case SEQ_CSI + 'B':
	case SEQ_CSI + 'C':
	case SEQ_CSI + 'D':
	case SEQ_CSI + 'E':
	case SEQ_CSI + 'F':
	case SEQ_CSI + 'G':
	case SEQ_CSI + 'I':
	case SEQ_CSI + 'L':
	case SEQ_CSI + 'P':
	case SEQ_CSI + 'S':
	case SEQ_CSI + 'Z':
	case SEQ_CSI + '`':
	case SEQ_CSI + 'a':
	case SEQ_CSI + 'd':
	case SEQ_CSI + 'e':
	case SEQ_CSI + 'g':
	case SEQ_CSI + 'j':
	case SEQ_CSI + 'k':
		tell(s, "\033[%d%c", n, what % SEQ_CSI);
		break;
	case SEQ_CSI + 'T':
		/* With more parameters it is about the mouse. */
		if (seq_nparams(q) <= 1)
			tell(s, "\033[%dT", n);
		break;
	case SEQ_CSI + 'M':
		s->deleting = true;
		tell(s, "\033[%dM", n);
		s->deleting = false;
		break;
	case SEQ_CSI + 'H':
	case SEQ_CSI + 'f':
		tell(s, "\033[%d;%dH", n, seq_param(q, 1));
		break;
	case SEQ_CSI + 'r':
		i = seq_param(q, 1);
		if (i == 0 || i > (int)s->h)
			i = (int)s->h;
		if (n == 0)
			n = 1;
		tell(s, "\033[%d;%dr", n, i);
		s->margins = n < i && (n > 1 || i < (int)s->h);
		break;
	case SEQ_CSI + 'b':
		last = s->last;
		if (n == 0)
			n = 1;
		for (i = 0; s->glyph && i < n && i < (int)s->w; i++)
			put(s, last);
		flush(s);
		return;
	case SEQ_CSI + 's':
	case SEQ_CSI + 'u':
		if (seq_nparams(q) == 0)
			tell(s, "\033%c", what % SEQ_CSI == 's' ? '7' : '8');
		break;
	case SEQ_CSI + 'h':
	case SEQ_CSI + 'l':
	case SEQ_CSI + SEQ_PRIVATE + 'h':
	case SEQ_CSI + SEQ_PRIVATE + 'l':
		for (i = 0; i < seq_nparams(q); i++)
			set_mode(s, seq_param(q, i), what > SEQ_CSI * 2,
			    what % SEQ_CSI == 'h');
		return;
	case SEQ_CSI + '!' * SEQ_BETWEEN + 'p':
		pos = cursor(s);
		tell(
		    s, "\033[4l\033[20l\033[?6l\033[?7h\033[r\033(B\033)B\017");
		go_to(s, pos.row, pos.col);
		defaults(s);
		break;
	case '7':
	case '8':
	case 'D':
	case 'E':
	case 'H':
	case 'M':
		tell(s, "\033%c", what);
		break;
	case 'c':
		s->alt = false;
		tell(s, "\033c");
		defaults(s);
		break;
	case '(' * SEQ_BETWEEN + '0':
	case '(' * SEQ_BETWEEN + 'B':
	case '(' * SEQ_BETWEEN + 'A':
	case ')' * SEQ_BETWEEN + '0':
	case ')' * SEQ_BETWEEN + 'B':
	case ')' * SEQ_BETWEEN + 'A':
		set_charset(
		    s, what / SEQ_BETWEEN == ')', what % SEQ_CSI == '0');
		return;
	default:
		return;
	}
	s->glyph = false;
}

/* --- From one model to the other. --- */

/* Where writing text into the empty main screen has come to. */
struct pour {
	struct screen *s;
	size_t row, col;
	bool trim;
	uint32_t last; /* character before col, 0 if none, and its columns */
	size_t last_w;
	bool find; /* the place of column want of the text */
	size_t want;
	size_t at_row, at_col;
};

static void
pour_next(struct pour *p, bool wrap)
{
	struct screen *s = p->s;
	struct row *r, out;

	r = &s->row[0][p->row];
	r->wrapped = wrap;
	r->ended = !wrap;
	r->trim = p->trim;
	p->col = 0;
	p->last = 0;
	if (p->row + 1 < s->h) {
		p->row++;
		return;
	}
	row_leaves(s, r - p->row);
	out = s->row[0][0];
	memmove(s->row[0], s->row[0] + 1, (s->h - 1) * sizeof out);
	row_clear(s, &out);
	s->row[0][s->h - 1] = out;
	if (p->at_row > 0)
		p->at_row--;
}

static void
pour_char(struct pour *p, uint32_t ch, size_t w)
{
	struct row *r;

	r = &p->s->row[0][p->row];
	cells_put(r->c, p->s->w, p->col, w, ch);
	p->col += w;
	r->len = p->col;
	p->last = ch == '\t' ? 0 : ch;
	p->last_w = w;
}

static void
pour_mark(struct pour *p, uint32_t ch)
{
	cell *c;

	if (p->last == 0)
		return;
	c = &p->s->row[0][p->row].c[p->col - p->last_w];
	*c = cell_mark(*c, ch);
}

static void
pour_text(struct pour *p, const char *text, size_t n, bool trim)
{
	size_t at, k, w, stop, sum = 0, max = p->s->w;
	uint32_t ch;
	int width;

	p->trim = trim;
	p->last = 0;
	for (at = 0; at < n; at += k) {
		ch = utf8_char(text + at, &k);
		width = char_width(ch);
		if (width == 0)
			pour_mark(p, ch);
		if (width <= 0 && ch != '\t')
			continue;
		w = (size_t)width < max ? (size_t)width : max;
		if (ch == '\t') {
			/* It stops at the last column and never wraps. */
			stop = (p->col / 8 + 1) * 8;
			if (stop > max - 1)
				stop = max - 1;
			if (stop <= p->col)
				continue;
			w = stop - p->col;
		}
		if (p->col + w > max)
			pour_next(p, true);
		if (p->find && sum <= p->want) {
			p->at_row = p->row;
			p->at_col = p->col + (p->want - sum);
		}
		pour_char(p, ch, w);
		sum += w;
	}
	p->s->row[0][p->row].trim = trim;
	if (p->find && sum <= p->want) {
		p->at_row = p->row;
		p->at_col = p->col + (p->want - sum);
	}
}

static void
pour_row(const char *text, size_t n, unsigned flags, void *arg)
{
	struct pour *p = arg;

	p->find = (flags & ROW_BEGUN) != 0;
	pour_text(p, text, n, (flags & ROW_TRIM) != 0);
	if ((flags & ROW_BEGUN) == 0)
		pour_next(p, (flags & ROW_WRAPPED) != 0);
}

/* Sets the cursor in or behind what was poured. */
static void
pour_cursor(const struct pour *p)
{
	struct screen *s = p->s;
	size_t col;

	s->glyph = false;
	if (p->want == LINETERM_AT_END && p->col == s->w && p->last != 0 &&
	    !s->nowrap) {
		/*
		 * The row is full and the next character will wrap; libvterm
		 * gets into that state only by writing the last one.
		 */
		col = s->w - p->last_w;
		go_to(s, (int)p->row, (int)col);
		s->row[0][p->row].len = col;
		put_text(s, p->last, (int)p->last_w);
		flush(s);
		return;
	}
	col = p->want == LINETERM_AT_END ? p->col : p->at_col;
	go_to(s, (int)(p->want == LINETERM_AT_END ? p->row : p->at_row),
	    (int)(col < s->w ? col : s->w - 1));
}

static void
begin_vt(struct screen *s)
{
	s->vt =
	    vterm_new_with_allocator((int)s->h, (int)s->w, &allocator, NULL);
	vterm_set_utf8(s->vt, 1);
	vterm_output_set_callback(s->vt, no_answer, NULL);
	s->state = vterm_obtain_state(s->vt);
	vterm_state_set_callbacks(s->state, &callbacks, s);
	vterm_state_reset(s->state, 1);
	defaults(s);
}

/* The line model came to a sequence that needs a screen. */
static void
enter(struct screen *s)
{
	struct pour p = { .s = s };
	struct seq q;
	size_t i;

	q = *lineterm_stuck(s->lines);
	if (s->vt == NULL) {
		s->row[0] = rows_make(s->h, s->w);
		begin_vt(s);
	}
	for (i = 0; i < s->h; i++)
		row_clear(s, &s->row[0][i]);
	s->nowrap = lineterm_nowrap(s->lines);
	tell(s, "\033[?7%c", s->nowrap ? 'l' : 'h');
	p.want = lineterm_col(s->lines);
	lineterm_leave(s->lines, pour_row, &p);
	pour_cursor(&p);
	s->on = true;
	s->since = 0;
	apply(s, &q);
}

/*
 * Nothing has needed the screen for a whole window: the line model goes on
 * with the rows that are shown.
 */
static void
leave(struct screen *s)
{
	struct buf line = BUF_INIT;
	struct row *r;
	size_t i, width, col;
	VTermPos pos;

	pos = cursor(s);
	line = s->head;
	memset(&s->head, 0, sizeof s->head);
	width = text_columns(line.data, line.len);
	for (i = 0; i < s->h; i++) {
		r = &s->row[0][i];
		row_text(&line, r);
		if (i + 1 == s->h)
			break;
		width += r->len;
		if (r->wrapped)
			continue;
		lineterm_return(s->lines, line.data, line.len, 0);
		line.len = 0;
		width = 0;
	}
	r = &s->row[0][s->h - 1];
	col = (size_t)pos.col == r->len || s->glyph ? LINETERM_AT_END
						    : width + (size_t)pos.col;
	lineterm_return_last(s->lines, line.data, line.len, col,
	    r->trim ? ROW_TRIM : 0, s->nowrap);
	buf_release(&line);
	s->on = false;
}

static bool
may_leave(const struct screen *s)
{
	return s->since >= s->h && s->q.state == 0 && !s->alt && !s->margins &&
	    !s->insert && !s->origin && !s->graphic[0] && !s->shifted &&
	    cursor(s).row == (int)s->h - 1;
}

/* --- The outside. --- */

static size_t
within(int n)
{
	return n < 1 ? 1 : n > SCREEN_SIZE_MAX ? SCREEN_SIZE_MAX : (size_t)n;
}

struct screen *
screen_new(unsigned how, int rows, int cols, rows_fn *final, void *arg)
{
	struct screen *s;

	s = xcalloc(1, sizeof *s);
	s->how = how;
	s->h = within(rows);
	s->w = within(cols);
	s->final = final;
	s->arg = arg;
	s->lines = lineterm_new(
	    (how & SCREEN_RAW) != 0, (int)s->h, (int)s->w, final, arg);
	return s;
}

void
screen_free(struct screen *s)
{
	if (s == NULL)
		return;
	if (s->vt != NULL)
		vterm_free(s->vt);
	rows_drop(s->row[0], s->h);
	rows_drop(s->row[1], s->h);
	buf_release(&s->head);
	lineterm_free(s->lines);
	free(s);
}

static void
control(struct screen *s, unsigned char c)
{
	VTermPos pos;

	if (c == 0x0e || c == 0x0f)
		s->shifted = c == 0x0e;
	else if (c < '\b' || c > '\r')
		return;
	flush(s);
	if (c == '\t') {
		tab(s);
		return;
	}
	pos = cursor(s);
	/* libvterm would still wrap if the cursor does not move by this. */
	if (c >= '\n' && s->glyph && s->glyph_end == (int)s->w)
		tell(s, "\033[%dG", pos.col + 1);
	if (c >= '\n' && c <= '\f')
		row_at(s, pos.row)->ended = true;
	tell(s, "%c", c);
	if (c < 0x0e)
		s->glyph = false;
}

/* Returns how many bytes it took before the line model could go on. */
static size_t
feed(struct screen *s, const unsigned char *p, size_t n)
{
	enum seq_class class;
	uint32_t ch[2];
	size_t at;
	int i, k;

	for (at = 0; at < n; at++) {
		class = seq_next(&s->q, p[at]);
		if (class == SEQ_TEXT && p[at] >= 0x80) {
			k = utf8_next(&s->u, p[at], ch);
			for (i = 0; i < k; i++)
				put(s, ch[i]);
			continue;
		}
		if (utf8_cut(&s->u))
			put(s, UTF8_BAD);
		if (class == SEQ_TEXT && p[at] >= 0x20)
			put(s, p[at]);
		else if (class == SEQ_TEXT) {
			control(s, p[at]);
			if (p[at] == '\n' && may_leave(s)) {
				leave(s);
				return at + 1;
			}
		} else if (class != SEQ_IN) {
			flush(s);
			apply(s, &s->q);
			if (class == SEQ_SCREEN)
				s->since = 0;
		}
	}
	flush(s);
	return n;
}

void
screen_feed(struct screen *s, const void *p, size_t n)
{
	const char *from = p;
	size_t at = 0;

	while (at < n) {
		if (s->on) {
			at += feed(s, (const unsigned char *)from + at, n - at);
			continue;
		}
		at += lineterm_feed(s->lines, from + at, n - at);
		if (lineterm_stuck(s->lines) != NULL)
			enter(s);
	}
}

/* The live rows of the main screen, head included. */
static void
main_rows(struct screen *s, rows_fn *fn, void *arg)
{
	struct buf line = BUF_INIT;
	const struct row *row = s->row[0];
	size_t i, used;

	used = rows_used(s, row);
	buf_add(&line, buf_str(&s->head), s->head.len);
	for (i = 0; i < used; i++) {
		row_text(&line, &row[i]);
		if (row[i].wrapped && i + 1 < used)
			continue;
		give(buf_str(&line), line.len, 0, fn, arg);
		line.len = 0;
	}
	if (used == 0 && line.len > 0)
		give(line.data, line.len, 0, fn, arg);
	buf_release(&line);
}

void
screen_live(struct screen *s, rows_fn *fn, void *arg)
{
	struct buf line = BUF_INIT;
	const struct row *row;
	size_t i, used;

	if (!s->on) {
		lineterm_live(s->lines, fn, arg);
		return;
	}
	if (!s->alt) {
		main_rows(s, fn, arg);
		return;
	}
	row = s->row[1];
	used = rows_used(s, row);
	for (i = 0; i < used; i++) {
		/* Blanks at the end are there to paint the window. */
		cells_text(&line, row[i].c, row[i].len, !row[i].wrapped);
		fn(buf_str(&line), line.len,
		    ROW_ALT | (row[i].wrapped ? ROW_WRAPPED : 0), arg);
		line.len = 0;
	}
	buf_release(&line);
}

void
screen_end(struct screen *s)
{
	if (!s->on) {
		lineterm_end(s->lines);
		return;
	}
	if (utf8_cut(&s->u)) {
		put(s, UTF8_BAD);
		flush(s);
	}
	main_rows(s, s->final, s->arg);
	s->on = false;
}

/* --- Another size. --- */

/* A line of the main screen, kept while that is made anew. */
struct kept {
	size_t end; /* of its text among that of all */
	bool trim, ended;
};

/* The old alternate screen, as much of it as there is room for. */
static struct row *
alt_resized(const struct screen *s, size_t h, size_t w)
{
	struct row *row;
	const struct row *old;
	size_t i, n;

	row = rows_make(h, w);
	n = w < s->w ? w : s->w;
	for (i = 0; i < h && i < s->h; i++) {
		old = &s->row[1][i];
		cells_split(old->c, s->w, n);
		memcpy(row[i].c, old->c, n * sizeof *old->c);
		row[i].len = cells_len(row[i].c, n);
		row[i].ended = old->ended;
		row[i].trim = old->trim;
	}
	return row;
}

static void
main_resized(struct screen *s, size_t h, size_t w, struct pour *p)
{
	struct buf all = BUF_INIT;
	struct kept *kept = NULL;
	const struct row *r;
	size_t i, n = 0, cap = 0, used, from = 0, width, at_line = 0;
	VTermPos pos;

	pos = s->alt ? s->main_pos : cursor(s);
	used = rows_used(s, s->row[0]);
	if (used < (size_t)pos.row + 1)
		used = (size_t)pos.row + 1;
	buf_add(&all, buf_str(&s->head), s->head.len);
	buf_release(&s->head);
	width = text_columns(all.data, all.len);
	for (i = 0; i < used; i++) {
		r = &s->row[0][i];
		row_text(&all, r);
		if (i == (size_t)pos.row) {
			at_line = n;
			p->want = width + (size_t)pos.col;
		}
		width += r->len;
		if (r->wrapped && i + 1 < used)
			continue;
		if (n == cap)
			kept = xgrow(kept, &cap, sizeof *kept);
		kept[n].end = all.len;
		kept[n].trim = r->trim;
		kept[n++].ended = r->ended;
		width = 0;
	}
	rows_drop(s->row[0], s->h);
	s->row[0] = rows_make(h, w);
	s->h = h;
	s->w = w;
	for (i = 0; i < n; i++) {
		p->find = i == at_line;
		pour_text(p, all.data + from, kept[i].end - from, kept[i].trim);
		from = kept[i].end;
		if (i + 1 < n)
			pour_next(p, false);
		if (i + 1 < n && p->row > 0)
			s->row[0][p->row - 1].ended = kept[i].ended;
		else
			s->row[0][p->row].ended = kept[i].ended;
	}
	free(kept);
	buf_release(&all);
}

/*
 * Gives the old libvterm's state to a new one. (Its own change of size leaves
 * margins and a saved cursor outside of the window, and in version 0.3 does not
 * make its table of rows longer.) Margins and tab stops go back to normal.
 */
static void
vt_resized(struct screen *s, const struct pour *p)
{
	const struct screen was = *s;
	VTermPos pos, saved;

	pos = cursor(s);
	tell(s, "\0338");
	saved = cursor(s);
	vterm_free(s->vt);
	s->quiet = true;
	s->alt = false;
	begin_vt(s);
	if (was.insert)
		set_mode(s, 4, false, true);
	if (was.nowrap)
		set_mode(s, 7, true, false);
	if (was.graphic[0])
		set_charset(s, false, true);
	if (was.graphic[1])
		set_charset(s, true, true);
	if (was.shifted)
		tell(s, "\016");
	s->shifted = was.shifted;
	if (!was.alt) {
		go_to(s, saved.row, saved.col);
		tell(s, "\0337");
	}
	pour_cursor(p);
	if (was.alt) {
		tell(s, "\0337\033[?1047h");
		go_to(s, pos.row, pos.col);
	}
	s->glyph = false;
	s->quiet = false;
}

void
screen_resize(struct screen *s, int rows, int cols)
{
	struct pour p = { .s = s };
	struct row *alt = NULL;
	size_t h = within(rows), w = within(cols);

	if (h == s->h && w == s->w)
		return;
	lineterm_resize(s->lines, (int)h, (int)w);
	if (s->vt == NULL) {
		s->h = h;
		s->w = w;
		return;
	}
	if (s->alt)
		alt = alt_resized(s, h, w);
	rows_drop(s->row[1], s->h);
	s->row[1] = alt;
	if (s->on)
		main_resized(s, h, w, &p);
	else {
		rows_drop(s->row[0], s->h);
		s->row[0] = rows_make(h, w);
		s->h = h;
		s->w = w;
	}
	vt_resized(s, &p);
}
