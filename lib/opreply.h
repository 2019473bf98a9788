/* SPDX-License-Identifier: MIT */
/* The answer of an operation from the end of its command: sb-op(5). */
#ifndef SB_OPREPLY_H
#define SB_OPREPLY_H

#include <stdbool.h>

#include "child.h"
#include "failure.h"
#include "op.h"
#include "opargs.h"

/*
 * Appends the answer, one JSON object on one line without a newline; or sets
 * f and returns false. An error that the command itself printed is an answer.
 */
bool op_reply(const struct op *op, const struct op_side *side,
    const struct op_values *values, struct child_end *end, struct buf *out,
    struct failure *f);

/* Is the answer an error? */
bool op_reply_is_error(const struct buf *reply);

#endif
