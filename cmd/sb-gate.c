/* SPDX-License-Identifier: MIT */
/*
 * sb-gate: answer one request, for who connects to a service. Shape: filter;
 * one request line in, one response line out, perhaps after lines of progress.
 *
 *   1. Read the line: within a time, up to a size.
 *   2. Is it a JSON object, does it have the token? Only then look at it.
 *   3. Find the operation's file; may this token use it; where is it done?
 *   4. Take a slot, and either run the operation's command and make the
 *      answer of what it printed, or send the line to the sandbox's gate and
 *      pass its answer on.
 *   5. Write the answer; end our side and take what still comes, so that the
 *      client reads it all.
 *
 * On the host it is the gateway, with -b the gate of a sandbox. Invariants:
 * exactly one final line; nothing runs for a request that is not answered to
 * be good; what changes something is never killed halfway.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "box.h"
#include "buf.h"
#include "child.h"
#include "clock.h"
#include "err.h"
#include "event.h"
#include "failure.h"
#include "forward.h"
#include "io.h"
#include "json.h"
#include "line.h"
#include "lock.h"
#include "mem.h"
#include "num.h"
#include "op.h"
#include "opargs.h"
#include "opreply.h"
#include "out.h"
#include "place.h"
#include "request.h"
#include "slot.h"
#include "token.h"

static const char usage[] =
    "sb-gate [-v] [-b sandbox] [-c count] [-k file] [-m bytes] [-t ms] opsdir";

#define HOST_TOKEN "_sandbox_gateway_auth_token"
#define BOX_TOKEN  "_sandbox_daemon_auth_token"

enum {
	HOST_SLOTS = 256,
	BOX_SLOTS = 64,
	READ_MS = 30000,
	WRITE_MS = 30000, /* without a byte taken */
	FINISH_MS = 1000,
	EARLY_MAX = 1048576, /* bytes that each may send at any time */
	LARGE_SLOTS = 16, /* so many may send more at once */
	FORWARD_MS = 5000, /* more than the box itself takes */
	PROGRESS_MS = 500
};

static struct {
	const char *sandbox; /* NULL on the host */
	uint64_t slots, request_max;
	int opsfd, slotsfd, slotfd;
	char *state, *run; /* state: on the host */
	char *key;
	bool verbose;
	int64_t start;
	struct event_span *span;
} gate = {
	.request_max = REQUEST_MAX, .opsfd = -1, .slotsfd = -1, .slotfd = -1
};

static struct request req = REQUEST_INIT;

/* Progress that waits for its time. */
static struct {
	struct buf text;
	bool pending;
	int64_t next;
} progress;

/* ---- answers ---- */

static void
log_request(const struct failure *f, const struct buf *reply)
{
	struct buf kind = BUF_INIT;
	struct span error;

	if (!gate.verbose)
		return;
	error =
	    json_member((struct span){ buf_str(reply), reply->len }, "error");
	if (f->kind)
		buf_adds(&kind, f->kind);
	else if (!error.p || !json_string(json_member(error, "kind"), &kind))
		buf_adds(&kind, "ok");
	info_msg("%s %s in %" PRId64 " ms, request %s",
	    req.name ? req.name : "-", buf_str(&kind), clock_ms() - gate.start,
	    buf_str(&req.id));
}

/* The last thing that is done. */
__attribute__((noreturn)) static void
respond(struct buf *reply, const struct failure *f)
{
	log_request(f, reply);
	io_drop(&gate.slotfd);
	if (gate.span)
		event_end(gate.span,
		    f->kind || op_reply_is_error(reply) ? EVENT_ERROR : NULL);
	buf_addc(reply, '\n');
	if (line_write(STDOUT_FILENO, reply->data, reply->len, WRITE_MS) == -1)
		exit(
		    errno == EPIPE || errno == ECONNRESET ? EXIT_OK : EXIT_SYS);
	line_finish(STDOUT_FILENO, FINISH_MS);
	exit(EXIT_OK);
}

