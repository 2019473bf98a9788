/* SPDX-License-Identifier: MIT */
/* The table of keys is in order, and says of itself what it asks of others. */
#include "confkeys.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

static bool
all(bool (*good)(const struct conf_key *), const char *what)
{
	bool is = true;

	for (size_t i = 0; i < conf_nkeys; i++) {
		if (good(&conf_keys[i]))
			continue;
		printf("# %s\n", conf_keys[i].name);
		is = false;
	}
	return ok(is, what);
}

static bool
in_order(const struct conf_key *k)
{
	return k == conf_keys || strcmp(k[-1].name, k->name) < 0;
}

static bool
is_found(const struct conf_key *k)
{
	const char *item;
	size_t n;

	if (confkey_exact(k->name) != k || confkey_is_group(k->name))
		return false;
	if (confkey_find(k->name, &item, &n) != k)
		return false;
	return confkey_is_map(k) ? n == 1 && *item == '*' : !item && n == 0;
}

static bool
has_help(const struct conf_key *k)
{
	size_t n = strlen(k->help);

	return isupper((unsigned char)k->help[0]) && k->help[n - 1] == '.' &&
	    n < 120;
}

static bool
good_default(const struct conf_key *k)
{
	bool several = k->flags & CONF_LIST || confkey_is_map(k), good = true;
	struct buf why = BUF_INIT;

	if (!k->fallback)
		return k->flags & (CONF_NULL | CONF_REQUIRED) ||
		    confkey_is_map(k);
	for (const char *p = k->fallback; good && *p; p += strlen(p) + 1) {
		if (confkey_is_map(k))
			p += strlen(p) + 1;
		good = confkey_check(k, p, &why);
		if (!several)
			break;
	}
	buf_release(&why);
	return good;
}

static bool
good_bounds(const struct conf_key *k)
{
	bool number = k->type == CONF_NUMBER || k->type == CONF_DECIMAL;

	return number ? k->min < k->max : k->min == 0 && k->max == 0;
}

static bool
good_words(const struct conf_key *k)
{
	return (k->type == CONF_WORD) == (k->words != NULL);
}

static bool
can_be_kept(const struct conf_key *k)
{
	bool several = k->flags & CONF_LIST || confkey_is_map(k);

	return !several || k->which != CONF_NONE;
}

static void
test_which(void)
{
	bool once = true;

	for (int w = CONF_NONE + 1; w < CONF_KEYS; w++) {
		size_t n = 0;

		for (size_t i = 0; i < conf_nkeys; i++)
			n += conf_keys[i].which == (enum conf_which)w;
		if (n != 1)
			printf("# %d: %zu\n", w, n);
		once = once && n == 1;
	}
	ok(once, "what commands ask for is one row each");
}

static void
test_names(void)
{
	static const char env[] = "manager.docker.container_env.A.b";
	static const char pids[] = "manager.docker.resource_profiles.x.y"
				   ".pids_max";
	const struct conf_key *k;
	const char *item;
	size_t n;

	k = confkey_find(env, &item, &n);
	ok(k && k->which == CONF_CONTAINER_ENV && n == 3 &&
		item == strchr(env, 'A'),
	    "a name of a map may have dots");
	k = confkey_find(pids, &item, &n);
	ok(k && k->which == CONF_PROFILE_PIDS && n == 3 &&
		item == strchr(pids, 'x'),
	    "also in the middle");
	ok(!confkey_find("manager.docker.container_env.", &item, &n) &&
		!confkey_find("manager.docker.container_env", &item, &n) &&
		!confkey_find(
		    "manager.docker.resource_profiles..pids_max", &item, &n) &&
		!confkey_find(
		    "manager.docker.resource_profiles.pids_max", &item, &n) &&
		!confkey_find("", &item, &n) && !confkey_exact(""),
	    "but not be empty");
	ok(confkey_is_group("runtime") && confkey_is_group("observability") &&
		confkey_is_group("manager.docker.resource_profiles") &&
		confkey_is_group("manager.docker.resource_profiles.*") &&
		!confkey_is_group("run") && !confkey_is_group("runtimes") &&
		!confkey_is_group("runtime.publish.git") &&
		!confkey_is_group("zzz"),
	    "groups are whole components");
	k = confkey_old("daemon.server.max_worker_threads");
	ok(k && strcmp(k->name, "daemon.server.worker_threads") == 0 &&
		!confkey_old("daemon.server.worker_threads"),
	    "names of before");
}

static void
test_decimals(void)
{
	static const struct {
		const char *s;
		bool good;
		uint64_t n;
	} v[] = { { "0", true, 0 }, { "0.25", true, 250000000 },
		{ "30", true, UINT64_C(30000000000) },
		{ "007.50", true, UINT64_C(7500000000) },
		{ "1.000000001", true, UINT64_C(1000000001) },
		{ "0.000000001", true, 1 },
		{ "18446744073.709551615", true, UINT64_MAX },
		{ "18446744073.709551616", false, 0 },
		{ "1.0000000001", false, 0 }, { "", false, 0 },
		{ ".5", false, 0 }, { "5.", false, 0 }, { "-1", false, 0 },
		{ "+1", false, 0 }, { "1e3", false, 0 }, { "1,5", false, 0 },
		{ " 1", false, 0 }, { "1 ", false, 0 }, { "1.2.3", false, 0 },
		{ "inf", false, 0 }, { "999999999999999999999", false, 0 } };
	bool good = true;

	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		uint64_t n = 0;

		if (confkey_decimal(v[i].s, &n) == v[i].good && n == v[i].n)
			continue;
		printf("# %s\n", v[i].s);
		good = false;
	}
	ok(good, "decimals are exact, or refused");
}

int
main(void)
{
	all(in_order, "the keys are sorted");
	all(is_found, "each is found by its name, and is no group");
	all(has_help, "each says in a sentence what it is for");
	all(good_default, "each accepts its own default, or may go without");
	all(good_bounds, "numbers have bounds");
	all(good_words, "words are words");
	all(can_be_kept, "lists and maps can be asked for");
	test_which();
	test_names();
	test_decimals();
	return done();
}
