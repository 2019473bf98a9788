/* SPDX-License-Identifier: MIT */
/*
 * sb-pty-run: be the process of a job. Shape: sink, stays; sb-exec starts it.
 *
 *   1. Take the job's lock over: from now on its life is the job's.
 *   2. Open the session's namespaces by the pidfd of its init; start the
 *      command in them, see inside.h, in a cgroup of its own where there can
 *      be one.
 *   3. Copy what it prints to log, as bytes, and to rows, as text; give it
 *      what is fed; do what is asked through the socket "in", see jobctl.h.
 *   4. A time limit or a cancel climbs a ladder: the key, TERM to all of the
 *      job's processes, a kill that cannot be outrun.
 *   5. The shell has ended: read what it printed before, write "ended",
 *      publish an automatic session if no other job is in it, write "status",
 *      let go of the lock.
 *   6. Stay as long as processes are left in the background: what they print
 *      still goes to log and rows.
 *
 * We stay outside of the session; the only thing of it that we hold is the
 * terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "background.h"
#include "clock.h"
#include "detach.h"
#include "err.h"
#include "event.h"
#include "fate.h"
#include "inside.h"
#include "io.h"
#include "job.h"
#include "jobend.h"
#include "jobserve.h"
#include "ladder.h"
#include "launch.h"
#include "lock.h"
#include "num.h"
#include "out.h"
#include "pty.h"
#include "running.h"
#include "transcript.h"

enum {
	FINALISE_TRIES = 3
};

static const char usage[] = "sb-pty-run [-3 fd] [-l fd] job";

static struct job job = JOB_INIT;
static struct job_meta meta;
static struct running run = RUNNING_INIT;
static struct event_span *span;
static int sock = -1; /* to the keeper; -1: it is gone */
static int sigfd = -1, ready = -1;
static int finalfd = -1; /* tells how the session was finalised */
static bool final_ready;
static long time_limit; /* clock_ms(), or 0 */
static uint64_t real_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC, ns */

/* Since the start of the job; does not jump with the clock. */
static uint64_t
since_start(void)
{
	uint64_t now = clock_ns() + real_offset;

	return now > meta.start ? now - meta.start : 0;
}

/* ---- waiting ---- */

static void
from_inside(void)
{
	struct inside_msg m;
	int fd;
	ssize_t n = fds_recv(sock, &m, sizeof m, &fd, 1);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof m) {
		/* The keeper is gone, and who it made with it. */
		io_drop(&sock);
		ladder_reap(&run.ladder);
		return;
	}
	switch (m.what) {
	case INSIDE_TERMINAL:
		run.out.fd = fd;
		break;
	case INSIDE_KEEPER:
		run.ladder.keeper = m.value;
		break;
	case INSIDE_STARTED:
		if (meta.limited && meta.timeout_ms < LONG_MAX / 2)
			time_limit = clock_ms() + (long)meta.timeout_ms;
		if (ready != -1 && write(ready, "r", 1) == -1)
			io_drop(&ready);
		break;
	case INSIDE_ENDED:
		run.fate.status = m.value;
		run.fate.ended = true;
		break;
	case INSIDE_FAILED:
		run.fate.failed = true;
		m.text[sizeof m.text - 1] = '\0';
		snprintf(run.fate.trouble, sizeof run.fate.trouble,
		    "unable to %s: %s", m.text, strerror(m.value));
		break;
	default:
		break;
	}
}

static void
take_signal(void)
{
	struct signalfd_siginfo info;

	if (read(sigfd, &info, sizeof info) != (ssize_t)sizeof info)
		return;
	running_cancel(&run);
}

static void
check_limit(void)
{
	if (run.over || time_limit == 0 || clock_ms() < time_limit)
		return;
	time_limit = 0;
	if (run.fate.ended || run.fate.reason != FATE_OWN)
		return;
	fate_because(&run.fate, FATE_TIME);
	ladder_climb(&run.ladder, RUNG_TERM);
}

