/* SPDX-License-Identifier: MIT */
/*
 * sb-log: print the history of the stack, newest version first. Shape: source;
 * one JSON object a line.
 *
 *   1. Read the version of the manifest, then the history from its end.
 *   2. Pass over what is newer: a swap that is going on, or was killed.
 *   3. Print the rest, as it is written.
 *
 * No lock is needed: what stands up to the manifest's version never changes.
 * Behind it a swap may be at work; what looks torn there is looked at again
 * under the stack lock, before it is said to be.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "history.h"
#include "io.h"
#include "lock.h"
#include "num.h"
#include "stack.h"
#include "store.h"

static const char usage[] = "sb-log [-n count]";

enum {
	LOCK_MS = 30000
};

static int stackfd;
static bool damaged;

static uint64_t
stack_version(void)
{
	struct manifest m;
	const char *why = NULL;
	uint64_t version;

	if (manifest_read(stackfd, STACK_MANIFEST, &m, &why) == -1)
		die(EXIT_SYS, "unable to read %s: %s", STACK_MANIFEST,
		    why ? why : strerror(errno));
	version = m.version;
	manifest_release(&m);
	return version;
}

static void
say_bad(const struct history *h)
{
	warn_msg("%s: the line at byte %jd is damaged", HISTORY_FILE,
	    (intmax_t)h->at);
	damaged = true;
}

/*
 * Goes back to the newest line that was committed. Without the lock it stops
 * at what is no whole line, with HISTORY_BAD; with it, it says so and goes on.
 */
static enum history_kind
newest(struct history *h, uint64_t version, bool locked)
{
	for (;;) {
		enum history_kind kind = history_prev(h);

		if (kind == HISTORY_ERROR && (locked || errno != ESTALE))
			die_sys("unable to read %s", HISTORY_FILE);
		/* What follows these two was not committed either. */
		if (kind == HISTORY_LINE && h->version >= version)
			damaged = false;
		if (kind == HISTORY_START ||
		    (kind == HISTORY_LINE && h->version <= version))
			return kind;
		if (kind == HISTORY_LINE)
			continue;
		if (!locked)
			return HISTORY_BAD;
		if (kind == HISTORY_TORN)
			warn_msg("%s: the line at byte %jd is torn: the next "
				 "swap will cut it off",
			    HISTORY_FILE, (intmax_t)h->at);
		else
			say_bad(h);
	}
}

static enum history_kind
open_newest(struct history *h)
{
	enum history_kind kind;
	uint64_t version;
	int lock, rc;

	for (bool locked = false;; locked = true) {
		lock = locked ? lock_take(stackfd, STACK_LOCK, false, LOCK_MS)
			      : -1;
		if (locked && lock == -1 && errno == ETIMEDOUT)
			die(EXIT_TIMEOUT, "gave up waiting for the stack lock");
		if (locked && lock == -1)
			die_sys("unable to lock the stack");
		version = stack_version();
		rc = history_open(stackfd, h);
		if (rc == -1)
			die_sys("unable to open %s", HISTORY_FILE);
		kind = rc == 0 ? HISTORY_START : newest(h, version, locked);
		io_drop(&lock);
		if (kind != HISTORY_BAD)
			return kind;
		history_close(h);
	}
}

int
main(int argc, char **argv)
{
	uint64_t count = UINT64_MAX, last = UINT64_MAX;
	enum history_kind kind;
	struct history h;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+n:h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		if (opt != 'n' || !num_dec(optarg, 0, UINT64_MAX, &count))
			usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);

	stackfd = store_open_stack();
	kind = count > 0 ? open_newest(&h) : HISTORY_START;
	while (count > 0 && kind != HISTORY_START) {
		if (kind == HISTORY_ERROR)
			die_sys("unable to read %s", HISTORY_FILE);
		/* Each version is newer than the one before it. */
		if (kind != HISTORY_LINE || h.version >= last) {
			say_bad(&h);
		} else {
			last = h.version;
			fwrite(h.p, 1, h.n, stdout);
			putchar('\n');
			count--;
		}
		if (count > 0)
			kind = history_prev(&h);
	}
	stdout_done();
	return damaged ? EXIT_SYS : EXIT_OK;
}
