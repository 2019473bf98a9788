/* SPDX-License-Identifier: MIT */
/*
 * The state of one path in one version of the tree: as a list of layers shows
 * it, or as a change would make it. Kind and mode are known at once; the rest
 * is read when it is asked for, and kept.
 *
 * Functions return -1 (or NULL) with errno when something cannot be read.
 */
#ifndef SB_STATE_H
#define SB_STATE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "buf.h"
#include "change.h"
#include "hash.h"
#include "view.h"

struct state {
	enum node_kind kind;
	unsigned mode; /* & 07777, of what exists */
	struct stat st; /* of what exists; size and mtime in a change: lazily */
	struct buf target; /* of a symbolic link */
	const char *layer; /* that shows it; NULL in a change */
	/* private */
	struct view *view;
	int dirfd;
	const char *path;
	int fd;
	bool have_xattrs, have_text;
	struct buf xattrs, text;
	char hex[HASH_HEX + 1];
};

#define STATE_INIT { .dirfd = -1, .fd = -1 }

/* What view shows at path; view and path are borrowed. */
int state_of_view(struct state *s, struct view *view, const char *path);

/*
 * What change c makes, whose content lies below dirfd (borrowed, as c is; -1
 * will do when it has none). EBADF when it is needed and missing; ESTALE when
 * a file there is not what the change says.
 */
int state_of_change(struct state *s, const struct change *c, int dirfd);

/* What a directory that is open shows of itself: the root of a tree. */
int state_of_dir(struct state *s, int fd);
void state_release(struct state *s);

/* The open file or directory; stays s's. EINVAL for other kinds. */
int state_fd(struct state *s);

/* The set of attr_xattrs; empty for what has none. */
const struct buf *state_xattrs(struct state *s);

/* The whole content of a file. */
const struct buf *state_text(struct state *s);

/* Can the file be merged by lines? See text_is_mergeable. 1, 0, -1. */
int state_is_text(struct state *s);

/* SHA-256 of a file's content, in hex. */
const char *state_digest(struct state *s);

/* 1 when equal, else 0 or -1. Content: of two files. */
int state_same_content(struct state *a, struct state *b);
int state_same_xattrs(struct state *a, struct state *b);

/* Equal in kind, content or target, mode and xattrs. */
int state_same(struct state *a, struct state *b);

/* The member name: kind, and what tells this state from others of the kind. */
int state_out(struct buf *b, const char *name, struct state *s);

#endif
