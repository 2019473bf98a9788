/* SPDX-License-Identifier: MIT */
/*
 * sb-publish: turn what a session changed into one new layer on top of head,
 * or change nothing. Shape: sink; prints one JSON object either way.
 *
 *   1. Take the session's gate exclusively: nobody runs in it any more.
 *      Processes that were left behind are stopped while we look.
 *   2. sb-layer-scan | sb-change-route by the rules of the lease list, kept
 *      in memory.
 *   3. sb-change-resolve against head, which a lease of our own pins. No lock
 *      is held: this may take as long as it takes.
 *   4. Draw a ticket, wait for the turn. If head has moved meanwhile, resolve
 *      once more; with the turn it cannot move again.
 *   5. sb-layer-commit, sb-stack-swap. This is the one visible change.
 *   6. End the session; after a refusal let it go on instead.
 *
 * Invariant: until the swap the session is whole and head is as it was; after
 * the swap a second publish of the same session finds nothing left to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "blame.h"
#include "buf.h"
#include "change.h"
#include "conf.h"
#include "err.h"
#include "event.h"
#include "io.h"
#include "job.h"
#include "json.h"
#include "lock.h"
#include "mem.h"
#include "ns.h"
#include "num.h"
#include "out.h"
#include "path.h"
#include "queue.h"
#include "rec.h"
#include "session.h"
#include "spawn.h"
#include "stack.h"
#include "store.h"
#include "upper.h"

static const char usage[] = "sb-publish [-a owner] [-g fd] [-t ms] session";

enum {
	QUEUE_MS = 300000, /* a publisher that hangs that long is a fault */
	CONFLICTS_MAX = 200 /* in one answer */
};

/* Where programs find the descriptors that they are given by name. */
#define BASE_IDS "/proc/self/fd/4"
#define HEAD_IDS "/proc/self/fd/5"
#define UPPER    "/proc/self/fd/6"
#define MERGED   "/proc/self/fd/7"
#define CONFLICT "/proc/self/fd/8"
#define OWNERS   "/proc/self/fd/9"
#define META     "/proc/self/fd/10"
#define KEPT     "/proc/self/fd/11"

struct publish {
	struct session *session;
	int stackfd, upperfd, mergedfd;
	const char *owner;
	bool discard; /* ignored changes */
	bool refuse_git; /* changes of both sides in .git */
	int changes, resolved, conflicts, owners, kept; /* in memory */
	struct manifest base, head;
	char lease[ID_MAX + 1];
	int lease_lock;
	struct ticket ticket;
	uint64_t source, ignored, merged; /* counted in resolved */
	uint64_t upper_bytes; /* counted in changes */
	struct buf skipped; /* JSON elements, of changes */
};

/* What the child that does the work tells its parent. */
struct outcome {
	bool captured;
	bool no_op;
	uint64_t revision; /* of head, as the answer has it */
	uint64_t source, ignored;
	uint64_t upper_bytes;
	int answer; /* memory file with the JSON */
};

static struct publish *in_work; /* what tidy removes the rest of */

static int
memory_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd == -1)
		die_sys("unable to make a memory file");
	return fd;
}

static void
rewind_fd(int fd)
{
	if (lseek(fd, 0, SEEK_SET) == -1)
		die_sys("unable to rewind a memory file");
}

static void
empty(int fd)
{
	if (ftruncate(fd, 0) == -1)
		die_sys("unable to empty a memory file");
	rewind_fd(fd);
}

static pid_t
start(const char *const argv[], const struct spawn_fd *map, size_t n)
{
	pid_t pid = spawn(argv, map, n);

	if (pid == -1)
		die_sys("unable to start %s", argv[0]);
	return pid;
}

/* A program that was killed could not say so itself. */
static int
finish(pid_t pid, const char *name)
{
	int code = spawn_wait(pid);

	if (code == -1)
		die_sys("unable to wait");
	if (code > 128 && code != 128 + SIGPIPE) {
		warn_msg("%s was killed by signal %d", name, code - 128);
		return EXIT_SYS;
	}
	return code;
}

