/* SPDX-License-Identifier: MIT */
/*
 * sb-stack-swap: replace the stack, if it still is at the given version.
 * Shape: sink; ids newest first in, the new version out.
 *
 *   1. Read the ids and see that every layer is there.
 *   2. Take the stack lock; read the manifest; compare the version.
 *   3. Write aside, sync, rename, sync the directory.
 *
 * Invariant: a reader without the lock sees the old list or the new one, never
 * a mixture, because manifest.json is only ever replaced by rename.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "lock.h"
#include "num.h"
#include "rec.h"
#include "stack.h"
#include "stage.h"
#include "store.h"

static const char usage[] = "sb-stack-swap version";

enum { LOCK_MS = 30000 };

/* A stack must never name what is not there. */
static void
require_layers(int stackfd, const struct ids *ids)
{
	for (size_t i = 0; i < ids->n; i++) {
		int fd = stack_open_layer(stackfd, ids->id[i]);

		if (fd == -1 && errno == ENOENT)
			die(EXIT_USAGE, "no such layer: %s", ids->id[i]);
		if (fd == -1)
			die_sys("unable to open layer %s", ids->id[i]);
		io_drop(&fd);
	}
}

int
main(int argc, char **argv)
{
	struct manifest old = MANIFEST_INIT, new = MANIFEST_INIT;
	struct ids ids = IDS_INIT;
	struct buf text = BUF_INIT, path = BUF_INIT;
	const char *why = NULL;
	uint64_t version;
	int opt, stackfd, lock;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc ||
	    !num_dec(argv[optind], 0, INT64_MAX - 1, &version))
		usage_die(usage);

	stackfd = store_open_stack();
	/* Before the lock: nobody waits for somebody else's program. */
	ids_read_stdin(&ids, 0);
	if (ids.n == 0)
		die(EXIT_USAGE, "an empty list of layers");
	lock = lock_take(stackfd, STACK_LOCK, true, LOCK_MS);
	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "gave up waiting for the stack lock");
	if (lock == -1)
		die_sys("unable to lock the stack");
	require_layers(stackfd, &ids);
	if (manifest_read(stackfd, STACK_MANIFEST, &old, &why) == -1)
		die(EXIT_SYS, "unable to read %s: %s", STACK_MANIFEST,
		    why ? why : strerror(errno));

	if (old.version != version)
		die(EXIT_CONFLICT, "stack is at %" PRIu64 ", not %" PRIu64,
		    old.version, version);

	new.version = version + 1;
	for (size_t i = 0; i < ids.n; i++) {
		buf_cut(&path, 0);
		stack_layer_path(stackfd, ids.id[i], &path);
		manifest_add(&new, ids.id[i], path.data);
	}
	if (manifest_equal_layers(&old, &new))
		new.version = version;
	manifest_format(&new, &text);
	if (new.version != version &&
	    stage_file(stackfd, STACK_MANIFEST, text.data, text.len, 0600) ==
		-1)
		die_sys("unable to replace %s", STACK_MANIFEST);
	printf("%" PRIu64 "\n", new.version);
	stdout_done();
	return EXIT_OK;
}
