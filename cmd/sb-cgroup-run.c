/* SPDX-License-Identifier: MIT */
/*
 * sb-cgroup-run: run a program within limits. Shape: chain; a sink with -d,
 * which removes what the other left.
 *
 *   1. Make the control group sb-NAME in each hierarchy that has memory, pids
 *      or cpu, and set its limits.
 *   2. Enter it, say once which limits do not hold, and become the program.
 *
 * Invariant: the program runs, limited or not; never outside of the group when
 * there is one, so all that it starts counts.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "limit.h"
#include "num.h"
#include "path.h"
#include "spawn.h"

static const char usage[] =
    "sb-cgroup-run [-c nano_cpus] [-M memory_high] [-m memory_max] [-p pids] "
    "name prog... | -d [-t ms] name";

enum {
	WAIT_MS = 5000
};

static void
remove_groups(const char *group, int ms)
{
	struct buf where = BUF_INIT;

	if (limit_remove(group, ms, &where) == 0)
		return;
	if (errno == EBUSY)
		die(EXIT_BUSY, "processes run in %s", buf_str(&where));
	die_sys("unable to remove %s", where.len > 0 ? buf_str(&where) : group);
}

int
main(int argc, char **argv)
{
	struct limits want = { .memory_max = 0 };
	struct buf why = BUF_INIT;
	uint64_t *to, ms = WAIT_MS, max;
	bool removes = false;
	char group[ID_MAX + 4];
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+c:dM:m:p:t:h")) != -1) {
		max = INT64_MAX;
		switch (opt) {
		case 'c':
			to = &want.nano_cpus;
			break;
		case 'M':
			to = &want.memory_high;
			break;
		case 'm':
			to = &want.memory_max;
			break;
		case 'p':
			to = &want.pids;
			break;
		case 't':
			to = &ms;
			max = INT32_MAX;
			break;
		case 'd':
			removes = true;
			continue;
		case 'h':
			usage_help(usage);
		default:
			usage_die(usage);
		}
		if (!num_dec(optarg, opt == 't' ? 0 : 1, max, to))
			die(EXIT_USAGE, "-%c: not a number that it takes: %s",
			    opt, optarg);
	}
	argc -= optind;
	argv += optind;
	if (removes ? argc != 1 : argc < 2)
		usage_die(usage);
	if (!id_is_valid(argv[0]))
		die(EXIT_USAGE, "not a name: %s", argv[0]);
	snprintf(group, sizeof group, "sb-%s", argv[0]);
	if (removes) {
		remove_groups(group, (int)ms);
		return EXIT_OK;
	}
	if (limit_enter(group, &want, &why) == -1)
		warn_msg("limits are not available: %s", buf_str(&why));
	spawn_exec(argv + 1);
	warn_sys("unable to run %s", argv[1]);
	return spawn_exec_code(errno);
}
