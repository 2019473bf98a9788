/* SPDX-License-Identifier: MIT */
/*
 * treediff [-g|-u] a b: says what differs in two trees, in the words of sb-diff
 * -z: letter, space, path, NUL; A M D T m. It walks both and compares every
 * byte, so it can judge programs that are cleverer. -g: as git sees trees,
 * without directories, xattrs, and modes but one bit of a file's.
 *
 * -u: says instead which new paths of b git-apply(1) cannot come to from a. It
 * looks at them before it writes anything, and where a directory takes the
 * place of a symbolic link, it looks through the link: what it must not see
 * there is an error like ELOOP, or another link on the way.
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

#include "attr.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "path.h"

/* What the way to an entry of b is in a, for -u. */
enum way {
	WAY_PLAIN,
	WAY_LINK, /* a link, and what is behind it */
	WAY_LINKS /* the same with a second link in it: git refuses */
};

static struct buf path;
static bool as_git, unreachable;
static int root; /* of a */

static void walk(int a, int b, enum way way);

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

static int
open_at(int dirfd, const char *name, int flags)
{
	int fd = openat(dirfd, name,
	    O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | flags);

	if (fd == -1)
		die_sys("unable to open %s", path.data);
	return fd;
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

static void
xattrs(int dirfd, const char *name, mode_t mode, struct buf *out)
{
	int fd = open_at(dirfd, name, S_ISDIR(mode) ? O_DIRECTORY : 0);

	if (attr_xattrs(fd, out, NULL) == -1)
		die_sys("unable to read xattrs of %s", path.data);
	io_drop(&fd);
}

static bool
same(int a, int b, const char *name, mode_t mode,
    void (*get)(int dirfd, const char *name, mode_t mode, struct buf *out))
{
	struct buf old = BUF_INIT, new = BUF_INIT;
	bool equal;

	get(a, name, mode, &old);
	get(b, name, mode, &new);
	equal = buf_equal(&old, &new);
	buf_release(&old);
	buf_release(&new);
	return equal;
}

static bool
same_attributes(int a, int b, const char *name, mode_t x, mode_t y)
{
	if (S_ISLNK(x))
		return true;
	if (as_git)
		return (x & 0100) == (y & 0100);
	return x == y && same(a, b, name, x, xattrs);
}

static bool
is_empty(int fd)
{
	struct names names = NAMES_INIT;
	bool empty;

	if (names_read(fd, &names) == -1)
		die_sys("unable to list %s", path.data);
	empty = names.n == 0;
	names_release(&names);
	return empty;
}

static void
say(char letter, const char *tail)
{
	printf("%c %s%s", letter, path.data, tail);
	putchar('\0');
}

static void
compare_files(int a, int b, const char *name, mode_t x, mode_t y)
{
	if (S_ISDIR(x))
		x = 0;
	if (S_ISDIR(y))
		y = 0;
	if (!x || !y) {
		if (x || y)
			say(x ? 'D' : 'A', "");
	} else if ((x & S_IFMT) != (y & S_IFMT)) {
		say('T', "");
	} else if (!same(a, b, name, x, content)) {
		say('M', "");
	} else if (!same_attributes(a, b, name, x, y)) {
		say('m', "");
	}
}

/* A directory counts when nothing in it does. */
static void
compare_dirs(
    int a, int b, const char *name, mode_t x, mode_t y, int suba, int subb)
{
	if (suba != -1 && subb != -1) {
		if (!same_attributes(a, b, name, x, y))
			say('m', "/");
	} else if (suba != -1) {
		if (!y && is_empty(suba))
			say('D', "/");
	} else if (subb != -1 && is_empty(subb)) {
		say('A', "/");
	}
}

static enum way
try_way(mode_t x, mode_t y, enum way way)
{
	struct stat st;
	int rc;

	if (way == WAY_PLAIN)
		return S_ISLNK(x) && S_ISDIR(y) ? WAY_LINK : WAY_PLAIN;
	rc = fstatat(root, path.data, &st, AT_SYMLINK_NOFOLLOW);
	if (S_ISDIR(y))
		return rc == 0 && S_ISLNK(st.st_mode) ? WAY_LINKS : way;
	if (way == WAY_LINKS ||
	    (rc == -1 && errno != ENOENT && errno != ENOTDIR))
		say('A', "");
	return way;
}

static void
entry(int a, int b, const char *name, enum way way)
{
	mode_t x, y;
	int suba = -1, subb = -1;

	look(a, name, &x);
	look(b, name, &y);
	if (S_ISDIR(x))
		suba = open_at(a, name, O_DIRECTORY);
	if (S_ISDIR(y))
		subb = open_at(b, name, O_DIRECTORY);
	if (unreachable) {
		way = y ? try_way(x, y, way) : WAY_PLAIN;
	} else {
		compare_files(a, b, name, x, y);
		if (!as_git)
			compare_dirs(a, b, name, x, y, suba, subb);
	}
	if (suba != -1 || subb != -1)
		walk(suba, subb, way);
	io_drop(&suba);
	io_drop(&subb);
}

static void
walk(int a, int b, enum way way)
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
		entry(a, b, names.name[i], way);
		buf_cut(&path, len);
	}
	names_release(&names);
}

int
main(int argc, char **argv)
{
	int b, opt;

	err_init();
	while ((opt = getopt(argc, argv, "+gu")) != -1) {
		if (opt == 'g')
			as_git = true;
		else if (opt == 'u')
			unreachable = true;
		else
			usage_die("treediff [-g|-u] a b");
	}
	if (optind + 2 != argc)
		usage_die("treediff [-g|-u] a b");
	root = open(argv[optind], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	b = open(argv[optind + 1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root == -1 || b == -1)
		die_sys("unable to open %s", argv[optind + (root != -1)]);
	walk(root, b, WAY_PLAIN);
	stdout_done();
	return 0;
}
