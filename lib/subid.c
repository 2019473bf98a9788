/* SPDX-License-Identifier: MIT */
#include "subid.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "ns.h"
#include "num.h"
#include "spawn.h"

enum {
	FILE_MAX = 1 << 20
};

struct range {
	char start[24], count[24];
};

/* The first line "who:start:count" of a file that is about us. */
static int
find_range(const char *file, struct range *r)
{
	const struct passwd *pw = getpwuid(geteuid());
	char *number = xasprintf("%ld", (long)geteuid());
	struct buf text = BUF_INIT;
	char *line, *rest, *who, *count;
	uint64_t n, start;
	int rc = -1;

	if (io_read_file_at(AT_FDCWD, file, &text, FILE_MAX) == -1)
		buf_cut(&text, 0);
	rest = text.data;
	while (rc == -1 && rest && (line = strsep(&rest, "\n"))) {
		who = strsep(&line, ":");
		count = line;
		line = strsep(&count, ":");
		/* newuidmap does nothing for who has no name. */
		if (!pw || !line || !count ||
		    (strcmp(who, number) != 0 &&
			strcmp(who, pw->pw_name) != 0) ||
		    !num_dec(line, 1, UINT32_MAX, &start) ||
		    !num_dec(count, 1, UINT32_MAX, &n))
			continue;
		snprintf(r->start, sizeof r->start, "%s", line);
		snprintf(r->count, sizeof r->count, "%s", count);
		rc = 0;
	}
	buf_release(&text);
	free(number);
	if (rc == -1)
		errno = ENOENT;
	return rc;
}

/* Runs newuidmap or newgidmap for process pid. */
static int
run(const char *prog, pid_t pid, long own, const struct range *r)
{
	char number[24], id[24];
	int code;
	pid_t child;

	snprintf(number, sizeof number, "%ld", (long)pid);
	snprintf(id, sizeof id, "%ld", own);
	child = spawn((const char *const[]){ prog, number, "0", id, "1", "1",
			  r->start, r->count, NULL },
	    NULL, 0);
	if (child == -1)
		return -1;
	code = spawn_wait(child);
	if (code > 0)
		errno = EPERM;
	return code == 0 ? 0 : -1;
}

int
subid_map(pid_t pid)
{
	struct range uids, gids;

	if (find_range("/etc/subuid", &uids) == -1 ||
	    find_range("/etc/subgid", &gids) == -1 ||
	    run("newuidmap", pid, (long)geteuid(), &uids) == -1)
		return -1;
	if (run("newgidmap", pid, (long)getegid(), &gids) == 0)
		return 0;
	/* The one map is written: there is no way back. */
	errno = EPERM;
	return -1;
}

int
subid_own_files(void)
{
	int go[2], rc, code;
	struct range r;
	pid_t child, us = getpid();
	char byte = 0;

	if (geteuid() == 0 || find_range("/etc/subuid", &r) == -1 ||
	    find_range("/etc/subgid", &r) == -1)
		return ns_own_files();
	if (pipe2(go, O_CLOEXEC) == -1)
		return -1;
	/* Who writes the maps stays outside. */
	child = fork();
	if (child == 0) {
		io_drop(&go[1]);
		if (io_read_all(go[0], &byte, 1) != 1)
			_exit(EXIT_SYS);
		rc = subid_map(us);
		if (rc == -1 && errno == ENOENT)
			rc = ns_map_init(us);
		_exit(rc == -1 ? EXIT_SYS : EXIT_OK);
	}
	io_drop(&go[0]);
	rc = child == -1 ? -1 : unshare(CLONE_NEWUSER);
	if (rc == 0)
		rc = io_write_all(go[1], &byte, 1);
	io_drop(&go[1]);
	code = child == -1 ? -1 : spawn_wait(child);
	if (rc == 0 && code != 0) {
		errno = EPERM;
		rc = -1;
	}
	return rc;
}
