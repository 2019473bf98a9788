/* SPDX-License-Identifier: MIT */
#include "jobend.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "err.h"
#include "event.h"
#include "history.h"
#include "io.h"
#include "json.h"
#include "lock.h"
#include "out.h"
#include "session.h"
#include "spawn.h"
#include "stack.h"
#include "stage.h"
#include "store.h"
#include "upper.h"

enum {
	KILL_MS = 5000,
	ATTEMPTS = 3, /* to end the processes of a session */
	RETRY_MS = 50,
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

void
job_end_fail(struct job_end *e, const char *class, const char *text)
{
	fail(e, class);
	note(e, text);
}

static int
slurp(int fd, struct buf *b)
{
	if (lseek(fd, 0, SEEK_SET) == -1)
		return -1;
	return io_read_buf(fd, b, ANSWER_MAX);
}

/* An object that says no more than the words. */
static void
forget_error(struct buf *answer)
{
	struct span all = { buf_str(answer), answer->len };

	if (json_is_valid(all.p, all.n, NULL, NULL) &&
	    json_member(all, "error").p)
		buf_cut(answer, 0);
}

/* Code of sb-publish, under the gate that we hold; -1 when it could not be
 * run. */
static int
publish(const struct session *s, struct buf *answer, struct buf *words)
{
	const char *const argv[] = { "sb-publish", "-g", "3", s->id, NULL };
	int out = memfd_create("answer", MFD_CLOEXEC);
	int err = memfd_create("words", MFD_CLOEXEC);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), code = -1;
	pid_t pid = -1;

	if (out != -1 && err != -1 && null != -1)
		pid = spawn(argv,
		    (struct spawn_fd[]){
			{ null, 0 }, { out, 1 }, { err, 2 }, { s->gatefd, 3 } },
		    4);
	if (pid != -1)
		code = spawn_wait(pid);
	if (code != -1 && (slurp(out, answer) == -1 || slurp(err, words) == -1))
		code = -1;
	if (code != EXIT_CONFLICT)
		forget_error(answer);
	io_drop(&out);
	io_drop(&err);
	io_drop(&null);
	return code;
}

/*
 * Keeps the session as one that everybody can use. Killed before "auto" is
 * gone we have done nothing: the next one publishes anew.
 */