__attribute__((noreturn)) static void
refuse(struct failure *f)
{
	struct buf reply = BUF_INIT;

	failure_print(f, &reply);
	respond(&reply, f);
}

/* ---- progress ---- */

static void
progress_write(const char *text)
{
	struct buf b = BUF_INIT;
	size_t n = strlen(text);

	buf_adds(&b, LINE_PROGRESS);
	if (utf8_is_valid(text, n))
		out_string(&b, text, n);
	else
		out_string_ascii(&b, text, n);
	buf_adds(&b, ")\n");
	/* Whoever has gone is noticed elsewhere. */
	if (line_write(STDOUT_FILENO, b.data, b.len, WRITE_MS) == -1)
		errno = 0;
	buf_release(&b);
	progress.next = clock_ms() + PROGRESS_MS;
	progress.pending = false;
}

static void
progress_say(const char *text)
{
	if (!req.progress)
		return;
	buf_cut(&progress.text, 0);
	buf_adds(&progress.text, text);
	progress.pending = true;
	if (clock_ms() >= progress.next)
		progress_write(buf_str(&progress.text));
}

/* At most two a second, and always the last: what comes too early waits. */
static int
progress_turn(void *arg)
{
	(void)arg;
	if (!progress.pending)
		return line_left(LINE_NEVER);
	if (clock_ms() >= progress.next)
		progress_write(buf_str(&progress.text));
	return progress.pending ? line_left(progress.next)
				: line_left(LINE_NEVER);
}

static void
progress_flush(void)
{
	if (progress.pending)
		progress_write(buf_str(&progress.text));
}

/* "prog: info: text"; and "prog: warning: text", which waits for nothing. */
static void
said(void *arg, const char *line)
{
	const char *text = strstr(line, ": info: ");
	const char *warning = strstr(line, ": warning: ");

	(void)arg;
	if (text && (!warning || text < warning)) {
		progress_say(text + strlen(": info: "));
	} else if (warning && req.progress) {
		progress_flush();
		progress_write(warning + strlen(": "));
	}
}

/* ---- slots ---- */

__attribute__((noreturn)) static void
at_capacity(void)
{
	struct failure f = FAILURE_INIT;

	out_num(&f.details, "max_concurrent_connections", gate.slots);
	buf_addf(&f.details,
	    ",\"fields\":{\"max_concurrent_connections\":%" PRIu64 "}",
	    gate.slots);
	failure_set(&f, gate.sandbox ? KIND_BUSY : KIND_INTERNAL,
	    "%s is at connection capacity",
	    gate.sandbox ? "daemon" : "gateway");
	refuse(&f);
}

static void
open_slots(void)
{
	char *rel = gate.sandbox ? xasprintf("box/%s/slots", gate.sandbox)
				 : xstrdup("slots");

	gate.slotsfd = place_make(gate.run, rel);
	if (gate.slotsfd == -1)
		die_sys("unable to make %s/%s", gate.run, rel);
	free(rel);
}

static void
take_slot(bool urgent)
{
	struct failure f = FAILURE_INIT;

	gate.slotfd = slot_take(gate.slotsfd, (unsigned)gate.slots, urgent);
	if (gate.slotfd != -1)
		return;
	if (errno == EAGAIN)
		at_capacity();
	warn_sys("unable to take a slot");
	failure_set(
	    &f, KIND_INTERNAL, "unable to take a slot: %s", strerror(errno));
	refuse(&f);
}

static void
waits(void *arg)
{
	const struct op *op = arg;

	if (op->waits)
		io_drop(&gate.slotfd);
}

/* ---- who asks ---- */

__attribute__((noreturn)) static void
unauthorized(void)
{
	struct failure f = FAILURE_INIT;

	failure_set(&f, KIND_UNAUTHORIZED,
	    gate.sandbox
		? "daemon request authentication failed"
		: "gateway authentication token is missing or invalid");
	refuse(&f);
}

