/* SPDX-License-Identifier: MIT */
/*
 * ignore-oracle [sets [paths]]: compares what we ignore with git check-ignore
 * on random trees with random .gitignore files in several directories, below
 * the current directory. Both must agree on each path: is it ignored, and
 * which line of which file says so. First come all bytes against all classes.
 *
 * The tree is the work tree of a repository and a layer of a stack at once,
 * so that the same files are read by git and through the view. Most sets are
 * packed, a directory for each, so that git runs once for many; some stand at
 * the top of the work tree, alone. Some file systems are slow to make files:
 * a tree serves several sets of rules, and its files are links to one.
 * SB_SEED chooses other sets.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "ignore.h"
#include "io.h"
#include "mem.h"
#include "num.h"
#include "path.h"
#include "rec.h"
#include "route.h"
#include "spawn.h"
#include "view.h"

enum {
	PACK = 100, /* sets in one call of git */
	ROUNDS = 8, /* sets of rules for one tree */
	ALONE = 2, /* sets that stand at the top, after each pack */
	DEPTH = 5 /* components of a path */
};

struct item {
	char *path; /* "" is the top of the set */
	char kind; /* d, f, or l for a link */
	char place; /* the same of its .gitignore; 0: has none */
	bool asked; /* is one of the paths that are compared */
	struct buf text; /* of the .gitignore */
	struct ignore *rules; /* NULL: it is no file */
};

struct set {
	char name[16]; /* its directory, "" at the top */
	struct item *item; /* parents before children; the first is "" */
	size_t n, cap;
	bool made; /* the first rules were not left to chance */
};

static const char tree[] = "layers/T";
static uint64_t rng, seed;
static size_t calls, asked, ignored, taken_back, below;

/* Steele, Lea and Flood's SplitMix64. */
static uint64_t
rnd(uint64_t limit)
{
	uint64_t z = rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % limit;
}

static bool
one_in(uint64_t n)
{
	return rnd(n) == 0;
}

/* ---- trees ---- */

static struct item *
add_item(struct set *s, const char *path, char kind)
{
	if (s->n == s->cap)
		s->item = xgrow(s->item, &s->cap, sizeof *s->item);
	s->item[s->n] = (struct item){
		.path = xstrdup(path),
		.kind = kind,
		/* A ':' at the front has a meaning for git check-ignore. */
		.asked = *path != '\0' && *path != ':',
	};
	return &s->item[s->n++];
}

static const struct item *
find(const struct set *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->item[i].path, path) == 0)
			return &s->item[i];
	return NULL;
}

static size_t
depth(const char *path)
{
	size_t n = *path != '\0';

	for (; *path != '\0'; path++)
		n += *path == '/';
	return n;
}

static void
random_name(struct buf *b)
{
	static const char *const pool[] = { "a", "b", "a", "b", "ab", "foo",
		"bar", "foo", "x.log", "y.log", "A", "foo.c", "foobar", ".x",
		"a b", "a ", " a", "[", "]", "[a]", "*", "**", "?", "!a", "#a",
		"\\", "a\\", "\\a", "-", "^", "a\r", "a\n", "a\t", "\xc3\xa9",
		"\xff",
		"\xef\xbb\xbf"
		"a",
		"{a,b}", "1", "z9", "a-b", "..a", ":a", "build", "target" };

	if (one_in(20)) {
		/* Any two bytes. */
		for (int i = 0; i < 2; i++) {
			char c = (char)(1 + rnd(255));

			buf_addc(b, c == '/' || c == '.' ? '_' : c);
		}
		return;
	}
	buf_adds(b, pool[rnd(sizeof pool / sizeof *pool)]);
}

static void
random_tree(struct set *s, size_t paths)
{
	struct buf b = BUF_INIT;

	add_item(s, "", 'd');
	while (s->n <= paths) {
		const struct item *up = &s->item[rnd(s->n)];

		if (up->kind != 'd' || depth(up->path) >= DEPTH)
			continue;
		buf_cut(&b, 0);
		buf_adds(&b, up->path);
		if (b.len > 0)
			buf_addc(&b, '/');
		random_name(&b);
		if (!find(s, b.data))
			add_item(s, b.data, "ddfffl"[rnd(6)]);
	}
	/* Now and then it is there but no file of rules. */
	for (size_t i = 0; i < s->n; i++)
		if (s->item[i].kind == 'd' && depth(s->item[i].path) <= 2 &&
		    (i == 0 || one_in(3)))
			s->item[i].place = one_in(20) ? "dl"[rnd(2)] : 'f';
	buf_release(&b);
}

