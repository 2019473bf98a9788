/* SPDX-License-Identifier: MIT */
#include "cgroupfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "io.h"

/* Is word one of the words of list, which commas separate? */
static bool
has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == '\0'))
			return true;
	}
	return false;
}

int
cgroupfs_own(const char *controller, struct buf *own)
{
	struct buf b = BUF_INIT;
	char *line, *save = NULL, *list, *path;
	int rc = -1;

	if (io_read_file_at(AT_FDCWD, "/proc/self/cgroup", &b, 1 << 16) == -1)
		goto out;
	errno = ENOENT;
	if (b.len == 0)
		goto out;
	/* "NUMBER:CONTROLLERS:PATH", the second kind without controllers. */
	for (line = strtok_r(b.data, "\n", &save); line && rc == -1;
	    line = strtok_r(NULL, "\n", &save)) {
		list = strchr(line, ':');
		path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		if (path[0] != '/' ||
		    !(controller ? has_word(list + 1, controller)
				 : strcmp(line, "0:") == 0))
			continue;
		buf_adds(own, path[1] ? path + 1 : ".");
		rc = 0;
	}
out:
	buf_release(&b);
	return rc;
}

/*
 * Where it is mounted, its root at the mount point. A path with a blank, which
 * proc(5) would write as an escape, is none of ours.
 */
static int
open_mounted(const char *controller)
{
	struct buf b = BUF_INIT;
	char *line, *save = NULL, *kind, *options;
	char point[256];
	int fd = -1;

	if (io_read_file_at(AT_FDCWD, "/proc/self/mountinfo", &b, 1 << 22) ==
	    -1)
		goto out;
	errno = ENOENT;
	for (line = strtok_r(b.data, "\n", &save); line && fd == -1;
	    line = strtok_r(NULL, "\n", &save)) {
		kind = strstr(line, controller ? " - cgroup " : " - cgroup2 ");
		options = strrchr(line, ' ');
		if (!kind || (controller && !has_word(options + 1, controller)))
			continue;
		/* A root that is more than "/" gives a point without one. */
		if (sscanf(line, "%*s %*s %*s / %255s", point) == 1 &&
		    point[0] == '/' && !strchr(point, '\\'))
			fd = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
out:
	buf_release(&b);
	return fd;
}

int
cgroupfs_open(struct cgroupfs *h, const char *controller)
{
	*h = (struct cgroupfs)CGROUPFS_INIT;
	h->rootfd = controller ? open_mounted(controller) : -1;
	if (h->rootfd == -1) {
		controller = NULL;
		h->rootfd = open_mounted(NULL);
		h->unified = true;
	}
	if (h->rootfd != -1 && cgroupfs_own(controller, &h->own) == 0)
		return 0;
	cgroupfs_release(h);
	return -1;
}

void
cgroupfs_release(struct cgroupfs *h)
{
	io_drop(&h->rootfd);
	buf_release(&h->own);
}
