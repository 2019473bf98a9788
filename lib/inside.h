/* SPDX-License-Identifier: MIT */
/*
 * Starting a job's command inside a session. Three processes:
 *
 *   the joiner   goes into the session's namespaces, opens the terminal
 *                there, makes the keeper, and ends;
 *   the keeper   is the first of the job in the session's pid namespace: a
 *                child of ours, leader of the terminal's session, and the
 *                subreaper of the job, so that nobody leaves the job and
 *                nothing hangs up when the shell ends. It waits for all of
 *                them and ends with the last one;
 *   the command  its child, in the session's user namespace.
 *
 * They tell us of what happens by messages over a socket of packets.
 */
#ifndef SB_INSIDE_H
#define SB_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cgroup.h"

struct inside {
	int initfd; /* pidfd of the session's init */
	int usersfd; /* the user namespace of commands */
	const char *workspace;
	bool pty;
	unsigned rows, cols;
	int in; /* standard input; -1: the terminal, or nothing */
	int out, err; /* without a terminal */
	const char *cwd; /* relative to the workspace, "" for itself */
	char **argv; /* one word: a command line for the shell */
	char **envp;
};

enum inside_what {
	INSIDE_TERMINAL = 't', /* comes with the master's descriptor */
	INSIDE_KEEPER = 'k', /* value: its pid */
	INSIDE_STARTED = 's',
	INSIDE_ENDED = 'x', /* value: the status of wait(2) */
	INSIDE_FAILED = 'f' /* value: errno; text: what could not be done */
};

struct inside_msg {
	char what;
	int value;
	char text[120];
};

/*
 * Forks the joiner into the leaf. sock: the one end of a pair; the other end
 * gets the messages, and the end of file when the keeper is gone. Everything
 * of ours that is close-on-exec stays out of the command; the keeper keeps
 * only sock. Returns the joiner's pid.
 */
pid_t inside_start(const struct inside *in, struct leaf *leaf, int sock);

/*
 * The path relative to workspace that dir means, which may be relative to it
 * or below it: without ".", ".." and empty components. Caller frees; NULL when
 * it leaves the workspace.
 */
char *inside_dir(const char *workspace, const char *dir);

#endif
