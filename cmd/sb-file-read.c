/* SPDX-License-Identifier: MIT */
/*
 * sb-file-read: print lines of a text file, as head or a session shows it.
 * Shape: source; prints one JSON object.
 *
 *   1. Open head or the session; look the path up, following no link.
 *   2. Read the file once, from its start to its end; keep the lines that are
 *      asked for, count the others.
 *   3. Print.
 *
 * Invariant: what is printed is whole lines of one version of the file, or the
 * error object.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "answer.h"
#include "err.h"
#include "file.h"
#include "io.h"
#include "num.h"
#include "out.h"
#include "window.h"

static const char usage[] =
    "sb-file-read [-c bytes] [-l limit] [-o offset] [-s session] [-t ms] "
    "path";

enum {
	LIMIT_MAX = 2000
};

static void
read_lines(int fd, const char *path, struct window *w)
{
	static char chunk[65536];
	ssize_t n;

	do {
		n = io_read_some(fd, chunk, sizeof chunk);
		if (n == -1)
			answer_sys("unable to read %s", path);
		window_feed(w, chunk, (size_t)n);
	} while (n > 0);
	window_end(w);
}

static void
print(const char *path, uint64_t first, const struct window *w)
{
	struct buf b = BUF_INIT;
	uint64_t next = window_next(w);

	buf_addc(&b, '{');
	out_path(&b, "path", path);
	out_key(&b, "content");
	out_string(&b, buf_str(&w->text), w->text.len);
	out_num(&b, "start_line", first);
	out_num(&b, "num_lines", w->num);
	out_num(&b, "total_lines", w->lines);
	out_num(&b, "bytes_read", w->text.len);
	out_num(&b, "total_bytes", w->bytes);
	if (next > 0)
		out_num(&b, "next_offset", next);
	else
		out_null(&b, "next_offset");
	out_bool(&b, "truncated", next > 0 || w->cut);
	if (w->cut)
		out_bool(&b, "line_cut", true);
	buf_addc(&b, '}');
	puts(b.data);
	stdout_done();
}

int
main(int argc, char **argv)
{
	const char *session = NULL;
	uint64_t first = 1, limit = 0, ms = 30000, max, fit = 0;
	bool limited = false;
	struct window w;
	struct tree t;
	struct file f;
	char *path;
	int opt;

	err_init();
	answer_always();
	while ((opt = getopt(argc, argv, "+c:l:o:s:t:h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		else if (opt == 's')
			session = optarg;
		else if (opt == 'c') {
			if (!num_dec(optarg, 1, SIZE_MAX, &fit))
				answer_bad(opt, optarg, "a number of bytes");
		} else if (opt == 'l' || opt == 'o') {
			if (!num_dec(optarg, 0, UINT64_MAX,
				opt == 'l' ? &limit : &first))
				answer_bad(opt, optarg, "a number");
			limited |= opt == 'l';
		} else if (opt != 't')
			usage_die(usage);
		else if (!num_dec(optarg, 0, INT32_MAX, &ms))
			answer_bad(opt, optarg, "milliseconds");
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (limited && (limit < 1 || limit > LIMIT_MAX))
		answer_error(EXIT_USAGE, KIND_INVALID, NULL,
		    "limit must be between 1 and %d", LIMIT_MAX);
	if (first == 0)
		first = 1;

	path = file_path(argv[optind], false);
	if (!limited)
		limit = file_limit(CONF_READ_LINES);
	max = file_limit(CONF_MAX_OUTPUT);
	tree_open(&t, session, (int)ms);
	tree_find(&t, path, &f);
	file_require(&t, &f, path, false);
	window_init(&w, first, limit, (size_t)max);
	read_lines(f.fd, path, &w);
	if (w.invalid)
		answer_error(EXIT_USAGE, KIND_INVALID, NULL,
		    "file is not valid UTF-8: %s", path);
	if (fit > 0)
		window_fit(&w, (size_t)fit);
	if (w.overflow)
		answer_error(EXIT_USAGE, KIND_INVALID, NULL,
		    "selected read output exceeds the maximum of %" PRIu64
		    " bytes",
		    max);
	file_release(&f);
	tree_close(&t);
	print(path, first, &w);
	return EXIT_OK;
}
