/* SPDX-License-Identifier: MIT */
#include "nsroot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "path.h"

enum {
	BYTES_PER_INODE = 4096
};

static bool
is_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int
put_tmpfs(
    const char *path, const char *options, unsigned long flags, struct buf *why)
{
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | flags,
		options) == -1)
		return buf_failed(why, "unable to mount a private %s", path);
	return 0;
}

/* mount_setattr(2) on the mount at path, or on that of the open fd (""). */
static int
set_attr(int fd, const char *path, bool recursive, uint64_t set, uint64_t clear,
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

static int
cover(const char *path, struct buf *why)
{
	struct stat st;

	if (lstat(path, &st) == -1)
		return 0;
	if (S_ISDIR(st.st_mode))
		return put_tmpfs(
		    path, "size=4k,mode=000", MS_RDONLY | MS_NOEXEC, why);
	if (mount("/dev/null", path, NULL, MS_BIND, NULL) == -1)
		return buf_failed(why, "unable to cover %s", path);
	return 0;
}

static int
make_proc_safe(struct buf *why)
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
		if (cover(*p, why) == -1)
			return -1;
	return 0;
}

/* ---- the private directories: parts of one file system ---- */

enum part {
	PART_TMP,
	PART_RUN,
	PART_SHM,
	PART_VAR,
	PART_HOME,
	PARTS
};

/*
 * One file system, so that one bound holds for all of it. Its root is seen by
 * nobody: parts are open mounts of the directories in it, which attach puts in
 * place.
 */
static int
make_parts(uint64_t bytes, int part[PARTS], struct buf *why)
{
	static const struct {
		const char *path;
		mode_t mode;
	} dir[PARTS] = {
		[PART_TMP] = { "/tmp/tmp", 01777 },
		[PART_RUN] = { "/tmp/run", 0755 },
		[PART_SHM] = { "/tmp/shm", 01777 },
		[PART_VAR] = { "/tmp/var", 01777 },
		[PART_HOME] = { "/tmp/home", 0700 },
	};
	char options[96] = "mode=755";

	/* Many empty files are memory as well. */
	if (bytes > 0)
		snprintf(options, sizeof options,
		    "mode=755,size=%" PRIu64 ",nr_inodes=%" PRIu64, bytes,
		    bytes / BYTES_PER_INODE);
	if (put_tmpfs("/tmp", options, 0, why) == -1)
		return -1;
	for (size_t i = 0; i < PARTS; i++) {
		if (mkdir(dir[i].path, dir[i].mode) == 0)
			part[i] = open_tree(AT_FDCWD, dir[i].path,
			    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		if (part[i] == -1)
			return buf_failed(
			    why, "unable to make a private %s", dir[i].path);
	}
	if (umount2("/tmp", MNT_DETACH) == -1)
		return buf_failed(why, "unable to unmount /tmp");
	return 0;
}

static int
attach(int part, const char *path, struct buf *why)
{
	if (move_mount(part, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) == -1)
		return buf_failed(why, "unable to mount a private %s", path);
	return 0;
}

static int
make_device(const char *name, struct buf *why)
{
	char to[64], from[64];
	int fd, rc = -1;

	snprintf(to, sizeof to, "/tmp/%s", name);
	snprintf(from, sizeof from, "/dev/%s", name);
	fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd == -1 || mount(from, to, NULL, MS_BIND, NULL) == -1)
		buf_failed(why, "unable to bind %s", from);
	else
		rc = set_attr(AT_FDCWD, to, false, 0, MOUNT_ATTR_NODEV, why);
	io_drop(&fd);
	return rc;
}

/*
 * The new /dev is built aside and moved into place, since its devices are
 * binds of the old one: an ordinary user cannot make them.
 */
