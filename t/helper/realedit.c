/* SPDX-License-Identifier: MIT */
/*
 * realedit [-k path] [-n operations] seed [dir...]
 * realedit -t part [-n every] seed [dir...]
 *
 * Changes the tree in the current directory, in dirs only, the way people and
 * programs do: edits in place and by rename, chmod, deletions, moves of files
 * and directories, directories deleted and made again, links, hard links,
 * entries of another kind, new files and trees, xattrs. Equal seeds make equal
 * trees of equal ones, wherever they are: what is done depends on names, sizes
 * and contents only. Says how often it did what.
 *
 * -k: nothing happens to path and to the directories on the way to it. -t:
 * instead edits lines of text files, the same files for part 0 and part 1, one
 * of them near the start and the other behind that; one file in EVERY, and as
 * many that the other part leaves alone. No hidden files: where they are
 * ignored, nothing merges.
 *
 * What has to be so for a session and a plain directory to come out equal:
 *   - A file that is hard-linked below is replaced before it is changed. In a
 *     session a write gives one name a copy of its own.
 *   - A directory from below is moved by a copy, as mv(1) does there.
 *   - All names of a file are in one directory of the top, so that an edit of
 *     another one does not depend on who was there before.
 *   - New content occurs nowhere else, and has a time that the seed gives. What
 *     is what it was when it is published counts as not changed, and keeps its
 *     time and its hard links.
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
#include <sys/xattr.h>
#include <unistd.h>

#include "attr.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "num.h"
#include "path.h"

static const char usage[] = "realedit [-k path] [-n operations] seed [dir...]\n"
			    "realedit -t part [-n every] seed [dir...]";

enum {
	TEXT_MAX = 1 << 20, /* bytes of a file that is edited by lines */
	COPY_MAX = 16 << 20, /* and of one that is changed at all */
	TREE_MAX = 400, /* entries of a directory that is removed or moved */
	FIRST_LINES = 20, /* of a file are for part 0 */
	APART = 8 /* lines between the parts */
};

/* What is there, as far as we know; what is gone stays, marked. */
struct node {
	struct node *up, *child, *next;
	char *name;
	mode_t kind;
	bool gone, keep;
	bool below; /* a directory that was there before */
	bool linked; /* has other names that were there before */
	bool shared; /* has other names that were made here */
	bool mine; /* the content is new */
};

static const char *const pool[] = { "new", "a b", "\"q\"", "-rf",
	"\xe5\xae\x9e\xe6\xb5\x8b", "tab\t", "line\ntwo", " -> ", "back\\slash",
	" lead", "\xff\xfe", "a-b", ".hidden", "bell\a\x7f", "'$(q)'", "a", "Z",
	"a.", "a!" };
static const mode_t modes[] = { 0644, 0755, 0600, 0700, 0640, 0444, 0555, 0664,
	0775, 04755, 02755, 01644 };
static const mode_t dir_modes[] = { 0755, 0700, 0711, 0775, 01777, 02755 };

static uint64_t state, seed;
static unsigned serial; /* of operations, and of what has to be unique */
static struct node root = { .kind = S_IFDIR, .keep = true };
static struct node **all; /* that operations may choose */
static size_t nall, all_cap;

/* xorshift64*, the same everywhere for one seed. */
static unsigned
rnd(unsigned n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)(state * UINT64_C(2685821657736338717) >> 33) % n;
}

/* ---- the model ---- */

static void
add_path(const struct node *n, struct buf *b)
{
	if (n->up != &root && n->up) {
		add_path(n->up, b);
		buf_addc(b, '/');
	}
	buf_adds(b, n == &root ? "." : n->name);
}

/* Caller frees. */
static char *
path_of(const struct node *n)
{
	struct buf b = BUF_INIT;

	add_path(n, &b);
	return buf_steal(&b);
}

static struct node *
node_new(struct node *up, const char *name, mode_t kind)
{
	struct node *n = xcalloc(1, sizeof *n);

	n->up = up;
	n->next = up->child;
	up->child = n;
	n->name = xstrdup(name);
	n->kind = kind;
	return n;
}

static void
choosable(struct node *n)
{
	if (nall == all_cap)
		all = xgrow(all, &all_cap, sizeof(struct node *));
	all[nall++] = n;
}

