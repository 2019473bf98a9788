/* SPDX-License-Identifier: MIT */
/*
 * treelist [-mo] [dir]: one line for each entry of a tree and for its root, in
 * the order of paths, so that cmp(1) compares two trees and diff(1) says where
 * they differ: kind, mode, size, owner, time of modification, hash of the
 * content, hash of the user xattrs, path of the first entry that is the same
 * inode, path, target. What does not apply or is not asked for is "-". Times
 * of directories and links are not shown. -m: no times at all. -o: owners.
 *
 * The hash of a content leaves out blocks of zeros, so a hole and the zeros
 * written into it are the same, and a hole costs no time.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attr.h"
#include "buf.h"
#include "err.h"
#include "hash.h"
#include "io.h"
#include "mem.h"
#include "path.h"

enum {
	BLOCK = 4096,
	CHUNK = 256 * BLOCK
};

/* Inodes with more names than one, an open hash table. */
static struct inode {
	dev_t dev;
	ino_t ino;
	char *first;
} *inodes;
static size_t ninodes, cap;

static struct buf path;
static bool times = true, owners;

static struct inode *
slot(dev_t dev, ino_t ino)
{
	size_t i = (size_t)((uint64_t)(ino ^ (dev << 20)) *
			   UINT64_C(0x9e3779b97f4a7c15) >>
		       20) &
	    (cap - 1);

	while (
	    inodes[i].first && (inodes[i].dev != dev || inodes[i].ino != ino))
		i = (i + 1) & (cap - 1);
	return &inodes[i];
}

static void
make_room(void)
{
	struct inode *old = inodes;
	size_t n = cap;

	if (2 * (ninodes + 1) <= cap)
		return;
	cap = cap > 0 ? 2 * cap : 1024;
	inodes = xcalloc(cap, sizeof *inodes);
	for (size_t i = 0; i < n; i++)
		if (old[i].first)
			*slot(old[i].dev, old[i].ino) = old[i];
	free(old);
}

/* The path under which this inode was seen first, or NULL. Borrowed. */
static const char *
seen(const struct stat *st)
{
	struct inode *s;

	make_room();
	s = slot(st->st_dev, st->st_ino);
	if (s->first)
		return s->first;
	*s = (struct inode){ st->st_dev, st->st_ino, xstrdup(path.data) };
	ninodes++;
	return NULL;
}

/* Bytes that would make two fields or lines of one look like others. */
static void
put_name(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s >= 0x7f || *s == '\\')
			printf("\\%03o", (unsigned char)*s);
		else
			putchar(*s);
}

static bool
is_zero(const char *p, size_t n)
{
	return p[0] == '\0' && memcmp(p, p + 1, n - 1) == 0;
}

/*
 * The content that is not zero, block by block; where some is left out, the
 * place where it goes on.
 */
static void
put_content(int fd, const struct stat *st)
{
	static char chunk[CHUNK];
	char hex[HASH_HEX + 1];
	off_t at = 0, next = 0;
	struct hash h;
	ssize_t n;

	hash_init(&h);
	while (at < st->st_size) {
		if (st->st_blocks < st->st_size / 512)
			at = lseek(fd, at, SEEK_DATA);
		if (at == -1 && errno == ENXIO)
			break;
		n = at == -1 ? -1 : pread(fd, chunk, sizeof chunk, at);
		if (n == -1)
			die_sys("unable to read %s", path.data);
		if (n == 0)
			break;
		for (size_t i = 0, len; i < (size_t)n; i += len) {
			len = (size_t)n - i < BLOCK ? (size_t)n - i : BLOCK;
			if (is_zero(chunk + i, len))
				continue;
			if (at + (off_t)i != next) {
				next = at + (off_t)i;
				hash_add(&h, &next, sizeof next);
			}
			hash_add(&h, chunk + i, len);
			next += (off_t)len;
		}
		at += n;
	}
	hash_hex(&h, hex);
	printf(" %s", hex);
}

static void
put_xattrs(int fd)
{
	struct buf b = BUF_INIT;
	char hex[HASH_HEX + 1] = "-";
	struct hash h;

	if (attr_xattrs(fd, &b, NULL) == -1)
		die_sys("unable to read xattrs of %s", path.data);
	if (b.len > 0) {
		hash_init(&h);
		hash_add(&h, b.data, b.len);
		hash_hex(&h, hex);
	}
	printf(" %.16s", hex);
	buf_release(&b);
}

static void
put_owner(const struct stat *st)
{
	if (owners)
		printf(" %u:%u", st->st_uid, st->st_gid);
	else
		printf(" -");
}

static void
put_file(int fd, const struct stat *st)
{
	const char *first = st->st_nlink > 1 ? seen(st) : NULL;

	printf("f %04o %lld", st->st_mode & 07777, (long long)st->st_size);
	put_owner(st);
	if (times)
		printf(" %lld.%09ld", (long long)st->st_mtim.tv_sec,
		    st->st_mtim.tv_nsec);
	else
		printf(" -");
	put_content(fd, st);
	put_xattrs(fd);
	putchar(' ');
	put_name(first ? first : "-");
}

static void
put_link(int dirfd, const char *name, const struct stat *st)
{
	char target[PATH_MAX + 1];
	ssize_t n = readlinkat(dirfd, name, target, PATH_MAX);

	if (n == -1)
		die_sys("unable to read link %s", path.data);
	target[n] = '\0';
	printf("l - -");
	put_owner(st);
	printf(" - - - - ");
	put_name(path.data);
	putchar(' ');
	put_name(target);
	putchar('\n');
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

static void entry(int dirfd, const char *name);

static void
put_dir(int fd, const struct stat *st)
{
	struct names names = NAMES_INIT;
	size_t len = path.len;

	printf("d %04o -", st->st_mode & 07777);
	put_owner(st);
	printf(" - -");
	put_xattrs(fd);
	printf(" - ");
	put_name(path.data);
	putchar('\n');
	if (names_read(fd, &names) == -1)
		die_sys("unable to list %s", path.data);
	for (size_t i = 0; i < names.n; i++) {
		buf_addc(&path, '/');
		buf_adds(&path, names.name[i]);
		entry(fd, names.name[i]);
		buf_cut(&path, len);
	}
	names_release(&names);
}

static void
entry(int dirfd, const char *name)
{
	struct stat st;
	int fd;

	if (path_lstat(dirfd, name, &st) == -1)
		die_sys("unable to stat %s", path.data);
	if (S_ISDIR(st.st_mode)) {
		fd = open_at(dirfd, name, O_DIRECTORY);
		put_dir(fd, &st);
		io_drop(&fd);
	} else if (S_ISREG(st.st_mode)) {
		fd = open_at(dirfd, name, 0);
		put_file(fd, &st);
		io_drop(&fd);
		putchar(' ');
		put_name(path.data);
		putchar('\n');
	} else if (S_ISLNK(st.st_mode)) {
		put_link(dirfd, name, &st);
	} else {
		printf("s - - - - - - - ");
		put_name(path.data);
		putchar('\n');
	}
}

int
main(int argc, char **argv)
{
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+mo")) != -1) {
		if (opt == 'm')
			times = false;
		else if (opt == 'o')
			owners = true;
		else
			usage_die("treelist [-mo] [dir]");
	}
	if (argc - optind > 1)
		usage_die("treelist [-mo] [dir]");
	io_many_fds();
	if (optind < argc && chdir(argv[optind]) == -1)
		die_sys("unable to enter %s", argv[optind]);
	buf_adds(&path, ".");
	entry(AT_FDCWD, ".");
	stdout_done();
	return 0;
}
