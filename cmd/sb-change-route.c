/* SPDX-License-Identifier: MIT */
/*
 * sb-change-route: decide how each change will be treated. Shape: filter.
 *
 * Changes come in undecided and leave marked: source paths are checked against
 * head when they are published. Names that an overlay layer cannot carry (a
 * component beginning ".wh.") end the stream in a refusal: publishing such a
 * name would delete another file.
 *
 * Steps: read a record, check its path, mark it, pass it on. All protected
 * paths are looked for before the refusal, so that -X lists every one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "buf.h"
#include "change.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "rec.h"

static const char usage[] = "sb-change-route [-X file]";

static void
report(const char *file, const struct buf *lines)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1 || io_write_all(fd, lines->data, lines->len) == -1 ||
	    io_close(fd) == -1)
		die_sys("unable to write %s", file);
}

int
main(int argc, char **argv)
{
	const char *conflicts = NULL;
	struct buf lines = BUF_INIT;
	char *first = NULL, *last = NULL, *message;
	size_t refused = 0;
	enum rec_kind kind;
	struct change c;
	struct rec r;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+X:h")) != -1) {
		if (opt == 'X')
			conflicts = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);

	rec_init(&r, stdin, '\0');
	for (;;) {
		kind = change_read(&r, &c, last);
		if (kind == REC_STOP)
			break;
		if (kind != REC_ITEM)
			rec_fail(&r, kind, 1);
		if (path_is_reserved(c.path)) {
			if (refused++ == 0)
				first = xstrdup(c.path);
			buf_addc(&lines, '{');
			out_path(&lines, "path", c.path);
			out_str(&lines, "kind", "protected");
			buf_adds(&lines, "}\n");
		} else if (refused == 0) {
			c.route = 's';
			change_write(stdout, &c);
		}
		free(last);
		last = c.path;
		free(c.target);
	}
	if (refused > 0) {
		if (conflicts)
			report(conflicts, &lines);
		message = xasprintf("protected path: %s (%zu in all): names "
				    "beginning .wh. cannot be published",
		    first, refused);
		rec_refuse('\0', EXIT_CONFLICT, message);
		die(EXIT_CONFLICT, "%s", message);
	}
	change_stop(stdout);
	stdout_done();
	return EXIT_OK;
}
