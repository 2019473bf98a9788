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

#include "buf.h"
#include "err.h"
#include "io.h"
#include "stack.h"
#include "store.h"

static const char usage[] = "sb-stack-show [-av] [-l file]";

enum {
	LIST_MAX = 64 << 20 /* bytes of a manifest */
};

/* A missing head is an empty stack; a missing file is a mistake. */
static void
read_list(const char *file, struct manifest *m)
{
	struct buf text = BUF_INIT;
	const char *why = NULL;
	int rc = -1;

	if (!file)
		rc = manifest_read(store_open_stack(), STACK_MANIFEST, m, &why);
	else if (io_read_file_at(AT_FDCWD, file, &text, LIST_MAX) == 0)
		rc = manifest_parse(buf_str(&text), text.len, m, &why);
	if (rc == -1)
		die(EXIT_SYS, "unable to read %s: %s",
		    file ? file : STACK_MANIFEST, why ? why : strerror(errno));
}

int
main(int argc, char **argv)
{
	struct manifest m = MANIFEST_INIT;
	const char *file = NULL;
	bool above = false, version = false;
	int opt;

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
	read_list(file, &m);
	if (version)
		printf("%" PRIu64 "\n", m.version);
	for (size_t i = 0; i < m.n; i++)
		if (!above || m.id[i][0] != 'B')
			puts(m.id[i]);
	putchar('\n');
	stdout_done();
	return EXIT_OK;
}
