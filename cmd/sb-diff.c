/* SPDX-License-Identifier: MIT */
/*
 * sb-diff: print what a session changed, as a patch that git-apply(1) takes,
 * or as a list. Shape: source.
 *
 *   1. Read the session's lease, the list of layers it was made against, and
 *      open the merged view of it.
 *   2. Scan the session's upper directory. Each record is compared with the
 *      view: equal copies are dropped, and a directory that is deleted, opaque
 *      or replaced becomes one deletion for each entry it hides.
 *   3. Sort by path, deletions first, and print.
 *
 * Nothing is written or locked. The lease pins its layers, so the old side
 * cannot change; the new side is what the upper holds while it is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attr.h"
#include "buf.h"
#include "change.h"
#include "err.h"
#include "io.h"
#include "layer.h"
#include "mem.h"
#include "merge3.h"
#include "ns.h"
#include "path.h"
#include "session.h"
#include "stack.h"
#include "store.h"
#include "view.h"

static const char usage[] = "sb-diff [-nz] session";

enum {
	CONTEXT = 3
}; /* unchanged lines shown around changed ones */

/* One line of the list. */
struct delta {
	char letter; /* A M D T m, or S for a special file */
	bool dir;
	char *path;
};

/* One side of a difference, as git sees it. */
struct side {
	unsigned mode; /* 0100644, 0100755, 0120000; 0 when absent */
	struct buf text; /* content, or a link's target */
};

static struct view *view;
static int upper = -1;
static struct changes changes = CHANGES_INIT;
static struct delta *deltas;
static size_t ndeltas, delta_cap;

static void
add(char letter, const char *path, bool dir)
{
	if (ndeltas == delta_cap)
		deltas = xgrow(deltas, &delta_cap, sizeof *deltas);
	deltas[ndeltas++] = (struct delta){ letter, dir, xstrdup(path) };
}

/* ---- comparing ---- */

static void
look_up(const char *path, struct node *n)
{
	if (view_get(view, path, n) == -1)
		die_sys("unable to look up %s in the layers", path);
}

static int
open_old(const char *path, const struct node *n)
{
	int fd = view_fd(view, path, n);

	if (fd == -1)
		die_sys("unable to open %s in layer %s", path,
		    view_layer_id(view, n->layer));
	return fd;
}

static int
open_new(const char *path, int flags)
{
	int fd = path_open(
	    upper, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | flags, 0);

	if (fd == -1)
		die_sys("unable to open %s in the session", path);
	return fd;
}

static bool
same_content(int a, int b, const char *path)
{
	int same = io_same(a, b);

	if (same == -1)
		die_sys("unable to read %s", path);
	return same == 1;
}

static bool
same_xattrs(int a, int b, const char *path)
{
	struct buf x = BUF_INIT, y = BUF_INIT;
	bool same;

	if (attr_xattrs(a, &x, NULL) == -1 || attr_xattrs(b, &y, NULL) == -1)
		die_sys("unable to read xattrs of %s", path);
	same = buf_equal(&x, &y);
	buf_release(&x);
	buf_release(&y);
	return same;
}

/* M, m, or 0 when there is no difference, of two files or two directories. */
static char
compare(const struct change *c, const struct node *old)
{
	int a = open_old(c->path, old);
	int b = open_new(c->path, old->kind == NODE_DIR ? O_DIRECTORY : 0);
	char letter = 0;

	if (old->kind == NODE_FILE &&
	    (old->st.st_size != c->size || !same_content(a, b, c->path)))
		letter = 'M';
	else if ((old->st.st_mode & 07777) != c->mode ||
	    !same_xattrs(a, b, c->path))
		letter = 'm';
	io_drop(&a);
	io_drop(&b);
	return letter;
}

static bool
same_target(const struct change *c, const struct node *old)
{
	struct buf target = BUF_INIT;
	bool same;

	if (view_readlink(view, c->path, old, &target) == -1)
		die_sys("unable to read link %s", c->path);
	same = strcmp(buf_str(&target), c->target) == 0;
	buf_release(&target);
	return same;
}

