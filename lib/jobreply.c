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
#include "io.h"
#include "json.h"
#include "jobctl.h"
#include "jobend.h"
#include "num.h"
#include "out.h"
#include "path.h"
#include "rows.h"
#include "stage.h"
#include "transcript.h"

enum {
	ASK_MS = 2000,
	LIVE_BYTES = 1 << 24,
	ANSWER_BYTES = 1 << 26
};

/* Rows as they are collected for one answer. */
struct page {
	struct buf text; /* joined by LF */
	uint64_t first, end, total, live_from;
	uint64_t dropped; /* rows that are lost, of those asked for */
	bool any, live, wrapped;
};

static void
add_row(struct page *p, const char *text, size_t n)
{
	if (p->any)
		buf_addc(&p->text, '\n');
	p->any = true;
	buf_add(&p->text, text, n);
}

static bool
take_row(uint64_t row, const char *text, size_t n, unsigned flags, void *arg)
{
	struct page *p = arg;
	char words[64];

	(void)row;
	if (flags & ROW_GAP) {
		p->dropped += n;
		snprintf(words, sizeof words, "[... %zu rows dropped ...]", n);
		add_row(p, words, strlen(words));
		return true;
	}
	p->wrapped |= (flags & ROW_WRAPPED) != 0;
	add_row(p, text, n);
	return true;
}

/* The file "live" as transcript.h has it; rows may contain NUL. */
struct live {
	struct buf text;
	uint64_t final;
	size_t at; /* of the first row in text */
};

static bool
read_live(int dirfd, struct live *l)
{
	char *lf;

	if (io_read_file_at(dirfd, LIVE_NAME, &l->text, LIVE_BYTES) == -1)
		return false;
	lf = memchr(buf_str(&l->text), '\n', l->text.len);
	if (!lf)
		return false;
	*lf = '\0';
	l->at = (size_t)(lf - l->text.data) + 1;
	return num_dec(l->text.data, 0, UINT64_MAX, &l->final);
}

static void
take_live(struct page *p, const struct live *l, uint64_t skip, uint64_t limit)
{
	const char *row = l->text.data + l->at;
	const char *end = l->text.data + l->text.len, *lf;

	for (; row < end; row = lf + 1) {
		lf = memchr(row, '\n', (size_t)(end - row));
		if (!lf || lf == row)
			return;
		p->total++;
		if (skip > 0) {
			skip--;
		} else if (limit > 0) {
			limit--;
			if (!p->live)
				p->live_from = p->end;
			p->live = true;
			p->wrapped |= *row == 'w';
			add_row(p, row + 1, (size_t)(lf - row) - 1);
			p->end++;
		}
	}
}

static int
collect(int dirfd, uint64_t first, uint64_t limit, struct page *p)
{
	struct live live = { .text = BUF_INIT };
	struct rows_file f;
	uint64_t final = 0;
	bool has_live = read_live(dirfd, &live);
	int64_t n, got = 0;
	int rc = -1;

	p->first = p->end = first;
	if (rows_open(&f, dirfd) == -1) {
		rc = errno == ENOENT ? 0 : -1;
		goto out;
	}
	n = rows_count(&f);
	if (n != -1) {
		/* Rows that became final meanwhile are still among the live
		 * ones. */
		final = (uint64_t)n;
		if (has_live && live.final < final)
			final = live.final;
		p->total = final;
		if (first < final)
			got = rows_read(&f, first,
			    final - first < limit ? final - first : limit,
			    take_row, p);
	}
	rows_close(&f);
	if (n == -1 || got == -1)
		goto out;
	p->end += (uint64_t)got;
	if (has_live)
		take_live(p, &live, first > final ? first - final : 0,
		    limit - (uint64_t)got);
	rc = 0;
out:
	buf_release(&live.text);
	return rc;
}

/* ---- the cursor: rows of standard output and error that were read ---- */

static void
read_cursor(const struct job *j, uint64_t at[2])
{
	struct buf b = BUF_INIT;

	at[0] = at[1] = 0;
	if (io_read_file_at(j->dirfd, "cursor", &b, 64) == 0 &&
	    sscanf(buf_str(&b), "%" SCNu64 " %" SCNu64, &at[0], &at[1]) != 2)
		at[0] = at[1] = 0;
	buf_release(&b);
}

static int
move_cursor(const struct job *j, const uint64_t at[2])
{
	char text[64];
	int n = snprintf(
	    text, sizeof text, "%" PRIu64 " %" PRIu64 "\n", at[0], at[1]);

	return stage_file_nosync(j->dirfd, "cursor", text, (size_t)n, 0600);
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
	if (p->live)
		out_num(b, "live_from", p->live_from);
	if (p->wrapped)
		out_bool(b, "wrapped", true);
	if (p->dropped > 0)
		out_num(b, "dropped_lines", p->dropped);
}

