/* SPDX-License-Identifier: MIT */
/*
 * sb-pty-read: read what a command has printed. Shape: source; one JSON
 * object with rows, rendered or raw, or with -r the bytes as they came.
 *
 * Reads only: no cursor moves, and the command does not notice. Bytes and rows
 * that were not kept are named.
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
#include "io.h"
#include "job.h"
#include "jobreply.h"
#include "num.h"
#include "path.h"
#include "spool.h"

static const char usage[] =
    "sb-pty-read [-eRr] [-c bytes] [-n rows] [-o offset] job";

enum {
	ROWS_DEFAULT = 200,
	ROWS_MAX = 1000,
	CHUNK = 65536
};

/* Bytes [at, end) to standard output. */
static void
copy(int fd, off_t at, off_t end)
{
	static char piece[CHUNK];

	while (at < end) {
		size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
		ssize_t n = pread(fd, piece, want, at);

		if (n == -1)
			die_sys("unable to read the log");
		if (n == 0)
			break;
		if (fwrite(piece, 1, (size_t)n, stdout) != (size_t)n)
			break; /* stdout_done says so */
		at += n;
	}
}

static void
print_bytes(const struct job *j, bool err, uint64_t offset)
{
	int dirfd =
	    path_open(j->dirfd, err ? "err" : ".", O_RDONLY | O_DIRECTORY, 0);
	off_t at = offset < INT64_MAX ? (off_t)offset : INT64_MAX;
	struct gap gap, now;
	struct stat st;
	int fd = -1;

	if (dirfd != -1)
		fd = openat(dirfd, LOG_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 && errno == ENOENT)
		return;
	if (fd == -1 || spool_gap(dirfd, LOG_NAME, &gap) == -1 ||
	    fstat(fd, &st) == -1)
		die_sys("unable to open the log of %s", j->id);
	if (gap.to == gap.from)
		gap.from = gap.to = st.st_size;
	if (at < gap.from)
		copy(fd, at, gap.from);
	if (at < gap.to && gap.to > gap.from) {
		warn_msg("%s: bytes %jd to %jd were not kept", j->id,
		    (intmax_t)(at > gap.from ? at : gap.from),
		    (intmax_t)gap.to - 1);
		at = gap.to;
	}
	if (at >= gap.to)
		copy(fd, at, st.st_size);
	/* What we copied may have gone while we did. */
	if (spool_gap(dirfd, LOG_NAME, &now) == 0 && now.to > gap.to &&
	    now.to > at)
		warn_msg("%s: bytes up to %jd were dropped while they were "
			 "read",
		    j->id, (intmax_t)now.to - 1);
}

int
main(int argc, char **argv)
{
	struct reply r = { .limit = ROWS_DEFAULT, .id = true };
	struct buf b = BUF_INIT;
	struct job j;
	bool bytes = false, limited = false;
	int opt;

	err_init();
	answer_always();
	while ((opt = getopt(argc, argv, "+c:eRrn:o:h")) != -1) {
		if (opt == 'c') {
			if (!num_dec(optarg, 1, UINT64_MAX, &r.max))
				answer_bad(opt, optarg, "a number of bytes");
		} else if (opt == 'e')
			r.err = true;
		else if (opt == 'R')
			r.raw = true;
		else if (opt == 'r')
			bytes = true;
		else if (opt == 'n') {
			if (!num_dec(optarg, 0, UINT64_MAX, &r.limit))
				answer_bad(opt, optarg, "a number of rows");
			limited = true;
		} else if (opt == 'o') {
			if (!num_dec(optarg, 0, UINT64_MAX, &r.first))
				answer_bad(opt, optarg, "a number");
		} else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc || (bytes && (r.raw || limited || r.max)))
		usage_die(usage);
	/* Bytes are no object, and can begin like one. */
	if (bytes)
		err_on_death(NULL);
	if (r.limit < 1)
		r.limit = 1;
	if (r.limit > ROWS_MAX)
		r.limit = ROWS_MAX;
	if (job_open(&j, argv[optind]) == -1) {
		if (errno != ENOENT && errno != EINVAL)
			answer_sys("unable to open job %s", argv[optind]);
		if (bytes)
			die(EXIT_NO, "no such job: %s", argv[optind]);
		job_reply_unknown(&b, argv[optind]);
	} else if (bytes) {
		print_bytes(&j, r.err, r.first);
	} else if (job_reply(&j, &r, &b, NULL) == -1) {
		answer_sys("unable to read job %s", j.id);
	}
	if (!bytes)
		puts(b.data);
	stdout_done();
	return EXIT_OK;
}
