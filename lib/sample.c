/* SPDX-License-Identifier: MIT */
#include "sample.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cgroupfs.h"
#include "event.h"
#include "io.h"
#include "json.h"
#include "num.h"
#include "out.h"
#include "path.h"
#include "seglog.h"

enum {
	FILE_BYTES = 65536,
	LINE_BYTES = 16384,
	LOG_BYTES_MAX = 4194304
};

static const char *const metric_key[SAMPLE_METRICS] = {
	[SAMPLE_CPU] = "cpu_usec",
	[SAMPLE_IO_READ] = "io_rbytes",
	[SAMPLE_IO_WRITE] = "io_wbytes",
	[SAMPLE_MEM] = "mem_cur",
	[SAMPLE_MEM_MAX] = "mem_max",
	[SAMPLE_PIDS] = "pids_cur",
};

static void
set(struct sample *s, enum sample_metric m, enum sample_source from, uint64_t n)
{
	s->value[m].from = from;
	s->value[m].n = n;
}

static bool
is_known(const struct sample *s, enum sample_metric m)
{
	return s->value[m].from != SAMPLE_UNKNOWN ||
	    (m == SAMPLE_MEM_MAX && s->unlimited);
}

static void
complain(struct sample *s, const char *what, int err)
{
	buf_addf(&s->errors, "%s%s: %s", s->errors.len > 0 ? "; " : "", what,
	    strerror(err));
}

/* ---- cgroups ---- */

/* The sum of the numbers behind each mark; false when there is none. */
static bool
sum_behind(const char *text, const char *mark, uint64_t *sum)
{
	bool any = false;
	char *end;

	*sum = 0;
	for (const char *at = text; (at = strstr(at, mark)); any = true) {
		at += strlen(mark);
		*sum += strtoull(at, &end, 10);
		if (end == at)
			return false;
	}
	return any;
}

/* Where a metric is: behind marks, or the one number of the file. */
static const struct source {
	enum sample_metric m;
	unsigned version;
	const char *controller; /* of version 1 */
	const char *file;
	const char *mark;
	uint64_t unit; /* so many are one */
} sources[] = {
	{ SAMPLE_CPU, 2, NULL, "cpu.stat", "usage_usec ", 1 },
	{ SAMPLE_IO_READ, 2, NULL, "io.stat", " rbytes=", 1 },
	{ SAMPLE_IO_WRITE, 2, NULL, "io.stat", " wbytes=", 1 },
	{ SAMPLE_MEM, 2, NULL, "memory.current", NULL, 1 },
	{ SAMPLE_MEM_MAX, 2, NULL, "memory.max", NULL, 1 },
	{ SAMPLE_PIDS, 2, NULL, "pids.current", NULL, 1 },
	{ SAMPLE_CPU, 1, "cpuacct", "cpuacct.usage", NULL, 1000 },
	{ SAMPLE_IO_READ, 1, "blkio",
	    "blkio.throttle.io_service_bytes_recursive", " Read ", 1 },
	{ SAMPLE_IO_WRITE, 1, "blkio",
	    "blkio.throttle.io_service_bytes_recursive", " Write ", 1 },
	{ SAMPLE_MEM, 1, "memory", "memory.usage_in_bytes", NULL, 1 },
	{ SAMPLE_MEM_MAX, 1, "memory", "memory.limit_in_bytes", NULL, 1 },
	{ SAMPLE_PIDS, 1, "pids", "pids.current", NULL, 1 },
};

#define NSOURCES (sizeof sources / sizeof *sources)

/* Version 1 has no word for it, but the largest number of whole pages. */
static bool
is_unlimited(const struct source *f, const char *text, uint64_t n)
{
	return f->m == SAMPLE_MEM_MAX &&
	    (f->version == 2 ? strcmp(text, "max\n") == 0
			     : n > INT64_MAX - (1 << 20));
}

static void
read_source(struct sample *s, int dirfd, const struct source *f)
{
	struct buf b = BUF_INIT;
	uint64_t n = 0;
	bool good;

	if (io_read_file_at(dirfd, f->file, &b, FILE_BYTES) == -1) {
		/* Perhaps the other version has it, or /proc. */
		if (errno != ENOENT)
			complain(s, f->file, errno);
		goto out;
	}
	if (f->mark) {
		good = sum_behind(buf_str(&b), f->mark, &n);
	} else {
		good = b.len > 0 && b.data[b.len - 1] == '\n';
		if (good) {
			b.data[b.len - 1] = '\0';
			good = num_dec(b.data, 0, UINT64_MAX, &n);
			b.data[b.len - 1] = '\n';
		}
	}
	if (is_unlimited(f, buf_str(&b), n))
		s->unlimited = true;
	else if (good)
		set(s, f->m, SAMPLE_CGROUP, n / f->unit);
	else if (f->mark) /* of no device */
		set(s, f->m, SAMPLE_SILENT, 0);
	else
		complain(s, f->file, EBADMSG);
out:
	buf_release(&b);
}

