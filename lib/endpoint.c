/* SPDX-License-Identifier: MIT */
#include "endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dial.h"
#include "io.h"
#include "mem.h"
#include "num.h"

enum {
	SOCKET_PATH_MAX = 100 /* what every system has room for */
};

#define BLANKS " \t\n\r\f\v"

static const char *const tcp_bad =
    "TCP gateway endpoint must be a valid host:port address";

/* One text for each fault of a path. */
struct path_words {
	const char *relative, *empty, *dots, *large, *unsafe;
};

static const struct path_words unix_words = {
	"Unix-domain socket path must be absolute",
	"Unix-domain socket path must not contain empty segments",
	"Unix-domain socket path must not contain dot segments",
	"Unix-domain socket path exceeds the portable 100-byte limit",
	"Unix-domain socket path contains an unsafe character",
};

static const struct path_words pipe_words = {
	"Windows named-pipe path must begin with ./pipe/",
	"Windows named-pipe path must not contain empty segments",
	"Windows named-pipe path must not contain dot segments",
	"Windows named-pipe path exceeds the 256-unit limit",
	"Windows named-pipe path contains an unsafe character",
};

static bool
bad(const char **why, const char *text)
{
	*why = text;
	return false;
}

/* Segments between slashes, from the first slash on. */
static bool
check_segments(const char *s, const struct path_words *words, const char **why)
{
	while (*s == '/') {
		size_t n = strcspn(++s, "/");

		if (n == 0)
			return bad(why, words->empty);
		if ((n == 1 && *s == '.') ||
		    (n == 2 && s[0] == '.' && s[1] == '.'))
			return bad(why, words->dots);
		s += n;
	}
	return true;
}

static bool
parse_unix(const char *s, struct endpoint *e, const char **why)
{
	if (*s != '/')
		return bad(why, unix_words.relative);
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '\\')
			return bad(why, unix_words.unsafe);
	if (!check_segments(s, &unix_words, why))
		return false;
	if (strlen(s) > SOCKET_PATH_MAX)
		return bad(why, unix_words.large);
	e->kind = ENDPOINT_UNIX;
	e->path = xstrdup(s);
	return true;
}

static bool
parse_pipe(const char *s, struct endpoint *e, const char **why)
{
	const char *names;

	if (strncmp(s, "./pipe/", 7) != 0)
		return bad(why, pipe_words.relative);
	names = s + 6;
	if (!check_segments(names, &pipe_words, why))
		return false;
	if (names[strspn(names,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789._-/")])
		return bad(why, pipe_words.unsafe);
	/* The native form is \\.\pipe\ and the names. */
	if (strlen(names) - 1 + 9 > 256)
		return bad(why, pipe_words.large);
	e->kind = ENDPOINT_PIPE;
	return true;
}

static bool
host_is_valid(const char *host, bool bracketed)
{
	struct in6_addr a;

	if (bracketed)
		return inet_pton(AF_INET6, host, &a) == 1;
	return *host && !host[strcspn(host, BLANKS ":/\\")];
}

static bool
parse_tcp(const char *s, struct endpoint *e, const char **why)
{
	const char *colon = strrchr(s, ':');
	bool bracketed = *s == '[';
	uint64_t port;
	char *host;

	if (!colon || (bracketed && (colon == s || colon[-1] != ']')))
		return bad(why, tcp_bad);
	if (!num_dec(colon + 1, 0, UINT16_MAX, &port))
		return bad(why, tcp_bad);
	host = bracketed ? xstrndup(s + 1, (size_t)(colon - s) - 2)
			 : xstrndup(s, (size_t)(colon - s));
	if (!host_is_valid(host, bracketed)) {
		free(host);
		return bad(why, tcp_bad);
	}
	if (port == 0) {
		free(host);
		return bad(why, "TCP gateway endpoint port must be non-zero");
	}
	e->kind = ENDPOINT_TCP;
	e->host = host;
	e->port = (uint16_t)port;
	return true;
}

bool
endpoint_parse(const char *s, struct endpoint *e, const char **why)
{
	*e = (struct endpoint)ENDPOINT_INIT;
	if (*s == '\0')
		return bad(why, "gateway endpoint must be non-empty");
	if (strchr(BLANKS, *s) || strchr(BLANKS, s[strlen(s) - 1]))
		return bad(why,
		    "gateway endpoint must not contain surrounding whitespace");
	if (strncmp(s, "unix://", 7) == 0)
		return parse_unix(s + 7, e, why);
	if (strncmp(s, "npipe://", 8) == 0)
		return parse_pipe(s + 8, e, why);
	if (strncmp(s, "tcp://", 6) == 0)
		return parse_tcp(s + 6, e, why);
	if (strstr(s, "://"))
		return bad(why, "unsupported gateway endpoint scheme");
	return parse_tcp(s, e, why);
}

void
endpoint_release(struct endpoint *e)
{
	free(e->host);
	free(e->path);
	*e = (struct endpoint)ENDPOINT_INIT;
}

static int
start_path(const char *path)
{
	const char *base = strrchr(path, '/');
	char *dir = xstrndup(path, (size_t)(base - path) + 1);
	int dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), fd, err;

	err = errno;
	free(dir);
	errno = err;
	if (dirfd == -1)
		return -1;
	fd = dial_unix_start(dirfd, base + 1);
	io_drop(&dirfd);
	return fd;
}

int
endpoint_start(const struct endpoint *e, size_t nth)
{
	switch (e->kind) {
	case ENDPOINT_TCP:
		return dial_tcp_start(e->host, e->port, nth);
	case ENDPOINT_UNIX:
		if (nth == 0)
			return start_path(e->path);
		errno = EADDRNOTAVAIL;
		return -1;
	case ENDPOINT_PIPE:
		break;
	}
	errno = EOPNOTSUPP;
	return -1;
}
