/* SPDX-License-Identifier: MIT */
/*
 * Operations as tools for models: what is said of them, and what is taken from
 * their arguments. All of it comes from the operation files, sb-op(5).
 */
#ifndef SB_MCPTOOL_H
#define SB_MCPTOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "json.h"
#include "op.h"
#include "opcli.h"

enum {
	MCP_YIELD_MS = 20000 /* an operation waits at most so long */
};

struct mcptools {
	struct ops ops; /* of a set; not all are offered */
	bool reference; /* as the reference has them, and nothing more */
};

/* False: why says what is wrong with the files. */
bool mcptools_read(int opsfd, enum op_set set, bool reference,
    struct mcptools *out, struct buf *why);
void mcptools_release(struct mcptools *t);

/* Appends the array of tools. */
void mcptools_print(const struct mcptools *t, struct buf *out);

/* NULL: no such tool. */
const struct op *mcptool_find(const struct mcptools *t, const struct buf *name);

/*
 * Takes args, an object (p may be NULL: none). sandbox gets the JSON string of
 * the scope, or nothing: the system. False: why is the message, in the words of
 * the interface. Caller releases given in either case.
 */
bool mcptool_take(const struct mcptools *t, const struct op *op,
    struct span args, struct opcli *given, struct buf *sandbox,
    struct buf *why);

#endif
