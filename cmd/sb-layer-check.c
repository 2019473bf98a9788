/* SPDX-License-Identifier: MIT */
/*
 * sb-layer-check: compare layers with the digests written when they were
 * made. Shape: filter; ids in, ids of damaged layers out, 1 when there is any.
 *
 * A layer's digest covers kind, path and content of every entry; that of the
 * base every entry of the imported tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "buf.h"
#include "change.h"
#include "err.h"
#include "hash.h"
#include "io.h"
#include "layer.h"
#include "mem.h"
#include "path.h"
#include "rec.h"
#include "stack.h"
#include "store.h"

static const char usage[] = "sb-layer-check";

static int
collect(void *arg, const struct change *c)
{
	struct change copy = *c;

	/* Nothing that commits makes one. */
	if (c->kind == CHANGE_SPECIAL) {
		errno = EINVAL;
		return -1;
	}
	copy.path = xstrdup(c->path);
	copy.target = c->target ? xstrdup(c->target) : NULL;
	changes_add(arg, &copy);
	return 0;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(
	    ((const struct change *)a)->path, ((const struct change *)b)->path);
}

static int
layer_hash(int fd, char hex[HASH_HEX + 1], char **where)
{
	struct changes cs = CHANGES_INIT;
	struct hash h;
	int rc;

	rc = layer_scan(fd, "u", true, collect, &cs, where);
	if (cs.n > 1)
		qsort(cs.v, cs.n, sizeof *cs.v, by_bytes);
	hash_init(&h);
	for (size_t i = 0; i < cs.n && rc == 0; i++) {
		int file = -1;

		if (cs.v[i].kind == CHANGE_WRITE) {
			file = path_open(
			    fd, cs.v[i].path, O_RDONLY | O_NONBLOCK, 0);
			rc = file == -1 ? -1 : 0;
		}
		if (rc == 0)
			rc = layer_digest_add(&h, &cs.v[i], file);
		if (rc == -1)
			*where = xstrdup(cs.v[i].path);
		io_drop(&file);
	}
	hash_hex(&h, hex);
	changes_release(&cs);
	return rc;
}

static bool
recorded(int stackfd, const char *id, struct buf *out)
{
	struct buf name = BUF_INIT;
	int rc;

	buf_addf(&name, ".layer-metadata/%s.digest", id);
	rc = io_read_file_at(stackfd, name.data, out, 4096);
	while (out->len > 0 && strchr(" \n\r\t", out->data[out->len - 1]))
		buf_cut(out, out->len - 1);
	buf_release(&name);
	return rc == 0;
}

static bool
is_whole(int stackfd, const char *id)
{
	struct buf want = BUF_INIT;
	char hex[HASH_HEX + 1], *where = NULL;
	int fd = stack_open_layer(stackfd, id), rc;

	if (fd == -1) {
		warn_sys("layer %s cannot be opened", id);
		return false;
	}
	if (!recorded(stackfd, id, &want)) {
		warn_sys("layer %s has no digest", id);
		return false;
	}
	rc = id[0] == 'B' ? base_hash_tree(fd, hex, &where)
			  : layer_hash(fd, hex, &where);
	io_drop(&fd);
	if (rc == -1)
		warn_sys(
		    "layer %s: unable to read %s", id, where ? where : "it");
	else if (strcmp(hex, buf_str(&want)) != 0)
		warn_msg("layer %s is not what was committed: its digest is "
			 "%s, recorded is %s",
		    id, hex, buf_str(&want));
	else
		return true;
	return false;
}

int
main(int argc, char **argv)
{
	struct ids ids = IDS_INIT, bad = IDS_INIT;
	int opt, stackfd;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	ids_read_stdin(&ids, 1);
	io_many_fds();
	stackfd = store_open_stack();
	for (size_t i = 0; i < ids.n; i++)
		if (!is_whole(stackfd, ids.id[i]))
			ids_add(&bad, ids.id[i]);
	ids_print(&bad);
	stdout_done();
	return bad.n > 0 ? EXIT_NO : EXIT_OK;
}