/* Each line of why is a file that is at fault. */
static void
warn_tokens(struct buf *why)
{
	char *line, *rest = why->data;

	while (rest && (line = strsep(&rest, "\n")) && *line)
		warn_msg("token %s", line);
	buf_release(why);
}

/* Only there a peer has credentials that the super-server can have seen. */
static bool
over_network(void)
{
	struct sockaddr_storage sa = { .ss_family = AF_UNIX };
	socklen_t n = sizeof sa;

	return getsockname(STDIN_FILENO, (struct sockaddr *)&sa, &n) == 0 &&
	    sa.ss_family != AF_UNIX;
}

/* The groups of a token, which is a string. */
static unsigned
grants(struct span token)
{
	struct buf text = BUF_INIT, why = BUF_INIT;
	unsigned groups = 0;
	int fd = -1;

	if (json_string(token, &text)) {
		if (!gate.sandbox)
			fd = place_open(gate.state, "tokens");
		groups =
		    token_grants(buf_str(&text), text.len, gate.key, fd, &why);
		io_drop(&fd);
		if (text.data)
			explicit_bzero(text.data, text.len);
	}
	warn_tokens(&why);
	buf_release(&text);
	return groups;
}

/*
 * What the request may do: by its token, or, without one, by the groups that
 * the super-server gave this peer.
 */
static unsigned
authenticate(void)
{
	const char *peer = getenv("SB_GATE_GROUPS");
	unsigned groups;

	if (gate.sandbox && !gate.key)
		return GROUPS_ALL;
	if (!req.token.p && peer && !gate.sandbox && !over_network())
		groups = token_groups_parse(peer);
	else
		groups = grants(req.token);
	if (groups == 0)
		unauthorized();
	return groups;
}

static void
require(unsigned groups, enum op_set set)
{
	struct failure f = FAILURE_INIT;
	unsigned need = set == OP_INTERNAL ? GROUPS_ALL : 1U << set;
	struct buf words = BUF_INIT;

	if ((groups & need) == need)
		return;
	token_groups_print(&words, need);
	out_str(&f.details, "required_groups", buf_str(&words));
	failure_set(&f, KIND_UNAUTHORIZED,
	    "gateway authentication token does not grant: %s", buf_str(&words));
	refuse(&f);
}

/* ---- reading ---- */

/* Memory that strangers can make us use is bounded. */
static enum line_end
wait_for_room(int64_t deadline)
{
	char name[16];

	for (int i = 0; i < LARGE_SLOTS; i++) {
		snprintf(name, sizeof name, "large.%d",
		    (int)(getpid() + i) % LARGE_SLOTS);
		/* Held, like our memory, until we end. */
		if (lock_take(gate.slotsfd, name, true, 0) != -1)
			return LINE_WHOLE;
		if (errno != EAGAIN)
			return LINE_ERROR;
	}
	snprintf(name, sizeof name, "large.%d", (int)getpid() % LARGE_SLOTS);
	if (lock_take(gate.slotsfd, name, true, line_left(deadline)) != -1)
		return LINE_WHOLE;
	return errno == ETIMEDOUT ? LINE_LATE : LINE_ERROR;
}

/*
 * Is there a token that counts in what has come so far? The text ends
 * somewhere, and has not been looked at; the scanner stops where it is none.
 */
static bool
is_known_early(const struct line *l)
{
	struct span all = { buf_str(&l->buf), l->buf.len }, v;
	const char *name = gate.sandbox ? BOX_TOKEN : HOST_TOKEN;
	struct buf key = BUF_INIT;
	bool known = gate.sandbox && !gate.key;
	size_t pos = 0;

	while (!known && json_pair(all, &pos, &key, &v))
		known = strcmp(buf_str(&key), name) == 0 && grants(v) != 0;
	buf_release(&key);
	return known;
}

