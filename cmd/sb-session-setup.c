/* SPDX-License-Identifier: MIT */
/*
 * sb-session-setup: prepare the new namespaces of a session. Shape: sink; run
 * by sb-ns-hold in the session's directory.
 *
 *   1. Mount the layers of the lease, with the upperdir, at merged: while the
 *      store can still be seen.
 *   2. Build the private view around it, which covers the store; in a sandbox
 *      with a root of its own, whose path is SB_ROOT, go there instead.
 *
 * sb-stack-show -l lease | sb-overlay-mount -u upper -w work merged, and then
 * sb-ns-root -m $SB_STORE merged WORKSPACE, do the same by four programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "conf.h"
#include "err.h"
#include "event.h"
#include "io.h"
#include "mem.h"
#include "nsroot.h"
#include "overlay.h"
#include "path.h"
#include "rootfs.h"
#include "stack.h"
#include "store.h"

static const char usage[] = "sb-session-setup [-p way] workspace";

static int
open_dir(int dirfd, const char *name)
{
	int fd = path_open(dirfd, name, O_RDONLY | O_DIRECTORY, 0);

	if (fd == -1)
		die_sys("unable to open directory %s", name);
	return fd;
}

static void
mount_layers(int dirfd, enum overlay_way way)
{
	struct event_span *span = event_begin("namespace.exec.mount_overlay");
	struct manifest m = MANIFEST_INIT;
	struct buf text = BUF_INIT;
	const char *why = NULL;
	int upper = open_dir(dirfd, "upper"), work = open_dir(dirfd, "work");
	int merged = open_dir(dirfd, "merged"), stackfd = store_open_stack();

	if (manifest_read(dirfd, "lease", &m, &why) == -1 || m.n == 0)
		die(EXIT_SYS, "unable to read the lease: %s",
		    why            ? why
			: m.n == 0 ? "no layers"
				   : strerror(errno));
	io_many_fds();
	if (overlay_mount_ids(
		stackfd, m.id, m.n, upper, work, merged, way, &text) == -1)
		die(EXIT_SYS, "%s", buf_str(&text));
	event_end(span, NULL);
	/* Before the store cannot be seen any more. */
	event_flush();
	io_drop(&upper);
	io_drop(&work);
	io_drop(&merged);
	io_drop(&stackfd);
	manifest_release(&m);
}

static void
read_conf(struct conf *conf)
{
	struct buf why = BUF_INIT;
	int fd = store_open();

	if (conf_read(fd, conf, &why) == -1) {
		if (why.len > 0)
			die(EXIT_USAGE, "%s", buf_str(&why));
		die_sys("unable to read %s of the store", CONF_NAME);
	}
	io_drop(&fd);
}

/* An overlay over the root of the sandbox, for this session alone. */
static char *
own_root(int dirfd, const char *source)
{
	struct rootfs root = { .source = source, .home = getenv("HOME") };
	struct buf readonly = BUF_INIT, why = BUF_INIT;
	char *dir = path_of_fd(dirfd), *target;

	if (!dir || (mkdirat(dirfd, "root", 0755) == -1 && errno != EEXIST) ||
	    (mkdirat(dirfd, "private", 0700) == -1 && errno != EEXIST))
		die_sys("unable to make directories for a root");
	target = xasprintf("%s/root", dir);
	root.target = target;
	root.statefd = open_dir(dirfd, "private");
	if (rootfs_make(&root, &readonly, &why) == -1)
		die(EXIT_SYS, "%s", buf_str(&why));
	io_drop(&root.statefd);
	return target;
}

int
main(int argc, char **argv)
{
	enum overlay_way way = OVERLAY_AUTO;
	struct buf why = BUF_INIT;
	const char *store, *root = getenv("SB_ROOT");
	struct conf conf;
	uint64_t bytes;
	int opt, dirfd, rc;

	err_init();
	while ((opt = getopt(argc, argv, "+p:h")) != -1) {
		if (opt == 'p' && overlay_parse_way(optarg, &way))
			continue;
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc || argv[optind][0] != '/')
		usage_die(usage);
	store = store_path();
	dirfd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd == -1)
		die_sys("unable to open the directory of the session");
	read_conf(&conf);
	bytes = conf_number(&conf, CONF_PRIVATE);
	mount_layers(dirfd, way);
	if (root && strcmp(conf_word(&conf, CONF_ROOT), "private") == 0)
		root = own_root(dirfd, root);
	if (root)
		rc = rootfs_enter(
		    root, dirfd, "merged", argv[optind], bytes, &why);
	else
		rc = nsroot_make(dirfd, "merged", argv[optind], getenv("HOME"),
		    bytes, &store, 1, &why);
	if (rc == -1)
		die(EXIT_SYS, "%s", buf_str(&why));
	return EXIT_OK;
}
