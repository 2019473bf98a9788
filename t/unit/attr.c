/* SPDX-License-Identifier: MIT */
/* What travels with an entry, and whiteouts in all their forms. */
#include "attr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "io.h"
#include "path.h"
#include "whiteout.h"

#include "tap.h"

static int dir;

static int
make(const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd == -1)
		exit(111);
	return fd;
}

static void
put(int fd, const char *name, const char *value, size_t n)
{
	if (fsetxattr(fd, name, value, n, 0) == -1)
		exit(111);
}

static bool
has(int fd, const char *name, const char *value)
{
	char got[64];
	ssize_t n = fgetxattr(fd, name, got, sizeof got);

	if (!value)
		return n == -1 && errno == ENODATA;
	return n == (ssize_t)strlen(value) &&
	    memcmp(got, value, strlen(value)) == 0;
}

static void
test_xattrs(void)
{
	static const char want[] = "user.a\0\0\0\0\0\0\0\0\0"
				   "user.b\0\3\0\0\0\0\0\0\0x\0y"
				   "user.overlay\0\1\0\0\0\0\0\0\0o";
	int a = make("a"), b = make("b");
	struct buf one = BUF_INIT, two = BUF_INIT;
	size_t dropped = 0;

	ok(attr_xattrs(a, &one, &dropped) == 0 && one.len == 0 && dropped == 0,
	    "a file without xattrs");
	put(a, "user.overlay", "o", 1);
	put(a, "user.b", "x\0y", 3);
	put(a, "user.a", "", 0);
	put(a, "user.overlay.opaque", "y", 1);
	put(b, "user.c", "old", 3);
	put(b, "user.b", "old", 3);
	put(b, "user.overlay.keep", "k", 1);
	ok(attr_xattrs(a, &one, &dropped) == 0 && one.len == sizeof want - 1 &&
		memcmp(one.data, want, one.len) == 0,
	    "sorted, with sizes, without those of overlayfs");
	ok(dropped == 1, "which are counted");
	ok(attr_set_xattrs(b, one.data, one.len) == 0 &&
		attr_xattrs(b, &two, NULL) == 0 && two.len == one.len &&
		memcmp(one.data, two.data, one.len) == 0,
	    "another file gets exactly these");
	ok(has(b, "user.c", NULL) && has(b, "user.overlay.keep", "k") &&
		has(b, "user.overlay.opaque", NULL),
	    "others go, those of overlayfs stay");
	ok(attr_set_xattrs(b, "", 0) == 0 && has(b, "user.a", NULL),
	    "the empty set");
	buf_release(&one);
	buf_release(&two);
	io_drop(&a);
	io_drop(&b);
}

static void
test_stat(void)
{
	struct stat st = { .st_uid = geteuid(), .st_gid = getegid() }, got;
	int fd = make("s");

	st.st_mtim = (struct timespec){ 981173106, 123456789 };
	if (geteuid() == 0) {
		st.st_uid = 12;
		st.st_gid = 34;
	}
	ok(attr_set(fd, &st, 06751) == 0 && fstat(fd, &got) == 0 &&
		(got.st_mode & 07777) == 06751,
	    "set-id bits survive the change of owner");
	ok(got.st_uid == st.st_uid && got.st_gid == st.st_gid, "owner");
	ok(got.st_mtim.tv_sec == 981173106 && got.st_mtim.tv_nsec == 123456789,
	    "mtime, to the nanosecond");
	io_drop(&fd);
	if (symlinkat("s", dir, "l") == -1)
		exit(111);
	st.st_mtim.tv_sec = 1;
	ok(attr_set_link(dir, "l", &st) == 0 &&
		path_lstat(dir, "l", &got) == 0 && got.st_mtim.tv_sec == 1 &&
		got.st_uid == st.st_uid,
	    "a link");
	ok(path_lstat(dir, "s", &got) == 0 && got.st_mtim.tv_sec == 981173106,
	    "not what it names");
}

/* Both questions about dir/name. */
static bool
is(const char *name, int layer, int upper)
{
	struct stat st;

	return path_lstat(dir, name, &st) == 0 &&
	    whiteout_is(dir, name, &st) == layer &&
	    whiteout_is_upper(dir, name, &st) == upper;
}

static void
test_whiteouts(void)
{
	struct stat st;
	int fd;

	ok(whiteout_make(dir, "w") == 0 && path_lstat(dir, "w", &st) == 0 &&
		whiteout_is_device(&st) && (st.st_mode & 07777) == 0644,
	    "a device 0:0 of mode 0644 is made");
	ok(is("w", 1, 1), "and is a whiteout");
	ok(whiteout_make(dir, "w") == -1 && errno == EEXIST,
	    "not where something is");
	fd = make("empty");
	ok(is("empty", 0, 0), "an empty file is none");
	put(fd, "user.overlay.whiteout", "", 0);
	ok(is("empty", 1, 1), "with the xattr it is, whatever the value");
	ok(io_write_all(fd, "x", 1) == 0 && is("empty", 0, 0),
	    "but not when it has content");
	io_drop(&fd);
	if (mkfifoat(dir, "fifo", 0600) == -1 ||
	    symlinkat("empty", dir, "tolink") == -1)
		exit(111);
	ok(is("fifo", 0, 0) && is("tolink", 0, 0),
	    "a FIFO and a link are none");
	if (geteuid() == 0) {
		fd = make("t");
		put(fd, "trusted.overlay.whiteout", "y", 1);
		ok(is("t", 1, 0),
		    "the trusted form counts in a layer, not in an upper");
		io_drop(&fd);
		if (mknodat(dir, "null", S_IFCHR | 0600, makedev(1, 3)) == -1)
			exit(111);
		ok(is("null", 0, 0), "another device is none");
	}
}

static void
test_opaque(void)
{
	int fd;

	if (mkdirat(dir, "d", 0700) == -1)
		exit(111);
	fd = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok(whiteout_dir_is_opaque(fd) == 0, "a directory is not opaque");
	put(fd, "user.overlay.opaque", "x", 1);
	ok(whiteout_dir_is_opaque(fd) == 0, "nor with another value");
	put(fd, "user.overlay.opaque", "yy", 2);
	ok(whiteout_dir_is_opaque(fd) == 0, "nor with more");
	put(fd, "user.overlay.opaque", "a longer value", 14);
	ok(whiteout_dir_is_opaque(fd) == 0, "nor with much more");
	ok(whiteout_mark_opaque(fd) == 0 && whiteout_dir_is_opaque(fd) == 1,
	    "until it is marked");
	ok(has(fd, "user.overlay.opaque", "y"), "by the xattr");
	io_drop(&fd);
}

int
main(void)
{
	char top[] = "/tmp/sb-attr.XXXXXX";

	if (!mkdtemp(top))
		exit(111);
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	test_xattrs();
	test_stat();
	test_whiteouts();
	test_opaque();
	if (path_rm_tree(AT_FDCWD, top) == -1)
		exit(111);
	return done();
}