static struct node *
node_add(struct node *up, const char *name, mode_t kind)
{
	struct node *n = node_new(up, name, kind);

	choosable(n);
	return n;
}

static void
node_gone(struct node *n)
{
	n->gone = true;
	for (struct node *c = n->child; c; c = c->next)
		if (!c->gone)
			node_gone(c);
}

static void
node_move(struct node *n, struct node *up, const char *name)
{
	struct node **p = &n->up->child;

	while (*p != n)
		p = &(*p)->next;
	*p = n->next;
	n->up = up;
	n->next = up->child;
	up->child = n;
	free(n->name);
	n->name = xstrdup(name);
}

static size_t
count(const struct node *n, size_t max)
{
	size_t sum = 1;

	for (const struct node *c = n->child; c && sum <= max; c = c->next)
		if (!c->gone)
			sum += count(c, max - sum);
	return sum;
}

static bool
is_in(const struct node *n, const struct node *dir)
{
	for (; n; n = n->up)
		if (n == dir)
			return true;
	return false;
}

/* ---- what is there ---- */

static struct stat
stat_of(const struct node *n)
{
	char *path = path_of(n);
	struct stat st;

	if (lstat(path, &st) == -1)
		die_sys("unable to stat %s", path);
	free(path);
	return st;
}

struct name_of {
	struct stat st;
	struct node *n;
};
static struct name_of *files; /* with more names than one, maybe */
static size_t nfiles, files_cap;

static void
collect(struct node *dir)
{
	struct names names = NAMES_INIT;
	char *path = path_of(dir);
	struct node *n;
	struct stat st;
	int fd;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || names_read(fd, &names) == -1)
		die_sys("unable to list %s", path);
	for (size_t i = 0; i < names.n; i++) {
		if (path_lstat(fd, names.name[i], &st) == -1)
			die_sys("unable to stat %s/%s", path, names.name[i]);
		n = node_new(dir, names.name[i], st.st_mode & S_IFMT);
		n->below = true;
		if (S_ISREG(st.st_mode) && st.st_nlink > 1) {
			if (nfiles == files_cap)
				files = xgrow(files, &files_cap, sizeof *files);
			files[nfiles++] = (struct name_of){ st, n };
		}
		if (S_ISDIR(st.st_mode))
			collect(n);
	}
	io_drop(&fd);
	names_release(&names);
	free(path);
}

static int
by_inode(const void *a, const void *b)
{
	const struct name_of *x = a, *y = b;

	if (x->st.st_dev != y->st.st_dev)
		return x->st.st_dev < y->st.st_dev ? -1 : 1;
	if (x->st.st_ino != y->st.st_ino)
		return x->st.st_ino < y->st.st_ino ? -1 : 1;
	return 0;
}

/* The number of links says nothing: names may be hidden in a session. */
static void
find_links(void)
{
	if (nfiles > 0)
		qsort(files, nfiles, sizeof *files, by_inode);
	for (size_t i = 1; i < nfiles; i++)
		if (by_inode(&files[i - 1], &files[i]) == 0)
			files[i - 1].n->linked = files[i].n->linked = true;
	free(files);
}

static struct node *
find_child(const struct node *dir, const char *name, size_t len)
{
	struct node *c = dir->child;

	while (c &&
	    (c->gone || strlen(c->name) != len ||
		memcmp(c->name, name, len) != 0))
		c = c->next;
	return c;
}

static struct node *
find(const char *path)
{
	struct node *n = &root;
	size_t len;

	for (; n && *path; path += path[len] ? len + 1 : len) {
		len = strcspn(path, "/");
		n = find_child(n, path, len);
	}
	return n;
}

static void
keep(const char *path)
{
	for (struct node *n = find(path); n; n = n->up)
		n->keep = true;
}

static void
choose_below(struct node *dir)
{
	for (struct node *c = dir->child; c; c = c->next) {
		choosable(c);
		choose_below(c);
	}
}

/* Something of this kind (0: any) that may go. */
static struct node *
any(mode_t kind)
{
	for (int i = 0; i < 100 && nall > 0; i++) {
		struct node *n = all[rnd((unsigned)nall)];

		if (!n->gone && !n->keep && (kind == 0 || n->kind == kind))
			return n;
	}
	return NULL;
}

/* A directory for something new. */
static struct node *
any_dir(void)
{
	for (int i = 0; i < 300 && nall > 0; i++) {
		struct node *n = all[rnd((unsigned)nall)];

		if (!n->gone && n->kind == S_IFDIR)
			return n;
	}
	return NULL;
}

