/* SPDX-License-Identifier: MIT */
#include "filter.h"

#include <dlfcn.h>
#include <jq.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

#define LIBJQ "libjq.so.1"

/* What is used of it, by the types that its headers give. */
static struct {
	__typeof__(jq_init) *init;
	__typeof__(jq_set_error_cb) *set_error_cb;
	__typeof__(jq_compile) *compile;
	__typeof__(jq_start) *start;
	__typeof__(jq_next) *next;
	__typeof__(jq_teardown) *teardown;
	__typeof__(jv_parse_sized) *parse;
	__typeof__(jv_dump_string) *dump;
	__typeof__(jv_get_kind) *kind;
	__typeof__(jv_copy) *copy;
	__typeof__(jv_free) *drop;
	__typeof__(jv_string_value) *value;
	__typeof__(jv_string_length_bytes) *length;
	__typeof__(jv_invalid_get_msg) *message;
} lib;

struct filter {
	jq_state *jq;
	struct buf *why; /* of the call that runs */
};

static bool
find(void *handle, const char *name, void *function)
{
	void *at = dlsym(handle, name);

	/* POSIX grants that a function's address fits; ISO C does not. */
	memcpy(function, &at, sizeof at);
	return at != NULL;
}

static bool
load(void)
{
	void *h = dlopen(LIBJQ, RTLD_NOW | RTLD_LOCAL);

	return h && find(h, "jq_init", &lib.init) &&
	    find(h, "jq_set_error_cb", &lib.set_error_cb) &&
	    find(h, "jq_compile", &lib.compile) &&
	    find(h, "jq_start", &lib.start) && find(h, "jq_next", &lib.next) &&
	    find(h, "jq_teardown", &lib.teardown) &&
	    find(h, "jv_parse_sized", &lib.parse) &&
	    find(h, "jv_dump_string", &lib.dump) &&
	    find(h, "jv_get_kind", &lib.kind) &&
	    find(h, "jv_copy", &lib.copy) && find(h, "jv_free", &lib.drop) &&
	    find(h, "jv_string_value", &lib.value) &&
	    find(h, "jv_string_length_bytes", &lib.length) &&
	    find(h, "jv_invalid_get_msg", &lib.message);
}

/* Takes v: a string as it is, anything else as JSON. */
static void
print(jv v, struct buf *out)
{
	if (lib.kind(v) != JV_KIND_STRING)
		v = lib.dump(v, 0);
	buf_add(out, lib.value(v), (size_t)lib.length(lib.copy(v)));
	lib.drop(v);
}

static void
complain(void *arg, jv message)
{
	struct filter *f = arg;

	if (f->why->len > 0)
		buf_addc(f->why, '\n');
	print(message, f->why);
}

struct filter *
filter_new(const char *program, struct buf *why)
{
	struct filter *f;

	buf_cut(why, 0);
	if (!lib.message && !load()) {
		buf_adds(why, "unable to open " LIBJQ);
		return NULL;
	}
	f = xcalloc(1, sizeof *f);
	f->why = why;
	f->jq = lib.init();
	if (f->jq) {
		lib.set_error_cb(f->jq, complain, f);
		if (lib.compile(f->jq, program))
			return f;
	}
	if (why->len == 0)
		buf_adds(why, "unable to compile");
	filter_free(f);
	return NULL;
}

void
filter_free(struct filter *f)
{
	if (f->jq)
		lib.teardown(&f->jq);
	free(f);
}

bool
filter_run(struct filter *f, const char *text, size_t n, struct buf *out,
    struct buf *why)
{
	jv v = lib.parse(text, (int)n);

	buf_cut(why, 0);
	f->why = why;
	if (lib.kind(v) != JV_KIND_INVALID) {
		lib.start(f->jq, v, 0);
		while (v = lib.next(f->jq), lib.kind(v) != JV_KIND_INVALID) {
			print(v, out);
			buf_addc(out, '\n');
		}
	}
	v = lib.message(v);
	if (lib.kind(v) == JV_KIND_NULL)
		return true;
	print(v, why);
	return false;
}
