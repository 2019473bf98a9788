/* SPDX-License-Identifier: MIT */
#include "lineterm.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

enum {
	KEEP = 65536 /* bytes of an empty line's buffer that are kept */
};

/* A row that LF or the limit ended, still live. */
struct line {
	struct buf text;
	size_t width; /* columns at least */
	unsigned flags;
};

/*
 * The line begun is text as long as it only grew; then text is what was
 * written, col LINETERM_AT_END, or the cursor's column when that moved away and
 * nothing was written since. After that it is cells, and text is empty.
 */
struct lineterm {
	bool raw;
	size_t height, width; /* of the window */
	rows_fn *final;
	void *arg;

	struct line *ring;
	size_t cap, first, n;
	size_t ring_bytes, ring_height;

	struct buf text;
	size_t text_width; /* columns at least */
	size_t col;
	bool is_cells, trim;
	cell *c;
	size_t len, ccap;
	uint32_t last; /* character written last, in cells */
	bool marks; /* nothing that moves the cursor since: marks go there */

	struct utf8 u;
	struct seq q;
	bool stuck, nowrap;
};

struct lineterm *
lineterm_new(bool raw, int height, int width, rows_fn *final, void *arg)
{
	struct lineterm *l;

	l = xcalloc(1, sizeof *l);
	l->raw = raw;
	l->final = final;
	l->arg = arg;
	l->col = LINETERM_AT_END;
	l->height = (size_t)height;
	l->width = (size_t)width;
	return l;
}

void
lineterm_free(struct lineterm *l)
{
	size_t i;

	if (l == NULL)
		return;
	for (i = 0; i < l->cap; i++)
		buf_release(&l->ring[i].text);
	free(l->ring);
	buf_release(&l->text);
	free(l->c);
	free(l);
}

const struct seq *
lineterm_stuck(const struct lineterm *l)
{
	return l->stuck ? &l->q : NULL;
}

size_t
lineterm_col(const struct lineterm *l)
{
	return l->col;
}

bool
lineterm_nowrap(const struct lineterm *l)
{
	return l->nowrap;
}

static void
empty(struct buf *b)
{
	if (b->cap > KEEP)
		buf_release(b);
	b->len = 0;
}

/* Rows of the window that a line takes, at least. */
static size_t
height_of(const struct lineterm *l, size_t width)
{
	return width <= l->width ? 1 : (width - 1) / l->width + 1;
}

static struct line *
ring_at(const struct lineterm *l, size_t i)
{
	i += l->first;
	return &l->ring[i < l->cap ? i : i - l->cap];
}

static void
make_final(struct lineterm *l)
{
	struct line *o;

	o = ring_at(l, 0);
	l->final(buf_str(&o->text), o->text.len, o->flags, l->arg);
	l->ring_bytes -= o->text.len;
	l->ring_height -= height_of(l, o->width);
	empty(&o->text);
	l->first = l->first + 1 < l->cap ? l->first + 1 : 0;
	l->n--;
}

/* What the window does not show is final. The line begun takes a row of it. */
static void
settle(struct lineterm *l)
{
	while (l->n > 0 &&
	    (l->ring_bytes > LINETERM_LIVE_MAX ||
		l->ring_height - height_of(l, ring_at(l, 0)->width) + 1 >=
		    l->height))
		make_final(l);
}

static void
grow_ring(struct lineterm *l)
{
	struct line *ring;
	size_t i, cap;

	cap = l->cap == 0 ? 32 : 2 * l->cap;
	ring = xcalloc(cap, sizeof *ring);
	for (i = 0; i < l->n; i++)
		ring[i] = *ring_at(l, i);
	for (; i < l->cap; i++)
		buf_release(&ring_at(l, i)->text);
	free(l->ring);
	l->ring = ring;
	l->cap = cap;
	l->first = 0;
}

/* Takes the bytes of text, which is empty afterwards. */
static void
push(struct lineterm *l, struct buf *text, size_t width, unsigned flags)
{
	struct line *new;
	struct buf was;

	if (l->raw) {
		l->final(buf_str(text), text->len, flags, l->arg);
		empty(text);
		return;
	}
	if (l->n == l->cap)
		grow_ring(l);
	new = ring_at(l, l->n++);
	was = new->text;
	new->text = *text;
	*text = was;
	new->width = width;
	new->flags = flags;
	l->ring_bytes += new->text.len;
	l->ring_height += height_of(l, width);
	settle(l);
}

