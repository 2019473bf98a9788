/* SPDX-License-Identifier: MIT */
/*
 * wire [-h|-r|-x] [-b] address: a client. Sends standard input to a unix
 * socket (a path with a '/') or to 127.0.0.1:PORT (a number), prints what
 * comes until the end.
 *
 *	-b  byte by byte
 *	-h  ends its side after sending
 *	-r  resets the connection instead of reading
 *	-x  closes it instead of reading
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "buf.h"
#include "dial.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "num.h"

static int
dial(const char *address)
{
	const char *slash = strrchr(address, '/');
	uint64_t port;
	int dirfd, fd;
	char *dir;

	if (num_dec(address, 1, 65535, &port))
		return dial_tcp("127.0.0.1", (uint16_t)port, 30000);
	if (!slash)
		die(EXIT_USAGE, "no address: %s", address);
	dir = xstrndup(address, (size_t)(slash - address));
	dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd == -1)
		die_sys("unable to open %s", dir);
	fd = dial_unix(dirfd, slash + 1, 30000);
	io_drop(&dirfd);
	return fd;
}

int
main(int argc, char **argv)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };
	bool bytes = false, half = false, reset = false, leave = false;
	struct buf in = BUF_INIT;
	char chunk[65536];
	int opt, fd, one = 1;
	ssize_t n;

	err_init();
	while ((opt = getopt(argc, argv, "bhrx")) != -1) {
		bytes = bytes || opt == 'b';
		half = half || opt == 'h';
		reset = reset || opt == 'r';
		leave = leave || opt == 'x';
	}
	if (optind + 1 != argc)
		die(EXIT_USAGE, "usage: wire [-bhrx] address");
	fd = dial(argv[optind]);
	if (fd == -1)
		die_sys("unable to connect to %s", argv[optind]);
	if (io_read_buf(STDIN_FILENO, &in, 1 << 28) == -1)
		die_sys("unable to read");
	if (bytes)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	for (size_t i = 0; i < in.len;) {
		ssize_t w =
		    send(fd, in.data + i, bytes ? 1 : in.len - i, MSG_NOSIGNAL);

		/* It has heard enough: what it says then is what counts. */
		if (w == -1)
			break;
		i += (size_t)w;
	}
	if (reset)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	if (reset || leave)
		return 0;
	if (half)
		shutdown(fd, SHUT_WR);
	while ((n = io_read_some(fd, chunk, sizeof chunk)) > 0)
		if (io_write_all(STDOUT_FILENO, chunk, (size_t)n) == -1)
			die_sys("unable to write");
	if (n == -1)
		die_sys("unable to read the answer");
	return 0;
}
