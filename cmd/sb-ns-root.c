/* SPDX-License-Identifier: MIT */
/*
 * sb-ns-root: give the processes of a session their view of the machine.
 * Shape: sink; changes the mounts of its own namespace, once. What it makes,
 * and why it is safe, is in lib/nsroot.h.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "err.h"
#include "mem.h"
#include "nsroot.h"
#include "num.h"

static const char usage[] = "sb-ns-root [-b bytes] [-m dir] ... tree target";

int
main(int argc, char **argv)
{
	const char **masks = xcalloc((size_t)argc, sizeof *masks);
	struct buf why = BUF_INIT;
	size_t nmasks = 0;
	uint64_t bytes = 0;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+b:m:h")) != -1) {
		if (opt == 'b' && num_dec(optarg, 1 << 20, INT64_MAX, &bytes))
			continue;
		if (opt == 'm')
			masks[nmasks++] = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 2 != argc || argv[optind + 1][0] != '/')
		usage_die(usage);
	if (nsroot_make(AT_FDCWD, argv[optind], argv[optind + 1],
		getenv("HOME"), bytes, masks, nmasks, &why) == -1)
		die(EXIT_SYS, "%s", buf_str(&why));
	return EXIT_OK;
}
