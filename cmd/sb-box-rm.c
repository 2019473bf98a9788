/* SPDX-License-Identifier: MIT */
/*
 * sb-box-rm: forget a sandbox. Shape: sink; prints the sandbox's id.
 *
 * Its directory gets a dot name: from here on it does not exist; then it is
 * removed. The store that it was stays as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "box.h"
#include "buf.h"
#include "err.h"
#include "failure.h"
#include "io.h"
#include "mem.h"
#include "path.h"
#include "place.h"

static const char usage[] = "sb-box-rm sandbox";

int
main(int argc, char **argv)
{
	struct failure f = FAILURE_INIT;
	struct box box = BOX_INIT;
	char *state, *aside;
	int opt, fd;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	state = place_state();
	/* One with a damaged record is there, too. */
	if (!box_read(state, argv[optind], &box, &f) &&
	    !failure_is(&f, KIND_INTERNAL))
		die(EXIT_NO, "%s", buf_str(&f.message));
	fd = place_open(state, BOX_DIR);
	aside = xasprintf(".%s.%ld", box.id, (long)getpid());
	if (renameat(fd, box.id, fd, aside) == -1)
		die_sys("unable to remove " BOX_DIR "/%s", box.id);
	if (path_rm_tree(fd, aside) == -1)
		die_sys("unable to remove " BOX_DIR "/%s", aside);
	puts(box.id);
	stdout_done();
	return EXIT_OK;
}
