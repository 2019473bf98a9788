/* SPDX-License-Identifier: MIT */
/*
 * Change records, the stream between capture and commit: sb-change(5). Sorted
 * by change_cmp, each path once.
 */
#ifndef SB_CHANGE_H
#define SB_CHANGE_H

#include <stdio.h>
#include <sys/types.h>

#include "rec.h"

enum change_kind {
	CHANGE_WRITE = 'w',
	CHANGE_DIR = 'd',
	CHANGE_DELETE = 'x',
	CHANGE_OPAQUE = 'o',
	CHANGE_SYMLINK = 'l',
	CHANGE_SPECIAL = 's',
};

struct change {
	enum change_kind kind;
	unsigned mode; /* 07777; 0 where the kind has none */
	off_t size; /* of CHANGE_WRITE, else 0 */
	char from[65]; /* "u", "m", "-" or a layer id */
	char route; /* 's', 'i', 'g' or '-' */
	char *path;
	char *target; /* of CHANGE_SYMLINK, else NULL */
};

/*
 * Path of the root itself: only in the first record, which is then CHANGE_DIR.
 * It stands before all other paths and is nothing that path_is_valid takes.
 */
#define CHANGE_ROOT "."

/* Order of paths: bytewise with '/' lowest, so a directory comes before all
 * that is below it and everything below it is contiguous. */
int path_cmp(const char *a, const char *b);

/* Appends one record to out; errors show at stdout_done. */
void change_write(FILE *out, const struct change *c);
void change_stop(FILE *out);

/*
 * Reads the next record from r (made with end '\0'). On REC_ITEM c owns path
 * and target: change_release. REC_BAD also for wrong order, a path twice and
 * records that no writer makes; last is the path before, or NULL.
 */
enum rec_kind change_read(struct rec *r, struct change *c, const char *last);
void change_release(struct change *c);

/* A whole stream in memory, from stdin; ends the program as rec_fail does. */
struct changes {
	struct change *v;
	size_t n;
	size_t cap; /* private */
};
#define CHANGES_INIT { .v = NULL }

void changes_read_stdin(struct changes *cs, int repeat);
void changes_add(
    struct changes *cs, const struct change *c); /* takes strings */
void changes_release(struct changes *cs);

#endif
