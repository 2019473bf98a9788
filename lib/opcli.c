/* SPDX-License-Identifier: MIT */
#include "opcli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "json.h"
#include "mem.h"
#include "num.h"
#include "out.h"

#define PROGRESS "--progress"

const char *
opcli_name(const struct op_arg *a)
{
	return a->label ? a->label : a->flag;
}

static bool
is(const char *name, const char *s, size_t n)
{
	return strlen(name) == n && memcmp(name, s, n) == 0;
}

const struct op_arg *
opcli_flag(const struct op *op, const char *flag, size_t n)
{
	for (size_t i = 0; i < op->nargs; i++) {
		const struct op_arg *a = &op->arg[i];

		if (a->label)
			continue;
		if (is(a->flag, flag, n))
			return a;
		for (size_t j = 0; j < a->aliases.n; j++)
			if (is(a->aliases.v[j], flag, n))
				return a;
	}
	return NULL;
}

bool
opcli_has_progress(const struct op *op)
{
	bool found = false;

	for (size_t i = 0; !found && i < op->host.argv.n; i++) {
		struct op_word w;

		found = op_word_parse(op->host.argv.v[i], &w) && w.name &&
		    strcmp(w.name, "progress") == 0;
		op_word_release(&w);
	}
	return found;
}

/* ---- values ---- */

static bool
must_be(const struct op_arg *a, const char *what, struct buf *why)
{
	buf_addf(why, "%s must be %s", opcli_name(a), what);
	return false;
}

/* A sign + and zeros in front are accepted. */
static bool
take_integer(
    const struct op_arg *a, const char *s, struct buf *out, struct buf *why)
{
	uint64_t v;

	if (*s == '+')
		s++;
	while (*s == '0' && s[1])
		s++;
	if (!num_dec(s, 0, UINT64_MAX, &v))
		return must_be(a, "an unsigned integer", why);
	buf_addf(out, "%" PRIu64, v);
	return true;
}

/*
 * The shortest digits that give the same number again, and a sign that it is
 * no integer.
 */
static void
print_float(double v, struct buf *out)
{
	char text[40], *e = text;
	long exponent = 0;
	int digits = 1;

	for (; digits <= 17; digits++) {
		double again;

		snprintf(text, sizeof text, "%.*e", digits - 1, v);
		e = strchr(text, 'e');
		exponent = strtol(e + 1, NULL, 10);
		again = strtod(text, NULL);
		if (again >= v && again <= v)
			break;
	}
	if (exponent < -5 || exponent > 15) {
		buf_addf(out, "%.*se%ld", (int)(e - text), text, exponent);
		return;
	}
	digits = digits - 1 > exponent ? digits - 1 - (int)exponent : 1;
	buf_addf(out, "%.*f", digits, v);
}

static bool
is_decimal(const char *s)
{
	size_t n, m;

	s += *s == '+' || *s == '-';
	n = strspn(s, "0123456789");
	s += n;
	m = *s == '.' ? strspn(s + 1, "0123456789") : 0;
	if (*s == '.')
		s += m + 1;
	if (n + m == 0)
		return false;
	if (*s != 'e' && *s != 'E')
		return *s == '\0';
	s++;
	s += *s == '+' || *s == '-';
	return *s && s[strspn(s, "0123456789")] == '\0';
}

static bool
is_infinite(const char *s)
{
	static const char *const word[] = { "inf", "infinity", "nan" };

	s += *s == '+' || *s == '-';
	for (size_t i = 0; i < sizeof word / sizeof *word; i++)
		if (strcasecmp(s, word[i]) == 0)
			return true;
	return false;
}

static bool
take_float(
    const struct op_arg *a, const char *s, struct buf *out, struct buf *why)
{
	double v;

	if (is_infinite(s))
		return must_be(a, "finite", why);
	if (!is_decimal(s))
		return must_be(a, "a finite number", why);
	v = strtod(s, NULL);
	if (!isfinite(v))
		return must_be(a, "finite", why);
	print_float(v, out);
	return true;
}

static bool
take_array(
    const struct op_arg *a, const char *s, struct buf *out, struct buf *why)
{
	size_t n = strlen(s);

	if (!json_is_valid(s, n, NULL, NULL) || s[strspn(s, " \t\n\r")] != '[')
		return must_be(a, "a JSON array", why);
	json_compact((struct span){ s, n }, out);
	return true;
}

