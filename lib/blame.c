/* SPDX-License-Identifier: MIT */
#include "blame.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "io.h"
#include "mem.h"
#include "num.h"
#include "out.h"
#include "path.h"

enum {
	LINES_MAX = 1 << 30 /* of one text */
};

/* ---- owners ---- */

bool
owner_is_valid(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n = strlen(s);

	if (n == 0 || n > OWNER_MAX || !utf8_is_valid(s, n))
		return false;
	for (; *p != '\0'; p++)
		if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
			return false;
	return true;
}

static void
push(struct owners *o, size_t count, const char *owner)
{
	if (o->n == o->cap)
		o->v = xgrow(o->v, &o->cap, sizeof *o->v);
	o->v[o->n++] =
	    (struct owner_range){ .count = count, .owner = xstrdup(owner) };
}

void
owners_add(struct owners *o, size_t count, const char *owner)
{
	if (count == 0)
		return;
	if (o->n > 0 && strcmp(o->v[o->n - 1].owner, owner) == 0)
		o->v[o->n - 1].count += count;
	else
		push(o, count, owner);
}

void
owners_set_whole(struct owners *o, const char *owner)
{
	struct owners whole = { .whole = true };

	push(&whole, 0, owner);
	owners_release(o);
	*o = whole;
}

size_t
owners_lines(const struct owners *o)
{
	size_t sum = 0;

	for (size_t i = 0; i < o->n; i++)
		sum += o->v[i].count;
	return sum;
}

void
owners_release(struct owners *o)
{
	for (size_t i = 0; i < o->n; i++)
		free(o->v[i].owner);
	free(o->v);
	*o = (struct owners)OWNERS_INIT;
}

/* A range of head, and the line (from 1) that it starts at. */
struct place {
	size_t i, start;
};

/* Adds count lines of head from line on, as head knows them. */
static void
add_head(struct owners *out, const struct owners *head, struct place *at,
    size_t line, size_t count)
{
	if (line < at->start)
		*at = (struct place){ .start = 1 };
	while (count > 0 && at->i < head->n) {
		size_t end = at->start + head->v[at->i].count, some;

		if (line >= end) {
			at->start = end;
			at->i++;
			continue;
		}
		some = end - line < count ? end - line : count;
		owners_add(out, some, head->v[at->i].owner);
		line += some;
		count -= some;
	}
	owners_add(out, count, OWNER_UNKNOWN);
}

void
owners_map(const struct owners *head, const struct merge_range *r, size_t n,
    const char *mine, struct owners *out)
{
	struct place at = { .start = 1 };

	for (size_t i = 0; i < n; i++) {
		if (r[i].origin == ORIGIN_MINE)
			owners_add(out, r[i].count, mine);
		else if (!head)
			owners_add(out, r[i].count, OWNER_ORIGINAL);
		else if (head->whole)
			owners_add(out, r[i].count, head->v[0].owner);
		else
			add_head(out, head, &at, r[i].head, r[i].count);
	}
	if (out->n == 0)
		owners_set_whole(out, mine);
}

/* ---- the file ---- */

void
blame_format(struct buf *out, const char *path, const struct owners *o)
{
	if (o->whole)
		buf_addf(out, "* %s", o->v[0].owner);
	else
		for (size_t i = 0; i < o->n; i++)
			buf_addf(out, "%s%zu %s", i ? "\n" : "", o->v[i].count,
			    o->v[i].owner);
	buf_addc(out, '\t');
	buf_adds(out, path);
	buf_addc(out, '\0');
}

void
blame_stop(struct buf *out)
{
	buf_addc(out, '\0');
}

/* One record of a blame file: [p, tab) are its ranges, the path follows. */
struct record {
	const char *p, *tab;
	const char *next; /* the record after it */
};

/* Cuts the record at p out of [p, end), which ends in NUL. */
static bool
record_at(struct record *r, const char *p, const char *end)
{
	const char *nul = memchr(p, '\0', (size_t)(end - p));

	r->p = p;
	r->next = nul + 1;
	r->tab = memchr(p, '\t', (size_t)(nul - p));
	return r->tab && path_is_valid(r->tab + 1);
}

