/* SPDX-License-Identifier: MIT */
#include "opargs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "out.h"

enum {
	REQUEST_ID_MAX = 200
};

/* Is the argument standard input on this side? */
static bool
is_input(const struct op_side *side, const char *name)
{
	for (size_t i = 0; i < side->argv.n; i++) {
		const char *w = side->argv.v[i];
		size_t n = strlen(name);

		if (strncmp(w, "{<", 2) == 0 && strncmp(w + 2, name, n) == 0 &&
		    strcmp(w + 2 + n, "}") == 0)
			return true;
	}
	return false;
}

/* ---- checks ---- */

static bool
outside(const struct op_arg *a, const struct buf *value, struct buf *why,
    const char *fmt, const char *arg)
{
	const char *rest = a->error, *hole;

	if (!rest) {
		buf_addf(why, "%s ", a->name);
		hole = strchr(fmt, '%');
		buf_addf(
		    why, "%.*s%s%s", (int)(hole - fmt), fmt, arg, hole + 1);
		return false;
	}
	hole = strstr(rest, "{}");
	if (hole) {
		buf_add(why, rest, (size_t)(hole - rest));
		buf_add(why, buf_str(value), value->len);
		rest = hole + 2;
	}
	buf_adds(why, rest);
	return false;
}

static bool
check_values(const struct op_arg *a, const struct buf *value, struct buf *why)
{
	struct buf list = BUF_INIT;
	bool good;

	if (a->values.n == 0)
		return true;
	for (size_t i = 0; i < a->values.n; i++) {
		if (strlen(a->values.v[i]) == value->len &&
		    strcmp(a->values.v[i], buf_str(value)) == 0) {
			buf_release(&list);
			return true;
		}
		buf_addf(&list, "%s%s",
		    i == 0                    ? ""
			: i + 1 < a->values.n ? ", "
					      : " or ",
		    a->values.v[i]);
	}
	good = outside(a, value, why,
	    a->values.n == 1 ? "must be %" : "must be one of %",
	    buf_str(&list));
	buf_release(&list);
	return good;
}

static bool
wrong(const struct op_arg *a, struct buf *why, const char *what)
{
	buf_addf(why, "%s %s", a->name, what);
	return false;
}

static bool
take_string(const struct op_arg *a, const struct op_side *side, struct span s,
    struct buf *out, struct buf *why)
{
	if (!json_string(s, out))
		return wrong(a, why, "must be a string");
	if (out->len == 0 && a->required && !a->server_default)
		return wrong(a, why, "must be non-empty");
	if (!is_input(side, a->name)) {
		if (strlen(buf_str(out)) != out->len)
			return wrong(a, why, "must not contain NUL");
		if (out->len > OP_WORD_MAX)
			return wrong(a, why, "is too large");
	}
	return check_values(a, out, why);
}

/* A token of the grammar of JSON, of type number. */
static bool
is_number(struct span s)
{
	return s.n > 0 && strchr("-0123456789", *s.p);
}

static uint64_t
bound(const char *token)
{
	uint64_t v = 0;

	json_uint((struct span){ token, strlen(token) }, &v);
	return v;
}

static bool
take_integer(
    const struct op_arg *a, struct span s, struct buf *out, struct buf *why)
{
	uint64_t v;

	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return wrong(a, why, "must be an integer");
	if (!json_uint(s, &v))
		return wrong(a, why, "is too large");
	buf_add(out, s.p, s.n);
	if (a->min && v < bound(a->min))
		return outside(a, out, why, "must be at least %", a->min);
	if (a->max && v > bound(a->max))
		return outside(a, out, why, "exceeds max (%)", a->max);
	return true;
}

static bool
take_float(
    const struct op_arg *a, struct span s, struct buf *out, struct buf *why)
{
	double v;

	if (!is_number(s))
		return wrong(a, why, "must be a number");
	if (s.n > 4096)
		return wrong(a, why, "is too large");
	buf_add(out, s.p, s.n);
	v = strtod(buf_str(out), NULL);
	if (!isfinite(v))
		return wrong(a, why, "must be finite");
	if (a->min && v < strtod(a->min, NULL))
		return outside(a, out, why, "must be at least %", a->min);
	if (a->max && v > strtod(a->max, NULL))
		return outside(a, out, why, "exceeds max (%)", a->max);
	return true;
}

