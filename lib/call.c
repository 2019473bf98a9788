/* SPDX-License-Identifier: MIT */
#include "call.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "clock.h"
#include "dial.h"
#include "io.h"
#include "json.h"
#include "out.h"
#include "request.h"

static bool
failed(struct failure *f, const char *why)
{
	return failure_set(
	    f, KIND_CONNECTION, "gateway connection failed: %s", why);
}

enum {
	AGAIN_MS = 20 /* until a gateway without room is asked again */
};

static bool
is_progress(const struct line *l)
{
	return strncmp(
		   buf_str(&l->buf), LINE_PROGRESS, strlen(LINE_PROGRESS)) == 0;
}

/* "cli_log(" and a JSON string and ")" */
static void
pass_on(const struct call *c, const char *line, size_t n)
{
	size_t head = strlen(LINE_PROGRESS);
	struct buf text = BUF_INIT;
	struct span s = { line + head, n - head };

	if (!c->said)
		return;
	if (s.n > 0 && s.p[s.n - 1] == ')')
		s.n--;
	if (!json_is_valid(s.p, s.n, NULL, NULL) || !json_string(s, &text)) {
		buf_cut(&text, 0);
		buf_add(&text, s.p, s.n);
	}
	c->said(c->arg, buf_str(&text));
	buf_release(&text);
}

/* What there is of a line that has no end. */
static bool
ended(const struct line *l, size_t n, bool progress, struct failure *f)
{
	const char *why = "gateway response was not newline terminated";

	if (n == 0)
		why = progress
		    ? "gateway closed before returning a final response"
		    : "gateway returned an empty response";
	else if (is_progress(l))
		why = "gateway cli_log line was not terminated";
	return failure_set(f, KIND_PROTOCOL, "%s", why);
}

static bool
late(const struct call *c, struct failure *f)
{
	out_str(&f->details, "reason", "timeout");
	return failure_set(f, KIND_CONNECTION,
	    "gateway connection failed: no answer within %" PRIu64 " ms",
	    c->answer_ms);
}

static bool
take_final(const char *line, size_t n, struct buf *reply, struct failure *f)
{
	const char *why = NULL;
	size_t at = 0;

	if (!json_is_valid(line, n, &why, &at))
		return failure_set(f, KIND_PROTOCOL,
		    "gateway response json failed: %s at byte %zu", why, at);
	buf_add(reply, line, n);
	return true;
}

/* ---- steps ---- */

static enum call_state
end_with(struct call *c, bool good)
{
	c->state = good ? CALL_GOOD : CALL_BAD;
	return c->state;
}

/* For the answer, from now on. */
static void
wait_on(struct call *c)
{
	c->state = CALL_WAITS;
	c->due = c->answer_ms > 0 && c->answer_ms < INT32_MAX
	    ? clock_ms() + (int64_t)c->answer_ms
	    : LINE_NEVER;
}

static bool
is_ready(const struct call *c)
{
	struct pollfd p = { .fd = c->in.fd, .events = call_events(c) };

	return poll(&p, 1, 0) == 1;
}

/* False: not yet, or it was the end. */
static bool
connected(struct call *c, struct failure *f)
{
	for (;;) {
		bool late = line_left(c->due) == 0;
		int err;

		if (c->in.fd == -1)
			c->in.fd = endpoint_start(c->to, c->nth);
		if (c->in.fd == -1 && errno == EAGAIN && !late)
			return false;
		if (c->in.fd == -1) {
			err = errno == EAGAIN ? ETIMEDOUT : errno;
			/* There may have been some before. */
			if (err == EADDRNOTAVAIL && c->nth > 0)
				err = c->err;
			end_with(c, failed(f, strerror(err)));
			return false;
		}
		if (!is_ready(c)) {
			if (!late)
				return false;
			err = ETIMEDOUT;
		} else {
			err = dial_error(c->in.fd);
		}
		if (err == 0)
			return true;
		c->err = err;
		c->nth++;
		io_drop(&c->in.fd);
	}
}

