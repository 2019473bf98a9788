/* SPDX-License-Identifier: MIT */
#include "ignore.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "mem.h"
#include "path.h"

/*
 * A rule is compiled into the literal bytes it begins with, and a program for
 * what follows. Two kinds of steps can match in several ways: OP_STAR within
 * a name, and those that span directories. When a step fails, only the last
 * of each kind is worth another try, because an earlier one matched as early
 * as it could and what follows it has at least the same choice: this bounds
 * the work, where plain backtracking would be exponential.
 */
enum op_kind {
	OP_BYTE,
	OP_ANY, /* ?: one byte of a name */
	OP_SET, /* [...]: one byte of a name */
	OP_STAR, /* *: bytes of a name, or none */
	OP_DIRS, /* directories with their slashes, or none */
	OP_DEEP, /* the same, but at least one slash */
	OP_REST, /* all that is left */
};

struct op {
	enum op_kind kind;
	unsigned char byte; /* OP_BYTE */
	size_t set; /* OP_SET: index */
};

struct set {
	uint64_t bit[4];
};

struct rule {
	size_t line;
	bool negative;
	bool dir_only;
	bool name_only; /* has no slash: is about names at any depth */
	size_t literal, literal_len; /* where in ignore.literals */
	size_t op, nops;
	size_t least; /* bytes that the program takes at least */
};

struct ignore {
	struct rule *rule;
	size_t n, cap;
	struct op *op;
	size_t nops, op_cap;
	struct set *set;
	size_t nsets, set_cap;
	struct buf literals;
};

/* ---- sets ---- */

static void
set_add(struct set *s, unsigned char c)
{
	s->bit[c / 64] |= UINT64_C(1) << c % 64;
}

static bool
set_has(const struct set *s, unsigned char c)
{
	return s->bit[c / 64] >> c % 64 & 1;
}