/* Index of the record of path, or of the place where it would be. */
static size_t
find(const char *path)
{
	size_t lo = 0, hi = changes.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (path_cmp(changes.v[mid].path, path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Has the session itself something at path? */
static bool
is_made(const char *path)
{
	size_t i = find(path);

	return i < changes.n && strcmp(changes.v[i].path, path) == 0 &&
	    changes.v[i].kind != CHANGE_DELETE;
}

/* Has the session something below path that counts as a change? */
static bool
is_filled(const char *path)
{
	for (size_t i = find(path); i < changes.n; i++) {
		const struct change *c = &changes.v[i];

		if (!path_is_below(c->path, path))
			return false;
		if (strcmp(c->path, path) != 0 && c->kind != CHANGE_DELETE &&
		    c->kind != CHANGE_SPECIAL)
			return true;
	}
	return false;
}

/* An entry that is hidden: gone, unless the session made one in its place. */
static int
hidden(void *arg, const char *path, const struct node *n)
{
	struct names names = NAMES_INIT;

	(void)arg;
	if (is_made(path) || n->kind == NODE_SPECIAL)
		return 0;
	if (n->kind == NODE_DIR) {
		/* Others are seen by what was in them. */
		if (view_list(view, path, &names) == -1)
			die_sys("unable to list %s", path);
		if (names.n == 0)
			add('D', path, true);
		names_release(&names);
	} else {
		add('D', path, false);
	}
	return 0;
}

/* The old entry at path is gone, with all that was below it. */
static void
gone(const char *path, const struct node *old)
{
	struct names names = NAMES_INIT;

	if (old->kind == NODE_FILE || old->kind == NODE_SYMLINK)
		add('D', path, false);
	if (old->kind != NODE_DIR)
		return;
	if (view_list(view, path, &names) == -1)
		die_sys("unable to list %s", path);
	if (names.n == 0 && !is_made(path))
		add('D', path, true);
	names_release(&names);
	if (view_walk(view, path, hidden, NULL) != 0)
		die_sys("unable to list what was in %s", path);
}

static void
made(const struct change *c, const struct node *old)
{
	bool link = c->kind == CHANGE_SYMLINK;
	char letter = 0;

	if (old->kind == NODE_DIR)
		gone(c->path, old);
	if (old->kind == NODE_FILE)
		letter = link ? 'T' : compare(c, old);
	else if (old->kind != NODE_SYMLINK)
		letter = 'A';
	else if (!link)
		letter = 'T';
	else if (!same_target(c, old))
		letter = 'M';
	if (letter)
		add(letter, c->path, false);
}

static void
made_dir(const struct change *c, const struct node *old, bool opaque)
{
	if (old->kind == NODE_DIR) {
		if (compare(c, old))
			add('m', c->path, true);
		if (opaque)
			gone(c->path, old);
		return;
	}
	gone(c->path, old);
	/* One that is not empty is seen by what is in it. */
	if (!is_filled(c->path))
		add('A', c->path, true);
}

static void
compare_all(void)
{
	const char *cover = NULL; /* what was below it is dealt with */
	const struct change *c;
	struct node old;

	for (size_t i = 0; i < changes.n; i++) {
		c = &changes.v[i];
		if (cover && !path_is_below(c->path, cover))
			cover = NULL;
		look_up(c->path, &old);
		switch (c->kind) {
		case CHANGE_WRITE:
		case CHANGE_SYMLINK:
			/* Under a cover the directory's content is gone already. */
			if (cover && old.kind == NODE_DIR)
				add('A', c->path, false);
			else
				made(c, &old);
			break;
		case CHANGE_DIR:
			made_dir(c, &old, false);
			break;
		case CHANGE_OPAQUE:
			made_dir(c, &old, !cover);
			if (!cover)
				cover = c->path;
			break;
		case CHANGE_DELETE:
			if (!cover)
				gone(c->path, &old);
			break;
		case CHANGE_SPECIAL:
			add('S', c->path, false);
			break;
		}
	}
}

static int
delta_cmp(const void *a, const void *b)
{
	const struct delta *x = a, *y = b;
	int order = path_cmp(x->path, y->path);

	if (order != 0)
		return order;
	return (y->letter == 'D') - (x->letter == 'D');
}

/* ---- names ---- */

/* As git quotes names (core.quotePath): C style when it is needed. */
static void
quote(struct buf *out, bool needs, const char *prefix, const char *path,
    const char *tail)
{
	static const char plain[] = "\a\b\t\n\v\f\r\"\\",
			  letter[] = "abtnvfr\"\\";
	const char *at;

	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f ||
		    *p == '"' || *p == '\\')
			needs = true;
	if (needs)
		buf_addc(out, '"');
	buf_adds(out, prefix);
	for (const char *p = path; *p; p++) {
		at = strchr(plain, *p);
		if (at)
			buf_addf(out, "\\%c", letter[at - plain]);
		else if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			buf_addf(out, "\\%03o", (unsigned char)*p);
		else
			buf_addc(out, *p);
	}
	buf_adds(out, tail);
	if (needs)
		buf_addc(out, '"');
}

static void
print_list(bool nul)
{
	struct buf b = BUF_INIT;

	for (size_t i = 0; i < ndeltas; i++) {
		const struct delta *d = &deltas[i];

		buf_cut(&b, 0);
		if (nul)
			buf_addf(&b, "%s%s", d->path, d->dir ? "/" : "");
		else
			quote(&b, false, "", d->path, d->dir ? "/" : "");
		printf("%c %s", d->letter, b.data);
		putchar(nul ? '\0' : '\n');
	}
}

/* ---- the patch ---- */

/* git knows one bit of a file's mode. */
static unsigned
git_mode(mode_t mode)
{
	return mode & 0100 ? 0100755 : 0100644;
}

static void
read_side(struct side *s, int fd, bool text, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) == -1 ||
	    (text && io_read_buf(fd, &s->text, SIZE_MAX / 4) == -1))
		die_sys("unable to read %s", path);
	s->mode = git_mode(st.st_mode);
	io_drop(&fd);
}

