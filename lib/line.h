/* SPDX-License-Identifier: MIT */
/*
 * Lines over a connection, with a deadline: a time of clock_ms, or LINE_NEVER.
 * Writing takes no signal: SIGPIPE must be ignored where fd may be a pipe.
 */
#ifndef SB_LINE_H
#define SB_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

#define LINE_NEVER INT64_MAX

/* So begins a line of progress: behind it a JSON string and ")". */
#define LINE_PROGRESS "cli_log("

struct line {
	int fd;
	struct buf buf; /* from the start of the line on */
	size_t seen; /* private: so many bytes have no newline */
	size_t used; /* private: of the line given last */
};

enum line_end {
	LINE_WHOLE,
	LINE_EOF, /* end of file before a newline; buf has what came */
	LINE_LARGE, /* more than max bytes; may be called again with more */
	LINE_LATE,
	LINE_ERROR /* errno */
};

/* Milliseconds from now until t, for poll(2): 0 when over, at most a day. */
int line_left(int64_t t);

/*
 * The next line, of at most max bytes with its newline. *n: its bytes without;
 * they are at l->buf.data until the next call.
 */
enum line_end line_read(
    struct line *l, size_t max, int64_t deadline, size_t *n);

/* Throws away what has come, say of a line that is too large, with its room. */
void line_drop(struct line *l);

/*
 * Writes n bytes; on a socket it gives up when nothing moves for ms. -1 with
 * errno, ETIMEDOUT among them.
 */
int line_write(int fd, const void *p, size_t n, int ms);

/*
 * Ends our side of a socket and takes what still comes, so that closing does
 * not reset the connection while the peer has not read our last line. At most
 * ms; nothing for what is no socket.
 */
void line_finish(int fd, int ms);

#endif
