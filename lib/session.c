/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "event.h"
#include "io.h"
#include "json.h"
#include "lock.h"
#include "ns.h"
#include "spawn.h"
#include "stack.h"
#include "stage.h"
#include "store.h"
#include "sys.h"

enum {
	END_MS = 30000,
	STEP_MS = 100
};

/* What the last failure was about, for people. */
static char trouble[ID_MAX + 160];

const char *
session_trouble(void)
{
	return trouble;
}

static void
blame(const struct session *s, const char *what)
{
	int err = errno;

	snprintf(trouble, sizeof trouble, ": workspace/%s/%s", s->id, what);
	errno = err;
}

int
session_open(struct session *s, const char *id)
{
	*s = (struct session)SESSION_INIT;
	if (!id_is_valid(id)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(s->id, id, strlen(id) + 1);
	s->workfd = store_open_workspace();
	s->dirfd = path_open(s->workfd, id, O_RDONLY | O_DIRECTORY, 0);
	if (s->dirfd == -1)
		io_drop(&s->workfd);
	return s->dirfd == -1 ? -1 : 0;
}

void
session_close(struct session *s)
{
	io_drop(&s->lockfd);
	io_drop(&s->gatefd);
	io_drop(&s->dirfd);
	io_drop(&s->workfd);
}

bool
session_has(const struct session *s, const char *file)
{
	struct stat st;

	return path_lstat(s->dirfd, file, &st) == 0;
}

int64_t
session_count(const char *file)
{
	struct names v = NAMES_INIT;
	char path[ID_MAX + 64];
	int fd = store_open_workspace();
	struct stat st;
	int64_t n = names_read(fd, &v);

	for (size_t i = 0; i < v.n; i++) {
		snprintf(path, sizeof path, "%s/%s", v.name[i], file);
		if (id_is_valid(v.name[i]) && path_lstat(fd, path, &st) == 0)
			n++;
	}
	names_release(&v);
	io_drop(&fd);
	return n;
}

/*
 * What outlives the names in a directory for those who have it open: its mode.
 * Nobody else sets this bit.
 */
int
session_mark_ended(const struct session *s, bool ends)
{
	return fchmod(s->dirfd, ends ? S_ISVTX | 0700 : 0700);
}

static bool
is_marked(const struct session *s)
{
	struct stat st;

	return fstat(s->dirfd, &st) == 0 && (st.st_mode & S_ISVTX);
}

int
session_gate(struct session *s, bool exclusive, int ms)
{
	struct stat st;

	trouble[0] = '\0';
	s->gatefd = gate_take(s->dirfd, "gate", exclusive, ms);
	if (s->gatefd == -1 && errno != ENOENT) {
		blame(s, "gate");
		return -1;
	}
	/* Whoever had it before may have ended the session. */
	if (s->gatefd != -1 && path_lstat(s->workfd, s->id, &st) == 0)
		return 0;
	if (s->gatefd == -1 || errno == ENOENT) {
		s->ended = is_marked(s);
		errno = ENOENT;
	}
	io_drop(&s->gatefd);
	return -1;
}

int
session_is_running(const struct session *s)
{
	int rc = lock_is_held(s->dirfd, "lock");

	trouble[0] = '\0';
	if (rc == -1)
		blame(s, "lock");
	return rc;
}

/*
 * A pidfd of the recorded init; ESRCH when there is none (any more). A record
 * that somebody removed or damaged is made anew.
 */
static int
open_init(const struct session *s, struct hold *h)
{
	trouble[0] = '\0';
	if (hold_read(s->dirfd, h) == 0)
		return hold_open(h);
	if (errno != ENOENT && errno != EINVAL) {
		blame(s, "hold cannot be read");
		return -1;
	}
	if (hold_find(s->id, h) == -1) {
		if (errno != ESRCH)
			blame(s, "hold is missing or damaged, and so is /proc");
		return -1;
	}
	/* For those who only read it. Should that fail, they say so. */
	hold_write(s->dirfd, h);
	return hold_open(h);
}

/* 1 when the recorded init lives, 0, -1 errno. */
static int
init_lives(const struct session *s)
{
	struct hold h;
	int fd = open_init(s, &h), rc;

	if (fd == -1)
		return errno == ESRCH ? 0 : -1;
	rc = io_wait(fd, 0);
	io_drop(&fd);
	if (rc == 0)
		return 0;
	return errno == ETIMEDOUT ? 1 : -1;
}

int
session_can_be_entered(const struct session *s)
{
	int rc = session_is_running(s);

	return rc == 1 ? init_lives(s) : rc;
}

/* 0 when no holder is left, 1 when one lives after all, -1 errno. */
static int
await_holder(const struct session *s)
{
	int fd = -1, rc;

	for (int ms = 0; ms < END_MS; ms += STEP_MS) {
		fd = lock_take(s->dirfd, "lock", true, STEP_MS);
		if (fd != -1 || errno != ETIMEDOUT)
			break;
		rc = init_lives(s);
		if (rc != 0)
			return rc;
		errno = ETIMEDOUT;
	}
	if (fd == -1) {
		blame(s, "lock");
		return -1;
	}
	io_drop(&fd);
	return 0;
}

char *
session_workspace(void)
{
	struct buf text = BUF_INIT, path = BUF_INIT;
	int fd = store_open_stack();
	bool good = false;

	if (io_read_file_at(fd, "workspace.json", &text, 1 << 16) == 0) {
		struct span all = { buf_str(&text), text.len };

		good = json_is_valid(all.p, all.n, NULL, NULL) &&
		    json_string(json_member(all, "workspace_root"), &path) &&
		    strlen(buf_str(&path)) == path.len && path.len > 1 &&
		    path.data[0] == '/';
		if (!good)
			errno = EINVAL;
	}
	io_drop(&fd);
	buf_release(&text);
	if (!good) {
		buf_release(&path);
		return NULL;
	}
	return buf_steal(&path);
}

int
session_start(struct session *s)
{
	int ready[2] = { -1, -1 }, null = -1, rc;
	char byte, *workspace;
	pid_t pid;

	trouble[0] = '\0';
	rc = await_holder(s);
	if (rc != 0)
		return rc == 1 ? 0 : -1;
	workspace = session_workspace();
	if (!workspace) {
		snprintf(
		    trouble, sizeof trouble, ": layer-stack/workspace.json");
		return -1;
	}
	rc = -1;
	if (pipe2(ready, O_CLOEXEC) == -1)
		goto out;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null == -1)
		goto out;
	pid = spawn((const char *const[]){ "sb-ns-hold", "-3", "3", s->id,
			"sb-session-setup", workspace, NULL },
	    (struct spawn_fd[]){ { null, 0 }, { null, 1 }, { ready[1], 3 } },
	    3);
	io_drop(&ready[1]);
	if (pid == -1)
		goto out;
	if (io_read_all(ready[0], &byte, 1) == 1) {
		rc = 0;
	} else {
		spawn_wait(pid);
		errno = EIO;
	}
out:
	io_drop(&null);
	io_drop(&ready[0]);
	io_drop(&ready[1]);
	free(workspace);
	return rc;
}

