/* SPDX-License-Identifier: MIT */
/*
 * sb-file-write: make or replace a file, on head or in a session. Shape: sink;
 * the content in, one JSON object out.
 *
 *   1. Read the content to its end, before anybody has to wait for us.
 *   2. In a session write aside, sync, rename; on head commit one layer
 *      and swap it in, unless the file has this content already.
 *   3. Print.
 *
 * Invariant: the file is what it was, or has the new content and is on disk.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "answer.h"
#include "blame.h"
#include "err.h"
#include "io.h"
#include "num.h"
#include "out.h"
#include "putlayer.h"
#include "putsession.h"

static const char usage[] =
    "sb-file-write [-a owner] [-s session] [-t ms] path";

enum {
	CONTENT_MAX = 268435456
};

static const struct buf *
make(void *arg, const struct file *old)
{
	(void)old;
	return arg;
}

static void
read_content(struct buf *b)
{
	if (io_read_buf(STDIN_FILENO, b, CONTENT_MAX) == 0)
		return;
	if (errno == EFBIG)
		answer_error(EXIT_USAGE, KIND_INVALID, NULL,
		    "the content is too large: more than %d bytes",
		    CONTENT_MAX);
	answer_sys("unable to read the content");
}

static void
print(const char *path, bool new, size_t n)
{
	struct buf b = BUF_INIT;

	buf_addc(&b, '{');
	out_str(&b, "type", new ? "create" : "update");
	out_path(&b, "path", path);
	out_num(&b, "bytes_written", n);
	buf_addc(&b, '}');
	puts(b.data);
	stdout_done();
}

int
main(int argc, char **argv)
{
	struct buf content = BUF_INIT;
	struct put p = { .make = make, .arg = &content };
	const char *session = NULL;
	uint64_t ms = 30000;
	char *path;
	bool new;
	int opt;

	err_init();
	answer_always();
	while ((opt = getopt(argc, argv, "+a:s:t:h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		else if (opt == 'a')
			p.owner = optarg;
		else if (opt == 's')
			session = optarg;
		else if (opt != 't')
			usage_die(usage);
		else if (!num_dec(optarg, 0, INT32_MAX, &ms))
			answer_bad(opt, optarg, "milliseconds");
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (p.owner && !owner_is_valid(p.owner))
		die(EXIT_USAGE,
		    "not a name for an owner (1 to %d bytes of UTF-8, no "
		    "control characters): %s",
		    OWNER_MAX, p.owner);

	path = file_path(argv[optind], false);
	read_content(&content);
	if (!p.owner)
		p.owner = put_owner();
	p.path = path;
	p.ms = (int)ms;
	/* Clients send an empty one for none. */
	if (session && *session == '\0')
		session = NULL;
	new = session ? put_in_session(&p, session) : put_on_head(&p);
	print(path, new, content.len);
	return EXIT_OK;
}