static void
wait_once(void)
{
	struct pollfd p[6 + JOBSERVE_POLLS];
	bool feeding = jobserve_due(&run.server) != 0;
	bool broken = feeding && running_input(&run) == -1;
	const long due[] = { run.over ? 0 : time_limit, run.ladder.due,
		jobserve_due(&run.server) };
	size_t n;

	p[0] = (struct pollfd){ .fd = sock, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = run.out.fd, .events = POLLIN };
	p[2] = (struct pollfd){ .fd = run.err.fd, .events = POLLIN };
	p[3] = (struct pollfd){ .fd = sigfd, .events = POLLIN };
	p[4] = (struct pollfd){ .fd = finalfd, .events = POLLIN };
	p[5] = (struct pollfd){ .fd = feeding ? running_input(&run) : -1,
		.events = POLLOUT };
	n = jobserve_poll(&run.server, p + 6);
	if (poll(p, 6 + n, broken ? 0 : clock_left(due, 3)) == -1) {
		if (errno == EINTR)
			return;
		die_sys("unable to wait");
	}
	if (p[1].revents)
		transcript_pump(&run.out);
	if (p[2].revents)
		transcript_pump(&run.err);
	if (p[3].revents)
		take_signal();
	if (p[5].revents || broken)
		running_feed(&run);
	jobserve_handle(&run.server, p + 6, n);
	if (p[0].revents)
		from_inside();
	final_ready = p[4].revents != 0;
	check_limit();
	ladder_on_time(&run.ladder);
	jobserve_on_time(&run.server);
}

/* ---- the end ---- */

/* Written at once: nobody waits for the lock that the end of the job frees. */
static void
account(const struct job_end *e)
{
	if (e->has_code) {
		out_key(event_attrs(span), "exit_code");
		buf_addf(event_attrs(span), "%d", e->code);
	}
	event_end(span, strcmp(e->status, "ok") == 0 ? NULL : e->status);
	span = NULL;
	event_flush();
}

/*
 * A child does it. When the session ends, its init waits until the keeper is
 * reaped, pid_namespaces(7), and that is up to us. False: it was killed.
 */
static bool
finalise_once(struct job_end *e)
{
	struct job_end after = *e;
	bool told;
	pid_t pid;
	int p[2];

	if (pipe2(p, O_CLOEXEC) == -1)
		return false;
	pid = fork();
	if (pid == 0) {
		io_drop(&p[0]);
		job_finalise(meta.session, &job, &after, FINALISE_MS);
		_exit(io_write_all(p[1], &after, sizeof after) == -1);
	}
	io_drop(&p[1]);
	if (pid == -1) {
		io_drop(&p[0]);
		return false;
	}
	finalfd = p[0];
	while (!final_ready)
		wait_once();
	final_ready = false;
	told =
	    io_read_all(finalfd, &after, sizeof after) == (ssize_t)sizeof after;
	io_drop(&finalfd);
	while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		continue;
	if (told)
		*e = after;
	return told;
}

/*
 * How the command ended stays what it is. Whoever is killed at it may have left
 * a sb-publish behind that goes on: the next one waits for its gate, and finds
 * what it did.
 */
static void
finalise(struct job_end *e)
{
	for (int i = 0; i < FINALISE_TRIES; i++) {
		if (finalise_once(e)) {
			e->lost = false;
			return;
		}
		e->lost = true;
	}
	job_end_fail(e, "unavailable",
	    "who published the session was killed: sb-sweep publishes it "
	    "afterwards");
}

/*
 * Everything is written before the lock goes: who waits for it finds the
 * result.
 */
static void
finish(void)
{
	struct job_end e = { .total_ns = since_start() };

	transcript_drain(&run.out);
	transcript_drain(&run.err);
	run.fate.ended = true;
	transcript_end(&run.out);
	transcript_end(&run.err);
	running_tell(&run, &e);
	if (job_end_write(&job, "ended", &e) == -1)
		die_sys("unable to write jobs/%s/ended", job.id);
	account(&e);
	jobserve_drop_all(&run.server);
	finalise(&e);
	e.wall_ns = since_start();
	if (job_end_write(&job, "status", &e) == -1)
		die_sys("unable to write jobs/%s/status", job.id);
	if (e.background > 0)
		background_write(
		    job.dirfd, run.ladder.procfd, run.ladder.keeper);
	io_drop(&job.lockfd);
	io_drop(&ready);
	run.over = true;
}

