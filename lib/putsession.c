/* SPDX-License-Identifier: MIT */
#include "putsession.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "err.h"
#include "io.h"
#include "lock.h"
#include "mem.h"
#include "stage.h"

enum {
	TRIES = 64
};

#define EDIT_LOCK "edit.lock"
#define EDIT_LINK "edit"

/* What is there and goes unless the change is made. */
static struct undo {
	int session; /* has the link "edit", or -1 */
	int dir; /* has what is aside, or -1 */
	char aside[SESSION_ASIDE_BYTES];
} undo = { .session = -1, .dir = -1 };

static void
undo_all(void)
{
	if (undo.dir != -1)
		path_rm_tree(undo.dir, undo.aside);
	io_drop(&undo.dir);
	if (undo.session != -1)
		unlinkat(undo.session, EDIT_LINK, 0);
	undo.session = -1;
}

/* Made: nothing is aside any more. */
static void
settle(void)
{
	unlinkat(undo.session, EDIT_LINK, 0);
	undo.session = -1;
	if (stage_sync_dir(undo.dir, ".") == -1)
		warn_sys("the directory of the file cannot be synced");
	io_drop(&undo.dir);
}

/*
 * Removes what a killed run left in the tree root (O_PATH). Nobody else may be
 * changing files: edit.lock is held. If the directory that the link names was
 * renamed, nothing is found: then it stays, and is no part of the tree all the
 * same. 0, or -1 with errno.
 */
static int
sweep(const struct session *s, int root)
{
	char dir[PATH_BYTES_MAX + 1], aside[SESSION_ASIDE_BYTES];
	ssize_t n = readlinkat(s->dirfd, EDIT_LINK, dir, sizeof dir - 1);
	int fd;

	if (n == -1)
		return errno == ENOENT ? 0 : -1;
	dir[n] = '\0';
	session_aside(s->id, aside);
	fd = path_open(root, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd != -1)
		path_rm_tree(fd, aside);
	io_drop(&fd);
	return unlinkat(s->dirfd, EDIT_LINK, 0);
}

/*
 * Opens the deepest directory on the way that is there; *len: how many bytes
 * of the path it is.
 */
