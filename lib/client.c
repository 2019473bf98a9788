/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "json.h"
#include "mem.h"
#include "out.h"
#include "place.h"
#include "token.h"

#define DEFAULT_ENDPOINT "127.0.0.1:7878"
#define TOKEN_FIELD      "_sandbox_gateway_auth_token"

enum {
	GATE_MS = 35000 /* what a gateway takes besides the operation */
};

bool
client_is_blank(const char *s)
{
	return s[strspn(s, " \t\n\r\f\v")] == '\0';
}

/* ---- where ---- */

static bool
wrong(struct buf *why, const char *text)
{
	buf_adds(why, text);
	return false;
}

static bool
find_gateway(const char *text, struct endpoint *e, struct buf *why)
{
	const char *trouble = NULL;

	if (!text)
		text = getenv("SANDBOX_GATEWAY_SOCKET");
	if (!text)
		text = DEFAULT_ENDPOINT;
	if (*text == '\0')
		return wrong(why, "gateway socket path must be non-empty");
	if (endpoint_parse(text, e, &trouble))
		return true;
	buf_addf(why, "invalid gateway endpoint: %s", trouble);
	return false;
}

static bool
check_token(const char *token, struct buf *why)
{
	if (client_is_blank(token))
		return wrong(why, "gateway auth token must be non-empty");
	return utf8_is_valid(token, strlen(token)) ||
	    wrong(why, "gateway auth token must be valid UTF-8");
}

static bool
read_token(const char *file, char **out, struct buf *why)
{
	struct buf text = BUF_INIT, trouble = BUF_INIT;
	bool good = token_read(AT_FDCWD, file, &text, &trouble);

	if (!good)
		buf_addf(why, "token file %.*s",
		    (int)strcspn(buf_str(&trouble), "\n"), buf_str(&trouble));
	else if (!utf8_is_valid(buf_str(&text), text.len)) {
		buf_addf(why, "token file %s is not UTF-8", file);
		good = false;
	}
	if (good)
		*out = xstrdup(buf_str(&text));
	buf_release(&text);
	buf_release(&trouble);
	return good;
}

/* The option, the environment, the file; *out is NULL: none of them. */
static bool
find_token(const char *token, char **out, struct buf *why)
{
	const char *env = getenv("SANDBOX_GATEWAY_AUTH_TOKEN");
	char *file = place_token();
	bool there = file && faccessat(AT_FDCWD, file, F_OK, 0) == 0;
	bool good = true;

	/* An empty one is filled from the file, where there is one. */
	if (env && (*env || !there))
		good = check_token(env, why);
	if (good && token)
		good = check_token(token, why);
	else if (env && *env)
		token = env;
	*out = token ? xstrdup(token) : NULL;
	if (good && !token && there)
		good = read_token(file, out, why);
	free(file);
	return good;
}

bool
client_find(
    const char *endpoint, const char *token, struct client *c, struct buf *why)
{
	*c = (struct client)CLIENT_INIT;
	buf_cut(why, 0);
	if (find_gateway(endpoint, &c->to, why) &&
	    find_token(token, &c->token, why))
		return true;
	client_release(c);
	return false;
}

void
client_release(struct client *c)
{
	endpoint_release(&c->to);
	free(c->token);
	c->token = NULL;
}

/* ---- requests ---- */

void
client_print(const struct client_request *r, struct buf *out)
{
	char id[37];

	call_uuid(id);
	buf_addc(out, '{');
	out_str(out, "op", r->op->name);
	out_str(out, "request_id", r->id ? r->id : id);
	out_key(out, "scope");
	if (r->sandbox)
		buf_addf(out, "{\"kind\":\"sandbox\",\"sandbox_id\":%s}",
		    r->sandbox);
	else
		buf_adds(out, "{\"kind\":\"system\"}");
	out_key(out, "args");
	opcli_print(r->op, r->given, out);
	if (r->token)
		out_str(out, TOKEN_FIELD, r->token);
	out_bool(out, "_stream_logs", r->progress);
	buf_adds(out, "}\n");
}

uint64_t
client_patience(const struct op *op, const struct opcli *given)
{
	const struct op_arg *a = op->waits ? op_arg(op, op->waits) : NULL;
	uint64_t ms = op->deadline_ms + GATE_MS, wait = 0;
	const char *text = NULL;

	if (a && given->value[a - op->arg].len > 0)
		text = buf_str(&given->value[a - op->arg]);
	else if (a)
		text =
		    a->client_default ? a->client_default : a->server_default;
	if (text && !json_uint((struct span){ text, strlen(text) }, &wait))
		wait = 0;
	return wait < INT32_MAX ? wait + ms : 0;
}
