/* SPDX-License-Identifier: MIT */
/* sb-stack-version: print the version of the stack. Shape: source. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "stack.h"
#include "store.h"

static const char usage[] = "sb-stack-version";

int
main(int argc, char **argv)
{
	struct manifest m = MANIFEST_INIT;
	const char *why = NULL;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	if (manifest_read(store_open_stack(), STACK_MANIFEST, &m, &why) == -1)
		die(EXIT_SYS, "unable to read %s: %s", STACK_MANIFEST,
		    why ? why : strerror(errno));
	printf("%" PRIu64 "\n", m.version);
	stdout_done();
	return EXIT_OK;
}
