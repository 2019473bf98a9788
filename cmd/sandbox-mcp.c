/* SPDX-License-Identifier: MIT */
/*
 * sandbox-mcp: operations as tools for models, by the Model Context Protocol
 * over standard input and output. Shape: filter. Of the operations it knows
 * nothing but their files.
 *
 *   1. Read the operations of the set; where is the gateway, with which token?
 *   2. Take lines, each a message: answer at once what needs no gateway, and
 *      begin a call for each tool that is called, a connection of its own.
 *   3. Wait for all of them in one loop: lines, answers, progress, room in the
 *      output. Answers go out in the order in which they come.
 *   4. At the end of the input let the calls that are there finish, for a while.
 *
 * Which revision of the protocol counts is decided for each message by itself:
 * what claims 2026-07-28 is answered so, all else as "initialize" agreed.
 *
 * Invariant: standard output has nothing but messages, each one line written by
 * one place; a request is answered at most once, and not when it was cancelled.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "buf.h"
#include "call.h"
#include "client.h"
#include "clock.h"
#include "err.h"
#include "failure.h"
#include "io.h"
#include "json.h"
#include "line.h"
#include "mcprpc.h"
#include "mcptool.h"
#include "mem.h"
#include "op.h"
#include "out.h"
#include "place.h"
#include "request.h"

#define MODERN  "2026-07-28"
#define LEGACY  "2025-11-25" /* for those who ask for one that we do not know */
#define BATCHES "2025-03-26" /* the one that has them */
#define META    "io.modelcontextprotocol/"
#define SERVER                                                             \
	"{\"name\":\"sandbox-mcp\",\"title\":\"EphemeralOS Sandbox MCP\"," \
	"\"version\":\"" SB_VERSION "\"}"
#define ON_CANCEL "sb/on_cancel" /* in the _meta of a call */
#define CACHE     "\"ttlMs\":300000,\"cacheScope\":\"public\""

enum {
	EXIT_FAULT = 1,
	EXIT_LOCAL = 2, /* usage, configuration */
	LINE_BYTES = REQUEST_MAX + 65536,
	REPLY_BYTES = 8388608, /* of a line; clients give up at 10 MiB */
	QUEUE_BYTES = 67108864, /* not written yet: then nothing is read */
	CALLS_MAX = 200,
	ANSWER_MS = 29000, /* clients give up after 60 s at the earliest */
	GATE_MS = 5000, /* what a gateway takes besides an operation */
	PROGRESS_MS = 5000, /* between reports, where nothing else is said */
	SAID_MS = 1000, /* between reports at the least */
	HOLD_MS = 25, /* from a report to the answer */
	EOF_MS = 1500 /* calls may take after the end of the input */
};

static const char usage[] =
    "sandbox-mcp --set management|runtime|observability "
    "[--end-cancelled] [--reference] [--gateway-endpoint URI] [--gateway-auth-token TOKEN]";

/* Requests of one line that are answered together. */
struct batch {
	struct buf replies;
	size_t waits; /* for so many */
};

/* Whom an answer is for. */
struct peer {
	struct span id; /* with bytes of its own in a call; p NULL: nobody */
	bool modern;
	struct batch *batch; /* NULL: by itself */
};

/* A tool that is being called. */
struct run {
	struct run *next;
	struct peer peer;
	char *id, *token; /* of the request, of its progress (NULL: none) */
	const struct op *op;
	struct call call;
	struct buf request, reply;
	struct failure failure;
	int64_t began, bound; /* when it is answered at the latest */
	int64_t told; /* the last report, or the beginning */
	uint64_t reports;
	struct buf said; /* not reported yet */
	bool done; /* the answer is there */
};

static struct {
	struct mcptools tools;
	struct client client;
	bool ends; /* a command, whose call is cancelled */
	const char *version; /* agreed by "initialize"; NULL: none yet */
	bool begun; /* a line was read */
	bool skips; /* the rest of a line that is too long */
	bool held; /* there may be lines that were read and not taken */
	struct line in;
	int64_t end; /* when we leave; LINE_NEVER: not yet */
	struct buf out;
	size_t written;
	struct run *runs;
	size_t nruns;
} mcp = { .in = { .fd = STDIN_FILENO }, .end = LINE_NEVER };

