/* SPDX-License-Identifier: MIT */
/*
 * sb-ns-enter: run a program inside a session. Shape: chain, stays: only a
 * child can be a member of another pid namespace, so we wait for it and end as
 * it did.
 *
 *   1. Open the init that the file hold names; pid and start time must agree.
 *   2. Open the user namespace of commands that the init pins.
 *   3. Join the init's namespaces by its pidfd, fork, and in the child join
 *      that user namespace: it has no power over the mounts.
 *   4. Where we were, if that is in the workspace, else the workspace itself;
 *      then the program, with no descriptor above 2.
 *
 * What keeps the session's gate open stays with us, never with the program: a
 * background process that it leaves behind holds nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "ns.h"
#include "path.h"
#include "session.h"
#include "spawn.h"
#include "sys.h"

static const char usage[] = "sb-ns-enter session prog...";

static const int passed[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1,
	SIGUSR2 };

static pid_t child;

/* What the terminal sends, it sends to the program as well. */
static void
pass_on(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code != SI_KERNEL)
		kill(child, sig);
}

/* Blocked until there is a child to pass them to. */
static void
catch_signals(sigset_t *set)
{
	struct sigaction sa = { .sa_sigaction = pass_on,
		.sa_flags = SA_SIGINFO | SA_RESTART };

	sigemptyset(set);
	for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
		sigaddset(set, passed[i]);
	sigprocmask(SIG_BLOCK, set, NULL);
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
		sigaction(passed[i], &sa, NULL);
}

/* The directory we are in, when the session has it too. */
static char *
wanted_cwd(const char *workspace)
{
	char *cwd = getcwd(NULL, 0);

	if (cwd && path_is_below(cwd, workspace))
		return cwd;
	free(cwd);
	return NULL;
}

static void
prepare_env(const char *id)
{
	const char *tmp = getenv("TMPDIR"), *path = getenv("SB_PATH");
	struct stat st;

	if (setenv("SB_SESSION", id, 1) == -1 ||
	    (path && *path && setenv("PATH", path, 1) == -1))
		die(EXIT_SYS, "out of memory");
	unsetenv("SB_PATH");
	if (tmp && (stat(tmp, &st) == -1 || !S_ISDIR(st.st_mode)))
		unsetenv("TMPDIR");
}

__attribute__((noreturn)) static void
be_program(int userns, int alive, const char *id, const char *workspace,
    const char *cwd, char **argv)
{
	char byte;

	spawn_kill_first();
	if (setns(userns, CLONE_NEWUSER) == -1)
		die_sys("unable to join the user namespace of session %s", id);
	/* Whoever kills us with 9 means the program. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		die_sys("unable to set process attributes");
	/* The other end closes when the parent dies; it never writes. */
	if (read(alive, &byte, 1) == 0)
		_exit(EXIT_SYS);
	if ((!cwd || chdir(cwd) == -1) && chdir(workspace) == -1)
		die_sys("unable to enter %s", workspace);
	prepare_env(id);
	if (sys_close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == -1)
		die_sys("unable to close descriptors");
	spawn_exec(argv);
	warn_sys("unable to run %s", argv[0]);
	_exit(spawn_exec_code(errno));
}

int
main(int argc, char **argv)
{
	const int spaces =
	    CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	int opt, init, userns, status, alive[2];
	char path[64], *workspace, *cwd;
	struct session s;
	struct hold h;
	sigset_t set;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (argc - optind < 2)
		usage_die(usage);
	if (session_open(&s, argv[optind]) == -1)
		die(EXIT_USAGE, "no such session: %s", argv[optind]);
	workspace = session_workspace();
	if (!workspace)
		die_sys("unable to read workspace.json");
	cwd = wanted_cwd(workspace);
	init = hold_read(s.dirfd, &h);
	if (init == -1 && errno != ENOENT)
		die_sys("unable to read workspace/%s/hold", s.id);
	if (init == 0)
		init = hold_open(&h);
	if (init == -1)
		die_sys("session %s does not run", s.id);
	snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)h.pid, NS_USER_FD);
	userns = open(path, O_RDONLY | O_CLOEXEC);
	if (userns == -1 && errno == ENOENT && io_wait(init, 0) == -1)
		die(EXIT_BUSY, "session %s is being started", s.id);
	if (userns == -1)
		die_sys("unable to open the namespaces of session %s", s.id);
	if (setns(init, spaces | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) == -1)
		die_sys("unable to join the namespaces of session %s", s.id);

	if (pipe2(alive, O_CLOEXEC | O_NONBLOCK) == -1)
		die_sys("unable to make a pipe");
	catch_signals(&set);
	child = fork();
	if (child == -1 && errno == ENOMEM)
		die(EXIT_SYS, "session %s has ended", s.id);
	if (child == -1)
		die_sys("unable to fork into session %s", s.id);
	if (child == 0) {
		io_drop(&alive[1]);
		be_program(
		    userns, alive[0], s.id, workspace, cwd, argv + optind + 1);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	while (waitpid(child, &status, 0) == -1)
		if (errno != EINTR)
			die_sys("unable to wait");
	return spawn_code(status);
}
