/* SPDX-License-Identifier: MIT */
#include "confwalk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "confkeys.h"
#include "mem.h"
#include "num.h"

enum {
	PROFILES_MAX = 256
};

/* Where the walk is: the name, and the name with "*" as the table has it. */
struct walk {
	struct confdoc *doc;
	struct buf name, pattern;
	struct buf *why;
};

static bool
refuse_kind(const struct walk *w, const struct ynode *node,
    const struct conf_key *k, const char *more)
{
	struct buf what = BUF_INIT;

	confkey_describe(k, &what);
	confdoc_refuse(w->why, node, buf_str(&w->name), "%s instead of: %s%s",
	    ytree_kind_name(node->kind), buf_str(&what), more);
	buf_release(&what);
	return false;
}

/* A whole number of YAML in decimal digits; as it is when it has no end. */
static char *
whole_number(const char *s)
{
	const char *p = *s == '+' ? s + 1 : s;
	uintmax_t n;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'o')) {
		errno = 0;
		n = strtoumax(p + 2, NULL, p[1] == 'x' ? 16 : 8);
		return errno == 0 ? xasprintf("%" PRIuMAX, n) : xstrdup(s);
	}
	while (p[0] == '0' && p[1] != '\0')
		p++;
	return xstrdup(p);
}

/* A number with a fraction or exponent, to nine decimals. */
static char *
decimal(const char *s)
{
	uint64_t n;
	double d;
	char *text;
	size_t len;

	if (confkey_decimal(s, &n))
		return xstrdup(s);
	/* .inf and .nan have no such form, and are refused as they are. */
	if (strpbrk(s, "iInN"))
		return xstrdup(s);
	d = strtod(s, NULL);
	if (!(d > -1e15 && d < 1e15))
		return xstrdup(s);
	text = xasprintf("%.9f", d);
	len = strlen(text);
	while (text[len - 1] == '0' && text[len - 2] != '.')
		len--;
	text[len] = '\0';
	return text;
}

/* The value of a scalar as the flat file has it. NULL: why is set. */
static char *
scalar(struct walk *w, const struct conf_key *k, const struct ynode *node)
{
	const bool number =
	    node->kind == YKIND_INT || node->kind == YKIND_FLOAT;
	const char *s = node->text;

	switch (k->type) {
	case CONF_NUMBER:
		if (node->kind == YKIND_INT)
			return whole_number(s);
		break;
	case CONF_DECIMAL:
		if (number)
			return node->kind == YKIND_INT ? whole_number(s)
						       : decimal(s);
		break;
	case CONF_BOOL:
		if (node->kind == YKIND_BOOL)
			return xstrdup(
			    *s == 't' || *s == 'T' ? "true" : "false");
		break;
	case CONF_WORD:
	case CONF_TEXT:
	case CONF_PATH:
	case CONF_HOSTPATH:
	case CONF_ENDPOINT:
		if (node->kind == YKIND_TEXT && strlen(s) == node->len)
			return xstrdup(s);
		if (node->kind == YKIND_TEXT) {
			confdoc_refuse(
			    w->why, node, buf_str(&w->name), "a NUL in it");
			return NULL;
		}
		refuse_kind(w, node, k,
		    number || node->kind == YKIND_BOOL ? " (put it in quotes)"
						       : "");
		return NULL;
	}
	refuse_kind(w, node, k, "");
	return NULL;
}

static bool
check(const struct walk *w, const struct conf_key *k, const char *value,
    const struct ynode *node)
{
	struct buf what = BUF_INIT;
	bool good = confkey_check(k, value, &what);

	if (!good)
		confdoc_refuse(
		    w->why, node, buf_str(&w->name), "%s", buf_str(&what));
	buf_release(&what);
	return good;
}

