/* SPDX-License-Identifier: MIT */
/*
 * walkmount dir: prints what is visible in a mounted overlay of genstack's
 * layers in the words of sb-layer-list -r. It knows nothing of layers: names
 * come from readdir, kinds from lstat, the layer from what genstack put into
 * each object.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "buf.h"
#include "change.h"
#include "err.h"
#include "io.h"
#include "path.h"

static struct buf path;

static void
say_from(int dirfd, const char *name, struct change *c)
{
	ssize_t n;
	int fd;

	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		die_sys("unable to open %s", path.data);
	n = fgetxattr(fd, "user.from", c->from, sizeof c->from - 1);
	if (n == -1)
		die_sys("unable to read user.from of %s", path.data);
	c->from[n] = '\0';
	io_drop(&fd);
}

static void walk(int dirfd);

static void
entry(int dirfd, const char *name, const struct stat *st)
{
	char target[PATH_BYTES_MAX + 1];
	struct change c = { .kind = CHANGE_SPECIAL,
		.from = "-",
		.route = '-',
		.path = path.data };
	ssize_t n;
	int fd;

	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)) {
		c.kind = S_ISDIR(st->st_mode) ? CHANGE_DIR : CHANGE_WRITE;
		c.size = S_ISDIR(st->st_mode) ? 0 : st->st_size;
		c.mode = st->st_mode & 07777;
		say_from(dirfd, name, &c);
	}
	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(dirfd, name, target, sizeof target - 1);
		if (n == -1)
			die_sys("unable to read link %s", path.data);
		target[n] = '\0';
		c.kind = CHANGE_SYMLINK;
		c.mode = 0777;
		c.target = target;
		memcpy(c.from, target, strcspn(target, "/"));
		c.from[strcspn(target, "/")] = '\0';
	}
	change_write(stdout, &c);
	if (!S_ISDIR(st->st_mode))
		return;
	fd = openat(
	    dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		die_sys("unable to open %s", path.data);
	walk(fd);
	io_drop(&fd);
}

static void
walk(int dirfd)
{
	struct names names = NAMES_INIT;
	size_t len = path.len;
	struct stat st;

	if (names_read(dirfd, &names) == -1)
		die_sys("unable to list %s", buf_str(&path));
	for (size_t i = 0; i < names.n; i++) {
		if (len > 0)
			buf_addc(&path, '/');
		buf_adds(&path, names.name[i]);
		/*
		 * Where only one layer shows through, readdir gives whiteouts
		 * too; to every other call they are absent (Linux 6.18).
		 */
		if (path_lstat(dirfd, names.name[i], &st) == 0)
			entry(dirfd, names.name[i], &st);
		else if (errno != ENOENT)
			die_sys("unable to stat %s", path.data);
		buf_cut(&path, len);
	}
	names_release(&names);
}

int
main(int argc, char **argv)
{
	int fd;

	err_init();
	if (argc != 2)
		usage_die("walkmount dir");
	fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		die_sys("unable to open %s", argv[1]);
	walk(fd);
	change_stop(stdout);
	stdout_done();
	return 0;
}