static bool
parse_range(char *s, struct owners *o, size_t *lines)
{
	char *space = strchr(s, ' ');
	uint64_t count;

	if (!space || *s == '0')
		return false;
	*space = '\0';
	if (!owner_is_valid(space + 1))
		return false;
	if (strcmp(s, "*") == 0) {
		o->whole = true;
		push(o, 0, space + 1);
		return true;
	}
	if (!num_dec(s, 1, LINES_MAX - *lines, &count) ||
	    (o->n > 0 && strcmp(o->v[o->n - 1].owner, space + 1) == 0))
		return false;
	*lines += (size_t)count;
	push(o, (size_t)count, space + 1);
	return true;
}

static bool
parse_ranges(const struct record *r, struct owners *o)
{
	char *text = xstrndup(r->p, (size_t)(r->tab - r->p)), *end;
	bool good = true;
	size_t lines = 0;

	for (char *at = text; good && at; at = end) {
		end = strchr(at, '\n');
		if (end)
			*end++ = '\0';
		/* What is whole stands alone. */
		good = !o->whole && parse_range(at, o, &lines) &&
		    !(o->whole && (end || o->n > 1));
	}
	free(text);
	if (!good)
		owners_release(o);
	return good;
}

/* Does the text end in a full stop? */
static bool
is_closed(const struct buf *text)
{
	size_t n = text->len;

	return n > 0 && text->data[n - 1] == '\0' &&
	    (n == 1 || text->data[n - 2] == '\0');
}

int
blame_parse(const struct buf *text,
    int (*fn)(void *arg, const char *path, const struct owners *o), void *arg,
    const char **why)
{
	const char *at = text->data, *last = NULL, *flaw = NULL, *stop;
	struct record r;
	int rc = 0;

	if (!is_closed(text)) {
		flaw = "it has no full stop";
		goto bad;
	}
	for (stop = at + text->len - 1; at < stop; at = r.next) {
		struct owners o = OWNERS_INIT;

		if (!record_at(&r, at, stop))
			flaw = "an entry has no path";
		else if (last && path_cmp(last, r.tab + 1) >= 0)
			flaw = "paths out of order or twice";
		else if (!parse_ranges(&r, &o))
			flaw = "an entry has no good ranges";
		if (flaw)
			goto bad;
		last = r.tab + 1;
		rc = fn(arg, last, &o);
		owners_release(&o);
		if (rc != 0)
			return rc;
	}
	return 0;
bad:
	if (why)
		*why = flaw;
	errno = EINVAL;
	return -1;
}

/*
 * Finds the entry of path by bisection: 1, 0 when there is none, -1 when what
 * was looked at is no entry. The text is_closed.
 */
static int
find(const struct buf *text, const char *path, struct owners *out)
{
	const char *lo = text->data, *hi = lo + text->len - 1;
	struct record r;

	while (lo < hi) {
		const char *mid = lo + (hi - lo) / 2;
		const char *nul = memrchr(lo, '\0', (size_t)(mid - lo));
		int order;

		if (!record_at(&r, nul ? nul + 1 : lo, hi))
			goto bad;
		order = path_cmp(path, r.tab + 1);
		if (order == 0) {
			if (!parse_ranges(&r, out))
				goto bad;
			return 1;
		}
		if (order < 0)
			hi = r.p;
		else
			lo = r.next;
	}
	return 0;
bad:
	errno = EINVAL;
	return -1;
}

/* ---- looking up ---- */

struct blame_file {
	bool loaded, missing;
	struct buf text;
};

struct blame {
	int stackfd;
	struct view *view;
	struct blame_file *file; /* of each layer, up to n */
	size_t n;
	struct buf name; /* of the file looked at last */
	bool at_fault;
};

struct blame *
blame_open(int stackfd, struct view *v)
{
	struct blame *b = xcalloc(1, sizeof *b);

	b->stackfd = stackfd;
	b->view = v;
	return b;
}

