/* SPDX-License-Identifier: MIT */
#include "mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"

static void *
check(void *p)
{
	if (!p)
		die(EXIT_SYS, "out of memory");
	return p;
}

void *
xmalloc(size_t size)
{
	return check(malloc(size ? size : 1));
}

void *
xcalloc(size_t n, size_t size)
{
	return check(calloc(n ? n : 1, size ? size : 1));
}

void *
xreallocarray(void *p, size_t n, size_t size)
{
	return check(reallocarray(p, n ? n : 1, size ? size : 1));
}

void *
xgrow(void *p, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;

	p = xreallocarray(p, want, size);
	*cap = want;
	return p;
}

char *
xstrdup(const char *s)
{
	return check(strdup(s));
}

char *
xstrndup(const char *s, size_t n)
{
	return check(strndup(s, n));
}

char *
xvasprintf(const char *fmt, va_list ap)
{
	char *s;

	if (vasprintf(&s, fmt, ap) == -1)
		die(EXIT_SYS, "out of memory");
	return s;
}

char *
xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}
