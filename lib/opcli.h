/* SPDX-License-Identifier: MIT */
/*
 * The arguments of an operation as words of a command line, by its file:
 * sb-op(5) and sandbox-cli(1).
 */
#ifndef SB_OPCLI_H
#define SB_OPCLI_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "op.h"

struct opcli {
	struct buf *value; /* JSON texts, one for each op->arg; empty: none */
	size_t n;
	bool progress; /* asked for among the words */
};

#define OPCLI_INIT { .value = NULL }

/*
 * Takes n words. False: why (emptied first) is the message, in the words of
 * the interface. Selectors are taken, but not asked for. Caller releases in
 * either case.
 */
bool opcli_parse(const struct op *op, char *const *word, size_t n,
    struct opcli *out, struct buf *why);
void opcli_release(struct opcli *cli);

/*
 * Appends the object of arguments: what was given, then what clients fill in;
 * no selector.
 */
void opcli_print(const struct op *op, const struct opcli *cli, struct buf *out);

/* The argument of a flag or one of its aliases, n bytes; NULL: none. */
const struct op_arg *opcli_flag(
    const struct op *op, const char *flag, size_t n);

/* What messages and help call it: its flag, or its label. */
const char *opcli_name(const struct op_arg *a);

/* Does it say how it gets on, so that progress may be asked for? */
bool opcli_has_progress(const struct op *op);

#endif
