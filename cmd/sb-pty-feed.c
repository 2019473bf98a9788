/* SPDX-License-Identifier: MIT */
/*
 * sb-pty-feed: give a running command input, the end of input, or another
 * size of its window. Shape: sink; prints one JSON object.
 *
 *   1. An input of just U+0003 or U+0004 ends the command (unless -k): the
 *      key goes to the terminal, then its processes get TERM, then KILL.
 *   2. All else goes to its terminal, or pipe, as it comes, in pieces that the
 *      job's process acknowledges when they are written; the order of two
 *      feeders is that of their pieces.
 *   3. Wait for the end of the command, as long as the caller wants.
 *   4. Answer as sb-exec does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "job.h"
#include "jobctl.h"
#include "jobreply.h"
#include "num.h"
#include "out.h"
#include "pty.h"

static const char usage[] =
    "sb-pty-feed [-EkR] [-3 fd] [-c bytes] [-w colsxrows] [-y ms] job";

enum {
	CANCEL_MS = 1000,
	ASK_MS = 2000, /* more where others feed before us */
	PING_MS = 3000
};

static struct job job;
static int sock = -1;
static bool begun; /* some input has arrived: the rest may be unwanted */

__attribute__((noreturn)) static void
refuse_over(void)
{
	struct buf d = BUF_INIT;
	struct job_end e;

	if (job_end_read(&job, "status", &e) == 0 && e.failed) {
		out_str(&d, "command_session_id", job.id);
		answer_error(EXIT_CONFLICT, KIND_FAILED, &d,
		    "command finalization failed for %s", job.id);
	}
	answer_error(EXIT_CONFLICT, KIND_FAILED, NULL,
	    "command already completed: %s", job.id);
}

__attribute__((noreturn)) static void
no_answer(void)
{
	struct buf d = BUF_INIT;

	out_str(&d, "command_session_id", job.id);
	answer_error(EXIT_TIMEOUT, KIND_FAILED, &d,
	    "command io failed for %s: its process does not answer (sb-job-kill "
	    "ends it)",
	    job.id);
}

/* False: it ended, or closed its input, before it heard us. */
static bool
ask(enum jobctl_op op, const void *p, size_t n)
{
	char word[JOBCTL_ANSWER];

	int rc = jobctl_ask(sock, op, p, n, word, ASK_MS);

	while (rc == -1 && errno == ETIMEDOUT &&
	    jobctl_is_alive(job.dirfd, PING_MS))
		rc = jobctl_wait(sock, word, ASK_MS);
	if (rc == -1) {
		if (errno == EPIPE || errno == ECONNRESET)
			return false;
		if (errno == ETIMEDOUT || errno == EAGAIN)
			no_answer();
		answer_sys("unable to ask the process of %s", job.id);
	}
	if (strcmp(word, JOBCTL_OK) == 0)
		return true;
	if (strcmp(word, JOBCTL_OVER) == 0 ||
	    (begun && op == JOBCTL_DATA && strcmp(word, JOBCTL_NO) == 0))
		return false;
	if (strcmp(word, JOBCTL_STUCK) == 0)
		answer_error(EXIT_TIMEOUT, KIND_FAILED, NULL,
		    "command io failed for %s: stdin_backpressure: consumer "
		    "is not draining its stdin",
		    job.id);
	answer_error(EXIT_CONFLICT, KIND_FAILED, NULL,
	    op == JOBCTL_SIZE      ? "%s has no terminal"
		: op == JOBCTL_EOF ? "%s reads single keystrokes: there is no "
				     "end of input now"
				   : "%s takes no input",
	    job.id);
}

/* A key alone, and nothing after it? Else what follows is added to it. */
static bool
is_lone_key(char *piece, size_t *n)
{
	ssize_t more;

	if (*n != 1 || (*piece != '\003' && *piece != '\004'))
		return false;
	more = io_read_some(STDIN_FILENO, piece + 1, JOBCTL_MAX - 1);
	if (more == -1)
		die_sys("unable to read standard input");
	*n += (size_t)more;
	return more == 0;
}

enum fed {
	FED_NOTHING,
	FED_KEY, /* a lone key, which cancels */
	FED_SOME
};

