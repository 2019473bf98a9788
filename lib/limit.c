/* SPDX-License-Identifier: MIT */
#include "limit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "io.h"
#include "path.h"

enum {
	PERIOD_US = 100000, /* of every new group */
	QUOTA_MIN_US = 1000, /* less is refused */
	LOOK_MS = 10
};

const char *const limit_name[LIMIT_KINDS] = { "memory", "pids", "cpu" };

/* Files by kind of hierarchy: the first, the second. */
static const struct setting {
	enum limit_kind kind;
	size_t offset;
	const char *file[2];
} settings[] = {
	{ LIMIT_MEMORY, offsetof(struct limits, memory_max),
	    { "memory.limit_in_bytes", "memory.max" } },
	{ LIMIT_MEMORY, offsetof(struct limits, memory_high),
	    { "memory.soft_limit_in_bytes", "memory.high" } },
	{ LIMIT_PIDS, offsetof(struct limits, pids),
	    { "pids.max", "pids.max" } },
	{ LIMIT_CPU, offsetof(struct limits, nano_cpus),
	    { "cpu.cfs_quota_us", "cpu.max" } },
};

enum {
	NSETTINGS = sizeof settings / sizeof settings[0]
};

static int
put(int dirfd, const char *file, const char *text)
{
	int fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC), rc;

	if (fd == -1)
		return -1;
	rc = io_write_all(fd, text, strlen(text));
	io_drop(&fd);
	return rc;
}

/* ---- where ---- */

/* Is word in the file, between blanks? */
static bool
lists(int dirfd, const char *file, const char *word)
{
	struct buf b = BUF_INIT;
	char *w, *save = NULL;
	bool has = false;

	if (io_read_file_at(dirfd, file, &b, 4096) == 0 && b.len > 0)
		for (w = strtok_r(b.data, " \n", &save); w && !has;
		    w = strtok_r(NULL, " \n", &save))
			has = strcmp(w, word) == 0;
	buf_release(&b);
	return has;
}

/*
 * Gives groups below dirfd the controllers that can be given. EOPNOTSUPP when
 * there are none, or only groups without processes may give them.
 */
static bool
can_limit(int dirfd)
{
	int err = EOPNOTSUPP;
	bool any = false;

	for (int k = 0; k < LIMIT_KINDS; k++) {
		char give[16];

		snprintf(give, sizeof give, "+%s", limit_name[k]);
		if (lists(dirfd, "cgroup.subtree_control", limit_name[k]))
			any = true;
		else if (!lists(dirfd, "cgroup.controllers", limit_name[k]))
			continue;
		else if (put(dirfd, "cgroup.subtree_control", give) == 0)
			any = true;
		else if (errno != EBUSY)
			err = errno;
	}
	errno = err;
	return any;
}

/*
 * Where the group is made. Only the root and groups without processes give
 * controllers to those below them, cgroup-v2.rst; our own has one.
 */
static int
open_parent(const struct cgroupfs *h)
{
	struct buf path = BUF_INIT;
	int fd;

	buf_adds(&path, buf_str(&h->own));
	for (;;) {
		char *slash;

		fd = openat(
		    h->rootfd, path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd == -1 || !h->unified || can_limit(fd))
			break;
		io_drop(&fd);
		if (strcmp(path.data, ".") == 0)
			break;
		slash = strrchr(path.data, '/');
		buf_cut(&path, slash ? (size_t)(slash - path.data) : 0);
		if (path.len == 0)
			buf_adds(&path, ".");
	}
	buf_release(&path);
	return fd;
}

/* ---- enter ---- */

