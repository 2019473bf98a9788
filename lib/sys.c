/* SPDX-License-Identifier: MIT */
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_listxattrat
#	define SYS_listxattrat 465
#endif

int
sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode,
    uint64_t resolve)
{
	struct open_how how = {
		.flags = flags,
		.mode = mode,
		.resolve = resolve,
	};
	long fd;

	/*
	 * openat2(2): with RESOLVE_BENEATH a concurrent rename or mount gives
	 * EAGAIN. Bounded, because somebody may go on renaming for ever.
	 */
	for (int i = 0; i < 128; i++) {
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
		if (fd != -1 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return (int)fd;
}

int
sys_pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int
sys_pidfd_send_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

int
sys_close_range(unsigned first, unsigned last, unsigned flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

int
sys_has_xattrs(int dirfd, const char *path)
{
	long n =
	    syscall(SYS_listxattrat, dirfd, path, AT_SYMLINK_NOFOLLOW, NULL, 0);

	return n > 0 ? 1 : (int)n;
}
