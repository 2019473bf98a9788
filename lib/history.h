/* SPDX-License-Identifier: MIT */
/*
 * What was committed: history/main.ndjson, sb-store(5), one JSON object a line
 * for each version of the stack. A line is there, and synced, before the
 * manifest that it tells of: so behind the line of the manifest's version may
 * be the remains of swaps that were killed, which the next one cuts off. What
 * stands up to that line never changes again, so that readers need no lock.
 *
 * Everything is read from the end: what is new costs little in a long file.
 */
#ifndef SB_HISTORY_H
#define SB_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "buf.h"
#include "path.h"

#define HISTORY_FILE     "history/main.ndjson"
#define HISTORY_META_MAX 65536

/*
 * Appends the line for version to out, with its newline. meta, the text of
 * meta/LAYER.json or NULL, is an object whose members are added; they are the
 * caller's, but "version", "cause" and "layer" are not among them. -1 with
 * EINVAL when meta is no such object.
 */
int history_format(struct buf *out, uint64_t version, const char *cause,
    const char *layer, const struct buf *meta);

/*
 * Appends line (of history_format) and syncs it, and what is new of its
 * directories, after cutting off what was not committed: manifest is the
 * version that the manifest has now. Call with the stack lock held
 * exclusively. -1 with errno: nothing was added then but what the next call
 * cuts off.
 */
int history_append(int stackfd, uint64_t manifest, const struct buf *line);

struct history {
	/* The line that history_prev found, without its newline; borrowed
	 * until the next call. */
	const char *p;
	size_t n;
	off_t at, end; /* where it begins, and where the next one does */
	uint64_t version; /* of HISTORY_LINE, as is layer */
	char layer[ID_MAX + 1];
	/* private */
	int fd;
	off_t window;
	struct buf bytes;
};

#define HISTORY_INIT { .fd = -1 }

enum history_kind {
	HISTORY_ERROR = -1, /* errno; ESTALE when somebody cut it meanwhile */
	HISTORY_START, /* nothing before */
	HISTORY_LINE,
	HISTORY_TORN, /* the last line has no newline */
	HISTORY_BAD, /* a line that is not of history_format */
};

/* Opens for reading from the end. 1; 0 when there is no history; -1 with
 * errno. Ended by history_close in any case. */
int history_open(int stackfd, struct history *h);
enum history_kind history_prev(struct history *h);
void history_close(struct history *h);

#endif
