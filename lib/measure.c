/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "path.h"

static bool walk(int fd, dev_t dev, unsigned depth, struct measure *m);

static bool
take(int fd, const char *name, dev_t dev, unsigned depth, struct measure *m)
{
	struct stat st;
	int sub;
	bool good;

	if (m->nodes == 0)
		return false;
	m->nodes--;
	if (path_lstat(fd, name, &st) == -1)
		return false;
	if (st.st_dev != dev)
		return true;
	m->allocated += (uint64_t)st.st_blocks * 512;
	if (S_ISREG(st.st_mode))
		m->bytes += (uint64_t)st.st_size;
	if (!S_ISDIR(st.st_mode))
		return true;
	if (depth == 0)
		return false;
	sub = path_open(fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (sub == -1)
		return false;
	good = walk(sub, dev, depth - 1, m);
	io_drop(&sub);
	return good;
}

/* What cannot be read is left out, and said; the rest still counts. */
static bool
walk(int fd, dev_t dev, unsigned depth, struct measure *m)
{
	int mine = path_open(fd, "", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = mine == -1 ? NULL : fdopendir(mine);
	const struct dirent *e;
	bool good = true;

	if (!dir) {
		io_drop(&mine);
		return false;
	}
	for (;;) {
		errno = 0;
		e = readdir(dir);
		if (!e)
			break;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (!take(dirfd(dir), e->d_name, dev, depth, m)) {
			good = false;
			if (m->nodes == 0)
				break;
		}
	}
	good = good && errno == 0;
	closedir(dir);
	return good;
}

void
measure_tree(int fd, struct measure *m)
{
	struct stat st;

	m->complete = fstat(fd, &st) == 0 && walk(fd, st.st_dev, m->depth, m);
}