/* The text of the line begun, as a row would have it. */
static void
text_of(const struct lineterm *l, struct buf *out)
{
	size_t n;

	if (l->is_cells) {
		cells_text(out, l->c, l->len, l->trim);
		return;
	}
	n = l->text.len;
	if (l->raw && n > 0 && l->text.data[n - 1] == '\r')
		n--;
	while (l->trim && n > 0 &&
	    (l->text.data[n - 1] == ' ' || l->text.data[n - 1] == '\t'))
		n--;
	buf_add(out, buf_str(&l->text), n);
}

static void
begin(struct lineterm *l)
{
	if (l->ccap > KEEP) {
		free(l->c);
		l->c = NULL;
		l->ccap = 0;
	}
	l->len = 0;
	l->is_cells = false;
	l->trim = false;
	l->col = LINETERM_AT_END;
	l->text_width = 0;
	l->marks = false;
}

/* LF, or with ROW_WRAPPED the limit, ends the line begun. */
static void
end_line(struct lineterm *l, unsigned flags)
{
	char *s;

	if (l->is_cells) {
		cells_text(&l->text, l->c, l->len, l->trim);
		push(l, &l->text, l->len, flags);
	} else {
		s = l->text.data;
		if (l->raw && flags == 0 && l->text.len > 0 &&
		    s[l->text.len - 1] == '\r')
			buf_cut(&l->text, l->text.len - 1);
		while (l->trim && l->text.len > 0 &&
		    (s[l->text.len - 1] == ' ' || s[l->text.len - 1] == '\t'))
			buf_cut(&l->text, l->text.len - 1);
		push(l, &l->text, l->text_width, flags);
	}
	begin(l);
}

/* Columns of text, at least: its ASCII characters. */
static size_t
ascii(const char *p, size_t n)
{
	size_t i, sum = 0;

	for (i = 0; i < n; i++)
		sum += (p[i] >= 0x20 && p[i] < 0x7f) || p[i] == '\t';
	return sum;
}

/* Adds n bytes of whole characters, width of them ASCII, to the end of text. */
static void
append(struct lineterm *l, const char *p, size_t n, size_t width)
{
	size_t part;

	while (l->text.len + n > ROW_BYTES_MAX) {
		part = ROW_BYTES_MAX - l->text.len;
		while (((unsigned char)p[part] & 0xc0) == 0x80)
			part--;
		buf_add(&l->text, p, part);
		l->text_width += ascii(p, part);
		end_line(l, ROW_WRAPPED);
		p += part;
		n -= part;
		width = ascii(p, n);
	}
	l->text_width += width;
	buf_add(&l->text, p, n);
}

static void
append_char(struct lineterm *l, uint32_t ch)
{
	struct buf b = BUF_INIT;
	char one;

	if (ch < 0x80) {
		one = (char)ch;
		append(l, &one, 1, ch >= ' ' || ch == '\t');
		return;
	}
	utf8_add(&b, ch);
	append(l, b.data, b.len, 0);
	buf_release(&b);
}

static void
need_cells(struct lineterm *l, size_t n)
{
	size_t cap;

	if (n > l->ccap) {
		for (cap = l->ccap < 128 ? 128 : l->ccap; cap < n;)
			cap += cap / 2;
		l->c = xreallocarray(l->c, cap, sizeof *l->c);
		l->ccap = cap;
	}
	if (n > l->len)
		memset(l->c + l->len, 0, (n - l->len) * sizeof *l->c);
}

/* A mark goes with the character that ends before col. */
static void
put_mark(struct lineterm *l, uint32_t ch)
{
	size_t i;

	if (l->col == 0 || l->col > l->len)
		return;
	for (i = l->col - 1; i > 0 && l->c[i] == CELL_TAIL; i--)
		;
	if (l->c[i] != 0 && l->c[i] != '\t')
		l->c[i] = cell_mark(l->c[i], ch);
}

static size_t
tab_stop(size_t col)
{
	return (col / 8 + 1) * 8;
}

/* Writes a character of w columns where the cursor is. */
static void
put_cells(struct lineterm *l, uint32_t ch, size_t w)
{
	size_t end;

	end = l->col + w;
	need_cells(l, end);
	if (l->col < l->len)
		l->trim = true;
	if (end > l->len)
		l->len = end;
	cells_put(l->c, l->len, l->col, w, ch);
	l->len = cells_len(l->c, l->len);
	l->col = end;
	l->last = ch;
}

