/* SPDX-License-Identifier: MIT */
/* Messages: which are requests, which notifications; ids; the normal form. */
#include "mcprpc.h"

#include <string.h>

#include "tap.h"

static const struct {
	const char *text;
	enum rpc_kind kind;
	const char *id, *method; /* NULL: none */
} messages[] = {
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", RPC_CALL, "1",
	    "m" },
	{ "{\"method\":\"\\u006d\",\"id\":\"\\u0031\",\"jsonrpc\":\"2\\u002e0\"}",
	    RPC_CALL, "\"\\u0031\"", "m" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"m\"}", RPC_CALL,
	    "2", "m" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":-0.5e-7,\"method\":\"m\"}", RPC_CALL,
	    "-0.5e-7", "m" },
	{ "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", RPC_NOTE, NULL, "m" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", RPC_BAD, NULL,
	    NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"m\"}", RPC_BAD, NULL,
	    NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_BAD, "1", NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", RPC_BAD, "1",
	    NULL },
	{ "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"m\"}", RPC_BAD, "1", NULL },
	{ "{\"jsonrpc\":\"2.0\\u0000\",\"id\":1,\"method\":\"m\"}", RPC_BAD,
	    "1", NULL },
	{ "{\"id\":1,\"method\":\"m\"}", RPC_BAD, "1", NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", RPC_REPLY, NULL,
	    NULL },
	{ "{\"id\":1,\"error\":{}}", RPC_REPLY, NULL, NULL },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"result\":1}",
	    RPC_CALL, "1", "m" },
	{ "[]", RPC_BAD, NULL, NULL },
	{ "\"x\"", RPC_BAD, NULL, NULL },
	{ "null", RPC_BAD, NULL, NULL },
};

static const struct {
	const char *a, *b;
	bool same;
} ids[] = {
	{ "7", "7", true },
	{ "7", "\"7\"", false },
	{ "7", "70", false },
	{ "\"a\"", "\"\\u0061\"", true },
	{ "\"a\"", "\"a\\u0000\"", false },
	{ "\"\"", "\"\"", true },
	{ "7", NULL, false },
	{ "null", "null", true },
};

static const struct {
	const char *in, *out;
} forms[] = {
	{ "{}", "{}" },
	{ " { \"a\" : [ 1 , \"b c\" ] } ", "{\"a\":[1,\"b c\"]}" },
	{ "\"\\/\\u002f\\u0022\\u005c\\u000A\\u001F\\u007F\"",
	    "\"//\\\"\\\\\\n\\u001f\x7f\"" },
	{ "\"\\ud83D\\uDe00\\u00e4\\uFFFF\"",
	    "\"\xf0\x9f\x98\x80\xc3\xa4\xef\xbf\xbf\"" },
	{ "\"\\\\u0041\\\"\"", "\"\\\\u0041\\\"\"" },
	{ "[0,-0,10,-1,100]", "[0,0,10,-1,100]" },
	{ "[0.0,1.0,-0.0,1.50,10.010]", "[0,1,0,1.5,10.01]" },
	{ "[1e5,1.0e5,1E+0]", "[1e5,1.0e5,1E+0]" },
	{ "[18446744073709551615]", "[18446744073709551615]" },
	{ "[true,false,null]", "[true,false,null]" },
	{ "1.0", "1" },
};

static struct span
span(const char *s)
{
	return (struct span){ s, s ? strlen(s) : 0 };
}

static void
test_messages(void)
{
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
		const char *id = messages[i].id, *method = messages[i].method;
		struct rpc m;
		bool good;

		rpc_read(span(messages[i].text), &m);
		good = m.kind == messages[i].kind &&
		    (id ? json_is(m.id, id) : !m.id.p) &&
		    (!method || strcmp(buf_str(&m.method), method) == 0);
		if (!ok(good, "what a message is"))
			printf("# %s\n", messages[i].text);
		rpc_release(&m);
	}
}

static void
test_ids(void)
{
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
		if (!ok(rpc_same_id(span(ids[i].a), span(ids[i].b)) ==
			    ids[i].same,
			"the same id"))
			printf("# %s %s\n", ids[i].a, ids[i].b);
}

static void
test_forms(void)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct buf b = BUF_INIT;

		rpc_normal(span(forms[i].in), &b);
		if (!ok(strcmp(buf_str(&b), forms[i].out) == 0,
			"as JavaScript prints it"))
			printf("# %s: %s\n", forms[i].in, buf_str(&b));
		buf_release(&b);
	}
}

static void
test_replies(void)
{
	struct buf b = BUF_INIT, r = BUF_INIT;

	buf_adds(&r, "{\"a\":1}");
	rpc_result(span("\"\\u0031\""), &r, &b);
	ok(strcmp(buf_str(&b),
	       "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0031\",\"result\":{\"a\":1}}") ==
		0,
	    "a result");
	buf_cut(&b, 0);
	rpc_error(span(NULL), RPC_PARSE, "x\"", NULL, &b);
	ok(strcmp(buf_str(&b),
	       "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,"
	       "\"message\":\"x\\\"\"}}") == 0,
	    "an error without an id");
	buf_cut(&b, 0);
	rpc_error(span("5"), RPC_VERSION, "x", "{}", &b);
	ok(strcmp(buf_str(&b),
	       "{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32022,"
	       "\"message\":\"x\",\"data\":{}}}") == 0,
	    "an error with data");
	buf_release(&b);
	buf_release(&r);
}

int
main(void)
{
	test_messages();
	test_ids();
	test_forms();
	test_replies();
	return done();
}
