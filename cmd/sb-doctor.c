/* SPDX-License-Identifier: MIT */
/*
 * sb-doctor: does this machine have what boxes and sessions need, for this
 * user? Shape: source; a line for each check, or one JSON object; 1 when
 * something that is required fails.
 *
 *   1. Make a directory beside the state, and one beside the store when that
 *      is elsewhere; start who removes them.
 *   2. Do each thing of the table, really, in a child: no question is asked of
 *      which the answer might be wrong.
 *   3. Say what was seen, and how to mend what failed.
 *
 * Invariant: nothing is left. The remover waits for the end of a pipe that all
 * of us hold, so it comes when the last is gone, also when we were killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "call.h"
#include "err.h"
#include "filter.h"
#include "io.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "place.h"
#include "probe.h"
#include "probedir.h"
#include "probesys.h"
#include "spawn.h"
#include "sys.h"

static const char usage[] = "sb-doctor [-j]";

enum {
	NAME_WIDTH = 22
};

/* ---- programs ---- */

/* With a wrong option it says so and does nothing. */
static int
probe_program(const char *name)
{
	const char *const argv[] = { name, "-?", NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), code;
	const struct spawn_fd map[] = { { null, 0 }, { null, 1 }, { null, 2 } };
	pid_t pid = spawn(argv, map, 3);

	if (pid == -1)
		return probe_fail("unable to run %s", name);
	code = spawn_wait(pid);
	if (code > 100)
		return probe_no("%s does not run: exit %d", name, code);
	return probe_saw("runs");
}

static int
probe_jq(void)
{
	struct buf why = BUF_INIT, out = BUF_INIT;
	struct filter *f = filter_new(".a", &why);

	if (!f || !filter_run(f, "{\"a\":1}", 7, &out, &why))
		return probe_no("%s", buf_str(&why));
	return probe_saw("libjq runs a filter");
}

/* ---- the table ---- */

#define UPPER                                                               \
	"put it on a file system that can be under an overlay: ext4, "      \
	"xfs, btrfs, tmpfs since Linux 6.6; not overlay, vfat or one of a " \
	"network"
#define CONTAINER                                                         \
	"in a container, a seccomp profile and an AppArmor profile that " \
	"allow it; else a newer kernel"
#define DEBIAN(package) "install it: as root apt-get install " package
#define SLOWER          "nothing has to be done: another way is taken; "
#define NO_LIMITS                                                             \
	"boxes run without this limit: be root, or have the group delegated " \
	"(systemd: Delegate=yes), with a writable /sys/fs/cgroup"