__attribute__((noreturn, format(printf, 2, 3))) static void
fail(int code, const char *fmt, ...)
{
	struct buf b = BUF_INIT;
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) == -1)
		die(EXIT_SYS, "out of memory");
	va_end(ap);
	buf_addf(&b, "sandbox-mcp %s error: %s\n",
	    code == EXIT_LOCAL ? "configuration" : "server", text);
	/* There is nobody else to tell. */
	if (io_write_all(STDERR_FILENO, b.data, b.len) == -1)
		exit(code);
	exit(code);
}

static const char *const legacy_versions[] = { "2024-11-05", "2025-03-26",
	"2025-06-18", "2025-11-25" };

/* ---- output ---- */

static void
emit(const struct buf *line)
{
	buf_add(&mcp.out, line->data, line->len);
	buf_addc(&mcp.out, '\n');
}

/* Who asks without listening is not listened to. */
static bool
is_full(void)
{
	return mcp.out.len - mcp.written > QUEUE_BYTES;
}

/* Nobody reads any more, and so nothing is left to do. */
__attribute__((noreturn)) static void
left_alone(void)
{
	exit(EXIT_OK);
}

/*
 * So much as goes without waiting. A pipe that poll(2) calls writable has room
 * for PIPE_BUF bytes; it is not ours alone, so it is not made non-blocking.
 */
