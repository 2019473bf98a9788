/* SPDX-License-Identifier: MIT */
/*
 * termrows [-lpr] [-n times] rows cols: the rows of what a terminal is told on
 * stdin, final ones "F text", then those live before the end "L text", each
 * with "w" for wrapped and "a" for alternate screen behind the letter. -l: the
 * line model only. -p, -r: SCREEN_PIPE, SCREEN_RAW. -n: feeds the input that
 * many times in pieces of 64 KiB, prints no rows but bytes, rows, MB/s of processor time and the
 * growth of memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "lineterm.h"
#include "num.h"
#include "screen.h"

enum {
	PIECE = 65536
};

static uint64_t nrows, nbytes;
static char final_row[] = "F", live_row[] = "L";

static void
show(const char *text, size_t n, unsigned flags, void *arg)
{
	printf("%s%s%s ", (const char *)arg,
	    (flags & ROW_WRAPPED) != 0 ? "w" : "",
	    (flags & ROW_ALT) != 0 ? "a" : "");
	(void)fwrite(text, 1, n, stdout);
	(void)putchar('\n');
}

static void
count(const char *text, size_t n, unsigned flags, void *arg)
{
	(void)text;
	(void)flags;
	(void)arg;
	nrows++;
	nbytes += n;
}

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long
peak(void)
{
	struct rusage r;

	(void)getrusage(RUSAGE_SELF, &r);
	return r.ru_maxrss;
}

static void
feed(struct screen *s, struct lineterm *l, const char *p, size_t n)
{
	size_t at;

	if (s != NULL)
		screen_feed(s, p, n);
	else
		for (at = 0; at < n;)
			at += lineterm_feed(l, p + at, n - at);
}

int
main(int argc, char **argv)
{
	struct buf in = BUF_INIT;
	struct screen *s = NULL;
	struct lineterm *l = NULL;
	rows_fn *fn = show;
	unsigned how = 0;
	uint64_t h, w, times = 0, i;
	bool lines = false;
	size_t at, k;
	double t;
	long before;
	struct rows_log log;
	const char *dir = NULL;
	uint64_t limit = 0;
	int c;

	err_init();
	while ((c = getopt(argc, argv, "lprn:d:m:")) != -1) {
		if (c == 'l')
			lines = true;
		else if (c == 'p')
			how |= SCREEN_PIPE;
		else if (c == 'r')
			how |= SCREEN_RAW;
		else if (c == 'd')
			dir = optarg;
		else if (c == 'm' && num_dec(optarg, 0, UINT64_MAX, &limit))
			;
		else if (c != 'n' || !num_dec(optarg, 1, 1000000, &times))
			return 100;
	}
	if (argc - optind != 2 || !num_dec(argv[optind], 1, 1000, &h) ||
	    !num_dec(argv[optind + 1], 1, 1000, &w))
		return 100;
	if (io_read_buf(0, &in, 1u << 30) == -1)
		return 111;
	if (times > 0) {
		fn = count;
		if (dir != NULL) {
			c = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (c == -1 || rows_log_open(&log, c, limit) == -1)
				die_sys("unable to write in %s", dir);
			fn = rows_log_add;
		}
	}
	if (lines)
		l = lineterm_new((how & SCREEN_RAW) != 0, (int)h, (int)w, fn,
		    dir != NULL ? (void *)&log : final_row);
	else
		s = screen_new(how, (int)h, (int)w, fn,
		    dir != NULL ? (void *)&log : final_row);
	if (times == 0) {
		feed(s, l, in.data, in.len);
		if (s != NULL) {
			screen_live(s, show, live_row);
			screen_free(s);
		} else {
			lineterm_live(l, show, live_row);
			lineterm_free(l);
		}
		stdout_done();
		return 0;
	}
	before = peak();
	t = now();
	for (i = 0; i < times; i++)
		for (at = 0; at < in.len; at += k) {
			k = in.len - at < PIECE ? in.len - at : PIECE;
			feed(s, l, in.data + at, k);
			if (dir != NULL && rows_log_flush(&log) == -1)
				die_sys("unable to write rows");
		}
	if (s != NULL)
		screen_end(s);
	else
		lineterm_end(l);
	if (dir != NULL) {
		nrows = rows_log_count(&log);
		if (rows_log_close(&log) == -1)
			die_sys("unable to write rows");
	}
	t = now() - t;
	printf("%.1f MB, %ju rows of %.1f MB, %.0f MB/s, %ld KiB more\n",
	    (double)in.len * (double)times / 1e6, (uintmax_t)nrows,
	    (double)nbytes / 1e6, (double)in.len * (double)times / 1e6 / t,
	    peak() - before);
	stdout_done();
	return 0;
}