/* False: not all yet. */
static bool
sent(struct call *c)
{
	while (c->sent < c->n) {
		ssize_t w = send(c->in.fd, c->line + c->sent, c->n - c->sent,
		    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (w == -1 && errno == EINTR)
			continue;
		if (w == -1 && errno == EAGAIN && line_left(c->due) > 0)
			return false;
		if (w == -1) {
			c->err = errno == EAGAIN ? ETIMEDOUT : errno;
			return true;
		}
		c->sent += (size_t)w;
		c->due = clock_ms() + c->connect_ms;
	}
	shutdown(c->in.fd, SHUT_WR);
	return true;
}

static enum call_state
receive(struct call *c, struct buf *reply, struct failure *f)
{
	for (;;) {
		size_t n = 0;

		switch (line_read(&c->in, REQUEST_MAX, 0, &n)) {
		case LINE_WHOLE:
			if (!is_progress(&c->in))
				return end_with(
				    c, take_final(c->in.buf.data, n, reply, f));
			pass_on(c, c->in.buf.data, n);
			c->progress = true;
			wait_on(c);
			continue;
		case LINE_EOF:
			/* Who refuses a request may have answered before it
			 * was read. */
			if (c->sent < c->n && c->in.buf.len == 0 &&
			    !c->progress)
				return end_with(c, failed(f, strerror(c->err)));
			return end_with(
			    c, ended(&c->in, c->in.buf.len, c->progress, f));
		case LINE_LARGE:
			return end_with(c,
			    failure_set(f, KIND_PROTOCOL,
				"gateway response exceeded %d bytes",
				REQUEST_MAX));
		case LINE_LATE:
			if (line_left(c->due) > 0)
				return c->state;
			return end_with(c, late(c, f));
		case LINE_ERROR:
		default:
			if (c->sent < c->n && !c->progress)
				errno = c->err;
			return end_with(c, failed(f, strerror(errno)));
		}
	}
}

void
call_start(struct call *c)
{
	c->state = CALL_DIALS;
	c->in = (struct line){ .fd = -1 };
	c->sent = c->nth = 0;
	c->progress = false;
	c->due = clock_ms() + c->connect_ms;
}

enum call_state
call_step(struct call *c, struct buf *reply, struct failure *f)
{
	if (c->n > REQUEST_MAX)
		return end_with(c,
		    failure_set(f, KIND_PROTOCOL,
			"gateway request exceeded %d bytes", REQUEST_MAX));
	if (c->state == CALL_DIALS && connected(c, f)) {
		c->state = CALL_SENDS;
		c->due = clock_ms() + c->connect_ms;
	}
	if (c->state == CALL_SENDS && sent(c))
		wait_on(c);
	return c->state == CALL_WAITS ? receive(c, reply, f) : c->state;
}

int
call_fd(const struct call *c)
{
	return c->in.fd;
}

short
call_events(const struct call *c)
{
	return c->state == CALL_WAITS ? POLLIN : POLLOUT;
}

int64_t
call_due(const struct call *c)
{
	int64_t again = clock_ms() + AGAIN_MS;

	return c->in.fd == -1 && again < c->due ? again : c->due;
}

void
call_end(struct call *c)
{
	buf_release(&c->in.buf);
	io_drop(&c->in.fd);
}

bool
call_run(struct call *c, struct buf *reply, struct failure *f)
{
	enum call_state state;

	call_start(c);
	for (;;) {
		struct pollfd p;

		state = call_step(c, reply, f);
		if (state == CALL_GOOD || state == CALL_BAD)
			break;
		p = (struct pollfd){ .fd = call_fd(c),
			.events = call_events(c) };
		if (poll(&p, 1, line_left(call_due(c))) == -1 &&
		    errno != EINTR) {
			failed(f, strerror(errno));
			state = CALL_BAD;
			break;
		}
	}
	call_end(c);
	return state == CALL_GOOD;
}

bool
call_is_error(const struct buf *reply)
{
	struct span all = { buf_str(reply), reply->len };

	return json_member(all, "error").p != NULL;
}

void
call_uuid(char out[37])
{
	unsigned char b[16];
	size_t n = 0;

	/* 16 bytes never come short, and the pool is filled at boot. */
	while (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
		continue;
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	for (size_t i = 0; i < sizeof b; i++) {
		static const char digit[] = "0123456789abcdef";

		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[n++] = '-';
		out[n++] = digit[b[i] >> 4];
		out[n++] = digit[b[i] & 15];
	}
	out[n] = '\0';
}
