/* SPDX-License-Identifier: MIT */
/*
 * The descendants of a process, as proc(5) shows them in "task/TID/children".
 * With a child subreaper as the root (prctl(2)) none can leave the tree. All
 * take a descriptor of /proc, and pids as that /proc counts.
 */
#ifndef SB_PROCTREE_H
#define SB_PROCTREE_H

#include <stddef.h>
#include <sys/types.h>

struct proctree {
	struct proctree_one {
		pid_t pid, parent;
		char state; /* as in proc(5), 'Z' for a zombie */
	} *one;
	size_t n, cap;
	size_t alive; /* without zombies */
};

#define PROCTREE_INIT { .one = NULL }

/*
 * The root is not in it. Reads for 250 ms at most: of a tree that grows faster
 * it has a part. Caller releases, also after failure.
 */
int proctree_read(int procfd, pid_t root, struct proctree *t);
void proctree_release(struct proctree *t);

/* Signals all in it that are still who they were. */
void proctree_signal(int procfd, pid_t root, const struct proctree *t, int sig);

/*
 * Kills until nobody is left but zombies; what forks faster may win: -1 with
 * ETIMEDOUT after ms.
 */
int proctree_kill(int procfd, pid_t root, int ms);

/* Number of a process in its own pid namespace; 0 when it is gone. */
pid_t proctree_inner(int procfd, pid_t pid);

#endif
