/* SPDX-License-Identifier: MIT */
/*
 * sb-merge3: merge two changed versions of a text by lines. Shape: source.
 *
 * Three files come in: what both sides began with, what head made of it, what
 * mine made of it. Out goes the text with both changes, or nothing and 2 when
 * they overlap. Marks of a conflict are never written.
 *
 * Steps: read all three; refuse what is not text; merge; name the first
 * overlap, or write the result.
 *
 * Invariant: stdout gets the whole clean merge or not a byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "merge3.h"

static const char usage[] = "sb-merge3 base head mine";

static void
read_text(const char *file, struct buf *b)
{
	const char *flaw;
	struct stat st;
	int fd;

	/* Non-blocking, so that a FIFO in the place of the file cannot hang. */
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd == -1 || fstat(fd, &st) == -1)
		die_sys("unable to open %s", file);
	if (!S_ISREG(st.st_mode))
		die(EXIT_USAGE, "unable to merge %s: not a regular file", file);
	if (io_read_buf(fd, b, MERGE_TEXT_MAX) == -1) {
		if (errno == EFBIG)
			die(EXIT_USAGE,
			    "unable to merge %s: it is larger than %d bytes",
			    file, MERGE_TEXT_MAX);
		die_sys("unable to read %s", file);
	}
	io_drop(&fd);
	flaw = text_flaw(b->data, b->len);
	if (flaw)
		die(EXIT_USAGE, "unable to merge %s: it %s", file, flaw);
}

/* "line 3", "lines 3-5", or "before line 3" for no line at all. */
static void
add_place(struct buf *b, const char *name, size_t start, size_t count)
{
	buf_addf(b, "%s %s %zu", name,
	    count == 0       ? "before line"
		: count == 1 ? "line"
			     : "lines",
	    start);
	if (count > 1)
		buf_addf(b, "-%zu", start + count - 1);
}

__attribute__((noreturn)) static void
overlap(const struct merge *m, const char *file)
{
	const struct merge_hunk *h = &m->hunk[0];
	struct buf b = BUF_INIT;

	add_place(&b, "base", h->base, h->base_count);
	add_place(&b, ", head", h->head, h->head_count);
	add_place(&b, ", mine", h->mine, h->mine_count);
	/* The places first: a message has an end, a name may be long. */
	die(EXIT_CONFLICT,
	    "both sides changed %s (overlap 1 of %zu): "
	    "unable to merge %s",
	    buf_str(&b), m->nhunks, file);
}

int
main(int argc, char **argv)
{
	struct buf base = BUF_INIT, head = BUF_INIT, mine = BUF_INIT;
	struct merge m = MERGE_INIT;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (argc - optind != 3)
		usage_die(usage);

	read_text(argv[optind], &base);
	read_text(argv[optind + 1], &head);
	read_text(argv[optind + 2], &mine);
	if (merge3(&m, &base, &head, &mine) == -1)
		die_sys("unable to merge %s", argv[optind + 2]);
	if (m.nhunks > 0)
		overlap(&m, argv[optind + 2]);
	if (io_write_all(STDOUT_FILENO, m.text.data, m.text.len) == -1)
		die_sys("unable to write to stdout");
	stdout_done();
	return EXIT_OK;
}
