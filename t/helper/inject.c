/* SPDX-License-Identifier: MIT */
/*
 * inject [-dglr] [-e errno] [-n k] [-o record] [-p name] prog...: counts the
 * system calls of prog and of all it starts that change something, and kills
 * the process that makes the k-th, before the call has effect; with -e the call
 * fails instead. Ends as prog did. strace(1) counts each process by itself and
 * hits every one that gets so far: what a later process does is hidden behind
 * the death of an earlier one. Here each call of each process is one number.
 *
 *   -d  when prog has ended, leaves what it left behind alone
 *   -g  kills the whole process group
 *   -l  prints the names of the calls that change nothing, and ends
 *   -p  counts only the calls of processes of that name: which of several that
 *       run side by side makes the k-th of all differs from run to run
 *   -r  counts calls that read files as well, once a program's own code runs
 *   -o  writes "number pid program call" for each
 *
 * A call counts unless it is named here: one that is new in our programs is
 * covered by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <elf.h>

struct call {
	long number;
	const char *name;
};

#define C(name) { SYS_##name, #name }

/* They read files. */
static const struct call reading[] = { C(fgetxattr), C(flistxattr), C(fstat),
	C(fstatfs), C(getdents64), C(getxattr), C(lgetxattr), C(listxattr),
	C(llistxattr), C(newfstatat), C(pread64), C(read), C(readlinkat),
	C(readv), C(statfs), C(statx),
#ifdef SYS_readlink
	C(access), C(lstat), C(readlink), C(stat),
#endif
	C(faccessat), C(faccessat2),
	/* Since Linux 6.13; the same numbers everywhere. */
	{ 464, "getxattrat" }, { 465, "listxattrat" }, { -1, NULL } };

/* They change nothing outside of the process that makes them, and waits. */
static const struct call harmless[] = { C(brk), C(clock_gettime),
	C(clock_nanosleep), C(fadvise64), C(futex), C(getcwd), C(getegid),
	C(geteuid), C(getgid), C(getpid), C(getppid), C(getrandom),
	C(getresgid), C(getresuid), C(getrlimit), C(gettid), C(gettimeofday),
	C(getuid), C(lseek), C(madvise), C(mmap), C(mprotect), C(mremap),
	C(munmap), C(nanosleep), C(pidfd_open), C(ppoll), C(prlimit64),
	C(restart_syscall), C(rseq), C(rt_sigaction), C(rt_sigprocmask),
	C(rt_sigreturn), C(rt_sigtimedwait), C(sched_getaffinity),
	C(sched_yield), C(set_robust_list), C(set_tid_address), C(sigaltstack),
	C(sysinfo), C(umask), C(uname), C(wait4), C(waitid),
#ifdef SYS_poll
	C(arch_prctl), C(getpgrp), C(poll), C(select), C(time),
#endif
	{ -1, NULL } };

/* Names of what counts, for people; the list need not be complete. */
static const struct call changing[] = { C(chdir), C(clone), C(clone3), C(close),
	C(close_range), C(copy_file_range), C(dup), C(dup3), C(execve), C(exit),
	C(exit_group), C(fallocate), C(fchdir), C(fchmod), C(fchmodat),
	C(fchown), C(fchownat), C(fcntl), C(fremovexattr), C(fsconfig),
	C(fsetxattr), C(fsmount), C(fsopen), C(fsync), C(ftruncate), C(ioctl),
	C(kill), C(linkat), C(memfd_create), C(mkdirat), C(mknodat), C(mount),
	C(mount_setattr), C(move_mount), C(open_tree), C(openat), C(openat2),
	C(pidfd_send_signal), C(pipe2), C(prctl), C(renameat), C(renameat2),
	C(sendmsg), C(setitimer), C(setns), C(setresuid), C(setsid),
	C(setxattr), C(symlinkat), C(sync_file_range), C(umount2), C(unlinkat),
	C(unshare), C(utimensat), C(write), C(writev),
#ifdef SYS_poll
	C(dup2), C(fork), C(mkdir), C(open), C(pipe), C(rename), C(rmdir),
	C(symlink), C(unlink), C(vfork),
#endif
	{ -1, NULL } };

struct proc {
	pid_t pid;
	bool runs; /* its own code, not only the loader's */
	bool execed; /* another program than its parent's */
	bool fails; /* the call that it is in gets error */
};

static struct proc *procs;
static size_t nprocs, cap;
static uint64_t count, at;
static int error;
static bool detach, group, reads, started;
static FILE *record;
/* Only processes of this name count. */
static const char *only;
static pid_t first;

static const char *
find(const struct call *c, uint64_t number)
{
	for (; c->name; c++)
		if ((uint64_t)c->number == number)
			return c->name;
	return NULL;
}

static void
bug(const char *what)
{
	perror(what);
	exit(101);
}

