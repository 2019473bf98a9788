/* SPDX-License-Identifier: MIT */
/*
 * The base: the tree below all layers. What identifies one (two hashes over
 * its entries), where the shared cache keeps it, the stat index that makes an
 * unchanged tree cheap, and a walk whose open descriptors do not grow with
 * the depth of the tree. Nothing here follows a symbolic link.
 */
#ifndef SB_BASE_H
#define SB_BASE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "buf.h"
#include "hash.h"

#define BASE_LAYER "B000001-base" /* the only id that a base has */

/*
 * Directory of everything that sb caches for one user: "/sb" below the value
 * of XDG_CACHE_HOME, or of HOME and "/.cache". A value that is not absolute
 * counts as not set. Caller frees; NULL when neither is set.
 */
char *base_cache_dir(const char *xdg_cache_home, const char *home);

/* Walks. */

#define WALK_OPEN 24 /* directories open at a time, each twice when copying */

enum walk_event {
	WALK_ENTRY, /* dirfd/name is to be looked at */
	WALK_LEAVE, /* everything below the directory dirfd/name was */
	WALK_END,
	WALK_ERROR, /* errno; path names the directory at fault */
};

struct walk {
	/* For both events; the root is left with dirfd -1 and an empty name. */
	int dirfd; /* borrowed */
	int outfd; /* the directory entered beside dirfd, or -1 */
	const char *name; /* borrowed until the next call */
	struct buf path; /* from the root of the walk */
	/* For WALK_LEAVE: of the directory that is left. */
	int fd; /* closed by the next call */
	int out; /* likewise; who keeps it sets it to -1 */
	size_t data;
	/* private */
	struct walk_dir *dir;
	size_t n, cap;
};

/*
 * Begins with the root, or goes down into the entry that the last WALK_ENTRY
 * was about: an open directory, and the one that is entered beside it, or -1.
 * Takes both, also on failure. data comes back when it is left. -1 with errno.
 */
int walk_enter(struct walk *w, int fd, int out, size_t data);

/*
 * The next event. Entries of a directory come in the order of their inodes,
 * which is how a disk likes to be read. EBUSY when a directory on the way up
 * is no longer where it was on the way down.
 */
enum walk_event walk_next(struct walk *w);
void walk_release(struct walk *w);
#define WALK_INIT { .fd = -1, .out = -1 }

/* path_rm_tree, but with a bounded number of descriptors. */
int base_rm_tree(int dirfd, const char *name);

/* Entries. */

struct base_stat {
	uint64_t dev, ino, size, nlink;
	int64_t mtime, ctime; /* seconds */
	uint32_t mtime_ns, ctime_ns;
	uint32_t mode; /* st_mode: kind and permissions */
	uint32_t uid, gid;
	uint32_t dropped; /* xattrs that are never copied */
};

struct base_entry {
	struct base_stat st;
	unsigned char content[32]; /* of a file */
	unsigned char xattrs[32]; /* of the set in attr.h; zero for none */
	size_t group; /* 0, or the same for names of one inode */
	char *path; /* "" is the root itself */
	char *target; /* of a symbolic link, else NULL */
};

struct base_list {
	struct base_entry *v;
	size_t n;
	size_t cap; /* private */
	size_t groups; /* last used */
};
#define BASE_LIST_INIT { .v = NULL }

/* Adds e, taking path and target. */
void base_list_add(struct base_list *l, const struct base_entry *e);
void base_list_sort(struct base_list *l); /* by the bytes of path */
void base_list_release(struct base_list *l);

void base_stat_set(struct base_stat *b, const struct stat *st);

/* The fields that attr_set needs. */
void base_stat_get(const struct base_stat *b, struct stat *st);

/*
 * Of a sorted list. The root hash covers kind, path and content, and neither
 * the root nor any attribute. The key covers everything that is copied, owners
 * only when they are. Both are spelt out in sb-base-import(1).
 */
void base_root_hash(const struct base_list *l, char hex[HASH_HEX + 1]);
void base_key(const struct base_list *l, bool owners, char hex[HASH_HEX + 1]);

/*
 * Root hash of the tree below the open directory fd, by reading all of it.
 * -1 with errno and the path at fault in *where (caller frees); EINVAL for a
 * kind that no base has.
 */
int base_hash_tree(int fd, char hex[HASH_HEX + 1], char **where);

/* The names of one inode, found again while walking. */

struct base_links {
	void *root; /* private */
};
#define BASE_LINKS_INIT { .root = NULL }

#define BASE_LINK_NONE SIZE_MAX

/* The value remembered for an inode, or BASE_LINK_NONE. */
size_t base_link_find(const struct base_links *l, const struct base_stat *st);
void base_link_add(
    struct base_links *l, const struct base_stat *st, size_t value);
void base_links_release(struct base_links *l);

/* The stat index. */

struct base_index {
	struct buf text; /* private, as all of it */
	const char **rec;
	size_t n;
	int64_t start;
};
#define BASE_INDEX_INIT { .text = BUF_INIT }

enum base_trust {
	BASE_NEW, /* not as it was: its key is another */
	BASE_UNSURE, /* as it was for all we know: read it */
	BASE_SAME, /* as it was */
};

/*
 * Reads dirfd/name, the index of the directory dir. False when there is none
 * that can be used; that is no error.
 */
bool base_index_load(
    struct base_index *x, int dirfd, const char *name, const char *dir);

/*
 * Compares what a walk finds at path, with stat e->st, with what was found
 * last time. Unless BASE_NEW, e gets the hashes and dropped of then, and
 * *target (borrowed) the target of a link: good for BASE_SAME, to be compared
 * for BASE_UNSURE. BASE_SAME takes an unchanged stat with a ctime of 2 s before
 * the walk that made the index: what is younger may have changed again within
 * the same tick of its clock.
 */
enum base_trust base_index_find(const struct base_index *x, const char *path,
    struct base_entry *e, const char **target);

/*
 * Writes dirfd/name. start: time of the day, in seconds, when the walk that
 * made the sorted list began.
 */
int base_index_save(int dirfd, const char *name, const char *dir, int64_t start,
    const struct base_list *l);

/* The directory that an index file is about; NULL when that cannot be told. */
char *base_index_dir(int dirfd, const char *name);
void base_index_release(struct base_index *x);

#endif
