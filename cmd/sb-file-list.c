/* SPDX-License-Identifier: MIT */
/*
 * sb-file-list: print what is in a directory, as head or a session shows it.
 * Shape: source; prints one JSON object.
 *
 * Looks the directory up, following no link, reads its names, and of the first
 * so many of them, bytewise, says what they are. One level only.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "err.h"
#include "file.h"
#include "io.h"
#include "num.h"
#include "out.h"

static const char usage[] =
    "sb-file-list [-l limit] [-s session] [-t ms] [path]";

static void
require_dir(const struct tree *t, const struct file *f, const char *path)
{
	struct buf b = BUF_INIT;

	if (f->kind == FILE_DIR)
		return;
	if (f->kind == FILE_ABSENT ||
	    (f->kind == FILE_OTHER && f->above && !t->id)) {
		out_path(&b, "path", path);
		answer_error(EXIT_NO, KIND_NOT_FOUND, &b,
		    "directory not found: %s", path);
	}
	answer_error(EXIT_USAGE, KIND_INVALID, NULL, "not a directory: %s (%s)",
	    path,
	    f->kind == FILE_REGULAR ? "it is a file"
		: f->kind != FILE_LINK
		? "it, or something on the way, is neither file nor directory"
		: f->above ? "a directory on the way is a symbolic link"
			   : "it is a symbolic link");
}

static void
add(struct buf *b, const char *name, enum file_kind kind, uint64_t size)
{
	static const char *const words[] = {
		[FILE_REGULAR] = "file",
		[FILE_DIR] = "directory",
		[FILE_LINK] = "symlink",
		[FILE_OTHER] = "other",
	};

	if (b->data[b->len - 1] != '[')
		buf_addc(b, ',');
	buf_addc(b, '{');
	out_path(b, "name", name);
	out_str(b, "kind", words[kind]);
	if (kind == FILE_REGULAR)
		out_num(b, "size", size);
	else
		out_null(b, "size");
	buf_addc(b, '}');
}

static void
print(struct tree *t, const struct file *f, const char *path, uint64_t limit)
{
	struct names names = NAMES_INIT;
	struct buf b = BUF_INIT;
	enum file_kind kind;
	uint64_t size, n = 0;
	bool truncated = false;

	tree_names(t, path, f, &names);
	buf_addc(&b, '{');
	out_path(&b, "path", path);
	out_key(&b, "entries");
	buf_addc(&b, '[');
	for (size_t i = 0; i < names.n && !truncated; i++) {
		if (!tree_entry(t, path, f, names.name[i], &kind, &size))
			continue;
		truncated = n == limit;
		if (truncated)
			break;
		add(&b, names.name[i], kind, size);
		n++;
	}
	buf_addc(&b, ']');
	out_bool(&b, "truncated", truncated);
	buf_addc(&b, '}');
	puts(b.data);
	stdout_done();
}

int
main(int argc, char **argv)
{
	const char *session = NULL, *arg;
	uint64_t limit = UINT64_MAX, ms = 30000, max;
	struct tree t;
	struct file f;
	char *path;
	int opt;

	err_init();
	answer_always();
	while ((opt = getopt(argc, argv, "+l:s:t:h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		else if (opt == 's')
			session = optarg;
		else if (opt != 'l' && opt != 't')
			usage_die(usage);
		else if (!num_dec(optarg, 0,
			     opt == 'l' ? UINT64_MAX : INT32_MAX,
			     opt == 'l' ? &limit : &ms))
			answer_bad(opt, optarg,
			    opt == 'l' ? "a number" : "milliseconds");
	}
	if (argc - optind > 1)
		usage_die(usage);
	if (limit == 0)
		answer_error(
		    EXIT_USAGE, KIND_INVALID, NULL, "limit must be at least 1");
	arg = optind < argc ? argv[optind] : "";
	/* Clients send blanks for nothing; "./ " is the directory of that
	 * name. */
	if (arg[strspn(arg, " \t\n\r")] == '\0')
		arg = "";

	path = file_path(arg, true);
	max = file_limit(CONF_MAX_LIST);
	if (limit > max)
		limit = max;
	tree_open(&t, session, (int)ms);
	tree_find(&t, path, &f);
	require_dir(&t, &f, path);
	print(&t, &f, path, limit);
	return EXIT_OK;
}