static const struct node *
top_of(const struct node *n)
{
	while (n->up && n->up != &root)
		n = n->up;
	return n;
}

/* A directory where a further name of n may be. */
static struct node *
any_dir_near(const struct node *n)
{
	for (int i = 0; i < 30; i++) {
		struct node *dir = any_dir();

		if (dir && top_of(dir) == top_of(n))
			return dir;
	}
	return NULL;
}

static struct node *
any_file(off_t max)
{
	for (int i = 0; i < 10; i++) {
		struct node *n = any(S_IFREG);

		if (n && stat_of(n).st_size <= max)
			return n;
	}
	return NULL;
}

static off_t
bytes_in(const struct node *n)
{
	off_t sum = n->kind == S_IFREG ? stat_of(n).st_size : 0;

	for (const struct node *c = n->child; c; c = c->next)
		if (!c->gone)
			sum += bytes_in(c);
	return sum;
}

/* A directory that may go with all that is in it. */
static struct node *
any_tree(void)
{
	for (int i = 0; i < 30; i++) {
		struct node *n = any(S_IFDIR);

		if (n && count(n, TREE_MAX) <= TREE_MAX &&
		    bytes_in(n) <= COPY_MAX)
			return n;
	}
	return NULL;
}

/* A name that is in no directory. Caller frees. */
static char *
new_name(void)
{
	return xasprintf(
	    "%s%u", pool[rnd(sizeof pool / sizeof *pool)], ++serial);
}

/* Beside n, for what is renamed to it. Caller frees. */
static char *
aside(const struct node *n)
{
	char *dir = path_of(n->up);
	char *path = xasprintf("%s/.aside%u", dir, ++serial);

	free(dir);
	return path;
}

/* ---- changing it ---- */

static void
set_time(const char *path)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT },
		{ 1600000000 + (time_t)++serial, serial % 1000000 * 997 } };

	if (utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW) == -1)
		die_sys("unable to set the time of %s", path);
}

static void
set_mode(const char *path, mode_t mode)
{
	if (chmod(path, mode & 07777) == -1)
		die_sys("unable to chmod %s", path);
}

/* For writing, also where the mode forbids it. */
static int
open_write(const char *path, const struct stat *st, int flags)
{
	int fd;

	if ((st->st_mode & 0200) == 0)
		set_mode(path, st->st_mode | 0200);
	fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags);
	if (fd == -1)
		die_sys("unable to open %s", path);
	return fd;
}

/* Writing may have cost the file its set-id bits. */
static void
close_written(int fd, const char *path, const struct stat *st)
{
	if (io_close(fd) == -1)
		die_sys("unable to close %s", path);
	if ((st->st_mode & 0200) == 0 || (st->st_mode & 07000) != 0)
		set_mode(path, st->st_mode);
	set_time(path);
}

static void
create(const char *path, const struct buf *b, mode_t mode)
{
	int fd = open(
	    path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd == -1 || io_write_all(fd, buf_str(b), b->len) == -1 ||
	    fchmod(fd, mode & 07777) == -1 || io_close(fd) == -1)
		die_sys("unable to make %s", path);
	set_time(path);
}

static void
move(const char *from, const char *to)
{
	if (rename(from, to) == -1)
		die_sys("unable to rename %s to %s", from, to);
}

static void
remove_tree(const char *path)
{
	if (path_rm_tree(AT_FDCWD, path) == -1)
		die_sys("unable to remove %s", path);
}

static void
copy_attributes(int in, int out, const char *path)
{
	struct buf b = BUF_INIT;
	struct stat st;

	if (attr_xattrs(in, &b, NULL) == -1 || fstat(in, &st) == -1 ||
	    attr_set_xattrs(out, b.data, b.len) == -1 ||
	    attr_set(out, &st, st.st_mode & 07777) == -1)
		die_sys("unable to copy attributes of %s", path);
	buf_release(&b);
}

/*
 * By reading: in an ordinary user's session copy_file_range(2) stops at the
 * size that a file had before it grew under another name.
 */
