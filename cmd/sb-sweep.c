/* SPDX-License-Identifier: MIT */
/*
 * sb-sweep: bring to its end what killed processes left. Shape: sink; prints
 * the ids of the jobs and sessions that it ended.
 *
 *   1. Jobs without a process and without a status: see job_settle. The last
 *      one of an automatic session publishes it.
 *   2. Automatic sessions that no job is in and whose gate is free, a minute
 *      after they were made: who made them was killed before there was a job,
 *      or its last job was removed. Published too, should they have changed
 *      something. The minute is for who makes one by sb-session-new -a and
 *      has not begun with it yet.
 *   3. What is left of sessions that were being made or ended, of jobs that
 *      were being made, and empty cgroups of jobs.
 *   4. sb-layer-rm, without ids: leases, tickets, staging.
 *
 * Whatever lives holds a lock and is left alone, so any number of sweeps may
 * run beside each other and beside everything else. One thing that cannot be
 * swept is named and keeps none of the others.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "cgroup.h"
#include "err.h"
#include "io.h"
#include "job.h"
#include "jobend.h"
#include "path.h"
#include "session.h"
#include "spawn.h"
#include "store.h"

static const char usage[] = "sb-sweep";

enum {
	UNUSED_S = 60
};

static bool failed; /* something could not be swept */

__attribute__((format(printf, 1, 2))) static void
complain(const char *fmt, ...)
{
	char text[256];
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	errno = err;
	warn_sys("%s", text);
	failed = true;
}

/* What was refused is kept, and that is worth a word. */
static void
tell(const char *session, const struct job_end *e)
{
	if (!e->rejected && !e->failed)
		return;
	warn_msg("session %s %s (%s)%s%s", session,
	    e->parked ? "is kept: it could not be published"
		      : "could not be finalised",
	    e->rejected ? e->reject_class : e->failure_class,
	    *e->note ? ": " : "", e->note);
	failed |= e->failed;
}

static void
sweep_job(const char *id)
{
	enum job_state state;
	struct job_meta m;
	struct job_end e;
	struct job j;

	if (job_open(&j, id) == -1) {
		/* It went as the oldest. */
		if (errno != ENOENT)
			complain("unable to open job %s", id);
		return;
	}
	if (job_state(&j, &state) == -1) {
		if (errno != ENOENT)
			complain("unable to look at job %s", id);
	} else if (state == JOB_DEAD) {
		int rc = job_settle(&j);

		if (rc == -1)
			complain("unable to settle job %s", id);
		if (rc == 1)
			puts(id);
		if (rc == 1 && job_meta_read(&j, &m) == 0 &&
		    job_end_read(&j, "status", &e) == 0)
			tell(m.session, &e);
	}
	job_close(&j);
}

static void
sweep_jobs(void)
{
	struct names all = NAMES_INIT;

	if (job_sweep() == -1)
		complain("unable to remove jobs/.new");
	if (job_list(&all) == -1)
		complain("unable to read jobs/");
	for (size_t i = 0; i < all.n; i++)
		sweep_job(all.name[i]);
	names_release(&all);
	leaf_sweep(JOB_LEAF);
}

/*
 * Was it made so long ago that somebody would have begun with it? A clock that
 * was set makes it look old, but never young for ever.
 */
static bool
is_old(int workfd, const char *id)
{
	char path[ID_MAX + 8];
	struct stat st;

	snprintf(path, sizeof path, "%s/auto", id);
	return path_lstat(workfd, path, &st) == 0 &&
	    llabs((long long)time(NULL) - (long long)st.st_mtime) >= UNUSED_S;
}

static void
sweep_sessions(void)
{
	struct names all = NAMES_INIT;
	int fd = store_open_workspace();

	if (names_read(fd, &all) == -1)
		complain("unable to read workspace/");
	for (size_t i = 0; i < all.n; i++) {
		struct job_end e = { .note = "" };

		if (!id_is_valid(all.name[i]) || !is_old(fd, all.name[i]))
			continue;
		if (job_finalise(all.name[i], NULL, &e, 0) == 1)
			puts(all.name[i]);
		tell(all.name[i], &e);
	}
	session_sweep(fd);
	names_release(&all);
	io_drop(&fd);
}

static void
sweep_layers(void)
{
	const char *const argv[] = { "sb-layer-rm", NULL };
	int none = memfd_create("ids", MFD_CLOEXEC), out = -1;
	pid_t pid = -1;

	if (none != -1 && io_write_all(none, "\n", 1) == 0 &&
	    lseek(none, 0, SEEK_SET) == 0)
		out = memfd_create("removed", MFD_CLOEXEC);
	if (out != -1)
		pid = spawn(
		    argv, (struct spawn_fd[]){ { none, 0 }, { out, 1 } }, 2);
	if (pid == -1)
		complain("unable to start sb-layer-rm");
	else if (spawn_wait(pid) != 0)
		failed = true; /* it has said why */
	io_drop(&none);
	io_drop(&out);
}

int
main(int argc, char **argv)
{
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	sweep_jobs();
	sweep_sessions();
	sweep_layers();
	putchar('\n');
	stdout_done();
	return failed ? EXIT_SYS : EXIT_OK;
}
