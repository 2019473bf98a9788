/* SPDX-License-Identifier: MIT */
#include "gitpatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "err.h"
#include "mem.h"

/* ---- names ---- */

static bool
needs_quotes(char c)
{
	unsigned char u = (unsigned char)c;

	return u < 0x20 || u >= 0x7f || u == '"' || u == '\\';
}

static void
add_quoted(struct buf *out, char c)
{
	static const char plain[] = "\a\b\t\n\v\f\r\"\\",
			  letter[] = "abtnvfr\"\\";
	const char *at = strchr(plain, c);

	if (!needs_quotes(c))
		buf_addc(out, c);
	else if (at)
		buf_addf(out, "\\%c", letter[at - plain]);
	else
		buf_addf(out, "\\%03o", (unsigned char)c);
}

void
git_quote(struct buf *out, bool force, const char *prefix, const char *path,
    const char *tail)
{
	bool quotes = force;

	for (const char *p = path; *p && !quotes; p++)
		quotes = needs_quotes(*p);
	if (quotes)
		buf_addc(out, '"');
	buf_adds(out, prefix);
	for (const char *p = path; *p; p++)
		add_quoted(out, *p);
	buf_adds(out, tail);
	if (quotes)
		buf_addc(out, '"');
}

/* What some file systems drop from the end of a name, or treat as its end. */
static bool
name_ends(const char *p, const char *ends)
{
	p += strspn(p, ". ");
	return *p == '\0' || strchr(ends, *p);
}

static bool
is_dotgit(const char *name)
{
	if (strncasecmp(name, ".git", 4) == 0)
		return name_ends(name + 4, "/\\:");
	if (strncasecmp(name, "git~1", 5) == 0)
		return name_ends(name + 5, "/\\:");
	return false;
}

/* The short names are those that NTFS gives to a file of that long name. */
static bool
is_dotgitmodules(const char *name)
{
	size_t i = 0;

	if (strncasecmp(name, ".gitmodules", 11) == 0)
		return name[11] == '/' || name_ends(name + 11, ":");
	if (strncasecmp(name, "gitmod~", 7) == 0 && name[7] >= '1' &&
	    name[7] <= '4')
		return name_ends(name + 8, ":");
	while (i < 6 && strncasecmp(&name[i], &"gi7eba"[i], 1) == 0)
		i++;
	if (name[i] != '~' || name[i + 1] < '1' || name[i + 1] > '9')
		return false;
	for (i += 2; i < 8; i++)
		if (name[i] < '0' || name[i] > '9')
			return false;
	return name_ends(name + 8, ":");
}

bool
git_refuses(const char *path, bool link)
{
	/* A backslash ends a name elsewhere, so git looks behind it, too. */
	for (const char *name = path;; name++) {
		if (is_dotgit(name) || (link && is_dotgitmodules(name)))
			return true;
		name = strpbrk(name, "/\\");
		if (!name)
			return false;
	}
}

/* ---- object ids ---- */

void
git_oid_init(struct git_oid *o, uint64_t size)
{
	char head[32];
	int n = snprintf(head, sizeof head, "blob %" PRIu64, size);

	SHA1_Init(&o->ctx);
	SHA1_Update(&o->ctx, head, (size_t)n + 1);
}

void
git_oid_add(struct git_oid *o, const void *p, size_t n)
{
	if (n > 0)
		SHA1_Update(&o->ctx, p, n);
}

void
git_oid_hex(struct git_oid *o, char hex[GIT_OID_HEX + 1])
{
	static const char digit[] = "0123456789abcdef";
	unsigned char raw[SHA_DIGEST_LENGTH];

	SHA1_Final(raw, &o->ctx);
	for (size_t i = 0; i < sizeof raw; i++) {
		hex[2 * i] = digit[raw[i] >> 4];
		hex[2 * i + 1] = digit[raw[i] & 15];
	}
	hex[GIT_OID_HEX] = '\0';
}

/* ---- binary hunks ---- */

static void *
z_alloc(void *arg, unsigned n, unsigned size)
{
	(void)arg;
	return xcalloc(n, size);
}

static void
z_free(void *arg, void *p)
{
	(void)arg;
	free(p);
}

/* Its length as a letter, then five digits for each four bytes. */
static void
add_line(struct git_literal *g, struct buf *out)
{
	static const char digit[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz"
				    "!#$%&()*+-;<=>?@^_`{|}~";
	char five[6] = "";

	if (g->n == 0)
		return;
	memset(g->line + g->n, 0, sizeof g->line - g->n);
	buf_addc(out, (char)(g->n <= 26 ? 'A' + g->n - 1 : 'a' + g->n - 27));
	for (size_t i = 0; i < g->n; i += 4) {
		uint32_t word = (uint32_t)g->line[i] << 24 |
		    (uint32_t)g->line[i + 1] << 16 |
		    (uint32_t)g->line[i + 2] << 8 | g->line[i + 3];

		for (int at = 4; at >= 0; at--) {
			five[at] = digit[word % 85];
			word /= 85;
		}
		buf_adds(out, five);
	}
	buf_addc(out, '\n');
	g->n = 0;
}

static void
run(struct git_literal *g, struct buf *out, int flush)
{
	do {
		g->z.next_out = g->line + g->n;
		g->z.avail_out = (unsigned)(sizeof g->line - g->n);
		if (deflate(&g->z, flush) == Z_STREAM_ERROR)
			die(EXIT_BUG, "deflate refused its input");
		g->n = sizeof g->line - g->z.avail_out;
		if (g->n == sizeof g->line)
			add_line(g, out);
	} while (g->z.avail_out == 0);
}

void
git_literal_begin(struct git_literal *g, struct buf *out, uint64_t size)
{
	*g =
	    (struct git_literal){ .z = { .zalloc = z_alloc, .zfree = z_free } };
	/* The level that git takes. */
	if (deflateInit(&g->z, Z_BEST_SPEED) != Z_OK)
		die(EXIT_BUG, "deflateInit refused its version");
	buf_addf(out, "literal %" PRIu64 "\n", size);
}

void
git_literal_add(struct git_literal *g, struct buf *out, const void *p, size_t n)
{
	const unsigned char *at = p;

	while (n > 0) {
		unsigned part = n < 1u << 30 ? (unsigned)n : 1u << 30;

		/* zlib's type wants it writable, and does not write. */
		g->z.next_in = (unsigned char *)(uintptr_t)at;
		g->z.avail_in = part;
		run(g, out, Z_NO_FLUSH);
		at += part;
		n -= part;
	}
}

void
git_literal_end(struct git_literal *g, struct buf *out)
{
	run(g, out, Z_FINISH);
	add_line(g, out);
	deflateEnd(&g->z);
	buf_addc(out, '\n');
}
