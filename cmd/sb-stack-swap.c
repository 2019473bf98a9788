/* SPDX-License-Identifier: MIT */
/*
 * sb-stack-swap: replace the stack, if it still is at the given version.
 * Shape: sink; ids newest first in, the new version out.
 *
 *   1. Read all ids.
 *   2. Take the stack lock; read the manifest; compare the version.
 *   3. See that every layer is there.
 *   4. Append what is done to the history, and sync it.
 *   5. Write the manifest aside, sync, rename, sync the directory.
 *
 * Invariant: a reader without the lock sees the old list or the new one, never
 * a mixture, because manifest.json is only ever replaced by rename. What it
 * names as its version is in the history; a line for a version that did not
 * come is cut off by the next swap.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "history.h"
#include "io.h"
#include "lock.h"
#include "num.h"
#include "out.h"
#include "path.h"
#include "rec.h"
#include "stack.h"
#include "stage.h"
#include "store.h"

static const char usage[] = "sb-stack-swap [-c cause] version";

enum {
	LOCK_MS = 30000
};

/*
 * A stack must never name what is not there. Asked under the lock: a sweep
 * could remove a layer that nothing names.
 */
static void
require_layer(int stackfd, const char *id)
{
	char digest[ID_MAX + 32];
	struct stat st;
	int fd = stack_open_layer(stackfd, id);

	if (fd == -1 && errno == ENOENT)
		die(EXIT_USAGE, "no such layer: %s", id);
	if (fd == -1)
		die_sys("unable to open layer %s", id);
	io_drop(&fd);
	if (id[0] == 'B')
		return;
	snprintf(digest, sizeof digest, ".layer-metadata/%s.digest", id);
	if (path_lstat(stackfd, digest, &st) == -1 && errno == ENOENT)
		die(EXIT_USAGE, "layer %s has no digest: it was not committed",
		    id);
}

/* What the old list says of a layer stays. */
static void
add_layer(int stackfd, struct manifest *new, const struct manifest *old,
    const char *id)
{
	struct buf path = BUF_INIT;

	for (size_t i = 0; i < old->n; i++)
		if (strcmp(old->id[i], id) == 0) {
			manifest_add(new, id, old->path[i]);
			return;
		}
	stack_layer_path(stackfd, id, &path);
	manifest_add(new, id, buf_str(&path));
	buf_release(&path);
}

static bool
is_cause(const char *s)
{
	static const char *const causes[] = { "publish", "squash", "rollback",
		"write", NULL };

	for (const char *const *c = causes; *c; c++)
		if (strcmp(*c, s) == 0)
			return true;
	return false;
}

/* One layer more than before is what a publish makes. */
static const char *
cause_of(const struct manifest *old, const struct manifest *new)
{
	if (new->n != old->n + 1)
		return "rollback";
	for (size_t i = 0; i < old->n; i++)
		if (strcmp(old->id[i], new->id[i + 1]) != 0)
			return "rollback";
	return "publish";
}

/* Of a version that says nothing more of itself: when it was made. */
static void
add_time(struct buf *b)
{
	struct timespec now;
	struct tm tm;
	char text[64];

	if (clock_gettime(CLOCK_REALTIME, &now) == -1 ||
	    !gmtime_r(&now.tv_sec, &tm))
		die_sys("unable to tell the time");
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	buf_addc(b, '{');
	out_key(b, "time");
	buf_addf(b, "\"%s.%03ldZ\"}", text, now.tv_nsec / 1000000);
}

/*
 * What was noted of the layer when it was committed tells of the version that
 * brings it, not of one that goes back to it.
 */
static void
read_meta(int stackfd, const char *id, const char *cause, struct buf *meta)
{
	char name[ID_MAX + 16];
	int fd = -1;

	snprintf(name, sizeof name, "meta/%s.json", id);
	if (strcmp(cause, "rollback") != 0) {
		fd = path_open(stackfd, name, O_RDONLY | O_NONBLOCK, 0);
		if (fd == -1 && errno != ENOENT)
			die_sys("unable to open %s", name);
	}
	if (fd == -1)
		add_time(meta);
	else if (io_read_buf(fd, meta, HISTORY_META_MAX) == -1)
		die_sys("unable to read %s", name);
	io_drop(&fd);
}

static void
record(int stackfd, const struct manifest *old, const struct manifest *new,
    const char *cause)
{
	struct buf meta = BUF_INIT, line = BUF_INIT;

	if (!cause)
		cause = cause_of(old, new);
	read_meta(stackfd, new->id[0], cause, &meta);
	if (history_format(&line, new->version, cause, new->id[0], &meta) == -1)
		die(EXIT_SYS,
		    "meta/%s.json is damaged: it is no object, or has "
		    "a member that only the history may give",
		    new->id[0]);
	if (history_append(stackfd, old->version, &line) == -1)
		die_sys("unable to append to %s", HISTORY_FILE);
	buf_release(&meta);
	buf_release(&line);
}

int
main(int argc, char **argv)
{
	struct manifest old = MANIFEST_INIT, new = MANIFEST_INIT;
	struct ids ids = IDS_INIT;
	struct buf text = BUF_INIT;
	const char *why = NULL, *cause = NULL;
	uint64_t version;
	int opt, stackfd, lock;

	err_init();
	while ((opt = getopt(argc, argv, "+c:h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		if (opt != 'c')
			usage_die(usage);
		if (!is_cause(optarg))
			die(EXIT_USAGE, "not a cause: %s", optarg);
		cause = optarg;
	}
	if (optind + 1 != argc ||
	    !num_dec(argv[optind], 0, INT64_MAX - 1, &version))
		usage_die(usage);

	stackfd = store_open_stack();
	/* Before the lock: nobody waits for somebody else's program. */
	ids_read_stdin(&ids, 0);
	if (ids.n == 0)
		die(EXIT_USAGE, "an empty list of layers");
	lock = lock_take(stackfd, STACK_LOCK, true, LOCK_MS);
	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "gave up waiting for the stack lock");
	if (lock == -1)
		die_sys("unable to lock the stack");
	if (manifest_read(stackfd, STACK_MANIFEST, &old, &why) == -1)
		die(EXIT_SYS, "unable to read %s: %s", STACK_MANIFEST,
		    why ? why : strerror(errno));

	if (old.version != version)
		die(EXIT_CONFLICT, "stack is at %" PRIu64 ", not %" PRIu64,
		    old.version, version);

	new.version = version + 1;
	for (size_t i = 0; i < ids.n; i++) {
		require_layer(stackfd, ids.id[i]);
		add_layer(stackfd, &new, &old, ids.id[i]);
	}
	/* Asking twice is no error. */
	if (manifest_equal_layers(&old, &new)) {
		new.version = version;
	} else {
		record(stackfd, &old, &new, cause);
		manifest_format(&new, &text);
		if (stage_file(stackfd, STACK_MANIFEST, text.data, text.len,
			0600) == -1)
			die_sys("unable to replace %s", STACK_MANIFEST);
	}
	printf("%" PRIu64 "\n", new.version);
	stdout_done();
	return EXIT_OK;
}
