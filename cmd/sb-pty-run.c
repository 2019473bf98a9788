/* SPDX-License-Identifier: MIT */
/*
 * sb-pty-run: be the process of a job. Shape: sink, stays; sb-exec starts it.
 *
 *   1. Take the job's lock over: from now on its life is the job's.
 *   2. Open the session's namespaces by the pidfd of its init; start the
 *      command in them, see inside.h, in a cgroup of its own where there can
 *      be one.
 *   3. Copy what it prints to log, as bytes, and to rows, as text; give it
 *      what is fed; do what is asked through the socket "in", see jobctl.h.
 *   4. A time limit or a cancel climbs a ladder: the key, TERM to all of the
 *      job's processes, a kill that cannot be outrun.
 *   5. The shell has ended: read what it printed before, write "ended",
 *      publish an automatic session if no other job is in it, write "status",
 *      let go of the lock.
 *   6. Stay as long as processes are left in the background: what they print
 *      still goes to log and rows.
 *
 * We stay outside of the session; the only thing of it that we hold is the
 * terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "cgroup.h"
#include "err.h"
#include "inside.h"
#include "io.h"
#include "job.h"
#include "jobctl.h"
#include "jobend.h"
#include "lock.h"
#include "mem.h"
#include "ns.h"
#include "num.h"
#include "path.h"
#include "proctree.h"
#include "pty.h"
#include "rows.h"
#include "screen.h"
#include "session.h"
#include "spool.h"
#include "stage.h"
#include "sys.h"

static const char usage[] = "sb-pty-run [-3 fd] [-l fd] job";

enum {
	KEY_MS = 200, /* for the key to work, before TERM */
	TERM_MS = 100, /* between TERM and KILL */
	KILL_MS = 5000,
	WALK_MS = 1000,
	STUCK_MS = 2000, /* nobody reads what is fed */
	CHUNK = 65536,
	/* More than any terminal or pipe of ours has on its way. */
	DRAIN_BYTES = 2 * 1048576,
	CLIENTS = 256,
	PROCESSES_MAX = 64, /* that are listed */
	COMMAND_BYTES = 200, /* of each */
	WINDOW_MAX = 1000, /* rows or columns */
	CMD_BYTES = 1 << 24
};

/* What the command prints: bytes and rows, in a directory of the job. */
struct stream {
	int fd; /* where it comes from, or -1 */
	int dirfd;
	struct spool log;
	struct rows_log rows;
	struct screen *screen;
};

struct client {
	int fd;
	char *data; /* waits to be written */
	size_t n, done;
	long deadline;
};

enum rung {
	GROUND,
	KEY, /* the key was typed */
	TERM, /* TERM was sent */
	KILLED
};

static struct job job;
static struct job_meta meta;
static struct session session;
static struct hold hold;
static struct leaf leaf = LEAF_INIT;
static struct stream out = { .fd = -1, .dirfd = -1 };
static struct stream err = { .fd = -1, .dirfd = -1 };
static struct client client[CLIENTS];
static size_t nclients;
static int initfd = -1, procfd = -1, sock = -1, listenfd = -1, sigfd = -1;
static int ready = -1;
static int finalfd = -1; /* tells how the session was finalised */
static bool final_ready;
static int infd = -1; /* what is fed goes here: the master, or a pipe */
static bool in_line; /* what was fed last was no newline */
static pid_t keeper;
static int keeper_status;
static bool started, over;
static bool have_status, failed;
static int wait_status;
static char failure[400];
static const char *reason; /* of an end that was not its own, or NULL */
static enum rung rung;
static long rung_end, time_limit;
static uint64_t real_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC, ns */
static struct buf buffer;

/* ---- time ---- */

static uint64_t
mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static long
now_ms(void)
{
	return (long)(mono_ns() / 1000000);
}

/* Since the start of the job; does not jump with the clock. */
static uint64_t
since_start(void)
{
	uint64_t now = mono_ns() + real_offset;

	return now > meta.start ? now - meta.start : 0;
}

/* ---- output ---- */

static struct screen *
new_screen(struct stream *s)
{
	struct screen *screen = screen_new(meta.pty ? 0 : SCREEN_PIPE,
	    (int)meta.rows, (int)meta.cols, rows_log_add, &s->rows);

	if (!screen)
		die(EXIT_SYS, "out of memory");
	return screen;
}

