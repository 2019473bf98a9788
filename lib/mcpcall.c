/* SPDX-License-Identifier: MIT */
#include "mcpcall.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "clock.h"
#include "failure.h"
#include "line.h"
#include "mcprpc.h"
#include "mem.h"
#include "op.h"
#include "opcli.h"
#include "out.h"

#define ON_CANCEL "sb/on_cancel" /* in the _meta of a call */

enum {
	REPLY_BYTES = 8388608, /* of a line; clients give up at 10 MiB */
	ANSWER_MS = 29000, /* clients give up after 60 s at the earliest */
	GATE_MS = 5000, /* what a gateway takes besides an operation */
	PROGRESS_MS = 5000, /* between reports, where nothing else is said */
	SAID_MS = 1000, /* between reports at the least */
	HOLD_MS = 20 /* from a report to the answer */
};

/* A tool that is being called. */
struct mcpcall {
	struct mcpcall *next;
	struct mcp_peer peer;
	char *id, *token; /* of the request, of its progress (NULL: none) */
	const struct op *op;
	struct call call;
	struct buf request, reply;
	struct failure failure;
	int64_t began, bound; /* when it is answered at the latest */
	int64_t told; /* the last report, or the beginning */
	uint64_t reports,
	    mark; /* so many; of the bytes said, behind the last */
	int64_t shown; /* when it was written; 0: not yet */
	struct buf said; /* not reported yet */
	bool done; /* the answer is there */
};

/* What a tool says: an object, twice, as some clients show the one or the
 * other. */
static void
tool_members(const struct mcpcalls *c, const struct buf *object, bool is_error,
    struct buf *out)
{
	out_key(out, "content");
	if (c->tools->reference) {
		buf_adds(out, "[]");
	} else {
		buf_adds(out, "[{\"type\":\"text\",\"text\":");
		out_string(out, object->data, object->len);
		buf_adds(out, "}]");
	}
	out_key(out, "structuredContent");
	buf_add(out, object->data, object->len);
	out_bool(out, "isError", is_error);
}

static void
answer_failure(
    const struct mcpcalls *c, const struct mcp_peer *to, struct failure *f)
{
	struct buf object = BUF_INIT, members = BUF_INIT;

	failure_print(f, &object);
	tool_members(c, &object, true, &members);
	mcp_answer(to, &members, 0);
	buf_release(&object);
	failure_release(f);
}

/* Takes what a gateway answered. */
static void
answer_tool(const struct mcpcalls *c, const struct mcp_peer *to,
    const struct op *op, struct buf *text)
{
	struct failure f = FAILURE_INIT;
	struct span all = { text->data, text->len };
	struct buf object = BUF_INIT, members = BUF_INIT;

	while (all.n > 0 && strchr(" \t\r", *all.p))
		all = (struct span){ all.p + 1, all.n - 1 };
	if (all.n == 0 || *all.p != '{') {
		failure_set(&f, KIND_PROTOCOL,
		    "gateway response must be a JSON object");
		answer_failure(c, to, &f);
		return;
	}
	if (c->tools->reference)
		json_compact(all, &object);
	else
		rpc_normal(all, &object);
	tool_members(c, &object, json_member(all, "error").p != NULL, &members);
	buf_release(&object);
	if (mcp_answer(to, &members, REPLY_BYTES))
		return;
	out_num(&f.details, "bytes", all.n);
	failure_set(&f, KIND_TOO_LARGE,
	    "the answer of %s has %zu bytes, more than clients take: ask for "
	    "less of it, by its arguments (offset and limit, where it has them)",
	    op->name, all.n);
	answer_failure(c, to, &f);
}

/* ---- one call ---- */

static void
run_free(struct mcpcall *r)
{
	call_end(&r->call);
	buf_release(&r->request);
	buf_release(&r->reply);
	buf_release(&r->said);
	failure_release(&r->failure);
	free(r->id);
	free(r->token);
	free(r);
}

/* Takes it out of the list; the caller frees it. */
static void
run_unlink(struct mcpcalls *c, struct mcpcall *r)
{
	struct mcpcall **at = &c->first;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	c->n--;
}

static void
run_finish(struct mcpcalls *c, struct mcpcall *r)
{
	run_unlink(c, r);
	if (r->failure.kind)
		answer_failure(c, &r->peer, &r->failure);
	else
		answer_tool(c, &r->peer, r->op, &r->reply);
	run_free(r);
}

