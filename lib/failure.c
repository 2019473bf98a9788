/* SPDX-License-Identifier: MIT */
#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "out.h"

bool
failure_set(struct failure *f, const char *kind, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	f->kind = kind;
	buf_cut(&f->message, 0);
	buf_adds(&f->message, text);
	free(text);
	return false;
}

bool
failure_is(const struct failure *f, const char *kind)
{
	return f->kind && strcmp(f->kind, kind) == 0;
}

void
failure_print(const struct failure *f, struct buf *out)
{
	const char *text = buf_str(&f->message);

	buf_addc(out, '{');
	out_key(out, "error");
	buf_addc(out, '{');
	out_str(out, "kind", f->kind);
	out_key(out, "message");
	if (utf8_is_valid(text, f->message.len))
		out_string(out, text, f->message.len);
	else
		out_string_ascii(out, text, f->message.len);
	out_key(out, "details");
	buf_addf(out, "{%s}}}", buf_str(&f->details));
}

void
failure_release(struct failure *f)
{
	buf_release(&f->message);
	buf_release(&f->details);
	f->kind = NULL;
}
