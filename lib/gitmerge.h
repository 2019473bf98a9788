/* SPDX-License-Identifier: MIT */
/*
 * Repositories in a change set: what becomes of .git when both sides changed
 * it. gitrefs decides about refs; here is what the versions are read from,
 * and what else must not be taken away.
 */
#ifndef SB_GITMERGE_H
#define SB_GITMERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "change.h"
#include "gitrefs.h"
#include "view.h"

/* A session's changes over what it was made against. All borrowed. */
struct git_sides {
	struct view *base, *head;
	struct change *const *change; /* sorted by path_cmp */
	size_t n;
	int upper; /* where their content lies */
	const char *session;
};

/* A repository that both sides changed. */
struct git_repo {
	char *path; /* in the tree, of its .git or .git/modules/NAME */
	struct git_merge merge;
	/*
	 * Files with objects that head took away since base and that mine may
	 * rely on: to come back as base has them. Paths inside the repository.
	 */
	struct names restore;
};

struct git_repos {
	struct git_repo *v; /* outer before inner */
	size_t n;
	size_t cap; /* private */
};
#define GIT_REPOS_INIT { .v = NULL }

/*
 * Length of the path of the .git directory that path lies in (the first one),
 * 0 when it lies in none.
 */
size_t git_dir_len(const char *path);

/*
 * Adds each repository that has changes of mine and is not the same at head
 * as in base (where there may be none). One that mine deleted, cleared or replaced is
 * left to the rules for directories. 0, or -1 with errno; *where, if set then, is the
 * path at fault (caller frees).
 */
int git_find(const struct git_sides *s, struct git_repos *out, char **where);
void git_repos_release(struct git_repos *r);

/* The repository that path lies in, with its path inside; or NULL. */
const struct git_repo *git_repo_of(
    const struct git_repos *r, const char *path, const char **inside);

#endif