static void
open_stream(struct stream *s, int dirfd)
{
	s->dirfd = dirfd;
	if (spool_make(&s->log, dirfd, "log", (off_t)meta.keep) == -1 ||
	    rows_log_open(&s->rows, dirfd, meta.keep) == -1)
		die_sys("unable to make the files of job %s", job.id);
	s->screen = new_screen(s);
}

static void
flush(struct stream *s)
{
	static bool told;

	if (s->dirfd == -1 || rows_log_flush(&s->rows) == 0 || told)
		return;
	told = true;
	snprintf(failure, sizeof failure, "unable to keep all output: %s",
	    strerror(errno));
}

/*
 * What is there, up to a chunk: a terminal gives 4 KiB at a time. False:
 * nothing was; at the end fd is closed.
 */
static bool
pump(struct stream *s)
{
	ssize_t n = 0;
	size_t got = 0;

	if (s->fd == -1)
		return false;
	buf_reserve(&buffer, CHUNK);
	while (got < CHUNK) {
		n = read(s->fd, buffer.data + got, CHUNK - got);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	if (got < CHUNK && (n == 0 || (n == -1 && errno != EAGAIN))) {
		/* The master of a terminal says EIO, pty(7): the keeper is
		 * gone, and so is everybody. */
		if (infd == s->fd)
			infd = -1;
		io_drop(&s->fd);
	}
	if (got == 0)
		return false;
	if (spool_add(&s->log, buffer.data, got) == -1 && !*failure)
		snprintf(failure, sizeof failure,
		    "unable to keep all output: %s", strerror(errno));
	screen_feed(s->screen, buffer.data, got);
	flush(s);
	return true;
}

/*
 * Everything that was printed before now. poll(2) on a master waits for what
 * is on its way from the slave.
 */
static void
drain(struct stream *s)
{
	off_t before = s->log.len;

	while (s->fd != -1 && s->log.len - before < DRAIN_BYTES) {
		struct pollfd p = { .fd = s->fd, .events = POLLIN };

		if (poll(&p, 1, 0) != 1 || !pump(s))
			break;
	}
}

static void
add_live(const char *text, size_t n, unsigned flags, void *b)
{
	(void)flags;
	buf_add(b, text, n);
	buf_addc(b, '\n');
}

/* How many rows are final, and the live ones: the file "live". */
static void
write_live(struct stream *s)
{
	struct buf b = BUF_INIT;

	if (s->dirfd == -1)
		return;
	flush(s);
	buf_addf(&b, "%" PRIu64 "\n", rows_log_count(&s->rows));
	screen_live(s->screen, add_live, &b);
	stage_file_nosync(s->dirfd, "live", b.data, b.len, 0600);
	buf_release(&b);
}

/* All that was live is final; what still comes begins anew. */
static void
end_rows(struct stream *s)
{
	if (s->dirfd == -1)
		return;
	screen_end(s->screen);
	flush(s);
	screen_free(s->screen);
	s->screen = new_screen(s);
}

/* ---- what is left in the background ---- */

/* What runs there, in one line of UTF-8. */
static void
add_command(struct buf *b, pid_t pid)
{
	struct buf text = BUF_INIT;
	char name[32];

	snprintf(name, sizeof name, "%ld/cmdline", (long)pid);
	if (io_read_file_at(procfd, name, &text, CHUNK) == -1 ||
	    text.len == 0) {
		buf_adds(b, "?");
		goto out;
	}
	if (text.len > COMMAND_BYTES)
		buf_cut(&text, COMMAND_BYTES);
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c == '\0' && i + 1 == text.len)
			break;
		buf_addc(b,
		    c == '\0'                  ? ' '
			: c < 0x20 || c > 0x7e ? '?'
					       : (char)c);
	}
out:
	buf_release(&text);
}

/* The file "processes": their number, then lines "PID COMMAND" of some. */
static void
write_processes(void)
{
	struct buf b = BUF_INIT;
	struct proctree t;
	size_t listed = 0;

	if (keeper == 0 || proctree_read(procfd, keeper, &t) == -1)
		return;
	buf_addf(&b, "%zu\n", t.alive);
	for (size_t i = 0; i < t.n && listed < PROCESSES_MAX; i++) {
		if (strchr("ZXx", t.one[i].state))
			continue;
		buf_addf(
		    &b, "%ld ", (long)proctree_inner(procfd, t.one[i].pid));
		add_command(&b, t.one[i].pid);
		buf_addc(&b, '\n');
		listed++;
	}
	stage_file_nosync(job.dirfd, "processes", b.data, b.len, 0600);
	proctree_release(&t);
	buf_release(&b);
}

