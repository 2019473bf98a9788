/* SPDX-License-Identifier: MIT */
#include "roots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "io.h"
#include "place.h"

char *
roots_canonical(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC), err;
	char *found = fd == -1 ? NULL : path_of_fd(fd);

	err = errno;
	io_drop(&fd);
	errno = err;
	return found;
}

static int
add(struct roots *r, const char *path)
{
	char *found = roots_canonical(AT_FDCWD, path);

	if (!found)
		return -1;
	if (!names_has(&r->path, found))
		names_add(&r->path, found);
	names_sort(&r->path);
	free(found);
	return 0;
}

static void
add_home(struct roots *r)
{
	const char *home = getenv("HOME");

	if (home && *home == '/' && add(r, home) == 0)
		return;
	if (add(r, ".") == -1)
		names_add(&r->path, "/");
}

int
roots_read(const char *state, struct roots *r, struct buf *why)
{
	const struct conf_item *item;
	struct conf conf;
	size_t at = 0;
	int rc = 0;

	if (place_conf(state, &conf, why) == -1)
		return -1;
	while (
	    rc == 0 && (item = conf_next(&conf, CONF_WORKSPACE_ROOTS, &at))) {
		r->enforced = true;
		rc = add(r, item->value);
		if (rc == -1)
			buf_addf(why, "manager.workspace_roots: %s: %s",
			    item->value, strerror(errno));
	}
	conf_release(&conf);
	if (rc == 0 && !r->enforced)
		add_home(r);
	return rc;
}

void
roots_release(struct roots *r)
{
	names_release(&r->path);
}

bool
roots_have(const struct roots *r, const char *path)
{
	for (size_t i = 0; i < r->path.n; i++) {
		const char *root = r->path.name[i];

		/* Everything is below "/". */
		if (path_is_below(path, strcmp(root, "/") == 0 ? "" : root))
			return true;
	}
	return false;
}
