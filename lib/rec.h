/* SPDX-License-Identifier: MIT */
/*
 * Streams that end in a full stop or a refusal, see sb-change(5). Two kinds
 * share one reader: id lines (newline-terminated, an empty line is the full
 * stop) and NUL records (an empty record is the full stop). A refusal
 * ("! code message") may stand in the place of the full stop. End of file
 * before either means that the writer crashed: nothing may be concluded.
 */
#ifndef SB_REC_H
#define SB_REC_H

#include <stddef.h>
#include <stdio.h>

#define REC_MAX 65536

enum rec_kind {
	REC_ITEM,
	REC_STOP, /* full stop and nothing behind it */
	REC_REFUSED, /* refusal; see rec_code and rec_message */
	REC_CUT, /* end of file before a full stop */
	REC_BAD, /* malformed; see rec_message */
	REC_ERROR, /* reading failed; errno */
};

struct rec {
	FILE *in; /* borrowed */
	int end; /* '\n' or '\0' */
	char *item; /* the last item, NUL-terminated; until the next call */
	size_t len;
	size_t cap; /* private */
	int code; /* of a refusal, 1 to 127 */
	char message[1024]; /* of a refusal or of REC_BAD */
};

void rec_init(struct rec *r, FILE *in, int end);
enum rec_kind rec_next(struct rec *r);

/* The second field of a record: any bytes but none, never a refusal. */
enum rec_kind rec_next_raw(struct rec *r);
void rec_release(struct rec *r);

/*
 * What a stage does that met kind, which is none of REC_ITEM and REC_STOP: it
 * repeats a refusal on stdout (with the same separator; only when repeat is
 * true) and leaves with its code without a word; cut input is 111 and bad
 * input 100, with a message naming stdin.
 */
__attribute__((noreturn)) void rec_fail(
    struct rec *r, enum rec_kind kind, int repeat);

/* Id lines. Both die as rec_fail does; the array and strings are the caller's. */
struct ids {
	char **id;
	size_t n;
	size_t cap; /* private */
};
#define IDS_INIT { .id = NULL }

/* Reads stdin to its full stop; an id twice or not an id is 100. */
void ids_read_stdin(struct ids *ids, int repeat);

/* The same from a file of id lines. */
void ids_read_file(struct ids *ids, const char *path);
void ids_add(struct ids *ids, const char *id);
int ids_have(const struct ids *ids, const char *id);

/* Prints all and the full stop, not flushed. */
void ids_print(const struct ids *ids);

/* Writes a refusal to stdout, flushed: the caller leaves with code. */
void rec_refuse(int end, int code, const char *message);

#endif