static int
run(const char *const argv[], const struct spawn_fd *map, size_t n)
{
	return finish(start(argv, map, n), argv[0]);
}

static int
ids_file(const struct manifest *m, const char *first)
{
	int fd = memory_file("ids");
	struct buf b = BUF_INIT;

	if (first)
		buf_addf(&b, "%s\n", first);
	for (size_t i = 0; i < m->n; i++)
		buf_addf(&b, "%s\n", m->id[i]);
	buf_addc(&b, '\n');
	if (io_write_all(fd, b.data, b.len) == -1)
		die_sys("unable to write to a memory file");
	rewind_fd(fd);
	buf_release(&b);
	return fd;
}

static void
read_manifest(int dirfd, const char *name, struct manifest *m)
{
	const char *why = NULL;

	if (manifest_read(dirfd, name, m, &why) == 0 && m->n > 0)
		return;
	die(EXIT_SYS, "unable to read %s: %s", name,
	    m->n == 0 && !why && errno == 0 ? "no layers"
		: why                       ? why
					    : strerror(errno));
}

/* ---- counting ---- */

/* Calls fn for each change in the memory file fd. */
static void
each_change(int fd, void (*fn)(struct publish *p, const struct change *c),
    struct publish *p)
{
	enum rec_kind kind;
	char *last = NULL;
	struct change c;
	struct rec r;
	FILE *in;
	int copy;

	rewind_fd(fd);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	in = copy == -1 ? NULL : fdopen(copy, "r");
	if (!in)
		die_sys("unable to read the changes");
	rec_init(&r, in, '\0');
	for (;;) {
		kind = change_read(&r, &c, last);
		if (kind != REC_ITEM)
			break;
		fn(p, &c);
		free(last);
		last = c.path;
		free(c.target);
	}
	free(last);
	if (ferror(in))
		die_sys("unable to read the changes");
	if (kind != REC_STOP)
		die(EXIT_BUG, "changes cannot be read back");
	rec_release(&r);
	fclose(in);
}

/* Of what was captured: how large it is, and what will be skipped. */
static void
count_captured(struct publish *p, const struct change *c)
{
	p->upper_bytes += (uint64_t)c->size;
	if (c->kind != CHANGE_SPECIAL)
		return;
	if (p->skipped.len > 0)
		buf_addc(&p->skipped, ',');
	buf_addc(&p->skipped, '{');
	out_path(&p->skipped, "path", c->path);
	out_str(&p->skipped, "reason", "unsupported_special_file");
	buf_addc(&p->skipped, '}');
}

/*
 * Of what comes out: how many changes, and how many of them merged. An ignored
 * one that is left out counts as well, a special file does not.
 */
static void
count_resolved(struct publish *p, const struct change *c)
{
	p->source += c->route == 's' || c->route == 'g';
	p->ignored += c->route == 'i';
	p->merged += c->kind == CHANGE_WRITE && strcmp(c->from, "m") == 0;
}

/* ---- step 2 ---- */

static int
capture(struct publish *p)
{
	const char *const scan[] = { "sb-layer-scan", "-s", p->session->id,
		UPPER, NULL };
	const char *const route[] = { "sb-change-route", "-X", CONFLICT,
		BASE_IDS, NULL };
	int base = ids_file(&p->base, NULL), pipefd[2], scanned, routed;
	pid_t a, b;

	p->changes = memory_file("changes");
	p->conflicts = memory_file("conflicts");
	if (pipe2(pipefd, O_CLOEXEC) == -1)
		die_sys("unable to make a pipe");
	a = start(scan,
	    (struct spawn_fd[]){ { pipefd[1], 1 }, { p->upperfd, 6 } }, 2);
	io_drop(&pipefd[1]);
	b = start(route,
	    (struct spawn_fd[]){ { pipefd[0], 0 }, { p->changes, 1 },
		{ base, 4 }, { p->conflicts, 8 } },
	    4);
	io_drop(&pipefd[0]);
	io_drop(&base);
	scanned = finish(a, scan[0]);
	routed = finish(b, route[0]);
	/* Who writes to a reader that has ended is not the one at fault. */
	if (scanned == 0 || scanned == 128 + SIGPIPE)
		return routed;
	return scanned;
}