/* ---- the ladder ---- */

static void
signal_all(int sig)
{
	struct proctree t;

	if (keeper == 0)
		return;
	if (proctree_read(procfd, keeper, &t) == 0)
		proctree_signal(procfd, keeper, &t, sig);
	proctree_release(&t);
}

static uint64_t
count_alive(void)
{
	struct proctree t;
	uint64_t n = 0;

	if (keeper == 0)
		return 0;
	if (proctree_read(procfd, keeper, &t) == 0)
		n = t.alive;
	proctree_release(&t);
	return n;
}

static void
reap_keeper(void)
{
	while (keeper != 0 && waitpid(keeper, &keeper_status, 0) == -1)
		if (errno != EINTR)
			break;
	keeper = 0;
}

/*
 * What forks faster than it can be killed: the session's init kills all that
 * it has, which needs no fork. Whoever else loses a job so reads here why.
 */
static void
kill_session(void)
{
	char text[ID_MAX + 2];
	int n = snprintf(text, sizeof text, "%s\n", job.id);

	stage_file_nosync(session.dirfd, "killed", text, (size_t)n, 0600);
	sys_pidfd_send_signal(initfd, NS_KILL_ALL);
}

static void
kill_all(void)
{
	rung = KILLED;
	if (keeper == 0)
		return;
	if (leaf_kill(&leaf, KILL_MS) == -1 &&
	    proctree_kill(procfd, keeper, WALK_MS) == -1) {
		snprintf(failure, sizeof failure,
		    "its processes could not be ended one by one: all commands "
		    "of session %s were ended",
		    meta.session);
		kill_session();
	}
	/* By now it has no children; its own end is certain. */
	kill(keeper, SIGKILL);
	reap_keeper();
}

static void
climb(enum rung to)
{
	if (rung >= to)
		return;
	rung = to;
	if (to == KEY) {
		rung_end = now_ms() + KEY_MS;
	} else if (to == TERM) {
		signal_all(SIGTERM);
		/* Who is stopped would not hear it. */
		signal_all(SIGCONT);
		rung_end = now_ms() + TERM_MS;
	} else if (to == KILLED) {
		kill_all();
	}
}

/* ---- what is asked ---- */

static void
answer(struct client *c, const char *text)
{
	free(c->data);
	c->data = NULL;
	if (send(c->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) == -1)
		shutdown(c->fd, SHUT_RDWR);
}

static void
drop_client(size_t i)
{
	free(client[i].data);
	io_drop(&client[i].fd);
	client[i] = client[--nclients];
}

static void
cancel(struct client *c, const char *key, size_t n)
{
	if (have_status && count_alive() == 0) {
		answer(c, JOBCTL_OVER);
		return;
	}
	if (!have_status && !reason)
		reason = "cancelled";
	if (n == 1 && meta.pty && infd != -1) {
		/* Should it not fit, the next rung comes anyway. */
		if (write(infd, key, 1) == -1 || rung > KEY)
			climb(TERM);
		climb(KEY);
	} else if (n == 1) {
		signal_all(SIGINT);
		climb(KEY);
	} else {
		climb(TERM);
	}
	answer(c, JOBCTL_OK);
}

static void
end_input(struct client *c)
{
	int ch;

	if (!meta.pty) {
		io_drop(&infd);
		answer(c, JOBCTL_OK);
		return;
	}
	ch = pty_eof_char(infd);
	if (ch == -1) {
		answer(c, JOBCTL_NO);
		return;
	}
	/* A line that has begun is sent off by the first one. */
	buf_cut(&buffer, 0);
	if (in_line)
		buf_addc(&buffer, (char)ch);
	buf_addc(&buffer, (char)ch);
	in_line = false;
	answer(c,
	    write(infd, buffer.data, buffer.len) == -1 ? JOBCTL_STUCK
						       : JOBCTL_OK);
}

