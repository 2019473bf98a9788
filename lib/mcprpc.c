/* SPDX-License-Identifier: MIT */
#include "mcprpc.h"

#include <string.h>

#include "out.h"

static bool
is_string(struct span s)
{
	return s.p && *s.p == '"';
}

static bool
is_id(struct span s)
{
	return s.p && strchr("\"-0123456789", *s.p);
}

void
rpc_read(struct span text, struct rpc *m)
{
	struct span id = json_member(text, "id");
	struct span method = json_member(text, "method");
	struct buf version = BUF_INIT;
	bool good;

	*m = (struct rpc)RPC_INIT;
	if (!text.p || *text.p != '{')
		return;
	good = json_string(json_member(text, "jsonrpc"), &version) &&
	    version.len == 3 && strcmp(buf_str(&version), "2.0") == 0;
	buf_release(&version);
	if (!method.p &&
	    (json_member(text, "result").p || json_member(text, "error").p)) {
		m->kind = RPC_REPLY;
		return;
	}
	if (is_id(id))
		m->id = id;
	if (!good || !is_string(method) || (id.p && !m->id.p))
		return;
	json_string(method, &m->method);
	m->params = json_member(text, "params");
	m->kind = id.p ? RPC_CALL : RPC_NOTE;
}

void
rpc_release(struct rpc *m)
{
	buf_release(&m->method);
}

/* Is there \uXXXX at i, of the range of surrogates that begins at first? */
static bool
is_surrogate(const char *p, size_t n, size_t i, const char *first)
{
	return i + 6 <= n && p[i] == '\\' && p[i + 1] == 'u' &&
	    (p[i + 2] == 'd' || p[i + 2] == 'D') && p[i + 3] != '\0' &&
	    strchr(first, p[i + 3]);
}

bool
rpc_mend(char *text, size_t n)
{
	static const char high[] = "89abAB", low[] = "cdefCDEF";
	bool found = false;
	size_t i = 0;

	while (i < n) {
		if (is_surrogate(text, n, i, high) &&
		    is_surrogate(text, n, i + 6, low)) {
			i += 12;
		} else if (is_surrogate(text, n, i, high) ||
		    is_surrogate(text, n, i, low)) {
			memcpy(text + i + 2, "fffd", 4);
			found = true;
			i += 6;
		} else {
			i += text[i] == '\\' ? 2 : 1;
		}
	}
	return found;
}

bool
rpc_same_id(struct span a, struct span b)
{
	struct buf x = BUF_INIT, y = BUF_INIT;
	bool same;

	if (!is_string(a) || !is_string(b))
		return a.p && b.p && a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
	json_string(a, &x);
	json_string(b, &y);
	same = buf_equal(&x, &y);
	buf_release(&x);
	buf_release(&y);
	return same;
}

static void
begin(struct span id, struct buf *out)
{
	buf_adds(out, "{\"jsonrpc\":\"2.0\"");
	if (id.p) {
		out_key(out, "id");
		buf_add(out, id.p, id.n);
	}
}

void
rpc_result(struct span id, const struct buf *result, struct buf *out)
{
	begin(id, out);
	out_key(out, "result");
	buf_add(out, result->data, result->len);
	buf_addc(out, '}');
}

void
rpc_error(struct span id, int code, const char *message, const char *data,
    struct buf *out)
{
	begin(id, out);
	out_key(out, "error");
	buf_addf(out, "{\"code\":%d", code);
	out_text(out, "message", message);
	if (data) {
		out_key(out, "data");
		buf_adds(out, data);
	}
	buf_adds(out, "}}");
}

/* The escape at p: how many bytes it takes. */
static size_t
normal_escape(const char *p, struct buf *out)
{
	size_t n = p[1] != 'u' ? 2 : 6;
	struct buf one = BUF_INIT, text = BUF_INIT;

	/* A character beyond U+FFFF takes two. */
	if (n == 6 && (p[2] == 'd' || p[2] == 'D') && strchr("89abAB", p[3]))
		n = 12;
	buf_addc(&one, '"');
	buf_add(&one, p, n);
	buf_addc(&one, '"');
	json_string((struct span){ one.data, one.len }, &text);
	buf_cut(&one, 0);
	out_string(&one, buf_str(&text), text.len);
	if (text.len == 1 && *text.data == 0x7f)
		buf_addc(out, 0x7f);
	else
		buf_add(out, one.data + 1, one.len - 2);
	buf_release(&one);
	buf_release(&text);
	return n;
}

/* A number without zeros behind its point that say nothing. */
static void
normal_number(const char *p, size_t n, struct buf *out)
{
	if (memchr(p, '.', n) && !memchr(p, 'e', n) && !memchr(p, 'E', n)) {
		while (p[n - 1] == '0')
			n--;
		if (p[n - 1] == '.')
			n--;
	}
	/* There is one zero. */
	if (n == 2 && memcmp(p, "-0", 2) == 0)
		buf_addc(out, '0');
	else
		buf_add(out, p, n);
}

void
rpc_normal(struct span s, struct buf *out)
{
	size_t i = 0;

	while (i < s.n) {
		const char *p = s.p + i;
		size_t n = 1;

		if (*p == '"') {
			buf_addc(out, '"');
			for (p++, i++; *p != '"'; p = s.p + i) {
				n = *p == '\\' ? normal_escape(p, out) : 1;
				if (*p != '\\')
					buf_addc(out, *p);
				i += n;
			}
			buf_addc(out, '"');
			i++;
			continue;
		}
		if (strchr("-0123456789", *p)) {
			while (i + n < s.n && strchr("+-.eE0123456789", p[n]))
				n++;
			normal_number(p, n, out);
		} else if (!strchr(" \t\n\r", *p)) {
			buf_addc(out, *p);
		}
		i += n;
	}
}
