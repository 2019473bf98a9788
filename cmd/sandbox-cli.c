/* SPDX-License-Identifier: MIT */
/*
 * sandbox-manager-cli, sandbox-runtime-cli, sandbox-observability-cli: one
 * request to a gateway, by a command line. Shape: source. One program; its
 * name says of which operations. Of these it knows nothing but their files.
 *
 *   1. Take the options before the operation and directly behind it.
 *   2. Help is answered here, without a gateway.
 *   3. Where is the gateway, with which token?
 *   4. Make the arguments of the words, by the operation's file.
 *   5. Send, show progress, print the answer: its bytes as they came, or what
 *      a jq program makes of them.
 *
 * Invariant: success is one answer on standard output, whatever else is one
 * error object on standard error and nothing on standard output.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "call.h"
#include "client.h"
#include "clock.h"
#include "err.h"
#include "failure.h"
#include "filter.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "num.h"
#include "op.h"
#include "opcli.h"
#include "ophelp.h"
#include "out.h"
#include "path.h"
#include "place.h"

enum {
	EXIT_FAULT = 1,
	EXIT_LOCAL = 2, /* usage, configuration: nothing was sent */
	REQUEST_ID_BYTES = 128
};

/* ---- who we are ---- */

static const struct role {
	const char *name;
	enum op_set set;
	const char *title, *space, *use;
} roles[] = {
	{ "sandbox-manager-cli", OP_MANAGEMENT, "Sandbox Manager Help",
	    "manager", "sandbox-manager-cli" },
	{ "sandbox-runtime-cli", OP_RUNTIME, "Sandbox Runtime Help", "runtime",
	    "sandbox-runtime-cli --sandbox-id ID [--request-id VALUE]" },
	{ "sandbox-observability-cli", OP_OBSERVABILITY,
	    "Sandbox Observability Help", "observability",
	    "sandbox-observability-cli" },
};

enum {
	ANY = 1U << OP_SETS
};

/* Options that are no operation's. */
enum global {
	G_ENDPOINT,
	G_TOKEN,
	G_SANDBOX,
	G_REQUEST,
	G_PROGRESS,
	G_JQ,
	G_ERROR_JQ,
	G_CONNECT,
	G_ANSWER,
	G_COMPLETION,
	G_VERSION,
	G_HELP,
	GLOBALS
};

static const struct {
	const char *flag, *alias, *value, *help;
	unsigned sets; /* of which roles; ANY */
} globals[GLOBALS] = {
	[G_ENDPOINT] = { "--gateway-endpoint", "--gateway-socket", "URI",
	    "The gateway: HOST:PORT, tcp://HOST:PORT or unix:///PATH.", ANY },
	[G_TOKEN] = { "--gateway-auth-token", NULL, "TOKEN",
	    "Its token; better in the environment or the file.", ANY },
	[G_SANDBOX] = { "--sandbox-id", NULL, "SANDBOX_ID",
	    "The sandbox to work in.", 1U << OP_RUNTIME },
	[G_REQUEST] = { "--request-id", NULL, "VALUE",
	    "The id of the request, instead of a random one.",
	    1U << OP_RUNTIME },
	[G_PROGRESS] = { "--progress", NULL, NULL,
	    "Say on standard error how it gets on.", 1U << OP_MANAGEMENT },
	[G_JQ] = { "--jq", NULL, "FILTER",
	    "Print what this program of jq makes of the answer.", ANY },
	[G_ERROR_JQ] = { "--error-jq", NULL, "FILTER",
	    "The same of an error, on standard error.", ANY },
	[G_CONNECT] = { "--connect-timeout-ms", NULL, "MS",
	    "Give up when no connection is made in this time; 10000.", ANY },
	[G_ANSWER] = { "--answer-timeout-ms", NULL, "MS",
	    "Give up when the gateway says nothing for this time; 0: never.",
	    ANY },
	[G_COMPLETION] = { "--completion", NULL, "SHELL",
	    "Print what bash or zsh needs to complete these words.", ANY },
	[G_VERSION] = { "--version", NULL, NULL, "Print the version.", ANY },
	[G_HELP] = { "--help", "-h", NULL,
	    "Print this, or behind an operation its page.", ANY },
};

static const struct role *role;

