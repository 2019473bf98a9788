/* SPDX-License-Identifier: MIT */
/* Pages of help about operations, from their files. */
#ifndef SB_OPHELP_H
#define SB_OPHELP_H

#include <stdbool.h>

#include "buf.h"
#include "op.h"

struct ophelp {
	const char *title; /* of the page about all */
	const char *space; /* what the operations are of, in messages */
	const char *use; /* what comes before the operation in usage lines */
	const struct ops *ops; /* of one set, in order */
	const struct op_families *families;
};

/* Appends the page about all operations. */
void ophelp_all(const struct ophelp *h, struct buf *out);

/* Appends the page about one; false: there is none of that name. */
bool ophelp_one(const struct ophelp *h, const char *name, struct buf *out);

/* Appends a message that there is none, and those that may be meant. */
void ophelp_unknown(const struct ophelp *h, const char *name, struct buf *out);

/* Appends a default as people read it: a string without its quotes. */
void ophelp_default(const char *json, struct buf *out);

#endif
