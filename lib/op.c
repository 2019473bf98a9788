/* SPDX-License-Identifier: MIT */
#include "op.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "json.h"
#include "mem.h"

static const char *const set_name[OP_SETS] = {
	[OP_MANAGEMENT] = "management",
	[OP_RUNTIME] = "runtime",
	[OP_OBSERVABILITY] = "observability",
	[OP_INTERNAL] = "internal",
};

static const char *const kind_name[OP_KINDS] = {
	[OP_STRING] = "string",
	[OP_PATH] = "path",
	[OP_INTEGER] = "integer",
	[OP_FLOAT] = "float",
	[OP_ARRAY] = "json_array",
};

static const char *const scope_name[OP_SCOPES] = {
	[OP_SYSTEM] = "system",
	[OP_SANDBOX] = "sandbox_required",
	[OP_BOTH] = "system_or_sandbox",
};

static const char *const reply_name[OP_REPLIES] = {
	[OP_OBJECT] = "object",
	[OP_LINES] = "lines",
	[OP_TEXT] = "text",
	[OP_NONE] = "none",
};

/* Values that every operation has. */
static const char *const given[] = { "sandbox_id", "request_id", "progress" };

/* Where the reader is, and what went wrong. */
struct reading {
	struct buf *why;
	const char *file;
	struct buf path; /* of members: "args[2].kind" */
};

const char *
op_set_name(enum op_set set)
{
	return set_name[set];
}

const char *
op_kind_name(enum op_kind kind)
{
	return kind_name[kind];
}

const char *
op_scope_name(enum op_scope scope)
{
	return scope_name[scope];
}