static bool
take_array(
    const struct op_arg *a, struct span s, struct buf *out, struct buf *why)
{
	const char *p;

	if (*s.p == '[')
		buf_add(out, s.p, s.n);
	else if (!json_string(s, out) ||
	    !json_is_valid(buf_str(out), out->len, NULL, NULL))
		return wrong(a, why, "must be an array");
	p = buf_str(out);
	return p[strspn(p, " \t\n\r")] == '[' ||
	    wrong(a, why, "must be an array");
}

static bool
take(const struct op_arg *a, const struct op_side *side, struct span s,
    struct buf *out, struct buf *why)
{
	switch (a->kind) {
	case OP_STRING:
	case OP_PATH:
		return take_string(a, side, s, out, why);
	case OP_INTEGER:
		return take_integer(a, s, out, why);
	case OP_FLOAT:
		return take_float(a, s, out, why);
	case OP_ARRAY:
		return take_array(a, s, out, why);
	case OP_KINDS:
		break;
	}
	return false;
}

bool
op_check(const struct op *op, const struct op_side *side, struct span args,
    struct op_values *out, struct buf *why)
{
	struct span *found = xcalloc(op->nargs + 1, sizeof *found), s;
	struct buf key = BUF_INIT;
	size_t pos = 0;
	bool good = true;

	buf_cut(why, 0);
	out->v = xcalloc(op->nargs + 1, sizeof *out->v);
	out->n = op->nargs;
	while (json_pair(args, &pos, &key, &s))
		for (size_t i = 0; i < op->nargs; i++)
			if (strcmp(op->arg[i].name, buf_str(&key)) == 0 &&
			    strlen(buf_str(&key)) == key.len)
				found[i] = s;
	for (size_t i = 0; good && i < op->nargs; i++) {
		const struct op_arg *a = &op->arg[i];
		bool needed = a->required && !a->server_default;

		s = found[i];
		/* Of both scopes the host answers that of the system, where the
		 * scope selects nothing. */
		if (a->selector && !(op->scope == OP_BOTH && side == &op->host))
			s.p = NULL;
		if (s.p && !needed && json_is(s, "null"))
			s.p = NULL;
		if (!s.p && a->server_default)
			s = (struct span){ a->server_default,
				strlen(a->server_default) };
		if (!s.p && needed && !a->selector) {
			buf_addf(
			    why, "%s is required for %s", a->name, op->name);
			good = false;
		}
		if (!s.p)
			continue;
		out->v[i].given = true;
		good = take(a, side, s, &out->v[i].text, why);
	}
	buf_release(&key);
	free(found);
	return good;
}

void
op_values_release(struct op_values *values)
{
	for (size_t i = 0; i < values->n; i++)
		buf_release(&values->v[i].text);
	free(values->v);
	*values = (struct op_values)OP_VALUES_INIT;
}

const struct buf *
op_value(const struct op *op, const struct op_values *values, const char *name)
{
	for (size_t i = 0; i < values->n; i++)
		if (strcmp(op->arg[i].name, name) == 0)
			return values->v[i].given ? &values->v[i].text : NULL;
	return NULL;
}

uint64_t
op_deadline(const struct op *op, struct span args)
{
	const struct op_arg *a = op->waits ? op_arg(op, op->waits) : NULL;
	struct span s;
	uint64_t ms = 0;

	if (!a)
		return op->deadline_ms;
	s = json_member(args, a->name);
	if (!s.p && a->server_default)
		s = (struct span){ a->server_default,
			strlen(a->server_default) };
	if (s.p && !json_uint(s, &ms))
		ms = 0;
	return ms < INT64_MAX ? ms + op->deadline_ms : ms;
}

/* ---- words ---- */

/* False: not given. */
static bool
lookup(const struct op *op, const struct op_values *values, const char *name,
    struct buf *out)
{
	const struct buf *v = op_value(op, values, name);
	const char *s = NULL;

	if (v) {
		buf_add(out, buf_str(v), v->len);
		return true;
	}
	if (strcmp(name, "sandbox_id") == 0)
		s = values->sandbox_id;
	else if (strcmp(name, "request_id") == 0)
		s = values->request_id;
	else if (strcmp(name, "progress") == 0 && values->progress)
		s = "true";
	if (s)
		buf_adds(out, s);
	return s != NULL;
}