static void
flush_some(void)
{
	static int is_socket = -1;
	const char *p = mcp.out.data + mcp.written;
	size_t n = mcp.out.len - mcp.written;
	ssize_t w;

	if (n == 0)
		return;
	w = is_socket == 0
	    ? -1
	    : send(STDOUT_FILENO, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (is_socket == -1)
		is_socket = w != -1 || errno != ENOTSOCK;
	if (is_socket == 0)
		w = write(STDOUT_FILENO, p, n < PIPE_BUF ? n : PIPE_BUF);
	if (w == -1 && (errno == EPIPE || errno == ECONNRESET))
		left_alone();
	if (w == -1 && errno != EAGAIN && errno != EINTR)
		fail(EXIT_FAULT, "unable to write: %s", strerror(errno));
	if (w > 0)
		mcp.written += (size_t)w;
	if (mcp.written == mcp.out.len) {
		buf_release(&mcp.out);
		mcp.written = 0;
	}
}

/* ---- answers ---- */

static void
batch_done(struct batch *b)
{
	if (!b || --b->waits > 0)
		return;
	if (b->replies.len > 0) {
		buf_addc(&b->replies, ']');
		emit(&b->replies);
	}
	buf_release(&b->replies);
	free(b);
}

/* Takes a whole reply. */
static void
deliver(const struct peer *to, struct buf *reply)
{
	if (to->batch) {
		buf_addc(&to->batch->replies,
		    to->batch->replies.len > 0 ? ',' : '[');
		buf_add(&to->batch->replies, reply->data, reply->len);
		batch_done(to->batch);
	} else {
		emit(reply);
	}
	buf_release(reply);
}

static void
refuse(const struct peer *to, int code, const char *message, const char *data)
{
	struct buf reply = BUF_INIT;

	rpc_error(to->id, code, message, data, &reply);
	deliver(to, &reply);
}

/* Members of a result, which are released, and what the era adds to them. */
static void
answer_as(const struct peer *to, struct buf *members, struct buf *reply)
{
	struct buf result = BUF_INIT;

	buf_addc(&result, '{');
	if (to->modern)
		out_str(&result, "resultType", "complete");
	if (to->modern && members->len > 0)
		buf_addc(&result, ',');
	buf_add(&result, buf_str(members), members->len);
	if (to->modern) {
		out_key(&result, "_meta");
		buf_adds(&result, "{\"" META "serverInfo\":" SERVER "}");
	}
	buf_addc(&result, '}');
	rpc_result(to->id, &result, reply);
	buf_release(&result);
	buf_release(members);
}

static void
answer(const struct peer *to, struct buf *members)
{
	struct buf reply = BUF_INIT;

	answer_as(to, members, &reply);
	deliver(to, &reply);
}

/* What a tool says: an object, twice, as some clients show the one or the
 * other. */
static void
tool_members(const struct buf *object, bool is_error, struct buf *out)
{
	out_key(out, "content");
	if (mcp.tools.reference) {
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
answer_failure(const struct peer *to, struct failure *f)
{
	struct buf object = BUF_INIT, members = BUF_INIT;

	failure_print(f, &object);
	tool_members(&object, true, &members);
	answer(to, &members);
	buf_release(&object);
	failure_release(f);
}

/* Takes what a gateway answered. */
static void
answer_tool(const struct peer *to, const struct op *op, struct buf *text)
{
	struct failure f = FAILURE_INIT;
	struct span all = { text->data, text->len };
	struct buf object = BUF_INIT, members = BUF_INIT, reply = BUF_INIT;

	while (all.n > 0 && strchr(" \t\r", *all.p))
		all.p++, all.n--;
	if (all.n == 0 || *all.p != '{') {
		failure_set(&f, KIND_PROTOCOL,
		    "gateway response must be a JSON object");
		answer_failure(to, &f);
		return;
	}
	if (mcp.tools.reference)
		json_compact(all, &object);
	else
		rpc_normal(all, &object);
	tool_members(&object, json_member(all, "error").p != NULL, &members);
	buf_release(&object);
	answer_as(to, &members, &reply);
	if (reply.len < REPLY_BYTES) {
		deliver(to, &reply);
		return;
	}
	buf_release(&reply);
	out_num(&f.details, "bytes", all.n);
	failure_set(&f, KIND_TOO_LARGE,
	    "the answer of %s has %zu bytes, more than clients take: ask for "
	    "less of it, by its arguments (offset and limit, where it has them)",
	    op->name, all.n);
	answer_failure(to, &f);
}

/* ---- calls ---- */

static void
run_free(struct run *r)
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
run_unlink(struct run *r)
{
	struct run **at = &mcp.runs;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	mcp.nruns--;
}

static void
run_finish(struct run *r)
{
	run_unlink(r);
	if (r->failure.kind)
		answer_failure(&r->peer, &r->failure);
	else
		answer_tool(&r->peer, r->op, &r->reply);
	run_free(r);
}

/* When it is told how a call gets on; what the gateway says first, at once. */
static int64_t
report_due(const struct run *r)
{
	if (!r->token || r->done)
		return LINE_NEVER;
	if (r->said.len > 0)
		return r->reports > 0 ? r->told + SAID_MS : 0;
	return r->told + PROGRESS_MS;
}

static void
run_report(struct run *r, int64_t now)
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
	emit(&line);
	buf_release(&line);
	buf_cut(&r->said, 0);
	r->told = now;
}

static void
run_said(void *arg, const char *text)
{
	struct run *r = arg;

	buf_cut(&r->said, 0);
	buf_adds(&r->said, text);
	run_report(r, clock_ms());
}

/* When it has to be looked at again. */
static int64_t
run_due(const struct run *r)
{
	int64_t due = call_due(&r->call);

	if (r->done)
		return r->told + HOLD_MS;
	if (r->bound < due)
		due = r->bound;
	return report_due(r) < due ? report_due(r) : due;
}

static void
run_late(struct run *r)
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
run_step(struct run *r, int64_t now)
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
	/* Clients lose track of a report that comes with the answer. */
	if (r->done && (r->reports == 0 || now >= r->told + HOLD_MS))
		run_finish(r);
}

static struct run *
run_new(const struct peer *to)
{
	struct run *r = xcalloc(1, sizeof *r), **at = &mcp.runs;

	while (*at)
		at = &(*at)->next;
	*at = r;
	mcp.nruns++;
	r->id = xstrndup(to->id.p, to->id.n);
	r->peer = *to;
	r->peer.id.p = r->id;
	r->failure = (struct failure)FAILURE_INIT;
	r->call.in.fd = -1;
	r->began = r->told = clock_ms();
	return r;
}

static void
cancel(struct span params)
{
	struct span id = json_member(params, "requestId");
	struct run *r = mcp.runs;

	while (r && !rpc_same_id(r->peer.id, id))
		r = r->next;
	if (!r)
		return;
	run_unlink(r);
	batch_done(r->peer.batch);
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
patience(const struct run *r, const struct opcli *given)
{
	uint64_t ms = client_patience(r->op, given);

	if (!mcp.tools.reference)
		ms = r->token && r->op->deadline_ms > OP_DEADLINE_MS
		    ? r->op->deadline_ms + GATE_MS
		    : ANSWER_MS;
	return ms > 0 ? r->began + (int64_t)ms : LINE_NEVER;
}

/* What becomes of a command whose call is cancelled, where somebody said. */
static void
add_on_cancel(const struct op *op, struct opcli *given, struct span params)
{
	const struct op_arg *a = op_arg(op, "on_cancel");
	struct span s = json_member(json_member(params, "_meta"), ON_CANCEL);
	struct buf text = BUF_INIT;
	bool ends = mcp.ends;

	if (json_string(s, &text))
		ends = strcmp(buf_str(&text), "end") == 0;
	if (a && ends)
		buf_adds(&given->value[a - op->arg], "\"end\"");
	buf_release(&text);
}

static void
begin_call(const struct peer *to, const struct op *op, struct opcli *given,
    const struct buf *sandbox, struct span params)
{
	struct run *r = run_new(to);
	struct client_request q = {
		.op = op,
		.given = given,
		.sandbox = sandbox->len > 0 ? sandbox->data : NULL,
		.token = mcp.client.token,
	};

	if (!mcp.tools.reference) {
		r->token = progress_token(params);
		add_on_cancel(op, given, params);
	}
	q.progress = r->token != NULL;
	client_print(&q, &r->request);
	r->op = op;
	r->call = (struct call){
		.to = &mcp.client.to,
		.line = r->request.data,
		.n = r->request.len,
		.connect_ms = CALL_CONNECT_MS,
		.said = run_said,
		.arg = r,
	};
	r->bound = patience(r, given);
	call_start(&r->call);
	run_step(r, clock_ms());
}

static void
call_tool(const struct peer *to, struct span params)
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
		refuse(to, RPC_PARAMS, "name must be a string", NULL);
	} else if (args.p && *args.p != '{') {
		refuse(to, RPC_PARAMS, "arguments must be an object", NULL);
	} else {
		op = mcptool_find(&mcp.tools, &text);
		if (!op)
			failure_set(&f, KIND_INVALID, "unknown operation: %s",
			    buf_str(&text));
		else if (!mcptool_take(
			     &mcp.tools, op, args, &given, &sandbox, &why))
			failure_set(&f, KIND_INVALID, "%s", buf_str(&why));
		else if (mcp.nruns >= CALLS_MAX)
			failure_set(&f, KIND_BUSY,
			    "%d calls are waiting, which is the most",
			    CALLS_MAX);
		else
			begin_call(to, op, &given, &sandbox, params);
		if (f.kind)
			answer_failure(to, &f);
	}
	opcli_release(&given);
	buf_release(&text);
	buf_release(&sandbox);
	buf_release(&why);
}

