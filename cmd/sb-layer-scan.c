/* SPDX-License-Identifier: MIT */
/*
 * sb-layer-scan: say what an upperdir changes. Shape: source.
 *
 * Walks the directory, never following a link and opening nothing but
 * directories, and prints one change record for each entry: whiteouts and
 * opaque marks decoded, special files named. The full stop is written only
 * after the whole tree was read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "change.h"
#include "err.h"
#include "io.h"
#include "layer.h"
#include "path.h"

static const char usage[] = "sb-layer-scan dir";

static int
print(void *arg, const struct change *c)
{
	(void)arg;
	change_write(stdout, c);
	return ferror(stdout) ? -1 : 0;
}

int
main(int argc, char **argv)
{
	char *where = NULL;
	int opt, fd;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);

	fd = open(argv[optind], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		die_sys("unable to open directory %s", argv[optind]);
	if (layer_scan(fd, "u", false, print, NULL, &where) == -1) {
		if (ferror(stdout))
			die_sys("unable to write to stdout");
		if (errno == ENAMETOOLONG)
			die(EXIT_USAGE,
			    "a path or the target of a link is longer "
			    "than %d bytes: %s",
			    PATH_BYTES_MAX, where);
		die_sys("unable to read %s/%s", argv[optind], where);
	}
	change_stop(stdout);
	stdout_done();
	return EXIT_OK;
}
