/* SPDX-License-Identifier: MIT */
#include "put.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "attr.h"
#include "blame.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "num.h"

enum {
	WAIT_MS = 30000
};

static char *
random_owner(void)
{
	uint64_t r;

	if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
		answer_sys("unable to get random bytes");
	return xasprintf("operation:%016" PRIx64, r);
}

void
put_options(struct put *p, int argc, char **argv, const char *usage)
{
	uint64_t ms = WAIT_MS;
	int opt;

	while ((opt = getopt(argc, argv, "+a:s:t:h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		else if (opt == 'a')
			p->owner = optarg;
		else if (opt == 's')
			/* Clients send an empty one for none. */
			p->session = *optarg ? optarg : NULL;
		else if (opt != 't')
			usage_die(usage);
		else if (!num_dec(optarg, 0, INT32_MAX, &ms))
			answer_bad(opt, optarg, "milliseconds");
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (p->owner && !owner_is_valid(p->owner))
		die(EXIT_USAGE,
		    "not a name for an owner (1 to %d bytes of UTF-8, no "
		    "control characters): %s",
		    OWNER_MAX, p->owner);
	p->path = file_path(argv[optind], false);
	if (!p->owner)
		p->owner = random_owner();
	p->ms = (int)ms;
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
