/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <string.h>

#include "num.h"
#include "out.h"

struct scan {
	const char *p, *at, *end;
	const char *why;
	int depth;
};

static bool value(struct scan *s);

static bool
no(struct scan *s, const char *why)
{
	if (!s->why)
		s->why = why;
	return false;
}

static void
blank(struct scan *s)
{
	while (s->at < s->end && strchr(" \t\n\r", *s->at) && *s->at != '\0')
		s->at++;
}

static bool
next_is(struct scan *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

/* Four hexadecimal digits. */
static bool
hex4(struct scan *s, unsigned *out)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++, s->at++) {
		unsigned char c = s->at < s->end ? (unsigned char)*s->at : 0;
		unsigned digit = c >= '0' && c <= '9' ? c - (unsigned)'0'
		    : c >= 'a' && c <= 'f'            ? c - (unsigned)'a' + 10
		    : c >= 'A' && c <= 'F'            ? c - (unsigned)'A' + 10
						      : 16;

		if (digit == 16)
			return no(s, "bad \\u escape");
		v = v << 4 | digit;
	}
	*out = v;
	return true;
}

static void
add_utf8(struct buf *b, unsigned c)
{
	if (c < 0x80) {
		buf_addc(b, (char)c);
	} else if (c < 0x800) {
		buf_addc(b, (char)(0xc0 | c >> 6));
		buf_addc(b, (char)(0x80 | (c & 63)));
	} else if (c < 0x10000) {
		buf_addc(b, (char)(0xe0 | c >> 12));
		buf_addc(b, (char)(0x80 | (c >> 6 & 63)));
		buf_addc(b, (char)(0x80 | (c & 63)));
	} else {
		buf_addc(b, (char)(0xf0 | c >> 18));
		buf_addc(b, (char)(0x80 | (c >> 12 & 63)));
		buf_addc(b, (char)(0x80 | (c >> 6 & 63)));
		buf_addc(b, (char)(0x80 | (c & 63)));
	}
}

