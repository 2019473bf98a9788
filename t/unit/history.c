/* SPDX-License-Identifier: MIT */
/*
 * The history file: its lines, reading from the end whatever their length, and
 * what is cut off before something is appended.
 */
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "path.h"

#include "tap.h"

static char dir[] = "/tmp/history.XXXXXX";
static int stackfd;

static void
must(int rc, const char *what)
{
	if (rc != -1)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static void
put(const char *p, size_t n)
{
	int fd =
	    openat(stackfd, HISTORY_FILE, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	must(fd, HISTORY_FILE);
	must(io_write_all(fd, p, n), HISTORY_FILE);
	io_drop(&fd);
}

static bool
file_is(const char *want, size_t n)
{
	struct buf b = BUF_INIT;
	bool good;

	must(io_read_file_at(stackfd, HISTORY_FILE, &b, 1 << 30), HISTORY_FILE);
	good = b.len == n && memcmp(buf_str(&b), want, n) == 0;
	buf_release(&b);
	return good;
}

/* ---- lines ---- */

static bool
formats(const char *meta, const char *want)
{
	struct buf m = BUF_INIT, out = BUF_INIT;
	bool good;
	int rc;

	buf_adds(&m, meta ? meta : "");
	rc = history_format(&out, 7, "publish", "L7", meta ? &m : NULL);
	good = want ? rc == 0 && strcmp(buf_str(&out), want) == 0
		    : rc == -1 && errno == EINVAL && out.len == 0;
	buf_release(&m);
	buf_release(&out);
	return good;
}

#define HEAD "{\"version\":7,\"cause\":\"publish\",\"layer\":\"L7\""

static void
test_format(void)
{
	ok(formats(NULL, HEAD "}\n"), "a line without more");
	ok(formats("{\"owner\":\"a}\",\"n\":{}}",
	       HEAD ",\"owner\":\"a}\",\"n\":{}}\n"),
	    "a line with members of the layer");
	ok(formats("{}", HEAD "}\n") && formats(" {\n } ", HEAD "}\n"),
	    "no members");
	ok(formats("{\n\t\"a\": 1,\r\n \"b\":\"\\n\"}\n",
	       HEAD ",\"a\": 1,   \"b\":\"\\n\"}\n"),
	    "a text of several lines becomes one");
	ok(formats("", NULL) && formats("[]", NULL) && formats("1", NULL) &&
		formats("{", NULL) && formats("{}}", NULL),
	    "what is no object is refused");
	ok(formats("{\"version\":8}", NULL) && formats("{\"cause\":1}", NULL) &&
		formats("{\"\\u006cayer\":1}", NULL),
	    "what only the history may say is refused");
}

/* ---- reading ---- */

static void
test_empty(void)
{
	struct history h;

	ok(history_open(stackfd, &h) == 0, "no file, no history");
	history_close(&h);
	put("", 0);
	ok(history_open(stackfd, &h) == 1 && history_prev(&h) == HISTORY_START,
	    "nor in an empty one");
	history_close(&h);
}

static void
test_kinds(void)
{
	static const char *const bad[] = { "", "x", "{}", "{\"version\":1}",
		"{\"version\":-1,\"layer\":\"L1\"}",
		"{\"version\":1,\"layer\":\"../x\"}",
		"{\"version\":1,\"layer\":\"L1\\u0000\"}",
		"{\"version\":1,\"layer\":\"L1\"}}", "\xff" };
	struct history h;
	bool good = true;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct buf b = BUF_INIT;

		buf_addf(&b, "%s\n", bad[i]);
		put(b.data, b.len);
		good = good && history_open(stackfd, &h) == 1 &&
		    history_prev(&h) == HISTORY_BAD &&
		    history_prev(&h) == HISTORY_START;
		history_close(&h);
		buf_release(&b);
	}
	ok(good, "lines that nothing writes");
	put(HEAD "}", sizeof HEAD);
	ok(history_open(stackfd, &h) == 1 && history_prev(&h) == HISTORY_TORN &&
		h.at == 0,
	    "a line without a newline");
	history_close(&h);
}

/* Lines of all lengths about the size of what is read at once. */
static void
test_lengths(void)
{
	static const size_t size[] = { 60, 65535, 65536, 65537, 131072, 61,
		400000, 60, 65475, 60 };
	const size_t n = sizeof size / sizeof *size;
	struct buf b = BUF_INIT, torn = BUF_INIT;
	off_t at[16] = { 0 };
	struct history h;
	bool good = true;

	for (size_t i = 0; i < n; i++) {
		size_t from = b.len;

		at[i] = (off_t)from;
		buf_addf(
		    &b, "{\"version\":%zu,\"layer\":\"L%zu\",\"x\":\"", i, i);
		while (b.len - from < size[i] - 3)
			buf_addc(&b, 'x');
		buf_adds(&b, "\"}\n");
	}
	put(b.data, b.len);
	for (size_t tail = 0; tail < 2; tail++) {
		good = good && history_open(stackfd, &h) == 1;
		if (tail == 1)
			good = good && history_prev(&h) == HISTORY_TORN &&
			    h.n == 70000 && h.at == (off_t)b.len;
		for (size_t i = n; i-- > 0;) {
			good = good && history_prev(&h) == HISTORY_LINE &&
			    h.version == i && h.n == size[i] - 1 &&
			    h.at == at[i] &&
			    memcmp(h.p, b.data + at[i], h.n) == 0 &&
			    h.layer[0] == 'L' && h.layer[1] == (char)('0' + i);
		}
		good = good && history_prev(&h) == HISTORY_START &&
		    history_prev(&h) == HISTORY_START;
		history_close(&h);
		buf_add(&torn, b.data, b.len);
		for (int i = 0; i < 70000; i++)
			buf_addc(&torn, 'y');
		put(torn.data, torn.len);
	}
	ok(good, "lines of any length are found from the end");
	/* Somebody cuts it while it is read. */
	good = history_open(stackfd, &h) == 1;
	put(b.data, 10);
	ok(good && history_prev(&h) == HISTORY_ERROR && errno == ESTALE,
	    "a file that was cut meanwhile is told apart");
	history_close(&h);
	buf_release(&b);
	buf_release(&torn);
}

/* ---- appending ---- */

#define LINE(v) \
	"{\"version\":" #v ",\"cause\":\"write\",\"layer\":\"L" #v "\"}\n"

/* Appends version 4 to was, when the manifest has version 3. */
static bool
becomes(const char *was, const char *want)
{
	struct buf line = BUF_INIT;
	bool good;

	put(was, strlen(was));
	must(history_format(&line, 4, "write", "L4", NULL), "format");
	good = history_append(stackfd, 3, &line) == 0 &&
	    file_is(want, strlen(want));
	if (!good)
		printf("# %s\n", was);
	/* Once more, as after a swap that was killed. */
	good = good && history_append(stackfd, 3, &line) == 0 &&
	    file_is(want, strlen(want));
	buf_release(&line);
	return good;
}

static void
test_append(void)
{
	static const char whole[] = LINE(2) LINE(3) LINE(4);
	struct buf line = BUF_INIT, was = BUF_INIT;
	bool good = true;

	ok(becomes("", LINE(4)), "the first line");
	ok(becomes(LINE(2) LINE(3), whole), "one more");
	ok(becomes(LINE(2), LINE(2) LINE(4)), "after a gap");
	for (size_t cut = sizeof LINE(2) LINE(3) - 1; cut < sizeof whole;
	    cut++) {
		char text[sizeof whole];

		snprintf(text, sizeof text, "%.*s", (int)cut, whole);
		good = good && becomes(text, whole);
	}
	ok(good, "a line of a swap that was killed is replaced, torn anywhere");
	ok(becomes(LINE(2) LINE(3) "x\n\n{", whole),
	    "nothing behind the manifest's line was committed");
	ok(becomes(LINE(2) LINE(3) LINE(9) "x\n" LINE(4), whole),
	    "nor behind a newer one");
	ok(becomes(LINE(2) "x\n{", LINE(2) "x\n" LINE(4)),
	    "a damaged line that may have been committed stays");
	ok(becomes("x\n" LINE(4) "y", "x\n" LINE(4)) && becomes("y", LINE(4)),
	    "without any line that was committed");
	ok(becomes(LINE(5) LINE(6), LINE(4)), "or with newer ones only");

	/* Stores that are older than their history. */
	must(path_rm_tree(stackfd, "history"), "history");
	must(history_format(&line, 4, "write", "L4", NULL), "format");
	ok(history_append(stackfd, 3, &line) == 0 &&
		file_is(LINE(4), strlen(LINE(4))),
	    "its directory is made");
	must(path_rm_tree(stackfd, "history"), "history");
	must(symlinkat("/tmp", stackfd, "history"), "history");
	ok(history_append(stackfd, 3, &line) == -1 && errno == ELOOP,
	    "no link is followed");
	must(unlinkat(stackfd, "history", 0), "history");
	must(mkdirat(stackfd, "history", 0700), "history");
	must(mkdirat(stackfd, HISTORY_FILE, 0700), "history");
	ok(history_append(stackfd, 3, &line) == -1, "a directory is no file");
	buf_release(&line);
	buf_release(&was);
}

int
main(void)
{
	must(mkdtemp(dir) ? 0 : -1, dir);
	stackfd = open(dir, O_RDONLY | O_DIRECTORY);
	must(stackfd, dir);
	must(mkdirat(stackfd, "history", 0700), "history");
	test_format();
	test_empty();
	test_kinds();
	test_lengths();
	test_append();
	must(path_rm_tree(AT_FDCWD, dir), dir);
	return done();
}
