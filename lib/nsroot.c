/* SPDX-License-Identifier: MIT */
#include "nsroot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mnt.h"
#include "path.h"

enum {
	BYTES_PER_INODE = 4096
};

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
	if (mnt_tmpfs("/tmp", options, 0, why) == -1)
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

/* Every program gets the home that it expects, also one below /tmp. */
static int
make_home(const char *home, int part, struct buf *why)
{
	struct stat root, st;

	if (!home || home[0] != '/')
		return 0;
	if (!mnt_is_dir(home) &&
	    (path_is_below(home, "/tmp") || path_is_below(home, "/run") ||
		path_is_below(home, "/var/tmp")) &&
	    mnt_make_path(home, why) == -1)
		return -1;
	/* However "/" is spelt, it stays what it is. */
	if (mnt_is_dir(home) && stat(home, &st) == 0 && stat("/", &root) == 0 &&
	    (st.st_dev != root.st_dev || st.st_ino != root.st_ino))
		return mnt_attach(part, home, why);
	return 0;
}

/* Built aside and moved into place, since its devices are binds of the old. */
static int
make_dev(int shm, struct buf *why)
{
	if (mnt_devices("/tmp", why) == -1 ||
	    mnt_terminals("/tmp/pts", why) == -1 ||
	    mnt_attach(shm, "/tmp/shm", why) == -1)
		return -1;
	if (mount("/tmp", "/dev", NULL, MS_MOVE, NULL) == -1)
		return buf_failed(
		    why, "unable to put the private /dev in place");
	return 0;
}

static int
make_private(const char *home, uint64_t bytes, struct buf *why)
{
	int part[PARTS] = { -1, -1, -1, -1, -1 }, rc = -1;

	if (make_parts(bytes, part, why) == 0 &&
	    make_dev(part[PART_SHM], why) == 0 &&
	    mnt_attach(part[PART_TMP], "/tmp", why) == 0 &&
	    mnt_attach(part[PART_RUN], "/run", why) == 0 &&
	    (!mnt_is_dir("/var/tmp") ||
		mnt_attach(part[PART_VAR], "/var/tmp", why) == 0))
		rc = make_home(home, part[PART_HOME], why);
	for (size_t i = 0; i < PARTS; i++)
		io_drop(&part[i]);
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
	if (mnt_attr(AT_FDCWD, "/", true, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV,
		0, why) == -1 ||
	    mnt_attr(fd, "", false, 0, MOUNT_ATTR_RDONLY, why) == -1 ||
	    mnt_attr(AT_FDCWD, "/proc", false, 0, MOUNT_ATTR_RDONLY, why) ==
		-1 ||
	    make_private(home, bytes, why) == -1 || mnt_proc_safe(why) == -1)
		goto out;
	for (size_t i = 0; i < nmasks; i++)
		if (mnt_is_dir(mask[i]) && mnt_cover(mask[i], why) == -1)
			goto out;
	rc = mnt_put(fd, target, why);
out:
	io_drop(&fd);
	umask(old);
	return rc;
}
