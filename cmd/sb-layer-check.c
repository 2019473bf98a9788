/* SPDX-License-Identifier: MIT */
/*
 * sb-layer-check: compare layers with what was written when they were made.
 * Shape: filter; ids in, ids of damaged layers out, 1 when there is any.
 *
 * A layer's digest covers kind, path and content of every entry; that of the
 * base every entry of the imported tree. What meta/ says of a layer must be
 * well-formed, and the owners of lines be those of its files.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"
#include "blame.h"
#include "buf.h"
#include "change.h"
#include "err.h"
#include "hash.h"
#include "history.h"
#include "io.h"
#include "layer.h"
#include "mem.h"
#include "ns.h"
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

/* Reads meta/ID.SUFFIX: 1, 0 when there is none, -1 when that was said. */
static int
read_meta(int stackfd, const char *id, const char *suffix, size_t max,
    struct buf *out)
{
	struct buf name = BUF_INIT;
	int fd, rc = 1;

	buf_addf(&name, "meta/%s.%s", id, suffix);
	fd = path_open(stackfd, name.data, O_RDONLY | O_NONBLOCK, 0);
	if (fd == -1 && errno == ENOENT) {
		rc = 0;
	} else if (fd == -1 || io_read_buf(fd, out, max) == -1) {
		warn_sys("layer %s: unable to read %s", id, name.data);
		rc = -1;
	}
	io_drop(&fd);
	buf_release(&name);
	return rc;
}

struct owned {
	const char *id;
	int fd; /* of the layer */
};

/* Are these the owners of the lines of a file of the layer? */
static int
check_owners(void *arg, const char *path, const struct owners *o)
{
	const struct owned *layer = arg;
	uint64_t lines = 0;
	struct stat st;
	int fd, rc;

	fd = path_open(layer->fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	rc = fd == -1 ? -1 : fstat(fd, &st);
	if (rc == 0 && !S_ISREG(st.st_mode)) {
		errno = EINVAL;
		rc = -1;
	}
	if (rc == 0 && !o->whole)
		rc = lines_count(fd, &lines);
	io_drop(&fd);
	if (rc == -1)
		warn_sys("layer %s: meta/%s.blame tells of %s, which cannot be "
			 "read as a file",
		    layer->id, layer->id, path);
	else if (lines != owners_lines(o))
		warn_msg("layer %s: meta/%s.blame knows %zu lines of %s, which "
			 "has %" PRIu64,
		    layer->id, layer->id, owners_lines(o), path, lines);
	else
		return 0;
	return 1;
}

static bool
blame_is_right(int stackfd, const char *id, int fd)
{
	struct owned layer = { .id = id, .fd = fd };
	struct buf text = BUF_INIT;
	const char *why = NULL;
	int rc = read_meta(stackfd, id, "blame", SIZE_MAX / 4, &text);

	if (rc == 1) {
		rc = blame_parse(&text, check_owners, &layer, &why);
		if (rc == -1)
			warn_msg("layer %s: meta/%s.blame is damaged: %s", id,
			    id, why);
	}
	buf_release(&text);
	return rc == 0;
}

static bool
json_is_right(int stackfd, const char *id)
{
	struct buf text = BUF_INIT, line = BUF_INIT;
	int rc = read_meta(stackfd, id, "json", HISTORY_META_MAX, &text);

	if (rc == 1) {
		rc = history_format(&line, 0, "", id, &text);
		if (rc == -1)
			warn_msg("layer %s: meta/%s.json is damaged", id, id);
	}
	buf_release(&text);
	buf_release(&line);
	return rc == 0;
}

static bool
is_whole(int stackfd, const char *id)
{
	struct buf want = BUF_INIT;
	char hex[HASH_HEX + 1], *where = NULL;
	int fd = stack_open_layer(stackfd, id), rc;
	bool good = false;

	if (fd == -1) {
		warn_sys("layer %s cannot be opened", id);
		return false;
	}
	if (!recorded(stackfd, id, &want)) {
		warn_sys("layer %s has no digest", id);
		io_drop(&fd);
		return false;
	}
	rc = id[0] == 'B' ? base_hash_tree(fd, hex, &where)
			  : layer_hash(fd, hex, &where);
	if (rc == -1)
		warn_sys(
		    "layer %s: unable to read %s", id, where ? where : "it");
	else if (strcmp(hex, buf_str(&want)) != 0)
		warn_msg("layer %s is not what was committed: its digest is "
			 "%s, recorded is %s",
		    id, hex, buf_str(&want));
	else
		good = id[0] == 'B' ||
		    (blame_is_right(stackfd, id, fd) &&
			json_is_right(stackfd, id));
	io_drop(&fd);
	return good;
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
	if (ns_own_files() == -1)
		warn_sys("unable to make a user namespace");
	stackfd = store_open_stack();
	for (size_t i = 0; i < ids.n; i++)
		if (!is_whole(stackfd, ids.id[i]))
			ids_add(&bad, ids.id[i]);
	ids_print(&bad);
	stdout_done();
	return bad.n > 0 ? EXIT_NO : EXIT_OK;
}
