/* SPDX-License-Identifier: MIT */
#include "ns.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "num.h"
#include "path.h"
#include "stage.h"
#include "sys.h"

int
hold_write(int dirfd, const struct hold *h)
{
	char line[64];
	int n = snprintf(
	    line, sizeof line, "%ld %" PRIu64 "\n", (long)h->pid, h->start);

	return stage_file_nosync(dirfd, "hold", line, (size_t)n, 0600);
}

int
hold_read(int dirfd, struct hold *h)
{
	struct buf b = BUF_INIT;
	uint64_t pid, start;
	char *space, *end;
	int rc = -1;

	if (io_read_file_at(dirfd, "hold", &b, 64) == -1) {
		/* Something else is in its place. */
		if (errno == EFBIG || errno == EISDIR || errno == ELOOP)
			errno = EINVAL;
		goto out;
	}
	/* Not synced: all that may be left of it after a crash of the machine,
	 * and so of all that it named. */
	if (*buf_str(&b) == '\0') {
		errno = ENOENT;
		goto out;
	}
	space = strchr(buf_str(&b), ' ');
	end = strchr(buf_str(&b), '\n');
	errno = EINVAL;
	if (!space || !end)
		goto out;
	*space = *end = '\0';
	if (!num_dec(b.data, 1, INT32_MAX, &pid) ||
	    !num_dec(space + 1, 0, UINT64_MAX, &start))
		goto out;
	h->pid = (pid_t)pid;
	h->start = start;
	rc = 0;
out:
	buf_release(&b);
	return rc;
}

int
ns_start_time(pid_t pid, uint64_t *out)
{
	struct buf b = BUF_INIT;
	char path[40], *p, *word, *save = NULL;
	int rc = -1;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	if (io_read_file_at(AT_FDCWD, path, &b, 4096) == -1) {
		if (errno == ENOENT)
			errno = ESRCH;
		goto out;
	}
	errno = EINVAL;
	/* proc(5): the name is in parentheses and may hold anything. */
	p = strrchr(buf_str(&b), ')');
	if (!p)
		goto out;
	word = strtok_r(p + 1, " ", &save);
	for (int field = 3; word && field < 22; field++)
		word = strtok_r(NULL, " ", &save);
	if (word && num_dec(word, 0, UINT64_MAX, out))
		rc = 0;
out:
	buf_release(&b);
	return rc;
}

static bool
has_word(int proc, const char *pid, const char *file, const char *word)
{
	struct buf b = BUF_INIT;
	char path[40];
	bool has = false;

	snprintf(path, sizeof path, "%s/%s", pid, file);
	if (io_read_file_at(proc, path, &b, 65536) == 0) {
		for (size_t at = 0; at < b.len && !has;
		    at += strlen(b.data + at) + 1) {
			b.data[at + strcspn(b.data + at, "\n")] = '\0';
			has = strcmp(b.data + at, word) == 0;
		}
	}
	buf_release(&b);
	return has;
}

static bool
is_first_inside(int proc, const char *pid)
{
	struct buf b = BUF_INIT;
	char path[40], *p = NULL;
	bool is = false;

	snprintf(path, sizeof path, "%s/status", pid);
	if (io_read_file_at(proc, path, &b, 65536) == 0)
		p = strstr(buf_str(&b), "\nNSpid:");
	if (p) {
		p += strlen("\nNSpid:");
		p[strcspn(p, "\n")] = '\0';
		p += strspn(p, "\t ");
		p = strpbrk(p, "\t ");
		is = p && strcmp(p + 1, "1") == 0;
	}
	buf_release(&b);
	return is;
}

int
hold_find(const char *id, struct hold *h)
{
	struct names v = NAMES_INIT;
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = names_read(proc, &v);
	bool found = false;
	struct hold one;
	uint64_t pid;

	for (size_t i = 0; i < v.n && rc == 0; i++) {
		if (!num_dec(v.name[i], 1, INT32_MAX, &pid))
			continue;
		one.pid = (pid_t)pid;
		/* First who it is: the number may change hands. */
		if (!has_word(proc, v.name[i], "comm", "sb-ns-hold") ||
		    ns_start_time(one.pid, &one.start) == -1 ||
		    !has_word(proc, v.name[i], "cmdline", id) ||
		    !is_first_inside(proc, v.name[i]))
			continue;
		if (!found || one.start > h->start)
			*h = one;
		found = true;
	}
	names_release(&v);
	io_drop(&proc);
	if (rc == 0 && !found) {
		errno = ESRCH;
		rc = -1;
	}
	return rc;
}