/* ---- methods ---- */

static void
list_tools(const struct peer *to, struct span params)
{
	struct span cursor = json_member(params, "cursor");
	struct buf members = BUF_INIT;

	/* All are on the first page. */
	if (cursor.p && !json_is(cursor, "null")) {
		refuse(to, RPC_PARAMS, "Invalid cursor", NULL);
		return;
	}
	out_key(&members, "tools");
	mcptools_print(&mcp.tools, &members);
	if (to->modern)
		buf_adds(&members, "," CACHE);
	answer(to, &members);
}

static void
initialize(const struct peer *to, struct span params)
{
	struct buf wanted = BUF_INIT, members = BUF_INIT;

	if (!json_string(json_member(params, "protocolVersion"), &wanted)) {
		refuse(
		    to, RPC_PARAMS, "protocolVersion must be a string", NULL);
		return;
	}
	mcp.version = LEGACY;
	for (size_t i = 0; i < sizeof legacy_versions / sizeof *legacy_versions;
	    i++)
		if (strcmp(legacy_versions[i], buf_str(&wanted)) == 0 &&
		    wanted.len == strlen(legacy_versions[i]))
			mcp.version = legacy_versions[i];
	out_str(&members, "protocolVersion", mcp.version);
	buf_adds(&members,
	    ",\"capabilities\":{\"tools\":{}},\"serverInfo\":" SERVER);
	answer(to, &members);
	buf_release(&wanted);
}

