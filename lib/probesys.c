/* SPDX-License-Identifier: MIT */
#include "probesys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "buf.h"
#include "cgroup.h"
#include "io.h"
#include "limit.h"
#include "ns.h"
#include "nsroot.h"
#include "probe.h"
#include "subid.h"
#include "sys.h"

#ifndef MOVE_MOUNT_BENEATH
#	define MOVE_MOUNT_BENEATH 0x200
#endif

enum {
	KERNEL_MAJOR = 5,
	KERNEL_MINOR = 15
};

#define LEAF "sbdoctor"

int
probe_kernel(void)
{
	int major = 0, minor = 0;
	struct utsname u;

	if (uname(&u) == -1)
		return probe_fail("unable to read the version");
	probe_saw("Linux %s", u.release);
	if (sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
	    (major > KERNEL_MAJOR ||
		(major == KERNEL_MAJOR && minor >= KERNEL_MINOR)))
		return 0;
	return -1;
}

int
probe_namespaces(void)
{
	if (probe_enter() == -1)
		return -1;
	if (unshare(CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS) == -1)
		return probe_fail("unable to make pid, ipc and uts namespaces");
	return probe_saw("mount, pid, ipc and uts, as %s",
	    probe_is_root() ? "root" : "an ordinary user");
}

static int
own_user(void)
{
	if (unshare(CLONE_NEWUSER) == -1)
		return probe_fail("unable to make a user namespace");
	return 0;
}

/* Commands are in one below that of the session. */
int
probe_user_namespaces(void)
{
	int rc = 0;
	pid_t pid;

	if (probe_enter() == -1)
		return -1;
	pid = probe_start_in(own_user);
	if (pid == -1)
		rc = -1;
	else if (ns_map_same(pid) == -1)
		rc = probe_fail("unable to map ids");
	if (rc == -1)
		probe_mend_user_namespaces();
	if (pid != -1)
		probe_finish(pid);
	return rc == -1 ? -1 : probe_saw("all ids that we have can be mapped");
}

static int
is_first(void)
{
	char self[16] = "";

	if (readlink("/proc/self", self, sizeof self - 1) == -1)
		return probe_fail("unable to read it");
	if (strcmp(self, "1") != 0)
		return probe_no("it shows other processes than ours");
	return probe_saw("fresh, in a pid namespace");
}

int
probe_proc(void)
{
	return probe_in_pid_namespace(is_first);
}

int
probe_mounts(void)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	int fd, rc = 0;

	if (probe_enter_memory() == -1)
		return -1;
	if (mkdir("a", 0700) == -1 || mkdir("b", 0700) == -1)
		return probe_fail("unable to make a directory");
	fd = open_tree(AT_FDCWD, "a", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd == -1)
		rc = probe_fail("open_tree");
	else if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof attr) == -1)
		rc = probe_fail("mount_setattr");
	else if (move_mount(fd, "", AT_FDCWD, "b", MOVE_MOUNT_F_EMPTY_PATH) ==
	    -1)
		rc = probe_fail("move_mount");
	else if (mkdir("b/c", 0700) != -1 || errno != EROFS)
		rc = probe_fail("a read-only mount can be written");
	io_drop(&fd);
	return rc == -1 ? -1
			: probe_saw("open_tree, mount_setattr, move_mount");
}

