/* SPDX-License-Identifier: MIT */
/*
 * Starting programs. Every descriptor of ours is close-on-exec; what a child
 * gets is exactly what its fd map says.
 */
#ifndef SB_SPAWN_H
#define SB_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

struct spawn_fd {
	int ours; /* descriptor here */
	int theirs; /* its number in the child */
};

/*
 * Forks and executes argv[0] by PATH with the given descriptors (0, 1 and 2
 * are inherited unless mapped). An exec failure is reported here, by errno,
 * not by the child's exit. Signals are at default and unblocked in the child.
 * Returns the pid, or -1.
 */
pid_t spawn(const char *const argv[], const struct spawn_fd *map, size_t n);

/*
 * Waits for pid and turns its status into an exit code: its own below 128,
 * 128 for 128 and above, 128+n when killed by signal n. -1 with errno.
 */
int spawn_wait(pid_t pid);

/* The same translation for a status that wait(2) gave. */
int spawn_code(int status);

/*
 * Replaces this process by argv (PATH searched). Returns only on failure,
 * and then has printed nothing: exit with spawn_exec_code(errno).
 */
void spawn_exec(char *const argv[]);
int spawn_exec_code(int err);

/*
 * Where memory is short, this process and those that it starts are killed
 * before what serves them: oom_score_adj of proc(5). Where that cannot be
 * said all are alike.
 */
void spawn_kill_first(void);

#endif
