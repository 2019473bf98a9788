/* SPDX-License-Identifier: MIT */
/*
 * sb-file-blame: tell who owns the lines of a file, as head or a session shows
 * it. Shape: source; prints one JSON object.
 *
 *   1. Open head or the session; look the path up, following no link.
 *   2. What the layers of head show, or those that the session was made on:
 *      ask them for the owners, newest first. If no layer but a base has the
 *      file, there is no record.
 *   3. What the session has changed: say what its publish would write down.
 *
 * Invariant: the ranges tile the lines that the file has now, or the error
 * object is printed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "blame.h"
#include "err.h"
#include "file.h"
#include "io.h"
#include "mem.h"
#include "num.h"
#include "out.h"
#include "route.h"

static const char usage[] = "sb-file-blame [-s session] [-t ms] path";

__attribute__((noreturn)) static void
not_found(const char *path)
{
	struct buf b = BUF_INIT;

	out_path(&b, "path", path);
	answer_error(EXIT_NO, KIND_NOT_FOUND, &b,
	    "no auditability record for path: %s", path);
}

__attribute__((noreturn)) static void
blame_failed(const struct blame *b, const char *path)
{
	const char *where = blame_where(b);

	if (where && errno == EINVAL)
		answer_error(
		    EXIT_SYS, KIND_FAILED, NULL, "%s is damaged", where);
	answer_sys("unable to read %s", where ? where : path);
}

static uint64_t
count(int fd, const char *path)
{
	uint64_t lines;

	if (lseek(fd, 0, SEEK_SET) == -1 || lines_count(fd, &lines) == -1)
		answer_sys("unable to read %s", path);
	return lines;
}

static void
give_all(struct owners *o, uint64_t lines, const char *owner)
{
	owners_release(o);
	owners_add(o, (size_t)lines, owner);
}

/* The owners that the layers of the view know of the file that they show. */
static void
of_layers(struct tree *t, const char *path, int fd, struct owners *out)
{
	struct blame *b;
	uint64_t lines;
	struct node n;
	char *owner;
	int rc;

	if (view_get(t->view, path, &n) == -1)
		answer_sys("unable to look up %s", path);
	if (view_layer_id(t->view, n.layer)[0] == 'B')
		not_found(path);
	b = blame_open(t->stackfd, t->view);
	rc = blame_get(b, path, out);
	if (rc == -1)
		blame_failed(b, path);
	lines = count(fd, path);
	if (rc == 0) {
		/* Published with another mode, it is still the base's. */
		give_all(out, lines, OWNER_ORIGINAL);
	} else if (out->whole) {
		owner = xstrdup(out->v[0].owner);
		give_all(out, lines, owner);
		free(owner);
	}
	if (owners_lines(out) != lines)
		answer_error(EXIT_SYS, KIND_FAILED, NULL,
		    "what is recorded of %s is of another text: it has %" PRIu64
		    " lines, recorded are %zu",
		    path, lines, owners_lines(out));
	blame_close(b);
}

/* Reads a file from its start; false when it has no lines to tell apart. */
static bool
read_text(int fd, const char *path, struct buf *b)
{
	if (lseek(fd, 0, SEEK_SET) == -1)
		answer_sys("unable to read %s", path);
	if (io_read_buf(fd, b, MERGE_TEXT_MAX) == -1) {
		if (errno == EFBIG)
			return false;
		answer_sys("unable to read %s", path);
	}
	return b->len > 0 && text_is_mergeable(buf_str(b), b->len);
}

/*
 * The owners of f, which the session has in the place of the layers' file old
 * (-1 when there is none), as sb-change-resolve gives them.
 */
static void
of_change(struct tree *t, const char *path, const struct file *f, int old,
    struct owners *out)
{
	struct buf was = BUF_INIT, is = BUF_INIT;
	struct route *route = route_open(t->view);
	struct blame *b = blame_open(t->stackfd, t->view);
	char *me = xasprintf("workspace_session:%s", t->id);
	int letter = route_of(route, path, false);
	bool had_lines;

	if (letter == -1)
		answer_sys("unable to read the .gitignore files for %s", path);
	if (letter == 's' && read_text(f->fd, path, &is)) {
		had_lines = old != -1 && read_text(old, path, &was);
		if (blame_text(b, path, had_lines ? &was : NULL, &is, NULL, me,
			out) == -1)
			blame_failed(b, path);
	} else {
		give_all(out, count(f->fd, path), me);
	}
	free(me);
	blame_close(b);
	route_close(route);
	buf_release(&was);
	buf_release(&is);
}

static void
in_session(
    struct tree *t, const char *path, const struct file *f, struct owners *out)
{
	struct node n;
	int fd = -1, same = 0;

	tree_open_lease(t);
	if (view_get(t->view, path, &n) == -1)
		answer_sys("unable to look up %s", path);
	if (n.kind == NODE_FILE) {
		fd = view_fd(t->view, path, &n);
		if (fd == -1)
			same = -1;
		else if (n.st.st_size == f->st.st_size)
			same = io_same(fd, f->fd);
	}
	if (same == -1)
		answer_sys("unable to compare %s with the layers", path);
	if (same == 1)
		of_layers(t, path, fd, out);
	else
		of_change(t, path, f, fd, out);
	io_drop(&fd);
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
	const char *session = NULL;
	uint64_t ms = 30000;
	struct tree t;
	struct file f;
	char *path;
	int opt;

	err_init();
	answer_always();
	while ((opt = getopt(argc, argv, "+s:t:h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		else if (opt == 's')
			session = optarg;
		else if (opt != 't')
			usage_die(usage);
		else if (!num_dec(optarg, 0, INT32_MAX, &ms))
			answer_bad(opt, optarg, "milliseconds");
	}
	if (optind + 1 != argc)
		usage_die(usage);

	path = file_path_if(argv[optind], false);
	if (!path)
		not_found(argv[optind]);
	tree_open(&t, session, (int)ms);
	tree_find(&t, path, &f);
	if (f.kind != FILE_REGULAR)
		not_found(path);
	if (t.id)
		in_session(&t, path, &f, &owners);
	else
		of_layers(&t, path, f.fd, &owners);
	file_release(&f);
	tree_close(&t);
	print(path, &owners);
	return EXIT_OK;
}