static void
put_tab(struct lineterm *l)
{
	if (l->col >= l->len)
		put_cells(l, '\t', tab_stop(l->col) - l->col);
	else
		l->col = tab_stop(l->col);
}

/*
 * The length of the beginning of a text that does not go into cells. No text
 * has more than eight columns for a byte, as TAB may have.
 */
static size_t
too_much(const char *text, size_t n)
{
	size_t at, k, keep = LINETERM_CELLS_MAX / 8;

	if (n <= keep || text_columns(text, n) <= LINETERM_CELLS_MAX)
		return 0;
	k = n - keep;
	for (at = k; at < n && ((unsigned char)text[at] & 0xc0) == 0x80; at++)
		;
	return at;
}

static void
to_cells(struct lineterm *l)
{
	struct buf text;
	size_t at, n, col;
	uint32_t ch;
	int w;

	if (l->is_cells)
		return;
	col = l->col;
	text = l->text;
	memset(&l->text, 0, sizeof l->text);
	at = too_much(text.data, text.len);
	if (at > 0) {
		append(l, text.data, at, ascii(text.data, at));
		end_line(l, ROW_WRAPPED);
	}
	l->is_cells = true;
	l->len = 0;
	l->col = 0;
	for (; at < text.len; at += n) {
		ch = utf8_char(text.data + at, &n);
		w = char_width(ch);
		if (ch == '\t')
			put_tab(l);
		else if (w > 0)
			put_cells(l, ch, (size_t)w);
		else if (w == 0)
			put_mark(l, ch);
	}
	if (col != LINETERM_AT_END)
		l->col = col;
	l->marks = col == LINETERM_AT_END && text.len > 0;
	empty(&text);
	l->text = text;
}

static void
put(struct lineterm *l, uint32_t ch)
{
	int w;

	if (l->raw) {
		append_char(l, ch);
		return;
	}
	w = char_width(ch);
	if (w == -1 && ch != '\t')
		return;
	if (!l->is_cells && l->col == LINETERM_AT_END) {
		append_char(l, ch);
		return;
	}
	to_cells(l);
	if (w == 0) {
		if (l->marks)
			put_mark(l, ch);
		return;
	}
	if (l->col + 8 > LINETERM_CELLS_MAX) {
		end_line(l, ROW_WRAPPED);
		append_char(l, ch);
		return;
	}
	l->marks = ch != '\t';
	if (ch == '\t')
		put_tab(l);
	else
		put_cells(l, ch, (size_t)w);
}

/* After cells were erased: the line may have become shorter. */
static void
shrink(struct lineterm *l)
{
	l->len = cells_len(l->c, l->len);
	l->trim = l->len > 0;
}

/* Erases [from, to), as much of it as there is. */
static void
erase(struct lineterm *l, size_t from, size_t to)
{
	if (to > l->len)
		to = l->len;
	if (from >= to)
		return;
	cells_erase(l->c, l->len, from, to);
	shrink(l);
}

/* Moves what stands from the cursor on n columns to the right. */
static void
insert(struct lineterm *l, size_t n)
{
	size_t col = l->col, len = l->len;

	if (n > l->width)
		n = l->width;
	if (col >= len || len + n > LINETERM_CELLS_MAX)
		return;
	need_cells(l, len + n);
	cells_split(l->c, len, col);
	memmove(l->c + col + n, l->c + col, (len - col) * sizeof *l->c);
	memset(l->c + col, 0, n * sizeof *l->c);
	l->len = len + n;
	shrink(l);
}

/* Moves what stands n columns after the cursor to it. */
static void
cut(struct lineterm *l, size_t n)
{
	size_t col = l->col, len = l->len;

	if (col >= len)
		return;
	if (n > len - col)
		n = len - col;
	cells_erase(l->c, len, col, col + n);
	memmove(l->c + col, l->c + col + n, (len - col - n) * sizeof *l->c);
	l->len = len - n;
	shrink(l);
}

/* The cursor to the right, at most to the end of window or line. */
static void
forward(struct lineterm *l, size_t to)
{
	size_t max;

	max = l->width - 1 > l->len ? l->width - 1 : l->len;
	if (to > max)
		to = max;
	if (to > l->col)
		l->col = to;
}

static void
back(struct lineterm *l, size_t n)
{
	l->col -= n < l->col ? n : l->col;
}

