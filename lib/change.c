/* SPDX-License-Identifier: MIT */
#include "change.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "mem.h"
#include "num.h"
#include "path.h"

int
path_cmp(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (*a == '\0' || *b == '\0')
		return *a == '\0' ? -1 : 1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

void
change_write(FILE *out, const struct change *c)
{
	char size[24] = "-";

	if (c->kind == CHANGE_WRITE)
		snprintf(size, sizeof size, "%jd", (intmax_t)c->size);
	fprintf(out, "%c %04o %s %s %c\t%s", (char)c->kind, c->mode, size,
	    c->from, c->route, c->path);
	putc('\0', out);
	if (c->kind == CHANGE_SYMLINK) {
		fputs(c->target, out);
		putc('\0', out);
	}
}

void
change_stop(FILE *out)
{
	putc('\0', out);
}

static enum rec_kind
bad(struct rec *r, const char *what)
{
	snprintf(r->message, sizeof r->message, "%s", what);
	return REC_BAD;
}

/* Cuts the word at *p, which must end in end; NULL when it does not. */
static char *
word(char **p, char end)
{
	char *w = *p, *e = strchr(w, end);

	if (!e || e == w)
		return NULL;
	*e = '\0';
	*p = e + 1;
	return w;
}

static bool
parse_size(const char *s, enum change_kind kind, off_t *out)
{
	uint64_t v = 0;

	if (kind != CHANGE_WRITE)
		return strcmp(s, "-") == 0;
	if (!num_dec(s, 0, INT64_MAX, &v))
		return false;
	*out = (off_t)v;
	return true;
}

static bool
parse_head(char *p, struct change *c)
{
	char *kind = word(&p, ' '), *mode = word(&p, ' ');
	char *size = word(&p, ' '), *from = word(&p, ' ');
	char *route = p;

	if (!kind || !mode || !size || !from)
		return false;
	if (strlen(kind) != 1 || !strchr("wdxols", kind[0]))
		return false;
	c->kind = (enum change_kind)kind[0];
	if (!num_mode(mode, &c->mode) || !parse_size(size, c->kind, &c->size))
		return false;
	if (strcmp(from, "-") != 0 && !id_is_valid(from))
		return false;
	memcpy(c->from, from, strlen(from) + 1);
	if (strlen(route) != 1 || !strchr("sig-", route[0]))
		return false;
	c->route = route[0];
	return true;
}

static bool
is_root(const struct change *c, const char *path)
{
	return c->kind == CHANGE_DIR && strcmp(path, CHANGE_ROOT) == 0;
}

enum rec_kind
change_read(struct rec *r, struct change *c, const char *last)
{
	enum rec_kind kind;
	char *tab;

	memset(c, 0, sizeof *c);
	kind = rec_next(r);
	if (kind != REC_ITEM)
		return kind;
	tab = strchr(r->item, '\t');
	if (!tab)
		return bad(r, "not a change record (no TAB)");
	*tab = '\0';
	if (!parse_head(r->item, c))
		return bad(r, "not a change record (bad head)");
	if (!path_is_valid(tab + 1) && (last || !is_root(c, tab + 1)))
		return bad(r, "not a relative path");
	/* The root stands first, whatever the bytes of names say. */
	if (last && strcmp(last, CHANGE_ROOT) != 0 &&
	    path_cmp(last, tab + 1) >= 0)
		return bad(r, "paths out of order or twice");
	c->path = xstrdup(tab + 1);
	if (c->kind != CHANGE_SYMLINK)
		return REC_ITEM;
	kind = rec_next_raw(r);
	if (kind != REC_ITEM) {
		change_release(c);
		return kind;
	}
	c->target = xstrdup(r->item);
	return REC_ITEM;
}

void
change_release(struct change *c)
{
	free(c->path);
	free(c->target);
	c->path = c->target = NULL;
}

void
changes_add(struct changes *cs, const struct change *c)
{
	if (cs->n == cs->cap)
		cs->v = xgrow(cs->v, &cs->cap, sizeof *cs->v);
	cs->v[cs->n++] = *c;
}

void
changes_read_stdin(struct changes *cs, int repeat)
{
	const char *last = NULL;
	enum rec_kind kind;
	struct change c;
	struct rec r;

	rec_init(&r, stdin, '\0');
	for (;;) {
		kind = change_read(&r, &c, last);
		if (kind == REC_STOP)
			break;
		if (kind != REC_ITEM)
			rec_fail(&r, kind, repeat);
		changes_add(cs, &c);
		last = c.path;
	}
	rec_release(&r);
}

void
changes_release(struct changes *cs)
{
	for (size_t i = 0; i < cs->n; i++)
		change_release(&cs->v[i]);
	free(cs->v);
	*cs = (struct changes)CHANGES_INIT;
}