/*
 * Everything that comes, or as much as a command wants that ends meanwhile:
 * the answer then says how.
 */
static enum fed
feed(bool keys)
{
	static char piece[JOBCTL_MAX];
	enum fed fed = FED_NOTHING;

	for (;;) {
		/* What is there, not a full piece: somebody may type. */
		ssize_t got = io_read_some(STDIN_FILENO, piece, sizeof piece);
		size_t n = (size_t)got;

		if (got == -1)
			die_sys("unable to read standard input");
		if (got == 0)
			return fed;
		if (fed == FED_NOTHING && !keys && is_lone_key(piece, &n)) {
			if (!ask(JOBCTL_CANCEL, piece, 1))
				refuse_over();
			return FED_KEY;
		}
		if (!ask(JOBCTL_DATA, piece, n)) {
			if (!begun)
				refuse_over();
			return fed;
		}
		fed = FED_SOME;
		begun = true;
	}
}

int
main(int argc, char **argv)
{
	enum fed fed = FED_NOTHING;
	bool end = false, keys = false;
	struct reply r = { .cursor = true, .id = true };
	unsigned rows = 0, cols = 0;
	char size[32];
	uint64_t ms = 1000, n;
	int ready = -1;
	struct buf b = BUF_INIT;
	enum job_state state;
	int opt;

	err_init();
	answer_always();
	while ((opt = getopt(argc, argv, "+3:c:EkRw:y:h")) != -1) {
		if (opt == '3') {
			if (!num_dec(optarg, 3, 1 << 20, &n) ||
			    io_ready_fd((int)n) == -1)
				answer_bad(opt, optarg, "an open descriptor");
			ready = (int)n;
		} else if (opt == 'c') {
			if (!num_dec(optarg, 1, UINT64_MAX, &r.max))
				answer_bad(opt, optarg, "a number of bytes");
		} else if (opt == 'E')
			end = true;
		else if (opt == 'k')
			keys = true;
		else if (opt == 'R')
			r.raw = true;
		else if (opt == 'w') {
			if (!pty_parse_size(optarg, &rows, &cols))
				answer_bad(opt, optarg, "COLUMNSxROWS");
		} else if (opt == 'y') {
			if (!num_dec(optarg, 0, UINT64_MAX, &ms))
				answer_bad(opt, optarg, "milliseconds");
		} else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (job_open(&job, argv[optind]) == -1) {
		if (errno == ENOENT || errno == EINVAL)
			answer_error(EXIT_NO, KIND_FAILED, NULL,
			    "command not found: %s", argv[optind]);
		answer_sys("unable to open job %s", argv[optind]);
	}
	if (job_state(&job, &state) == -1)
		answer_sys("unable to look at job %s", job.id);
	if (state != JOB_RUNS)
		refuse_over();
	sock = jobctl_connect(job.dirfd);
	if (sock == -1 && errno == EAGAIN)
		no_answer();
	if (sock == -1)
		refuse_over();
	snprintf(size, sizeof size, "%u %u", rows, cols);
	if (rows != 0 && !ask(JOBCTL_SIZE, size, strlen(size)))
		refuse_over();
	/* To change the size is enough to do. */
	if (rows == 0 || end)
		fed = feed(keys);
	if (fed == FED_NOTHING && rows == 0 && !end)
		answer_error(
		    EXIT_USAGE, KIND_INVALID, NULL, "stdin must be non-empty");
	if (end && fed != FED_KEY && !ask(JOBCTL_EOF, NULL, 0) &&
	    fed == FED_NOTHING)
		refuse_over();
	if (fed == FED_KEY)
		ms = CANCEL_MS;
	io_ready(&ready);
	if (ms > INT32_MAX)
		ms = INT32_MAX;
	if (ms > 0 && job_wait(&job, (int)ms) == -1 && errno != ETIMEDOUT)
		answer_sys("unable to wait for job %s", job.id);
	if (job_reply(&job, &r, &b, NULL) == -1)
		answer_sys("unable to read job %s", job.id);
	job_reply_print(&job, &r, &b);
	return EXIT_OK;
}
