/* SPDX-License-Identifier: MIT */
#include "mcptool.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "mem.h"
#include "out.h"

#define SELECTOR "sandbox_id"

enum {
	OURS_FROM = 1000 /* order of operations that the reference lacks */
};

/* What clients add to every tool, whatever the tool says. */
static const char *const added[] = { "wait_for_previous" };

bool
mcptools_read(int opsfd, enum op_set set, bool reference, struct mcptools *out,
    struct buf *why)
{
	out->reference = reference;
	return ops_read(opsfd, set, &out->ops, why) == 0;
}

void
mcptools_release(struct mcptools *t)
{
	ops_release(&t->ops);
}

static bool
is_offered(const struct mcptools *t, const struct op *op)
{
	return op->mcp && (!t->reference || op->order < OURS_FROM);
}

/* An argument of a tool that the reference has is one that it has, too. */
static bool
is_listed(const struct op_arg *a)
{
	return !a->ours;
}

/* A tool of runtime has its sandbox in front, others among their arguments. */
static bool
has_scope(const struct op *op)
{
	return op->set == OP_RUNTIME;
}

/* ---- what is said ---- */

static const char *
type(const struct op_arg *a)
{
	switch (a->kind) {
	case OP_INTEGER:
		return "integer";
	case OP_FLOAT:
		return "number";
	case OP_ARRAY:
		return "array";
	case OP_STRING:
	case OP_PATH:
	case OP_KINDS:
		break;
	}
	return "string";
}

/* What is sent for an argument that is not given; NULL: nothing. */
static const char *
initial(const struct mcptools *t, const struct op_arg *a)
{
	return a->mcp_default && !t->reference ? a->mcp_default
					       : a->client_default;
}

/* Clients drop bounds and defaults, so they are told in words, too. */
static void
print_help(const struct mcptools *t, const struct op *op,
    const struct op_arg *a, struct buf *out)
{
	struct buf text = BUF_INIT, value = BUF_INIT;
	const char *given = initial(t, a);

	buf_adds(&text, a->help);
	if (a->min && a->max)
		buf_addf(&text, " From %s to %s.", a->min, a->max);
	else if (a->min)
		buf_addf(&text, " At least %s.", a->min);
	else if (a->max)
		buf_addf(&text, " At most %s.", a->max);
	if (op->waits && strcmp(op->waits, a->name) == 0)
		buf_addf(&text, " More than %d counts as that.", MCP_YIELD_MS);
	if (given) {
		struct span s = { given, strlen(given) };

		if (!json_string(s, &value))
			buf_add(&value, s.p, s.n);
		buf_addf(&text, " Default: %s.", buf_str(&value));
	}
	out_str(out, "description", buf_str(&text));
	buf_release(&text);
	buf_release(&value);
}

static void
print_arg(const struct mcptools *t, const struct op *op, const struct op_arg *a,
    struct buf *out)
{
	out_key(out, a->name);
	buf_addc(out, '{');
	out_str(out, "type", type(a));
	if (a->min && !t->reference)
		buf_addf(out, ",\"minimum\":%s", a->min);
	else if (a->kind == OP_INTEGER)
		buf_adds(out, ",\"minimum\":0");
	if (a->max && !t->reference)
		buf_addf(out, ",\"maximum\":%s", a->max);
	if (t->reference)
		out_str(out, "description", a->help);
	else
		print_help(t, op, a, out);
	if (a->items && !t->reference)
		buf_addf(out, ",\"items\":%s", a->items);
	if (a->values.n > 0 && !t->reference) {
		out_key(out, "enum");
		for (size_t i = 0; i < a->values.n; i++) {
			buf_addc(out, i == 0 ? '[' : ',');
			out_string(out, a->values.v[i], strlen(a->values.v[i]));
		}
		buf_addc(out, ']');
	}
	if (initial(t, a))
		buf_addf(out, ",\"default\":%s", initial(t, a));
	buf_addc(out, '}');
}

static void
print_schema(const struct mcptools *t, const struct op *op, struct buf *out)
{
	struct buf required = BUF_INIT;

	buf_adds(out, "{\"type\":\"object\",\"properties\":{");
	if (has_scope(op)) {
		out_key(out, SELECTOR);
		buf_adds(out,
		    "{\"type\":\"string\","
		    "\"description\":\"The sandbox to work in.\"}");
		buf_adds(&required, "\"" SELECTOR "\"");
	}
	for (size_t i = 0; i < op->nargs; i++) {
		const struct op_arg *a = &op->arg[i];

		if (!is_listed(a))
			continue;
		print_arg(t, op, a, out);
		if (a->required) {
			if (required.len > 0)
				buf_addc(&required, ',');
			out_string(&required, a->name, strlen(a->name));
		}
	}
	buf_addf(out, "},\"required\":[%s],\"additionalProperties\":false}",
	    buf_str(&required));
	buf_release(&required);
}

