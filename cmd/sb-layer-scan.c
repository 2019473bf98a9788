/* SPDX-License-Identifier: MIT */
/*
 * sb-layer-scan: say what an upperdir changes. Shape: source.
 *
 * Walks the directory, never following a link and opening nothing but
 * directories, and prints one change record for each entry: whiteouts and
 * opaque marks decoded, special files named. What sb-file-write or -edit left
 * aside in the session of -s is passed over. The full stop is written only after
 * the whole tree was read.
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
#include "session.h"

static const char usage[] = "sb-layer-scan [-s session] dir";

static int
print(void *arg, const struct change *c)
{
	const char *session = arg;

	if (session && session_is_aside(session, c->path))
		return 0;
	change_write(stdout, c);
	return ferror(stdout) ? -1 : 0;
}

int
main(int argc, char **argv)
{
	char *where = NULL, *session = NULL;
	int opt, fd;

	err_init();
	while ((opt = getopt(argc, argv, "+s:h")) != -1) {
		if (opt == 's')
			session = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (session && !id_is_valid(session))
		die(EXIT_USAGE, "not a session id: %s", session);

	fd = open(argv[optind], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		die_sys("unable to open directory %s", argv[optind]);
	if (layer_scan(fd, "u", false, print, session, &where) == -1) {
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