static int
make_dev(int shm, struct buf *why)
{
	static const char *const device[] = { "null", "zero", "full", "random",
		"urandom", "tty", NULL };
	static const char *const link[][2] = { { "/proc/self/fd", "fd" },
		{ "fd/0", "stdin" }, { "fd/1", "stdout" }, { "fd/2", "stderr" },
		{ "pts/ptmx", "ptmx" } };
	char to[64];

	if (put_tmpfs("/tmp", "size=1m,mode=755", MS_NOEXEC, why) == -1)
		return -1;
	for (const char *const *d = device; *d; d++)
		if (make_device(*d, why) == -1)
			return -1;
	if (mkdir("/tmp/pts", 0755) == -1 || mkdir("/tmp/shm", 01777) == -1)
		return buf_failed(why, "unable to make /dev");
	if (mount("devpts", "/tmp/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=620") == -1)
		return buf_failed(why, "unable to mount a private /dev/pts");
	if (attach(shm, "/tmp/shm", why) == -1)
		return -1;
	for (size_t i = 0; i < sizeof link / sizeof link[0]; i++) {
		snprintf(to, sizeof to, "/tmp/%s", link[i][1]);
		if (symlink(link[i][0], to) == -1)
			return buf_failed(why, "unable to make %s", to);
	}
	if (mount("/tmp", "/dev", NULL, MS_MOVE, NULL) == -1)
		return buf_failed(
		    why, "unable to put the private /dev in place");
	return 0;
}

/* Makes the directories of an absolute path that are missing. */
static int
make_path(const char *path, struct buf *why)
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

/* Every program gets the home that it expects, also one below /tmp. */
static int
make_home(const char *home, int part, struct buf *why)
{
	struct stat root, st;

	if (!home || home[0] != '/')
		return 0;
	if (!is_dir(home) &&
	    (path_is_below(home, "/tmp") || path_is_below(home, "/run") ||
		path_is_below(home, "/var/tmp")) &&
	    make_path(home, why) == -1)
		return -1;
	/* However "/" is spelt, it stays what it is. */
	if (is_dir(home) && stat(home, &st) == 0 && stat("/", &root) == 0 &&
	    (st.st_dev != root.st_dev || st.st_ino != root.st_ino))
		return attach(part, home, why);
	return 0;
}

static int
make_private(const char *home, uint64_t bytes, struct buf *why)
{
	int part[PARTS] = { -1, -1, -1, -1, -1 }, rc = -1;

	if (make_parts(bytes, part, why) == 0 &&
	    make_dev(part[PART_SHM], why) == 0 &&
	    attach(part[PART_TMP], "/tmp", why) == 0 &&
	    attach(part[PART_RUN], "/run", why) == 0 &&
	    (!is_dir("/var/tmp") ||
		attach(part[PART_VAR], "/var/tmp", why) == 0))
		rc = make_home(home, part[PART_HOME], why);
	for (size_t i = 0; i < PARTS; i++)
		io_drop(&part[i]);
	return rc;
}

static int
put_in_place(int tree, const char *target, struct buf *why)
{
	int to, rc;

	if (make_path(target, why) == -1) {
		if (errno == EROFS || errno == EACCES) {
			buf_cut(why, 0);
			buf_addf(why,
			    "the workspace %s is not there any more: make the "
			    "directory again",
			    target);
		}
		return -1;
	}
	to = open(target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to == -1)
		return buf_failed(why, "unable to open %s", target);
	rc = move_mount(tree, "", to, "",
	    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	if (rc == -1)
		buf_failed(why, "unable to move the workspace to %s", target);
	io_drop(&to);
	return rc;
}

int
nsroot_make(int dirfd, const char *tree, const char *target, const char *home,
    uint64_t bytes, const char *const *mask, size_t nmasks, struct buf *why)
{
	mode_t old = umask(0);
	int fd, rc = -1;

	fd = open_tree(dirfd, tree, OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (fd == -1) {
		buf_failed(why, "unable to open %s", tree);
		goto out;
	}
	if (set_attr(AT_FDCWD, "/", true, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV,
		0, why) == -1 ||
	    set_attr(fd, "", false, 0, MOUNT_ATTR_RDONLY, why) == -1 ||
	    set_attr(AT_FDCWD, "/proc", false, 0, MOUNT_ATTR_RDONLY, why) ==
		-1 ||
	    make_private(home, bytes, why) == -1 || make_proc_safe(why) == -1)
		goto out;
	for (size_t i = 0; i < nmasks; i++)
		if (is_dir(mask[i]) && cover(mask[i], why) == -1)
			goto out;
	rc = put_in_place(fd, target, why);
out:
	io_drop(&fd);
	umask(old);
	return rc;
}
