/* SPDX-License-Identifier: MIT */
/* The settings file: what it may say, what is refused and in which words. */
#include "conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "path.h"

#include "tap.h"

/*
 * ignored_changes, max_active and squash_at_n_layers as they are wanted; or
 * word NULL, and number says why.
 */
#define W "runtime.layerstack.ignored_changes"
#define N "runtime.command.max_active"
static const struct {
	const char *text;
	size_t n;
	const char *word, *number;
} v[] = {
#define T(text) text, sizeof text - 1
	{ T(""), "publish", "32" },
	{ T(W " discard\n"), "discard", "32" },
	{ T(W " discard"), "discard", "32" },
	{ T(W " publish\n" N " 1\n"), "publish", "1" },
	{ T("\n# " W " discard\n \t\n  # x\n" N " 1024\n"), "publish", "1024" },
	{ T(" \t" W "\t  discard \t\n"), "discard", "32" },
	{ T(W " \"discard\"\n" N "  \"3\\x31\" \n"), "discard", "31" },
	{ T(W "\n"), NULL, "conf: line 1: " W ": no value" },
	{ T(W "  \n"), NULL, "conf: line 1: " W ": no value" },
	{ T(W " \"\"\n"), NULL, "conf: line 1: " W ": no value" },
	{ T("\n" W " three\n"), NULL,
	    "conf: line 2: " W ": three is none of: publish discard" },
	{ T(W " publish discard\n"), NULL,
	    "conf: line 1: " W
	    ": publish discard is none of: publish discard" },
	{ T(W " discar\n"), NULL,
	    "conf: line 1: " W ": discar is none of: publish discard" },
	{ T(W " discard\r\n"), NULL,
	    "conf: line 1: " W ": discard\r is none of: publish discard" },
	{ T(N " 0\n"), NULL,
	    "conf: line 1: " N ": 0 is no number from 1 to 1024" },
	{ T(N " 1025\n"), NULL,
	    "conf: line 1: " N ": 1025 is no number from 1 to 1024" },
	{ T(N " 7x\n"), NULL,
	    "conf: line 1: " N ": 7x is no number from 1 to 1024" },
	{ T(W " publish\nb 1\n"), NULL, "conf: line 2: b: no such key" },
	{ T("runtime.layerstack 1\n"), NULL,
	    "conf: line 1: runtime.layerstack: no such key" },
	{ T("daemon.server.max_worker_threads 1\n"), NULL,
	    "conf: line 1: daemon.server.max_worker_threads: no such key" },
	{ T(W "x two\n"), NULL, "conf: line 1: " W "x: no such key" },
	{ T(W " publish\n" W " publish\n"), NULL,
	    "conf: line 2: " W ": given twice" },
	{ T("runtime.workspace.root shared\nruntime.workspace.root shared\n"),
	    NULL, "conf: line 2: runtime.workspace.root: given twice" },
	{ T(W " disc\0ard\n"), NULL, "conf: line 1: a NUL byte" },
	{ T("\xff\n"), NULL, "conf: line 1: \xff: no such key" },
	{ T(W " \"discard\n"), NULL, "conf: line 1: " W ": no text in quotes" },
	{ T(W " \"discard\" x\n"), NULL,
	    "conf: line 1: " W ": no text in quotes" },
	{ T(W " \"discard\\\n"), NULL,
	    "conf: line 1: " W ": no text in quotes" },
	{ T(W " \"\\x00\"\n"), NULL, "conf: line 1: " W ": no text in quotes" },
	{ T(W " \"\\x4\"\n"), NULL, "conf: line 1: " W ": no text in quotes" },
	{ T(W " \"\\x\"\n"), NULL, "conf: line 1: " W ": no text in quotes" },
	{ T(W " \"\\n\"\n"), NULL, "conf: line 1: " W ": no text in quotes" },
#undef T
};

static void
test_parse(void)
{
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct buf why = BUF_INIT;
		struct conf c;
		bool good = conf_parse(v[i].text, v[i].n, &c, &why);

		if (!ok(v[i].word ? good && why.len == 0 &&
				conf_is(&c, CONF_IGNORED_CHANGES, v[i].word) &&
				strcmp(conf_word(&c, CONF_MAX_ACTIVE),
				    v[i].number) == 0
				  : !good && !c.text && !c.item &&
				strcmp(buf_str(&why), v[i].number) == 0,
			v[i].word ? "a good text" : "a bad text"))
			printf("# text %zu: %s\n", i, buf_str(&why));
		conf_release(&c);
		buf_release(&why);
	}
}