static void
load_old(struct side *s, bool text, const char *path)
{
	struct node n;

	look_up(path, &n);
	if (n.kind == NODE_FILE) {
		read_side(s, open_old(path, &n), text, path);
	} else if (n.kind == NODE_SYMLINK) {
		s->mode = 0120000;
		if (view_readlink(view, path, &n, &s->text) == -1)
			die_sys("unable to read link %s", path);
	}
}

static void
load_new(struct side *s, bool text, const char *path)
{
	const struct change *c = &changes.v[find(path)];

	if (c->kind == CHANGE_SYMLINK) {
		s->mode = 0120000;
		buf_adds(&s->text, c->target);
	} else {
		read_side(s, open_new(path, 0), text, path);
	}
}

static bool
is_binary(const struct side *s)
{
	return s->text.len > 0 && memchr(s->text.data, '\0', s->text.len);
}

static void
print_lines(char sign, const struct lines *l, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		size_t len = l->start[i + 1] - l->start[i];

		putchar(sign);
		fwrite(l->text + l->start[i], 1, len, stdout);
		if (l->text[l->start[i + 1] - 1] != '\n')
			fputs("\n\\ No newline at end of file\n", stdout);
	}
}

/* "12,3"; a single line is "12", and none is told by the line before it. */
static void
print_range(size_t at, size_t n)
{
	printf("%zu", n > 0 ? at + 1 : at);
	if (n != 1)
		printf(",%zu", n);
}

/* Regions i to end-1 with their context. */
static void
print_hunk(const struct lines *a, const struct lines *b,
    const struct diff_region *first, const struct diff_region *last)
{
	size_t before = first->a < CONTEXT ? first->a : CONTEXT;
	size_t from = first->a - before, at = from;
	size_t rest = a->n - (last->a + last->alen);
	size_t to = a->n - rest + (rest < CONTEXT ? rest : CONTEXT);
	size_t end = last->b + last->blen + (to - (last->a + last->alen));

	fputs("@@ -", stdout);
	print_range(from, to - from);
	fputs(" +", stdout);
	print_range(first->b - before, end - (first->b - before));
	fputs(" @@\n", stdout);
	for (const struct diff_region *r = first; r <= last; r++) {
		print_lines(' ', a, at, r->a);
		print_lines('-', a, r->a, r->a + r->alen);
		print_lines('+', b, r->b, r->b + r->blen);
		at = r->a + r->alen;
	}
	print_lines(' ', a, at, to);
}

static void
print_hunks(const struct buf *old, const struct buf *new, const char *path)
{
	struct diff d = DIFF_INIT;
	struct lines a, b;

	lines_split(&a, buf_str(old), old->len);
	lines_split(&b, buf_str(new), new->len);
	if (diff_lines(&a, &b, &d) == -1)
		die_sys("unable to compare %s", path);
	for (size_t i = 0, end; i < d.n; i = end) {
		/* Changes share a hunk when their context meets. */
		for (end = i + 1; end < d.n; end++)
			if (d.region[end].a - d.region[end - 1].a -
				d.region[end - 1].alen >
			    2 * CONTEXT)
				break;
		print_hunk(&a, &b, &d.region[i], &d.region[end - 1]);
	}
	diff_release(&d);
	lines_release(&a);
	lines_release(&b);
}

