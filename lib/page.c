/* SPDX-License-Identifier: MIT */
#include "page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io.h"
#include "num.h"
#include "out.h"
#include "rawrows.h"
#include "rows.h"
#include "transcript.h"
#include "vt.h"

enum {
	LIVE_BYTES = 1 << 24
};

void
page_release(struct page *p)
{
	buf_release(&p->text);
}

/* One U+FFFD for each maximal part of what is no UTF-8. */
static void
add_mended(struct buf *b, const char *text, size_t n)
{
	struct utf8 u = { 0 };
	uint32_t c[2];

	for (size_t i = 0; i < n; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte >= 0x80) {
			int k = utf8_next(&u, byte, c);

			for (int m = 0; m < k; m++)
				utf8_add(b, c[m]);
			continue;
		}
		if (utf8_cut(&u))
			utf8_add(b, UTF8_BAD);
		buf_addc(b, (char)byte);
	}
	if (utf8_cut(&u))
		utf8_add(b, UTF8_BAD);
}

enum {
	MARK_BYTES = 64 /* of what is said of a row that was cut */
};

/* The only row, cut between two characters. */
static void
cut_row(struct page *p)
{
	const size_t all = p->text.len;
	size_t n = p->max < all ? p->max : all;
	size_t room = p->room > MARK_BYTES ? p->room - MARK_BYTES : 0;

	while (n > 0 && ((unsigned char)p->text.data[n] & 0xc0) == 0x80)
		n--;
	n = out_fit(p->text.data, n, &room);
	buf_cut(&p->text, n);
	buf_addf(&p->text, "[... %zu bytes cut ...]", all - n);
	p->cut = true;
}

/* False: there is no room for it. */
static bool
add_text(struct page *p, const char *text, size_t n)
{
	const size_t before = p->text.len;
	size_t room = p->room;
	bool fits;

	if (p->any)
		buf_addc(&p->text, '\n');
	if (p->raw && !utf8_is_valid(text, n))
		add_mended(&p->text, text, n);
	else
		buf_add(&p->text, text, n);
	n = p->text.len - before;
	fits = p->text.len <= p->max &&
	    (n == 0 || out_fit(p->text.data + before, n, &room) == n);
	if (!fits && p->any) {
		buf_cut(&p->text, before);
		p->full = true;
		return false;
	}
	if (!fits)
		cut_row(p);
	p->room = fits ? room : 0;
	p->any = true;
	return true;
}

/* Stops where rows are missing. */
static bool
take_row(uint64_t row, const char *text, size_t n, unsigned flags, void *arg)
{
	struct page *p = arg;

	if (flags & ROW_GAP)
		return false;
	if (!add_text(p, text, n))
		return false;
	p->wrapped |= (flags & ROW_WRAPPED) != 0;
	p->end = row + 1;
	return true;
}

static void
skip_lost(struct page *p, uint64_t from, uint64_t to)
{
	char words[64];

	snprintf(words, sizeof words, "[... %" PRIu64 " rows dropped ...]",
	    to - from);
	if (!p->raw && !add_text(p, words, strlen(words)))
		return;
	if (p->lost == 0)
		p->lost_from = from;
	p->lost += to - from;
	p->end = to;
}

/* ---- rendered rows ---- */

/* The file "live" as transcript.h has it; rows may contain NUL. */
struct live {
	struct buf text;
	uint64_t final;
	size_t at; /* of the first row in text */
};

static bool
read_live(int dirfd, struct live *l)
{
	char *lf;

	if (io_read_file_at(dirfd, LIVE_NAME, &l->text, LIVE_BYTES) == -1)
		return false;
	lf = memchr(buf_str(&l->text), '\n', l->text.len);
	if (!lf)
		return false;
	*lf = '\0';
	l->at = (size_t)(lf - l->text.data) + 1;
	return num_dec(l->text.data, 0, UINT64_MAX, &l->final);
}

