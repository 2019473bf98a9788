/* SPDX-License-Identifier: MIT */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "mem.h"
#include "path.h"
#include "tap.h"

#define DEEP 2000

static bool
is_str(const char *a, const char *b)
{
	return a && strcmp(a, b) == 0;
}

static void
file(int dirfd, const char *name, const char *text)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd == -1 || io_write_all(fd, text, strlen(text)) == -1)
		die_sys("unable to write %s", name);
	io_drop(&fd);
}

static int
dir(int dirfd, const char *name)
{
	int fd;

	if (mkdirat(dirfd, name, 0755) == -1)
		die_sys("unable to make %s", name);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		die_sys("unable to open %s", name);
	return fd;
}

static void
test_cache_dir(void)
{
	ok(is_str(base_cache_dir("/x", "/h"), "/x/sb"),
	    "the cache is below XDG_CACHE_HOME");
	ok(is_str(base_cache_dir(NULL, "/h"), "/h/.cache/sb"),
	    "or else below HOME");
	ok(is_str(base_cache_dir("", "/h"), "/h/.cache/sb"),
	    "an empty XDG_CACHE_HOME is not set");
	ok(is_str(base_cache_dir("rel", "/h"), "/h/.cache/sb"),
	    "nor is a relative one");
	ok(!base_cache_dir(NULL, "h") && !base_cache_dir("x", NULL),
	    "nothing absolute means no cache");
}

/* The tree of the golden vector. */
static void
golden(int top)
{
	int fd = dir(top, "golden"), sub = dir(fd, "dir");

	file(sub, "f.txt", "hello\n");
	if (symlinkat("dir/f.txt", fd, "l") == -1)
		die_sys("unable to make a link");
	io_drop(&sub);
	io_drop(&fd);
}

static void
test_hash_tree(int top)
{
	char hex[HASH_HEX + 1];
	char *where = NULL;
	int fd;

	golden(top);
	fd = openat(top, "golden", O_RDONLY | O_DIRECTORY);
	ok(base_hash_tree(fd, hex, &where) == 0 &&
		is_str(hex,
		    "e1dfd0574f0bf8783159b50c2d1547ba1f8f86a78f45f238ae519940"
		    "396aa839"),
	    "the golden tree has the golden hash");
	if (linkat(fd, "dir/f.txt", fd, "a", 0) == -1 ||
	    linkat(fd, "dir/f.txt", fd, "z", 0) == -1)
		die_sys("unable to link");
	ok(base_hash_tree(fd, hex, &where) == 0 &&
		is_str(hex,
		    "2be46d140493e2c46b573122f9ec5c28133ad32f1418948d8879b0f7"
		    "d0e0ff17"),
	    "names of one inode are hashed one by one");
	if (mkfifoat(fd, "dir/fifo", 0644) == -1)
		die_sys("unable to make a FIFO");
	ok(base_hash_tree(fd, hex, &where) == -1 && errno == EINVAL &&
		is_str(where, "dir/fifo"),
	    "a FIFO is no entry of a base and is named");
	io_drop(&fd);
	ok(base_rm_tree(top, "golden") == 0 &&
		faccessat(top, "golden", F_OK, 0) == -1,
	    "the tree is removed");
	ok(base_rm_tree(top, "golden") == 0, "removing nothing is success");
}

static struct base_entry
entry(const char *path, mode_t mode, const char *target)
{
	struct base_entry e = {
		.st = { .mode = mode, .mtime = 100, .uid = 7, .gid = 8 },
		.path = xstrdup(path),
		.target = target ? xstrdup(target) : NULL,
	};
	struct hash h;

	if (S_ISREG(mode)) {
		e.st.size = 6;
		hash_init(&h);
		hash_add(&h, "hello\n", 6);
		hash_raw(&h, e.content);
	}
	return e;
}