static void
resize(struct client *c, const char *text)
{
	unsigned rows, cols;

	if (!meta.pty || out.fd == -1) {
		answer(c, JOBCTL_NO);
		return;
	}
	if (sscanf(text, "%u %u", &rows, &cols) != 2 || rows < 1 || cols < 1 ||
	    rows > WINDOW_MAX || cols > WINDOW_MAX ||
	    pty_resize(out.fd, rows, cols) == -1) {
		answer(c, JOBCTL_NO);
		return;
	}
	/* What was printed at the old size is rendered at it. */
	screen_resize(out.screen, (int)rows, (int)cols);
	flush(&out);
	meta.rows = rows;
	meta.cols = cols;
	answer(c, JOBCTL_OK);
}

static void
take_data(struct client *c, const char *p, size_t n)
{
	if (infd == -1) {
		answer(c, JOBCTL_NO);
		return;
	}
	c->data = xmalloc(n > 0 ? n : 1);
	memcpy(c->data, p, n);
	c->n = n;
	c->done = 0;
	c->deadline = now_ms() + STUCK_MS;
}

static void
handle(struct client *c, const char *p, size_t n)
{
	char text[32];
	uint64_t sig;

	if (*p != JOBCTL_LIVE && *p != JOBCTL_CANCEL && *p != JOBCTL_SIGNAL &&
	    have_status) {
		answer(c, JOBCTL_OVER);
		return;
	}
	snprintf(text, sizeof text, "%.*s", (int)(n - 1), p + 1);
	switch (*p) {
	case JOBCTL_DATA:
		take_data(c, p + 1, n - 1);
		break;
	case JOBCTL_CANCEL:
		cancel(c, p + 1, n - 1);
		break;
	case JOBCTL_SIGNAL:
		if (!num_dec(text, 1, SIGRTMAX, &sig)) {
			answer(c, JOBCTL_NO);
			break;
		}
		signal_all((int)sig);
		answer(c, JOBCTL_OK);
		break;
	case JOBCTL_EOF:
		end_input(c);
		break;
	case JOBCTL_SIZE:
		resize(c, text);
		break;
	case JOBCTL_LIVE:
		write_live(&out);
		write_live(&err);
		if (over)
			write_processes();
		answer(c, JOBCTL_OK);
		break;
	default:
		answer(c, JOBCTL_NO);
	}
}

/* False: it went away. */
static bool
hear(struct client *c)
{
	char packet[JOBCTL_MAX + 1];
	ssize_t n = recv(c->fd, packet, sizeof packet, MSG_DONTWAIT);

	if (n == -1)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	/* One question at a time. */
	if (c->data)
		return false;
	handle(c, packet, (size_t)n);
	return true;
}

/* The client whose bytes go next: the one that came first. */
static struct client *
feeding(void)
{
	struct client *first = NULL;

	for (size_t i = 0; i < nclients; i++)
		if (client[i].data &&
		    (!first || client[i].deadline < first->deadline))
			first = &client[i];
	return first;
}

static void
feed(struct client *c)
{
	ssize_t n =
	    infd == -1 ? 0 : write(infd, c->data + c->done, c->n - c->done);

	if (infd == -1 || (n == -1 && errno != EAGAIN && errno != EINTR)) {
		answer(c, have_status ? JOBCTL_OVER : JOBCTL_NO);
		return;
	}
	if (n > 0) {
		c->done += (size_t)n;
		in_line = c->data[c->done - 1] != '\n';
		c->deadline = now_ms() + STUCK_MS;
	}
	if (c->done == c->n)
		answer(c, JOBCTL_OK);
}

/* ---- the end of the shell ---- */

static void wait_once(void);

static void
set_end(struct job_end *e)
{
	*e = (struct job_end){ .total_ns = since_start() };
	snprintf(e->note, sizeof e->note, "%s", failure);
	e->has_code = !failed;
	if (reason && strcmp(reason, "timed_out") == 0) {
		e->code = 124;
		snprintf(e->status, sizeof e->status, "%s", reason);
		e->has_code = true;
	} else if (reason) {
		e->code = 130;
		snprintf(e->status, sizeof e->status, "%s", reason);
		e->has_code = true;
	} else if (failed) {
		snprintf(e->status, sizeof e->status, "error");
	} else {
		e->code = WIFSIGNALED(wait_status) ? -WTERMSIG(wait_status)
						   : WEXITSTATUS(wait_status);
		snprintf(e->status, sizeof e->status, "%s",
		    e->code == 0 ? "ok" : "error");
	}
}

