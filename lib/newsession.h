/* SPDX-License-Identifier: MIT */
/* The beginning of a session: a directory, a lease, a gate. */
#ifndef SB_NEWSESSION_H
#define SB_NEWSESSION_H

#include <stdbool.h>

#include "buf.h"
#include "session.h"

/*
 * Makes a session over the current stack; session_start then starts it. Its
 * gate is held exclusively, s->gatefd, from before it can be seen: nobody else
 * takes it for one that was left behind.
 *
 *   1. Make workspace/.new.ID, its gate held, and in it the directories of an
 *      overlay.
 *   2. Under the shared stack lock read the manifest and write it as the
 *      lease: no layer of it can go from now on.
 *   3. Give the upperdir owner, mode and xattrs of the directory that it
 *      covers.
 *   4. Rename to workspace/ID.
 *
 * One that is automatic (the file "auto": the last job in it publishes it) is
 * not synced: nothing of it was promised to anybody until session_sync. After
 * a crash of the machine it may have no lease, and then never was.
 *
 * On failure -1 with errno, why says what was impossible, and nothing is left:
 * ETIMEDOUT for the stack lock, EINVAL when the stack cannot have sessions.
 */
int session_new(struct session *s, bool automatic, struct buf *why);

/* The exit code for its errno. */
int session_new_code(int err);

/* Makes durable that the session is there. */
int session_sync(const struct session *s);

#endif
