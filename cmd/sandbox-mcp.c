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
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "client.h"
#include "clock.h"
#include "err.h"
#include "io.h"
#include "json.h"
#include "line.h"
#include "mcpcall.h"
#include "mcpout.h"
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
#define CACHE   "\"ttlMs\":300000,\"cacheScope\":\"public\""

enum {
	EXIT_FAULT = 1,
	EXIT_LOCAL = 2, /* usage, configuration */
	LINE_BYTES = REQUEST_MAX + 65536,
	QUEUE_BYTES = 67108864, /* not written yet: then nothing is read */
	EOF_MS = 1500 /* calls may take after the end of the input */
};

static const char usage[] =
    "sandbox-mcp --set management|runtime|observability "
    "[--end-cancelled] [--reference] [--gateway-endpoint URI] "
    "[--gateway-auth-token TOKEN]";

static struct {
	struct mcptools tools;
	struct client client;
	struct mcpcalls calls;
	const char *version; /* agreed by "initialize"; NULL: none yet */
	bool begun; /* a line was read */
	bool skips; /* the rest of a line that is too long */
	bool held; /* there may be lines that were read and not taken */
	struct line in;
	int64_t end; /* when we leave; LINE_NEVER: not yet */
	struct mcpout out;
} mcp = {
	.calls = { .tools = &mcp.tools, .client = &mcp.client },
	.in = { .fd = STDIN_FILENO },
	.end = LINE_NEVER,
	.out = MCPOUT_INIT(STDOUT_FILENO),
};

/* Whoever sent what has no id. */
static const struct mcp_peer nobody = { .out = &mcp.out };

__attribute__((noreturn, format(printf, 2, 3))) static void
fail(int code, const char *fmt, ...)
{
	struct buf b = BUF_INIT;
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	buf_addf(&b, "sandbox-mcp %s error: %s\n",
	    code == EXIT_LOCAL ? "configuration" : "server", text);
	/* There is nobody else to tell. */
	if (io_write_all(STDERR_FILENO, b.data, b.len) == -1)
		exit(code);
	exit(code);
}

/* ---- output ---- */

/* Who asks without listening is not listened to. */
static bool
is_full(void)
{
	return mcpout_left(&mcp.out) > QUEUE_BYTES;
}

/* Nobody reads any more, and so nothing is left to do. */
__attribute__((noreturn)) static void
left_alone(void)
{
	exit(EXIT_OK);
}

static void
flush_some(void)
{
	if (mcpout_flush(&mcp.out) == 0)
		return;
	if (errno == EPIPE || errno == ECONNRESET)
		left_alone();
	fail(EXIT_FAULT, "unable to write: %s", strerror(errno));
}

/* ---- methods ---- */

static void
call_tool(const struct mcp_peer *to, struct span params)
{
	mcpcalls_begin(&mcp.calls, to, params);
}

static void
list_tools(const struct mcp_peer *to, struct span params)
{
	struct span cursor = json_member(params, "cursor");
	struct buf members = BUF_INIT;

	/* All are on the first page. */
	if (cursor.p && !json_is(cursor, "null")) {
		mcp_refuse(to, RPC_PARAMS, "Invalid cursor", NULL);
		return;
	}
	out_key(&members, "tools");
	mcptools_print(&mcp.tools, &members);
	if (to->modern)
		buf_adds(&members, "," CACHE);
	mcp_answer(to, &members, 0);
}

static const char *const legacy_versions[] = { "2024-11-05", "2025-03-26",
	"2025-06-18", "2025-11-25" };

