/* SPDX-License-Identifier: MIT */
/*
 * sb-box-ready: wait until sandboxes answer, and then make them ready whose
 * caller creates them. Shape: sink; prints the record, or an object with the
 * records where there are several.
 *
 *   1. Ask the gate of each whether it is ready, until it says so; its box
 *      must run meanwhile.
 *   2. Only when all are: write in the records of those that are being created
 *      what base they have, and the state.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base.h"
#include "box.h"
#include "boxmake.h"
#include "buf.h"
#include "clock.h"
#include "err.h"
#include "failure.h"
#include "io.h"
#include "json.h"
#include "line.h"
#include "lock.h"
#include "mem.h"
#include "num.h"
#include "out.h"
#include "path.h"
#include "place.h"
#include "stage.h"

static const char usage[] = "sb-box-ready [-t ms] sandbox...";

enum {
	ASK_MS = 250, /* for an answer */
	LOOK_MS = 2, /* between two questions */
	ANSWER_MAX = 65536
};

static char *state, *run;

/* ---- the question ---- */

static void
make_question(const struct box *box, struct buf *b)
{
	buf_addc(b, '{');
	out_str(b, "op", "sandbox_daemon_ready");
	out_str(b, "request_id", "local-readiness");
	out_key(b, "scope");
	buf_addc(b, '{');
	out_str(b, "kind", "sandbox");
	out_str(b, "sandbox_id", box->id);
	buf_adds(b, "},\"args\":{}}\n");
}

static bool
is_yes(const struct box *box, const char *line, size_t n)
{
	struct buf id = BUF_INIT;
	struct span all = { line, n };
	bool yes = json_is_valid(line, n, NULL, NULL) &&
	    json_is(json_member(all, "status"), "\"ready\"") &&
	    json_string(json_member(all, "sandbox_id"), &id) &&
	    strcmp(buf_str(&id), box->id) == 0;

	buf_release(&id);
	return yes;
}

/* False with what is wrong in why. */
static bool
ask(const struct box *box, struct buf *why)
{
	struct buf question = BUF_INIT;
	struct line l = { .fd = box_dial(box, run, ASK_MS) };
	bool yes = false;
	size_t n;

	buf_cut(why, 0);
	make_question(box, &question);
	if (l.fd == -1 ||
	    line_write(l.fd, question.data, question.len, ASK_MS) == -1)
		buf_adds(why, strerror(errno));
	else if (line_read(&l, ANSWER_MAX, clock_ms() + ASK_MS, &n) !=
	    LINE_WHOLE)
		buf_adds(why, "no answer");
	else if (!is_yes(box, l.buf.data, n))
		buf_addf(why, "it answers: %.*s", n > 500 ? 500 : (int)n,
		    l.buf.data);
	else
		yes = true;
	io_drop(&l.fd);
	buf_release(&l.buf);
	buf_release(&question);
	return yes;
}

static void
wait_for(const struct box *box, uint64_t ms)
{
	long end = clock_ms() + (long)ms;
	struct buf why = BUF_INIT;

	while (!ask(box, &why)) {
		if (lock_is_held(box->dirfd, BOX_LOCK) == 0)
			die(EXIT_SYS,
			    "sandbox runtime failed: the box of %s has ended",
			    box->id);
		if (clock_ms() >= end)
			die(EXIT_SYS,
			    "sandbox daemon install failed: %s is not ready: "
			    "%s",
			    box->id, buf_str(&why));
		poll(NULL, 0, LOOK_MS);
	}
	buf_release(&why);
}

/* ---- the record ---- */

static void
base_of(const struct box *box, struct buf *out)
{
	struct buf text = BUF_INIT, hash = BUF_INIT;
	char source[PATH_BYTES_MAX + 1];
	ssize_t n;

	n = readlinkat(
	    box->dirfd, "eos/layer-stack/base", source, sizeof source - 1);
	if (n == -1 ||
	    io_read_file_at(box->dirfd, "eos/layer-stack/workspace.json", &text,
		65536) == -1)
		die_sys("unable to read the base of %s", box->id);
	source[n] = '\0';
	if (!json_is_valid(buf_str(&text), text.len, NULL, NULL) ||
	    !json_string(json_member((struct span){ text.data, text.len },
			     "base_root_hash"),
		&hash))
		die(EXIT_SYS, "the store of %s names no base", box->id);
	box_out_base(out, source, buf_str(&hash));
	buf_release(&text);
	buf_release(&hash);
}

static void
read_box(const char *id, struct box *box)
{
	struct failure f = FAILURE_INIT;

	box_release(box);
	if (!box_read(state, id, box, &f))
		die(failure_is(&f, KIND_INTERNAL) ? EXIT_SYS : EXIT_NO, "%s",
		    buf_str(&f.message));
}

static void
make_ready(struct box *box)
{
	struct buf base = BUF_INIT;

	base_of(box, &base);
	if (box_set(box, STATE_READY, &base) == -1)
		die_sys("unable to write the record of %s", box->id);
	buf_release(&base);
}

int
main(int argc, char **argv)
{
	struct box *box;
	struct buf out = BUF_INIT;
	uint64_t ms = 60000;
	char **ids;
	int opt, n;

	err_init();
	while ((opt = getopt(argc, argv, "+ht:")) != -1) {
		if (opt == 't' && num_dec(optarg, 0, INT32_MAX, &ms))
			continue;
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	ids = argv + optind;
	n = argc - optind;
	if (n == 0)
		usage_die(usage);
	state = place_state();
	run = place_run();
	box = xcalloc((size_t)n, sizeof *box);
	for (int i = 0; i < n; i++) {
		box[i] = (struct box)BOX_INIT;
		read_box(ids[i], &box[i]);
		wait_for(&box[i], ms);
	}
	for (int i = 0; i < n; i++) {
		if (!box_is(&box[i], STATE_CREATING))
			continue;
		make_ready(&box[i]);
		read_box(ids[i], &box[i]);
	}
	if (n > 1)
		buf_adds(&out, "{\"sandboxes\":[");
	for (int i = 0; i < n; i++) {
		if (i > 0)
			buf_addc(&out, ',');
		box_print(&box[i], &out);
	}
	if (n > 1)
		buf_adds(&out, "]}");
	puts(out.data);
	stdout_done();
	return EXIT_OK;
}