/* ---- step 3 ---- */

static void
lease_head(struct publish *p)
{
	int lock;

	manifest_release(&p->head);
	p->head = (struct manifest)MANIFEST_INIT;
	/* Shared: a layer that head names cannot go before our lease stands. */
	lock = lock_take(p->stackfd, STACK_LOCK, false, QUEUE_MS);
	if (lock == -1)
		die_sys("unable to lock the stack");
	read_manifest(p->stackfd, STACK_MANIFEST, &p->head);
	snprintf(p->lease, sizeof p->lease, "publish-%ld-%" PRIu64,
	    (long)getpid(), p->head.version);
	p->lease_lock = stack_lease(p->stackfd, p->lease, &p->head);
	if (p->lease_lock == -1)
		die_sys("unable to make lease %s", p->lease);
	event_lease("lease.acquired", p->head.version);
	io_drop(&lock);
}

static void
drop_lease(struct publish *p)
{
	if (p->lease_lock == -1)
		return;
	stack_lease_drop(p->stackfd, p->lease);
	event_lease("lease.released", p->head.version);
	io_drop(&p->lease_lock);
}

/* An empty merge/ for what comes out merged: that of a first try is another. */
static void
make_merge_dir(struct publish *p)
{
	io_drop(&p->mergedfd);
	if (path_rm_tree(p->session->dirfd, "merge") == -1 ||
	    mkdirat(p->session->dirfd, "merge", 0700) == -1)
		die_sys("unable to make merge/ of %s", p->session->id);
	p->mergedfd =
	    path_open(p->session->dirfd, "merge", O_RDONLY | O_DIRECTORY, 0);
	if (p->mergedfd == -1)
		die_sys("unable to open merge/ of %s", p->session->id);
}

/* Keeps what comes out, and counts it. */
static int
resolve(struct publish *p)
{
	const char *argv[24] = { "sb-change-resolve", "-a", p->owner, "-B",
		OWNERS, "-C", UPPER, "-K", KEPT, "-M", MERGED, "-s",
		p->session->id, "-X", CONFLICT };
	size_t n = 15;
	int base = ids_file(&p->base, NULL), head = ids_file(&p->head, NULL);
	int code;

	if (p->discard)
		argv[n++] = "-d";
	if (p->refuse_git)
		argv[n++] = "-g";
	argv[n++] = BASE_IDS;
	argv[n++] = HEAD_IDS;
	make_merge_dir(p);
	rewind_fd(p->changes);
	empty(p->resolved);
	empty(p->conflicts);
	empty(p->owners);
	empty(p->kept);
	code = run(argv,
	    (struct spawn_fd[]){ { p->changes, 0 }, { p->resolved, 1 },
		{ base, 4 }, { head, 5 }, { p->upperfd, 6 }, { p->mergedfd, 7 },
		{ p->conflicts, 8 }, { p->owners, 9 }, { p->kept, 11 } },
	    9);
	io_drop(&base);
	io_drop(&head);
	if (code == 0) {
		p->source = p->ignored = p->merged = 0;
		each_change(p->resolved, count_resolved, p);
	}
	return code;
}

/* ---- steps 4 and 5 ---- */

static char *
first_line(int fd)
{
	struct buf b = BUF_INIT;
	size_t len;

	rewind_fd(fd);
	if (io_read_buf(fd, &b, 4096) == -1)
		die_sys("unable to read an answer");
	len = strcspn(buf_str(&b), "\n");
	buf_reserve(&b, 0);
	buf_cut(&b, len);
	return buf_steal(&b);
}

