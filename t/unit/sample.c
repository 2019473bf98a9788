/* SPDX-License-Identifier: MIT */
/* Cgroups of both versions and /proc, by files that imitate them. */
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "path.h"

#include "tap.h"

static int dir;
static struct sample s;

static void
check(bool good)
{
	if (!good) {
		perror("sample");
		exit(111);
	}
}

/* name: with a directory in front of it, perhaps. */
static void
put(const char *name, const char *text)
{
	char sub[64];
	int fd;

	snprintf(sub, sizeof sub, "%s", name);
	if (strchr(sub, '/')) {
		*strchr(sub, '/') = '\0';
		check(mkdirat(dir, sub, 0700) == 0 || errno == EEXIST);
	}
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(fd != -1 && io_write_all(fd, text, strlen(text)) == 0 &&
	    io_close(fd) == 0);
}

/* Nothing known, nothing there. */
static void
begin(void)
{
	struct names v = NAMES_INIT;

	check(names_read(dir, &v) == 0);
	for (size_t i = 0; i < v.n; i++)
		check(path_rm_tree(dir, v.name[i]) == 0);
	names_release(&v);
	sample_release(&s);
	s = (struct sample)SAMPLE_INIT;
}

static bool
is(enum sample_metric m, enum sample_source from, uint64_t n)
{
	return s.value[m].from == from && s.value[m].n == n;
}

static bool
prints(const char *what)
{
	struct buf b = BUF_INIT;
	bool good;

	sample_print(&s, &b);
	good = strstr(buf_str(&b), what);
	buf_release(&b);
	return good;
}

static void
test_2(void)
{
	begin();
	put("cpu.stat", "usage_usec 1200\nuser_usec 700\nsystem_usec 500\n");
	put("memory.current", "67108864\n");
	put("memory.max", "536870912\n");
	put("io.stat",
	    "8:0 rbytes=4096 wbytes=10 rios=1 wios=1\n"
	    "8:16 rbytes=4 wbytes=0 rios=1 wios=0\n");
	put("pids.current", "12\n");
	sample_cgroup(&s, dir, 2, NULL);
	ok(is(SAMPLE_CPU, SAMPLE_CGROUP, 1200), "version 2: cpu");
	ok(is(SAMPLE_MEM, SAMPLE_CGROUP, 67108864), "memory");
	ok(is(SAMPLE_MEM_MAX, SAMPLE_CGROUP, 536870912), "its limit");
	ok(is(SAMPLE_IO_READ, SAMPLE_CGROUP, 4100), "what was read");
	ok(is(SAMPLE_IO_WRITE, SAMPLE_CGROUP, 10), "what was written");
	ok(is(SAMPLE_PIDS, SAMPLE_CGROUP, 12), "processes");
	ok(s.errors.len == 0, "nothing to complain about");
	ok(prints("\"metrics_source\":\"sandbox_cgroup\",\"cgroup_available\":"
		  "true,\"cpu_usec\":1200,\"io_rbytes\":4100,\"io_wbytes\":10,"
		  "\"mem_cur\":67108864,\"mem_max\":536870912,\"pids_cur\":12,"
		  "\"mem_max_unlimited\":false,\"uptime_ms\":"),
	    "the line");
	ok(prints("\"_counters\":[\"cpu_usec\",\"io_rbytes\",\"io_wbytes\"]}"),
	    "its counters");

	begin();
	put("memory.max", "max\n");
	put("io.stat", "");
	put("memory.current", "12x\n");
	sample_cgroup(&s, dir, 2, NULL);
	ok(s.unlimited && is(SAMPLE_MEM_MAX, SAMPLE_UNKNOWN, 0) &&
		prints("\"mem_max_unlimited\":true"),
	    "no limit");
	ok(!prints("io_") && is(SAMPLE_IO_READ, SAMPLE_SILENT, 0),
	    "no device, no figures");
	ok(!prints("mem_cur") && strstr(buf_str(&s.errors), "memory.current: "),
	    "a damaged file is named");
}