/* ---- rules ---- */

static void
random_set(struct buf *b)
{
	static const char *const part[] = { "a", "b", "f", "o", "-", "a-z",
		"a-c", "]", "!", "^", "\\]", "\\", "[", ":", "[:alpha:]",
		"[:digit:]", "[:space:]", "[:punct:]", "[:upper:]", "[:foo:]",
		"[:", "/", "0-9", "\\a-z", "a-\\z", "\xc3", ".", " ", "z-a",
		",-/", "*", "?", "[:digit:]-z", "[:upper:]-b", "a-c-f" };
	uint64_t n = 1 + rnd(4);

	buf_addc(b, '[');
	if (one_in(3))
		buf_addc(b, one_in(2) ? '!' : '^');
	while (n-- > 0)
		buf_adds(b, part[rnd(sizeof part / sizeof *part)]);
	if (!one_in(8))
		buf_addc(b, ']');
}

/* A pattern that has a good chance to match path, made from it. */
static void
like(struct buf *b, const char *path)
{
	const uint64_t wild = 2 + rnd(12);

	for (; *path != '\0'; path++) {
		if (*path == '/' || !one_in(wild)) {
			if (strchr("*?[\\", *path) && !one_in(4))
				buf_addc(b, '\\');
			buf_addc(b, *path);
			continue;
		}
		switch (rnd(7)) {
		case 0:
			buf_addc(b, '?');
			break;
		case 1:
			buf_addc(b, '*');
			path += strcspn(path, "/") - 1;
			break;
		case 2:
			buf_addc(b, '*');
			break;
		case 3:
			buf_adds(b, "**");
			if (one_in(2))
				path += strlen(path) - 1;
			break;
		case 4:
			buf_addf(b, "[%c]", *path);
			break;
		case 5:
			random_set(b);
			break;
		case 6:
			buf_addf(b, "\\%c", *path);
			break;
		}
	}
}

/* The end of a path, whole components, perhaps with something before. */
static void
like_end(struct buf *b, const char *path)
{
	static const char *const before[] = { "", "", "", "/", "**/", "*/",
		"/**/", "**", "?", "**/**/", "*", "/*/" };
	const char *slash;

	while (one_in(2)) {
		slash = strchr(path, '/');
		if (!slash)
			break;
		path = slash + 1;
	}
	buf_adds(b, before[rnd(sizeof before / sizeof *before)]);
	like(b, path);
}

static void
random_pattern(struct buf *b)
{
	static const char *const part[] = { "a", "b", "foo", "bar", "x", ".log",
		"*", "*", "**", "**/", "/", "?", "\\", "\\*", "\\/", "/**",
		"/**/", " ", "\\ ", "!", "#", "{a,b}", "A", "\t", "\xc3\xa9",
		"***" };
	uint64_t n = 1 + rnd(6);

	while (n-- > 0) {
		if (one_in(8))
			random_set(b);
		else if (one_in(60))
			buf_addc(b, (char)rnd(256));
		else
			buf_adds(b, part[rnd(sizeof part / sizeof *part)]);
	}
}

static void
random_line(struct buf *b, const struct set *s, const char *dir)
{
	const char *path = s->item[rnd(s->n)].path;
	static const char *const end[] = { "/", "/", "/", " ", "  ", "\\ ",
		"\\", "\\  ", "/**", "/*", "//", "\r", " \r", "\r ", "\t" };

	if (one_in(20)) {
		static const char *const odd[] = { "", "#a", "/", "!", "!/",
			" ", "**", "*", "//", "\\", "!!a", "\r", "# ", "/**",
			"**/", "!*", "!**/", "[", "*.log", "\\#a", "\\!a" };

		buf_adds(b, odd[rnd(sizeof odd / sizeof *odd)]);
		return;
	}
	if (one_in(4))
		buf_addc(b, '!');
	if (one_in(12))
		buf_addc(b, '/');
	if (!path_is_below(path, dir))
		path = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	else if (*dir != '\0' && strlen(path) > strlen(dir))
		path += strlen(dir) + 1;
	if (one_in(3))
		random_pattern(b);
	else
		like_end(b, path);
	if (one_in(3))
		buf_adds(b, end[rnd(sizeof end / sizeof *end)]);
}

