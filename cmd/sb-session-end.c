/* SPDX-License-Identifier: MIT */
/*
 * sb-session-end: end a session and throw its unpublished changes away. Shape:
 * sink.
 *
 *   1. Take the gate exclusively: no command may run in it. Who waits for it
 *      while another ends the session has the same success.
 *   2. End the holder, wait until its last process is gone.
 *   3. Rename the directory to a dot name: from here on the session does not
 *      exist; then remove it. A killed run's rest goes with the next end.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "buf.h"
#include "err.h"
#include "event.h"
#include "io.h"
#include "job.h"
#include "num.h"
#include "out.h"
#include "path.h"
#include "session.h"

static const char usage[] = "sb-session-end [-v] [-t ms] session";

/* Bytes in the files of a tree, as far as it can be read. */
static uint64_t
size_of(int dirfd, const char *name)
{
	struct names v = NAMES_INIT;
	uint64_t bytes = 0;
	struct stat st;
	int fd;

	if (path_lstat(dirfd, name, &st) == -1)
		return 0;
	if (S_ISREG(st.st_mode))
		return (uint64_t)st.st_size;
	if (!S_ISDIR(st.st_mode))
		return 0;
	fd = path_open(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd != -1 && names_read(fd, &v) == 0)
		for (size_t i = 0; i < v.n; i++)
			bytes += size_of(fd, v.name[i]);
	names_release(&v);
	io_drop(&fd);
	return bytes;
}

static void
print(const char *id, uint64_t bytes)
{
	struct buf b = BUF_INIT;

	buf_addc(&b, '{');
	out_str(&b, "workspace_session_id", id);
	out_bool(&b, "destroyed", true);
	out_num(&b, "evicted_upperdir_bytes", bytes);
	buf_addc(&b, '}');
	puts(b.data);
	stdout_done();
}

int
main(int argc, char **argv)
{
	struct session s;
	uint64_t ms = 0, bytes = 0;
	bool verbose = false;
	int opt;

	err_init();
	answer_always();
	while ((opt = getopt(argc, argv, "+t:vh")) != -1) {
		if (opt == 't' && num_dec(optarg, 0, INT32_MAX, &ms))
			continue;
		if (opt == 't')
			answer_bad(opt, optarg, "milliseconds");
		if (opt == 'v') {
			verbose = true;
			continue;
		}
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	event_begin("workspace_session.destroy");
	if (session_open(&s, argv[optind]) == -1 ||
	    session_gate(&s, true, (int)ms) == -1) {
		if (errno == EAGAIN || errno == ETIMEDOUT)
			die(errno == EAGAIN ? EXIT_BUSY : EXIT_TIMEOUT,
			    "session %s is in use: wait for its commands to "
			    "end, or end them",
			    s.id);
		/* Another end was quicker: it is ours as well. */
		if (s.ended) {
			if (verbose)
				print(s.id, 0);
			return EXIT_OK;
		}
		if (errno == ENOENT || errno == EINVAL)
			answer_no_session(argv[optind], "");
		die_sys("unable to open session %s%s", argv[optind],
		    session_trouble());
	}
	/* A job holds the gate only while it begins and ends. */
	job_refuse_active(s.id);
	if (session_stop(&s) == -1)
		die_sys("unable to end the processes of session %s%s", s.id,
		    session_trouble());
	if (verbose)
		bytes = size_of(s.dirfd, "upper");
	if (session_mark_ended(&s, true) == -1 || job_tell_gone(s.id) == -1 ||
	    session_remove(&s, true) == -1) {
		int err = errno;

		session_mark_ended(&s, false);
		errno = err;
		die_sys(
		    "unable to remove session %s%s", s.id, session_trouble());
	}
	if (verbose)
		print(s.id, bytes);
	return EXIT_OK;
}
