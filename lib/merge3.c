/* SPDX-License-Identifier: MIT */
#include "merge3.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "out.h"

enum {
	LINES_MAX = 1 << 30, /* diagonals must fit an int32_t */
	WORK = 1 << 26, /* lines times edits, see limit_for */
	LIMIT_MIN = 32,
	SLIDE_FACTOR = 16
};

const char *
text_flaw(const void *p, size_t n)
{
	if (n > MERGE_TEXT_MAX)
		return "is larger than 8388608 bytes";
	if (n == 0)
		return NULL;
	if (memchr(p, '\0', n))
		return "contains a NUL byte";
	if (!utf8_is_valid(p, n))
		return "is not UTF-8";
	return NULL;
}

bool
text_is_mergeable(const void *p, size_t n)
{
	return !text_flaw(p, n);
}

void
lines_split(struct lines *l, const void *text, size_t len)
{
	const char *at = len > 0 ? text : "", *end = at + len;
	size_t cap = len / 32 + 16;

	l->text = at;
	l->n = 0;
	l->start = xreallocarray(NULL, cap, sizeof *l->start);
	l->start[0] = 0;
	while (at < end) {
		const char *lf = memchr(at, '\n', (size_t)(end - at));

		at = lf ? lf + 1 : end;
		if (++l->n == cap)
			l->start = xgrow(l->start, &cap, sizeof *l->start);
		l->start[l->n] = (size_t)(at - l->text);
	}
}

void
lines_release(struct lines *l)
{
	free(l->start);
	*l = (struct lines){ .text = NULL };
}

/*
 * Lines become small numbers, equal lines equal numbers, so that everything
 * below compares integers.
 */
struct line_id {
	uint64_t hash;
	const char *p;
	size_t len;
};

struct interner {
	struct line_id *known;
	size_t n, cap;
	uint32_t *slot; /* number + 1 of a known line, or 0 */
	size_t mask;
	uint64_t seed;
};

static void
interner_init(struct interner *in)
{
	*in = (struct interner){ .mask = 1023 };
	in->slot = xcalloc(in->mask + 1, sizeof *in->slot);
	/*
	 * Where memory lies is nobody's choice, so a text cannot be written
	 * whose lines all fall on one slot. No result depends on it.
	 */
	in->seed = (uintptr_t)in->slot * UINT64_C(0x9e3779b97f4a7c15);
}

static void
interner_release(struct interner *in)
{
	free(in->known);
	free(in->slot);
}

static uint64_t
hash_bytes(uint64_t h, const char *p, size_t n)
{
	uint64_t w;

	h ^= n;

	for (; n >= sizeof w; p += sizeof w, n -= sizeof w) {
		memcpy(&w, p, sizeof w);
		h = (h ^ w) * UINT64_C(0xbf58476d1ce4e5b9);
		h ^= h >> 32;
	}
	w = 0;
	memcpy(&w, p, n);
	h = (h ^ w) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 29;
}

static void
interner_widen(struct interner *in)
{
	size_t mask = in->mask * 2 + 1;

	free(in->slot);
	in->slot = xcalloc(mask + 1, sizeof *in->slot);
	in->mask = mask;
	for (size_t i = 0; i < in->n; i++) {
		size_t at = in->known[i].hash & mask;

		while (in->slot[at] != 0)
			at = (at + 1) & mask;
		in->slot[at] = (uint32_t)i + 1;
	}
}

static uint32_t
intern(struct interner *in, const char *p, size_t len)
{
	uint64_t hash = hash_bytes(in->seed, p, len);
	size_t at;

	if (in->n * 2 > in->mask)
		interner_widen(in);
	for (at = hash & in->mask; in->slot[at] != 0;
	    at = (at + 1) & in->mask) {
		const struct line_id *k = &in->known[in->slot[at] - 1];

		if (k->hash == hash && k->len == len &&
		    memcmp(k->p, p, len) == 0)
			return in->slot[at] - 1;
	}
	if (in->n == in->cap)
		in->known = xgrow(in->known, &in->cap, sizeof *in->known);
	in->known[in->n] = (struct line_id){ .hash = hash, .p = p, .len = len };
	in->slot[at] = (uint32_t)++in->n;
	return (uint32_t)in->n - 1;
}

/* Caller frees the array of l->n numbers. */
static uint32_t *
intern_lines(struct interner *in, const struct lines *l)
{
	uint32_t *id = xreallocarray(NULL, l->n, sizeof *id);

	for (size_t i = 0; i < l->n; i++)
		id[i] = intern(
		    in, l->text + l->start[i], l->start[i + 1] - l->start[i]);
	return id;
}

