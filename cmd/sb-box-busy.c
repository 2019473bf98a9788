/* SPDX-License-Identifier: MIT */
/*
 * sb-box-busy: run a program that changes the state of a sandbox. Shape:
 * chain. The program inherits the lock that says that somebody is busy with
 * the sandbox.
 *
 *   1. Take the lock. Whoever has it creates or destroys the sandbox: refuse;
 *      or starts or stops it: wait.
 *   2. Is it in a state from which it can come into the wanted one?
 *   3. The state "stopping" is written: whatever happens, it does not run again.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "box.h"
#include "boxmake.h"
#include "buf.h"
#include "err.h"
#include "failure.h"
#include "lock.h"
#include "num.h"
#include "path.h"
#include "place.h"
#include "spawn.h"

static const char usage[] =
    "sb-box-busy [-p provider] [-t ms] sandbox state prog...";

static const struct {
	const char *from, *to;
} turns[] = {
	{ STATE_STOPPED, STATE_READY },
	{ STATE_READY, STATE_STOPPED },
	{ STATE_STOPPED, STATE_STOPPED },
	{ STATE_READY, STATE_STOPPING },
	{ STATE_STOPPED, STATE_STOPPING },
	{ STATE_FAILED, STATE_STOPPING },
};

__attribute__((noreturn)) static void
refuse(int code, const struct failure *f)
{
	answer_error(code, f->kind, &f->details, "%s", buf_str(&f->message));
}

static void
read_box(const char *state, const char *id, struct box *box)
{
	struct failure f = FAILURE_INIT;

	box_release(box);
	if (!box_read(state, id, box, &f))
		refuse(failure_is(&f, KIND_INTERNAL) ? EXIT_SYS : EXIT_NO, &f);
}

static void
check_provider(const struct box *box, const char *provider)
{
	struct failure f = FAILURE_INIT;

	if (strcmp(buf_str(&box->provider), provider) == 0)
		return;
	failure_set(&f, KIND_INVALID, "sandbox %s was made by %s", box->id,
	    box->provider.len == 0 ? "sb-box-add" : buf_str(&box->provider));
	refuse(EXIT_USAGE, &f);
}

/* Somebody else has the lock. */
static void
refuse_busy(const struct box *box, const char *to)
{
	struct failure f = FAILURE_INIT;

	if (!box_is(box, STATE_CREATING) && !box_is(box, STATE_STOPPING))
		return;
	box_cannot(box, to, &f);
	refuse(EXIT_USAGE, &f);
}

static int
take(const struct box *box, const char *to, int ms)
{
	int fd = lock_take(box->dirfd, BOX_BUSY, true, 0);

	if (fd == -1 && errno == EAGAIN) {
		refuse_busy(box, to);
		fd = lock_take(box->dirfd, BOX_BUSY, true, ms);
	}
	if (fd == -1 && (errno == EAGAIN || errno == ETIMEDOUT))
		answer_error(EXIT_BUSY, KIND_BUSY, NULL,
		    "somebody else starts or stops %s", box->id);
	/* ENOENT: it has just been removed, which is found out soon. */
	if (fd == -1 && errno != ENOENT)
		answer_error(EXIT_SYS, KIND_INTERNAL, NULL,
		    "unable to lock " BOX_DIR "/%s: %s", box->id,
		    strerror(errno));
	return fd;
}

/*
 * From here on it does not run again. On a full disk there is room where
 * nothing is that anybody would miss.
 */
static int
mark_stopping(struct box *box)
{
	static const char *const rest[] = { "log", "tmp", "var-tmp" };

	if (box_set(box, STATE_STOPPING, NULL) == 0)
		return 0;
	if (errno != ENOSPC && errno != EDQUOT)
		return -1;
	for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
		path_rm_tree(box->dirfd, rest[i]);
	return box_set(box, STATE_STOPPING, NULL);
}

/* With the lock that is ours alone. */
static void
turn(struct box *box, const char *to)
{
	const char *from = buf_str(&box->state);
	struct failure f = FAILURE_INIT;
	size_t i = 0, n = sizeof turns / sizeof *turns;

	/* What somebody is busy with, which is us, has failed before. */
	if (box_is(box, STATE_CREATING) || box_is(box, STATE_STOPPING)) {
		buf_cut(&box->state, 0);
		buf_adds(&box->state, STATE_FAILED);
		from = buf_str(&box->state);
	}
	while (i < n &&
	    (strcmp(turns[i].from, from) != 0 || strcmp(turns[i].to, to) != 0))
		i++;
	if (i == n) {
		box_cannot(box, to, &f);
		refuse(EXIT_USAGE, &f);
	}
	if (strcmp(to, STATE_STOPPING) == 0 && mark_stopping(box) == -1)
		answer_error(EXIT_SYS, KIND_INTERNAL, NULL,
		    "unable to write the record of %s: %s", box->id,
		    strerror(errno));
}

int
main(int argc, char **argv)
{
	struct box box = BOX_INIT;
	const char *provider = "local", *id, *to;
	uint64_t ms = 60000;
	char *state;
	int opt, fd;

	err_init();
	while ((opt = getopt(argc, argv, "+hp:t:")) != -1) {
		if (opt == 'p')
			provider = optarg;
		else if (opt == 't' && num_dec(optarg, 0, INT32_MAX, &ms))
			continue;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (argc - optind < 3)
		usage_die(usage);
	id = argv[optind];
	to = argv[optind + 1];
	state = place_state();
	read_box(state, id, &box);
	check_provider(&box, provider);
	fd = take(&box, to, (int)ms);
	/* Whoever had it may have changed the state, or removed it all. */
	read_box(state, id, &box);
	turn(&box, to);
	if (fcntl(fd, F_SETFD, 0) == -1)
		die_sys("unable to hand the lock on");
	spawn_exec(argv + optind + 2);
	die(spawn_exec_code(errno), "unable to run %s: %s", argv[optind + 2],
	    strerror(errno));
}