/* Who made the layer, when and how much of it: sb-store(5). */
static int
meta_file(struct publish *p)
{
	int fd = memory_file("meta");
	struct buf b = BUF_INIT;

	buf_addc(&b, '{');
	out_str(&b, "owner", p->owner);
	out_str(&b, "session", p->session->id);
	out_now(&b, "time");
	out_num(&b, "source_count", p->source);
	out_num(&b, "ignored_count", p->ignored);
	out_num(&b, "merged_count", p->merged);
	buf_adds(&b, "}\n");
	if (io_write_all(fd, b.data, b.len) == -1)
		die_sys("unable to write to a memory file");
	rewind_fd(fd);
	buf_release(&b);
	return fd;
}

/* 0 and the id, or 1 when there is nothing to commit. */
static int
commit(struct publish *p, char **id)
{
	const char *const argv[] = { "sb-layer-commit", "-B", OWNERS, "-C",
		UPPER, "-M", MERGED, "-l", p->lease, "-m", META, NULL };
	int answer = memory_file("id"), meta = meta_file(p), code;

	rewind_fd(p->resolved);
	rewind_fd(p->owners);
	code = run(argv,
	    (struct spawn_fd[]){ { p->resolved, 0 }, { answer, 1 },
		{ p->upperfd, 6 }, { p->mergedfd, 7 }, { p->owners, 9 },
		{ meta, 10 } },
	    6);
	if (code == 0)
		*id = first_line(answer);
	io_drop(&answer);
	io_drop(&meta);
	return code;
}

static int
swap(struct publish *p, const char *id)
{
	char version[24];
	const char *const argv[] = { "sb-stack-swap", version, NULL };
	int ids = ids_file(&p->head, id), answer = memory_file("version");
	int code;

	snprintf(version, sizeof version, "%" PRIu64, p->head.version);
	code = run(argv, (struct spawn_fd[]){ { ids, 0 }, { answer, 1 } }, 2);
	io_drop(&ids);
	io_drop(&answer);
	return code;
}

/*
 * Resolve, queue, resolve again if head moved, commit, swap. Somebody who
 * swaps without a ticket can make the swap fail: then once more.
 */
static int
publish_changes(struct publish *p)
{
	char *id = NULL;
	int code;

	p->resolved = memory_file("resolved");
	p->owners = memory_file("owners");
	p->kept = memory_file("kept");
	lease_head(p);
	code = resolve(p);
	if (code != 0)
		return code;
	if (queue_draw(p->stackfd, &p->ticket, QUEUE_MS) == -1 ||
	    queue_wait(&p->ticket, QUEUE_MS) == -1) {
		if (errno == ETIMEDOUT)
			die(EXIT_TIMEOUT,
			    "gave up waiting for the publishers "
			    "before this one");
		die_sys("unable to queue");
	}
	for (;;) {
		struct manifest now = MANIFEST_INIT;
		bool moved;

		read_manifest(p->stackfd, STACK_MANIFEST, &now);
		moved = !manifest_equal_layers(&now, &p->head) ||
		    now.version != p->head.version;
		manifest_release(&now);
		if (moved) {
			drop_lease(p);
			lease_head(p);
			code = resolve(p);
			if (code != 0)
				return code;
		}
		code = commit(p, &id);
		if (code != 0)
			return code;
		code = swap(p, id);
		if (code != EXIT_CONFLICT)
			return code;
	}
}

/* ---- answers ---- */

/* The lines of a memory file, as elements. */
static void
add_kept(struct publish *p, struct buf *b)
{
	struct buf lines = BUF_INIT;
	char *at, *end;

	if (p->kept == -1)
		return;
	rewind_fd(p->kept);
	if (io_read_buf(p->kept, &lines, SIZE_MAX / 4) == -1)
		die_sys("unable to read what was kept");
	for (at = lines.data; at && *at != '\0'; at = end + 1) {
		end = strchr(at, '\n');
		if (at != lines.data)
			buf_addc(b, ',');
		buf_add(b, at, (size_t)(end - at));
	}
	buf_release(&lines);
}

