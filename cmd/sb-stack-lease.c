/* SPDX-License-Identifier: MIT */
/*
 * sb-stack-lease: keep the layers of the current stack while a program runs.
 * Shape: chain, stays: the lease is a locked file, and its directory is
 * removed when the program has ended. Killed, it leaves an unlocked lease,
 * which counts for nothing and goes with the next sweep.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "lock.h"
#include "path.h"
#include "spawn.h"
#include "stack.h"
#include "store.h"

static const char usage[] = "sb-stack-lease name prog...";

enum { LOCK_MS = 30000 };

int
main(int argc, char **argv)
{
	struct manifest m = MANIFEST_INIT;
	const char *why = NULL, *name;
	int opt, stackfd, lock, lease, code;
	pid_t pid;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (argc - optind < 2)
		usage_die(usage);
	name = argv[optind];
	if (!id_is_valid(name))
		die(EXIT_USAGE, "not a name for a lease: %s", name);
	stackfd = store_open_stack();
	/* The collector decides under the exclusive lock: it sees the lease or
	 * runs before the list is read. */
	lock = lock_take(stackfd, STACK_LOCK, false, LOCK_MS);
	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "gave up waiting for the stack lock");
	if (lock == -1)
		die_sys("unable to lock the stack");
	if (manifest_read(stackfd, STACK_MANIFEST, &m, &why) == -1)
		die(EXIT_SYS, "unable to read %s: %s", STACK_MANIFEST,
		    why ? why : strerror(errno));
	lease = stack_lease(stackfd, name, &m);
	if (lease == -1 && errno == EEXIST)
		die(EXIT_BUSY, "lease %s is held by somebody else", name);
	if (lease == -1)
		die_sys("unable to make lease %s", name);
	io_drop(&lock);

	/* The terminal signals both; the program decides, we clean up. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	pid = spawn((const char *const *)(argv + optind + 1), NULL, 0);
	if (pid == -1) {
		int err = errno;

		warn_sys("unable to run %s", argv[optind + 1]);
		stack_lease_drop(stackfd, name);
		return spawn_exec_code(err);
	}
	code = spawn_wait(pid);
	if (stack_lease_drop(stackfd, name) == -1)
		warn_sys("unable to remove lease %s", name);
	return code == -1 ? EXIT_SYS : code;
}