/* When it is told how a call gets on; what the gateway says first, at once. */
static int64_t
report_due(const struct mcpcall *r)
{
	if (!r->token || r->done)
		return LINE_NEVER;
	if (r->said.len > 0)
		return r->reports > 0 ? r->told + SAID_MS : 0;
	return r->told + PROGRESS_MS;
}

static void
run_report(struct mcpcall *r, int64_t now)
{
	struct buf line = BUF_INIT;

	if (now < report_due(r))
		return;
	if (r->said.len == 0)
		buf_addf(&r->said, "%s: running, %" PRId64 " s", r->op->name,
		    (now - r->began) / 1000);
	buf_addf(&line,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
	    "\"params\":{\"progressToken\":%s,\"progress\":%" PRIu64,
	    r->token, ++r->reports);
	out_text(&line, "message", buf_str(&r->said));
	buf_adds(&line, "}}");
	mcpout_emit(r->peer.out, &line);
	r->mark = r->peer.out->said;
	r->shown = 0;
	buf_release(&line);
	buf_cut(&r->said, 0);
	r->told = now;
}

static void
run_said(void *arg, const char *text)
{
	struct mcpcall *r = arg;

	buf_cut(&r->said, 0);
	buf_adds(&r->said, text);
	run_report(r, clock_ms());
}

/* When it has to be looked at again. */
static int64_t
run_due(const struct mcpcall *r)
{
	int64_t due = call_due(&r->call);

	if (r->done)
		return r->shown > 0 ? r->shown + HOLD_MS : LINE_NEVER;
	if (r->bound < due)
		due = r->bound;
	return report_due(r) < due ? report_due(r) : due;
}

static void
run_late(struct mcpcall *r)
{
	struct failure *f = &r->failure;

	call_end(&r->call);
	out_str(&f->details, "reason", "timeout");
	failure_set(f, KIND_CONNECTION, "no answer within %d ms: %s",
	    (int)(r->bound - r->began),
	    r->op->cancel ? "given up"
			  : "it may still go on, look before you try again");
}

/* Goes on as far as it can; may be gone afterwards. */
static void
run_step(struct mcpcalls *c, struct mcpcall *r, int64_t now)
{
	enum call_state state;

	if (!r->done) {
		state = call_step(&r->call, &r->reply, &r->failure);
		r->done = state == CALL_GOOD || state == CALL_BAD;
		if (!r->done && now >= r->bound) {
			run_late(r);
			r->done = true;
		}
		run_report(r, now);
	}
	if (r->shown == 0 && r->peer.out->gone >= r->mark)
		r->shown = now;
	/* Clients lose track of a report that comes with the answer. */
	if (r->done &&
	    (r->reports == 0 || (r->shown > 0 && now >= r->shown + HOLD_MS)))
		run_finish(c, r);
}

static struct mcpcall *
run_new(struct mcpcalls *c, const struct mcp_peer *to)
{
	struct mcpcall *r = xcalloc(1, sizeof *r), **at = &c->first;

	while (*at)
		at = &(*at)->next;
	*at = r;
	c->n++;
	r->id = xstrndup(to->id.p, to->id.n);
	r->peer = *to;
	r->peer.id.p = r->id;
	r->failure = (struct failure)FAILURE_INIT;
	r->began = r->told = clock_ms();
	return r;
}

void
mcpcalls_cancel(struct mcpcalls *c, struct span params)
{
	struct span id = json_member(params, "requestId");
	struct mcpcall *r = c->first;

	while (r && !rpc_same_id(r->peer.id, id))
		r = r->next;
	if (!r)
		return;
	run_unlink(c, r);
	mcp_batch_done(r->peer.batch);
	run_free(r);
}

/* A string or a whole number, as it came; NULL: none. */
static char *
progress_token(struct span params)
{
	struct span s =
	    json_member(json_member(params, "_meta"), "progressToken");

	if (!s.p || !strchr("\"-0123456789", *s.p) ||
	    (*s.p != '"' &&
		(memchr(s.p, '.', s.n) || memchr(s.p, 'e', s.n) ||
		    memchr(s.p, 'E', s.n))))
		return NULL;
	return xstrndup(s.p, s.n);
}

/*
 * Until when there must be an answer. Who hears how it gets on waits for what
 * takes long by its nature.
 */