static void
initialize(const struct mcp_peer *to, struct span params)
{
	struct buf wanted = BUF_INIT, members = BUF_INIT;

	if (!json_string(json_member(params, "protocolVersion"), &wanted)) {
		mcp_refuse(
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
	    ",\"capabilities\":{\"tools\":{}},\"serverInfo\":" MCP_SERVER);
	mcp_answer(to, &members, 0);
	buf_release(&wanted);
}

static void
ping(const struct mcp_peer *to, struct span params)
{
	struct buf members = BUF_INIT;

	(void)params;
	mcp_answer(to, &members, 0);
}

static void
discover(const struct mcp_peer *to, struct span params)
{
	struct buf members = BUF_INIT;

	(void)params;
	buf_adds(&members,
	    "\"supportedVersions\":[\"" MODERN
	    "\"],\"capabilities\":{\"tools\":{}}," CACHE);
	mcp_answer(to, &members, 0);
}

/* Nothing of ours changes, so nothing follows what we say here. */
static void
listen_to(const struct mcp_peer *to, struct span params)
{
	struct buf line = BUF_INIT;

	(void)params;
	buf_addf(&line,
	    "{\"jsonrpc\":\"2.0\","
	    "\"method\":\"notifications/subscriptions/acknowledged\","
	    "\"params\":{\"_meta\":{\"" MCP_META "subscriptionId\":%.*s},"
	    "\"notifications\":{}}}",
	    (int)to->id.n, to->id.p);
	mcpout_emit(to->out, &line);
	buf_release(&line);
	mcp_batch_done(to->batch);
}

static const struct method {
	const char *name;
	bool legacy, modern;
	void (*serve)(const struct mcp_peer *to, struct span params);
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
check_claim(const struct mcp_peer *to, struct span meta)
{
	struct span claim = json_member(meta, MCP_META "protocolVersion");
	struct span able = json_member(meta, MCP_META "clientCapabilities");
	struct span level = json_member(meta, MCP_META "logLevel");
	struct buf data = BUF_INIT;
	bool good = false;

	if (*claim.p != '"') {
		mcp_refuse(to, RPC_PARAMS,
		    "_meta key " MCP_META "protocolVersion must be a string",
		    NULL);
	} else if (!json_is(claim, "\"" MODERN "\"")) {
		buf_addf(&data,
		    "{\"supported\":[\"" MODERN "\"],"
		    "\"requested\":%.*s}",
		    (int)claim.n, claim.p);
		mcp_refuse(
		    to, RPC_VERSION, "Unsupported protocol version", data.data);
	} else if (!able.p) {
		mcp_refuse(to, RPC_PARAMS,
		    "missing _meta key " MCP_META "clientCapabilities", NULL);
	} else if (*able.p != '{') {
		mcp_refuse(to, RPC_PARAMS,
		    "_meta key " MCP_META
		    "clientCapabilities must be an object",
		    NULL);
	} else if (level.p && !is_log_level(level)) {
		mcp_refuse(to, RPC_PARAMS,
		    "_meta key " MCP_META "logLevel must be a level", NULL);
	} else {
		good = true;
	}
	buf_release(&data);
	return good;
}

static void
serve(struct mcp_peer *to, const struct rpc *m)
{
	struct span meta = json_member(m->params, "_meta");
	const char *name = buf_str(&m->method);
	const struct method *found;
	bool whole = strlen(name) == m->method.len;

	to->modern = json_member(meta, MCP_META "protocolVersion").p != NULL;
	if (to->modern && !check_claim(to, meta))
		return;
	found = whole ? find_method(name, to->modern) : NULL;
	if (!to->modern && strcmp(name, "server/discover") == 0) {
		mcp_refuse(to, RPC_PARAMS,
		    "missing _meta keys " MCP_META
		    "protocolVersion and " MCP_META "clientCapabilities",
		    NULL);
	} else if (!found) {
		mcp_refuse(to, RPC_METHOD, name, NULL);
	} else if (!to->modern && !mcp.version && found->modern) {
		mcp_refuse(to, RPC_PARAMS,
		    "send initialize first, or put " MCP_META
		    "protocolVersion into params._meta",
		    NULL);
	} else if (m->params.p && *m->params.p != '{') {
		mcp_refuse(to, RPC_PARAMS, "params must be an object", NULL);
	} else {
		found->serve(to, m->params);
	}
}

/* One message, by itself or of a batch. */
static void
take_message(struct span text, struct mcp_batch *batch)
{
	struct mcp_peer to = { .out = &mcp.out, .batch = batch };
	struct rpc m;

	rpc_read(text, &m);
	to.id = m.id;
	switch (m.kind) {
	case RPC_CALL:
		serve(&to, &m);
		break;
	case RPC_BAD:
		mcp_refuse(&to, RPC_REQUEST, "Invalid Request", NULL);
		break;
	case RPC_NOTE:
		if (strcmp(buf_str(&m.method), "notifications/cancelled") == 0)
			mcpcalls_cancel(&mcp.calls, m.params);
		mcp_batch_done(batch);
		break;
	case RPC_REPLY:
		mcp_batch_done(batch);
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
	struct mcp_batch *batch;
	struct span one;
	size_t pos = 0, n = 0;
	bool good = mcp.version && strcmp(mcp.version, BATCHES) == 0;

	while (json_element(all, &pos, &one)) {
		good = good && !begins_session(one);
		n++;
	}
	if (!good || n == 0) {
		mcp_refuse(&nobody, RPC_REQUEST, "Invalid Request", NULL);
		return;
	}
	batch = xcalloc(1, sizeof *batch);
	batch->out = &mcp.out;
	/* One more, so that it is not over before its end. */
	batch->waits = n + 1;
	for (pos = 0; json_element(all, &pos, &one);)
		take_message(one, batch);
	mcp_batch_done(batch);
}

/*
 * What is no JSON for us. Clients in JavaScript send halves of surrogate pairs,
 * and wait for an answer with their id.
 */
static void
take_bad(const char *p, size_t n)
{
	struct mcp_peer to = { .out = &mcp.out };
	struct buf copy = BUF_INIT;
	struct rpc m = RPC_INIT;

	buf_add(&copy, p, n);
	if (n > 0 && rpc_mend(copy.data, n) &&
	    json_is_valid(copy.data, n, NULL, NULL))
		rpc_read((struct span){ copy.data, n }, &m);
	to.id = m.id;
	if (m.kind == RPC_CALL)
		mcp_refuse(&to, RPC_PARAMS,
		    "a string has one half of a surrogate pair, which is no "
		    "character",
		    NULL);
	else if (m.kind == RPC_BAD)
		mcp_refuse(&nobody, RPC_PARSE, "Parse error", NULL);
	rpc_release(&m);
	buf_release(&copy);
}

static void
take_line(const char *p, size_t n)
{
	static const char bom[] = "\xef\xbb\xbf";

	if (!mcp.begun && n >= 3 && memcmp(p, bom, 3) == 0) {
		p += 3;
		n -= 3;
	}
	mcp.begun = true;
	if (n > 0 && p[n - 1] == '\r')
		n--;
	while (n > 0 && (*p == ' ' || *p == '\t')) {
		p++;
		n--;
	}
	if (n == 0)
		return;
	if (!json_is_valid(p, n, NULL, NULL))
		take_bad(p, n);
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
				mcp_refuse(&nobody, RPC_REQUEST,
				    "the line is too long", NULL);
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
	const bool reads = mcp.end == LINE_NEVER && !is_full();
	int64_t due = mcp.end;
	nfds_t n = 2;

	p[0] =
	    (struct pollfd){ .fd = reads ? mcp.in.fd : -1, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = STDOUT_FILENO,
		.events = mcpout_left(&mcp.out) > 0 ? POLLOUT : 0 };
	n += mcpcalls_poll(&mcp.calls, p + n, &due);
	if (poll(p, n, line_left(due)) == -1 && errno != EINTR)
		fail(EXIT_FAULT, "unable to wait: %s", strerror(errno));
	if (p[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		left_alone();
}

__attribute__((noreturn)) static void
loop(void)
{
	struct pollfd *p = xcalloc(MCP_CALLS_MAX + 2, sizeof *p);

	while (mcp.end == LINE_NEVER ||
	    ((mcp.calls.n > 0 || mcpout_left(&mcp.out) > 0) &&
		line_left(mcp.end) > 0)) {
		wait_for_more(p);
		if (p[1].revents & POLLOUT)
			flush_some();
		if (p[0].revents || (mcp.held && !is_full()))
			take_lines();
		mcpcalls_step(&mcp.calls);
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
		    "unable to open the operations in %s: %s "
		    "(SB_OPS names another directory)",
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
			mcp.calls.ends = true;
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
