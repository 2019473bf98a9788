/* SPDX-License-Identifier: MIT */
/*
 * What a YAML document says by the table of keys, see sb-conf(5), for one who
 * reads it: what confwalk takes and confcheck checks.
 */
#ifndef SB_CONFDOC_H
#define SB_CONFDOC_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "conftable.h"
#include "path.h"
#include "ytree.h"

#define CONF_DOCKER   "manager.docker"
#define CONF_PROFILES CONF_DOCKER ".resource_profiles"

/* Bits of sections. */
enum {
	SECTION_DAEMON = 1,
	SECTION_GATEWAY = 2,
	SECTION_MANAGER = 4,
	SECTION_OBSERVABILITY = 8,
	SECTION_RUNNER = 16,
	SECTION_RUNTIME = 32,
	SECTION_ALL = 63,
	CONF_SECTIONS = 6 /* how many there are */
};

struct conf_section {
	const char *name;
	unsigned bit;
};

extern const struct conf_section conf_sections[CONF_SECTIONS];

/* Who reads a document. */
struct conf_role {
	const char *name;
	unsigned reads; /* others are passed over */
	unsigned needs;
	bool needs_docker;
	bool listens; /* it is a gateway */
	unsigned writes; /* sections of its flat file */
};

struct conf_value {
	const struct conf_key *key;
	char *name; /* as key->name, but with a name in the place of a "*" */
	char *value;
	const struct ynode *node; /* NULL: not from the document */
};

/* Begins as { .role = … }. */
struct confdoc {
	const struct conf_role *role;
	struct conf_value *v; /* in the order of the document */
	size_t n;
	bool docker; /* it has manager.docker */
	struct names profiles; /* that it has, unsorted */
	struct names warnings; /* "FILE: line 3: KEY: what", unsorted */
	size_t cap; /* private */
};

/* "all", "daemon", "gateway" or "docker"; NULL: none of them. */
const struct conf_role *conf_role_find(const char *name);

/* The section of a dotted name; 0: none. */
unsigned conf_section_of(const char *name);

/* The value of a dotted name that was given, or NULL. Borrowed. */
struct conf_value *confdoc_find(const struct confdoc *doc, const char *name);

/* What a dotted name says, given or by itself; NULL: nothing. Borrowed. */
const char *confdoc_says(const struct confdoc *doc, const char *name);

/* Takes the value, which its key accepts; copies the name. */
void confdoc_add(struct confdoc *doc, const struct conf_key *k,
    const char *name, char *value, const struct ynode *node);

/*
 * Makes why "FILE: line 3: NAME: what"; node may be NULL, and name empty.
 * False, always.
 */
bool confdoc_vrefuse(struct buf *why, const struct ynode *node,
    const char *name, const char *fmt, va_list ap);
__attribute__((format(printf, 4, 5))) bool confdoc_refuse(struct buf *why,
    const struct ynode *node, const char *name, const char *fmt, ...);

/* The same as a warning. */
void confdoc_warn(struct confdoc *doc, const struct ynode *node,
    const char *name, const char *what);

/* Gives a key of one value another. False: why is "KEY: what". */
bool confdoc_set(
    struct confdoc *doc, const char *name, const char *value, struct buf *why);

/*
 * Appends the flat file: all keys of the role's sections that have a value.
 * Paths of the host that are relative become absolute below cwd.
 */
void confdoc_write(
    const struct confdoc *doc, const char *cwd, struct buf *text);

void confdoc_release(struct confdoc *doc);

#endif
