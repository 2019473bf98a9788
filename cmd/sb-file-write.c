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
#include "err.h"
#include "io.h"
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
	bool new;

	err_init();
	answer_always();
	put_options(&p, argc, argv, usage);
	read_content(&content);
	new = p.session ? put_in_session(&p, p.session) : put_on_head(&p);
	print(p.path, new, content.len);
	return EXIT_OK;
}