/*
 * One side of a comparison. Only lines that the other side has too take part
 * in the search: id holds those, at their places in the whole text. changed
 * has one byte for each line of the whole text.
 */
struct side {
	uint32_t *id;
	uint32_t *at;
	int32_t n;
	bool *changed;
};

/*
 * E. W. Myers, "An O(ND) difference algorithm and its variations" (1986),
 * section 4b: the search runs from both corners and meets in the middle, so
 * memory stays linear. far[k] is the largest x reached on diagonal k = x - y
 * from the start, near[k] the smallest reached from the end.
 */
struct search {
	struct side a, b;
	int32_t *far, *near;
	int32_t limit; /* edits from each corner before giving up */
};

struct box {
	int32_t x0, x1, y0, y1;
};

struct span {
	int32_t lo, hi;
};

/*
 * Goes on to the diagonals of the next edit: one further on each side, but
 * inside the box, where the outermost is left out instead to keep the parity.
 * What lies outside gets a value that never wins.
 */
static void
span_next(struct span *s, int32_t kmin, int32_t kmax, int32_t *v, int32_t none)
{
	if (s->lo > kmin)
		v[--s->lo - 1] = none;
	else
		s->lo++;
	if (s->hi < kmax)
		v[++s->hi + 1] = none;
	else
		s->hi--;
}

/* A point of the box, neither corner, on a shortest path through it. */
static void
split(const struct search *s, const struct box *q, int32_t *sx, int32_t *sy)
{
	const uint32_t *a = s->a.id, *b = s->b.id;
	int32_t kmin = q->x0 - q->y1, kmax = q->x1 - q->y0;
	int32_t fk = q->x0 - q->y0, nk = q->x1 - q->y1;
	struct span f = { fk, fk }, n = { nk, nk };
	int32_t best = -1;
	bool odd = (fk - nk) & 1;

	s->far[fk] = q->x0;
	s->near[nk] = q->x1;
	for (int32_t edits = 0; edits < s->limit; edits++) {
		span_next(&f, kmin, kmax, s->far, -1);
		for (int32_t k = f.hi; k >= f.lo; k -= 2) {
			int32_t left = s->far[k - 1], up = s->far[k + 1];
			int32_t x = left >= up ? left + 1 : up, y = x - k;

			while (x < q->x1 && y < q->y1 && a[x] == b[y])
				x++, y++;
			s->far[k] = x;
			if (odd && k >= n.lo && k <= n.hi && s->near[k] <= x) {
				*sx = x;
				*sy = y;
				return;
			}
		}
		span_next(&n, kmin, kmax, s->near, INT32_MAX);
		for (int32_t k = n.hi; k >= n.lo; k -= 2) {
			int32_t down = s->near[k - 1], right = s->near[k + 1];
			int32_t x = down < right ? down : right - 1, y = x - k;

			while (x > q->x0 && y > q->y0 && a[x - 1] == b[y - 1])
				x--, y--;
			s->near[k] = x;
			if (!odd && k >= f.lo && k <= f.hi && x <= s->far[k]) {
				*sx = x;
				*sy = y;
				return;
			}
		}
	}
	/* Too far apart: go by the point that left most of the box behind. */
	for (int32_t k = f.hi; k >= f.lo; k -= 2) {
		int32_t x = s->far[k] < q->x1 ? s->far[k] : q->x1, y = x - k;

		if (y > q->y1) {
			y = q->y1;
			x = y + k;
		}
		if (x - q->x0 + y - q->y0 > best) {
			best = x - q->x0 + y - q->y0;
			*sx = x;
			*sy = y;
		}
	}
	for (int32_t k = n.hi; k >= n.lo; k -= 2) {
		int32_t x = s->near[k] > q->x0 ? s->near[k] : q->x0, y = x - k;

		if (y < q->y0) {
			y = q->y0;
			x = y + k;
		}
		if (q->x1 - x + q->y1 - y > best) {
			best = q->x1 - x + q->y1 - y;
			*sx = x;
			*sy = y;
		}
	}
}

static int64_t
box_size(const struct box *q)
{
	return (int64_t)q->x1 - q->x0 + q->y1 - q->y0;
}