/* CSI K with parameter how. */
static void
erase_line(struct lineterm *l, int how)
{
	if (!l->is_cells && how == 0) {
		if (l->col == LINETERM_AT_END)
			return;
		if (l->col == 0) {
			empty(&l->text);
			begin(l);
			return;
		}
	}
	to_cells(l);
	if (how == 0)
		erase(l, l->col, l->len);
	else if (how == 1)
		erase(l, 0, l->col + 1);
	else if (how == 2)
		erase(l, 0, l->len);
	if (l->len == 0 && l->col == 0)
		begin(l);
}

static void
repeat(struct lineterm *l, size_t n)
{
	uint32_t ch;

	ch = l->last;
	if (n > l->width)
		n = l->width;
	while (l->marks && ch != 0 && ch != '\t' && n-- > 0)
		put(l, ch);
}

/* A sequence about the line. */
static void
apply(struct lineterm *l)
{
	size_t n, to;
	int i, what;

	what = seq_what(&l->q);
	if (what == SEQ_CSI + SEQ_PRIVATE + 'h' ||
	    what == SEQ_CSI + SEQ_PRIVATE + 'l') {
		for (i = seq_nparams(&l->q) - 1; i >= 0; i--)
			if (seq_param(&l->q, i) == 7)
				l->nowrap = what % SEQ_CSI == 'l';
		return;
	}
	n = (size_t)seq_param(&l->q, 0);
	if (what % SEQ_CSI == 'K') {
		erase_line(l, (int)n);
		return;
	}
	if (n == 0)
		n = 1;
	to_cells(l);
	if (what % SEQ_CSI != 'X' && what % SEQ_CSI != 'b')
		l->marks = false;
	switch (what % SEQ_CSI) {
	case '@':
		insert(l, n);
		break;
	case 'C':
	case 'a':
		forward(l, l->col + n);
		break;
	case 'D':
	case 'j':
		back(l, n);
		break;
	case 'G':
	case '`':
		to = n - 1;
		if (to < l->col)
			l->col = to;
		else
			forward(l, to);
		break;
	case 'I':
		while (n-- > 0 && l->col < l->width)
			forward(l, tab_stop(l->col));
		break;
	case 'P':
		cut(l, n);
		break;
	case 'X':
		erase(l, l->col, l->col + n);
		break;
	case 'Z':
		while (n-- > 0 && l->col > 0)
			l->col = (l->col - 1) / 8 * 8;
		break;
	case 'b':
		repeat(l, n);
		break;
	default:
		break;
	}
}

static void
control(struct lineterm *l, unsigned char c)
{
	switch (c) {
	case '\n':
	case '\v':
	case '\f':
		end_line(l, 0);
		break;
	case '\r':
		l->col = l->is_cells || l->text.len > 0 ? 0 : LINETERM_AT_END;
		l->marks = false;
		break;
	case '\b':
		to_cells(l);
		back(l, 1);
		l->marks = false;
		break;
	default:
		put(l, c);
		break;
	}
}

/* One byte, whatever it is. */
static void
step(struct lineterm *l, unsigned char c)
{
	uint32_t ch[2];
	int i, n;
	enum seq_class class;

	class = seq_next(&l->q, c);
	if (class == SEQ_TEXT && c >= 0x80) {
		n = utf8_next(&l->u, c, ch);
		for (i = 0; i < n; i++)
			put(l, ch[i]);
		return;
	}
	if (utf8_cut(&l->u))
		put(l, UTF8_BAD);
	if (class == SEQ_TEXT) {
		if (c < 0x20)
			control(l, c);
		else
			put(l, c);
	} else if (class == SEQ_LINE)
		apply(l);
	else if (class == SEQ_SCREEN)
		l->stuck = true;
}

#define EACH(byte) ((uint64_t)0x0101010101010101 * (byte))

/*
 * How many bytes from p on are text that only has to be added; *width: columns
 * of it at least. Eight bytes at a time where none is a control character,
 * DEL or above: such a byte sets a high bit below.
 */
static size_t
plain(const unsigned char *p, size_t n, size_t *width)
{
	uint64_t v;
	size_t at = 0, more;

	*width = 0;
	for (;;) {
		for (; at + 8 <= n; at += 8) {
			memcpy(&v, p + at, 8);
			if ((((v - EACH(0x20)) | v | (v + EACH(1))) &
				EACH(0x80)) != 0)
				break;
			*width += 8;
		}
		for (; at < n &&
		    ((p[at] >= 0x20 && p[at] < 0x7f) || p[at] == '\t');
		    at++)
			++*width;
		more = 0;
		while (at + more < n && p[at + more] >= 0xc2) {
			size_t k = utf8_len(p + at + more, n - at - more);

			/* U+0080 to U+009F leave nothing. */
			if (k == 0 ||
			    (p[at + more] == 0xc2 && p[at + more + 1] < 0xa0))
				return at + more;
			more += k;
		}
		if (more == 0)
			return at;
		at += more;
	}
}