static void
ping(const struct peer *to, struct span params)
{
	struct buf members = BUF_INIT;

	(void)params;
	answer(to, &members);
}

static void
discover(const struct peer *to, struct span params)
{
	struct buf members = BUF_INIT;

	(void)params;
	buf_adds(&members,
	    "\"supportedVersions\":[\"" MODERN
	    "\"],\"capabilities\":{\"tools\":{}}," CACHE);
	answer(to, &members);
}

/* Nothing of ours changes, so nothing follows what we say here. */
static void
listen_to(const struct peer *to, struct span params)
{
	struct buf line = BUF_INIT;

	(void)params;
	buf_addf(&line,
	    "{\"jsonrpc\":\"2.0\","
	    "\"method\":\"notifications/subscriptions/acknowledged\","
	    "\"params\":{\"_meta\":{\"" META "subscriptionId\":%.*s},"
	    "\"notifications\":{}}}",
	    (int)to->id.n, to->id.p);
	emit(&line);
	buf_release(&line);
	batch_done(to->batch);
}

static const struct method {
	const char *name;
	bool legacy, modern;
	void (*serve)(const struct peer *to, struct span params);
} methods[] = {
	{ "tools/call", true, true, call_tool },
	{ "tools/list", true, true, list_tools },
	{ "initialize", true, false, initialize },
	{ "ping", true, false, ping },
	{ "server/discover", false, true, discover },
	{ "subscriptions/listen", false, true, listen_to },
};

/* ---- messages ---- */

/* NULL: there is no such method in this era. */
static const struct method *
find_method(const char *name, bool modern)
{
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (strcmp(methods[i].name, name) == 0 &&
		    (modern ? methods[i].modern : methods[i].legacy))
			return &methods[i];
	return NULL;
}

static bool
is_log_level(struct span s)
{
	static const char *const level[] = { "debug", "info", "notice",
		"warning", "error", "critical", "alert", "emergency" };
	struct buf text = BUF_INIT;
	bool found = false;

	if (json_string(s, &text))
		for (size_t i = 0; i < sizeof level / sizeof *level; i++)
			found = found || strcmp(level[i], buf_str(&text)) == 0;
	buf_release(&text);
	return found;
}

/* The request says which version it speaks: is it ours, and all there? */
static bool
check_claim(const struct peer *to, struct span meta)
{
	struct span claim = json_member(meta, META "protocolVersion");
	struct span able = json_member(meta, META "clientCapabilities");
	struct span level = json_member(meta, META "logLevel");
	struct buf data = BUF_INIT;
	bool good = false;

	if (*claim.p != '"') {
		refuse(to, RPC_PARAMS,
		    "_meta key " META "protocolVersion must be a string", NULL);
	} else if (!json_is(claim, "\"" MODERN "\"")) {
		buf_addf(&data,
		    "{\"supported\":[\"" MODERN "\"],"
		    "\"requested\":%.*s}",
		    (int)claim.n, claim.p);
		refuse(
		    to, RPC_VERSION, "Unsupported protocol version", data.data);
	} else if (!able.p) {
		refuse(to, RPC_PARAMS,
		    "missing _meta key " META "clientCapabilities", NULL);
	} else if (*able.p != '{') {
		refuse(to, RPC_PARAMS,
		    "_meta key " META "clientCapabilities must be an object",
		    NULL);
	} else if (level.p && !is_log_level(level)) {
		refuse(to, RPC_PARAMS,
		    "_meta key " META "logLevel must be a level", NULL);
	} else {
		good = true;
	}
	buf_release(&data);
	return good;
}

static void
serve(struct peer *to, const struct rpc *m)
{
	struct span meta = json_member(m->params, "_meta");
	const char *name = buf_str(&m->method);
	const struct method *found;
	bool whole = strlen(name) == m->method.len;

	to->modern = json_member(meta, META "protocolVersion").p != NULL;
	if (to->modern && !check_claim(to, meta))
		return;
	found = whole ? find_method(name, to->modern) : NULL;
	if (!to->modern && strcmp(name, "server/discover") == 0) {
		refuse(to, RPC_PARAMS,
		    "missing _meta keys " META "protocolVersion and " META
		    "clientCapabilities",
		    NULL);
	} else if (!found) {
		refuse(to, RPC_METHOD, name, NULL);
	} else if (!to->modern && !mcp.version && found->modern) {
		refuse(to, RPC_PARAMS,
		    "send initialize first, or put " META
		    "protocolVersion into params._meta",
		    NULL);
	} else if (m->params.p && *m->params.p != '{') {
		refuse(to, RPC_PARAMS, "params must be an object", NULL);
	} else {
		found->serve(to, m->params);
	}
}