/* The object "publish" of a success, as a member. */
static void
answer_success(struct publish *p, struct outcome *outcome, struct buf *b)
{
	struct manifest now = MANIFEST_INIT;
	char hex[HASH_HEX + 1];

	read_manifest(p->stackfd, STACK_MANIFEST, &now);
	manifest_root_hash(&now, hex);
	out_key(b, "publish");
	buf_addc(b, '{');
	out_bool(b, "no_op", outcome->no_op);
	out_key(b, "revision");
	buf_addc(b, '{');
	out_num(b, "manifest_version", now.version);
	out_str(b, "root_hash", hex);
	out_num(b, "layer_count", now.n);
	buf_addc(b, '}');
	out_key(b, "route_summary");
	buf_addc(b, '{');
	out_num(b, "source_count", p->source);
	out_num(b, "ignored_count", p->ignored);
	buf_addc(b, '}');
	out_num(b, "merged_count", p->merged);
	out_key(b, "skipped");
	buf_addf(b, "[%s]", buf_str(&p->skipped));
	out_key(b, "git_kept");
	buf_addc(b, '[');
	add_kept(p, b);
	buf_adds(b, "]}");
	outcome->revision = now.version;
	outcome->source = p->source;
	outcome->ignored = p->ignored;
	manifest_release(&now);
}

static void
out_span(struct buf *b, const char *name, struct span s)
{
	out_key(b, name);
	if (s.p)
		buf_add(b, s.p, s.n);
	else
		buf_adds(b, "null");
}

static void
out_path_of(struct buf *b, struct span conflict)
{
	struct span path = json_member(conflict, "path");

	if (path.p)
		out_span(b, "path", path);
	else
		out_span(b, "path_b64", json_member(conflict, "path_b64"));
}

/* The first conflict in the shape that older clients know. */
static void
out_rejection(struct buf *b, struct span first)
{
	struct buf kind = BUF_INIT;
	bool protected;

	json_string(json_member(first, "kind"), &kind);
	protected = strcmp(buf_str(&kind), "protected") == 0;
	buf_release(&kind);
	out_key(b, "publish_rejection");
	buf_addc(b, '{');
	out_path_of(b, first);
	out_str(b, "reason", protected ? "protected_path" : "source_conflict");
	out_key(b, "source_conflict");
	if (protected) {
		buf_adds(b, "null");
	} else {
		buf_addc(b, '{');
		out_path_of(b, first);
		out_span(b, "expected", json_member(first, "expected"));
		out_span(b, "actual", json_member(first, "actual"));
		buf_addc(b, '}');
	}
	out_null(b, "protected_drop");
	out_null(b, "message");
	buf_addc(b, '}');
}

static void
answer_refusal(struct publish *p, struct buf *b)
{
	struct buf lines = BUF_INIT;
	size_t n = 0;
	char *at;

	rewind_fd(p->conflicts);
	if (io_read_buf(p->conflicts, &lines, SIZE_MAX / 4) == -1)
		die_sys("unable to read the conflicts");
	out_key(b, "error");
	buf_addc(b, '{');
	out_str(b, "kind", "operation_failed");
	out_str(b, "message", "workspace session publish was rejected");
	out_key(b, "details");
	buf_addc(b, '{');
	out_str(b, "workspace_session_id", p->session->id);
	out_str(b, "stage", "publish");
	out_bool(b, "session_retained", true);
	at = lines.data;
	while (at && *at != '\0') {
		size_t len = strcspn(at, "\n");

		if (n == 0) {
			out_rejection(b, (struct span){ at, len });
			out_key(b, "conflicts");
			buf_addc(b, '[');
		}
		if (n < CONFLICTS_MAX) {
			if (n > 0)
				buf_addc(b, ',');
			buf_add(b, at, len);
		}
		n++;
		at += len + (at[len] == '\n');
	}
	if (n == 0)
		die(EXIT_BUG, "a refusal without a conflict");
	buf_addc(b, ']');
	if (n > CONFLICTS_MAX)
		out_bool(b, "truncated", true);
	buf_adds(b, "}}");
	buf_release(&lines);
}