static void
copy_file(const char *from, const char *to)
{
	static char chunk[1 << 18];
	int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int out = open(
	    to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t n = 1;

	if (in == -1 || out == -1)
		die_sys("unable to copy %s to %s", from, to);
	while (n > 0) {
		n = io_read_some(in, chunk, sizeof chunk);
		if (n == -1 || io_write_all(out, chunk, (size_t)n) == -1)
			die_sys("unable to copy %s to %s", from, to);
	}
	copy_attributes(in, out, from);
	io_drop(&in);
	if (io_close(out) == -1)
		die_sys("unable to close %s", to);
}

static void
copy_link(const char *from, const char *to)
{
	char target[PATH_MAX + 1];
	ssize_t n = readlink(from, target, PATH_MAX);

	if (n == -1)
		die_sys("unable to read %s", from);
	target[n] = '\0';
	if (symlink(target, to) == -1)
		die_sys("unable to link %s", to);
}

static void
make_dir(const char *path, mode_t mode)
{
	if (mkdir(path, 0700) == -1)
		die_sys("unable to make %s", path);
	set_mode(path, mode);
}

static void copy_tree(
    struct node *n, const char *from, struct node *up, const char *name);

static void
copy_children(struct node *n, const char *from, struct node *copy)
{
	char *path;

	for (struct node *c = n->child; c; c = c->next) {
		if (c->gone)
			continue;
		path = xasprintf("%s/%s", from, c->name);
		copy_tree(c, path, copy, c->name);
		free(path);
	}
}

/* Makes what n is, whose path is from, once more as up/name. */
static void
copy_tree(struct node *n, const char *from, struct node *up, const char *name)
{
	struct node *copy = node_add(up, name, n->kind);
	char *to = path_of(copy);
	int in, out;

	copy->mine = n->mine;
	if (n->kind == S_IFLNK) {
		copy_link(from, to);
	} else if (n->kind == S_IFREG) {
		copy_file(from, to);
	} else if (n->kind == S_IFDIR) {
		make_dir(to, 0700);
		copy_children(n, from, copy);
		in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		out = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (in == -1 || out == -1)
			die_sys("unable to open %s", to);
		copy_attributes(in, out, from);
		io_drop(&in);
		io_drop(&out);
	} else {
		/* A socket of the host's: imports leave it out. */
		copy->gone = true;
	}
	free(to);
}

/* A file of its own, of which nothing below knows a second name. */
static void
detach(struct node *n, const char *path)
{
	char *tmp;

	if (!n->linked)
		return;
	tmp = aside(n);
	copy_file(path, tmp);
	move(tmp, path);
	free(tmp);
	n->linked = false;
}

static void
add_line(struct buf *b)
{
	buf_addf(b, "line %u of seed %llu, %u", ++serial,
	    (unsigned long long)seed, rnd(1000));
	if (rnd(10) == 0)
		buf_addc(b, '\r');
	buf_addc(b, '\n');
}

static void
any_content(struct buf *b)
{
	unsigned n = rnd(8) == 0 ? 3000 : rnd(60);

	add_line(b);
	switch (rnd(5)) {
	case 0:
		for (n *= 20; n > 0; n--)
			buf_addc(b, (char)rnd(256));
		break;
	case 1:
		for (; n > 0; n--)
			buf_addc(b, '\0');
		break;
	default:
		for (; n > 0; n--)
			add_line(b);
		break;
	}
}

static void
append(struct node *n, const char *path)
{
	struct buf b = BUF_INIT;
	struct stat st = stat_of(n);
	int fd;

	detach(n, path);
	fd = open_write(path, &st, O_APPEND);
	add_line(&b);
	if (io_write_all(fd, b.data, b.len) == -1)
		die_sys("unable to write to %s", path);
	close_written(fd, path, &st);
	buf_release(&b);
	n->mine = true;
}

/* Whatever is done to it now, it will not be as it was. */
static void
own(struct node *n, const char *path)
{
	if (!n->mine)
		append(n, path);
}

static struct node *
make_file(struct node *dir, const char *name)
{
	struct node *n = node_add(dir, name, S_IFREG);
	struct buf b = BUF_INIT;
	char *path = path_of(n);

	any_content(&b);
	create(
	    path, &b, rnd(3) ? 0644 : modes[rnd(sizeof modes / sizeof *modes)]);
	n->mine = true;
	buf_release(&b);
	free(path);
	return n;
}

static void
make_link(struct node *dir, const char *name)
{
	struct node *n = node_add(dir, name, S_IFLNK);
	struct node *to = any(0);
	char *target = rnd(3) && to ? path_of(to) : new_name();
	char *path = path_of(n);

	if (symlink(target, path) == -1)
		die_sys("unable to link %s", path);
	free(target);
	free(path);
}

static struct node *
make_tree(struct node *dir, const char *name, int depth)
{
	struct node *n = node_add(dir, name, S_IFDIR);
	char *path = path_of(n), *child;

	make_dir(path, rnd(3) ? 0755 : 0700);
	for (unsigned i = rnd(8); i > 0; i--) {
		child = new_name();
		if (depth < 3 && rnd(3) == 0)
			make_tree(n, child, depth + 1);
		else if (rnd(6) == 0)
			make_link(n, child);
		else
			make_file(n, child);
		free(child);
	}
	free(path);
	return n;
}

/* ---- operations: false when there was nothing to do it to ---- */

static bool
read_text(const char *path, struct buf *b)
{
	if (io_read_file_at(AT_FDCWD, path, b, TEXT_MAX) == -1)
		die_sys("unable to read %s", path);
	return b->len > 0 && !memchr(b->data, '\0', b->len);
}

/* Replaces, takes out and puts in lines around a few places. */
static void
edit_lines(const struct buf *old, struct buf *new)
{
	const char *p = old->data, *end = p + old->len;
	unsigned lines = 0, place;

	for (const char *q = p; q < end; q++)
		lines += *q == '\n';
	place = rnd(lines + 1);
	for (unsigned i = 0; p < end; i++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) + 1 : (size_t)(end - p);

		if (i == place) {
			add_line(new);
			place += rnd(4) ? 1 + rnd(3) : 20 + rnd(lines + 1);
		}
		if (i + 1 < place || rnd(3) == 0)
			buf_add(new, p, n);
		p += n;
	}
	add_line(new);
}

