/* SPDX-License-Identifier: MIT */
/*
 * sb-stack-lease: keep the layers of the current stack while a program runs.
 * Shape: chain, stays.
 *
 *   1. Under the shared stack lock: read the manifest, make the lease.
 *   2. Start the program with the lease's lock among its descriptors.
 *   3. Wait for it, passing signals on; remove the lease; exit as it did.
 *
 * Invariant: the lease lives at least as long as the program, also when we are
 * killed, because the program holds the lock too. What a kill leaves is an
 * unlocked lease, which counts for nothing and goes with the next sweep.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "event.h"
#include "io.h"
#include "lock.h"
#include "path.h"
#include "spawn.h"
#include "stack.h"
#include "store.h"

static const char usage[] = "sb-stack-lease name prog...";

enum {
	LOCK_MS = 30000
};

/*
 * Waits for pid. A terminal sends its signals to the program as well; what
 * somebody sent to us alone is meant for the program.
 */
static int
wait_for(pid_t pid, const sigset_t *set)
{
	int status;
	siginfo_t si;

	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid)
			return spawn_code(status);
		if (got == -1 && errno != EINTR)
			return -1;
		if (sigwaitinfo(set, &si) == -1)
			continue;
		if (si.si_signo != SIGCHLD && si.si_code != SI_KERNEL)
			kill(pid, si.si_signo);
	}
}

int
main(int argc, char **argv)
{
	static const int passed[] = { SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT,
		SIGUSR1, SIGUSR2 };
	/* A number that shells and most programs leave alone. */
	struct spawn_fd map = { .theirs = 63 };
	struct manifest m = MANIFEST_INIT;
	const char *why = NULL, *name;
	sigset_t set;
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
	event_lease("lease.acquired", m.version);
	io_drop(&lock);

	/* Blocked before the program exists, so that none is lost. */
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	map.ours = lease;
	pid = spawn((const char *const *)(argv + optind + 1), &map, 1);
	if (pid == -1) {
		int err = errno;

		warn_sys("unable to run %s", argv[optind + 1]);
		stack_lease_drop(stackfd, name);
		return spawn_exec_code(err);
	}
	code = wait_for(pid, &set);
	if (code == -1)
		die_sys("unable to wait for %s", argv[optind + 1]);
	if (stack_lease_drop(stackfd, name) == -1)
		warn_sys("unable to remove lease %s", name);
	event_lease("lease.released", m.version);
	return code;
}
