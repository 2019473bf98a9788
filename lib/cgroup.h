/* SPDX-License-Identifier: MIT */
/*
 * A leaf of the cgroup2 hierarchy below the cgroup that we are in, cgroups(7).
 * It needs no controller: it is there to know all processes of a job and to
 * kill them at once. Where none can be made (no right to, no hierarchy, no
 * cgroup.kill before Linux 5.14) a struct leaf is empty and does nothing.
 */
#ifndef SB_CGROUP_H
#define SB_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

struct leaf {
	int parentfd, dirfd;
	char name[64];
};

#define LEAF_INIT { .parentfd = -1, .dirfd = -1 }

/*
 * Makes the leaf prefix-name, and removes leaves of that prefix that are
 * empty. -1 with errno; the leaf is empty then.
 */
int leaf_make(struct leaf *l, const char *prefix, const char *name);

/* Opens one that is there; ENOENT. */
int leaf_open(struct leaf *l, const char *prefix, const char *name);
bool leaf_exists(const struct leaf *l);

/*
 * fork(2) into the leaf, without atfork handlers; a plain fork when it is
 * empty, or has been taken for a left-over meanwhile, and then it is empty.
 */
pid_t leaf_fork(struct leaf *l);

/* Kills all in it; waits until the last is gone. -1 with ETIMEDOUT. */
int leaf_kill(const struct leaf *l, int ms);

/* Removes it if nobody is in it, and lets go of it. */
void leaf_remove(struct leaf *l);

/* Removes what killed processes left beside our cgroup: empty leaves whose
 * names begin with prefix. */
void leaf_sweep(const char *prefix);

#endif
