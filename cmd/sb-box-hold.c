/* SPDX-License-Identifier: MIT */
/*
 * sb-box-hold: make a sandbox's namespaces and its root, and run a program as
 * the first process there. Shape: chain, stays.
 *
 *   1. Take the sandbox's lock: from now on it runs.
 *   2. Wait until the first process of an earlier run is gone: two mounts of
 *      one upperdir at once are undefined.
 *   3. Clone the first process of new mount, pid, ipc and uts namespaces, and
 *      a user namespace when we are not root. It waits until its pid is in the
 *      file hold and its ids are mapped.
 *   4. It mounts a fresh /proc and the root, and becomes the program.
 *   5. Say that we are ready; stay until it has ended.
 *
 * The program goes on seeing the host's mounts; the root is for sessions:
 * whatever becomes of it, what serves the sandbox is not touched.
 *
 * Invariant: the lock is held as long as we live, and when we die, in whatever
 * way, the kernel kills the program and with it all processes of the sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box.h"
#include "buf.h"
#include "clock.h"
#include "detach.h"
#include "err.h"
#include "io.h"
#include "lock.h"
#include "mem.h"
#include "ns.h"
#include "num.h"
#include "path.h"
#include "place.h"
#include "rootfs.h"
#include "spawn.h"
#include "stage.h"
#include "subid.h"
#include "sys.h"

static const char usage[] =
    "sb-box-hold [-3 fd] [-i image] [-m mask] ... sandbox prog...";

enum {
	FENCE_MS = 30000,
	TERM_MS = 5000 /* so long the program has to end by itself */
};

static void
fence(int dirfd, const char *id)
{
	struct hold h;
	int fd;

	if (hold_read(dirfd, &h) == -1) {
		if (errno == ENOENT)
			return;
		die_sys("unable to read " BOX_DIR "/%s/hold", id);
	}
	fd = hold_open(&h);
	if (fd == -1 && errno == ESRCH)
		return;
	if (fd == -1)
		die_sys("unable to look at the earlier run of %s", id);
	if (io_wait(fd, FENCE_MS) == -1)
		die(EXIT_TIMEOUT,
		    "the processes of the earlier run of %s do not end", id);
	io_drop(&fd);
}

/* In the directory of the sandbox. Ends in the program. */
__attribute__((noreturn)) static void
be_first(int go, int report, struct rootfs *root, char **argv)
{
	struct buf readonly = BUF_INIT, why = BUF_INIT;
	const char *what;
	char *dir;

	if (ns_begin(go, &what) == -1) {
		if (!what)
			_exit(EXIT_SYS);
		die_sys("unable to %s", what);
	}
	/* Opened here: overlayfs takes no directory of another namespace. */
	root->statefd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = root->statefd == -1 ? NULL : path_of_fd(root->statefd);
	if (!dir)
		die_sys("unable to open the directory of the sandbox");
	root->target = xasprintf("%s/root", dir);
	if (rootfs_make(root, &readonly, &why) == -1)
		die(EXIT_SYS, "%s", buf_str(&why));
	if (stage_file_nosync(root->statefd, BOX_MOUNTS, buf_str(&readonly),
		readonly.len, 0600) == -1)
		die_sys("unable to write " BOX_MOUNTS);
	if (setenv("SB_ROOT", root->target, 1) == -1)
		die(EXIT_SYS, "out of memory");
	if (chdir("/") == -1)
		die_sys("unable to enter /");
	if (io_write_all(report, "\n", 1) == -1)
		_exit(EXIT_SYS);
	spawn_exec(argv);
	warn_sys("unable to run %s", argv[0]);
	io_write_all(report, "\n", 1);
	_exit(spawn_exec_code(errno));
}

/*
 * An image is a system of its own, with users of its own. Programs for which
 * one id is not enough are told by rootfs_make when there is no more.
 */
static void
map_first(pid_t pid, bool image)
{
	int rc = -1;

	errno = ENOENT;
	if (geteuid() != 0 && image)
		rc = subid_map(pid);
	if (rc == -1 && errno == ENOENT)
		rc = ns_map_init(pid);
	if (rc == -1)
		die_sys("unable to map ids");
}

/* Until the program has ended, which it is told to when we are. */
static void
hold_on(pid_t first, int signals)
{
	struct pollfd p[2] = { { .fd = sys_pidfd_open(first),
				   .events = POLLIN },
		{ .fd = signals, .events = POLLIN } };
	int64_t end = 0;
	int left;

	for (;;) {
		left = end == 0 ? -1 : (int)(end - clock_ms());
		if (end != 0 && left <= 0) {
			kill(first, SIGKILL); /* not reaped: still ours */
			left = -1;
		}
		if (poll(p, 2, left) == -1 && errno != EINTR)
			return;
		if (waitpid(first, NULL, WNOHANG) == first)
			return;
		if (p[1].revents && end == 0) {
			kill(first, SIGTERM);
			end = clock_ms() + TERM_MS;
			p[1].fd = -1;
		}
	}
}

