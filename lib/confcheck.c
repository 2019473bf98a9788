/* SPDX-License-Identifier: MIT */
#include "confcheck.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "confkeys.h"
#include "mem.h"
#include "num.h"

enum {
	PIDS_KEPT = 8 /* at least, for the daemon */
};

/* The node of a name, or that of as much of it as there is. */
static const struct ynode *
nearest(const struct ynode *root, const char *name)
{
	for (;;) {
		size_t n = strcspn(name, ".");
		char *part = xstrndup(name, n);
		const struct ynode *child =
		    root->kind == YKIND_MAP ? ytree_get(root, part) : NULL;

		free(part);
		if (!child)
			return root;
		root = child;
		if (name[n] == '\0')
			return root;
		name += n + 1;
	}
}

static bool
require_profiles(const struct confdoc *doc, const struct conf_key *k,
    const struct ynode *root, struct buf *why)
{
	for (size_t i = 0; i < doc->profiles.n; i++) {
		char *name = confkey_with(k, doc->profiles.name[i]);
		bool is = confdoc_find(doc, name);

		if (!is)
			confdoc_refuse(
			    why, nearest(root, name), name, "missing");
		free(name);
		if (!is)
			return false;
	}
	return true;
}

static bool
check_required(
    const struct confdoc *doc, const struct ynode *root, struct buf *why)
{
	for (size_t i = 0; i < CONF_SECTIONS; i++)
		if (doc->role->needs & conf_sections[i].bit &&
		    !ytree_get(root, conf_sections[i].name))
			return confdoc_refuse(
			    why, root, conf_sections[i].name, "missing");
	if (doc->role->needs_docker && !doc->docker)
		return confdoc_refuse(
		    why, nearest(root, CONF_DOCKER), CONF_DOCKER, "missing");
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];
		char *section = xstrndup(k->name, strcspn(k->name, "."));
		bool there = ytree_get(root, section);

		free(section);
		if (!(k->flags & CONF_REQUIRED) || !there ||
		    !(conf_section_of(k->name) & doc->role->reads) ||
		    (strncmp(k->name, CONF_DOCKER ".",
			 strlen(CONF_DOCKER ".")) == 0 &&
			!doc->docker))
			continue;
		if (confkey_is_map(k)) {
			if (!require_profiles(doc, k, root, why))
				return false;
		} else if (!confdoc_find(doc, k->name)) {
			return confdoc_refuse(
			    why, nearest(root, k->name), k->name, "missing");
		}
	}
	return true;
}

static uint64_t
number(const struct confdoc *doc, const char *name)
{
	const char *s = confdoc_says(doc, name);
	uint64_t n = 0;

	if (s)
		num_dec(s, 0, UINT64_MAX, &n);
	return n;
}

/* Refuses what name says, with the place where it does. Always false. */
__attribute__((format(printf, 4, 5))) static bool
refuse_value(const struct confdoc *doc, struct buf *why, const char *name,
    const char *fmt, ...)
{
	const struct conf_value *v = confdoc_find(doc, name);
	va_list ap;

	va_start(ap, fmt);
	confdoc_vrefuse(why, v ? v->node : NULL, name, fmt, ap);
	va_end(ap);
	return false;
}

static bool
check_at_most(const struct confdoc *doc, const char *name, const char *most,
    struct buf *why)
{
	uint64_t n = number(doc, name), max = number(doc, most);

	if (n <= max)
		return true;
	/* The one that was given is the one to blame. */
	if (confdoc_find(doc, name))
		return refuse_value(doc, why, name,
		    "%" PRIu64 " is more than %s, %" PRIu64, n, most, max);
	return refuse_value(doc, why, most,
	    "%" PRIu64 " is less than %s, %" PRIu64, max, name, n);
}

/* What one profile says of a row. */
static const char *
of_profile(const struct confdoc *doc, const char *profile, const char *what)
{
	char *name = xasprintf(CONF_PROFILES ".%s.%s", profile, what);
	const char *value = confdoc_says(doc, name);

	free(name);
	return value;
}

static uint64_t
number_of_profile(
    const struct confdoc *doc, const char *profile, const char *what)
{
	const char *s = of_profile(doc, profile, what);
	uint64_t n = 0;

	if (s)
		num_dec(s, 0, UINT64_MAX, &n);
	return n;
}

static bool
is_separate(const struct confdoc *doc, const char *profile)
{
	const char *s = of_profile(doc, profile, "separate_workload_cgroup");

	return s && strcmp(s, "true") == 0;
}

