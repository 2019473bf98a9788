/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "ns.h"

static struct probe_report *report; /* shared with all children */
static bool is_root;
static char own_name[32];

int
probe_init(void)
{
	report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED)
		return -1;
	is_root = geteuid() == 0;
	snprintf(own_name, sizeof own_name, "sb-doctor-%ld", (long)getpid());
	return 0;
}

bool
probe_is_root(void)
{
	return is_root;
}

const char *
probe_name(void)
{
	return own_name;
}

/* ---- what was seen ---- */

static void
say(const char *fmt, va_list ap)
{
	vsnprintf(report->seen, sizeof report->seen, fmt, ap);
}

int
probe_saw(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return 0;
}

int
probe_no(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return -1;
}

int
probe_fail(const char *fmt, ...)
{
	int err = errno;
	size_t n;
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	n = strlen(report->seen);
	snprintf(
	    report->seen + n, sizeof report->seen - n, ": %s", strerror(err));
	errno = err;
	return -1;
}

void
probe_mend(const char *text)
{
	snprintf(report->mend, sizeof report->mend, "%s", text);
}

static bool
is_sysctl(const char *path, const char *value)
{
	struct buf b = BUF_INIT;
	bool is = io_read_file_at(AT_FDCWD, path, &b, 64) == 0 &&
	    strcmp(buf_str(&b), value) == 0;

	buf_release(&b);
	return is;
}

void
probe_mend_user_namespaces(void)
{
	if (is_sysctl("/proc/sys/user/max_user_namespaces", "0\n"))
		probe_mend("allow user namespaces: as root sysctl -w "
			   "user.max_user_namespaces=15000, and a file in "
			   "/etc/sysctl.d to keep it");
	else if (is_sysctl("/proc/sys/kernel/unprivileged_userns_clone", "0\n"))
		probe_mend("allow user namespaces: as root sysctl -w "
			   "kernel.unprivileged_userns_clone=1, and a file in "
			   "/etc/sysctl.d to keep it");
	else if (is_sysctl("/proc/sys/kernel/"
			   "apparmor_restrict_unprivileged_userns",
		     "1\n"))
		probe_mend("let user namespaces have their powers: as root "
			   "sysctl -w "
			   "kernel.apparmor_restrict_unprivileged_userns=0, or "
			   "an AppArmor profile with userns for sb-ns-hold");
	else
		probe_mend(
		    "a kernel with CONFIG_USER_NS; in a container, a "
		    "seccomp profile that allows unshare(2) and clone(2) "
		    "to make namespaces");
}

/* ---- children ---- */

pid_t
probe_start(void)
{
	pid_t parent = getpid(), pid = fork();

	/* In a new pid namespace the parent has no number. */
	if (pid == 0 &&
	    (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 ||
		(getppid() != parent && getppid() != 0)))
		_exit(1);
	return pid;
}

pid_t
probe_start_in(int (*fn)(void))
{
	int up[2];
	char byte;
	pid_t pid;

	if (pipe2(up, O_CLOEXEC) == -1)
		return probe_fail("unable to make a pipe");
	pid = probe_start();
	if (pid == 0) {
		if (fn() == 0 && io_write_all(up[1], "", 1) == 0)
			pause();
		_exit(1);
	}
	io_drop(&up[1]);
	if (pid == -1) {
		probe_fail("unable to fork");
	} else if (io_read_all(up[0], &byte, 1) != 1) {
		probe_finish(pid);
		pid = -1;
	}
	io_drop(&up[0]);
	return pid;
}

void
probe_finish(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The status of a child that does fn(arg). */
static int
run(int (*fn)(const void *arg), const void *arg)
{
	pid_t pid = probe_start();
	int status = -1;

	if (pid == -1) {
		probe_fail("unable to fork");
		return -1;
	}
	if (pid == 0) {
		alarm(PROBE_S);
		_exit(fn(arg) == 0 ? 0 : 1);
	}
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		continue;
	if (WIFSIGNALED(status))
		probe_saw("%s",
		    WTERMSIG(status) == SIGALRM ? "it does not end"
						: strsignal(WTERMSIG(status)));
	return status;
}

bool
probe_run(int (*fn)(const void *arg), const void *arg,
    const struct probe_report **result)
{
	*report = (struct probe_report){ .seen = "" };
	*result = report;
	return run(fn, arg) == 0;
}

/* ---- where it is tried ---- */

int
probe_enter(void)
{
	int rc = 0;

	if (!is_root && ns_own_user() == -1)
		rc = probe_fail("unable to make a user namespace");
	else if (unshare(CLONE_NEWNS) == -1)
		rc = probe_fail("unable to make a mount namespace");
	else if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		rc = probe_fail("unable to make mounts private");
	if (rc == -1 && !is_root)
		probe_mend_user_namespaces();
	else if (rc == -1)
		probe_mend("root lacks its powers here: give the container "
			   "CAP_SYS_ADMIN and an AppArmor profile that allows "
			   "mounts, or be an ordinary user");
	return rc;
}

int
probe_enter_memory(void)
{
	if (probe_enter() == -1)
		return -1;
	if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV,
		"size=4m,nr_inodes=1000,mode=700") == -1 ||
	    chdir("/tmp") == -1)
		return probe_fail("unable to mount a tmpfs");
	return 0;
}

static int
be_first(const void *arg)
{
	int (*const *fn)(void) = arg;

	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		NULL) == -1) {
		probe_mend(
		    "where a container covers parts of /proc only its "
		    "root can mount one: be root in it, or start it with "
		    "--security-opt systempaths=unconfined");
		return probe_fail("unable to mount a fresh /proc");
	}
	return (*fn)();
}

int
probe_in_pid_namespace(int (*fn)(void))
{
	if (probe_enter_memory() == -1)
		return -1;
	if (unshare(CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS) == -1)
		return probe_fail("unable to make pid, ipc and uts namespaces");
	return run(be_first, &fn) == 0 ? 0 : -1;
}