/* Messages have the name where the walk is; what is kept has this one. */
static bool
take_scalar(struct walk *w, const struct conf_key *k, const char *name,
    const struct ynode *node)
{
	char *value = scalar(w, k, node);

	if (!value)
		return false;
	if (!check(w, k, value, node)) {
		free(value);
		return false;
	}
	confdoc_add(w->doc, k, name, value, node);
	return true;
}

static bool
take(struct walk *w, const struct conf_key *k, const struct ynode *node)
{
	if (node->kind == YKIND_NULL && k->flags & CONF_NULL)
		return true;
	if (k->old && confdoc_find(w->doc, k->name))
		return confdoc_refuse(w->why, node, buf_str(&w->name),
		    "given beside %s, which is the same by its old name",
		    k->old);
	if (!(k->flags & CONF_LIST))
		return take_scalar(w, k, buf_str(&w->name), node);
	if (node->kind != YKIND_LIST)
		return refuse_kind(w, node, k, "");
	if (node->n == 0)
		return confdoc_refuse(
		    w->why, node, buf_str(&w->name), "an empty list");
	for (size_t i = 0; i < node->n; i++)
		if (!take_scalar(w, k, k->name, node->child[i]))
			return false;
	return true;
}

/* A number that by its old name is so many times less. */
static bool
take_times(struct walk *w, const struct conf_key *k, const struct ynode *node)
{
	const uint64_t max = k->max / k->old_times;
	struct buf what = BUF_INIT;
	char *value = scalar(w, k, node);
	uint64_t n = 0;

	if (!value)
		return false;
	if (*value != '-' && !num_dec(value, 0, max, &n))
		n = max;
	free(value);
	value = xasprintf("%" PRIu64, n * k->old_times);
	if (confkey_check(k, value, &what)) {
		confdoc_add(w->doc, k, k->name, value, node);
		return true;
	}
	confdoc_refuse(w->why, node, buf_str(&w->name),
	    "%s, as %u times this is %s: "
	    "%s",
	    node->text, k->old_times, k->name, buf_str(&what));
	buf_release(&what);
	free(value);
	return false;
}

static void
warn_old(struct walk *w, const struct conf_key *k, const struct ynode *node)
{
	struct buf b = BUF_INIT;

	buf_addf(&b, "old name of %s", k->name);
	if (k->old_times > 0)
		buf_addf(&b, ", which is %u times as much", k->old_times);
	confdoc_warn(w->doc, node, buf_str(&w->name), buf_str(&b));
	buf_release(&b);
}

/* A key by its name of before. */
static bool
take_old(struct walk *w, const struct conf_key *k, const struct ynode *node)
{
	if (confdoc_find(w->doc, k->name))
		return confdoc_refuse(w->why, node, buf_str(&w->name),
		    "given beside %s, which is its new name", k->name);
	if (k->old_times > 0 ? !take_times(w, k, node)
			     : !take_scalar(w, k, k->name, node))
		return false;
	warn_old(w, k, node);
	return true;
}

/* May this be a name in the place of a "*"? */
static bool
check_item(const struct walk *w, const struct ynode *name)
{
	for (const unsigned char *p = (const unsigned char *)name->text; *p;
	    p++)
		if (*p <= ' ' || *p == 0x7f)
			return confdoc_refuse(w->why, name, buf_str(&w->name),
			    "a name here has no blanks and no control "
			    "characters");
	if (name->len == 0)
		return confdoc_refuse(
		    w->why, name, buf_str(&w->name), "an empty name");
	if (strcmp(buf_str(&w->pattern), CONF_DOCKER ".container_env.*") == 0 &&
	    strchr(name->text, '='))
		return confdoc_refuse(w->why, name, buf_str(&w->name),
		    "the name of a variable has no =");
	if (strcmp(buf_str(&w->pattern), CONF_PROFILES ".*") != 0)
		return true;
	if (w->doc->profiles.n == PROFILES_MAX)
		return confdoc_refuse(w->why, name, buf_str(&w->name),
		    "more than %d profiles", PROFILES_MAX);
	names_add(&w->doc->profiles, name->text);
	return true;
}

