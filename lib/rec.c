/* SPDX-License-Identifier: MIT */
#include "rec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "mem.h"
#include "num.h"
#include "path.h"

void
rec_init(struct rec *r, FILE *in, int end)
{
	memset(r, 0, sizeof *r);
	r->in = in;
	r->end = end;
}

void
rec_release(struct rec *r)
{
	free(r->item);
	r->item = NULL;
}

static enum rec_kind
bad(struct rec *r, const char *what)
{
	snprintf(r->message, sizeof r->message, "%s", what);
	return REC_BAD;
}

/* "! code message" */
static enum rec_kind
refusal(struct rec *r)
{
	char *code = r->item + 2;
	char *space = strchr(code, ' ');
	uint64_t v;

	if (!space)
		return bad(r, "refusal without a message");
	*space = '\0';
	if (!num_dec(code, 1, 127, &v))
		return bad(r, "refusal without a code");
	r->code = (int)v;
	snprintf(r->message, sizeof r->message, "%s", space + 1);
	return REC_REFUSED;
}

/* Reads to the separator: REC_ITEM also when nothing is before it. */
static enum rec_kind
read_item(struct rec *r)
{
	int c;

	r->len = 0;
	for (;;) {
		c = getc_unlocked(r->in);
		if (c == EOF)
			return ferror(r->in) ? REC_ERROR : REC_CUT;
		if (r->len == r->cap)
			r->item = xgrow(r->item, &r->cap, 1);
		if (c == r->end)
			break;
		if (r->len == REC_MAX)
			return bad(r, "record longer than 65536 bytes");
		r->item[r->len++] = (char)c;
	}
	r->item[r->len] = '\0';
	return REC_ITEM;
}

enum rec_kind
rec_next(struct rec *r)
{
	enum rec_kind kind = read_item(r);

	if (kind != REC_ITEM)
		return kind;
	if (r->len == 0) {
		if (getc_unlocked(r->in) != EOF)
			return bad(r, "bytes after the full stop");
		return ferror(r->in) ? REC_ERROR : REC_STOP;
	}
	if (r->len >= 2 && r->item[0] == '!' && r->item[1] == ' ')
		return refusal(r);
	return REC_ITEM;
}

enum rec_kind
rec_next_raw(struct rec *r)
{
	enum rec_kind kind = read_item(r);

	if (kind == REC_ITEM && r->len == 0)
		return bad(r, "empty field");
	return kind;
}

void
rec_refuse(int end, int code, const char *message)
{
	printf("! %d %s", code, message);
	putchar(end);
	if (fflush(stdout) != 0)
		exit(EXIT_SYS);
}

void
rec_fail(struct rec *r, enum rec_kind kind, int repeat)
{
	switch (kind) {
	case REC_REFUSED:
		if (repeat)
			rec_refuse(r->end, r->code, r->message);
		exit(r->code);
	case REC_CUT:
		die(EXIT_SYS, "input ended early: no full stop");
	case REC_BAD:
		die(EXIT_USAGE, "malformed input: %s", r->message);
	case REC_ERROR:
		die_sys("unable to read input");
	case REC_ITEM:
	case REC_STOP:
		break;
	}
	die(EXIT_BUG, "rec_fail without a failure");
}

void
ids_add(struct ids *ids, const char *id)
{
	if (ids->n == ids->cap)
		ids->id = xgrow(ids->id, &ids->cap, sizeof *ids->id);
	ids->id[ids->n++] = xstrdup(id);
}

int
ids_have(const struct ids *ids, const char *id)
{
	for (size_t i = 0; i < ids->n; i++)
		if (strcmp(ids->id[i], id) == 0)
			return 1;
	return 0;
}

static void
read_all(struct ids *ids, FILE *in, int repeat)
{
	enum rec_kind kind;
	struct rec r;

	rec_init(&r, in, '\n');
	for (;;) {
		kind = rec_next(&r);
		if (kind == REC_STOP)
			break;
		if (kind != REC_ITEM)
			rec_fail(&r, kind, repeat);
		if (strlen(r.item) != r.len || !id_is_valid(r.item))
			die(EXIT_USAGE, "not an id: %s", r.item);
		if (ids_have(ids, r.item))
			die(EXIT_USAGE, "id given twice: %s", r.item);
		ids_add(ids, r.item);
	}
	rec_release(&r);
}

void
ids_read_stdin(struct ids *ids, int repeat)
{
	read_all(ids, stdin, repeat);
}

void
ids_read_file(struct ids *ids, const char *path)
{
	FILE *in = fopen(path, "re");

	if (!in)
		die_sys("unable to open %s", path);
	read_all(ids, in, 0);
	fclose(in);
}

void
ids_print(const struct ids *ids)
{
	for (size_t i = 0; i < ids->n; i++)
		puts(ids->id[i]);
	putchar('\n');
}
