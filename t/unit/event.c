/* SPDX-License-Identifier: MIT */
/* Spans and events: lines, identity, what is handed down, how they end. */
#include "event.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "json.h"
#include "lock.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "seglog.h"

#include "tap.h"

#define LOG "observability.ndjson"

static char store[] = "/tmp/event.XXXXXX";
static int storefd;
static struct buf text; /* what is in the log */
static struct span line[64];
static size_t nlines;

static void
check(bool good)
{
	if (!good) {
		perror("event");
		exit(111);
	}
}

static void
put(const char *name, const char *s)
{
	int fd = openat(
	    storefd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	check(fd != -1 && io_write_all(fd, s, strlen(s)) == 0 &&
	    io_close(fd) == 0);
}

static void
read_log(const char *dir)
{
	struct buf name = BUF_INIT;

	buf_addf(&name, "%s/" LOG, dir);
	buf_cut(&text, 0);
	nlines = 0;
	if (io_read_file_at(storefd, name.data, &text, 1 << 24) == 0)
		for (char *at = text.data; *at; at = strchr(at, '\n') + 1)
			line[nlines++] = (struct span){ at, strcspn(at, "\n") };
	buf_release(&name);
}

/* What a program does that begins as a new one would, in a child. */
static int
run(void (*fn)(void), const char *conf, const char *trace, const char *parent)
{
	int status;
	pid_t pid;

	check(path_rm_tree(storefd, "observability") == 0);
	put("conf", conf ? conf : "");
	fflush(stdout);
	pid = fork();
	check(pid != -1);
	if (pid == 0) {
		unsetenv("SB_TRACE");
		unsetenv("SB_SPAN");
		if (trace)
			setenv("SB_TRACE", trace, 1);
		if (parent)
			setenv("SB_SPAN", parent, 1);
		fn();
		exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	read_log("observability");
	return WEXITSTATUS(status);
}

/* A member of line i, as text; "" when it is not there. */
static const char *
of(size_t i, const char *name)
{
	static struct buf b[4];
	static unsigned at;
	struct span s =
	    i < nlines ? json_member(line[i], name) : (struct span){ NULL, 0 };

	at = (at + 1) % 4;
	buf_cut(&b[at], 0);
	if (s.p && !json_string(s, &b[at]))
		buf_add(&b[at], s.p, s.n);
	return buf_str(&b[at]);
}

static bool
eq(size_t i, const char *name, const char *value)
{
	bool good = strcmp(of(i, name), value) == 0;

	if (!good)
		printf("# line %zu, %s: %s, not %s\n", i, name, of(i, name),
		    value);
	return good;
}

static bool
counts(enum seglog_count which, uint64_t wanted)
{
	struct seglog log = { .name = LOG };
	uint64_t n[SEGLOG_COUNTS];
	int fd = path_open(storefd, "observability", O_RDONLY, 0);
	bool good =
	    fd != -1 && seglog_counts(fd, &log, n) == 0 && n[which] == wanted;

	io_drop(&fd);
	return good;
}

static void
nested(void)
{
	struct event_span *a = event_begin("command.exec");
	struct event_span *b = event_begin("workspace_session.create");

	event_lease("lease.acquired", 4);
	out_str(event_attrs(b), "finalize_policy", "no_op");
	event_end(b, NULL);
	out_bool(event_attrs(a), "session_created", true);
	out_text(event_attrs(a), "detail", "a \xff\n");
	event_end(a, EVENT_CANCELLED);
}

static void
test_lines(void)
{
	run(nested, NULL, "req-9", "d-4");
	ok(nlines == 3 && json_is_valid(line[0].p, line[0].n, NULL, NULL) &&
		json_is_valid(line[1].p, line[1].n, NULL, NULL) &&
		json_is_valid(line[2].p, line[2].n, NULL, NULL),
	    "two spans and an event are three lines of JSON");
	ok(eq(0, "kind", "event") && eq(0, "name", "lease.acquired") &&
		eq(0, "trace", "req-9") && eq(0, "parent", of(1, "span")) &&
		eq(0, "attrs", "{\"revision\":4}"),
	    "the event comes first and belongs to the inner span");
	ok(eq(1, "kind", "span") && eq(1, "parent", of(2, "span")) &&
		eq(1, "status", "completed") &&
		eq(1, "attrs", "{\"finalize_policy\":\"no_op\"}"),
	    "the inner span, written when it ended");
	ok(eq(2, "name", "command.exec") && eq(2, "parent", "d-4") &&
		eq(2, "trace", "req-9") && eq(2, "status", "cancelled") &&
		eq(2, "attrs",
		    "{\"session_created\":true,\"detail\":\"a \\ufffd\\n\"}"),
	    "the outer span has the parent that was given");
	ok(strncmp(line[0].p, "{\"kind\":\"event\",\"ts\":", 21) == 0 &&
		strncmp(line[1].p, "{\"kind\":\"span\",\"ts\":", 20) == 0 &&
		strlen(of(1, "ts")) == 13 && strchr(of(1, "dur_ms"), '.'),
	    "milliseconds since 1970, and a duration that is no integer");
	ok(strncmp(of(1, "span"), of(2, "span"),
	       strcspn(of(1, "span"), "-") + 1) == 0 &&
		strcmp(strchr(of(2, "span"), '-'), "-0") == 0 &&
		strcmp(strchr(of(1, "span"), '-'), "-1") == 0 &&
		id_is_valid(of(1, "span")),
	    "ids count within a process");
}

static void
test_trace(void)
{
	char first[64];

	run(nested, NULL, NULL, "d-4");
	snprintf(first, sizeof first, "%s", of(2, "trace"));
	ok(strlen(first) == 36 && first[14] == '4' && eq(1, "trace", first) &&
		!json_member(line[2], "parent").p,
	    "without a trace one begins, and its root has no parent");
	run(nested, NULL, "", NULL);
	ok(strlen(of(2, "trace")) == 36 && strcmp(of(2, "trace"), first) != 0,
	    "an empty one is none; no two are the same");
	run(nested, NULL, "a\nb", NULL);
	ok(strlen(of(2, "trace")) == 36, "nor is one with a control character");
	run(nested, NULL, "\xff", NULL);
	ok(strlen(of(2, "trace")) == 36, "nor what is no UTF-8");
	run(nested, NULL, "\xc3\xa4 \"x\"", "../x");
	ok(eq(2, "trace", "\xc3\xa4 \"x\"") &&
		!json_member(line[2], "parent").p,
	    "any other text is one; what is no id is no parent");
}

static void
lonely(void)
{
	event_lease("lease.acquired", 1);
}

static void
test_alone(void)
{
	struct stat st;

	run(lonely, NULL, NULL, NULL);
	ok(path_lstat(storefd, "observability", &st) == -1,
	    "an event without a trace is not written");
	run(lonely, NULL, "t", NULL);
	ok(nlines == 1 && eq(0, "trace", "t") &&
		!json_member(line[0], "parent").p,
	    "with one, it need not have a span");
	run(lonely, NULL, "t", "p-1");
	ok(nlines == 1 && eq(0, "parent", "p-1"), "the span may be another's");
}

static void
leaves_0(void)
{
	event_begin("outer");
	event_begin("inner");
	exit(0);
}

static void
leaves_99(void)
{
	event_begin("outer");
	exit(99);
}

static void
leaves_111(void)
{
	event_begin("outer");
	event_end(event_begin("inner"), NULL);
	exit(111);
}

static void
test_exit(void)
{
	ok(run(leaves_0, NULL, NULL, NULL) == 0 && nlines == 2 &&
		eq(0, "name", "inner") && eq(0, "status", "completed") &&
		eq(1, "name", "outer") && eq(1, "status", "completed"),
	    "what is open at exit ends with it, from the inside");
	ok(run(leaves_99, NULL, NULL, NULL) == 99 && nlines == 1 &&
		eq(0, "status", "timed_out"),
	    "code 99: timed out");
	ok(run(leaves_111, NULL, NULL, NULL) == 111 && nlines == 2 &&
		eq(0, "status", "completed") && eq(1, "status", "error"),
	    "any other: error, but not of what had ended");
}

static void
with_child(void)
{
	struct event_span *a = event_begin("outer");

	event_lease("lease.acquired", 1);
	if (fork() == 0) {
		event_begin("inner");
		exit(111);
	}
	wait(NULL);
	if (fork() == 0) {
		event_lease("lease.released", 2);
		event_leave(0);
		_exit(0);
	}
	wait(NULL);
	event_end(a, NULL);
}

static void
test_fork(void)
{
	run(with_child, NULL, NULL, NULL);
	ok(nlines == 4 && eq(0, "name", "inner") && eq(0, "status", "error") &&
		eq(1, "attrs", "{\"revision\":2}") &&
		eq(2, "attrs", "{\"revision\":1}") && eq(3, "name", "outer") &&
		eq(3, "status", "completed"),
	    "a child writes its own and nothing of its parent");
	ok(eq(0, "parent", of(3, "span")) && eq(1, "parent", of(3, "span")) &&
		strncmp(of(0, "span"), of(3, "span"), 17) != 0,
	    "inside the parent's span, with an id of its own");
}

static void
tells(void)
{
	struct event_span *a = event_begin("outer"), *b = event_begin("inner");

	out_str(event_attrs(b), "span", getenv("SB_SPAN"));
	out_str(event_attrs(b), "trace", getenv("SB_TRACE"));
	event_end(b, NULL);
	out_str(event_attrs(a), "span", getenv("SB_SPAN"));
	event_end(a, NULL);
	event_add("env", NULL);
	b = event_begin("last");
	event_end(b, NULL);
	if (getenv("SB_SPAN"))
		exit(1);
}

static void
test_env(void)
{
	struct buf want = BUF_INIT;

	ok(run(tells, NULL, NULL, NULL) == 0 && nlines == 4,
	    "without an open span the environment names none");
	buf_addf(&want, "{\"span\":\"%s\",\"trace\":\"%s\"}", of(0, "span"),
	    of(0, "trace"));
	ok(eq(0, "attrs", want.data), "inside, it names the inner span");
	buf_cut(&want, 0);
	buf_addf(&want, "{\"span\":\"%s\"}", of(1, "span"));
	ok(eq(1, "attrs", want.data), "behind it, the outer one");
	ok(eq(2, "trace", of(0, "trace")) && eq(3, "trace", of(0, "trace")),
	    "the trace goes on");
	buf_release(&want);
}

static void
overlap(void)
{
	struct event_span *a = event_begin("a"), *b = event_begin("b");

	event_end(a, NULL);
	event_end(event_begin("c"), NULL);
	event_end(b, NULL);
}

static void
test_overlap(void)
{
	run(overlap, NULL, NULL, NULL);
	ok(nlines == 3 && eq(0, "name", "a") && eq(1, "name", "c") &&
		eq(2, "name", "b") && eq(1, "parent", of(2, "span")) &&
		eq(2, "parent", of(0, "span")),
	    "an outer span may end before an inner one");
}

static void
moves(void)
{
	struct event_place here, there = { "other", "x-1" }, none = { "", "" };
	struct event_span *s;

	event_where(&here);
	event_move(&there);
	s = event_begin("one");
	event_began(s, 5000000);
	/* Nothing, while it is open. */
	if (event_move(&here) || !event_move(&there))
		exit(1);
	event_where(&there);
	out_str(event_attrs(s), "span", there.span);
	event_end(s, NULL);
	event_move(&none);
	event_end(event_begin("two"), NULL);
	event_move(&here);
	event_end(event_begin("three"), NULL);
}

static void
test_move(void)
{
	char attrs[96];

	ok(run(moves, NULL, "t", "p-1") == 0 && nlines == 3 &&
		eq(0, "trace", "other") && eq(0, "parent", "x-1") &&
		strtod(of(0, "dur_ms"), NULL) >= 5,
	    "a span of another place, that began some time ago");
	snprintf(attrs, sizeof attrs, "{\"span\":\"%s\"}", of(0, "span"));
	ok(eq(0, "attrs", attrs), "a place in an open span names it");
	ok(strlen(of(1, "trace")) == 36 && !json_member(line[1], "parent").p,
	    "no place: a new trace");
	ok(eq(2, "trace", "t") && eq(2, "parent", "p-1"), "and back again");
}

static char *long_text;

static void
too_long(void)
{
	out_str(event_attrs(event_begin("long")), "text", long_text);
	event_leave(0);
	event_end(event_begin("short"), NULL);
}

static void
test_long(void)
{
	char attrs[64];
	size_t over;

	long_text = xmalloc(20000);
	memset(long_text, '"', 16500);
	long_text[16500] = '\0';
	run(too_long, NULL, "t", NULL);
	/* The line that was too long had the same head. */
	over = strcspn(line[0].p, "{") + line[0].n + 1 -
	    strlen(of(0, "attrs")) + strlen("{\"text\":\"\"}") + 33000;
	snprintf(attrs, sizeof attrs, "{\"_truncated\":%zu}", over);
	ok(nlines == 2 && eq(0, "attrs", attrs) && eq(1, "name", "short") &&
		counts(SEGLOG_TRUNCATED, 1) && counts(SEGLOG_OVERSIZED, 0),
	    "of a line that is too long the attributes are left out");
	memset(long_text, 'x', 16500);
	/* Room for more digits of a duration than the line before had. */
	long_text[16384 - 8 -
	    (line[0].n + 1 - strlen(of(0, "attrs")) +
		strlen("{\"text\":\"\"}"))] = '\0';
	run(too_long, NULL, "t", NULL);
	ok(nlines == 2 && line[0].n > 16383 - 16 && line[0].n <= 16383 &&
		!counts(SEGLOG_TRUNCATED, 1),
	    "a line that is just not too long is written whole");
	run(too_long, "observability.max_line_bytes 8\n", "t", NULL);
	ok(nlines == 0 && counts(SEGLOG_OVERSIZED, 2) &&
		counts(SEGLOG_TRUNCATED, 0),
	    "what does not fit even so is dropped and counted");
}

static void
many_lines(void)
{
	for (int i = 0; i < 2000; i++)
		event_end(event_begin("one of many"), NULL);
	/* Whatever becomes of us, these have been written. */
	_exit(0);
}

static void
test_many(void)
{
	struct stat st;

	check(run(nested, NULL, NULL, NULL) == 0);
	memset(line, 0, sizeof line);
	check(path_rm_tree(storefd, "observability") == 0);
	fflush(stdout);
	if (fork() == 0)
		many_lines();
	wait(NULL);
	ok(fstatat(storefd, "observability/" LOG, &st, 0) == 0 &&
		st.st_size > 65536,
	    "a process with much to say does not keep it all");
}

static void
test_where(void)
{
	struct stat st;

	run(nested, "observability.enabled false\n", NULL, NULL);
	ok(path_lstat(storefd, "observability", &st) == -1,
	    "disabled, nothing is made");
	run(nested, "no such key\n", NULL, NULL);
	ok(nlines == 3, "bad settings are no reason to write nothing");

	setenv("SB_EVENTS", "", 1);
	run(nested, NULL, NULL, NULL);
	ok(path_lstat(storefd, "observability", &st) == -1,
	    "SB_EVENTS empty: nowhere");
	chdir(store) == 0 ? setenv("SB_EVENTS", "elsewhere", 1) : 0;
	run(nested, NULL, NULL, NULL);
	ok(path_lstat(storefd, "elsewhere", &st) == -1,
	    "SB_EVENTS relative: nowhere");
	setenv("SB_EVENTS", xasprintf("%s/elsewhere", store), 1);
	run(nested, NULL, NULL, NULL);
	read_log("elsewhere");
	ok(nlines == 3 && path_lstat(storefd, "observability", &st) == -1,
	    "SB_EVENTS names another directory, which is made");
	setenv("SB_EVENTS", xasprintf("%s/no/where", store), 1);
	ok(run(nested, NULL, NULL, NULL) == 0 &&
		path_lstat(storefd, "no", &st) == -1,
	    "but not what is above it");
	unsetenv("SB_EVENTS");

	check(unlinkat(storefd, "layer-stack", AT_REMOVEDIR) == 0);
	run(nested, NULL, NULL, NULL);
	ok(path_lstat(storefd, "observability", &st) == -1,
	    "nothing is made in what is no store");
	check(mkdirat(storefd, "layer-stack", 0700) == 0);
	setenv("SB_STORE", "/no/such/store", 1);
	ok(run(nested, NULL, NULL, NULL) == 0 && nlines == 0, "no store");
	unsetenv("SB_STORE");
	ok(run(nested, NULL, NULL, NULL) == 0 && nlines == 0, "no SB_STORE");
	setenv("SB_STORE", store, 1);
}

/* Deletes the directory between its two spans. */
static void
loses_it(void)
{
	event_end(event_begin("one"), NULL);
	event_flush();
	path_rm_tree(storefd, "observability");
	event_end(event_begin("two"), NULL);
}

static void
busy(void)
{
	int fd, lock;

	event_end(event_begin("one"), NULL);
	event_flush();
	fd = path_open(storefd, "observability", O_RDONLY, 0);
	lock = lock_take(fd, LOG ".lock", true, 0);
	event_end(event_begin("two"), NULL);
	event_begin("three");
	event_leave(0);
	io_drop(&lock);
}

static void
test_losses(void)
{
	run(loses_it, NULL, NULL, NULL);
	ok(nlines == 1 && eq(0, "name", "two"),
	    "a directory that was deleted is made again");
	run(busy, NULL, NULL, NULL);
	ok(nlines == 1 && counts(SEGLOG_BUSY, 2),
	    "while the lock is held, all is dropped and counted");
	check(path_rm_tree(storefd, "observability") == 0);
	setenv("SB_EVENTS", xasprintf("%s/file", store), 1);
	put("file", "x");
	ok(run(nested, NULL, NULL, NULL) == 0, "a file for a directory");
	unsetenv("SB_EVENTS");
}

int
main(void)
{
	check(mkdtemp(store) != NULL);
	setenv("SB_STORE", store, 1);
	unsetenv("SB_EVENTS");
	storefd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(storefd != -1 && mkdirat(storefd, "layer-stack", 0700) == 0);
	test_lines();
	test_trace();
	test_alone();
	test_exit();
	test_fork();
	test_env();
	test_overlap();
	test_move();
	test_long();
	test_many();
	test_where();
	test_losses();
	check(chdir("/") == 0);
	path_rm_tree(AT_FDCWD, store);
	return done();
}
