/* SPDX-License-Identifier: MIT */
/* For tests of rows: what a model said, as text, and chance. */
#ifndef SB_ROWTEST_H
#define SB_ROWTEST_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "rows.h"

/* A literal with its length. */
#define S(s) s, sizeof s - 1

static uint64_t chance_state = 1;

/* xorshift64*, the same everywhere for one seed. */
__attribute__((unused)) static unsigned
chance(unsigned n)
{
	chance_state ^= chance_state >> 12;
	chance_state ^= chance_state << 25;
	chance_state ^= chance_state >> 27;
	return (unsigned)(chance_state * UINT64_C(2685821657736338717) >> 33) %
	    n;
}

/* A rows_fn: adds the row and "\n", or "\\\n" when it is wrapped. */
__attribute__((unused)) static void
collect(const char *text, size_t n, unsigned flags, void *arg)
{
	buf_add(arg, text, n);
	if ((flags & ROW_WRAPPED) != 0)
		buf_addc(arg, '\\');
	buf_addc(arg, '\n');
}

/* Prints bytes as a comment of TAP. */
__attribute__((unused)) static void
show(const char *what, const char *p, size_t n)
{
	size_t i;

	printf("# %s: ", what);
	for (i = 0; i < n && i < 4000; i++)
		if (p[i] >= ' ' && p[i] < 0x7f && p[i] != '\\')
			(void)putchar(p[i]);
		else
			printf("\\%03o", (unsigned char)p[i]);
	printf("\n");
}

/* Are the bytes of b those n? Says so if not. */
__attribute__((unused)) static bool
is(const struct buf *b, const char *want, size_t n, const char *what)
{
	if (b->len == n && memcmp(buf_str(b), want, n) == 0)
		return true;
	printf("# %s\n", what);
	show("want", want, n);
	show("got ", buf_str(b), b->len);
	return false;
}

#endif
