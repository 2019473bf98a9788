/* SPDX-License-Identifier: MIT */
#include "ophelp.h"

#include <string.h>

#include "json.h"
#include "opcli.h"

/* NULL: none of this id. */
static const struct op_family *
find_family(const struct op_families *families, const char *id)
{
	for (size_t i = 0; i < families->n; i++)
		if (strcmp(families->v[i].id, id) == 0)
			return &families->v[i];
	return NULL;
}

/* Each line of text, indented. */
static void
indented(struct buf *out, int by, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		buf_addf(out, "%*s%.*s\n", by, "", (int)n, text);
		text += n;
		text += *text == '\n';
	}
}

static void
use_all(const struct ophelp *h, struct buf *out)
{
	buf_addf(out, "Use:\n  %s OPERATION", h->use);
}

void
ophelp_all(const struct ophelp *h, struct buf *out)
{
	buf_addf(out, "%s\n\n", h->title);
	for (size_t i = 0; i < h->families->n; i++) {
		const struct op_family *f = &h->families->v[i];

		buf_addf(out, "%s\n", f->title);
		indented(out, 2, f->summary);
		buf_addc(out, '\n');
		for (size_t j = 0; j < h->ops->n; j++) {
			const struct op *op = &h->ops->op[j];

			if (strcmp(op->family, f->id) != 0)
				continue;
			buf_addf(out, "  %s\n", op->name);
			indented(out, 4, op->summary);
			buf_addc(out, '\n');
		}
	}
	use_all(h, out);
	buf_addc(out, '\n');
}

/* "--last-n" takes LAST_N. */
static void
add_value_name(const struct op_arg *a, struct buf *out)
{
	for (const char *p = a->flag + 2; *p; p++)
		buf_addc(out,
		    *p == '-'                    ? '_'
			: *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A')
						 : *p);
}

static void
usage_line(const struct ophelp *h, const struct op *op, struct buf *out)
{
	buf_addf(out, "  %s %s", h->use, op->name);
	for (size_t i = 0; i < op->nargs; i++) {
		const struct op_arg *a = &op->arg[i];

		buf_adds(out, a->required ? " " : " [");
		if (a->label) {
			buf_adds(out, a->label);
		} else {
			buf_addf(out, "%s ", a->flag);
			add_value_name(a, out);
		}
		if (!a->required)
			buf_addc(out, ']');
	}
	buf_addc(out, '\n');
}

void
ophelp_default(const char *json, struct buf *out)
{
	struct span s = { json, strlen(json) };

	if (!json_string(s, out))
		buf_adds(out, json);
}

static void
arguments(const struct op *op, struct buf *out)
{
	buf_adds(out, "Arguments\n");
	if (op->nargs == 0)
		buf_adds(out, "  None\n\n");
	for (size_t i = 0; i < op->nargs; i++) {
		const struct op_arg *a = &op->arg[i];

		buf_addf(out, "  %s %s %s\n", opcli_name(a),
		    op_kind_name(a->kind),
		    a->required ? "required" : "optional");
		indented(out, 4, a->help);
		if (a->client_default) {
			buf_adds(out, "    Default: ");
			ophelp_default(a->client_default, out);
			buf_addc(out, '\n');
		}
		buf_addc(out, '\n');
	}
}

static void
list(const char *title, const struct op_strings *s, struct buf *out)
{
	if (s->n == 0)
		return;
	buf_addf(out, "%s\n", title);
	for (size_t i = 0; i < s->n; i++)
		indented(out, 2, s->v[i]);
	buf_addc(out, '\n');
}

bool
ophelp_one(const struct ophelp *h, const char *name, struct buf *out)
{
	const struct op *op = NULL;
	const struct op_family *f;

	for (size_t i = 0; i < h->ops->n && !op; i++)
		if (strcmp(h->ops->op[i].name, name) == 0)
			op = &h->ops->op[i];
	if (!op)
		return false;
	f = find_family(h->families, op->family);
	buf_addf(out, "%s\n\nFamily\n  %s\n\nDescription\n", op->name,
	    f ? f->title : op->family);
	indented(out, 2, op->description);
	buf_adds(out, "\nUsage\n");
	usage_line(h, op, out);
	buf_addc(out, '\n');
	arguments(op, out);
	list("Examples", &op->examples, out);
	list("Related Operations", &op->related, out);
	while (out->len > 1 && out->data[out->len - 2] == '\n')
		buf_cut(out, out->len - 1);
	return true;
}

static bool
is_about(const struct ophelp *h, const struct op *op, const char *text)
{
	const struct op_family *f = find_family(h->families, op->family);
	const char *place[] = { op->name, op->summary, op->description,
		f ? f->title : NULL, f ? f->summary : NULL,
		f ? f->description : NULL };

	for (size_t i = 0; i < sizeof place / sizeof *place; i++)
		if (place[i] && strcasestr(place[i], text))
			return true;
	for (size_t i = 0; i < op->nargs; i++)
		if (strcasestr(op->arg[i].name, text) ||
		    strcasestr(op->arg[i].help, text))
			return true;
	for (size_t i = 0; i < op->examples.n; i++)
		if (strcasestr(op->examples.v[i], text))
			return true;
	return false;
}

void
ophelp_unknown(const struct ophelp *h, const char *name, struct buf *out)
{
	bool any = false;

	buf_addf(out, "unknown %s operation for help: %s\n", h->space, name);
	for (size_t i = 0; *name && i < h->ops->n; i++) {
		if (!is_about(h, &h->ops->op[i], name))
			continue;
		buf_addf(out, "%s  %s\n", any ? "" : "Did you mean:\n",
		    h->ops->op[i].name);
		any = true;
	}
	use_all(h, out);
}
