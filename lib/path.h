/* SPDX-License-Identifier: MIT */
/*
 * Names and directories. Two kinds of names exist: an id (layers, sessions,
 * leases) and a relative path (everything below a tree). Both are checked
 * here once; below that, directories are descriptors.
 */
#ifndef SB_PATH_H
#define SB_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define ID_MAX         64
#define PATH_BYTES_MAX 4095

/* [A-Za-z0-9._-], 1 to 64 bytes, not beginning with a dot. */
bool id_is_valid(const char *s);

/*
 * Relative, not empty, at most 4095 bytes, components separated by one '/',
 * none of them empty, "." or "..".
 */
bool path_is_valid(const char *s);

/* Has the path a component beginning ".wh." (overlay marker namespace)? */
bool path_is_reserved(const char *s);

/* Is path equal to dir, or below it? dir "" contains everything. */
bool path_is_below(const char *path, const char *dir);

/* The part behind the last '/', or the whole. Borrowed. */
const char *path_base(const char *path);

/* Length of the parent's path: 0 for a top-level name. */
size_t path_parent_len(const char *path);

/*
 * openat2 beneath dirfd without following any symbolic link. path "" or "."
 * opens dirfd itself again. O_CLOEXEC is added. Kernels before 5.6 are not
 * supported.
 */
int path_open(int dirfd, const char *path, int flags, mode_t mode);

/* fstatat without following the last component; ancestors are the caller's. */
int path_lstat(int dirfd, const char *path, struct stat *st);

/* Opens the parent directory of path beneath dirfd; *base is borrowed. */
int path_open_parent(int dirfd, const char *path, const char **base);

/*
 * Removes the tree dirfd/name, whatever it is, never following a link and
 * giving itself permission where a directory's mode forbids (work/work of an
 * overlay has mode 0). Missing is success.
 */
int path_rm_tree(int dirfd, const char *name);

/*
 * Reads the names of a directory, sorted bytewise, without "." and "..".
 * Caller frees with names_release.
 */
struct names {
	char **name;
	size_t n;
	size_t cap; /* private */
};
#define NAMES_INIT { .name = NULL }

int names_read(int dirfd, struct names *out);
void names_add(struct names *v, const char *name);
void names_sort(struct names *v);
bool names_has(const struct names *v, const char *name); /* sorted only */
void names_release(struct names *v);

/*
 * Absolute path of the open directory fd, from /proc/self/fd. Caller frees.
 * NULL with errno; ENOENT when it was deleted.
 */
char *path_of_fd(int fd);

#endif
