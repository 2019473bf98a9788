/* SPDX-License-Identifier: MIT */
/*
 * sb-ns-root: give the processes of a session their view of the machine.
 * Shape: sink; changes the mounts of its own namespace, once.
 *
 *   1. Keep hold of the tree that is mounted at "tree".
 *   2. Make everything read-only and without devices, but the fresh /proc.
 *   3. Private and empty: /tmp, /var/tmp, /run, $HOME, /dev with the devices
 *      that every program expects and terminals of its own.
 *   4. The fresh /proc: what of it writes to the host's kernel becomes
 *      read-only, what shows its inside is covered.
 *   5. Cover each -m directory.
 *   6. Move the tree, writable, to "target"; where that lies below a private
 *      directory, its path is made in there.
 *
 * Invariant: after it nothing but the tree and the private directories can be
 * written, and nobody without power over this mount namespace can undo it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "mem.h"
#include "path.h"

static const char usage[] = "sb-ns-root [-m dir] ... tree target";

static bool
is_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void
put_tmpfs(const char *path, const char *options, unsigned long flags)
{
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | flags,
		options) == -1)
		die_sys("unable to mount a private %s", path);
}

/* mount_setattr(2) on the mount at path, or on that of the open fd (""). */
static void
set_attr(int fd, const char *path, bool recursive, uint64_t set, uint64_t clear)
{
	struct mount_attr attr = { .attr_set = set, .attr_clr = clear };

	if (mount_setattr(fd, path,
		AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW |
		    (recursive ? AT_RECURSIVE : 0),
		&attr, sizeof attr) == -1)
		die_sys("unable to make %s %s", *path ? path : "the workspace",
		    set ? "read-only" : "usable");
}

/* A read-only bind of path on itself. */
static void
freeze(const char *path)
{
	if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) == -1) {
		if (errno == ENOENT)
			return;
		die_sys("unable to bind %s", path);
	}
	if (mount(NULL, path, NULL,
		MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV |
		    MS_NOEXEC,
		NULL) == -1)
		die_sys("unable to make %s read-only", path);
}

static void
cover(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == -1)
		return;
	if (S_ISDIR(st.st_mode))
		put_tmpfs(path, "size=4k,mode=000", MS_RDONLY | MS_NOEXEC);
	else if (mount("/dev/null", path, NULL, MS_BIND, NULL) == -1)
		die_sys("unable to cover %s", path);
}

static void
make_proc_safe(void)
{
	static const char *const frozen[] = { "/proc/sys", "/proc/irq",
		"/proc/bus", "/proc/fs", "/proc/sysrq-trigger", NULL };
	static const char *const covered[] = { "/proc/kcore", "/proc/keys",
		"/proc/key-users", "/proc/timer_list", "/proc/sched_debug",
		"/proc/kmsg", "/proc/latency_stats", "/proc/acpi", "/proc/scsi",
		NULL };

	for (const char *const *p = frozen; *p; p++)
		freeze(*p);
	for (const char *const *p = covered; *p; p++)
		cover(*p);
}

/*
 * The new /dev is built aside and moved into place, since its devices are
 * binds of the old one: an ordinary user cannot make them.
 */
static void
make_dev(void)
{
	static const char *const device[] = { "null", "zero", "full", "random",
		"urandom", "tty", NULL };
	static const char *const link[][2] = { { "/proc/self/fd", "fd" },
		{ "fd/0", "stdin" }, { "fd/1", "stdout" }, { "fd/2", "stderr" },
		{ "pts/ptmx", "ptmx" } };
	char to[64], from[64];

	put_tmpfs("/tmp", "size=1m,mode=755", MS_NOEXEC);
	for (const char *const *d = device; *d; d++) {
		int fd;

		snprintf(to, sizeof to, "/tmp/%s", *d);
		snprintf(from, sizeof from, "/dev/%s", *d);
		fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd == -1 || mount(from, to, NULL, MS_BIND, NULL) == -1)
			die_sys("unable to bind %s", from);
		set_attr(AT_FDCWD, to, false, 0, MOUNT_ATTR_NODEV);
		io_drop(&fd);
	}
	if (mkdir("/tmp/pts", 0755) == -1 || mkdir("/tmp/shm", 01777) == -1)
		die_sys("unable to make /dev");
	if (mount("devpts", "/tmp/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=620") == -1)
		die_sys("unable to mount a private /dev/pts");
	put_tmpfs("/tmp/shm", "mode=1777", 0);
	for (size_t i = 0; i < sizeof link / sizeof link[0]; i++) {
		snprintf(to, sizeof to, "/tmp/%s", link[i][1]);
		if (symlink(link[i][0], to) == -1)
			die_sys("unable to make %s", to);
	}
	if (mount("/tmp", "/dev", NULL, MS_MOVE, NULL) == -1)
		die_sys("unable to put the private /dev in place");
}

/* Makes the directories of an absolute path that are missing. */
static void
make_path(const char *path)
{
	char *copy = xstrdup(path);

	for (char *p = strchr(copy + 1, '/');; p = strchr(p + 1, '/')) {
		if (p)
			*p = '\0';
		if (mkdir(copy, 0755) == -1 && errno != EEXIST) {
			if (errno == EROFS || errno == EACCES)
				die(EXIT_SYS,
				    "the workspace %s is not there any more: "
				    "make the directory again",
				    path);
			die_sys("unable to make %s", copy);
		}
		if (!p)
			break;
		*p = '/';
	}
	free(copy);
}

/* Every program gets the home that it expects, also one below /tmp. */
static void
make_home(const char *home)
{
	struct stat root, st;

	if (!home || home[0] != '/')
		return;
	if (!is_dir(home) &&
	    (path_is_below(home, "/tmp") || path_is_below(home, "/run") ||
		path_is_below(home, "/var/tmp")))
		make_path(home);
	/* However "/" is spelt, it stays what it is. */
	if (is_dir(home) && stat(home, &st) == 0 && stat("/", &root) == 0 &&
	    (st.st_dev != root.st_dev || st.st_ino != root.st_ino))
		put_tmpfs(home, "mode=700", 0);
}

int
main(int argc, char **argv)
{
	const char *target;
	const char **masks = xcalloc((size_t)argc, sizeof *masks);
	size_t nmasks = 0;
	int opt, tree, to;

	err_init();
	while ((opt = getopt(argc, argv, "+m:h")) != -1) {
		if (opt == 'm')
			masks[nmasks++] = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 2 != argc || argv[optind + 1][0] != '/')
		usage_die(usage);
	target = argv[optind + 1];

	umask(0);
	tree = open_tree(
	    AT_FDCWD, argv[optind], OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree == -1)
		die_sys("unable to open %s", argv[optind]);
	set_attr(AT_FDCWD, "/", true, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, 0);
	set_attr(tree, "", false, 0, MOUNT_ATTR_RDONLY);
	set_attr(AT_FDCWD, "/proc", false, 0, MOUNT_ATTR_RDONLY);

	make_dev();
	put_tmpfs("/tmp", "mode=1777", 0);
	put_tmpfs("/run", "mode=755", 0);
	if (is_dir("/var/tmp"))
		put_tmpfs("/var/tmp", "mode=1777", 0);
	make_home(getenv("HOME"));
	make_proc_safe();
	for (size_t i = 0; i < nmasks; i++)
		if (is_dir(masks[i]))
			cover(masks[i]);

	make_path(target);
	to = open(target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to == -1)
		die_sys("unable to open %s", target);
	if (move_mount(tree, "", to, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == -1)
		die_sys("unable to move the workspace to %s", target);
	return EXIT_OK;
}
