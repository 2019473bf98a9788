/* SPDX-License-Identifier: MIT */
/* Ids and paths, and that opening and removing never follow a link. */
#include "path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mem.h"

#include "tap.h"

static void
test_ids(void)
{
	static const struct {
		const char *s;
		bool good;
	} v[] = {
		{ "B000001-base", true },
		{ "L000002-000000d8", true },
		{ "a", true },
		{ "A._-9", true },
		{ "-rf", true },
		{ "", false },
		{ ".", false },
		{ "..", false },
		{ ".new.x", false },
		{ "a/b", false },
		{ "a b", false },
		{ "a\n", false },
		{ "a\t", false },
		{ "!", false },
		{ "\xc3\xa9", false },
	};
	char *s = xmalloc(ID_MAX + 2);

	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		ok(id_is_valid(v[i].s) == v[i].good, "an id or none");
	memset(s, 'a', ID_MAX + 1);
	s[ID_MAX + 1] = '\0';
	ok(!id_is_valid(s), "an id of 65 bytes");
	s[ID_MAX] = '\0';
	ok(id_is_valid(s), "an id of 64 bytes");
	free(s);
}

/* Names stay as they are: only '/' separates. */
static void
test_paths(void)
{
	static const struct {
		const char *s;
		bool good, reserved;
	} v[] = {
		{ "a", true, false },
		{ "a/b/c", true, false },
		{ "a\\b", true, false },
		{ " foo", true, false },
		{ "foo ", true, false },
		{ "a\nb", true, false },
		{ "-rf", true, false },
		{ "\xff\xfe", true, false },
		{ "...", true, false },
		{ "..a/a..", true, false },
		{ "manifest.json", true, false },
		{ "layers/x", true, false },
		{ ".layer-metadata", true, false },
		{ ".git", true, false },
		{ ".wh", true, false },
		{ ".whx", true, false },
		{ "x.wh.y", true, false },
		{ "wh.foo", true, false },
		{ ".wh.", true, true },
		{ ".wh.foo", true, true },
		{ ".wh..wh..opq", true, true },
		{ "a/.wh.b/c", true, true },
		{ "a/b/.wh.", true, true },
		{ "", false, false },
		{ ".", false, false },
		{ "..", false, false },
		{ "./", false, false },
		{ "./a", false, false },
		{ "a/.", false, false },
		{ "a/../b", false, false },
		{ "../a", false, false },
		{ "a//b", false, false },
		{ "a/", false, false },
		{ "/abs", false, false },
	};
	char *s = xmalloc(PATH_BYTES_MAX + 2);

	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		ok(path_is_valid(v[i].s) == v[i].good &&
			path_is_reserved(v[i].s) == v[i].reserved,
		    "a path or none");
	memset(s, 'a', PATH_BYTES_MAX + 1);
	s[PATH_BYTES_MAX + 1] = '\0';
	ok(!path_is_valid(s), "a path of 4096 bytes");
	s[PATH_BYTES_MAX] = '\0';
	ok(path_is_valid(s), "a path of 4095 bytes");
	free(s);
}

static void
test_parts(void)
{
	ok(path_is_below("a/b", "a"), "below");
	ok(path_is_below("a", "a"), "equal is below");
	ok(path_is_below("a", ""), "everything is below the root");
	ok(!path_is_below("ab", "a"), "a prefix that is no component");
	ok(!path_is_below("a", "a/b"), "above is not below");
	ok(strcmp(path_base("a/b/c"), "c") == 0, "base of a path");
	ok(strcmp(path_base("c"), "c") == 0, "base of a name");
	ok(path_parent_len("a/b/c") == 3, "parent of a path");
	ok(path_parent_len("c") == 0, "parent of a name");
}

static void
touch(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd == -1)
		exit(111);
	close(fd);
}

static void
test_files(void)
{
	char top[] = "/tmp/sb-path.XXXXXX", *where;
	struct names v = NAMES_INIT;
	struct stat st;
	int dir, fd;

	if (!mkdtemp(top) || chdir(top) == -1 || mkdir("t", 0700) == -1 ||
	    mkdir("t/d", 0700) == -1 || symlink("..", "t/up") == -1 ||
	    symlink("d", "t/link") == -1)
		exit(111);
	dir = open("t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	touch(dir, "d/b");
	touch(dir, "d/a\n\xff");
	touch(AT_FDCWD, "outside");

	ok(path_open(dir, "d/b", O_RDONLY, 0) != -1, "a file beneath opens");
	ok(path_open(dir, "", O_RDONLY | O_DIRECTORY, 0) != -1, "itself opens");
	ok(path_open(dir, "../outside", O_RDONLY, 0) == -1 && errno == EXDEV,
	    "nothing above opens");
	ok(path_open(dir, "up/outside", O_RDONLY, 0) == -1 && errno == ELOOP,
	    "no link on the way is followed");
	ok(path_open(dir, "link", O_RDONLY, 0) == -1 && errno == ELOOP,
	    "no link at the end is followed");

	fd = path_open(dir, "d", O_RDONLY | O_DIRECTORY, 0);
	ok(names_read(fd, &v) == 0 && v.n == 2 &&
		strcmp(v.name[0], "a\n\xff") == 0 &&
		strcmp(v.name[1], "b") == 0,
	    "names are sorted, any bytes");
	ok(names_has(&v, "b") && !names_has(&v, "c"), "names are found");
	names_release(&v);

	where = path_of_fd(fd);
	ok(where && strcmp(where + strlen(where) - 4, "/t/d") == 0,
	    "a directory knows its path");
	free(where);
	if (chmod("t/d", 0) == -1)
		exit(111);
	ok(path_rm_tree(dir, "d") == 0 && path_lstat(dir, "d", &st) == -1,
	    "a tree without permissions is removed");
	where = path_of_fd(fd);
	ok(!where && errno == ENOENT, "a deleted directory has no path");
	ok(path_rm_tree(dir, "d") == 0, "what is not there is removed");
	ok(path_rm_tree(dir, "up") == 0 && lstat("outside", &st) == 0,
	    "removing a link leaves what it names");
	ok(path_rm_tree(AT_FDCWD, top) == 0 && lstat(top, &st) == -1,
	    "all is removed");
}

int
main(void)
{
	test_ids();
	test_paths();
	test_parts();
	test_files();
	return done();
}