static size_t
raw_feed(struct lineterm *l, const char *p, size_t n)
{
	size_t at = 0, k, width;
	uint32_t ch[2];
	int i, m;

	while (at < n) {
		k = l->u.need > 0
		    ? 0
		    : plain((const unsigned char *)p + at, n - at, &width);
		if (k > 0) {
			append(l, p + at, k, width);
			at += k;
			continue;
		}
		if ((unsigned char)p[at] >= 0x80) {
			m = utf8_next(&l->u, (unsigned char)p[at], ch);
			for (i = 0; i < m; i++)
				put(l, ch[i]);
		} else {
			if (utf8_cut(&l->u))
				put(l, UTF8_BAD);
			if (p[at] == '\n')
				end_line(l, 0);
			else
				put(l, (unsigned char)p[at]);
		}
		at++;
	}
	return n;
}

size_t
lineterm_feed(struct lineterm *l, const char *p, size_t n)
{
	size_t at = 0, k, width;

	if (l->raw)
		return raw_feed(l, p, n);
	l->stuck = false;
	while (at < n && !l->stuck) {
		if (l->q.state == 0 && l->u.need == 0 && !l->is_cells &&
		    l->col == LINETERM_AT_END) {
			k = plain(
			    (const unsigned char *)p + at, n - at, &width);
			if (k > 0)
				append(l, p + at, k, width);
			at += k;
			if (at + 1 < n && p[at] == '\r' && p[at + 1] == '\n')
				at++;
			if (at < n && p[at] == '\n') {
				end_line(l, 0);
				at++;
				continue;
			}
			if (at == n)
				break;
		}
		step(l, (unsigned char)p[at++]);
	}
	return at;
}

void
lineterm_live(const struct lineterm *l, rows_fn *fn, void *arg)
{
	struct buf b = BUF_INIT;
	const struct line *o;
	size_t i;

	for (i = 0; i < l->n; i++) {
		o = ring_at(l, i);
		fn(buf_str(&o->text), o->text.len, o->flags, arg);
	}
	text_of(l, &b);
	if (b.len > 0 || (l->raw && l->text.len > 0))
		fn(buf_str(&b), b.len, 0, arg);
	buf_release(&b);
}

void
lineterm_resize(struct lineterm *l, int height, int width)
{
	size_t i;

	l->height = (size_t)height;
	l->width = (size_t)width;
	l->ring_height = 0;
	for (i = 0; i < l->n; i++)
		l->ring_height += height_of(l, ring_at(l, i)->width);
	settle(l);
}

void
lineterm_end(struct lineterm *l)
{
	if (utf8_cut(&l->u))
		put(l, UTF8_BAD);
	lineterm_live(l, l->final, l->arg);
	l->n = 0;
	empty(&l->text);
	begin(l);
}

void
lineterm_leave(struct lineterm *l, rows_fn *fn, void *arg)
{
	struct buf b = BUF_INIT;
	struct line *o;
	size_t i;

	for (i = 0; i < l->n; i++) {
		o = ring_at(l, i);
		fn(buf_str(&o->text), o->text.len, o->flags, arg);
		empty(&o->text);
	}
	l->n = l->first = l->ring_bytes = l->ring_height = 0;
	if (l->is_cells)
		cells_text(&b, l->c, l->len, false);
	else
		buf_add(&b, buf_str(&l->text), l->text.len);
	fn(b.data, b.len, ROW_BEGUN | (l->trim ? ROW_TRIM : 0), arg);
	buf_release(&b);
	empty(&l->text);
	begin(l);
	l->stuck = false;
}

void
lineterm_return(struct lineterm *l, const char *text, size_t n, unsigned flags)
{
	append(l, text, n, ascii(text, n));
	end_line(l, flags);
}

void
lineterm_return_last(struct lineterm *l, const char *text, size_t n, size_t col,
    unsigned flags, bool nowrap)
{
	append(l, text, n, ascii(text, n));
	l->col = n == 0 && col == 0 ? LINETERM_AT_END : col;
	l->trim = (flags & ROW_TRIM) != 0;
	l->nowrap = nowrap;
}
