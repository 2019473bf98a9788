/* SPDX-License-Identifier: MIT */
#include "whiteout.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "io.h"

bool
whiteout_is_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* Size of an xattr of fd, 0 when it is not there. */
static ssize_t
xattr_size(int fd, const char *name, char *value, size_t max)
{
	ssize_t n = fgetxattr(fd, name, value, max);

	if (n == -1 && (errno == ENODATA || errno == EOPNOTSUPP))
		return 0;
	return n == -1 && errno == ERANGE ? (ssize_t)max : n;
}

int
whiteout_is(int dirfd, const char *name, const struct stat *st)
{
	char value[8];
	ssize_t n;
	int fd;

	if (whiteout_is_device(st))
		return 1;
	if (!S_ISREG(st->st_mode) || st->st_size != 0)
		return 0;
	fd = openat(dirfd, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return errno == EACCES ? 0 : -1;
	n = xattr_size(fd, "user.overlay.whiteout", value, sizeof value);
	if (n == 0)
		n = xattr_size(fd, "trusted.overlay.whiteout", value,
		    sizeof value);
	io_drop(&fd);
	return n == -1 ? -1 : n > 0;
}

int
whiteout_dir_is_opaque(int fd)
{
	char value[8];
	ssize_t n;

	n = xattr_size(fd, "user.overlay.opaque", value, sizeof value);
	if (n == 1 && value[0] == 'y')
		return 1;
	if (n == -1)
		return -1;
	n = xattr_size(fd, "trusted.overlay.opaque", value, sizeof value);
	return n == -1 ? -1 : n == 1 && value[0] == 'y';
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
	if (fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) == -1)
		return -1;
	return whiteout_make(fd, WHITEOUT_OPAQUE_NAME);
}