/* Kills the recorded init and waits for its end; without one, success. */
static int
end_init(const struct session *s)
{
	struct hold h;
	int fd = open_init(s, &h), rc;

	if (fd == -1)
		return errno == ESRCH ? 0 : -1;
	/* The init's end is the end of all; the outer process sees it. */
	rc = sys_pidfd_send_signal(fd, SIGKILL);
	if (rc == 0)
		rc = io_wait(fd, END_MS);
	else if (errno == ESRCH)
		rc = 0;
	io_drop(&fd);
	return rc;
}

int
session_stop(struct session *s)
{
	/*
	 * A holder that is being started has the lock before it records its
	 * init: look again until the lock is ours.
	 */
	for (int ms = 0; ms < END_MS; ms += STEP_MS) {
		if (end_init(s) == -1)
			return -1;
		s->lockfd = lock_take(s->dirfd, "lock", true, STEP_MS);
		if (s->lockfd != -1 || errno != ETIMEDOUT)
			break;
	}
	if (s->lockfd == -1) {
		blame(s, "lock");
		return -1;
	}
	/* Its init is recorded by now, if it got that far. */
	return end_init(s);
}

/*
 * Starts a process that keeps the mounts of the recorded init until that has
 * ended, and then undoes them by its own end. Without it the init does that,
 * and is waited for.
 */
