/* SPDX-License-Identifier: MIT */
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "path.h"
#include "pty.h"
#include "spawn.h"
#include "sys.h"

/* ---- in the children: all end by _exit ---- */

static void
tell(int sock, enum inside_what what, int value, const char *text, int fd)
{
	struct inside_msg m = { .what = (char)what, .value = value };

	snprintf(m.text, sizeof m.text, "%s", text);
	/* Without anybody to tell, the keeper ends by itself. */
	if (fds_send(sock, &m, sizeof m, &fd, fd != -1) == -1)
		return;
}

__attribute__((noreturn)) static void
give_up(int sock, const char *text)
{
	tell(sock, INSIDE_FAILED, errno, text, -1);
	_exit(EXIT_SYS);
}

static void
default_signals(void)
{
	/* Those that somebody may have told us to ignore: exec keeps that. */
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE,
		SIGTERM, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
		SIGALRM };
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;

	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		sigaction(ignored[i], &sa, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Goes down to cwd, making what is missing on the way. */
static int
enter(const char *cwd)
{
	struct buf name = BUF_INIT;
	int rc = 0;

	while (*cwd != '\0' && rc == 0) {
		size_t n = strcspn(cwd, "/");

		buf_add(&name, cwd, n);
		if (chdir(name.data) == -1) {
			rc = mkdir(name.data, 0755);
			if (rc == 0 || errno == EEXIST)
				rc = chdir(name.data);
		}
		buf_cut(&name, 0);
		cwd += n + (cwd[n] == '/');
	}
	buf_release(&name);
	return rc;
}

/* Descriptors 0 to 2 of the command; the rest is closed by its exec. */
static int
place(int in, int out, int err)
{
	const int from[] = { in, out, err };
	int high[3];

	for (int i = 0; i < 3; i++) {
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 10);
		if (high[i] == -1)
			return -1;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(high[i], i) == -1)
			return -1;
	return 0;
}

/* The line may begin with a dash, and is no option then either. */
static void
exec_shell(char *line, char **envp)
{
	char *const bash[] = { (char[]){ "/bin/bash" },
		(char[]){ "--noprofile" }, (char[]){ "--norc" },
		(char[]){ "-c" }, (char[]){ "--" }, line, NULL };
	char *const sh[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" },
		(char[]){ "--" }, line, NULL };

	execve(bash[0], bash, envp);
	if (errno == ENOENT)
		execve(sh[0], sh, envp);
}

__attribute__((noreturn)) static void
be_command(const struct inside *in, int sock, int slave)
{
	int input = in->in, out = in->pty ? slave : in->out;
	int err = in->pty ? slave : in->err;
	sigset_t all;

	if (in->pty && pty_foreground(slave) == -1)
		give_up(sock, "put the command in the foreground");
	if (!in->pty && setpgid(0, 0) == -1)
		give_up(sock, "make a process group");
	spawn_kill_first();
	if (setns(in->usersfd, CLONE_NEWUSER) == -1)
		give_up(sock, "join the user namespace of the session");
	/* Without its keeper the command would be nobody's. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		give_up(sock, "set process attributes");
	umask(022);
	if (chdir(in->workspace) == -1)
		give_up(sock, "enter the workspace");
	if (enter(in->cwd) == -1)
		give_up(sock, "enter the directory that was asked for");
	if (input == -1 && in->pty)
		input = slave;
	if (input == -1)
		input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (input == -1 || place(input, out, err) == -1 ||
	    sys_close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == -1)
		give_up(sock, "put the descriptors in place");
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	tell(sock, INSIDE_STARTED, 0, "", -1);
	default_signals();
	/* Its PATH is where it is looked for, not ours. */
	environ = in->envp;
	if (in->argv[1])
		execvp(in->argv[0], in->argv);
	else
		exec_shell(in->argv[0], in->envp);
	dprintf(STDERR_FILENO, "sb-exec: unable to run %s: %s\n",
	    in->argv[1] ? in->argv[0] : "a shell", strerror(errno));
	_exit(spawn_exec_code(errno));
}

