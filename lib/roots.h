/* SPDX-License-Identifier: MIT */
/*
 * The directories in which workspaces of sandboxes may lie:
 * manager.workspace_roots of the configuration in the state directory.
 */
#ifndef SB_ROOTS_H
#define SB_ROOTS_H

#include <stdbool.h>

#include "buf.h"
#include "path.h"

struct roots {
	struct names path; /* canonical, sorted, each once */
	bool enforced; /* else they are only what may be browsed: $HOME */
};
#define ROOTS_INIT { .path = NAMES_INIT }

/* -1 with errno; EINVAL: why says what is wrong with the configuration. */
int roots_read(const char *state, struct roots *r, struct buf *why);
void roots_release(struct roots *r);

/* Is the canonical path one of them, or below one? */
bool roots_have(const struct roots *r, const char *path);

/* The canonical path of a directory; NULL with errno. Caller frees. */
char *roots_canonical(int dirfd, const char *path);

#endif
