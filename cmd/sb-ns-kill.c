/* SPDX-License-Identifier: MIT */
/*
 * sb-ns-kill: end a session's processes, or signal them. Shape: sink.
 *
 * Without -s the init is killed: that cannot fail, cannot be outrun and needs
 * no fork; the session is parked then. With -s every process but the init
 * gets the signal, sent by a child that has joined the pid namespace, where
 * kill(-1) means all of it. After STOP we wait until all have stopped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "ns.h"
#include "num.h"
#include "path.h"
#include "session.h"
#include "spawn.h"

static const char usage[] = "sb-ns-kill [-s signal] [-t ms] session";

enum {
	CALM_MS = 200
};

static int
parse_signal(const char *s)
{
	uint64_t n;
	int named;

	if (num_dec(s, 1, 64, &n))
		return (int)n;
	named = num_signal(s);
	if (named == 0)
		die(EXIT_USAGE, "not a signal: %s", s);
	return named;
}

/*
 * Inside, on the session's own /proc: has everybody but us one of these
 * states?
 */
static bool
all_are(const char *states)
{
	struct names v = NAMES_INIT;
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool all = true;
	uint64_t pid;

	if (proc == -1 || names_read(proc, &v) == -1)
		die_sys("unable to read /proc");
	for (size_t i = 0; i < v.n && all; i++) {
		struct buf stat = BUF_INIT, name = BUF_INIT;
		const char *p;

		if (!num_dec(v.name[i], 2, INT32_MAX, &pid) ||
		    (pid_t)pid == getpid())
			continue;
		buf_addf(&name, "%s/stat", v.name[i]);
		if (io_read_file_at(proc, name.data, &stat, 4096) == 0) {
			p = strrchr(buf_str(&stat), ')');
			all = !p || strchr(states, p[2]) != NULL;
		}
		buf_release(&stat);
		buf_release(&name);
	}
	names_release(&v);
	io_drop(&proc);
	return all;
}

static int
inside(int sig, uint64_t ms)
{
	struct timespec tick = { .tv_nsec = 1000000 };
	unsigned calm = 0;

	if (kill(-1, sig) == -1 && errno != ESRCH)
		die_sys("unable to signal");
	if (sig != SIGSTOP)
		return EXIT_OK;
	for (uint64_t waited = 0; !all_are("TtZXx"); waited++) {
		/*
		 * Who waits in vfork(2) for a child that is stopped cannot be
		 * stopped itself, and does nothing either. Whatever else
		 * sleeps so deep is writing, and ends soon; a capture that it
		 * still disturbs notices.
		 */
		calm = all_are("TtZXxD") ? calm + 1 : 0;
		if (calm > CALM_MS)
			break;
		if (waited > ms)
			die(EXIT_TIMEOUT, "processes do not stop");
		/* What a fork made meanwhile has to be told as well. */
		kill(-1, sig);
		nanosleep(&tick, NULL);
	}
	return EXIT_OK;
}

static int
signal_all(int pidfd, int sig, uint64_t ms)
{
	const int spaces = CLONE_NEWNS | CLONE_NEWPID;
	pid_t pid;
	int code;

	if (setns(pidfd, spaces | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) == -1)
		die_sys("unable to join the session's namespaces");
	pid = fork();
	if (pid == -1)
		die_sys("unable to fork into the session");
	if (pid == 0)
		_exit(inside(sig, ms));
	code = spawn_wait(pid);
	return code == -1 ? EXIT_SYS : code;
}

int
main(int argc, char **argv)
{
	uint64_t ms = 5000;
	struct session s;
	struct hold h;
	int opt, sig = 0, alive, fd;

	err_init();
	while ((opt = getopt(argc, argv, "+s:t:h")) != -1) {
		if (opt == 's')
			sig = parse_signal(optarg);
		else if (opt == 't' && num_dec(optarg, 0, INT32_MAX, &ms))
			continue;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (session_open(&s, argv[optind]) == -1)
		die(EXIT_NO, "no such session: %s", argv[optind]);
	alive = session_can_be_entered(&s);
	if (alive == -1)
		die_sys(
		    "unable to look at session %s%s", s.id, session_trouble());
	if (alive == 0)
		return EXIT_OK; /* nothing runs */
	if (sig != 0) {
		if (hold_read(s.dirfd, &h) == -1)
			die_sys("unable to read workspace/%s/hold", s.id);
		fd = hold_open(&h);
		if (fd == -1 && errno == ESRCH)
			return EXIT_OK;
		if (fd == -1)
			die_sys("unable to look at session %s", s.id);
		return signal_all(fd, sig, ms);
	}
	if (session_stop(&s) == -1)
		die_sys("unable to end the processes of session %s%s", s.id,
		    session_trouble());
	return EXIT_OK;
}
