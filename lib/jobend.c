/* SPDX-License-Identifier: MIT */
#include "jobend.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "err.h"
#include "io.h"
#include "json.h"
#include "lock.h"
#include "num.h"
#include "rows.h"
#include "session.h"
#include "spawn.h"
#include "stage.h"

#define GATE_TEXT "60000"

enum {
	GATE_MS = 60000,
	KILL_MS = 5000,
	ANSWER_MAX = 1 << 26
};

void
job_leaf_name(const struct job *j, char *out, size_t n)
{
	struct stat st;

	if (fstat(j->jobsfd, &st) == -1)
		st.st_dev = st.st_ino = 0;
	snprintf(out, n, "%jx-%jx-%s", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino, j->id + sizeof JOB_PREFIX - 1);
}

static void
fail(struct job_end *e, const char *class)
{
	e->failed = true;
	snprintf(e->failure_class, sizeof e->failure_class,
	    "holder_finalization_%s", class);
}

static void
note(struct job_end *e, const char *text)
{
	size_t n = strcspn(text, "\n");

	if (*e->note)
		return;
	snprintf(e->note, sizeof e->note, "%.*s", (int)n, text);
}

static int
slurp(int fd, struct buf *b)
{
	if (lseek(fd, 0, SEEK_SET) == -1)
		return -1;
	return io_read_buf(fd, b, ANSWER_MAX);
}

/* Code of sb-publish; -1 when it could not be run. */
static int
publish(const char *session, struct buf *answer, struct buf *words)
{
	const char *const argv[] = { "sb-publish", "-t", GATE_TEXT, session,
		NULL };
	int out = memfd_create("answer", MFD_CLOEXEC);
	int err = memfd_create("words", MFD_CLOEXEC);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), code = -1;
	pid_t pid = -1;

	if (out != -1 && err != -1 && null != -1)
		pid = spawn(argv,
		    (struct spawn_fd[]){ { null, 0 }, { out, 1 }, { err, 2 } },
		    3);
	if (pid != -1)
		code = spawn_wait(pid);
	if (code != -1 && (slurp(out, answer) == -1 || slurp(err, words) == -1))
		code = -1;
	io_drop(&out);
	io_drop(&err);
	io_drop(&null);
	return code;
}

/* Keeps the session as one that everybody can use. */
static int
park(const char *id, const struct buf *answer)
{
	struct names active = NAMES_INIT;
	struct session s;
	int rc = -1;

	if (session_open(&s, id) == -1)
		return errno == ENOENT ? 0 : -1;
	if (session_gate(&s, true, GATE_MS) == -1) {
		rc = errno == ENOENT ? 0 : -1;
		goto out;
	}
	/* Who came after the refusal will try again. */
	if (job_active(id, NULL, &active) == -1)
		goto out;
	if (active.n > 0) {
		rc = 0;
		goto out;
	}
	if (stage_file(s.dirfd, "conflicted", buf_str(answer), answer->len,
		0600) == -1 ||
	    (unlinkat(s.dirfd, "auto", 0) == -1 && errno != ENOENT) ||
	    session_stop(&s) == -1)
		goto out;
	rc = 1;
out:
	names_release(&active);
	io_drop(&s.lockfd);
	io_drop(&s.gatefd);
	io_drop(&s.dirfd);
	io_drop(&s.workfd);
	return rc;
}

static void
reject_class(const struct buf *answer, struct job_end *e)
{
	struct span all = { buf_str(answer), answer->len };
	struct buf word = BUF_INIT;

	e->rejected = true;
	if (!json_is_valid(all.p, all.n, NULL, NULL) ||
	    !json_string(
		json_member(json_member(json_member(json_member(all, "error"),
					    "details"),
				"publish_rejection"),
		    "reason"),
		&word) ||
	    word.len == 0 || word.len >= sizeof e->reject_class)
		snprintf(
		    e->reject_class, sizeof e->reject_class, "publish_error");
	else
		memcpy(e->reject_class, word.data, word.len + 1);
	buf_release(&word);
}

bool
job_session_is_automatic(const char *session)
{
	struct session s;
	struct stat st;
	bool yes;

	if (session_open(&s, session) == -1)
		return false;
	yes = path_lstat(s.dirfd, "auto", &st) == 0;
	io_drop(&s.dirfd);
	io_drop(&s.workfd);
	return yes;
}

void
job_finalise(struct job *j, const char *session, struct job_end *e)
{
	struct buf answer = BUF_INIT, words = BUF_INIT;
	int code, kept = 0;

	if (!job_session_is_automatic(session))
		return;
	code = publish(session, &answer, &words);
	switch (code) {
	case EXIT_OK:
	case EXIT_NO: /* another was the last */
	case EXIT_BUSY: /* we are not the last */
		goto out;
	case EXIT_CONFLICT:
		reject_class(&answer, e);
		break;
	case EXIT_TIMEOUT:
		fail(e, "timed_out");
		break;
	default:
		/* With an answer it is published, and could not be ended. */
		fail(e, answer.len > 0 ? "destroy_failed" : "capture_failed");
	}
	note(e, buf_str(&words));
	if (answer.len > 0)
		stage_file_nosync(
		    j->dirfd, "publish", answer.data, answer.len, 0600);
	kept = park(session, &answer);
	if (kept == -1 && !e->failed)
		fail(e, "state_changed");
	e->parked = kept == 1;
out:
	buf_release(&answer);
	buf_release(&words);
}

/*
 * The rows that were live stay, if they follow on those that are final: then
 * nobody asked for them too early.
 */
static void
settle_live(const struct job *j)
{
	struct buf b = BUF_INIT;
	struct rows_file f;
	int64_t n = -1;
	uint64_t final;

	if (io_read_file_at(j->dirfd, "live", &b, ANSWER_MAX) == -1)
		goto out;
	if (rows_open(&f, j->dirfd) == 0) {
		n = rows_count(&f);
		rows_close(&f);
	}
	buf_reserve(&b, 0);
	b.data[strcspn(b.data, "\n")] = '\0';
	if (n == -1 || !num_dec(b.data, 0, UINT64_MAX, &final) ||
	    final != (uint64_t)n)
		unlinkat(j->dirfd, "live", 0);
out:
	buf_release(&b);
}

int
job_settle(struct job *j)
{
	struct leaf leaf = LEAF_INIT;
	struct job_meta m;
	struct job_end e;
	char name[64];
	int rc = -1;

	/* Locked: of those who see it only one settles it. */
	j->lockfd = lock_take(j->dirfd, "lock", true, 0);
	if (j->lockfd == -1)
		return errno == EAGAIN ? 0 : -1;
	if (faccessat(j->dirfd, "status", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		io_drop(&j->lockfd);
		return 0;
	}
	if (job_meta_read(j, &m) == -1)
		goto out;
	job_leaf_name(j, name, sizeof name);
	if (leaf_open(&leaf, JOB_LEAF, name) == 0) {
		leaf_kill(&leaf, KILL_MS);
		leaf_remove(&leaf);
	}
	if (job_end_read(j, "ended", &e) == -1) {
		if (errno != ENOENT)
			goto out;
		e = (struct job_end){ .status = "error",
			.total_ns = job_now() - m.start };
		note(&e, "the process of the job was killed");
		if (job_end_write(j, "ended", &e) == -1)
			goto out;
	}
	settle_live(j);
	job_finalise(j, m.session, &e);
	if (e.wall_ns == 0)
		e.wall_ns = job_now() - m.start;
	rc = job_end_write(j, "status", &e) == -1 ? -1 : 1;
out:
	io_drop(&j->lockfd);
	return rc;
}