/* The command line. */
static struct {
	const char *value[GLOBALS]; /* "" of those without; NULL: not given */
	const char *op; /* NULL: none */
	char *const *word; /* its words */
	size_t n;
} line;

static int opsfd = -1;
static long start;

/* ---- the ends ---- */

/* An error as it is, where no program was given or the program fails. */
__attribute__((noreturn)) static void
fail_with(int code, struct buf *error)
{
	const char *program = line.value[G_ERROR_JQ];
	struct buf out = BUF_INIT, why = BUF_INIT;
	struct filter *filter = program ? filter_new(program, &why) : NULL;

	if (!filter ||
	    !filter_run(filter, error->data, error->len, &out, &why)) {
		buf_cut(&out, 0);
		buf_add(&out, error->data, error->len);
		buf_addc(&out, '\n');
	}
	/* There is nobody left to tell. */
	if (io_write_all(STDERR_FILENO, buf_str(&out), out.len) == -1)
		exit(code);
	exit(code);
}

__attribute__((noreturn)) static void
fail(int code, struct failure *f)
{
	struct buf b = BUF_INIT;

	failure_print(f, &b);
	fail_with(code, &b);
}

__attribute__((noreturn, format(printf, 2, 3))) static void
refuse(const char *kind, const char *fmt, ...)
{
	struct failure f = FAILURE_INIT;
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	failure_set(&f, kind, "%s", text);
	fail(EXIT_LOCAL, &f);
}

/* A mistake in the options, as parsers of options put it. */
__attribute__((noreturn, format(printf, 1, 2))) static void
misused(const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	refuse(KIND_INVALID,
	    "error: %s\n\nUsage: %s [OPTIONS] [OPERATION [ARGUMENTS]]\n\n"
	    "For more information, try '--help'.",
	    text, role->name);
}

__attribute__((noreturn)) static void
print(const struct buf *text)
{
	struct failure f = FAILURE_INIT;

	if (io_write_all(STDOUT_FILENO, buf_str(text), text->len) == 0 &&
	    io_close(STDOUT_FILENO) == 0)
		exit(EXIT_OK);
	failure_set(&f, KIND_INTERNAL, "unable to write the result: %s",
	    strerror(errno));
	fail(EXIT_FAULT, &f);
}

/* ---- options ---- */

static bool
is_ours(enum global g)
{
	return globals[g].sets == ANY || globals[g].sets == 1U << role->set;
}

/* Which option is t, perhaps "--option=value"? GLOBALS: none. */
static enum global
find_global(const char *t, const char **value)
{
	const char *is_at = strchr(t, '=');
	size_t n = is_at ? (size_t)(is_at - t) : strlen(t);

	*value = is_at ? is_at + 1 : NULL;
	for (int g = 0; g < GLOBALS; g++) {
		const char *name[] = { globals[g].flag, globals[g].alias };

		for (int i = 0; is_ours((enum global)g) && i < 2; i++)
			if (name[i] && strlen(name[i]) == n &&
			    strncmp(name[i], t, n) == 0)
				return (enum global)g;
	}
	return GLOBALS;
}

static char *
described(enum global g)
{
	return globals[g].value
	    ? xasprintf("%s <%s>", globals[g].flag, globals[g].value)
	    : xstrdup(globals[g].flag);
}

/* The option at argv[i]; returns the index of the last word it took. */
static int
take_global(
    enum global g, char *const *argv, int argc, int i, const char *value)
{
	if (line.value[g])
		misused("the argument '%s' cannot be used multiple times",
		    described(g));
	if (!globals[g].value && value)
		misused("unexpected value '%s' for '%s' found; no more were "
			"expected",
		    value, described(g));
	if (globals[g].value && !value) {
		value = i + 1 < argc ? argv[i + 1] : NULL;
		if (!value || (g != G_REQUEST && *value == '-' && value[1]))
			misused("a value is required for '%s' but none was "
				"supplied",
			    described(g));
		i++;
	}
	line.value[g] = value ? value : "";
	return i;
}

/*
 * Options up to something else; one "--" among them ends them. Returns the
 * index of what follows. *ended: there was the "--".
 */
static int
take_globals(char *const *argv, int argc, int i, bool strict, bool *ended)
{
	for (; i < argc; i++) {
		const char *value;
		enum global g;

		if (strcmp(argv[i], "--") == 0) {
			*ended = true;
			return i + 1;
		}
		g = find_global(argv[i], &value);
		if (g == GLOBALS && strict && *argv[i] == '-')
			misused("unexpected argument '%s' found", argv[i]);
		if (g == GLOBALS)
			return i;
		i = take_global(g, argv, argc, i, value);
	}
	return i;
}

