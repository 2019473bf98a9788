/* SPDX-License-Identifier: MIT */
/*
 * The processes of a job, the keeper of inside.h and all below it, and the
 * ladder on which they are ended: the interrupt key was typed; TERM; a kill
 * that nothing outruns. The last goes by the job's cgroup where it has one,
 * else by walking the tree; what forks faster than that is ended with all of
 * its session, by the session's init, which need not fork.
 */
#ifndef SB_LADDER_H
#define SB_LADDER_H

#include <stdint.h>
#include <sys/types.h>

#include "cgroup.h"
#include "ns.h"

enum rung {
	RUNG_GROUND,
	RUNG_KEY, /* 200 ms for what the key does */
	RUNG_TERM, /* 100 ms for what TERM does */
	RUNG_KILL /* nobody is left */
};

struct ladder {
	const char *job, *session; /* ids, borrowed */
	int procfd; /* /proc */
	int sessionfd; /* the session's directory */
	struct hold hold;
	int initfd; /* pidfd of its init */
	struct leaf leaf; /* of the job, or an empty one */
	pid_t keeper; /* 0: not begun, or gone and reaped */
	enum rung rung;
	long due; /* clock_ms() of the next rung, or 0 */
	char trouble[400]; /* why it ended otherwise than asked for, or "" */
};

#define LADDER_INIT \
	{ .procfd = -1, .sessionfd = -1, .initfd = -1, .leaf = LEAF_INIT }

void ladder_signal(const struct ladder *l, int sig);

/* Zombies and the keeper aside. */
uint64_t ladder_count(const struct ladder *l);

/* Up to this rung, if it is not there yet. RUNG_KILL returns when all died. */
void ladder_climb(struct ladder *l, enum rung to);

/*
 * Begins with a key, where the terminal is open, not blocking; without one (-1)
 * with INT for all.
 */
void ladder_type(struct ladder *l, int terminal, char key);

/* To be called when due: one rung. */
void ladder_on_time(struct ladder *l);

/* The keeper has ended, or will. */
void ladder_reap(struct ladder *l);

/*
 * The keeper ended before it said how the command did: the rest is killed, and
 * trouble says why that may be. since: CLOCK_REALTIME of the job's start, ns.
 */
void ladder_lost(struct ladder *l, uint64_t since);

#endif
