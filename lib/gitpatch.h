/* SPDX-License-Identifier: MIT */
/*
 * What a patch in the form of git is made of: names, object ids, and binary
 * hunks. Everything is appended to a buffer.
 */
#ifndef SB_GITPATCH_H
#define SB_GITPATCH_H

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "buf.h"

/* ---- names ---- */

/*
 * Appends prefix, path and tail as one name, in C quotes when force says so or
 * path has a byte that needs them: a control character, one above 0x7e, a
 * quote or a backslash (git's core.quotePath).
 */
void git_quote(struct buf *out, bool force, const char *prefix,
    const char *path, const char *tail);

/*
 * Does git-apply(1) refuse a patch of path, a symbolic link or not, whatever
 * is in it? These are the names that are .git on some file system, and links
 * that would be .gitmodules.
 */
bool git_refuses(const char *path, bool link);

/* ---- object ids ---- */

#define GIT_OID_HEX  40
#define GIT_OID_NONE "0000000000000000000000000000000000000000"

/* The id of a blob, in a repository of the usual kind: SHA-1. */
struct git_oid {
	SHA_CTX ctx; /* private */
};

/* size: of all the bytes that will be added. */
void git_oid_init(struct git_oid *o, uint64_t size);
void git_oid_add(struct git_oid *o, const void *p, size_t n);
void git_oid_hex(struct git_oid *o, char hex[GIT_OID_HEX + 1]);

/* ---- binary hunks ---- */

enum {
	GIT_LINE_BYTES = 52 /* compressed bytes on one line */
};

/*
 * One hunk of the kind "literal": the whole content, deflated (RFC 1951, in
 * the frame of RFC 1950), in base 85. Between begin and end there may be any
 * number of adds; each appends the lines that are complete, so the caller may
 * write out and empty the buffer as it goes.
 */
struct git_literal {
	z_stream z; /* private, as all */
	unsigned char line[GIT_LINE_BYTES];
	size_t n;
};

/* size: of all the bytes that will be added. */
void git_literal_begin(struct git_literal *g, struct buf *out, uint64_t size);
void git_literal_add(
    struct git_literal *g, struct buf *out, const void *p, size_t n);
void git_literal_end(struct git_literal *g, struct buf *out);

#endif
