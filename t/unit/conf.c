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

static const struct conf_key table[] = {
	{ .name = "a.word", .words = "one two", .fallback = "one" },
	{ .name = "a.number", .min = 3, .max = 20, .fallback = "7" },
};

/* word and number are the values wanted; or word NULL, and number says why. */
static const struct {
	const char *text;
	size_t n;
	const char *word, *number;
} v[] = {
#define T(text) text, sizeof text - 1
	{ T(""), "one", "7" },
	{ T("a.word two\n"), "two", "7" },
	{ T("a.word two"), "two", "7" },
	{ T("a.word one\na.number 3\n"), "one", "3" },
	{ T("\n# a.word two\n \t\n  # x\na.number 20\n"), "one", "20" },
	{ T(" \ta.word\t  two \t\n"), "two", "7" },
	{ T("a.word\n"), NULL, "conf: line 1: a.word: no value" },
	{ T("a.word  \n"), NULL, "conf: line 1: a.word: no value" },
	{ T("\na.word three\n"), NULL,
	    "conf: line 2: a.word: three is none of: one two" },
	{ T("a.word one two\n"), NULL,
	    "conf: line 1: a.word: one two is none of: one two" },
	{ T("a.word on\n"), NULL,
	    "conf: line 1: a.word: on is none of: one two" },
	{ T("a.word one\r\n"), NULL,
	    "conf: line 1: a.word: one\r is none of: one two" },
	{ T("a.number 2\n"), NULL,
	    "conf: line 1: a.number: 2 is no number from 3 to 20" },
	{ T("a.number 21\n"), NULL,
	    "conf: line 1: a.number: 21 is no number from 3 to 20" },
	{ T("a.number 7x\n"), NULL,
	    "conf: line 1: a.number: 7x is no number from 3 to 20" },
	{ T("a.word one\nb 1\n"), NULL, "conf: line 2: b: no such key" },
	{ T("a.wor two\n"), NULL, "conf: line 1: a.wor: no such key" },
	{ T("a.word two\na.word two\n"), NULL,
	    "conf: line 2: a.word: given twice" },
	{ T("a.word t\0wo\n"), NULL, "conf: line 1: a NUL byte" },
	{ T("\xff\n"), NULL, "conf: line 1: \xff: no such key" },
#undef T
};

static void
test_parse(void)
{
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		char *value[2] = { NULL, NULL };
		struct buf why = BUF_INIT;
		bool good =
		    conf_parse(table, 2, v[i].text, v[i].n, value, &why);

		if (!ok(v[i].word ? good && why.len == 0 &&
				strcmp(value[0], v[i].word) == 0 &&
				strcmp(value[1], v[i].number) == 0
				  : !good && !value[0] && !value[1] &&
				strcmp(buf_str(&why), v[i].number) == 0,
			v[i].word ? "a good text" : "a bad text"))
			printf("# text %zu: %s\n", i, buf_str(&why));
		free(value[0]);
		free(value[1]);
		buf_release(&why);
	}
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
	test_read();
	path_rm_tree(AT_FDCWD, name);
	return done();
}
