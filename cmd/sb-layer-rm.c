/* SPDX-License-Identifier: MIT */
/*
 * sb-layer-rm: remove layers that nothing uses, and sweep what killed programs
 * left. Shape: sink; ids in, ids removed out.
 *
 *   1. Read the ids; take the stack lock exclusively.
 *   2. Learn what is in use: head, every session's lease, every live lease.
 *      Anything unreadable there ends it: nothing is removed.
 *   3. Rename what is not in use to staging/ID.rm and drop its sidecars.
 *   4. Note what in staging/ nobody holds, remove dead leases and tickets and
 *      what killed writers left, and let go of the lock: deleting trees may
 *      take long.
 *   5. Delete what was set aside and noted, trees before the locks that mark
 *      them, and of meta/ what the history does not name.
 *
 * The base is never removed. Everything in staging/ is made under the stack
 * lock (shared), so what is unlocked under ours is dead and stays so.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "history.h"
#include "io.h"
#include "lock.h"
#include "path.h"
#include "rec.h"
#include "stack.h"
#include "stage.h"
#include "store.h"

static const char usage[] = "sb-layer-rm";

enum {
	LOCK_MS = 30000
};

static int storefd, stackfd, staging, metadata, leases, queue, meta;

static int
part(const char *name)
{
	int fd = path_open(stackfd, name, O_RDONLY | O_DIRECTORY, 0);

	if (fd == -1)
		die_sys("unable to open layer-stack/%s", name);
	return fd;
}

/* Reads dirfd, which is called name. */
static void
list(int dirfd, const char *name, struct names *out)
{
	if (names_read(dirfd, out) == -1)
		die_sys("unable to read layer-stack/%s", name);
}

static bool
ends(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && strcmp(name + n - m, suffix) == 0;
}

/* Whoever may not write a directory may not move it, but may say he may. */
static int
move_aside(const char *from, const char *to)
{
	int fd, rc;

	if (renameat(stackfd, from, staging, to) == 0)
		return 0;
	if (errno != EACCES)
		return -1;
	fd = path_open(stackfd, from, O_RDONLY | O_DIRECTORY, 0);
	rc = fd == -1 ? -1 : fchmod(fd, 0700);
	io_drop(&fd);
	return rc == -1 ? -1 : renameat(stackfd, from, staging, to);
}

/* False when there is no such layer. */
static bool
set_aside(const char *id)
{
	char from[ID_MAX + 24], to[ID_MAX + 24];

	snprintf(from, sizeof from, "layers/%s", id);
	snprintf(to, sizeof to, "%s.rm", id);
	if (move_aside(from, to) == -1) {
		if (errno == ENOENT)
			return false;
		die_sys("unable to move layer %s aside", id);
	}
	snprintf(to, sizeof to, "%s.digest", id);
	unlinkat(metadata, to, 0);
	snprintf(to, sizeof to, "%s.bytes", id);
	unlinkat(metadata, to, 0);
	return true;
}

/* Is the maker of the layer id alive? */
static bool
is_being_made(const char *id)
{
	char lock[300];

	snprintf(lock, sizeof lock, "%s.lock", id);
	/* What cannot be asked is left alone. */
	return lock_is_held(staging, lock) != 0;
}

/*
 * ID.staging and ID.lock live as long as ID.lock is held, ID.rm is rubbish,
 * dot names are locks on their way.
 */
static bool
is_dead(const char *name)
{
	const char *dot = strrchr(name, '.');
	char id[ID_MAX + 1];

	if (name[0] == '.' || ends(name, ".rm"))
		return true;
	if (!ends(name, ".staging") && !ends(name, ".lock"))
		return false;
	if ((size_t)(dot - name) > ID_MAX)
		return false;
	snprintf(id, sizeof id, "%.*s", (int)(dot - name), name);
	return !is_being_made(id);
}

