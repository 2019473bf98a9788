/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attr.h"
#include "change.h"
#include "io.h"
#include "mem.h"
#include "path.h"

/* Makes the parents of path and opens the last of them. */
static int
parent(int dirfd, const char *path)
{
	char *part = xstrdup(path);
	const char *base;
	int rc = 0;

	for (char *p = strchr(part, '/'); p && rc == 0;
	    p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdirat(dirfd, part, 0700) == -1 && errno != EEXIST)
			rc = -1;
		*p = '/';
	}
	free(part);
	return rc == -1 ? -1 : path_open_parent(dirfd, path, &base);
}

static int
set_attrs(
    int fd, const struct stat *st, unsigned mode, const struct buf *xattrs)
{
	if (attr_set_xattrs(fd, buf_str(xattrs), xattrs->len) == -1)
		return -1;
	return attr_set(fd, st, mode);
}

static off_t
copy(struct state *from, int out)
{
	int in = state_fd(from);

	if (in == -1 || lseek(in, 0, SEEK_SET) == -1)
		return -1;
	return io_copy(in, out);
}

off_t
tree_file(int dirfd, const char *path, const struct buf *text,
    struct state *from, unsigned mode, const struct buf *xattrs)
{
	int dir = parent(dirfd, path), fd = -1;
	struct stat st;
	off_t size = -1;

	if (dir == -1)
		return -1;
	fd = openat(dir, path_base(path),
	    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		goto out;
	if (!text)
		size = copy(from, fd);
	else if (io_write_all(fd, buf_str(text), text->len) == 0)
		size = (off_t)text->len;
	if (size == -1)
		goto out;
	if (fstat(fd, &st) == -1) {
		size = -1;
		goto out;
	}
	st.st_uid = from->st.st_uid;
	st.st_gid = from->st.st_gid;
	if (!text)
		st.st_mtim = from->st.st_mtim;
	if (set_attrs(fd, &st, mode, xattrs) == -1)
		size = -1;
	if (io_close(fd) == -1)
		size = -1;
	fd = -1;
out:
	io_drop(&fd);
	io_drop(&dir);
	return size;
}

int
tree_dir(int dirfd, const char *path, const struct stat *st, unsigned mode,
    const struct buf *xattrs)
{
	int dir, fd = -1, rc = -1;

	if (strcmp(path, CHANGE_ROOT) == 0)
		return set_attrs(dirfd, st, mode | 0700, xattrs);
	dir = parent(dirfd, path);
	if (dir == -1)
		return -1;
	if (mkdirat(dir, path_base(path), 0700) == 0 || errno == EEXIST)
		fd = openat(dir, path_base(path),
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd != -1)
		rc = set_attrs(fd, st, mode | 0700, xattrs);
	io_drop(&fd);
	io_drop(&dir);
	return rc;
}

int
tree_link(
    int dirfd, const char *path, const char *target, const struct stat *st)
{
	int dir = parent(dirfd, path), rc = -1;
	const char *name = path_base(path);

	if (dir == -1)
		return -1;
	if ((unlinkat(dir, name, 0) == 0 || errno == ENOENT) &&
	    symlinkat(target, dir, name) == 0)
		rc = attr_set_link(dir, name, st);
	io_drop(&dir);
	return rc;
}
