/* SPDX-License-Identifier: MIT */
/*
 * Asking the process of a job for something: a unix(7) socket of packets,
 * "in" in the job's directory. A question is one letter and its argument, the
 * answer a word and maybe numbers.
 */
#ifndef SB_JOBCTL_H
#define SB_JOBCTL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
	JOBCTL_MAX = 32768, /* bytes of an argument */
	JOBCTL_ANSWER = 64
};

enum jobctl_op {
	JOBCTL_DATA = 'd', /* bytes for its standard input */
	JOBCTL_CANCEL = 'c', /* end it; an argument is a key to try first */
	JOBCTL_SIGNAL = 's', /* a number, for each of its processes */
	JOBCTL_EOF = 'e',
	JOBCTL_PING = 'p', /* nothing; answered "no" */
	JOBCTL_SIZE = 'w', /* "ROWS COLS" */
	JOBCTL_LIVE = 'l' /* bring rows and live up to date */
};

#define JOBCTL_OK    "ok"
#define JOBCTL_STUCK "stuck" /* nobody reads; a part may have arrived */
#define JOBCTL_OVER  "over" /* the command has completed */
#define JOBCTL_NO    "no" /* it has no such thing */

/* The listening socket in directory dirfd. */
int jobctl_listen(int dirfd);

/* ENOENT, ECONNREFUSED: nobody listens (any more). EAGAIN: somebody does, and
 * does not answer. */
int jobctl_connect(int dirfd);

/*
 * Asks and waits at most ms for the answer, put as a string into answer.
 * -1 with errno: ETIMEDOUT, or EPIPE when the other end went away.
 */
int jobctl_ask(int sock, enum jobctl_op op, const void *p, size_t n,
    char answer[JOBCTL_ANSWER], int ms);

/* Waits again for an answer, after ETIMEDOUT. */
int jobctl_wait(int sock, char answer[JOBCTL_ANSWER], int ms);

/* Does the process answer anything within ms? Is it gone, it need not. */
bool jobctl_is_alive(int dirfd, int ms);

#endif