static void
take_line(char *const *argv, int argc)
{
	bool ended = false, after = false;
	int i = take_globals(argv, argc, 1, true, &ended);

	if (i < argc)
		line.op = argv[i++];
	if (!ended)
		i = take_globals(argv, argc, i, false, &after);
	else if (i < argc && strcmp(argv[i], "--") == 0)
		i++;
	line.word = argv + i;
	line.n = (size_t)(argc - i);
}

static uint64_t
milliseconds(enum global g, uint64_t min, uint64_t otherwise)
{
	uint64_t ms = otherwise;

	if (line.value[g] && !num_dec(line.value[g], min, INT32_MAX, &ms))
		misused("invalid value '%s' for '%s': milliseconds, %" PRIu64
			" to %d",
		    line.value[g], described(g), min, INT32_MAX);
	return ms;
}

static void
check_request_id(void)
{
	const char *id = line.value[G_REQUEST];

	if (id &&
	    (*id == '\0' || strlen(id) > REQUEST_ID_BYTES ||
		id[strspn(id,
		    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		    "0123456789._:-")]))
		refuse(KIND_INVALID,
		    "--request-id must be 1-128 ASCII letters, digits, "
		    "period, underscore, colon, or dash");
}

static void
check_sandbox_id(void)
{
	if (!line.value[G_SANDBOX])
		refuse(KIND_INVALID, "runtime operations require --sandbox-id");
	if (client_is_blank(line.value[G_SANDBOX]))
		refuse(KIND_INVALID, "runtime sandbox id must be non-empty");
	if (!utf8_is_valid(
		line.value[G_SANDBOX], strlen(line.value[G_SANDBOX])))
		refuse(KIND_INVALID, "runtime sandbox id must be valid UTF-8");
}

/* ---- operations ---- */

static void
open_ops(void)
{
	char *path = place_ops();

	if (path)
		opsfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (opsfd == -1)
		refuse(KIND_CONFIG,
		    "unable to open the operations in %s: %s (SB_OPS names "
		    "another directory)",
		    path ? path : "?", strerror(errno));
	free(path);
}

static void
read_op(const char *name, struct op *op)
{
	struct buf why = BUF_INIT;

	open_ops();
	if (op_read(opsfd, role->set, name, op, &why) == 0)
		return;
	if (errno == ENOENT)
		refuse(KIND_INVALID, "unknown operation: %s", name);
	refuse(KIND_CONFIG, "operation %s: %s", name,
	    why.len > 0 ? buf_str(&why) : strerror(errno));
}

static void
read_catalog(struct ops *ops, struct op_families *families)
{
	struct buf why = BUF_INIT;

	open_ops();
	if (ops_read(opsfd, role->set, ops, &why) == -1 ||
	    op_families_read(opsfd, role->set, families, &why) == -1)
		refuse(KIND_CONFIG, "unable to read the operations: %s",
		    why.len > 0 ? buf_str(&why) : strerror(errno));
}

/* ---- help ---- */

__attribute__((noreturn)) static void
help_options(void)
{
	struct buf b = BUF_INIT;

	buf_addf(&b,
	    "Usage: %s [OPTIONS] [OPERATION [ARGUMENTS]]\n\nOptions:\n",
	    role->name);
	for (int g = 0; g < GLOBALS; g++) {
		char *name;

		if (!is_ours((enum global)g))
			continue;
		name = described((enum global)g);
		buf_addf(&b, "  %s%s%s\n      %s\n", g == G_HELP ? "-h, " : "",
		    name,
		    globals[g].alias && g != G_HELP ? " (or --gateway-socket)"
						    : "",
		    globals[g].help);
		free(name);
	}
	buf_addf(&b, "\n%s help shows the operations.\n", role->name);
	print(&b);
}

__attribute__((noreturn)) static void
help(const char *name)
{
	struct ops ops = OPS_INIT;
	struct op_families families = OP_FAMILIES_INIT;
	struct ophelp h = { role->title, role->space, role->use, &ops,
		&families };
	struct buf b = BUF_INIT;

	read_catalog(&ops, &families);
	if (!name) {
		ophelp_all(&h, &b);
		print(&b);
	}
	if (ophelp_one(&h, name, &b))
		print(&b);
	ophelp_unknown(&h, name, &b);
	refuse(KIND_INVALID, "%s", buf_str(&b));
}

