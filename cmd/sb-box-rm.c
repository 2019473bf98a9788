/* SPDX-License-Identifier: MIT */
/*
 * sb-box-rm: forget a sandbox. Shape: sink; prints the sandbox's id.
 *
 * Its directory gets a dot name: from here on it does not exist; then it is
 * removed. The store that it was stays as it is.
 *
 * With -p, for the provider that made it and is busy with it: everything that
 * it had goes, and its last record is printed. One whose box runs is refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "boxmake.h"
#include "buf.h"
#include "err.h"
#include "failure.h"
#include "io.h"
#include "lock.h"
#include "mem.h"
#include "path.h"
#include "place.h"
#include "subid.h"

static const char usage[] = "sb-box-rm [-p provider] sandbox";

/* Sockets, and the services of the box. */
static void
remove_run(const char *id)
{
	char *run = place_run();
	int fd = place_open(run, "box");

	if (fd == -1 && errno == ENOENT)
		return;
	if (fd == -1 || path_rm_tree(fd, id) == -1)
		die_sys("unable to remove %s/box/%s", run, id);
	io_drop(&fd);
	free(run);
}

int
main(int argc, char **argv)
{
	struct failure f = FAILURE_INIT;
	struct box box = BOX_INIT;
	struct buf out = BUF_INIT;
	const char *provider = "";
	char *state;
	int opt, rc;

	err_init();
	while ((opt = getopt(argc, argv, "+hp:")) != -1) {
		if (opt == 'p')
			provider = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	state = place_state();
	/* One with a damaged record is there, too. */
	if (!box_read(state, argv[optind], &box, &f) &&
	    !failure_is(&f, KIND_INTERNAL))
		die(EXIT_NO, "%s", buf_str(&f.message));
	if (strcmp(buf_str(&box.provider), provider) != 0)
		die(EXIT_CONFLICT, "%s was made by %s", box.id,
		    box.provider.len == 0 ? "sb-box-add"
					  : buf_str(&box.provider));
	if (box.dirfd != -1 && lock_is_held(box.dirfd, BOX_LOCK) != 0)
		die(EXIT_BUSY, "the box of %s runs", box.id);
	if (box.provider.len > 0 || box.recorded.len == 0)
		remove_run(box.id);
	if (*provider) {
		buf_cut(&box.state, 0);
		buf_adds(&box.state, STATE_STOPPED);
		box_print(&box, &out);
	} else {
		buf_adds(&out, box.id);
	}
	rc = box_remove(state, box.id);
	/* The users of an image may own what is in the way. */
	if (rc == -1 && (errno == EACCES || errno == EPERM) && geteuid() != 0 &&
	    subid_own_files() == 0)
		rc = box_remove(state, box.id);
	if (rc == -1)
		die_sys("unable to remove " BOX_DIR "/%s", box.id);
	puts(out.data);
	stdout_done();
	return EXIT_OK;
}
