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
#include "io.h"
#include "json.h"
#include "line.h"
#include "out.h"
#include "request.h"

static bool
failed(struct failure *f, const char *why)
{
	return failure_set(
	    f, KIND_CONNECTION, "gateway connection failed: %s", why);
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
	else if (strncmp(buf_str(&l->buf), LINE_PROGRESS,
		     strlen(LINE_PROGRESS)) == 0)
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

/* *any: is anything there that the gateway said? */
static bool
receive(const struct call *c, int fd, struct buf *reply, bool *any,
    struct failure *f)
{
	struct line l = { .fd = fd };
	bool progress = false, good;
	size_t n = 0;

	for (;;) {
		int64_t deadline = c->answer_ms > 0 && c->answer_ms < INT32_MAX
		    ? clock_ms() + (int64_t)c->answer_ms
		    : LINE_NEVER;
		enum line_end end = line_read(&l, REQUEST_MAX, deadline, &n);

		*any = *any || end != LINE_ERROR;
		if (end == LINE_WHOLE &&
		    strncmp(buf_str(&l.buf), LINE_PROGRESS,
			strlen(LINE_PROGRESS)) == 0) {
			pass_on(c, l.buf.data, n);
			progress = true;
			continue;
		}
		switch (end) {
		case LINE_WHOLE:
			good = take_final(l.buf.data, n, reply, f);
			break;
		case LINE_EOF:
			*any = l.buf.len > 0 || progress;
			good = ended(&l, l.buf.len, progress, f);
			break;
		case LINE_LARGE:
			good = failure_set(f, KIND_PROTOCOL,
			    "gateway response exceeded %d bytes", REQUEST_MAX);
			break;
		case LINE_LATE:
			good = late(c, f);
			break;
		case LINE_ERROR:
		default:
			good = failed(f, strerror(errno));
			break;
		}
		buf_release(&l.buf);
		return good;
	}
}

bool
call_run(const struct call *c, struct buf *reply, struct failure *f)
{
	const char *unsent = NULL;
	bool good, any = false;
	int fd;

	if (c->n > REQUEST_MAX)
		return failure_set(f, KIND_PROTOCOL,
		    "gateway request exceeded %d bytes", REQUEST_MAX);
	fd = endpoint_dial(c->to, c->connect_ms);
	if (fd == -1)
		return failed(f, strerror(errno));
	if (line_write(fd, c->line, c->n, c->connect_ms) == -1)
		unsent = strerror(errno);
	else
		shutdown(fd, SHUT_WR);
	/* Who refuses a request may have answered before it was read. */
	good = receive(c, fd, reply, &any, f);
	if (unsent && !any)
		good = failed(f, unsent);
	io_drop(&fd);
	return good;
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
