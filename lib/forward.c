/* SPDX-License-Identifier: MIT */
#include "forward.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "io.h"
#include "json.h"
#include "line.h"
#include "out.h"

enum {
	STEP_MS = 30000 /* to connect, and for each step of sending */
};

static bool
fail(struct failure *f, const char *why)
{
	return failure_set(
	    f, KIND_INTERNAL, "sandbox daemon forwarding failed: %s", why);
}

static int
make_line(const struct box *box, const struct request *r,
    const char *token_name, struct buf *b)
{
	const struct {
		const char *name;
		struct span value;
	} member[] = {
		{ "op", r->op },
		{ "request_id", r->request_id },
		{ "scope", r->scope },
		{ "args", r->args },
	};
	struct buf token = BUF_INIT;
	int rc;

	/* No number loses a digit. */
	buf_addc(b, '{');
	for (size_t i = 0; i < sizeof member / sizeof *member; i++) {
		out_key(b, member[i].name);
		buf_add(b, member[i].value.p, member[i].value.n);
	}
	rc = box_token(box, &token);
	if (token.len > 0)
		out_str(b, token_name, buf_str(&token));
	if (r->progress)
		out_bool(b, "_stream_logs", true);
	buf_adds(b, "}\n");
	if (token.data)
		explicit_bzero(token.data, token.len);
	buf_release(&token);
	return rc;
}

int
forward_send(const struct box *box, const char *run, const struct request *r,
    const char *token_name, struct failure *f)
{
	struct buf b = BUF_INIT;
	int fd = -1;

	if (make_line(box, r, token_name, &b) == 0)
		fd = box_dial(box, run, STEP_MS);
	if (fd == -1) {
		fail(f, strerror(errno));
	} else if (line_write(fd, b.data, b.len, STEP_MS) == -1) {
		fail(f, strerror(errno));
		io_drop(&fd);
	}
	explicit_bzero(b.data, b.len);
	buf_release(&b);
	return fd;
}

/* Waits for more: false when the time is over, or the peer has gone. */
static bool
wait_more(const struct forward *w, struct failure *f)
{
	struct pollfd p[] = { { .fd = w->fd, .events = POLLIN },
		{ .fd = w->peer } };
	struct buf why = BUF_INIT;

	if (line_left(w->deadline) == 0) {
		buf_addf(&why, "daemon request timed out after %" PRIu64 " ms",
		    w->ms);
		out_str(&f->details, "reason", "timeout");
		fail(f, buf_str(&why));
		buf_release(&why);
		return false;
	}
	if (poll(p, 2, line_left(w->deadline)) == -1 && errno != EINTR)
		return fail(f, strerror(errno));
	return p[1].revents == 0;
}

/* A whole line: progress is passed on, else it is the answer. */
static bool
is_progress(const struct forward *w, struct line *l, size_t n)
{
	if (n < strlen(LINE_PROGRESS) ||
	    memcmp(l->buf.data, LINE_PROGRESS, strlen(LINE_PROGRESS)) != 0)
		return false;
	if (w->progress)
		w->progress(l->buf.data, n + 1);
	return true;
}

bool
forward_receive(const struct forward *w, struct buf *reply, struct failure *f)
{
	struct line l = { .fd = w->fd };
	const char *why = NULL;
	size_t n;

	while (!why && reply->len == 0) {
		switch (line_read(&l, REQUEST_MAX, clock_ms(), &n)) {
		case LINE_WHOLE:
			if (is_progress(w, &l, n))
				break;
			if (n > 0 && *l.buf.data == '{' &&
			    json_is_valid(l.buf.data, n, NULL, NULL))
				buf_add(reply, l.buf.data, n);
			else
				why = "daemon response is not JSON";
			break;
		case LINE_EOF:
			why = n == 0
			    ? "daemon returned an empty response"
			    : "daemon response was not newline terminated";
			break;
		case LINE_LARGE:
			why = "daemon response exceeded 16777216 bytes";
			break;
		case LINE_ERROR:
			why = strerror(errno);
			break;
		case LINE_LATE:
			if (!wait_more(w, f)) {
				buf_release(&l.buf);
				return false;
			}
			break;
		}
	}
	buf_release(&l.buf);
	return why ? fail(f, why) : true;
}

bool
forward_is_activity(const struct buf *reply)
{
	struct span all = { buf_str(reply), reply->len };
	struct span error = json_member(all, "error");
	struct span details = json_member(error, "details");
	struct buf stage = BUF_INIT;
	bool destroy;

	if (!error.p)
		return true;
	destroy = json_string(json_member(details, "stage"), &stage) &&
	    strcmp(buf_str(&stage), "destroy") == 0;
	buf_release(&stage);
	return destroy &&
	    json_is(json_member(details, "publish_completed"), "true");
}