/* Returns when something else than help is asked for. */
static void
perhaps_help(void)
{
	bool is_help = line.op && strcmp(line.op, "help") == 0;

	if (line.value[G_HELP] && (!line.op || is_help))
		help_options();
	if (line.value[G_HELP])
		help(line.op);
	if (!line.op)
		help(NULL);
	if (!is_help)
		return;
	if (line.n > 1)
		refuse(KIND_INVALID, "help accepts at most one operation");
	help(line.n == 1 ? line.word[0] : NULL);
}

/* ---- completion ---- */

static const char bash_completion[] =
    "# bash completion for NAME, as NAME --completion bash prints it\n"
    "_FUNC() {\n"
    "\tlocal cut= i line word\n"
    "\tlocal -a words=()\n"
    "\t# bash makes three words of --flag=value.\n"
    "\tfor ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "\t\tword=${COMP_WORDS[i]}\n"
    "\t\tif [[ $word = = && ${words[-1]-} = --* ]]; then\n"
    "\t\t\tcut=${words[-1]}= words[-1]=$cut\n"
    "\t\telif [[ $cut && ${words[-1]} = \"$cut\" && ${COMP_WORDS[i-1]} = = ]]; "
    "then\n"
    "\t\t\twords[-1]=$cut$word\n"
    "\t\telse\n"
    "\t\t\tcut= words+=(\"$word\")\n"
    "\t\tfi\n"
    "\tdone\n"
    "\tCOMPREPLY=()\n"
    "\twhile IFS= read -r line; do\n"
    "\t\tline=${line%%$'\\t'*}\n"
    "\t\tCOMPREPLY+=(\"${line#\"$cut\"}\")\n"
    "\tdone < <(\"$1\" --complete \"${words[@]}\" 2>/dev/null)\n"
    "}\n"
    "complete -o default -F _FUNC NAME\n";

static const char zsh_completion[] =
    "#compdef NAME\n"
    "# zsh completion for NAME, as NAME --completion zsh prints it\n"
    "_FUNC() {\n"
    "\tlocal line name\n"
    "\tlocal -a items\n"
    "\tfor line in \"${(@f)$(NAME --complete \"${(@Q)words[2,CURRENT]}\" "
    "2>/dev/null)}\"; do\n"
    "\t\tname=${line%%$'\\t'*}\n"
    "\t\t[[ -z $line ]] || items+=(\"${name//:/\\\\:}:${line#*$'\\t'}\")\n"
    "\tdone\n"
    "\tif (( $#items )); then _describe word items; else _files; fi\n"
    "}\n"
    "if [[ $funcstack[1] = _FUNC ]]; then _FUNC \"$@\"; "
    "else compdef _FUNC NAME; fi\n";

/* In the texts NAME stands for the program, FUNC for a function of it. */
__attribute__((noreturn)) static void
completion(const char *shell)
{
	struct buf b = BUF_INIT;
	const char *text = NULL;

	if (strcmp(shell, "bash") == 0)
		text = bash_completion;
	else if (strcmp(shell, "zsh") == 0)
		text = zsh_completion;
	if (!text)
		misused("invalid value '%s' for '%s': bash or zsh", shell,
		    described(G_COMPLETION));
	while (*text) {
		bool is_func = strncmp(text, "FUNC", 4) == 0;

		if (!is_func && strncmp(text, "NAME", 4) != 0) {
			buf_addc(&b, *text++);
			continue;
		}
		for (const char *p = role->name; *p; p++)
			buf_addc(&b, is_func && *p == '-' ? '_' : *p);
		text += 4;
	}
	print(&b);
}

static void
offer(struct buf *b, const char *before, const char *word, const char *prefix,
    const char *help_text)
{
	if (strncmp(word, prefix, strlen(prefix)) == 0)
		buf_addf(b, "%s%s\t%s\n", before, word, help_text);
}

static void
offer_globals(struct buf *b, const char *prefix)
{
	for (int g = 0; g < GLOBALS; g++)
		if (is_ours((enum global)g) && !line.value[g])
			offer(b, "", globals[g].flag, prefix, globals[g].help);
}

