/* SPDX-License-Identifier: MIT */
/*
 * sb-box-add: make the gateway know a store as a sandbox. Shape: sink; prints
 * the sandbox's id.
 *
 *   1. Write the record, and the environment of its gate, into a directory
 *      sandboxes/.ID.PID.
 *   2. Rename it to ID: from here on it exists.
 *
 * The sessions of the store are the sandbox then, on this machine as it is.
 * Its gate is started by whoever starts services.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "place.h"
#include "session.h"
#include "stack.h"
#include "stage.h"
#include "store.h"

static const char usage[] = "sb-box-add [id]";

static int boxesfd = -1;
static char *aside; /* the name before it exists */

static void
undo(void)
{
	if (aside)
		path_rm_tree(boxesfd, aside);
}

/* "eos-" and a UUID of version 4 (RFC 9562). */
static char *
new_id(void)
{
	unsigned char r[16];
	struct buf b = BUF_INIT;

	if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r)
		die_sys("unable to get random bytes");
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	buf_adds(&b, "eos-");
	for (size_t i = 0; i < sizeof r; i++)
		buf_addf(&b, "%s%02x",
		    i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", r[i]);
	return buf_steal(&b);
}

static char *
root_hash(void)
{
	struct buf text = BUF_INIT, hash = BUF_INIT;
	int fd = store_open_stack();

	if (io_read_file_at(fd, "workspace.json", &text, 65536) == -1)
		die_sys("unable to read workspace.json");
	io_drop(&fd);
	if (!json_is_valid(buf_str(&text), text.len, NULL, NULL) ||
	    !json_string(json_member((struct span){ text.data, text.len },
			     "base_root_hash"),
		&hash))
		die(EXIT_SYS, "workspace.json names no base_root_hash");
	return buf_steal(&hash);
}

static void
make_record(struct buf *b, const char *id)
{
	char *workspace = session_workspace();

	if (!workspace)
		die_sys("unable to read the workspace of the store (has it a "
			"base? see sb-base-import)");
	if (!utf8_is_valid(workspace, strlen(workspace)))
		die(EXIT_USAGE, "the path of the workspace is no UTF-8: %s",
		    workspace);
	buf_addc(b, '{');
	out_str(b, "id", id);
	out_str(b, "workspace_root", workspace);
	out_str(b, "state", "ready");
	out_num(b, "activity_revision", 0);
	out_null(b, "daemon");
	out_null(b, "daemon_http");
	out_key(b, "shared_base");
	buf_addc(b, '{');
	out_str(b, "source", workspace);
	out_str(b, "target", "/eos/layer-stack/base");
	out_str(b, "root_hash", root_hash());
	out_bool(b, "readonly", true);
	buf_addc(b, '}');
	out_null(b, "resource_profile");
	buf_adds(b, "}\n");
}

static void
write_all(const char *id)
{
	struct buf record = BUF_INIT;
	int dirfd, envfd;

	make_record(&record, id);
	if (mkdirat(boxesfd, aside, 0700) == -1)
		die_sys("unable to make " BOX_DIR "/%s", aside);
	dirfd = path_open(boxesfd, aside, O_RDONLY | O_DIRECTORY, 0);
	if (dirfd == -1 || mkdirat(dirfd, "env", 0700) == -1)
		die_sys("unable to make " BOX_DIR "/%s/env", aside);
	envfd = path_open(dirfd, "env", O_RDONLY | O_DIRECTORY, 0);
	if (envfd == -1 ||
	    stage_file(envfd, "SB_STORE", store_path(), strlen(store_path()),
		0600) == -1 ||
	    stage_file(dirfd, "record.json", record.data, record.len, 0600) ==
		-1)
		die_sys("unable to write " BOX_DIR "/%s", aside);
	io_drop(&envfd);
	io_drop(&dirfd);
}

int
main(int argc, char **argv)
{
	char *id, *state;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (argc - optind > 1)
		usage_die(usage);
	id = optind < argc ? argv[optind] : new_id();
	if (!id_is_valid(id))
		die(EXIT_USAGE, "not an id of a sandbox: %s", id);
	state = place_state();
	boxesfd = place_make(state, BOX_DIR);
	if (boxesfd == -1)
		die_sys("unable to make %s/" BOX_DIR, state);
	if (atexit(undo) != 0)
		die(EXIT_SYS, "out of memory");
	aside = xasprintf(".%s.%ld", id, (long)getpid());
	write_all(id);
	/* Onto one that is there, this fails: it is not empty. */
	if (renameat(boxesfd, aside, boxesfd, id) == -1) {
		if (errno == EEXIST || errno == ENOTEMPTY)
			die(EXIT_CONFLICT, "there is a sandbox %s already", id);
		die_sys("unable to make " BOX_DIR "/%s", id);
	}
	aside = NULL;
	if (stage_sync_dir(boxesfd, ".") == -1)
		die_sys("unable to sync " BOX_DIR);
	puts(id);
	stdout_done();
	return EXIT_OK;
}
