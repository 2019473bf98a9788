/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "conf.h"
#include "err.h"
#include "event.h"
#include "io.h"
#include "lock.h"
#include "mem.h"
#include "ns.h"
#include "out.h"
#include "store.h"

enum {
	STEP_MS = 2
};

/* ---- paths ---- */

/* Appends the components of path, joined by one '/'. */
static void
add_components(struct buf *b, const char *path)
{
	while (*path != '\0') {
		size_t n = strcspn(path, "/");

		if (n > 0 && !(n == 1 && *path == '.')) {
			if (b->len > 0)
				buf_addc(b, '/');
			buf_add(b, path, n);
		}
		path += n;
		path += strspn(path, "/");
	}
}

static bool
has_long_name(const char *path)
{
	for (size_t n; *path != '\0'; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (n > NAME_MAX)
			return true;
	}
	return false;
}

/* Takes the workspace's own path off the front; NULL when it is not there. */
static const char *
below_workspace(const char *path)
{
	struct buf ws = BUF_INIT;
	char *workspace = session_workspace();

	if (!workspace)
		answer_sys("unable to read layer-stack/workspace.json");
	add_components(&ws, workspace);
	if (path_is_below(path, buf_str(&ws))) {
		path += ws.len;
		path += *path == '/';
	} else {
		path = NULL;
	}
	free(workspace);
	buf_release(&ws);
	return path;
}

char *
file_path_if(const char *arg, bool may_be_root)
{
	struct buf b = BUF_INIT;
	const char *path;
	char *copy = NULL;

	add_components(&b, arg);
	path = buf_str(&b);
	/* Before anything is taken off: /ws/../x must not become ../x. */
	if (*path != '\0' && !path_is_valid(path))
		path = NULL;
	else if (*arg == '/' && (*path != '\0' || !may_be_root))
		path = below_workspace(path);
	if (path && (*path != '\0' || may_be_root) && !has_long_name(path))
		copy = xstrdup(path);
	buf_release(&b);
	return copy;
}

char *
file_path(const char *arg, bool may_be_root)
{
	char *path = file_path_if(arg, may_be_root);

	if (!path)
		answer_error(
		    EXIT_USAGE, KIND_INVALID, NULL, "invalid path: %s", arg);
	return path;
}

/* ---- sessions ---- */

/*
 * Inside a session its user is root over its own files, whatever their modes.
 * An ordinary user has that power in a user namespace of its own.
 */
static void
gain_own_files(void)
{
	static bool done;

	/* Where it cannot be had, what needs it fails and says so. */
	if (!done && geteuid() != 0)
		ns_own_user();
	done = true;
}

static void
session_details(struct buf *b, const char *id)
{
	out_key(b, "workspace_session_id");
	if (utf8_is_valid(id, strlen(id)))
		out_string(b, id, strlen(id));
	else
		out_string_ascii(b, id, strlen(id));
}

__attribute__((noreturn)) static void
no_session(const char *id)
{
	struct buf b = BUF_INIT;

	session_details(&b, id);
	answer_error(
	    EXIT_NO, KIND_NOT_FOUND, &b, "workspace session not found: %s", id);
}

static void
take_gate(struct session *s, bool exclusive, int ms)
{
	struct buf b = BUF_INIT;
	bool busy;

	if (session_gate(s, exclusive, ms) == 0)
		return;
	busy = errno == EAGAIN;
	if (errno == ENOENT)
		no_session(s->id);
	if (!busy && errno != ETIMEDOUT)
		answer_sys("unable to take the gate of session %s%s", s->id,
		    session_trouble());
	session_details(&b, s->id);
	out_str(&b, "reason", busy ? "busy" : "timeout");
	answer_error(busy ? EXIT_BUSY : EXIT_TIMEOUT, KIND_FAILED, &b,
	    "session %s is being published or ended", s->id);
}

static bool
runs(struct session *s)
{
	int rc = session_can_be_entered(s);

	if (rc == -1)
		answer_sys(
		    "unable to look at session %s%s", s->id, session_trouble());
	return rc == 1;
}

/* As sb-run: the gate is held shared afterwards, and a holder runs. */
static void
enter(struct session *s, int ms)
{
	take_gate(s, false, ms);
	if (runs(s))
		return;
	io_drop(&s->gatefd);
	take_gate(s, true, ms);
	if (!runs(s) && session_start(s) == -1)
		answer_sys(
		    "unable to start session %s%s", s->id, session_trouble());
	if (lock_fd(s->gatefd, false, 0) == -1)
		answer_sys("unable to share the gate of session %s", s->id);
}

