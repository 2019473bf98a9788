/* SPDX-License-Identifier: MIT */
/*
 * sb-layer-rm: remove layers that nothing uses, and sweep what killed programs
 * left. Shape: sink; ids in, ids removed out.
 *
 *   1. Read the ids; take the stack lock exclusively.
 *   2. Learn what is in use: head, every session's lease, every live lease.
 *      Anything unreadable there ends it: nothing is removed.
 *   3. Rename what is not in use to staging/ID.rm, drop its sidecars, and let
 *      go of the lock: deleting may take long.
 *   4. Sweep staging/, leases/ and queue/ of everything whose lock is free.
 *
 * The base is never removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "lock.h"
#include "path.h"
#include "rec.h"
#include "stack.h"
#include "stage.h"
#include "store.h"

static const char usage[] = "sb-layer-rm";

enum { LOCK_MS = 30000 };

static int storefd, stackfd, staging;

static int
part(const char *name)
{
	int fd = path_open(stackfd, name, O_RDONLY | O_DIRECTORY, 0);

	if (fd == -1 && errno != ENOENT)
		die_sys("unable to open %s", name);
	return fd;
}

/* False when there is no such layer. */
static bool
set_aside(const char *id)
{
	char from[ID_MAX + 24], to[ID_MAX + 24];
	int meta = part(".layer-metadata");

	snprintf(from, sizeof from, "layers/%s", id);
	snprintf(to, sizeof to, "%s.rm", id);
	if (renameat(stackfd, from, staging, to) == -1) {
		if (errno == ENOENT)
			return false;
		die_sys("unable to move layer %s aside", id);
	}
	snprintf(to, sizeof to, "%s.digest", id);
	unlinkat(meta, to, 0);
	snprintf(to, sizeof to, "%s.bytes", id);
	unlinkat(meta, to, 0);
	io_drop(&meta);
	return true;
}

static bool
ends(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && strcmp(name + n - m, suffix) == 0;
}

static void
sweep_staging(void)
{
	struct names v = NAMES_INIT;
	char lock[300];

	if (names_read(staging, &v) == -1)
		die_sys("unable to read staging/");
	for (size_t i = 0; i < v.n; i++) {
		const char *dot = strrchr(v.name[i], '.');

		/* ID.staging and ID.lock live as long as ID.lock is held. */
		if (v.name[i][0] != '.' && dot && !ends(v.name[i], ".rm")) {
			snprintf(lock, sizeof lock, "%.*s.lock",
			    (int)(dot - v.name[i]), v.name[i]);
			if (lock_is_held(staging, lock) != 0)
				continue;
		} else if (v.name[i][0] == '.' &&
		    lock_is_held(staging, v.name[i]) != 0) {
			continue;
		}
		if (path_rm_tree(staging, v.name[i]) == -1)
			warn_sys("unable to remove staging/%s", v.name[i]);
	}
	names_release(&v);
}

/* Temporary files of writers that were killed: .NAME.PID.tmp. Their writers
 * hold the stack lock, which is ours now. */
static void
sweep_temporary(int dir)
{
	struct names v = NAMES_INIT;

	if (names_read(dir, &v) == 0)
		for (size_t i = 0; i < v.n; i++)
			if (v.name[i][0] == '.' && ends(v.name[i], ".tmp"))
				unlinkat(dir, v.name[i], 0);
	names_release(&v);
}

static void
sweep_leases(void)
{
	struct names v = NAMES_INIT;
	int leases = part("leases"), one;

	if (leases == -1)
		return;
	if (names_read(leases, &v) == -1)
		die_sys("unable to read leases/");
	for (size_t i = 0; i < v.n; i++) {
		one = path_open(leases, v.name[i], O_RDONLY | O_DIRECTORY, 0);
		if (one != -1 && lock_is_held(one, "lock") == 0)
			path_rm_tree(leases, v.name[i]);
		io_drop(&one);
	}
	names_release(&v);
	io_drop(&leases);
}

static void
sweep_queue(void)
{
	struct names v = NAMES_INIT;
	int queue = part("queue");

	if (queue == -1)
		return;
	if (names_read(queue, &v) == -1)
		die_sys("unable to read queue/");
	for (size_t i = 0; i < v.n; i++)
		if (lock_is_held(queue, v.name[i]) == 0)
			unlinkat(queue, v.name[i], 0);
	names_release(&v);
	io_drop(&queue);
}

int
main(int argc, char **argv)
{
	struct ids ids = IDS_INIT, used = IDS_INIT, removed = IDS_INIT;
	const char *why = NULL;
	int opt, lock;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	ids_read_stdin(&ids, 0);
	storefd = store_open();
	stackfd = store_open_stack();
	staging = part("staging");
	lock = lock_take(stackfd, STACK_LOCK, true, LOCK_MS);
	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "gave up waiting for the stack lock");
	if (lock == -1 || staging == -1)
		die_sys("unable to lock the stack");
	if (stack_used(storefd, &used, &why) == -1)
		die(EXIT_SYS, "unable to tell what is in use, nothing is "
			      "removed: %s",
		    why ? why : strerror(errno));
	if (used.n == 0)
		die(EXIT_SYS, "manifest.json is missing or empty: nothing is "
			      "removed");
	for (size_t i = 0; i < ids.n; i++)
		if (ids.id[i][0] != 'B' && !ids_have(&used, ids.id[i]) &&
		    set_aside(ids.id[i]))
			ids_add(&removed, ids.id[i]);
	if (removed.n > 0 && (stage_sync_dir(stackfd, "layers") == -1))
		die_sys("unable to sync layers/");
	sweep_leases();
	sweep_queue();
	sweep_temporary(stackfd);
	io_drop(&lock);
	sweep_staging();
	ids_print(&removed);
	stdout_done();
	return EXIT_OK;
}