static int
park(struct session *s, const struct buf *answer)
{
	session_await_unmount(s);
	io_drop(&s->lockfd);
	if (stage_file(s->dirfd, "conflicted", buf_str(answer), answer->len,
		0600) == -1 ||
	    (unlinkat(s->dirfd, "auto", 0) == -1 && errno != ENOENT))
		return -1;
	return fsync(s->dirfd);
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

/* Is the session, whose gate we hold, ours to end? 1, 0, -1. */
static int
is_ours(const struct session *s, const struct job *j)
{
	struct names active = NAMES_INIT;
	int rc;

	/* Who had the gate before may have kept it. */
	if (!session_has(s, "auto"))
		return 0;
	if (!j) {
		rc = job_is_pending(s->id);
	} else {
		rc = job_active(s->id, j->id, &active);
		if (rc == 0)
			rc = active.n > 0;
		names_release(&active);
	}
	return rc == -1 ? -1 : rc == 0;
}

/* Its processes end first: what is read then stays as it is. */
static int
quiesce(struct session *s, struct job_end *e)
{
	int err = 0;

	for (int i = 1; i <= ATTEMPTS && err != ETIMEDOUT; i++) {
		if (session_kill(s) == 0)
			return 0;
		err = errno;
		e->attempts = (uint64_t)i;
		io_drop(&s->lockfd);
		if (i < ATTEMPTS)
			poll(NULL, 0, RETRY_MS);
	}
	fail(e, err == ETIMEDOUT ? "termination_failed" : "observation_failed");
	note(e, *session_trouble() ? session_trouble() + 2 : strerror(err));
	return -1;
}

/* Did it change nothing? What cannot be read is left to sb-publish. */
static bool
is_unchanged(const struct session *s)
{
	struct manifest m = MANIFEST_INIT;
	const char *why = NULL;
	int upper = path_open(s->dirfd, "upper", O_RDONLY | O_DIRECTORY, 0);
	int stack = store_open_stack();
	bool yes;

	yes = upper != -1 && manifest_read(s->dirfd, "lease", &m, &why) == 0 &&
	    m.n > 0 && upper_is_unchanged(stack, upper, m.id[0]) == 1;
	manifest_release(&m);
	io_drop(&upper);
	io_drop(&stack);
	return yes;
}

/*
 * One that never was, see newsession.h, has nothing to publish. Somebody may
 * have removed the lease of one that was.
 */
static bool
never_was(const struct session *s)
{
	struct names v = NAMES_INIT;
	int upper = path_open(s->dirfd, "upper", O_RDONLY | O_DIRECTORY, 0);
	bool yes = stack_lease_never_was(s->dirfd) &&
	    (upper == -1 ? errno == ENOENT
			 : names_read(upper, &v) == 0 && v.n == 0);

	names_release(&v);
	io_drop(&upper);
	return yes;
}

/* Of one that changed nothing, or never was. 1: it is gone. 0: no such one. */
static int
end_unchanged(struct session *s, struct job_end *e)
{
	struct event_span *span;
	int rc = -1;

	span = event_begin("workspace_session.capture_changes");
	if (!never_was(s) && !is_unchanged(s)) {
		/* sb-publish looks itself. */
		event_drop(span);
		return 0;
	}
	event_end(span, NULL);
	span = event_begin("workspace_session.destroy");
	if (job_tell_gone(s->id) == 0 && session_remove(s, false) == 0)
		rc = 1;
	if (rc == -1) {
		fail(e, "destroy_failed");
		note(e, strerror(errno));
	}
	event_end(span, rc == 1 ? NULL : EVENT_ERROR);
	return rc;
}

static void
out_count(struct buf *b, const struct history *h, const char *name)
{
	struct span n = json_member((struct span){ h->p, h->n }, name);

	out_key(b, name);
	buf_add(b, n.p ? n.p : "0", n.p ? n.n : 1);
}

/*
 * What the history says of session id, as the member publish of an answer: what
 * a publish did of which nobody heard. Only versions after since are looked at.
 * False when there is nothing.
 */
static bool
recall(const char *id, uint64_t since, struct buf *answer)
{
	struct history h = HISTORY_INIT;
	struct manifest now = MANIFEST_INIT;
	char hex[HASH_HEX + 1];
	struct buf word = BUF_INIT;
	const char *why;
	int stack = store_open_stack();
	enum history_kind kind = HISTORY_ERROR;
	bool found = false;

	/* A line newer than the manifest was never committed. */
	if (manifest_read(stack, STACK_MANIFEST, &now, &why) == 0 &&
	    history_open(stack, &h) == 1)
		kind = history_prev(&h);
	for (; !found && kind > HISTORY_START; kind = history_prev(&h)) {
		struct span all = { h.p, h.n };

		if (kind != HISTORY_LINE || h.version > now.version)
			continue;
		if (h.version <= since)
			break;
		buf_cut(&word, 0);
		found = json_string(json_member(all, "session"), &word) &&
		    strcmp(buf_str(&word), id) == 0;
		if (found)
			break;
	}
	if (found) {
		buf_cut(answer, 0);
		buf_addc(answer, '{');
		out_str(answer, "workspace_session_id", id);
		out_key(answer, "publish");
		buf_addc(answer, '{');
		out_bool(answer, "no_op", false);
		out_key(answer, "revision");
		buf_addc(answer, '{');
		out_num(answer, "manifest_version", h.version);
		if (h.version == now.version) {
			manifest_root_hash(&now, hex);
			out_str(answer, "root_hash", hex);
			out_num(answer, "layer_count", now.n);
		}
		buf_addc(answer, '}');
		out_key(answer, "route_summary");
		buf_addc(answer, '{');
		out_count(answer, &h, "source_count");
		out_count(answer, &h, "ignored_count");
		buf_addc(answer, '}');
		out_count(answer, &h, "merged_count");
		buf_adds(answer, "}}\n");
	}
	buf_release(&word);
	history_close(&h);
	manifest_release(&now);
	io_drop(&stack);
	return found;
}

/* Of the lease; 0 without one. */
static uint64_t
leased_version(const struct session *s)
{
	struct manifest m = MANIFEST_INIT;
	const char *why;
	uint64_t version = 0;

	if (manifest_read(s->dirfd, "lease", &m, &why) == 0)
		version = m.version;
	manifest_release(&m);
	return version;
}

static bool
is_gone(const struct session *s)
{
	struct stat st;

	return path_lstat(s->workfd, s->id, &st) == -1 && errno == ENOENT;
}

/* Did it make a layer, by its answer? */
static bool
has_committed(const struct buf *answer)
{
	struct span all = { buf_str(answer), answer->len }, no_op;

	if (!json_is_valid(all.p, all.n, NULL, NULL))
		return false;
	no_op = json_member(json_member(all, "publish"), "no_op");
	return no_op.p && no_op.n == strlen("false");
}

/* True: it is gone. False: it is to be kept, and e says why. */
static bool
publish_and_end(struct session *s, struct job_end *e, struct buf *answer)
{
	struct buf words = BUF_INIT;
	uint64_t since;
	int code;

	if (quiesce(s, e) == -1)
		return false;
	code = end_unchanged(s, e);
	if (code != 0)
		return code == 1;
	if (!session_has(s, "lease")) {
		fail(e, "capture_failed");
		snprintf(e->note, sizeof e->note,
		    "workspace/%s/lease is missing: what the session changed "
		    "is in workspace/%s/upper",
		    s->id, s->id);
		return false;
	}
	since = leased_version(s);
	io_drop(&s->lockfd);
	code = publish(s, answer, &words);
	/* Somebody before us may have got as far as the stack, or sb-publish
	 * was killed at the very end. */
	if (code == EXIT_OK && !has_committed(answer))
		recall(s->id, since, answer);
	else if (code > 128 && is_gone(s) && recall(s->id, since, answer))
		code = EXIT_OK;
	if (code == EXIT_CONFLICT)
		reject_class(answer, e);
	else if (code == EXIT_TIMEOUT)
		fail(e, "timed_out");
	else if (code != EXIT_OK)
		/* With an answer it is published, and could not be ended. */
		fail(e, answer->len > 0 ? "destroy_failed" : "capture_failed");
	if (code > 128)
		note(e, "sb-publish was killed");
	else if (code != EXIT_OK)
		note(e, buf_str(&words));
	buf_release(&words);
	return code == EXIT_OK;
}

static void
keep(struct session *s, struct job *j, struct job_end *e,
    const struct buf *answer)
{
	/* Only its rest is left. */
	if (is_gone(s))
		return;
	e->parked = true;
	/* Should we be killed, who settles the job finds what became of it. */
	if (j)
		job_end_write(j, "ended", e);
	if (park(s, answer) == 0)
		return;
	e->parked = false;
	if (!e->failed)
		fail(e, "state_changed");
}

static void
tell_refused(const char *id, const struct job_end *e)
{
	struct buf b = BUF_INIT;

	out_str(&b, "workspace_session_id", id);
	out_str(&b, "reject_class", e->reject_class);
	out_text(&b, "detail", e->note);
	event_add("workspace_session.finalize.publish_failed", &b);
	buf_release(&b);
}

static void
tell_failed(const char *id, const struct job_end *e, bool done, bool committed)
{
	struct buf b = BUF_INIT;

	out_str(&b, "workspace_session_id", id);
	out_str(&b, "stage",
	    done || strstr(e->failure_class, "destroy") ? "destroy"
							: "capture");
	out_str(&b, "class", e->failure_class);
	out_num(&b, "attempts", e->attempts > 0 ? e->attempts : 1);
	out_bool(&b, "recovery_preserved", e->parked);
	out_bool(&b, "publish_completed", done);
	out_bool(&b, "layer_committed", committed);
	out_bool(&b, "error_present", *e->note != '\0');
	event_add("workspace_session.finalize_failed", &b);
	buf_release(&b);
}

/* An answer that is no refusal tells of a publish, whatever came after. */
static void
account(struct event_span *span, const char *id, const struct job_end *e,
    const struct buf *answer)
{
	const bool done = answer->len > 0 && !e->rejected;
	const bool committed = done && has_committed(answer);
	struct buf *b = event_attrs(span);

	out_str(b, "workspace_session_id", id);
	out_bool(b, "published", committed);
	if (e->rejected) {
		out_str(b, "publish_reject_class", e->reject_class);
		tell_refused(id, e);
	}
	if (e->failed) {
		out_bool(b, "capture_failed",
		    strstr(e->failure_class, "capture_failed") != NULL);
		tell_failed(id, e, done, committed);
	}
	if (e->rejected || e->failed)
		out_bool(b, "recovery_preserved", e->parked);
	event_end(span, e->rejected || e->failed ? EVENT_ERROR : NULL);
}

/* Somebody who was killed wrote down what he had not done. */
static void
forget_outcome(struct job_end *e)
{
	if (e->rejected || e->failed)
		*e->note = '\0';
	e->rejected = e->failed = e->parked = false;
	e->attempts = 0;
}

/*
 * The session is gone: published, ended or removed. Only then what was written
 * down of it is not so.
 */
static void
find_gone(const char *id, struct job *j, struct job_end *e, struct buf *answer)
{
	struct stat st;
	bool known;

	forget_outcome(e);
	if (!j)
		return;
	known = path_lstat(j->dirfd, "publish", &st) == 0;
	if (e->lost && !known && recall(id, 0, answer))
		stage_file_nosync(
		    j->dirfd, "publish", answer->data, answer->len, 0600);
	else if (!known && !job_was_told(j) && !recall(id, 0, answer)) {
		fail(e, "observation_failed");
		*e->note = '\0';
		snprintf(e->note, sizeof e->note,
		    "workspace/%s is missing: somebody removed it, and nothing "
		    "of it is published",
		    id);
	}
	/* Whoever did it has told of it. */
	buf_cut(answer, 0);
}

int
job_finalise(const char *id, struct job *j, struct job_end *e, int ms)
{
	struct event_span *span = NULL;
	struct buf answer = BUF_INIT;
	struct session s;
	bool gone;
	int rc = 0;

	if (session_open(&s, id) == -1) {
		if (errno == ENOENT)
			find_gone(id, j, e, &answer);
		else
			fail(e, "observation_failed");
		buf_release(&answer);
		return 0;
	}
	if (!session_has(&s, "auto"))
		goto out;
	if (session_gate(&s, true, ms) == -1) {
		const bool late = errno == ETIMEDOUT;

		if (errno == EAGAIN && ms == 0)
			goto out;
		if (errno == ENOENT) {
			find_gone(id, j, e, &answer);
			goto out;
		}
		fail(e, late ? "timed_out" : "unavailable");
		note(e,
		    late ? "somebody is at work in the session: sb-sweep "
			   "publishes it afterwards"
			 : "the gate of the session cannot be taken");
		goto out;
	}
	rc = is_ours(&s, j);
	if (rc == -1) {
		fail(e, "observation_failed");
		note(e, "its jobs cannot be read");
		rc = 0;
	}
	if (rc != 1)
		goto out;
	forget_outcome(e);
	span = event_begin("workspace_session.finalize");
	gone = publish_and_end(&s, e, &answer);
	if (j && answer.len > 0)
		stage_file_nosync(
		    j->dirfd, "publish", answer.data, answer.len, 0600);
	if (!gone)
		keep(&s, j, e, &answer);
out:
	account(span, id, e, &answer);
	event_flush();
	session_close(&s);
	buf_release(&answer);
	return rc;
}

void
job_end_known(const struct job *j, struct job_end *e)
{
	if (job_end_read(j, "ended", e) == -1)
		*e = (struct job_end){ .status = "error" };
}

/* Its process did not get to it. */
static void
tell_killed(const struct job_end *e)
{
	struct event_span *span = event_begin("namespace.exec.run_shell");

	event_began(span, e->total_ns);
	event_end(span, EVENT_CANCELLED);
}

static int
settle(struct job *j, const char *status, const char *words)
{
	struct leaf leaf = LEAF_INIT;
	struct event_place here;
	struct stat st;
	struct job_meta m;
	struct job_end e;
	char name[64];
	bool killed = false;
	int rc = -1;

	/* Locked: of those who see it only one settles it. */
	j->lockfd = lock_take(j->dirfd, "lock", true, 0);
	if (j->lockfd == -1)
		return errno == EAGAIN ? 0 : -1;
	if (path_lstat(j->dirfd, "status", &st) == 0 && st.st_size > 0) {
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
		e = (struct job_end){ .total_ns = job_now() - m.start };
		snprintf(e.status, sizeof e.status, "%s", status);
		note(&e, words);
		killed = true;
		if (job_end_write(j, "ended", &e) == -1)
			goto out;
	}
	e.lost = true;
	event_where(&here);
	if (event_move(&m.place) && killed)
		tell_killed(&e);
	job_finalise(m.session, j, &e, FINALISE_MS);
	if (e.wall_ns == 0)
		e.wall_ns = job_now() - m.start;
	event_flush();
	event_move(&here);
	rc = job_end_write(j, "status", &e) == -1 ? -1 : 1;
out:
	io_drop(&j->lockfd);
	return rc;
}

int
job_settle(struct job *j)
{
	return settle(j, "error", "the process of the job was killed");
}

int
job_cancelled(struct job *j)
{
	return settle(j, "cancelled",
	    "the process of the job did not answer and was killed");
}