static void
offer_ops(struct buf *b, const char *prefix, bool with_help)
{
	struct ops ops = OPS_INIT;
	struct op_families families = OP_FAMILIES_INIT;

	read_catalog(&ops, &families);
	for (size_t i = 0; i < ops.n; i++)
		offer(b, "", ops.op[i].name, prefix, ops.op[i].summary);
	if (with_help)
		offer(b, "", "help", prefix, "Show help.");
}

/* The last of n words of the operation is not finished. */
static void
offer_args(struct buf *b, const struct op *op, char *const *word, size_t n)
{
	const char *prefix = word[n - 1], *is_at = strchr(prefix, '=');
	const struct op_arg *a = NULL;
	bool *used = xcalloc(op->nargs + 1, sizeof *used);

	for (size_t i = 0; i + 1 < n; i++) {
		a = opcli_flag(op, word[i], strcspn(word[i], "="));
		if (!a)
			continue;
		used[a - op->arg] = true;
		if (strchr(word[i], '='))
			a = NULL;
		else if (i + 2 < n)
			i++;
	}
	if (n < 2 ||
	    (a && opcli_flag(op, word[n - 2], strlen(word[n - 2])) != a))
		a = NULL;
	if (a) {
		for (size_t i = 0; i < a->values.n; i++)
			offer(b, "", a->values.v[i], prefix, a->help);
		return;
	}
	a = is_at ? opcli_flag(op, prefix, (size_t)(is_at - prefix)) : NULL;
	if (a) {
		char *before = xstrndup(prefix, (size_t)(is_at - prefix) + 1);

		for (size_t i = 0; i < a->values.n; i++)
			offer(b, before, a->values.v[i], is_at + 1, a->help);
		return;
	}
	for (size_t i = 0; i < op->nargs; i++)
		if (!op->arg[i].label && !used[i])
			offer(b, "", op->arg[i].flag, prefix, op->arg[i].help);
}

/* The words up to the cursor, the last perhaps empty. */
__attribute__((noreturn)) static void
complete(char *const *word, int n)
{
	struct buf b = BUF_INIT;
	const char *value, *op_name = NULL;
	struct op op;
	int i = 0;

	while (i < n - 1) {
		enum global g = find_global(word[i], &value);

		if (g == GLOBALS && op_name)
			break;
		if (g == GLOBALS)
			op_name = word[i];
		else
			line.value[g] = "";
		i++;
		if (g != GLOBALS && globals[g].value && !value)
			i++;
	}
	/* The value of an option is nothing that we know. */
	if (n == 0 || i > n - 1)
		exit(EXIT_OK);
	if (!op_name) {
		if (*word[n - 1] == '-')
			offer_globals(&b, word[n - 1]);
		else
			offer_ops(&b, word[n - 1], true);
	} else if (strcmp(op_name, "help") == 0) {
		offer_ops(&b, word[n - 1], false);
	} else {
		read_op(op_name, &op);
		offer_args(&b, &op, word + i, (size_t)(n - i));
		if (i == n - 1 && strncmp(word[i], "--h", 3) == 0)
			offer(&b, "", "--help", word[i], globals[G_HELP].help);
	}
	print(&b);
}

/* ---- the request ---- */

/*
 * The sandbox of the request, a JSON string, from where the role has it; empty:
 * the system.
 */
static void
print_sandbox(const struct op *op, const struct opcli *cli, struct buf *json)
{
	const struct op_arg *a = op_arg(op, "sandbox_id");
	struct buf id = BUF_INIT;

	if (role->set == OP_RUNTIME) {
		const char *given = line.value[G_SANDBOX];

		out_string(json, given, strlen(given));
	} else if (a && a->selector && cli->value[a - op->arg].len > 0) {
		buf_adds(json, buf_str(&cli->value[a - op->arg]));
		json_string((struct span){ json->data, json->len }, &id);
		if (client_is_blank(buf_str(&id)))
			refuse(KIND_INVALID, "%s must be non-empty",
			    opcli_name(a));
	} else if (a && a->selector && op->scope == OP_SANDBOX) {
		refuse(KIND_INVALID, "%s is required for %s", opcli_name(a),
		    op->name);
	}
	buf_release(&id);
}