/* Classes are those of git, which no locale changes. */
static bool
is_upper(unsigned char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool
is_lower(unsigned char c)
{
	return c >= 'a' && c <= 'z';
}

static bool
is_alpha(unsigned char c)
{
	return is_upper(c) || is_lower(c);
}

static bool
is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_xdigit(unsigned char c)
{
	return is_digit(c) || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

static bool
is_alnum(unsigned char c)
{
	return is_alpha(c) || is_digit(c);
}

static bool
is_blank(unsigned char c)
{
	return c == ' ' || c == '\t';
}

static bool
is_space(unsigned char c)
{
	return is_blank(c) || c == '\n' || c == '\r';
}

static bool
is_print(unsigned char c)
{
	return c >= ' ' && c <= '~';
}

static bool
is_graph(unsigned char c)
{
	return is_print(c) && c != ' ';
}

static bool
is_punct(unsigned char c)
{
	return is_graph(c) && !is_alnum(c);
}

static bool
is_cntrl(unsigned char c)
{
	return c < ' ' || c == 0x7f;
}

static bool
set_add_class(struct set *s, const char *name, size_t n)
{
	static const struct {
		const char *name;
		bool (*has)(unsigned char c);
	} class[] = {
		{ "alnum", is_alnum },
		{ "alpha", is_alpha },
		{ "blank", is_blank },
		{ "cntrl", is_cntrl },
		{ "digit", is_digit },
		{ "graph", is_graph },
		{ "lower", is_lower },
		{ "print", is_print },
		{ "punct", is_punct },
		{ "space", is_space },
		{ "upper", is_upper },
		{ "xdigit", is_xdigit },
	};

	for (size_t i = 0; i < sizeof class / sizeof *class; i++) {
		if (strlen(class[i].name) != n ||
		    memcmp(class[i].name, name, n) != 0)
			continue;
		for (unsigned c = 0; c < 256; c++)
			if (class[i].has((unsigned char)c))
				set_add(s, (unsigned char)c);
		return true;
	}
	return false;
}

/*
 * Fills s from the text behind '['. Returns what is behind the closing ']';
 * NULL when there is none or a class is unknown: such a rule matches nothing.
 */
static const char *
parse_set(const char *p, struct set *s)
{
	const bool negated = *p == '!' || *p == '^';
	const char *first = p + negated, *end = NULL;
	unsigned char from = 0; /* where a range may begin; 0: nowhere */

	*s = (struct set){ .bit = { 0 } };
	for (p = first; p == first || *p != ']'; p++) {
		unsigned char c = (unsigned char)*p;

		if (c == '-' && from != 0 && p[1] != '\0' && p[1] != ']') {
			p++;
			if (*p == '\\')
				p++;
			for (unsigned k = from; k <= (unsigned char)*p; k++)
				set_add(s, (unsigned char)k);
			from = 0;
		} else if (c == '[' && p[1] == ':') {
			if (!end || end < p + 2)
				end = strchr(p + 2, ']');
			if (!end)
				return NULL;
			from = 0; /* and behind ':' it is set anew */
			if (end == p + 2 || end[-1] != ':') {
				set_add(s, c);
			} else if (set_add_class(
				       s, p + 2, (size_t)(end - p - 3))) {
				p = end;
			} else {
				return NULL;
			}
		} else {
			if (c == '\\')
				c = (unsigned char)*++p;
			from = c;
			set_add(s, c);
		}
		if (*p == '\0')
			return NULL;
	}
	for (int i = 0; negated && i < 4; i++)
		s->bit[i] = ~s->bit[i];
	/* Only a slash matches a slash. */
	s->bit['/' / 64] &= ~(UINT64_C(1) << '/' % 64);
	return p + 1;
}

/* ---- compiling ---- */

static void
add_op(struct ignore *ig, struct op op)
{
	if (ig->nops == ig->op_cap)
		ig->op = xgrow(ig->op, &ig->op_cap, sizeof *ig->op);
	ig->op[ig->nops++] = op;
}

static void
add_set(struct ignore *ig, const struct set *s)
{
	if (ig->nsets == ig->set_cap)
		ig->set = xgrow(ig->set, &ig->set_cap, sizeof *ig->set);
	ig->set[ig->nsets] = *s;
	add_op(ig, (struct op){ .kind = OP_SET, .set = ig->nsets++ });
}

/* Compiles the stars at p; returns what is behind. */
static const char *
compile_stars(struct ignore *ig, struct rule *r, const char *p, bool at_start)
{
	const char *end = p + strspn(p, "*");

	if (end - p == 1 || (!at_start && p[-1] != '/')) {
		add_op(ig, (struct op){ .kind = OP_STAR });
	} else if (*end == '\0') {
		add_op(ig, (struct op){ .kind = OP_REST });
	} else if (*end == '/') {
		end++;
		if (ig->nops == r->op || ig->op[ig->nops - 1].kind != OP_DIRS)
			add_op(ig, (struct op){ .kind = OP_DIRS });
	} else if (end[0] == '\\' && end[1] == '/') {
		end += 2;
		r->least++;
		add_op(ig, (struct op){ .kind = OP_DEEP });
	} else {
		add_op(ig, (struct op){ .kind = OP_STAR });
	}
	return end;
}

/* Compiles what begins with a special byte. False: it cannot match. */
static bool
compile_program(struct ignore *ig, struct rule *r, const char *p)
{
	const char *start = p;
	struct set s;

	while (*p != '\0') {
		/* Otherwise no path is long enough. */
		if (r->literal_len + r->least > PATH_BYTES_MAX)
			return false;
		if (*p == '*') {
			/*
			 * git takes the literal bytes away before it looks at
			 * the rest, so ** directly behind them counts as if
			 * it stood behind a slash.
			 */
			p = compile_stars(ig, r, p, p == start);
			continue;
		}
		r->least++;
		if (*p == '?') {
			add_op(ig, (struct op){ .kind = OP_ANY });
			p++;
		} else if (*p == '[') {
			p = parse_set(p + 1, &s);
			if (!p)
				return false;
			add_set(ig, &s);
		} else {
			if (*p == '\\')
				p++;
			if (*p == '\0')
				return false;
			add_op(ig,
			    (struct op){
				.kind = OP_BYTE, .byte = (unsigned char)*p++ });
		}
	}
	return true;
}

/* p is changed. */
static void
add_rule(struct ignore *ig, char *p, size_t line)
{
	struct rule r = { .line = line, .op = ig->nops };
	const size_t sets = ig->nsets;
	size_t len;

	if (*p == '!') {
		r.negative = true;
		p++;
	}
	len = strlen(p);
	if (len > 0 && p[len - 1] == '/') {
		r.dir_only = true;
		p[len - 1] = '\0';
	}
	r.name_only = !strchr(p, '/');
	if (*p == '/')
		p++;
	if (*p == '\0')
		return;
	r.literal_len = strcspn(p, "*?[\\");
	if (!compile_program(ig, &r, p + r.literal_len) ||
	    r.literal_len + r.least > PATH_BYTES_MAX) {
		ig->nops = r.op;
		ig->nsets = sets;
		return;
	}
	r.nops = ig->nops - r.op;
	r.literal = ig->literals.len;
	buf_add(&ig->literals, p, r.literal_len);
	if (ig->n == ig->cap)
		ig->rule = xgrow(ig->rule, &ig->cap, sizeof *ig->rule);
	ig->rule[ig->n++] = r;
}

/* Cuts off the blanks at the end, unless they are escaped. */
static void
trim(char *p)
{
	char *blanks = NULL;

	for (; *p != '\0'; p++) {
		if (*p == ' ') {
			if (!blanks)
				blanks = p;
			continue;
		}
		blanks = NULL;
		if (*p == '\\' && *++p == '\0')
			return;
	}
	if (blanks)
		*blanks = '\0';
}

struct ignore *
ignore_compile(const char *text, size_t n)
{
	struct ignore *ig = xcalloc(1, sizeof *ig);
	char *copy = xmalloc(n + 1), *p, *end, *next;
	size_t line = 1;

	if (n > 0)
		memcpy(copy, text, n);
	copy[n] = '\0';
	p = copy;
	end = copy + n;
	if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		p += 3;
	for (; p < end; p = next, line++) {
		char *lf = memchr(p, '\n', (size_t)(end - p));

		next = lf ? lf + 1 : end;
		if (!lf)
			lf = end;
		*lf = '\0';
		if (lf > p && lf[-1] == '\r')
			lf[-1] = '\0';
		/* A NUL ends the rule, as in git. */
		if (*p == '#')
			continue;
		trim(p);
		add_rule(ig, p, line);
	}
	free(copy);
	return ig;
}

void
ignore_free(struct ignore *ig)
{
	if (!ig)
		return;
	free(ig->rule);
	free(ig->op);
	free(ig->set);
	buf_release(&ig->literals);
	free(ig);
}

bool
ignore_is_empty(const struct ignore *ig)
{
	return ig->n == 0;
}

/* ---- matching ---- */

static bool
takes(const struct ignore *ig, const struct op *op, unsigned char c)
{
	switch (op->kind) {
	case OP_BYTE:
		return op->byte == c;
	case OP_ANY:
		return c != '/';
	case OP_SET:
		return set_has(&ig->set[op->set], c);
	case OP_STAR:
	case OP_DIRS:
	case OP_DEEP:
	case OP_REST:
		break;
	}
	return false;
}

/* Does the program of r take the text from t to end, all of it? */
static bool
run(const struct ignore *ig, const struct rule *r, const char *t,
    const char *end)
{
	const struct op *op = ig->op + r->op;
	const char *star_t = NULL, *dirs_t = NULL; /* where the next try is */
	size_t i = 0, star = 0, dirs = 0; /* 0: nothing to try again */

	for (;;) {
		if (i == r->nops) {
			if (t == end)
				return true;
		} else if (op[i].kind == OP_REST) {
			return true;
		} else if (op[i].kind == OP_STAR) {
			star = ++i;
			star_t = t;
			continue;
		} else if (op[i].kind == OP_DIRS) {
			dirs = ++i;
			dirs_t = t;
			continue;
		} else if (op[i].kind == OP_DEEP) {
			dirs = i + 1;
			dirs_t = t;
		} else if (t < end && takes(ig, &op[i], (unsigned char)*t)) {
			if (*t == '/')
				star = 0; /* it ended there, however tried */
			t++;
			i++;
			continue;
		}
		if (star > 0 && star_t < end && *star_t != '/') {
			t = ++star_t;
			i = star;
			continue;
		}
		if (dirs == 0)
			return false;
		star = 0;
		dirs_t = memchr(dirs_t, '/', (size_t)(end - dirs_t));
		if (!dirs_t)
			return false;
		t = ++dirs_t;
		i = dirs;
	}
}

static bool
matches(
    const struct ignore *ig, const struct rule *r, const char *path, size_t len)
{
	if (len < r->literal_len + r->least ||
	    memcmp(path, buf_str(&ig->literals) + r->literal, r->literal_len) !=
		0)
		return false;
	return run(ig, r, path + r->literal_len, path + len);
}

enum ignore_say
ignore_ask(const struct ignore *ig, const char *path, bool dir, size_t *line)
{
	const char *name = path_base(path);
	const size_t len = strlen(path), name_len = strlen(name);

	for (size_t i = ig->n; i-- > 0;) {
		const struct rule *r = &ig->rule[i];

		if (r->dir_only && !dir)
			continue;
		if (!matches(ig, r, r->name_only ? name : path,
			r->name_only ? name_len : len))
			continue;
		if (line)
			*line = r->line;
		return r->negative ? IGNORE_NO : IGNORE_YES;
	}
	if (line)
		*line = 0;
	return IGNORE_NOTHING;
}