static void
note_staging(struct names *dead)
{
	struct names v = NAMES_INIT;

	list(staging, "staging", &v);
	for (size_t i = 0; i < v.n; i++)
		if (is_dead(v.name[i]))
			names_add(dead, v.name[i]);
	names_release(&v);
}

static void
delete_staging(const struct names *dead)
{
	/* A tree whose lock is gone already would look as if just begun. */
	for (int locks = 0; locks < 2; locks++)
		for (size_t i = 0; i < dead->n; i++)
			if (ends(dead->name[i], ".lock") == (locks == 1) &&
			    path_rm_tree(staging, dead->name[i]) == -1)
				warn_sys("unable to remove staging/%s",
				    dead->name[i]);
}

/*
 * Id of a sidecar, or of one that is being written (.NAME.PID.tmp); false for
 * other names, and for what is said of a base.
 */
static bool
sidecar_id(const char *name, const char *const suffixes[2], char id[ID_MAX + 1])
{
	const char *end;

	if (name[0] == '.' && ends(name, ".tmp"))
		name++;
	end = strstr(name, suffixes[0]);
	if (!end)
		end = strstr(name, suffixes[1]);
	if (!end || (size_t)(end - name) > ID_MAX)
		return false;
	snprintf(id, ID_MAX + 1, "%.*s", (int)(end - name), name);
	return id_is_valid(id) && id[0] != 'B';
}

/*
 * Adds what is said in dirfd of layers that are neither there nor in use, and
 * what is only half said, if the maker is dead.
 */
static void
note_sidecars(int dirfd, const char *where, const char *const suffixes[2],
    const struct ids *used, struct names *out)
{
	struct names v = NAMES_INIT;
	char id[ID_MAX + 1], layer[ID_MAX + 24];
	struct stat st;

	list(dirfd, where, &v);
	for (size_t i = 0; i < v.n; i++) {
		/* In this order: a maker lets go after its layer appeared. */
		if (!sidecar_id(v.name[i], suffixes, id) || is_being_made(id))
			continue;
		snprintf(layer, sizeof layer, "layers/%s", id);
		if (v.name[i][0] == '.' ||
		    (!ids_have(used, id) &&
			path_lstat(stackfd, layer, &st) == -1 &&
			errno == ENOENT))
			names_add(out, v.name[i]);
	}
	names_release(&v);
}

static void
sweep_sidecars(const struct ids *used)
{
	static const char *const suffixes[] = { ".digest", ".bytes" };
	struct names v = NAMES_INIT;

	note_sidecars(metadata, ".layer-metadata", suffixes, used, &v);
	for (size_t i = 0; i < v.n; i++)
		unlinkat(metadata, v.name[i], 0);
	names_release(&v);
}

static const char *const meta_suffixes[] = { ".blame", ".json" };

static void
note_meta(const struct ids *used, struct names *dead)
{
	if (meta != -1)
		note_sidecars(meta, "meta", meta_suffixes, used, dead);
}

/* Adds every layer that the history names. -1 when it cannot be told. */
static int
read_history(struct names *named)
{
	enum history_kind kind = HISTORY_START;
	struct history h;
	int rc = history_open(stackfd, &h);

	if (rc == -1)
		warn_sys("meta/ is not swept: unable to open %s", HISTORY_FILE);
	while (rc == 1) {
		kind = history_prev(&h);
		if (kind == HISTORY_START)
			break;
		if (kind == HISTORY_LINE)
			names_add(named, h.layer);
		else if (kind != HISTORY_TORN)
			rc = -1;
		if (kind == HISTORY_BAD)
			warn_msg(
			    "meta/ is not swept: %s is damaged at byte %jd",
			    HISTORY_FILE, (intmax_t)h.at);
		if (kind == HISTORY_ERROR)
			warn_sys("meta/ is not swept: unable to read %s",
			    HISTORY_FILE);
	}
	history_close(&h);
	names_sort(named);
	return rc == -1 ? -1 : 0;
}

/*
 * The history needs no lock: what was noted is of layers that are gone, so no
 * new line will name one. It is long, and read only when something may go.
 */
