/* SPDX-License-Identifier: MIT */
/*
 * Raw system calls that glibc 2.36 does not wrap, and constants that older
 * kernel headers lack. No policy. All return -1 with errno on failure.
 */
#ifndef SB_SYS_H
#define SB_SYS_H

#include <stdint.h>
#include <sys/types.h>

#ifndef RESOLVE_NO_MAGICLINKS
#	define RESOLVE_NO_MAGICLINKS 0x02
#endif
#ifndef RESOLVE_NO_SYMLINKS
#	define RESOLVE_NO_SYMLINKS 0x04
#endif
#ifndef RESOLVE_BENEATH
#	define RESOLVE_BENEATH 0x08
#endif

/* openat2(2), retried on EAGAIN (a rename raced with the walk). */
int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode,
    uint64_t resolve);

int sys_pidfd_open(pid_t pid);
int sys_pidfd_send_signal(int pidfd, int sig);
int sys_close_range(unsigned first, unsigned last, unsigned flags);

/*
 * Does dirfd/path, its last component not followed, have extended attributes
 * that we may see? 1, 0, or -1; ENOSYS before Linux 6.13.
 */
int sys_has_xattrs(int dirfd, const char *path);

#ifndef CLOSE_RANGE_CLOEXEC
#	define CLOSE_RANGE_CLOEXEC 4
#endif

#endif
