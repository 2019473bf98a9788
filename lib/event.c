/* SPDX-License-Identifier: MIT */
#include "event.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "conf.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "seglog.h"

#define LOG_NAME  "observability.ndjson"
#define STORE_DIR "observability"

enum {
	KEPT_MAX = 65536 /* bytes of lines, then they are written */
};

struct event_span {
	struct event_span *outer; /* that was open when it began */
	pid_t pid;
	const char *name;
	char id[ID_MAX + 1], parent[ID_MAX + 1]; /* "": none */
	uint64_t start;
	struct buf attrs;
};

static pid_t pid; /* whose state this is */
static enum {
	UNKNOWN,
	OFF,
	ON
} state;
static struct seglog log_file = { .name = LOG_NAME };
/* Where we were started: span only of the environment. */
static struct event_place given;
static char proc[24]; /* what our ids begin with */
static uint64_t seq;
static struct event_span *top;
static struct buf kept, scratch;
static uint64_t oversized, truncated;

/* ---- where and whether ---- */

int
event_dir(bool make)
{
	const char *path = getenv("SB_EVENTS"), *store = getenv("SB_STORE");
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int storefd, fd;

	errno = ENOENT;
	if (path) {
		if (*path != '/')
			return -1;
		fd = open(path, flags);
		if (fd == -1 && errno == ENOENT && make &&
		    mkdir(path, 0700) == 0)
			fd = open(path, flags);
		return fd;
	}
	if (!store || *store != '/')
		return -1;
	storefd = open(store, flags);
	if (storefd == -1)
		return -1;
	fd = openat(storefd, STORE_DIR, flags | O_NOFOLLOW);
	/* What is no store stays as it is. */
	if (fd == -1 && errno == ENOENT && make &&
	    faccessat(storefd, "layer-stack", F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (mkdirat(storefd, STORE_DIR, 0700) == 0 || errno == EEXIST))
		fd = openat(storefd, STORE_DIR, flags | O_NOFOLLOW);
	io_drop(&storefd);
	return fd;
}

int
event_losses(struct event_losses *out)
{
	uint64_t n[SEGLOG_COUNTS] = { 0 };
	int fd = event_dir(false), rc = 0;

	if (fd != -1)
		rc = seglog_counts(fd, &log_file, n);
	else if (errno != ENOENT)
		rc = -1;
	io_drop(&fd);
	*out = (struct event_losses){
		.storage = n[SEGLOG_BUSY] + n[SEGLOG_STORAGE],
		.oversized = n[SEGLOG_OVERSIZED],
		.truncated = n[SEGLOG_TRUNCATED],
	};
	return rc;
}

/* Settings that cannot be read are for others to complain about. */
static void
configure(void)
{
	const char *store = getenv("SB_STORE"), *path = getenv("SB_EVENTS");
	struct buf why = BUF_INIT;
	struct conf conf;
	int fd = -1;

	state = OFF;
	if (path ? *path != '/' : !store || *store != '/')
		return;
	if (store && *store == '/')
		fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || conf_read(fd, &conf, &why) == -1)
		conf_default(&conf);
	io_drop(&fd);
	buf_release(&why);
	if (conf_is(&conf, CONF_EVENTS, "true"))
		state = ON;
	log_file.max_bytes = conf_number(&conf, CONF_EVENTS_DISK);
	log_file.max_line = (size_t)conf_number(&conf, CONF_EVENTS_LINE);
	conf_release(&conf);
}

/* ---- who ---- */

static bool
is_trace(const char *s)
{
	const size_t n = s ? strlen(s) : 0;

	if (n == 0 || n > EVENT_TRACE_MAX || !utf8_is_valid(s, n))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return true;
}

