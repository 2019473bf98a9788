/* SPDX-License-Identifier: MIT */
/*
 * sb-layer-list: list what a list of layers shows in a directory. Shape:
 * filter; ids in, newest first, change records out, FROM being the layer that
 * shows the entry.
 *
 * The layers are read through lib/view, so the answer is that of a mount of
 * them. Nothing is printed before it is known that there is such a directory;
 * when there is none, a refusal with code 1 says so to whoever reads.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "change.h"
#include "err.h"
#include "io.h"
#include "ns.h"
#include "path.h"
#include "rec.h"
#include "store.h"
#include "view.h"

static const char usage[] = "sb-layer-list [-r] [path]";

static int
print(void *arg, const char *path, const struct node *n)
{
	struct view *v = arg;
	struct change c = { .route = '-' };
	struct buf target = BUF_INIT, copy = BUF_INIT;

	buf_adds(&copy, path);
	c.path = copy.data;
	c.mode = n->st.st_mode & 07777;
	snprintf(c.from, sizeof c.from, "%s", view_layer_id(v, n->layer));
	switch (n->kind) {
	case NODE_FILE:
		c.kind = CHANGE_WRITE;
		c.size = n->st.st_size;
		break;
	case NODE_DIR:
		c.kind = CHANGE_DIR;
		break;
	case NODE_SYMLINK:
		c.kind = CHANGE_SYMLINK;
		if (view_readlink(v, path, n, &target) == -1)
			die_sys("unable to read link %s", path);
		c.target = target.data;
		break;
	case NODE_SPECIAL:
		c.kind = CHANGE_SPECIAL;
		c.mode = 0;
		memcpy(c.from, "-", 2);
		break;
	case NODE_ABSENT:
		die(EXIT_BUG, "absent entry in a listing");
	}
	change_write(stdout, &c);
	buf_release(&target);
	buf_release(&copy);
	return 0;
}

static void
list(struct view *v, const char *dir)
{
	struct names names = NAMES_INIT;
	struct buf path = BUF_INIT;
	struct node n;

	if (view_list(v, dir, &names) == -1)
		die_sys("unable to list /%s in the layers", dir);
	for (size_t i = 0; i < names.n; i++) {
		buf_cut(&path, 0);
		buf_addf(&path, "%s%s%s", dir, *dir ? "/" : "", names.name[i]);
		if (view_get(v, path.data, &n) == -1)
			die_sys("unable to look up %s", path.data);
		print(v, path.data, &n);
	}
}

static void
refuse(const char *dir, const char *why)
{
	struct buf b = BUF_INIT;

	buf_addf(&b, "%s: %s", dir, why);
	rec_refuse('\0', EXIT_NO, b.data);
	die(EXIT_NO, "%s", b.data);
}

int
main(int argc, char **argv)
{
	struct ids ids = IDS_INIT;
	const char *dir = "";
	bool recursive = false;
	struct view *v;
	struct node n;
	size_t bad = 0;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+rh")) != -1) {
		if (opt == 'r')
			recursive = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (argc - optind > 1)
		usage_die(usage);
	if (optind < argc && strcmp(argv[optind], ".") != 0) {
		dir = argv[optind];
		if (!path_is_valid(dir))
			die(EXIT_USAGE, "not a relative path: %s", dir);
	}
	ids_read_stdin(&ids, 1);
	if (ns_own_files() == -1)
		warn_sys("unable to make a user namespace");
	v = view_open(store_open_stack(), &ids, &bad);
	if (!v)
		die_sys("unable to open layer %s", ids.id[bad]);
	if (view_get(v, dir, &n) == -1)
		die_sys("unable to look up %s", dir);
	/* No layers show no root, but listing nothing is no mistake. */
	if (n.kind != NODE_DIR && (ids.n > 0 || *dir != '\0'))
		refuse(dir,
		    n.kind == NODE_ABSENT ? "no such directory"
					  : "not a directory");
	if (ids.n > 0 && recursive) {
		if (view_walk(v, dir, print, v) != 0)
			die_sys("unable to walk %s", dir);
	} else if (ids.n > 0) {
		list(v, dir);
	}
	change_stop(stdout);
	stdout_done();
	return EXIT_OK;
}
