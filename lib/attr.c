/* SPDX-License-Identifier: MIT */
#include "attr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "path.h"

static bool
travels(const char *name)
{
	return strncmp(name, "user.", 5) == 0 &&
	    strncmp(name, "user.overlay.", 13) != 0;
}

/* The names of fd's xattrs, sorted. */
static int
list(int fd, struct names *out)
{
	struct buf b = BUF_INIT;
	ssize_t n;
	int rc = -1;

	for (;;) {
		n = flistxattr(fd, NULL, 0);
		if (n <= 0)
			break;
		buf_reserve(&b, (size_t)n);
		n = flistxattr(fd, b.data, (size_t)n);
		if (n != -1 || errno != ERANGE)
			break;
	}
	if (n == -1 && errno != EOPNOTSUPP)
		goto out;
	for (ssize_t at = 0; at < n;) {
		names_add(out, b.data + at);
		at += (ssize_t)strlen(b.data + at) + 1;
	}
	names_sort(out);
	rc = 0;
out:
	buf_release(&b);
	return rc;
}

static int
get(int fd, const char *name, struct buf *value)
{
	ssize_t n;

	buf_cut(value, 0);
	/* 64 KiB is the kernel's limit, xattr(7). */
	buf_reserve(value, 65536);
	n = fgetxattr(fd, name, value->data, 65536);
	if (n == -1)
		return -1;
	buf_cut(value, (size_t)n);
	return 0;
}

int
attr_xattrs(int fd, struct buf *out, size_t *dropped)
{
	struct names v = NAMES_INIT;
	struct buf value = BUF_INIT;
	int rc = -1;

	if (list(fd, &v) == -1)
		goto out;
	for (size_t i = 0; i < v.n; i++) {
		const char *name = v.name[i];
		unsigned char size[8];

		if (!travels(name)) {
			if (dropped && strncmp(name, "system.", 7) != 0)
				++*dropped;
			continue;
		}
		if (get(fd, name, &value) == -1) {
			if (errno == ENODATA)
				continue;
			goto out;
		}
		for (size_t k = 0; k < 8; k++)
			size[k] = (unsigned char)((uint64_t)value.len >> 8 * k);
		buf_add(out, name, strlen(name) + 1);
		buf_add(out, size, sizeof size);
		buf_add(out, value.data, value.len);
	}
	rc = 0;
out:
	buf_release(&value);
	names_release(&v);
	return rc;
}

int
attr_set_xattrs(int fd, const char *p, size_t n)
{
	struct names old = NAMES_INIT, new = NAMES_INIT;
	const char *end = p + n;
	int rc = -1;

	while (p < end) {
		const char *name = p;
		uint64_t size = 0;

		p += strlen(p) + 1;
		for (size_t k = 0; k < 8; k++)
			size |= (uint64_t)(unsigned char)p[k] << 8 * k;
		p += 8;
		if (fsetxattr(fd, name, p, size, 0) == -1)
			goto out;
		names_add(&new, name);
		p += size;
	}
	if (list(fd, &old) == -1)
		goto out;
	for (size_t i = 0; i < old.n; i++)
		if (travels(old.name[i]) && !names_has(&new, old.name[i]) &&
		    fremovexattr(fd, old.name[i]) == -1)
			goto out;
	rc = 0;
out:
	names_release(&old);
	names_release(&new);
	return rc;
}

/* Who may not give a file away may still have its group. */
static int
set_owner(int fd, const char *name, const struct stat *st)
{
	int flags = name ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH;
	const char *at = name ? name : "";

	if (fchownat(fd, at, st->st_uid, st->st_gid, flags) == 0)
		return 0;
	if (errno != EPERM && errno != EINVAL)
		return -1;
	if (fchownat(fd, at, (uid_t)-1, st->st_gid, flags) == 0 ||
	    errno == EPERM || errno == EINVAL)
		return 0;
	return -1;
}

int
attr_set(int fd, const struct stat *st, unsigned mode)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };

	if (set_owner(fd, NULL, st) == -1 || fchmod(fd, mode) == -1)
		return -1;
	return futimens(fd, times);
}

int
attr_set_link(int dirfd, const char *name, const struct stat *st)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };

	if (set_owner(dirfd, name, st) == -1)
		return -1;
	return utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW);
}