static void
take_live(struct page *p, const struct live *l, uint64_t limit)
{
	const char *row = l->text.data + l->at;
	const char *end = l->text.data + l->text.len, *lf;

	for (; row < end; row = lf + 1) {
		lf = memchr(row, '\n', (size_t)(end - row));
		if (!lf || lf == row)
			return;
		if (p->total++ < p->end || limit == 0 || p->full ||
		    !add_text(p, row + 1, (size_t)(lf - row) - 1))
			continue;
		limit--;
		if (!p->live)
			p->live_from = p->end;
		p->live = true;
		p->wrapped |= *row == 'w';
		p->end++;
	}
}

/* Takes from limit what it has found. */
static int
collect_final(
    struct page *p, const struct rows_file *f, uint64_t final, uint64_t *limit)
{
	while (*limit > 0 && p->end < final && !p->full) {
		const uint64_t row = p->end;
		const int64_t next = rows_next(f, row);
		uint64_t n = final - row < *limit ? final - row : *limit;

		if (next == -1)
			return -1;
		if ((uint64_t)next > row) {
			skip_lost(p, row,
			    (uint64_t)next < final ? (uint64_t)next : final);
			continue;
		}
		if (rows_read(f, row, n, take_row, p) == -1)
			return -1;
		*limit -= p->end - row;
	}
	return 0;
}

static int
collect_rendered(struct page *p, int dirfd, bool done, uint64_t limit)
{
	struct live live = { .text = BUF_INIT };
	struct rows_file f;
	bool has_live = read_live(dirfd, &live);
	int64_t n;
	int rc = -1;

	if (rows_open(&f, dirfd) == -1) {
		rc = errno == ENOENT ? 0 : -1;
		goto out;
	}
	n = rows_count(&f);
	if (n != -1) {
		p->total = (uint64_t)n;
		/* Left by a process that was killed, and since then rows
		 * became final. */
		if (done && has_live && live.final != p->total)
			has_live = false;
		/* Rows that became final meanwhile are still among the live
		 * ones. */
		if (has_live && live.final < p->total)
			p->total = live.final;
		rc = collect_final(p, &f, p->total, &limit);
	}
	rows_close(&f);
	if (rc == 0 && has_live)
		take_live(p, &live, limit);
	if (done)
		p->live = false;
out:
	buf_release(&live.text);
	return rc;
}

/* ---- raw rows ---- */

static int
collect_raw(struct page *p, int dirfd, bool done, uint64_t limit)
{
	struct rawrows r;
	uint64_t final;
	int rc = 0;

	if (rawrows_open(&r, dirfd) == -1)
		return errno == ENOENT ? 0 : -1;
	p->total = rawrows_count(&r);
	final = done ? p->total : rawrows_final(&r);
	while (rc == 0 && limit > 0 && p->end < p->total && !p->full) {
		const uint64_t row = p->end;
		uint64_t next = rawrows_next(&r, row);

		if (next > row) {
			skip_lost(p, row, next < p->total ? next : p->total);
			continue;
		}
		rc = rawrows_read(&r, row,
		    p->total - row < limit ? p->total - row : limit, take_row,
		    p);
		limit -= p->end - row;
		/* Whoever cut the file off is not us. */
		if (p->end == row && rawrows_next(&r, row) == row)
			break;
	}
	rawrows_close(&r);
	if (p->end > final && p->first < p->end) {
		p->live = true;
		p->live_from = final > p->first ? final : p->first;
	}
	return rc;
}

int
page_collect(struct page *p, int dirfd, unsigned how, uint64_t first,
    uint64_t limit, uint64_t max, uint64_t json_max)
{
	p->first = p->end = first;
	p->max = max < SIZE_MAX / 2 ? (size_t)max : SIZE_MAX / 2;
	p->room =
	    json_max > 0 && json_max < SIZE_MAX ? (size_t)json_max : SIZE_MAX;
	p->raw = (how & PAGE_RAW) != 0;
	return (p->raw ? collect_raw : collect_rendered)(
	    p, dirfd, (how & PAGE_DONE) != 0, limit);
}
