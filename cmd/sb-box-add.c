/* SPDX-License-Identifier: MIT */
/*
 * sb-box-add: make the gateway know a store as a sandbox. Shape: sink; prints
 * the sandbox's id.
 *
 *   1. Write the record, and the environment of its gate, into a directory
 *      sandboxes/.ID.
 *   2. Rename it to ID: from here on it exists.
 *
 * The sessions of the store are the sandbox then, on this machine as it is.
 * Its gate is started by whoever starts services.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "boxmake.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "json.h"
#include "out.h"
#include "path.h"
#include "place.h"
#include "session.h"
#include "store.h"

static const char usage[] = "sb-box-add [id]";

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

int
main(int argc, char **argv)
{
	struct box_new n = { .state = STATE_READY };
	char id[ID_MAX + 1], *state, *workspace;
	int opt, fd, lock;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (argc - optind > 1)
		usage_die(usage);
	box_new_id(id);
	n.id = optind < argc ? argv[optind] : id;
	if (!id_is_valid(n.id))
		die(EXIT_USAGE, "not an id of a sandbox: %s", n.id);
	workspace = session_workspace();
	if (!workspace)
		die_sys("unable to read the workspace of the store (has it a "
			"base? see sb-base-import)");
	if (!utf8_is_valid(workspace, strlen(workspace)))
		die(EXIT_USAGE, "the path of the workspace is no UTF-8: %s",
		    workspace);
	n.workspace = n.source = workspace;
	n.root_hash = root_hash();
	state = place_state();
	fd = box_lock_all(state, &lock);
	if (fd == -1)
		die_sys("unable to make %s/" BOX_DIR, state);
	if (box_make(fd, &n, store_path(), NULL) == -1) {
		if (errno == EEXIST)
			die(EXIT_CONFLICT, "there is a sandbox %s already",
			    n.id);
		die_sys("unable to make " BOX_DIR "/%s", n.id);
	}
	puts(n.id);
	stdout_done();
	return EXIT_OK;
}