static int
make(int parentfd, const char *group)
{
	if (mkdirat(parentfd, group, 0755) == -1 && errno != EEXIST)
		return -1;
	return openat(
	    parentfd, group, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static uint64_t
value(const struct limits *want, const struct setting *s)
{
	return *(const uint64_t *)((const char *)want + s->offset);
}

static int
set(int groupfd, bool unified, const struct setting *s, uint64_t n)
{
	char text[24];

	if (s->kind == LIMIT_CPU) {
		/* PERIOD_US of 1 000 000 000 nanoseconds, rounded up. */
		n = (n - 1) / (1000000000 / PERIOD_US) + 1;
		if (n < QUOTA_MIN_US)
			n = QUOTA_MIN_US;
	}
	snprintf(text, sizeof text, "%" PRIu64, n);
	return put(groupfd, s->file[unified], text);
}

static void
explain(struct buf *why, enum limit_kind kind)
{
	const char *text = strerror(errno);

	if (errno == EOPNOTSUPP)
		text = "no group above ours can limit those below it";
	else if (errno == ENOENT)
		text = "there is no such control group here";
	buf_addf(
	    why, "%s%s: %s", why->len > 0 ? "; " : "", limit_name[kind], text);
}

int
limit_enter_in(const struct cgroupfs h[LIMIT_KINDS], const char *group,
    const struct limits *want, struct buf *why)
{
	int parentfd[LIMIT_KINDS], groupfd[LIMIT_KINDS], err[LIMIT_KINDS];
	int rc = 0;

	/* First all go, then all come: two kinds may share one. */
	for (int k = 0; k < LIMIT_KINDS; k++) {
		errno = ENOENT;
		groupfd[k] = -1;
		parentfd[k] = h[k].rootfd == -1 ? -1 : open_parent(&h[k]);
		err[k] = errno;
		if (parentfd[k] != -1)
			unlinkat(parentfd[k], group, AT_REMOVEDIR);
	}
	for (int k = 0; k < LIMIT_KINDS; k++) {
		if (parentfd[k] == -1)
			continue;
		groupfd[k] = make(parentfd[k], group);
		err[k] = groupfd[k] == -1 ? errno : 0;
	}
	for (size_t i = 0; i < NSETTINGS; i++) {
		const struct setting *s = &settings[i];

		if (groupfd[s->kind] != -1 && value(want, s) > 0 &&
		    set(groupfd[s->kind], h[s->kind].unified, s,
			value(want, s)) == -1)
			err[s->kind] = errno;
	}
	for (int k = 0; k < LIMIT_KINDS; k++) {
		bool asked = false;

		if (groupfd[k] != -1 &&
		    put(groupfd[k], "cgroup.procs", "0") == -1)
			err[k] = errno;
		for (size_t i = 0; i < NSETTINGS; i++)
			if (settings[i].kind == (enum limit_kind)k)
				asked |= value(want, &settings[i]) > 0;
		if (err[k] != 0 && asked) {
			errno = err[k];
			explain(why, (enum limit_kind)k);
			rc = -1;
		}
		io_drop(&groupfd[k]);
		io_drop(&parentfd[k]);
	}
	return rc;
}

int
limit_enter(const char *group, const struct limits *want, struct buf *why)
{
	struct cgroupfs h[LIMIT_KINDS];
	int rc;

	for (int k = 0; k < LIMIT_KINDS; k++)
		cgroupfs_open(&h[k], limit_name[k]);
	rc = limit_enter_in(h, group, want, why);
	for (int k = 0; k < LIMIT_KINDS; k++)
		cgroupfs_release(&h[k]);
	return rc;
}

/* ---- remove ---- */

/*
 * Removes groups called name below the directory fd, which it takes, and what
 * is below those. The last that stays is left in where, with its errno.
 */
static int
remove_below(int fd, const char *name, bool inside, struct buf *where)
{
	DIR *d = fdopendir(fd);
	const struct dirent *e;
	int rc = 0, err = 0;

	if (!d) {
		io_drop(&fd);
		return -1;
	}
	while ((e = readdir(d))) {
		bool hit = inside || strcmp(e->d_name, name) == 0;
		int sub;

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		sub = openat(dirfd(d), e->d_name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* Gone, or of somebody who hides it from us. */
		if (sub == -1)
			continue;
		if (remove_below(sub, name, hit, where) == -1) {
			rc = -1;
			err = errno;
		} else if (hit &&
		    unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) == -1 &&
		    errno != ENOENT) {
			char *path;

			rc = -1;
			err = errno;
			path = path_of_fd(dirfd(d));
			buf_cut(where, 0);
			buf_addf(where, "%s/%s", path ? path : "", e->d_name);
			free(path);
		}
	}
	closedir(d);
	if (rc == -1)
		errno = err;
	return rc;
}

int
limit_remove(const char *group, int ms, struct buf *where)
{
	long end = clock_ms() + ms;
	int rc = 0, err = 0;

	for (int k = 0; k < LIMIT_KINDS; k++) {
		struct cgroupfs h;
		int fd;

		if (cgroupfs_open(&h, limit_name[k]) == -1)
			continue;
		/* Whoever is dying in it is gone soon. */
		for (;;) {
			fd = openat(
			    h.rootfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			rc = fd == -1 ? -1
				      : remove_below(fd, group, false, where);
			if (rc == 0 || errno != EBUSY || clock_ms() >= end)
				break;
			poll(NULL, 0, LOOK_MS);
		}
		if (rc == -1)
			err = errno;
		cgroupfs_release(&h);
	}
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}
