/* SPDX-License-Identifier: MIT */
#include "newsession.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "event.h"
#include "io.h"
#include "lock.h"
#include "overlay.h"
#include "path.h"
#include "stack.h"
#include "stage.h"
#include "store.h"
#include "upper.h"

enum {
	LOCK_MS = 30000,
	TRIES = 100
};

static int
make_id(struct session *s, char new_name[ID_MAX + 8])
{
	struct timespec ts;
	uint32_t r;

	if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
		return -1;
	clock_gettime(CLOCK_REALTIME, &ts);
	snprintf(s->id, sizeof s->id, "%06" PRIx32 "%016" PRIx64, r & 0xffffff,
	    (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
	snprintf(new_name, ID_MAX + 8, ".new.%s", s->id);
	return 0;
}

/*
 * An end that sweeps may take the new directory for a rest before its gate is
 * ours: then the next one.
 */
static int
make_place(struct session *s, char new_name[ID_MAX + 8], struct buf *why)
{
	for (int i = 0; i < TRIES; i++) {
		if (make_id(s, new_name) == -1)
			return buf_failed(why, "unable to get random bytes");
		if (mkdirat(s->workfd, new_name, 0700) == -1) {
			buf_failed(
			    why, "unable to make workspace/%s", new_name);
			*new_name = '\0';
			return -1;
		}
		s->dirfd =
		    path_open(s->workfd, new_name, O_RDONLY | O_DIRECTORY, 0);
		if (s->dirfd != -1)
			s->gatefd = gate_take(s->dirfd, "gate", true, 0);
		if (s->gatefd != -1)
			return 0;
		if (errno != ENOENT && errno != EAGAIN)
			break;
		io_drop(&s->dirfd);
	}
	return buf_failed(
	    why, "unable to take the gate of the new session %s", s->id);
}

/*
 * Before the lease, whose sync takes them along. The last job in it publishes
 * an automatic one: sb-exec(1).
 */
static int
make_parts(const struct session *s, bool automatic, struct buf *why)
{
	int fd;

	if (mkdirat(s->dirfd, "upper", 0700) == -1 ||
	    mkdirat(s->dirfd, "work", 0700) == -1 ||
	    mkdirat(s->dirfd, "merged", 0700) == -1)
		return buf_failed(
		    why, "unable to make the directories of session %s", s->id);
	if (!automatic)
		return 0;
	fd = openat(s->dirfd, "auto",
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1 || io_close(fd) == -1)
		return buf_failed(why, "unable to mark session %s", s->id);
	return 0;
}

static int
read_head(int stackfd, struct manifest *m, struct buf *why)
{
	const char *text = NULL;

	if (manifest_read(stackfd, STACK_MANIFEST, m, &text) == -1) {
		buf_addf(why, "unable to read %s: %s", STACK_MANIFEST,
		    text ? text : strerror(errno));
		/* It is not the caller's mistake. */
		errno = EIO;
		return -1;
	}
	if (m->n > 0 && m->n <= OVERLAY_LAYERS_MAX)
		return 0;
	if (m->n == 0)
		buf_adds(why,
		    "the store has no base: import a directory "
		    "with sb-base-import");
	else
		buf_addf(why,
		    "the stack has %zu layers, of which a session can mount "
		    "%d: put a shorter list in place with sb-stack-swap",
		    m->n, OVERLAY_LAYERS_MAX);
	errno = EINVAL;
	return -1;
}

static int
take_lease(const struct session *s, int stackfd, struct manifest *m, bool sync,
    struct buf *why)
{
	struct buf text = BUF_INIT;
	int lock, rc = -1;

	lock = lock_take(stackfd, STACK_LOCK, false, LOCK_MS);
	if (lock == -1 && errno == ETIMEDOUT) {
		buf_adds(why, "gave up waiting for the stack lock");
		return -1;
	}
	if (lock == -1)
		return buf_failed(why, "unable to lock the stack");
	if (read_head(stackfd, m, why) == 0) {
		manifest_format(m, &text);
		rc = (sync ? stage_file : stage_file_nosync)(
		    s->dirfd, "lease", text.data, text.len, 0600);
		if (rc == -1)
			buf_failed(why, "unable to write the lease");
	}
	io_drop(&lock);
	buf_release(&text);
	return rc;
}

static int
dress(const struct session *s, int stackfd, const char *layer, struct buf *why)
{
	int fd = path_open(s->dirfd, "upper", O_RDONLY | O_DIRECTORY, 0);
	int rc = fd == -1 ? -1 : upper_dress(stackfd, fd, layer);

	if (rc == -1)
		buf_failed(why,
		    "unable to give the upperdir the attributes of layer %s",
		    layer);
	io_drop(&fd);
	return rc;
}

static int
put_in_place(
    const struct session *s, const char *new_name, bool sync, struct buf *why)
{
	if (renameat(s->workfd, new_name, s->workfd, s->id) == -1)
		return buf_failed(
		    why, "unable to put session %s in place", s->id);
	if (sync && stage_sync_dir(s->workfd, ".") == -1) {
		buf_failed(why, "unable to sync workspace/");
		/* Back out of sight, where it is removed. */
		if (renameat(s->workfd, s->id, s->workfd, new_name) == -1)
			buf_addf(why, ", session %s is left", s->id);
		return -1;
	}
	return 0;
}

int
session_new(struct session *s, bool automatic, struct buf *why)
{
	char new_name[ID_MAX + 8] = "";
	struct manifest m = MANIFEST_INIT;
	int stackfd = store_open_stack(), rc = -1, err;

	*s = (struct session)SESSION_INIT;
	s->workfd = store_open_workspace();
	if (make_place(s, new_name, why) == 0 &&
	    make_parts(s, automatic, why) == 0 &&
	    take_lease(s, stackfd, &m, !automatic, why) == 0 &&
	    dress(s, stackfd, m.id[0], why) == 0)
		rc = put_in_place(s, new_name, !automatic, why);
	if (rc == 0)
		event_lease("lease.acquired", m.version);
	err = errno;
	if (rc == -1) {
		if (*new_name != '\0')
			path_rm_tree(s->workfd, new_name);
		session_close(s);
	}
	manifest_release(&m);
	io_drop(&stackfd);
	errno = err;
	return rc;
}

int
session_new_code(int err)
{
	switch (err) {
	case ETIMEDOUT:
		return EXIT_TIMEOUT;
	case EINVAL:
		return EXIT_USAGE;
	default:
		return EXIT_SYS;
	}
}

int
session_sync(const struct session *s)
{
	int fd = openat(s->dirfd, "lease", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int rc = -1;

	if (fd != -1 && fsync(fd) == 0 && fsync(s->dirfd) == 0)
		rc = stage_sync_dir(s->workfd, ".");
	io_drop(&fd);
	return rc;
}
