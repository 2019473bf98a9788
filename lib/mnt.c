/* SPDX-License-Identifier: MIT */
#include "mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

bool
mnt_is_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int
mnt_tmpfs(
    const char *path, const char *options, unsigned long flags, struct buf *why)
{
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | flags,
		options) == -1)
		return buf_failed(why, "unable to mount a private %s", path);
	return 0;
}

int
mnt_attr(int fd, const char *path, bool recursive, uint64_t set, uint64_t clear,
    struct buf *why)
{
	struct mount_attr attr = { .attr_set = set, .attr_clr = clear };

	if (mount_setattr(fd, path,
		AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW |
		    (recursive ? AT_RECURSIVE : 0),
		&attr, sizeof attr) == -1)
		return buf_failed(why, "unable to make %s %s",
		    *path ? path : "the workspace",
		    set ? "read-only" : "usable");
	return 0;
}

/* A read-only bind of path on itself. */
static int
freeze(const char *path, struct buf *why)
{
	if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) == -1) {
		if (errno == ENOENT)
			return 0;
		return buf_failed(why, "unable to bind %s", path);
	}
	if (mount(NULL, path, NULL,
		MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV |
		    MS_NOEXEC,
		NULL) == -1)
		return buf_failed(why, "unable to make %s read-only", path);
	return 0;
}

int
mnt_cover(const char *path, struct buf *why)
{
	struct stat st;

	if (lstat(path, &st) == -1)
		return 0;
	if (S_ISDIR(st.st_mode))
		return mnt_tmpfs(
		    path, "size=4k,mode=000", MS_RDONLY | MS_NOEXEC, why);
	if (mount("/dev/null", path, NULL, MS_BIND, NULL) == -1)
		return buf_failed(why, "unable to cover %s", path);
	return 0;
}

int
mnt_proc_safe(struct buf *why)
{
	static const char *const frozen[] = { "/proc/sys", "/proc/irq",
		"/proc/bus", "/proc/fs", "/proc/sysrq-trigger", NULL };
	static const char *const covered[] = { "/proc/kcore", "/proc/keys",
		"/proc/key-users", "/proc/timer_list", "/proc/sched_debug",
		"/proc/kmsg", "/proc/latency_stats", "/proc/acpi", "/proc/scsi",
		NULL };

	for (const char *const *p = frozen; *p; p++)
		if (freeze(*p, why) == -1)
			return -1;
	for (const char *const *p = covered; *p; p++)
		if (mnt_cover(*p, why) == -1)
			return -1;
	return 0;
}

int
mnt_attach(int fd, const char *path, struct buf *why)
{
	if (move_mount(fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) == -1)
		return buf_failed(why, "unable to mount a private %s", path);
	return 0;
}

static int
make_device(const char *dir, const char *name, struct buf *why)
{
	char *to = xasprintf("%s/%s", dir, name);
	char *from = xasprintf("/dev/%s", name);
	int fd, rc = -1;

	fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd == -1 || mount(from, to, NULL, MS_BIND, NULL) == -1)
		buf_failed(why, "unable to bind %s", from);
	else
		rc = mnt_attr(AT_FDCWD, to, false,
		    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
		    MOUNT_ATTR_NODEV, why);
	io_drop(&fd);
	free(from);
	free(to);
	return rc;
}

static int
make_dir(const char *dir, const char *name, mode_t mode, struct buf *why)
{
	char *path = xasprintf("%s/%s", dir, name);
	int rc = mkdir(path, mode);

	if (rc == -1)
		buf_failed(why, "unable to make %s", path);
	free(path);
	return rc;
}

/*
 * Binds of the old devices: an ordinary user cannot make new ones. Read-only,
 * so that nobody changes mode or owner of the host's.
 */
int
mnt_devices(const char *dir, struct buf *why)
{
	static const char *const device[] = { "null", "zero", "full", "random",
		"urandom", "tty", NULL };
	static const char *const link[][2] = { { "/proc/self/fd", "fd" },
		{ "fd/0", "stdin" }, { "fd/1", "stdout" }, { "fd/2", "stderr" },
		{ "pts/ptmx", "ptmx" } };
	int fd, rc = 0;

	if (mnt_tmpfs(dir, "size=1m,mode=755", MS_NOEXEC, why) == -1)
		return -1;
	for (const char *const *d = device; *d; d++)
		if (make_device(dir, *d, why) == -1)
			return -1;
	if (make_dir(dir, "pts", 0755, why) == -1 ||
	    make_dir(dir, "shm", 01777, why) == -1)
		return -1;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof link / sizeof link[0] && rc == 0; i++)
		if (fd == -1 || symlinkat(link[i][0], fd, link[i][1]) == -1)
			rc = buf_failed(
			    why, "unable to make %s/%s", dir, link[i][1]);
	io_drop(&fd);
	return rc;
}

int
mnt_terminals(const char *dir, struct buf *why)
{
	if (mount("devpts", dir, "devpts", MS_NOSUID | MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=620") == -1)
		return buf_failed(why, "unable to mount a private %s", dir);
	return 0;
}

int
mnt_bind(
    const char *from, const char *to, bool deep, uint64_t set, struct buf *why)
{
	int fd, rc = -1;

	fd = open_tree(AT_FDCWD, from,
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW |
		(deep ? AT_RECURSIVE : 0));
	if (fd == -1)
		return buf_failed(why, "unable to bind %s", from);
	if (set == 0 || mnt_attr(fd, "", deep, set, 0, why) == 0)
		rc = mnt_attach(fd, to, why);
	io_drop(&fd);
	return rc;
}

int
mnt_make_path(const char *path, struct buf *why)
{
	char *copy = xstrdup(path);
	int rc = 0;

	for (char *p = strchr(copy + 1, '/');; p = strchr(p + 1, '/')) {
		if (p)
			*p = '\0';
		if (mkdir(copy, 0755) == -1 && errno != EEXIST) {
			rc = buf_failed(why, "unable to make %s", copy);
			break;
		}
		if (!p)
			break;
		*p = '/';
	}
	free(copy);
	return rc;
}

int
mnt_put(int fd, const char *path, struct buf *why)
{
	int to, rc;

	if (mnt_make_path(path, why) == -1) {
		if (errno == EROFS || errno == EACCES) {
			buf_cut(why, 0);
			buf_addf(why,
			    "the workspace %s is not there any more: make the "
			    "directory again",
			    path);
		}
		return -1;
	}
	to = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to == -1)
		return buf_failed(why, "unable to open %s", path);
	rc = move_mount(
	    fd, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	if (rc == -1)
		buf_failed(why, "unable to move the workspace to %s", path);
	io_drop(&to);
	return rc;
}