static bool
take(const struct op *op, struct opcli *cli, const struct op_arg *a,
    const char *s, struct buf *why)
{
	struct buf *out = &cli->value[a - op->arg];

	if (out->len > 0) {
		buf_addf(why, "%s was provided more than once", opcli_name(a));
		return false;
	}
	switch (a->kind) {
	case OP_INTEGER:
		return take_integer(a, s, out, why);
	case OP_FLOAT:
		return take_float(a, s, out, why);
	case OP_ARRAY:
		return take_array(a, s, out, why);
	case OP_STRING:
	case OP_PATH:
	case OP_KINDS:
		break;
	}
	if (!utf8_is_valid(s, strlen(s)))
		return must_be(a, "valid UTF-8", why);
	out_string(out, s, strlen(s));
	return true;
}

/* ---- words ---- */

static const struct op_arg *
next_positional(const struct op *op, const struct opcli *cli)
{
	for (size_t i = 0; i < op->nargs; i++)
		if (op->arg[i].label && cli->value[i].len == 0)
			return &op->arg[i];
	return NULL;
}

/* word[*i] begins with "--". */
static bool
take_flag(const struct op *op, char *const *word, size_t n, size_t *i,
    struct opcli *cli, struct buf *why)
{
	const char *flag = word[*i], *is_at = strchr(flag, '=');
	const struct op_arg *a = opcli_flag(op, flag, strlen(flag));

	if (a && *i + 1 == n) {
		buf_addf(why, "%s requires a value", flag);
		return false;
	}
	if (a)
		return take(op, cli, a, word[++*i], why);
	if (is_at)
		a = opcli_flag(op, flag, (size_t)(is_at - flag));
	if (a)
		return take(op, cli, a, is_at + 1, why);
	buf_addf(why, "unknown flag for %s: %s", op->name, flag);
	return false;
}

static bool
take_words(const struct op *op, char *const *word, size_t n, struct opcli *cli,
    struct buf *why)
{
	bool progress = opcli_has_progress(op), plain = false, good = true;

	for (size_t i = 0; good && i < n; i++) {
		const struct op_arg *a;

		if (!plain && strcmp(word[i], "--") == 0) {
			plain = true;
			continue;
		}
		if (!plain && progress && strcmp(word[i], PROGRESS) == 0) {
			cli->progress = true;
			continue;
		}
		if (!plain && strncmp(word[i], "--", 2) == 0) {
			good = take_flag(op, word, n, &i, cli, why);
			continue;
		}
		a = next_positional(op, cli);
		if (a) {
			good = take(op, cli, a, word[i], why);
			continue;
		}
		buf_addf(why, "unexpected positional argument for %s: %s",
		    op->name, word[i]);
		good = false;
	}
	return good;
}

bool
opcli_parse(const struct op *op, char *const *word, size_t n, struct opcli *out,
    struct buf *why)
{
	buf_cut(why, 0);
	*out = (struct opcli){
		.value = xcalloc(op->nargs + 1, sizeof *out->value),
		.n = op->nargs,
	};
	if (!take_words(op, word, n, out, why))
		return false;
	for (size_t i = 0; i < op->nargs; i++) {
		const struct op_arg *a = &op->arg[i];

		if (!a->required || a->selector || out->value[i].len > 0)
			continue;
		buf_addf(why, "%s is required for %s", opcli_name(a), op->name);
		return false;
	}
	return true;
}

void
opcli_release(struct opcli *cli)
{
	for (size_t i = 0; i < cli->n; i++)
		buf_release(&cli->value[i]);
	free(cli->value);
	*cli = (struct opcli)OPCLI_INIT;
}

void
opcli_print(const struct op *op, const struct opcli *cli, struct buf *out)
{
	buf_addc(out, '{');
	for (size_t i = 0; i < op->nargs; i++)
		if (!op->arg[i].selector && cli->value[i].len > 0) {
			out_key(out, op->arg[i].name);
			buf_adds(out, buf_str(&cli->value[i]));
		}
	for (size_t i = 0; i < op->nargs; i++)
		if (!op->arg[i].selector && cli->value[i].len == 0 &&
		    op->arg[i].client_default) {
			out_key(out, op->arg[i].name);
			buf_adds(out, op->arg[i].client_default);
		}
	buf_addc(out, '}');
}
