/* SPDX-License-Identifier: MIT */
#include "opreply.h"

#include <string.h>

#include "err.h"
#include "json.h"
#include "out.h"

/* The text without the blanks around it. */
static struct span
trimmed(const struct buf *b)
{
	struct span s = { buf_str(b), b->len };

	while (s.n > 0 && strchr(" \t\r\n", s.p[s.n - 1]))
		s.n--;
	while (s.n > 0 && strchr(" \t\r\n", *s.p)) {
		s.p++;
		s.n--;
	}
	return s;
}

static bool
is_object(struct span s)
{
	return s.n > 0 && *s.p == '{' && json_is_valid(s.p, s.n, NULL, NULL);
}

/* Line ends outside of strings are blanks; inside there are none. */
static void
add_on_one_line(struct buf *out, struct span s)
{
	size_t at = out->len;

	buf_add(out, s.p, s.n);
	for (; at < out->len; at++)
		if (out->data[at] == '\n' || out->data[at] == '\r')
			out->data[at] = ' ';
}

static bool
only_error(struct span object)
{
	struct buf key = BUF_INIT;
	struct span v;
	size_t pos = 0, n = 0;
	bool error = true;

	while (json_pair(object, &pos, &key, &v)) {
		n++;
		error = error && strcmp(buf_str(&key), "error") == 0;
	}
	buf_release(&key);
	return error && n > 0;
}

bool
op_reply_is_error(const struct buf *reply)
{
	struct span all = { buf_str(reply), reply->len };

	return json_member(all, "error").p != NULL;
}

static const char *
kind_of(int code)
{
	switch (code) {
	case EXIT_NO:
		return KIND_NOT_FOUND;
	case EXIT_CONFLICT:
	case EXIT_TIMEOUT:
		return KIND_FAILED;
	case EXIT_BUSY:
		return KIND_BUSY;
	case EXIT_USAGE:
		return KIND_INVALID;
	default:
		return KIND_INTERNAL;
	}
}

/* "prog: fatal: text" is text; "prog: usage: ..." is our own mistake. */
static bool
fail(const char *program, const struct child_end *end, struct failure *f)
{
	const char *line = buf_str(&end->last), *kind = kind_of(end->code);
	size_t n = strlen(program);

	out_str(&f->details, "program", program);
	out_num(&f->details, "exit_code", (uint64_t)end->code);
	if (end->code == EXIT_TIMEOUT)
		out_str(&f->details, "reason", "timeout");
	if (strncmp(line, program, n) == 0 &&
	    strncmp(line + n, ": usage: ", 9) == 0)
		kind = KIND_INTERNAL;
	else if (strncmp(line, program, n) == 0 &&
	    strncmp(line + n, ": fatal: ", 9) == 0)
		line += n + 9;
	if (*line)
		return failure_set(f, kind, "%s", line);
	if (end->code > 128)
		return failure_set(f, kind, "%s was killed by signal %d",
		    program, end->code - 128);
	return failure_set(
	    f, kind, "%s failed with code %d", program, end->code);
}

/* ---- parts: where an operation has the arguments for it ---- */

struct part {
	uint64_t first; /* line, from 1 */
	size_t room; /* bytes in the answer */
	uint64_t next; /* the first that had none; 0: there was room */
	uint64_t lines; /* of all */
};

static uint64_t
number(const struct op *op, const struct op_values *values, const char *name,
    uint64_t otherwise)
{
	const struct buf *v = op_value(op, values, name);
	uint64_t n = otherwise;

	if (v && !json_uint((struct span){ buf_str(v), v->len }, &n))
		n = otherwise;
	return n;
}

static struct part
part_of(const struct op *op, const struct op_values *values)
{
	uint64_t room = number(op, values, "max_text", SIZE_MAX);

	return (struct part){
		.first = number(op, values, "offset", 1),
		.room = room < SIZE_MAX ? (size_t)room : SIZE_MAX,
	};
}

/* The next line of a part, of n bytes in the answer: is it of the part? */
static bool
takes(struct part *p, size_t n)
{
	if (++p->lines < p->first || p->next > 0)
		return false;
	if (n > p->room && p->lines > p->first) {
		p->next = p->lines;
		return false;
	}
	p->room -= n < p->room ? n : p->room;
	return true;
}

