/* SPDX-License-Identifier: MIT */
#include "conf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "num.h"

static const struct conf_key known[CONF_KEYS] = {
	[CONF_IGNORED_CHANGES] = {
		.name = "runtime.layerstack.ignored_changes",
		.words = "publish discard",
		.fallback = "publish",
	},
	[CONF_PUBLISH_GIT] = {
		.name = "runtime.publish.git",
		.words = "keep conflict",
		.fallback = "keep",
	},
	[CONF_READ_LINES] = {
		.name = "runtime.file.read_lines_default",
		.min = 1,
		.max = INT32_MAX,
		.fallback = "2000",
	},
	[CONF_MAX_OUTPUT] = {
		.name = "runtime.file.max_output_bytes",
		.min = 1,
		.max = INT32_MAX,
		.fallback = "262144",
	},
	[CONF_MAX_EDIT] = {
		.name = "runtime.file.max_edit_bytes",
		.min = 1,
		.max = INT32_MAX,
		.fallback = "4194304",
	},
	[CONF_MAX_LIST] = {
		.name = "runtime.file.max_list_entries",
		.min = 1,
		.max = INT32_MAX,
		.fallback = "2000",
	},
	[CONF_MAX_ACTIVE] = {
		.name = "runtime.command.max_active",
		.min = 1,
		.max = 1024,
		.fallback = "32",
	},
	[CONF_TRANSCRIPT] = {
		.name = "runtime.namespace_execution."
			"max_transcript_window_bytes",
		.min = 1,
		.max = INT64_MAX / 4,
		.fallback = "1048576",
	},
	[CONF_EVENTS] = {
		.name = "observability.enabled",
		.words = "true false",
		.fallback = "true",
	},
	[CONF_EVENTS_DISK] = {
		.name = "observability.max_disk_bytes",
		.min = 1048576,
		.max = 16777216,
		.fallback = "4194304",
	},
	[CONF_EVENTS_LINE] = {
		.name = "observability.max_line_bytes",
		.min = 1,
		.max = 16384,
		.fallback = "16384",
	},
	[CONF_MAX_PARKED] = {
		.name = "runtime.workspace.max_parked",
		.min = 1,
		.max = 100000,
		.fallback = "100",
	},
};

static const char blanks[] = " \t";

static bool
is_one_of(const char *words, const char *value)
{
	const size_t len = strlen(value);

	for (;;) {
		size_t n = strcspn(words, " ");

		if (n == len && memcmp(words, value, n) == 0)
			return true;
		if (words[n] == '\0')
			return false;
		words += n + 1;
	}
}

/* False, and says in why what is wrong with the value. */
static bool
check_value(const struct conf_key *k, const char *value, struct buf *why)
{
	uint64_t n;

	if (*value == '\0') {
		buf_adds(why, "no value");
		return false;
	}
	if (k->words) {
		if (is_one_of(k->words, value))
			return true;
		buf_addf(why, "%s is none of: %s", value, k->words);
		return false;
	}
	if (num_dec(value, k->min, k->max, &n))
		return true;
	buf_addf(why, "%s is no number from %" PRIu64 " to %" PRIu64, value,
	    k->min, k->max);
	return false;
}

static void
trim_end(char *s, size_t n)
{
	while (n > 0 && strchr(blanks, s[n - 1]))
		n--;
	s[n] = '\0';
}

/* One line, of n bytes, followed by a NUL; changed. */
static bool
parse_line(const struct conf_key *key, size_t nkeys, char *line, size_t n,
    char **value, struct buf *why)
{
	char *name = line + strspn(line, blanks), *v;
	size_t i = 0;

	if (strlen(line) != n) {
		buf_adds(why, "a NUL byte");
		return false;
	}
	if (*name == '\0' || *name == '#')
		return true;
	trim_end(name, strlen(name));
	v = name + strcspn(name, blanks);
	if (*v != '\0')
		*v++ = '\0';
	v += strspn(v, blanks);
	buf_addf(why, "%s: ", name);
	while (i < nkeys && strcmp(key[i].name, name) != 0)
		i++;
	if (i == nkeys) {
		buf_adds(why, "no such key");
		return false;
	}
	if (value[i]) {
		buf_adds(why, "given twice");
		return false;
	}
	if (!check_value(&key[i], v, why))
		return false;
	value[i] = xstrdup(v);
	return true;
}

bool
conf_parse(const struct conf_key *key, size_t nkeys, const char *text, size_t n,
    char **value, struct buf *why)
{
	char *copy = xmalloc(n + 1), *p = copy, *end = copy + n;
	char **found = xcalloc(nkeys > 0 ? nkeys : 1, sizeof *found);
	bool good = true;

	if (n > 0)
		memcpy(copy, text, n);
	*end = '\0';
	for (size_t line = 1; good && p < end; line++) {
		char *lf = memchr(p, '\n', (size_t)(end - p));

		if (!lf)
			lf = end;
		*lf = '\0';
		buf_cut(why, 0);
		buf_addf(why, CONF_NAME ": line %zu: ", line);
		good = parse_line(key, nkeys, p, (size_t)(lf - p), found, why);
		p = lf + 1;
	}
	for (size_t i = 0; i < nkeys; i++) {
		if (!good)
			free(found[i]);
		else
			value[i] =
			    found[i] ? found[i] : xstrdup(key[i].fallback);
	}
	if (good)
		buf_cut(why, 0);
	free(found);
	free(copy);
	return good;
}

int
conf_read(int storefd, struct conf *c, struct buf *why)
{
	struct buf text = BUF_INIT;
	int rc = -1;

	if (io_read_file_at(storefd, CONF_NAME, &text, CONF_BYTES_MAX) == -1 &&
	    errno != ENOENT) {
		if (errno == EFBIG) {
			buf_addf(why, CONF_NAME ": more than %d bytes",
			    CONF_BYTES_MAX);
			errno = EINVAL;
		}
		goto out;
	}
	if (!conf_parse(
		known, CONF_KEYS, buf_str(&text), text.len, c->value, why)) {
		errno = EINVAL;
		goto out;
	}
	rc = 0;
out:
	buf_release(&text);
	return rc;
}

void
conf_default(struct conf *c)
{
	struct buf why = BUF_INIT;

	conf_parse(known, CONF_KEYS, "", 0, c->value, &why);
	buf_release(&why);
}

void
conf_release(struct conf *c)
{
	for (size_t i = 0; i < CONF_KEYS; i++) {
		free(c->value[i]);
		c->value[i] = NULL;
	}
}

const char *
conf_word(const struct conf *c, enum conf_which which)
{
	return c->value[which];
}

bool
conf_is(const struct conf *c, enum conf_which which, const char *word)
{
	return strcmp(c->value[which], word) == 0;
}

uint64_t
conf_number(const struct conf *c, enum conf_which which)
{
	uint64_t n = 0;

	/* It was one when it was read. */
	num_dec(c->value[which], 0, UINT64_MAX, &n);
	return n;
}
