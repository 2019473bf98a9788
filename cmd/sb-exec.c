/* SPDX-License-Identifier: MIT */
/*
 * sb-exec: run a command as a job. Shape: sink; prints one JSON object.
 *
 *   1. Without -s make a session, which the last job in it publishes. Its gate
 *      is ours from its first moment on.
 *   2. Take the session's gate shared; revive a parked session.
 *   3. Make the job: directory, number, lock. Let go of the gate: who wants
 *      the session to himself sees the job's lock now.
 *   4. Start sb-pty-run, which becomes the job's process, and gets the lock.
 *   5. Wait until the command has started, and then at most as long as the
 *      caller wants for the end of it and of what follows. While it runs, sync
 *      what names the job and its session: before anything is said of them.
 *   6. Print what the job's directory says.
 *
 * Killed, we leave a job that goes on; or before that a session that no job is
 * in and whose gate is free, or a job that no process is of: sb-sweep ends
 * them.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "answer.h"
#include "buf.h"
#include "clock.h"
#include "conf.h"
#include "err.h"
#include "event.h"
#include "inside.h"
#include "io.h"
#include "job.h"
#include "jobend.h"
#include "jobenv.h"
#include "jobreply.h"
#include "lock.h"
#include "newsession.h"
#include "num.h"
#include "out.h"
#include "path.h"
#include "pty.h"
#include "session.h"
#include "spawn.h"
#include "store.h"

static const char usage[] =
    "sb-exec [-IKPR] [-3 fd] [-c bytes] [-D dir] [-e name=value] ... [-g ms] [-i file] "
    "[-s session] [-T term] [-t ms] [-w colsxrows] [-y ms] cmd...";

enum {
	GATE_MIN_MS = 5000, /* for the gate of a session, without -g */
	GATE_MAX_MS = 30000,
	START_MS = 30000,
	UNDO_MS = 10000,
	SHORT_MS = 20 /* what ends so soon is not synced for nothing */
};

static struct job_meta meta = {
	.pty = true, .rows = 40, .cols = 120, .term = "xterm-256color"
};
static const char *session_id; /* given, or NULL */
static const char *input; /* a file, "-", or NULL */
static bool raw; /* rows are not rendered */
static bool ends; /* the job, when we are told to end while we wait */
static int termfd = -1; /* says that we are */
static uint64_t yield_ms = 1000, gate_ms, max_active, max_parked;
static int ready = -1;
static struct session session = SESSION_INIT;
static struct job job = JOB_INIT;
static bool started; /* the job's process: what is made is not ours any more */

/* ---- the session ---- */

static void
gate(bool exclusive)
{
	struct buf d = BUF_INIT;
	bool busy;

	if (session_gate(&session, exclusive, (int)gate_ms) == 0)
		return;
	if (errno == ENOENT)
		answer_no_session(session_id, "");
	busy = errno == EAGAIN;
	if (busy || errno == ETIMEDOUT) {
		out_str(&d, "workspace_session_id", session_id);
		out_str(&d, "reason", busy ? "busy" : "timeout");
		answer_error(busy ? EXIT_BUSY : EXIT_TIMEOUT, KIND_FAILED, &d,
		    "session %s is being published or ended", session.id);
	}
	answer_sys("unable to take the gate of session %s%s", session.id,
	    session_trouble());
}

static bool
runs(void)
{
	int rc = session_can_be_entered(&session);

	if (rc == -1)
		answer_sys("unable to look at session %s%s", session.id,
		    session_trouble());
	return rc == 1;
}

/* Its gate held, its holder alive. */
static void
open_session(void)
{
	if (!utf8_is_valid(session_id, strlen(session_id)))
		die(EXIT_USAGE, "not an id of a session");
	if (session_open(&session, session_id) == -1) {
		if (errno == ENOENT || errno == EINVAL)
			answer_no_session(session_id, "");
		answer_sys("unable to open session %s", session_id);
	}
	gate(false);
	if (runs())
		return;
	io_drop(&session.gatefd);
	gate(true);
	if (!runs() && session_start(&session) == -1)
		answer_sys("unable to start session %s%s", session.id,
		    session_trouble());
}

static void
share_gate(void)
{
	if (lock_fd(session.gatefd, false, 0) == -1)
		answer_sys(
		    "unable to share the gate of session %s", session.id);
}

