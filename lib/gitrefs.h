/* SPDX-License-Identifier: MIT */
/*
 * Refs of a git repository that two sides changed: a three-way merge by the
 * name of the ref, not by file. A ref shows the value of the side that
 * changed it; where both did, head's, and mine is kept under refs/sb. Where a
 * value is stored (a file of its own, packed-refs) makes no difference, and
 * the result is told as changes to head's files. Nothing here opens a file.
 *
 * All paths are relative to the repository (".git" or below .git/modules).
 * What is not a ref to git (a bad name, a link, other content) is never read
 * further, written or carried over: there head's file stays.
 */
#ifndef SB_GITREFS_H
#define SB_GITREFS_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "path.h"

/* One version of the repository, as its caller sees it. Links stay closed. */
struct git_reader {
	/*
	 * Appends the regular file path to out: 1; 0 when there is none (or
	 * something else is there); -1 with errno, EFBIG when it has more
	 * than max bytes.
	 */
	int (*read)(void *arg, const char *path, size_t max, struct buf *out);

	/*
	 * Adds the names in directory path ("" is the repository) to out, in
	 * any order: 1; 0 when it is no directory; -1 with errno.
	 */
	int (*list)(void *arg, const char *path, struct names *out);
	void *arg;
};

/* What rules a path of a repository that both sides changed. */
enum git_part {
	GIT_OTHER, /* the side that changed it; both: head */
	GIT_REF, /* gitrefs_merge alone; mine's own changes are dropped */
	GIT_OBJECT, /* a file with objects: never taken away */
	GIT_CACHE, /* an index over objects: always head's */
};
enum git_part git_part_of(const char *path);

/*
 * Adds the repositories of reader to out, outer before inner: "", and
 * "modules/NAME" of submodules. 0, or -1 with errno of the reader.
 */
int git_repos(const struct git_reader *reader, struct names *out);

/*
 * Adds to out the object files that base and mine have and head has not: mine
 * may refer to them. What such a path is, a file or not, the caller finds.
 * 0, or -1 with errno of a reader.
 */
int git_objects_gone(const struct git_reader *base,
    const struct git_reader *head, const struct git_reader *mine,
    struct names *out);

struct git_file {
	char *path;
	char *content; /* NULL: nothing shall be there */
	size_t len;
};

struct git_kept {
	char *ref; /* mine's: a ref, HEAD or worktrees/NAME/HEAD */
	char *kept; /* the ref that has its value now, below refs/sb */
	char *commit; /* hexadecimal */
};

struct git_merge {
	/*
	 * To be applied to what head has, sorted by path_cmp, no path below
	 * another one that has content. Parents that are missing, or are no
	 * directories, become directories; a directory in the place of a file
	 * gives way to it.
	 */
	struct git_file *file;
	size_t nfiles;
	struct git_kept *kept; /* in order of ref, HEAD first */
	size_t nkept;
	size_t file_cap, kept_cap; /* private */
};

#define GIT_MERGE_INIT { .file = NULL }

/*
 * Merges into m (GIT_MERGE_INIT, or released). repo is the repository's path
 * in the tree, to know how long names may become; session is what the kept
 * refs are named after. index_moved: head's index is not base's; then head's
 * HEAD stays, because a HEAD of mine with an index of head's would show
 * mine's work as staged for removal. Returns 0, or -1 with errno: EFBIG when
 * packed-refs or the stash's log is larger than 256 MiB; ENOTDIR when a ref
 * must be written and refs is no directory at head; ENAMETOOLONG when there
 * is no room for a name below refs/sb; else the reader's. Caller frees with
 * git_merge_release.
 */
int gitrefs_merge(const char *repo, const char *session, bool index_moved,
    const struct git_reader *base, const struct git_reader *head,
    const struct git_reader *mine, struct git_merge *m);
void git_merge_release(struct git_merge *m);

/* {"path":REPO,"ref":…,"kept":…,"commit":…}, without a line feed. */
void git_kept_json(const struct git_kept *k, const char *repo, struct buf *out);

#endif