int
probe_beneath(void)
{
	int fd, to, rc = 0;

	if (probe_enter_memory() == -1)
		return -1;
	if (mkdir("a", 0700) == -1 || mkdir("b", 0700) == -1 ||
	    mkdir("a/below", 0700) == -1 ||
	    mount("tmpfs", "b", "tmpfs", 0, "size=1m") == -1)
		return probe_fail("unable to mount a tmpfs");
	fd = open_tree(AT_FDCWD, "a", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	to = open("b", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (move_mount(fd, "", to, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH |
		    MOVE_MOUNT_BENEATH) == -1)
		rc = probe_fail("move_mount");
	io_drop(&fd);
	io_drop(&to);
	if (rc == 0 && (umount2("b", 0) == -1 || rmdir("b/below") == -1))
		rc = probe_fail("it is not below");
	return rc == -1 ? -1 : probe_saw("a mount goes below another");
}

int
probe_tmpfs(void)
{
	struct statvfs v;

	if (probe_enter_memory() == -1)
		return -1;
	if (statvfs(".", &v) == -1)
		return probe_fail("unable to look at it");
	if (v.f_blocks * v.f_frsize != 4 << 20)
		return probe_no("a limit of 4 MiB was not kept");
	return probe_saw("with limits of size and number");
}

int
probe_devpts(void)
{
	int fd, tty, rc = 0, off = 0;

	if (probe_enter_memory() == -1)
		return -1;
	if (mkdir("pts", 0700) == -1 ||
	    mount("devpts", "pts", "devpts", MS_NOSUID | MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=620") == -1)
		return probe_fail("unable to mount a devpts");
	fd = open("pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd == -1 || ioctl(fd, TIOCSPTLCK, &off) == -1)
		return probe_fail("unable to open a terminal");
	tty = ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (tty == -1)
		rc = probe_fail("unable to open its other end");
	io_drop(&tty);
	io_drop(&fd);
	return rc == -1 ? -1 : probe_saw("terminals of our own");
}

static int
look_around(void)
{
	struct buf why = BUF_INIT;
	int fd;

	if (mkdir("tree", 0700) == -1 ||
	    mount("tree", "tree", NULL, MS_BIND, NULL) == -1)
		return probe_fail("unable to bind a directory");
	if (nsroot_make(AT_FDCWD, "tree", "/tmp/workspace", getenv("HOME"),
		1 << 20, NULL, 0, &why) == -1)
		return probe_no("%s", buf_str(&why));
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (fd == -1 || io_write_all(fd, "", 1) == -1)
		return probe_fail("unable to write to /dev/null");
	io_drop(&fd);
	if (mkdir("/tmp/workspace/a", 0700) == -1)
		return probe_fail("unable to write to the workspace");
	fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
	if (fd != -1)
		return probe_no("/proc/sys can be written");
	return probe_saw("private /tmp, /run, /dev and home, /proc made safe");
}

int
probe_root(void)
{
	return probe_in_pid_namespace(look_around);
}

int
probe_pidfd(void)
{
	pid_t pid = probe_start_in(probe_enter);
	int fd, rc = 0;

	if (pid == -1)
		return -1;
	fd = sys_pidfd_open(pid);
	if (fd == -1)
		rc = probe_fail("pidfd_open");
	else if (setns(fd,
		     CLONE_NEWNS | (probe_is_root() ? 0 : CLONE_NEWUSER)) == -1)
		rc = probe_fail("unable to join namespaces by it");
	else if (sys_pidfd_send_signal(fd, SIGKILL) == -1)
		rc = probe_fail("pidfd_send_signal");
	else if (io_wait(fd, PROBE_S * 1000) == -1)
		rc = probe_fail("unable to wait for an end by it");
	io_drop(&fd);
	probe_finish(pid);
	return rc == -1 ? -1 : probe_saw("join, signal and await by it");
}

int
probe_calls(void)
{
	int fd = sys_openat2(
	    AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0, RESOLVE_NO_MAGICLINKS);

	if (fd == -1)
		return probe_fail("openat2");
	if (sys_close_range((unsigned)fd, (unsigned)fd, CLOSE_RANGE_CLOEXEC) ==
	    -1)
		return probe_fail("close_range");
	io_drop(&fd);
	return probe_saw("openat2, close_range");
}

int
probe_seccomp(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof code / sizeof code[0],
		.filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return probe_fail("unable to give up new privileges");
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == -1)
		return probe_fail("unable to load a filter");
	if (syscall(SYS_getppid) != -1 || errno != EXDEV)
		return probe_no("a filter has no effect");
	return probe_saw("no new privileges, and a filter");
}

int
probe_landlock(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0,
	    LANDLOCK_CREATE_RULESET_VERSION);

	if (version == -1)
		return probe_fail("landlock_create_ruleset");
	return probe_saw("version %ld", version);
}

int
probe_kill(void)
{
	struct leaf l = LEAF_INIT;
	pid_t pid;
	int rc;

	if (leaf_make(&l, LEAF, probe_name()) == -1)
		return probe_fail("unable to make a cgroup2 leaf");
	pid = leaf_fork(&l);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	rc = pid == -1 ? probe_fail("unable to fork into a leaf") : 0;
	if (rc == 0 && leaf_kill(&l, PROBE_S * 1000) == -1)
		rc = probe_fail("unable to kill by cgroup.kill");
	if (pid != -1)
		probe_finish(pid);
	leaf_remove(&l);
	return rc == -1
	    ? -1
	    : probe_saw("a process is started in a leaf and killed");
}

static int
limit(struct limits want)
{
	struct buf why = BUF_INIT;

	if (limit_enter(probe_name(), &want, &why) == 0)
		return probe_saw("a limit can be set");
	return probe_no("%s", strchr(buf_str(&why), ' ') + 1);
}

int
probe_memory(void)
{
	return limit(
	    (struct limits){ .memory_max = 1 << 30, .memory_high = 1 << 29 });
}

int
probe_pids(void)
{
	return limit((struct limits){ .pids = 100 });
}

int
probe_cpu(void)
{
	return limit((struct limits){ .nano_cpus = 500000000 });
}

int
probe_clean(void)
{
	struct buf where = BUF_INIT;
	int rc = limit_remove(probe_name(), PROBE_S * 1000, &where);

	buf_release(&where);
	leaf_sweep(LEAF);
	return rc;
}

int
probe_tun(void)
{
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd, rc = 0;

	if (probe_enter() == -1)
		return -1;
	if (unshare(CLONE_NEWNET) == -1)
		return probe_fail("unable to make a network namespace");
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd == -1)
		return probe_fail("unable to open /dev/net/tun");
	if (ioctl(fd, TUNSETIFF, &r) == -1)
		rc = probe_fail("unable to make an interface");
	io_drop(&fd);
	return rc == -1 ? -1 : probe_saw("an interface can be made");
}

int
probe_newuidmap(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), rc;
	pid_t pid;

	if (probe_is_root())
		return probe_saw("root maps ids itself");
	pid = probe_start_in(own_user);
	if (pid == -1)
		return -1;
	/* The programs would explain themselves. */
	if (dup2(null, STDERR_FILENO) == -1)
		return probe_fail("unable to use /dev/null");
	rc = subid_map(pid);
	probe_finish(pid);
	if (rc == -1)
		return probe_fail("unable to map subordinate ids");
	return probe_saw("subordinate ids can be mapped");
}
