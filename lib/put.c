/* SPDX-License-Identifier: MIT */
#include "put.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "answer.h"
#include "attr.h"
#include "err.h"
#include "io.h"
#include "mem.h"

char *
put_owner(void)
{
	uint64_t r;

	if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
		answer_sys("unable to get random bytes");
	return xasprintf("operation:%016" PRIx64, r);
}

/* The new file gets owner, mode and xattrs of the one it replaces. */
static int
keep_attrs(int old, const struct stat *st, int new)
{
	struct buf xattrs = BUF_INIT;
	struct stat now;
	int rc = -1;

	if (attr_xattrs(old, &xattrs, NULL) == -1 || fstat(new, &now) == -1)
		goto out;
	now.st_uid = st->st_uid;
	now.st_gid = st->st_gid;
	if (attr_set_xattrs(new, buf_str(&xattrs), xattrs.len) == -1 ||
	    attr_set(new, &now, st->st_mode & 07777) == -1)
		goto out;
	rc = 0;
out:
	buf_release(&xattrs);
	return rc;
}

int
put_fill(int fd, const struct file *old, const struct buf *content)
{
	if (io_write_all(fd, buf_str(content), content->len) == -1)
		return -1;
	if (old->kind == FILE_REGULAR)
		return keep_attrs(old->fd, &old->st, fd);
	return fchmod(fd, 0644);
}

void
put_no_lock(const char *what)
{
	if (errno == EAGAIN || errno == ETIMEDOUT)
		answer_error(errno == EAGAIN ? EXIT_BUSY : EXIT_TIMEOUT,
		    KIND_FAILED, NULL, "gave up waiting for %s", what);
	answer_sys("unable to wait for %s", what);
}
