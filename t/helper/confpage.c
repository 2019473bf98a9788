/* SPDX-License-Identifier: MIT */
/*
 * confpage: the list of keys in sb-conf(5), from the table. The page has it
 * between two comments; after a change of the table put it there again.
 */
#include "confkeys.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
	WIDTH = 72
};

/* Sentences, each on lines of its own. */
static void
fill(const char *s)
{
	size_t column = 0;

	while (*s) {
		size_t n = strcspn(s, " ");

		if (column > 0 && column + 1 + n > WIDTH) {
			putchar('\n');
			column = 0;
		}
		if (column > 0)
			putchar(' ');
		else if (*s == '.' || *s == '\'')
			fputs("\\&", stdout);
		printf("%.*s", (int)n, s);
		column += n + 1;
		if (n > 1 && s[n - 1] == '.') {
			putchar('\n');
			column = 0;
		}
		s += n + strspn(s + n, " ");
	}
	if (column > 0)
		putchar('\n');
}

/* What a map holds by itself: "standard: 1, other: 2". */
static void
add_entries(const struct conf_key *k, struct buf *b)
{
	for (const char *p = k->fallback; *p; p += strlen(p) + 1) {
		buf_addf(b, "%s%s: ", p == k->fallback ? "" : ", ", p);
		p += strlen(p) + 1;
		buf_adds(b, p);
	}
}

static void
print_key(const struct conf_key *k)
{
	struct buf b = BUF_INIT;

	printf(".It Ic %s\n", k->name);
	confkey_describe(k, &b);
	b.data[0] = (char)toupper((unsigned char)b.data[0]);
	if (k->flags & CONF_REQUIRED)
		buf_adds(&b, "; required");
	else if (k->fallback)
		buf_addf(&b, "; %s by default", k->fallback);
	if (k->flags & CONF_NULL)
		buf_adds(&b, "; may be null, which is the default");
	buf_addf(&b, ". %s", k->help);
	if (k->flags & CONF_REQUIRED && k->fallback && confkey_is_map(k)) {
		buf_adds(&b, " By default ");
		add_entries(k, &b);
		buf_addc(&b, '.');
	} else if (k->flags & CONF_REQUIRED && k->fallback) {
		buf_addf(&b, " Without a file it is %s.", k->fallback);
	}
	if (k->flags & CONF_IDLE)
		buf_adds(&b, " Without effect.");
	else if (!confkey_is_read(k))
		buf_adds(&b, " Not read yet.");
	fill(buf_str(&b));
	if (k->old)
		printf("Old name:\n.Ic %s%s", k->old,
		    k->old_times == 2 ? " ,\nwhich is half of it.\n" : " .\n");
	buf_release(&b);
}

int
main(void)
{
	const char *last = "";
	size_t same = 0;

	for (size_t i = 0; i < conf_nkeys; i++) {
		const char *name = conf_keys[i].name;
		size_t n = strcspn(name, ".");

		if (n != same || strncmp(name, last, n) != 0) {
			printf("%s.Ss Section %.*s\n.Bl -tag -width Ds\n",
			    *last ? ".El\n" : "", (int)n, name);
			last = name;
			same = n;
		}
		print_key(&conf_keys[i]);
	}
	puts(".El");
	return fflush(stdout) == 0 ? 0 : 111;
}