bool
op_name_is_valid(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= ID_MAX && *s >= 'a' && *s <= 'z' &&
	    strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

/* ---- lists of strings ---- */

static void
strings_add(struct op_strings *s, char *text)
{
	while (s->n + 1 >= s->cap)
		s->v = xgrow(s->v, &s->cap, sizeof *s->v);
	s->v[s->n++] = text;
	s->v[s->n] = NULL;
}

static void
strings_release(struct op_strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	*s = (struct op_strings){ .v = NULL };
}

/* ---- words ---- */

/* "{" name "}" at s: its length, or 0. */
static size_t
hole_at(const char *s, char name[ID_MAX + 1])
{
	size_t n;

	if (*s != '{')
		return 0;
	n = strspn(s + 1, "abcdefghijklmnopqrstuvwxyz0123456789_");
	if (n == 0 || n > ID_MAX || s[1 + n] != '}')
		return 0;
	memcpy(name, s + 1, n);
	name[n] = '\0';
	return n + 2;
}

bool
op_hole(const char **s, size_t *before, char name[ID_MAX + 1])
{
	for (const char *p = *s; *p; p++) {
		size_t n = hole_at(p, name);

		if (n > 0) {
			*before = (size_t)(p - *s);
			*s = p + n;
			return true;
		}
	}
	return false;
}

/* inside: what is between "{" and "}". */
static bool
special(struct op_word *w, char *inside)
{
	char *gap = strchr(inside, ' '), *is;

	if (*inside == '<') {
		w->kind = OP_WORD_INPUT;
		w->name = xstrdup(inside + 1);
	} else if (!gap) {
		w->kind = OP_WORD_VALUE;
		w->name = xstrdup(inside);
	} else if (*inside == '-') {
		*gap = '\0';
		w->kind = OP_WORD_FLAG;
		w->word = xstrdup(inside);
		w->name = xstrdup(gap + 1);
	} else if (*inside == '?') {
		*gap = '\0';
		is = strchr(inside, '=');
		if (is) {
			*is = '\0';
			w->value = xstrdup(is + 1);
		}
		w->kind = OP_WORD_IF;
		w->name = xstrdup(inside + 1);
		w->word = xstrdup(gap + 1);
	} else {
		return false;
	}
	return op_name_is_valid(w->name);
}

bool
op_word_parse(const char *s, struct op_word *w)
{
	size_t n = strlen(s);
	bool good = true;
	char *inside;

	*w = (struct op_word){ .kind = OP_WORD_PLAIN };
	if (n > 2 && *s == '{' && strchr(s, '}') == s + n - 1 &&
	    !strchr(s + 1, '{')) {
		inside = xstrndup(s + 1, n - 2);
		good = special(w, inside);
		free(inside);
	} else {
		char name[ID_MAX + 1];
		const char *p = s;
		size_t before;

		w->word = xstrdup(s);
		/* Braces are for holes only. */
		while (op_hole(&p, &before, name))
			if (memchr(p - before - strlen(name) - 2, '{', before))
				good = false;
		good = good && !strpbrk(p, "{}");
	}
	if (!good)
		op_word_release(w);
	return good;
}

void
op_word_release(struct op_word *w)
{
	free(w->name);
	free(w->word);
	free(w->value);
	*w = (struct op_word){ .name = NULL };
}

/* ---- reading ---- */

static bool
bad(struct reading *r, const char *what)
{
	if (r->why->len == 0)
		buf_addf(r->why, "%s: %s%s%s", r->file, buf_str(&r->path),
		    r->path.len ? ": " : "", what);
	return false;
}

static bool
take_string(struct reading *r, struct span v, char **out)
{
	struct buf b = BUF_INIT;

	if (*out)
		return bad(r, "stands there twice");
	if (!json_string(v, &b) || strlen(buf_str(&b)) != b.len) {
		buf_release(&b);
		return bad(r, "must be a string, without NUL");
	}
	buf_addc(&b, '\0');
	*out = buf_steal(&b);
	return true;
}

static bool
take_text(struct reading *r, struct span v, char **out)
{
	if (!take_string(r, v, out))
		return false;
	return **out || bad(r, "must not be empty");
}

static bool
take_bool(struct reading *r, struct span v, bool *out)
{
	*out = json_is(v, "true");
	return *out || json_is(v, "false") || bad(r, "must be true or false");
}

static bool
take_number(struct reading *r, struct span v, char **out)
{
	if (!strchr("-0123456789", *v.p))
		return bad(r, "must be a number");
	*out = xstrndup(v.p, v.n);
	return true;
}

/* Which of names; n when none. */
static size_t
which(const char *const *names, size_t n, const char *s)
{
	size_t i = 0;

	while (i < n && strcmp(names[i], s) != 0)
		i++;
	return i;
}

static bool
take_choice(struct reading *r, struct span v, const char *const *names,
    size_t n, size_t *out)
{
	char *text = NULL;

	if (!take_string(r, v, &text))
		return false;
	*out = which(names, n, text);
	free(text);
	return *out < n || bad(r, "unknown");
}

static bool
take_strings(struct reading *r, struct span v, struct op_strings *out)
{
	struct span e;
	size_t pos = 0;

	if (*v.p != '[')
		return bad(r, "must be an array of strings");
	while (json_element(v, &pos, &e)) {
		char *text = NULL;

		if (!take_string(r, e, &text))
			return false;
		strings_add(out, text);
	}
	return out->n > 0 || bad(r, "must not be empty");
}

/* An object of strings, as name and value in turns. */
static bool
take_with(struct reading *r, struct span v, struct op_strings *out)
{
	struct buf key = BUF_INIT;
	struct span e;
	size_t pos = 0;
	bool good = *v.p == '{' || bad(r, "must be an object");

	while (good && json_pair(v, &pos, &key, &e)) {
		char *text = NULL;

		good = take_string(r, e, &text);
		if (good) {
			strings_add(out, xstrdup(buf_str(&key)));
			strings_add(out, text);
		}
	}
	buf_release(&key);
	return good;
}

static bool
take_reply(struct reading *r, struct span v, struct op_side *side)
{
	char *text = NULL, *gap;
	size_t i;
	bool named;

	if (!take_string(r, v, &text))
		return false;
	gap = strchr(text, ' ');
	if (gap)
		*gap++ = '\0';
	i = which(reply_name, OP_REPLIES, text);
	named = i == OP_LINES || i == OP_TEXT;
	if (i == OP_REPLIES || named != (gap && op_name_is_valid(gap))) {
		free(text);
		return bad(r, "must be object, lines NAME, text NAME or none");
	}
	side->reply = (enum op_reply)i;
	side->reply_name = gap ? xstrdup(gap) : NULL;
	free(text);
	return true;
}

/*
 * Calls take for each member of an object; the path in messages is the
 * member's.
 */
static bool
each(struct reading *r, struct span object, void *into,
    bool (*take)(
	struct reading *r, const char *name, struct span v, void *into))
{
	size_t pos = 0, len = r->path.len;
	struct buf key = BUF_INIT;
	struct span v;
	bool good = *object.p == '{' || bad(r, "must be an object");

	while (good && json_pair(object, &pos, &key, &v)) {
		buf_addf(&r->path, "%s%s", len ? "." : "", buf_str(&key));
		good = take(r, buf_str(&key), v, into);
		buf_cut(&r->path, len);
	}
	buf_release(&key);
	return good;
}

static bool
side_member(struct reading *r, const char *name, struct span v, void *into)
{
	struct op_side *side = into;

	side->there = true;
	if (strcmp(name, "argv") == 0)
		return take_strings(r, v, &side->argv);
	if (strcmp(name, "forward") == 0)
		return take_bool(r, v, &side->forward);
	if (strcmp(name, "ready") == 0)
		return take_bool(r, v, &side->ready);
	if (strcmp(name, "refuse") == 0)
		return take_text(r, v, &side->refuse);
	if (strcmp(name, "reply") == 0)
		return take_reply(r, v, side);
	if (strcmp(name, "with") == 0)
		return take_with(r, v, &side->with);
	return bad(r, "unknown");
}

static bool
arg_member(struct reading *r, const char *name, struct span v, void *into)
{
	struct op_arg *a = into;
	size_t i;

	if (strcmp(name, "name") == 0)
		return take_text(r, v, &a->name);
	if (strcmp(name, "kind") == 0) {
		if (!take_choice(r, v, kind_name, OP_KINDS, &i))
			return false;
		a->kind = (enum op_kind)i;
		return true;
	}
	if (strcmp(name, "help") == 0)
		return take_text(r, v, &a->help);
	if (strcmp(name, "required") == 0)
		return take_bool(r, v, &a->required);
	if (strcmp(name, "selector") == 0)
		return take_bool(r, v, &a->selector);
	if (strcmp(name, "ours") == 0)
		return take_bool(r, v, &a->ours);
	if (strcmp(name, "flag") == 0)
		return take_text(r, v, &a->flag);
	if (strcmp(name, "aliases") == 0)
		return take_strings(r, v, &a->aliases);
	if (strcmp(name, "positional") == 0)
		return take_text(r, v, &a->label);
	if (strcmp(name, "min") == 0)
		return take_number(r, v, &a->min);
	if (strcmp(name, "max") == 0)
		return take_number(r, v, &a->max);
	if (strcmp(name, "values") == 0)
		return take_strings(r, v, &a->values);
	if (strcmp(name, "error") == 0)
		return take_text(r, v, &a->error);
	if (strcmp(name, "client_default") == 0) {
		a->client_default = xstrndup(v.p, v.n);
		return true;
	}
	if (strcmp(name, "server_default") == 0) {
		a->server_default = xstrndup(v.p, v.n);
		return true;
	}
	if (strcmp(name, "mcp_default") == 0) {
		a->mcp_default = xstrndup(v.p, v.n);
		return true;
	}
	if (strcmp(name, "items") == 0) {
		struct buf text = BUF_INIT;

		if (*v.p != '{')
			return bad(r, "must be an object");
		json_compact(v, &text);
		a->items = buf_steal(&text);
		return true;
	}
	return bad(r, "unknown");
}

/* Is the JSON text a value of this kind? */
static bool
default_fits(const struct op_arg *a, const char *text)
{
	switch (a->kind) {
	case OP_STRING:
	case OP_PATH:
		return *text == '"';
	case OP_INTEGER:
		return strspn(text, "0123456789") == strlen(text);
	case OP_FLOAT:
		return strchr("-0123456789", *text) != NULL;
	case OP_ARRAY:
		return *text == '[';
	case OP_KINDS:
		break;
	}
	return false;
}

static bool
check_arg(struct reading *r, struct op_arg *a)
{
	bool number = a->kind == OP_INTEGER || a->kind == OP_FLOAT;
	bool text = a->kind == OP_STRING || a->kind == OP_PATH;

	if (!a->name || !op_name_is_valid(a->name))
		return bad(r, "needs a name, of a-z 0-9 _");
	if (!a->help)
		return bad(r, "needs a help");
	if (a->kind == OP_KINDS)
		return bad(r, "needs a kind");
	if ((a->min || a->max) && !number)
		return bad(r, "only a number has bounds");
	if (a->values.n > 0 && !text)
		return bad(r, "only a string has values");
	if (a->items && a->kind != OP_ARRAY)
		return bad(r, "only an array has items");
	if (a->flag && a->label)
		return bad(r, "a positional has no flag");
	if ((a->client_default && !default_fits(a, a->client_default)) ||
	    (a->mcp_default && !default_fits(a, a->mcp_default)) ||
	    (a->server_default && !default_fits(a, a->server_default)))
		return bad(r, "a default must be of its kind");
	if (a->selector && strcmp(a->name, "sandbox_id") != 0)
		return bad(r, "only sandbox_id is a selector");
	if (!a->flag) {
		a->flag = xasprintf("--%s", a->name);
		for (char *p = a->flag; *p; p++)
			if (*p == '_')
				*p = '-';
	}
	if (strncmp(a->flag, "--", 2) != 0)
		return bad(r, "a flag begins with --");
	return true;
}

static bool
take_args(struct reading *r, struct span v, struct op *op)
{
	size_t pos = 0, len = r->path.len, cap = 0;
	struct span e;

	if (*v.p != '[')
		return bad(r, "must be an array");
	while (json_element(v, &pos, &e)) {
		struct op_arg *a;
		bool good;

		if (op->nargs == cap)
			op->arg = xgrow(op->arg, &cap, sizeof *op->arg);
		a = &op->arg[op->nargs++];
		*a = (struct op_arg){ .kind = OP_KINDS };
		buf_addf(&r->path, "[%zu]", op->nargs - 1);
		good = each(r, e, a, arg_member) && check_arg(r, a);
		if (good && op_arg(op, a->name) != a)
			good = bad(r, "this name is taken");
		if (!good)
			return false;
		buf_cut(&r->path, len);
	}
	return true;
}

static bool
op_member(struct reading *r, const char *name, struct span v, void *into)
{
	struct op *op = into;
	size_t i;

	if (strcmp(name, "name") == 0)
		return take_text(r, v, &op->name);
	if (strcmp(name, "family") == 0)
		return take_text(r, v, &op->family);
	if (strcmp(name, "order") == 0)
		return (json_uint(v, &op->order) && op->order > 0) ||
		    bad(r, "must be a positive integer");
	if (strcmp(name, "summary") == 0)
		return take_text(r, v, &op->summary);
	if (strcmp(name, "description") == 0)
		return take_text(r, v, &op->description);
	if (strcmp(name, "scope") == 0) {
		if (!take_choice(r, v, scope_name, OP_SCOPES, &i))
			return false;
		op->scope = (enum op_scope)i;
		return true;
	}
	if (strcmp(name, "args") == 0)
		return take_args(r, v, op);
	if (strcmp(name, "examples") == 0)
		return take_strings(r, v, &op->examples);
	if (strcmp(name, "related") == 0)
		return take_strings(r, v, &op->related);
	if (strcmp(name, "mcp") == 0)
		return take_bool(r, v, &op->mcp);
	if (strcmp(name, "host") == 0)
		return each(r, v, &op->host, side_member);
	if (strcmp(name, "box") == 0)
		return each(r, v, &op->box, side_member);
	if (strcmp(name, "deadline_ms") == 0)
		return (json_uint(v, &op->deadline_ms) && op->deadline_ms > 0 &&
			   op->deadline_ms <= INT32_MAX) ||
		    bad(r, "must be milliseconds, below 2^31");
	if (strcmp(name, "waits") == 0)
		return take_text(r, v, &op->waits);
	if (strcmp(name, "cancel") == 0)
		return take_bool(r, v, &op->cancel);
	if (strcmp(name, "urgent") == 0)
		return take_bool(r, v, &op->urgent);
	if (strcmp(name, "activity") == 0)
		return take_bool(r, v, &op->activity);
	if (strcmp(name, "additive") == 0)
		return take_bool(r, v, &op->additive);
	if (strcmp(name, "idempotent") == 0)
		return take_bool(r, v, &op->idempotent);
	if (strcmp(name, "open_world") == 0)
		return take_bool(r, v, &op->open_world);
	return bad(r, "unknown");
}

static bool
is_value(const struct op *op, const char *name)
{
	return op_arg(op, name) ||
	    which(given, sizeof given / sizeof *given, name) <
	    sizeof given / sizeof *given;
}

/* Does each {x} of a text name a value? */
static bool
check_holes(const struct op *op, const char *s)
{
	char name[ID_MAX + 1];
	size_t before;

	while (op_hole(&s, &before, name))
		if (!is_value(op, name))
			return false;
	return true;
}

static bool
check_side(struct reading *r, const struct op *op, const struct op_side *side)
{
	size_t inputs = 0;

	if (!side->there)
		return true;
	if (side->argv.n == 0 && !side->forward && !side->refuse)
		return bad(r, "does nothing");
	if (side->refuse && (side->argv.n > 0 || side->forward))
		return bad(r, "refuses and does");
	for (size_t i = 0; i < side->argv.n; i++) {
		struct op_word w;
		bool good = op_word_parse(side->argv.v[i], &w);

		if (good && w.name)
			good = is_value(op, w.name);
		else if (good)
			good = check_holes(op, w.word);
		inputs += good && w.kind == OP_WORD_INPUT;
		if (good && i == 0)
			good = w.kind == OP_WORD_PLAIN &&
			    !strchr(w.word, '{') && *w.word;
		op_word_release(&w);
		if (!good) {
			buf_addf(&r->path, ".argv[%zu]", i);
			return bad(r, "no word, or it names no argument");
		}
	}
	if (inputs > 1)
		return bad(r, "has more than one standard input");
	for (size_t i = 0; i < side->with.n; i++)
		if (!check_holes(op, side->with.v[i]))
			return bad(r, "with names no argument");
	if (side->with.n > 0 && side->reply == OP_OBJECT)
		return bad(r, "an object has no with");
	return true;
}

static bool
check_op(struct reading *r, struct op *op, const char *name)
{
	const struct op_arg *waits;

	if (!op->name || strcmp(op->name, name) != 0)
		return bad(r, "name must be that of the file");
	if (strcmp(name, "help") == 0)
		return bad(r, "help is no operation");
	if (!op->summary || !op->description)
		return bad(r, "needs a summary and a description");
	if (strchr(op->summary, '\n'))
		return bad(r, "the summary is one line");
	if (op->order == 0)
		return bad(r, "needs an order");
	if (op->scope == OP_SCOPES)
		return bad(r, "needs a scope");
	if (!op->family && op->set != OP_INTERNAL)
		return bad(r, "needs a family");
	if (!op->host.there && !op->box.there)
		return bad(r, "needs host or box");
	if (op->box.forward || op->box.refuse)
		return bad(r, "box neither forwards nor refuses");
	if (op->host.forward && op->scope == OP_SYSTEM)
		return bad(r, "the system scope is not forwarded");
	waits = op->waits ? op_arg(op, op->waits) : NULL;
	if (op->waits && (!waits || waits->kind != OP_INTEGER))
		return bad(r, "waits must name an integer argument");
	buf_adds(&r->path, "host");
	if (!check_side(r, op, &op->host))
		return false;
	buf_cut(&r->path, 0);
	buf_adds(&r->path, "box");
	return check_side(r, op, &op->box);
}

int
op_read(int opsfd, enum op_set set, const char *name, struct op *op,
    struct buf *why)
{
	struct buf text = BUF_INIT, file = BUF_INIT;
	struct reading r = { .why = why };
	const char *trouble = NULL;
	struct span all;
	int rc = -1, err;

	buf_cut(why, 0);
	*op = (struct op){
		.set = set,
		.scope = OP_SCOPES,
		.deadline_ms = OP_DEADLINE_MS,
	};
	if (!op_name_is_valid(name)) {
		errno = ENOENT;
		return -1;
	}
	buf_addf(&file, "%s/%s.json", set_name[set], name);
	r.file = buf_str(&file);
	if (io_read_file_at(opsfd, r.file, &text, OP_BYTES_MAX) == -1)
		goto out;
	errno = EINVAL;
	all = (struct span){ buf_str(&text), text.len };
	all.p += strspn(all.p, " \t\n\r");
	all.n -= (size_t)(all.p - buf_str(&text));
	if (!json_is_valid(all.p, all.n, &trouble, NULL)) {
		bad(&r, trouble);
		goto out;
	}
	if (each(&r, all, op, op_member) && check_op(&r, op, name))
		rc = 0;
	else
		errno = EINVAL;
out:
	err = errno;
	if (rc == -1)
		op_release(op);
	buf_release(&text);
	buf_release(&file);
	buf_release(&r.path);
	errno = err;
	return rc;
}

static void
side_release(struct op_side *side)
{
	strings_release(&side->argv);
	strings_release(&side->with);
	free(side->refuse);
	free(side->reply_name);
}

void
op_release(struct op *op)
{
	for (size_t i = 0; i < op->nargs; i++) {
		struct op_arg *a = &op->arg[i];

		free(a->name);
		free(a->help);
		free(a->flag);
		free(a->label);
		free(a->min);
		free(a->max);
		free(a->error);
		free(a->client_default);
		free(a->server_default);
		free(a->mcp_default);
		free(a->items);
		strings_release(&a->aliases);
		strings_release(&a->values);
	}
	free(op->arg);
	free(op->name);
	free(op->family);
	free(op->summary);
	free(op->description);
	free(op->waits);
	strings_release(&op->examples);
	strings_release(&op->related);
	side_release(&op->host);
	side_release(&op->box);
	*op = (struct op)OP_INIT;
}

int
op_find(int opsfd, const char *name, struct op *op, struct buf *why)
{
	for (int set = 0; set < OP_SETS; set++) {
		int rc = op_read(opsfd, (enum op_set)set, name, op, why);

		if (rc == 0 || errno != ENOENT)
			return rc;
	}
	return -1;
}

int
op_names(int opsfd, enum op_set set, struct names *out)
{
	struct names all = NAMES_INIT;
	int fd = path_open(opsfd, set_name[set], O_RDONLY | O_DIRECTORY, 0);
	int rc = -1;

	if (fd != -1 && names_read(fd, &all) == 0) {
		rc = 0;
		for (size_t i = 0; i < all.n; i++) {
			size_t n = strlen(all.name[i]);
			char *name;

			if (n < 6 || strcmp(all.name[i] + n - 5, ".json") != 0)
				continue;
			name = xstrndup(all.name[i], n - 5);
			names_add(out, name);
			free(name);
		}
		names_sort(out);
	}
	names_release(&all);
	io_drop(&fd);
	return rc;
}

static int
by_order(const void *a, const void *b)
{
	const struct op *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

int
ops_read(int opsfd, enum op_set set, struct ops *out, struct buf *why)
{
	struct names names = NAMES_INIT;

	*out = (struct ops)OPS_INIT;
	buf_cut(why, 0);
	if (op_names(opsfd, set, &names) == -1)
		return -1;
	out->op = xcalloc(names.n + 1, sizeof *out->op);
	for (; out->n < names.n; out->n++) {
		if (op_read(opsfd, set, names.name[out->n], &out->op[out->n],
			why) == -1) {
			int err = errno;

			ops_release(out);
			names_release(&names);
			errno = err;
			return -1;
		}
	}
	names_release(&names);
	qsort(out->op, out->n, sizeof *out->op, by_order);
	return 0;
}

void
ops_release(struct ops *ops)
{
	for (size_t i = 0; i < ops->n; i++)
		op_release(&ops->op[i]);
	free(ops->op);
	*ops = (struct ops)OPS_INIT;
}

static bool
family_member(struct reading *r, const char *name, struct span v, void *into)
{
	struct op_family *f = into;

	if (strcmp(name, "id") == 0)
		return take_text(r, v, &f->id);
	if (strcmp(name, "title") == 0)
		return take_text(r, v, &f->title);
	if (strcmp(name, "summary") == 0)
		return take_text(r, v, &f->summary);
	if (strcmp(name, "description") == 0)
		return take_text(r, v, &f->description);
	return bad(r, "unknown");
}

static bool
take_families(struct reading *r, struct span list, struct op_families *out)
{
	size_t pos = 0, len = r->path.len;
	struct span e;

	if (!list.p || *list.p != '[')
		return bad(r, "must be an array");
	while (json_element(list, &pos, &e)) {
		struct op_family *f;

		if (out->n == out->cap)
			out->v = xgrow(out->v, &out->cap, sizeof *out->v);
		f = &out->v[out->n++];
		*f = (struct op_family){ .id = NULL };
		buf_addf(&r->path, "[%zu]", out->n - 1);
		if (!each(r, e, f, family_member))
			return false;
		if (!f->id || !f->title || !f->summary || !f->description)
			return bad(r,
			    "needs an id, a title, a summary and a "
			    "description");
		for (size_t i = 0; i + 1 < out->n; i++)
			if (strcmp(out->v[i].id, f->id) == 0)
				return bad(r, "this id is taken");
		buf_cut(&r->path, len);
	}
	return true;
}

int
op_families_read(
    int opsfd, enum op_set set, struct op_families *out, struct buf *why)
{
	struct reading r = { .why = why, .file = "families.json" };
	const char *trouble = NULL;
	struct buf text = BUF_INIT;
	struct span all;
	bool good = false;
	int err;

	buf_cut(why, 0);
	*out = (struct op_families)OP_FAMILIES_INIT;
	if (io_read_file_at(opsfd, r.file, &text, OP_BYTES_MAX) == -1) {
		err = errno;
		goto out;
	}
	err = EINVAL;
	all = (struct span){ buf_str(&text), text.len };
	if (!json_is_valid(all.p, all.n, &trouble, NULL)) {
		bad(&r, trouble);
		goto out;
	}
	buf_adds(&r.path, set_name[set]);
	good = take_families(&r, json_member(all, set_name[set]), out);
out:
	if (!good)
		op_families_release(out);
	buf_release(&text);
	buf_release(&r.path);
	errno = err;
	return good ? 0 : -1;
}

void
op_families_release(struct op_families *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->v[i].id);
		free(f->v[i].title);
		free(f->v[i].summary);
		free(f->v[i].description);
	}
	free(f->v);
	*f = (struct op_families)OP_FAMILIES_INIT;
}

const struct op_arg *
op_arg(const struct op *op, const char *name)
{
	for (size_t i = 0; i < op->nargs; i++)
		if (op->arg[i].name && strcmp(op->arg[i].name, name) == 0)
			return &op->arg[i];
	return NULL;
}
