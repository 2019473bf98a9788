/* SPDX-License-Identifier: MIT */
/*
 * oplint OPSDIR BINDIR: what op_read cannot see of a directory of operations:
 * families, names that refer to one another, what must differ, programs that
 * are not there. A line for each fault; exit 1 when there is one.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "op.h"

enum {
	OURS_FROM = 1000, /* order of operations that the reference lacks */
	OURS_MCP_MAX = 8 /* of them, offered to models, in a set */
};

static int opsfd, binfd, faults;
static struct ops sets[OP_SETS];
static struct op_families families[OP_SETS];

__attribute__((format(printf, 1, 2))) static void
fault(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	faults++;
}

static bool
has_family(enum op_set set, const char *id)
{
	for (size_t i = 0; i < families[set].n; i++)
		if (strcmp(families[set].v[i].id, id) == 0)
			return true;
	return false;
}

static const struct op *
find(enum op_set set, const char *name)
{
	for (size_t i = 0; i < sets[set].n; i++)
		if (strcmp(sets[set].op[i].name, name) == 0)
			return &sets[set].op[i];
	return NULL;
}

static void
check_program(const struct op *op, const struct op_side *side)
{
	struct stat st;

	if (side->argv.n > 0 &&
	    (fstatat(binfd, side->argv.v[0], &st, 0) == -1 ||
		!(st.st_mode & 0100)))
		fault("%s: no program %s", op->name, side->argv.v[0]);
}

/* Options of the command line come first, and would take the words. */
static bool
is_option(const struct op *op, const char *flag)
{
	static const struct {
		const char *name;
		int set; /* or OP_SETS: all */
	} option[] = {
		{ "--gateway-endpoint", OP_SETS },
		{ "--gateway-socket", OP_SETS },
		{ "--gateway-auth-token", OP_SETS },
		{ "--jq", OP_SETS },
		{ "--connect-timeout-ms", OP_SETS },
		{ "--answer-timeout-ms", OP_SETS },
		{ "--completion", OP_SETS },
		{ "--version", OP_SETS },
		{ "--help", OP_SETS },
		{ "--progress", OP_MANAGEMENT },
		{ "--sandbox-id", OP_RUNTIME },
		{ "--request-id", OP_RUNTIME },
	};

	for (size_t i = 0; i < sizeof option / sizeof *option; i++)
		if (strcmp(option[i].name, flag) == 0 &&
		    (option[i].set == OP_SETS || option[i].set == (int)op->set))
			return true;
	return strchr(flag, '=') != NULL;
}

static size_t
count_flag(const struct op *op, const char *flag)
{
	size_t n = 0;

	for (size_t i = 0; i < op->nargs; i++) {
		const struct op_arg *a = &op->arg[i];

		n += !a->label && strcmp(a->flag, flag) == 0;
		for (size_t j = 0; j < a->aliases.n; j++)
			n += strcmp(a->aliases.v[j], flag) == 0;
	}
	return n;
}

static void
check_args(const struct op *op)
{
	bool optional = false;

	for (size_t i = 0; i < op->nargs; i++) {
		const struct op_arg *a = &op->arg[i];

		if (!a->label && count_flag(op, a->flag) != 1)
			fault("%s: flag %s stands for two", op->name, a->flag);
		if (!a->label && is_option(op, a->flag))
			fault("%s: flag %s is an option of the command line",
			    op->name, a->flag);
		for (size_t j = 0; j < a->aliases.n; j++) {
			if (count_flag(op, a->aliases.v[j]) != 1)
				fault("%s: flag %s stands for two", op->name,
				    a->aliases.v[j]);
			if (is_option(op, a->aliases.v[j]))
				fault("%s: flag %s is an option of the command "
				      "line",
				    op->name, a->aliases.v[j]);
		}
		if (a->label && optional && a->required)
			fault("%s: %s is required behind one that is not",
			    op->name, a->name);
		optional = optional || (a->label && !a->required);
		if (a->selector && op->set != OP_OBSERVABILITY)
			fault(
			    "%s: only observability has a selector", op->name);
	}
	if (op->set == OP_OBSERVABILITY && !op_arg(op, "sandbox_id"))
		fault("%s: no argument sandbox_id, the selector", op->name);
}

static void
check_op(const struct op *op)
{
	for (int set = 0; set < OP_SETS; set++)
		if (set != (int)op->set && find((enum op_set)set, op->name))
			fault("%s: is in two sets", op->name);
	for (size_t i = 0; i < sets[op->set].n; i++)
		if (sets[op->set].op[i].order == op->order &&
		    &sets[op->set].op[i] < op)
			fault("%s: order %" PRIu64 " is that of %s", op->name,
			    op->order, sets[op->set].op[i].name);
	if (op->family && !has_family(op->set, op->family))
		fault("%s: no family %s", op->name, op->family);
	for (size_t i = 0; i < op->related.n; i++)
		if (!find(op->set, op->related.v[i]) ||
		    strcmp(op->related.v[i], op->name) == 0)
			fault(
			    "%s: related to no %s", op->name, op->related.v[i]);
	if (op->set != OP_INTERNAL && op->examples.n == 0)
		fault("%s: no example", op->name);
	if (op->set == OP_RUNTIME && op->scope != OP_SANDBOX)
		fault("%s: of runtime, and not of a sandbox", op->name);
	if (op->set == OP_MANAGEMENT && op->scope != OP_SYSTEM)
		fault("%s: of management, and not of the system", op->name);
	if (op->host.forward && op->box.argv.n == 0)
		fault("%s: is sent on, and the box does nothing", op->name);
	check_program(op, &op->host);
	check_program(op, &op->box);
	check_args(op);
}

static void
check_set(enum op_set set)
{
	const struct ops *ops = &sets[set];
	struct names names = NAMES_INIT;
	size_t models = 0;
	int fd = path_open(opsfd, op_set_name(set), O_RDONLY | O_DIRECTORY, 0);

	if (fd == -1 || names_read(fd, &names) == -1)
		die_sys("unable to read %s", op_set_name(set));
	if (names.n != ops->n)
		fault("%s: has files that are no operations", op_set_name(set));
	for (size_t i = 0; i < ops->n; i++) {
		check_op(&ops->op[i]);
		models += ops->op[i].mcp && ops->op[i].order >= OURS_FROM;
	}
	if (models > OURS_MCP_MAX)
		fault("%s: offers %zu operations of ours to models, more than "
		      "%d",
		    op_set_name(set), models, OURS_MCP_MAX);
	names_release(&names);
	io_drop(&fd);
}

int
main(int argc, char **argv)
{
	struct buf why = BUF_INIT;

	err_init();
	if (argc != 3)
		die(EXIT_USAGE, "usage: oplint opsdir bindir");
	opsfd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	binfd = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (opsfd == -1 || binfd == -1)
		die_sys("unable to open %s or %s", argv[1], argv[2]);
	for (int set = 0; set < OP_SETS; set++) {
		enum op_set which = (enum op_set)set;

		if (ops_read(opsfd, which, &sets[set], &why) == -1 ||
		    op_families_read(opsfd, which, &families[set], &why) ==
			-1) {
			fault("%s", why.len ? why.data : op_set_name(which));
			stdout_done();
			return EXIT_NO;
		}
	}
	for (int set = 0; set < OP_SETS; set++)
		check_set((enum op_set)set);
	stdout_done();
	return faults > 0;
}