static struct proc *
proc(pid_t pid)
{
	for (size_t i = 0; i < nprocs; i++)
		if (procs[i].pid == pid)
			return &procs[i];
	if (nprocs == cap) {
		cap = cap ? cap * 2 : 16;
		procs = reallocarray(procs, cap, sizeof *procs);
		if (!procs)
			bug("inject: memory");
	}
	procs[nprocs] = (struct proc){ .pid = pid };
	return &procs[nprocs++];
}

static void
forget(pid_t pid)
{
	struct proc *p = proc(pid);

	*p = procs[--nprocs];
}

static bool
flags_read(uint64_t flags)
{
	return (flags & O_ACCMODE) == O_RDONLY &&
	    !(flags & (O_CREAT | O_TRUNC));
}

/* openat2 has its flags in memory of the process. */
static bool
how_reads(pid_t pid, uint64_t address)
{
	struct open_how how = { .flags = 0 };
	struct iovec to = { &how, sizeof how };
	struct iovec from = { (void *)(uintptr_t)address, sizeof how };

	if (process_vm_readv(pid, &to, 1, &from, 1, 0) == -1)
		return false;
	return flags_read(how.flags);
}

/* Was descriptor fd opened for reading only? */
static bool
is_read_only(pid_t pid, uint64_t fd)
{
	char path[64], line[64];
	unsigned flags = O_RDWR;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/fdinfo/%ju", (long)pid,
	    (uintmax_t)fd);
	f = fopen(path, "re");
	if (!f)
		return true; /* not open */
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "flags: %o", &flags) == 1)
			break;
	fclose(f);
	return flags_read(flags);
}

/* 0 changes something, 1 reads a file, 2 neither. */
static int
kind_of(pid_t pid, const struct __ptrace_syscall_info *si)
{
	const uint64_t *arg = si->entry.args;

	if (find(harmless, si->entry.nr))
		return 2;
	if (find(reading, si->entry.nr))
		return 1;
	switch (si->entry.nr) {
	case SYS_openat:
		return flags_read(arg[2]);
	case SYS_openat2:
		return how_reads(pid, arg[2]);
	case SYS_close:
		return is_read_only(pid, arg[0]) ? 2 : 0;
	case SYS_fcntl:
		if (arg[1] == F_GETFD || arg[1] == F_GETFL)
			return 2;
		return arg[1] == F_OFD_GETLK || arg[1] == F_GETLK;
	default:
		return 0;
	}
}

static void
name_of(pid_t pid, char comm[static 32])
{
	char path[64];
	FILE *f;

	snprintf(comm, 32, "?");
	snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(comm, 32, f))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(f);
}

static void
note(uint64_t number, pid_t pid, const char *comm)
{
	const char *name = find(changing, number);

	if (!record)
		return;
	if (!name)
		name = find(reading, number);
	fprintf(record, "%ju %ld %s ", (uintmax_t)count, (long)pid, comm);
	if (name)
		fprintf(record, "%s\n", name);
	else
		fprintf(record, "syscall_0x%jx\n", (uintmax_t)number);
	fflush(record);
}

/* No call is made; what it returns is set when it ends. */
static void
skip_call(pid_t pid)
{
#ifdef __x86_64__
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) == -1)
		return; /* killed meanwhile */
	regs.orig_rax = (unsigned long long)-1;
	ptrace(PTRACE_SETREGS, pid, NULL, &regs);
#elif defined __aarch64__
	int none = -1;
	struct iovec v = { &none, sizeof none };

	ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_SYSTEM_CALL, &v);
#endif
}

static void
set_result(pid_t pid, long result)
{
	struct user_regs_struct regs;
	struct iovec v = { &regs, sizeof regs };

	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &v) == -1)
		return;
#ifdef __x86_64__
	regs.rax = (unsigned long long)result;
#elif defined __aarch64__
	regs.regs[0] = (unsigned long long)result;
#endif
	ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &v);
}

static void
at_entry(struct proc *p, const struct __ptrace_syscall_info *si)
{
	uint64_t nr = si->entry.nr;
	int kind = kind_of(p->pid, si);
	char comm[32];

	/* What err_init() does first. */
	if (nr == SYS_fcntl && si->entry.args[1] == F_GETFD)
		p->runs = true;
	if (!started || kind == 2 || (kind == 1 && !(reads && p->runs)))
		return;
	name_of(p->pid, comm);
	if (only && strcmp(comm, only) != 0)
		return;
	count++;
	note(nr, p->pid, comm);
	if (count != at || (error != 0 && nr == SYS_exit_group))
		return;
	if (error == 0) {
		skip_call(p->pid);
		kill(group ? -first : p->pid, SIGKILL);
		return;
	}
	/* Linux closes the descriptor whatever close(2) returns. */
	if (nr != SYS_close)
		skip_call(p->pid);
	p->fails = true;
}