static void
read_request(struct line *l, size_t *n, int ms)
{
	const char *who = gate.sandbox ? "daemon" : "gateway";
	int64_t deadline = clock_ms() + ms;
	size_t max = (size_t)gate.request_max;
	struct failure f = FAILURE_INIT;
	enum line_end end;

	end = line_read(l, max < EARLY_MAX ? max : EARLY_MAX, deadline, n);
	if (end == LINE_LARGE && max > EARLY_MAX) {
		end = is_known_early(l) ? LINE_WHOLE : wait_for_room(deadline);
		if (end == LINE_WHOLE)
			end = line_read(l, max, deadline, n);
	}
	switch (end) {
	case LINE_WHOLE:
		return;
	case LINE_EOF:
		if (gate.sandbox)
			return;
		failure_set(&f, KIND_INVALID,
		    "gateway request was not newline terminated");
		break;
	case LINE_LARGE:
		out_num(&f.details, "limit", gate.request_max);
		buf_addf(&f.details, ",\"fields\":{\"limit\":%" PRIu64 "}",
		    gate.request_max);
		failure_set(&f, KIND_TOO_LARGE,
		    "request exceeds %" PRIu64 " byte limit", gate.request_max);
		break;
	case LINE_LATE:
		failure_set(&f, KIND_INTERNAL,
		    "%s io error: %s request read timed out", who, who);
		break;
	case LINE_ERROR:
		failure_set(
		    &f, KIND_INTERNAL, "%s io error: %s", who, strerror(errno));
		break;
	}
	refuse(&f);
}

/* ---- doing it here ---- */

/* The request names the trace of what is done for it. */
static void
begin_trace(const char *request_id)
{
	if (setenv("SB_TRACE", request_id, 1) == -1 ||
	    unsetenv("SB_SPAN") == -1)
		return;
	gate.span = event_begin("daemon.dispatch");
	out_str(event_attrs(gate.span), "op", req.name);
}

__attribute__((noreturn)) static void
perform(const struct op *op, const struct op_side *side)
{
	struct op_values values = OP_VALUES_INIT;
	struct op_strings argv = { .v = NULL };
	struct buf input = BUF_INIT, why = BUF_INIT, reply = BUF_INIT;
	struct child_end end = CHILD_END_INIT;
	struct failure f = FAILURE_INIT;
	uint64_t ms = op_deadline(op, req.args);
	struct child c;

	if (!op_check(op, side, req.args, &values, &why)) {
		failure_set(&f, KIND_INVALID, "%s", buf_str(&why));
		refuse(&f);
	}
	values.sandbox_id = req.system ? NULL : buf_str(&req.sandbox_id);
	values.request_id = op_request_id(&req.id);
	values.progress = req.progress;
	op_expand(op, side, &values, &argv, &input);
	take_slot(op->urgent);
	if (gate.sandbox && op->set != OP_OBSERVABILITY)
		begin_trace(values.request_id);
	c = (struct child){
		.argv = (const char *const *)argv.v,
		.in = buf_str(&input),
		.in_n = input.len,
		.out_max = REQUEST_MAX - 1024,
		.ready = side->ready,
		.cancel = op->cancel,
		.deadline =
		    ms < INT32_MAX ? clock_ms() + (int64_t)ms : LINE_NEVER,
		.peer = STDOUT_FILENO,
		.said = said,
		.waits = waits,
		.turn = progress_turn,
	};
	c.arg = (void *)(uintptr_t)op;
	if (child_run(&c, &end) == -1) {
		out_str(&f.details, "program", argv.v[0]);
		failure_set(&f, KIND_INTERNAL, "unable to run %s: %s",
		    argv.v[0], strerror(errno));
		refuse(&f);
	}
	progress_flush();
	if (end.gone && end.code == 128 + SIGTERM) {
		failure_set(&f, "cancelled", "the client has gone");
		if (gate.span)
			event_end(gate.span, EVENT_CANCELLED);
		log_request(&f, &reply);
		exit(EXIT_OK);
	}
	if (end.late) {
		out_str(&f.details, "reason", "timeout");
		failure_set(&f, KIND_FAILED,
		    "%s did not end within %" PRIu64 " ms", op->name, ms);
		refuse(&f);
	}
	if (op_reply(op, side, &values, &end, &reply, &f) &&
	    reply.len >= REQUEST_MAX)
		failure_set(&f, KIND_FAILED,
		    "the answer of %s has more bytes than can be sent",
		    op->name);
	if (f.kind)
		refuse(&f);
	respond(&reply, &f);
}