/*
 * Has the session's init ended, or is it about to? It waits for everybody
 * else, and so for us to reap the keeper: proc(5), flag PF_EXITING.
 */
static bool
init_ends(void)
{
	struct buf b = BUF_INIT;
	unsigned flags = 0;
	char name[32], *p;

	if (pidfd_wait(initfd, 0) == 0)
		return true;
	snprintf(name, sizeof name, "%ld/stat", (long)hold.pid);
	if (io_read_file_at(procfd, name, &b, CHUNK) == -1)
		return true;
	p = strrchr(buf_str(&b), ')');
	if (!p || sscanf(p, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		flags = 0;
	buf_release(&b);
	return (flags & 4) != 0;
}

/* Says to whom it may concern why the keeper was killed. */
static void
explain_loss(void)
{
	struct buf b = BUF_INIT;
	struct stat st;

	wait_status = SIGKILL;
	/* What it kept together. */
	leaf_kill(&leaf, KILL_MS);
	if (*failure)
		return;
	if (init_ends()) {
		snprintf(failure, sizeof failure,
		    "session %s ended with all that ran in it", meta.session);
	} else if (path_lstat(session.dirfd, "killed", &st) == 0 &&
	    (uint64_t)st.st_mtim.tv_sec * 1000000000 +
		    (uint64_t)st.st_mtim.tv_nsec >=
		meta.start &&
	    io_read_file_at(session.dirfd, "killed", &b, ID_MAX + 1) == 0) {
		snprintf(failure, sizeof failure,
		    "ended with all commands of session %s: %.*s could not be "
		    "ended otherwise",
		    meta.session, (int)strcspn(buf_str(&b), "\n"), buf_str(&b));
	} else {
		snprintf(failure, sizeof failure,
		    "the first process of the job was killed");
	}
	buf_release(&b);
}

/*
 * A child does it. When the session ends, its init waits until the keeper is
 * reaped, pid_namespaces(7), and that is up to us.
 */
static void
finalise(struct job_end *e)
{
	int p[2];
	pid_t pid;

	if (!job_session_is_automatic(meta.session))
		return;
	if (pipe2(p, O_CLOEXEC) == -1)
		die_sys("unable to make a pipe");
	pid = fork();
	if (pid == -1)
		die_sys("unable to fork");
	if (pid == 0) {
		io_drop(&p[0]);
		job_finalise(&job, meta.session, e);
		_exit(io_write_all(p[1], e, sizeof *e) == -1);
	}
	io_drop(&p[1]);
	finalfd = p[0];
	while (!final_ready)
		wait_once();
	final_ready = false;
	if (io_read_all(finalfd, e, sizeof *e) != (ssize_t)sizeof *e)
		die(EXIT_SYS, "the session could not be finalised");
	io_drop(&finalfd);
	while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		continue;
}

/*
 * Everything is written before the lock goes: who waits for it finds the
 * result.
 */
static void
finish(void)
{
	struct job_end e;

	drain(&out);
	drain(&err);
	have_status = true;
	end_rows(&out);
	end_rows(&err);
	set_end(&e);
	e.background = count_alive();
	if (job_end_write(&job, "ended", &e) == -1)
		die_sys("unable to write jobs/%s/ended", job.id);
	while (nclients > 0)
		drop_client(nclients - 1);
	finalise(&e);
	unlinkat(job.dirfd, "live", 0);
	e.wall_ns = since_start();
	if (job_end_write(&job, "status", &e) == -1)
		die_sys("unable to write jobs/%s/status", job.id);
	if (e.background > 0)
		write_processes();
	io_drop(&job.lockfd);
	io_drop(&ready);
	over = true;
}

static void
from_inside(void)
{
	struct inside_msg m;
	int fd;
	ssize_t n = fds_recv(sock, &m, sizeof m, &fd, 1);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof m) {
		/* The keeper is gone, and who it made with it. */
		io_drop(&sock);
		reap_keeper();
		return;
	}
	switch (m.what) {
	case INSIDE_TERMINAL:
		out.fd = infd = fd;
		break;
	case INSIDE_KEEPER:
		keeper = m.value;
		break;
	case INSIDE_STARTED:
		started = true;
		if (meta.limited && meta.timeout_ms < LONG_MAX / 2)
			time_limit = now_ms() + (long)meta.timeout_ms;
		if (ready != -1 && write(ready, "r", 1) == -1)
			io_drop(&ready);
		break;
	case INSIDE_ENDED:
		wait_status = m.value;
		have_status = true;
		break;
	case INSIDE_FAILED:
		failed = true;
		m.text[sizeof m.text - 1] = '\0';
		snprintf(failure, sizeof failure, "unable to %s: %s", m.text,
		    strerror(m.value));
		break;
	default:
		break;
	}
}

/* ---- waiting ---- */

static long
sooner(long a, long b)
{
	if (a == 0 || (b != 0 && b < a))
		return b;
	return a;
}

/* The next moment at which something is due; 0: never. */
static long
next_deadline(void)
{
	struct client *c = feeding();
	long at = 0;

	if (!over)
		at = sooner(at, time_limit);
	if (rung == KEY || rung == TERM)
		at = sooner(at, rung_end);
	return sooner(at, c ? c->deadline : 0);
}

static void
on_time(void)
{
	struct client *c = feeding();
	long now = now_ms();

	if (!over && time_limit != 0 && now >= time_limit) {
		time_limit = 0;
		if (!have_status && !reason) {
			reason = "timed_out";
			climb(TERM);
		}
	}
	if (rung == KEY && now >= rung_end)
		climb(TERM);
	else if (rung == TERM && now >= rung_end)
		climb(KILLED);
	if (c && now >= c->deadline)
		answer(c, JOBCTL_STUCK);
}

static void
take_client(void)
{
	int fd = accept4(listenfd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd == -1)
		return;
	if (nclients == CLIENTS) {
		io_drop(&fd);
		return;
	}
	client[nclients++] = (struct client){ .fd = fd };
}

static void
take_signal(void)
{
	struct signalfd_siginfo info;

	if (read(sigfd, &info, sizeof info) != (ssize_t)sizeof info)
		return;
	if (!over && !reason)
		reason = "cancelled";
	climb(TERM);
}

static void
wait_once(void)
{
	struct pollfd p[7 + CLIENTS];
	struct client *c = feeding();
	long at = next_deadline(), left = at - now_ms();
	size_t n = 7, clients = nclients;

	p[0] = (struct pollfd){ .fd = sock, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = out.fd, .events = POLLIN };
	p[2] = (struct pollfd){ .fd = err.fd, .events = POLLIN };
	p[3] = (struct pollfd){ .fd = listenfd, .events = POLLIN };
	p[4] = (struct pollfd){ .fd = sigfd, .events = POLLIN };
	p[5] = (struct pollfd){ .fd = c ? infd : -1, .events = POLLOUT };
	p[6] = (struct pollfd){ .fd = finalfd, .events = POLLIN };
	for (size_t i = 0; i < clients; i++)
		p[n++] =
		    (struct pollfd){ .fd = client[i].fd, .events = POLLIN };
	if (left > INT_MAX)
		left = INT_MAX;
	if (poll(p, n, at == 0 ? -1 : left < 0 ? 0 : (int)left) == -1) {
		if (errno == EINTR)
			return;
		die_sys("unable to wait");
	}
	if (p[1].revents)
		pump(&out);
	if (p[2].revents)
		pump(&err);
	if (p[4].revents)
		take_signal();
	if (p[5].revents && c->data)
		feed(c);
	for (size_t i = clients; i-- > 0;)
		if (p[7 + i].revents && i < nclients &&
		    client[i].fd == p[7 + i].fd && !hear(&client[i]))
			drop_client(i);
	if (p[3].revents)
		take_client();
	if (p[0].revents)
		from_inside();
	final_ready = p[6].revents != 0;
	on_time();
}

/* Until the shell has ended, in whatever way. */
static void
run(void)
{
	while (!have_status && !failed && sock != -1)
		wait_once();
	if (sock == -1 && !have_status && !failed && rung < KILLED)
		explain_loss();
	if (failed || reason) {
		/* A cancel ends all of the tree, also if the shell went at
		 * the first sign. */
		while (sock != -1 && rung < KILLED && rung != GROUND &&
		    count_alive() > 0) {
			have_status = true;
			climb(TERM);
			wait_once();
		}
		kill_all();
	}
	finish();
}

/*
 * The result survives a crash of the machine. Nobody has to wait for that: it
 * is not the command's work that would be lost.
 */
static void
make_durable(void)
{
	static const char *const file[] = { "session", "meta", "cmd", "log",
		"log.gap", "rows", "index", "ended", "status", "publish" };

	for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
		int fd = openat(job.dirfd, file[i],
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (fd != -1)
			fsync(fd);
		io_drop(&fd);
	}
	fsync(job.dirfd);
	fsync(job.jobsfd);
}

/* As long as there is somebody in the background. */
static void
stay(void)
{
	make_durable();
	while (sock != -1)
		wait_once();
	reap_keeper();
	drain(&out);
	drain(&err);
	end_rows(&out);
	end_rows(&err);
	unlinkat(job.dirfd, "live", 0);
	unlinkat(job.dirfd, "processes", 0);
	unlinkat(job.dirfd, "in", 0);
	leaf_remove(&leaf);
}

/* ---- the beginning ---- */

static void
open_session(struct inside *in)
{
	char path[64];

	if (session_open(&session, meta.session) == -1)
		die_sys("unable to open session %s", meta.session);
	if (hold_read(session.dirfd, &hold) == -1)
		die_sys("session %s does not run", meta.session);
	initfd = hold_open(&hold);
	if (initfd == -1)
		die_sys("session %s does not run", meta.session);
	snprintf(
	    path, sizeof path, "/proc/%ld/fd/%d", (long)hold.pid, NS_USER_FD);
	in->usersfd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->usersfd == -1)
		die_sys("unable to open the namespaces of session %s",
		    meta.session);
	in->initfd = initfd;
	in->session = meta.session;
	in->workspace = session_workspace();
	if (!in->workspace)
		die_sys("unable to read workspace.json");
}

