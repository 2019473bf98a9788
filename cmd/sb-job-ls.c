/* SPDX-License-Identifier: MIT */
/*
 * sb-job-ls: list jobs. Shape: source; ids, oldest first, or with -v one JSON
 * object a line and {} as the full stop. A job whose process was killed is
 * settled on the way.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "job.h"
#include "jobend.h"
#include "num.h"
#include "out.h"
#include "path.h"

static const char usage[] = "sb-job-ls [-rv] [-s session]";

static void
print(const struct job *j, const struct job_meta *m, enum job_state state)
{
	struct job_end e = { .status = "running" };
	struct buf b = BUF_INIT, command = BUF_INIT;
	uint64_t wall = job_now() > m->start ? job_now() - m->start : 0;

	if (state == JOB_OVER && job_end_read(j, "status", &e) == 0)
		wall = e.wall_ns;
	if (state == JOB_DEAD) {
		job_end_known(j, &e);
		if (e.total_ns > 0)
			wall = e.total_ns;
	}
	buf_addc(&b, '{');
	out_str(&b, "command_session_id", j->id);
	out_str(&b, "workspace_session_id", m->session);
	out_str(&b, "status", e.status);
	if (e.has_code) {
		out_key(&b, "exit_code");
		buf_addf(&b, "%d", e.code);
	} else {
		out_null(&b, "exit_code");
	}
	out_str(&b, "mode", m->pty ? "pty" : "pipe");
	out_num(&b, "started_at_unix_ms", m->start / 1000000);
	out_key(&b, "wall_time_seconds");
	buf_addf(&b, "%" PRIu64 ".%03" PRIu64, wall / 1000000000,
	    wall / 1000000 % 1000);
	if (job_command(j, &command) == 0)
		out_path(&b, "command", buf_str(&command));
	else
		out_null(&b, "command");
	buf_addc(&b, '}');
	puts(b.data);
	buf_release(&command);
	buf_release(&b);
}

static void
list_one(const char *id, const char *session, bool running, bool verbose)
{
	enum job_state state;
	struct job_meta m;
	struct job j;

	if (job_open(&j, id) == -1) {
		/* It went as the oldest. */
		if (errno != ENOENT)
			warn_sys("unable to open job %s", id);
		return;
	}
	if (job_meta_read(&j, &m) == -1 || job_state(&j, &state) == -1) {
		if (errno != ENOENT)
			warn_sys("unable to read job %s", id);
		goto out;
	}
	if (session && strcmp(m.session, session) != 0)
		goto out;
	if (state == JOB_DEAD) {
		if (job_settle(&j) == -1)
			warn_sys("unable to settle job %s", id);
		if (job_state(&j, &state) == -1)
			warn_sys("unable to read job %s", id);
	}
	if (running && state == JOB_OVER)
		goto out;
	if (verbose)
		print(&j, &m, state);
	else
		puts(id);
out:
	job_close(&j);
}

int
main(int argc, char **argv)
{
	bool running = false, verbose = false;
	const char *session = NULL;
	struct names all = NAMES_INIT;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+rs:vh")) != -1) {
		if (opt == 'r')
			running = true;
		else if (opt == 's')
			session = optarg;
		else if (opt == 'v')
			verbose = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	if (job_list(&all) == -1)
		die_sys("unable to read jobs/");
	for (size_t i = 0; i < all.n; i++)
		list_one(all.name[i], session, running, verbose);
	puts(verbose ? "{}" : "");
	stdout_done();
	return EXIT_OK;
}
