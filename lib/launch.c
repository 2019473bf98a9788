/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "inside.h"
#include "io.h"
#include "jobend.h"
#include "mem.h"
#include "num.h"
#include "path.h"
#include "session.h"

enum {
	WORDS_BYTES = 1 << 24
};

struct launch {
	struct running *r;
	const struct job *job;
	const struct job_meta *meta;
	struct session session;
	const char *failed; /* what could not be done */
};

static int
fail(struct launch *h, const char *what)
{
	h->failed = what;
	return -1;
}

static int
open_session(struct launch *h, struct ladder *l, struct inside *in)
{
	char path[64];

	l->job = h->job->id;
	l->session = h->meta->session;
	if (session_open(&h->session, h->meta->session) == -1)
		return fail(h, "open the session");
	l->sessionfd = h->session.dirfd;
	l->procfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->procfd == -1)
		return fail(h, "open /proc");
	if (hold_read(l->sessionfd, &l->hold) == -1)
		return fail(h, "find the session's processes");
	l->initfd = hold_open(&l->hold);
	if (l->initfd == -1)
		return fail(h, "find the session's processes");
	snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)l->hold.pid,
	    NS_USER_FD);
	in->usersfd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->usersfd == -1)
		return fail(h, "open the session's namespaces");
	in->initfd = l->initfd;
	in->workspace = session_workspace();
	if (!in->workspace)
		return fail(h, "read workspace.json");
	return 0;
}

/* The fields of a file that each end in NUL, and a free place behind them. */
static char **
fields(const struct job *j, const char *file, size_t *count)
{
	struct buf b = BUF_INIT;
	char **v = NULL;
	size_t n = 0, cap = 0, at = 0;

	if (io_read_file_at(j->dirfd, file, &b, WORDS_BYTES) == -1)
		return NULL;
	while (at < b.len) {
		if (n + 2 >= cap)
			v = xgrow(v, &cap, sizeof *v);
		v[n++] = b.data + at;
		at += strlen(b.data + at) + 1;
	}
	if (n + 2 > cap)
		v = xgrow(v, &cap, sizeof *v);
	v[n] = v[n + 1] = NULL;
	*count = n;
	return v;
}

static int
read_words(struct launch *h, struct inside *in)
{
	size_t n;
	char **words = fields(h->job, "cmd", &n);

	if (!words || n < 2) {
		if (words)
			errno = EINVAL;
		return fail(h, "read the job's file cmd");
	}
	in->cwd = words[0];
	in->argv = words + 1;
	in->envp = fields(h->job, "env", &n);
	if (!in->envp)
		return fail(h, "read the job's file env");
	in->envp[n] = xasprintf("SB_JOB=%s", h->job->id);
	/* It may hold secrets, and nobody reads it again. */
	job_make_room(h->job);
	return 0;
}

static int
make_pipe(int *mine, int *theirs, bool read_end)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) == -1)
		return -1;
	*mine = read_end ? p[0] : p[1];
	*theirs = read_end ? p[1] : p[0];
	return fcntl(*mine, F_SETFL, O_NONBLOCK);
}

static int
make_pipes(struct launch *h, struct inside *in, struct transcript *out,
    struct transcript *err)
{
	const struct job_meta *m = h->meta;
	int fd;

	if (mkdirat(h->job->dirfd, "err", 0700) == -1)
		return -1;
	fd = path_open(h->job->dirfd, "err", O_RDONLY | O_DIRECTORY, 0);
	if (fd == -1 ||
	    transcript_open(err, fd, false, m->rows, m->cols, m->keep) == -1 ||
	    make_pipe(&out->fd, &in->out, true) == -1 ||
	    make_pipe(&err->fd, &in->err, true) == -1)
		return -1;
	return in->in == -1 && m->input
	    ? make_pipe(&h->r->pipefd, &in->in, false)
	    : 0;
}

static int
open_streams(struct launch *h, struct inside *in, struct transcript *out,
    struct transcript *err)
{
	const struct job_meta *m = h->meta;

	in->in =
	    openat(h->job->dirfd, "stdin", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (in->in == -1 && errno != ENOENT)
		return fail(h, "open the input that was given");
	if (transcript_open(
		out, h->job->dirfd, m->pty, m->rows, m->cols, m->keep) == -1)
		return fail(h, "make the job's files");
	if (!m->pty && make_pipes(h, in, out, err) == -1)
		return fail(h, "make pipes");
	return 0;
}

/*
 * Our only child, or 0: the keeper, who is known also when the joiner was
 * killed before it could tell. Unreaped he would keep the session from ending.
 */
static pid_t
only_child(int procfd)
{
	struct buf b = BUF_INIT;
	uint64_t pid = 0;

	if (io_read_file_at(procfd, "thread-self/children", &b, 64) == 0) {
		buf_reserve(&b, 0);
		b.data[strcspn(b.data, " ")] = '\0';
		if (!num_dec(b.data, 1, INT32_MAX, &pid))
			pid = 0;
	}
	buf_release(&b);
	return (pid_t)pid;
}

/* Returns our end of the socket. */
static int
fork_joiner(struct launch *h, struct ladder *l, const struct inside *in)
{
	char name[64];
	int pair[2];
	pid_t joiner;

	/* Behind the fork nothing may fail: the keeper has to be reaped. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1 ||
	    fcntl(pair[0], F_SETFL, O_NONBLOCK) == -1)
		return fail(h, "make a pair of sockets");
	job_leaf_name(h->job, name, sizeof name);
	/* Without it the tree is walked. */
	if (leaf_make(&l->leaf, JOB_LEAF, name) == -1)
		l->leaf = (struct leaf)LEAF_INIT;
	joiner = inside_start(in, &l->leaf, pair[1]);
	io_drop(&pair[1]);
	if (joiner == -1)
		return fail(h, "fork");
	/* It ends by itself. */
	while (waitpid(joiner, NULL, 0) == -1 && errno == EINTR)
		continue;
	l->keeper = only_child(l->procfd);
	return pair[0];
}

int
launch(struct running *r, const char **failed)
{
	struct launch h = { .r = r, .job = r->job, .meta = r->meta };
	struct inside in = { .in = -1, .out = -1, .err = -1, .usersfd = -1 };
	int sock = -1;

	if (open_session(&h, &r->ladder, &in) == 0 &&
	    read_words(&h, &in) == 0 &&
	    open_streams(&h, &in, &r->out, &r->err) == 0) {
		in.pty = h.meta->pty;
		in.rows = h.meta->rows;
		in.cols = h.meta->cols;
		sock = fork_joiner(&h, &r->ladder, &in);
	}
	*failed = h.failed;
	io_drop(&in.in);
	io_drop(&in.out);
	io_drop(&in.err);
	io_drop(&in.usersfd);
	return sock;
}
