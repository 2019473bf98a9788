/* SPDX-License-Identifier: MIT */
/*
 * sb-stat-stack: what the layers of the stack are, take, and are held by.
 * Shape: source; one JSON object about the stack, about what one session sees
 * of it (-w), or about the entries of one layer (-l).
 *
 * It takes no lock: the manifest is replaced as a whole, and what goes while
 * it is measured makes a number unknown, never wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "buf.h"
#include "change.h"
#include "conf.h"
#include "err.h"
#include "failure.h"
#include "io.h"
#include "layer.h"
#include "num.h"
#include "out.h"
#include "path.h"
#include "session.h"
#include "stackstat.h"
#include "store.h"

static const char usage[] =
    "sb-stat-stack [-l layer [-n entries] | -w workspace] [-t ms]";

static struct conf conf;
static struct stackstat stat_now = STACKSTAT_INIT;

static void
print_layer(const struct stackstat *s, size_t i, struct buf *b)
{
	const struct stackstat_layer *l = &s->layer[i];

	buf_addc(b, '{');
	out_str(b, "layer_id", s->m.id[i]);
	stackstat_out(b, "bytes", l->has_bytes, l->bytes);
	stackstat_out(b, "allocated_bytes", l->has_allocated, l->allocated);
	out_num(b, "leased_by_workspaces", l->leased);
	out_key(b, "booked_by");
	buf_addc(b, '[');
	for (size_t j = 0; j < i; j++) {
		if (s->layer[j].leased == 0)
			continue;
		if (b->data[b->len - 1] != '[')
			buf_addc(b, ',');
		out_string(b, s->m.id[j], strlen(s->m.id[j]));
	}
	buf_addc(b, ']');
	/* What a walk that did not come to its end had seen. */
	if (!l->has_bytes)
		out_num(b, "bytes_at_least", l->bytes);
	if (!l->has_allocated)
		out_num(b, "allocated_bytes_at_least", l->allocated);
	buf_addc(b, '}');
}

static void
print_stack(bool trend, struct buf *b)
{
	struct stackstat *s = &stat_now;
	struct buf why = BUF_INIT;
	char hex[HASH_HEX + 1];
	uint64_t sum;
	bool known;

	if (stackstat_read(s, &conf, &why) == -1)
		answer_error(EXIT_SYS, KIND_INTERNAL, NULL,
		    "the stack cannot be observed: %s", buf_str(&why));
	manifest_root_hash(&s->m, hex);
	out_num(b, "manifest_version", s->m.version);
	out_str(b, "root_hash", hex);
	out_num(b, "active_lease_count", s->leases);
	known = stackstat_bytes(s, &sum);
	stackstat_out(b, "total_bytes", known, sum);
	known = stackstat_allocated(s, &sum);
	stackstat_out(b, "total_allocated_bytes", known, sum);
	known = s->storage.complete;
	stackstat_out(b, "storage_logical_bytes", known, s->storage.bytes);
	stackstat_out(
	    b, "storage_allocated_bytes", known, s->storage.allocated);
	stackstat_out(b, "staging_entry_count", s->has_staging, s->staging);
	out_key(b, "layers");
	buf_addc(b, '[');
	for (size_t i = 0; i < s->m.n; i++) {
		if (i > 0)
			buf_addc(b, ',');
		print_layer(s, i, b);
	}
	buf_addc(b, ']');
	/* Samples of the stack over time; nothing takes them yet. */
	if (trend)
		buf_adds(b, ",\"trend\":[]");
}

/* ---- what a session sees ---- */

static void
print_upper(const char *id, struct buf *b)
{
	struct measure m = stackstat_budget(&conf);
	struct session s;
	int fd = -1;

	if (session_open(&s, id) == 0)
		fd = path_open(s.dirfd, "upper", O_RDONLY | O_DIRECTORY, 0);
	if (fd != -1)
		measure_tree(fd, &m);
	stackstat_out(b, "upper_bytes", m.complete, m.bytes);
}

static void
print_mount(const struct stackstat_session *of, size_t i, struct buf *b)
{
	const char *id = of->lease.id[i];

	buf_addc(b, '{');
	out_str(b, "layer_id", id);
	out_key(b, "shared_with");
	buf_addc(b, '[');
	for (size_t j = 0; j < stat_now.nsessions; j++) {
		const struct stackstat_session *other = &stat_now.session[j];

		if (other == of || !manifest_has(&other->lease, id))
			continue;
		if (b->data[b->len - 1] != '[')
			buf_addc(b, ',');
		out_string(b, other->id, strlen(other->id));
	}
	buf_adds(b, "]}");
}