static bool
is_asked(const struct sample *s, const struct source *f, unsigned version,
    const char *controller)
{
	return f->version == version && !is_known(s, f->m) &&
	    (!controller || strcmp(f->controller, controller) == 0);
}

void
sample_cgroup(
    struct sample *s, int dirfd, unsigned version, const char *controller)
{
	for (size_t i = 0; i < NSOURCES; i++)
		if (is_asked(s, &sources[i], version, controller))
			read_source(s, dirfd, &sources[i]);
}

/* ---- /proc ---- */

struct total {
	uint64_t ticks, pages, threads, reads, writes;
	int io_errno;
};

/*
 * Processor time and threads, stat of proc(5). That of children which were
 * waited for is in it, so that a process which ends takes nothing away.
 */
static bool
add_stat(const char *text, struct total *t)
{
	const char *at = strrchr(text, ')');
	uint64_t v[24] = { 0 };

	/* The state is field 3. */
	if (!at || strlen(at) < 4)
		return false;
	at += 3;
	for (int field = 4; field <= 24; field++) {
		char *end;
		long long n = strtoll(at, &end, 10);

		if (end == at)
			return false;
		v[field - 1] = n > 0 ? (uint64_t)n : 0;
		at = end;
	}
	t->ticks += v[13] + v[14] + v[15] + v[16];
	t->threads += v[19];
	t->pages += v[23];
	return true;
}

static void
add_process(int procfd, const char *pid, struct total *t)
{
	struct buf b = BUF_INIT;
	char path[32];
	uint64_t n;

	snprintf(path, sizeof path, "%s/stat", pid);
	if (io_read_file_at(procfd, path, &b, FILE_BYTES) == 0 &&
	    add_stat(buf_str(&b), t)) {
		buf_cut(&b, 0);
		snprintf(path, sizeof path, "%s/io", pid);
		if (io_read_file_at(procfd, path, &b, FILE_BYTES) == 0) {
			if (sum_behind(buf_str(&b), "\nread_bytes: ", &n))
				t->reads += n;
			if (sum_behind(buf_str(&b), "\nwrite_bytes: ", &n))
				t->writes += n;
		} else if (errno != ENOENT && errno != ESRCH) {
			t->io_errno = errno;
		}
	}
	buf_release(&b);
}

static void
fill(struct sample *s, enum sample_metric m, uint64_t n)
{
	if (!is_known(s, m))
		set(s, m, SAMPLE_PROC, n);
}

void
sample_proc(struct sample *s, int procfd)
{
	struct names all = NAMES_INIT;
	struct total t = { .ticks = 0 };
	uint64_t pid;

	if (names_read(procfd, &all) == -1) {
		complain(s, "/proc", errno);
		return;
	}
	for (size_t i = 0; i < all.n; i++)
		if (num_dec(all.name[i], 1, INT32_MAX, &pid))
			add_process(procfd, all.name[i], &t);
	names_release(&all);
	fill(s, SAMPLE_CPU, t.ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK));
	fill(s, SAMPLE_MEM, t.pages * (uint64_t)sysconf(_SC_PAGESIZE));
	fill(s, SAMPLE_PIDS, t.threads);
	if (t.io_errno == 0) {
		fill(s, SAMPLE_IO_READ, t.reads);
		fill(s, SAMPLE_IO_WRITE, t.writes);
	} else if (!is_known(s, SAMPLE_IO_READ)) {
		complain(s, "/proc/PID/io", t.io_errno);
	}
}

/* ---- all of it ---- */

/* Are we in the pid namespace that the machine began with? linux/nsfs.h. */
static bool
is_machine(void)
{
	char text[64];
	ssize_t n = readlink("/proc/self/ns/pid", text, sizeof text - 1);

	if (n == -1)
		return false;
	text[n] = '\0';
	return strcmp(text, "pid:[4026531836]") == 0;
}

/*
 * A group of the second kind that is neither the whole hierarchy, nor has
 * processes of other pid namespaces in it, which are shown as 0.
 */