/*
 * What may be ended at any time changes nothing. Of the rest the worst is said
 * where the file does not know better.
 */
static void
print_annotations(const struct op *op, struct buf *out)
{
	bool reads = op->cancel;

	out_key(out, "annotations");
	buf_addc(out, '{');
	out_bool(out, "readOnlyHint", reads);
	out_bool(out, "destructiveHint", !reads && !op->additive);
	out_bool(out, "idempotentHint", reads || op->idempotent);
	out_bool(out, "openWorldHint", op->open_world);
	buf_addc(out, '}');
}

static void
print_tool(const struct mcptools *t, const struct op *op, struct buf *out)
{
	struct buf text = BUF_INIT;

	buf_addf(&text, "%s %s", op->summary, op->description);
	buf_addc(out, '{');
	out_str(out, "name", op->name);
	out_str(out, "description", buf_str(&text));
	out_key(out, "inputSchema");
	print_schema(t, op, out);
	if (!t->reference)
		print_annotations(op, out);
	buf_addc(out, '}');
	buf_release(&text);
}

void
mcptools_print(const struct mcptools *t, struct buf *out)
{
	buf_addc(out, '[');
	for (size_t i = 0; i < t->ops.n; i++) {
		if (!is_offered(t, &t->ops.op[i]))
			continue;
		if (out->data[out->len - 1] != '[')
			buf_addc(out, ',');
		print_tool(t, &t->ops.op[i], out);
	}
	buf_addc(out, ']');
}

const struct op *
mcptool_find(const struct mcptools *t, const struct buf *name)
{
	for (size_t i = 0; i < t->ops.n; i++) {
		const struct op *op = &t->ops.op[i];

		if (is_offered(t, op) && strlen(op->name) == name->len &&
		    strcmp(op->name, buf_str(name)) == 0)
			return op;
	}
	return NULL;
}

/* ---- what is taken ---- */

__attribute__((format(printf, 2, 3))) static bool
wrong(struct buf *why, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	buf_adds(why, text);
	free(text);
	return false;
}

static bool
take_sandbox(
    const struct op *op, struct span s, struct buf *out, struct buf *why)
{
	const struct op_arg *a = op_arg(op, SELECTOR);
	bool selects = has_scope(op) || (a && a->selector);
	struct buf id = BUF_INIT;
	bool good = true;

	if (!selects)
		return true;
	if (!s.p && has_scope(op))
		return wrong(
		    why, SELECTOR " is required for runtime operations");
	if (!s.p)
		return op->scope != OP_SANDBOX ||
		    wrong(why, SELECTOR " is required for %s", op->name);
	if (!json_string(s, &id))
		good = wrong(why, SELECTOR " must be a string");
	else if (client_is_blank(buf_str(&id)))
		good = wrong(why, "%s must be non-empty",
		    has_scope(op) ? SELECTOR : "--sandbox-id");
	else
		out_string(out, buf_str(&id), id.len);
	buf_release(&id);
	return good;
}

/* A whole number below 2^53 in any form, as models and their clients write. */
static bool
is_whole(struct span s, uint64_t *out)
{
	char text[32], *end;
	double v;

	if (s.n >= sizeof text || !strchr("0123456789", *s.p))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	v = strtod(text, &end);
	if (*end || v > 9007199254740992.0 || v > floor(v))
		return false;
	*out = (uint64_t)v;
	return true;
}

static bool
take_integer(const struct mcptools *t, struct span s, struct buf *out)
{
	uint64_t v;

	if (!json_uint(s, &v) && (t->reference || !is_whole(s, &v)))
		return false;
	buf_addf(out, "%" PRIu64, v);
	return true;
}

static bool
take_float(struct span s, struct buf *out)
{
	if (!strchr("-0123456789", *s.p))
		return false;
	buf_add(out, s.p, s.n);
	return isfinite(strtod(buf_str(out), NULL));
}

static bool
take_array(const struct mcptools *t, struct span s, struct buf *out)
{
	struct buf text = BUF_INIT;
	bool good = true;

	if (*s.p == '[') {
		json_compact(s, out);
		return true;
	}
	/* Some clients put structures into strings. */
	if (t->reference || !json_string(s, &text) ||
	    !json_is_valid(buf_str(&text), text.len, NULL, NULL))
		good = false;
	else
		json_compact((struct span){ text.data, text.len }, out);
	buf_release(&text);
	return good && *out->data == '[';
}

