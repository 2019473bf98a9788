/* SPDX-License-Identifier: MIT */
#include "transcript.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "stage.h"

enum {
	CHUNK = 65536,
	/* More than any terminal or pipe of ours has on its way. */
	DRAIN_BYTES = 2 * 1048576
};

static struct screen *
new_screen(struct transcript *t)
{
	struct screen *s = screen_new(
	    t->how, (int)t->height, (int)t->width, rows_log_add, &t->rows);

	if (!s)
		die(EXIT_SYS, "out of memory");
	return s;
}

int
transcript_open(struct transcript *t, int dirfd, bool terminal, unsigned rows,
    unsigned cols, uint64_t keep)
{
	t->dirfd = dirfd;
	t->how = terminal ? 0 : SCREEN_PIPE;
	t->height = rows;
	t->width = cols;
	if (spool_make(&t->log, dirfd, LOG_NAME, (off_t)keep) == -1 ||
	    rawrows_make(&t->raw, dirfd) == -1 ||
	    rows_log_open(&t->rows, dirfd, keep) == -1)
		return -1;
	t->screen = new_screen(t);
	return 0;
}

/* Bytes that cannot be written, as on a full device, are a gap. */
static void
keep(struct transcript *t, const char *p, size_t n)
{
	if (spool_add(&t->log, p, n) == -1)
		t->err = errno;
	if (rawrows_add(&t->raw, &t->log, p, n) == -1)
		t->err = errno;
}

static void
flush(struct transcript *t)
{
	if (rows_log_flush(&t->rows) == -1)
		t->err = errno;
	/* What could not be written before may be by now. */
	keep(t, "", 0);
}

bool
transcript_pump(struct transcript *t)
{
	static char chunk[CHUNK];
	ssize_t n = -1;
	size_t got = 0;

	if (t->fd == -1)
		return false;
	/* A terminal gives 4 KiB at a time. */
	while (got < sizeof chunk) {
		n = read(t->fd, chunk + got, sizeof chunk - got);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	/* The master of a terminal ends with EIO, pty(7). */
	if (n == 0 || (n == -1 && errno != EAGAIN))
		io_drop(&t->fd);
	if (got == 0)
		return false;
	keep(t, chunk, got);
	screen_feed(t->screen, chunk, got);
	flush(t);
	return true;
}

/* poll(2) on a master waits for what is on its way from the slave. */
void
transcript_drain(struct transcript *t)
{
	off_t before = t->log.len;

	while (t->fd != -1 && t->log.len - before < DRAIN_BYTES) {
		struct pollfd p = { .fd = t->fd, .events = POLLIN };

		if (poll(&p, 1, 0) != 1 || !transcript_pump(t))
			break;
	}
}

void
transcript_resize(struct transcript *t, unsigned rows, unsigned cols)
{
	t->height = rows;
	t->width = cols;
	screen_resize(t->screen, (int)rows, (int)cols);
	flush(t);
}

static void
add_live(const char *text, size_t n, unsigned flags, void *b)
{
	buf_addc(b, flags & ROW_WRAPPED ? 'w' : '-');
	buf_add(b, text, n);
	buf_addc(b, '\n');
}

void
transcript_show(struct transcript *t)
{
	struct buf b = BUF_INIT;

	if (t->dirfd == -1)
		return;
	flush(t);
	buf_addf(&b, "%" PRIu64 "\n", rows_log_count(&t->rows));
	screen_live(t->screen, add_live, &b);
	if (stage_file_nosync(t->dirfd, LIVE_NAME, b.data, b.len, 0600) == -1)
		t->err = errno;
	buf_release(&b);
}

void
transcript_end(struct transcript *t)
{
	if (t->dirfd == -1)
		return;
	screen_end(t->screen);
	flush(t);
	screen_free(t->screen);
	t->screen = new_screen(t);
	unlinkat(t->dirfd, LIVE_NAME, 0);
}
