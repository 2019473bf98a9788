/* SPDX-License-Identifier: MIT */
/*
 * sb-stat-sample: what the sandbox of the store uses, now. Shape: sink; appends
 * a line to its log of resources, or prints it.
 *
 * The log is an account for people: where it cannot be written the sample is
 * dropped and counted. With -r it goes on until it is killed, and reads the
 * settings again each time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "conf.h"
#include "err.h"
#include "io.h"
#include "num.h"
#include "sample.h"
#include "store.h"

static const char usage[] = "sb-stat-sample [-nr] [-3 fd]";

/* What is wrong with the settings is said once, and the defaults hold. */
static void
configure(struct conf *conf)
{
	static struct buf said = BUF_INIT;
	struct buf why = BUF_INIT;
	int fd = store_open();

	if (conf_read(fd, conf, &why) == -1) {
		if (why.len == 0)
			buf_adds(&why, strerror(errno));
		if (strcmp(buf_str(&said), why.data) != 0)
			warn_msg("%s", why.data);
		conf_default(conf);
	}
	buf_release(&said);
	said = why;
	io_drop(&fd);
}

static int
turn(bool print)
{
	struct sample s = SAMPLE_INIT;
	struct buf line = BUF_INIT;
	struct conf conf;
	int ms;

	configure(&conf);
	sample_take(&s);
	if (print) {
		sample_print(&s, &line);
		if (puts(buf_str(&line)) == EOF || fflush(stdout) == EOF)
			die_sys("unable to write");
	} else {
		sample_log(&s, &conf);
	}
	ms = (int)conf_number(&conf, CONF_SAMPLES_MS);
	buf_release(&line);
	sample_release(&s);
	conf_release(&conf);
	return ms;
}

int
main(int argc, char **argv)
{
	bool print = false, again = false;
	int opt, ms, ready = -1;
	uint64_t n;

	err_init();
	while ((opt = getopt(argc, argv, "+3:hnr")) != -1) {
		switch (opt) {
		case '3':
			if (!num_dec(optarg, 3, INT32_MAX, &n) ||
			    io_ready_fd((int)n) == -1)
				die(EXIT_USAGE, "not a descriptor: %s", optarg);
			ready = (int)n;
			continue;
		case 'h':
			usage_help(usage);
		case 'n':
			print = true;
			continue;
		case 'r':
			again = true;
			continue;
		default:
			usage_die(usage);
		}
	}
	if (optind < argc)
		usage_die(usage);
	ms = turn(print);
	io_ready(&ready);
	while (again) {
		poll(NULL, 0, ms);
		ms = turn(print);
	}
	stdout_done();
	return EXIT_OK;
}
