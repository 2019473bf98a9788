/* SPDX-License-Identifier: MIT */
#include "edit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "merge3.h"

/* What an LF of the text stands for. */
enum end {
	END_LF,
	END_CRLF,
	END_CR,
	END_KINDS
};

/* ---- loading and saving ---- */

/* Appends the text with LF for each end of a line, whose kind goes to ends. */
static void
normalise(const char *p, size_t n, struct buf *text, struct buf *ends)
{
	const char *end = p + n;

	buf_reserve(text, n);
	while (p < end) {
		size_t len = 0, left = (size_t)(end - p);
		enum end kind = END_LF;

		while (len < left && p[len] != '\n' && p[len] != '\r')
			len++;
		buf_add(text, p, len);
		if (len == left)
			break;
		p += len + 1;
		if (p[-1] == '\r')
			kind = p < end && *p == '\n' ? END_CRLF : END_CR;
		p += kind == END_CRLF;
		buf_addc(text, '\n');
		if (ends)
			buf_addc(ends, (char)kind);
	}
}

/* What most ends are; among equals the one that came first. */
static enum end
most(const struct buf *ends)
{
	size_t n[END_KINDS] = { 0 };
	enum end best = END_LF;

	for (size_t i = 0; i < ends->len; i++)
		n[(unsigned char)ends->data[i]]++;
	for (size_t i = 0; i < ends->len; i++)
		if (i == 0 || n[(unsigned char)ends->data[i]] > n[best])
			best = (enum end)ends->data[i];
	return best;
}

void
document_load(struct document *d, const void *p, size_t n)
{
	normalise(p, n, &d->text, &d->ends);
	d->usual = (char)most(&d->ends);
}

void
document_save(const struct document *d, struct buf *out)
{
	static const char *const form[] = { "\n", "\r\n", "\r" };
	const char *p = buf_str(&d->text), *end = p + d->text.len;

	buf_reserve(out, d->text.len);
	for (size_t i = 0; p < end; i++) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));

		if (!lf) {
			buf_add(out, p, (size_t)(end - p));
			break;
		}
		buf_add(out, p, (size_t)(lf - p));
		buf_adds(out, form[(unsigned char)d->ends.data[i]]);
		p = lf + 1;
	}
}

void
document_release(struct document *d)
{
	buf_release(&d->text);
	buf_release(&d->ends);
}

/* ---- editing ---- */

static size_t
count_lf(const char *p, size_t n)
{
	const char *end = p + n;
	size_t count = 0;

	for (;;) {
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p)
			return count;
		count++;
		p++;
	}
}

/*
 * Whose end each line of new takes: the number of a line of old, or SIZE_MAX
 * for the usual. A line that stays keeps its own; lines in the place of others
 * take theirs, one after the other. Caller frees.
 */
static size_t *
map_ends(const struct buf *old, const struct buf *new)
{
	size_t nold = count_lf(buf_str(old), old->len), i = 0, j = 0;
	struct diff d = DIFF_INIT;
	struct lines a, b;
	size_t *map;

	lines_split(&a, buf_str(old), old->len);
	lines_split(&b, buf_str(new), new->len);
	map = xcalloc(b.n + 1, sizeof *map);
	/* Too many lines to compare: then they all take the usual end. */
	if (diff_lines(&a, &b, &d) == -1)
		i = a.n;
	for (size_t r = 0; r < d.n; r++) {
		const struct diff_region *g = &d.region[r];

		for (; i < g->a; i++)
			map[j++] = i;
		for (size_t k = 0; k < g->blen; k++)
			map[j++] = k < g->alen ? i + k : SIZE_MAX;
		i += g->alen;
	}
	for (; j < b.n; i++)
		map[j++] = i;
	/* A last line without an end has none to give. */
	for (size_t k = 0; k < b.n; k++)
		if (map[k] >= nold)
			map[k] = SIZE_MAX;
	diff_release(&d);
	lines_release(&a);
	lines_release(&b);
	return map;
}

static const char *
find(const char *p, const char *end, const struct buf *s)
{
	return memmem(p, (size_t)(end - p), s->data, s->len);
}

static size_t
count_of(const struct document *d, const struct buf *s)
{
	const char *p = buf_str(&d->text), *end = p + d->text.len;
	size_t n = 0;

	for (;;) {
		p = find(p, end, s);
		if (!p)
			return n;
		n++;
		p += s->len;
	}
}

/* Would the text be larger than max? */
static bool
is_too_much(size_t len, size_t count, size_t old, size_t new, size_t max)
{
	if (new <= old)
		return false;
	return len > max || count > (max - len) / (new - old);
}

/* Replaces each old by new. */
static void
replace(struct document *d, const struct buf *old, const struct buf *new)
{
	const size_t nold = count_lf(buf_str(old), old->len);
	const size_t nnew = count_lf(buf_str(new), new->len);
	const char *p = buf_str(&d->text), *end = p + d->text.len;
	size_t *map = map_ends(old, new), at = 0;
	struct document out = { .usual = d->usual };

	for (;;) {
		const char *hit = find(p, end, old);
		size_t len = (size_t)((hit ? hit : end) - p);
		size_t n = count_lf(p, len);

		buf_add(&out.text, p, len);
		buf_add(&out.ends, buf_str(&d->ends) + at, n);
		at += n;
		if (!hit)
			break;
		buf_add(&out.text, buf_str(new), new->len);
		for (size_t i = 0; i < nnew; i++)
			buf_addc(&out.ends,
			    map[i] == SIZE_MAX ? d->usual
					       : d->ends.data[at + map[i]]);
		at += nold;
		p = hit + old->len;
	}
	free(map);
	document_release(d);
	*d = out;
}

enum edit_result
document_edit(
    struct document *d, const struct edit *e, size_t max, size_t *count)
{
	struct buf old = BUF_INIT, new = BUF_INIT;
	enum edit_result result = EDIT_DONE;

	normalise(buf_str(&e->old), e->old.len, &old, NULL);
	normalise(buf_str(&e->new), e->new.len, &new, NULL);
	*count = count_of(d, &old);
	if (*count == 0)
		result = EDIT_NOT_FOUND;
	else if (*count > 1 && !e->all)
		result = EDIT_NOT_UNIQUE;
	else if (is_too_much(d->text.len, *count, old.len, new.len, max))
		result = EDIT_TOO_LARGE;
	else
		replace(d, &old, &new);
	buf_release(&old);
	buf_release(&new);
	return result;
}
