/* SPDX-License-Identifier: MIT */
#include "ytree.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "mem.h"
#include "out.h"

struct reading {
	yaml_parser_t parser;
	const char *file;
	struct buf *why;
};

__attribute__((format(printf, 4, 5))) static void
refuse(struct buf *why, const char *file, size_t line, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	buf_cut(why, 0);
	buf_addf(why, "%s: line %zu: %s", file, line, text);
}

/* libyaml counts from 0; what its reader found has an offset only. */
static void
refuse_parser(struct reading *r)
{
	const yaml_parser_t *p = &r->parser;

	if (p->error == YAML_READER_ERROR)
		refuse(r->why, r->file, p->mark.line + 1,
		    "%s (byte %zu, value %d)", p->problem, p->problem_offset,
		    p->problem_value);
	else
		refuse(r->why, r->file, p->problem_mark.line + 1, "%s%s%s",
		    p->context ? p->context : "", p->context ? ": " : "",
		    p->problem ? p->problem : "not YAML");
}

static bool
next(struct reading *r, yaml_event_t *e)
{
	if (yaml_parser_parse(&r->parser, e))
		return true;
	refuse_parser(r);
	return false;
}

static bool
is_one_of(const char *s, const char *const *word)
{
	while (*word && strcmp(s, *word) != 0)
		word++;
	return *word != NULL;
}

static bool
is_int(const char *s)
{
	static const char *const digits[] = { "0123456789", "01234567",
		"0123456789abcdefABCDEF" };
	const char *set = digits[0];

	if (s[0] == '0' && (s[1] == 'o' || s[1] == 'x')) {
		set = digits[s[1] == 'o' ? 1 : 2];
		s += 2;
	} else if (*s == '-' || *s == '+') {
		s++;
	}
	return *s && s[strspn(s, set)] == '\0';
}

static bool
is_float(const char *s)
{
	static const char *const odd[] = { ".inf", ".Inf", ".INF", ".nan",
		".NaN", ".NAN", NULL };
	static const char digits[] = "0123456789";
	size_t whole, part = 0;

	if (is_one_of(s, odd))
		return true;
	if (*s == '-' || *s == '+')
		s++;
	if (is_one_of(s, odd) && s[1] != 'n' && s[1] != 'N')
		return true;
	whole = strspn(s, digits);
	s += whole;
	if (*s == '.') {
		part = strspn(s + 1, digits);
		s += 1 + part;
	}
	if (whole + part == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		if (*s == '-' || *s == '+')
			s++;
		if (strspn(s, digits) == 0)
			return false;
		s += strspn(s, digits);
	}
	return *s == '\0';
}

static enum ykind
kind_of(const char *s, size_t n)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL",
		NULL };
	static const char *const bools[] = { "true", "True", "TRUE", "false",
		"False", "FALSE", NULL };

	if (strlen(s) != n)
		return YKIND_TEXT;
	if (is_one_of(s, nulls))
		return YKIND_NULL;
	if (is_one_of(s, bools))
		return YKIND_BOOL;
	if (is_int(s))
		return YKIND_INT;
	return is_float(s) ? YKIND_FLOAT : YKIND_TEXT;
}

static struct ynode *
make(struct reading *r, const yaml_event_t *e, enum ykind kind)
{
	struct ynode *node = xcalloc(1, sizeof *node);

	node->kind = kind;
	node->file = r->file;
	node->line = e->start_mark.line + 1;
	return node;
}

