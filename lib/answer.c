/* SPDX-License-Identifier: MIT */
#include "answer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "io.h"
#include "mem.h"
#include "out.h"

__attribute__((format(printf, 1, 0))) static char *
format(const char *fmt, va_list ap)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, ap) == -1)
		die(EXIT_SYS, "out of memory");
	return text;
}

__attribute__((noreturn)) static void
leave(
    int code, const char *kind, const struct buf *details, const char *message)
{
	struct buf b = BUF_INIT;

	buf_addc(&b, '{');
	out_key(&b, "error");
	buf_addc(&b, '{');
	out_str(&b, "kind", kind);
	out_key(&b, "message");
	/* A path in it may be no UTF-8. */
	if (utf8_is_valid(message, strlen(message)))
		out_string(&b, message, strlen(message));
	else
		out_string_ascii(&b, message, strlen(message));
	out_key(&b, "details");
	buf_addf(&b, "{%s}}}", details ? buf_str(details) : "");
	puts(b.data);
	stdout_done();
	die(code, "%s", message);
}

void
answer_error(
    int code, const char *kind, const struct buf *details, const char *fmt, ...)
{
	va_list ap;
	char *message;

	va_start(ap, fmt);
	message = format(fmt, ap);
	va_end(ap);
	leave(code, kind, details, message);
}

void
answer_sys(const char *fmt, ...)
{
	int err = errno;
	va_list ap;
	char *message;

	va_start(ap, fmt);
	message = format(fmt, ap);
	va_end(ap);
	leave(EXIT_SYS, KIND_FAILED, NULL,
	    xasprintf("%s: %s", message, strerror(err)));
}