static void
print_workspace(const char *id, struct buf *b)
{
	const struct stackstat_session *of = NULL;

	for (size_t i = 0; i < stat_now.nsessions; i++)
		if (strcmp(stat_now.session[i].id, id) == 0)
			of = &stat_now.session[i];
	if (!of)
		answer_error(EXIT_USAGE, KIND_INVALID, NULL,
		    "unknown workspace: %s", id);
	out_str(b, "workspace", of->id);
	out_key(b, "mounts");
	buf_addc(b, '[');
	for (size_t i = of->lease.n; i-- > 0;) {
		print_mount(of, i, b);
		if (i > 0)
			buf_addc(b, ',');
	}
	buf_addc(b, ']');
	print_upper(of->id, b);
}

/* ---- what a layer has ---- */

struct entries {
	struct buf *out;
	uint64_t limit;
	uint64_t n;
	bool truncated;
};

static const char *
kind_word(enum change_kind kind)
{
	switch (kind) {
	case CHANGE_WRITE:
		return "file";
	case CHANGE_SYMLINK:
		return "symlink";
	case CHANGE_DIR:
		return "directory";
	case CHANGE_DELETE:
		return "delete";
	case CHANGE_OPAQUE:
		return "opaque_dir";
	case CHANGE_SPECIAL:
		break;
	}
	return "other";
}

static int
print_entry(void *arg, const struct change *c)
{
	struct entries *e = arg;

	if (e->n == e->limit) {
		e->truncated = true;
		errno = ECANCELED;
		return -1;
	}
	if (e->n++ > 0)
		buf_addc(e->out, ',');
	buf_addc(e->out, '{');
	out_path(e->out, "path", c->path);
	out_str(e->out, "kind", kind_word(c->kind));
	buf_addc(e->out, '}');
	return 0;
}

static void
print_entries(const char *id, uint64_t limit, struct buf *b)
{
	struct entries e = { .out = b, .limit = limit };
	int stackfd = store_open_stack(), fd = -1;
	char *where = NULL;

	if (id_is_valid(id))
		fd = stack_open_layer(stackfd, id);
	if (fd == -1 && id_is_valid(id) && errno != ENOENT)
		answer_error(EXIT_SYS, KIND_INTERNAL, NULL,
		    "unable to open layer %s: %s", id, strerror(errno));
	if (fd == -1)
		answer_error(
		    EXIT_USAGE, KIND_INVALID, NULL, "unknown layer: %s", id);
	out_str(b, "layer_id", id);
	out_key(b, "entries");
	buf_addc(b, '[');
	if (layer_scan(fd, id, true, print_entry, &e, &where) == -1 &&
	    !e.truncated)
		answer_error(EXIT_SYS, KIND_INTERNAL, NULL,
		    "unable to read layer %s: %s: %s", id, where ? where : "",
		    strerror(errno));
	buf_addc(b, ']');
	out_bool(b, "truncated", e.truncated);
}

/* ---- */

static void
read_conf(void)
{
	struct buf why = BUF_INIT;
	int fd = store_open();

	if (conf_read(fd, &conf, &why) == -1)
		answer_error(EXIT_USAGE, KIND_INVALID, NULL, "%s",
		    why.len > 0 ? buf_str(&why) : strerror(errno));
	io_drop(&fd);
}

int
main(int argc, char **argv)
{
	const char *layer = NULL, *workspace = NULL;
	uint64_t limit = 0, window = 0, most;
	bool has_limit = false, has_window = false;
	struct buf b = BUF_INIT, errors = BUF_INIT;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+hl:n:t:w:")) != -1) {
		switch (opt) {
		case 'h':
			usage_help(usage);
		case 'l':
			layer = optarg;
			continue;
		case 'n':
			has_limit = num_dec(optarg, 0, UINT64_MAX, &limit);
			if (!has_limit)
				break;
			continue;
		case 't':
			has_window = num_dec(optarg, 0, UINT64_MAX, &window);
			if (!has_window)
				break;
			continue;
		case 'w':
			workspace = optarg;
			continue;
		default:
			break;
		}
		usage_die(usage);
	}
	if (optind != argc)
		usage_die(usage);
	read_conf();
	/* An empty one is as good as none. */
	if (layer && *layer == '\0')
		layer = NULL;
	if (workspace && *workspace == '\0')
		workspace = NULL;
	if (layer && workspace)
		answer_error(EXIT_USAGE, KIND_INVALID, NULL,
		    "workspace_id and layer_id exclude each other");
	most = conf_number(&conf, CONF_LAYER_MAX);
	if (limit > most)
		answer_error(EXIT_USAGE, KIND_INVALID, NULL,
		    "limit exceeds max (%" PRIu64 ")", most);
	if (!has_limit)
		limit = conf_number(&conf, CONF_LAYER_LIMIT);
	buf_adds(&b, "{\"view\":\"layerstack\"");
	if (!layer)
		stackstat_sessions(&stat_now, &errors);
	if (layer)
		print_entries(layer, limit, &b);
	else if (workspace)
		print_workspace(workspace, &b);
	else
		print_stack(has_window, &b);
	buf_addc(&b, '}');
	puts(b.data);
	stdout_done();
	return EXIT_OK;
}
