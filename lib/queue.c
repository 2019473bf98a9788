/* SPDX-License-Identifier: MIT */
#include "queue.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "lock.h"
#include "num.h"
#include "path.h"
#include "stack.h"

/* Calls fn for each ticket below limit; stops at a failure. */
static int
each(int dirfd, uint64_t limit,
    int (*fn)(int dirfd, const char *name, uint64_t number, void *arg),
    void *arg)
{
	struct names v = NAMES_INIT;
	int rc = 0;

	if (names_read(dirfd, &v) == -1)
		return -1;
	for (size_t i = 0; i < v.n && rc == 0; i++) {
		uint64_t n;

		/* Dot names are tickets that are just being made. */
		if (num_dec(v.name[i], 1, limit - 1, &n))
			rc = fn(dirfd, v.name[i], n, arg);
	}
	names_release(&v);
	return rc;
}

static int
note_highest(int dirfd, const char *name, uint64_t number, void *arg)
{
	uint64_t *highest = arg;

	(void)dirfd;
	(void)name;
	if (number > *highest)
		*highest = number;
	return 0;
}

int
queue_draw(int stackfd, struct ticket *t, int ms)
{
	uint64_t highest = 0;
	char name[24];
	int lock;

	*t = (struct ticket)TICKET_INIT;
	/* Under the stack lock nobody sees a ticket before it is locked. */
	lock = lock_take(stackfd, STACK_LOCK, true, ms);
	if (lock == -1)
		return -1;
	if (mkdirat(stackfd, "queue", 0700) == -1 && errno != EEXIST)
		goto fail;
	t->dirfd = path_open(stackfd, "queue", O_RDONLY | O_DIRECTORY, 0);
	if (t->dirfd == -1)
		goto fail;
	if (each(t->dirfd, UINT64_MAX, note_highest, &highest) == -1)
		goto fail;
	t->number = highest + 1;
	snprintf(name, sizeof name, "%" PRIu64, t->number);
	t->fd = lock_create(t->dirfd, name);
	if (t->fd == -1)
		goto fail;
	io_drop(&lock);
	return 0;
fail:
	io_drop(&t->dirfd);
	io_drop(&lock);
	return -1;
}

static int
wait_for(int dirfd, const char *name, uint64_t number, void *arg)
{
	int ms = *(int *)arg, fd, rc;

	(void)number;
	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return errno == ENOENT ? 0 : -1;
	rc = lock_fd(fd, false, ms);
	io_drop(&fd);
	/* Left or dead. Numbers below ours are not given out again. */
	if (rc == 0)
		unlinkat(dirfd, name, 0);
	return rc;
}

int
queue_wait(struct ticket *t, int ms)
{
	return each(t->dirfd, t->number, wait_for, &ms);
}

void
queue_leave(struct ticket *t)
{
	char name[24];

	if (t->fd == -1)
		return;
	snprintf(name, sizeof name, "%" PRIu64, t->number);
	unlinkat(t->dirfd, name, 0);
	io_drop(&t->fd);
	io_drop(&t->dirfd);
}
