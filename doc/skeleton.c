/* SPDX-License-Identifier: MIT */
/*
 * sb-skeleton: pass on the ids of one kind. Shape: filter.
 *
 * A new command to copy: cmd/sb-NOUN-VERB.c, doc/man1/sb-NOUN-VERB.1 (from
 * doc/skeleton.1) and t/sb-NOUN-VERB.bats (from t/skeleton.bats); the Makefile
 * needs no change. Say here what comes in, what goes out and what it changes;
 * its steps, if it has several; and the invariant that makes it safe.
 *
 * Id lines come in on stdin; those that begin with prefix go out, or with -v
 * the others. Steps: read everything; pick; print. Invariant: nothing goes
 * out before the full stop came in, so a crash upstream yields no answer.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "rec.h"

static const char usage[] = "sb-skeleton [-v] prefix";

static bool
begins(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

int
main(int argc, char **argv)
{
	struct ids in = IDS_INIT, out = IDS_INIT;
	bool others = false;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+vh")) != -1) {
		if (opt == 'v')
			others = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (argv[optind][0] == '\0')
		die(EXIT_USAGE, "the prefix is empty: every id begins with it");

	ids_read_stdin(&in, 1);
	for (size_t i = 0; i < in.n; i++)
		if (begins(in.id[i], argv[optind]) != others)
			ids_add(&out, in.id[i]);
	ids_print(&out);
	stdout_done();
	return out.n > 0 ? EXIT_OK : EXIT_NO;
}