/* One message, by itself or of a batch. */
static void
take_message(struct span text, struct batch *batch)
{
	struct peer to = { .batch = batch };
	struct rpc m;

	rpc_read(text, &m);
	to.id = m.id;
	switch (m.kind) {
	case RPC_CALL:
		serve(&to, &m);
		break;
	case RPC_BAD:
		refuse(&to, RPC_REQUEST, "Invalid Request", NULL);
		break;
	case RPC_NOTE:
		if (strcmp(buf_str(&m.method), "notifications/cancelled") == 0)
			cancel(m.params);
		batch_done(batch);
		break;
	case RPC_REPLY:
		batch_done(batch);
		break;
	}
	rpc_release(&m);
}

static bool
begins_session(struct span text)
{
	struct rpc m;
	bool found;

	rpc_read(text, &m);
	found = strcmp(buf_str(&m.method), "initialize") == 0;
	rpc_release(&m);
	return found;
}

static void
take_batch(struct span all)
{
	struct batch *batch;
	struct span one;
	size_t pos = 0, n = 0;
	bool good = mcp.version && strcmp(mcp.version, BATCHES) == 0;

	while (json_element(all, &pos, &one)) {
		good = good && !begins_session(one);
		n++;
	}
	if (!good || n == 0) {
		refuse(&(struct peer){ .batch = NULL }, RPC_REQUEST,
		    "Invalid Request", NULL);
		return;
	}
	batch = xcalloc(1, sizeof *batch);
	/* One more, so that it is not over before its end. */
	batch->waits = n + 1;
	for (pos = 0; json_element(all, &pos, &one);)
		take_message(one, batch);
	batch_done(batch);
}

static void
take_line(const char *p, size_t n)
{
	static const char bom[] = "\xef\xbb\xbf";
	const struct peer nobody = { .batch = NULL };

	if (!mcp.begun && n >= 3 && memcmp(p, bom, 3) == 0)
		p += 3, n -= 3;
	mcp.begun = true;
	if (n > 0 && p[n - 1] == '\r')
		n--;
	while (n > 0 && (*p == ' ' || *p == '\t'))
		p++, n--;
	if (n == 0)
		return;
	if (!json_is_valid(p, n, NULL, NULL))
		refuse(&nobody, RPC_PARSE, "Parse error", NULL);
	else if (*p == '[')
		take_batch((struct span){ p, n });
	else
		take_message((struct span){ p, n }, NULL);
}

/* All lines that are there. */
static void
take_lines(void)
{
	for (;;) {
		size_t n;

		mcp.held = is_full();
		if (mcp.held)
			return;
		switch (line_read(&mcp.in, LINE_BYTES, 0, &n)) {
		case LINE_WHOLE:
			if (!mcp.skips)
				take_line(mcp.in.buf.data, n);
			mcp.skips = false;
			break;
		case LINE_LARGE:
			if (!mcp.skips)
				refuse(&(struct peer){ .batch = NULL },
				    RPC_REQUEST, "the line is too long", NULL);
			mcp.skips = true;
			line_drop(&mcp.in);
			break;
		case LINE_LATE:
			if (mcp.in.buf.len == 0)
				line_drop(&mcp.in);
			return;
		case LINE_EOF:
			if (mcp.in.buf.len > 0 && !mcp.skips)
				take_line(mcp.in.buf.data, mcp.in.buf.len);
			mcp.end = clock_ms() + EOF_MS;
			return;
		case LINE_ERROR:
		default:
			mcp.end = clock_ms() + EOF_MS;
			return;
		}
	}
}

/* ---- the loop ---- */

