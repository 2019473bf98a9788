/* SPDX-License-Identifier: MIT */
/* Operation files: what is one, checks of arguments, words of commands. */
#include "op.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "opargs.h"
#include "tap.h"

static int opsfd = -1;
static char dir[4096];

static void
begin(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof dir, "%s/op.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		exit(111);
	opsfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (opsfd == -1 || mkdirat(opsfd, "runtime", 0700) == -1 ||
	    mkdirat(opsfd, "management", 0700) == -1 ||
	    mkdirat(opsfd, "observability", 0700) == -1 ||
	    mkdirat(opsfd, "internal", 0700) == -1)
		exit(111);
}

static void
end(void)
{
	io_drop(&opsfd);
	path_rm_tree(AT_FDCWD, dir);
}

static void
put(const char *text)
{
	int fd = openat(opsfd, "runtime/x.json",
	    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1 || io_write_all(fd, text, strlen(text)) == -1)
		exit(111);
	io_drop(&fd);
}

#define HEAD                                                              \
	"{\"name\":\"x\",\"family\":\"f\",\"order\":1,\"summary\":\"s\"," \
	"\"description\":\"d\",\"scope\":\"sandbox_required\","

static bool
refused(const char *text, const char *want)
{
	struct buf why = BUF_INIT;
	struct op op;
	bool good;

	put(text);
	good = op_read(opsfd, OP_RUNTIME, "x", &op, &why) == -1 &&
	    errno == EINVAL && strstr(buf_str(&why), want);
	if (!good)
		printf("# %s\n# said: %s\n", text, buf_str(&why));
	buf_release(&why);
	return good;
}

static void
test_files(void)
{
	static const struct {
		const char *text, *want;
	} v[] = {
		{ "", "runtime/x.json: value expected" },
		{ "[]", "must be an object" },
		{ "{\"name\":\"y\"}", "name must be that of the file" },
		{ "{\"name\":\"x\"}", "needs a summary" },
		{ "{\"nam\":\"x\"}", "x.json: nam: unknown" },
		{ "{\"name\":\"x\\u0000\"}", "name: must be a string" },
		{ "{\"name\":\"x\",\"name\":\"x\"}", "name: stands there" },
		{ HEAD "\"box\":{}}", "needs host or box" },
		{ HEAD "\"box\":{\"argv\":[]}}", "box.argv: must not be" },
		{ HEAD "\"box\":{\"argv\":[1]}}", "box.argv: must be a str" },
		{ HEAD "\"box\":{\"argv\":[\"a\",\"{y}\"]}}",
		    "box.argv[1]: no word" },
		{ HEAD "\"box\":{\"argv\":[\"a\",\"{-f y}\"]}}",
		    "box.argv[1]" },
		{ HEAD "\"box\":{\"argv\":[\"a\",\"{\"]}}", "box.argv[1]" },
		{ HEAD "\"box\":{\"argv\":[\"a\",\"x}\"]}}", "box.argv[1]" },
		{ HEAD "\"box\":{\"argv\":[\"a\",\"{{sandbox_id}\"]}}",
		    "box.argv[1]" },
		{ HEAD "\"box\":{\"argv\":[\"{sandbox_id}\"]}}",
		    "box.argv[0]" },
		{ HEAD "\"box\":{\"argv\":[\"a\"],\"x\":1}}",
		    "box.x: unknown" },
		{ HEAD "\"box\":{\"argv\":[\"a\"],\"reply\":\"lines\"}}",
		    "box.reply: must be" },
		{ HEAD "\"box\":{\"argv\":[\"a\"],\"with\":{\"a\":\"b\"}}}",
		    "an object has no with" },
		{ HEAD "\"box\":{\"argv\":[\"a\"],\"reply\":\"none\","
		       "\"with\":{\"a\":\"{b}\"}}}",
		    "with names no argument" },
		{ HEAD "\"box\":{\"forward\":true}}", "box neither" },
		{ HEAD "\"host\":{\"ready\":true}}", "host: does nothing" },
		{ HEAD "\"host\":{\"forward\":true,\"refuse\":\"no\"}}",
		    "refuses and does" },
		{ HEAD "\"host\":{\"forward\":true},\"waits\":\"y\"}",
		    "waits must name" },
		{ HEAD "\"host\":{\"forward\":true},\"order\":0}", "order" },
		{ HEAD "\"host\":{\"forward\":true},\"cancel\":1}",
		    "cancel: must be true" },
		{ HEAD "\"host\":{\"forward\":true},\"deadline_ms\":0}",
		    "deadline_ms" },
		{ HEAD "\"args\":[{\"name\":\"a\",\"kind\":\"int\","
		       "\"help\":\"h\"}]}",
		    "args[0].kind: unknown" },
		{ HEAD "\"args\":[{\"name\":\"a\",\"help\":\"h\"}]}",
		    "args[0]: needs a kind" },
		{ HEAD "\"args\":[{\"name\":\"A\",\"help\":\"h\"}]}",
		    "args[0]: needs a name" },
		{ HEAD "\"args\":[{\"name\":\"a\",\"kind\":\"string\","
		       "\"help\":\"h\",\"min\":1}]}",
		    "only a number" },
		{ HEAD "\"args\":[{\"name\":\"a\",\"kind\":\"integer\","
		       "\"help\":\"h\",\"server_default\":\"1\"}]}",
		    "of its kind" },
		{ HEAD "\"args\":[{\"name\":\"a\",\"kind\":\"integer\","
		       "\"help\":\"h\",\"mcp_default\":\"1\"}]}",
		    "of its kind" },
		{ HEAD "\"args\":[{\"name\":\"a\",\"kind\":\"string\","
		       "\"help\":\"h\",\"items\":{}}]}",
		    "only an array has items" },
		{ HEAD "\"args\":[{\"name\":\"a\",\"kind\":\"json_array\","
		       "\"help\":\"h\",\"items\":[]}]}",
		    "args[0].items: must be an object" },
		{ HEAD "\"host\":{\"forward\":true},\"additive\":1}",
		    "additive: must be true" },
		{ HEAD "\"host\":{\"forward\":true},\"open_world\":null}",
		    "open_world: must be true" },
		{ HEAD "\"host\":{\"forward\":true},\"idempotent\":[]}",
		    "idempotent: must be true" },
		{ HEAD "\"args\":[{\"name\":\"a\",\"kind\":\"path\","
		       "\"help\":\"h\"},{\"name\":\"a\",\"kind\":\"path\","
		       "\"help\":\"h\"}]}",
		    "args[1]: this name is taken" },
	};
	struct buf why = BUF_INIT;
	struct op op;

	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		ok(refused(v[i].text, v[i].want), v[i].want);
	ok(op_read(opsfd, OP_RUNTIME, "y", &op, &why) == -1 && errno == ENOENT,
	    "no such operation");
	ok(op_read(opsfd, OP_RUNTIME, "../runtime/x", &op, &why) == -1 &&
		errno == ENOENT,
	    "a path is no name");
	ok(op_read(opsfd, OP_RUNTIME, "", &op, &why) == -1 && errno == ENOENT,
	    "nothing is no name");
	buf_release(&why);
}

