/* SPDX-License-Identifier: MIT */
/*
 * sb-layer-cat: print a file as a list of layers shows it. Shape: filter; ids
 * in, bytes out. Only regular files are opened; no link is followed.
 */
#include <stdio.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "ns.h"
#include "path.h"
#include "rec.h"
#include "store.h"
#include "view.h"

static const char usage[] = "sb-layer-cat path";

int
main(int argc, char **argv)
{
	struct ids ids = IDS_INIT;
	const char *path;
	struct view *v;
	struct node n;
	size_t bad = 0;
	int opt, fd;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	path = argv[optind];
	if (!path_is_valid(path))
		die(EXIT_USAGE, "not a relative path: %s", path);
	ids_read_stdin(&ids, 0);
	if (ns_own_files() == -1)
		warn_sys("unable to make a user namespace");
	v = view_open(store_open_stack(), &ids, &bad);
	if (!v)
		die_sys("unable to open layer %s", ids.id[bad]);
	if (view_get(v, path, &n) == -1)
		die_sys("unable to look up %s", path);
	if (n.kind == NODE_ABSENT)
		return EXIT_NO;
	if (n.kind != NODE_FILE)
		die(EXIT_NO, "%s is not a regular file", path);
	fd = view_fd(v, path, &n);
	if (fd == -1)
		die_sys("unable to open %s in layer %s", path,
		    view_layer_id(v, n.layer));
	if (io_copy(fd, STDOUT_FILENO) == -1)
		die_sys("unable to copy %s to stdout", path);
	stdout_done();
	return EXIT_OK;
}
