/* SPDX-License-Identifier: MIT */
#include "rawrows.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

enum {
	BLOCK = SPOOL_BLOCK,
	RECORD = 8,
	HOLE_ALIGN = 65536, /* no file system here has larger blocks */
	WINDOW = 65536 /* bytes read at once */
};

static uint64_t
count_lf(const char *p, size_t n)
{
	const char *end = p + n;
	uint64_t lf = 0;

	while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		lf++;
		p++;
	}
	return lf;
}

static off_t
place(off_t block)
{
	return block * RECORD;
}

/* --- Writing. --- */

int
rawrows_make(struct rawrows_log *l, int dirfd)
{
	*l = (struct rawrows_log){ .start = true };
	l->fd = openat(dirfd, RAW_INDEX,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return l->fd == -1 ? -1 : 0;
}

/* A record that waits to be written. */
struct waiting {
	off_t block;
	char at[RECORD];
};

static void
add_record(struct rawrows_log *l, off_t block)
{
	uint64_t at = l->lf | (l->start ? RAW_AT_START : 0);
	struct waiting w = { .block = block };

	for (int i = 0; i < RECORD; i++)
		w.at[i] = (char)(at >> 8 * i & 0xff);
	buf_add(&l->at, &w, sizeof w);
}

/*
 * Neighbours with one write. What cannot be written waits: without it what is
 * in the log would not be found.
 */
static int
write_records(struct rawrows_log *l)
{
	struct buf run = BUF_INIT;
	struct waiting w, first;
	size_t at = 0, end;
	int rc = 0;

	while (at < l->at.len && rc == 0) {
		memcpy(&first, l->at.data + at, sizeof first);
		buf_cut(&run, 0);
		for (end = at; end < l->at.len; end += sizeof w) {
			memcpy(&w, l->at.data + end, sizeof w);
			if (w.block != first.block + (off_t)(run.len / RECORD))
				break;
			buf_add(&run, w.at, RECORD);
		}
		if (pwrite(l->fd, run.data, run.len, place(first.block)) !=
		    (ssize_t)run.len)
			rc = -1;
		else
			at = end;
	}
	buf_release(&run);
	if (at > 0) {
		memmove(l->at.data, l->at.data + at, l->at.len - at);
		buf_cut(&l->at, l->at.len - at);
	}
	return rc;
}

/* Of what waits, nobody needs what lies in the gap. */
static void
forget_gap(struct rawrows_log *l, const struct gap *gap)
{
	struct waiting w;
	size_t kept = 0;

	for (size_t at = 0; at < l->at.len; at += sizeof w) {
		memcpy(&w, l->at.data + at, sizeof w);
		if (w.block * BLOCK >= gap->from && w.block < gap->to / BLOCK)
			continue;
		memmove(l->at.data + kept, &w, sizeof w);
		kept += sizeof w;
	}
	buf_cut(&l->at, kept);
}

/*
 * Gives back the records between the first of the gap and that behind it. The
 * log's gap grows by a few of them at a time, less than a block of the file
 * system, of which a part keeps its place: so begins earlier, where there is a
 * hole already.
 */
static void
trim(struct rawrows_log *l, const struct gap *gap)
{
	off_t hole = place(gap->from / BLOCK + 1);
	off_t done = place(l->past / BLOCK);

	if (gap->to <= l->past || gap->to == gap->from)
		return;
	done -= done % HOLE_ALIGN;
	if (done > hole)
		hole = done;
	if (place(gap->to / BLOCK) > hole)
		spool_punch(l->fd, hole, place(gap->to / BLOCK));
	l->past = gap->to;
}

static void
count(struct rawrows_log *l, const char *p, size_t n)
{
	l->lf += count_lf(p, n);
	l->start = p[n - 1] == '\n';
	l->len += (off_t)n;
}

int
rawrows_add(
    struct rawrows_log *l, const struct spool *s, const char *p, size_t n)
{
	size_t k;

	if (n == 0)
		return write_records(l);
	if (s->full) {
		count(l, p, n);
		forget_gap(l, &s->gap);
		add_record(l, s->gap.from / BLOCK + 1);
		return write_records(l);
	}
	for (; n > 0; p += k, n -= k) {
		if (l->len % BLOCK == 0)
			add_record(l, l->len / BLOCK);
		k = BLOCK - (size_t)(l->len % BLOCK);
		if (k > n)
			k = n;
		count(l, p, k);
	}
	if (s->gap.to > s->gap.from)
		forget_gap(l, &s->gap);
	/* The last of it could not be written. */
	if (s->gap.to > s->gap.from && l->len == s->gap.to) {
		if (s->cut)
			add_record(l, s->gap.from / BLOCK + 1);
		add_record(l, s->gap.to / BLOCK);
	}
	if (write_records(l) == -1)
		return -1;
	if (!s->cut)
		trim(l, &s->gap);
	return 0;
}

/* --- Reading. --- */

/* 1, 0 when there is none, -1. */
static int
record(const struct rawrows *r, off_t block, uint64_t *lf, bool *start)
{
	unsigned char b[RECORD];
	uint64_t at = 0;
	ssize_t n;

	do
		n = pread(r->index, b, sizeof b, place(block));
	while (n == -1 && errno == EINTR);
	if (n == -1)
		return -1;
	for (int i = RECORD; n == RECORD && i-- > 0;)
		at = at << 8 | b[i];
	*lf = at & ~RAW_AT_START;
	*start = (at & RAW_AT_START) != 0;
	return n == RECORD;
}

/* Counts LF of the log from there to end. */
static int
count_in(
    const struct rawrows *r, off_t at, off_t end, uint64_t *lf, bool *start)
{
	static char piece[WINDOW];

	while (at < end) {
		size_t want = end - at < WINDOW ? (size_t)(end - at) : WINDOW;
		ssize_t n = pread(r->log, piece, want, at);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		if (n == 0)
			break;
		*lf += count_lf(piece, (size_t)n);
		*start = piece[n - 1] == '\n';
		at += n;
	}
	return 0;
}

static off_t
later(off_t a, off_t b)
{
	return a > b ? a : b;
}

/* A record that has to be there. */
static int
need(const struct rawrows *r, off_t block, uint64_t *lf, bool *start)
{
	int rc = record(r, block, lf, start);

	if (rc == 0)
		errno = EILSEQ;
	return rc == 1 ? 0 : -1;
}

/*
 * Rows before the gap: its first block may be that of its end, with another
 * record; so from the block before.
 */
static int
measure_head(struct rawrows *r)
{
	const off_t block = r->gap.from / BLOCK;
	bool start = true;

	r->head = 0;
	if (block > 0 && need(r, block - 1, &r->head, &start) == -1)
		return -1;
	return count_in(r, block > 0 ? (block - 1) * BLOCK : 0, r->gap.from,
	    &r->head, &start);
}

/* What comes before the end of the gap; unknown where the index was lost too:
 * then it is one row that has gone. */
static int
measure_gap(const struct rawrows *r, off_t block, uint64_t *lf, bool *start)
{
	int rc = record(r, block, lf, start);

	if (rc == 0 || (rc == 1 && *lf < r->head)) {
		*lf = r->head;
		*start = false;
	}
	return rc == -1 ? -1 : 0;
}

static int
measure(struct rawrows *r)
{
	const bool has_gap = r->gap.to > r->gap.from;
	const bool cut = has_gap && r->gap.to > r->len;
	struct stat st;
	uint64_t lf = 0;
	bool start = true;
	off_t block;

	r->head = r->tail = r->final = r->count = 0;
	if (fstat(r->index, &st) == -1)
		return -1;
	block = st.st_size / RECORD - 1;
	if (has_gap) {
		if (measure_head(r) == -1 ||
		    measure_gap(r,
			cut ? r->gap.from / BLOCK + 1 : r->gap.to / BLOCK, &lf,
			&start) == -1)
			return -1;
		r->tail = lf + !start;
	} else if (block < 0 || r->len == 0) {
		return 0;
	}
	if (cut && r->len > r->gap.from)
		r->len = r->gap.from;
	if (block > (r->len - 1) / BLOCK)
		block = (r->len - 1) / BLOCK;
	if (has_gap && (r->gap.to >= r->len || block <= r->gap.to / BLOCK)) {
		if (!cut && count_in(r, r->gap.to, r->len, &lf, &start) == -1)
			return -1;
	} else if (need(r, block, &lf, &start) == -1 ||
	    count_in(r, block * BLOCK, r->len, &lf, &start) == -1) {
		return -1;
	}
	r->final = lf;
	r->count = lf + !start;
	return 0;
}

/* Until the gap stays where it is: 1 it has moved meanwhile, 0, -1. */
static int
look(struct rawrows *r)
{
	struct gap now;
	struct stat st;
	int rc;

	if (spool_gap(r->dirfd, LOG_NAME, &r->gap) == -1 ||
	    fstat(r->log, &st) == -1)
		return -1;
	r->len = st.st_size;
	rc = measure(r);
	if (spool_gap(r->dirfd, LOG_NAME, &now) == -1)
		return -1;
	return now.to != r->gap.to ? 1 : rc;
}

static int
settle(struct rawrows *r)
{
	int rc;

	do
		rc = look(r);
	while (rc == 1);
	return rc;
}

int
rawrows_open(struct rawrows *r, int dirfd)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;

	*r = (struct rawrows){ .dirfd = dirfd, .log = -1, .index = -1 };
	r->log = openat(dirfd, LOG_NAME, flags);
	if (r->log != -1)
		r->index = openat(dirfd, RAW_INDEX, flags);
	if (r->index == -1 || settle(r) == -1) {
		rawrows_close(r);
		return -1;
	}
	return 0;
}

