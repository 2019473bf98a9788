/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "io.h"
#include "line.h"
#include "spawn.h"
#include "sys.h"

enum {
	CHUNK = 65536,
	LINE_MAX_BYTES = 4096 /* of standard error; the rest is cut */
};

enum {
	P_OUT,
	P_ERR,
	P_READY,
	P_CHILD,
	P_PEER,
	P_COUNT
};

struct state {
	const struct child *c;
	struct child_end *end;
	int fd[P_COUNT]; /* ours, or -1 */
	struct buf line; /* of standard error, not ended yet */
	bool may_end, told, asked; /* asked: TERM was sent */
	int64_t kill_at;
};

/* A pipe whose end for us, the first, does not block. */
static int
make_pipe(int p[2])
{
	if (pipe2(p, O_CLOEXEC) == -1)
		return -1;
	return fcntl(p[0], F_SETFL, O_NONBLOCK);
}

static void
end_line(struct state *s)
{
	if (s->line.len == 0)
		return;
	buf_cut(&s->end->last, 0);
	buf_add(&s->end->last, s->line.data, s->line.len);
	if (s->c->said)
		s->c->said(s->c->arg, buf_str(&s->line));
	buf_cut(&s->line, 0);
}

static void
take_err(struct state *s, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\n')
			end_line(s);
		else if (s->line.len < LINE_MAX_BYTES && p[i] != '\0')
			buf_addc(&s->line, p[i]);
	}
}

static void
take_out(struct state *s, const char *p, size_t n)
{
	size_t room = s->c->out_max - s->end->out.len;

	if (n > room) {
		s->end->cut = true;
		n = room;
	}
	buf_add(&s->end->out, p, n);
}

static void
be_ready(struct state *s)
{
	if (s->told)
		return;
	s->told = s->may_end = true;
	if (s->c->waits)
		s->c->waits(s->c->arg);
}

/*
 * What is there now, more than a pipe holds, but not for ever; closes at the
 * end of file.
 */
static void
read_one(struct state *s, int which)
{
	char chunk[CHUNK];
	ssize_t r;

	for (int i = 0; i < 32 && s->fd[which] != -1; i++) {
		r = io_read_some(s->fd[which], chunk, sizeof chunk);
		if (r == -1 && errno == EAGAIN)
			return;
		if (r < 1)
			io_drop(&s->fd[which]);
		else if (which == P_OUT)
			take_out(s, chunk, (size_t)r);
		else if (which == P_ERR)
			take_err(s, chunk, (size_t)r);
		else
			be_ready(s);
	}
}

static void
ask_to_end(struct state *s)
{
	int64_t now = clock_ms();

	if (s->asked && now >= s->kill_at) {
		sys_pidfd_send_signal(s->fd[P_CHILD], SIGKILL);
		s->kill_at = LINE_NEVER;
	}
	if (s->asked || !s->may_end)
		return;
	if (now >= s->c->deadline)
		s->end->late = true;
	if (s->end->late || s->end->gone) {
		s->asked = true;
		s->kill_at = now + CHILD_KILL_MS;
		sys_pidfd_send_signal(s->fd[P_CHILD], SIGTERM);
	}
}

static int
next_turn(struct state *s)
{
	int ms = s->may_end && !s->asked ? line_left(s->c->deadline)
					 : line_left(s->kill_at);
	int other = s->c->turn ? s->c->turn(s->c->arg) : ms;

	return other < ms ? other : ms;
}

static void
loop(struct state *s)
{
	struct pollfd p[P_COUNT];

	for (;;) {
		for (int i = 0; i < P_COUNT; i++)
			p[i] = (struct pollfd){
				.fd = s->fd[i],
				.events = i == P_PEER ? 0 : POLLIN,
			};
		if (poll(p, P_COUNT, next_turn(s)) == -1 && errno != EINTR)
			break;
		for (int i = P_OUT; i <= P_READY; i++)
			if (p[i].revents)
				read_one(s, i);
		if (p[P_PEER].revents) {
			s->end->gone = true;
			s->fd[P_PEER] = -1;
		}
		if (p[P_CHILD].revents)
			break;
		ask_to_end(s);
	}
	/* What others hold open is not waited for. */
	read_one(s, P_OUT);
	read_one(s, P_ERR);
	end_line(s);
}

/*
 * Standard input, all of it, before the child begins: should we be killed, it
 * never takes a part for the whole.
 */
static int
make_input(const struct child *c)
{
	int fd = memfd_create("in", MFD_CLOEXEC);

	if (fd != -1 &&
	    (io_write_all(fd, c->in, c->in_n) == -1 ||
		lseek(fd, 0, SEEK_SET) == -1))
		io_drop(&fd);
	return fd;
}

int
child_run(const struct child *c, struct child_end *end)
{
	struct state s = { .c = c, .end = end, .kill_at = LINE_NEVER };
	int in, out[2] = { -1, -1 }, err[2] = { -1, -1 };
	int ready[2] = { -1, -1 }, why;
	pid_t pid = -1;

	for (int i = 0; i < P_COUNT; i++)
		s.fd[i] = -1;
	in = make_input(c);
	if (in != -1 && make_pipe(out) == 0 && make_pipe(err) == 0 &&
	    make_pipe(ready) == 0)
		pid = spawn(c->argv,
		    (struct spawn_fd[]){ { in, 0 }, { out[1], 1 },
			{ err[1], 2 }, { ready[1], 3 } },
		    c->ready ? 4 : 3);
	why = errno;
	io_drop(&in);
	io_drop(&out[1]);
	io_drop(&err[1]);
	io_drop(&ready[1]);
	s.fd[P_OUT] = out[0];
	s.fd[P_ERR] = err[0];
	s.fd[P_READY] = ready[0];
	if (pid != -1) {
		s.fd[P_CHILD] = sys_pidfd_open(pid);
		s.fd[P_PEER] = c->peer;
		if (c->cancel)
			be_ready(&s);
		if (s.fd[P_CHILD] != -1)
			loop(&s);
		end->code = spawn_wait(pid);
	}
	s.fd[P_PEER] = -1;
	for (int i = 0; i < P_COUNT; i++)
		io_drop(&s.fd[i]);
	buf_release(&s.line);
	errno = why;
	return pid == -1 ? -1 : 0;
}
