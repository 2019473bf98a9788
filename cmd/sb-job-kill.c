/* SPDX-License-Identifier: MIT */
/*
 * sb-job-kill: end all processes of a job for certain, or signal them. Shape:
 * sink.
 *
 *   1. Without -s ask the job's process to cancel: TERM, and 100 ms later a
 *      kill that nothing can outrun. This also ends what a command that is
 *      over left in the background.
 *   2. Wait until the job is over, or its process gone.
 *   3. A process that does not answer is told to go on, if it was stopped; if
 *      that does not help it is killed, and the job settled in its place.
 *
 * With -s each process of the job gets the signal, and that is all.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "job.h"
#include "jobctl.h"
#include "jobend.h"
#include "jobforce.h"
#include "num.h"

static const char usage[] = "sb-job-kill [-s signal] [-t ms] job";

enum {
	STEP_MS = 5,
	ASK_MS = 2000 /* who is not stuck answers sooner */
};

static struct job job;
static int sig; /* 0: end it */

static int
parse_signal(const char *s)
{
	uint64_t n;
	int named;

	if (num_dec(s, 1, 64, &n))
		return (int)n;
	if (strncmp(s, "SIG", 3) == 0)
		s += 3;
	named = num_signal(s);
	if (named == 0)
		die(EXIT_USAGE, "not a signal: %s", s);
	return named;
}

/*
 * The socket of the job's process, or -1 with ENOENT when there is nothing to
 * end. One that has just begun does not listen yet.
 */
static int
reach(struct job *j, enum job_state *state, int ms)
{
	int sock = -1;

	for (int waited = 0;; waited += STEP_MS) {
		if (job_state(j, state) == -1)
			die_sys("unable to look at job %s", j->id);
		if (*state == JOB_DEAD && job_settle(j) == -1)
			die_sys("unable to settle job %s", j->id);
		sock = jobctl_connect(j->dirfd);
		if (sock != -1 || (errno != ENOENT && errno != ECONNREFUSED) ||
		    *state != JOB_RUNS || waited >= ms)
			return sock;
		poll(NULL, 0, STEP_MS);
	}
}

/* 0, or -1 with ETIMEDOUT when nothing was answered; who is gone is no error. */
static int
ask(int sock, int ms)
{
	char word[JOBCTL_ANSWER], number[16];
	int rc;

	snprintf(number, sizeof number, "%d", sig);
	rc = sig != 0
	    ? jobctl_ask(sock, JOBCTL_SIGNAL, number, strlen(number), word, ms)
	    : jobctl_ask(sock, JOBCTL_CANCEL, NULL, 0, word, ms);
	if (rc == 0 || errno == EPIPE || errno == ECONNRESET)
		return 0;
	if (errno == EAGAIN)
		errno = ETIMEDOUT;
	if (errno != ETIMEDOUT)
		die_sys("unable to ask the process of job %s", job.id);
	return -1;
}

__attribute__((noreturn)) static void
no_answer(void)
{
	die(EXIT_TIMEOUT, "the process of job %s does not answer", job.id);
}

/* What can be done without its help; ms is all the time we have. */
static void
go_without(int sock, uint64_t ms)
{
	if (ms < ASK_MS)
		no_answer();
	if (job_continue(&job) > 0 && sock != -1 &&
	    jobctl_is_alive(job.dirfd, ASK_MS))
		return; /* it hears what it was asked */
	if (sig != 0 && sig != SIGKILL)
		no_answer();
	if (job_force(&job) == 0)
		exit(EXIT_OK);
	if (errno == ESRCH || errno == ETIMEDOUT)
		no_answer();
	die_sys("unable to end job %s", job.id);
}

int
main(int argc, char **argv)
{
	enum job_state state;
	uint64_t ms = 10000;
	int opt, sock, rc;

	err_init();
	while ((opt = getopt(argc, argv, "+s:t:h")) != -1) {
		if (opt == 's')
			sig = parse_signal(optarg);
		else if (opt == 't' && num_dec(optarg, 0, INT32_MAX, &ms))
			continue;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (job_open(&job, argv[optind]) == -1) {
		if (errno == ENOENT || errno == EINVAL)
			die(EXIT_NO, "no such job: %s", argv[optind]);
		die_sys("unable to open job %s", argv[optind]);
	}
	sock = reach(&job, &state, (int)ms);
	if (sock == -1) {
		if (state != JOB_RUNS &&
		    (errno == ENOENT || errno == ECONNREFUSED))
			return EXIT_OK; /* nothing runs */
		if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN)
			die_sys(
			    "unable to reach the process of job %s", job.id);
		go_without(-1, ms);
	} else if (ask(sock, ms < ASK_MS ? (int)ms : ASK_MS) == -1) {
		go_without(sock, ms);
	}
	if (sig != 0)
		return EXIT_OK;
	/* Its process lets go of us when nobody is left. */
	rc = state == JOB_OVER ? io_wait(sock, (int)ms)
			       : job_wait(&job, (int)ms);
	if (rc == -1 && errno == ETIMEDOUT && ms >= ASK_MS &&
	    !jobctl_is_alive(job.dirfd, ASK_MS))
		go_without(-1, ms);
	if (rc == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "job %s does not end", job.id);
	if (rc == -1)
		die_sys("unable to wait for job %s", job.id);
	return EXIT_OK;
}
