/* SPDX-License-Identifier: MIT */
/*
 * Writing JSON (RFC 8259) into a buffer. Strings must be UTF-8; a path that is
 * not goes out as "NAME_b64" instead of "NAME", never guessed. Commas are
 * placed by looking at the last byte, so members are simply added in order.
 */
#ifndef SB_OUT_H
#define SB_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/* RFC 3629: no surrogates, no overlong forms, at most U+10FFFF. */
bool utf8_is_valid(const void *p, size_t n);

/* A quoted string of n bytes, which must be UTF-8. */
void out_string(struct buf *b, const char *s, size_t n);

/*
 * How many of n bytes, whole characters, out_string can take when it may write
 * *room bytes between the quotes; these are taken from *room.
 */
size_t out_fit(const char *s, size_t n, size_t *room);

/* ASCII only: everything above 0x7e as \uXXXX, as manifests are hashed. */
void out_string_ascii(struct buf *b, const char *s, size_t n);

/* "," when b does not end in one of {[:, and "name": */
void out_key(struct buf *b, const char *name);
void out_str(struct buf *b, const char *name, const char *value);

/* As out_str, of what may be no UTF-8: each byte that is none is U+FFFD. */
void out_text(struct buf *b, const char *name, const char *value);
void out_num(struct buf *b, const char *name, uint64_t value);
void out_bool(struct buf *b, const char *name, bool value);
void out_null(struct buf *b, const char *name);

/* The time of day in UTC, to milliseconds: "2026-01-31T23:59:59.123Z". */
void out_now(struct buf *b, const char *name);

/* "NAME_b64":"…" (RFC 4648) */
void out_base64(struct buf *b, const char *name, const void *p, size_t n);

/* "name":"…" when path is UTF-8, else "name_b64":"…" (RFC 4648). */
void out_path(struct buf *b, const char *name, const char *path);

#endif