/* ---- the child that does it ---- */

/* Whatever becomes of it, nothing of a publish stays behind but its layer. */
static void
tidy(void)
{
	struct publish *p = in_work;

	in_work = NULL;
	if (!p)
		return;
	queue_leave(&p->ticket);
	drop_lease(p);
	if (p->mergedfd != -1)
		path_rm_tree(p->session->dirfd, "merge");
}

/* Step 2. EXIT_NO when there is nothing that changed. */
static int
capture_upper(struct publish *p, struct outcome *o)
{
	struct event_span *span =
	    event_begin("workspace_session.capture_changes");
	int code = EXIT_NO, unchanged;

	p->stackfd = store_open_stack();
	p->upperfd =
	    path_open(p->session->dirfd, "upper", O_RDONLY | O_DIRECTORY, 0);
	if (p->upperfd == -1)
		die_sys("unable to open the upperdir of %s", p->session->id);
	read_manifest(p->session->dirfd, "lease", &p->base);
	unchanged = upper_is_unchanged(p->stackfd, p->upperfd, p->base.id[0]);
	if (unchanged == -1)
		die_sys("unable to compare the upperdir of %s with layer %s",
		    p->session->id, p->base.id[0]);
	if (!unchanged)
		code = capture(p);
	if (code == 0) {
		each_change(p->changes, count_captured, p);
		o->upper_bytes = p->upper_bytes;
	}
	o->captured = code == 0 || code == EXIT_NO;
	event_end(span, o->captured ? NULL : event_status(code));
	return code;
}

static void
account_publish(const struct publish *p, const struct outcome *o, int code)
{
	struct buf *b = event_attrs(event_open());

	out_num(b, "base", p->base.version);
	out_num(b, "bytes", p->upper_bytes);
	if (code == EXIT_CONFLICT)
		out_str(b, "reason", "manifest_conflict");
	if (code != 0)
		return;
	/* Of the answer's, others may have made it since. */
	out_num(b, "revision", o->no_op ? o->revision : p->head.version + 1);
	out_bool(b, "no_op", o->no_op);
	out_num(b, "layers_added", !o->no_op);
}

/* Steps 3 to 5, after a capture that ended with code. 0: b has the answer. */
static int
publish_upper(struct publish *p, struct outcome *o, int code, struct buf *b)
{
	struct event_span *span = event_begin("layerstack.publish");

	if (code == 0)
		code = publish_changes(p);
	tidy();
	if (code == 0 || code == EXIT_NO) {
		o->no_op = code == EXIT_NO;
		out_str(b, "workspace_session_id", p->session->id);
		answer_success(p, o, b);
		code = 0;
	}
	account_publish(p, o, code);
	event_end(span, event_status(code));
	return code;
}

static int
work(struct publish *p, struct outcome *outcome)
{
	struct buf b = BUF_INIT;
	int code = capture_upper(p, outcome);

	in_work = p;
	if (atexit(tidy) != 0)
		die(EXIT_SYS, "out of memory");
	buf_addc(&b, '{');
	if (outcome->captured)
		code = publish_upper(p, outcome, code, &b);
	if (code == EXIT_CONFLICT)
		answer_refusal(p, &b);
	else if (code != 0)
		return code;
	if (io_write_all(outcome->answer, b.data, b.len) == -1)
		die_sys("unable to write the answer");
	return code;
}