static void
test_1(void)
{
	begin();
	put("cpuacct.usage", "1234567\n");
	put("memory.usage_in_bytes", "100\n");
	put("memory.limit_in_bytes", "9223372036854771712\n");
	put("blkio.throttle.io_service_bytes_recursive",
	    "8:0 Read 7\n8:0 Write 8\n8:0 Sync 15\n8:0 Total 15\n"
	    "8:16 Read 1\nTotal 16\n");
	put("pids.current", "3\n");
	sample_cgroup(&s, dir, 1, "memory");
	ok(is(SAMPLE_MEM, SAMPLE_CGROUP, 100) && s.unlimited &&
		is(SAMPLE_CPU, SAMPLE_UNKNOWN, 0),
	    "version 1, by controllers");
	sample_cgroup(&s, dir, 1, NULL);
	ok(is(SAMPLE_CPU, SAMPLE_CGROUP, 1234), "nanoseconds");
	ok(is(SAMPLE_IO_READ, SAMPLE_CGROUP, 8) &&
		is(SAMPLE_IO_WRITE, SAMPLE_CGROUP, 8),
	    "input and output");
	ok(is(SAMPLE_PIDS, SAMPLE_CGROUP, 3), "processes");
	put("pids.current", "4\n");
	sample_cgroup(&s, dir, 2, NULL);
	ok(is(SAMPLE_PIDS, SAMPLE_CGROUP, 3), "what is known stays");
}

/* A stat with such figures. */
static void
put_process(const char *pid, const char *name, int ticks, int threads, int rss)
{
	char path[32], text[512];

	snprintf(path, sizeof path, "%s/stat", pid);
	snprintf(text, sizeof text,
	    "%s (%s) S 1 1 1 0 -1 4194560 9 9 0 0 %d %d %d %d 20 0 %d 0 5 9 %d "
	    "184 1 1\n",
	    pid, name, ticks, ticks, ticks, ticks, threads, rss);
	put(path, text);
	snprintf(path, sizeof path, "%s/io", pid);
	put(path,
	    "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\n"
	    "write_bytes: 8192\ncancelled_write_bytes: 1\n");
}

static void
test_proc(void)
{
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	begin();
	put("pids.current", "9\n");
	sample_cgroup(&s, dir, 2, NULL);
	put_process("1", "init", 1, 1, 10);
	put_process("42", "worker) S 7", 2, 3, 20);
	put("43/stat", "43 (cut) S 1 1");
	put("version/stat", "44 (no process) S");
	sample_proc(&s, dir);
	ok(is(SAMPLE_CPU, SAMPLE_PROC, 12 * 1000000 / hz), "processor time");
	ok(is(SAMPLE_MEM, SAMPLE_PROC, 30 * page), "memory");
	ok(is(SAMPLE_IO_READ, SAMPLE_PROC, 8192) &&
		is(SAMPLE_IO_WRITE, SAMPLE_PROC, 16384),
	    "input and output of processes");
	ok(is(SAMPLE_PIDS, SAMPLE_CGROUP, 9) &&
		prints("\"proc_metrics\":[\"cpu_usec\",\"io_rbytes\","
		       "\"io_wbytes\",\"mem_cur\"]"),
	    "only what the cgroup does not say");
	begin();
	put_process("1", "init", 1, 1, 10);
	put_process("42", "x", 2, 3, 20);
	sample_proc(&s, dir);
	ok(is(SAMPLE_PIDS, SAMPLE_PROC, 4) &&
		prints("\"metrics_source\":\"sandbox_proc\",\"cgroup_"
		       "available\":false,"),
	    "threads, and no cgroup");
}

int
main(void)
{
	char tmp[] = "/tmp/sb-sample.XXXXXX";

	check(mkdtemp(tmp) != NULL);
	dir = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(dir != -1);
	test_2();
	test_1();
	test_proc();
	begin();
	check(rmdir(tmp) == 0);
	return done();
}
