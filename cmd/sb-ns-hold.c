/* SPDX-License-Identifier: MIT */
/*
 * sb-ns-hold: make a session's namespaces, prepare them, and hold them. Shape:
 * chain, stays. The caller holds the session's gate exclusively.
 *
 *   1. Take the session's lock: from now on it runs.
 *   2. Fence: wait until the init of an earlier holder is gone. Its processes
 *      outlive its lock by some time, and two mounts of one upperdir at once
 *      are undefined.
 *   3. Clone the init of new mount, pid, ipc and uts namespaces, and a user
 *      namespace when we are not root. The init waits until its pid is in the
 *      file hold and its ids are mapped.
 *   4. The init mounts a fresh /proc, makes the user namespace in which
 *      commands will run, runs setup, and only then offers that namespace to
 *      sb-ns-enter.
 *   5. Say that we are ready; let go of everything but the lock.
 *
 * Invariant: the lock is held as long as the outer process lives; when it
 * dies, in whatever way, the kernel kills the init and with it all processes
 * of the session. The outer process is in none of the namespaces and keeps no
 * descriptor of them. The init has no handler for any signal, so nothing
 * inside can end it: pid_namespaces(7).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "event.h"
#include "io.h"
#include "lock.h"
#include "ns.h"
#include "num.h"
#include "session.h"
#include "spawn.h"
#include "sys.h"

static const char usage[] = "sb-ns-hold [-3 fd] session setup...";

enum {
	FENCE_MS = 30000,
	LOOK_S = 5 /* so long a session outlives its directory */
};

static void
quiet_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3 && null != -1; fd++)
		dup2(null, fd);
	io_drop(&null);
}

static void
fence(const struct session *s)
{
	struct hold h;
	int fd;

	if (hold_read(s->dirfd, &h) == -1) {
		/* Without it none was there, if nothing was mounted yet. */
		if (errno == ENOENT && !session_has(s, "work/work"))
			return;
		if ((errno != ENOENT && errno != EINVAL) ||
		    (hold_find(s->id, &h) == -1 && errno != ESRCH))
			die_sys("unable to read workspace/%s/hold", s->id);
		if (errno == ESRCH)
			return;
	}
	fd = hold_open(&h);
	if (fd == -1 && errno == ESRCH)
		return;
	if (fd == -1)
		die_sys("unable to look at the earlier holder of session %s",
		    s->id);
	if (io_wait(fd, FENCE_MS) == -1)
		die(EXIT_TIMEOUT,
		    "the processes of the earlier holder of "
		    "session %s do not end",
		    s->id);
	io_drop(&fd);
}

/* ---- the init ---- */

/*
 * The user namespace of commands: they are root in it, but have no power over
 * the mounts, which belong to ours. The descriptor pins it.
 */
static int
make_user_namespace(void)
{
	int up[2], down[2], fd;
	char path[48], byte = 0;
	pid_t k;

	if (pipe2(up, O_CLOEXEC) == -1 || pipe2(down, O_CLOEXEC) == -1)
		die_sys("unable to make a pipe");
	k = fork();
	if (k == -1)
		die_sys("unable to fork");
	if (k == 0) {
		io_drop(&down[1]);
		if (unshare(CLONE_NEWUSER) == -1)
			die_sys("unable to make a user namespace");
		if (io_write_all(up[1], "", 1) == -1)
			_exit(EXIT_SYS);
		_exit(io_read_all(down[0], &byte, 1) == -1);
	}
	io_drop(&up[1]);
	if (io_read_all(up[0], &byte, 1) != 1)
		die(EXIT_SYS, "unable to make a user namespace for commands");
	if (ns_map_same(k) == -1)
		die_sys("unable to map ids");
	snprintf(path, sizeof path, "/proc/%ld/ns/user", (long)k);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		die_sys("unable to pin the user namespace");
	io_drop(&up[0]);
	io_drop(&down[0]);
	io_drop(&down[1]);
	waitpid(k, NULL, 0);
	return fd;
}

__attribute__((noreturn)) static void
be_init(struct session *s, int go, int report, char **setup)
{
	int code, userns;
	sigset_t set;
	siginfo_t info;
	const char *what;
	pid_t pid;

	if (ns_begin(go, &what) == -1) {
		if (!what)
			_exit(EXIT_SYS);
		die_sys("unable to %s", what);
	}
	userns = make_user_namespace();
	if (setenv("SB_SESSION", s->id, 1) == -1)
		die(EXIT_SYS, "out of memory");
	pid = spawn((const char *const *)setup, NULL, 0);
	if (pid == -1)
		die_sys("unable to run %s", setup[0]);
	code = spawn_wait(pid);
	if (code != 0)
		_exit(code > 0 && code < 128 ? code : EXIT_SYS);

	quiet_stdio();
	if (chdir("/") == -1)
		die_sys("unable to enter /");
	io_drop(&s->dirfd);
	io_drop(&s->workfd);
	/* From here on the session can be entered. */
	if (dup3(userns, NS_USER_FD, O_CLOEXEC) == -1)
		die_sys("unable to keep the user namespace");
	io_drop(&userns);
	if (io_write_all(report, "\n", 1) == -1)
		_exit(EXIT_SYS);
	io_drop(&report);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, NS_KILL_ALL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
		/* Whom we cannot see has pid 0; kill(2) cannot lie. */
		if (sigwaitinfo(&set, &info) == NS_KILL_ALL &&
		    info.si_code == SI_USER && info.si_pid == 0)
			kill(-1, SIGKILL);
	}
}

