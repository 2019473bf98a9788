/* SPDX-License-Identifier: MIT */
/*
 * sb-box-stop: end the box of a sandbox, whose caller is busy with it. Shape:
 * sink.
 *
 *   1. Tell its pid 1, which ends the services; when it does not end in time,
 *      kill it: with it all processes of the box go.
 *   2. Wait until its lock is free: its mounts are gone then.
 *   3. Remove the cgroups of its jobs.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "box.h"
#include "cgroup.h"
#include "clock.h"
#include "err.h"
#include "failure.h"
#include "io.h"
#include "jobend.h"
#include "lock.h"
#include "ns.h"
#include "num.h"
#include "place.h"
#include "sys.h"

static const char usage[] = "sb-box-stop [-t ms] sandbox";

enum {
	LOOK_MS = 20, /* while it starts */
	END_MS = 30000 /* what was killed */
};

/* False: it has not begun yet, or it has ended. */
static bool
tell(const struct box *box, int sig)
{
	struct hold h;
	int fd = -1;
	bool told;

	if (hold_read(box->dirfd, &h) == 0)
		fd = hold_open(&h);
	else if (errno != ENOENT)
		die_sys("unable to read " BOX_DIR "/%s/hold", box->id);
	told = fd != -1 && sys_pidfd_send_signal(fd, sig) == 0;
	io_drop(&fd);
	return told;
}

/* Is it free by then? A shared lock looks free to those who ask. */
static bool
ends(const struct box *box, long ms)
{
	int fd = lock_take(box->dirfd, BOX_LOCK, false, (int)ms);

	if (fd == -1 && errno != EAGAIN && errno != ETIMEDOUT)
		die_sys("unable to lock " BOX_DIR "/%s", box->id);
	if (fd == -1)
		return false;
	io_drop(&fd);
	return true;
}

static void
stop(const struct box *box, long ms)
{
	long end = clock_ms() + ms;
	bool told = false;

	if (ends(box, 0))
		return;
	/* One that is just starting is told when it can be. */
	do {
		if (!told)
			told = tell(box, SIGTERM);
		if (ends(box, told ? end - clock_ms() : LOOK_MS))
			return;
	} while (clock_ms() < end);
	end = clock_ms() + END_MS;
	do {
		tell(box, SIGKILL);
		if (ends(box, LOOK_MS))
			return;
	} while (clock_ms() < end);
	die(EXIT_TIMEOUT, "the box of %s does not end", box->id);
}

int
main(int argc, char **argv)
{
	struct failure f = FAILURE_INIT;
	struct box box = BOX_INIT;
	uint64_t ms = 5000;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+ht:")) != -1) {
		if (opt == 't' && num_dec(optarg, 0, INT32_MAX, &ms))
			continue;
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	/* A damaged record does not matter. */
	if (!box_read(place_state(), argv[optind], &box, &f) &&
	    (!failure_is(&f, KIND_INTERNAL) || box.dirfd == -1))
		die(failure_is(&f, KIND_INTERNAL) ? EXIT_SYS : EXIT_NO, "%s",
		    buf_str(&f.message));
	stop(&box, (long)ms);
	leaf_sweep(JOB_LEAF);
	return EXIT_OK;
}
