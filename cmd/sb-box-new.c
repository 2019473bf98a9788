/* SPDX-License-Identifier: MIT */
/*
 * sb-box-new: make records of sandboxes, which prog then creates. Shape: chain;
 * prog gets their ids behind its own words, and runs in the workspace.
 *
 *   1. Look at the workspace, the image and the configuration, which is cheap.
 *   2. Write the records, in the state "creating". Their files "busy" are
 *      locked by descriptors that prog inherits: when it and all that it
 *      started have ended, and the state is still that, the sandbox failed.
 *
 * Invariant: whatever prog makes on disk, a record names it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "box.h"
#include "boxmake.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "num.h"
#include "out.h"
#include "path.h"
#include "place.h"
#include "profile.h"
#include "roots.h"
#include "spawn.h"

static const char usage[] =
    "sb-box-new [-i image] [-n count] [-p provider] workspace prog...";

#define IMAGE_HOST "host"

enum {
	COUNT_MAX = 100
};

static char (*ids)[ID_MAX + 1];
static size_t made;
static char *state;

/* Until prog has them. */
static void
undo(void)
{
	while (made > 0)
		box_remove(state, ids[--made]);
}

__attribute__((noreturn)) static void
bad_image(const char *image, const char *why)
{
	struct buf details = BUF_INIT;

	out_str(&details, "reason", "image_not_found");
	answer_error(EXIT_USAGE, KIND_INVALID, &details, "invalid image: %s%s",
	    image, why);
}

static bool
has_control(const char *s)
{
	while (*s && (unsigned char)*s >= ' ' && *s != 0x7f)
		s++;
	return *s != '\0';
}

static void
check_image(const char *image)
{
	struct stat st;

	if (strcmp(image, IMAGE_HOST) == 0)
		return;
	if (*image != '/')
		bad_image(image,
		    " (there are: host, and absolute paths of directories "
		    "and tar files)");
	if (!utf8_is_valid(image, strlen(image)) || has_control(image))
		bad_image(image, ": the path is no line of UTF-8");
	if (stat(image, &st) == -1)
		answer_error(EXIT_USAGE, KIND_INVALID, NULL,
		    "invalid image: %s: %s", image, strerror(errno));
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		bad_image(image, ": not a directory, nor a tar file");
}

__attribute__((noreturn)) static void
bad_workspace(const char *path, const char *why)
{
	answer_error(EXIT_USAGE, KIND_INVALID, NULL,
	    "invalid workspace root: %s%s", path, why);
}

/*
 * The path for the record: canonical where there are rules in which place it
 * may be. Then we are in it: what is looked at is what is imported.
 */
static const char *
enter_workspace(const char *path)
{
	struct roots roots = ROOTS_INIT;
	struct buf why = BUF_INIT;
	char *real;

	if (*path != '/')
		bad_workspace(path, "");
	if (roots_read(state, &roots, &why) == -1)
		die(EXIT_SYS, "%s",
		    why.len > 0 ? buf_str(&why) : strerror(errno));
	if (chdir(path) == -1 || !(real = roots_canonical(AT_FDCWD, "."))) {
		if (roots.enforced)
			bad_workspace(path, "");
		answer_error(EXIT_CONFLICT, KIND_FAILED, NULL,
		    "workspace setup failed: %s: %s", path, strerror(errno));
	}
	if (roots.enforced && !roots_have(&roots, real))
		bad_workspace(path, "");
	if (!utf8_is_valid(path, strlen(path)) ||
	    !utf8_is_valid(real, strlen(real)))
		bad_workspace(path, ": the path is no UTF-8");
	return roots.enforced ? real : path;
}

static void
read_profile(struct box_new *n)
{
	static struct profile profile = PROFILE_INIT;
	struct buf why = BUF_INIT;
	int rc = profile_read(state, &profile, &why);

	if (rc == -1)
		die(EXIT_SYS, "%s", buf_str(&why));
	if (rc == 1)
		n->profile = &profile;
}

/* The record is there, the lock is prog's. */
static void
make(int boxesfd, struct box_new *n)
{
	int busy = -1;

	box_new_id(ids[made]);
	n->id = ids[made];
	if (box_make(boxesfd, n, NULL, &busy) == -1)
		die_sys("unable to make " BOX_DIR "/%s", n->id);
	made++;
	if (fcntl(busy, F_SETFD, 0) == -1)
		die_sys("unable to hand a lock on");
}

int
main(int argc, char **argv)
{
	struct box_new n = { .state = STATE_CREATING, .provider = "local" };
	const char *image = IMAGE_HOST;
	uint64_t count = 1;
	int opt, fd, lock, words;
	char **all;

	err_init();
	while ((opt = getopt(argc, argv, "+hi:n:p:")) != -1) {
		if (opt == 'i')
			image = optarg;
		else if (opt == 'n' && num_dec(optarg, 1, COUNT_MAX, &count))
			continue;
		else if (opt == 'p')
			n.provider = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (argc - optind < 2)
		usage_die(usage);
	answer_always();
	state = place_state();
	check_image(image);
	n.image = image;
	n.workspace = enter_workspace(argv[optind]);
	read_profile(&n);
	ids = xcalloc(count, sizeof *ids);
	if (atexit(undo) != 0)
		die(EXIT_SYS, "out of memory");
	fd = box_lock_all(state, &lock);
	if (fd == -1)
		die_sys("unable to make %s/" BOX_DIR, state);
	while (made < count)
		make(fd, &n);
	io_drop(&lock);
	io_drop(&fd);

	words = argc - optind - 1;
	all = xcalloc((size_t)words + count + 1, sizeof *all);
	memcpy(all, argv + optind + 1, (size_t)words * sizeof *all);
	for (size_t i = 0; i < count; i++)
		all[(size_t)words + i] = ids[i];
	spawn_exec(all);
	die(spawn_exec_code(errno), "unable to run %s: %s", all[0],
	    strerror(errno));
}