static void
delete_meta(const struct names *dead)
{
	struct names named = NAMES_INIT;
	char id[ID_MAX + 1];

	if (dead->n > 0 && read_history(&named) == 0)
		for (size_t i = 0; i < dead->n; i++)
			if (dead->name[i][0] == '.' ||
			    (sidecar_id(dead->name[i], meta_suffixes, id) &&
				!names_has(&named, id)))
				unlinkat(meta, dead->name[i], 0);
	names_release(&named);
}

/* Temporary files of writers that held the stack lock: .NAME.PID.tmp. */
static void
sweep_temporary(void)
{
	struct names v = NAMES_INIT;

	list(stackfd, "", &v);
	for (size_t i = 0; i < v.n; i++)
		if (strncmp(v.name[i], "." STACK_MANIFEST ".",
			sizeof "." STACK_MANIFEST) == 0 &&
		    ends(v.name[i], ".tmp"))
			unlinkat(stackfd, v.name[i], 0);
	names_release(&v);
}

/* Leases, and those that were being made or removed: under our lock no maker
 * is at work. */
static void
sweep_leases(void)
{
	struct names v = NAMES_INIT;
	char lock[300];

	list(leases, "leases", &v);
	for (size_t i = 0; i < v.n; i++) {
		snprintf(lock, sizeof lock, "%s/lock", v.name[i]);
		if (lock_is_held(leases, lock) == 0 &&
		    path_rm_tree(leases, v.name[i]) == -1)
			warn_sys("unable to remove leases/%s", v.name[i]);
	}
	names_release(&v);
}

static void
sweep_queue(void)
{
	struct names v = NAMES_INIT;

	list(queue, "queue", &v);
	for (size_t i = 0; i < v.n; i++) {
		const char *name = v.name[i];
		bool ours = name[strspn(name, "0123456789.")] == '\0';

		/* N, or .N.PID while it was being made: lock.h. */
		if (ours && lock_is_held(queue, name) == 0)
			unlinkat(queue, v.name[i], 0);
	}
	names_release(&v);
}

int
main(int argc, char **argv)
{
	struct ids ids = IDS_INIT, used = IDS_INIT, removed = IDS_INIT;
	struct names dead = NAMES_INIT, dead_meta = NAMES_INIT;
	const char *why = NULL;
	int opt, lock;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);

	storefd = store_open();
	stackfd = store_open_stack();
	staging = part("staging");
	metadata = part(".layer-metadata");
	leases = part("leases");
	queue = part("queue");
	/* Older stores have none. */
	meta = path_open(stackfd, "meta", O_RDONLY | O_DIRECTORY, 0);
	if (meta == -1 && errno != ENOENT)
		die_sys("unable to open layer-stack/meta");
	/* Before the lock: nobody waits for somebody else's program. */
	ids_read_stdin(&ids, 0);
	lock = lock_take(stackfd, STACK_LOCK, true, LOCK_MS);
	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "gave up waiting for the stack lock");
	if (lock == -1)
		die_sys("unable to lock the stack");

	if (stack_used(storefd, &used, &why) == -1)
		die(EXIT_SYS,
		    "unable to tell what is in use, so nothing is removed: %s",
		    why);
	for (size_t i = 0; i < ids.n; i++)
		if (ids.id[i][0] != 'B' && !ids_have(&used, ids.id[i]) &&
		    set_aside(ids.id[i]))
			ids_add(&removed, ids.id[i]);
	if (removed.n > 0 && stage_sync_dir(stackfd, "layers") == -1)
		die_sys("unable to sync layers/");
	sweep_leases();
	sweep_queue();
	sweep_sidecars(&used);
	sweep_temporary();
	note_staging(&dead);
	note_meta(&used, &dead_meta);
	io_drop(&lock);

	io_many_fds();
	delete_staging(&dead);
	delete_meta(&dead_meta);
	ids_print(&removed);
	stdout_done();
	return EXIT_OK;
}