static int64_t
patience(const struct mcpcalls *c, const struct mcpcall *r,
    const struct opcli *given)
{
	uint64_t ms = client_patience(r->op, given);

	if (!c->tools->reference)
		ms = r->token && r->op->deadline_ms > OP_DEADLINE_MS
		    ? r->op->deadline_ms + GATE_MS
		    : ANSWER_MS;
	return ms > 0 ? r->began + (int64_t)ms : LINE_NEVER;
}

/* What becomes of a command whose call is cancelled, where somebody said. */
static void
add_on_cancel(const struct mcpcalls *c, const struct op *op,
    struct opcli *given, struct span params)
{
	const struct op_arg *a = op_arg(op, "on_cancel");
	struct span s = json_member(json_member(params, "_meta"), ON_CANCEL);
	struct buf text = BUF_INIT;
	bool ends = c->ends;

	if (json_string(s, &text))
		ends = strcmp(buf_str(&text), "end") == 0;
	if (a && ends)
		buf_adds(&given->value[a - op->arg], "\"end\"");
	buf_release(&text);
}

static void
begin_call(struct mcpcalls *c, const struct mcp_peer *to, const struct op *op,
    struct opcli *given, const struct buf *sandbox, struct span params)
{
	struct mcpcall *r = run_new(c, to);
	struct client_request q = {
		.op = op,
		.given = given,
		.sandbox = sandbox->len > 0 ? sandbox->data : NULL,
		.token = c->client->token,
	};

	if (!c->tools->reference) {
		r->token = progress_token(params);
		add_on_cancel(c, op, given, params);
	}
	q.progress = r->token != NULL;
	client_print(&q, &r->request);
	r->op = op;
	r->call = (struct call){
		.to = &c->client->to,
		.line = r->request.data,
		.n = r->request.len,
		.connect_ms = CALL_CONNECT_MS,
		.said = run_said,
		.arg = r,
	};
	r->bound = patience(c, r, given);
	call_start(&r->call);
	run_step(c, r, clock_ms());
}

void
mcpcalls_begin(
    struct mcpcalls *c, const struct mcp_peer *to, struct span params)
{
	struct span name = json_member(params, "name");
	struct span args = json_member(params, "arguments");
	struct buf text = BUF_INIT, sandbox = BUF_INIT, why = BUF_INIT;
	struct failure f = FAILURE_INIT;
	struct opcli given = OPCLI_INIT;
	const struct op *op;

	if (json_is(args, "null"))
		args.p = NULL;
	if (!json_string(name, &text)) {
		mcp_refuse(to, RPC_PARAMS, "name must be a string", NULL);
	} else if (args.p && *args.p != '{') {
		mcp_refuse(to, RPC_PARAMS, "arguments must be an object", NULL);
	} else {
		op = mcptool_find(c->tools, &text);
		if (!op)
			failure_set(&f, KIND_INVALID, "unknown operation: %s",
			    buf_str(&text));
		else if (!mcptool_take(
			     c->tools, op, args, &given, &sandbox, &why))
			failure_set(&f, KIND_INVALID, "%s", buf_str(&why));
		else if (c->n >= MCP_CALLS_MAX)
			failure_set(&f, KIND_BUSY,
			    "%d calls are waiting, which is the most",
			    MCP_CALLS_MAX);
		else
			begin_call(c, to, op, &given, &sandbox, params);
		if (f.kind)
			answer_failure(c, to, &f);
	}
	opcli_release(&given);
	buf_release(&text);
	buf_release(&sandbox);
	buf_release(&why);
}

/* ---- all of them ---- */

size_t
mcpcalls_poll(const struct mcpcalls *c, struct pollfd *p, int64_t *due)
{
	size_t n = 0;

	for (const struct mcpcall *r = c->first; r; r = r->next) {
		p[n++] = (struct pollfd){
			.fd = r->done ? -1 : call_fd(&r->call),
			.events = call_events(&r->call),
		};
		if (run_due(r) < *due)
			*due = run_due(r);
	}
	return n;
}

void
mcpcalls_step(struct mcpcalls *c)
{
	const int64_t now = clock_ms();
	struct mcpcall *next;

	for (struct mcpcall *r = c->first; r; r = next) {
		next = r->next;
		run_step(c, r, now);
	}
}
