/* SPDX-License-Identifier: MIT */
#include "conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "num.h"

static const char blanks[] = " \t";

static bool
is_several(const struct conf_key *k)
{
	return k->flags & CONF_LIST || confkey_is_map(k);
}

static void
add_item(struct conf *c, const struct conf_key *k, const char *name,
    const char *value)
{
	if (c->nitems == c->cap)
		c->item = xgrow(c->item, &c->cap, sizeof *c->item);
	c->item[c->nitems++] =
	    (struct conf_item){ .key = k, .name = name, .value = value };
}

static unsigned
hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (unsigned)(at - digits) : 16;
}

/*
 * The text in quotes that s is, in its own place, as conf_add_line writes it.
 * NULL: it is none.
 */
static char *
unquote(char *s)
{
	char *to = s;

	for (char *p = s + 1; *p; p++) {
		if (*p == '"') {
			*to = '\0';
			return p[1] == '\0' ? s : NULL;
		}
		if (*p != '\\') {
			*to++ = *p;
			continue;
		}
		p++;
		if (*p == '\\' || *p == '"') {
			*to++ = *p;
		} else if (*p == 'x' && hex(p[1]) < 16 && hex(p[2]) < 16) {
			*to = (char)(hex(p[1]) << 4 | hex(p[2]));
			if (*to++ == '\0')
				return NULL;
			p += 2;
		} else {
			return NULL;
		}
	}
	return NULL;
}

void
conf_add_line(struct buf *b, const char *name, const char *value)
{
	const size_t n = strlen(value);
	bool plain = n > 0 && !strchr(blanks, value[0]) && value[0] != '"' &&
	    !strchr(blanks, value[n - 1]);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			plain = false;
	buf_addf(b, "%s ", name);
	if (plain) {
		buf_addf(b, "%s\n", value);
		return;
	}
	buf_addc(b, '"');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)value[i];

		if (c < 0x20 || c == 0x7f)
			buf_addf(b, "\\x%02x", c);
		else if (c == '"' || c == '\\')
			buf_addf(b, "\\%c", c);
		else
			buf_addc(b, (char)c);
	}
	buf_adds(b, "\"\n");
}

static void
trim_end(char *s, size_t n)
{
	while (n > 0 && strchr(blanks, s[n - 1]))
		n--;
	s[n] = '\0';
}

/* Has the map a value for this name already? */
static bool
has_item(const struct conf *c, const struct conf_key *k, const char *name)
{
	for (size_t i = 0; i < c->nitems; i++)
		if (c->item[i].key == k && strcmp(c->item[i].name, name) == 0)
			return true;
	return false;
}

/* Always false. Messages are made only here: reading must stay cheap. */
static bool
refuse(struct buf *why, size_t line, const char *name, const char *what)
{
	buf_addf(why, CONF_NAME ": line %zu: %s%s%s", line, name,
	    *name ? ": " : "", what);
	return false;
}

/* Takes a value for row k, in which item (n bytes) is in the star's place. */
static const char *
take(struct conf *c, bool *seen, const struct conf_key *k, char *item, size_t n,
    const char *value)
{
	char after;
	bool twice;

	if (is_several(k) && c->nitems == CONF_ITEMS_MAX)
		return "more lines of lists and maps than the 4096 that there "
		       "may be";
	if (item) {
		after = item[n];
		item[n] = '\0';
		twice = has_item(c, k, item);
		if (twice)
			item[n] = after;
	} else {
		twice = seen[k - conf_keys] && !(k->flags & CONF_LIST);
	}
	if (twice)
		return "given twice";
	seen[k - conf_keys] = true;
	if (is_several(k))
		add_item(c, k, item ? item : "", value);
	else
		c->value[k->which] = value;
	return NULL;
}

/* One line, of n bytes, followed by a NUL; changed. */
static bool
parse_line(struct conf *c, bool *seen, char *text, size_t n, size_t line,
    struct buf *why)
{
	char *name = text + strspn(text, blanks), *v;
	struct buf what = BUF_INIT;
	const struct conf_key *k;
	const char *item, *bad;
	size_t len;