static void
overwrite(struct node *n, const char *path, const struct buf *b)
{
	struct stat st;
	int fd;

	detach(n, path);
	st = stat_of(n);
	fd = open_write(path, &st, O_TRUNC);
	if (io_write_all(fd, buf_str(b), b->len) == -1)
		die_sys("unable to write to %s", path);
	close_written(fd, path, &st);
	n->mine = true;
}

/* As editors do: aside, then into its place. */
static void
replace(struct node *n, const char *path, const struct buf *b)
{
	char *tmp = aside(n);

	create(tmp, b, stat_of(n).st_mode);
	move(tmp, path);
	n->linked = false;
	n->mine = true;
	free(tmp);
}

static bool
op_edit(void)
{
	struct node *n = any_file(TEXT_MAX);
	struct buf old = BUF_INIT, new = BUF_INIT;
	char *path;

	if (!n)
		return false;
	path = path_of(n);
	if (read_text(path, &old)) {
		edit_lines(&old, &new);
		if (rnd(3) == 0)
			replace(n, path, &new);
		else
			overwrite(n, path, &new);
	}
	buf_release(&new);
	buf_release(&old);
	free(path);
	return true;
}

/* Some bytes somewhere in a file, or behind its end. */
static bool
op_poke(void)
{
	struct node *n = any_file(COPY_MAX);
	struct buf b = BUF_INIT;
	struct stat st;
	char *path;
	int fd;

	if (!n)
		return false;
	path = path_of(n);
	detach(n, path);
	st = stat_of(n);
	fd = open_write(path, &st, 0);
	for (unsigned i = 1 + rnd(3); i > 0; i--) {
		buf_cut(&b, 0);
		add_line(&b);
		if (pwrite(fd, b.data, b.len,
			(off_t)rnd((unsigned)st.st_size + 8192)) == -1)
			die_sys("unable to write to %s", path);
	}
	close_written(fd, path, &st);
	n->mine = true;
	buf_release(&b);
	free(path);
	return true;
}

static bool
op_append(void)
{
	struct node *n = any_file(COPY_MAX);
	char *path;

	if (!n)
		return false;
	path = path_of(n);
	append(n, path);
	free(path);
	return true;
}

static bool
op_truncate(void)
{
	struct node *n = any_file(COPY_MAX);
	struct stat st;
	char *path;
	int fd;

	if (!n)
		return false;
	path = path_of(n);
	append(n, path);
	st = stat_of(n);
	fd = open_write(path, &st, 0);
	if (ftruncate(fd, rnd((unsigned)st.st_size)) == -1)
		die_sys("unable to truncate %s", path);
	close_written(fd, path, &st);
	append(n, path);
	free(path);
	return true;
}

