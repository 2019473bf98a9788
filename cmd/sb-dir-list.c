/* SPDX-License-Identifier: MIT */
/*
 * sb-dir-list: the directories in which a workspace may lie. Shape: source;
 * one JSON object: the roots, or what is in one of them or below.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "answer.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "place.h"
#include "roots.h"

static const char usage[] = "sb-dir-list [path]";

enum {
	SHOW_MAX = 500
};

struct dir {
	char *name, *path;
};

static struct dir *dirs;
static size_t ndirs, cap;
static struct roots roots = ROOTS_INIT;

static int
cmp_path(const void *a, const void *b)
{
	const struct dir *x = a, *y = b;
	int c = strcmp(x->path, y->path);

	return c != 0 ? c : strcmp(x->name, y->name);
}

static int
cmp_name(const void *a, const void *b)
{
	const struct dir *x = a, *y = b;
	int c = strcasecmp(x->name, y->name);

	return c != 0 ? c : cmp_path(a, b);
}

static void
add(const char *name, const char *path)
{
	/* What cannot be said cannot be asked for either. */
	if (!utf8_is_valid(name, strlen(name)) ||
	    !utf8_is_valid(path, strlen(path)))
		return;
	if (ndirs == cap)
		dirs = xgrow(dirs, &cap, sizeof *dirs);
	dirs[ndirs++] = (struct dir){ xstrdup(name), xstrdup(path) };
}

/* Of two names for one directory one is enough. */
static void
drop_doubles(void)
{
	size_t n = 0;

	if (ndirs == 0)
		return;
	qsort(dirs, ndirs, sizeof *dirs, cmp_path);
	for (size_t i = 1; i < ndirs; i++)
		if (strcmp(dirs[n].path, dirs[i].path) != 0)
			dirs[++n] = dirs[i];
	ndirs = n + 1;
}

__attribute__((noreturn)) static void
bad_path(const char *path)
{
	answer_error(
	    EXIT_USAGE, KIND_INVALID, NULL, "invalid workspace root: %s", path);
}

/* The canonical path of the directory. */
static char *
read_dir(const char *path)
{
	struct names v = NAMES_INIT;
	int fd =
	    *path == '/' ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	char *real = fd == -1 ? NULL : path_of_fd(fd);

	if (!real || !roots_have(&roots, real) ||
	    !utf8_is_valid(real, strlen(real)))
		bad_path(path);
	if (names_read(fd, &v) == -1)
		die_sys("unable to read %s", real);
	for (size_t i = 0; i < v.n; i++) {
		char *below = roots_canonical(fd, v.name[i]);

		if (below && roots_have(&roots, below))
			add(v.name[i], below);
		free(below);
	}
	names_release(&v);
	io_drop(&fd);
	drop_doubles();
	return real;
}

/* Where the directory lies, when that may be looked at, too. */
static char *
parent_of(const char *real)
{
	size_t n = path_parent_len(real);
	char *parent;

	if (strcmp(real, "/") == 0)
		return NULL;
	parent = n == 0 ? xstrdup("/") : xstrndup(real, n);
	if (roots_have(&roots, parent))
		return parent;
	free(parent);
	return NULL;
}

static void
out_maybe(struct buf *b, const char *name, const char *value)
{
	if (value)
		out_str(b, name, value);
	else
		out_null(b, name);
}

int
main(int argc, char **argv)
{
	struct buf out = BUF_INIT, why = BUF_INIT;
	char *real = NULL, *parent = NULL;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		usage_die(usage);
	}
	if (argc - optind > 1)
		usage_die(usage);
	answer_always();
	if (roots_read(place_state(), &roots, &why) == -1)
		die(EXIT_SYS, "%s",
		    why.len > 0 ? buf_str(&why) : strerror(errno));
	if (optind < argc) {
		real = read_dir(argv[optind]);
		parent = parent_of(real);
	} else {
		for (size_t i = 0; i < roots.path.n; i++)
			add(roots.path.name[i], roots.path.name[i]);
	}
	if (ndirs > 0)
		qsort(dirs, ndirs, sizeof *dirs, cmp_name);
	buf_addc(&out, '{');
	out_maybe(&out, "path", real);
	out_maybe(&out, "parent", parent);
	out_bool(&out, "truncated", ndirs > SHOW_MAX);
	out_key(&out, "directories");
	buf_addc(&out, '[');
	for (size_t i = 0; i < ndirs && i < SHOW_MAX; i++) {
		if (i > 0)
			buf_addc(&out, ',');
		buf_addc(&out, '{');
		out_str(&out, "name", dirs[i].name);
		out_str(&out, "path", dirs[i].path);
		buf_addc(&out, '}');
	}
	buf_adds(&out, "]}");
	puts(out.data);
	stdout_done();
	return EXIT_OK;
}
