/* SPDX-License-Identifier: MIT */
/*
 * sb-stat-boxes: all sandboxes at a glance. Shape: source; one JSON object
 * with a node for each that is ready, in the order of their ids, or with the
 * one that is named.
 *
 *   1. For each sandbox a child asks its gate, and writes the node into a
 *      pipe; some at a time, the next as soon as one is through.
 *   2. Who takes too long is killed, and gets a node that says so.
 *   3. The nodes are printed when all are there.
 *
 * Invariant: one bad sandbox never fails the whole, nor delays the others.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"
#include "box.h"
#include "buf.h"
#include "call.h"
#include "clock.h"
#include "conf.h"
#include "err.h"
#include "failure.h"
#include "forward.h"
#include "io.h"
#include "json.h"
#include "line.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "place.h"
#include "request.h"

static const char usage[] = "sb-stat-boxes [-r request] [sandbox]";

#define BOX_TOKEN "_sandbox_daemon_auth_token"

enum {
	ERROR_MAX = 4096, /* bytes of a message in a node */
	AT_ONCE_MAX = 256
};

struct node {
	struct box box;
	bool ask; /* else it is not ready, or it was asked for as it is */
	pid_t pid;
	int fd; /* of the child, or -1 */
	int64_t deadline;
	struct buf json;
};

static struct node *nodes;
static size_t nnodes, cap;
static uint64_t at_once, wait_ms;
static const char *request;
static char *state, *run;

/* ---- nodes ---- */

static void
print_failure(const struct box *box, const struct failure *f, struct buf *b)
{
	const char *text = buf_str(&f->message);
	size_t n = f->message.len;

	if (n > ERROR_MAX) {
		n = ERROR_MAX;
		/* Not in the middle of a character. */
		while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
	}
	buf_addc(b, '{');
	out_str(b, "sandbox_id", box->id);
	out_key(b, "lifecycle_state");
	out_string(b, buf_str(&box->state), box->state.len);
	out_str(b, "availability", "unavailable");
	out_null(b, "sampled_at_unix_ms");
	out_key(b, "errors");
	buf_addc(b, '[');
	if (utf8_is_valid(text, n))
		out_string(b, text, n);
	else
		out_string_ascii(b, text, n);
	buf_addc(b, ']');
	out_key(b, "daemon");
	buf_addc(b, '{');
	if (box->host.len > 0) {
		out_str(b, "host", buf_str(&box->host));
		out_num(b, "port", box->port);
	} else {
		out_null(b, "host");
		out_null(b, "port");
	}
	out_null(b, "daemon_pid");
	out_null(b, "runtime_dir");
	buf_adds(b,
	    "},\"resources\":{\"latest\":null,\"history\":[]},"
	    "\"workspaces\":[]}");
}

static bool
is_availability(struct span s)
{
	return json_is(s, "\"available\"") || json_is(s, "\"partial\"") ||
	    json_is(s, "\"unavailable\"");
}

/* The box's errors, and one that its word for itself is none. */
static void
print_errors(struct span s, bool complain, struct buf *b)
{
	out_key(b, "errors");
	if (s.p && *s.p == '[')
		buf_add(b, s.p, s.n - 1);
	else
		buf_addc(b, '[');
	if (complain) {
		if (b->data[b->len - 1] != '[')
			buf_addc(b, ',');
		buf_adds(b,
		    "\"the sandbox answered with an unknown "
		    "availability\"");
	}
	buf_addc(b, ']');
}

static void
member_or(
    struct span all, const char *name, const char *otherwise, struct buf *b)
{
	struct span s = json_member(all, name);

	out_key(b, name);
	if (s.p)
		buf_add(b, s.p, s.n);
	else
		buf_adds(b, otherwise);
}

/* What the box said, with what the host knows better. */
static void
print_answer(const struct box *box, struct span all, struct buf *b)
{
	static const char *const known[] = { "sandbox_id", "lifecycle_state",
		"availability", "sampled_at_unix_ms", "errors", "daemon",
		"resources", "workspaces" };
	struct span word = json_member(all, "availability"), v;
	struct buf key = BUF_INIT;
	size_t pos = 0;

	buf_addc(b, '{');
	out_str(b, "sandbox_id", box->id);
	out_key(b, "lifecycle_state");
	out_string(b, buf_str(&box->state), box->state.len);
	out_key(b, "availability");
	if (is_availability(word))
		buf_add(b, word.p, word.n);
	else
		buf_adds(b, "\"partial\"");
	member_or(all, "sampled_at_unix_ms", "null", b);
	print_errors(json_member(all, "errors"), !is_availability(word), b);
	member_or(
	    all, "daemon", "{\"daemon_pid\":null,\"runtime_dir\":null}", b);
	member_or(all, "resources", "{\"latest\":null,\"history\":[]}", b);
	member_or(all, "workspaces", "[]", b);
	while (json_pair(all, &pos, &key, &v)) {
		size_t i = 0;

		while (i < sizeof known / sizeof *known &&
		    strcmp(known[i], buf_str(&key)) != 0)
			i++;
		if (i < sizeof known / sizeof *known)
			continue;
		buf_addc(b, ',');
		out_string(b, buf_str(&key), key.len);
		buf_addc(b, ':');
		buf_add(b, v.p, v.n);
	}
	buf_addc(b, '}');
	buf_release(&key);
}

