/* SPDX-License-Identifier: MIT */
#include "confkeys.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "mem.h"
#include "num.h"

static const char blanks[] = " \t\n\v\f\r";

/* The first row whose name is not below the n bytes of name. */
static size_t
lower_bound(const char *name, size_t n)
{
	size_t low = 0, high = conf_nkeys;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strncmp(conf_keys[mid].name, name, n) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct conf_key *
confkey_exact(const char *name)
{
	size_t i = lower_bound(name, strlen(name) + 1);

	return i < conf_nkeys && strcmp(conf_keys[i].name, name) == 0
	    ? &conf_keys[i]
	    : NULL;
}

bool
confkey_is_map(const struct conf_key *k)
{
	return strchr(k->name, '*');
}

char *
confkey_with(const struct conf_key *k, const char *item)
{
	const char *star = strchr(k->name, '*');

	return xasprintf(
	    "%.*s%s%s", (int)(star - k->name), k->name, item, star + 1);
}

bool
confkey_is_read(const struct conf_key *k)
{
	return k->flags & CONF_SCRIPT ||
	    (k->which != CONF_NONE && !(k->flags & CONF_UNREAD));
}

/* Is name the row's, with something in the place of its star? */
static bool
fits(const struct conf_key *k, const char *name, const char **item, size_t *n)
{
	const char *star = strchr(k->name, '*');
	size_t before = (size_t)(star - k->name), after = strlen(star + 1);
	size_t len = strlen(name);

	if (len <= before + after || memcmp(k->name, name, before) != 0 ||
	    strcmp(star + 1, name + len - after) != 0)
		return false;
	*item = name + before;
	*n = len - before - after;
	return true;
}

const struct conf_key *
confkey_find(const char *name, const char **item, size_t *n)
{
	const struct conf_key *k = confkey_exact(name);

	*item = NULL;
	*n = 0;
	if (k && !confkey_is_map(k))
		return k;
	for (size_t i = 0; i < conf_nkeys; i++)
		if (confkey_is_map(&conf_keys[i]) &&
		    fits(&conf_keys[i], name, item, n))
			return &conf_keys[i];
	return NULL;
}

const struct conf_key *
confkey_old(const char *name)
{
	for (size_t i = 0; i < conf_nkeys; i++)
		if (conf_keys[i].old && strcmp(conf_keys[i].old, name) == 0)
			return &conf_keys[i];
	return NULL;
}

bool
confkey_is_group(const char *name)
{
	size_t n = strlen(name), i = lower_bound(name, n);

	/* Names that begin with "name_" stand behind those with "name.". */
	return i < conf_nkeys && strncmp(conf_keys[i].name, name, n) == 0 &&
	    conf_keys[i].name[n] == '.';
}

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

bool
confkey_decimal(const char *s, uint64_t *billionths)
{
	size_t whole = strspn(s, "0123456789"), part = 0;
	uint64_t v = 0;

	if (s[whole] == '.') {
		part = strspn(s + whole + 1, "0123456789");
		if (part == 0 || part > 9)
			return false;
	}
	if (whole == 0 || s[whole + (part ? part + 1 : 0)] != '\0')
		return false;
	for (size_t i = 0; i < whole + 9; i++) {
		size_t at = i < whole ? i : i + 1;
		unsigned digit = i < whole + part ? (unsigned)(s[at] - '0') : 0;

		if (v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*billionths = v;
	return true;
}

static void
add_decimal(struct buf *b, uint64_t billionths)
{
	buf_addf(b, "%" PRIu64, billionths / CONF_BILLION);
	if (billionths % CONF_BILLION == 0)
		return;
	buf_addf(b, ".%09" PRIu64, billionths % CONF_BILLION);
	while (b->data[b->len - 1] == '0')
		buf_cut(b, b->len - 1);
}

/* All bounds, or those that people have to know. */
static void
add_bounds(const struct conf_key *k, bool all, struct buf *b)
{
	bool number = k->type == CONF_NUMBER;

	if (number && (all || k->max < CONF_ANY))
		buf_addf(b, " from %" PRIu64 " to %" PRIu64, k->min, k->max);
	else if (number)
		buf_addf(b, " of at least %" PRIu64, k->min);
	if (number)
		return;
	buf_adds(b, k->min > 0 ? " above 0" : " of at least 0");
	if (all || k->max < CONF_SECONDS) {
		buf_adds(b, ", at most ");
		add_decimal(b, k->max);
	}
}

static void
describe(const struct conf_key *k, bool all, struct buf *b)
{
	switch (k->type) {
	case CONF_NUMBER:
		buf_adds(b, k->flags & CONF_EVEN ? "even number" : "number");
		add_bounds(k, all, b);
		break;
	case CONF_DECIMAL:
		buf_adds(b, "decimal");
		add_bounds(k, all, b);
		break;
	case CONF_BOOL:
		buf_adds(b, "true or false");
		break;
	case CONF_WORD:
		buf_addf(b, "one of: %s", k->words);
		break;
	case CONF_TEXT:
		buf_adds(b, "text");
		if (k->flags & CONF_NOT_BLANK)
			buf_adds(b, ", not blank");
		break;
	case CONF_PATH:
		buf_adds(b, "absolute path");
		if (k->flags & CONF_NOT_ROOT)
			buf_adds(b, " other than /");
		break;
	case CONF_HOSTPATH:
		buf_adds(b, "path");
		break;
	case CONF_ENDPOINT:
		buf_adds(b,
		    "IP:port, tcp://IP:port, unix:///path or "
		    "npipe://./pipe/name");
		break;
	}
}

void
confkey_describe(const struct conf_key *k, struct buf *b)
{
	if (k->flags & CONF_LIST)
		buf_adds(b, "list of: ");
	describe(k, false, b);
}

static bool
is_blank(const char *s)
{
	return s[strspn(s, blanks)] == '\0';
}

/* Segments of one or more bytes, none of them a dot or two. */
static bool
good_segments(const char *s)
{
	for (;;) {
		size_t n = strcspn(s, "/");

		if (n == 0 || (n <= 2 && strspn(s, ".") >= n))
			return false;
		if (s[n] == '\0')
			return true;
		s += n + 1;
	}
}

static const char *
bad_unix(const char *path)
{
	enum {
		PATH_MAX_HERE = 100
	};

	if (*path != '/')
		return "the path of a socket is absolute";
	if (strlen(path) > PATH_MAX_HERE)
		return "the path of a socket has at most 100 bytes";
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f || *p == '\\')
			return "control characters and backslashes are not "
			       "for the path of a socket";
	if (!good_segments(path + 1))
		return "the path of a socket has no empty part and no . or ..";
	return NULL;
}

static const char *
bad_pipe(const char *name)
{
	/* \\.\pipe\NAME has at most 256 characters. */
	enum {
		NAME_MAX_HERE = 256 - 9
	};

	if (strncmp(name, "./pipe/", 7) != 0)
		return "a pipe is npipe://./pipe/name";
	name += 7;
	if (strlen(name) > NAME_MAX_HERE || !good_segments(name) ||
	    name[strspn(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789._-/")] != '\0')
		return "the name of a pipe is made of letters, digits and "
		       ". _ - /";
	return NULL;
}

static const char *
bad_tcp(const char *s)
{
	static const char form[] = "neither IP:port nor [IPv6]:port";
	const char *colon = strrchr(s, ':');
	unsigned char ip[sizeof(struct in6_addr)];
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;
	size_t n;

	if (!colon || (size_t)(colon - s) >= sizeof host)
		return form;
	n = (size_t)(colon - s);
	memcpy(host, s, n);
	host[n] = '\0';
	if (host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		if (inet_pton(AF_INET6, host + 1, ip) != 1)
			return form;
	} else if (inet_pton(AF_INET, host, ip) != 1) {
		return form;
	}
	if (!num_dec(colon + 1, 0, UINT16_MAX, &port))
		return form;
	return port == 0 ? "port 0" : NULL;
}

/* NULL, or what is wrong. */
static const char *
bad_endpoint(const char *s)
{
	size_t n = strlen(s);

	if (n == 0)
		return "no value";
	if (strchr(blanks, s[0]) || strchr(blanks, s[n - 1]))
		return "blanks around it";
	if (strncmp(s, "unix://", 7) == 0)
		return bad_unix(s + 7);
	if (strncmp(s, "npipe://", 8) == 0)
		return bad_pipe(s + 8);
	if (strncmp(s, "tcp://", 6) == 0)
		return bad_tcp(s + 6);
	if (strstr(s, "://"))
		return "neither tcp:// nor unix:// nor npipe://";
	return bad_tcp(s);
}

/* "/", and other words for it. */
static bool
is_root(const char *s)
{
	while (*s == '/') {
		s += strspn(s, "/");
		if (s[0] == '.' && (s[1] == '/' || s[1] == '\0'))
			s++;
		else if (s[0] == '.' && s[1] == '.' &&
		    (s[2] == '/' || s[2] == '\0'))
			s += 2;
	}
	return *s == '\0';
}

/* NULL, or what is wrong; "" where the description of the key says it. */
static const char *
fault(const struct conf_key *k, const char *value)
{
	uint64_t n;

	switch (k->type) {
	case CONF_NUMBER:
		if (!num_dec(value, k->min, k->max, &n))
			return "";
		return k->flags & CONF_EVEN && n % 2 ? "" : NULL;
	case CONF_DECIMAL:
		return confkey_decimal(value, &n) && n >= k->min && n <= k->max
		    ? NULL
		    : "";
	case CONF_BOOL:
		return is_one_of("true false", value) ? NULL : "";
	case CONF_WORD:
		return is_one_of(k->words, value) ? NULL : "";
	case CONF_TEXT:
		return k->flags & CONF_NOT_BLANK && is_blank(value) ? "blank"
								    : NULL;
	case CONF_PATH:
		if (*value != '/')
			return "";
		return k->flags & CONF_NOT_ROOT && is_root(value) ? "" : NULL;
	case CONF_HOSTPATH:
		return is_blank(value) ? "blank" : NULL;
	case CONF_ENDPOINT:
		return bad_endpoint(value);
	}
	return "";
}

bool
confkey_check(const struct conf_key *k, const char *value, struct buf *why)
{
	const char *bad = fault(k, value);

	if (!bad)
		return true;
	if (*value == '\0')
		buf_adds(why, "no value");
	else if (*bad)
		buf_addf(why, "%s: %s", value, bad);
	else if (k->type == CONF_WORD)
		buf_addf(why, "%s is none of: %s", value, k->words);
	else if (k->type == CONF_BOOL)
		buf_addf(why, "%s is neither true nor false", value);
	else {
		buf_addf(why, "%s is no ", value);
		describe(k, true, why);
	}
	return false;
}