static void
search(const struct search *s, struct box q)
{
	for (;;) {
		const uint32_t *a = s->a.id, *b = s->b.id;
		struct box first, second;
		int32_t x = q.x0, y = q.y0;

		while (q.x0 < q.x1 && q.y0 < q.y1 && a[q.x0] == b[q.y0])
			q.x0++, q.y0++;
		while (q.x0 < q.x1 && q.y0 < q.y1 && a[q.x1 - 1] == b[q.y1 - 1])
			q.x1--, q.y1--;
		if (q.x0 == q.x1 || q.y0 == q.y1) {
			for (; q.x0 < q.x1; q.x0++)
				s->a.changed[s->a.at[q.x0]] = true;
			for (; q.y0 < q.y1; q.y0++)
				s->b.changed[s->b.at[q.y0]] = true;
			return;
		}
		split(s, &q, &x, &y);
		first = (struct box){ q.x0, x, q.y0, y };
		second = (struct box){ x, q.x1, y, q.y1 };
		/* Only the smaller part costs stack: at most 31 calls deep. */
		if (box_size(&first) < box_size(&second)) {
			search(s, first);
			q = second;
		} else {
			search(s, second);
			q = first;
		}
	}
}

/*
 * A box costs at most limit² steps and, when given up, leaves at least limit
 * lines behind; so the whole costs about lines times limit. The product is
 * held at WORK: some tenths of a second at the very worst.
 */
static int32_t
limit_for(int64_t lines)
{
	int64_t limit = WORK / (lines + 1);

	return (int32_t)(limit > LIMIT_MIN ? limit : LIMIT_MIN);
}

/* Keeps in s the lines whose number is marked with other in seen. */
static void
side_reduce(struct side *s, const uint32_t *id, size_t from, size_t to,
    const unsigned char *seen, unsigned char other)
{
	s->id = xreallocarray(NULL, to - from, sizeof *s->id);
	s->at = xreallocarray(NULL, to - from, sizeof *s->at);
	for (size_t i = from; i < to; i++) {
		if (!(seen[id[i]] & other)) {
			s->changed[i] = true;
			continue;
		}
		s->id[s->n] = id[i];
		s->at[s->n++] = (uint32_t)i;
	}
}

/*
 * Moves each region that only inserts or only deletes as far down as it goes,
 * and joins regions that meet. Thus the same edit stands at the same place
 * whatever else its side did, and two equal insertions are known as equal.
 */
static void
slide_down(
    struct diff *d, const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
	size_t steps = SLIDE_FACTOR * (n + m), w = d->n;

	for (size_t i = d->n; i-- > 0;) {
		struct diff_region r = d->region[i];

		for (;;) {
			const struct diff_region *next = &d->region[w];
			bool last = w == d->n;

			if (!last && r.a + r.alen == next->a &&
			    r.b + r.blen == next->b) {
				r.alen += next->alen;
				r.blen += next->blen;
				w++;
				continue;
			}
			if (last && (r.a + r.alen == n || r.b + r.blen == m))
				break;
			if (steps == 0)
				break;
			if (r.alen > 0 && r.blen > 0)
				break;
			if (r.alen > 0 ? a[r.a] != a[r.a + r.alen]
				       : b[r.b] != b[r.b + r.blen])
				break;
			r.a++;
			r.b++;
			steps--;
		}
		d->region[--w] = r;
	}
	d->n -= w;
	if (w > 0)
		memmove(d->region, d->region + w, d->n * sizeof *d->region);
}

/* Regions from the marks; unmarked lines correspond in order. */
static void
regions_collect(
    struct diff *d, const bool *ca, size_t n, const bool *cb, size_t m)
{
	size_t cap = 0, i = 0, j = 0;

	while (i < n || j < m) {
		struct diff_region r = { .a = i, .b = j };

		while (i < n && ca[i])
			i++;
		while (j < m && cb[j])
			j++;
		r.alen = i - r.a;
		r.blen = j - r.b;
		if (r.alen == 0 && r.blen == 0) {
			i++;
			j++;
			continue;
		}
		if (d->n == cap)
			d->region = xgrow(d->region, &cap, sizeof *d->region);
		d->region[d->n++] = r;
	}
}