#define OP                                                                        \
	HEAD                                                                      \
	    "\"args\":["                                                          \
	    "{\"name\":\"s\",\"kind\":\"string\",\"required\":true,"              \
	    "\"help\":\"h\"},"                                                    \
	    "{\"name\":\"n\",\"kind\":\"integer\",\"help\":\"h\"},"               \
	    "{\"name\":\"lim\",\"kind\":\"integer\",\"min\":1,\"max\":20,"        \
	    "\"help\":\"h\"},"                                                    \
	    "{\"name\":\"f\",\"kind\":\"float\",\"min\":0,\"help\":\"h\","        \
	    "\"error\":\"f must not be {}\"},"                                    \
	    "{\"name\":\"e\",\"kind\":\"string\",\"values\":[\"a\",\"b\",\"c\"]," \
	    "\"help\":\"h\",\"server_default\":\"a\"},"                           \
	    "{\"name\":\"in\",\"kind\":\"string\",\"required\":true,"             \
	    "\"server_default\":\"\",\"help\":\"h\"},"                            \
	    "{\"name\":\"arr\",\"kind\":\"json_array\",\"help\":\"h\"}],"         \
	    "\"waits\":\"n\",\"deadline_ms\":100,"                                \
	    "\"box\":{\"argv\":[\"prog\",\"{-n n}\",\"x{s}y{n}\",\"{f}\","        \
	    "\"{?e=b -b}\",\"{?arr -a}\",\"{<in}\",\"--\",\"{s}\","               \
	    "\"r:{request_id}\",\"{?progress -v}\"],\"reply\":\"none\","          \
	    "\"with\":{\"s\":\"{s}\",\"n\":\"{n}\",\"t\":\"<{s}>\"}}}"