/*
 * Waits until the init offers the user namespace of commands. Before, its
 * mounts are not made, and what lies at the workspace's path is the host's.
 */
static void
await_ready(const struct session *s, pid_t pid, int init, int ms)
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };
	char path[64], target[64];

	snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, NS_USER_FD);
	while (readlink(path, target, sizeof target) == -1) {
		if (errno != ENOENT || io_wait(init, 0) == 0)
			answer_sys("unable to look into session %s", s->id);
		if (ms != LOCK_FOREVER && (ms -= STEP_MS) < 0)
			answer_error(EXIT_TIMEOUT, KIND_FAILED, NULL,
			    "session %s is being started", s->id);
		nanosleep(&step, NULL);
	}
}

/*
 * Is it the session's mount? Commands may rename what is above the workspace,
 * where that is in one of the private directories, and put something else
 * there; but they cannot mount.
 */
static bool
is_its_mount(int fd)
{
	struct statfs fs;
	struct statx st;

	return fstatfs(fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC &&
	    statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 &&
	    (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* The workspace as the session's init has it mounted. */
static int
open_root(const struct session *s, int ms)
{
	char path[64], *workspace = session_workspace();
	int init, top, root;
	struct hold h;

	if (!workspace)
		answer_sys("unable to read layer-stack/workspace.json");
	if (hold_read(s->dirfd, &h) == -1)
		answer_sys("unable to read workspace/%s/hold", s->id);
	init = hold_open(&h);
	if (init == -1)
		answer_sys("session %s does not run", s->id);
	await_ready(s, h.pid, init, ms);
	snprintf(path, sizeof path, "/proc/%ld/root", (long)h.pid);
	top = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	root = top == -1 ? -1
			 : path_open(top, workspace + 1,
			       O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (root == -1)
		answer_sys("unable to look into session %s", s->id);
	/* Still alive: so /proc/PID was its, and nobody else's. */
	if (io_wait(init, 0) == 0)
		answer_error(EXIT_SYS, KIND_FAILED, NULL,
		    "session %s ended while it was opened", s->id);
	if (!is_its_mount(root))
		answer_error(EXIT_SYS, KIND_FAILED, NULL,
		    "in session %s the workspace is not mounted at %s any "
		    "more: something above it was renamed",
		    s->id, workspace);
	io_drop(&init);
	io_drop(&top);
	free(workspace);
	return root;
}

/* ---- head ---- */

/* The lease that goes with the program; stackfd is -1 when there is none. */
static struct {
	int stackfd;
	char name[ID_MAX + 1];
	uint64_t version;
} pinned = { -1, "", 0 };

static void
unpin(void)
{
	if (pinned.stackfd == -1)
		return;
	stack_lease_drop(pinned.stackfd, pinned.name);
	event_lease("lease.released", pinned.version);
	pinned.stackfd = -1;
}

static bool
is_full(int err)
{
	return err == ENOSPC || err == EDQUOT || err == EROFS;
}

/* Also where nothing can be written. */
static int
lock_stack(int stackfd, int ms)
{
	int lock = lock_take(stackfd, STACK_LOCK, false, ms);

	if (lock != -1 || errno != EROFS)
		return lock;
	lock = openat(stackfd, STACK_LOCK, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (lock != -1 && lock_fd(lock, false, ms) == -1)
		io_drop(&lock);
	return lock;
}

static void
pin_head(struct tree *t, int ms)
{
	static bool registered;
	const char *why = NULL;
	uint32_t r;
	int lock;

	if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
		answer_sys("unable to get random bytes");
	snprintf(t->lease, sizeof t->lease, "file-%ld-%08" PRIx32,
	    (long)getpid(), r);
	/* Shared: a layer that head names cannot go before our lease stands. */
	lock = lock_stack(t->stackfd, ms);
	if (lock == -1 && (errno == ETIMEDOUT || errno == EAGAIN))
		answer_error(EXIT_TIMEOUT, KIND_FAILED, NULL,
		    "gave up waiting for the stack lock");
	if (lock == -1)
		answer_sys("unable to lock the stack");
	if (manifest_read(t->stackfd, STACK_MANIFEST, &t->head, &why) == -1)
		answer_error(EXIT_SYS, KIND_FAILED, NULL,
		    "unable to read %s: %s", STACK_MANIFEST,
		    why ? why : strerror(errno));
	if (t->head.n == 0)
		answer_error(EXIT_USAGE, KIND_FAILED, NULL,
		    "the store has no base: import a directory with "
		    "sb-base-import");
	t->lease_lock = stack_lease(t->stackfd, t->lease, &t->head);
	if (t->lease_lock == -1 && is_full(errno)) {
		/* No layer goes while the lock is held: enough to read. */
		t->full = errno;
		t->lease_lock = lock;
		return;
	}
	if (t->lease_lock == -1)
		answer_sys("unable to make lease %s", t->lease);
	event_lease("lease.acquired", t->head.version);
	pinned.stackfd = t->stackfd;
	pinned.version = t->head.version;
	memcpy(pinned.name, t->lease, sizeof pinned.name);
	if (!registered && atexit(unpin) != 0)
		die(EXIT_SYS, "out of memory");
	registered = true;
	io_drop(&lock);
}

static void
open_layers(struct tree *t, const struct manifest *m)
{
	struct ids ids = IDS_INIT;
	size_t bad = 0;

	for (size_t i = 0; i < m->n; i++)
		ids_add(&ids, m->id[i]);
	t->view = view_open(t->stackfd, &ids, &bad);
	if (!t->view)
		answer_sys("unable to open layer %s", ids.id[bad]);
}

static void
open_head(struct tree *t, int ms)
{
	t->stackfd = store_open_stack();
	pin_head(t, ms);
	open_layers(t, &t->head);
}

void
tree_open_lease(struct tree *t)
{
	struct manifest m = MANIFEST_INIT;
	const char *why = NULL;

	/* To manifest_read a missing file is an empty list. */
	if (manifest_read(t->session.dirfd, "lease", &m, &why) == -1 ||
	    m.n == 0)
		answer_error(EXIT_SYS, KIND_FAILED, NULL,
		    "unable to read workspace/%s/lease: %s", t->id,
		    why           ? why
			: m.n > 0 ? strerror(errno)
				  : "no layers");
	t->stackfd = store_open_stack();
	open_layers(t, &m);
	manifest_release(&m);
}

void
tree_open(struct tree *t, const char *id, int ms)
{
	*t = (struct tree){ .session = SESSION_INIT,
		.root = -1,
		.stackfd = -1,
		.lease_lock = -1 };
	if (!id || *id == '\0') {
		open_head(t, ms);
	} else {
		event_begin("namespace.exec.file_op");
		if (session_open(&t->session, id) == -1) {
			if (errno == ENOENT || errno == EINVAL)
				no_session(id);
			answer_sys("unable to open session %s", id);
		}
		t->id = t->session.id;
		enter(&t->session, ms);
		t->root = open_root(&t->session, ms);
	}
	gain_own_files();
}

void
tree_close(struct tree *t)
{
	/* The mount before the gate: behind it another holder may come. */
	io_drop(&t->root);
	io_drop(&t->session.gatefd);
	io_drop(&t->session.dirfd);
	io_drop(&t->session.workfd);
	unpin();
	io_drop(&t->lease_lock);
	view_close(t->view);
	t->view = NULL;
	manifest_release(&t->head);
	io_drop(&t->stackfd);
}

/* ---- looking ---- */

static enum file_kind
kind_of(mode_t mode)
{
	return S_ISREG(mode) ? FILE_REGULAR
	    : S_ISDIR(mode)  ? FILE_DIR
	    : S_ISLNK(mode)  ? FILE_LINK
			     : FILE_OTHER;
}

/* Opens for reading what fd, O_PATH, is: a name could be another by now. */
static int
reopen(int fd, int flags)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
}

static void
find_in_session(struct tree *t, const char *path, struct file *f)
{
	int fd = path_open(t->root, path, O_PATH | O_NOFOLLOW, 0);

	if (fd == -1) {
		if (errno == ENOENT)
			return;
		f->above = true;
		f->kind = errno == ELOOP ? FILE_LINK : FILE_OTHER;
		if (errno != ELOOP && errno != ENOTDIR)
			answer_sys(
			    "unable to open %s in session %s", path, t->id);
		return;
	}
	if (fstat(fd, &f->st) == -1)
		answer_sys("unable to look at %s in session %s", path, t->id);
	f->kind = kind_of(f->st.st_mode);
	if (f->kind == FILE_REGULAR || f->kind == FILE_DIR) {
		f->fd = reopen(fd, f->kind == FILE_DIR ? O_DIRECTORY : 0);
		if (f->fd == -1)
			answer_sys(
			    "unable to read %s in session %s", path, t->id);
	}
	io_drop(&fd);
}

static void
look_up(struct tree *t, const char *path, struct node *n)
{
	if (view_get(t->view, path, n) == -1)
		answer_sys("unable to look up %s", path);
}

/*
 * What is below something else than a directory, view calls absent: then it
 * matters what is on the way.
 */
static void
find_above(struct tree *t, const char *path, struct file *f)
{
	char *part = xstrdup(path);
	struct node n = { .kind = NODE_DIR };

	for (char *p = strchr(part, '/'); p && n.kind == NODE_DIR;
	    p = strchr(p + 1, '/')) {
		*p = '\0';
		look_up(t, part, &n);
		*p = '/';
	}
	free(part);
	if (n.kind == NODE_DIR || n.kind == NODE_ABSENT)
		return;
	f->kind = n.kind == NODE_SYMLINK ? FILE_LINK : FILE_OTHER;
	f->above = true;
}

static void
find_on_head(struct tree *t, const char *path, struct file *f)
{
	struct node n;

	look_up(t, path, &n);
	if (n.kind == NODE_ABSENT) {
		find_above(t, path, f);
		return;
	}
	f->st = n.st;
	f->kind = kind_of(n.st.st_mode);
	f->layer = view_layer_id(t->view, n.layer);
	if (f->kind != FILE_REGULAR && f->kind != FILE_DIR)
		return;
	f->fd = view_fd(t->view, path, &n);
	if (f->fd == -1)
		answer_sys("unable to read %s in layer %s", path, f->layer);
}

void
tree_find(struct tree *t, const char *path, struct file *f)
{
	*f = (struct file){ .kind = FILE_ABSENT, .fd = -1, .layer = "" };
	if (t->id)
		find_in_session(t, path, f);
	else
		find_on_head(t, path, f);
}

void
file_release(struct file *f)
{
	io_drop(&f->fd);
}

void
file_require(const struct tree *t, const struct file *f, const char *path,
    bool may_be_absent)
{
	struct buf b = BUF_INIT;
	const char *what = NULL;
	bool absent = f->kind == FILE_ABSENT ||
	    (f->kind == FILE_OTHER && f->above && !t->id && !may_be_absent);

	if (absent && !may_be_absent) {
		out_path(&b, "path", path);
		answer_error(
		    EXIT_NO, KIND_NOT_FOUND, &b, "file not found: %s", path);
	}
	switch (f->kind) {
	case FILE_REGULAR:
	case FILE_ABSENT:
		return;
	case FILE_DIR:
		what = "it is a directory";
		break;
	case FILE_LINK:
		what = f->above ? "a directory on the way is a symbolic link"
				: "it is a symbolic link";
		break;
	case FILE_OTHER:
		what = f->above ? "something on the way is no directory"
				: "it is a pipe, a socket or a device";
		break;
	}
	answer_error(EXIT_USAGE, KIND_INVALID, NULL,
	    "not a regular file: %s (%s)", path, what);
}

/* ---- listing ---- */

void
tree_names(
    struct tree *t, const char *path, const struct file *f, struct names *out)
{
	int rc = t->id ? names_read(f->fd, out) : view_list(t->view, path, out);

	if (rc == -1)
		answer_sys("unable to list %s", *path ? path : "the workspace");
}

bool
tree_entry(struct tree *t, const char *path, const struct file *f,
    const char *name, enum file_kind *kind, uint64_t *size)
{
	struct stat st;
	struct node n;
	char *entry;

	if (t->id) {
		if (session_is_aside(t->id, name))
			return false;
		if (path_lstat(f->fd, name, &st) == -1) {
			if (errno == ENOENT)
				return false;
			answer_sys("unable to look at %s in %s", name,
			    *path ? path : "the workspace");
		}
	} else {
		entry = xasprintf("%s%s%s", path, *path ? "/" : "", name);
		look_up(t, entry, &n);
		free(entry);
		if (n.kind == NODE_ABSENT)
			return false;
		st = n.st;
	}
	*kind = kind_of(st.st_mode);
	*size = (uint64_t)st.st_size;
	return true;
}

uint64_t
file_limit(enum conf_which which)
{
	static struct conf conf;
	static bool read;
	struct buf why = BUF_INIT;
	int storefd;

	if (!read) {
		storefd = store_open();
		if (conf_read(storefd, &conf, &why) == -1) {
			if (why.len == 0)
				answer_sys("unable to read %s", CONF_NAME);
			answer_error(
			    EXIT_USAGE, KIND_FAILED, NULL, "%s", buf_str(&why));
		}
		io_drop(&storefd);
		read = true;
	}
	return conf_number(&conf, which);
}
