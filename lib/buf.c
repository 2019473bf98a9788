/* SPDX-License-Identifier: MIT */
#include "buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "mem.h"

void
buf_reserve(struct buf *b, size_t n)
{
	size_t want;

	if (n > SIZE_MAX / 2 - b->len - 1)
		die(EXIT_SYS, "out of memory");
	want = b->len + n + 1;
	if (want <= b->cap)
		return;
	if (want < b->cap * 2)
		want = b->cap * 2;
	if (want < 64)
		want = 64;
	b->data = xreallocarray(b->data, want, 1);
	b->cap = want;
	b->data[b->len] = '\0';
}

void
buf_add(struct buf *b, const void *p, size_t n)
{
	buf_reserve(b, n);
	if (n > 0)
		memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void
buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void
buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void
buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		die(EXIT_BUG, "vsnprintf refused a format");
	buf_reserve(b, (size_t)n);
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

int
buf_failed(struct buf *b, const char *fmt, ...)
{
	int err = errno;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	buf_cut(b, 0);
	buf_addf(b, "%s: %s", text, strerror(err));
	errno = err;
	return -1;
}

void
buf_cut(struct buf *b, size_t len)
{
	b->len = len;
	if (b->data)
		b->data[len] = '\0';
}

const char *
buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

bool
buf_equal(const struct buf *a, const struct buf *b)
{
	return a->len == b->len &&
	    (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

char *
buf_steal(struct buf *b)
{
	char *s;

	buf_reserve(b, 0);
	s = b->data;
	*b = (struct buf)BUF_INIT;
	return s;
}

void
buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf)BUF_INIT;
}