static void
test_args(void)
{
	static const struct {
		const char *args, *want; /* NULL: good */
	} v[] = {
		{ "{}", "s is required for x" },
		{ "{\"s\":null}", "s must be a string" },
		{ "{\"s\":1}", "s must be a string" },
		{ "{\"s\":\"\"}", "s must be non-empty" },
		{ "{\"s\":\"a\\u0000b\"}", "s must not contain NUL" },
		{ "{\"s\":\"a\",\"s\":\"\"}", "s must be non-empty" },
		{ "{\"s\":\"\",\"s\":\"a\"}", NULL },
		{ "{\"\\u0073\":\"a\"}", NULL },
		{ "{\"s\":\"a\",\"n\":\"x\",\"lim\":\"y\"}",
		    "n must be an integer" },
		{ "{\"s\":\"a\",\"n\":1.0}", "n must be an integer" },
		{ "{\"s\":\"a\",\"n\":1e3}", "n must be an integer" },
		{ "{\"s\":\"a\",\"n\":-1}", "n must be an integer" },
		{ "{\"s\":\"a\",\"n\":-0}", "n must be an integer" },
		{ "{\"s\":\"a\",\"n\":true}", "n must be an integer" },
		{ "{\"s\":\"a\",\"n\":null}", NULL },
		{ "{\"s\":\"a\",\"n\":18446744073709551615}", NULL },
		{ "{\"s\":\"a\",\"n\":18446744073709551616}",
		    "n is too large" },
		{ "{\"s\":\"a\",\"lim\":0}", "lim must be at least 1" },
		{ "{\"s\":\"a\",\"lim\":21}", "lim exceeds max (20)" },
		{ "{\"s\":\"a\",\"lim\":20}", NULL },
		{ "{\"s\":\"a\",\"f\":\"1\"}", "f must be a number" },
		{ "{\"s\":\"a\",\"f\":1e999}", "f must be finite" },
		{ "{\"s\":\"a\",\"f\":-1}", "f must not be -1" },
		{ "{\"s\":\"a\",\"f\":1}", NULL },
		{ "{\"s\":\"a\",\"e\":\"d\"}", "e must be one of a, b or c" },
		{ "{\"s\":\"a\",\"e\":null}", NULL },
		{ "{\"s\":\"a\",\"in\":\"\\u0000\"}", NULL },
		{ "{\"s\":\"a\",\"arr\":{}}", "arr must be an array" },
		{ "{\"s\":\"a\",\"arr\":\"{}\"}", "arr must be an array" },
		{ "{\"s\":\"a\",\"arr\":\"[\"}", "arr must be an array" },
		{ "{\"s\":\"a\",\"arr\":\" [1]\"}", NULL },
		{ "{\"s\":\"a\",\"other\":1}", NULL },
	};
	struct buf why = BUF_INIT;
	struct op op;

	put(OP);
	if (!ok(op_read(opsfd, OP_RUNTIME, "x", &op, &why) == 0, "it is read"))
		printf("# %s\n", buf_str(&why));
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct op_values values = OP_VALUES_INIT;
		struct span args = { v[i].args, strlen(v[i].args) };
		bool good = op_check(&op, &op.box, args, &values, &why);

		if (!ok(v[i].want
			    ? !good && strcmp(buf_str(&why), v[i].want) == 0
			    : good,
			v[i].want ? v[i].want : "good"))
			printf("# %s: %s\n", v[i].args, buf_str(&why));
		op_values_release(&values);
	}
	op_release(&op);
	buf_release(&why);
}

static bool
large(size_t n, const char *arg)
{
	struct op_values values = OP_VALUES_INIT;
	struct buf why = BUF_INIT, args = BUF_INIT;
	struct op op;
	bool good;

	put(OP);
	if (op_read(opsfd, OP_RUNTIME, "x", &op, &why) == -1)
		exit(111);
	buf_addf(&args, "{\"s\":\"a\",\"%s\":\"", arg);
	for (size_t i = 0; i < n; i++)
		buf_addc(&args, 'a');
	buf_adds(&args, "\"}");
	good = op_check(
	    &op, &op.box, (struct span){ args.data, args.len }, &values, &why);
	op_values_release(&values);
	buf_release(&why);
	buf_release(&args);
	op_release(&op);
	return good;
}

