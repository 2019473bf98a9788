/* SPDX-License-Identifier: MIT */
/*
 * treediff a b: says what differs in two trees, but for directories, in the
 * words of sb-diff -z: letter, space, path, NUL; A M D T m. It walks both and
 * compares every byte, so it can judge programs that are cleverer.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "path.h"

struct side {
	int dirfd; /* -1: there is no directory */
	mode_t mode; /* of an entry, 0 when there is none */
};

static struct buf path;

static void walk(int a, int b);

static void
look(int dirfd, const char *name, mode_t *mode)
{
	struct stat st;

	*mode = 0;
	if (dirfd == -1)
		return;
	if (path_lstat(dirfd, name, &st) == 0)
		*mode = st.st_mode;
	else if (errno != ENOENT)
		die_sys("unable to stat %s", path.data);
}

static void
content(int dirfd, const char *name, mode_t mode, struct buf *out)
{
	ssize_t n;

	if (S_ISLNK(mode)) {
		buf_reserve(out, PATH_MAX);
		n = readlinkat(dirfd, name, out->data, PATH_MAX);
		if (n == -1)
			die_sys("unable to read link %s", path.data);
		buf_cut(out, (size_t)n);
	} else if (io_read_file_at(dirfd, name, out, 1 << 30) == -1) {
		die_sys("unable to read %s", path.data);
	}
}

static int
subdir(int dirfd, const char *name, mode_t mode)
{
	int fd;

	if (!S_ISDIR(mode))
		return -1;
	fd = openat(
	    dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		die_sys("unable to open %s", path.data);
	return fd;
}

static char
letter(int a, int b, const char *name, mode_t x, mode_t y)
{
	struct buf old = BUF_INIT, new = BUF_INIT;
	bool same;

	if (S_ISDIR(x))
		x = 0;
	if (S_ISDIR(y))
		y = 0;
	if (!x || !y)
		return x ? 'D' : y ? 'A' : 0;
	if ((x & S_IFMT) != (y & S_IFMT))
		return 'T';
	content(a, name, x, &old);
	content(b, name, y, &new);
	same = old.len ==
	    new.len &&memcmp(buf_str(&old), buf_str(&new), old.len) == 0;
	buf_release(&old);
	buf_release(&new);
	return !same ? 'M' : x != y ? 'm' : 0;
}

static void
entry(int a, int b, const char *name)
{
	mode_t x, y;
	char what;
	int suba, subb;

	look(a, name, &x);
	look(b, name, &y);
	what = letter(a, b, name, x, y);
	if (what) {
		printf("%c %s", what, path.data);
		putchar('\0');
	}
	suba = subdir(a, name, x);
	subb = subdir(b, name, y);
	if (suba != -1 || subb != -1)
		walk(suba, subb);
	io_drop(&suba);
	io_drop(&subb);
}

static void
walk(int a, int b)
{
	struct names names = NAMES_INIT;
	size_t len = path.len;

	if ((a != -1 && names_read(a, &names) == -1) ||
	    (b != -1 && names_read(b, &names) == -1))
		die_sys("unable to list %s", buf_str(&path));
	names_sort(&names);
	for (size_t i = 0; i < names.n; i++) {
		if (i > 0 && strcmp(names.name[i], names.name[i - 1]) == 0)
			continue;
		if (len > 0)
			buf_addc(&path, '/');
		buf_adds(&path, names.name[i]);
		entry(a, b, names.name[i]);
		buf_cut(&path, len);
	}
	names_release(&names);
}

int
main(int argc, char **argv)
{
	int a, b;

	err_init();
	if (argc != 3)
		usage_die("treediff a b");
	a = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	b = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a == -1 || b == -1)
		die_sys("unable to open %s", a == -1 ? argv[1] : argv[2]);
	walk(a, b);
	stdout_done();
	return 0;
}
