/* SPDX-License-Identifier: MIT */
/* Growing bytes, always followed by a NUL that is not counted. */
#ifndef SB_BUF_H
#define SB_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; /* never NULL after the first add; may be NULL before */
	size_t len;
	size_t cap; /* private */
};

#define BUF_INIT { .data = NULL }

/* Makes room for n more bytes and the NUL. */
void buf_reserve(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
__attribute__((format(printf, 2, 3))) void buf_addf(
    struct buf *b, const char *fmt, ...);

/*
 * Replaces the bytes by what was impossible and the text of errno, which stays
 * as it is. Always -1.
 */
__attribute__((format(printf, 2, 3))) int buf_failed(
    struct buf *b, const char *fmt, ...);

/* Shortens to len bytes; len must not exceed b->len. */
void buf_cut(struct buf *b, size_t len);

/* b->data as a string, "" when nothing was ever added. Borrowed. */
const char *buf_str(const struct buf *b);

/* Same length, same bytes. */
bool buf_equal(const struct buf *a, const struct buf *b);

/* Gives the bytes to the caller, who frees; b is empty afterwards. */
char *buf_steal(struct buf *b);
void buf_release(struct buf *b);

#endif