static bool
words(const char *args, bool progress, const char *want, const char *input)
{
	struct op_values values = OP_VALUES_INIT;
	struct op_strings argv = { .v = NULL };
	struct buf why = BUF_INIT, in = BUF_INIT, all = BUF_INIT;
	struct op op;
	bool good;

	put(OP);
	if (op_read(opsfd, OP_RUNTIME, "x", &op, &why) == -1)
		exit(111);
	if (!op_check(&op, &op.box, (struct span){ args, strlen(args) },
		&values, &why))
		printf("# %s\n", buf_str(&why));
	values.request_id = "q";
	values.progress = progress;
	op_expand(&op, &op.box, &values, &argv, &in);
	for (size_t i = 0; i < argv.n; i++)
		buf_addf(&all, "%s%s", i ? "|" : "", argv.v[i]);
	good = argv.v[argv.n] == NULL && strcmp(buf_str(&all), want) == 0 &&
	    strcmp(buf_str(&in), input) == 0;
	if (!good)
		printf("# %s < %s\n", buf_str(&all), buf_str(&in));
	op_strings_release(&argv);
	op_values_release(&values);
	op_release(&op);
	buf_release(&why);
	buf_release(&in);
	buf_release(&all);
	return good;
}

static void
test_words(void)
{
	static const char args[] = "{\"s\":\"a\\\"\xc3\xa9\",\"n\":7}";
	struct op_values values = OP_VALUES_INIT;
	struct buf why = BUF_INIT, b = BUF_INIT;
	struct op op;

	ok(words("{\"s\":\"a\"}", false, "prog|xay|--|a|r:q", ""),
	    "what is not given leaves no word");
	ok(words("{\"s\":\"-n\",\"n\":9007199254740993,\"f\":1.50,"
		 "\"e\":\"b\",\"arr\":[1, 2],\"in\":\"i\\n\"}",
	       true,
	       "prog|-n|9007199254740993|x-ny9007199254740993|1.50|-b|-a|--|"
	       "-n|r:q|-v",
	       "i\n"),
	    "all given; numbers are bytes as they came");
	ok(words("{\"s\":\"{n} $(x) `y`\",\"n\":1}", false,
	       "prog|-n|1|x{n} $(x) `y`y1|--|{n} $(x) `y`|r:q", ""),
	    "a value is never looked at again");

	if (op_read(opsfd, OP_RUNTIME, "x", &op, &why) == -1)
		exit(111);
	op_check(&op, &op.box, (struct span){ args, sizeof args - 1 }, &values,
	    &why);
	buf_addc(&b, '{');
	op_with(&op, &op.box, &values, &b);
	ok(strcmp(buf_str(&b),
	       "{\"s\":\"a\\\"\xc3\xa9\",\"n\":7,\"t\":\"<a\\\"\xc3\xa9>\"") ==
		0,
	    "members that stand before");
	ok(op_deadline(&op, (struct span){ args, sizeof args - 1 }) == 107,
	    "the deadline has the wait in it");
	ok(op_deadline(&op, (struct span){ "{\"n\":\"x\"}", 9 }) == 100,
	    "unless that is no number");
	ok(op_deadline(
	       &op, (struct span){ "{\"n\":18446744073709551615}", 26 }) ==
		UINT64_MAX,
	    "or larger than anything");
	op_values_release(&values);
	op_release(&op);
	buf_release(&why);
	buf_release(&b);
}

static bool
request_id(const char *s, size_t n, const char *want)
{
	struct buf b = BUF_INIT;
	char *got;
	bool good;

	buf_add(&b, s, n);
	got = op_request_id(&b);
	good = strcmp(got, want) == 0;
	if (!good)
		printf("# %s\n", got);
	free(got);
	buf_release(&b);
	return good;
}

static void
test_request_id(void)
{
	char text[202], want[200];

	memset(text, 'a', sizeof text);
	memset(want, 'a', sizeof want);
	memcpy(text + 199, "\xc3\xa9", 2);
	want[199] = '\0';
	ok(request_id("r1", 2, "r1"), "a plain id");
	ok(request_id("", 0, ""), "an empty one");
	ok(request_id("a\0b\n\x7f", 5, "a?b??"), "control characters");
	ok(request_id("\xc2\x85x\xc2\xa0", 5, "??x\xc2\xa0"),
	    "those beyond ASCII");
	ok(request_id(text, sizeof text, want), "cut between characters");
}

int
main(void)
{
	begin();
	test_files();
	test_args();
	ok(large(OP_WORD_MAX, "e") == false, "no value of a list");
	ok(large(OP_WORD_MAX, "in"), "standard input has room");
	ok(large(OP_WORD_MAX + 1, "in"), "for more than a word");
	test_words();
	test_request_id();
	end();
	return done();
}
