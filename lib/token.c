/* SPDX-License-Identifier: MIT */
#include "token.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash.h"
#include "io.h"
#include "path.h"

static const char *const group_name[] = { "management", "runtime",
	"observability" };

unsigned
token_groups_parse(const char *s)
{
	unsigned groups = 0;

	for (;;) {
		size_t n;
		bool known = false;

		s += strspn(s, " \t");
		if (*s == '\0')
			return groups;
		n = strcspn(s, " \t");
		for (unsigned i = 0; i < 3; i++)
			if (strlen(group_name[i]) == n &&
			    strncmp(s, group_name[i], n) == 0) {
				groups |= 1U << i;
				known = true;
			}
		if (!known)
			return 0;
		s += n;
	}
}

void
token_groups_print(struct buf *b, unsigned groups)
{
	const char *gap = "";

	for (unsigned i = 0; i < 3; i++)
		if (groups & 1U << i) {
			buf_addf(b, "%s%s", gap, group_name[i]);
			gap = " ";
		}
}

static bool
is_blank(const char *s)
{
	return s[strspn(s, " \t\r\f\v")] == '\0';
}

static bool
bad(struct buf *why, const char *path, const char *what)
{
	buf_addf(why, "%s: %s\n", path, what);
	return false;
}

/* All of a file that only we, or root, can have written and others cannot
 * read. */
static bool
read_secret(int dirfd, const char *path, struct buf *text, struct buf *why)
{
	int fd = openat(dirfd, path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	bool good = false;

	if (fd == -1 || fstat(fd, &st) == -1)
		bad(why, path,
		    errno == ELOOP ? "is a symbolic link" : strerror(errno));
	else if (!S_ISREG(st.st_mode))
		bad(why, path, "not a regular file");
	else if (st.st_uid != geteuid() && st.st_uid != 0)
		bad(why, path, "belongs to somebody else");
	else if (st.st_mode & 077)
		bad(why, path, "is open to others: chmod 600");
	else if (io_read_buf(fd, text, TOKEN_MAX * 2) == -1)
		bad(why, path, strerror(errno));
	else if (strlen(buf_str(text)) != text->len)
		bad(why, path, "has a NUL in it");
	else
		good = true;
	io_drop(&fd);
	return good;
}

bool
token_read(int dirfd, const char *path, struct buf *token, struct buf *why)
{
	char *end;

	buf_cut(token, 0);
	if (!read_secret(dirfd, path, token, why))
		return false;
	end = strchr(buf_str(token), '\n');
	if (end && end[1] != '\0')
		return bad(why, path, "has more than one line");
	if (end)
		buf_cut(token, token->len - 1);
	if (is_blank(buf_str(token)))
		return bad(why, path, "has no token");
	return true;
}

bool
token_read_entry(int tokensfd, const char *name, struct buf *token,
    unsigned *groups, struct buf *why)
{
	const char *s;
	char *end, *rest;

	buf_cut(token, 0);
	if (!read_secret(tokensfd, name, token, why))
		return false;
	s = buf_str(token);
	end = strchr(s, '\n');
	rest = end ? strchr(end + 1, '\n') : NULL;
	if (!end || (rest && rest[1] != '\0'))
		return bad(why, name, "is not two lines, token and groups");
	if (rest)
		*rest = '\0';
	*groups = token_groups_parse(end + 1);
	buf_cut(token, (size_t)(end - s));
	if (is_blank(buf_str(token)))
		return bad(why, name, "has no token");
	if (*groups == 0)
		return bad(why, name, "names no group, or an unknown one");
	return true;
}

static void
digest(const char *p, size_t n, unsigned char raw[32])
{
	struct hash h;

	hash_init(&h);
	hash_add(&h, p, n);
	hash_raw(&h, raw);
}

/* In a time that does not depend on where they differ. */
static bool
equal(const unsigned char a[32], const unsigned char b[32])
{
	volatile unsigned char diff = 0;

	for (int i = 0; i < 32; i++)
		diff = (unsigned char)(diff | (a[i] ^ b[i]));
	return diff == 0;
}

unsigned
token_grants(const char *given, size_t n, const char *master, int tokensfd,
    struct buf *why)
{
	struct names names = NAMES_INIT;
	struct buf token = BUF_INIT;
	unsigned char want[32], raw[32];
	unsigned groups, found = 0;

	digest(given, n, want);
	if (master && token_read(AT_FDCWD, master, &token, why)) {
		digest(buf_str(&token), token.len, raw);
		if (equal(raw, want))
			found |= GROUPS_ALL;
	}
	if (tokensfd != -1 && names_read(tokensfd, &names) == -1)
		bad(why, "tokens", strerror(errno));
	for (size_t i = 0; i < names.n; i++) {
		if (!id_is_valid(names.name[i]) ||
		    !token_read_entry(
			tokensfd, names.name[i], &token, &groups, why))
			continue;
		digest(buf_str(&token), token.len, raw);
		if (equal(raw, want))
			found |= groups;
	}
	names_release(&names);
	if (token.data)
		explicit_bzero(token.data, token.len);
	buf_release(&token);
	return found;
}

int
token_make(char hex[65])
{
	unsigned char raw[32];

	if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
		return -1;
	hash_to_hex(raw, hex);
	return 0;
}
