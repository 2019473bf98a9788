/* SPDX-License-Identifier: MIT */
/*
 * Tokens and what they grant. A token is a file tokens/NAME below the state:
 * line 1 is the token, line 2 names its groups. The master token is a file of
 * one line and grants all. Files are read at every request: to add one is to
 * issue, to remove it is to revoke. A file that others may read counts for
 * nothing.
 */
#ifndef SB_TOKEN_H
#define SB_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"

enum {
	GROUP_MANAGEMENT = 1,
	GROUP_RUNTIME = 2,
	GROUP_OBSERVABILITY = 4,
	GROUPS_ALL = 7,
	TOKEN_MAX = 4096 /* bytes of a token */
};

/* Words separated by blanks: 0 when one is unknown or there is none. */
unsigned token_groups_parse(const char *s);

/* The same words, in the order of the bits. */
void token_groups_print(struct buf *b, unsigned groups);

/*
 * What the n bytes at given grant, by the file dirfd/master (NULL: none) and
 * the files in tokensfd (-1: none); 0 for nothing. All tokens are compared, by
 * their digests. Appends a line to why for each file that is at fault.
 */
unsigned token_grants(const char *given, size_t n, const char *master,
    int tokensfd, struct buf *why);

/*
 * Reads the one line of the file path: token without its newline. False with
 * why: missing, blank, more than a line, open to others.
 */
bool token_read(
    int dirfd, const char *path, struct buf *token, struct buf *why);

/* The same for a file of tokens. */
bool token_read_entry(int tokensfd, const char *name, struct buf *token,
    unsigned *groups, struct buf *why);

/* 64 hexadecimal digits of 32 random bytes. -1 with errno. */
int token_make(char hex[65]);

#endif