static void
random_rules(struct set *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct item *it = &s->item[i];
		uint64_t lines = 1 + rnd(8);

		if (it->place == 0)
			continue;
		buf_cut(&it->text, 0);
		if (one_in(20))
			buf_adds(&it->text, "\xef\xbb\xbf");
		while (lines-- > 0) {
			random_line(&it->text, s, it->path);
			if (one_in(10))
				buf_addc(&it->text, '\r');
			if (one_in(200))
				buf_addc(&it->text, '\0');
			if (lines > 0 || one_in(2))
				buf_addc(&it->text, '\n');
		}
	}
}

/* Sets 0 to 25: a class, or what it leaves; every byte a name can have. */
static bool
class_set(struct set *s, size_t k)
{
	static const char *const class[] = { "alnum", "alpha", "blank", "cntrl",
		"digit", "graph", "lower", "print", "punct", "space", "upper",
		"xdigit", "none" };
	struct item *top;
	char name[3] = "x";

	if (k / 2 >= sizeof class / sizeof *class)
		return false;
	top = add_item(s, "", 'd');
	top->place = 'f';
	s->made = true;
	buf_addf(&top->text, "x[%s[:%s:]]\n", k % 2 ? "!" : "", class[k / 2]);
	for (int c = 1; c < 256; c++) {
		name[1] = (char)c;
		if (c != '/')
			add_item(s, name, 'f');
	}
	return true;
}

/* ---- on disk ---- */

static void
full_path(
    const struct set *s, const char *path, const char *name, struct buf *b)
{
	const char *const part[] = { s->name, path, name };

	buf_cut(b, 0);
	for (size_t i = 0; i < 3; i++) {
		if (*part[i] == '\0')
			continue;
		if (b->len > 0)
			buf_addc(b, '/');
		buf_adds(b, part[i]);
	}
	if (b->len == 0)
		buf_addc(b, '.');
}

static void
write_file(int top, const char *path, const struct buf *text)
{
	int fd =
	    openat(top, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1 || io_write_all(fd, text->data, text->len) == -1 ||
	    io_close(fd) == -1)
		die_sys("unable to write %s", path);
}

static void
write_tree(int top, const struct set *s)
{
	struct buf b = BUF_INIT;
	int rc = 0;

	for (size_t i = 0; i < s->n && rc == 0; i++) {
		const struct item *it = &s->item[i];

		full_path(s, it->path, "", &b);
		if (it->kind == 'f')
			rc = linkat(AT_FDCWD, "a-file", top, b.data, 0);
		else if (it->kind == 'l')
			rc = linkat(AT_FDCWD, "a-link", top, b.data, 0);
		else if (strcmp(b.data, ".") != 0)
			rc = mkdirat(top, b.data, 0700);
		if (rc == -1 || it->place == 0)
			continue;
		full_path(s, it->path, ".gitignore", &b);
		if (it->place == 'd')
			rc = mkdirat(top, b.data, 0700);
		else if (it->place == 'l')
			rc = symlinkat(".gitignore.real", top, b.data);
	}
	if (rc == -1)
		die_sys("unable to make %s", b.data);
	buf_release(&b);
}

static void
write_rules(int top, struct set *s)
{
	struct buf b = BUF_INIT;

	for (size_t i = 0; i < s->n; i++) {
		struct item *it = &s->item[i];

		full_path(s, it->path,
		    it->place == 'l' ? ".gitignore.real" : ".gitignore", &b);
		if (it->place == 'f' || it->place == 'l')
			write_file(top, b.data, &it->text);
		ignore_free(it->rules);
		it->rules = NULL;
		if (it->place == 'f')
			it->rules = ignore_compile(it->text.data, it->text.len);
	}
	buf_release(&b);
}

static void
remove_set(int top, struct set *s)
{
	if (*s->name != '\0' && path_rm_tree(top, s->name) == -1)
		die_sys("unable to remove %s", s->name);
	for (size_t i = 0; i < s->n; i++) {
		struct item *it = &s->item[i];

		if (*s->name == '\0' && *it->path != '\0' &&
		    !strchr(it->path, '/') && path_rm_tree(top, it->path) == -1)
			die_sys("unable to remove %s", it->path);
		free(it->path);
		buf_release(&it->text);
		ignore_free(it->rules);
	}
	if (*s->name == '\0' &&
	    (path_rm_tree(top, ".gitignore") == -1 ||
		path_rm_tree(top, ".gitignore.real") == -1))
		die_sys("unable to remove .gitignore");
	free(s->item);
	*s = (struct set){ .n = 0 };
}

/* ---- git ---- */

