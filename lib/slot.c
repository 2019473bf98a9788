/* SPDX-License-Identifier: MIT */
#include "slot.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "lock.h"

enum {
	KEPT = 16 /* one in so many */
};

/* One of the slots from to before end. Everybody begins elsewhere. */
static int
take_among(int dirfd, unsigned from, unsigned end)
{
	unsigned n = end - from, first = n ? (unsigned)getpid() % n : 0;

	for (unsigned i = 0; i < n; i++) {
		char name[16];
		int fd;

		snprintf(name, sizeof name, "%u", from + (first + i) % n);
		fd = lock_take(dirfd, name, true, 0);
		if (fd != -1 || errno != EAGAIN)
			return fd;
	}
	errno = EAGAIN;
	return -1;
}

int
slot_take(int dirfd, unsigned n, bool urgent)
{
	unsigned kept = n / KEPT;
	int fd = take_among(dirfd, kept, n);

	if (fd == -1 && errno == EAGAIN && urgent)
		fd = take_among(dirfd, 0, kept);
	return fd;
}