static int
in_child(struct publish *p, struct outcome *outcome)
{
	pid_t pid;
	int code;

	fflush(stdout);
	pid = fork();
	if (pid == -1)
		die_sys("unable to fork");
	if (pid == 0) {
		if (ns_own_files() == -1)
			warn_sys("unable to make a user namespace: files "
				 "without read permission cannot be published");
		code = work(p, outcome);
		event_leave(code);
		_exit(code);
	}
	code = spawn_wait(pid);
	if (code == -1)
		die_sys("unable to wait");
	return code;
}

/* ---- */

/* Stops what was left behind in the session. True when something was. */
static bool
freeze(struct session *s)
{
	const char *const argv[] = { "sb-ns-kill", "-s", "STOP", s->id, NULL };
	int left = session_has_leftovers(s);

	if (left == -1)
		die_sys("unable to look for processes in session %s%s", s->id,
		    session_trouble());
	if (left == 0)
		return false;
	if (run(argv, NULL, 0) != 0)
		die(EXIT_SYS, "unable to stop the processes in session %s",
		    s->id);
	return true;
}

static void
thaw(struct session *s)
{
	const char *const argv[] = { "sb-ns-kill", "-s", "CONT", s->id, NULL };

	if (run(argv, NULL, 0) != 0)
		warn_msg("processes in session %s may still be stopped: "
			 "sb-ns-kill -s CONT %s",
		    s->id, s->id);
}

static void
configure(struct publish *p)
{
	struct conf conf;
	struct buf why = BUF_INIT;
	int storefd = store_open();

	if (conf_read(storefd, &conf, &why) == -1) {
		if (why.len > 0)
			die(EXIT_USAGE, "%s", buf_str(&why));
		die_sys("unable to read %s of the store", CONF_NAME);
	}
	p->discard = conf_is(&conf, CONF_IGNORED_CHANGES, "discard");
	p->refuse_git = conf_is(&conf, CONF_PUBLISH_GIT, "conflict");
	conf_release(&conf);
	io_drop(&storefd);
}

/* How the whole ended: stage says where it failed, or is NULL. */
static void
account(struct event_span *span, const struct outcome *o, const char *stage)
{
	struct buf *b = event_attrs(span);
	const bool ended = stage == NULL;

	if (stage)
		out_str(b, "stage", stage);
	if (stage && strcmp(stage, "destroy") != 0) {
		out_bool(b, "session_retained", true);
		return;
	}
	if (stage)
		out_bool(b, "publish_completed", true);
	out_bool(b, "no_op", o->no_op);
	out_num(b, "revision", o->revision);
	out_num(b, "source_count", o->source);
	out_num(b, "ignored_count", o->ignored);
	out_bool(b, "committed", !o->no_op);
	out_bool(b, "destroyed", ended);
	out_str(b, "cleanup_outcome", ended ? "destroyed" : "finalize_failed");
}

static int
destroy(struct session *s)
{
	struct event_span *span = event_begin("workspace_session.destroy");
	int rc = session_stop(s);

	/* Who waits for it finds that it was not taken away. */
	if (rc == 0)
		rc = job_tell_gone(s->id);
	if (rc == 0)
		rc = session_remove(s, true);
	event_end(span, rc == 0 ? NULL : EVENT_ERROR);
	return rc;
}

static void
print_answer(int fd, const char *tail)
{
	struct buf b = BUF_INIT;

	rewind_fd(fd);
	if (io_read_buf(fd, &b, SIZE_MAX / 4) == -1)
		die_sys("unable to read the answer");
	printf("%s%s}\n", buf_str(&b), tail);
	stdout_done();
}

/* The gate that our caller holds, and holds on to. */
static void
use_gate(struct session *s, int fd)
{
	struct stat mine, gate;

	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 || fstat(fd, &mine) == -1 ||
	    path_lstat(s->dirfd, "gate", &gate) == -1)
		die_sys("unable to use descriptor %d", fd);
	if (mine.st_dev != gate.st_dev || mine.st_ino != gate.st_ino)
		die(EXIT_USAGE, "descriptor %d is not the gate of session %s",
		    fd, s->id);
	s->gatefd = fd;
}