/* ---- asking one ---- */

static void
set_error(struct failure *f, struct span error)
{
	struct buf text = BUF_INIT;

	if (!json_string(json_member(error, "message"), &text))
		buf_adds(&text, "the sandbox answered with an error");
	failure_set(f, KIND_INTERNAL, "%s", buf_str(&text));
	buf_release(&text);
}

static struct span
span_of(const struct buf *b)
{
	return (struct span){ buf_str(b), b->len };
}

static void
ask(const struct box *box, struct buf *b)
{
	struct buf id = BUF_INIT, text = BUF_INIT, scope = BUF_INIT;
	struct buf reply = BUF_INIT;
	struct failure f = FAILURE_INIT;
	struct request r = REQUEST_INIT;
	struct forward w = { .peer = -1, .deadline = LINE_NEVER };
	struct span error;

	buf_addf(&text, "%s:%s:observability_snapshot", request, box->id);
	out_string(&id, buf_str(&text), text.len);
	buf_addc(&scope, '{');
	out_str(&scope, "kind", "sandbox");
	out_str(&scope, "sandbox_id", box->id);
	buf_addc(&scope, '}');
	r.op = (struct span){ "\"snapshot\"", 10 };
	r.request_id = span_of(&id);
	r.scope = span_of(&scope);
	r.args = (struct span){ "{}", 2 };
	if (box_is_ready(box, run, &f))
		w.fd = forward_send(box, run, &r, BOX_TOKEN, &f);
	if (!f.kind && forward_receive(&w, &reply, &f)) {
		error = json_member(span_of(&reply), "error");
		if (!error.p) {
			print_answer(box, span_of(&reply), b);
			return;
		}
		set_error(&f, error);
	}
	print_failure(box, &f, b);
}

/* ---- asking all ---- */

