/* SPDX-License-Identifier: MIT */
/* Keys of the configuration by their names, and values by their keys. */
#ifndef SB_CONFKEYS_H
#define SB_CONFKEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "conftable.h"

/* The row with just this name; "*" is a name like others. NULL: none. */
const struct conf_key *confkey_exact(const char *name);

/*
 * The row for a name of the flat file. For a row with a "*" item becomes what
 * stands in its place (n bytes, borrowed from name), else NULL.
 */
const struct conf_key *confkey_find(
    const char *name, const char **item, size_t *n);

/* The row whose name of before this is, or NULL. */
const struct conf_key *confkey_old(const char *name);

/* Do rows begin with name and a dot? */
bool confkey_is_group(const char *name);

/* Has the row a "*"? */
bool confkey_is_map(const struct conf_key *k);

/* The name of a row with item in the place of its "*". Caller frees. */
char *confkey_with(const struct conf_key *k, const char *item);

/* Does a command of this version read it? */
bool confkey_is_read(const struct conf_key *k);

/* False, and says in why what is wrong with the value. */
bool confkey_check(
    const struct conf_key *k, const char *value, struct buf *why);

/* What a value may be, in a few words: "number from 1 to 64". */
void confkey_describe(const struct conf_key *k, struct buf *b);

/* A decimal in billionths; digits, and up to nine behind a dot. */
bool confkey_decimal(const char *s, uint64_t *billionths);

#endif