static void
keep_mounts(struct session *s)
{
	int fds[2] = { -1, -1 };
	char path[48];
	struct hold h;

	if (s->unmounts != 0 || hold_read(s->dirfd, &h) == -1)
		return;
	fds[0] = hold_open(&h);
	snprintf(path, sizeof path, "/proc/%ld/ns/mnt", (long)h.pid);
	if (fds[0] != -1)
		fds[1] = open(path, O_RDONLY | O_CLOEXEC);
	if (fds[1] != -1)
		s->unmounts = fork();
	if (s->unmounts == 0 && fds[1] != -1) {
		/* Nothing else of whoever started us stays open. */
		if (dup2(fds[0], 0) == -1 || dup2(fds[1], 1) == -1 ||
		    sys_close_range(2, ~0U, 0) == -1)
			_exit(EXIT_SYS);
		io_wait(0, -1);
		_exit(EXIT_OK);
	}
	if (s->unmounts == -1)
		s->unmounts = 0;
	io_drop(&fds[0]);
	io_drop(&fds[1]);
}

int
session_kill(struct session *s)
{
	keep_mounts(s);
	return session_stop(s);
}

void
session_await_unmount(struct session *s)
{
	if (s->unmounts != 0)
		spawn_wait(s->unmounts);
	s->unmounts = 0;
}

int
session_has_leftovers(const struct session *s)
{
	struct hold h;
	int fd = open_init(s, &h);

	if (fd == -1)
		return errno == ESRCH ? 0 : -1;
	io_drop(&fd);
	return ns_has_leftovers(h.pid);
}

/*
 * The gate tells whether somebody is at work in .new.ID or .end.ID: held from
 * the first to the last file of it. It is taken, not asked for, so that a
 * beginning cannot start in a directory that is about to go.
 */
void
session_sweep(int workfd)
{
	struct names v = NAMES_INIT;
	int fd, gate;

	if (names_read(workfd, &v) == -1)
		return;
	for (size_t i = 0; i < v.n; i++) {
		if (v.name[i][0] != '.')
			continue;
		fd = path_open(workfd, v.name[i], O_RDONLY | O_DIRECTORY, 0);
		if (fd == -1)
			continue;
		gate = gate_take(fd, "gate", true, 0);
		if (gate != -1)
			path_rm_tree(workfd, v.name[i]);
		io_drop(&gate);
		io_drop(&fd);
	}
	names_release(&v);
}

/* Of the lease, for the account; 0 where no span is open. */
static uint64_t
leased_version(const struct session *s)
{
	struct manifest m = MANIFEST_INIT;
	const char *why;
	uint64_t version = 0;

	if (event_open() && manifest_read(s->dirfd, "lease", &m, &why) == 0)
		version = m.version;
	manifest_release(&m);
	return version;
}

int
session_remove(struct session *s, bool sync)
{
	static const char *const large[] = { "upper", "work", "merge", "merged",
		"private" };
	const uint64_t version = leased_version(s);
	char end[ID_MAX + 8];

	trouble[0] = '\0';
	snprintf(end, sizeof end, ".end.%s", s->id);
	if (renameat(s->workfd, s->id, s->workfd, end) == -1 ||
	    (sync && stage_sync_dir(s->workfd, ".") == -1))
		return -1;
	if (version > 0)
		event_lease("lease.released", version);
	/* Should anything fail now, the session has ended all the same. */
	snprintf(trouble, sizeof trouble,
	    ": it has ended, its rest is workspace/%s", end);
	/* The gate goes last: until then nobody else sweeps here. */
	for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
		if (path_rm_tree(s->dirfd, large[i]) == -1)
			return -1;
	if (path_rm_tree(s->workfd, end) == -1 && errno != ENOTEMPTY)
		return -1;
	session_sweep(s->workfd);
	return 0;
}

void
session_aside(const char *id, char out[SESSION_ASIDE_BYTES])
{
	snprintf(out, SESSION_ASIDE_BYTES, ".sb-%s.tmp", id);
}

bool
session_is_aside(const char *id, const char *path)
{
	char aside[SESSION_ASIDE_BYTES];
	size_t len, n;

	session_aside(id, aside);
	len = strlen(aside);
	for (; *path != '\0'; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (n == len && memcmp(path, aside, n) == 0)
			return true;
	}
	return false;
}
