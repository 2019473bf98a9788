/* SPDX-License-Identifier: MIT */
#include "fate.h"

#include <stdio.h>
#include <sys/wait.h>

void
fate_because(struct fate *f, enum fate_reason reason)
{
	if (!f->ended && f->reason == FATE_OWN)
		f->reason = reason;
}

static void
set(struct job_end *e, const char *status, int code)
{
	snprintf(e->status, sizeof e->status, "%s", status);
	e->has_code = true;
	e->code = code;
}

void
fate_tell(const struct fate *f, struct job_end *e)
{
	int code;

	snprintf(e->note, sizeof e->note, "%s", f->trouble);
	switch (f->reason) {
	case FATE_TIME:
		set(e, "timed_out", 124);
		return;
	case FATE_CANCEL:
		set(e, "cancelled", 130);
		return;
	case FATE_OWN:
		break;
	}
	code = WIFSIGNALED(f->status) ? -WTERMSIG(f->status)
				      : WEXITSTATUS(f->status);
	set(e, code == 0 && !f->failed ? "ok" : "error", code);
	e->has_code = !f->failed;
}
