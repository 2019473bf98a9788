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
	TRIES = 64,
	ASIDE_MAX = ID_MAX + 16
};

#define EDIT_LOCK "edit.lock"
#define EDIT_LINK "edit"

/* What is there and goes unless the change is made. */
static struct undo {
	int session; /* has the link "edit", or -1 */
	int dir; /* has the file aside, or -1 */
	char aside[ASIDE_MAX];
	struct made {
		int dir;
		char *name;
	} *made; /* directories, the last is the deepest */
	size_t n, cap;
} undo = { .session = -1, .dir = -1 };

static void
undo_all(void)
{
	if (undo.dir != -1)
		unlinkat(undo.dir, undo.aside, 0);
	io_drop(&undo.dir);
	if (undo.session != -1)
		unlinkat(undo.session, EDIT_LINK, 0);
	undo.session = -1;
	while (undo.n > 0) {
		struct made *m = &undo.made[--undo.n];

		unlinkat(m->dir, m->name, AT_REMOVEDIR);
		io_drop(&m->dir);
		free(m->name);
	}
}

/* Made: what is left of it is kept and synced. */
static void
settle(void)
{
	unlinkat(undo.session, EDIT_LINK, 0);
	undo.session = -1;
	if (stage_sync_dir(undo.dir, ".") == -1)
		warn_sys("the directory of the file cannot be synced");
	io_drop(&undo.dir);
	while (undo.n > 0) {
		struct made *m = &undo.made[--undo.n];

		if (stage_sync_dir(m->dir, ".") == -1)
			warn_sys(
			    "the directory of %s cannot be synced", m->name);
		io_drop(&m->dir);
		free(m->name);
	}
}

static void
name_aside(const char *id, char out[ASIDE_MAX])
{
	snprintf(out, ASIDE_MAX, ".sb-%s.tmp", id);
}

/* If the directory that the link names was renamed, nothing is found. */
int
put_sweep(const struct session *s, int root)
{
	char dir[PATH_BYTES_MAX + 1], aside[ASIDE_MAX];
	ssize_t n = readlinkat(s->dirfd, EDIT_LINK, dir, sizeof dir - 1);
	int fd;

	if (n == -1)
		return errno == ENOENT ? 0 : -1;
	dir[n] = '\0';
	name_aside(s->id, aside);
	fd = path_open(root, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd != -1)
		unlinkat(fd, aside, 0);
	io_drop(&fd);
	return unlinkat(s->dirfd, EDIT_LINK, 0);
}

static int
open_dir(int dir, const char *name)
{
	return path_open(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* Opens directory name in dir, or makes it; -1 when something else is there. */
static int
enter_dir(int dir, const char *name)
{
	int fd = open_dir(dir, name);

	if (fd != -1 || errno != ENOENT)
		return fd;
	if (mkdirat(dir, name, 0755) == -1)
		return errno == EEXIST ? open_dir(dir, name) : -1;
	if (undo.n == undo.cap)
		undo.made = xgrow(undo.made, &undo.cap, sizeof *undo.made);
	undo.made[undo.n] =
	    (struct made){ fcntl(dir, F_DUPFD_CLOEXEC, 3), xstrdup(name) };
	if (undo.made[undo.n].dir == -1) {
		unlinkat(dir, name, AT_REMOVEDIR);
		free(undo.made[undo.n].name);
		return -1;
	}
	undo.n++;
	return open_dir(dir, name);
}

/* The directory of path, component by component, so that one can be made. */
static int
enter_parent(int root, const char *path)
{
	char *part = xstrndup(path, path_parent_len(path)), *p = part;
	int dir = fcntl(root, F_DUPFD_CLOEXEC, 3), next;

	while (dir != -1 && *p != '\0') {
		size_t n = strcspn(p, "/");
		bool last = p[n] == '\0';

		p[n] = '\0';
		next = enter_dir(dir, p);
		io_drop(&dir);
		dir = next;
		p += n + !last;
	}
	free(part);
	return dir;
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

/* False when the directory has just gone. */
static bool
write_aside(const struct tree *t, const struct put *p, const struct file *old,
    const struct buf *content)
{
	size_t len = path_parent_len(p->path);
	char *dir = len > 0 ? xstrndup(p->path, len) : xstrdup(".");
	int fd;

	/* Before the file: a killed run leaves the link, or both. */
	if (symlinkat(dir, t->session.dirfd, EDIT_LINK) == -1)
		answer_sys("unable to make workspace/%s/%s", t->id, EDIT_LINK);
	undo.session = t->session.dirfd;
	free(dir);
	unlinkat(undo.dir, undo.aside, 0);
	fd = openat(undo.dir, undo.aside,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1 && is_race(errno))
		return false;
	if (fd == -1 || put_fill(fd, old, content) == -1 || fsync(fd) == -1 ||
	    io_close(fd) == -1)
		answer_sys("unable to write %s in session %s", p->path, t->id);
	return true;
}

/* False when a command came between: then everything is as it was. */
static bool
replace(const struct tree *t, const struct put *p, const struct file *old,
    const struct buf *content)
{
	const char *name = path_base(p->path);
	bool new = old->kind == FILE_ABSENT;
	int dir = enter_parent(t->root, p->path);

	if (dir == -1) {
		if (!is_race(errno))
			answer_sys("unable to make the directory of %s in "
				   "session %s",
			    p->path, t->id);
		undo_all();
		return false;
	}
	undo.dir = dir;
	if (!write_aside(t, p, old, content) ||
	    !is_unchanged(dir, name, old, p->reads)) {
		undo_all();
		return false;
	}
	if (renameat2(dir, undo.aside, dir, name, new ? RENAME_NOREPLACE : 0) ==
	    -1) {
		if (!is_race(errno))
			answer_sys("unable to put %s in place in session %s",
			    p->path, t->id);
		undo_all();
		return false;
	}
	settle();
	return true;
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
	lock = lock_take(t.session.dirfd, EDIT_LOCK, true, p->ms);
	if (lock == -1)
		put_no_lock("other changes of files in the session");
	if (atexit(undo_all) != 0)
		die(EXIT_SYS, "out of memory");
	io_many_fds();
	umask(0);
	name_aside(t.id, undo.aside);
	if (put_sweep(&t.session, t.root) == -1)
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