static bool walk_map(struct walk *w, const struct ynode *map);

/* One value of a mapping, of which w has the name. */
static bool
walk_value(struct walk *w, const struct ynode *name, const struct ynode *value)
{
	const char *pattern = buf_str(&w->pattern);
	const struct conf_key *k = confkey_exact(pattern);

	if (k)
		return take(w, k, value);
	k = confkey_old(pattern);
	if (k)
		return take_old(w, k, value);
	if (!confkey_is_group(pattern))
		return confdoc_refuse(
		    w->why, name, buf_str(&w->name), "no such key");
	if (strcmp(pattern, CONF_DOCKER) == 0) {
		w->doc->docker = value->kind != YKIND_NULL;
		if (!w->doc->docker)
			return true;
	}
	if (value->kind != YKIND_MAP)
		return confdoc_refuse(w->why, value, buf_str(&w->name),
		    "%s instead of a mapping", ytree_kind_name(value->kind));
	if (value->n == 0 && strcmp(pattern, CONF_PROFILES) == 0)
		return confdoc_refuse(
		    w->why, value, buf_str(&w->name), "an empty mapping");
	return walk_map(w, value);
}

static bool
walk_map(struct walk *w, const struct ynode *map)
{
	const size_t nlen = w->name.len, plen = w->pattern.len;
	bool good = true;

	for (size_t i = 0; good && i < map->n; i += 2) {
		const struct ynode *name = map->child[i];
		bool any;

		buf_adds(&w->pattern, ".*");
		any = confkey_exact(buf_str(&w->pattern)) ||
		    confkey_is_group(buf_str(&w->pattern));
		buf_addf(&w->name, ".%s", name->text);
		if (strlen(name->text) != name->len) {
			good = confdoc_refuse(
			    w->why, name, buf_str(&w->name), "a NUL behind it");
		} else if (any) {
			good = check_item(w, name);
		} else if (strpbrk(name->text, ".*")) {
			good = confdoc_refuse(
			    w->why, name, buf_str(&w->name), "no such key");
		} else {
			buf_cut(&w->pattern, plen);
			buf_addf(&w->pattern, ".%s", name->text);
		}
		if (good)
			good = walk_value(w, name, map->child[i + 1]);
		buf_cut(&w->name, nlen);
		buf_cut(&w->pattern, plen);
	}
	return good;
}

/* Sections and, in those that the role reads, what they say. */
static bool
walk_sections(struct walk *w, const struct ynode *root)
{
	for (size_t i = 0; i < root->n; i += 2) {
		const struct ynode *name = root->child[i];
		const struct ynode *value = root->child[i + 1];
		unsigned bit =
		    strlen(name->text) == name->len && !strchr(name->text, '.')
		    ? conf_section_of(name->text)
		    : 0;

		if (bit == 0)
			confdoc_warn(w->doc, name, name->text,
			    "no such section, passed over");
		if (!(bit & w->doc->role->reads))
			continue;
		if (value->kind != YKIND_MAP)
			return confdoc_refuse(w->why, value, name->text,
			    "%s instead of a mapping",
			    ytree_kind_name(value->kind));
		buf_cut(&w->name, 0);
		buf_cut(&w->pattern, 0);
		buf_adds(&w->name, name->text);
		buf_adds(&w->pattern, name->text);
		if (!walk_map(w, value))
			return false;
	}
	return true;
}

bool
confwalk(struct confdoc *doc, const struct ynode *root, struct buf *why)
{
	struct walk w = { .doc = doc, .name = BUF_INIT, .why = why };
	bool good;

	if (root->kind != YKIND_MAP)
		return confdoc_refuse(why, root, "", "%s instead of a mapping",
		    ytree_kind_name(root->kind));
	good = walk_sections(&w, root);
	buf_release(&w.name);
	buf_release(&w.pattern);
	return good;
}