static void
print_part(const struct part *p, struct buf *out)
{
	if (p->next == 0 && p->first == 1)
		return;
	out_num(out, "total_lines", p->lines);
	if (p->next > 0)
		out_num(out, "next_offset", p->next);
	else
		out_null(out, "next_offset");
	out_bool(out, "truncated", p->next > 0);
}

/* The bytes of text that a string of JSON has for it. */
static size_t
json_size(const char *s, size_t n)
{
	size_t room = SIZE_MAX;

	out_fit(s, n, &room);
	return SIZE_MAX - room;
}

static bool
lines(const struct op *op, const char *name, struct child_end *end,
    struct part *part, struct buf *out, struct failure *f)
{
	const char *p = buf_str(&end->out), *stop = p + end->out.len;
	bool first = true;

	out_key(out, name);
	buf_addc(out, '[');
	while (p < stop) {
		const char *nl = memchr(p, '\n', (size_t)(stop - p));
		struct span s = { p, (size_t)((nl ? nl : stop) - p) };

		p = nl ? nl + 1 : stop;
		/* The full stop. */
		if (p == stop && s.n == 2 && memcmp(s.p, "{}", 2) == 0)
			break;
		if (!is_object(s))
			return failure_set(f, KIND_INTERNAL,
			    "%s printed a line that is no JSON object",
			    op->name);
		if (!takes(part, s.n + 1))
			continue;
		if (!first)
			buf_addc(out, ',');
		first = false;
		buf_add(out, s.p, s.n);
	}
	buf_addc(out, ']');
	print_part(part, out);
	return true;
}

/* The lines of a text that are of the part, and where it is cut. */
static struct span
cut_text(struct span all, struct part *part)
{
	const char *stop = all.p + all.n, *p = all.p;
	struct span s = { NULL, 0 };

	while (p < stop) {
		const char *nl = memchr(p, '\n', (size_t)(stop - p));
		size_t n = (size_t)((nl ? nl + 1 : stop) - p);

		if (takes(part, json_size(p, n))) {
			s.p = s.p ? s.p : p;
			s.n += n;
		}
		p += n;
	}
	return s;
}

static void
text(const char *name, const struct child_end *end, struct part *part,
    struct buf *out)
{
	struct span s = { buf_str(&end->out), end->out.len };
	size_t room = part->room, fit;

	/* What is no text has no lines. */
	if (!utf8_is_valid(s.p, s.n)) {
		out_base64(out, name, s.p, s.n);
		return;
	}
	s = cut_text(s, part);
	fit = s.n > 0 ? out_fit(s.p, s.n, &room) : 0;
	out_key(out, name);
	out_string(out, s.p, fit);
	/* A line that alone has no room. */
	if (fit < s.n) {
		buf_cut(out, out->len - 1);
		buf_adds(out, "[... the rest of this line is cut ...]\"");
		out_bool(out, "line_cut", true);
	}
	print_part(part, out);
}

bool
op_reply(const struct op *op, const struct op_side *side,
    const struct op_values *values, struct child_end *end, struct buf *out,
    struct failure *f)
{
	struct span all = trimmed(&end->out);
	bool object = !end->cut && is_object(all), good = true;
	const char *program = side->argv.v[0];
	struct part part = part_of(op, values);

	if (object &&
	    (end->code == EXIT_OK ? side->reply == OP_OBJECT
		    : end->code <= EXIT_CONFLICT || end->code == EXIT_TIMEOUT
		    ? side->reply == OP_OBJECT || only_error(all)
		    : only_error(all))) {
		add_on_one_line(out, all);
		return true;
	}
	if (end->code != EXIT_OK)
		return fail(program, end, f);
	if (end->cut)
		return failure_set(f, KIND_FAILED,
		    "the answer of %s has more bytes than can be sent",
		    op->name);
	if (side->reply == OP_OBJECT)
		return failure_set(
		    f, KIND_INTERNAL, "%s printed no JSON object", program);
	buf_addc(out, '{');
	op_with(op, side, values, out);
	if (side->reply == OP_LINES)
		good = lines(op, side->reply_name, end, &part, out, f);
	else if (side->reply == OP_TEXT)
		text(side->reply_name, end, &part, out);
	buf_addc(out, '}');
	return good;
}
