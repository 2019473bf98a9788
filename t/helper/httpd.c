/* SPDX-License-Identifier: MIT */
/*
 * httpd: serves the current directory on a free port of 127.0.0.1, one request
 * at a time, in the way a developer's server does: says the port and then a
 * line for each request. What begins with /private/ wants a password, and there
 * is none.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"

enum {
	REQUEST_MAX = 8192
};

static void
reply(int fd, const char *status, const struct buf *body)
{
	struct buf b = BUF_INIT;

	buf_addf(
	    &b, "HTTP/1.0 %s\r\nContent-Length: %zu\r\n", status, body->len);
	if (strncmp(status, "401", 3) == 0)
		buf_adds(&b, "WWW-Authenticate: Basic realm=\"here\"\r\n");
	buf_adds(&b, "\r\n");
	buf_add(&b, buf_str(body), body->len);
	(void)io_write_all(fd, b.data, b.len);
	buf_release(&b);
}

/* The request up to the empty line; false: there is none. */
static bool
hear(int fd, char *request)
{
	size_t n = 0;
	ssize_t k;

	while (n < REQUEST_MAX) {
		k = io_read_some(fd, request + n, REQUEST_MAX - n);
		if (k <= 0)
			return false;
		n += (size_t)k;
		request[n] = '\0';
		if (strstr(request, "\r\n\r\n"))
			return true;
	}
	return false;
}

static void
serve(int fd)
{
	char request[REQUEST_MAX + 1], *path, *end;
	struct buf body = BUF_INIT;
	const char *status = "200 OK";

	if (!hear(fd, request) || strncmp(request, "GET /", 5) != 0)
		return;
	path = request + 5;
	end = path + strcspn(path, " ?");
	*end = '\0';
	if (strncmp(path, "private/", 8) == 0)
		status = "401 Unauthorized";
	else if (strstr(path, "..") ||
	    io_read_file_at(AT_FDCWD, path, &body, 1 << 20) == -1)
		status = "404 Not Found";
	reply(fd, status, &body);
	printf("GET /%s %.3s\n", path, status);
	(void)fflush(stdout);
	buf_release(&body);
}

int
main(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;
	int sock, fd;

	err_init();
	sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock == -1 || bind(sock, (struct sockaddr *)&at, n) == -1 ||
	    listen(sock, 16) == -1 ||
	    getsockname(sock, (struct sockaddr *)&at, &n) == -1)
		die_sys("unable to listen");
	printf("serving on port %d\n", ntohs(at.sin_port));
	(void)fflush(stdout);
	for (;;) {
		fd = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
		if (fd == -1)
			die_sys("unable to accept");
		serve(fd);
		io_drop(&fd);
	}
}