static void
show_progress(void *arg, const char *text)
{
	long ms = clock_ms() - start;
	struct buf b = BUF_INIT;

	(void)arg;
	buf_addf(&b, "[progress %ld.%03lds] ", ms / 1000, ms % 1000);
	for (const char *p = text; *p; p++)
		buf_addc(&b, (unsigned char)*p < 0x20 || *p == 0x7f ? '?' : *p);
	buf_addc(&b, '\n');
	/* Progress that cannot be shown stops nothing. */
	if (io_write_all(STDERR_FILENO, b.data, b.len) == -1)
		errno = 0;
	buf_release(&b);
}

/* Takes the answer, and what to make of it. */
__attribute__((noreturn)) static void
print_reply(struct buf *reply, struct filter *filter, bool progress)
{
	struct failure f = FAILURE_INIT;
	struct buf out = BUF_INIT, why = BUF_INIT;

	if (filter &&
	    !filter_run(filter, reply->data, reply->len, &out, &why)) {
		/* It was done, so the answer must not get lost. */
		out_key(&f.details, "reply");
		buf_add(&f.details, reply->data, reply->len);
		failure_set(&f, KIND_INVALID, "--jq: %s", buf_str(&why));
		fail(EXIT_FAULT, &f);
	}
	if (progress && io_write_all(STDERR_FILENO, "[Output]\n", 9) == -1)
		errno = 0;
	if (filter)
		print(&out);
	buf_addc(reply, '\n');
	print(reply);
}

__attribute__((noreturn)) static void
run(void)
{
	struct client client = CLIENT_INIT;
	struct opcli cli = OPCLI_INIT;
	struct buf why = BUF_INIT, request = BUF_INIT, reply = BUF_INIT;
	struct buf sandbox = BUF_INIT;
	struct failure f = FAILURE_INIT;
	struct filter *filter = NULL;
	struct call call = { .to = &client.to, .said = show_progress };
	struct client_request r = { .id = line.value[G_REQUEST] };
	struct op op;
	bool progress;

	if (!client_find(
		line.value[G_ENDPOINT], line.value[G_TOKEN], &client, &why))
		refuse(KIND_CONFIG, "%s", buf_str(&why));
	read_op(line.op, &op);
	if (!opcli_parse(&op, line.word, line.n, &cli, &why))
		refuse(KIND_INVALID, "%s", buf_str(&why));
	progress = line.value[G_PROGRESS] || cli.progress;
	print_sandbox(&op, &cli, &sandbox);
	r.op = &op;
	r.given = &cli;
	r.sandbox = sandbox.len > 0 ? sandbox.data : NULL;
	r.token = client.token;
	r.progress = progress;
	client_print(&r, &request);
	if (line.value[G_JQ]) {
		filter = filter_new(line.value[G_JQ], &why);
		if (!filter)
			refuse(KIND_INVALID, "--jq: %s", buf_str(&why));
	}
	call.line = request.data;
	call.n = request.len;
	call.connect_ms = (int)milliseconds(G_CONNECT, 1, CALL_CONNECT_MS);
	call.answer_ms = milliseconds(G_ANSWER, 0, client_patience(&op, &cli));
	if (!call_run(&call, &reply, &f))
		fail(EXIT_FAULT, &f);
	if (call_is_error(&reply))
		fail_with(EXIT_FAULT, &reply);
	print_reply(&reply, filter, progress);
}

int
main(int argc, char **argv)
{
	err_init();
	start = clock_ms();
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (strcmp(path_base(argv[0]), roles[i].name) == 0)
			role = &roles[i];
	if (!role)
		die(EXIT_USAGE,
		    "to be called as sandbox-manager-cli, "
		    "sandbox-runtime-cli or sandbox-observability-cli");
	if (argc >= 2 && strcmp(argv[1], "--complete") == 0)
		complete(argv + 2, argc - 2);
	take_line(argv, argc);
	if (line.value[G_COMPLETION])
		completion(line.value[G_COMPLETION]);
	if (line.value[G_VERSION]) {
		struct buf b = BUF_INIT;

		buf_addf(&b, "%s " SB_VERSION "\n", role->name);
		print(&b);
	}
	milliseconds(G_CONNECT, 1, 0);
	milliseconds(G_ANSWER, 0, 0);
	check_request_id();
	perhaps_help();
	if (role->set == OP_RUNTIME)
		check_sandbox_id();
	run();
}
