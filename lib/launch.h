/* SPDX-License-Identifier: MIT */
/*
 * Starting the command of a job in its session, as the job's files say: meta,
 * session, cmd, env, stdin.
 */
#ifndef SB_LAUNCH_H
#define SB_LAUNCH_H

#include "running.h"

/*
 * Opens the session, makes the files for the output; starts the joiner of
 * inside.h and waits for its end. Fills in r but for what inside.h tells. The
 * file env is gone after this. Returns the socket with the messages of
 * inside.h, not blocking; -1 with errno, and what could not be done.
 */
int launch(struct running *r, const char **failed);

#endif
