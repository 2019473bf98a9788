/* SPDX-License-Identifier: MIT */
/*
 * sandbox-catalog-export: print what operations there are, as one JSON object
 * for programs. Shape: source. All of it is read from the operation files;
 * internal operations are left out. No gateway is asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "op.h"
#include "ophelp.h"
#include "out.h"
#include "place.h"

static const char usage[] = "sandbox-catalog-export";

/* The names that readers know the sets by. */
static const char *const domain[] = {
	[OP_MANAGEMENT] = "manager",
	[OP_RUNTIME] = "runtime",
	[OP_OBSERVABILITY] = "observability",
};

static void
print_families(const struct op_families *families, struct buf *b)
{
	out_key(b, "families");
	buf_addc(b, '[');
	for (size_t i = 0; i < families->n; i++) {
		const struct op_family *f = &families->v[i];

		buf_adds(b, i == 0 ? "{" : ",{");
		out_str(b, "id", f->id);
		out_str(b, "title", f->title);
		out_str(b, "summary", f->summary);
		out_str(b, "description", f->description);
		buf_addc(b, '}');
	}
	buf_addc(b, ']');
}

static void
print_arg(const struct op_arg *a, struct buf *b)
{
	struct buf text = BUF_INIT;

	buf_addc(b, '{');
	out_str(b, "name", a->name);
	out_str(b, "kind", op_kind_name(a->kind));
	out_bool(b, "required", a->required);
	out_str(b, "help", a->help);
	if (a->client_default) {
		ophelp_default(a->client_default, &text);
		out_str(b, "default", buf_str(&text));
	} else {
		out_null(b, "default");
	}
	buf_addc(b, '}');
	buf_release(&text);
}

static void
print_op(const struct op *op, struct buf *b)
{
	buf_addc(b, '{');
	out_str(b, "name", op->name);
	out_str(b, "family", op->family);
	out_str(b, "summary", op->summary);
	out_str(b, "description", op->description);
	out_key(b, "args");
	buf_addc(b, '[');
	for (size_t i = 0; i < op->nargs; i++) {
		if (i > 0)
			buf_addc(b, ',');
		print_arg(&op->arg[i], b);
	}
	buf_addc(b, ']');
	out_key(b, "related");
	buf_addc(b, '[');
	for (size_t i = 0; i < op->related.n; i++) {
		if (i > 0)
			buf_addc(b, ',');
		out_string(b, op->related.v[i], strlen(op->related.v[i]));
	}
	buf_adds(b, "]}");
}

/* Who answers the scope: the host itself, or who it sends the request to. */
static const char *
owner(const struct op *op, bool system)
{
	bool here = op->host.argv.n > 0 && (system || op->scope == OP_SANDBOX);

	return here ? domain[OP_MANAGEMENT] : domain[op->set];
}

static void
print_route(const struct op *op, bool system, struct buf *b)
{
	if (b->data[b->len - 1] != '[')
		buf_addc(b, ',');
	buf_addc(b, '{');
	out_str(b, "operation", op->name);
	out_str(b, "scope_policy", op_scope_name(op->scope));
	out_str(b, "scope_kind", system ? "system" : "sandbox");
	out_str(b, "execution_owner", owner(op, system));
	out_str(b, "visibility", "public");
	buf_addc(b, '}');
}

static void
print_set(int opsfd, enum op_set set, struct buf *b)
{
	struct op_families families = OP_FAMILIES_INIT;
	struct ops ops = OPS_INIT;
	struct buf why = BUF_INIT;

	if (ops_read(opsfd, set, &ops, &why) == -1 ||
	    op_families_read(opsfd, set, &families, &why) == -1)
		die(EXIT_SYS, "unable to read the operations: %s",
		    why.len > 0 ? buf_str(&why) : strerror(errno));
	out_key(b, domain[set]);
	buf_addc(b, '{');
	out_str(b, "operation_execution_space", domain[set]);
	print_families(&families, b);
	out_key(b, "operations");
	buf_addc(b, '[');
	for (size_t i = 0; i < ops.n; i++) {
		if (i > 0)
			buf_addc(b, ',');
		print_op(&ops.op[i], b);
	}
	buf_addc(b, ']');
	out_key(b, "routes");
	buf_addc(b, '[');
	for (size_t i = 0; i < ops.n; i++) {
		if (ops.op[i].scope != OP_SANDBOX)
			print_route(&ops.op[i], true, b);
		if (ops.op[i].scope != OP_SYSTEM)
			print_route(&ops.op[i], false, b);
	}
	buf_adds(b, "]}");
}

/* The same with two blanks for each level, as people like to read it. */
static void
print_pretty(const struct buf *b)
{
	bool inside = false;
	int depth = 0;

	for (const char *p = b->data; *p; p++) {
		bool closes = !inside && (*p == '}' || *p == ']');
		bool opens = !inside && (*p == '{' || *p == '[');
		bool empty = opens && (p[1] == '}' || p[1] == ']');

		if (closes)
			printf("\n%*s", 2 * --depth, "");
		putchar(*p);
		if (inside && *p == '\\')
			putchar(*++p);
		else if (*p == '"')
			inside = !inside;
		else if (empty)
			putchar(*++p);
		else if (opens || (!inside && *p == ','))
			printf("\n%*s", 2 * (depth += opens), "");
		else if (!inside && *p == ':')
			putchar(' ');
	}
	putchar('\n');
}

int
main(int argc, char **argv)
{
	struct buf b = BUF_INIT;
	char *path;
	int opt, opsfd;

	err_init();
	while ((opt = getopt(argc, argv, "+h")) != -1) {
		switch (opt) {
		case 'h':
			usage_help(usage);
		default:
			usage_die(usage);
		}
	}
	if (argc != optind)
		usage_die(usage);
	path = place_ops();
	opsfd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (opsfd == -1)
		die_sys(
		    "unable to open the operations in %s", path ? path : "?");
	buf_addc(&b, '{');
	out_num(&b, "schema_version", 1);
	out_str(&b, "kind", "ephemeral_sandbox_product_catalog");
	out_key(&b, "domains");
	buf_addc(&b, '{');
	for (int set = 0; set < OP_INTERNAL; set++)
		print_set(opsfd, (enum op_set)set, &b);
	buf_adds(&b, "}}");
	print_pretty(&b);
	stdout_done();
	return EXIT_OK;
}
