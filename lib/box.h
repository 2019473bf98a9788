/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes as the host knows them: directories sandboxes/ID of the state.
 *
 *	record.json	one JSON object: the record that clients get
 *	activity	as many bytes as there were changes
 *	token		of its gate, when that is reached over TCP
 *	env/		the environment of its gate, a file for each variable
 *
 * One that a provider made (sb-provider(7)) is a box, and has besides
 *
 *	lock		held as long as the box runs
 *	busy		held by who creates, starts, stops or destroys it
 *	readonly	mounts that cannot be written in it, a line for each
 *
 * The locks say what became of the state in the record when whoever wrote it
 * was killed: "creating" or "stopping" and nobody is busy is "failed", "ready"
 * and no box runs is "stopped". Nothing has to reconcile anything.
 *
 * Its gate listens at the address "daemon" of the record, or, when that is
 * null, on the socket box/ID/gate below SB_RUN.
 */
#ifndef SB_BOX_H
#define SB_BOX_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "failure.h"
#include "json.h"
#include "path.h"

#define BOX_DIR    "sandboxes"
#define BOX_SOCKET "gate"
#define BOX_RECORD "record.json"
#define BOX_LOCK   "lock"
#define BOX_BUSY   "busy"
#define BOX_MOUNTS "readonly"

#define STATE_CREATING "creating"
#define STATE_READY    "ready"
#define STATE_STOPPING "stopping"
#define STATE_STOPPED  "stopped"
#define STATE_FAILED   "failed"

enum {
	BOX_RECORD_MAX = 1048576,
	BOX_MOUNTS_MAX = 1048576
};

struct box {
	char id[ID_MAX + 1];
	int dirfd;
	struct buf text; /* of the record */
	struct span record;
	struct buf recorded, state; /* as it was written; as it is */
	struct buf provider; /* empty: none */
	struct buf host; /* of daemon; empty: none */
	uint16_t port;
};

#define BOX_INIT { .dirfd = -1 }

/* [A-Za-z0-9._-], and something. An id that can be one of ours is shorter. */
bool box_id_is_valid(const char *s);

/*
 * Reads a record. state: path of the state directory. False: f is set, to the
 * words of the interface: not an id, not there, or damaged.
 */
bool box_read(
    const char *state, const char *id, struct box *box, struct failure *f);
void box_release(struct box *box);

/* Is this its state? */
bool box_is(const struct box *box, const char *state);

/* Always false: f is set to the words for a change of state that cannot be. */
bool box_cannot(const struct box *box, const char *to, struct failure *f);

/* Is it one that requests are sent to? run: the directory of runs. */
bool box_is_ready(const struct box *box, const char *run, struct failure *f);

/* Connects to its gate. -1 with errno. */
int box_dial(const struct box *box, const char *run, int ms);

/* The token of its gate; empty when there is none. -1 with errno. */
int box_token(const struct box *box, struct buf *token);

/* Counts a change. */
void box_count(const struct box *box);

/* Appends the record, with state, count and read-only mounts as they are. */
void box_print(const struct box *box, struct buf *out);

/* Ids, sorted. None when there is no directory. -1 with errno. */
int box_list(const char *state, struct names *out);

#endif
