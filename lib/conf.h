/* SPDX-License-Identifier: MIT */
/*
 * Settings of a store, in $SB_STORE/conf: lines "key value", blanks between
 * and around them ignored, as are empty lines and those that begin with '#'.
 * Keys that no table knows are errors. The file belongs to people and to
 * other programs; here it is only read.
 */
#ifndef SB_CONF_H
#define SB_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

#define CONF_NAME "conf"

enum {
	CONF_BYTES_MAX = 1048576
};

/* A key: its value is one of words, or where that is NULL a number. */
struct conf_key {
	const char *name;
	const char *words; /* separated by one blank */
	uint64_t min, max; /* of a number */
	const char *fallback; /* where the file does not say */
};

/* What this program knows, in the order of the table in conf.c. */
enum conf_which {
	CONF_IGNORED_CHANGES, /* runtime.layerstack.ignored_changes */
	CONF_PUBLISH_GIT, /* runtime.publish.git */
	CONF_READ_LINES, /* runtime.file.read_lines_default */
	CONF_MAX_OUTPUT, /* runtime.file.max_output_bytes */
	CONF_MAX_EDIT, /* runtime.file.max_edit_bytes */
	CONF_MAX_LIST, /* runtime.file.max_list_entries */
	CONF_MAX_ACTIVE, /* runtime.command.max_active */
	CONF_TRANSCRIPT, /* …namespace_execution.max_transcript_window_bytes */
	CONF_EVENTS, /* observability.enabled */
	CONF_EVENTS_DISK, /* observability.max_disk_bytes */
	CONF_EVENTS_LINE, /* observability.max_line_bytes */
	CONF_MAX_PARKED, /* runtime.workspace.max_parked */
	CONF_KEYS
};

struct conf {
	char *value[CONF_KEYS];
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

/* The value of a key of words. Borrowed. */
const char *conf_word(const struct conf *c, enum conf_which which);
bool conf_is(const struct conf *c, enum conf_which which, const char *word);

/* The value of a key of numbers. */
uint64_t conf_number(const struct conf *c, enum conf_which which);

/*
 * The work of conf_read, for any table: fills value (nkeys elements), each
 * the caller's to free, from text; the text of a number is one that num_dec
 * takes. False: value is untouched, why is filled.
 */
bool conf_parse(const struct conf_key *key, size_t nkeys, const char *text,
    size_t n, char **value, struct buf *why);

#endif
