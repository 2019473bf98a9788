/* SPDX-License-Identifier: MIT */
/*
 * sb-job-wait: wait for the end of a job. Shape: source; prints the answer of
 * sb-exec.
 *
 * We wait for the job's lock, which its process holds until everything is
 * written, also if it is killed.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "answer.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "job.h"
#include "jobreply.h"
#include "lock.h"
#include "num.h"

static const char usage[] = "sb-job-wait [-R] [-c bytes] [-t ms] job";

int
main(int argc, char **argv)
{
	struct reply r = { .cursor = true, .id = true };
	struct buf b = BUF_INIT;
	enum job_state state;
	uint64_t ms = 0;
	bool limited = false;
	struct job j;
	int opt;

	err_init();
	answer_always();
	while ((opt = getopt(argc, argv, "+c:Rt:h")) != -1) {
		if (opt == 'c') {
			if (!num_dec(optarg, 1, UINT64_MAX, &r.max))
				answer_bad(opt, optarg, "a number of bytes");
		} else if (opt == 't') {
			if (!num_dec(optarg, 0, UINT64_MAX, &ms))
				answer_bad(opt, optarg, "milliseconds");
			limited = true;
		} else if (opt == 'R')
			r.raw = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (ms > INT32_MAX)
		ms = INT32_MAX;
	if (job_open(&j, argv[optind]) == -1) {
		if (errno == ENOENT || errno == EINVAL)
			answer_error(EXIT_NO, KIND_FAILED, NULL,
			    "command not found: %s", argv[optind]);
		answer_sys("unable to open job %s", argv[optind]);
	}
	if (job_wait(&j, limited ? (int)ms : LOCK_FOREVER) == -1 &&
	    errno != ETIMEDOUT)
		answer_sys("unable to wait for job %s", j.id);
	if (job_reply(&j, &r, &b, &state) == -1)
		answer_sys("unable to read job %s", j.id);
	job_reply_print(&j, &r, &b);
	/* A dead one that cannot be settled now has ended all the same. */
	return state == JOB_OVER || state == JOB_DEAD ? EXIT_OK : EXIT_TIMEOUT;
}