/* Random, so that none of any process is ever another's. */
static void
make_proc(void)
{
	uint64_t r = 0;

	if (getrandom(&r, sizeof r, GRND_NONBLOCK) != (ssize_t)sizeof r)
		r = (uint64_t)getpid() << 32 ^ (uint64_t)time(NULL);
	snprintf(proc, sizeof proc, "p%016" PRIx64, r);
	seq = 0;
}

/* RFC 9562, version 4. */
static void
make_trace(void)
{
	uint64_t r[2] = { 0, 0 };

	if (getrandom(r, sizeof r, GRND_NONBLOCK) != (ssize_t)sizeof r)
		r[0] = (uint64_t)getpid() << 32 ^ (uint64_t)time(NULL);
	snprintf(given.trace, sizeof given.trace,
	    "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-%04" PRIx64
	    "-%012" PRIx64,
	    r[0] >> 32, r[0] >> 16 & 0xffff, r[0] & 0xfff,
	    (r[1] >> 48 & 0x3fff) | 0x8000, r[1] & 0xffffffffffff);
}

static void
at_exit(int code, void *arg)
{
	(void)arg;
	event_leave(code);
}

/* False when nothing is written. Begins anew in a forked child. */
static bool
is_on(void)
{
	const char *name, *parent;

	if (pid == getpid())
		return state == ON;
	pid = getpid();
	buf_cut(&kept, 0);
	oversized = truncated = 0;
	make_proc();
	if (state != UNKNOWN)
		return state == ON;
	configure();
	if (state == ON && on_exit(at_exit, NULL) != 0)
		state = OFF;
	name = getenv("SB_TRACE");
	parent = getenv("SB_SPAN");
	if (is_trace(name)) {
		memcpy(given.trace, name, strlen(name) + 1);
		if (parent && id_is_valid(parent))
			memcpy(given.span, parent, strlen(parent) + 1);
	}
	return state == ON;
}

/* For the programs that we start. */
static void
tell_children(void)
{
	const char *span = top ? top->id : given.span;

	if (!*given.trace) {
		unsetenv("SB_TRACE");
		return;
	}
	/* Out of memory, they would begin traces of their own. */
	if (setenv("SB_TRACE", given.trace, 1) == -1 ||
	    (*span ? setenv("SB_SPAN", span, 1) : unsetenv("SB_SPAN")) == -1)
		unsetenv("SB_TRACE");
}

/* ---- lines ---- */

static uint64_t
now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void
begin_line(struct buf *b, const char *kind)
{
	buf_addc(b, '{');
	out_str(b, "kind", kind);
	out_num(b, "ts", now_ns(CLOCK_REALTIME) / 1000000);
	out_str(b, "trace", given.trace);
}

/* The line is complete but for its attributes. Empties it. */
static void
keep_line(struct buf *b, const struct buf *attrs)
{
	const size_t head = b->len;
	size_t len;

	out_key(b, "attrs");
	buf_addf(b, "{%s}}\n", attrs ? buf_str(attrs) : "");
	if (b->len > log_file.max_line) {
		len = b->len;
		buf_cut(b, head);
		out_key(b, "attrs");
		buf_addf(b, "{\"_truncated\":%zu}}\n", len);
		if (b->len > log_file.max_line) {
			oversized++;
			buf_cut(b, 0);
			return;
		}
		truncated++;
	}
	buf_add(&kept, b->data, b->len);
	buf_cut(b, 0);
	if (kept.len > KEPT_MAX)
		event_flush();
}

void
event_flush(void)
{
	int err = errno, fd;

	if (!is_on() || (kept.len == 0 && oversized == 0))
		return;
	fd = event_dir(true);
	if (fd != -1) {
		if (kept.len > 0)
			seglog_append(fd, &log_file, kept.data, kept.len);
		seglog_add(fd, &log_file, SEGLOG_OVERSIZED, oversized);
		seglog_add(fd, &log_file, SEGLOG_TRUNCATED, truncated);
	}
	io_drop(&fd);
	buf_cut(&kept, 0);
	oversized = truncated = 0;
	errno = err;
}