static int
open_deepest(int root, const char *path, size_t *len)
{
	char *part = xstrdup(path);
	int fd;

	*len = path_parent_len(path);
	for (;;) {
		part[*len] = '\0';
		fd =
		    path_open(root, part, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (fd != -1 || errno != ENOENT || *len == 0)
			break;
		*len = path_parent_len(part);
	}
	free(part);
	return fd;
}

/*
 * Is at the path still what was found there; or, where its content does not
 * matter, something of its kind?
 */
static bool
is_unchanged(int dir, const char *name, const struct file *old, bool content)
{
	struct stat st;

	if (path_lstat(dir, name, &st) == -1)
		return old->kind == FILE_ABSENT && errno == ENOENT;
	if (old->kind != FILE_REGULAR || !S_ISREG(st.st_mode))
		return false;
	return !content ||
	    (st.st_dev == old->st.st_dev && st.st_ino == old->st.st_ino &&
		st.st_size == old->st.st_size &&
		st.st_mtim.tv_sec == old->st.st_mtim.tv_sec &&
		st.st_mtim.tv_nsec == old->st.st_mtim.tv_nsec &&
		st.st_ctim.tv_sec == old->st.st_ctim.tv_sec &&
		st.st_ctim.tv_nsec == old->st.st_ctim.tv_nsec);
}

/* Did a command of the session come between, so that it is worth a retry? */
static bool
is_race(int err)
{
	return err == ENOENT || err == EEXIST || err == ELOOP ||
	    err == ENOTDIR || err == EISDIR;
}

/*
 * Makes the directories that are missing, as the tree undo.aside: rest is the
 * path from the first of them on. Opens the last one; -1 with errno. What gets
 * a name in it is synced when it has it.
 */
static int
make_dirs(const char *rest)
{
	int dir = fcntl(undo.dir, F_DUPFD_CLOEXEC, 3), next;
	char *copy = xstrdup(rest), *at = copy, *slash;
	const char *name = undo.aside;

	for (; dir != -1; at = slash + 1, name = at) {
		slash = strchr(at, '/');
		if (!slash)
			break;
		*slash = '\0';
		next = mkdirat(dir, name, 0755) == -1
		    ? -1
		    : path_open(dir, name, O_RDONLY | O_DIRECTORY, 0);
		if (next != -1 && name != undo.aside && fsync(dir) == -1)
			io_drop(&next);
		io_drop(&dir);
		dir = next;
	}
	free(copy);
	return dir;
}

/*
 * The file, or the tree of directories that it is in, under the name aside.
 * False when the directory has just gone.
 */
static bool
write_aside(const struct tree *t, const struct put *p, const struct file *old,
    const struct buf *content, const char *rest)
{
	char *where = xstrndup(p->path, (size_t)(rest - p->path));
	bool deep = strchr(rest, '/') != NULL;
	int dir, fd = -1;

	/* Before the file: a killed run leaves the link, or both. */
	if (symlinkat(*where ? where : ".", t->session.dirfd, EDIT_LINK) == -1)
		answer_sys("unable to make workspace/%s/%s", t->id, EDIT_LINK);
	undo.session = t->session.dirfd;
	free(where);
	path_rm_tree(undo.dir, undo.aside);
	dir = make_dirs(rest);
	if (dir != -1)
		fd = openat(dir, deep ? path_base(rest) : undo.aside,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1 && is_race(errno)) {
		io_drop(&dir);
		return false;
	}
	if (fd == -1 || put_fill(fd, old, content) == -1 || fsync(fd) == -1 ||
	    io_close(fd) == -1 || (deep && fsync(dir) == -1))
		answer_sys("unable to write %s in session %s", p->path, t->id);
	io_drop(&dir);
	return true;
}

/* False when a command came between: then everything is as it was. */
static bool
replace(const struct tree *t, const struct put *p, const struct file *old,
    const struct buf *content)
{
	bool new = old->kind == FILE_ABSENT, done;
	const char *rest;
	char *name;
	size_t len;

	undo.dir = open_deepest(t->root, p->path, &len);
	if (undo.dir == -1) {
		if (!is_race(errno))
			answer_sys("unable to open the directory of %s in "
				   "session %s",
			    p->path, t->id);
		return false;
	}
	rest = p->path + len + (len > 0);
	name = xstrndup(rest, strcspn(rest, "/"));
	done = write_aside(t, p, old, content, rest) &&
	    is_unchanged(undo.dir, name, old, p->reads);
	if (done &&
	    renameat2(undo.dir, undo.aside, undo.dir, name,
		new ? RENAME_NOREPLACE : 0) == -1) {
		if (!is_race(errno))
			answer_sys("unable to put %s in place in session %s",
			    p->path, t->id);
		done = false;
	}
	if (done)
		settle();
	else
		undo_all();
	free(name);
	return done;
}

bool
put_in_session(const struct put *p, const char *session)
{
	const struct buf *content;
	struct tree t;
	struct file old;
	bool new;
	int lock;

	tree_open(&t, session, p->ms);
	if (session_is_aside(t.id, p->path))
		answer_error(EXIT_USAGE, KIND_INVALID, NULL,
		    "invalid path: %s (this name is for changes on their way)",
		    p->path);
	lock = lock_take(t.session.dirfd, EDIT_LOCK, true, p->ms);
	if (lock == -1)
		put_no_lock("other changes of files in the session");
	if (atexit(undo_all) != 0)
		die(EXIT_SYS, "out of memory");
	io_many_fds();
	umask(0);
	session_aside(t.id, undo.aside);
	if (sweep(&t.session, t.root) == -1)
		answer_sys("unable to remove what an earlier change left in "
			   "session %s",
		    t.id);
	for (int i = 0; i < TRIES; i++) {
		tree_find(&t, p->path, &old);
		file_require(&t, &old, p->path, !p->reads);
		content = p->make(p->arg, &old);
		new = old.kind == FILE_ABSENT;
		if (replace(&t, p, &old, content)) {
			file_release(&old);
			tree_close(&t);
			io_drop(&lock);
			return new;
		}
		file_release(&old);
	}
	answer_error(EXIT_SYS, KIND_FAILED, NULL,
	    "%s is changed by commands of session %s all the time", p->path,
	    t.id);
}
