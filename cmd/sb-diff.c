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
 *   3. Sort by path, deletions first, and print. A small file is read once and
 *      kept; a large one is read for its id, its kind and its lines, and again
 *      for its content, so that only the two sides of a text that changed have
 *      to fit into memory.
 *
 * Nothing is written or locked. The lease pins its layers, so the old side
 * cannot change; the new side is what the upper holds while it is read. The
 * content in a patch is the one that its index line names.
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
#include "gitpatch.h"
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
	CONTEXT = 3, /* unchanged lines shown around changed ones */
	SMALL = 1 << 20, /* bytes of a file that is read once and kept */
	CHUNK = 1 << 16
};

/* One line of the list. */
struct delta {
	char letter; /* A M D T m, or S for a special file */
	bool dir;
	char *path;
};

/* One side of a difference, as git sees it. */
struct side {
	unsigned mode; /* 0100644, 0100755, 0120000; 0 when absent */
	int fd; /* of a large file, or -1 and all of it is in text */
	off_t size;
	struct buf text;
	char oid[GIT_OID_HEX + 1];
	bool binary; /* has a NUL byte */
	size_t lines;
	char last; /* byte */
};

#define SIDE_INIT { .fd = -1, .oid = GIT_OID_NONE }

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
			git_quote(&b, false, "", d->path, d->dir ? "/" : "");
		printf("%c %s", d->letter, b.data);
		putchar(nul ? '\0' : '\n');
	}
}

/* ---- the two sides ---- */

/* Gives fn all of s in pieces, and its id. */
static void
walk_side(const struct side *s, const char *path,
    void (*fn)(void *arg, const char *p, size_t n), void *arg,
    char oid[GIT_OID_HEX + 1])
{
	static char chunk[CHUNK];
	struct git_oid id;
	off_t at = 0;

	git_oid_init(&id, (uint64_t)s->size);
	if (s->fd == -1) {
		git_oid_add(&id, s->text.data, s->text.len);
		fn(arg, buf_str(&s->text), s->text.len);
	} else if (lseek(s->fd, 0, SEEK_SET) == -1) {
		die_sys("unable to read %s", path);
	}
	while (s->fd != -1 && at < s->size) {
		off_t rest = s->size - at;
		ssize_t n = io_read_some(
		    s->fd, chunk, rest < CHUNK ? (size_t)rest : CHUNK);

		if (n == -1)
			die_sys("unable to read %s", path);
		if (n == 0)
			die(EXIT_SYS, "%s became shorter while it was read",
			    path);
		git_oid_add(&id, chunk, (size_t)n);
		fn(arg, chunk, (size_t)n);
		at += n;
	}
	git_oid_hex(&id, oid);
}

static void
examine_piece(void *arg, const char *p, size_t n)
{
	struct side *s = arg;

	if (n == 0)
		return;
	if (!s->binary)
		s->binary = memchr(p, '\0', n);
	for (const char *at = p, *end = p + n; at < end; at++) {
		at = memchr(at, '\n', (size_t)(end - at));
		if (!at)
			break;
		s->lines++;
	}
	s->last = p[n - 1];
}

static void
examine(struct side *s, const char *path)
{
	walk_side(s, path, examine_piece, s, s->oid);
	if (s->size > 0 && s->last != '\n')
		s->lines++;
}

/*
 * A large file is read a second time to be printed. What came out must be what
 * the index line says, or git-apply(1) would find a damaged patch.
 */
static void
walk_again(const struct side *s, const char *path,
    void (*fn)(void *arg, const char *p, size_t n), void *arg)
{
	char oid[GIT_OID_HEX + 1];

	walk_side(s, path, fn, arg, oid);
	if (strcmp(oid, s->oid) != 0)
		die(EXIT_SYS, "%s changed while it was read", path);
}

static void
add_piece(void *arg, const char *p, size_t n)
{
	buf_add(arg, p, n);
}

/* Brings all of it into memory. */
static void
hold(struct side *s, const char *path)
{
	if (s->fd == -1)
		return;
	buf_reserve(&s->text, (size_t)s->size);
	walk_again(s, path, add_piece, &s->text);
	io_drop(&s->fd);
}

