/* SPDX-License-Identifier: MIT */
#include "confdoc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "confkeys.h"
#include "mem.h"

const struct conf_section conf_sections[CONF_SECTIONS] = {
	{ "daemon", SECTION_DAEMON },
	{ "gateway", SECTION_GATEWAY },
	{ "manager", SECTION_MANAGER },
	{ "observability", SECTION_OBSERVABILITY },
	{ "runner", SECTION_RUNNER },
	{ "runtime", SECTION_RUNTIME },
};

static const struct conf_role roles[] = {
	{ .name = "all", .reads = SECTION_ALL, .writes = SECTION_ALL },
	{
	    .name = "daemon",
	    .reads = SECTION_ALL & ~(unsigned)SECTION_GATEWAY,
	    .needs = SECTION_DAEMON | SECTION_RUNTIME | SECTION_RUNNER,
	    /* Not manager: what it holds is no business of a box. */
	    .writes = SECTION_DAEMON | SECTION_RUNTIME | SECTION_RUNNER |
		SECTION_OBSERVABILITY,
	},
	{
	    .name = "gateway",
	    .listens = true,
	    .reads = SECTION_GATEWAY | SECTION_MANAGER,
	    .writes = SECTION_GATEWAY | SECTION_MANAGER,
	},
	{
	    .name = "docker",
	    .reads = SECTION_GATEWAY | SECTION_MANAGER | SECTION_DAEMON |
		SECTION_RUNTIME,
	    .needs = SECTION_MANAGER | SECTION_DAEMON | SECTION_RUNTIME,
	    .needs_docker = true,
	    .listens = true,
	    .writes = SECTION_GATEWAY | SECTION_MANAGER | SECTION_DAEMON |
		SECTION_RUNTIME,
	},
};

const struct conf_role *
conf_role_find(const char *name)
{
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (strcmp(roles[i].name, name) == 0)
			return &roles[i];
	return NULL;
}

unsigned
conf_section_of(const char *name)
{
	size_t n = strcspn(name, ".");

	for (size_t i = 0; i < CONF_SECTIONS; i++)
		if (strlen(conf_sections[i].name) == n &&
		    memcmp(conf_sections[i].name, name, n) == 0)
			return conf_sections[i].bit;
	return 0;
}

static void
add_place(struct buf *b, const struct ynode *node, const char *name)
{
	if (node)
		buf_addf(b, "%s: line %zu: ", node->file, node->line);
	if (*name)
		buf_addf(b, "%s: ", name);
}

bool
confdoc_vrefuse(struct buf *why, const struct ynode *node, const char *name,
    const char *fmt, va_list ap)
{
	char *text = xvasprintf(fmt, ap);

	buf_cut(why, 0);
	add_place(why, node, name);
	buf_adds(why, text);
	free(text);
	return false;
}

bool
confdoc_refuse(struct buf *why, const struct ynode *node, const char *name,
    const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	confdoc_vrefuse(why, node, name, fmt, ap);
	va_end(ap);
	return false;
}

void
confdoc_warn(struct confdoc *doc, const struct ynode *node, const char *name,
    const char *what)
{
	struct buf b = BUF_INIT;

	add_place(&b, node, name);
	buf_adds(&b, what);
	names_add(&doc->warnings, buf_str(&b));
	buf_release(&b);
}

struct conf_value *
confdoc_find(const struct confdoc *doc, const char *name)
{
	for (size_t i = 0; i < doc->n; i++)
		if (strcmp(doc->v[i].name, name) == 0)
			return &doc->v[i];
	return NULL;
}

void
confdoc_add(struct confdoc *doc, const struct conf_key *k, const char *name,
    char *value, const struct ynode *node)
{
	if (doc->n == doc->cap)
		doc->v = xgrow(doc->v, &doc->cap, sizeof *doc->v);
	doc->v[doc->n++] = (struct conf_value){
		.key = k,
		.name = xstrdup(name),
		.value = value,
		.node = node,
	};
}

const char *
confdoc_says(const struct confdoc *doc, const char *name)
{
	const struct conf_value *v = confdoc_find(doc, name);
	const struct conf_key *k;
	const char *item;
	size_t n;

	if (v)
		return v->value;
	k = confkey_find(name, &item, &n);
	if (!k || !k->fallback)
		return NULL;
	if (!item)
		return k->fallback;
	for (const char *p = k->fallback; *p; p += strlen(p) + 1) {
		bool is = strlen(p) == n && memcmp(p, item, n) == 0;

		p += strlen(p) + 1;
		if (is)
			return p;
	}
	return NULL;
}

bool
confdoc_set(
    struct confdoc *doc, const char *name, const char *value, struct buf *why)
{
	const struct conf_key *k = confkey_exact(name);
	struct conf_value *v = confdoc_find(doc, name);

	buf_addf(why, "%s: ", name);
	if (!k || !confkey_check(k, value, why))
		return false;
	buf_cut(why, 0);
	if (!v) {
		confdoc_add(doc, k, name, xstrdup(value), NULL);
		return true;
	}
	free(v->value);
	v->value = xstrdup(value);
	v->node = NULL;
	return true;
}

static void
write_line(const struct conf_key *k, const char *name, const char *value,
    const char *cwd, struct buf *text)
{
	char *path = NULL;

	if (k->type == CONF_HOSTPATH && *value != '/')
		path =
		    xasprintf("%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, value);
	conf_add_line(text, name, path ? path : value);
	free(path);
}

static void
write_fallback(const struct conf_key *k, const char *cwd, struct buf *text)
{
	const bool map = confkey_is_map(k);

	for (const char *p = k->fallback; p && *p; p += strlen(p) + 1) {
		char *name = map ? confkey_with(k, p) : xstrdup(k->name);

		if (map)
			p += strlen(p) + 1;
		write_line(k, name, p, cwd, text);
		free(name);
		if (!map && !(k->flags & CONF_LIST))
			break;
	}
}

void
confdoc_write(const struct confdoc *doc, const char *cwd, struct buf *text)
{
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];
		bool given = strncmp(k->name, CONF_PROFILES,
				 strlen(CONF_PROFILES)) == 0 &&
		    doc->profiles.n > 0;

		if (!(conf_section_of(k->name) & doc->role->writes) ||
		    (strncmp(k->name, CONF_DOCKER ".",
			 strlen(CONF_DOCKER ".")) == 0 &&
			!doc->docker))
			continue;
		for (size_t j = 0; j < doc->n; j++) {
			if (doc->v[j].key != k)
				continue;
			write_line(
			    k, doc->v[j].name, doc->v[j].value, cwd, text);
			given = true;
		}
		if (!given)
			write_fallback(k, cwd, text);
	}
}

void
confdoc_release(struct confdoc *doc)
{
	for (size_t i = 0; i < doc->n; i++) {
		free(doc->v[i].name);
		free(doc->v[i].value);
	}
	free(doc->v);
	names_release(&doc->warnings);
	names_release(&doc->profiles);
}
