/* SPDX-License-Identifier: MIT */
/*
 * The other end of jobctl.h: the process of a job answers questions, and hands
 * on what is fed. Each client asks one thing at a time. Of those whose bytes
 * wait, the one that came first is served until its piece is written whole, or
 * nobody has read any of it for 2 s.
 */
#ifndef SB_JOBSERVE_H
#define SB_JOBSERVE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobctl.h"

enum {
	JOBSERVE_CLIENTS = 256,
	JOBSERVE_POLLS = JOBSERVE_CLIENTS + 1
};

/*
 * Answers a question: one of the words of jobctl.h, or for JOBCTL_DATA NULL,
 * when the bytes are to be fed. p is the argument, followed by NUL.
 */
typedef const char *jobserve_fn(enum jobctl_op op, const char *p, void *arg);

struct jobserve {
	jobserve_fn *fn;
	void *arg;
	int listenfd;
	bool in_line; /* what was fed last was no newline */
	/* private */
	struct jobserve_client {
		int fd;
		char *data; /* waits to be written */
		size_t n, done;
		uint64_t turn;
	} client[JOBSERVE_CLIENTS];
	size_t n;
	uint64_t turns;
	long deadline; /* for the one whose turn it is */
};

/* Listens in directory dirfd. */
int jobserve_open(struct jobserve *s, int dirfd, jobserve_fn *fn, void *arg);

/* Fills in JOBSERVE_POLLS at most, and returns how many. */
size_t jobserve_poll(const struct jobserve *s, struct pollfd *p);
void jobserve_handle(struct jobserve *s, const struct pollfd *p, size_t n);

/* Do bytes wait to be fed? clock_ms() until when at most; 0: none do. */
long jobserve_due(struct jobserve *s);

/*
 * Writes some of them to fd, which does not block. Where that is -1, or broken,
 * the client hears word.
 */
void jobserve_feed(struct jobserve *s, int fd, const char *word);

/* To be called when due: nobody has read. */
void jobserve_on_time(struct jobserve *s);

/* Who still waits for an answer sees the end of his connection. */
void jobserve_drop_all(struct jobserve *s);

#endif
