/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "io.h"

int
stage_sync_dir(int dirfd, const char *name)
{
	int fd, rc;

	fd = openat(
	    dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return -1;
	rc = fsync(fd);
	io_drop(&fd);
	return rc;
}

static int
replace(int dirfd, const char *name, const void *p, size_t n, mode_t mode,
    bool sync)
{
	char tmp[300];
	int fd, len, err;

	len = snprintf(tmp, sizeof tmp, ".%s.%ld.tmp", name, (long)getpid());
	if (len < 0 || (size_t)len >= sizeof tmp) {
		errno = ENAMETOOLONG;
		return -1;
	}
	/* A killed process that had our number may have left one. */
	if (unlinkat(dirfd, tmp, 0) == -1 && errno != ENOENT)
		return -1;
	fd = openat(dirfd, tmp,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd == -1)
		return -1;
	if (io_write_all(fd, p, n) == -1 || (sync && fsync(fd) == -1))
		goto fail;
	if (io_close(fd) == -1) {
		fd = -1;
		goto fail;
	}
	fd = -1;
	if (renameat(dirfd, tmp, dirfd, name) == -1)
		goto fail;
	return sync ? stage_sync_dir(dirfd, ".") : 0;
fail:
	err = errno;
	unlinkat(dirfd, tmp, 0);
	errno = err;
	io_drop(&fd);
	return -1;
}

int
stage_file(int dirfd, const char *name, const void *p, size_t n, mode_t mode)
{
	return replace(dirfd, name, p, n, mode, true);
}

int
stage_file_nosync(
    int dirfd, const char *name, const void *p, size_t n, mode_t mode)
{
	return replace(dirfd, name, p, n, mode, false);
}