/* The same bytes once more, and the old time. */
static bool
op_rewrite_same(void)
{
	struct node *n = any_file(TEXT_MAX);
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT } };
	struct buf b = BUF_INIT;
	struct stat st;
	char *path;
	int fd;

	if (!n)
		return false;
	path = path_of(n);
	st = stat_of(n);
	read_text(path, &b);
	fd = open_write(path, &st, O_TRUNC);
	if (io_write_all(fd, buf_str(&b), b.len) == -1)
		die_sys("unable to write to %s", path);
	close_written(fd, path, &st);
	t[1] = st.st_mtim;
	if (utimensat(AT_FDCWD, path, t, 0) == -1)
		die_sys("unable to set the time of %s", path);
	buf_release(&b);
	free(path);
	return true;
}

static bool
op_chmod(void)
{
	struct node *n = rnd(4) ? any_file(COPY_MAX) : any(S_IFDIR);
	char *path;

	if (!n)
		return false;
	path = path_of(n);
	if (n->linked)
		own(n, path);
	if (n->kind == S_IFDIR)
		set_mode(
		    path, dir_modes[rnd(sizeof dir_modes / sizeof *dir_modes)]);
	else
		set_mode(path, modes[rnd(sizeof modes / sizeof *modes)]);
	free(path);
	return true;
}

static bool
op_xattr(void)
{
	struct node *n = rnd(4) ? any_file(COPY_MAX) : any(S_IFDIR);
	const char *name = rnd(2) ? "user.sb" : "user.other";
	const char *value = rnd(2) ? "1" : "another value";
	struct stat st;
	char *path;

	if (!n)
		return false;
	path = path_of(n);
	if (n->linked)
		own(n, path);
	st = stat_of(n);
	if ((st.st_mode & 0200) == 0)
		set_mode(path, st.st_mode | 0200);
	if (rnd(3) == 0) {
		if (removexattr(path, name) == -1 && errno != ENODATA)
			die_sys("unable to remove an xattr of %s", path);
	} else if (setxattr(path, name, value, strlen(value), 0) == -1) {
		die_sys("unable to set an xattr of %s", path);
	}
	if ((st.st_mode & 0200) == 0)
		set_mode(path, st.st_mode);
	free(path);
	return true;
}

static bool
op_delete(void)
{
	struct node *n = any(rnd(4) ? S_IFREG : S_IFLNK);
	char *path;

	if (!n)
		return false;
	path = path_of(n);
	if (unlink(path) == -1)
		die_sys("unable to remove %s", path);
	node_gone(n);
	free(path);
	return true;
}

static bool
op_delete_tree(void)
{
	struct node *n = any_tree();
	char *path;

	if (!n)
		return false;
	path = path_of(n);
	remove_tree(path);
	node_gone(n);
	free(path);
	return true;
}

/* Deleted and made again, with some of the old names, and new ones. */
static bool
op_remake(void)
{
	struct node *old = any_tree(), *new;
	char *path, *name;

	if (!old)
		return false;
	path = path_of(old);
	remove_tree(path);
	node_gone(old);
	new = make_tree(old->up, old->name, 2);
	for (struct node *c = old->child; c; c = c->next) {
		if (rnd(2) == 0 || find_child(new, c->name, strlen(c->name)))
			continue;
		if (rnd(8) == 0)
			make_link(new, c->name);
		else if ((c->kind == S_IFDIR) == (rnd(8) != 0))
			make_tree(new, c->name, 3);
		else
			make_file(new, c->name);
	}
	name = new_name();
	make_file(new, name);
	free(name);
	free(path);
	return true;
}

/* To a new name, or in the place of something else that is no directory. */
static bool
op_move(void)
{
	struct node *n = rnd(4) ? any_file(COPY_MAX) : any(S_IFLNK);
	struct node *over = rnd(3) ? NULL : any(rnd(4) ? S_IFREG : S_IFLNK);
	struct node *dir = over ? over->up : any_dir();
	char *name, *from, *to;

	if (!n || !dir || n == over || (n->shared && top_of(dir) != top_of(n)))
		return false;
	from = path_of(n);
	if (n->kind == S_IFREG && (n->linked || over))
		own(n, from);
	name = over ? xstrdup(over->name) : new_name();
	if (over)
		node_gone(over);
	node_move(n, dir, name);
	to = path_of(n);
	move(from, to);
	free(to);
	free(name);
	free(from);
	return true;
}

