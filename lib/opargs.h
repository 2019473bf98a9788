/* SPDX-License-Identifier: MIT */
/*
 * The arguments of a request against an operation, and the words of its
 * command: sb-op(5).
 */
#ifndef SB_OPARGS_H
#define SB_OPARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "json.h"
#include "op.h"

enum {
	OP_WORD_MAX = 131071 /* bytes that Linux takes as one argument */
};

struct op_value {
	bool given; /* or by its default */
	struct buf text; /* decoded; numbers and arrays as they were written */
};

struct op_values {
	struct op_value *v; /* one for each op->arg, in that order */
	size_t n;
	const char *sandbox_id; /* borrowed; NULL: not given */
	const char *request_id; /* the same; see op_request_id */
	bool progress;
};

#define OP_VALUES_INIT { .v = NULL }

/*
 * Takes the values from args, an object that json_is_valid accepted. False:
 * why (emptied first) is the message of sb-op(5) for the first that is wrong.
 * Caller releases in either case.
 */
bool op_check(const struct op *op, const struct op_side *side, struct span args,
    struct op_values *out, struct buf *why);
void op_values_release(struct op_values *values);

/* The value of an argument; NULL where it is not given. Borrowed. */
const struct buf *op_value(
    const struct op *op, const struct op_values *values, const char *name);

/*
 * How long the operation may take, with what it waits. args as for op_check,
 * but not checked: what is no number counts as none.
 */
uint64_t op_deadline(const struct op *op, struct span args);

/* The words of a side's argv, and its standard input. Caller releases both. */
void op_expand(const struct op *op, const struct op_side *side,
    const struct op_values *values, struct op_strings *argv, struct buf *input);
void op_strings_release(struct op_strings *s);

/* Appends the members of with, and a comma when any. */
void op_with(const struct op *op, const struct op_side *side,
    const struct op_values *values, struct buf *out);

/*
 * A request id as a word: '?' for each control character, at most 200 bytes,
 * whole characters of UTF-8. Caller frees.
 */
char *op_request_id(const struct buf *id);

#endif