int
main(int argc, char **argv)
{
	struct rootfs root = { .source = "/", .home = getenv("HOME") };
	const char **masks = xcalloc((size_t)argc, sizeof *masks);
	int opt, ready = -1, boxes, dirfd, lock, go[2], report[2], signals;
	int keep[4];
	struct hold h = { .pid = 0 };
	const char *id;
	sigset_t mask;
	char said[2];
	uint64_t fd;

	err_init();
	root.mask = masks;
	while ((opt = getopt(argc, argv, "+3:hi:m:")) != -1) {
		if (opt == '3' && num_dec(optarg, 3, 1 << 20, &fd))
			ready = (int)fd;
		else if (opt == 'i' && *optarg == '/')
			root.source = optarg;
		else if (opt == 'm' && *optarg == '/')
			masks[root.nmasks++] = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else if (opt != 'i' || strcmp(optarg, "host") != 0)
			usage_die(usage);
	}
	if (argc - optind < 2)
		usage_die(usage);
	id = argv[optind];
	if (!id_is_valid(id))
		die(EXIT_USAGE, "not an id of a sandbox: %s", id);
	if (ready != -1 && io_ready_fd(ready) == -1)
		die_sys("unable to use descriptor %d", ready);
	boxes = place_open(place_state(), BOX_DIR);
	dirfd =
	    boxes == -1 ? -1 : path_open(boxes, id, O_RDONLY | O_DIRECTORY, 0);
	if (dirfd == -1)
		die(errno == ENOENT ? EXIT_NO : EXIT_SYS,
		    "unable to open sandbox %s: %s", id, strerror(errno));
	if (mkdirat(dirfd, "root", 0755) == -1 && errno != EEXIST)
		die_sys("unable to make " BOX_DIR "/%s/root", id);
	lock = lock_take(dirfd, "lock", true, 0);
	if (lock == -1 && errno == EAGAIN)
		die(EXIT_BUSY, "sandbox %s runs already", id);
	if (lock == -1)
		die_sys("unable to lock sandbox %s", id);
	/*
	 * Only now: whoever started us may have given us the lock that says
	 * that it is busy, and this is ours to take over from it.
	 */
	keep[0] = ready;
	keep[1] = boxes;
	keep[2] = dirfd;
	keep[3] = lock;
	if (detach_close(keep, 4) == -1)
		die_sys("unable to close what we were given");
	fence(dirfd, id);

	if (pipe2(go, O_CLOEXEC) == -1 || pipe2(report, O_CLOEXEC) == -1)
		die_sys("unable to make a pipe");
	if (fchdir(dirfd) == -1)
		die_sys("unable to enter " BOX_DIR "/%s", id);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	signals = detach_signals();
	if (signals == -1)
		die_sys("unable to wait for signals");
	h.pid = ns_fork_init();
	if (h.pid == -1)
		die_sys("unable to make namespaces%s",
		    geteuid() == 0 ? "" : " (are user namespaces allowed?)");
	if (h.pid == 0) {
		sigprocmask(SIG_SETMASK, &mask, NULL);
		io_drop(&signals);
		io_drop(&lock);
		io_drop(&ready);
		io_drop(&go[1]);
		io_drop(&report[0]);
		be_first(go[0], report[1], &root, argv + optind + 1);
	}
	io_drop(&go[0]);
	io_drop(&report[1]);
	/* Known before it does anything: the next fence must find it. */
	if (ns_start_time(h.pid, &h.start) == -1 || hold_write(dirfd, &h) == -1)
		die_sys("unable to write " BOX_DIR "/%s/hold", id);
	map_first(h.pid, strcmp(root.source, "/") != 0);
	/* A second byte is a program that could not be run. */
	if (io_write_all(go[1], "", 1) == -1 ||
	    io_read_all(report[0], said, 2) != 1) {
		kill(h.pid, SIGKILL);
		waitpid(h.pid, NULL, 0);
		die(EXIT_SYS, "unable to set sandbox %s up", id);
	}
	io_drop(&report[0]);
	if (detach(dirfd, "messages") == -1)
		return EXIT_SYS;
	if (ready != -1 && io_write_all(ready, "\n", 1) == -1 && errno != EPIPE)
		return EXIT_SYS;
	io_drop(&ready);
	hold_on(h.pid, signals);
	return EXIT_OK;
}