static void
make_session(void)
{
	struct event_span *span = event_begin("workspace_session.create");
	struct buf why = BUF_INIT;

	out_str(event_attrs(span), "finalize_policy", POLICY_AUTOMATIC);
	meta.automatic = true;
	if (session_new(&session, true, &why) == -1)
		answer_error(session_new_code(errno), KIND_FAILED, NULL,
		    "unable to make a session: %s", buf_str(&why));
	session_id = session.id;
	if (session_start(&session) == -1)
		answer_sys("unable to start session %s%s", session.id,
		    session_trouble());
	event_end(span, NULL);
}

/* What was made for a command that will not run. */
static void
undo(void)
{
	struct job_end e = { .note = "" };

	if (started)
		return;
	if (job.lockfd != -1)
		job_remove(&job);
	if (!meta.automatic || session.dirfd == -1)
		return;
	io_drop(&session.gatefd);
	job_finalise(session.id, NULL, &e, UNDO_MS);
	if (e.failed || e.rejected)
		warn_msg("session %s is left: sb-session-end %s", session.id,
		    session.id);
}

__attribute__((noreturn)) static void
too_many(void)
{
	struct buf d = BUF_INIT;

	out_num(&d, "max_active_commands", max_active);
	answer_error(EXIT_BUSY, "server_busy", &d,
	    "daemon is at active command capacity");
}

/* What was refused is kept until somebody has looked at it. */
__attribute__((noreturn)) static void
too_many_parked(uint64_t n)
{
	struct buf d = BUF_INIT;

	out_num(&d, "max_parked", max_parked);
	out_num(&d, "parked", n);
	answer_error(EXIT_CONFLICT, KIND_FAILED, &d,
	    "%" PRIu64 " sessions whose publish was refused are kept: publish "
	    "or end some of them (sb-session-ls -v)",
	    n);
}

/* Before a session is made for nothing. */
static void
check_capacity(void)
{
	struct names active = NAMES_INIT;
	int64_t parked = session_count("conflicted");

	if (parked == -1)
		answer_sys("unable to read workspace/");
	if ((uint64_t)parked >= max_parked)
		too_many_parked((uint64_t)parked);

	if (job_active(NULL, NULL, &active) == -1)
		answer_sys("unable to read jobs/");
	if (active.n >= max_active)
		too_many();
	names_release(&active);
}

/* ---- the job ---- */

static void
make_input(void)
{
	int from, to;

	if (!input)
		return;
	from = strcmp(input, "-") == 0
	    ? STDIN_FILENO
	    : open(input, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	to = openat(job.dirfd, "stdin",
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (from == -1 || to == -1 || io_copy(from, to) == -1 ||
	    io_close(to) == -1)
		answer_sys("unable to copy the input from %s", input);
	if (from != STDIN_FILENO)
		io_drop(&from);
}

static void
make_job(const struct buf *cmd, const struct buf *env)
{
	if (job_new(&job, &meta, cmd, env, max_active) == -1) {
		if (errno == EBUSY)
			too_many();
		if (errno == EBADMSG)
			answer_error(EXIT_SYS, KIND_FAILED, NULL,
			    "jobs/.last of the store is no number, and there "
			    "is no job to go on from: write the number of the "
			    "last job into it");
		answer_sys("unable to make a job");
	}
	make_input();
}

/* Returns the end of a pipe: "r" when it has started, the end when it has
 * ended. */
static int
start_job(void)
{
	const char *const argv[] = { "sb-pty-run", "-3", "3", "-l", "4", job.id,
		NULL };
	int p[2];

	if (pipe2(p, O_CLOEXEC) == -1 ||
	    spawn(argv, (struct spawn_fd[]){ { p[1], 3 }, { job.lockfd, 4 } },
		2) == -1)
		answer_sys("unable to start sb-pty-run%s",
		    errno == ENOENT ? ", which is not in PATH" : "");
	started = true;
	io_drop(&p[1]);
	/* The lock is its life, not ours. */
	io_drop(&job.lockfd);
	return p[0];
}

static void
heed_term(void)
{
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &term, NULL) == -1)
		answer_sys("unable to block SIGTERM");
	termfd = signalfd(-1, &term, SFD_CLOEXEC);
	if (termfd == -1)
		answer_sys("unable to wait for SIGTERM");
}