/* The fields of a file that each end in NUL. */
static char **
fields(const char *file)
{
	struct buf b = BUF_INIT;
	char **v = NULL;
	size_t n = 0, cap = 0, at = 0;

	if (io_read_file_at(job.dirfd, file, &b, CMD_BYTES) == -1)
		die_sys("unable to read jobs/%s/%s", job.id, file);
	while (at < b.len) {
		if (n + 1 >= cap)
			v = xgrow(v, &cap, sizeof *v);
		v[n++] = b.data + at;
		at += strlen(b.data + at) + 1;
	}
	if (n == cap)
		v = xgrow(v, &cap, sizeof *v);
	v[n] = NULL;
	return v;
}

static char **
add_job(char **envp)
{
	size_t n = 0;
	char **v;

	while (envp[n])
		n++;
	v = xcalloc(n + 2, sizeof *v);
	memcpy(v, envp, n * sizeof *v);
	v[n] = xasprintf("SB_JOB=%s", job.id);
	return v;
}

static void
make_pipe(int *mine, int *theirs, bool read_end)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) == -1)
		die_sys("unable to make a pipe");
	*mine = read_end ? p[0] : p[1];
	*theirs = read_end ? p[1] : p[0];
	if (fcntl(*mine, F_SETFL, O_NONBLOCK) == -1)
		die_sys("unable to set a pipe up");
}