/*
 * The socket to number 3, everything else closed but the slave: as long as it
 * is open the master has no end.
 */
static int
keep_only(int sock, int slave)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	sock = fcntl(sock, F_DUPFD_CLOEXEC, 10);
	if (slave != -1)
		slave = fcntl(slave, F_DUPFD_CLOEXEC, 10);
	if (null == -1 || sock == -1 || dup3(sock, 3, O_CLOEXEC) == -1)
		return -1;
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (slave != -1 && dup3(slave, 4, O_CLOEXEC) == -1)
		return -1;
	if (sys_close_range(slave == -1 ? 4 : 5, ~0U, 0) == -1)
		return -1;
	return 3;
}

__attribute__((noreturn)) static void
be_keeper(const struct inside *in, int sock, int slave)
{
	struct pollfd above = { .fd = sock, .events = POLLIN };
	pid_t command, pid;
	sigset_t all;
	int status;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	/* After this we end with who started us; one that ended before has
	 * closed its end of the socket. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1) == -1)
		give_up(sock, "set process attributes");
	if (poll(&above, 1, 0) != 0)
		_exit(EXIT_SYS);
	if (in->pty ? pty_lead(slave) == -1 : setsid() == -1)
		give_up(sock, "make a session for the terminal");
	command = fork();
	if (command == -1)
		give_up(sock, "fork");
	if (command == 0)
		be_command(in, sock, slave);
	sock = keep_only(sock, slave);
	if (sock == -1 || chdir("/") == -1)
		_exit(EXIT_SYS);
	for (;;) {
		pid = waitpid(-1, &status, 0);
		if (pid == command)
			tell(sock, INSIDE_ENDED, status, "", -1);
		if (pid == -1 && errno != EINTR)
			_exit(EXIT_OK);
	}
}

__attribute__((noreturn)) static void
be_joiner(const struct inside *in, int sock)
{
	const int spaces =
	    CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	int master = -1, slave = -1;
	pid_t keeper;

	if (setns(in->initfd, spaces | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) ==
	    -1)
		give_up(sock, "join the namespaces of the session");
	if (in->pty) {
		if (pty_open(&master, &slave, in->rows, in->cols) == -1)
			give_up(sock, "open a terminal in the session");
		tell(sock, INSIDE_TERMINAL, 0, "", master);
		io_drop(&master);
	}
	/* As its parent's child: clone(2), and like fork(2) otherwise. */
	keeper = (pid_t)syscall(
	    SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
	if (keeper == -1)
		give_up(sock, "fork into the session");
	if (keeper == 0)
		be_keeper(in, sock, slave);
	tell(sock, INSIDE_KEEPER, (int)keeper, "", -1);
	_exit(EXIT_OK);
}

/* ---- */

pid_t
inside_start(const struct inside *in, struct leaf *leaf, int sock)
{
	pid_t pid = leaf_fork(leaf);

	if (pid == 0)
		be_joiner(in, sock);
	return pid;
}

char *
inside_dir(const char *workspace, const char *dir)
{
	struct buf b = BUF_INIT;

	if (dir[0] == '/') {
		const size_t n = strlen(workspace);

		if (!path_is_below(dir, workspace))
			return NULL;
		dir += n;
	}
	while (*dir != '\0') {
		size_t n = strcspn(dir, "/");

		if (n == 2 && memcmp(dir, "..", 2) == 0) {
			char *slash = b.len > 0 ? strrchr(b.data, '/') : NULL;

			if (b.len == 0)
				goto out;
			buf_cut(&b, slash ? (size_t)(slash - b.data) : 0);
		} else if (n > 0 && !(n == 1 && *dir == '.')) {
			if (b.len > 0)
				buf_addc(&b, '/');
			buf_add(&b, dir, n);
		}
		dir += n + (dir[n] == '/');
	}
	buf_reserve(&b, 0);
	return buf_steal(&b);
out:
	buf_release(&b);
	return NULL;
}