__attribute__((noreturn)) static void
end_job(void)
{
	const char *const argv[] = { "sb-job-kill", "--", job.id, NULL };
	pid_t pid = spawn(argv, NULL, 0);

	if (pid == -1)
		answer_sys("unable to start sb-job-kill");
	exit(spawn_wait(pid) == EXIT_OK ? EXIT_TIMEOUT : EXIT_SYS);
}

/* One byte (1), the end (0), or nothing within ms (-1). */
static int
read_byte(int fd, uint64_t ms)
{
	const long end = clock_ms() + (ms < INT32_MAX ? (long)ms : INT32_MAX);
	struct pollfd p[] = { { .fd = fd, .events = POLLIN },
		{ .fd = termfd, .events = POLLIN } };
	char byte;

	for (;;) {
		long left = end - clock_ms();
		int rc = poll(p, 2, left > 0 ? (int)left : 0);

		if (rc > 0 && !p[0].revents)
			end_job();
		if (rc > 0)
			return io_read_some(fd, &byte, 1) == 1;
		if (rc == 0 && left <= 0)
			return -1;
		if (rc == -1 && errno != EINTR)
			answer_sys("unable to wait for %s", job.id);
	}
}

/*
 * The end of the job, within yield_ms. What lives longer than a moment gets its
 * number, and the session that was made for it its lease, made durable.
 */
static void
wait_for_end(int fd)
{
	uint64_t first = yield_ms < SHORT_MS ? yield_ms : SHORT_MS;

	if (first > 0 && read_byte(fd, first) != -1)
		return;
	if (job_sync_number(&job) == -1)
		answer_sys("unable to sync the number of job %s", job.id);
	/* It may have ended by now. */
	if (meta.automatic && session_sync(&session) == -1 && errno != ENOENT)
		answer_sys("unable to sync session %s", session.id);
	/* All that we had to do is done. */
	if (ends)
		heed_term();
	io_ready(&ready);
	if (yield_ms > first)
		read_byte(fd, yield_ms - first);
}

__attribute__((noreturn)) static void
not_started(void)
{
	struct buf d = BUF_INIT;
	struct job_end e;

	/* It may have been killed. */
	if (job_settle(&job) == -1)
		warn_sys("unable to settle job %s", job.id);
	if (job_end_read(&job, "status", &e) == -1 || *e.note == '\0')
		snprintf(e.note, sizeof e.note,
		    "it was ended before the command had started");
	out_str(&d, "command_session_id", job.id);
	out_str(&d, "workspace_session_id", meta.session);
	answer_error(EXIT_SYS, KIND_FAILED, &d, "command io failed for %s: %s",
	    job.id, e.note);
}

/* ---- */

static void
give(struct buf *given, const char *pair)
{
	if (jobenv_give(given, pair) == 0)
		return;
	if (errno == EPERM)
		die(EXIT_USAGE, "%.*s cannot be set for a command",
		    (int)strcspn(pair, "="), pair);
	die(EXIT_USAGE, "not NAME=VALUE: %s", pair);
}

