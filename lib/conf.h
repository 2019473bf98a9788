/* SPDX-License-Identifier: MIT */
/*
 * The configuration as commands read it, see sb-conf(5): $SB_STORE/conf with
 * lines "key value", blanks between and around them ignored, as are empty
 * lines and those that begin with '#'. A key that lib/confkeys does not know is
 * an error. The file belongs to people and to sb-conf(1); here it is only read.
 */
#ifndef SB_CONF_H
#define SB_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "confkeys.h"

#define CONF_NAME "conf"

enum {
	CONF_BYTES_MAX = 1048576,
	CONF_ITEMS_MAX = 4096 /* lines of lists and maps */
};

/* A line of a list or of a map; where it stands "*" in the key is name. */
struct conf_item {
	const struct conf_key *key;
	const char *name; /* "" in a list */
	const char *value;
};

struct conf {
	const char *value[CONF_KEYS]; /* NULL: none, or a list or map */
	struct conf_item *item; /* in the order of the file */
	size_t nitems;
	size_t cap;
	char *text; /* private, as all of it */
};

/*
 * Reads the file in the directory storefd; without one all is at its default.
 * -1 with errno; EINVAL when the text is at fault: then why (empty before)
 * says so in the form "conf: line 3: KEY: what". Caller frees with
 * conf_release, after success.
 */
int conf_read(int storefd, struct conf *c, struct buf *why);
void conf_release(struct conf *c);

/* All at its default, for who goes on after conf_read failed. */
void conf_default(struct conf *c);

/* The work of conf_read on n bytes. False: nothing to free, why is set. */
bool conf_parse(const char *text, size_t n, struct conf *c, struct buf *why);

/* The value of a key; NULL when it has none. Borrowed. */
const char *conf_word(const struct conf *c, enum conf_which which);
bool conf_is(const struct conf *c, enum conf_which which, const char *word);

/* The value of a key of numbers; 0 when it has none. */
uint64_t conf_number(const struct conf *c, enum conf_which which);

/*
 * The items of a list or a map one after the other, from *at, 0 at first. NULL
 * behind the last. Borrowed.
 */
const struct conf_item *conf_next(
    const struct conf *c, enum conf_which which, size_t *at);

/* Appends the line "name value", in quotes where the value needs them. */
void conf_add_line(struct buf *b, const char *name, const char *value);

#endif