/* ---- sending it on ---- */

/* A line of the box's, with its newline. */
static void
pass_progress(const char *line, size_t n)
{
	if (line_write(STDOUT_FILENO, line, n, WRITE_MS) == -1)
		errno = 0;
}

/* op: NULL for one that only the box may know. */
__attribute__((noreturn)) static void
forward(const struct op *op)
{
	uint64_t ms = op ? op_deadline(op, req.args) : OP_DEADLINE_MS;
	struct failure f = FAILURE_INIT;
	struct box box = BOX_INIT;
	struct buf reply = BUF_INIT;
	int64_t deadline;
	struct forward w;
	int fd;

	if (strlen(buf_str(&req.sandbox_id)) != req.sandbox_id.len) {
		failure_set(&f, KIND_INVALID, "invalid sandbox id: %s",
		    buf_str(&req.sandbox_id));
		refuse(&f);
	}
	if (!box_read(gate.state, buf_str(&req.sandbox_id), &box, &f) ||
	    !box_is_ready(&box, gate.run, &f))
		refuse(&f);
	if (op)
		ms = ms < INT32_MAX ? ms + FORWARD_MS : ms;
	deadline = ms < INT32_MAX ? clock_ms() + (int64_t)ms : LINE_NEVER;
	take_slot(op && op->urgent);
	fd = forward_send(&box, gate.run, &req, BOX_TOKEN, &f);
	if (fd == -1)
		refuse(&f);
	/* From here on it costs the box a slot, if it does. */
	if (op && op->waits)
		io_drop(&gate.slotfd);
	w = (struct forward){
		.fd = fd,
		.peer = STDOUT_FILENO,
		.deadline = deadline,
		.ms = ms,
		.progress = req.progress ? pass_progress : NULL,
	};
	if (!forward_receive(&w, &reply, &f)) {
		/* What it does there, it may do; better counted than not. */
		if (op && op->activity)
			box_count(&box);
		if (f.kind)
			refuse(&f);
		failure_set(&f, "cancelled", "the client has gone");
		log_request(&f, &reply);
		exit(EXIT_OK);
	}
	if (op && op->activity && forward_is_activity(&reply))
		box_count(&box);
	respond(&reply, &f);
}

/* ---- where it is done ---- */

__attribute__((noreturn)) static void
unknown(void)
{
	struct failure f = FAILURE_INIT;

	failure_set(&f, KIND_UNKNOWN, "unknown operation");
	refuse(&f);
}

/* False: there is none. */
static bool
find(struct op *op)
{
	struct failure f = FAILURE_INIT;
	struct buf why = BUF_INIT;

	if (op_find(gate.opsfd, req.name, op, &why) == 0)
		return true;
	if (errno == ENOENT)
		return false;
	if (why.len == 0)
		buf_adds(&why, strerror(errno));
	warn_msg("operation %s: %s", req.name, buf_str(&why));
	failure_set(&f, KIND_INTERNAL, "operation %s is damaged: %s", req.name,
	    buf_str(&why));
	refuse(&f);
}

__attribute__((noreturn)) static void
route_host(unsigned groups)
{
	struct failure f = FAILURE_INIT;
	struct op op;

	if (!find(&op)) {
		require(groups, OP_INTERNAL);
		if (req.system)
			unknown();
		forward(NULL);
	}
	require(groups, op.set);
	if (req.system) {
		if (op.scope == OP_SANDBOX || op.host.argv.n == 0)
			unknown();
		perform(&op, &op.host);
	}
	if (op.host.refuse) {
		failure_set(&f, KIND_INVALID, "%s", op.host.refuse);
		refuse(&f);
	}
	if (op.scope == OP_SYSTEM) {
		failure_set(&f, KIND_INVALID,
		    "manager operation requires system scope");
		refuse(&f);
	}
	if (op.host.argv.n > 0 && op.scope == OP_SANDBOX)
		perform(&op, &op.host);
	forward(&op);
}