static bool
is_exclusive(int dirfd)
{
	struct buf b = BUF_INIT;
	bool good = faccessat(dirfd, "cgroup.events", F_OK, 0) == 0 &&
	    io_read_file_at(dirfd, "cgroup.procs", &b, FILE_BYTES) == 0 &&
	    strncmp(buf_str(&b), "0\n", 2) != 0 &&
	    !strstr(buf_str(&b), "\n0\n");

	buf_release(&b);
	return good;
}

/* What serves may have a group of its own below that of the box. */
static void
leave_daemon(struct buf *own)
{
	const char *base = path_base(own->data);

	if (strcmp(base, "_daemon") != 0)
		return;
	buf_cut(own, base == own->data ? 0 : (size_t)(base - own->data) - 1);
	if (own->len == 0)
		buf_addc(own, '.');
}

/*
 * A box that is the machine, or the part of it in which it was started, has
 * that cgroup. One with processes of its own has the cgroup that it is in to
 * itself when sb-cgroup-run(1) made it, or when it sees nothing above it and
 * nobody else in it.
 */
static bool
is_ours(const struct cgroupfs *h, int dirfd, bool machine)
{
	return machine || strncmp(path_base(h->own.data), "sb-", 3) == 0 ||
	    (h->unified && strcmp(h->own.data, ".") == 0 &&
		is_exclusive(dirfd));
}

static void
take_cgroup(
    struct sample *s, unsigned version, const char *controller, bool machine)
{
	struct cgroupfs h = CGROUPFS_INIT;
	bool asked = false;
	int fd = -1;

	for (size_t i = 0; i < NSOURCES && !asked; i++)
		asked = is_asked(s, &sources[i], version, controller);
	/* Without one of the first kind it is the second, which was asked. */
	if (asked && cgroupfs_open(&h, controller) == 0 &&
	    h.unified == (version == 2)) {
		leave_daemon(&h.own);
		fd = path_open(h.rootfd, h.own.data, O_RDONLY | O_DIRECTORY, 0);
	}
	if (fd != -1 && is_ours(&h, fd, machine)) {
		sample_cgroup(s, fd, version, controller);
		if (s->path.len == 0)
			buf_addf(&s->path, "/%s",
			    strcmp(h.own.data, ".") == 0 ? "" : h.own.data);
	}
	io_drop(&fd);
	cgroupfs_release(&h);
}

/* What nobody said. */
static void
explain(struct sample *s)
{
	struct buf keys = BUF_INIT;

	for (int m = 0; m < SAMPLE_METRICS; m++)
		if (!is_known(s, (enum sample_metric)m))
			buf_addf(&keys, "%s%s", keys.len > 0 ? ", " : "",
			    metric_key[m]);
	if (keys.len > 0)
		buf_addf(&s->errors, "%s%s: %s", s->errors.len > 0 ? "; " : "",
		    keys.data,
		    s->path.len > 0 ? "the cgroup has no such file"
				    : "the box has no cgroup of its own");
	buf_release(&keys);
}

void
sample_take(struct sample *s)
{
	static const char *const controllers[] = { "cpuacct", "memory", "pids",
		"blkio" };
	bool machine = is_machine();
	int fd;

	*s = (struct sample)SAMPLE_INIT;
	take_cgroup(s, 2, NULL, machine);
	for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++)
		take_cgroup(s, 1, controllers[i], machine);
	/* The processes of the machine are not the box's alone. */
	if (!machine) {
		fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd == -1)
			complain(s, "/proc", errno);
		else
			sample_proc(s, fd);
		io_drop(&fd);
	}
	explain(s);
}

void
sample_release(struct sample *s)
{
	buf_release(&s->path);
	buf_release(&s->errors);
}

static uint64_t
now_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* An array of the keys of the first metrics that come from one of these. */
static void
print_keys(const struct sample *s, const char *name, unsigned from,
    enum sample_metric behind, struct buf *b)
{
	out_key(b, name);
	buf_addc(b, '[');
	for (int m = 0; m < (int)behind; m++) {
		if (!(s->value[m].from & from))
			continue;
		if (b->data[b->len - 1] != '[')
			buf_addc(b, ',');
		out_string(b, metric_key[m], strlen(metric_key[m]));
	}
	buf_addc(b, ']');
}

static bool
has_any(const struct sample *s, unsigned from)
{
	for (int m = 0; m < SAMPLE_METRICS; m++)
		if (s->value[m].from & from)
			return true;
	return false;
}

