/* SPDX-License-Identifier: MIT */
/*
 * sb-file-blame: tell who owns the lines of a file, as head shows it. Shape:
 * source; prints one JSON object.
 *
 *   1. Pin the layers of head with a lease of our own.
 *   2. Look the path up; no layer but a base has it: there is no record.
 *   3. Ask the layers for its owners, newest first.
 *
 * Invariant: the ranges tile the lines that the file has now, or nothing is
 * printed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "blame.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "lock.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "rec.h"
#include "stack.h"
#include "store.h"
#include "view.h"

static const char usage[] = "sb-file-blame path";

enum {
	LOCK_MS = 30000
};

static int stackfd;
static char lease[ID_MAX + 1];

/* The lock of the lease ends with us. */
static void
drop_lease(void)
{
	stack_lease_drop(stackfd, lease);
}

static void
pin_head(struct ids *ids)
{
	struct manifest head;
	const char *why = NULL;
	uint32_t r;
	int lock;

	if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
		die_sys("unable to get random bytes");
	snprintf(
	    lease, sizeof lease, "blame-%ld-%08" PRIx32, (long)getpid(), r);
	/* Shared: a layer that head names cannot go before our lease stands. */
	lock = lock_take(stackfd, STACK_LOCK, false, LOCK_MS);
	if (lock == -1 && errno == ETIMEDOUT)
		die(EXIT_TIMEOUT, "gave up waiting for the stack lock");
	if (lock == -1)
		die_sys("unable to lock the stack");
	if (manifest_read(stackfd, STACK_MANIFEST, &head, &why) == -1)
		die(EXIT_SYS, "unable to read %s: %s", STACK_MANIFEST,
		    why ? why : strerror(errno));
	if (stack_lease(stackfd, lease, &head) == -1)
		die_sys("unable to make lease %s", lease);
	if (atexit(drop_lease) != 0)
		die(EXIT_SYS, "out of memory");
	io_drop(&lock);
	for (size_t i = 0; i < head.n; i++)
		ids_add(ids, head.id[i]);
	manifest_release(&head);
}

/* "./a//b" is "a/b". NULL for what is no path below the root. */
static char *
clean(const char *path)
{
	struct buf b = BUF_INIT;

	if (*path == '/')
		return NULL;
	while (*path != '\0') {
		size_t n = strcspn(path, "/");

		if (n > 0 && !(n == 1 && *path == '.')) {
			if (b.len > 0)
				buf_addc(&b, '/');
			buf_add(&b, path, n);
		}
		path += n;
		path += strspn(path, "/");
	}
	if (path_is_valid(buf_str(&b)))
		return buf_steal(&b);
	buf_release(&b);
	return NULL;
}

__attribute__((noreturn)) static void
not_found(const char *path)
{
	struct buf b = BUF_INIT, message = BUF_INIT;

	buf_addf(&message, "no auditability record for path: %s", path);
	buf_addc(&b, '{');
	out_key(&b, "error");
	buf_addc(&b, '{');
	out_str(&b, "kind", "not_found");
	out_key(&b, "message");
	if (utf8_is_valid(message.data, message.len))
		out_string(&b, message.data, message.len);
	else
		out_string_ascii(&b, message.data, message.len);
	out_key(&b, "details");
	buf_addc(&b, '{');
	out_path(&b, "path", path);
	buf_adds(&b, "}}}");
	puts(b.data);
	stdout_done();
	die(EXIT_NO, "%s", message.data);
}

static uint64_t
count(struct view *v, const char *path, const struct node *n)
{
	int fd = view_fd(v, path, n);
	uint64_t lines;

	if (fd == -1 || lines_count(fd, &lines) == -1)
		die_sys("unable to read %s in layer %s", path,
		    view_layer_id(v, n->layer));
	io_drop(&fd);
	return lines;
}

/* Ranges that tile the lines. */
static void
settle(struct owners *o, uint64_t lines, const char *path)
{
	char *owner;

	if (o->whole) {
		owner = xstrdup(o->v[0].owner);
		owners_release(o);
		owners_add(o, (size_t)lines, owner);
		free(owner);
	}
	if (owners_lines(o) != lines)
		die(EXIT_SYS,
		    "what is recorded of %s is of another text: it has %" PRIu64
		    " lines, recorded are %zu",
		    path, lines, owners_lines(o));
}

static void
print(const char *path, const struct owners *o)
{
	struct buf b = BUF_INIT;
	size_t start = 1;

	buf_addc(&b, '{');
	out_path(&b, "path", path);
	out_key(&b, "ranges");
	buf_addc(&b, '[');
	for (size_t i = 0; i < o->n; i++) {
		if (i > 0)
			buf_addc(&b, ',');
		buf_addc(&b, '{');
		out_num(&b, "start_line", start);
		out_num(&b, "line_count", o->v[i].count);
		out_str(&b, "owner", o->v[i].owner);
		buf_addc(&b, '}');
		start += o->v[i].count;
	}
	buf_adds(&b, "]}");
	puts(b.data);
	stdout_done();
}

int
main(int argc, char **argv)
{
	struct owners owners = OWNERS_INIT;
	struct ids ids = IDS_INIT;
	struct blame *blame;
	const char *where;
	size_t bad = 0;
	struct view *v;
	struct node n;
	char *path;
	int opt, rc;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);

	stackfd = store_open_stack();
	path = clean(argv[optind]);
	if (!path)
		not_found(argv[optind]);
	pin_head(&ids);
	v = view_open(stackfd, &ids, &bad);
	if (!v)
		die_sys("unable to open layer %s", ids.id[bad]);
	if (view_get(v, path, &n) == -1)
		die_sys("unable to look up %s", path);
	if (n.kind != NODE_FILE || view_layer_id(v, n.layer)[0] == 'B')
		not_found(path);
	blame = blame_open(stackfd, v);
	rc = blame_get(blame, path, &owners);
	where = blame_where(blame);
	if (rc == -1 && where && errno == EINVAL)
		die(EXIT_SYS, "%s is damaged", where);
	if (rc == -1)
		die_sys("unable to read %s", where ? where : path);
	/* Published with another mode, its content is still the base's. */
	if (rc == 0)
		owners_set_whole(&owners, OWNER_ORIGINAL);
	settle(&owners, count(v, path, &n), path);
	print(path, &owners);
	return EXIT_OK;
}
