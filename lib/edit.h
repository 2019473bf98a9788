/* SPDX-License-Identifier: MIT */
/*
 * Replacing strings in a text whose lines may end in LF, CRLF or CR. Strings
 * are looked for as if all of them were LF; each line that is not replaced
 * keeps its own end, and so does one that takes the place of another. A line
 * that is added gets the end that most lines of the text have. Pure.
 */
#ifndef SB_EDIT_H
#define SB_EDIT_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

struct document {
	struct buf text; /* with LF as the only end of a line */
	/* private */
	struct buf ends; /* of each LF, what it stands for */
	char usual;
};

#define DOCUMENT_INIT { .usual = 0 }

/* Into a document that is new or released. */
void document_load(struct document *d, const void *p, size_t n);

/* Appends what was loaded, with the edits made in it. */
void document_save(const struct document *d, struct buf *out);
void document_release(struct document *d);

struct edit {
	struct buf old, new; /* any ends of lines; old is not empty */
	bool all; /* else old must be there once */
};

enum edit_result {
	EDIT_DONE,
	EDIT_NOT_FOUND,
	EDIT_NOT_UNIQUE,
	EDIT_TOO_LARGE, /* the text would have more than max bytes */
};

/*
 * *count: how often old is there, from left to right without overlap. The
 * document is as it was unless the result is EDIT_DONE.
 */
enum edit_result document_edit(
    struct document *d, const struct edit *e, size_t max, size_t *count);

#endif