int
hold_open(const struct hold *h)
{
	uint64_t start;
	int fd = sys_pidfd_open(h->pid);

	if (fd == -1) {
		/* The number may be that of a thread by now, pidfd_open(2). */
		if (errno == EINVAL || errno == ENOENT)
			errno = ESRCH;
		return -1;
	}
	/* Looked up after the pidfd: now the number cannot change hands. */
	if (ns_start_time(h->pid, &start) == -1) {
		io_drop(&fd);
	} else if (start != h->start) {
		io_drop(&fd);
		errno = ESRCH;
	}
	return fd;
}

static int
write_proc(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

	if (fd == -1)
		return -1;
	rc = io_write_all(fd, text, strlen(text));
	io_drop(&fd);
	return rc;
}

pid_t
ns_fork_init(void)
{
	unsigned long flags =
	    CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD;

	if (geteuid() != 0)
		flags |= CLONE_NEWUSER;
	return (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
}

int
ns_begin(int go, const char **what)
{
	struct pollfd parent = { .fd = go, .events = POLLIN };
	char byte;

	*what = NULL;
	/* One that died before we asked to die with it has closed its end. */
	if (io_read_all(go, &byte, 1) != 1 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || poll(&parent, 1, 0) != 0)
		return -1;
	setsid();
	*what = "make mounts private";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		return -1;
	*what = "mount a fresh /proc";
	return mount(
	    "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

int
ns_map_init(pid_t pid)
{
	char uid[40], gid[40];

	if (geteuid() == 0)
		return 0;
	snprintf(uid, sizeof uid, "0 %ld 1", (long)geteuid());
	snprintf(gid, sizeof gid, "0 %ld 1", (long)getegid());
	return ns_map(pid, uid, gid);
}

int
ns_map(pid_t pid, const char *uid_map, const char *gid_map)
{
	char path[48];

	/* setgroups first: without a privilege gid_map is refused before. */
	snprintf(path, sizeof path, "/proc/%ld/setgroups", (long)pid);
	if (geteuid() != 0 && write_proc(path, "deny") == -1)
		return -1;
	snprintf(path, sizeof path, "/proc/%ld/uid_map", (long)pid);
	if (write_proc(path, uid_map) == -1)
		return -1;
	snprintf(path, sizeof path, "/proc/%ld/gid_map", (long)pid);
	return write_proc(path, gid_map);
}

/* Appends a map of each range of ids in file to itself. */
static int
same_ids(const char *file, struct buf *map)
{
	struct buf own = BUF_INIT;
	char *line, *save = NULL;
	uintmax_t first, count;
	int rc = -1;

	if (io_read_file_at(AT_FDCWD, file, &own, 1 << 16) == -1)
		goto out;
	/* user_namespaces(7): our id, the id outside, how many. */
	for (line = strtok_r(own.data, "\n", &save); line;
	    line = strtok_r(NULL, "\n", &save)) {
		errno = EINVAL;
		if (sscanf(line, "%ju %*u %ju", &first, &count) != 2)
			goto out;
		buf_addf(map, "%ju %ju %ju\n", first, first, count);
	}
	rc = 0;
out:
	buf_release(&own);
	return rc;
}

int
ns_map_same(pid_t pid)
{
	struct buf uid = BUF_INIT, gid = BUF_INIT;
	int rc = -1;

	if (same_ids("/proc/self/uid_map", &uid) == 0 &&
	    same_ids("/proc/self/gid_map", &gid) == 0)
		rc = ns_map(pid, buf_str(&uid), buf_str(&gid));
	buf_release(&uid);
	buf_release(&gid);
	return rc;
}

int
ns_own_user(void)
{
	char uid[40], gid[40];

	snprintf(uid, sizeof uid, "0 %ld 1", (long)geteuid());
	snprintf(gid, sizeof gid, "0 %ld 1", (long)getegid());
	if (unshare(CLONE_NEWUSER) == -1 ||
	    write_proc("/proc/self/setgroups", "deny") == -1 ||
	    write_proc("/proc/self/uid_map", uid) == -1)
		return -1;
	return write_proc("/proc/self/gid_map", gid);
}

int
ns_own_files(void)
{
	return geteuid() == 0 ? 0 : ns_own_user();
}

int
ns_has_leftovers(pid_t init)
{
	struct buf b = BUF_INIT;
	char path[64];
	int rc;

	snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)init,
	    (long)init);
	rc = io_read_file_at(AT_FDCWD, path, &b, 1 << 20);
	if (rc == 0)
		rc = b.len > 0;
	else if (errno == ENOENT || errno == EFBIG)
		rc = 1; /* cannot be told: assume so */
	buf_release(&b);
	return rc;
}