static void
open_streams(struct inside *in)
{
	int fd;

	in->in = openat(job.dirfd, "stdin", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (in->in == -1 && errno != ENOENT)
		die_sys("unable to open jobs/%s/stdin", job.id);
	open_stream(&out, job.dirfd);
	if (meta.pty)
		return;
	if (mkdirat(job.dirfd, "err", 0700) == -1)
		die_sys("unable to make jobs/%s/err", job.id);
	fd = path_open(job.dirfd, "err", O_RDONLY | O_DIRECTORY, 0);
	if (fd == -1)
		die_sys("unable to open jobs/%s/err", job.id);
	open_stream(&err, fd);
	make_pipe(&out.fd, &in->out, true);
	make_pipe(&err.fd, &in->err, true);
	if (in->in == -1 && meta.input)
		make_pipe(&infd, &in->in, false);
}

static void
start(void)
{
	struct inside in = { .in = -1, .out = -1, .err = -1 };
	char name[64];
	char **words;
	int pair[2];
	pid_t joiner;

	open_session(&in);
	open_streams(&in);
	words = fields("cmd");
	if (!words[0] || !words[1])
		die(EXIT_SYS, "jobs/%s/cmd is damaged", job.id);
	in.cwd = words[0];
	in.argv = words + 1;
	in.envp = add_job(fields("env"));
	/* It may hold secrets, and nobody reads it again. */
	unlinkat(job.dirfd, "env", 0);
	in.pty = meta.pty;
	in.rows = meta.rows;
	in.cols = meta.cols;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
		die_sys("unable to make a pair of sockets");
	job_leaf_name(&job, name, sizeof name);
	/* Without it the tree is walked. */
	if (leaf_make(&leaf, JOB_LEAF, name) == -1)
		leaf = (struct leaf)LEAF_INIT;
	joiner = inside_start(&in, &leaf, pair[1]);
	if (joiner == -1)
		die_sys("unable to fork");
	io_drop(&pair[1]);
	sock = pair[0];
	if (fcntl(sock, F_SETFL, O_NONBLOCK) == -1)
		die_sys("unable to set a socket up");
	io_drop(&in.in);
	io_drop(&in.out);
	io_drop(&in.err);
	io_drop(&in.usersfd);
	/* It ends by itself; the keeper is known when it has. */
	while (waitpid(joiner, NULL, 0) == -1 && errno == EINTR)
		continue;
}

/* What goes wrong before the command runs is the job's result. */
static void
at_exit(void)
{
	struct job_end e = { .status = "error" };
	struct buf b = BUF_INIT;

	if (over || job.dirfd == -1 || job.lockfd == -1)
		return;
	if (!*failure &&
	    io_read_file_at(job.dirfd, "messages", &b, sizeof e.note) == 0)
		snprintf(failure, sizeof failure, "%.*s",
		    (int)strcspn(buf_str(&b), "\n"), buf_str(&b));
	snprintf(e.note, sizeof e.note, "%s", failure);
	buf_release(&b);
	e.total_ns = e.wall_ns = since_start();
	if (keeper != 0)
		kill(keeper, SIGKILL);
	reap_keeper();
	if (job_end_write(&job, "ended", &e) == 0) {
		job_finalise(&job, meta.session, &e);
		job_end_write(&job, "status", &e);
	}
}

static void
catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (sigfd == -1)
		die_sys("unable to make a signal descriptor");
}