static void
wait_for_more(struct pollfd *p)
{
	bool full = mcp.out.len - mcp.written > QUEUE_BYTES;
	int64_t due = mcp.end;
	nfds_t n = 2;

	p[0] = (struct pollfd){ .fd = mcp.end == LINE_NEVER && !full ? mcp.in.fd
								     : -1,
		.events = POLLIN };
	p[1] = (struct pollfd){ .fd = STDOUT_FILENO,
		.events = mcp.out.len > 0 ? POLLOUT : 0 };
	for (struct run *r = mcp.runs; r; r = r->next) {
		p[n++] =
		    (struct pollfd){ .fd = r->done ? -1 : call_fd(&r->call),
			    .events = call_events(&r->call) };
		if (run_due(r) < due)
			due = run_due(r);
	}
	if (poll(p, n, line_left(due)) == -1 && errno != EINTR)
		fail(EXIT_FAULT, "unable to wait: %s", strerror(errno));
	if (p[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		left_alone();
}

__attribute__((noreturn)) static void
loop(void)
{
	struct pollfd *p = xcalloc(CALLS_MAX + 2, sizeof *p);

	while (mcp.end == LINE_NEVER ||
	    ((mcp.runs || mcp.out.len > 0) && line_left(mcp.end) > 0)) {
		struct run *next;
		int64_t now;

		wait_for_more(p);
		if (p[1].revents & POLLOUT)
			flush_some();
		if (p[0].revents || (mcp.held && !is_full()))
			take_lines();
		now = clock_ms();
		for (struct run *r = mcp.runs; r; r = next) {
			next = r->next;
			run_step(r, now);
		}
	}
	exit(EXIT_OK);
}

/* ---- start ---- */

__attribute__((noreturn)) static void
misused(void)
{
	warn_msg("usage: %s", usage);
	exit(EXIT_LOCAL);
}

static void
find_set(const char *name, enum op_set *set)
{
	for (int i = 0; i < OP_INTERNAL; i++)
		if (strcmp(op_set_name((enum op_set)i), name) == 0) {
			*set = (enum op_set)i;
			return;
		}
	misused();
}

static void
configure(enum op_set set, const char *endpoint, const char *token)
{
	struct buf why = BUF_INIT;
	char *path;
	int fd;

	if (!client_find(endpoint, token, &mcp.client, &why))
		fail(EXIT_LOCAL, "%s", buf_str(&why));
	path = place_ops();
	fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd == -1)
		fail(EXIT_LOCAL,
		    "unable to open the operations in "
		    "%s: %s (SB_OPS names another directory)",
		    path ? path : "?", strerror(errno));
	if (!mcptools_read(fd, set, mcp.tools.reference, &mcp.tools, &why))
		fail(
		    EXIT_LOCAL, "%s", why.len > 0 ? why.data : strerror(errno));
	io_drop(&fd);
	free(path);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "set", required_argument, NULL, 's' },
		{ "end-cancelled", no_argument, NULL, 'c' },
		{ "reference", no_argument, NULL, 'r' },
		{ "gateway-endpoint", required_argument, NULL, 'e' },
		{ "gateway-socket", required_argument, NULL, 'e' },
		{ "gateway-auth-token", required_argument, NULL, 't' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	const char *set_name = NULL, *endpoint = NULL, *token = NULL;
	enum op_set set = OP_INTERNAL;
	int opt;

	err_init();
	opterr = 0;
	while ((opt = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		const char **value = opt == 's' ? &set_name
		    : opt == 'e'                ? &endpoint
		    : opt == 't'                ? &token
						: NULL;

		if (value) {
			if (*value)
				misused();
			*value = optarg;
			continue;
		}
		switch (opt) {
		case 'h':
			usage_help(usage);
		case 'v':
			puts("sandbox-mcp " SB_VERSION);
			stdout_done();
			return EXIT_OK;
		case 'c':
			mcp.ends = true;
			continue;
		case 'r':
			mcp.tools.reference = true;
			continue;
		default:
			misused();
		}
	}
	if (!set_name || argc != optind)
		misused();
	find_set(set_name, &set);
	if (sigaction(SIGPIPE, &ignore, NULL) == -1)
		fail(EXIT_FAULT, "unable to ignore SIGPIPE");
	configure(set, endpoint, token);
	io_many_fds();
	loop();
}