/* git knows one bit of a file's mode. */
static unsigned
git_mode(mode_t mode)
{
	return mode & 0100 ? 0100755 : 0100644;
}

/* Takes fd. */
static void
take_file(struct side *s, int fd, bool content, const char *path)
{
	struct stat st;
	ssize_t n;

	s->fd = fd;
	if (fstat(fd, &st) == -1)
		die_sys("unable to read %s", path);
	s->mode = git_mode(st.st_mode);
	s->size = content ? st.st_size : 0;
	if (s->size > SMALL)
		return;
	/* What is appended from now on is left out, here and in walk_side. */
	buf_reserve(&s->text, (size_t)s->size);
	n = io_read_all(fd, s->text.data, (size_t)s->size);
	if (n == -1)
		die_sys("unable to read %s", path);
	s->text.len = (size_t)n;
	s->size = n;
	io_drop(&s->fd);
}

static void
load_old(struct side *s, bool content, const char *path)
{
	struct node n;

	look_up(path, &n);
	if (n.kind == NODE_FILE) {
		take_file(s, open_old(path, &n), content, path);
	} else if (n.kind == NODE_SYMLINK) {
		s->mode = 0120000;
		if (view_readlink(view, path, &n, &s->text) == -1)
			die_sys("unable to read link %s", path);
		s->size = (off_t)s->text.len;
	}
	examine(s, path);
}

static void
load_new(struct side *s, bool content, const char *path)
{
	const struct change *c = &changes.v[find(path)];

	if (c->kind == CHANGE_SYMLINK) {
		s->mode = 0120000;
		buf_adds(&s->text, c->target);
		s->size = (off_t)s->text.len;
	} else {
		take_file(s, open_new(path, 0), content, path);
	}
	examine(s, path);
}

static void
release_side(struct side *s)
{
	io_drop(&s->fd);
	buf_release(&s->text);
}

/* ---- the patch ---- */

static const char no_newline[] = "\n\\ No newline at end of file\n";