static int
run_git(const char *const argv[], int in, int out)
{
	const struct spawn_fd map[] = { { in, STDIN_FILENO },
		{ out, STDOUT_FILENO }, { out, STDERR_FILENO } };
	int log =
	    open("git.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct spawn_fd with_log[3];
	int code;
	pid_t pid;

	if (log == -1)
		die_sys("unable to create git.log");
	memcpy(with_log, map, sizeof map);
	with_log[2].ours = log;
	pid = spawn(argv, with_log, 3);
	if (pid == -1)
		die_sys("unable to run git");
	code = spawn_wait(pid);
	io_drop(&log);
	return code;
}

static void
check_ignore(const struct buf *in, struct buf *out)
{
	static const char *const argv[] = { "git", "-C", tree, "-c",
		"core.excludesFile=/dev/null", "check-ignore", "--no-index",
		"--stdin", "-z", "-v", "-n", NULL };
	const int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
	int i = open("in", flags, 0600), o = open("out", flags, 0600), code;

	if (i == -1 || o == -1 || io_write_all(i, in->data, in->len) == -1 ||
	    lseek(i, 0, SEEK_SET) == -1)
		die_sys("unable to write the paths");
	code = run_git(argv, i, o);
	if (code != 0 && code != 1)
		die(EXIT_SYS, "git check-ignore failed with %d", code);
	if (lseek(o, 0, SEEK_SET) == -1 ||
	    io_read_buf(o, out, SIZE_MAX / 2) == -1)
		die_sys("unable to read the answers");
	io_drop(&i);
	io_drop(&o);
	calls++;
}

static const char *
field(const struct buf *b, size_t *pos)
{
	const char *p = b->data + *pos;

	if (*pos >= b->len)
		die(EXIT_SYS, "git gave fewer answers than paths");
	*pos += strlen(p) + 1;
	return p;
}

/* ---- ours ---- */

struct answer {
	const struct item *by; /* whose .gitignore decides; NULL: none */
	size_t line;
	bool ignored;
};

/*
 * The definition taken literally: each part of the path from the top, the
 * deepest file first, and what is below an ignored directory is ignored.
 */
static struct answer
look(const struct set *s, const struct item *it)
{
	struct answer a = { .by = NULL };
	const size_t len = strlen(it->path);
	struct buf part = BUF_INIT, up = BUF_INIT;

	for (size_t n = 1; n <= len; n++) {
		const bool whole = n == len;

		if (!whole && it->path[n] != '/')
			continue;
		buf_cut(&part, 0);
		buf_add(&part, it->path, n);
		buf_cut(&up, 0);
		buf_add(&up, it->path, n);
		a = (struct answer){ .by = NULL };
		while (up.len > 0 && !a.by) {
			const struct item *dir;
			enum ignore_say say = IGNORE_NOTHING;

			buf_cut(&up, path_parent_len(up.data));
			dir = find(s, up.data);
			if (dir && dir->rules)
				say = ignore_ask(dir->rules,
				    part.data + up.len + (up.len > 0),
				    !whole || it->kind == 'd', &a.line);
			a.ignored = say == IGNORE_YES;
			if (say != IGNORE_NOTHING)
				a.by = dir;
		}
		if (a.ignored && !whole) {
			below++;
			break;
		}
	}
	buf_release(&part);
	buf_release(&up);
	return a;
}

static void
show(const char *what, const char *p, size_t n)
{
	printf("%s\"", what);
	for (; n > 0; p++, n--) {
		if (*p == '"' || *p == '\\')
			printf("\\%c", *p);
		else if (*p >= ' ' && *p <= '~')
			putchar(*p);
		else
			printf("\\%03o", (unsigned char)*p);
	}
	printf("\"\n");
}

__attribute__((noreturn)) static void
differ(const struct set *s, const struct item *it, const struct answer *a,
    int route, const char *source, const char *line)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->item[i].rules) {
			show("rules in ", s->item[i].path,
			    strlen(s->item[i].path));
			show("  ", s->item[i].text.data, s->item[i].text.len);
		}
	show("path ", it->path, strlen(it->path));
	printf("kind %c\n", it->kind);
	show("git:  ", source, strlen(source));
	printf("      line %s\n", line);
	show("ours: ", a->by ? a->by->path : "none",
	    strlen(a->by ? a->by->path : "none"));
	printf("      line %zu, route %c\ndiffer, SB_SEED=%" PRIu64 "\n",
	    a->line, route, seed);
	exit(EXIT_NO);
}