static void
take_gate(struct session *s, int ms)
{
	if (session_gate(s, true, ms) == 0)
		return;
	if (errno == EAGAIN || errno == ETIMEDOUT)
		die(ms == 0 ? EXIT_BUSY : EXIT_TIMEOUT,
		    "session %s is in use: wait for its commands to end, or "
		    "end them",
		    s->id);
	die_sys("unable to take the gate of session %s%s", s->id,
	    session_trouble());
}

int
main(int argc, char **argv)
{
	struct publish p = { .kept = -1,
		.stackfd = -1,
		.upperfd = -1,
		.mergedfd = -1,
		.lease_lock = -1,
		.ticket = TICKET_INIT };
	struct event_span *span = NULL;
	struct session session;
	struct outcome *outcome;
	uint64_t ms = 0, gate = 0;
	char *tail;
	bool frozen;
	int opt, code;

	err_init();
	answer_always();
	while ((opt = getopt(argc, argv, "+a:g:t:h")) != -1) {
		if (opt == 'a') {
			p.owner = optarg;
			continue;
		}
		if (opt == 'g' && num_dec(optarg, 3, 1 << 20, &gate))
			continue;
		if (opt == 't' && num_dec(optarg, 0, INT32_MAX, &ms))
			continue;
		if (opt == 'g')
			answer_bad(opt, optarg, "a descriptor");
		if (opt == 't')
			answer_bad(opt, optarg, "milliseconds");
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);

	if (p.owner && !owner_is_valid(p.owner))
		die(EXIT_USAGE,
		    "not a name for an owner (1 to %d bytes of UTF-8, no "
		    "control characters): %s",
		    OWNER_MAX, p.owner);
	configure(&p);
	if (session_open(&session, argv[optind]) == -1) {
		if (errno == ENOENT || errno == EINVAL)
			answer_no_session(argv[optind], "");
		die_sys("unable to open session %s%s", argv[optind],
		    session_trouble());
	}
	/* Who runs the last job in it does. */
	if (gate == 0 && session_has(&session, "auto"))
		answer_no_session(
		    session.id, ": it is automatic, its last job publishes it");
	/* Of an automatic one, who finalises it tells of the whole. */
	if (!session_has(&session, "auto"))
		span = event_begin("workspace_session.publish");
	out_str(event_attrs(span), "workspace_session_id", session.id);
	if (gate == 0) {
		take_gate(&session, (int)ms);
		/* A job holds the gate only while it begins and ends. */
		job_refuse_active(session.id);
	} else {
		use_gate(&session, (int)gate);
	}
	p.session = &session;
	if (!p.owner)
		p.owner = xasprintf("workspace_session:%s", session.id);
	outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (outcome == MAP_FAILED)
		die_sys("unable to map memory");
	outcome->answer = memory_file("answer");

	frozen = freeze(&session);
	code = in_child(&p, outcome);
	if (code != 0) {
		if (frozen)
			thaw(&session);
		account(span, outcome,
		    outcome->captured || code == EXIT_CONFLICT ? "publish"
							       : "capture");
		if (code == EXIT_CONFLICT)
			print_answer(outcome->answer, "");
		return code;
	}
	if (destroy(&session) == -1) {
		account(span, outcome, "destroy");
		warn_sys("session %s is published but could not be closed: "
			 "sb-session-end %s",
		    session.id, session.id);
		print_answer(outcome->answer, ",\"destroyed\":false");
		return EXIT_SYS;
	}
	account(span, outcome, NULL);
	tail = xasprintf(",\"destroyed\":true,"
			 "\"evicted_upperdir_bytes\":%" PRIu64,
	    outcome->upper_bytes);
	print_answer(outcome->answer, tail);
	return EXIT_OK;
}