static void
print_lines(char sign, const struct lines *l, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		size_t len = l->start[i + 1] - l->start[i];

		putchar(sign);
		fwrite(l->text + l->start[i], 1, len, stdout);
		if (l->text[l->start[i + 1] - 1] != '\n')
			fputs(no_newline, stdout);
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

static void
print_hunk_head(size_t at, size_t n, size_t to, size_t m)
{
	fputs("@@ -", stdout);
	print_range(at, n);
	fputs(" +", stdout);
	print_range(to, m);
	fputs(" @@\n", stdout);
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

	print_hunk_head(
	    from, to - from, first->b - before, end - (first->b - before));
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

struct signed_lines {
	char sign;
	bool inside; /* a line */
};

static void
print_signed(void *arg, const char *p, size_t n)
{
	struct signed_lines *l = arg;
	const char *end = p + n, *lf;

	for (; p < end; p += n) {
		lf = memchr(p, '\n', (size_t)(end - p));
		n = lf ? (size_t)(lf - p) + 1 : (size_t)(end - p);
		if (!l->inside)
			putchar(l->sign);
		fwrite(p, 1, n, stdout);
		l->inside = !lf;
	}
}

/* All lines of a text that is new, or gone; it need not fit into memory. */
static void
print_whole(const struct side *s, char sign, const char *path)
{
	struct signed_lines l = { .sign = sign };

	if (sign == '+')
		print_hunk_head(0, 0, 0, s->lines);
	else
		print_hunk_head(0, s->lines, 0, 0);
	walk_again(s, path, print_signed, &l);
	if (l.inside)
		fputs(no_newline, stdout);
}

struct packing {
	struct git_literal literal;
	struct buf out;
};

static void
print_packed(void *arg, const char *p, size_t n)
{
	struct packing *k = arg;

	git_literal_add(&k->literal, &k->out, p, n);
	fwrite(k->out.data, 1, k->out.len, stdout);
	buf_cut(&k->out, 0);
}

static void
print_literal(const struct side *s, const char *path)
{
	struct packing k = { .out = BUF_INIT };

	git_literal_begin(&k.literal, &k.out, (uint64_t)s->size);
	if (s->mode)
		walk_again(s, path, print_packed, &k);
	git_literal_end(&k.literal, &k.out);
	fwrite(k.out.data, 1, k.out.len, stdout);
	buf_release(&k.out);
}

static void
print_text(struct side *old, struct side *new, const char *path,
    const char *from, const char *to)
{
	/* A tab ends a name with a space in it, as patch(1) wants. */
	const char *tab = strchr(path, ' ') ? "\t" : "";

	printf(
	    "--- %s%s\n", old->mode ? from : "/dev/null", old->mode ? tab : "");
	printf(
	    "+++ %s%s\n", new->mode ? to : "/dev/null", new->mode ? tab : "");
	if (!old->mode) {
		print_whole(new, '+', path);
	} else if (!new->mode) {
		print_whole(old, '-', path);
	} else {
		hold(old, path);
		hold(new, path);
		print_hunks(&old->text, &new->text, path);
	}
}

static void
print_patch(const char *path, struct side *old, struct side *new)
{
	struct buf a = BUF_INIT, b = BUF_INIT;
	bool same = strcmp(old->oid, new->oid) == 0;
	bool binary = old->binary || new->binary;
	bool text = !same && !binary && (old->size > 0 || new->size > 0);

	/* A difference that git has no word for. */
	if (same && old->mode == new->mode)
		return;
	/*
	 * Where no line but the first has the name, git-apply(1) splits the
	 * line itself, and fails when a directory's name ends in a space.
	 */
	git_quote(&a, !text && strstr(path, " /"), "a/", path, "");
	git_quote(&b, !text && strstr(path, " /"), "b/", path, "");
	printf("diff --git %s %s\n", a.data, b.data);
	if (!old->mode)
		printf("new file mode %06o\n", new->mode);
	else if (!new->mode)
		printf("deleted file mode %06o\n", old->mode);
	else if (old->mode != new->mode)
		printf("old mode %06o\nnew mode %06o\n", old->mode, new->mode);
	if (!same) {
		printf("index %s..%s", old->oid, new->oid);
		if (old->mode == new->mode)
			printf(" %06o", old->mode);
		putchar('\n');
	}
	if (text)
		print_text(old, new, path, a.data, b.data);
	if (!same && binary) {
		puts("GIT binary patch");
		print_literal(new, path);
		print_literal(old, path);
	}
	buf_release(&a);
	buf_release(&b);
}

static void
print_delta(const struct delta *d)
{
	struct side none = SIDE_INIT, old = SIDE_INIT, new = SIDE_INIT;
	bool content = d->letter != 'm';

	if (d->dir || d->letter == 'S')
		return;
	if (d->letter != 'A')
		load_old(&old, content, d->path);
	if (d->letter != 'D')
		load_new(&new, content, d->path);
	if (git_refuses(d->path, S_ISLNK(old.mode) || S_ISLNK(new.mode))) {
		/* One of these, and git-apply(1) would take nothing at all. */
	} else if (d->letter == 'T') {
		print_patch(d->path, &old, &none);
		print_patch(d->path, &none, &new);
	} else {
		print_patch(d->path, &old, &new);
	}
	release_side(&old);
	release_side(&new);
}

/* ---- reading the session ---- */

static int
keep(void *arg, const struct change *c)
{
	struct change copy = *c;

	if (session_is_aside(arg, c->path))
		return 0;
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
	if (ns_own_files() == -1)
		warn_sys("unable to make a user namespace");
	view = view_open(store_open_stack(), &ids, &bad);
	if (!view)
		die_sys("unable to open layer %s", ids.id[bad]);
	upper = path_open(s.dirfd, "upper", O_RDONLY | O_DIRECTORY, 0);
	if (upper == -1)
		die_sys("unable to open the upper of session %s", id);
	if (layer_scan(upper, "u", false, keep, s.id, &where) == 0)
		return;
	if (errno == ENAMETOOLONG)
		die(EXIT_USAGE,
		    "a path or the target of a link in session %s is longer "
		    "than %d bytes: %s",
		    id, PATH_BYTES_MAX, where);
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
