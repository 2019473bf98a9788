/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "mem.h"

static const char *
absolute(const char *name)
{
	const char *path = getenv(name);

	if (!path || *path == '\0')
		return NULL;
	if (*path != '/')
		die(EXIT_USAGE, "%s is not an absolute path: %s", name, path);
	return path;
}

char *
place_state(void)
{
	const char *path = absolute("SB_STATE");

	if (path)
		return xstrdup(path);
	path = absolute("XDG_STATE_HOME");
	if (path)
		return xasprintf("%s/sb", path);
	if (geteuid() == 0)
		return xstrdup("/var/lib/sb");
	path = absolute("HOME");
	if (!path)
		die(EXIT_USAGE, "neither SB_STATE nor HOME is set");
	return xasprintf("%s/.local/state/sb", path);
}

char *
place_run(void)
{
	const char *path = absolute("SB_RUN");
	char *state, *run;

	if (path)
		return xstrdup(path);
	path = absolute("XDG_RUNTIME_DIR");
	if (path)
		return xasprintf("%s/sb", path);
	if (geteuid() == 0)
		return xstrdup("/run/sb");
	state = place_state();
	run = xasprintf("%s/run", state);
	free(state);
	return run;
}

char *
place_ops(void)
{
	const char *path = absolute("SB_OPS");
	char self[4096], *slash;
	ssize_t n;

	if (path)
		return xstrdup(path);
	n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n == -1)
		return NULL;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	return xasprintf("%s/../share/sb/ops", self);
}

char *
place_token(void)
{
	const char *file = getenv("SANDBOX_GATEWAY_TOKEN_FILE");
	const char *home = getenv("HOME");

	if (file && *file)
		return xstrdup(file);
	return home && *home
	    ? xasprintf("%s/.ephemeral-sandbox/gateway.token", home)
	    : NULL;
}

/* path/rel; the caller frees. */
static char *
join(const char *path, const char *rel)
{
	return *rel ? xasprintf("%s/%s", path, rel) : xstrdup(path);
}

int
place_open(const char *path, const char *rel)
{
	char *all = join(path, rel);
	int fd = open(all, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = errno;

	free(all);
	errno = err;
	return fd;
}

int
place_make(const char *path, const char *rel)
{
	char *all = join(path, rel);
	int fd = -1, err;

	for (char *p = all + 1;; p++) {
		bool last = *p == '\0';

		if (*p != '/' && !last)
			continue;
		*p = '\0';
		if (mkdir(all, 0700) == -1 && errno != EEXIST) {
			/* Above us may be what only others may write. */
			struct stat st;
			int why = errno;

			if (stat(all, &st) == -1) {
				errno = why;
				goto out;
			}
		}
		if (last)
			break;
		*p = '/';
	}
	fd = open(all, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
out:
	err = errno;
	free(all);
	errno = err;
	return fd;
}

int
place_conf(const char *state, struct conf *conf, struct buf *why)
{
	int fd = place_open(state, ""), rc = 0, err;

	if (fd == -1 && errno == ENOENT)
		conf_default(conf);
	else if (fd == -1 || conf_read(fd, conf, why) == -1)
		rc = -1;
	err = errno;
	io_drop(&fd);
	if (rc == -1 && why->len == 0)
		buf_adds(why, strerror(err));
	errno = err;
	return rc;
}