static void
fill(const struct op *op, const struct op_values *values, const char *s,
    struct buf *out)
{
	char name[ID_MAX + 1];
	const char *from = s;
	size_t before;

	while (op_hole(&s, &before, name)) {
		buf_add(out, from, before);
		lookup(op, values, name, out);
		from = s;
	}
	buf_adds(out, from);
}

static void
push(struct op_strings *s, struct buf *text)
{
	while (s->n + 1 >= s->cap)
		s->v = xgrow(s->v, &s->cap, sizeof *s->v);
	buf_addc(text, 0);
	s->v[s->n++] = buf_steal(text);
	s->v[s->n] = NULL;
}

static void
expand_word(const struct op *op, const struct op_values *values,
    const struct op_word *w, struct op_strings *argv, struct buf *input)
{
	struct buf text = BUF_INIT, flag = BUF_INIT;
	bool is_given = w->name && lookup(op, values, w->name, &text);

	switch (w->kind) {
	case OP_WORD_PLAIN:
		fill(op, values, w->word, &text);
		push(argv, &text);
		break;
	case OP_WORD_VALUE:
		if (is_given)
			push(argv, &text);
		break;
	case OP_WORD_FLAG:
		if (is_given) {
			buf_adds(&flag, w->word);
			push(argv, &flag);
			push(argv, &text);
		}
		break;
	case OP_WORD_IF:
		if (is_given &&
		    (!w->value || strcmp(w->value, buf_str(&text)) == 0)) {
			buf_adds(&flag, w->word);
			push(argv, &flag);
		}
		break;
	case OP_WORD_INPUT:
		if (is_given)
			buf_add(input, buf_str(&text), text.len);
		break;
	}
	buf_release(&text);
	buf_release(&flag);
}

void
op_expand(const struct op *op, const struct op_side *side,
    const struct op_values *values, struct op_strings *argv, struct buf *input)
{
	for (size_t i = 0; i < side->argv.n; i++) {
		struct op_word w;

		/* op_read has seen that it parses. */
		if (!op_word_parse(side->argv.v[i], &w))
			continue;
		expand_word(op, values, &w, argv, input);
		op_word_release(&w);
	}
}

void
op_strings_release(struct op_strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct op_strings){ .v = NULL };
}

static void
with_one(const struct op *op, const struct op_values *values, const char *s,
    struct buf *out)
{
	struct buf text = BUF_INIT;
	struct op_word w;
	const struct op_arg *a = NULL;

	if (op_word_parse(s, &w) && w.kind == OP_WORD_VALUE) {
		bool is_given = lookup(op, values, w.name, &text);

		a = op_arg(op, w.name);
		if (!is_given)
			buf_adds(out, "null");
		else if (a && a->kind != OP_STRING && a->kind != OP_PATH)
			buf_add(out, buf_str(&text), text.len);
		else
			out_string(out, buf_str(&text), text.len);
	} else {
		fill(op, values, s, &text);
		out_string(out, buf_str(&text), text.len);
	}
	op_word_release(&w);
	buf_release(&text);
}

void
op_with(const struct op *op, const struct op_side *side,
    const struct op_values *values, struct buf *out)
{
	for (size_t i = 0; i + 1 < side->with.n; i += 2) {
		out_key(out, side->with.v[i]);
		with_one(op, values, side->with.v[i + 1], out);
	}
}

char *
op_request_id(const struct buf *id)
{
	size_t n = id->len < REQUEST_ID_MAX ? id->len : REQUEST_ID_MAX;
	char *s;

	/* Not in the middle of a character. */
	while (
	    n > 0 && n < id->len && ((unsigned char)id->data[n] & 0xc0) == 0x80)
		n--;
	s = xmalloc(n + 1);
	memcpy(s, buf_str(id), n);
	s[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f) {
			s[i] = '?';
		} else if ((unsigned char)s[i] == 0xc2 &&
		    (unsigned char)s[i + 1] < 0xa0) {
			/* U+0080 to U+009F */
			s[i++] = '?';
			s[i] = '?';
		}
	return s;
}