static void
at_call(struct proc *p)
{
	struct __ptrace_syscall_info si;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, p->pid, (void *)sizeof si, &si) ==
	    -1)
		return;
	/* Number and arguments are at the same place in both. */
	if (si.op == PTRACE_SYSCALL_INFO_ENTRY ||
	    si.op == PTRACE_SYSCALL_INFO_SECCOMP) {
		at_entry(p, &si);
	} else if (si.op == PTRACE_SYSCALL_INFO_EXIT && p->fails) {
		set_result(p->pid, -error);
		p->fails = false;
	}
}

/* Lets pid go on after what status says about it. */
static void
go_on(pid_t pid, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);
	struct proc *p = proc(pid);
	unsigned long child;

	if (sig == (SIGTRAP | 0x80) || event == PTRACE_EVENT_SECCOMP) {
		at_call(p);
		sig = 0;
	} else if (event == PTRACE_EVENT_EXEC) {
		p->runs = false;
		p->execed = true;
		started = true; /* before it was us, looking for prog */
		sig = 0;
	} else if (event == PTRACE_EVENT_STOP) {
		if (sig != SIGTRAP) {
			ptrace(PTRACE_LISTEN, pid, NULL, NULL);
			return;
		}
		sig = 0;
	} else if (event != 0) {
		if (ptrace(PTRACE_GETEVENTMSG, pid, NULL, &child) == 0) {
			bool runs = p->runs;

			/* It may have been quicker than this news of it. */
			p = proc((pid_t)child);
			p->runs = p->runs || (runs && !p->execed);
		}
		sig = 0;
	}
	/* With a filter only what it reports stops, and what is to fail. */
	ptrace(detach || proc(pid)->fails ? PTRACE_SYSCALL : PTRACE_CONT, pid,
	    NULL, (void *)(long)sig);
}

static int
trace(void)
{
	int status, code = 111;
	pid_t pid;

	for (;;) {
		pid = waitpid(-1, &status, __WALL);
		if (pid == -1 && errno == EINTR)
			continue;
		if (pid == -1)
			return code;
		if (WIFSTOPPED(status)) {
			go_on(pid, status);
			continue;
		}
		forget(pid);
		if (pid != first)
			continue;
		code = WIFSIGNALED(status) ? 128 + WTERMSIG(status)
					   : WEXITSTATUS(status);
		/* Our end lets go of those that are left. */
		if (detach)
			return code;
	}
}

static size_t
allow(struct sock_filter *f, size_t n, const struct call *c)
{
	for (; c->name; c++) {
		f[n++] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)c->number, 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(
		    BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	return n;
}

/*
 * Saves most of the stops. Not for what lives on without us: to it such calls
 * would fail.
 */
static void
filter(void)
{
	struct sock_filter f[256];
	struct sock_fprog prog = { .filter = f };
	size_t n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(
	    BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	n = allow(f, n, harmless);
	if (!reads)
		n = allow(f, n, reading);
	f[n++] =
	    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	prog.len = (unsigned short)n;
	if ((geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == -1) {
		perror("inject: seccomp");
		_exit(101);
	}
}

static void
start(char **argv)
{
	long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
	    PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
	int status;

	if (!detach)
		options |= PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP;
	first = fork();
	if (first == -1)
		bug("inject: fork");
	if (first == 0) {
		if (group)
			setpgid(0, 0);
		raise(SIGSTOP);
		if (!detach)
			filter();
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	if (waitpid(first, &status, WUNTRACED) == -1 ||
	    ptrace(PTRACE_SEIZE, first, NULL, (void *)options) == -1)
		bug("inject: ptrace");
	kill(first, SIGCONT);
}

/* With the name that strace gives to calls that are newer than it. */
static void
list(const struct call *c)
{
	for (; c->name; c++)
		printf("%s\nsyscall_0x%lx\n", c->name, c->number);
}

static int
parse_errno(const char *s)
{
	for (int e = 1; e < 200; e++) {
		const char *name = strerrorname_np(e);

		if (name && strcmp(name, s) == 0)
			return e;
	}
	fprintf(stderr, "inject: no such error: %s\n", s);
	exit(100);
}

int
main(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "+de:gln:o:p:r")) != -1)
		switch (opt) {
		case 'd':
			detach = true;
			break;
		case 'e':
			error = parse_errno(optarg);
			break;
		case 'g':
			group = true;
			break;
		case 'l':
			list(harmless);
			list(reading);
			return 0;
		case 'n':
			at = strtoull(optarg, NULL, 10);
			break;
		case 'o':
			record = fopen(optarg, "we");
			if (!record)
				bug(optarg);
			break;
		case 'p':
			only = optarg;
			break;
		case 'r':
			reads = true;
			break;
		default:
			return 100;
		}
	if (optind == argc)
		return 100;
	start(argv + optind);
	return trace();
}
