/* SPDX-License-Identifier: MIT */
/*
 * sb-session-new: make a session over the current stack. Shape: sink; prints
 * the session's id.
 *
 *   1. Make workspace/.new.ID, its gate held exclusively, and in it the
 *      directories of an overlay.
 *   2. Under the shared stack lock read the manifest and write it as the
 *      lease: no layer of it can go from now on.
 *   3. Give the upperdir owner, mode and xattrs of the directory that it
 *      covers.
 *   4. Rename to workspace/ID; start the holder.
 *
 * What a killed run leaves under a dot name goes with the next end of a
 * session; what it leaves under ID is a parked session without changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attr.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "lock.h"
#include "overlay.h"
#include "path.h"
#include "session.h"
#include "stack.h"
#include "stage.h"
#include "store.h"

static const char usage[] = "sb-session-new [-a]";

enum {
	LOCK_MS = 30000,
	TRIES = 100
};

static struct session s = SESSION_INIT;
static char new_name[ID_MAX + 8];
static bool visible, finished;

static void
undo(void)
{
	if (finished || *new_name == '\0')
		return;
	if (!visible)
		path_rm_tree(s.workfd, new_name);
	else if (session_stop(&s) == 0)
		session_remove(&s);
}

static void
make_id(void)
{
	struct timespec ts;
	uint32_t r;

	if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
		die_sys("unable to get random bytes");
	clock_gettime(CLOCK_REALTIME, &ts);
	snprintf(s.id, sizeof s.id, "%06" PRIx32 "%016" PRIx64, r & 0xffffff,
	    (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
	snprintf(new_name, sizeof new_name, ".new.%s", s.id);
}

/*
 * An end that sweeps may take the new directory for a rest before its gate is
 * ours: then the next one.
 */
static void
make_place(void)
{
	for (int i = 0; i < TRIES; i++) {
		make_id();
		if (mkdirat(s.workfd, new_name, 0700) == -1)
			die_sys("unable to make workspace/%s", new_name);
		s.dirfd =
		    path_open(s.workfd, new_name, O_RDONLY | O_DIRECTORY, 0);
		if (s.dirfd != -1)
			s.gatefd = gate_take(s.dirfd, "gate", true, 0);
		if (s.gatefd != -1)
			return;
		if (errno != ENOENT && errno != EAGAIN)
			break;
		io_drop(&s.dirfd);
	}
	die_sys("unable to take the gate of the new session %s", s.id);
}

/* The last job in it publishes it: sb-exec(1). */
static int
mark_automatic(void)
{
	int fd = openat(s.dirfd, "auto",
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd == -1 ? -1 : io_close(fd);
}

static void
take_lease(int stackfd, struct manifest *m)
{
	struct buf text = BUF_INIT;
	const char *why = NULL;
	int lock;

	lock = lock_take(stackfd, STACK_LOCK, false, LOCK_MS);
	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "gave up waiting for the stack lock");
	if (lock == -1)
		die_sys("unable to lock the stack");
	if (manifest_read(stackfd, STACK_MANIFEST, m, &why) == -1)
		die(EXIT_SYS, "unable to read %s: %s", STACK_MANIFEST,
		    why ? why : strerror(errno));
	if (m->n == 0)
		die(EXIT_USAGE,
		    "the store has no base: import a directory "
		    "with sb-base-import");
	if (m->n > OVERLAY_LAYERS_MAX)
		die(EXIT_USAGE,
		    "the stack has %zu layers, of which a session can mount "
		    "%d: put a shorter list in place with sb-stack-swap",
		    m->n, OVERLAY_LAYERS_MAX);
	manifest_format(m, &text);
	if (stage_file(s.dirfd, "lease", text.data, text.len, 0600) == -1)
		die_sys("unable to write the lease");
	io_drop(&lock);
	buf_release(&text);
}

static void
dress_upper(int stackfd, const struct manifest *m)
{
	struct buf xattrs = BUF_INIT;
	struct stat st;
	int from, to;

	from = stack_open_layer(stackfd, m->id[0]);
	if (from == -1)
		die_sys("unable to open layer %s", m->id[0]);
	to = path_open(s.dirfd, "upper", O_RDONLY | O_DIRECTORY, 0);
	if (to == -1 || fstat(from, &st) == -1 ||
	    attr_xattrs(from, &xattrs, NULL) == -1 ||
	    attr_set_xattrs(to, buf_str(&xattrs), xattrs.len) == -1 ||
	    attr_set(to, &st, st.st_mode & 07777) == -1)
		die_sys("unable to give the upperdir its attributes");
	buf_release(&xattrs);
	io_drop(&from);
	io_drop(&to);
}

int
main(int argc, char **argv)
{
	struct manifest m = MANIFEST_INIT;
	bool automatic = false;
	int opt, stackfd;

	err_init();
	while ((opt = getopt(argc, argv, "+ah")) != -1) {
		if (opt == 'a')
			automatic = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);

	stackfd = store_open_stack();
	s.workfd = store_open_workspace();
	if (atexit(undo) != 0)
		die(EXIT_SYS, "out of memory");
	make_place();
	/* Before the lease, whose sync takes them along. */
	if (mkdirat(s.dirfd, "upper", 0700) == -1 ||
	    mkdirat(s.dirfd, "work", 0700) == -1 ||
	    mkdirat(s.dirfd, "merged", 0700) == -1)
		die_sys("unable to make the directories of session %s", s.id);
	if (automatic && mark_automatic() == -1)
		die_sys("unable to mark session %s", s.id);
	take_lease(stackfd, &m);
	dress_upper(stackfd, &m);
	if (renameat(s.workfd, new_name, s.workfd, s.id) == -1)
		die_sys("unable to put session %s in place", s.id);
	visible = true;
	if (stage_sync_dir(s.workfd, ".") == -1)
		die_sys("unable to sync workspace/");
	if (session_start(&s) == -1)
		die_sys(
		    "unable to start session %s%s", s.id, session_trouble());
	puts(s.id);
	stdout_done();
	finished = true;
	return EXIT_OK;
}
