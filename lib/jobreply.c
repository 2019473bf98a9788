/* SPDX-License-Identifier: MIT */
#include "jobreply.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "background.h"
#include "err.h"
#include "io.h"
#include "json.h"
#include "jobctl.h"
#include "jobend.h"
#include "out.h"
#include "page.h"
#include "path.h"
#include "stage.h"

enum {
	ASK_MS = 2000,
	CURSOR_BYTES = 128,
	ANSWER_BYTES = 1 << 26
};

/*
 * ---- The cursor: how many rows have been shown: rendered ones of standard
 * output and error, raw ones of both. ----
 */

static void
read_cursor(const struct job *j, uint64_t at[4])
{
	struct buf b = BUF_INIT;

	if (io_read_file_at(j->dirfd, "cursor", &b, CURSOR_BYTES) == -1 ||
	    sscanf(buf_str(&b), "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		&at[0], &at[1], &at[2], &at[3]) != 4)
		memset(at, 0, 4 * sizeof *at);
	buf_release(&b);
}

static int
move_cursor(const struct job *j, const uint64_t at[4])
{
	char text[CURSOR_BYTES];
	int n = snprintf(text, sizeof text,
	    "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", at[0], at[1],
	    at[2], at[3]);

	return stage_file_nosync(j->dirfd, "cursor", text, (size_t)n, 0600);
}

/* What can still change is shown again. */
static uint64_t
shown(const struct page *p)
{
	return p->live ? p->live_from : p->end;
}

/* ---- members ---- */

static void
out_seconds(struct buf *b, const char *name, uint64_t ns)
{
	out_key(b, name);
	buf_addf(
	    b, "%" PRIu64 ".%03" PRIu64, ns / 1000000000, ns / 1000000 % 1000);
}

static void
out_rows(struct buf *b, const struct page *p)
{
	out_num(b, "start_offset", p->first);
	out_num(b, "end_offset", p->end);
	out_num(b, "total_lines", p->total);
	out_num(b, "original_token_count", (p->text.len + 3) / 4);
	out_key(b, "output");
	out_string(b, buf_str(&p->text), p->text.len);
}

/* What the reference does not have comes last. */
static void
out_more(struct buf *b, const struct page *p)
{
	if (p->live)
		out_num(b, "live_from", p->live_from);
	if (p->wrapped)
		out_bool(b, "wrapped", true);
	if (p->lost > 0) {
		out_num(b, "dropped_lines", p->lost);
		out_num(b, "dropped_from", p->lost_from);
	}
}

/* Is there more than it has room for? */
static bool
is_part(const struct page *p)
{
	return p->cut || p->end < p->total;
}

static void
out_err(struct buf *b, const struct page *p)
{
	out_key(b, "stderr");
	out_string(b, buf_str(&p->text), p->text.len);
	out_num(b, "stderr_total_lines", p->total);
	if (is_part(p))
		out_num(b, "stderr_end_offset", p->end);
	if (p->lost > 0)
		out_num(b, "stderr_dropped_lines", p->lost);
}

/* What sb-publish said of the session: what is published, or why not. */
static void
out_publish(struct buf *b, const struct job *j, const struct job_end *e)
{
	struct buf text = BUF_INIT;
	struct span all, publish, rejection;

	if (io_read_file_at(j->dirfd, "publish", &text, ANSWER_BYTES) == -1)
		goto out;
	all = (struct span){ buf_str(&text), text.len };
	if (all.n > 0 && all.p[all.n - 1] == '\n')
		all.n--;
	if (!json_is_valid(all.p, all.n, NULL, NULL))
		goto out;
	publish = json_member(all, "publish");
	rejection =
	    json_member(json_member(json_member(all, "error"), "details"),
		"publish_rejection");
	if (publish.p) {
		out_key(b, "publish");
		buf_add(b, publish.p, publish.n);
	}
	if (rejection.p && e->rejected) {
		out_key(b, "publish_rejection");
		buf_add(b, rejection.p, rejection.n);
	}
out:
	buf_release(&text);
}

static void
out_end(struct buf *b, const struct job *j, const struct job_end *e)
{
	if (e->rejected) {
		out_bool(b, "publish_rejected", true);
		out_str(b, "publish_reject_class", e->reject_class);
	}
	out_publish(b, j, e);
	if (e->failed) {
		out_bool(b, "finalization_failed", true);
		out_str(b, "finalization_failure_class", e->failure_class);
		if (e->attempts > 0)
			out_num(b, "finalization_attempts", e->attempts);
	}
	if (e->parked) {
		out_bool(b, "conflicted", true);
		out_bool(b, "session_retained", true);
	}
	if (*e->note && utf8_is_valid(e->note, strlen(e->note)))
		out_str(b, "message", e->note);
}

/*
 * Best effort: what the answer lacks then comes with the next one. False:
 * nobody is there any more who could print.
 */
static bool
refresh(const struct job *j)
{
	char answer[JOBCTL_ANSWER];
	int sock = jobctl_connect(j->dirfd);

	if (sock == -1)
		return errno != ENOENT && errno != ECONNREFUSED;
	jobctl_ask(sock, JOBCTL_LIVE, NULL, 0, answer, ASK_MS);
	io_drop(&sock);
	return true;
}

/*
 * Its process was killed, and nobody can write its end, say because the disk is
 * full: what is known of it. That of its session comes when it is settled.
 */
static int
look_unsettled(const struct job *j, struct job_end *e, bool *done)
{
	const char *why = strerror(errno);

	job_end_known(j, e);
	snprintf(e->note, sizeof e->note,
	    "the process of the job was killed, and its end cannot be settled "
	    "now: %s",
	    why);
	*done = true;
	return 0;
}

/* done: nothing more will be printed. */
static int
look(struct job *j, enum job_state *state, struct job_end *e, bool *done)
{
	*done = false;
	*e = (struct job_end){ .status = "running" };
	if (job_state(j, state) == -1)
		return -1;
	if (*state == JOB_DEAD) {
		if (job_settle(j) == -1)
			return look_unsettled(j, e, done);
		if (job_state(j, state) == -1)
			return -1;
		/* Another is at it. */
		if (*state == JOB_DEAD)
			*state = JOB_ENDING;
	}
	if (*state == JOB_RUNS) {
		refresh(j);
		/* Has it ended meanwhile, its live rows are final now. */
		if (job_state(j, state) == -1)
			return -1;
	}
	if (*state == JOB_OVER) {
		if (job_end_read(j, "status", e) == -1)
			return -1;
		*done = e->background == 0 || !refresh(j);
		return 0;
	}
	if (*state == JOB_ENDING && job_end_read(j, "ended", e) == -1 &&
	    errno != ENOENT)
		return -1;
	snprintf(e->status, sizeof e->status, "running");
	e->has_code = false;
	return 0;
}

static int
collect_err(const struct job *j, const struct reply *r, unsigned how,
    uint64_t first, uint64_t limit, uint64_t max, struct page *p)
{
	int fd = path_open(j->dirfd, "err", O_RDONLY | O_DIRECTORY, 0), rc;

	if (fd == -1)
		return errno == ENOENT ? 0 : -1;
	rc = page_collect(p, fd, how, first, limit, max, r->max);
	io_drop(&fd);
	return rc;
}

static int
collect(const struct job *j, struct reply *r, unsigned how, uint64_t max,
    struct page *out, struct page *err)
{
	const int raw = r->raw ? 2 : 0;
	uint64_t *at = r->at;

	if (!r->cursor)
		return r->err
		    ? collect_err(j, r, how, r->first, r->limit, max, out)
		    : page_collect(
			  out, j->dirfd, how, r->first, r->limit, max, r->max);
	read_cursor(j, at);
	if (page_collect(
		out, j->dirfd, how, at[raw], UINT64_MAX, max, r->max) == -1 ||
	    collect_err(j, r, how, at[raw + 1], UINT64_MAX, max, err) == -1)
		return -1;
	at[raw] = shown(out);
	at[raw + 1] = shown(err);
	return 0;
}

static void
out_state(struct buf *b, const struct job_meta *m, enum job_state state,
    const struct job_end *e)
{
	const uint64_t now = job_now();
	uint64_t wall = now > m->start ? now - m->start : 0;

	if (state == JOB_OVER)
		wall = e->wall_ns;
	out_str(b, "status", e->status);
	if (e->has_code) {
		out_key(b, "exit_code");
		buf_addf(b, "%d", e->code);
	} else {
		out_null(b, "exit_code");
	}
	out_seconds(b, "wall_time_seconds", wall);
	out_seconds(b, "command_total_time_seconds",
	    state == JOB_RUNS || e->total_ns == 0 ? wall : e->total_ns);
}

int
job_reply(
    struct job *j, struct reply *r, struct buf *b, enum job_state *state_out)
{
	struct page out = PAGE_INIT, err = PAGE_INIT;
	enum job_state state;
	struct job_meta m;
	struct job_end e;
	unsigned how = r->raw ? PAGE_RAW : 0;
	bool done;
	int rc = -1;

	if (job_meta_read(j, &m) == -1 || look(j, &state, &e, &done) == -1)
		return -1;
	if (done)
		how |= PAGE_DONE;
	if (collect(j, r, how, m.keep, &out, &err) == -1)
		goto out;
	buf_addc(b, '{');
	out_state(b, &m, state, &e);
	out_rows(b, &out);
	if (r->id || state != JOB_OVER || out.lost + err.lost > 0 ||
	    is_part(&out) || is_part(&err))
		out_str(b, "command_session_id", j->id);
	out_str(b, "workspace_session_id", m.session);
	if (state == JOB_OVER || state == JOB_DEAD)
		out_end(b, j, &e);
	out_more(b, &out);
	if (!m.pty && r->cursor)
		out_err(b, &err);
	background_out(b, j->dirfd);
	buf_addc(b, '}');
	if (state_out)
		*state_out = state;
	rc = 0;
out:
	page_release(&out);
	page_release(&err);
	return rc;
}

void
job_reply_print(const struct job *j, const struct reply *r, const struct buf *b)
{
	puts(b->data);
	/* At worst what was shown is shown again. */
	if (r->cursor && fflush(stdout) == 0 && !ferror(stdout) &&
	    move_cursor(j, r->at) == -1)
		warn_sys("unable to note what of job %s was shown", j->id);
	stdout_done();
}

void
job_reply_unknown(struct buf *b, const char *id)
{
	const struct page none = PAGE_INIT;

	buf_addc(b, '{');
	out_str(b, "status", "ok");
	out_null(b, "exit_code");
	out_key(b, "wall_time_seconds");
	buf_adds(b, "0.0");
	out_key(b, "command_total_time_seconds");
	buf_adds(b, "0.0");
	out_rows(b, &none);
	out_str(b, "command_session_id", id);
	out_bool(b, "found", false);
	buf_addc(b, '}');
}