static void
begin(struct node *n)
{
	struct buf b = BUF_INIT;
	pid_t parent = getpid();
	int p[2];

	n->deadline =
	    wait_ms < INT32_MAX ? clock_ms() + (int64_t)wait_ms : LINE_NEVER;
	if (pipe2(p, O_CLOEXEC) == -1)
		die_sys("unable to make a pipe");
	n->pid = fork();
	if (n->pid == -1)
		die_sys("unable to fork");
	if (n->pid == 0) {
		/* Whoever ends us ends what we ask. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ||
		    getppid() != parent)
			_exit(EXIT_SYS);
		ask(&n->box, &b);
		_exit(io_write_all(p[1], b.data, b.len) == 0 ? EXIT_OK
							     : EXIT_SYS);
	}
	io_drop(&p[1]);
	n->fd = p[0];
}

static void
finish(struct node *n, bool late)
{
	struct failure f = FAILURE_INIT;
	int status = 0;

	io_drop(&n->fd);
	if (late)
		kill(n->pid, SIGKILL);
	while (waitpid(n->pid, &status, 0) == -1 && errno == EINTR)
		continue;
	if (!late && status == 0 &&
	    json_is_valid(buf_str(&n->json), n->json.len, NULL, NULL))
		return;
	buf_cut(&n->json, 0);
	if (late)
		failure_set(&f, KIND_INTERNAL,
		    "sandbox daemon forwarding failed: daemon request timed "
		    "out after %" PRIu64 " ms",
		    wait_ms);
	else
		failure_set(&f, KIND_INTERNAL,
		    "sandbox daemon forwarding failed: its answer was lost");
	print_failure(&n->box, &f, &n->json);
	failure_release(&f);
}

/* Reads from those that have something to say, ends those that are late. */
static void
turn(size_t begun)
{
	struct pollfd p[AT_ONCE_MAX];
	struct node *of[AT_ONCE_MAX];
	int64_t first = LINE_NEVER;
	nfds_t n = 0;

	for (size_t i = 0; i < begun; i++) {
		if (nodes[i].fd == -1)
			continue;
		of[n] = &nodes[i];
		p[n++] = (struct pollfd){ .fd = nodes[i].fd, .events = POLLIN };
		if (nodes[i].deadline < first)
			first = nodes[i].deadline;
	}
	if (poll(p, n, line_left(first)) == -1 && errno != EINTR)
		die_sys("unable to wait");
	for (nfds_t i = 0; i < n; i++) {
		char chunk[65536];
		ssize_t r = -1;

		if (p[i].revents) {
			r = io_read_some(of[i]->fd, chunk, sizeof chunk);
			if (r > 0)
				buf_add(&of[i]->json, chunk, (size_t)r);
			else
				finish(of[i], false);
		} else if (line_left(of[i]->deadline) == 0) {
			finish(of[i], true);
		}
	}
}

static void
ask_all(void)
{
	size_t begun = 0, busy;

	do {
		busy = 0;
		for (size_t i = 0; i < begun; i++)
			busy += nodes[i].fd != -1;
		for (; begun < nnodes && busy < at_once; begun++) {
			if (!nodes[begun].ask)
				continue;
			begin(&nodes[begun]);
			busy++;
		}
		if (busy > 0)
			turn(begun);
	} while (busy > 0);
}

/* ---- which ---- */

static struct node *
add_node(const struct box *box)
{
	struct node *n;

	if (nnodes == cap)
		nodes = xgrow(nodes, &cap, sizeof *nodes);
	n = &nodes[nnodes++];
	*n = (struct node){ .box = *box, .fd = -1, .json = BUF_INIT };
	return n;
}

static void
add_all(void)
{
	struct names ids = NAMES_INIT;

	if (box_list(state, &ids) == -1)
		die_sys("unable to read %s/" BOX_DIR, state);
	for (size_t i = 0; i < ids.n; i++) {
		struct failure f = FAILURE_INIT;
		struct box box = BOX_INIT;

		/* Not those that are just made or ended, nor without a gate. */
		if (!box_read(state, ids.name[i], &box, &f)) {
			if (failure_is(&f, KIND_INTERNAL))
				warn_msg("%s", buf_str(&f.message));
			box_release(&box);
		} else if (box_is_ready(&box, run, &f)) {
			add_node(&box)->ask = true;
		} else {
			box_release(&box);
		}
		failure_release(&f);
	}
	names_release(&ids);
}

static void
add_one(const char *id)
{
	struct failure f = FAILURE_INIT;
	struct box box = BOX_INIT;
	struct node *n;

	if (!box_read(state, id, &box, &f))
		answer_error(
		    failure_is(&f, KIND_INTERNAL) ? EXIT_SYS : EXIT_USAGE,
		    f.kind, &f.details, "%s", buf_str(&f.message));
	n = add_node(&box);
	n->ask = box_is_ready(&n->box, run, &f);
	if (!n->ask)
		print_failure(&n->box, &f, &n->json);
	failure_release(&f);
}

/* The gateway's configuration is in the state directory. */
static void
configure(void)
{
	struct buf why = BUF_INIT;
	struct conf conf;

	if (place_conf(state, &conf, &why) == -1)
		die(EXIT_USAGE, "%s", buf_str(&why));
	at_once = conf_number(&conf, CONF_SNAPSHOT_MANY);
	if (at_once > AT_ONCE_MAX)
		at_once = AT_ONCE_MAX;
	wait_ms = conf_number(&conf, CONF_SNAPSHOT_MS);
	conf_release(&conf);
}

int
main(int argc, char **argv)
{
	struct buf b = BUF_INIT;
	char uuid[37];
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+hr:")) != -1) {
		switch (opt) {
		case 'h':
			usage_help(usage);
		case 'r':
			request = optarg;
			continue;
		default:
			usage_die(usage);
		}
	}
	if (argc - optind > 1)
		usage_die(usage);
	if (!request) {
		call_uuid(uuid);
		request = uuid;
	}
	state = place_state();
	run = place_run();
	configure();
	if (optind < argc && *argv[optind])
		add_one(argv[optind]);
	else
		add_all();
	ask_all();
	buf_adds(&b, "{\"sandboxes\":[");
	for (size_t i = 0; i < nnodes; i++) {
		if (i > 0)
			buf_addc(&b, ',');
		buf_add(&b, buf_str(&nodes[i].json), nodes[i].json.len);
	}
	buf_adds(&b, "]}");
	puts(b.data);
	stdout_done();
	return EXIT_OK;
}