void
rawrows_close(struct rawrows *r)
{
	io_drop(&r->log);
	io_drop(&r->index);
}

uint64_t
rawrows_count(const struct rawrows *r)
{
	return r->count;
}

uint64_t
rawrows_final(const struct rawrows *r)
{
	return r->final;
}

uint64_t
rawrows_next(const struct rawrows *r, uint64_t row)
{
	return row >= r->head && row < r->tail ? r->tail : row;
}

/* Does a row at or before this one begin in the block, or before it? */
static bool
is_before(uint64_t lf, bool start, uint64_t row)
{
	return lf < row || (lf == row && start);
}

/* The last block with that, and the LF before it. */
static int
find_block(const struct rawrows *r, uint64_t row, off_t *block, uint64_t *lf)
{
	const bool tail = r->gap.to > r->gap.from && row >= r->tail;
	off_t lo = tail ? r->gap.to / BLOCK : 0, hi, mid;
	uint64_t n;
	bool start;
	int rc;

	/* hi: the first block that need not be looked at. */
	hi = tail || r->gap.to == r->gap.from
	    ? (r->len - 1) / BLOCK + 1
	    : (r->gap.from + BLOCK - 1) / BLOCK;
	*lf = 0;
	if (tail && measure_gap(r, lo, lf, &start) == -1)
		return -1;
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		rc = record(r, mid, &n, &start);
		if (rc == -1)
			return -1;
		if (rc == 1 && is_before(n, start, row)) {
			lo = mid;
			*lf = n;
		} else {
			hi = mid;
		}
	}
	*block = lo;
	return 0;
}

