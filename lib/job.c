/* SPDX-License-Identifier: MIT */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "lock.h"
#include "num.h"
#include "out.h"
#include "stage.h"
#include "store.h"

enum {
	META_BYTES = 4096,
	CMD_BYTES = 1 << 24,
	HINT_BYTES = 1 << 20,
	LAST_BYTES = 21 /* a number of 20 digits and a newline */
};

static const char prefix[] = JOB_PREFIX;

uint64_t
job_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int
job_open_all(void)
{
	int store = store_open(), fd;

	if (mkdirat(store, "jobs", 0700) == -1 && errno != EEXIST)
		die_sys("unable to make %s/jobs", store_path());
	fd = path_open(store, "jobs", O_RDONLY | O_DIRECTORY, 0);
	if (fd == -1)
		die_sys("unable to open %s/jobs", store_path());
	io_drop(&store);
	return fd;
}

/* The number of a job's id. */
static bool
number(const char *id, uint64_t *n)
{
	const size_t len = sizeof prefix - 1;

	return strncmp(id, prefix, len) == 0 && id[len] != '0' &&
	    num_dec(id + len, 1, UINT64_MAX, n);
}

int
job_open(struct job *j, const char *id)
{
	uint64_t n;

	*j = (struct job)JOB_INIT;
	if (!id_is_valid(id) || !number(id, &n)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(j->id, id, strlen(id) + 1);
	j->jobsfd = job_open_all();
	j->dirfd = path_open(j->jobsfd, id, O_RDONLY | O_DIRECTORY, 0);
	if (j->dirfd == -1)
		io_drop(&j->jobsfd);
	return j->dirfd == -1 ? -1 : 0;
}

void
job_close(struct job *j)
{
	io_drop(&j->lockfd);
	io_drop(&j->dirfd);
	io_drop(&j->jobsfd);
}

/* ---- lines "key value" ---- */

/* The value of key, in a copy that the caller frees; NULL without one. */
static char *
value_of(const struct buf *text, const char *key)
{
	const size_t len = strlen(key);
	const char *at = buf_str(text);

	while (*at != '\0') {
		size_t n = strcspn(at, "\n");

		if (n > len && at[len] == ' ' && memcmp(at, key, len) == 0) {
			char *copy = strndup(at + len + 1, n - len - 1);

			if (!copy)
				die(EXIT_SYS, "out of memory");
			return copy;
		}
		at += n + (at[n] == '\n');
	}
	return NULL;
}

static bool
number_of(const struct buf *text, const char *key, uint64_t *out)
{
	char *v = value_of(text, key);
	bool good = v && num_dec(v, 0, UINT64_MAX, out);

	free(v);
	return good;
}

static bool
word_of(const struct buf *text, const char *key, char *out, size_t n)
{
	char *v = value_of(text, key);
	bool good = v && strlen(v) < n;

	if (good)
		memcpy(out, v, strlen(v) + 1);
	free(v);
	return good;
}

static bool
has(const struct buf *text, const char *key)
{
	char *v = value_of(text, key);

	free(v);
	return v != NULL;
}

/* ---- meta, session ---- */

static void
meta_format(const struct job_meta *m, struct buf *b)
{
	buf_addf(b, "start %" PRIu64 "\n", m->start);
	if (m->limited)
		buf_addf(b, "timeout_ms %" PRIu64 "\n", m->timeout_ms);
	buf_addf(b, "mode %s\n", m->pty ? "pty" : "pipe");
	buf_addf(b, "rows %u\ncols %u\n", m->rows, m->cols);
	buf_addf(b, "auto %d\ninput %d\n", m->automatic, m->input);
	buf_addf(b, "keep %" PRIu64 "\nterm %s\n", m->keep, m->term);
	if (*m->place.trace)
		buf_addf(b, "trace %s\n", m->place.trace);
	if (*m->place.span)
		buf_addf(b, "span %s\n", m->place.span);
}

static int
read_lines(const struct job *j, const char *file, struct buf *b)
{
	return io_read_file_at(j->dirfd, file, b, META_BYTES);
}

int
job_meta_read(const struct job *j, struct job_meta *m)
{
	struct buf b = BUF_INIT, s = BUF_INIT;
	uint64_t rows, cols, automatic, input;
	char mode[8];
	int rc = -1;

	*m = (struct job_meta){ .start = 0 };
	if (read_lines(j, "meta", &b) == -1 ||
	    read_lines(j, "session", &s) == -1)
		goto out;
	errno = EINVAL;
	if (s.len < 2 || s.len > ID_MAX + 1 || s.data[s.len - 1] != '\n')
		goto out;
	memcpy(m->session, s.data, s.len - 1);
	if (!id_is_valid(m->session) || !number_of(&b, "start", &m->start) ||
	    !word_of(&b, "mode", mode, sizeof mode) ||
	    !number_of(&b, "rows", &rows) || !number_of(&b, "cols", &cols) ||
	    !number_of(&b, "auto", &automatic) ||
	    !number_of(&b, "input", &input) ||
	    !number_of(&b, "keep", &m->keep) ||
	    !word_of(&b, "term", m->term, sizeof m->term) || rows > 65535 ||
	    cols > 65535)
		goto out;
	m->limited = number_of(&b, "timeout_ms", &m->timeout_ms);
	word_of(&b, "trace", m->place.trace, sizeof m->place.trace);
	word_of(&b, "span", m->place.span, sizeof m->place.span);
	m->pty = strcmp(mode, "pty") == 0;
	m->rows = (unsigned)rows;
	m->cols = (unsigned)cols;
	m->automatic = automatic != 0;
	m->input = input != 0;
	rc = 0;
out:
	buf_release(&b);
	buf_release(&s);
	return rc;
}

/* ---- ended, status ---- */

int
job_end_read(const struct job *j, const char *file, struct job_end *e)
{
	struct buf b = BUF_INIT;
	char code[16];
	int rc = -1;

	*e = (struct job_end){ .code = 0 };
	if (read_lines(j, file, &b) == -1)
		goto out;
	errno = EINVAL;
	if (!word_of(&b, "status", e->status, sizeof e->status) ||
	    !number_of(&b, "total_ns", &e->total_ns) ||
	    !number_of(&b, "wall_ns", &e->wall_ns) ||
	    !number_of(&b, "background", &e->background))
		goto out;
	e->has_code = word_of(&b, "exit_code", code, sizeof code);
	if (e->has_code)
		e->code = (int)strtol(code, NULL, 10);
	word_of(&b, "note", e->note, sizeof e->note);
	e->rejected = word_of(&b, "publish_reject_class", e->reject_class,
	    sizeof e->reject_class);
	e->failed = word_of(&b, "finalization_failure_class", e->failure_class,
	    sizeof e->failure_class);
	if (!number_of(&b, "finalization_attempts", &e->attempts))
		e->attempts = 0;
	e->parked = has(&b, "parked");
	rc = 0;
out:
	buf_release(&b);
	return rc;
}

static const char room[] = "room";

void
job_make_room(const struct job *j)
{
	static const char zeros[4096];
	int fd = openat(j->dirfd, "env", O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	bool done = fd != -1 && fstat(fd, &st) == 0;

	for (off_t at = 0; done && at < st.st_size;) {
		size_t n = sizeof zeros;

		if (st.st_size - at < (off_t)n)
			n = (size_t)(st.st_size - at);
		done = pwrite(fd, zeros, n, at) == (ssize_t)n;
		at += (off_t)n;
	}
	io_drop(&fd);
	if (!done || renameat(j->dirfd, "env", j->dirfd, room) == -1)
		unlinkat(j->dirfd, "env", 0);
}

/* Written over what is there already, and given its name. */
static int
write_over(
    const struct job *j, const char *old, const char *name, const struct buf *b)
{
	int fd = openat(j->dirfd, old, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	int rc = -1;

	if (fd != -1 && pwrite(fd, b->data, b->len, 0) == (ssize_t)b->len)
		rc = ftruncate(fd, (off_t)b->len);
	io_drop(&fd);
	if (rc == 0 && strcmp(old, name) != 0)
		rc = renameat(j->dirfd, old, j->dirfd, name);
	return rc;
}

int
job_end_write(const struct job *j, const char *file, const struct job_end *e)
{
	struct buf b = BUF_INIT;
	int rc;

	buf_addf(&b, "status %s\n", e->status);
	if (e->has_code)
		buf_addf(&b, "exit_code %d\n", e->code);
	buf_addf(&b, "total_ns %" PRIu64 "\nwall_ns %" PRIu64 "\n", e->total_ns,
	    e->wall_ns);
	buf_addf(&b, "background %" PRIu64 "\n", e->background);
	if (*e->note)
		buf_addf(&b, "note %s\n", e->note);
	if (e->rejected)
		buf_addf(&b, "publish_reject_class %s\n", e->reject_class);
	if (e->failed)
		buf_addf(
		    &b, "finalization_failure_class %s\n", e->failure_class);
	if (e->attempts > 0)
		buf_addf(
		    &b, "finalization_attempts %" PRIu64 "\n", e->attempts);
	if (e->parked)
		buf_adds(&b, "parked 1\n");
	rc = stage_file_nosync(j->dirfd, file, b.data, b.len, 0600);
	if (rc == -1 && (errno == ENOSPC || errno == EDQUOT)) {
		rc = write_over(j, room, file, &b);
		/* What it says of the command, the new one says too. */
		if (rc == -1)
			rc = write_over(j, "ended", file, &b);
	}
	if (rc == 0 && strcmp(file, "status") == 0)
		unlinkat(j->dirfd, room, 0);
	buf_release(&b);
	return rc;
}

/* ---- all of them ---- */

static int
by_number(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	size_t n = strlen(*x), m = strlen(*y);

	return n != m ? (n > m) - (n < m) : strcmp(*x, *y);
}

static int
list_in(int jobsfd, struct names *out)
{
	struct names all = NAMES_INIT;
	uint64_t n;

	if (names_read(jobsfd, &all) == -1)
		return -1;
	for (size_t i = 0; i < all.n; i++)
		if (number(all.name[i], &n))
			names_add(out, all.name[i]);
	names_release(&all);
	if (out->n > 1)
		qsort(out->name, out->n, sizeof *out->name, by_number);
	return 0;
}

int
job_list(struct names *out)
{
	int fd = job_open_all();
	int rc = list_in(fd, out);

	io_drop(&fd);
	return rc;
}

static bool
exists(int dirfd, const char *file)
{
	struct stat st;

	return path_lstat(dirfd, file, &st) == 0;
}

/* One that is empty was written by nobody: a crash left it. */
static bool
has_end(int dirfd, const char *file)
{
	struct stat st;

	return path_lstat(dirfd, file, &st) == 0 && st.st_size > 0;
}

int
job_command(const struct job *j, struct buf *out)
{
	struct buf cmd = BUF_INIT;
	size_t at;
	int rc = io_read_file_at(j->dirfd, "cmd", &cmd, CMD_BYTES);

	if (rc == 0 && cmd.len == 0) {
		errno = EINVAL;
		rc = -1;
	}
	if (rc == 0) {
		/* Behind the directory. */
		at = strlen(cmd.data) + 1;
		for (size_t i = at; i + 1 < cmd.len; i++)
			if (cmd.data[i] == '\0')
				cmd.data[i] = ' ';
		if (at < cmd.len)
			buf_adds(out, cmd.data + at);
	}
	buf_release(&cmd);
	return rc;
}

int
job_state(const struct job *j, enum job_state *state)
{
	int held;

	/* The lock first: whoever lets go of it has written status. */
	held = lock_is_held(j->dirfd, "lock");
	if (held == -1)
		return -1;
	if (has_end(j->dirfd, "status"))
		*state = JOB_OVER;
	else if (!held)
		*state = JOB_DEAD;
	else
		*state = has_end(j->dirfd, "ended") ? JOB_ENDING : JOB_RUNS;
	return 0;
}

static bool
is_over(int jobsfd, const char *id)
{
	char status[ID_MAX + 8];

	snprintf(status, sizeof status, "%s/status", id);
	return has_end(jobsfd, status);
}

static int
active_in(int jobsfd, const char *id, bool *active)
{
	struct job j = JOB_INIT;
	enum job_state state;
	int rc = 0;

	*active = false;
	/* Most are over: told without opening them. */
	if (is_over(jobsfd, id))
		return 0;
	j.dirfd = path_open(jobsfd, id, O_RDONLY | O_DIRECTORY, 0);
	if (j.dirfd == -1)
		return errno == ENOENT ? 0 : -1;
	if (!has_end(j.dirfd, "ended") && !has_end(j.dirfd, "status")) {
		rc = job_state(&j, &state);
		*active = rc == 0 && state == JOB_RUNS;
	}
	io_drop(&j.dirfd);
	return rc;
}

static int
is_of_session(int jobsfd, const char *id, const char *session)
{
	struct buf b = BUF_INIT;
	char path[ID_MAX + 9];
	int rc = -1;

	snprintf(path, sizeof path, "%s/session", id);
	if (io_read_file_at(jobsfd, path, &b, ID_MAX + 1) == 0)
		rc = b.len == strlen(session) + 1 &&
		    memcmp(b.data, session, b.len - 1) == 0;
	else if (errno == ENOENT)
		rc = 0;
	buf_release(&b);
	return rc;
}

/*
 * The file .active: a number, and the ids of the jobs up to it that may not be
 * over. What is over stays so, so that an old one is as true as the newest; one
 * that is damaged or missing says nothing.
 */
static const char hint[] = ".active";

static uint64_t
read_hint(int jobsfd, struct names *ids)
{
	struct buf b = BUF_INIT;
	char *at, *lf;
	uint64_t last = 0, n;

	if (io_read_file_at(jobsfd, hint, &b, HINT_BYTES) == -1)
		goto out;
	for (at = b.data; at && (lf = strchr(at, '\n')) != NULL; at = lf + 1) {
		*lf = '\0';
		if (at == b.data && !num_dec(at, 1, UINT64_MAX, &last))
			goto out;
		if (at == b.data)
			continue;
		if (!number(at, &n))
			break;
		names_add(ids, at);
	}
	/* All of it, to the last LF. */
	if (!at || at != b.data + b.len)
		last = 0;
out:
	buf_release(&b);
	names_sort(ids);
	return last;
}

/* Under the lock of .last, which makes this name ours too. */
static int
write_hint(int jobsfd, uint64_t last, const struct names *ids)
{
	static const char next[] = ".active.new";
	struct buf b = BUF_INIT;
	int fd = openat(jobsfd, next,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc;

	buf_addf(&b, "%" PRIu64 "\n", last);
	for (size_t i = 0; i < ids->n; i++)
		buf_addf(&b, "%s\n", ids->name[i]);
	rc = fd == -1 ? -1 : io_write_all(fd, b.data, b.len);
	io_drop(&fd);
	if (rc == 0)
		rc = renameat(jobsfd, next, jobsfd, hint);
	buf_release(&b);
	return rc;
}

/* All jobs, and those of them that may not be over. */
static int
list_open(int jobsfd, struct names *all, struct names *may)
{
	struct names ids = NAMES_INIT;
	uint64_t last, n;

	/* The file first: who is made meanwhile has a higher number. */
	last = read_hint(jobsfd, &ids);
	if (list_in(jobsfd, all) == -1) {
		names_release(&ids);
		return -1;
	}
	for (size_t i = 0; i < all->n; i++)
		if ((number(all->name[i], &n) && n > last) ||
		    names_has(&ids, all->name[i]))
			names_add(may, all->name[i]);
	names_release(&ids);
	return 0;
}

int
job_active(const char *session, const char *except, struct names *out)
{
	struct names every = NAMES_INIT, all = NAMES_INIT;
	int fd = job_open_all(), rc = list_open(fd, &every, &all);

	for (size_t i = 0; i < all.n && rc == 0; i++) {
		const char *id = all.name[i];
		bool active;

		if (except && strcmp(id, except) == 0)
			continue;
		rc = active_in(fd, id, &active);
		if (rc == 0 && active && session) {
			rc = is_of_session(fd, id, session);
			active = rc == 1;
			rc = rc == -1 ? -1 : 0;
		}
		if (rc == 0 && active)
			names_add(out, id);
	}
	names_release(&every);
	names_release(&all);
	io_drop(&fd);
	return rc;
}

int
job_is_pending(const char *session)
{
	struct names every = NAMES_INIT, all = NAMES_INIT;
	int fd = job_open_all(), rc = list_open(fd, &every, &all), pending = 0;

	for (size_t i = 0; i < all.n && rc == 0 && pending == 0; i++)
		if (!is_over(fd, all.name[i]))
			pending = is_of_session(fd, all.name[i], session);
	names_release(&every);
	names_release(&all);
	io_drop(&fd);
	return rc == -1 ? -1 : pending;
}

static int
tell_gone(int jobsfd, const char *id)
{
	char path[ID_MAX + 8];
	int fd;

	snprintf(path, sizeof path, "%s/gone", id);
	/* Empty: a full disk has room for it. */
	fd = openat(
	    jobsfd, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return errno == ENOENT ? 0 : -1;
	io_drop(&fd);
	return 0;
}

int
job_tell_gone(const char *session)
{
	struct names every = NAMES_INIT, all = NAMES_INIT;
	int fd = job_open_all(), rc = list_open(fd, &every, &all);

	for (size_t i = 0; i < all.n && rc == 0; i++) {
		const char *id = all.name[i];

		if (is_over(fd, id))
			continue;
		rc = is_of_session(fd, id, session);
		if (rc == 1)
			rc = tell_gone(fd, id);
	}
	names_release(&every);
	names_release(&all);
	io_drop(&fd);
	return rc;
}

bool
job_was_told(const struct job *j)
{
	return exists(j->dirfd, "gone");
}

/* The object {"error":…}. */
static void
add_refusal(struct buf *b, const char *session, const struct names *active)
{
	buf_addc(b, '{');
	out_key(b, "error");
	buf_addc(b, '{');
	out_str(b, "kind", "operation_failed");
	out_str(b, "message", "workspace session has active command sessions");
	out_key(b, "details");
	buf_addc(b, '{');
	out_str(b, "workspace_session_id", session);
	out_key(b, "active_command_session_ids");
	buf_addc(b, '[');
	for (size_t i = 0; i < active->n; i++) {
		if (i > 0)
			buf_addc(b, ',');
		out_string(b, active->name[i], strlen(active->name[i]));
	}
	buf_adds(b, "]}}}");
}

void
job_refuse_active(const char *session)
{
	struct names active = NAMES_INIT;
	struct buf b = BUF_INIT;

	if (job_active(session, NULL, &active) == -1)
		die_sys("unable to look for the jobs of session %s", session);
	if (active.n == 0)
		return;
	add_refusal(&b, session, &active);
	puts(b.data);
	stdout_done();
	buf_cut(&b, 0);
	for (size_t i = 0; i < active.n; i++)
		buf_addf(&b, " %s", active.name[i]);
	die(EXIT_BUSY, "session %s has active jobs:%s", session, b.data);
}

/* ---- making one ---- */

/*
 * Under the lock of .last: what is over and too old goes. pending: of the
 * jobs that may not be over, those that are not.
 */
static int
make_room(int jobsfd, const struct names *all, const struct names *may,
    uint64_t max_active, struct names *pending)
{
	uint64_t nactive = 0;
	size_t over;

	for (size_t i = 0; i < may->n; i++) {
		bool active;

		if (is_over(jobsfd, may->name[i]))
			continue;
		if (active_in(jobsfd, may->name[i], &active) == -1)
			return -1;
		nactive += active;
		names_add(pending, may->name[i]);
	}
	if (nactive >= max_active) {
		errno = EBUSY;
		return -1;
	}
	names_sort(pending);
	over = all->n - pending->n;
	for (size_t i = 0; i < all->n && over > JOBS_KEPT; i++) {
		const char *id = all->name[i];

		if (names_has(pending, id))
			continue;
		over--;
		/* A crash may have taken its end away. */
		if (is_over(jobsfd, id) && path_rm_tree(jobsfd, id) == -1)
			return -1;
	}
	return 0;
}

/* The number after the highest that was ever given, noted. */
static int
next_number(int lastfd, const struct names *all, uint64_t *out)
{
	char text[LAST_BYTES + 1] = "";
	uint64_t last = 0, n;
	ssize_t got = pread(lastfd, text, LAST_BYTES, 0);

	if (got == -1)
		return -1;
	text[strcspn(text, "\n")] = '\0';
	/* Damaged: the newest job, which is never removed, is the last. */
	if (got > 0 && !num_dec(text, 0, UINT64_MAX - 1, &last)) {
		last = 0;
		if (all->n == 0) {
			errno = EBADMSG;
			return -1;
		}
	}
	if (all->n > 0 && number(all->name[all->n - 1], &n) && n > last)
		last = n;
	*out = last + 1;
	/* One sector: a crash leaves the old number or the new one. */
	snprintf(text, sizeof text, "%020" PRIu64 "\n", *out);
	return pwrite(lastfd, text, LAST_BYTES, 0) == LAST_BYTES ? 0 : -1;
}

int
job_sync_number(const struct job *j)
{
	int fd = openat(j->jobsfd, ".last", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int rc = fd == -1 ? -1 : fdatasync(fd);

	io_drop(&fd);
	return rc;
}

static int
put(int dirfd, const char *name, const void *p, size_t n)
{
	int fd = openat(dirfd, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc = fd == -1 ? -1 : io_write_all(fd, p, n);

	io_drop(&fd);
	return rc;
}

static int
fill(struct job *j, const struct job_meta *meta, const struct buf *cmd,
    const struct buf *env)
{
	struct buf m = BUF_INIT, s = BUF_INIT;
	int rc = -1;

	meta_format(meta, &m);
	buf_addf(&s, "%s\n", meta->session);
	j->lockfd = lock_take(j->dirfd, "lock", true, 0);
	if (j->lockfd != -1 && put(j->dirfd, "session", s.data, s.len) == 0 &&
	    put(j->dirfd, "meta", m.data, m.len) == 0 &&
	    put(j->dirfd, "cmd", cmd->data, cmd->len) == 0)
		rc = put(j->dirfd, "env", env->data, env->len);
	buf_release(&m);
	buf_release(&s);
	return rc;
}

/* Built aside under one name: whoever has the lock of .last builds. */
static const char aside[] = ".new";

static int
build(struct job *j, const struct job_meta *meta, const struct buf *cmd,
    const struct buf *env)
{
	if (path_rm_tree(j->jobsfd, aside) == -1 ||
	    mkdirat(j->jobsfd, aside, 0700) == -1)
		return -1;
	j->dirfd = path_open(j->jobsfd, aside, O_RDONLY | O_DIRECTORY, 0);
	if (j->dirfd == -1 || fill(j, meta, cmd, env) == -1)
		return -1;
	return renameat(j->jobsfd, aside, j->jobsfd, j->id);
}

int
job_new(struct job *j, const struct job_meta *meta, const struct buf *cmd,
    const struct buf *env, uint64_t max_active)
{
	struct names all = NAMES_INIT, may = NAMES_INIT, pending = NAMES_INIT;
	uint64_t n;
	int last, err, rc = -1;

	*j = (struct job)JOB_INIT;
	j->jobsfd = job_open_all();
	last = lock_take(j->jobsfd, ".last", true, JOB_LOCK_MS);
	if (last == -1 || list_open(j->jobsfd, &all, &may) == -1 ||
	    make_room(j->jobsfd, &all, &may, max_active, &pending) == -1 ||
	    next_number(last, &all, &n) == -1)
		goto out;
	snprintf(j->id, sizeof j->id, JOB_PREFIX "%" PRIu64, n);
	/* It is named before it is there. */
	names_add(&pending, j->id);
	if (write_hint(j->jobsfd, n, &pending) == 0)
		rc = build(j, meta, cmd, env);
out:
	err = errno;
	io_drop(&last);
	names_release(&all);
	names_release(&may);
	names_release(&pending);
	if (rc == -1)
		job_close(j);
	errno = err;
	return rc;
}

int
job_sweep(void)
{
	int jobs = job_open_all(), rc = 0, last;

	last = lock_take(jobs, ".last", true, 0);
	if (last != -1)
		rc = path_rm_tree(jobs, aside);
	else if (errno != EAGAIN)
		rc = -1;
	io_drop(&last);
	io_drop(&jobs);
	return rc;
}

void
job_remove(struct job *j)
{
	path_rm_tree(j->jobsfd, j->id);
}

static void
sync_files(int dirfd)
{
	static const char *const file[] = { "session", "meta", "cmd", "log",
		"log.gap", "log.index", "rows", "index", "ended", "status",
		"publish" };

	for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
		int fd = openat(dirfd, file[i],
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (fd != -1)
			fsync(fd);
		io_drop(&fd);
	}
	fsync(dirfd);
}

void
job_sync(const struct job *j)
{
	int fd = path_open(j->dirfd, "err", O_RDONLY | O_DIRECTORY, 0);

	if (fd != -1)
		sync_files(fd);
	io_drop(&fd);
	sync_files(j->dirfd);
	fsync(j->jobsfd);
}

int
job_wait(const struct job *j, int ms)
{
	int fd = openat(j->dirfd, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (fd == -1)
		return errno == ENOENT ? 0 : -1;
	rc = lock_fd(fd, false, ms);
	if (rc == -1 && errno == EAGAIN)
		errno = ETIMEDOUT;
	io_drop(&fd);
	return rc;
}
