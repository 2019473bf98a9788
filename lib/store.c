/* SPDX-License-Identifier: MIT */
#include "store.h"

#include <fcntl.h>
#include <stdlib.h>

#include "err.h"
#include "io.h"

const char *
store_path(void)
{
	const char *path = getenv("SB_STORE");

	if (!path || *path == '\0')
		die(EXIT_USAGE,
		    "SB_STORE is not set: name the store's directory");
	if (*path != '/')
		die(EXIT_USAGE, "SB_STORE is not an absolute path: %s", path);
	return path;
}

int
store_open(void)
{
	const char *path = store_path();
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1)
		die_sys("unable to open store %s", path);
	return fd;
}

static int
open_part(const char *part)
{
	int store = store_open();
	int fd = openat(
	    store, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd == -1)
		die_sys("unable to open %s/%s (is it a store? see "
			"sb-store-init)",
		    store_path(), part);
	io_drop(&store);
	return fd;
}

int
store_open_stack(void)
{
	return open_part("layer-stack");
}

int
store_open_workspace(void)
{
	return open_part("workspace");
}