/* Text of the log. */
struct window {
	struct buf b;
	size_t used;
	off_t end; /* where the file is read next */
	bool fresh;
};

/* 1 more, 0 the end, -1. */
static int
fill(const struct rawrows *r, struct window *w)
{
	ssize_t n;

	if (w->used > 0) {
		memmove(w->b.data, w->b.data + w->used, w->b.len - w->used);
		buf_cut(&w->b, w->b.len - w->used);
		w->used = 0;
	}
	buf_reserve(&w->b, WINDOW);
	do
		n = pread(r->log, w->b.data + w->b.len, WINDOW, w->end);
	while (n == -1 && errno == EINTR);
	if (n > 0) {
		w->b.len += (size_t)n;
		w->end += n;
		w->fresh = true;
	}
	return n > 0 ? 1 : (int)n;
}

/* The next row: 1; 0 nothing is left, -1. */
static int
next_row(
    const struct rawrows *r, struct window *w, const char **text, size_t *n)
{
	size_t seen = 0;
	char *lf;
	int rc;

	for (;;) {
		*n = w->b.len - w->used;
		*text = buf_str(&w->b) + w->used;
		lf = *n > seen ? memchr(*text + seen, '\n', *n - seen) : NULL;
		if (lf) {
			*n = (size_t)(lf - *text);
			w->used += *n + 1;
			return 1;
		}
		seen = *n;
		rc = fill(r, w);
		if (rc == -1)
			return -1;
		if (rc == 0) {
			*text = buf_str(&w->b) + w->used;
			w->used = w->b.len;
			return *n > 0;
		}
	}
}

/*
 * Did the gap reach what was read since the last time, or the records by which
 * it was found? Then look again.
 */
static bool
has_gone(struct rawrows *r, struct window *w, uint64_t row, off_t from, int *rc)
{
	struct gap now;

	*rc = 0;
	if (!w->fresh)
		return false;
	w->fresh = false;
	if (spool_gap(r->dirfd, LOG_NAME, &now) == -1)
		*rc = -1;
	else if (row < r->head ? now.from < r->gap.from
			       : now.to != r->gap.to && from < now.to)
		*rc = settle(r);
	else
		return false;
	return true;
}

int
rawrows_read(
    struct rawrows *r, uint64_t first, uint64_t n, rows_read_fn *fn, void *arg)
{
	struct window w = { .b = BUF_INIT };
	const uint64_t end = n < r->count - first ? first + n : r->count;
	uint64_t row, lf = 0;
	off_t block = 0;
	const char *text;
	size_t len;
	int rc;

	if (first >= r->count || rawrows_next(r, first) != first)
		return 0;
	rc = find_block(r, first, &block, &lf);
	w.end =
	    first < r->head ? block * BLOCK : later(block * BLOCK, r->gap.to);
	/* The end of a row of before, and whole ones. */
	for (row = lf; rc == 0 && row < first; row++)
		rc = next_row(r, &w, &text, &len) == -1 ? -1 : 0;
	for (; rc == 0 && row < end && rawrows_next(r, row) == row; row++) {
		rc = next_row(r, &w, &text, &len);
		if (rc <= 0 || has_gone(r, &w, row, block * BLOCK, &rc))
			break;
		if (len > 0 && text[len - 1] == '\r')
			len--;
		rc = fn(row, text, len, 0, arg) ? 0 : 1;
	}
	buf_release(&w.b);
	return rc == -1 ? -1 : 0;
}