__attribute__((noreturn)) static void
route_box(void)
{
	struct failure f = FAILURE_INIT;
	struct buf reply = BUF_INIT;
	struct op op;

	if (req.system) {
		failure_set(
		    &f, KIND_INVALID, "daemon requests require sandbox scope");
		refuse(&f);
	}
	if (strcmp(buf_str(&req.sandbox_id), gate.sandbox) != 0) {
		failure_set(&f, KIND_INVALID,
		    "sandbox id mismatch: daemon is configured for %s, request "
		    "targeted %s",
		    gate.sandbox, buf_str(&req.sandbox_id));
		refuse(&f);
	}
	if (strcmp(req.name, "sandbox_daemon_ready") == 0) {
		buf_addc(&reply, '{');
		out_str(&reply, "status", "ready");
		out_str(&reply, "sandbox_id", gate.sandbox);
		out_str(&reply, "daemon", "sandbox-daemon");
		buf_addc(&reply, '}');
		respond(&reply, &f);
	}
	if (!find(&op) || op.box.argv.n == 0)
		unknown();
	perform(&op, &op.box);
}

/* ---- */

int
main(int argc, char **argv)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct failure f = FAILURE_INIT;
	struct line in = { .fd = STDIN_FILENO };
	uint64_t ms = READ_MS;
	bool counted = false;
	unsigned groups;
	size_t n = 0;
	int opt;

	err_init();
	gate.start = clock_ms();
	while ((opt = getopt(argc, argv, "+b:c:hk:m:t:v")) != -1) {
		switch (opt) {
		case 'b':
			if (!id_is_valid(optarg))
				die(EXIT_USAGE, "not an id: %s", optarg);
			gate.sandbox = optarg;
			continue;
		case 'c':
			counted = num_dec(optarg, 0, 65536, &gate.slots);
			if (!counted)
				break;
			continue;
		case 'h':
			usage_help(usage);
		case 'k':
			gate.key = optarg;
			continue;
		case 'm':
			if (!num_dec(optarg, 1, REQUEST_MAX, &gate.request_max))
				break;
			continue;
		case 't':
			if (!num_dec(optarg, 1, INT32_MAX, &ms))
				break;
			continue;
		case 'v':
			gate.verbose = true;
			continue;
		default:
			break;
		}
		usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (sigaction(SIGPIPE, &ignore, NULL) == -1)
		die_sys("unable to ignore SIGPIPE");
	gate.opsfd = open(argv[optind], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (gate.opsfd == -1)
		die_sys("unable to open %s", argv[optind]);
	gate.run = place_run();
	if (!gate.sandbox) {
		gate.state = place_state();
		if (!gate.key)
			gate.key = place_token();
	}
	if (!counted)
		gate.slots = gate.sandbox ? BOX_SLOTS : HOST_SLOTS;
	open_slots();
	if (gate.slots == 0)
		at_capacity();

	read_request(&in, &n, (int)ms);
	if (!request_parse(&req, buf_str(&in.buf), n,
		gate.sandbox ? BOX_TOKEN : HOST_TOKEN, &f))
		refuse(&f);
	groups = authenticate();
	/* No secret is for the programs that we start. */
	unsetenv("SANDBOX_GATEWAY_AUTH_TOKEN");
	unsetenv("SANDBOX_DAEMON_AUTH_TOKEN");
	unsetenv("SB_GATE_GROUPS");
	if (!request_decode(&req, &f))
		refuse(&f);
	if (gate.sandbox)
		route_box();
	route_host(groups);
}
