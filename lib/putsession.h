/* SPDX-License-Identifier: MIT */
/*
 * Changing one file in a session: written aside in the file's own directory,
 * synced, renamed; with directories that are missing, they are made aside with
 * the file in them, and the first of them is renamed. Who changes a file holds
 * the session's lock edit.lock, so that of two edits none is lost; commands do
 * not hold it, and when one changes the file under an edit, the edit begins
 * again.
 *
 * The name aside is that of session_aside, which is never shown nor published.
 * Where it is, is noted in the session's link "edit" as long as it is there:
 * what a killed run left goes with the next change.
 */
#ifndef SB_PUTSESSION_H
#define SB_PUTSESSION_H

#include "put.h"

/* True when there was no file before. */
bool put_in_session(const struct put *p, const char *session);

#endif
