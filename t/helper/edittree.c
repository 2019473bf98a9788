/* SPDX-License-Identifier: MIT */
/*
 * edittree seed make|edit: fills the current directory with a random tree of
 * text and binary files, links and directories, or changes what is there the
 * way people and programs do: edits, chmod, xattrs, replacements by another
 * kind, deletions, moves, directories deleted and made again, copies that
 * change nothing. Names are awkward on purpose. Equal seeds make equal trees of
 * equal ones.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "num.h"
#include "path.h"

enum {
	DEPTH = 3,
	OPS = 14
};

static const char *const pool[] = { "a", "b", "c", "d.txt", "a b", "\"q\"",
	"\xe5\xae\x9e\xe6\xb5\x8b.md", "tab\tx", "line\ntwo", " -> ", "-rf",
	"back\\slash", " lead", "trail ", "\xff\xfe", "a-b", ".hidden",
	"bell\a\x7f", "x b", "--", "+++ b", "cr\r", "'$(q)'" };

/* git knows two modes of files; what else there is must do no harm. */
static const mode_t modes[] = { 0755, 0755, 0700, 0600, 0640, 0444, 0555, 0711,
	0645, 0664, 01644, 02755, 04755 };

static uint64_t state;
static struct names paths = NAMES_INIT; /* all that is there */

/* xorshift64*, the same everywhere for one seed. */
static unsigned
rnd(unsigned n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)(state * UINT64_C(2685821657736338717) >> 33) % n;
}

static const char *
any_name(void)
{
	return pool[rnd(sizeof pool / sizeof *pool)];
}

static mode_t
any_mode(void)
{
	return modes[rnd(sizeof modes / sizeof *modes)];
}

/* ---- content ---- */

static void
add_line(struct buf *b)
{
	static const char *const odd[] = { "", " ", "\t", "-- x", "+++ y",
		"@@ -1 +1 @@", "\\ No newline", "cr\r", "diff --git a/x b/x",
		"\x80\xff", "end {" };

	if (rnd(3) == 0)
		buf_adds(b, odd[rnd(sizeof odd / sizeof *odd)]);
	else
		buf_addf(b, "line %u", rnd(40));
	buf_addc(b, '\n');
}

static void
any_content(struct buf *b)
{
	unsigned n = rnd(5) == 0 ? 0 : rnd(60);

	switch (rnd(12)) {
	case 0:
		for (n *= rnd(40); n > 0; n--)
			buf_addc(b, (char)rnd(256));
		break;
	case 1:
		for (n *= rnd(10); n > 0; n--)
			buf_addc(b, '\0');
		break;
	case 2:
		/* One line, with a NUL where few look for one. */
		for (n = rnd(12000); n > 0; n--)
			buf_addc(b, 'x');
		if (rnd(2))
			buf_addc(b, '\0');
		break;
	case 3:
		for (; n > 0; n--)
			buf_addf(b, "line %u\r\n", rnd(40));
		break;
	default:
		for (; n > 0; n--)
			add_line(b);
		break;
	}
	if (b->len > 0 && rnd(4) == 0)
		buf_cut(b, b->len - 1);
}

/* Takes some lines out, and puts some in; perhaps another byte somewhere. */
static void
edit_content(const struct buf *old, struct buf *new)
{
	const char *p = buf_str(old), *end = p + old->len;
	unsigned every = 2 + rnd(30);

	if (rnd(12) == 0)
		return;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) + 1 : (size_t)(end - p);

		if (rnd(every) == 0)
			add_line(new);
		if (rnd(every) != 0)
			buf_add(new, p, n);
		p += n;
	}
	if (rnd(4) == 0)
		add_line(new);
	if (rnd(6) == 0 && new->len > 0)
		buf_cut(new, new->len - 1);
	if (rnd(6) == 0 && new->len > 0)
		new->data[rnd((unsigned)new->len)] = (char)rnd(256);
}

static bool
write_file(const char *path, const struct buf *b, bool must)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd == -1 && !must)
		return false;
	if (fd == -1 || io_write_all(fd, buf_str(b), b->len) == -1 ||
	    close(fd) == -1)
		die_sys("unable to write %s", path);
	return true;
}

/* ---- the tree ---- */

static void
collect(const char *dir)
{
	struct names names = NAMES_INIT;
	struct stat st;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1 || names_read(fd, &names) == -1)
		die_sys("unable to list %s", dir);
	io_drop(&fd);
	for (size_t i = 0; i < names.n; i++) {
		char *path = strcmp(dir, ".") == 0
		    ? xasprintf("./%s", names.name[i])
		    : xasprintf("%s/%s", dir, names.name[i]);

		if (lstat(path, &st) == -1)
			die_sys("unable to stat %s", path);
		names_add(&paths, path);
		if (S_ISDIR(st.st_mode))
			collect(path);
		free(path);
	}
	names_release(&names);
}

static mode_t
kind_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) == -1 ? 0 : st.st_mode & S_IFMT;
}

static const char *
any_path(mode_t kind)
{
	for (int i = 0; i < 50 && paths.n > 0; i++) {
		const char *path = paths.name[rnd((unsigned)paths.n)];

		if (kind == 0 || kind_of(path) == kind)
			return path;
	}
	return NULL;
}

