/* SPDX-License-Identifier: MIT */
/*
 * The beginning, the changes of state and the end of what box.h reads.
 */
#ifndef SB_BOXMAKE_H
#define SB_BOXMAKE_H

#include "box.h"
#include "buf.h"
#include "profile.h"

/* "eos-" and a UUID. */
void box_new_id(char id[ID_MAX + 1]);

struct box_new {
	const char *id, *workspace, *state;
	const char *source, *root_hash; /* of the base; NULL: none yet */
	const char *provider, *image; /* NULL: of none */
	const struct profile *profile; /* NULL: no limits */
};

/* Appends the text of a record. */
void box_format(const struct box_new *n, struct buf *out);

/* Appends the member shared_base. */
void box_out_base(struct buf *b, const char *source, const char *root_hash);

/*
 * Opens the directory of sandboxes, which is made when it is missing, and has
 * it alone until *lock is closed: directories with a dot name are made and
 * removed only by who has it, so those that are there are what a killed
 * process left, and go. -1 with errno.
 */
int box_lock_all(const char *state, int *lock);

/*
 * Makes the directory n->id, its record in it, all or nothing. busy: NULL, or
 * gets the lock on BOX_BUSY, held from before it can be seen. The directory of
 * sandboxes is locked. EEXIST: there is such a sandbox. -1 with errno.
 */
int box_make(
    int boxesfd, const struct box_new *n, const char *store, int *busy);

/*
 * Replaces the record, with this state, and with this member shared_base,
 * which may be NULL: as it was. Nobody else is busy with the box. box is as it
 * was before. -1 with errno.
 */
int box_set(struct box *box, const char *state, const struct buf *base);

/*
 * Removes the directory id: what is in it but for the record and BOX_BUSY
 * first, so that one who is killed leaves a sandbox that failed. -1 with
 * errno.
 */
int box_remove(const char *state, const char *id);

#endif