	if (strlen(text) != n)
		return refuse(why, line, "", "a NUL byte");
	if (*name == '\0' || *name == '#')
		return true;
	trim_end(name, strlen(name));
	v = name + strcspn(name, blanks);
	if (*v != '\0')
		*v++ = '\0';
	v += strspn(v, blanks);
	k = confkey_find(name, &item, &len);
	if (!k)
		return refuse(why, line, name, "no such key");
	if (*v == '\0')
		return refuse(why, line, name, "no value");
	if (*v == '"') {
		v = unquote(v);
		if (!v)
			return refuse(why, line, name, "no text in quotes");
	}
	if (!confkey_check(k, v, &what)) {
		refuse(why, line, name, buf_str(&what));
		buf_release(&what);
		return false;
	}
	bad = take(c, seen, k, item ? name + (item - name) : NULL, len, v);
	return bad ? refuse(why, line, name, bad) : true;
}

/* Is anything of this list or map, or of what it belongs to, in the first n? */
static bool
is_given(const struct conf *c, size_t n, const struct conf_key *k)
{
	size_t len = strcspn(k->name, "*");

	for (size_t i = 0; i < n; i++)
		if (strncmp(c->item[i].key->name, k->name, len) == 0)
			return true;
	return false;
}

static void
add_fallback_items(struct conf *c, const struct conf_key *k)
{
	for (const char *p = k->fallback; *p; p += strlen(p) + 1) {
		const char *name = "";

		if (confkey_is_map(k)) {
			name = p;
			p += strlen(p) + 1;
		}
		add_item(c, k, name, p);
	}
}

static void
add_fallbacks(struct conf *c)
{
	const size_t given = c->nitems;

	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];

		if (k->which == CONF_NONE || !k->fallback)
			continue;
		if (is_several(k)) {
			if (!is_given(c, given, k))
				add_fallback_items(c, k);
		} else if (!c->value[k->which]) {
			c->value[k->which] = k->fallback;
		}
	}
}

bool
conf_parse(const char *text, size_t n, struct conf *c, struct buf *why)
{
	bool *seen = xcalloc(conf_nkeys, sizeof *seen);
	char *p, *end;
	bool good = true;

	memset(c, 0, sizeof *c);
	c->text = xmalloc(n + 1);
	if (n > 0)
		memcpy(c->text, text, n);
	p = c->text;
	end = p + n;
	*end = '\0';
	for (size_t line = 1; good && p < end; line++) {
		char *lf = memchr(p, '\n', (size_t)(end - p));

		if (!lf)
			lf = end;
		*lf = '\0';
		good = parse_line(c, seen, p, (size_t)(lf - p), line, why);
		p = lf + 1;
	}
	free(seen);
	if (!good) {
		conf_release(c);
		return false;
	}
	add_fallbacks(c);
	return true;
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
	if (!conf_parse(buf_str(&text), text.len, c, why)) {
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

	conf_parse("", 0, c, &why);
	buf_release(&why);
}

void
conf_release(struct conf *c)
{
	free(c->text);
	free(c->item);
	memset(c, 0, sizeof *c);
}

const char *
conf_word(const struct conf *c, enum conf_which which)
{
	return c->value[which];
}

bool
conf_is(const struct conf *c, enum conf_which which, const char *word)
{
	return c->value[which] && strcmp(c->value[which], word) == 0;
}

uint64_t
conf_number(const struct conf *c, enum conf_which which)
{
	uint64_t n = 0;

	/* It was one when it was read. */
	if (c->value[which])
		num_dec(c->value[which], 0, UINT64_MAX, &n);
	return n;
}

const struct conf_item *
conf_next(const struct conf *c, enum conf_which which, size_t *at)
{
	while (*at < c->nitems) {
		const struct conf_item *it = &c->item[(*at)++];

		if (it->key->which == which)
			return it;
	}
	return NULL;
}