static bool
escape(struct scan *s, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	unsigned c, low;
	const char *hit;

	if (s->at == s->end)
		return no(s, "string without an end");
	hit = *s->at ? strchr(from, *s->at) : NULL;
	if (hit) {
		if (out)
			buf_addc(out, to[hit - from]);
		s->at++;
		return true;
	}
	if (*s->at != 'u')
		return no(s, "unknown escape");
	s->at++;
	if (!hex4(s, &c))
		return false;
	if (c >= 0xdc00 && c <= 0xdfff)
		return no(s, "lone surrogate");
	if (c >= 0xd800 && c <= 0xdbff) {
		if (!next_is(s, '\\') || !next_is(s, 'u') || !hex4(s, &low) ||
		    low < 0xdc00 || low > 0xdfff)
			return no(s, "lone surrogate");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	if (out)
		add_utf8(out, c);
	return true;
}

static bool
string(struct scan *s, struct buf *out)
{
	const char *from;

	if (!next_is(s, '"'))
		return no(s, "string expected");
	for (;;) {
		if (s->at == s->end)
			return no(s, "string without an end");
		if (next_is(s, '"'))
			return true;
		if (next_is(s, '\\')) {
			if (!escape(s, out))
				return false;
			continue;
		}
		if ((unsigned char)*s->at < 0x20)
			return no(s, "control character in a string");
		from = s->at;
		while (s->at < s->end && (unsigned char)*s->at >= 0x20 &&
		    *s->at != '"' && *s->at != '\\')
			s->at++;
		if (out)
			buf_add(out, from, (size_t)(s->at - from));
	}
}

static bool
digits(struct scan *s)
{
	const char *from = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return s->at > from || no(s, "digit expected");
}

static bool
number(struct scan *s)
{
	next_is(s, '-');
	if (!next_is(s, '0') && !digits(s))
		return false;
	if (next_is(s, '.') && !digits(s))
		return false;
	if (next_is(s, 'e') || next_is(s, 'E')) {
		if (!next_is(s, '+'))
			next_is(s, '-');
		return digits(s);
	}
	return true;
}

static bool
word(struct scan *s, const char *w)
{
	size_t n = strlen(w);

	if ((size_t)(s->end - s->at) < n || memcmp(s->at, w, n) != 0)
		return no(s, "value expected");
	s->at += n;
	return true;
}

static bool
list(struct scan *s, char close, bool object)
{
	blank(s);
	if (next_is(s, close))
		return true;
	for (;;) {
		if (object) {
			blank(s);
			if (!string(s, NULL))
				return false;
			blank(s);
			if (!next_is(s, ':'))
				return no(s, "':' expected");
		}
		if (!value(s))
			return false;
		if (next_is(s, close))
			return true;
		if (!next_is(s, ','))
			return no(s, "',' or a closing bracket expected");
	}
}

/* One value and the blanks around it. */
static bool
value(struct scan *s)
{
	bool good;

	blank(s);
	if (s->at == s->end)
		return no(s, "value expected");
	if (*s->at == '{' || *s->at == '[') {
		bool object = *s->at++ == '{';

		if (++s->depth > JSON_DEPTH_MAX)
			return no(s, "nested too deep");
		good = list(s, object ? '}' : ']', object);
		s->depth--;
	} else if (*s->at == '"') {
		good = string(s, NULL);
	} else if (*s->at == 't') {
		good = word(s, "true");
	} else if (*s->at == 'f') {
		good = word(s, "false");
	} else if (*s->at == 'n') {
		good = word(s, "null");
	} else if (*s->at == '-' || (*s->at >= '0' && *s->at <= '9')) {
		good = number(s);
	} else {
		good = no(s, "value expected");
	}
	blank(s);
	return good;
}

bool
json_is_valid(const char *p, size_t n, const char **why, size_t *at)
{
	struct scan s = { .p = p, .at = p, .end = p + n };
	bool good = utf8_is_valid(p, n) || no(&s, "not UTF-8");

	good = good && value(&s) &&
	    (s.at == s.end || no(&s, "bytes after the value"));
	if (!good && why)
		*why = s.why;
	if (!good && at)
		*at = (size_t)(s.at - p);
	return good;
}

static void
trim(struct span *s)
{
	while (s->n > 0 && strchr(" \t\n\r", s->p[s->n - 1]))
		s->n--;
}

struct span
json_member(struct span object, const char *name)
{
	struct span v, found = { NULL, 0 };
	struct buf key = BUF_INIT;
	size_t pos = 0;

	while (json_pair(object, &pos, &key, &v))
		if (key.len == strlen(name) && strcmp(buf_str(&key), name) == 0)
			found = v;
	buf_release(&key);
	return found;
}

/* At the next item of an array or object that begins with open. */
static bool
next_item(struct scan *s, struct span all, size_t pos, char open)
{
	*s = (struct scan){ .at = all.p, .end = all.p + all.n };
	if (!all.p)
		return false;
	blank(s);
	if (pos == 0 && !next_is(s, open))
		return false;
	if (pos > 0)
		s->at = all.p + pos;
	blank(s);
	next_is(s, ',');
	blank(s);
	return true;
}

static bool
item_value(struct scan *s, struct span all, size_t *pos, struct span *out)
{
	out->p = s->at;
	if (!value(s))
		return false;
	out->n = (size_t)(s->at - out->p);
	trim(out);
	*pos = (size_t)(s->at - all.p);
	return true;
}

bool
json_pair(struct span object, size_t *pos, struct buf *key, struct span *out)
{
	struct scan s;

	if (!next_item(&s, object, *pos, '{'))
		return false;
	buf_cut(key, 0);
	if (!string(&s, key))
		return false;
	blank(&s);
	next_is(&s, ':');
	blank(&s);
	return item_value(&s, object, pos, out);
}

bool
json_element(struct span array, size_t *pos, struct span *out)
{
	struct scan s;

	if (!next_item(&s, array, *pos, '[') || s.at == s.end || *s.at == ']')
		return false;
	return item_value(&s, array, pos, out);
}

bool
json_string(struct span v, struct buf *out)
{
	struct scan s = { .at = v.p, .end = v.p + v.n };

	return v.p && string(&s, out);
}

bool
json_is(struct span s, const char *text)
{
	return s.p && s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

bool
json_uint(struct span v, uint64_t *out)
{
	char text[24];

	if (!v.p || v.n >= sizeof text || (v.n > 1 && v.p[0] == '0'))
		return false;
	memcpy(text, v.p, v.n);
	text[v.n] = '\0';
	return num_dec(text, 0, UINT64_MAX, out);
}

void
json_compact(struct span v, struct buf *out)
{
	bool inside = false;

	for (size_t i = 0; i < v.n; i++) {
		if (!inside && strchr(" \t\n\r", v.p[i]))
			continue;
		buf_addc(out, v.p[i]);
		if (inside && v.p[i] == '\\')
			buf_addc(out, v.p[++i]);
		else if (v.p[i] == '"')
			inside = !inside;
	}
}
