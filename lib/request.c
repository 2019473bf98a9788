/* SPDX-License-Identifier: MIT */
#include "request.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

bool
request_parse(struct request *r, const char *line, size_t n,
    const char *token_name, struct failure *f)
{
	const struct {
		const char *name;
		struct span *to;
	} member[] = {
		{ "op", &r->op },
		{ "request_id", &r->request_id },
		{ "scope", &r->scope },
		{ "args", &r->args },
		{ "_stream_logs", &r->stream_logs },
		{ token_name, &r->token },
	};
	struct span all = { line, n }, v;
	struct buf key = BUF_INIT;
	const char *why = NULL;
	size_t at = 0, pos = 0;

	if (!json_is_valid(line, n, &why, &at))
		return failure_set(
		    f, KIND_BAD_JSON, "bad json: %s at byte %zu", why, at);
	while (all.n > 0 && strchr(" \t\r", *all.p)) {
		all.p++;
		all.n--;
	}
	if (*all.p != '{')
		return failure_set(
		    f, KIND_BAD_JSON, "request message must be a json object");
	while (json_pair(all, &pos, &key, &v))
		for (size_t i = 0; i < sizeof member / sizeof *member; i++)
			if (strcmp(buf_str(&key), member[i].name) == 0 &&
			    strlen(buf_str(&key)) == key.len)
				*member[i].to = v;
	buf_release(&key);
	return true;
}

static bool
is_blank(const struct buf *b)
{
	const char *s = buf_str(b);

	return strspn(s, " \t\n\r\f\v") == b->len;
}

static bool
decode_scope(struct request *r, struct failure *f)
{
	struct span kind, id;
	struct buf text = BUF_INIT;
	const char *why = NULL;

	if (!r->scope.p)
		return failure_set(f, KIND_INVALID, "scope is required");
	kind = json_member(r->scope, "kind");
	id = json_member(r->scope, "sandbox_id");
	if (*r->scope.p != '{')
		why = "must be an object";
	else if (!kind.p)
		why = "missing field `kind`";
	else if (!json_string(kind, &text) ||
	    (strcmp(buf_str(&text), "system") != 0 &&
		strcmp(buf_str(&text), "sandbox") != 0))
		why = "kind must be `system` or `sandbox`";
	r->system = strcmp(buf_str(&text), "system") == 0;
	buf_release(&text);
	if (!why && !r->system) {
		if (!id.p)
			why = "missing field `sandbox_id`";
		else if (!json_string(id, &r->sandbox_id))
			why = "sandbox_id must be a string";
	}
	if (why)
		return failure_set(
		    f, KIND_INVALID, "scope is invalid: %s", why);
	if (!r->system && is_blank(&r->sandbox_id))
		return failure_set(
		    f, KIND_INVALID, "scope sandbox_id must be non-empty");
	return true;
}

bool
request_decode(struct request *r, struct failure *f)
{
	struct buf op = BUF_INIT;

	r->progress = json_is(r->stream_logs, "true");
	if (!json_string(r->op, &op)) {
		buf_release(&op);
		return failure_set(
		    f, KIND_INVALID, "op is required and must be a string");
	}
	r->name = xstrdup(buf_str(&op));
	/* No operation has a NUL in its name. */
	if (strlen(r->name) != op.len) {
		free(r->name);
		r->name = xstrdup("?");
	}
	buf_release(&op);
	if (!json_string(r->request_id, &r->id))
		return failure_set(f, KIND_INVALID,
		    "request_id is required and must be a string");
	if (!decode_scope(r, f))
		return false;
	if (!r->args.p)
		return failure_set(f, KIND_INVALID,
		    "request must include op, request_id, and args");
	if (r->name[strspn(r->name, " \t\n\r\f\v")] == '\0')
		return failure_set(f, KIND_INVALID, "op is required");
	if (*r->args.p != '{')
		return failure_set(f, KIND_INVALID, "args must be an object");
	return true;
}

void
request_release(struct request *r)
{
	free(r->name);
	buf_release(&r->id);
	buf_release(&r->sandbox_id);
	*r = (struct request)REQUEST_INIT;
}
