/* SPDX-License-Identifier: MIT */
#include "probedir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "lock.h"
#include "mem.h"
#include "overlay.h"
#include "path.h"
#include "probe.h"
#include "rootfs.h"

enum {
	ROOM_MIB = 256,
	ROOM_FILES = 10000
};

static int
lay(size_t n, enum overlay_way way)
{
	int *layer = xcalloc(n, sizeof *layer), upper, work, target, here, rc;
	struct buf text = BUF_INIT;
	char name[24];

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof name, "l%zu", i);
		if (mkdir(name, 0755) == -1 && errno != EEXIST)
			return probe_fail("unable to make a layer");
		layer[i] = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (layer[i] == -1)
			return probe_fail("unable to open layer %zu", i);
	}
	if (mkdir("u", 0755) == -1 || mkdir("w", 0755) == -1 ||
	    mkdir("m", 0755) == -1)
		return probe_fail("unable to make a directory");
	here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	upper = open("u", O_PATH | O_DIRECTORY | O_CLOEXEC);
	work = open("w", O_PATH | O_DIRECTORY | O_CLOEXEC);
	target = open("m", O_PATH | O_DIRECTORY | O_CLOEXEC);
	rc = overlay_mount(layer, n, upper, work, target, way, &text);
	if (rc == -1) {
		probe_fail("unable to mount an overlay%s%s%s",
		    text.len > 0 ? " (" : "", buf_str(&text),
		    text.len > 0 ? ")" : "");
		if (errno == ENODEV)
			probe_mend("load the kernel's overlay module: as root "
				   "modprobe overlay");
	}
	/* The way by one page of options leads away. */
	if (rc == 0 && fchdir(here) == -1)
		rc = probe_fail("unable to come back");
	return rc;
}

static bool
exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static int
touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd == -1)
		return probe_fail("unable to make %s", path);
	io_drop(&fd);
	return 0;
}

/* Two layers, the lower one with a file f and a directory d with x. */
static int
lay_two(enum overlay_way way)
{
	if (probe_enter() == -1)
		return -1;
	if (mkdir("l1", 0755) == -1 || mkdir("l1/d", 0755) == -1)
		return probe_fail("unable to make a directory");
	if (touch("l1/f") == -1 || touch("l1/d/x") == -1 || lay(2, way) == -1)
		return -1;
	if (!exists("m/f") || !exists("m/d/x"))
		return probe_fail("an overlay does not show a layer");
	return 0;
}

int
probe_overlay(void)
{
	if (lay_two(OVERLAY_AUTO) == -1 || touch("m/new") == -1)
		return -1;
	if (!exists("u/new"))
		return probe_fail("what is made is not in the upper directory");
	return probe_saw("mounted and written");
}

int
probe_way(const char *word)
{
	enum overlay_way way = OVERLAY_AUTO;

	overlay_parse_way(word, &way);
	return lay_two(way) == -1 ? -1 : probe_saw("mounted");
}

int
probe_whiteout(void)
{
	struct stat st;

	if (lay_two(OVERLAY_AUTO) == -1)
		return -1;
	if (unlink("m/f") == -1)
		return probe_fail("unable to delete a file of a layer");
	if (exists("m/f"))
		return probe_no("a deleted file is there again");
	if (lstat("u/f", &st) == -1 || !S_ISCHR(st.st_mode) || st.st_rdev != 0)
		return probe_no("a deletion is not kept as a device 0:0");
	return probe_saw("a deletion is kept as a device 0:0");
}

int
probe_opaque(void)
{
	char value[2] = "";

	if (lay_two(OVERLAY_AUTO) == -1)
		return -1;
	if (unlink("m/d/x") == -1 || rmdir("m/d") == -1 ||
	    mkdir("m/d", 0755) == -1)
		return probe_fail("unable to delete and make a directory");
	if (exists("m/d/x"))
		return probe_no(
		    "a directory made anew shows what was in the old one");
	if (lgetxattr("u/d", "user.overlay.opaque", value, sizeof value) != 1 ||
	    value[0] != 'y')
		return probe_fail("unable to read user.overlay.opaque");
	return probe_saw("a directory made anew is kept as opaque");
}

int
probe_rename(void)
{
	if (lay_two(OVERLAY_AUTO) == -1)
		return -1;
	if (mkdir("m/a", 0755) == -1 || rename("m/a", "m/b") == -1)
		return probe_fail("unable to rename a new directory");
	if (rename("m/d", "m/e") == 0)
		return probe_no(
		    "a directory of a layer is renamed by reference");
	if (errno != EXDEV)
		return probe_fail("unable to rename a directory of a layer");
	return probe_saw("new directories are renamed, those of layers copied");
}

int
probe_xattr(void)
{
	char value[2] = "";

	if (lay_two(OVERLAY_AUTO) == -1)
		return -1;
	if (lsetxattr("m/f", "user.sb", "1", 1, 0) == -1)
		return probe_fail("unable to set user.sb");
	if (lgetxattr("u/f", "user.sb", value, sizeof value) != 1)
		return probe_fail("unable to read user.sb");
	return probe_saw("kept in the upper directory");
}

int
probe_layers(void)
{
	char last[16];

	if (probe_enter() == -1)
		return -1;
	io_many_fds();
	snprintf(last, sizeof last, "l%d", OVERLAY_LAYERS_MAX - 1);
	if (mkdir(last, 0755) == -1)
		return probe_fail("unable to make a directory");
	snprintf(last, sizeof last, "l%d/f", OVERLAY_LAYERS_MAX - 1);
	if (touch(last) == -1 || lay(OVERLAY_LAYERS_MAX, OVERLAY_AUTO) == -1)
		return -1;
	if (!exists("m/f"))
		return probe_fail("the last layer is not shown");
	return probe_saw("%d at once", OVERLAY_LAYERS_MAX);
}

/* As sb-box-hold of the host. */
int
probe_box_root(void)
{
	struct rootfs r = { .source = "/", .statefd = -1 };
	struct buf readonly = BUF_INIT, why = BUF_INIT;
	char *dir = NULL;

	if (probe_enter() == -1)
		return -1;
	if (mkdir("root", 0755) == -1)
		return probe_fail("unable to make a directory");
	r.statefd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r.statefd != -1)
		dir = path_of_fd(r.statefd);
	if (!dir)
		return probe_fail("unable to open a directory");
	r.target = xasprintf("%s/root", dir);
	if (rootfs_make(&r, &readonly, &why) == -1)
		return probe_no("%s", buf_str(&why));
	if (!exists("root/dev/null"))
		return probe_fail("it has no /dev/null");
	return probe_saw("the host's root, under an upper side of our own");
}

int
probe_locks(void)
{
	int fd = lock_take(AT_FDCWD, "lock", true, 0), held;

	if (fd == -1)
		return probe_fail("unable to lock a file");
	held = lock_is_held(AT_FDCWD, "lock");
	if (held != 1)
		return probe_no("a lock that is held looks free");
	io_drop(&fd);
	if (lock_is_held(AT_FDCWD, "lock") != 0)
		return probe_no("a lock outlives its file");
	return probe_saw("taken, seen and given back");
}

int
probe_room(void)
{
	struct statvfs v;
	uintmax_t mib;

	if (statvfs(".", &v) == -1)
		return probe_fail("unable to look at it");
	mib = (uintmax_t)v.f_bavail * v.f_frsize >> 20;
	probe_saw("%ju MiB are free", mib);
	if (mib < ROOM_MIB)
		return -1;
	if (v.f_files > 0 && v.f_favail < ROOM_FILES)
		return probe_no("%ju files are free", (uintmax_t)v.f_favail);
	return 0;
}