static void
compare(struct set *s, size_t n, int cwd, const struct ids *ids)
{
	struct buf in = BUF_INIT, out = BUF_INIT, b = BUF_INIT;
	struct view *view;
	struct route *route;
	size_t pos = 0, bad;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < s[i].n; k++)
			if (s[i].item[k].asked) {
				full_path(&s[i], s[i].item[k].path, "", &b);
				buf_add(&in, b.data, b.len + 1);
			}
	check_ignore(&in, &out);
	view = view_open(cwd, ids, &bad);
	if (!view)
		die_sys("unable to open the view");
	route = route_open(view);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < s[i].n; k++) {
			const struct item *it = &s[i].item[k];
			const char *source, *line, *pattern, *path;
			struct answer a;
			bool git, same_line;
			int letter;

			if (!it->asked)
				continue;
			source = field(&out, &pos);
			line = field(&out, &pos);
			pattern = field(&out, &pos);
			path = field(&out, &pos);
			full_path(&s[i], it->path, "", &b);
			if (strcmp(path, b.data) != 0)
				die(EXIT_SYS, "git answers for another path");
			letter = route_of(route, path, it->kind == 'd');
			if (letter == -1)
				die_sys("unable to route %s", path);
			a = look(&s[i], it);
			git = *source != '\0' && *pattern != '!';
			full_path(
			    &s[i], a.by ? a.by->path : "", ".gitignore", &b);
			same_line = a.by ? strcmp(source, b.data) == 0 &&
				strtoull(line, NULL, 10) == a.line
					 : *source == '\0';
			if (git != a.ignored || git != (letter == 'i') ||
			    !same_line)
				differ(&s[i], it, &a, letter, source, line);
			asked++;
			ignored += git;
			taken_back += *pattern == '!';
		}
	if (pos != out.len)
		die(EXIT_SYS, "git gave more answers than paths");
	route_close(route);
	view_close(view);
	buf_release(&in);
	buf_release(&out);
	buf_release(&b);
}

int
main(int argc, char **argv)
{
	static const char *const init[] = { "git", "init", "-q",
		"--template=", tree, NULL };
	static struct set set[PACK];
	const char *env = getenv("SB_SEED");
	uint64_t want = 2000, paths = 50;
	const struct buf none = BUF_INIT;
	struct ids ids = IDS_INIT;
	size_t done = 0;
	int cwd, top, null;

	err_init();
	if (argc > 3 || (argc >= 2 && !num_dec(argv[1], 1, 1 << 30, &want)) ||
	    (argc == 3 && !num_dec(argv[2], 1, 1 << 20, &paths)))
		usage_die("ignore-oracle [sets [paths]]");
	if (!env || !num_dec(env, 0, UINT64_MAX, &seed))
		seed = 20261130;
	rng = seed;
	printf("SB_SEED=%" PRIu64 "\n", seed);
	if (setenv("HOME", "/nonexistent", 1) == -1 ||
	    setenv("GIT_CONFIG_NOSYSTEM", "1", 1) == -1 ||
	    setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1) == -1)
		die_sys("unable to set the environment");
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null == -1 || mkdir("layers", 0700) == -1)
		die_sys("unable to begin");
	write_file(AT_FDCWD, "a-file", &none);
	if (symlink(".", "a-link") == -1)
		die_sys("unable to make a-link");
	if (run_git(init, null, null) != 0)
		die(EXIT_SYS, "git init failed");
	cwd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	top = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cwd == -1 || top == -1)
		die_sys("unable to open %s", tree);
	ids_add(&ids, "T");

	for (size_t turn = 0; done < want; turn++) {
		const size_t n = turn % (1 + ALONE) == 0 ? PACK : 1;

		for (size_t i = 0; i < n; i++) {
			if (n > 1)
				snprintf(
				    set[i].name, sizeof set[i].name, "s%zu", i);
			if (turn > 0 || !class_set(&set[i], i))
				random_tree(&set[i], paths);
			write_tree(top, &set[i]);
		}
		for (int round = 0; round < ROUNDS; round++) {
			for (size_t i = 0; i < n; i++) {
				if (round > 0 || !set[i].made)
					random_rules(&set[i]);
				write_rules(top, &set[i]);
			}
			compare(set, n, cwd, &ids);
			done += n;
		}
		for (size_t i = 0; i < n; i++)
			remove_set(top, &set[i]);
	}
	printf("%zu sets, %zu paths agree: %zu ignored, %zu of them below an "
	       "ignored directory, %zu taken back; %zu calls of git\n",
	    done, asked, ignored, below, taken_back, calls);
	stdout_done();
	return EXIT_OK;
}
