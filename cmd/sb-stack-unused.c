/* SPDX-License-Identifier: MIT */
/*
 * sb-stack-unused: list the layers that nothing uses. Shape: source.
 *
 * The layers are listed before the uses are read: whoever makes a layer says
 * so in its lease before the layer can be seen. The answer is advice: a lease
 * taken since is seen by sb-layer-rm, which asks again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "lock.h"
#include "path.h"
#include "rec.h"
#include "stack.h"
#include "store.h"

static const char usage[] = "sb-stack-unused";

enum {
	LOCK_MS = 30000
};

/* Anything else in layers/ is somebody's, and not a layer. */
static bool
is_layer(int layers, const char *name)
{
	struct stat st;

	return id_is_valid(name) && name[0] != 'B' &&
	    path_lstat(layers, name, &st) == 0 && S_ISDIR(st.st_mode);
}

int
main(int argc, char **argv)
{
	struct ids used = IDS_INIT, unused = IDS_INIT;
	struct names v = NAMES_INIT;
	const char *why = NULL;
	int opt, stackfd, layers, lock;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	stackfd = store_open_stack();
	lock = lock_take(stackfd, STACK_LOCK, false, LOCK_MS);
	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "gave up waiting for the stack lock");
	if (lock == -1)
		die_sys("unable to lock the stack");
	layers = path_open(stackfd, "layers", O_RDONLY | O_DIRECTORY, 0);
	if (layers == -1 || names_read(layers, &v) == -1)
		die_sys("unable to read layers/");
	if (stack_used(store_open(), &used, &why) == -1)
		die(EXIT_SYS, "unable to tell what is in use: %s", why);
	for (size_t i = 0; i < v.n; i++)
		if (!ids_have(&used, v.name[i]) && is_layer(layers, v.name[i]))
			ids_add(&unused, v.name[i]);
	ids_print(&unused);
	stdout_done();
	return EXIT_OK;
}