static bool
take_string(struct span s, struct buf *out)
{
	struct buf text = BUF_INIT;
	bool good = json_string(s, &text);

	if (good)
		out_string(out, buf_str(&text), text.len);
	buf_release(&text);
	return good;
}

static bool
take_one(const struct mcptools *t, const struct op_arg *a, struct span s,
    struct buf *out, struct buf *why)
{
	switch (a->kind) {
	case OP_INTEGER:
		return take_integer(t, s, out) ||
		    wrong(why, "%s must be an unsigned integer", a->name);
	case OP_FLOAT:
		return take_float(s, out) ||
		    wrong(why, "%s must be a finite number", a->name);
	case OP_ARRAY:
		return take_array(t, s, out) ||
		    wrong(why, "%s must be a JSON array", a->name);
	case OP_STRING:
	case OP_PATH:
	case OP_KINDS:
		break;
	}
	return take_string(s, out) ||
	    wrong(why, "%s must be a string", a->name);
}

static bool
is_added(const struct mcptools *t, const char *name)
{
	for (size_t i = 0; i < sizeof added / sizeof *added; i++)
		if (!t->reference && strcmp(added[i], name) == 0)
			return true;
	return false;
}

/* The first argument, in sorted order, that the tool does not have. */
static bool
check_names(const struct mcptools *t, const struct op *op, struct span args,
    struct buf *why)
{
	struct buf key = BUF_INIT, least = BUF_INIT;
	struct span v;
	size_t pos = 0;
	bool found = false;

	while (json_pair(args, &pos, &key, &v)) {
		const struct op_arg *a = op_arg(op, buf_str(&key));
		bool whole = strlen(buf_str(&key)) == key.len;

		if (whole &&
		    ((a && is_listed(a)) || is_added(t, buf_str(&key)) ||
			(has_scope(op) && strcmp(key.data, SELECTOR) == 0)))
			continue;
		if (!found || strcmp(buf_str(&key), buf_str(&least)) < 0) {
			buf_cut(&least, 0);
			buf_adds(&least, buf_str(&key));
		}
		found = true;
	}
	if (found)
		wrong(why, "unknown argument for %s: %s", op->name,
		    buf_str(&least));
	buf_release(&key);
	buf_release(&least);
	return !found;
}

static bool
take_args(const struct mcptools *t, const struct op *op, struct span args,
    struct opcli *given, struct buf *why)
{
	for (size_t i = 0; i < op->nargs; i++) {
		const struct op_arg *a = &op->arg[i];
		struct span s = json_member(args, a->name);

		if (a->selector || !s.p)
			continue;
		/* null is as good as none. */
		if (!t->reference && !a->required && json_is(s, "null"))
			continue;
		if (!take_one(t, a, s, &given->value[i], why))
			return false;
	}
	for (size_t i = 0; i < op->nargs; i++) {
		const struct op_arg *a = &op->arg[i];

		if (a->required && !a->selector && given->value[i].len == 0)
			return wrong(
			    why, "%s is required for %s", a->name, op->name);
	}
	return true;
}

/* Without it, what bounds an answer; the tool need not know the argument. */
static void
add_defaults(const struct op *op, struct opcli *given)
{
	for (size_t i = 0; i < op->nargs; i++)
		if (op->arg[i].mcp_default && given->value[i].len == 0)
			buf_adds(&given->value[i], op->arg[i].mcp_default);
}

/* An answer must come before clients give up. */
static void
limit_wait(const struct op *op, struct opcli *given)
{
	const struct op_arg *a = op->waits ? op_arg(op, op->waits) : NULL;
	struct buf *v = a ? &given->value[a - op->arg] : NULL;
	uint64_t ms;

	if (!v || v->len == 0)
		return;
	if (json_uint((struct span){ v->data, v->len }, &ms) &&
	    ms <= MCP_YIELD_MS)
		return;
	buf_cut(v, 0);
	buf_addf(v, "%d", MCP_YIELD_MS);
}

bool
mcptool_take(const struct mcptools *t, const struct op *op, struct span args,
    struct opcli *given, struct buf *sandbox, struct buf *why)
{
	buf_cut(why, 0);
	*given = (struct opcli){
		.value = xcalloc(op->nargs + 1, sizeof *given->value),
		.n = op->nargs,
	};
	if (!take_sandbox(op, json_member(args, SELECTOR), sandbox, why) ||
	    !check_names(t, op, args, why) ||
	    !take_args(t, op, args, given, why))
		return false;
	if (!t->reference) {
		add_defaults(op, given);
		limit_wait(op, given);
	}
	return true;
}