static void
diff_ids(struct diff *d, const uint32_t *a, size_t n, const uint32_t *b,
    size_t m, size_t ids)
{
	struct search s = { .far = NULL };
	unsigned char *seen;
	int32_t *v, diagonals;
	size_t from = 0, an = n, bn = m;

	*d = (struct diff)DIFF_INIT;
	while (from < an && from < bn && a[from] == b[from])
		from++;
	while (from < an && from < bn && a[an - 1] == b[bn - 1])
		an--, bn--;
	if (from == an && from == bn)
		return;

	s.a.changed = xcalloc(n, sizeof *s.a.changed);
	s.b.changed = xcalloc(m, sizeof *s.b.changed);
	seen = xcalloc(ids, 1);
	for (size_t i = from; i < an; i++)
		seen[a[i]] |= 1;
	for (size_t i = from; i < bn; i++)
		seen[b[i]] |= 2;
	side_reduce(&s.a, a, from, an, seen, 2);
	side_reduce(&s.b, b, from, bn, seen, 1);
	free(seen);

	/* One more at each end for the values that never win. */
	diagonals = s.a.n + s.b.n + 3;
	v = xreallocarray(NULL, (size_t)diagonals, 2 * sizeof *v);
	s.far = v + s.b.n + 1;
	s.near = s.far + diagonals;
	s.limit = limit_for((int64_t)s.a.n + s.b.n);
	search(&s, (struct box){ 0, s.a.n, 0, s.b.n });

	regions_collect(d, s.a.changed, n, s.b.changed, m);
	slide_down(d, a, n, b, m);
	free(v);
	free(s.a.id);
	free(s.a.at);
	free(s.a.changed);
	free(s.b.id);
	free(s.b.at);
	free(s.b.changed);
}

int
diff_lines(const struct lines *a, const struct lines *b, struct diff *d)
{
	struct interner in;
	uint32_t *ia, *ib;

	if (a->n > LINES_MAX || b->n > LINES_MAX - a->n) {
		errno = EFBIG;
		return -1;
	}
	interner_init(&in);
	ia = intern_lines(&in, a);
	ib = intern_lines(&in, b);
	diff_ids(d, ia, a->n, ib, b->n, in.n);
	free(ia);
	free(ib);
	interner_release(&in);
	return 0;
}

void
diff_release(struct diff *d)
{
	free(d->region);
	*d = (struct diff)DIFF_INIT;
}

/* One text of a merge, and how far the sweep has come in it. */
struct version {
	struct lines lines;
	uint32_t *id;
	struct diff diff; /* from base; none for base itself */
	size_t next; /* first region not taken */
	size_t at; /* line that corresponds to the sweep's place in base */
	size_t taken; /* regions of the present group: next - taken … next-1 */
	size_t count; /* lines of the present group */
};

static void
version_init(struct version *v, struct interner *in, const struct buf *text)
{
	*v = (struct version){ .next = 0 };
	lines_split(&v->lines, text->data, text->len);
	v->id = intern_lines(in, &v->lines);
}

static void
version_release(struct version *v)
{
	lines_release(&v->lines);
	free(v->id);
	diff_release(&v->diff);
}

/* First base line of the next region, or SIZE_MAX. */
static size_t
version_ahead(const struct version *v)
{
	return v->next < v->diff.n ? v->diff.region[v->next].a : SIZE_MAX;
}

/*
 * True when the region just taken ends the text with a line that lacks its
 * LF: whatever followed it would become part of that line.
 */
static bool
version_is_open(const struct version *v)
{
	const struct diff_region *r = &v->diff.region[v->next - 1];
	size_t len = v->lines.start[v->lines.n];

	return r->blen > 0 && r->b + r->blen == v->lines.n &&
	    v->lines.text[len - 1] != '\n';
}

/* Takes the next region of v if it belongs to the group pos … *end-1. */
static bool
group_take(struct version *v, size_t pos, size_t *end, bool *open)
{
	size_t a = version_ahead(v);
	const struct diff_region *r;

	if (a == SIZE_MAX || (a >= *end && a != pos && !(*open && a == *end)))
		return false;
	r = &v->diff.region[v->next++];
	v->taken++;
	v->count += r->blen;
	v->count -= r->alen; /* the end of the group is added later */
	if (r->a + r->alen > *end)
		*end = r->a + r->alen;
	if (version_is_open(v))
		*open = true;
	return true;
}

static bool
same_lines(const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
	return n == m && (n == 0 || memcmp(a, b, n * sizeof *a) == 0);
}

static void
range_add(struct merge *m, size_t count, enum merge_origin origin, size_t head)
{
	struct merge_range *r = NULL;
	size_t start = 1;

	if (count == 0)
		return;
	if (m->nranges > 0) {
		r = &m->range[m->nranges - 1];
		start = r->start + r->count;
		if (r->origin == origin &&
		    (origin == ORIGIN_MINE || r->head + r->count == head)) {
			r->count += count;
			return;
		}
	}
	if (m->nranges == m->range_cap)
		m->range = xgrow(m->range, &m->range_cap, sizeof *m->range);
	m->range[m->nranges++] = (struct merge_range){
		.start = start, .count = count, .origin = origin, .head = head
	};
}