static struct ynode *
make_scalar(struct reading *r, const yaml_event_t *e)
{
	const char *s = (const char *)e->data.scalar.value;
	const size_t n = e->data.scalar.length;
	struct ynode *node = make(r, e, YKIND_TEXT);

	node->text = xmalloc(n + 1);
	memcpy(node->text, s, n);
	node->text[n] = '\0';
	node->len = n;
	if (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
		node->kind = kind_of(node->text, n);
	return node;
}

/* Refuses what a document could say twice with one writing, or mean by name. */
static bool
is_simple(struct reading *r, const yaml_event_t *e)
{
	const size_t line = e->start_mark.line + 1;
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (e->type == YAML_ALIAS_EVENT) {
		refuse(r->why, r->file, line,
		    "*%s: aliases are not accepted, write it out",
		    (const char *)e->data.alias.anchor);
		return false;
	}
	if (e->type == YAML_SCALAR_EVENT) {
		anchor = e->data.scalar.anchor;
		tag = e->data.scalar.tag;
	} else if (e->type == YAML_SEQUENCE_START_EVENT) {
		anchor = e->data.sequence_start.anchor;
		tag = e->data.sequence_start.tag;
	} else if (e->type == YAML_MAPPING_START_EVENT) {
		anchor = e->data.mapping_start.anchor;
		tag = e->data.mapping_start.tag;
	}
	if (anchor)
		refuse(r->why, r->file, line, "&%s: anchors are not accepted",
		    (const char *)anchor);
	else if (tag)
		refuse(r->why, r->file, line, "%s: tags are not accepted",
		    (const char *)tag);
	return !anchor && !tag;
}

static struct ynode *read_node(
    struct reading *r, const yaml_event_t *e, unsigned depth);

static bool
read_children(struct reading *r, struct ynode *node, unsigned depth)
{
	const size_t max =
	    YTREE_ENTRIES_MAX * (node->kind == YKIND_MAP ? 2 : 1);
	const bool map = node->kind == YKIND_MAP;

	for (;;) {
		struct ynode *child;
		yaml_event_t e;

		if (!next(r, &e))
			return false;
		if (e.type == YAML_SEQUENCE_END_EVENT ||
		    e.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&e);
			return true;
		}
		child = NULL;
		if (node->n == max)
			refuse(r->why, r->file, e.start_mark.line + 1,
			    "more than %d entries", YTREE_ENTRIES_MAX);
		else if (map && node->n % 2 == 0 &&
		    e.type != YAML_SCALAR_EVENT && e.type != YAML_ALIAS_EVENT)
			refuse(r->why, r->file, e.start_mark.line + 1,
			    "a name that is a list or a mapping");
		else
			child = read_node(r, &e, depth);
		yaml_event_delete(&e);
		if (!child)
			return false;
		if (node->n == node->cap)
			node->child =
			    xgrow(node->child, &node->cap, sizeof *node->child);
		node->child[node->n++] = child;
	}
}

static struct ynode *
read_node(struct reading *r, const yaml_event_t *e, unsigned depth)
{
	struct ynode *node;

	if (!is_simple(r, e))
		return NULL;
	if (e->type == YAML_SCALAR_EVENT)
		return make_scalar(r, e);
	if (depth == YTREE_DEPTH_MAX) {
		refuse(r->why, r->file, e->start_mark.line + 1,
		    "more than %d lists and mappings in each other",
		    YTREE_DEPTH_MAX);
		return NULL;
	}
	node = make(
	    r, e, e->type == YAML_MAPPING_START_EVENT ? YKIND_MAP : YKIND_LIST);
	if (!read_children(r, node, depth + 1)) {
		ytree_free(node);
		return NULL;
	}
	return node;
}

/* Passes over the next event if it is of this type. */
static bool
expect(struct reading *r, yaml_event_type_t type, const char *otherwise)
{
	yaml_event_t e;
	bool is;

	if (!next(r, &e))
		return false;
	is = e.type == type;
	if (!is)
		refuse(r->why, r->file, e.start_mark.line + 1, "%s", otherwise);
	yaml_event_delete(&e);
	return is;
}

static struct ynode *
read_document(struct reading *r)
{
	struct ynode *root;
	yaml_event_t e;

	if (!expect(r, YAML_STREAM_START_EVENT, "not YAML") ||
	    !expect(r, YAML_DOCUMENT_START_EVENT, "no document") ||
	    !next(r, &e))
		return NULL;
	root = read_node(r, &e, 0);
	yaml_event_delete(&e);
	if (root &&
	    (!expect(r, YAML_DOCUMENT_END_EVENT, "not YAML") ||
		!expect(r, YAML_STREAM_END_EVENT, "a second document"))) {
		ytree_free(root);
		return NULL;
	}
	return root;
}

static int
by_text(const void *a, const void *b)
{
	const struct ynode *x = *(struct ynode *const *)a;
	const struct ynode *y = *(struct ynode *const *)b;
	int c;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	c = memcmp(x->text, y->text, x->len);
	if (c != 0)
		return c;
	return (x->line > y->line) - (x->line < y->line);
}

