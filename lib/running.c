/* SPDX-License-Identifier: MIT */
#include "running.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "background.h"
#include "io.h"
#include "num.h"
#include "pty.h"

int
running_input(const struct running *r)
{
	return r->meta->pty ? r->out.fd : r->pipefd;
}

void
running_feed(struct running *r)
{
	jobserve_feed(&r->server, running_input(r),
	    r->fate.ended ? JOBCTL_OVER : JOBCTL_NO);
}

void
running_cancel(struct running *r)
{
	fate_because(&r->fate, FATE_CANCEL);
	ladder_climb(&r->ladder, RUNG_TERM);
}

void
running_tell(const struct running *r, struct job_end *e)
{
	const int lost = r->out.err != 0 ? r->out.err : r->err.err;

	e->background = ladder_count(&r->ladder);
	fate_tell(&r->fate, e);
	if (!*e->note)
		snprintf(e->note, sizeof e->note, "%s", r->ladder.trouble);
	if (!*e->note && lost != 0)
		snprintf(e->note, sizeof e->note,
		    "unable to keep all output: %s", strerror(lost));
}

/* ---- what is asked ---- */

static const char *
cancel(struct running *r, const char *key)
{
	if (r->fate.ended && ladder_count(&r->ladder) == 0)
		return JOBCTL_OVER;
	if (*key == '\0') {
		running_cancel(r);
		return JOBCTL_OK;
	}
	fate_because(&r->fate, FATE_CANCEL);
	ladder_type(&r->ladder, r->meta->pty ? r->out.fd : -1, *key);
	return JOBCTL_OK;
}

static const char *
end_input(struct running *r)
{
	if (!r->meta->pty) {
		io_drop(&r->pipefd);
		return JOBCTL_OK;
	}
	if (pty_end_input(r->out.fd, r->server.in_line) == -1)
		return errno == EAGAIN ? JOBCTL_STUCK : JOBCTL_NO;
	r->server.in_line = false;
	return JOBCTL_OK;
}

static const char *
resize(struct running *r, const char *text)
{
	unsigned rows, cols;

	if (!r->meta->pty || r->out.fd == -1 ||
	    sscanf(text, "%u %u", &rows, &cols) != 2 || rows < 1 || cols < 1 ||
	    rows > PTY_SIZE_MAX || cols > PTY_SIZE_MAX ||
	    pty_resize(r->out.fd, rows, cols) == -1)
		return JOBCTL_NO;
	transcript_resize(&r->out, rows, cols);
	return JOBCTL_OK;
}

static const char *
send_signal(struct running *r, const char *text)
{
	uint64_t sig;

	if (!num_dec(text, 1, (uint64_t)SIGRTMAX, &sig))
		return JOBCTL_NO;
	ladder_signal(&r->ladder, (int)sig);
	return JOBCTL_OK;
}

static const char *
show(struct running *r)
{
	transcript_show(&r->out);
	transcript_show(&r->err);
	if (r->over)
		background_write(
		    r->job->dirfd, r->ladder.procfd, r->ladder.keeper);
	return JOBCTL_OK;
}

static const char *
answer(enum jobctl_op op, const char *p, void *arg)
{
	struct running *r = arg;

	switch (op) {
	case JOBCTL_CANCEL:
		return cancel(r, p);
	case JOBCTL_SIGNAL:
		return send_signal(r, p);
	case JOBCTL_LIVE:
		return show(r);
	case JOBCTL_DATA:
		if (r->fate.ended)
			return JOBCTL_OVER;
		return running_input(r) == -1 ? JOBCTL_NO : NULL;
	case JOBCTL_EOF:
		return r->fate.ended ? JOBCTL_OVER : end_input(r);
	case JOBCTL_SIZE:
		return r->fate.ended ? JOBCTL_OVER : resize(r, p);
	case JOBCTL_PING:
		break;
	}
	return JOBCTL_NO;
}

int
running_listen(struct running *r)
{
	return jobserve_open(&r->server, r->job->dirfd, answer, r);
}
