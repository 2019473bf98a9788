/* SPDX-License-Identifier: MIT */
/*
 * sb-change-route: decide how each change will be treated. Shape: filter.
 *
 * Changes come in undecided and leave marked: source paths are checked against
 * head when they are published, ignored ones are not, and what lies below a
 * .git directory belongs to git. What is ignored, the .gitignore files in base
 * say, the layers that the changes were made against: never the changes
 * themselves, or a session could take its own paths out of the checks. Names
 * that an overlay layer cannot carry (a component beginning ".wh.") end the
 * stream in a refusal: publishing such a name would delete another file.
 *
 * Steps: read a record, check its path, mark it, pass it on. All protected
 * paths are looked for before the refusal, so that -X lists every one.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "change.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "rec.h"
#include "route.h"
#include "store.h"
#include "view.h"

static const char usage[] = "sb-change-route [-X file] [base]";

static void
report(const char *file, const struct buf *lines)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1 || io_write_all(fd, lines->data, lines->len) == -1 ||
	    io_close(fd) == -1)
		die_sys("unable to write %s", file);
}

static struct view *
open_base(const char *file)
{
	struct ids ids = IDS_INIT;
	struct view *v;
	size_t bad = 0;

	ids_read_file(&ids, file);
	v = view_open(store_open_stack(), &ids, &bad);
	if (!v)
		die_sys(
		    "unable to open layer %s", bad < ids.n ? ids.id[bad] : "?");
	return v;
}

/* Is the path a directory, or was it, if it is deleted? */
static bool
is_dir(struct view *base, const struct change *c)
{
	struct node n = { .kind = NODE_ABSENT };

	switch (c->kind) {
	case CHANGE_DIR:
	case CHANGE_OPAQUE:
		return true;
	case CHANGE_DELETE:
		if (base && view_get(base, c->path, &n) == -1)
			die_sys("unable to look up %s in the layers", c->path);
		return n.kind == NODE_DIR;
	case CHANGE_WRITE:
	case CHANGE_SYMLINK:
	case CHANGE_SPECIAL:
		break;
	}
	return false;
}

int
main(int argc, char **argv)
{
	const char *conflicts = NULL;
	struct buf lines = BUF_INIT;
	char *first = NULL, *last = NULL, *message;
	struct view *base = NULL;
	struct route *route;
	size_t refused = 0;
	enum rec_kind kind;
	struct change c;
	struct rec r;
	int opt, letter;

	err_init();
	while ((opt = getopt(argc, argv, "+X:h")) != -1) {
		if (opt == 'X')
			conflicts = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (argc - optind > 1)
		usage_die(usage);
	if (optind < argc)
		base = open_base(argv[optind]);
	route = route_open(base);

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
			letter = 's';
			if (strcmp(c.path, CHANGE_ROOT) != 0)
				letter =
				    route_of(route, c.path, is_dir(base, &c));
			if (letter == -1)
				die_sys(
				    "unable to read the rules for %s", c.path);
			c.route = (char)letter;
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