void
blame_close(struct blame *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n; i++)
		buf_release(&b->file[i].text);
	free(b->file);
	buf_release(&b->name);
	free(b);
}

const char *
blame_where(const struct blame *b)
{
	return b->at_fault ? buf_str(&b->name) : NULL;
}

/* The file of a layer; NULL with errno. */
static const struct blame_file *
load(struct blame *b, size_t layer)
{
	struct blame_file *f;
	int fd;

	if (layer >= b->n) {
		size_t n = layer + 1;

		b->file = xreallocarray(b->file, n, sizeof *b->file);
		memset(b->file + b->n, 0, (n - b->n) * sizeof *b->file);
		b->n = n;
	}
	f = &b->file[layer];
	buf_cut(&b->name, 0);
	buf_addf(&b->name, "meta/%s.blame", view_layer_id(b->view, layer));
	if (f->loaded)
		return f;
	fd = path_open(b->stackfd, b->name.data, O_RDONLY | O_NONBLOCK, 0);
	f->missing = fd == -1 && errno == ENOENT;
	if (f->missing)
		f->loaded = true;
	else if (fd != -1 && io_read_buf(fd, &f->text, SIZE_MAX / 4) == 0) {
		f->loaded = is_closed(&f->text);
		errno = EINVAL;
	}
	io_drop(&fd);
	b->at_fault = !f->loaded;
	if (f->loaded)
		return f;
	buf_release(&f->text);
	return NULL;
}

enum {
	KNOWN = 1,
	ORIGINAL
};

struct search {
	struct blame *blame;
	const char *path;
	struct owners *out;
	bool published; /* some layer that is no base has the file */
};

static int
look(void *arg, size_t layer, const struct node *n)
{
	struct search *s = arg;
	const struct blame_file *f;
	int rc;

	if (n->kind != NODE_FILE)
		return 0;
	if (view_layer_id(s->blame->view, layer)[0] == 'B')
		return ORIGINAL;
	s->published = true;
	f = load(s->blame, layer);
	if (!f)
		return -1;
	if (f->missing) {
		owners_set_whole(s->out, OWNER_UNKNOWN);
		return KNOWN;
	}
	rc = find(&f->text, s->path, s->out);
	s->blame->at_fault = rc == -1;
	return rc == 1 ? KNOWN : rc;
}

int
blame_get(struct blame *b, const char *path, struct owners *out)
{
	struct search s = { .blame = b, .path = path, .out = out };
	int rc;

	b->at_fault = false;
	rc = view_layers(b->view, path, look, &s);
	if (rc == 0 && s.published) {
		owners_set_whole(out, OWNER_UNKNOWN);
		return 1;
	}
	return rc == ORIGINAL ? 0 : rc;
}

int
lines_count(int fd, uint64_t *n)
{
	static char data[1 << 16];
	char last = '\n';
	ssize_t r;

	*n = 0;
	for (;;) {
		const char *at = data, *end;

		r = io_read_some(fd, data, sizeof data);
		if (r <= 0)
			break;
		end = data + r;
		for (;;) {
			at = memchr(at, '\n', (size_t)(end - at));
			if (!at)
				break;
			at++;
			++*n;
		}
		last = end[-1];
	}
	*n += last != '\n';
	return r == -1 ? -1 : 0;
}

/* ---- a new text ---- */

int
blame_text(struct blame *b, const char *path, const struct buf *head,
    const struct buf *text, const struct merge *m, const char *mine,
    struct owners *out)
{
	struct owners old = OWNERS_INIT;
	struct merge own = MERGE_INIT;
	struct lines l;
	int known, rc = -1;

	if (!head) {
		lines_split(&l, buf_str(text), text->len);
		owners_add(out, l.n, mine);
		lines_release(&l);
		return 0;
	}
	known = blame_get(b, path, &old);
	if (known == -1)
		return -1;
	if (!m) {
		if (merge3(&own, head, head, text) == -1)
			goto out;
		m = &own;
	}
	owners_map(known ? &old : NULL, m->range, m->nranges, mine, out);
	rc = 0;
out:
	owners_release(&old);
	merge_release(&own);
	return rc;
}
