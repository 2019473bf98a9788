/* SPDX-License-Identifier: MIT */
/*
 * Where the commands sb-file-* look: at head, through a view of its layers, or
 * into the mounted tree of a session, as the host sees it through its init. A
 * symbolic link is never followed, neither a last one nor one on the way.
 *
 * As answer, this module ends the program by itself, with the error object,
 * because the commands do so with the same words.
 */
#ifndef SB_FILE_H
#define SB_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "buf.h"
#include "conf.h"
#include "path.h"
#include "session.h"
#include "stack.h"
#include "view.h"

/*
 * "./a//b", or "/ws/a/b" where /ws is the workspace, is "a/b". The root itself
 * is "" where may_be_root, else no path. file_path_if gives NULL for what is no
 * path, file_path ends the program. Caller frees.
 */
char *file_path_if(const char *arg, bool may_be_root);
char *file_path(const char *arg, bool may_be_root);

struct tree {
	const char *id; /* of the session; NULL: head */
	/* of a session */
	struct session session; /* its gate is held shared */
	int root; /* its workspace, O_PATH */
	/* of head; in a session only after tree_open_lease */
	int stackfd;
	struct view *view;
	/* of head */
	struct manifest head;
	char lease[ID_MAX + 1]; /* keeps the layers of head */
	int lease_lock;
	int full; /* errno: no lease could be written, head is for reading */
};

/*
 * Opens the session id, or head when id is NULL or "". A parked session is
 * started. ms, as in lock.h, for the gate or the stack lock. It goes with the
 * program; tree_close lets go of it before. Of a session it begins the span
 * that ends with the program.
 */
void tree_open(struct tree *t, const char *id, int ms);
void tree_close(struct tree *t);

/* In a session: opens a view of the layers that it was made on. */
void tree_open_lease(struct tree *t);

enum file_kind {
	FILE_ABSENT,
	FILE_REGULAR,
	FILE_DIR,
	FILE_LINK, /* also when it is on the way */
	FILE_OTHER, /* also when something on the way is no directory */
};

/* What is at a path. */
struct file {
	enum file_kind kind;
	bool above; /* FILE_LINK, FILE_OTHER: it is on the way */
	int fd; /* a regular file or directory, for reading; else -1 */
	struct stat st; /* of FILE_REGULAR and FILE_DIR */
	const char *layer; /* on head, that has it, the tree's; else "" */
};

/* path: of file_path. Caller frees with file_release. */
void tree_find(struct tree *t, const char *path, struct file *f);
void file_release(struct file *f);

/*
 * Ends the program unless f is a regular file or, where may_be_absent, is not
 * there. What lies below a file is absent on head, as for any reader of layers,
 * unless something is about to be made there.
 */
void file_require(const struct tree *t, const struct file *f, const char *path,
    bool may_be_absent);

/* Of a directory that was found: its names, sorted. */
void tree_names(
    struct tree *t, const char *path, const struct file *f, struct names *out);

/* One of them: its kind and, of a file, its size. False: gone meanwhile, or
 * the session's name aside. */
bool tree_entry(struct tree *t, const char *path, const struct file *f,
    const char *name, enum file_kind *kind, uint64_t *size);

/* A number of the settings, of conf.h. */
uint64_t file_limit(enum conf_which which);

#endif