static bool
op_move_tree(void)
{
	struct node *n = any_tree(), *dir = n ? any_dir_near(n) : NULL;
	char *name, *from, *to;

	if (!n || !dir || is_in(dir, n))
		return false;
	from = path_of(n);
	name = new_name();
	if (n->below) {
		copy_tree(n, from, dir, name);
		remove_tree(from);
		node_gone(n);
	} else {
		node_move(n, dir, name);
		to = path_of(n);
		move(from, to);
		free(to);
	}
	free(name);
	free(from);
	return true;
}

static bool
op_copy(void)
{
	struct node *n = rnd(4) ? any_file(COPY_MAX) : any_tree();
	struct node *dir = any_dir();
	char *name, *from;

	if (!n || !dir || is_in(dir, n))
		return false;
	from = path_of(n);
	name = new_name();
	copy_tree(n, from, dir, name);
	free(name);
	free(from);
	return true;
}

static bool
op_link(void)
{
	struct node *n = any_file(COPY_MAX), *dir = n ? any_dir_near(n) : NULL;
	struct node *new;
	char *from, *to, *name;

	if (!n || !dir)
		return false;
	from = path_of(n);
	own(n, from);
	name = new_name();
	new = node_add(dir, name, S_IFREG);
	new->mine = true;
	n->shared = new->shared = true;
	to = path_of(new);
	if (link(from, to) == -1)
		die_sys("unable to link %s to %s", from, to);
	free(to);
	free(name);
	free(from);
	return true;
}

/* A link to somewhere else, or a new one. */
static bool
op_symlink(void)
{
	struct node *old = rnd(2) ? any(S_IFLNK) : NULL;
	struct node *dir = old ? old->up : any_dir();
	char *path, *name;

	if (!dir)
		return false;
	name = old ? xstrdup(old->name) : new_name();
	if (old) {
		path = path_of(old);
		if (unlink(path) == -1)
			die_sys("unable to remove %s", path);
		node_gone(old);
		free(path);
	}
	make_link(dir, name);
	free(name);
	return true;
}

/* Another kind in its place. */
static bool
op_kind(void)
{
	struct node *n = rnd(2) ? any_tree() : any(rnd(3) ? S_IFREG : S_IFLNK);
	char *path;

	if (!n)
		return false;
	path = path_of(n);
	remove_tree(path);
	node_gone(n);
	if (n->kind != S_IFLNK && rnd(2))
		make_link(n->up, n->name);
	else if (n->kind != S_IFDIR && rnd(3))
		make_tree(n->up, n->name, 2);
	else if (n->kind != S_IFREG)
		make_file(n->up, n->name);
	free(path);
	return true;
}

static bool
op_new(void)
{
	struct node *dir = any_dir();
	char *name;

	if (!dir)
		return false;
	name = new_name();
	if (rnd(4) == 0)
		make_tree(dir, name, 1);
	else
		make_file(dir, name);
	free(name);
	return true;
}

static struct {
	const char *name;
	unsigned weight;
	bool (*fn)(void);
	unsigned done;
} ops[] = {
	{ "edit", 30, op_edit, 0 },
	{ "write in place", 6, op_poke, 0 },
	{ "append", 5, op_append, 0 },
	{ "truncate", 3, op_truncate, 0 },
	{ "write the same", 2, op_rewrite_same, 0 },
	{ "chmod", 8, op_chmod, 0 },
	{ "xattr", 4, op_xattr, 0 },
	{ "delete", 8, op_delete, 0 },
	{ "delete a directory", 2, op_delete_tree, 0 },
	{ "make a directory again", 3, op_remake, 0 },
	{ "move", 7, op_move, 0 },
	{ "move a directory", 4, op_move_tree, 0 },
	{ "copy", 3, op_copy, 0 },
	{ "hard link", 4, op_link, 0 },
	{ "link", 4, op_symlink, 0 },
	{ "another kind", 3, op_kind, 0 },
	{ "make", 6, op_new, 0 },
};