void
sample_print(const struct sample *s, struct buf *b)
{
	const unsigned known = SAMPLE_CGROUP | SAMPLE_PROC;
	bool cgroup = has_any(s, SAMPLE_CGROUP);

	buf_addc(b, '{');
	out_str(b, "kind", "sample");
	out_num(b, "ts", now_ms(CLOCK_REALTIME));
	out_str(b, "scope", "sandbox");
	out_str(
	    b, "metrics_source", cgroup ? "sandbox_cgroup" : "sandbox_proc");
	if (s->path.len > 0)
		out_path(b, "cgroup_path", s->path.data);
	out_bool(b, "cgroup_available", cgroup);
	if (s->errors.len > 0)
		out_text(b, "cgroup_error", s->errors.data);
	for (int m = 0; m < SAMPLE_METRICS; m++)
		if (s->value[m].from & known)
			out_num(b, metric_key[m], s->value[m].n);
	if (is_known(s, SAMPLE_MEM_MAX))
		out_bool(b, "mem_max_unlimited", s->unlimited);
	if (cgroup && has_any(s, SAMPLE_PROC))
		print_keys(s, "proc_metrics", SAMPLE_PROC, SAMPLE_METRICS, b);
	/* Of a clock that nobody sets: for what lies between two samples. */
	out_num(b, "uptime_ms", now_ms(CLOCK_BOOTTIME));
	print_keys(s, "_counters", known, SAMPLE_MEM, b);
	buf_addc(b, '}');
}

/* ---- the log ---- */

static struct seglog log_file = { .name = "resources.ndjson",
	.max_line = LINE_BYTES };

void
sample_log(const struct sample *s, const struct conf *conf)
{
	struct buf line = BUF_INIT;
	int fd;

	if (!conf_is(conf, CONF_SAMPLES, "true"))
		return;
	log_file.max_bytes = conf_number(conf, CONF_SAMPLES_DISK);
	sample_print(s, &line);
	buf_addc(&line, '\n');
	fd = event_dir(true);
	if (fd != -1 && line.len > LINE_BYTES)
		seglog_add(fd, &log_file, SEGLOG_OVERSIZED, 1);
	else if (fd != -1)
		seglog_append(fd, &log_file, line.data, line.len);
	io_drop(&fd);
	buf_release(&line);
}

/* The members of a stored one but those that are the log's own. */
static bool
print_latest(struct span line, struct buf *out)
{
	struct buf key = BUF_INIT;
	struct span v;
	size_t pos = 0;
	uint64_t ts;

	if (!json_is_valid(line.p, line.n, NULL, NULL) ||
	    !json_is(json_member(line, "kind"), "\"sample\"") ||
	    !json_is(json_member(line, "scope"), "\"sandbox\"") ||
	    !json_uint(json_member(line, "ts"), &ts))
		return false;
	buf_addc(out, '{');
	out_num(out, "ts", ts);
	out_null(out, "sample_delta_ms");
	out_key(out, "metrics");
	buf_addc(out, '{');
	while (json_pair(line, &pos, &key, &v)) {
		const char *name = buf_str(&key);

		if (*name == '_' || strcmp(name, "kind") == 0 ||
		    strcmp(name, "ts") == 0 || strcmp(name, "scope") == 0)
			continue;
		out_key(out, name);
		buf_add(out, v.p, v.n);
	}
	buf_adds(out, "},\"deltas\":{}}");
	buf_release(&key);
	return true;
}

/* The last line of a segment that is one; lines are in the order of time. */
static int
find_latest(int dirfd, const char *name, struct buf *out, bool *found)
{
	struct buf b = BUF_INIT;
	char *begin;
	size_t end;

	if (io_read_file_at(dirfd, name, &b, LOG_BYTES_MAX) == -1)
		return errno == ENOENT ? 0 : -1;
	/* What has no newline is not written yet. */
	for (end = b.len; end > 0 && b.data[end - 1] != '\n'; end--)
		continue;
	for (; end > 0 && !*found; end = (size_t)(begin - b.data)) {
		begin = memrchr(b.data, '\n', end - 1);
		begin = begin ? begin + 1 : b.data;
		*found = print_latest(
		    (struct span){ begin, (size_t)(b.data + end - 1 - begin) },
		    out);
	}
	buf_release(&b);
	return 0;
}

int
sample_latest(struct buf *out)
{
	bool found = false;
	char old[32];
	int fd = event_dir(false), rc = 0;

	if (fd == -1 && errno != ENOENT)
		return -1;
	snprintf(old, sizeof old, "%s.1", log_file.name);
	if (fd != -1)
		rc = find_latest(fd, log_file.name, out, &found);
	if (fd != -1 && rc == 0 && !found)
		rc = find_latest(fd, old, out, &found);
	io_drop(&fd);
	if (rc == 0 && !found)
		buf_adds(out, "null");
	return rc;
}
