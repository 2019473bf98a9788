/* SPDX-License-Identifier: MIT */
/* Streams: items, the full stop, refusals, and everything else. */
#include "rec.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

#include "tap.h"

static FILE *
stream(const void *p, size_t n)
{
	FILE *f = tmpfile();

	if (!f || fwrite(p, 1, n, f) != n || fflush(f) != 0)
		exit(111);
	rewind(f);
	return f;
}

/* Reads n bytes to the end; counts the items. */
static enum rec_kind
last(const void *p, size_t n, int end, size_t *items, struct rec *r)
{
	enum rec_kind kind;
	FILE *f = stream(p, n);

	*items = 0;
	rec_init(r, f, end);
	while ((kind = rec_next(r)) == REC_ITEM)
		++*items;
	rec_release(r);
	fclose(f);
	return kind;
}

static void
test_endings(void)
{
	static const struct {
		const char *text, *what;
		size_t n, items;
		int end;
		enum rec_kind kind;
	} v[] = {
#define T(s) s, s, sizeof s - 1
		{ T("\n"), 0, '\n', REC_STOP },
		{ T("a\nb\n\n"), 2, '\n', REC_STOP },
		{ T(""), 0, '\n', REC_CUT },
		{ T("a"), 0, '\n', REC_CUT },
		{ T("a\n"), 1, '\n', REC_CUT },
		{ T("a\n\nb"), 1, '\n', REC_BAD },
		{ T("\n\n"), 0, '\n', REC_BAD },
		{ T("a\n! 2 conflict: x\n"), 1, '\n', REC_REFUSED },
		{ T("! 128 x\n"), 0, '\n', REC_BAD },
		{ T("! 0 x\n"), 0, '\n', REC_BAD },
		{ T("! x y\n"), 0, '\n', REC_BAD },
		{ T("! 2\n"), 0, '\n', REC_BAD },
		{ T("!2 x\n\n"), 1, '\n', REC_STOP },
		{ T("a\n\0"
		    "b\0\0"),
		    2, '\0', REC_STOP },
		{ T("a\0! 2 x\0"), 1, '\0', REC_REFUSED },
		{ T("a\0! 2 x"), 1, '\0', REC_CUT },
		{ T("\0"), 0, '\0', REC_STOP },
#undef T
	};
	struct rec r;
	size_t n;

	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		ok(last(v[i].text, v[i].n, v[i].end, &n, &r) == v[i].kind &&
			n == v[i].items,
		    "items and how they end");
	last("! 99 no: a b\n", 13, '\n', &n, &r);
	ok(r.code == 99 && strcmp(r.message, "no: a b") == 0,
	    "a refusal has its code and message");
}

static void
test_limit(void)
{
	char *p = xmalloc(REC_MAX + 3);
	struct rec r;
	size_t n;

	memset(p, 'x', REC_MAX + 1);
	p[REC_MAX] = '\n';
	p[REC_MAX + 1] = '\n';
	ok(last(p, REC_MAX + 2, '\n', &n, &r) == REC_STOP && n == 1,
	    "a record of 65536 bytes");
	p[REC_MAX] = 'x';
	p[REC_MAX + 1] = p[REC_MAX + 2] = '\n';
	ok(last(p, REC_MAX + 3, '\n', &n, &r) == REC_BAD,
	    "a record of 65537 bytes");
	free(p);
}

static void
test_raw(void)
{
	FILE *f = stream("! 2 x\0\0", 7);
	struct rec r;

	rec_init(&r, f, '\0');
	ok(rec_next_raw(&r) == REC_ITEM && strcmp(r.item, "! 2 x") == 0,
	    "a second field is never a refusal");
	ok(rec_next_raw(&r) == REC_BAD, "a second field is not empty");
	rec_release(&r);
	fclose(f);
}

int
main(void)
{
	test_endings();
	test_limit();
	test_raw();
	return done();
}