/* ---- the outer process ---- */

static void
block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGPIPE);
	sigprocmask(SIG_BLOCK, set, NULL);
}

/* Whoever removed the session's directory left nothing to find us by. */
static bool
is_removed(int lock)
{
	struct stat st;

	return fstat(lock, &st) == 0 && st.st_nlink == 0;
}

/* Ends when told to, or when the init has ended, or the session is no more. */
static void
hold_on(pid_t init, int lock, const sigset_t *set)
{
	const struct timespec look = { .tv_sec = LOOK_S };

	for (;;) {
		int sig;

		if (waitpid(init, NULL, WNOHANG) == init)
			return;
		sig = sigtimedwait(set, NULL, &look);
		if (sig == SIGTERM || sig == SIGINT || is_removed(lock))
			kill(init, SIGKILL); /* not reaped: still ours */
	}
}

int
main(int argc, char **argv)
{
	struct session s;
	struct hold h = { .pid = 0 };
	struct event_span *span;
	sigset_t set;
	int opt, lock, go[2], report[2], ready = -1, status;
	uint64_t fd;
	char byte;

	err_init();
	while ((opt = getopt(argc, argv, "+3:h")) != -1) {
		if (opt == '3' && num_dec(optarg, 3, 1 << 20, &fd))
			ready = (int)fd;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (argc - optind < 2)
		usage_die(usage);
	/* We outlive our caller: nothing of it may stay open in us. */
	if (ready > 3)
		sys_close_range(3, (unsigned)ready - 1, 0);
	sys_close_range(ready == -1 ? 3 : (unsigned)ready + 1, ~0U, 0);
	if (ready != -1 && fcntl(ready, F_SETFD, FD_CLOEXEC) == -1)
		die_sys("unable to use descriptor %d", ready);

	span = event_begin("namespace.runner.spawn_child");
	if (session_open(&s, argv[optind]) == -1)
		die_sys("unable to open session %s", argv[optind]);
	lock = lock_take(s.dirfd, "lock", true, 0);
	if (lock == -1 && errno == EAGAIN)
		die(EXIT_BUSY, "session %s has a holder", s.id);
	if (lock == -1)
		die_sys("unable to lock session %s", s.id);
	fence(&s);

	if (pipe2(go, O_CLOEXEC) == -1 || pipe2(report, O_CLOEXEC) == -1)
		die_sys("unable to make a pipe");
	/*
	 * The clone moves the current directory, but no descriptor, to the new
	 * mount namespace, and overlayfs takes no directory of another one.
	 */
	if (fchdir(s.dirfd) == -1)
		die_sys("unable to enter workspace/%s", s.id);
	h.pid = ns_fork_init();
	if (h.pid == -1)
		die_sys("unable to make namespaces%s",
		    geteuid() == 0 ? "" : " (are user namespaces allowed?)");
	if (h.pid == 0) {
		io_drop(&lock);
		io_drop(&ready);
		io_drop(&go[1]);
		io_drop(&report[0]);
		be_init(&s, go[0], report[1], argv + optind + 1);
	}
	io_drop(&go[0]);
	io_drop(&report[1]);
	/* Known before it does anything: the next fence must find it. */
	if (ns_start_time(h.pid, &h.start) == -1 ||
	    hold_write(s.dirfd, &h) == -1)
		die_sys("unable to write workspace/%s/hold", s.id);
	if (ns_map_init(h.pid) == -1)
		die_sys("unable to map ids");
	if (io_write_all(go[1], "", 1) == -1 ||
	    io_read_all(report[0], &byte, 1) != 1) {
		kill(h.pid, SIGKILL);
		waitpid(h.pid, &status, 0);
		die(EXIT_SYS, "unable to set session %s up", s.id);
	}
	setsid();
	quiet_stdio();
	if (chdir("/") == -1)
		return EXIT_SYS;
	io_drop(&s.dirfd);
	io_drop(&s.workfd);
	event_end(span, NULL);
	event_flush();
	/*
	 * Somebody may have entered by now: when whoever started us has died
	 * we stay all the same.
	 */
	block_signals(&set);
	if (ready != -1 && io_write_all(ready, "\n", 1) == -1 && errno != EPIPE)
		return EXIT_SYS;
	io_drop(&ready);
	hold_on(h.pid, lock, &set);
	return EXIT_OK;
}
