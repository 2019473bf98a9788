/* SPDX-License-Identifier: MIT */
/*
 * Terminals, pty(7), of the mount namespace that we are in, and handing
 * descriptors to another process, unix(7).
 */
#ifndef SB_PTY_H
#define SB_PTY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Opens a new terminal of the private /dev/pts: master (not blocking) and
 * slave, both close-on-exec, neither made the controlling terminal.
 */
int pty_open(int *master, int *slave, unsigned rows, unsigned cols);

enum {
	PTY_SIZE_MAX = 1000 /* rows or columns */
};

/* "COLSxROWS", each 1 to PTY_SIZE_MAX. False leaves both alone. */
bool pty_parse_size(const char *s, unsigned *rows, unsigned *cols);

/* Sets the window size; the foreground processes get WINCH. */
int pty_resize(int master, unsigned rows, unsigned cols);

/* Makes us the leader of a new session that the terminal controls. */
int pty_lead(int slave);

/* Makes us a process group of our own, the one in the foreground. */
int pty_foreground(int slave);

/*
 * Types the character that ends the input, twice where a line has begun: the
 * first one sends that off. ENOTTY: there is no such character at the moment,
 * a program reads single keystrokes. EAGAIN: nobody reads.
 */
int pty_end_input(int master, bool in_line);

/* One message of n bytes and nfds (at most 4) descriptors over a socket. */
int fds_send(int sock, const void *p, size_t n, const int *fds, size_t nfds);

/*
 * The other end: at most n bytes, at most nfds descriptors; those that did
 * not come are -1. Returns the number of bytes, 0 at the end, -1 with errno.
 */
ssize_t fds_recv(int sock, void *p, size_t n, int *fds, size_t nfds);

#endif
