/* SPDX-License-Identifier: MIT */
/*
 * Memory that is there. The one module that ends the program by itself: a
 * small tool cannot go on without memory (exit 111).
 */
#ifndef SB_MEM_H
#define SB_MEM_H

#include <stdarg.h>
#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);

/* Array form, overflow-checked. Contents beyond the old size are undefined. */
void *xreallocarray(void *p, size_t n, size_t size);

/*
 * Makes room for one more element in an array of *cap, at least doubling it.
 * Usage: if (n == cap) v = xgrow(v, &cap, sizeof *v);
 */
void *xgrow(void *p, size_t *cap, size_t size);

char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);

/* Caller frees. */
__attribute__((format(printf, 1, 2))) char *xasprintf(const char *fmt, ...);
__attribute__((format(printf, 1, 0))) char *xvasprintf(
    const char *fmt, va_list ap);

#endif