/* Until the shell has ended, in whatever way. */
static void
run_command(void)
{
	while (!run.fate.ended && !run.fate.failed && sock != -1)
		wait_once();
	if (!run.fate.ended && !run.fate.failed &&
	    run.ladder.rung < RUNG_KILL) {
		run.fate.status = SIGKILL;
		ladder_lost(&run.ladder, meta.start);
	}
	if (run.fate.failed || run.fate.reason != FATE_OWN) {
		/* A cancel ends all of the tree, also if the shell went at
		 * the first sign. */
		while (sock != -1 && run.ladder.rung != RUNG_GROUND &&
		    run.ladder.rung != RUNG_KILL &&
		    ladder_count(&run.ladder) > 0) {
			run.fate.ended = true;
			ladder_climb(&run.ladder, RUNG_TERM);
			wait_once();
		}
		ladder_climb(&run.ladder, RUNG_KILL);
	}
	finish();
}

/* As long as there is somebody in the background. */
static void
stay(void)
{
	job_sync(&job);
	while (sock != -1)
		wait_once();
	ladder_reap(&run.ladder);
	transcript_drain(&run.out);
	transcript_drain(&run.err);
	transcript_end(&run.out);
	transcript_end(&run.err);
	background_remove(job.dirfd);
	unlinkat(job.dirfd, "in", 0);
	leaf_remove(&run.ladder.leaf);
}

/*
 * What goes wrong before the command runs is the job's result. Afterwards it is
 * written how the command ended, and stays: who finds us gone does the rest.
 */
static void
at_exit(void)
{
	struct job_end e = { .status = "error" };
	struct buf b = BUF_INIT;

	if (run.over || job.dirfd == -1 || job.lockfd == -1 ||
	    faccessat(job.dirfd, "ended", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	if (io_read_file_at(job.dirfd, "messages", &b, sizeof e.note) == 0)
		snprintf(e.note, sizeof e.note, "%.*s",
		    (int)strcspn(buf_str(&b), "\n"), buf_str(&b));
	buf_release(&b);
	e.total_ns = e.wall_ns = since_start();
	if (run.ladder.keeper != 0)
		kill(run.ladder.keeper, SIGKILL);
	ladder_reap(&run.ladder);
	account(&e);
	if (job_end_write(&job, "ended", &e) == 0) {
		job_finalise(meta.session, &job, &e, FINALISE_MS);
		job_end_write(&job, "status", &e);
	}
}

/* ---- */

static void
open_job(const char *id, int lock)
{
	if (job_open(&job, id) == -1)
		die(EXIT_NO, "no such job: %s", id);
	if (job_meta_read(&job, &meta) == -1)
		die_sys("unable to read jobs/%s/meta", job.id);
	if (lock == -1)
		lock = lock_take(job.dirfd, "lock", true, 0);
	if (lock == -1)
		die(errno == EAGAIN ? EXIT_BUSY : EXIT_SYS,
		    "unable to lock job %s", job.id);
	job.lockfd = lock;
}

int
main(int argc, char **argv)
{
	const char *failed;
	uint64_t fd;
	int opt, lock = -1;

	err_init();
	while ((opt = getopt(argc, argv, "+3:l:h")) != -1) {
		if (opt == '3' && num_dec(optarg, 3, 1 << 20, &fd))
			ready = (int)fd;
		else if (opt == 'l' && num_dec(optarg, 3, 1 << 20, &fd))
			lock = (int)fd;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	/* Nothing of who started us stays open in us. */
	if (detach_close((int[]){ ready, lock }, 2) == -1)
		die_sys("unable to use the descriptors given");
	open_job(argv[optind], lock);
	span = event_begin("namespace.exec.run_shell");
	run.job = &job;
	run.meta = &meta;
	real_offset = job_now() - clock_ns();
	if (atexit(at_exit) != 0)
		die(EXIT_SYS, "out of memory");
	if (detach(job.dirfd, "messages") == -1)
		die_sys("unable to detach");
	sigfd = detach_signals();
	if (sigfd == -1 || running_listen(&run) == -1)
		die_sys("unable to listen in jobs/%s", job.id);
	sock = launch(&run, &failed);
	if (sock == -1)
		die_sys("unable to %s", failed);
	run_command();
	stay();
	return EXIT_OK;
}