/* ---- spans and events ---- */

struct event_span *
event_begin(const char *name)
{
	struct event_span *s;
	int err = errno;

	if (!is_on())
		return NULL;
	if (!*given.trace)
		make_trace();
	s = xcalloc(1, sizeof *s);
	s->outer = top;
	s->pid = pid;
	s->name = name;
	snprintf(s->id, sizeof s->id, "%s-%" PRIu64, proc, seq++);
	snprintf(s->parent, sizeof s->parent, "%s", top ? top->id : given.span);
	s->start = now_ns(CLOCK_MONOTONIC);
	top = s;
	tell_children();
	errno = err;
	return s;
}

struct buf *
event_attrs(struct event_span *s)
{
	if (s)
		return &s->attrs;
	buf_cut(&scratch, 0);
	return &scratch;
}

static void
take_out(const struct event_span *s)
{
	struct event_span **at = &top;

	while (*at && *at != s)
		at = &(*at)->outer;
	if (*at)
		*at = s->outer;
}

void
event_drop(struct event_span *s)
{
	if (!s)
		return;
	take_out(s);
	tell_children();
	buf_release(&s->attrs);
	free(s);
}

void
event_end(struct event_span *s, const char *status)
{
	struct buf b = BUF_INIT;
	uint64_t ns;
	int err = errno;

	if (!s || !is_on())
		return;
	ns = now_ns(CLOCK_MONOTONIC) - s->start;
	begin_line(&b, "span");
	out_str(&b, "span", s->id);
	if (*s->parent)
		out_str(&b, "parent", s->parent);
	out_str(&b, "name", s->name);
	out_key(&b, "dur_ms");
	buf_addf(&b, "%" PRIu64 ".%03" PRIu64, ns / 1000000, ns / 1000 % 1000);
	out_str(&b, "status", status ? status : "completed");
	keep_line(&b, &s->attrs);
	buf_release(&b);
	event_drop(s);
	errno = err;
}

const char *
event_status(int code)
{
	return code == EXIT_OK     ? NULL
	    : code == EXIT_TIMEOUT ? EVENT_TIMED_OUT
				   : EVENT_ERROR;
}

struct event_span *
event_open(void)
{
	return top;
}

void
event_began(struct event_span *s, uint64_t ns_ago)
{
	if (s)
		s->start = now_ns(CLOCK_MONOTONIC) - ns_ago;
}

void
event_where(struct event_place *out)
{
	*out = (struct event_place){ .trace = "" };
	if (!is_on())
		return;
	*out = given;
	if (top)
		memcpy(out->span, top->id, sizeof out->span);
}

bool
event_move(const struct event_place *p)
{
	if (!is_on())
		return false;
	if (top)
		return strcmp(given.trace, p->trace) == 0;
	given = (struct event_place){ .trace = "" };
	if (is_trace(p->trace))
		memcpy(given.trace, p->trace, sizeof given.trace);
	if (*given.trace && id_is_valid(p->span))
		memcpy(given.span, p->span, sizeof given.span);
	tell_children();
	return true;
}

void
event_add(const char *name, const struct buf *attrs)
{
	struct buf b = BUF_INIT;
	const char *parent;
	int err = errno;

	if (!is_on() || !*given.trace)
		return;
	parent = top ? top->id : given.span;
	begin_line(&b, "event");
	if (*parent)
		out_str(&b, "parent", parent);
	out_str(&b, "name", name);
	keep_line(&b, attrs);
	buf_release(&b);
	errno = err;
}

void
event_lease(const char *name, uint64_t revision)
{
	struct buf attrs = BUF_INIT;

	out_num(&attrs, "revision", revision);
	event_add(name, &attrs);
	buf_release(&attrs);
}

void
event_leave(int code)
{
	/* What another process began is its to end. */
	while (is_on() && top && top->pid == pid)
		event_end(top, event_status(code));
	event_flush();
}
