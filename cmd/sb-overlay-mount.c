/* SPDX-License-Identifier: MIT */
/*
 * sb-overlay-mount: mount a list of layers, with an upperdir or read-only.
 * Shape: sink; ids newest first in. Needs CAP_SYS_ADMIN in its namespaces.
 *
 * Everything is opened first and handed to the kernel by descriptor: no path
 * is resolved twice, none has to be quoted.
 */
#include <fcntl.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "event.h"
#include "io.h"
#include "overlay.h"
#include "rec.h"
#include "store.h"

static const char usage[] =
    "sb-overlay-mount [-p way] [-u upper -w work] target";

static int
open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd == -1)
		die_sys("unable to open directory %s", path);
	return fd;
}

int
main(int argc, char **argv)
{
	enum overlay_way way = OVERLAY_AUTO;
	int opt, upper = -1, work = -1, target, stackfd;
	struct ids ids = IDS_INIT;
	struct buf text = BUF_INIT;

	err_init();
	while ((opt = getopt(argc, argv, "+p:u:w:h")) != -1) {
		if (opt == 'p' && overlay_parse_way(optarg, &way))
			continue;
		if (opt == 'u')
			upper = open_dir(optarg);
		else if (opt == 'w')
			work = open_dir(optarg);
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc || (upper == -1) != (work == -1))
		usage_die(usage);

	event_begin("namespace.exec.mount_overlay");
	io_many_fds();
	stackfd = store_open_stack();
	ids_read_stdin(&ids, 0);
	if (ids.n == 0)
		die(EXIT_USAGE, "no layers to mount");
	if (ids.n > OVERLAY_LAYERS_MAX)
		die(EXIT_USAGE, "%zu layers, the kernel mounts at most %d",
		    ids.n, OVERLAY_LAYERS_MAX);
	target = open_dir(argv[optind]);
	if (overlay_mount_ids(
		stackfd, ids.id, ids.n, upper, work, target, way, &text) == -1)
		die(EXIT_SYS, "%s: %s", argv[optind], buf_str(&text));
	return EXIT_OK;
}
