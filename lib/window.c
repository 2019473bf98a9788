/* SPDX-License-Identifier: MIT */
#include "window.h"

#include <string.h>

#include "out.h"

enum {
	MARK_BYTES = 64 /* of what is said of a line that was cut */
};

static const char bom[] = "\xef\xbb\xbf";

void
window_init(struct window *w, uint64_t first, uint64_t limit, size_t max)
{
	*w = (struct window){ .first = first, .limit = limit, .max = max };
}

void
window_release(struct window *w)
{
	buf_release(&w->text);
	buf_release(&w->rest);
}

/* Is the line that is being read, the one after the counted, in it? */
static bool
is_inside(const struct window *w)
{
	uint64_t line = w->lines + 1;

	return line >= w->first && line - w->first < w->limit;
}

static void
add(struct window *w, const char *p, size_t n)
{
	if (w->overflow || n > w->max - w->text.len)
		w->overflow = true;
	else
		buf_add(&w->text, p, n);
}

/* Some of a line; n may be 0 when only its end came. */
static void
part(struct window *w, const char *p, size_t n)
{
	if (is_inside(w)) {
		if (!w->open && w->num++ > 0)
			add(w, "\n", 1);
		add(w, p, n);
	}
	w->open = true;
}

static size_t
until_break(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] != '\n' && p[i] != '\r')
		i++;
	return i;
}

static void
take(struct window *w, const char *p, size_t n)
{
	if (!w->begun && n >= 3 && memcmp(p, bom, 3) == 0) {
		p += 3;
		n -= 3;
	}
	w->begun = true;
	while (n > 0) {
		size_t len = until_break(p, n);

		if (len > 0) {
			part(w, p, len);
			w->cr = false;
		}
		if (len == n)
			break;
		/* The LF of a CRLF ends nothing more. */
		if (!(p[len] == '\n' && w->cr)) {
			part(w, p, 0);
			w->open = false;
			w->lines++;
		}
		w->cr = p[len] == '\r';
		p += len + 1;
		n -= len + 1;
	}
}

/* How many bytes of a last character are there, if that is not all of it. */
static size_t
unfinished(const char *p, size_t n)
{
	for (size_t i = 1; i <= 3 && i <= n; i++) {
		unsigned char c = (unsigned char)p[n - i];
		size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

		if (c >= 0xc0)
			return len > i ? i : 0;
		if (c < 0x80)
			return 0;
	}
	return 0;
}

/* The bytes of rest but the last keep. */
static void
digest(struct window *w, size_t keep)
{
	size_t n = w->rest.len - keep;

	if (n == 0)
		return;
	if (!utf8_is_valid(w->rest.data, n))
		w->invalid = true;
	else
		take(w, w->rest.data, n);
	memmove(w->rest.data, w->rest.data + n, keep);
	buf_cut(&w->rest, keep);
}

void
window_feed(struct window *w, const void *p, size_t n)
{
	w->bytes += n;
	if (w->invalid || n == 0)
		return;
	buf_add(&w->rest, p, n);
	digest(w, unfinished(w->rest.data, w->rest.len));
}

void
window_end(struct window *w)
{
	if (!w->invalid)
		digest(w, 0);
	if (w->open)
		w->lines++;
	w->open = false;
}

static uint64_t
count_breaks(const char *p, size_t n)
{
	uint64_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += p[i] == '\n';
	return found;
}

void
window_fit(struct window *w, size_t max)
{
	const char *text = buf_str(&w->text);
	size_t room = max, n = out_fit(text, w->text.len, &room);
	const char *end;

	if (n == w->text.len)
		return;
	while (n > 0 && text[n] != '\n')
		n--;
	if (n > 0) {
		w->num = count_breaks(text, n) + 1;
		buf_cut(&w->text, n);
		w->overflow = false;
		return;
	}
	end = memchr(text, '\n', w->text.len);
	room = max > MARK_BYTES ? max - MARK_BYTES : 0;
	n = out_fit(text, end ? (size_t)(end - text) : w->text.len, &room);
	w->num = 1;
	w->cut = true;
	buf_cut(&w->text, n);
	buf_adds(&w->text, "[... the rest of this line is cut ...]");
	w->overflow = false;
}

uint64_t
window_next(const struct window *w)
{
	return w->num > 0 && w->lines - w->first >= w->num ? w->first + w->num
							   : 0;
}
