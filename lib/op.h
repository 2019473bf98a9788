/* SPDX-License-Identifier: MIT */
/*
 * Operation files, sb-op(5). Reading is strict: an unknown member, a wrong
 * kind, a word that names no argument, are errors that say where.
 */
#ifndef SB_OP_H
#define SB_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "path.h"

enum {
	OP_BYTES_MAX = 65536,
	OP_DEADLINE_MS = 30000
};

enum op_set {
	OP_MANAGEMENT,
	OP_RUNTIME,
	OP_OBSERVABILITY,
	OP_INTERNAL,
	OP_SETS
};

enum op_kind {
	OP_STRING,
	OP_PATH,
	OP_INTEGER,
	OP_FLOAT,
	OP_ARRAY,
	OP_KINDS
};

enum op_scope {
	OP_SYSTEM,
	OP_SANDBOX,
	OP_BOTH,
	OP_SCOPES
};

enum op_reply {
	OP_OBJECT,
	OP_LINES,
	OP_TEXT,
	OP_NONE,
	OP_REPLIES
};

struct op_strings {
	char **v; /* ends in NULL when not empty */
	size_t n;
	size_t cap; /* private */
};

struct op_arg {
	char *name, *help;
	enum op_kind kind;
	bool required, selector, ours;
	char *flag; /* never NULL */
	struct op_strings aliases;
	char *label; /* of a positional, else NULL */
	char *min, *max; /* number tokens, or NULL */
	struct op_strings values;
	char *error; /* or NULL */
	char *client_default, *server_default; /* JSON texts, or NULL */
	char *mcp_default; /* the same */
	char *items; /* of an array, a JSON text, or NULL */
};

struct op_side {
	bool there;
	struct op_strings argv;
	bool forward, ready;
	char *refuse; /* or NULL */
	enum op_reply reply;
	char *reply_name; /* of lines and text */
	struct op_strings with; /* name, value, name, value, ... */
};

struct op {
	enum op_set set;
	char *name, *family, *summary, *description; /* family may be NULL */
	uint64_t order;
	enum op_scope scope;
	struct op_arg *arg;
	size_t nargs;
	struct op_strings examples, related;
	bool mcp;
	struct op_side host, box;
	uint64_t deadline_ms;
	char *waits; /* an argument, or NULL */
	bool cancel, urgent, activity;
	bool additive, idempotent, open_world;
};

#define OP_INIT { .name = NULL }

/* The names in sb-op(5). Static. */
const char *op_set_name(enum op_set set);
const char *op_kind_name(enum op_kind kind);
const char *op_scope_name(enum op_scope scope);

/* [a-z][a-z0-9_]*, at most 64 bytes. */
bool op_name_is_valid(const char *s);

/*
 * Reads SET/NAME.json beneath opsfd. -1 with ENOENT when there is none (also
 * when name is no name), EINVAL when it is at fault: then why (emptied first)
 * says "SET/NAME.json: MEMBER: what". Caller releases after success.
 */
int op_read(int opsfd, enum op_set set, const char *name, struct op *op,
    struct buf *why);
void op_release(struct op *op);

/* The same, whichever set it is in. */
int op_find(int opsfd, const char *name, struct op *op, struct buf *why);

/* The names of a set's operations, sorted bytewise. Caller releases. */
int op_names(int opsfd, enum op_set set, struct names *out);

/*
 * All operations of a set, in their order. Caller frees with ops_release. -1
 * as op_read.
 */
struct ops {
	struct op *op;
	size_t n;
};
#define OPS_INIT { .op = NULL }

int ops_read(int opsfd, enum op_set set, struct ops *out, struct buf *why);
void ops_release(struct ops *ops);

/* The families of a set, in order: families.json. As ops_read. */
struct op_family {
	char *id, *title, *summary, *description;
};

struct op_families {
	struct op_family *v;
	size_t n;
	size_t cap; /* private */
};
#define OP_FAMILIES_INIT { .v = NULL }

int op_families_read(
    int opsfd, enum op_set set, struct op_families *out, struct buf *why);
void op_families_release(struct op_families *f);

/* An argument by name; NULL when there is none. Borrowed. */
const struct op_arg *op_arg(const struct op *op, const char *name);

/* What a word of argv is, taken apart. Strings are the caller's. */
enum op_word_kind {
	OP_WORD_PLAIN, /* with {x} in it, perhaps */
	OP_WORD_VALUE, /* {x} */
	OP_WORD_FLAG, /* {-f x} */
	OP_WORD_IF, /* {?x WORD}, {?x=VALUE WORD} */
	OP_WORD_INPUT /* {<x} */
};

struct op_word {
	enum op_word_kind kind;
	char *name; /* of the argument, or NULL */
	char *word; /* the flag, or the word */
	char *value; /* or NULL */
};

/* False: malformed. */
bool op_word_parse(const char *s, struct op_word *w);
void op_word_release(struct op_word *w);

/*
 * Finds the next {x} of a text: true with the bytes before it and its name;
 * *s then points behind it. False when there is none. A '{' without a name
 * and a '}' behind it is text.
 */
bool op_hole(const char **s, size_t *before, char name[ID_MAX + 1]);

#endif