/* No name twice in any mapping. path: where node is, with a dot behind. */
static bool
check_names(const struct ynode *node, struct buf *path, struct buf *why)
{
	const bool map = node->kind == YKIND_MAP;
	const size_t len = path->len, step = map ? 2 : 1;
	struct ynode **name = NULL;
	bool good = true;

	if (map && node->n > 0) {
		name = xcalloc(node->n / 2, sizeof *name);
		for (size_t i = 0; i < node->n / 2; i++)
			name[i] = node->child[2 * i];
		qsort(name, node->n / 2, sizeof *name, by_text);
	}
	for (size_t i = 1; good && name && i < node->n / 2; i++) {
		const struct ynode *a = name[i - 1], *b = name[i];

		good =
		    a->len != b->len || memcmp(a->text, b->text, a->len) != 0;
		if (!good)
			refuse(why, b->file, b->line,
			    "%s%s: given twice, before on line %zu",
			    buf_str(path), b->text, a->line);
	}
	free(name);
	for (size_t i = 0; good && i < node->n; i += step) {
		if (map)
			buf_addf(path, "%s.", node->child[i]->text);
		good = check_names(node->child[i + step - 1], path, why);
		buf_cut(path, len);
	}
	return good;
}

static bool
is_utf8(const char *file, const char *text, size_t n, struct buf *why)
{
	const char *end = text + n;

	for (size_t line = 1; text < end; line++) {
		const char *lf = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((lf ? lf : end) - text);

		if (!utf8_is_valid(text, len)) {
			refuse(why, file, line, "not UTF-8");
			return false;
		}
		text += len + 1;
	}
	return true;
}

struct ynode *
ytree_parse(const char *file, const char *text, size_t n, struct buf *why)
{
	struct reading r = { .file = file, .why = why };
	struct buf path = BUF_INIT;
	struct ynode *root;

	if (n > YTREE_BYTES_MAX) {
		buf_addf(why, "%s: more than %d bytes", file, YTREE_BYTES_MAX);
		return NULL;
	}
	if (!is_utf8(file, text, n, why))
		return NULL;
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		n -= 3;
	}
	if (!yaml_parser_initialize(&r.parser)) {
		buf_addf(why, "%s: out of memory", file);
		return NULL;
	}
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
	root = read_document(&r);
	yaml_parser_delete(&r.parser);
	if (root && !check_names(root, &path, why)) {
		ytree_free(root);
		root = NULL;
	}
	buf_release(&path);
	return root;
}

void
ytree_free(struct ynode *node)
{
	for (size_t i = 0; i < node->n; i++)
		ytree_free(node->child[i]);
	free(node->child);
	free(node->text);
	free(node);
}

/* Where the value of a name of n bytes is; map->n: nowhere. */
static size_t
find(const struct ynode *map, const char *name, size_t n)
{
	for (size_t i = 0; i < map->n; i += 2)
		if (map->child[i]->len == n &&
		    memcmp(map->child[i]->text, name, n) == 0)
			return i + 1;
	return map->n;
}

struct ynode *
ytree_get(const struct ynode *map, const char *name)
{
	size_t at = find(map, name, strlen(name));

	return at < map->n ? map->child[at] : NULL;
}

static void
add(struct ynode *map, struct ynode *child)
{
	if (map->n == map->cap)
		map->child = xgrow(map->child, &map->cap, sizeof *map->child);
	map->child[map->n++] = child;
}

void
ytree_merge(struct ynode *base, struct ynode *over)
{
	for (size_t i = 0; i < over->n; i += 2) {
		struct ynode *name = over->child[i],
			     *value = over->child[i + 1];
		size_t at = find(base, name->text, name->len);

		if (at == base->n) {
			add(base, name);
			add(base, value);
			continue;
		}
		if (value->kind == YKIND_MAP &&
		    base->child[at]->kind == YKIND_MAP) {
			ytree_free(name);
			ytree_merge(base->child[at], value);
			continue;
		}
		ytree_free(base->child[at - 1]);
		ytree_free(base->child[at]);
		base->child[at - 1] = name;
		base->child[at] = value;
	}
	over->n = 0;
	ytree_free(over);
}

const char *
ytree_kind_name(enum ykind kind)
{
	switch (kind) {
	case YKIND_NULL:
		return "null";
	case YKIND_BOOL:
		return "a boolean";
	case YKIND_INT:
		return "a whole number";
	case YKIND_FLOAT:
		return "a number with a fraction or exponent";
	case YKIND_TEXT:
		return "text";
	case YKIND_LIST:
		return "a list";
	case YKIND_MAP:
		return "a mapping";
	}
	return "";
}