/* What sb-publish said of the session. */
static void
out_refusal(struct buf *b, const struct job *j)
{
	struct buf text = BUF_INIT;
	struct span all, rejection;

	if (io_read_file_at(j->dirfd, "publish", &text, ANSWER_BYTES) == 0) {
		all = (struct span){ buf_str(&text), text.len };
		if (all.n > 0 && all.p[all.n - 1] == '\n')
			all.n--;
		if (json_is_valid(all.p, all.n, NULL, NULL)) {
			rejection = json_member(
			    json_member(json_member(all, "error"), "details"),
			    "publish_rejection");
			if (rejection.p) {
				out_key(b, "publish_rejection");
				buf_add(b, rejection.p, rejection.n);
			}
		}
	}
	buf_release(&text);
}

static void
out_end(struct buf *b, const struct job *j, const struct job_end *e)
{
	if (e->rejected) {
		out_bool(b, "publish_rejected", true);
		out_str(b, "publish_reject_class", e->reject_class);
		out_refusal(b, j);
	}
	if (e->failed) {
		out_bool(b, "finalization_failed", true);
		out_str(b, "finalization_failure_class", e->failure_class);
	}
	if (e->parked) {
		out_bool(b, "conflicted", true);
		out_bool(b, "session_retained", true);
	}
	if (*e->note && utf8_is_valid(e->note, strlen(e->note)))
		out_str(b, "message", e->note);
}

/* Best effort: what the answer lacks then comes with the next one. */
static void
refresh(const struct job *j)
{
	char answer[JOBCTL_ANSWER];
	int sock = jobctl_connect(j->dirfd);

	if (sock == -1)
		return;
	jobctl_ask(sock, JOBCTL_LIVE, NULL, 0, answer, ASK_MS);
	io_drop(&sock);
}

static int
look(struct job *j, enum job_state *state, struct job_end *e)
{
	*e = (struct job_end){ .status = "running" };
	if (job_state(j, state) == -1)
		return -1;
	if (*state == JOB_DEAD) {
		if (job_settle(j) == -1 || job_state(j, state) == -1)
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
		/* Somebody may still print. */
		if (e->background > 0)
			refresh(j);
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
collect_err(const struct job *j, uint64_t first, uint64_t limit, struct page *p)
{
	int fd = path_open(j->dirfd, "err", O_RDONLY | O_DIRECTORY, 0), rc;

	if (fd == -1)
		return errno == ENOENT ? 0 : -1;
	rc = collect(fd, first, limit, p);
	io_drop(&fd);
	return rc;
}

int
job_reply(struct job *j, const struct reply *r, struct buf *b,
    enum job_state *state_out)
{
	struct page out = { .first = 0 }, err = { .first = 0 };
	enum job_state state;
	struct job_meta m;
	struct job_end e;
	uint64_t at[2], wall;
	bool id;
	int rc = -1;

	if (job_meta_read(j, &m) == -1 || look(j, &state, &e) == -1)
		return -1;
	read_cursor(j, at);
	if (r->cursor) {
		if (collect(j->dirfd, at[0], UINT64_MAX, &out) == -1 ||
		    collect_err(j, at[1], UINT64_MAX, &err) == -1)
			goto out;
	} else if (r->err) {
		if (collect_err(j, r->first, r->limit, &out) == -1)
			goto out;
	} else if (collect(j->dirfd, r->first, r->limit, &out) == -1) {
		goto out;
	}
	wall = job_now() > m.start ? job_now() - m.start : 0;
	if (state == JOB_OVER)
		wall = e.wall_ns;
	buf_addc(b, '{');
	out_str(b, "status", e.status);
	if (e.has_code) {
		out_key(b, "exit_code");
		buf_addf(b, "%d", e.code);
	} else {
		out_null(b, "exit_code");
	}
	out_seconds(b, "wall_time_seconds", wall);
	out_seconds(b, "command_total_time_seconds",
	    state == JOB_RUNS || e.total_ns == 0 ? wall : e.total_ns);
	out_rows(b, &out);
	if (!m.pty && r->cursor) {
		out_key(b, "stderr");
		out_string(b, buf_str(&err.text), err.text.len);
		out_num(b, "stderr_total_lines", err.total);
	}
	id = r->id || state != JOB_OVER || out.dropped + err.dropped > 0;
	if (id)
		out_str(b, "command_session_id", j->id);
	out_str(b, "workspace_session_id", m.session);
	background_out(b, j->dirfd);
	if (state == JOB_OVER)
		out_end(b, j, &e);
	buf_addc(b, '}');
	/* Of rows that are not final only those before count as read. */
	at[0] = out.live ? out.live_from : out.end;
	at[1] = err.live ? err.live_from : err.end;
	rc = 0;
	if (r->cursor && state != JOB_OVER)
		rc = move_cursor(j, at);
	if (state_out)
		*state_out = state;
out:
	buf_release(&out.text);
	buf_release(&err.text);
	return rc;
}

void
job_reply_unknown(struct buf *b, const char *id)
{
	struct page none = { .first = 0 };

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
