/* SPDX-License-Identifier: MIT */
/*
 * How a command ended, and what that is called in answers:
 *
 *   exit 0                     ok, 0
 *   exit n, killed by signal n error, n or -n
 *   could not be started       error, no code
 *   time limit, cancel         timed_out, 124; cancelled, 130: whatever the
 *                              shell made of it
 */
#ifndef SB_FATE_H
#define SB_FATE_H

#include <stdbool.h>

#include "job.h"

enum fate_reason {
	FATE_OWN,
	FATE_TIME,
	FATE_CANCEL
};

struct fate {
	bool ended; /* the shell has, with this status of wait(2) */
	int status;
	bool failed; /* it could not be started; trouble says why */
	enum fate_reason reason;
	char trouble[200];
};

/* The first reason stands, and none counts behind the end. */
void fate_because(struct fate *f, enum fate_reason reason);

/* Fills in status, code and note. */
void fate_tell(const struct fate *f, struct job_end *e);

#endif
