/* SPDX-License-Identifier: MIT */
#include "err.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *
err_progname(void)
{
	return program_invocation_short_name;
}

#ifdef __SANITIZE_ADDRESS__
/*
 * Commands free nothing on their way out, so a leak says nothing. Here, since
 * the environment does not reach what services run.
 */
const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

void
err_init(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
			/* Opened so that use fails: write-only for stdin. */
			int mode = fd == 0 ? O_WRONLY : O_RDONLY;

			if (open("/dev/null", mode) != fd)
				_exit(EXIT_SYS);
		}
	/* Usage is ours to print, once. */
	opterr = 0;
	signal(SIGPIPE, SIG_DFL);
	/* An ignored SIGCHLD would make wait(2) lose every status. */
	signal(SIGCHLD, SIG_DFL);
}

/* What is too long is cut in the text: the reason at its end stays. */
__attribute__((format(printf, 3, 0))) static void
message(const char *level, int err, const char *fmt, va_list ap)
{
	char line[1024], reason[128] = "";
	size_t len, room;
	int n;

	if (err != 0)
		snprintf(reason, sizeof reason, ": %s", strerror(err));
	room = sizeof line - strlen(reason);
	n = snprintf(line, room, "%s: %s: ", err_progname(), level);
	len = n < 0 ? 0 : (size_t)n;
	if (len < room) {
		n = vsnprintf(line + len, room - len, fmt, ap);
		len += n < 0 ? 0 : (size_t)n;
	}
	if (len > room - 1) {
		len = room - 1;
		memcpy(line + len - 3, "...", 3);
	}
	memcpy(line + len, reason, strlen(reason));
	len += strlen(reason);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) == -1)
		return; /* nobody left to tell */
}

static void (*on_death)(int code, const char *text);

void
err_on_death(void (*fn)(int code, const char *text))
{
	on_death = fn;
}

__attribute__((noreturn, format(printf, 3, 0))) static void
leave(int code, int err, const char *fmt, va_list ap)
{
	void (*fn)(int code, const char *text) = on_death;
	char *text = NULL, *all = NULL;
	va_list copy;

	/* Should it die itself, it is not called again. */
	on_death = NULL;
	va_copy(copy, ap);
	if (fn && vasprintf(&text, fmt, copy) != -1 &&
	    (err == 0 || asprintf(&all, "%s: %s", text, strerror(err)) != -1))
		fn(code, all ? all : text);
	va_end(copy);
	message("fatal", err, fmt, ap);
	exit(code);
}

void
die(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	leave(code, 0, fmt, ap);
}

void
die_sys(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	leave(EXIT_SYS, err, fmt, ap);
}

void
warn_msg(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	message("warning", 0, fmt, ap);
	va_end(ap);
	errno = err;
}

void
warn_sys(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	message("warning", err, fmt, ap);
	va_end(ap);
	errno = err;
}

void
info_msg(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	message("info", 0, fmt, ap);
	va_end(ap);
	errno = err;
}

void
usage_help(const char *usage)
{
	if (printf("usage: %s\n", usage) < 0 || fflush(stdout) != 0)
		exit(EXIT_SYS);
	exit(EXIT_OK);
}

void
usage_die(const char *usage)
{
	if (fprintf(stderr, "%s: usage: %s\n", err_progname(), usage) < 0)
		exit(EXIT_SYS);
	exit(EXIT_USAGE);
}
