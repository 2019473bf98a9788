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

static void
put(const char *kind, const char *details, const char *message)
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
	buf_addf(&b, "{%s}}}", details);
	puts(b.data);
}

__attribute__((noreturn)) static void
leave(
    int code, const char *kind, const struct buf *details, const char *message)
{
	put(kind, details ? buf_str(details) : "", message);
	stdout_done();
	die(code, "%s", message);
}

static const char *
kind_of(int code)
{
	switch (code) {
	case EXIT_NO:
		return KIND_NOT_FOUND;
	case EXIT_BUSY:
		return KIND_BUSY;
	case EXIT_USAGE:
		return KIND_INVALID;
	case EXIT_BUG:
	case EXIT_SYS:
		return KIND_INTERNAL;
	default:
		return KIND_FAILED;
	}
}

/* stdout may be what is broken: the message on stderr follows anyhow. */
static void
dying(int code, const char *text)
{
	put(kind_of(code), code == EXIT_TIMEOUT ? "\"reason\":\"timeout\"" : "",
	    text);
	fflush(stdout);
}

void
answer_always(void)
{
	err_on_death(dying);
}

void
answer_bad(int option, const char *arg, const char *wanted)
{
	answer_error(EXIT_USAGE, KIND_INVALID, NULL,
	    "option -%c takes %s, not: %s", option, wanted, arg);
}

void
answer_error(
    int code, const char *kind, const struct buf *details, const char *fmt, ...)
{
	va_list ap;
	char *message;

	va_start(ap, fmt);
	message = xvasprintf(fmt, ap);
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
	message = xvasprintf(fmt, ap);
	va_end(ap);
	leave(EXIT_SYS, KIND_FAILED, NULL,
	    xasprintf("%s: %s", message, strerror(err)));
}

void
answer_no_session(const char *id, const char *why)
{
	struct buf d = BUF_INIT;

	out_path(&d, "workspace_session_id", id);
	answer_error(EXIT_NO, KIND_FAILED, &d,
	    "workspace session not found: %s%s", id, why);
}
