/* SPDX-License-Identifier: MIT */
#include "out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Decodes one character at p; its length, or 0 when it is not UTF-8. */
static size_t
decode(const unsigned char *p, size_t n, uint32_t *out)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = p[0] < 0x80    ? 1
	    : (p[0] & 0xe0) == 0xc0 ? 2
	    : (p[0] & 0xf0) == 0xe0 ? 3
	    : (p[0] & 0xf8) == 0xf0 ? 4
				    : 0;
	uint32_t c;

	if (len == 0 || len > n)
		return 0;
	c = len == 1 ? p[0] : p[0] & (0x7fU >> len);
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fU);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*out = c;
	return len;
}

bool
utf8_is_valid(const void *p, size_t n)
{
	const unsigned char *s = p;
	uint32_t c;

	while (n > 0) {
		size_t len = decode(s, n, &c);

		if (len == 0)
			return false;
		s += len;
		n -= len;
	}
	return true;
}

static void
string(struct buf *b, const char *s, size_t n, bool ascii)
{
	static const char plain[] = "btn_fr";
	const unsigned char *p = (const unsigned char *)s;

	buf_addc(b, '"');
	while (n > 0) {
		uint32_t c = 0xfffd;
		size_t len = decode(p, n, &c);

		if (len == 0)
			len = 1;
		if (c == '"' || c == '\\')
			buf_addf(b, "\\%c", (int)c);
		else if (c >= 8 && c <= 13 && c != 11)
			buf_addf(b, "\\%c", plain[c - 8]);
		else if (c < 0x20 || c == 0x7f)
			buf_addf(b, "\\u%04" PRIx32, c);
		else if (c < 0x80 || !ascii)
			buf_add(b, p, len);
		else if (c < 0x10000)
			buf_addf(b, "\\u%04" PRIx32, c);
		else
			buf_addf(b, "\\u%04" PRIx32 "\\u%04" PRIx32,
			    0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
		p += len;
		n -= len;
	}
	buf_addc(b, '"');
}

/* Bytes that string writes for a character of len bytes. */
static size_t
cost(uint32_t c, size_t len)
{
	if (c == '"' || c == '\\' || (c >= 8 && c <= 13 && c != 11))
		return 2;
	return c < 0x20 || c == 0x7f ? 6 : len;
}

size_t
out_fit(const char *s, size_t n, size_t *room)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t fit = 0;

	while (fit < n) {
		uint32_t c = 0xfffd;
		size_t len = decode(p + fit, n - fit, &c);

		if (len == 0)
			len = 1;
		if (cost(c, len) > *room)
			break;
		*room -= cost(c, len);
		fit += len;
	}
	return fit;
}

void
out_string(struct buf *b, const char *s, size_t n)
{
	string(b, s, n, false);
}

void
out_string_ascii(struct buf *b, const char *s, size_t n)
{
	string(b, s, n, true);
}

void
out_key(struct buf *b, const char *name)
{
	char last = b->len ? b->data[b->len - 1] : '{';

	if (last != '{' && last != '[' && last != ':' && last != ',')
		buf_addc(b, ',');
	out_string(b, name, strlen(name));
	buf_addc(b, ':');
}

void
out_str(struct buf *b, const char *name, const char *value)
{
	out_key(b, name);
	out_string(b, value, strlen(value));
}

void
out_text(struct buf *b, const char *name, const char *value)
{
	const size_t n = strlen(value);

	out_key(b, name);
	string(b, value, n, !utf8_is_valid(value, n));
}

void
out_num(struct buf *b, const char *name, uint64_t value)
{
	out_key(b, name);
	buf_addf(b, "%" PRIu64, value);
}

void
out_bool(struct buf *b, const char *name, bool value)
{
	out_key(b, name);
	buf_adds(b, value ? "true" : "false");
}

void
out_null(struct buf *b, const char *name)
{
	out_key(b, name);
	buf_adds(b, "null");
}

static void
base64(struct buf *b, const unsigned char *p, size_t n)
{
	static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "abcdefghijklmnopqrstuvwxyz0123456789+/";

	for (; n > 0; p += 3, n -= n < 3 ? n : 3) {
		uint32_t v = (uint32_t)p[0] << 16 |
		    (n > 1 ? (uint32_t)p[1] << 8 : 0) | (n > 2 ? p[2] : 0U);

		buf_addc(b, set[v >> 18]);
		buf_addc(b, set[v >> 12 & 63]);
		buf_addc(b, n > 1 ? set[v >> 6 & 63] : '=');
		buf_addc(b, n > 2 ? set[v & 63] : '=');
	}
}

void
out_base64(struct buf *b, const char *name, const void *p, size_t n)
{
	struct buf key = BUF_INIT;

	buf_addf(&key, "%s_b64", name);
	out_key(b, buf_str(&key));
	buf_release(&key);
	buf_addc(b, '"');
	base64(b, p, n);
	buf_addc(b, '"');
}

void
out_path(struct buf *b, const char *name, const char *path)
{
	size_t n = strlen(path);

	if (utf8_is_valid(path, n))
		out_str(b, name, path);
	else
		out_base64(b, name, path, n);
}

void
out_now(struct buf *b, const char *name)
{
	char day[32], text[80];
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof text, "%s.%03ldZ", day, now.tv_nsec / 1000000);
	out_str(b, name, text);
}