static const struct check {
	const char *name;
	bool optional;
	bool by_place; /* tried in each of the directories */
	int (*run)(void); /* or */
	int (*run_word)(const char *word);
	const char *word;
	const char *mend;
} checks[] = {
	{ "kernel", .run = probe_kernel, .mend = "use Linux 5.15 or newer" },
	{ "namespaces", .run = probe_namespaces, .mend = CONTAINER },
	{ "user-namespaces", .run = probe_user_namespaces, .mend = CONTAINER },
	{ "proc", .run = probe_proc, .mend = CONTAINER },
	{ "mounts", .run = probe_mounts, .mend = CONTAINER },
	{ "tmpfs", .run = probe_tmpfs, .mend = CONTAINER },
	{ "devpts", .run = probe_devpts, .mend = CONTAINER },
	{ "session-root", .run = probe_root,
	    .mend = "what it names has to be there, and the above to work" },
	{ "pidfd", .run = probe_pidfd, .mend = CONTAINER },
	{ "calls", .run = probe_calls, .mend = CONTAINER },
	{ "seccomp", .run = probe_seccomp,
	    .mend = "a kernel with CONFIG_SECCOMP_FILTER" },

	{ "locks", .by_place = true, .run = probe_locks,
	    .mend = "put it on a local file system" },
	{ "room", .by_place = true, .run = probe_room,
	    .mend = "make room: 256 MiB and 10000 files" },
	{ "overlay", .by_place = true, .run = probe_overlay, .mend = UPPER },
	{ "overlay-fd", .optional = true, .by_place = true,
	    .run_word = probe_way, .word = "fd",
	    .mend = SLOWER "this one needs Linux 6.13" },
	{ "overlay-string", .optional = true, .by_place = true,
	    .run_word = probe_way, .word = "string",
	    .mend = SLOWER "this one needs Linux 6.8" },
	{ "overlay-page", .optional = true, .by_place = true,
	    .run_word = probe_way, .word = "page",
	    .mend = SLOWER "before Linux 6.8 it is needed" },
	{ "whiteout", .by_place = true, .run = probe_whiteout, .mend = UPPER },
	{ "opaque", .by_place = true, .run = probe_opaque, .mend = UPPER },
	{ "rename", .by_place = true, .run = probe_rename, .mend = UPPER },
	{ "user-xattr", .by_place = true, .run = probe_xattr, .mend = UPPER },
	{ "layers", .by_place = true, .run = probe_layers,
	    .mend = "raise the limit of open files: ulimit -n 1024; else as "
		    "for overlay" },
	{ "box-root", .by_place = true, .run = probe_box_root,
	    .mend = "what it names has to work, and the above; with a "
		    "directory as its image a box does without it" },

	{ "sb", .run_word = probe_program, .word = "sb-ns-hold",
	    .mend = "put the directory of the sb commands into PATH" },
	{ "s6-svscan", .run_word = probe_program, .word = "s6-svscan",
	    .mend = DEBIAN("s6") },
	{ "s6-svc", .run_word = probe_program, .word = "s6-svc",
	    .mend = DEBIAN("s6") },
	{ "s6-envdir", .run_word = probe_program, .word = "s6-envdir",
	    .mend = DEBIAN("s6") },
	{ "s6-ipcserver", .run_word = probe_program, .word = "s6-ipcserver",
	    .mend = DEBIAN("s6") },
	{ "s6-log", .run_word = probe_program, .word = "s6-log",
	    .mend = DEBIAN("s6") },
	{ "tcpserver", .run_word = probe_program, .word = "tcpserver",
	    .mend = DEBIAN("ucspi-tcp-ipv6") },
	{ "setpriv", .run_word = probe_program, .word = "setpriv",
	    .mend = DEBIAN("util-linux") },
	{ "getopt", .run_word = probe_program, .word = "getopt",
	    .mend = DEBIAN("util-linux") },
	{ "jq", .optional = true, .run = probe_jq,
	    .mend = "needed for --jq: as root apt-get install libjq1" },

	{ "kill", .optional = true, .run = probe_kill,
	    .mend = "commands are killed one by one: needs Linux 5.14, and a "
		    "cgroup2 hierarchy in which we may make groups" },
	{ "limit-memory", .optional = true, .run = probe_memory,
	    .mend = NO_LIMITS },
	{ "limit-pids", .optional = true, .run = probe_pids,
	    .mend = NO_LIMITS },
	{ "limit-cpu", .optional = true, .run = probe_cpu, .mend = NO_LIMITS },
	{ "landlock", .optional = true, .run = probe_landlock,
	    .mend = "a kernel with CONFIG_SECURITY_LANDLOCK, and landlock in "
		    "its lsm= line" },
	{ "mount-beneath", .optional = true, .run = probe_beneath,
	    .mend = SLOWER "this one needs Linux 6.5" },
	{ "tun", .optional = true, .run = probe_tun,
	    .mend = "needed for networks of an ordinary user: as root "
		    "modprobe tun, and /dev/net/tun in a container" },
	{ "newuidmap", .optional = true, .run = probe_newuidmap,
	    .mend = "needed to have more than one user in a box: as root "
		    "apt-get install uidmap, and a line for the user in "
		    "/etc/subuid and /etc/subgid" },
};

enum {
	NCHECKS = sizeof checks / sizeof checks[0]
};

/* ---- where things are tried ---- */

static struct place {
	const char *name;
	char *dir; /* the first that is there, on the way up */
	int dirfd, scratchfd; /* -1: err says why */
	int err;
} place[2];
static size_t nplaces;

/* Of the directory that we make in each place. */
static char scratch[64];

