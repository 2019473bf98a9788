/* SPDX-License-Identifier: MIT */
/*
 * A strict scanner of JSON texts (RFC 8259): UTF-8, depth at most 128, no
 * trailing bytes, numbers as the grammar has them. It validates everything
 * and gives the spans of members as bytes of the text; it builds no tree.
 * Duplicate keys: the last one counts.
 */
#ifndef SB_JSON_H
#define SB_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

#define JSON_DEPTH_MAX 128

struct span {
	const char *p; /* into the text; NULL when absent */
	size_t n;
};

/*
 * Is the whole text one JSON value? On false *why (if not NULL) is a static
 * text and *at the byte offset.
 */
bool json_is_valid(const char *p, size_t n, const char **why, size_t *at);

/* On a text that json_is_valid accepted, or a span of it: */

/* Member of an object by its decoded name; absent also when not an object. */
struct span json_member(struct span object, const char *name);

/*
 * Iterates an object: *pos starts at 0; key (emptied first) gets the decoded
 * name. False at the end or when no object. One pass, also over large texts.
 */
bool json_pair(
    struct span object, size_t *pos, struct buf *key, struct span *value);

/* Iterates an array: *pos starts at 0; false at the end or when no array. */
bool json_element(struct span array, size_t *pos, struct span *out);

/*
 * Decodes a string; false when the span is no string. NUL inside is kept, so
 * compare out->len with strlen where a C string is meant.
 */
bool json_string(struct span s, struct buf *out);

/* Is it this text, byte for byte: a word as null, or a token? */
bool json_is(struct span s, const char *text);

/* Appends it without the blanks between tokens: one line, no digit changed. */
void json_compact(struct span s, struct buf *out);

/* A non-negative integer token (no sign, fraction or exponent). */
bool json_uint(struct span s, uint64_t *out);

#endif
