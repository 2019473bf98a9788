/* SPDX-License-Identifier: MIT */
/*
 * sb-session-ls: list the sessions of the store. Shape: source; ids, or with
 * -v one JSON object a line and {} as the full stop. Whether a session runs is
 * asked of its lock, nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "out.h"
#include "path.h"
#include "session.h"
#include "stack.h"
#include "store.h"

static const char usage[] = "sb-session-ls [-v]";

static void
print(const struct session *s)
{
	struct manifest m = MANIFEST_INIT;
	struct buf b = BUF_INIT;
	const char *why = NULL;
	int running = session_is_running(s);
	struct stat st;

	buf_addc(&b, '{');
	out_str(&b, "workspace_session_id", s->id);
	out_str(&b, "state",
	    running == 1       ? "running"
		: running == 0 ? "parked"
			       : "unknown");
	out_str(&b, "finalize_policy",
	    path_lstat(s->dirfd, "auto", &st) == 0 ? "publish_then_destroy"
						   : "no_op");
	if (path_lstat(s->dirfd, "conflicted", &st) == 0)
		out_bool(&b, "conflicted", true);
	if (manifest_read(s->dirfd, "lease", &m, &why) == 0 && m.n > 0) {
		out_num(&b, "manifest_version", m.version);
		out_num(&b, "layer_count", m.n);
	} else {
		out_null(&b, "manifest_version");
		out_null(&b, "layer_count");
		warn_msg("session %s: its lease cannot be read: %s", s->id,
		    why ? why : strerror(errno));
	}
	buf_addc(&b, '}');
	puts(b.data);
	buf_release(&b);
	manifest_release(&m);
}

int
main(int argc, char **argv)
{
	struct names v = NAMES_INIT;
	bool verbose = false;
	int opt, fd;

	err_init();
	while ((opt = getopt(argc, argv, "+vh")) != -1) {
		if (opt == 'v')
			verbose = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	fd = store_open_workspace();
	if (names_read(fd, &v) == -1)
		die_sys("unable to read workspace/");
	for (size_t i = 0; i < v.n; i++) {
		struct session s;

		if (!id_is_valid(v.name[i]) ||
		    session_open(&s, v.name[i]) == -1)
			continue;
		if (verbose)
			print(&s);
		else
			puts(s.id);
		io_drop(&s.dirfd);
		io_drop(&s.workfd);
	}
	puts(verbose ? "{}" : "");
	stdout_done();
	return EXIT_OK;
}
