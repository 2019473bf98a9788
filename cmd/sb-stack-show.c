/* SPDX-License-Identifier: MIT */
/*
 * sb-stack-show: print the layers of the stack, newest first. Shape: source.
 *
 * Version and layers come from one read of the manifest, so that -v never
 * pairs the version of one list with the layers of another.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "stack.h"
#include "store.h"

static const char usage[] = "sb-stack-show [-av] [-l file]";

int
main(int argc, char **argv)
{
	struct manifest m = MANIFEST_INIT;
	const char *file = NULL, *why = NULL;
	bool above = false, version = false;
	int opt, dir;

	err_init();
	while ((opt = getopt(argc, argv, "+avl:h")) != -1) {
		if (opt == 'a')
			above = true;
		else if (opt == 'v')
			version = true;
		else if (opt == 'l')
			file = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	/* A missing head is an empty stack; a missing file is a mistake. */
	if (file && faccessat(AT_FDCWD, file, F_OK, 0) == -1)
		die_sys("unable to open %s", file);
	dir = file ? AT_FDCWD : store_open_stack();
	if (manifest_read(dir, file ? file : STACK_MANIFEST, &m, &why) == -1)
		die(EXIT_SYS, "unable to read %s: %s",
		    file ? file : STACK_MANIFEST, why ? why : strerror(errno));
	if (version)
		printf("%" PRIu64 "\n", m.version);
	for (size_t i = 0; i < m.n; i++)
		if (!above || m.id[i][0] != 'B')
			puts(m.id[i]);
	putchar('\n');
	stdout_done();
	return EXIT_OK;
}
