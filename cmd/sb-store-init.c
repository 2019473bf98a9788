/* SPDX-License-Identifier: MIT */
/*
 * sb-store-init: make the directories of a store at $SB_STORE. Shape: sink.
 *
 * Making one that is there already is success: every step only adds what is
 * missing, so a killed run is finished by the next. A directory that holds
 * other things is refused, and nothing is made in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "out.h"
#include "path.h"
#include "stage.h"
#include "store.h"

static const char usage[] = "sb-store-init";

static void
make(int dirfd, const char *name)
{
	if (mkdirat(dirfd, name, 0700) == -1 && errno != EEXIST)
		die_sys("unable to make %s/%s", store_path(), name);
}

/* A store is what holds layer-stack; anything else must be empty. */
static void
refuse_foreign(int fd)
{
	struct names v = NAMES_INIT;

	if (names_read(fd, &v) == -1)
		die_sys("unable to read %s", store_path());
	if (v.n > 0 && !names_has(&v, "layer-stack"))
		die(EXIT_USAGE,
		    "%s is not empty and not a store (it holds %s): "
		    "name another directory",
		    store_path(), v.name[0]);
	names_release(&v);
}

/* Its own name in the directory above, where we may read that. */
static void
sync_parent(int fd)
{
	int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (parent != -1 && fsync(parent) == -1)
		die_sys("unable to sync the directory of %s", store_path());
	io_drop(&parent);
}

int
main(int argc, char **argv)
{
	static const char *const dirs[] = { "layer-stack", "layer-stack/layers",
		"layer-stack/staging", "layer-stack/.layer-metadata",
		"layer-stack/leases", "layer-stack/queue", "layer-stack/meta",
		"layer-stack/history", "workspace", NULL };
	int opt, fd, lock;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);

	/* The binding names it, in JSON. */
	if (!utf8_is_valid(store_path(), strlen(store_path())))
		die(EXIT_USAGE,
		    "the store's path is not UTF-8: name another directory");
	if (mkdir(store_path(), 0700) == -1 && errno != EEXIST)
		die_sys("unable to make store %s", store_path());
	fd = store_open();
	refuse_foreign(fd);
	for (const char *const *d = dirs; *d; d++)
		make(fd, *d);
	lock = openat(fd, "layer-stack/.storage-writer.lock",
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock == -1)
		die_sys("unable to make the stack lock");
	if (stage_sync_dir(fd, "layer-stack") == -1 ||
	    stage_sync_dir(fd, ".") == -1)
		die_sys("unable to sync %s", store_path());
	sync_parent(fd);
	return EXIT_OK;
}
