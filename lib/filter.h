/* SPDX-License-Identifier: MIT */
/*
 * Programs of jq over a JSON text. The one place that knows libjq, which is
 * opened when it is used: linked, it would cost each start 2 ms. Numbers are
 * what jq makes of them; in its release 1.6 doubles.
 */
#ifndef SB_FILTER_H
#define SB_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

struct filter;

/*
 * Compiles. NULL: why (emptied first) says what is wrong with the program, or
 * that there is no libjq. Caller releases.
 */
struct filter *filter_new(const char *program, struct buf *why);
void filter_free(struct filter *f);

/*
 * Appends the results for the text, one a line: a string as its bytes,
 * anything else as compact JSON. False: why says what went wrong, out has the
 * results before that.
 */
bool filter_run(struct filter *f, const char *text, size_t n, struct buf *out,
    struct buf *why);

#endif