/* The items of a key as "name=value;", caller frees. */
static char *
items(const struct conf *c, enum conf_which which)
{
	struct buf b = BUF_INIT;
	const struct conf_item *it;

	buf_adds(&b, "");
	for (size_t at = 0; (it = conf_next(c, which, &at));)
		buf_addf(&b, "%s=%s;", it->name, it->value);
	return buf_steal(&b);
}

static bool
has(const struct conf *c, enum conf_which which, const char *want)
{
	char *got = items(c, which);
	bool same = strcmp(got, want) == 0;

	if (!same)
		printf("# %s\n", got);
	free(got);
	return same;
}

#define P "manager.docker.resource_profiles."
#define E "manager.docker.container_env."

static void
test_items(void)
{
	static const char text[] =
	    "runner.mount_mask.hidden_paths /a b\n"
	    "manager.workspace_roots /w\n"
	    "runner.mount_mask.hidden_paths /a b\n" E "A  x y \n" E
	    "B.C \"\"\n" E "D \" \\\"\\\\\\x0a\"\n" P "s.t.pids_max 7\n";
	static const char line[] = "runner.mount_mask.hidden_paths /a\n";
	struct buf why = BUF_INIT, many = BUF_INIT;
	struct conf c;

	ok(conf_parse("", 0, &c, &why), "an empty text");
	ok(has(&c, CONF_HIDDEN_PATHS, "=/eos;") &&
		has(&c, CONF_WORKSPACE_ROOTS, "") &&
		has(&c, CONF_CONTAINER_ENV, "") &&
		has(&c, CONF_PROFILE_PIDS, "build-heavy=1024;standard=256;"),
	    "lists and maps have defaults");
	conf_release(&c);
	ok(conf_parse(text, sizeof text - 1, &c, &why), "a text with lists");
	ok(has(&c, CONF_HIDDEN_PATHS, "=/a b;=/a b;") &&
		has(&c, CONF_WORKSPACE_ROOTS, "=/w;"),
	    "a list has the items of its lines");
	ok(has(&c, CONF_CONTAINER_ENV, "A=x y;B.C=;D= \"\\\n;"),
	    "a map has their names, and a value in quotes may be any");
	ok(has(&c, CONF_PROFILE_PIDS, "s.t=7;") &&
		has(&c, CONF_PROFILE_MAX, ""),
	    "profiles take the place of all that are there by default");
	conf_release(&c);
	ok(!conf_parse(
	       E "A 1\n" E "A 1\n", strlen(E "A 1\n" E "A 1\n"), &c, &why) &&
		strcmp(buf_str(&why), "conf: line 2: " E "A: given twice") == 0,
	    "a name of a map stands there once");
	for (int i = 0; i < CONF_ITEMS_MAX; i++)
		buf_adds(&many, line);
	ok(conf_parse(many.data, many.len, &c, &why) &&
		c.nitems >= CONF_ITEMS_MAX,
	    "the longest list");
	conf_release(&c);
	buf_adds(&many, line);
	buf_cut(&why, 0);
	ok(!conf_parse(many.data, many.len, &c, &why) &&
		strcmp(buf_str(&why),
		    "conf: line 4097: runner.mount_mask.hidden_paths: "
		    "more lines of lists and maps than the 4096 that there may be") ==
		    0,
	    "one line more");
	buf_release(&many);
	buf_release(&why);
}

