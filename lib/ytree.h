/* SPDX-License-Identifier: MIT */
/*
 * A YAML document as a tree, by libyaml. Scalars are what YAML 1.2's core
 * schema says; a quoted one is text. Refused are anchors, aliases, tags, a
 * second document, a name given twice, names that are no scalars, bytes that
 * are no UTF-8, and what is beyond the limits.
 */
#ifndef SB_YTREE_H
#define SB_YTREE_H

#include <stddef.h>

#include "buf.h"

enum {
	YTREE_BYTES_MAX = 1048576,
	YTREE_DEPTH_MAX = 32, /* lists and mappings in each other */
	YTREE_ENTRIES_MAX = 4096 /* of one list or mapping */
};

enum ykind {
	YKIND_NULL,
	YKIND_BOOL,
	YKIND_INT,
	YKIND_FLOAT,
	YKIND_TEXT,
	YKIND_LIST,
	YKIND_MAP
};

struct ynode {
	enum ykind kind;
	const char *file; /* as given to ytree_parse */
	size_t line; /* from 1 */
	char *text; /* of a scalar, as written; may hold a NUL */
	size_t len;
	/* Items of a list; of a mapping by turns a name and its value. */
	struct ynode **child;
	size_t n;
	size_t cap; /* private */
};

/*
 * Reads n bytes of UTF-8, with or without a byte order mark. file is for
 * messages, and borrowed as long as the tree lives. NULL: why says so in the
 * form "FILE: line 3: what". Caller frees with ytree_free.
 */
struct ynode *ytree_parse(
    const char *file, const char *text, size_t n, struct buf *why);
void ytree_free(struct ynode *node);

/* The value of a name in a mapping, or NULL. Borrowed. */
struct ynode *ytree_get(const struct ynode *map, const char *name);

/*
 * Lays over, a mapping, over base, a mapping: mappings that both have are
 * merged, anything else of over takes the place of what base has. Takes over.
 */
void ytree_merge(struct ynode *base, struct ynode *over);

/* What a kind is called: "a number", "a list". */
const char *ytree_kind_name(enum ykind kind);

#endif
