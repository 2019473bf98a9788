/* SPDX-License-Identifier: MIT */
/*
 * Hierarchies of the second kind, by files that imitate them: a write goes to
 * the start of a file, so that one that is written says what with.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "limit.h"
#include "path.h"
#include "tap.h"

static int root = -1;

static void
file(const char *path, const char *text)
{
	int fd =
	    openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd == -1 || io_write_all(fd, text, strlen(text)) == -1)
		perror(path);
	io_drop(&fd);
}

static bool
says(const char *path, const char *text)
{
	struct buf b = BUF_INIT;
	bool same;

	same = io_read_file_at(root, path, &b, 4096) == 0 &&
	    strcmp(buf_str(&b), text) == 0;
	if (!same)
		printf("# %s: %s\n", path, buf_str(&b));
	buf_release(&b);
	return same;
}

static void
group(const char *path, const char *controllers, const char *given)
{
	char name[64];

	mkdirat(root, path, 0755);
	snprintf(name, sizeof name, "%s/cgroup.controllers", path);
	file(name, controllers);
	snprintf(name, sizeof name, "%s/cgroup.subtree_control", path);
	file(name, given);
}

/* What the kernel makes of a new group. */
static void
files_of(const char *path)
{
	static const char *const each[] = { "cgroup.procs", "memory.max",
		"memory.high", "pids.max", "cpu.max", NULL };
	char name[64];

	mkdirat(root, path, 0755);
	for (const char *const *f = each; *f; f++) {
		snprintf(name, sizeof name, "%s/%s", path, *f);
		file(name, "");
	}
}

static int
enter(const char *own, const struct limits *want, struct buf *why)
{
	struct cgroupfs h[LIMIT_KINDS];
	int rc;

	for (int k = 0; k < LIMIT_KINDS; k++) {
		h[k] = (struct cgroupfs){ .rootfd = root, .unified = true };
		buf_adds(&h[k].own, own);
	}
	rc = limit_enter_in(h, "sb-x", want, why);
	for (int k = 0; k < LIMIT_KINDS; k++)
		buf_release(&h[k].own);
	return rc;
}

int
main(void)
{
	static const struct limits want = { .memory_max = 5000000,
		.memory_high = 4000000,
		.pids = 7,
		.nano_cpus = 1500000001 };
	static const struct limits little = { .nano_cpus = 1 };
	const char *tmp = getenv("TMPDIR");
	char dir[4096];
	struct buf why = BUF_INIT;

	snprintf(dir, sizeof dir, "%s/limit.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return 1;
	root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	group(".", "cpuset cpu memory pids\n", "cpu memory pids\n");
	group("slice", "memory pids\n", "");
	group("slice/scope", "", "");

	/* The slice can give what it has. */
	files_of("slice/sb-x");
	unlinkat(root, "slice/sb-x/cpu.max", 0);
	ok(enter("slice/scope", &want, &why) == -1,
	    "a limit that the hierarchy does not have here is told");
	ok(strncmp(buf_str(&why), "cpu: ", 5) == 0 && !strchr(why.data, ';'),
	    "and only that one");
	ok(says("slice/cgroup.subtree_control", "+pidsry"),
	    "controllers are given to the groups below, one by one");
	ok(says("slice/sb-x/memory.max", "5000000") &&
		says("slice/sb-x/memory.high", "4000000") &&
		says("slice/sb-x/pids.max", "7") &&
		says("slice/sb-x/cgroup.procs", "0"),
	    "the others hold, and we are in");

	/* The root has all. */
	buf_cut(&why, 0);
	group("slice", "", "");
	files_of("sb-x");
	ok(enter("slice/scope", &want, &why) == 0 && why.len == 0,
	    "the nearest group that can limit is taken");
	ok(says("cgroup.subtree_control", "cpu memory pids\n"),
	    "what is given already is not given again");
	ok(says("sb-x/cpu.max", "150001"), "processors are rounded up");
	files_of("sb-x");
	ok(enter(".", &little, &why) == 0 && says("sb-x/cpu.max", "1000"),
	    "no less than the kernel takes");
	ok(says("sb-x/memory.max", "") && says("sb-x/cgroup.procs", "0"),
	    "what has no limit is counted");

	/* Nothing can be had. */
	group(".", "cpuset\n", "");
	ok(enter("slice/scope", &want, &why) == -1 &&
		strstr(buf_str(&why), "memory: no group above ours") &&
		strstr(buf_str(&why), "; pids: no group above ours") &&
		strstr(buf_str(&why), "; cpu: no group above ours"),
	    "a hierarchy without controllers says so of each");
	buf_cut(&why, 0);
	ok(enter("slice/scope", &(struct limits){ .pids = 0 }, &why) == 0 &&
		why.len == 0,
	    "where nothing is asked for nothing is missed");
	buf_release(&why);
	io_drop(&root);
	path_rm_tree(AT_FDCWD, dir);
	return done();
}