/* Nothing of who started us stays open in us; messages go to a file. */
static void
detach(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int words = openat(job.dirfd, "messages",
	    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

	setsid();
	if (null == -1 || words == -1 || chdir("/") == -1 ||
	    dup2(null, 0) == -1 || dup2(null, 1) == -1 || dup2(words, 2) == -1)
		die_sys("unable to detach");
	io_drop(&null);
	io_drop(&words);
}

/* We outlive our caller: nothing of it may stay open in us. */
static void
close_others(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low > 3)
		sys_close_range(3, (unsigned)low - 1, 0);
	if (low != -1 && high > low + 1)
		sys_close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	if (low == -1 && high > 3)
		sys_close_range(3, (unsigned)high - 1, 0);
	sys_close_range(high == -1 ? 3 : (unsigned)high + 1, ~0U, 0);
}

int
main(int argc, char **argv)
{
	uint64_t fd;
	int opt, lock = -1;

	err_init();
	while ((opt = getopt(argc, argv, "+3:l:h")) != -1) {
		if (opt == '3' && num_dec(optarg, 3, 1 << 20, &fd))
			ready = (int)fd;
		else if (opt == 'l' && num_dec(optarg, 3, 1 << 20, &fd))
			lock = (int)fd;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	close_others(ready, lock);
	if ((ready != -1 && fcntl(ready, F_SETFD, FD_CLOEXEC) == -1) ||
	    (lock != -1 && fcntl(lock, F_SETFD, FD_CLOEXEC) == -1))
		die_sys("unable to use the descriptors given");
	if (job_open(&job, argv[optind]) == -1)
		die(EXIT_NO, "no such job: %s", argv[optind]);
	if (job_meta_read(&job, &meta) == -1)
		die_sys("unable to read jobs/%s/meta", job.id);
	if (lock == -1)
		lock = lock_take(job.dirfd, "lock", true, 0);
	if (lock == -1)
		die(errno == EAGAIN ? EXIT_BUSY : EXIT_SYS,
		    "unable to lock job %s", job.id);
	job.lockfd = lock;
	real_offset = job_now() - mono_ns();
	if (atexit(at_exit) != 0)
		die(EXIT_SYS, "out of memory");
	detach();
	catch_signals();
	procfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	listenfd = jobctl_listen(job.dirfd);
	if (procfd == -1 || listenfd == -1)
		die_sys("unable to listen in jobs/%s", job.id);
	start();
	run();
	stay();
	return EXIT_OK;
}
