/* SPDX-License-Identifier: MIT */
#include "overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "stack.h"

static const char *const pairs[][2] = {
	{ "metacopy", "off" },
	{ "index", "off" },
	{ "xino", "off" },
	{ "redirect_dir", "nofollow" },
};

enum {
	NPAIRS = sizeof pairs / sizeof pairs[0]
};

static void
fd_path(char out[40], int fd)
{
	snprintf(out, 40, "/proc/self/fd/%d", fd);
}

/* The kernel's messages, fsopen(2): each read(2) gives one. */
static void
explain(int fs, struct buf *text)
{
	char line[512];
	int err = errno;
	ssize_t n;

	while ((n = read(fs, line, sizeof line)) > 0) {
		while (n > 0 && line[n - 1] == '\n')
			n--;
		if (text->len > 0)
			buf_adds(text, "; ");
		buf_add(text, line, (size_t)n);
	}
	errno = err;
}

static int
add_layer(int fs, int layer, bool by_fd)
{
	char path[40];

	if (by_fd)
		return fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, layer);
	fd_path(path, layer);
	return fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir+", path, 0);
}

static int
set_upper(int fs, int upper, int work)
{
	char path[40];

	if (upper == -1)
		return 0;
	fd_path(path, upper);
	if (fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", path, 0) == -1)
		return -1;
	fd_path(path, work);
	return fsconfig(fs, FSCONFIG_SET_STRING, "workdir", path, 0);
}

/*
 * *unknown is set when the kernel may not know this way at all: before 6.5 it
 * takes any name and objects only when the mount is made.
 */
static int
by_context(const int *layer, size_t n, int upper, int work, int target,
    bool by_fd, bool *unknown, struct buf *text)
{
	int fs, mnt = -1, rc = -1;

	*unknown = false;
	fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs == -1)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (add_layer(fs, layer[i], by_fd) == -1) {
			*unknown = errno == EINVAL;
			goto out;
		}
	if (fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) == -1)
		goto out;
	/* Names that this kernel does not have are off in it anyway. */
	for (size_t i = 0; i < NPAIRS; i++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, pairs[i][0], pairs[i][1],
			0) == -1 &&
		    errno != EINVAL)
			goto out;
	if (set_upper(fs, upper, work) == -1 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == -1) {
		*unknown = !by_fd && errno == EINVAL;
		goto out;
	}
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, upper == -1 ? MOUNT_ATTR_RDONLY : 0);
	if (mnt == -1)
		goto out;
	rc = move_mount(mnt, "", target, "",
	    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
out:
	if (rc == -1)
		explain(fs, text);
	io_drop(&mnt);
	io_drop(&fs);
	return rc;
}

/*
 * mount(2) takes one page of options. Entered by chdir, /proc/self/fd is a
 * directory in which every layer has a name of a few bytes.
 */
static int
by_page(const int *layer, size_t n, int upper, int work, int target)
{
	struct buf o = BUF_INIT;
	char path[40];
	int rc = -1;

	buf_adds(&o, "userxattr,lowerdir=");
	for (size_t i = 0; i < n; i++)
		buf_addf(&o, "%s%d", i ? ":" : "", layer[i]);
	for (size_t i = 0; i < NPAIRS; i++)
		buf_addf(&o, ",%s=%s", pairs[i][0], pairs[i][1]);
	if (upper != -1)
		buf_addf(&o,
		    ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d",
		    upper, work);
	fd_path(path, target);
	if (chdir("/proc/self/fd") == -1)
		goto out;
	if (o.len >= (size_t)sysconf(_SC_PAGESIZE)) {
		errno = E2BIG;
		goto out;
	}
	rc = mount(
	    "overlay", path, "overlay", upper == -1 ? MS_RDONLY : 0, o.data);
out:
	buf_release(&o);
	return rc;
}

/* overlayfs takes no single layer without an upperdir. */
static int
bind_one(int layer, int target)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	int mnt, rc = -1;

	mnt = open_tree(
	    layer, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (mnt == -1)
		return -1;
	if (mount_setattr(mnt, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0)
		rc = move_mount(mnt, "", target, "",
		    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	io_drop(&mnt);
	return rc;
}

int
overlay_mount(const int *layer, size_t n, int upper, int work, int target,
    enum overlay_way way, struct buf *text)
{
	bool unknown = false;
	int rc = -1;

	if (n == 0 || n > OVERLAY_LAYERS_MAX) {
		errno = E2BIG;
		return -1;
	}
	if (n == 1 && upper == -1)
		return bind_one(layer[0], target);
	if (way == OVERLAY_AUTO || way == OVERLAY_FD) {
		rc = by_context(
		    layer, n, upper, work, target, true, &unknown, text);
		if (rc == 0 || way == OVERLAY_FD || !unknown)
			return rc;
	}
	if (way != OVERLAY_PAGE) {
		buf_cut(text, 0);
		rc = by_context(
		    layer, n, upper, work, target, false, &unknown, text);
		if (rc == 0 || way == OVERLAY_STRING || !unknown)
			return rc;
	}
	return by_page(layer, n, upper, work, target);
}

/* What the kernel means by the errors that it shares with other troubles. */
static const char *
meaning(int err)
{
	switch (err) {
	case ELOOP:
		return " (directories overlap)";
	case ESTALE:
		return " (the upperdir belongs to other layers)";
	case EBUSY:
		return " (the upperdir is in use by another mount)";
	case EPERM:
		return " (no right to mount here)";
	default:
		return "";
	}
}

int
overlay_mount_ids(int stackfd, char *const *id, size_t n, int upper, int work,
    int target, enum overlay_way way, struct buf *text)
{
	struct buf kernel = BUF_INIT;
	int *layer = xcalloc(n, sizeof *layer);
	size_t open = 0;
	int rc = -1, err;

	for (; open < n; open++) {
		layer[open] = stack_open_layer(stackfd, id[open]);
		if (layer[open] != -1)
			continue;
		err = errno;
		buf_addf(text, "unable to open layer %s: %s", id[open],
		    strerror(err));
		goto out;
	}
	rc = overlay_mount(layer, n, upper, work, target, way, &kernel);
	err = errno;
	if (rc == -1)
		buf_addf(text, "unable to mount an overlay%s%s%s: %s",
		    kernel.len ? ": the kernel says: " : "", buf_str(&kernel),
		    meaning(err), strerror(err));
out:
	while (open > 0)
		io_drop(&layer[--open]);
	free(layer);
	buf_release(&kernel);
	errno = err;
	return rc;
}

bool
overlay_parse_way(const char *s, enum overlay_way *way)
{
	if (strcmp(s, "fd") == 0)
		*way = OVERLAY_FD;
	else if (strcmp(s, "string") == 0)
		*way = OVERLAY_STRING;
	else if (strcmp(s, "page") == 0)
		*way = OVERLAY_PAGE;
	else
		return false;
	return true;
}