static void
sample(struct base_list *l)
{
	struct base_entry v[] = {
		entry("l", S_IFLNK | 0777, "dir/f.txt"),
		entry("dir/f.txt", S_IFREG | 0644, NULL),
		entry("", S_IFDIR | 0755, NULL),
		entry("dir", S_IFDIR | 0755, NULL),
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		base_list_add(l, &v[i]);
	base_list_sort(l);
}

/* Does the key change with one change? The root hash as said. */
static void
differs(void (*change)(struct base_list *), bool owners, bool key, bool root,
    const char *what)
{
	struct base_list a = BASE_LIST_INIT, b = BASE_LIST_INIT;
	char ka[HASH_HEX + 1], kb[HASH_HEX + 1];
	char ra[HASH_HEX + 1], rb[HASH_HEX + 1];

	sample(&a);
	sample(&b);
	change(&b);
	base_key(&a, owners, ka);
	base_key(&b, owners, kb);
	base_root_hash(&a, ra);
	base_root_hash(&b, rb);
	ok((strcmp(ka, kb) != 0) == key && (strcmp(ra, rb) != 0) == root, what);
	base_list_release(&a);
	base_list_release(&b);
}

/* In the order of their paths: root, dir, dir/f.txt, l. */
static void
no_change(struct base_list *l)
{
	l->v[2].st.ctime++;
	l->v[2].st.ino++;
	l->v[1].st.size++;
}

static void
root_mode(struct base_list *l)
{
	l->v[0].st.mode ^= 01;
}

static void
file_mode(struct base_list *l)
{
	l->v[2].st.mode ^= S_ISUID;
}

static void
file_mtime(struct base_list *l)
{
	l->v[2].st.mtime_ns++;
}

static void
file_xattrs(struct base_list *l)
{
	l->v[2].xattrs[0]++;
}

static void
file_content(struct base_list *l)
{
	l->v[2].content[0]++;
}

static void
link_target(struct base_list *l)
{
	l->v[3].target[0]++;
}

static void
owner(struct base_list *l)
{
	l->v[2].st.uid++;
}

static void
test_hashes(void)
{
	struct base_list l = BASE_LIST_INIT;
	char a[HASH_HEX + 1], b[HASH_HEX + 1];
	struct base_entry e;

	sample(&l);
	base_root_hash(&l, a);
	ok(is_str(a,
	       "e1dfd0574f0bf8783159b50c2d1547ba1f8f86a78f45f238ae519940"
	       "396aa839"),
	    "a sorted list has the golden hash");
	differs(no_change, true, false, false,
	    "ctime, inode, size of a "
	    "directory are in no hash");
	differs(root_mode, true, true, false, "the root's mode is in the key");
	differs(file_mode, true, true, false, "a mode is in the key only");
	differs(file_mtime, true, true, false, "a time is in the key only");
	differs(file_xattrs, true, true, false,
	    "extended attributes are in the key only");
	differs(owner, true, true, false, "an owner that is copied is in it");
	differs(owner, false, false, false, "one that is not copied is not");
	differs(file_content, true, true, true, "content is in both");
	differs(link_target, true, true, true, "a target is in both");

	e = entry("z", S_IFREG | 0644, NULL);
	base_list_add(&l, &e);
	base_key(&l, true, a);
	l.v[2].group = l.v[4].group = l.groups = 1;
	base_key(&l, true, b);
	ok(strcmp(a, b) != 0, "that two names are one file is in the key");
	l.v[4].group = l.groups = 2;
	base_key(&l, true, b);
	ok(strcmp(a, b) == 0, "that other names lie elsewhere is not");
	base_list_release(&l);
}

static enum base_trust
look(const struct base_index *x, const struct base_entry *e,
    struct base_entry *out, const char **target)
{
	*out = (struct base_entry){ .st = e->st };
	return base_index_find(x, e->path, out, target);
}

static void
save(int top, int64_t start, const struct base_list *l)
{
	if (base_index_save(top, "index", "/the/dir", start, l) == -1)
		die_sys("unable to write an index");
}

static void
test_trust(int top)
{
	struct base_list l = BASE_LIST_INIT;
	struct base_index x = BASE_INDEX_INIT;
	struct base_entry e, now;
	const char *target = NULL;
	struct {
		int64_t start;
		enum base_trust want;
		const char *what;
	} rules[] = {
		{ 1000, BASE_UNSURE, "a ctime of the walk's own time" },
		{ 999, BASE_UNSURE, "a ctime after the walk" },
		{ 1002, BASE_UNSURE, "a ctime less than 2 s before" },
		{ 1003, BASE_SAME, "a ctime more than 2 s before" },
	};

	sample(&l);
	for (size_t i = 0; i < l.n; i++) {
		l.v[i].st.ctime = 1000;
		l.v[i].st.dropped = (uint32_t)i;
	}
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		save(top, rules[i].start, &l);
		ok(base_index_load(&x, top, "index", "/the/dir") &&
			look(&x, &l.v[2], &now, &target) == rules[i].want,
		    rules[i].what);
		base_index_release(&x);
	}
	ok(base_index_load(&x, top, "index", "/the/dir") && x.n == l.n,
	    "an index is read back");
	ok(look(&x, &l.v[2], &now, &target) == BASE_SAME &&
		memcmp(now.content, l.v[2].content, 32) == 0 &&
		now.st.dropped == 2,
	    "what was found last time is told");
	ok(look(&x, &l.v[3], &now, &target) == BASE_SAME &&
		is_str(target, "dir/f.txt"),
	    "so is the target of a link");
	e = l.v[2];
	e.st.ctime_ns++;
	ok(look(&x, &e, &now, &target) == BASE_UNSURE, "another ctime: read");
	e = l.v[2];
	e.st.ino++;
	ok(look(&x, &e, &now, &target) == BASE_UNSURE, "another inode: read");
	e = l.v[2];
	e.st.mtime++;
	ok(look(&x, &e, &now, &target) == BASE_NEW, "another mtime: new");
	e = l.v[2];
	e.st.size++;
	ok(look(&x, &e, &now, &target) == BASE_NEW, "another size: new");
	e = l.v[2];
	e.st.mode = S_IFLNK | 0644;
	ok(look(&x, &e, &now, &target) == BASE_NEW, "another kind: new");
	e.path = xstrdup("dir/g");
	ok(look(&x, &e, &now, &target) == BASE_NEW, "another path: new");
	free(e.path);
	ok(is_str(base_index_dir(top, "index"), "/the/dir"),
	    "an index tells its directory");
	base_index_release(&x);
	base_list_release(&l);
}