static void
print_patch(const char *path, const struct side *old, const struct side *new)
{
	struct buf a = BUF_INIT, b = BUF_INIT;
	const char *from, *to, *tab = strchr(path, ' ') ? "\t" : "";
	bool same = false, force;

	if (old->text.len == new->text.len)
		same = memcmp(buf_str(&old->text), buf_str(&new->text),
			   new->text.len) == 0;
	/* A difference that git has no word for. */
	if (same && old->mode == new->mode)
		return;
	/*
	 * Where no line but the first has the name, git-apply(1) splits the
	 * line itself, and fails when a directory's name ends in a space.
	 */
	force = same && strstr(path, " /");
	quote(&a, force, "a/", path, "");
	quote(&b, force, "b/", path, "");
	printf("diff --git %s %s\n", a.data, b.data);
	if (!old->mode)
		printf("new file mode %06o\n", new->mode);
	else if (!new->mode)
		printf("deleted file mode %06o\n", old->mode);
	else if (old->mode != new->mode)
		printf("old mode %06o\nnew mode %06o\n", old->mode, new->mode);
	from = old->mode ? a.data : "/dev/null";
	to = new->mode ? b.data : "/dev/null";
	if (same) {
		/* The mode was all. */
	} else if (is_binary(old) || is_binary(new)) {
		printf("Binary files %s and %s differ\n", from, to);
	} else {
		/* A tab ends a name with a space in it, as patch(1) wants. */
		printf("--- %s%s\n+++ %s%s\n", from, old->mode ? tab : "", to,
		    new->mode ? tab : "");
		print_hunks(&old->text, &new->text, path);
	}
	buf_release(&a);
	buf_release(&b);
}

static void
print_delta(const struct delta *d)
{
	struct side none = { .mode = 0 }, old = none, new = none;

	if (d->dir || d->letter == 'S')
		return;
	if (d->letter != 'A')
		load_old(&old, d->letter != 'm', d->path);
	if (d->letter != 'D')
		load_new(&new, d->letter != 'm', d->path);
	if (d->letter == 'T') {
		print_patch(d->path, &old, &none);
		print_patch(d->path, &none, &new);
	} else {
		print_patch(d->path, &old, &new);
	}
	buf_release(&old.text);
	buf_release(&new.text);
}

/* ---- reading the session ---- */

static int
keep(void *arg, const struct change *c)
{
	struct change copy = *c;

	(void)arg;
	copy.path = xstrdup(c->path);
	copy.target = c->target ? xstrdup(c->target) : NULL;
	changes_add(&changes, &copy);
	return 0;
}

static void
open_session(const char *id)
{
	struct manifest m = MANIFEST_INIT;
	struct ids ids = IDS_INIT;
	struct session s;
	struct stat st;
	const char *why = NULL;
	char *where = NULL;
	size_t bad = 0;
	if (session_open(&s, id) == -1) {
		if (errno == ENOENT)
			die(EXIT_NO, "no such session: %s", id);
		die_sys("unable to open session %s", id);
	}
	/* To manifest_read a missing file is an empty list. */
	if (path_lstat(s.dirfd, "lease", &st) == -1 ||
	    manifest_read(s.dirfd, "lease", &m, &why) == -1)
		die(EXIT_SYS, "unable to read the lease of session %s: %s", id,
		    why ? why : strerror(errno));
	for (size_t i = 0; i < m.n; i++)
		ids_add(&ids, m.id[i]);
	/*
	 * As in sb-publish: inside, the session's user reads its files without
	 * asking for permission.
	 */
	if (geteuid() != 0 && ns_own_user() == -1)
		warn_sys("unable to make a user namespace");
	view = view_open(store_open_stack(), &ids, &bad);
	if (!view)
		die_sys("unable to open layer %s", ids.id[bad]);
	upper = path_open(s.dirfd, "upper", O_RDONLY | O_DIRECTORY, 0);
	if (upper == -1)
		die_sys("unable to open the upper of session %s", id);
	if (layer_scan(upper, "u", false, keep, NULL, &where) == -1)
		die_sys("unable to read %s in session %s", where, id);
}

int
main(int argc, char **argv)
{
	bool list = false, nul = false;
	int opt;

	err_init();
	while ((opt = getopt(argc, argv, "+nzh")) != -1) {
		if (opt == 'n')
			list = true;
		else if (opt == 'z')
			nul = true;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 1 != argc)
		usage_die(usage);
	if (!id_is_valid(argv[optind]))
		die(EXIT_USAGE, "not a session id: %s", argv[optind]);
	open_session(argv[optind]);
	compare_all();
	if (ndeltas > 0)
		qsort(deltas, ndeltas, sizeof *deltas, delta_cmp);
	if (list || nul)
		print_list(nul);
	else
		for (size_t i = 0; i < ndeltas; i++)
			print_delta(&deltas[i]);
	stdout_done();
	return EXIT_OK;
}