static void
text_add(struct merge *m, const struct lines *l, size_t from, size_t count)
{
	buf_add(&m->text, l->text + l->start[from],
	    l->start[from + count] - l->start[from]);
}

static void
emit_head(struct merge *m, const struct version *head)
{
	text_add(m, &head->lines, head->at, head->count);
	range_add(m, head->count, ORIGIN_HEAD, head->at + 1);
}

/* Over the group pos … end-1 head equals base, line for line. */
static void
emit_mine(struct merge *m, const struct version *head,
    const struct version *mine, size_t pos, size_t end)
{
	size_t at = pos;

	text_add(m, &mine->lines, mine->at, mine->count);
	for (size_t i = mine->next - mine->taken; i < mine->next; i++) {
		const struct diff_region *r = &mine->diff.region[i];

		range_add(m, r->a - at, ORIGIN_HEAD, head->at + (at - pos) + 1);
		range_add(m, r->blen, ORIGIN_MINE, 0);
		at = r->a + r->alen;
	}
	range_add(m, end - at, ORIGIN_HEAD, head->at + (at - pos) + 1);
}

static void
hunk_add(struct merge *m, size_t pos, size_t end, const struct version *head,
    const struct version *mine)
{
	if (m->nhunks == m->hunk_cap)
		m->hunk = xgrow(m->hunk, &m->hunk_cap, sizeof *m->hunk);
	m->hunk[m->nhunks++] = (struct merge_hunk){ .base = pos + 1,
		.base_count = end - pos,
		.head = head->at + 1,
		.head_count = head->count,
		.mine = mine->at + 1,
		.mine_count = mine->count };
}

/* Decides the group pos … end-1 by the whole text of each side over it. */
static void
group_decide(struct merge *m, const struct version *base,
    const struct version *head, const struct version *mine, size_t pos,
    size_t end)
{
	const uint32_t *b = base->id + pos;
	const uint32_t *h = head->id + head->at, *i = mine->id + mine->at;

	if (mine->taken == 0 || same_lines(h, head->count, i, mine->count) ||
	    same_lines(i, mine->count, b, end - pos))
		emit_head(m, head);
	else if (head->taken == 0 || same_lines(h, head->count, b, end - pos))
		emit_mine(m, head, mine, pos, end);
	else
		hunk_add(m, pos, end, head, mine);
}

static void
sweep(struct merge *m, const struct version *base, struct version *head,
    struct version *mine)
{
	size_t pos = 0;

	for (;;) {
		size_t a = version_ahead(head), c = version_ahead(mine);
		size_t start = a < c ? a : c, end;
		bool open = false;

		if (start == SIZE_MAX)
			start = base->lines.n;
		head->count = start - pos;
		emit_head(m, head);
		head->at += start - pos;
		mine->at += start - pos;
		pos = end = start;
		if (a == SIZE_MAX && c == SIZE_MAX)
			return;

		head->taken = head->count = 0;
		mine->taken = mine->count = 0;
		while (group_take(head, pos, &end, &open) ||
		    group_take(mine, pos, &end, &open))
			continue;
		head->count += end - pos;
		mine->count += end - pos;
		group_decide(m, base, head, mine, pos, end);
		head->at += head->count;
		mine->at += mine->count;
		pos = end;
	}
}

int
merge3(struct merge *m, const struct buf *base, const struct buf *head,
    const struct buf *mine)
{
	struct version b, h, i;
	struct interner in;

	if (base->len > MERGE_TEXT_MAX || head->len > MERGE_TEXT_MAX ||
	    mine->len > MERGE_TEXT_MAX) {
		errno = EFBIG;
		return -1;
	}
	*m = (struct merge)MERGE_INIT;
	buf_reserve(&m->text, head->len > mine->len ? head->len : mine->len);
	interner_init(&in);
	version_init(&b, &in, base);
	version_init(&h, &in, head);
	version_init(&i, &in, mine);
	diff_ids(&h.diff, b.id, b.lines.n, h.id, h.lines.n, in.n);
	diff_ids(&i.diff, b.id, b.lines.n, i.id, i.lines.n, in.n);
	sweep(m, &b, &h, &i);
	if (m->nhunks > 0) {
		buf_release(&m->text);
		free(m->range);
		m->range = NULL;
		m->nranges = m->range_cap = 0;
	}
	version_release(&b);
	version_release(&h);
	version_release(&i);
	interner_release(&in);
	return 0;
}

void
merge_release(struct merge *m)
{
	buf_release(&m->text);
	free(m->range);
	free(m->hunk);
	*m = (struct merge)MERGE_INIT;
}