static void
operate(uint64_t n)
{
	unsigned weights = 0, r, i;

	for (i = 0; i < sizeof ops / sizeof *ops; i++)
		weights += ops[i].weight;
	while (n-- > 0) {
		r = rnd(weights);
		for (i = 0; r >= ops[i].weight; i++)
			r -= ops[i].weight;
		ops[i].done += ops[i].fn();
	}
	printf("seed %llu:", (unsigned long long)seed);
	for (i = 0; i < sizeof ops / sizeof *ops; i++)
		printf(" %s %u%s", ops[i].name, ops[i].done,
		    i + 1 < sizeof ops / sizeof *ops ? "," : "\n");
}

/* ---- parts of text files ---- */

static uint64_t
hash_of(const char *s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return h ^ h >> 29;
}

static unsigned
count_lines(const struct buf *b)
{
	unsigned lines = 0;

	for (size_t i = 0; i < b->len; i++)
		lines += b->data[i] == '\n';
	return lines;
}

/* Part 1 takes no line out, or the file might be too short for part 0 then. */
static void
edit_part(const struct buf *old, struct buf *new, bool part)
{
	unsigned first = part ? FIRST_LINES + APART : 0;
	unsigned last = part ? count_lines(old) : FIRST_LINES;
	unsigned place = first + rnd(last - first);
	const char *p = old->data, *end = p + old->len;

	for (unsigned i = 0; p < end; i++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) + 1 : (size_t)(end - p);
		unsigned how = i == place ? rnd(part ? 2 : 3) : 1;

		if (i == place && how < 2)
			add_line(new);
		if (how == 1)
			buf_add(new, p, n);
		p += n;
	}
}

static void
edit_parts(bool part, uint64_t every)
{
	struct buf old = BUF_INIT, new = BUF_INIT;
	unsigned both = 0, mine = 0;
	struct stat st;

	for (size_t i = 0; i < nall; i++) {
		struct node *n = all[i];
		char *path = path_of(n);
		uint64_t h = hash_of(path), which = h % every;

		buf_cut(&old, 0);
		buf_cut(&new, 0);
		if (n->kind != S_IFREG || n->keep || n->linked ||
		    path[0] == '.' || strstr(path, "/.") ||
		    (which != 0 && which != 1 + (uint64_t)part)) {
			free(path);
			continue;
		}
		st = stat_of(n);
		if (st.st_size <= TEXT_MAX - part * (1 << 16) &&
		    read_text(path, &old) &&
		    count_lines(&old) >= 2 * FIRST_LINES + APART) {
			state = (seed ^ h) | 1;
			for (int k = 0; k < 8; k++)
				rnd(2);
			edit_part(&old, &new, part);
			overwrite(n, path, &new);
			if (!part && h / every % 3 == 0)
				set_mode(path, st.st_mode ^ 0110);
			*(which == 0 ? &both : &mine) += 1;
		}
		free(path);
	}
	printf("seed %llu, part %d: %u files of both, %u of its own\n",
	    (unsigned long long)seed, part, both, mine);
	buf_release(&new);
	buf_release(&old);
}

int
main(int argc, char **argv)
{
	const char *kept[64];
	uint64_t n = 0, part = 2;
	size_t nkept = 0;
	struct node *dir;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+k:n:t:")) != -1) {
		if (opt == 'k' && nkept < sizeof kept / sizeof *kept)
			kept[nkept++] = optarg;
		else if ((opt != 'n' || !num_dec(optarg, 3, UINT32_MAX, &n)) &&
		    (opt != 't' || !num_dec(optarg, 0, 1, &part)))
			usage_die(usage);
	}
	if (optind == argc || !num_dec(argv[optind], 1, UINT32_MAX, &seed))
		usage_die(usage);
	umask(022);
	io_many_fds();
	state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (int i = 0; i < 8; i++)
		rnd(2);
	collect(&root);
	find_links();
	for (size_t i = 0; i < nkept; i++)
		keep(kept[i]);
	if (optind + 1 == argc)
		choose_below(&root);
	for (int i = optind + 1; i < argc; i++) {
		dir = find(argv[i]);
		if (!dir)
			die(EXIT_USAGE, "no such directory: %s", argv[i]);
		dir->keep = true;
		choosable(dir);
		choose_below(dir);
	}
	if (part < 2)
		edit_parts(part == 1, n > 0 ? n : 40);
	else
		operate(n > 0 ? n : 5000);
	stdout_done();
	return 0;
}