static void
add_place(const char *name, const char *path)
{
	struct place *p = &place[nplaces];
	struct stat a, b;
	char *slash;

	*p = (struct place){
		.name = name, .dir = xstrdup(path), .scratchfd = -1
	};
	for (;;) {
		p->dirfd = open(
		    *p->dir ? p->dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		slash = strrchr(p->dir, '/');
		if (p->dirfd != -1 || errno != ENOENT || !slash)
			break;
		*slash = '\0';
	}
	p->err = errno;
	/* What two places on one file system can do is the same. */
	if (nplaces > 0 && fstat(p->dirfd, &a) == 0 &&
	    fstat(place[0].dirfd, &b) == 0 && a.st_dev == b.st_dev)
		return;
	nplaces++;
}

static void
make_scratch(struct place *p)
{
	if (p->dirfd == -1)
		return;
	if (mkdirat(p->dirfd, scratch, 0700) == 0)
		p->scratchfd = openat(p->dirfd, scratch,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	p->err = errno;
}

/*
 * Removes all that we make when the last that has the other end of the pipe is
 * gone. Nothing that ends us reaches it.
 */
static pid_t
start_remover(int *alive)
{
	int p[2], rc = EXIT_OK;
	pid_t pid;
	char byte;

	if (pipe2(p, O_CLOEXEC) == -1)
		die_sys("unable to make a pipe");
	pid = fork();
	if (pid == -1)
		die_sys("unable to fork");
	*alive = p[1];
	if (pid != 0) {
		io_drop(&p[0]);
		return pid;
	}
	io_drop(&p[1]);
	setsid();
	sys_close_range(0, 2, 0);
	if (io_read_all(p[0], &byte, 1) == -1)
		rc = EXIT_SYS;
	for (size_t i = 0; i < nplaces; i++)
		if (place[i].dirfd != -1 &&
		    path_rm_tree(place[i].dirfd, scratch) == -1)
			rc = EXIT_SYS;
	if (probe_clean() == -1)
		rc = EXIT_SYS;
	_exit(rc);
}

/* ---- results ---- */

static bool is_json;
static struct buf results = BUF_INIT;
static size_t failed;

static void
print(const struct check *c, const struct place *p, bool ok,
    const struct probe_report *r)
{
	const char *how = r->mend[0] ? r->mend : c->mend;
	char *name =
	    p ? xasprintf("%s-%s", p->name, c->name) : xstrdup(c->name);

	if (is_json) {
		buf_adds(&results, results.len > 0 ? ",{" : "{");
		out_str(&results, "name", name);
		out_str(
		    &results, "group", c->optional ? "optional" : "required");
		out_bool(&results, "ok", ok);
		out_text(&results, "detail", r->seen);
		if (ok)
			out_null(&results, "mend");
		else
			out_str(&results, "mend", how);
		buf_addc(&results, '}');
	} else {
		printf("%-7s  %-*s  %s\n",
		    ok                ? "ok"
			: c->optional ? "missing"
				      : "FAILED",
		    NAME_WIDTH, name, r->seen);
		if (!ok)
			printf("%*s  mend: %s\n", NAME_WIDTH + 9, "", how);
	}
	free(name);
}

struct trial {
	const struct check *check;
	const struct place *place; /* or NULL */
};

static int
try(const void *arg)
{
	const struct trial *t = arg;
	const struct check *c = t->check;
	const struct place *p = t->place;

	if (p && p->scratchfd == -1) {
		probe_mend("name a directory that we can write");
		errno = p->err;
		return probe_fail("unable to make a directory in %s", p->dir);
	}
	if (p &&
	    (fchdir(p->scratchfd) == -1 || mkdir(c->name, 0700) == -1 ||
		chdir(c->name) == -1))
		return probe_fail("unable to make a directory in %s", p->dir);
	return c->run ? c->run() : c->run_word(c->word);
}

static void
check(const struct check *c, const struct place *p)
{
	const struct trial t = { .check = c, .place = p };
	const struct probe_report *r;
	bool ok;

	fflush(stdout);
	ok = probe_run(try, &t, &r);
	print(c, p, ok, r);
	failed += !ok && !c->optional;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL,
						     'j' },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
	const char *store = getenv("SB_STORE");
	char uuid[37];
	int opt, alive = -1;
	pid_t remover;

	err_init();
	while ((opt = getopt_long(argc, argv, "+hj", options, NULL)) != -1) {
		if (opt == 'j')
			is_json = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	if (probe_init() == -1)
		die_sys("unable to get memory");
	call_uuid(uuid);
	snprintf(scratch, sizeof scratch, "sb-doctor.%s", uuid);
	add_place("state", place_state());
	if (store && *store == '/')
		add_place("store", store);
	remover = start_remover(&alive);
	for (size_t k = 0; k < nplaces; k++)
		make_scratch(&place[k]);

	for (size_t i = 0; i < NCHECKS; i++)
		for (size_t k = 0; k < (checks[i].by_place ? nplaces : 1); k++)
			check(
			    &checks[i], checks[i].by_place ? &place[k] : NULL);

	io_drop(&alive);
	if (spawn_wait(remover) != 0)
		warn_msg("unable to remove what was tried");
	if (is_json)
		printf("{\"ok\":%s,\"checks\":[%s]}\n",
		    failed == 0 ? "true" : "false", buf_str(&results));
	else if (failed == 0)
		puts("All that boxes and sessions need is there.");
	else
		printf("%zu of what boxes and sessions need is not there.\n",
		    failed);
	stdout_done();
	return failed == 0 ? EXIT_OK : EXIT_NO;
}
