/* SPDX-License-Identifier: MIT */
#include "whiteout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "io.h"

bool
whiteout_is_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* 1 when the xattr is there, whatever its value (which may be empty). */
static int
has_xattr(const char *path, const char *name)
{
	if (getxattr(path, name, NULL, 0) != -1)
		return 1;
	/* Who may not read a file need not ask what it stands for: whiteouts
	 * in this form are readable wherever they are made. */
	if (errno == ENODATA || errno == EOPNOTSUPP || errno == EACCES)
		return 0;
	return -1;
}

/*
 * Asked through /proc by an O_PATH descriptor, so that the entry is never
 * opened: somebody may put a FIFO or a device in its place.
 */
static int
has_mark(int dirfd, const char *name, bool trusted)
{
	char path[64];
	struct stat st;
	int fd, rc = -1;

	fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == -1)
		goto out;
	rc = 0;
	if (!S_ISREG(st.st_mode))
		goto out;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	rc = has_xattr(path, "user.overlay.whiteout");
	if (rc == 0 && trusted)
		rc = has_xattr(path, "trusted.overlay.whiteout");
out:
	io_drop(&fd);
	return rc;
}

int
whiteout_is(int dirfd, const char *name, const struct stat *st)
{
	if (whiteout_is_device(st))
		return 1;
	if (!S_ISREG(st->st_mode) || st->st_size != 0)
		return 0;
	return has_mark(dirfd, name, true);
}

int
whiteout_is_upper(int dirfd, const char *name, const struct stat *st)
{
	if (whiteout_is_device(st))
		return 1;
	if (!S_ISREG(st->st_mode) || st->st_size != 0)
		return 0;
	return has_mark(dirfd, name, false);
}

/* 1 when the value is exactly "y". */
static int
xattr_is_y(int fd, const char *name)
{
	char value[8];
	ssize_t n = fgetxattr(fd, name, value, sizeof value);

	if (n == -1 &&
	    (errno == ENODATA || errno == EOPNOTSUPP || errno == ERANGE))
		return 0;
	return n == -1 ? -1 : n == 1 && value[0] == 'y';
}

int
whiteout_dir_is_opaque(int fd)
{
	int rc;

	/* Most directories have none at all: asked in one call. */
	if (flistxattr(fd, NULL, 0) == 0)
		return 0;
	rc = xattr_is_y(fd, "user.overlay.opaque");
	return rc != 0 ? rc : xattr_is_y(fd, "trusted.overlay.opaque");
}

int
whiteout_make(int dirfd, const char *name)
{
	/* Any user may make this one device: mknod(2), since Linux 5.8. */
	if (mknodat(dirfd, name, S_IFCHR | 0644, makedev(0, 0)) == -1)
		return -1;
	/* The umask took bits away. */
	return fchmodat(dirfd, name, 0644, 0);
}

int
whiteout_mark_opaque(int fd)
{
	return fsetxattr(fd, "user.overlay.opaque", "y", 1, 0);
}