/* What is written is read as it was. */
static void
test_lines(void)
{
	static const char *const value[] = { "", "a", " a", "a ", "a b", "\"",
		"\"a\"", "a\"", "\\", "a\\x41", "\t", "a\nb", "\x7f", "\x01",
		"#", "\xc3\xa4" };
	struct buf text = BUF_INIT, why = BUF_INIT;
	const struct conf_item *it = NULL;
	struct conf c;
	size_t at = 0;
	bool same;

	for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
		char name[sizeof E + 20];

		snprintf(name, sizeof name, E "%zu", i);
		conf_add_line(&text, name, value[i]);
	}
	same = conf_parse(text.data, text.len, &c, &why);
	for (size_t i = 0; same && i < sizeof value / sizeof *value; i++) {
		it = conf_next(&c, CONF_CONTAINER_ENV, &at);
		same = it && strcmp(it->value, value[i]) == 0;
	}
	if (!ok(same, "values of any kind are read as they were written"))
		printf("# %s\n%s\n", buf_str(&why), buf_str(&text));
	conf_release(&c);
	buf_release(&text);
	buf_release(&why);
}

static int dir;

static void
put(const char *text, size_t n)
{
	int fd = openat(
	    dir, CONF_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1 || io_write_all(fd, text, n) == -1 || io_close(fd) == -1)
		exit(111);
}

static void
fails(int err, const char *say, const char *what)
{
	struct buf why = BUF_INIT;
	struct conf c;
	int rc = conf_read(dir, &c, &why);

	if (!ok(rc == -1 && errno == err && strcmp(buf_str(&why), say) == 0,
		what))
		printf("# %d %s: %s\n", rc, strerror(errno), buf_str(&why));
	buf_release(&why);
}

static void
test_read(void)
{
	static const char text[] =
	    "runtime.layerstack.ignored_changes discard\n"
	    "runtime.publish.git conflict\n";
	static char big[CONF_BYTES_MAX + 1];
	struct buf why = BUF_INIT;
	struct conf c;

	ok(conf_read(dir, &c, &why) == 0 &&
		conf_is(&c, CONF_IGNORED_CHANGES, "publish") &&
		strcmp(conf_word(&c, CONF_PUBLISH_GIT), "keep") == 0,
	    "without a file all is at its default");
	ok(conf_number(&c, CONF_READ_LINES) == 2000 &&
		conf_number(&c, CONF_MAX_OUTPUT) == 262144 &&
		conf_number(&c, CONF_MAX_EDIT) == 4194304 &&
		conf_number(&c, CONF_MAX_LIST) == 2000,
	    "numbers too");
	conf_release(&c);
	conf_default(&c);
	ok(conf_is(&c, CONF_EVENTS, "true") &&
		conf_number(&c, CONF_EVENTS_DISK) == 4194304 &&
		conf_number(&c, CONF_EVENTS_LINE) == 16384,
	    "so it is without looking");
	conf_release(&c);
	put(text, sizeof text - 1);
	ok(conf_read(dir, &c, &why) == 0 &&
		conf_is(&c, CONF_IGNORED_CHANGES, "discard") &&
		!conf_is(&c, CONF_IGNORED_CHANGES, "publish") &&
		conf_is(&c, CONF_PUBLISH_GIT, "conflict"),
	    "what the file says");
	conf_release(&c);
	put(text, strlen("runtime.layerstack.ignored_changes di"));
	fails(EINVAL,
	    "conf: line 1: runtime.layerstack.ignored_changes: "
	    "di is none of: publish discard",
	    "a bad value names file, line and key");
	put("\nruntime.publish.gti keep\n", 26);
	fails(EINVAL, "conf: line 2: runtime.publish.gti: no such key",
	    "so does an unknown key");
	memset(big, '\n', sizeof big);
	put(big, sizeof big - 1);
	ok(conf_read(dir, &c, &why) == 0, "the largest file");
	conf_release(&c);
	put(big, sizeof big);
	fails(EINVAL, "conf: more than 1048576 bytes", "one byte more");
	unlinkat(dir, CONF_NAME, 0);
	if (symlinkat("/dev/null", dir, CONF_NAME) == -1)
		exit(111);
	fails(ELOOP, "", "a link is not followed");
	unlinkat(dir, CONF_NAME, 0);
	if (mkdirat(dir, CONF_NAME, 0700) == -1)
		exit(111);
	fails(EISDIR, "", "a directory is no file");
	buf_release(&why);
}

int
main(void)
{
	char name[] = "/tmp/conf.XXXXXX";

	if (!mkdtemp(name))
		return 111;
	dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir == -1)
		return 111;
	test_parse();
	test_items();
	test_lines();
	test_read();
	path_rm_tree(AT_FDCWD, name);
	return done();
}