/* Is text, written as an index, accepted? */
static bool
accepts(int top, const char *text, size_t n)
{
	struct base_index x = BASE_INDEX_INIT;
	int fd = openat(top, "bad", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	bool good;

	if (fd == -1 || io_write_all(fd, text, n) == -1)
		die_sys("unable to write");
	io_drop(&fd);
	good = base_index_load(&x, top, "bad", "/the/dir");
	base_index_release(&x);
	return good;
}

static void
test_foreign(int top)
{
	struct base_list l = BASE_LIST_INIT;
	struct base_index x = BASE_INDEX_INIT;
	struct buf b = BUF_INIT;
	size_t taken = 0;

	sample(&l);
	save(top, 2000, &l);
	if (io_read_file_at(top, "index", &b, 1 << 20) == -1)
		die_sys("unable to read the index");
	ok(accepts(top, b.data, b.len), "a copy is as good");
	for (size_t n = 0; n < b.len; n++)
		taken += accepts(top, b.data, n);
	ok(taken == 0, "one cut short anywhere is none");
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= 4;
		taken += accepts(top, b.data, b.len);
		b.data[i] ^= 4;
	}
	ok(taken == 0, "nor is one with a wrong bit anywhere");
	ok(!base_index_load(&x, top, "index", "/the"),
	    "nor is one of another directory");
	ok(!base_index_load(&x, top, "missing", "/the/dir"),
	    "nor is one that is not there");
	buf_release(&b);
	base_list_release(&l);
}

static void
test_links(void)
{
	struct base_links l = BASE_LINKS_INIT;
	struct base_stat a = { .dev = 1, .ino = 2 }, b = { .dev = 2, .ino = 2 };

	ok(base_link_find(&l, &a) == BASE_LINK_NONE, "no inode is known");
	base_link_add(&l, &a, 5);
	base_link_add(&l, &b, 6);
	ok(base_link_find(&l, &a) == 5 && base_link_find(&l, &b) == 6,
	    "one is found by device and number");
	base_links_release(&l);
}

/* A tree deeper than descriptors and paths allow. */
static void
make_deep(int top)
{
	int fd = dir(top, "deep"), sub;

	for (int i = 0; i < DEEP; i++) {
		sub = dir(fd, "a-name-of-some-length");
		file(sub, "f", "x");
		io_drop(&fd);
		fd = sub;
	}
	io_drop(&fd);
}

static void
test_deep(int top)
{
	struct rlimit few = { 64, 64 };
	char hex[HASH_HEX + 1];
	char *where = NULL;
	struct stat st;
	int fd;

	make_deep(top);
	if (setrlimit(RLIMIT_NOFILE, &few) == -1)
		die_sys("unable to set a limit");
	fd = openat(top, "deep", O_RDONLY | O_DIRECTORY);
	ok(base_hash_tree(fd, hex, &where) == 0,
	    "2000 levels are hashed with 64 descriptors");
	io_drop(&fd);
	ok(base_rm_tree(top, "deep") == 0 && path_lstat(top, "deep", &st) == -1,
	    "and removed");
}

/* Below a directory that is moved while the walk is deeper than it can hold. */
static void
test_moved(int top)
{
	struct walk w = WALK_INIT;
	enum walk_event ev;
	int fd, sub, depth = 0;

	make_deep(top);
	fd = openat(top, "deep", O_RDONLY | O_DIRECTORY);
	if (fd == -1 || walk_enter(&w, fd, -1, 0) == -1)
		die_sys("unable to walk");
	for (;;) {
		ev = walk_next(&w);
		if (ev == WALK_END || ev == WALK_ERROR)
			break;
		if (ev == WALK_LEAVE || strcmp(w.name, "f") == 0)
			continue;
		if (++depth > 100)
			continue;
		if (depth == 100 &&
		    (renameat(top,
			 "deep/a-name-of-some-length/a-name-of-some-length",
			 top, "moved") == -1))
			die_sys("unable to move");
		sub = openat(w.dirfd, w.name, O_RDONLY | O_DIRECTORY);
		if (sub == -1 || walk_enter(&w, sub, -1, 0) == -1)
			die_sys("unable to walk");
	}
	ok(ev == WALK_ERROR && errno == EBUSY,
	    "a directory that was moved is not left into its new parent");
	walk_release(&w);
	base_rm_tree(top, "deep");
	ok(base_rm_tree(top, "moved") == 0, "its descriptors are closed");
}

int
main(void)
{
	char name[] = "/tmp/sb-unit-base.XXXXXX";
	int top;

	if (!mkdtemp(name))
		die_sys("unable to make %s", name);
	top = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top == -1)
		die_sys("unable to open %s", name);
	test_cache_dir();
	test_hash_tree(top);
	test_hashes();
	test_trust(top);
	test_foreign(top);
	test_links();
	test_moved(top);
	test_deep(top);
	base_rm_tree(AT_FDCWD, name);
	return done();
}
