/* SPDX-License-Identifier: MIT */
#include "path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "sys.h"

bool
id_is_valid(const char *s)
{
	size_t len = strlen(s);

	if (len < 1 || len > ID_MAX || s[0] == '.')
		return false;
	return strspn(s,
		   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		   "0123456789._-") == len;
}

bool
path_is_valid(const char *s)
{
	const char *p = s;

	if (strlen(s) > PATH_BYTES_MAX)
		return false;
	for (;;) {
		size_t len = strcspn(p, "/");

		if (len == 0 || (len == 1 && p[0] == '.') ||
		    (len == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		if (p[len] == '\0')
			return true;
		p += len + 1;
	}
}

bool
path_is_reserved(const char *s)
{
	for (const char *p = s; p; p = strchr(p, '/')) {
		if (*p == '/')
			p++;
		if (strncmp(p, ".wh.", 4) == 0)
			return true;
	}
	return false;
}

bool
path_is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (len == 0)
		return true;
	return strncmp(path, dir, len) == 0 &&
	    (path[len] == '\0' || path[len] == '/');
}

const char *
path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

size_t
path_parent_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

int
path_open(int dirfd, const char *path, int flags, mode_t mode)
{
	if (*path == '\0')
		path = ".";
	return sys_openat2(dirfd, path, (uint64_t)(unsigned)(flags | O_CLOEXEC),
	    flags & (O_CREAT | O_TMPFILE) ? mode : 0,
	    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int
path_lstat(int dirfd, const char *path, struct stat *st)
{
	return fstatat(dirfd, path, st, AT_SYMLINK_NOFOLLOW);
}

int
path_open_parent(int dirfd, const char *path, const char **base)
{
	char parent[PATH_BYTES_MAX + 1];
	size_t len = path_parent_len(path);

	if (len > PATH_BYTES_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(parent, path, len);
	parent[len] = '\0';
	*base = path_base(path);
	return path_open(dirfd, parent, O_PATH | O_DIRECTORY, 0);
}

void
names_add(struct names *v, const char *name)
{
	if (v->n == v->cap)
		v->name = xgrow(v->name, &v->cap, sizeof *v->name);
	v->name[v->n++] = xstrdup(name);
}

static int
name_cmp(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
names_sort(struct names *v)
{
	if (v->n > 1)
		qsort(v->name, v->n, sizeof *v->name, name_cmp);
}

bool
names_has(const struct names *v, const char *name)
{
	return v->n > 0 &&
	    bsearch(&name, v->name, v->n, sizeof *v->name, name_cmp) != NULL;
}

void
names_release(struct names *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->name[i]);
	free(v->name);
	*v = (struct names)NAMES_INIT;
}

int
names_read(int dirfd, struct names *out)
{
	struct dirent *de;
	DIR *dir;
	int fd, err;

	/* A new description, so that the caller's offset stays where it is. */
	fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return -1;
	dir = fdopendir(fd);
	if (!dir) {
		io_drop(&fd);
		return -1;
	}
	for (;;) {
		errno = 0;
		de = readdir(dir);
		if (!de)
			break;
		if (strcmp(de->d_name, ".") != 0 &&
		    strcmp(de->d_name, "..") != 0)
			names_add(out, de->d_name);
	}
	err = errno;
	closedir(dir);
	errno = err;
	if (err != 0)
		return -1;
	names_sort(out);
	return 0;
}

int
path_rm_tree(int dirfd, const char *name)
{
	struct names v = NAMES_INIT;
	struct stat st;
	int fd, rc = -1;

	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	fd = openat(
	    dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 && errno == EACCES && fchmodat(dirfd, name, 0700, 0) == 0)
		fd = openat(dirfd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1) {
		/* Not a directory: a file that may not be removed. */
		if (errno == ENOTDIR)
			errno = EPERM;
		/* Somebody else may be removing it as well. */
		return errno == ENOENT ? 0 : -1;
	}
	if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700 &&
	    fchmod(fd, (st.st_mode & 07777) | 0700) == -1)
		goto out;
	if (names_read(fd, &v) == -1)
		goto out;
	for (size_t i = 0; i < v.n; i++)
		if (path_rm_tree(fd, v.name[i]) == -1)
			goto out;
	rc = unlinkat(dirfd, name, AT_REMOVEDIR);
	if (rc == -1 && errno == ENOENT)
		rc = 0;
out:
	names_release(&v);
	io_drop(&fd);
	return rc;
}

char *
path_of_fd(int fd)
{
	char link[64], target[PATH_BYTES_MAX + 2];
	struct stat a, b;
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof target - 1);
	if (n == -1)
		return NULL;
	if ((size_t)n > PATH_BYTES_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	target[n] = '\0';
	/* A deleted directory reads as "/x (deleted)": compare, do not parse. */
	if (target[0] != '/' || lstat(target, &a) == -1 ||
	    fstat(fd, &b) == -1 || a.st_dev != b.st_dev ||
	    a.st_ino != b.st_ino) {
		errno = ENOENT;
		return NULL;
	}
	return xstrdup(target);
}