static bool
is_term(const char *s)
{
	return *s && strlen(s) <= TERM_MAX &&
	    s[strspn(s,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789+-._")] == '\0';
}

static void
configure(void)
{
	struct buf why = BUF_INIT;
	struct conf conf;
	int fd = store_open();

	if (conf_read(fd, &conf, &why) == -1) {
		if (why.len > 0)
			die(EXIT_USAGE, "%s", buf_str(&why));
		die_sys("unable to read %s of the store", CONF_NAME);
	}
	max_active = conf_number(&conf, CONF_MAX_ACTIVE);
	max_parked = conf_number(&conf, CONF_MAX_PARKED);
	meta.keep = conf_number(&conf, CONF_TRANSCRIPT);
	conf_release(&conf);
	io_drop(&fd);
}

static void
make_cmd(struct buf *cmd, const char *dir, char **words)
{
	char *workspace = session_workspace();
	char *at = workspace ? inside_dir(workspace, dir) : NULL;

	if (!workspace)
		answer_sys("unable to read workspace.json");
	if (!at)
		answer_error(EXIT_USAGE, KIND_INVALID, NULL,
		    "cwd escapes workspace replacement root: %s", dir);
	buf_add(cmd, at, strlen(at) + 1);
	for (; *words; words++)
		buf_add(cmd, *words, strlen(*words) + 1);
	free(at);
	free(workspace);
}

int
main(int argc, char **argv)
{
	struct buf cmd = BUF_INIT, env = BUF_INIT, given = BUF_INIT;
	struct reply how = { .cursor = true };
	struct buf reply = BUF_INIT;
	struct event_span *span;
	const char *dir = "";
	bool patient = false;
	uint64_t n;
	int opt, fd;

	err_init();
	answer_always();
	while (
	    (opt = getopt(argc, argv, "+3:c:D:e:g:hi:IKPRs:T:t:w:y:")) != -1) {
		switch (opt) {
		case '3':
			if (!num_dec(optarg, 3, 1 << 20, &n) ||
			    io_ready_fd((int)n) == -1)
				answer_bad(opt, optarg, "an open descriptor");
			ready = (int)n;
			continue;
		case 'c':
			if (!num_dec(optarg, 1, UINT64_MAX, &how.max))
				answer_bad(opt, optarg, "a number of bytes");
			continue;
		case 'D':
			dir = optarg;
			continue;
		case 'e':
			give(&given, optarg);
			continue;
		case 'g':
			if (!num_dec(optarg, 0, INT32_MAX, &gate_ms))
				answer_bad(opt, optarg, "milliseconds");
			patient = true;
			continue;
		case 'h':
			usage_help(usage);
		case 'I':
			meta.input = true;
			continue;
		case 'i':
			input = optarg;
			continue;
		case 'K':
			ends = true;
			continue;
		case 'P':
			meta.pty = false;
			continue;
		case 'R':
			raw = true;
			continue;
		case 's':
			session_id = *optarg ? optarg : NULL;
			continue;
		case 'T':
			if (!is_term(optarg))
				answer_bad(opt, optarg, "a name of a terminal");
			snprintf(meta.term, sizeof meta.term, "%s", optarg);
			continue;
		case 't':
			if (!num_dec(optarg, 0, UINT64_MAX, &meta.timeout_ms))
				answer_bad(opt, optarg, "milliseconds");
			meta.limited = true;
			continue;
		case 'w':
			if (!pty_parse_size(optarg, &meta.rows, &meta.cols))
				answer_bad(opt, optarg, "COLUMNSxROWS");
			continue;
		case 'y':
			if (!num_dec(optarg, 0, UINT64_MAX, &yield_ms))
				answer_bad(opt, optarg, "milliseconds");
			continue;
		default:
			break;
		}
		usage_die(usage);
	}
	if (optind == argc || (input && meta.input) || (meta.input && meta.pty))
		usage_die(usage);
	/* Who waits shortly for the command wants to know soon. */
	if (!patient)
		gate_ms = yield_ms < GATE_MIN_MS ? GATE_MIN_MS
		    : yield_ms > GATE_MAX_MS     ? GATE_MAX_MS
						 : yield_ms;
	if (optind + 1 == argc &&
	    argv[optind][strspn(argv[optind], " \t\n\r\f\v")] == '\0')
		answer_error(EXIT_USAGE,
		    *argv[optind] ? KIND_FAILED : KIND_INVALID, NULL, "%s%s",
		    *argv[optind] ? "invalid command request: " : "",
		    "cmd must be non-empty");

	span = event_begin("command.exec");
	meta.start = job_now();
	configure();
	make_cmd(&cmd, dir, argv + optind);
	if (atexit(undo) != 0)
		die(EXIT_SYS, "out of memory");
	if (session_id) {
		open_session();
	} else {
		check_capacity();
		make_session();
	}
	share_gate();
	snprintf(meta.session, sizeof meta.session, "%s", session.id);
	out_bool(event_attrs(span), "session_created", meta.automatic);
	out_str(event_attrs(span), "finalize_policy",
	    session_has(&session, "auto") ? POLICY_AUTOMATIC : POLICY_EXPLICIT);
	jobenv_make(&env, &given, &meta);
	event_where(&meta.place);
	make_job(&cmd, &env);
	/* The job's lock is held: nobody publishes or ends the session. */
	io_drop(&session.gatefd);
	fd = start_job();
	if (read_byte(fd, START_MS) != 1)
		not_started();
	wait_for_end(fd);
	how.raw = raw;
	if (job_reply(&job, &how, &reply, NULL) == -1)
		answer_sys("unable to read job %s", job.id);
	job_reply_print(&job, &how, &reply);
	return EXIT_OK;
}
