/* SPDX-License-Identifier: MIT */
#include "upper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "attr.h"
#include "buf.h"
#include "io.h"
#include "stack.h"
#include "state.h"

int
upper_dress_as(int upperfd, int fd)
{
	struct buf xattrs = BUF_INIT;
	struct stat st;
	int rc = -1;

	if (fstat(fd, &st) == 0 && attr_xattrs(fd, &xattrs, NULL) == 0 &&
	    attr_set_xattrs(upperfd, buf_str(&xattrs), xattrs.len) == 0)
		rc = attr_set(upperfd, &st, st.st_mode & 07777);
	buf_release(&xattrs);
	return rc;
}

int
upper_dress(int stackfd, int upperfd, const char *layer)
{
	int fd = stack_open_layer(stackfd, layer), rc = -1;

	if (fd != -1)
		rc = upper_dress_as(upperfd, fd);
	io_drop(&fd);
	return rc;
}

static int
is_empty(int upperfd)
{
	int fd = openat(upperfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd == -1 ? NULL : fdopendir(fd);
	struct dirent *d;
	int err;

	if (!dir) {
		io_drop(&fd);
		return -1;
	}
	do {
		errno = 0;
		d = readdir(dir);
	} while (
	    d && (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0));
	err = errno;
	closedir(dir);
	errno = err;
	return d ? 0 : err == 0 ? 1 : -1;
}

int
upper_is_unchanged(int stackfd, int upperfd, const char *layer)
{
	struct state base = STATE_INIT, mine = STATE_INIT;
	int rc = is_empty(upperfd), fd;

	if (rc != 1)
		return rc;
	rc = -1;
	fd = stack_open_layer(stackfd, layer);
	if (fd != -1 && state_of_dir(&base, fd) == 0 &&
	    state_of_dir(&mine, upperfd) == 0)
		rc = state_same(&base, &mine);
	state_release(&base);
	state_release(&mine);
	io_drop(&fd);
	return rc;
}