/* A name in some directory; caller frees. */
static char *
new_path(void)
{
	const char *dir = rnd(4) ? any_path(S_IFDIR) : NULL;

	return xasprintf("%s/%s", dir ? dir : ".", any_name());
}

static void
change_mode(const char *path)
{
	if (chmod(path, rnd(3) == 0 ? 0644 : any_mode()) == -1)
		die_sys("unable to chmod %s", path);
}

static void
make_file(const char *path)
{
	struct buf b = BUF_INIT;

	any_content(&b);
	if (write_file(path, &b, false) && rnd(3) == 0)
		change_mode(path);
	buf_release(&b);
}

static void
make_link(const char *path)
{
	/*
	 * Never a loop: git-apply(1) of a patch that puts a directory in the
	 * place of a link looks through the link first, and fails by ELOOP.
	 */
	char *target = rnd(4) == 0
	    ? xstrdup(rnd(2) ? "." : "..")
	    : xasprintf("%s%s/%u%s", rnd(5) ? "to " : "two\nlines ", any_name(),
		  rnd(9), rnd(5) ? "" : "\n");

	if (symlink(target, path) == -1 && errno != EEXIST &&
	    errno != ENOTDIR && errno != ENOENT)
		die_sys("unable to link %s", path);
	free(target);
}

static void
make_tree(const char *dir, int depth)
{
	for (size_t i = 0; i < sizeof pool / sizeof *pool; i++) {
		char *path = xasprintf("%s/%s", dir, pool[i]);
		unsigned what = rnd(12 * (unsigned)depth);

		if (what < 3) {
			make_file(path);
		} else if (what == 3) {
			make_link(path);
		} else if (what < 6 && depth < DEPTH) {
			if (mkdir(path, 0755) == -1)
				die_sys("unable to make %s", path);
			make_tree(path, depth + 1);
		}
		free(path);
	}
}

static void
run(const char *const argv[])
{
	pid_t pid = fork();
	int status;

	if (pid == -1)
		die_sys("unable to fork");
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		execvp(argv[0], (char **)(uintptr_t)argv);
		_exit(EXIT_NOENT);
	}
	/* mv may refuse, as into its own child: no change then. */
	if (waitpid(pid, &status, 0) == -1)
		die_sys("unable to wait");
}

static void
operate(void)
{
	struct buf old = BUF_INIT, new = BUF_INIT;
	const char *path = any_path(0), *file = any_path(S_IFREG);
	const char *dir = any_path(S_IFDIR);
	char *fresh = new_path();

	switch (rnd(14)) {
	case 0:
	case 1:
	case 2:
	case 3:
		if (!file || io_read_file_at(AT_FDCWD, file, &old, 1 << 20))
			break;
		edit_content(&old, &new);
		write_file(file, &new, true);
		break;
	case 4:
		if (file)
			change_mode(file);
		break;
	case 5:
		make_file(fresh);
		break;
	case 6:
		make_link(fresh);
		break;
	case 7:
		if (path)
			path_rm_tree(AT_FDCWD, path);
		break;
	case 8:
		if (path)
			run((const char *const[]){
			    "mv", "-fT", "--", path, fresh, NULL });
		break;
	case 9:
		/* Another kind in its place. */
		if (!path)
			break;
		path_rm_tree(AT_FDCWD, path);
		if (rnd(3) == 0)
			make_link(path);
		else if (rnd(2) == 0)
			make_file(path);
		else if (mkdir(path, 0755) == 0)
			make_tree(path, DEPTH - 1);
		break;
	case 10:
		/* A directory deleted and made again. */
		if (!dir)
			break;
		path_rm_tree(AT_FDCWD, dir);
		if (mkdir(dir, 0755) == 0)
			make_tree(dir, DEPTH - 1);
		break;
	case 11:
		/* A copy that changes nothing, or a directory made anew. */
		if (file && rnd(2) == 0)
			run((const char *const[]){ "touch", "--", file, NULL });
		else if (mkdir(fresh, 0755) == 0 && rnd(2) == 0)
			make_tree(fresh, DEPTH);
		break;
	case 12:
		if (file)
			run((const char *const[]){
			    "ln", "-T", "--", file, fresh, NULL });
		break;
	case 13:
		/* Only what git does not know. */
		if (dir && rnd(2) == 0 && chmod(dir, rnd(2) ? 0755 : 0711))
			die_sys("unable to chmod %s", dir);
		if (file && rnd(2) == 0 &&
		    setxattr(file, "user.sb", rnd(2) ? "1" : "2", 1, 0) == -1)
			die_sys("unable to set an xattr of %s", file);
		break;
	default:
		break;
	}
	free(fresh);
	buf_release(&old);
	buf_release(&new);
}

int
main(int argc, char **argv)
{
	uint64_t seed;

	err_init();
	if (argc != 3 || !num_dec(argv[1], 1, UINT32_MAX, &seed) ||
	    (strcmp(argv[2], "make") != 0 && strcmp(argv[2], "edit") != 0))
		usage_die("edittree seed make|edit");
	umask(022);
	state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (int i = 0; i < 8; i++)
		rnd(2);
	if (strcmp(argv[2], "make") == 0) {
		make_tree(".", 1);
		return 0;
	}
	for (unsigned i = 1 + rnd(OPS); i > 0; i--) {
		names_release(&paths);
		collect(".");
		operate();
	}
	return 0;
}