static bool
check_profile(const struct confdoc *doc, const char *profile, struct buf *why)
{
	const uint64_t high =
	    number_of_profile(doc, profile, "memory_high_bytes");
	const uint64_t max =
	    number_of_profile(doc, profile, "memory_max_bytes");
	const uint64_t pids = number_of_profile(doc, profile, "pids_max");
	char *name = xasprintf(CONF_PROFILES ".%s.memory_high_bytes", profile);
	bool good = true;

	if (high > max)
		good = refuse_value(doc, why, name,
		    "%" PRIu64 " is more than memory_max_bytes, %" PRIu64, high,
		    max);
	else if (high == max && is_separate(doc, profile))
		good = refuse_value(doc, why, name,
		    "%" PRIu64 " is not less than memory_max_bytes, as with "
		    "separate_workload_cgroup it must be",
		    high);
	free(name);
	if (!good)
		return false;
	name = xasprintf(CONF_PROFILES ".%s.pids_max", profile);
	/* Beyond this, less than pids_max is kept back. */
	if (pids <= PIDS_KEPT)
		good = refuse_value(doc, why, name,
		    "%" PRIu64 " leaves nothing to the workload: %d are kept "
		    "back for the daemon",
		    pids, PIDS_KEPT);
	free(name);
	return good;
}

static bool
check_docker(const struct confdoc *doc, struct buf *why)
{
	static const char key[] = CONF_DOCKER ".resource_profile";
	static const char memory[] = CONF_DOCKER ".memory_bytes";
	const char *profile = confdoc_says(doc, key);
	bool known = false;

	for (size_t i = 0; i < doc->profiles.n; i++) {
		if (!check_profile(doc, doc->profiles.name[i], why))
			return false;
		known = known || strcmp(doc->profiles.name[i], profile) == 0;
	}
	if (doc->profiles.n == 0)
		known = of_profile(doc, profile, "pids_max");
	if (!known)
		return refuse_value(doc, why, key,
		    "%s is none of the resource_profiles", profile);
	if (confdoc_says(doc, memory) && is_separate(doc, profile) &&
	    number(doc, memory) <=
		number_of_profile(doc, profile, "memory_high_bytes"))
		return refuse_value(doc, why, memory,
		    "%s is not more than memory_high_bytes of profile %s, as "
		    "with separate_workload_cgroup it must be",
		    confdoc_says(doc, memory), profile);
	return true;
}

static bool
check_local(const struct confdoc *doc, struct buf *why)
{
	static const char key[] = "manager.local.resource_profile";
	const char *profile = confdoc_says(doc, key);

	if (!profile || of_profile(doc, profile, "pids_max"))
		return true;
	return refuse_value(
	    doc, why, key, "%s is none of the resource_profiles", profile);
}

/* Is this what its key says by itself? */
static bool
is_default(const struct conf_value *v)
{
	const char *p = v->key->fallback;
	const bool map = confkey_is_map(v->key);

	if (!p)
		return false;
	if (!map && !(v->key->flags & CONF_LIST))
		return strcmp(p, v->value) == 0;
	for (; *p; p += strlen(p) + 1) {
		bool is = true;

		if (map) {
			char *name = confkey_with(v->key, p);

			is = strcmp(name, v->name) == 0;
			free(name);
			p += strlen(p) + 1;
		}
		if (is && strcmp(p, v->value) == 0)
			return true;
	}
	return false;
}

/* What is asked for and will not happen. */
static void
warn_unread(struct confdoc *doc)
{
	const struct conf_key *last = NULL;

	for (size_t i = 0; i < doc->n; i++) {
		const struct conf_value *v = &doc->v[i];

		if (v->key == last || confkey_is_read(v->key) ||
		    v->key->flags & CONF_IDLE || is_default(v) ||
		    !(conf_section_of(v->name) & doc->role->writes))
			continue;
		last = v->key;
		confdoc_warn(doc, v->node, v->name,
		    "no command of this version reads it");
	}
}

bool
confcheck(struct confdoc *doc, const struct ynode *root, struct buf *why)
{
	bool good = check_required(doc, root, why) &&
	    check_at_most(doc, "runtime.command.read_lines_default",
		"runtime.command.read_lines_max", why) &&
	    check_at_most(doc, "observability.views.layer_delta_default_limit",
		"observability.views.layer_delta_max_limit", why) &&
	    (!doc->docker || check_docker(doc, why)) && check_local(doc, why);

	if (good)
		warn_unread(doc);
	return good;
}
