/* SPDX-License-Identifier: MIT */
/*
 * Refs merged by name: golden cases, hostile content, and random repositories
 * held against what was promised: head's refs stand, a change of one side is
 * seen, nothing of mine is lost, and no ref stands below another. The result
 * is applied to head's files and read back by a reader of our own. SB_SEED
 * chooses other repositories.
 */
#include "gitrefs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "mem.h"
#include "num.h"

#include "tap.h"

/* ---- repositories in memory ---- */

struct file {
	char *path;
	char *content; /* NULL: a link or the like */
	size_t len;
};

struct tree {
	struct file *v;
	size_t n, cap;
};

static void
take(struct tree *t, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct file *f = &t->v[i];

		/* What was there, below it, or stood for a directory of it. */
		if (path_is_below(f->path, path) ||
		    path_is_below(path, f->path)) {
			free(f->path);
			free(f->content);
			continue;
		}
		t->v[n++] = *f;
	}
	t->n = n;
}

static void
put_bytes(struct tree *t, const char *path, const char *content, size_t len)
{
	struct buf b = BUF_INIT;

	buf_add(&b, content ? content : "", len);
	take(t, path);
	if (t->n == t->cap)
		t->v = xgrow(t->v, &t->cap, sizeof *t->v);
	t->v[t->n++] =
	    (struct file){ xstrdup(path), content ? buf_steal(&b) : NULL, len };
	buf_release(&b);
}

static void
put(struct tree *t, const char *path, const char *content)
{
	put_bytes(t, path, content, content ? strlen(content) : 0);
}

static const struct file *
at(const struct tree *t, const char *path)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->v[i].path, path) == 0)
			return &t->v[i];
	return NULL;
}

static void
copy(struct tree *to, const struct tree *from)
{
	*to = (struct tree){ .v = NULL };
	for (size_t i = 0; i < from->n; i++)
		put_bytes(
		    to, from->v[i].path, from->v[i].content, from->v[i].len);
}

static void
drop(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->v[i].path);
		free(t->v[i].content);
	}
	free(t->v);
	*t = (struct tree){ .v = NULL };
}

static int
tree_read(void *arg, const char *path, size_t max, struct buf *out)
{
	const struct file *f = at(arg, path);

	if (!f || !f->content)
		return 0;
	if (f->len > max) {
		errno = EFBIG;
		return -1;
	}
	buf_add(out, f->content, f->len);
	return 1;
}

static int
tree_list(void *arg, const char *dir, struct names *out)
{
	const struct tree *t = arg;
	size_t skip = *dir == '\0' ? 0 : strlen(dir) + 1;
	struct names all = NAMES_INIT;

	for (size_t i = 0; i < t->n; i++) {
		const char *path = t->v[i].path;
		char *name;

		if (!path_is_below(path, dir) || strlen(path) < skip)
			continue;
		name = xstrndup(path + skip, strcspn(path + skip, "/"));
		names_add(&all, name);
		free(name);
	}
	names_sort(&all);
	for (size_t i = 0; i < all.n; i++)
		if (i == 0 || strcmp(all.name[i], all.name[i - 1]) != 0)
			names_add(out, all.name[i]);
	names_release(&all);
	return out->n > 0;
}

static struct git_reader
reader(struct tree *t)
{
	return (struct git_reader){ tree_read, tree_list, t };
}

/* An object's name: 40 times the letter. */
static const char *
oid(char c)
{
	static char name[2][41];
	static int turn;

	turn = !turn;
	memset(name[turn], c, 40);
	return name[turn];
}

/* "refs/heads/x=a": a file; "=@NAME": symbolic; "+": in packed-refs. */
static void
put_refs(struct tree *t, const char *words)
{
	struct buf packed = BUF_INIT;
	char *copied = xstrdup(words), *rest = copied, *word;

	buf_adds(&packed, "# pack-refs with: peeled fully-peeled sorted \n");
	while ((word = strsep(&rest, " ")) != NULL) {
		size_t len = strcspn(word, "=+");
		char sign = word[len], *text;
		const char *value = word + len + 1;

		if (*word == '\0')
			continue;
		word[len] = '\0';
		if (sign == '+') {
			buf_addf(&packed, "%s %s\n", oid(*value), word);
			if (value[1] == '^')
				buf_addf(&packed, "^%s\n", oid(value[2]));
			continue;
		}
		text = *value == '@' ? xasprintf("ref: %s\n", value + 1)
				     : xasprintf("%s\n", oid(*value));
		put(t, word, text);
		free(text);
	}
	if (strchr(words, '+'))
		put(t, "packed-refs", buf_str(&packed));
	buf_release(&packed);
	free(copied);
}

static struct tree
repo(const char *words)
{
	struct tree t = { .v = NULL };

	put(&t, "refs/heads/.keep", "");
	put_refs(&t, words);
	return t;
}

/* ---- golden cases ---- */

/* "path=a", "path=@NAME", "path-" (gone), "packed-refs:[line,…]"; "ref>kept". */
static struct buf
shape(const struct git_merge *m)
{
	struct buf b = BUF_INIT;

	for (size_t i = 0; i < m->nfiles; i++) {
		const struct git_file *f = &m->file[i];

		buf_adds(&b, b.len > 0 ? " " : "");
		buf_adds(&b, f->path);
		if (!f->content) {
			buf_adds(&b, "-");
		} else if (strcmp(f->path, "packed-refs") == 0) {
			buf_adds(&b, ":[");
			for (const char *p = f->content; *p != '\0';
			    p += strcspn(p, "\n") + 1)
				if (*p == '^')
					buf_addf(&b, "^%c,", p[1]);
				else if (*p != '#')
					buf_addf(&b, "%c%.*s,", *p,
					    (int)strcspn(p + 40, "\n"), p + 40);
			buf_adds(&b, "]");
		} else if (strncmp(f->content, "ref: ", 5) == 0) {
			buf_addf(&b, "=@%.*s",
			    (int)strcspn(f->content + 5, "\n"), f->content + 5);
		} else {
			buf_addf(&b, "=%c", f->content[0]);
		}
	}
	buf_adds(&b, m->nkept > 0 ? " |" : "");
	for (size_t i = 0; i < m->nkept; i++)
		buf_addf(&b, " %s>%s=%c", m->kept[i].ref, m->kept[i].kept,
		    m->kept[i].commit[0]);
	return b;
}

static void
check_trees(struct tree *base, struct tree *head, struct tree *mine,
    bool index_moved, const char *session, const char *want, const char *what)
{
	struct git_merge m = GIT_MERGE_INIT;
	struct git_reader b = reader(base), h = reader(head), i = reader(mine);
	struct buf is = BUF_INIT;

	if (gitrefs_merge(".git", session, index_moved, &b, &h, &i, &m) == -1)
		buf_addf(&is, "error %s", strerror(errno));
	else
		is = shape(&m);
	if (!ok(strcmp(buf_str(&is), want) == 0, what))
		printf("# is:     %s\n# wanted: %s\n", buf_str(&is), want);
	buf_release(&is);
	git_merge_release(&m);
}

static void
check_moved(const char *base, const char *head, const char *mine,
    bool index_moved, const char *want, const char *what)
{
	struct tree b = repo(base), h = repo(head), i = repo(mine);

	check_trees(&b, &h, &i, index_moved, "s", want, what);
	drop(&b);
	drop(&h);
	drop(&i);
}

static void
check(const char *base, const char *head, const char *mine, const char *want,
    const char *what)
{
	check_moved(base, head, mine, false, want, what);
}

#define MAIN "HEAD=@refs/heads/main "

static void
plain_cases(void)
{
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b",
	    MAIN "refs/heads/main=a", "", "head's commit stands");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=a",
	    MAIN "refs/heads/main=b", "refs/heads/main=b",
	    "mine's commit is seen");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b",
	    MAIN "refs/heads/main=b", "", "the same commit agrees");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b",
	    MAIN "refs/heads/main=c",
	    "refs/sb/s=c | refs/heads/main>refs/sb/s=c",
	    "two commits on one branch: mine's is kept under the session");
	check(MAIN "refs/heads/main=a refs/heads/x=a refs/tags/v=a",
	    MAIN "refs/heads/main=a refs/heads/x=b refs/tags/v=d",
	    MAIN "refs/heads/main=e refs/heads/x=c refs/tags/v=f",
	    "refs/heads/main=e refs/sb/s.refs/heads/x=c "
	    "refs/sb/s.refs/tags/v=f | "
	    "refs/heads/x>refs/sb/s.refs/heads/x=c "
	    "refs/tags/v>refs/sb/s.refs/tags/v=f",
	    "what is lost besides the branch in HEAD has names of its own");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=a refs/heads/x=b",
	    MAIN "refs/heads/main=a refs/heads/x=c",
	    "refs/sb/s.refs/heads/x=c | "
	    "refs/heads/x>refs/sb/s.refs/heads/x=c",
	    "one new name with two values: head's, and mine kept");
	check(MAIN "refs/heads/main=a refs/heads/x=a",
	    MAIN "refs/heads/main=b refs/heads/x=a", MAIN "refs/heads/main=a",
	    "refs/heads/x-", "a branch that mine deleted is deleted");
	check(MAIN "refs/heads/main=a refs/heads/x=a",
	    MAIN "refs/heads/main=a refs/heads/x=b", MAIN "refs/heads/main=a",
	    "", "a branch that mine deleted and head moved stays");
	check(MAIN "refs/heads/main=a refs/heads/x=a", MAIN "refs/heads/main=a",
	    MAIN "refs/heads/main=a refs/heads/x=b",
	    "refs/sb/s.refs/heads/x=b | "
	    "refs/heads/x>refs/sb/s.refs/heads/x=b",
	    "a branch that head deleted and mine moved is kept");
	check("", MAIN "refs/heads/main=b", MAIN "refs/heads/main=c",
	    "refs/sb/s=c | refs/heads/main>refs/sb/s=c",
	    "a repository that both sides made");
}

static void
packed_cases(void)
{
	check(MAIN "refs/heads/main=a refs/heads/x=a",
	    MAIN "refs/heads/main+a refs/heads/x+a",
	    MAIN "refs/heads/main+a refs/heads/x+a refs/heads/y+b",
	    "refs/heads/y=b", "what mine packed is seen beside head's pack");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main+a",
	    MAIN "refs/heads/main=b", "refs/heads/main=b",
	    "a commit of mine over what head packed");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b",
	    MAIN "refs/heads/main+a", "", "packing alone changes no ref");
	check(MAIN "refs/heads/main=a refs/heads/x=b",
	    MAIN "refs/heads/main=a refs/heads/x=b refs/heads/old+c",
	    MAIN "refs/heads/main+a refs/heads/x+b", "",
	    "files that mine packed stay");
	check(MAIN "refs/heads/main=a refs/heads/x=b refs/heads/x+a",
	    MAIN "refs/heads/main=a refs/heads/x=b refs/heads/x+a "
		 "refs/tags/v+c^d refs/tags/w+e^f",
	    MAIN "refs/heads/main=a",
	    "packed-refs:[c refs/tags/v,^d,e refs/tags/w,^f,] refs/heads/x-",
	    "a deleted branch does not come back with its older, packed value");
	check(MAIN "refs/heads/main=a refs/tags/v+c^d refs/tags/w+e^f",
	    MAIN "refs/heads/main=b refs/tags/v+c^d refs/tags/w+e^f",
	    MAIN "refs/heads/main=a refs/tags/w+e^f",
	    "packed-refs:[e refs/tags/w,^f,]",
	    "a packed tag goes with what it peels to");
}

static void
head_cases(void)
{
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b",
	    "HEAD=@refs/heads/x refs/heads/main=a refs/heads/x=c",
	    "HEAD=@refs/heads/x refs/heads/x=c",
	    "a branch that mine made and checked out");
	check_moved(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b",
	    "HEAD=@refs/heads/x refs/heads/main=a refs/heads/x=c", true,
	    "refs/heads/x=c", "head's HEAD stays with head's index");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b",
	    "HEAD=c refs/heads/main=a", "HEAD=c", "a detached HEAD of mine");
	check_moved(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b",
	    "HEAD=c refs/heads/main=a", true, "refs/sb/s=c | HEAD>refs/sb/s=c",
	    "a detached HEAD that cannot stay is kept");
	check("HEAD=a", "HEAD=b", "HEAD=c", "refs/sb/s=c | HEAD>refs/sb/s=c",
	    "two detached HEADs");
	check(MAIN, MAIN "refs/heads/main=b", MAIN, "", "an unborn branch");
	check(MAIN, MAIN, MAIN "refs/heads/main=b", "refs/heads/main=b",
	    "an unborn branch gets its first commit");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=a refs/heads/x=b",
	    "HEAD=@refs/heads/x refs/heads/main=a refs/heads/x=c",
	    "refs/sb/s=c | refs/heads/x>refs/sb/s=c",
	    "HEAD does not move to a branch that is another one at head");
	check(MAIN "refs/heads/main=a refs/heads/x=a",
	    "HEAD=@refs/heads/x refs/heads/main=a refs/heads/x=a",
	    MAIN "refs/heads/main=a", "",
	    "what head checked out is not deleted");
	check(MAIN "refs/heads/main=a refs/heads/x=a", MAIN "refs/heads/main=a",
	    "HEAD=@refs/heads/x refs/heads/main=a refs/heads/x=a", "",
	    "mine does not check out what head deleted");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b",
	    "refs/heads/main=a", "", "HEAD is never deleted");
	check("HEAD=@refs/heads/s refs/heads/s=@refs/heads/main "
	      "refs/heads/main=a",
	    "HEAD=@refs/heads/s refs/heads/s=@refs/heads/main "
	    "refs/heads/main=b",
	    "HEAD=@refs/heads/s refs/heads/s=@refs/heads/main "
	    "refs/heads/main=c",
	    "refs/sb/s=c | refs/heads/main>refs/sb/s=c",
	    "HEAD over a symbolic branch");
	check(MAIN "refs/heads/main=a worktrees/w/HEAD=@refs/heads/w "
		   "refs/heads/w=a",
	    MAIN "refs/heads/main=b worktrees/w/HEAD=@refs/heads/w "
		 "refs/heads/w=a worktrees/v/HEAD=b",
	    MAIN "refs/heads/main=a worktrees/w/HEAD=@refs/heads/w "
		 "refs/heads/w=c worktrees/v/HEAD=d worktrees/u/HEAD=e",
	    "refs/heads/w=c refs/sb/s.worktrees/v/HEAD=d worktrees/u/HEAD=e | "
	    "worktrees/v/HEAD>refs/sb/s.worktrees/v/HEAD=d",
	    "the HEADs of worktrees");
	check(MAIN "refs/remotes/o/HEAD=@refs/remotes/o/x refs/remotes/o/x=a",
	    MAIN "refs/remotes/o/HEAD=@refs/remotes/o/x refs/remotes/o/x=b",
	    MAIN "refs/remotes/o/HEAD=@refs/remotes/o/y refs/remotes/o/x=a "
		 "refs/remotes/o/y=c",
	    "refs/remotes/o/HEAD=@refs/remotes/o/y refs/remotes/o/y=c",
	    "a symbolic ref that mine changed");
	check(MAIN "refs/heads/x=a", MAIN,
	    MAIN "refs/heads/x=a refs/heads/y=@refs/heads/x", "",
	    "a symbolic ref of mine does not name what head deleted");
	check(MAIN "refs/heads/x=a",
	    MAIN "refs/heads/x=a refs/heads/y=@refs/heads/x", MAIN, "",
	    "what head's symbolic ref names is not deleted");
	check(MAIN, MAIN "refs/heads/x=b",
	    MAIN "refs/heads/x/y=a refs/heads/z=@refs/heads/x/y",
	    "refs/sb/s.refs/heads/x/y=a | "
	    "refs/heads/x/y>refs/sb/s.refs/heads/x/y=a",
	    "nor one that gave way to head's");
}

static void
name_cases(void)
{
	check(MAIN, MAIN "refs/heads/a=b", MAIN "refs/heads/a/x=c",
	    "refs/sb/s.refs/heads/a/x=c | "
	    "refs/heads/a/x>refs/sb/s.refs/heads/a/x=c",
	    "a branch below a branch of head's is kept elsewhere");
	check(MAIN, MAIN "refs/heads/a/x=b refs/heads/a/y=b",
	    MAIN "refs/heads/a=c",
	    "refs/sb/s.refs/heads/a=c | "
	    "refs/heads/a>refs/sb/s.refs/heads/a=c",
	    "a branch above branches of head's is kept elsewhere");
	check(MAIN, MAIN "refs/heads/a+b", MAIN "refs/heads/a/x=c",
	    "refs/sb/s.refs/heads/a/x=c | "
	    "refs/heads/a/x>refs/sb/s.refs/heads/a/x=c",
	    "also where head's is packed");
	check(MAIN "refs/heads/a=a", MAIN "refs/heads/a+a",
	    MAIN "refs/heads/a/x=c", "packed-refs:[] refs/heads/a/x=c",
	    "mine made a branch a directory, head packed it");
	check(MAIN "refs/heads/a=a", MAIN "refs/heads/a=a refs/heads/z=a",
	    MAIN "refs/heads/a/x=c", "refs/heads/a/x=c",
	    "a directory takes the place of a file without more words");
	check(MAIN "refs/heads/a/x=a refs/heads/a/y=a",
	    MAIN "refs/heads/a/x=a refs/heads/a/y=a refs/heads/z=a",
	    MAIN "refs/heads/a=c", "refs/heads/a=c",
	    "a file takes the place of a directory without more words");
	check("HEAD=@refs/heads/a refs/heads/a=a",
	    "HEAD=@refs/heads/a refs/heads/a=a refs/heads/z=a",
	    MAIN "refs/heads/a/x=c refs/heads/main=a",
	    "HEAD=@refs/heads/main refs/heads/a/x=c refs/heads/main=a",
	    "a branch that nobody has checked out may become a directory");
	check_moved("HEAD=@refs/heads/a refs/heads/a=a",
	    "HEAD=@refs/heads/a refs/heads/a=a refs/heads/z=a",
	    MAIN "refs/heads/a/x=c refs/heads/main=a", true,
	    "refs/heads/main=a refs/sb/s.refs/heads/a/x=c | "
	    "refs/heads/a/x>refs/sb/s.refs/heads/a/x=c",
	    "but not one that stays checked out");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b refs/sb/s=c",
	    MAIN "refs/heads/main=c", " | refs/heads/main>refs/sb/s=c",
	    "what is kept already is not written again");
	check(MAIN "refs/heads/main=a",
	    MAIN "refs/heads/main=b refs/sb/s=d refs/sb/s-2/x+d",
	    MAIN "refs/heads/main=c",
	    "refs/sb/s-3=c | refs/heads/main>refs/sb/s-3=c",
	    "a kept ref replaces none, and stands beside directories");
	check(MAIN "refs/heads/x=a", MAIN "refs/heads/x=b refs/sb/s.refs=d",
	    MAIN "refs/heads/x=c",
	    "refs/sb/s-2.refs/heads/x=c | "
	    "refs/heads/x>refs/sb/s-2.refs/heads/x=c",
	    "a kept ref does not stand below a ref");
	check(MAIN "refs/heads/main=a", MAIN "refs/heads/main=b refs/sb=d",
	    MAIN "refs/heads/main=c",
	    "refs/sb-2/s=c | refs/heads/main>refs/sb-2/s=c",
	    "somebody's ref is named refs/sb");
}

static void
session_case(const char *session, const char *want)
{
	struct tree b = repo(MAIN "refs/heads/main=a");
	struct tree h = repo(MAIN "refs/heads/main=b");
	struct tree i = repo(MAIN "refs/heads/main=c");
	char *text = xasprintf("%s=c | refs/heads/main>%s=c", want, want);

	check_trees(&b, &h, &i, false, session, text, session);
	free(text);
	drop(&b);
	drop(&h);
	drop(&i);
}

static void
stash_log(struct tree *t, const char *letters)
{
	struct buf b = BUF_INIT;
	char old = '0';

	for (const char *p = letters; *p != '\0'; old = *p++)
		buf_addf(&b, "%s %s A <a@b> 1 +0000\tWIP\n", oid(old), oid(*p));
	put(t, "logs/refs/stash", buf_str(&b));
	buf_release(&b);
}

static void
stash_case(const char *base, const char *head, const char *mine,
    const char *want, const char *what)
{
	struct tree t[3];
	const char *const log[3] = { base, head, mine };

	for (int i = 0; i < 3; i++) {
		t[i] = repo(MAIN);
		if (*log[i] == '\0')
			continue;
		put_refs(&t[i], "refs/stash=0");
		take(&t[i], "refs/stash");
		{
			char text[] = "refs/stash=?";

			text[sizeof text - 2] = log[i][strlen(log[i]) - 1];
			put_refs(&t[i], text);
		}
		stash_log(&t[i], log[i]);
	}
	check_trees(&t[0], &t[1], &t[2], false, "s", want, what);
	for (int i = 0; i < 3; i++)
		drop(&t[i]);
}

static void
stash_cases(void)
{
	stash_case("", "", "abc", "refs/stash=c", "stashes of mine alone");
	stash_case("", "f", "abc",
	    "refs/sb/s.refs/stash=c refs/sb/s.stash/1=b refs/sb/s.stash/2=a | "
	    "refs/stash>refs/sb/s.refs/stash=c "
	    "refs/stash@{1}>refs/sb/s.stash/1=b "
	    "refs/stash@{2}>refs/sb/s.stash/2=a",
	    "stashes on both sides: each of mine is kept");
	stash_case("e", "ef", "eb",
	    "refs/sb/s.refs/stash=b | refs/stash>refs/sb/s.refs/stash=b",
	    "what both had is not kept twice");
	stash_case("de", "e", "deb",
	    "refs/sb/s.refs/stash=b | refs/stash>refs/sb/s.refs/stash=b",
	    "the ref of the stash goes with its log");
	stash_case("de", "def", "d",
	    "refs/sb/s.refs/stash=d | refs/stash>refs/sb/s.refs/stash=d",
	    "mine dropped one where head added one");
}

/* ---- hostile content ---- */

static void
hostile_cases(void)
{
	struct tree b = repo(MAIN "refs/heads/main=a");
	struct tree h = repo(MAIN "refs/heads/main=b");
	struct tree i = repo("refs/heads/main=a");
	struct buf big = BUF_INIT;
	struct git_merge m = GIT_MERGE_INIT;
	struct git_reader rb = reader(&b), rh = reader(&h), ri = reader(&i);

	put(&i, "HEAD", "ref: ../../x\n");
	check_trees(&b, &h, &i, false, "s", "", "HEAD that points outside");
	put(&i, "HEAD", "ref: refs/../../x\n");
	check_trees(&b, &h, &i, false, "s", "", "HEAD with dots inside");
	put(&i, "HEAD", "ref: /etc/passwd\n");
	check_trees(&b, &h, &i, false, "s", "", "HEAD with an absolute path");
	put(&i, "HEAD", NULL);
	check_trees(&b, &h, &i, false, "s", "", "HEAD that is a link");
	put(&i, "HEAD", "ref: refs/heads/h\n");
	put(&i, "refs/heads/h", "ref: refs/heads/h\n");
	check_trees(&b, &h, &i, false, "s",
	    "HEAD=@refs/heads/h refs/heads/h=@refs/heads/h",
	    "symbolic refs in a circle end");
	put(&i, "HEAD", "");
	put(&i, "refs/heads/h", "hello\n");
	put(&i, "refs/heads/z", "0000000000000000000000000000000000000000\n");
	put(&i, "refs/heads/long", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	put(&i, "refs/heads/x.lock", oid('c'));
	put(&i, "refs/heads/s p", oid('c'));
	put(&i, "refs/heads/n\nl", oid('c'));
	put(&i, "refs/heads/e@{1}", oid('c'));
	put(&i, "refs/heads/.hidden", oid('c'));
	put(&i, "refs/heads/dot.", oid('c'));
	put(&i, "refs/heads/link", NULL);
	check_trees(
	    &b, &h, &i, false, "s", "", "what is no ref is not carried over");
	put(&h, "refs/heads/link", NULL);
	put_refs(&i, "refs/heads/link/x=c");
	check_trees(&b, &h, &i, false, "s",
	    "refs/sb/s.refs/heads/link/x=c | "
	    "refs/heads/link/x>refs/sb/s.refs/heads/link/x=c",
	    "nothing is written below a link");
	put(&i, "refs", NULL);
	check_trees(&b, &h, &i, false, "s", "",
	    "without refs mine is no repository and deletes nothing");
	drop(&i);
	i = repo(MAIN "refs/heads/main=c");
	drop(&h);
	put(&h, "HEAD", "ref: refs/heads/main\n");
	put(&h, "refs", NULL);
	check_trees(&b, &h, &i, false, "s", "error Not a directory",
	    "refs at head is a link: an error, for nothing can be kept");
	drop(&h);
	h = repo(MAIN "refs/heads/main=b");

	/* Ten MiB of packed refs, half of them no refs at all. */
	buf_adds(&big, "# pack-refs with: peeled fully-peeled sorted \n");
	for (size_t n = 0; big.len < 10 << 20; n++) {
		buf_addf(&big, "%s refs/heads/n%06zu\n", oid('d'), n);
		buf_addf(&big, "%s ../../n%06zu\n", oid('d'), n);
	}
	buf_addf(&big, "%s refs/heads/", oid('d'));
	for (int n = 0; n < 300; n++)
		buf_addc(&big, 'l');
	buf_adds(&big, "\nno line feed at the end");
	put(&i, "packed-refs", buf_str(&big));
	ok(gitrefs_merge(".git", "s", false, &rb, &rh, &ri, &m) == 0 &&
		m.nfiles > 70000 && m.nkept == 2 &&
		strcmp(m.kept[0].kept, "refs/sb/s") == 0 &&
		strncmp(m.kept[1].kept, "refs/sb/s.long/", 15) == 0,
	    "ten MiB of packed-refs, and a name too long for a file");
	git_merge_release(&m);
	put_bytes(&i, "packed-refs", "\0\0\n\0", 4);
	check_trees(&b, &h, &i, false, "s",
	    "refs/sb/s=c | refs/heads/main>refs/sb/s=c",
	    "packed-refs with NUL bytes");
	buf_release(&big);
	drop(&b);
	drop(&h);
	drop(&i);
}

static void
path_cases(void)
{
	static const struct {
		const char *path;
		enum git_part part;
	} v[] = {
		{ "HEAD", GIT_REF },
		{ "packed-refs", GIT_REF },
		{ "refs", GIT_REF },
		{ "refs/heads/x", GIT_REF },
		{ "refs-x", GIT_OTHER },
		{ "HEAD/x", GIT_OTHER },
		{ "ORIG_HEAD", GIT_OTHER },
		{ "logs/HEAD", GIT_OTHER },
		{ "logs/refs/heads/x", GIT_OTHER },
		{ "index", GIT_OTHER },
		{ "worktrees/w/HEAD", GIT_REF },
		{ "worktrees/w/refs/bisect/bad", GIT_REF },
		{ "worktrees/w/index", GIT_OTHER },
		{ "worktrees/HEAD", GIT_OTHER },
		{ "objects", GIT_OTHER },
		{ "objects/pack", GIT_OTHER },
		{ "objects/ab", GIT_OTHER },
		{ "objects/ab/012345678901234567890123456789012345678",
		    GIT_OTHER },
		{ "objects/ab/01234567890123456789012345678901234567",
		    GIT_OBJECT },
		{ "objects/ab/01234567890123456789012345678901234567"
		  "890123456789012345678901",
		    GIT_OBJECT },
		{ "objects/ab/01234567890123456789012345678901234567/x",
		    GIT_OTHER },
		{ "objects/pack/pack-1.pack", GIT_OBJECT },
		{ "objects/pack/pack-1.keep", GIT_OBJECT },
		{ "objects/pack/pack-1/x", GIT_OTHER },
		{ "objects/pack/tmp_pack_1", GIT_OTHER },
		{ "objects/pack/multi-pack-index", GIT_CACHE },
		{ "objects/pack/multi-pack-index-1.bitmap", GIT_CACHE },
		{ "objects/info/packs", GIT_CACHE },
		{ "objects/info/commit-graph", GIT_CACHE },
		{ "objects/info/commit-graphs/graph-1.graph", GIT_CACHE },
		{ "objects/info/alternates", GIT_OTHER },
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		ok(git_part_of(v[i].path) == v[i].part, v[i].path);
}

static void
list_cases(void)
{
	struct tree b = { .v = NULL }, h = { .v = NULL }, i = { .v = NULL };
	struct git_reader rb = reader(&b), rh = reader(&h), ri = reader(&i);
	struct names out = NAMES_INIT;

	put(&b, "HEAD", "");
	put(&b, "modules/lib/a/HEAD", "");
	put(&b, "modules/lib/a/refs/x", "");
	put(&b, "modules/lib/a/objects/x", "");
	put(&b, "modules/lib/a/modules/b/HEAD", "");
	put(&b, "modules/lib/a/modules/b/refs/x", "");
	put(&b, "modules/lib/a/modules/b/objects/x", "");
	put(&b, "modules/c/HEAD", "");
	ok(git_repos(&rb, &out) == 0 && out.n == 3 &&
		strcmp(out.name[0], "") == 0 &&
		strcmp(out.name[1], "modules/lib/a") == 0 &&
		strcmp(out.name[2], "modules/lib/a/modules/b") == 0,
	    "repositories of submodules are found, also nested ones");
	names_release(&out);
	drop(&b);

#define L1 "objects/ab/01234567890123456789012345678901234567"
#define L2 "objects/ab/01234567890123456789012345678901234568"
	put(&b, L1, "");
	put(&b, L2, "");
	put(&b, "objects/pack/pack-1.pack", "");
	put(&b, "objects/pack/pack-2.pack", "");
	put(&b, "objects/pack/multi-pack-index", "");
	put(&b, "objects/info/commit-graph", "");
	put(&h, L1, "");
	put(&i, L1, "");
	put(&i, L2, "");
	put(&i, "objects/pack/pack-1.pack", "");
	put(&i, "objects/pack/pack-3.pack", "");
	put(&i, "objects/pack/multi-pack-index", "");
	ok(git_objects_gone(&rb, &rh, &ri, &out) == 0 && out.n == 2 &&
		strcmp(out.name[0], L2) == 0 &&
		strcmp(out.name[1], "objects/pack/pack-1.pack") == 0,
	    "objects that head lost and mine had from base");
	names_release(&out);
	drop(&b);
	drop(&h);
	drop(&i);
}

/* ---- random repositories ---- */

static uint64_t rng;

/* Steele, Lea and Flood's SplitMix64. */
static unsigned
rnd(unsigned below)
{
	uint64_t z = rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (unsigned)((z ^ z >> 31) % below);
}

static const char *const pool[] = { "HEAD", "refs/heads/a", "refs/heads/a/x",
	"refs/heads/a/x/y", "refs/heads/a-b", "refs/heads/main", "refs/sb/s",
	"refs/sb/s.refs/heads/a", "refs/sb", "refs/tags/v" };

enum {
	NAMES = sizeof pool / sizeof *pool,
	ROUNDS = 20000
};

/* A repository by meaning: "" absent, one letter, or "@NAME". */
struct meaning {
	char v[NAMES][32];
};

static bool
fits(const struct meaning *r, size_t name)
{
	for (size_t i = 0; i < NAMES; i++)
		if (i != name && r->v[i][0] != '\0' &&
		    (path_is_below(pool[i], pool[name]) ||
			path_is_below(pool[name], pool[i])))
			return false;
	return true;
}

static void
change(struct meaning *r)
{
	size_t i = rnd(NAMES);

	if (i == 0) {
		if (rnd(3) == 0)
			snprintf(r->v[0], 32, "%c", 'a' + (char)rnd(6));
		else
			snprintf(r->v[0], 32, "@%s", pool[1 + rnd(5)]);
	} else if (rnd(3) == 0) {
		r->v[i][0] = '\0';
	} else if (fits(r, i)) {
		snprintf(r->v[i], 32, "%c", 'a' + (char)rnd(6));
	}
}

/* Stores it one way or the other, with older values in packed-refs. */
static struct tree
store(const struct meaning *r)
{
	struct buf b = BUF_INIT;
	struct tree t;

	for (size_t i = 0; i < NAMES; i++) {
		unsigned how = i == 0 ? 0 : rnd(3);

		if (r->v[i][0] == '\0')
			continue;
		if (how != 1)
			buf_addf(&b, "%s=%s ", pool[i], r->v[i]);
		if (how == 1)
			buf_addf(&b, "%s+%s ", pool[i], r->v[i]);
		else if (how == 2)
			buf_addf(&b, "%s+%c ", pool[i], 'a' + (char)rnd(6));
	}
	t = repo(buf_str(&b));
	buf_release(&b);
	return t;
}

/* What the files show, read line by line. "" absent. */
static void
shown(const struct tree *t, const char *name, char out[32])
{
	const struct file *f = at(t, name), *packed = at(t, "packed-refs");
	char *line = xasprintf(" %s\n", name);
	const char *found;

	out[0] = '\0';
	found = packed ? strstr(packed->content, line) : NULL;
	if (f && strncmp(f->content, "ref: ", 5) == 0)
		snprintf(out, 32, "@%.*s", (int)f->len - 6, f->content + 5);
	else if (f)
		snprintf(out, 32, "%c", f->content[0]);
	else if (found)
		snprintf(out, 32, "%c", found[-1]);
	free(line);
}

static bool
is_kept(const struct git_merge *m, const char *name, const char *value)
{
	for (size_t i = 0; i < m->nkept; i++)
		if (strcmp(m->kept[i].ref, name) == 0 &&
		    m->kept[i].commit[0] == value[0])
			return true;
	return false;
}

static const char *
broken(const struct meaning *base, const struct meaning *head,
    const struct meaning *mine, struct tree *result, const struct git_merge *m)
{
	struct meaning all;
	char now[32];

	for (size_t i = 0; i < m->nfiles; i++)
		if (git_part_of(m->file[i].path) != GIT_REF)
			return "something else is written";
	for (size_t i = 0; i < m->nkept; i++) {
		shown(result, m->kept[i].kept, now);
		if (now[0] != m->kept[i].commit[0])
			return "what is kept is not seen";
	}
	for (size_t i = 0; i < NAMES; i++) {
		bool moved = strcmp(base->v[i], mine->v[i]) != 0;

		shown(result, pool[i], all.v[i]);
		for (size_t k = 0; all.v[i][0] == '\0' && k < m->nkept; k++)
			if (strcmp(m->kept[k].kept, pool[i]) == 0)
				return "kept, but not there";
		if (moved && mine->v[i][0] != '\0' && mine->v[i][0] != '@' &&
		    strcmp(all.v[i], mine->v[i]) != 0 &&
		    !is_kept(m, pool[i], mine->v[i]))
			return "a value of mine is lost";
		if (strcmp(all.v[i], head->v[i]) == 0)
			continue;
		if (strcmp(base->v[i], head->v[i]) == 0 && moved &&
		    strcmp(all.v[i], mine->v[i]) == 0)
			continue;
		if (strncmp(pool[i], "refs/sb/", 8) == 0 &&
		    (head->v[i][0] == '\0' || mine->v[i][0] == '\0'))
			continue; /* kept there */
		return "neither head's nor a change of mine alone";
	}
	for (size_t i = 0; i < NAMES; i++)
		if (all.v[i][0] != '\0' && !fits(&all, i))
			return "a ref below another one";
	if (all.v[0][0] == '@')
		for (size_t i = 1; i < NAMES; i++)
			if (strcmp(all.v[0] + 1, pool[i]) == 0 &&
			    all.v[i][0] == '\0' && head->v[i][0] != '\0')
				return "what is checked out was deleted";
	return NULL;
}

static void
random_cases(void)
{
	const char *why = NULL;
	size_t kept = 0, n;

	for (n = 0; !why && n < ROUNDS; n++) {
		struct meaning side[3] = { { { "" } } };
		struct git_merge m = GIT_MERGE_INIT;
		struct git_reader r[3];
		struct tree t[3], result;

		snprintf(side[0].v[0], 32, "@refs/heads/main");
		for (unsigned i = rnd(8); i > 0; i--)
			change(&side[0]);
		side[1] = side[2] = side[0];
		for (unsigned i = rnd(4); i > 0; i--)
			change(&side[1]);
		for (unsigned i = rnd(4); i > 0; i--)
			change(&side[2]);
		for (int i = 0; i < 3; i++) {
			t[i] = store(&side[i]);
			r[i] = reader(&t[i]);
		}
		copy(&result, &t[1]);
		if (gitrefs_merge(".git", "s", rnd(4) == 0, &r[0], &r[1], &r[2],
			&m) == -1)
			why = strerror(errno);
		for (size_t i = 0; i < m.nfiles; i++)
			if (m.file[i].content)
				put_bytes(&result, m.file[i].path,
				    m.file[i].content, m.file[i].len);
			else
				take(&result, m.file[i].path);
		if (!why)
			why = broken(&side[0], &side[1], &side[2], &result, &m);
		kept += m.nkept;
		if (why) {
			struct buf b = shape(&m);

			for (int i = 0; i < 3; i++)
				for (size_t k = 0; k < NAMES; k++)
					printf("# %d %s=%s\n", i, pool[k],
					    side[i].v[k]);
			printf("# %s\n", buf_str(&b));
			buf_release(&b);
		}
		git_merge_release(&m);
		for (int i = 0; i < 3; i++)
			drop(&t[i]);
		drop(&result);
	}
	printf("# %zu repositories, %zu refs kept\n", n, kept);
	ok(!why, why ? why : "random repositories");
}

static void
json_case(void)
{
	char ref[] = "refs/heads/main", kept[] = "refs/sb/ws-1", hex[] = "ab";
	struct git_kept k = { ref, kept, hex };
	struct buf b = BUF_INIT;

	git_kept_json(&k, "sub/.git", &b);
	ok(strcmp(buf_str(&b),
	       "{\"path\":\"sub/.git\",\"ref\":\"refs/heads/main\","
	       "\"kept\":\"refs/sb/ws-1\",\"commit\":\"ab\"}") == 0,
	    "what is kept, as JSON");
	buf_release(&b);
}

int
main(void)
{
	const char *seed = getenv("SB_SEED");

	if (!seed || !num_dec(seed, 0, UINT64_MAX, &rng))
		rng = 7;
	printf("# SB_SEED=%" PRIu64 "\n", rng);
	path_cases();
	list_cases();
	plain_cases();
	packed_cases();
	head_cases();
	name_cases();
	session_case("ws-1", "refs/sb/ws-1");
	session_case("a..b", "refs/sb/a__b");
	session_case("a.lock", "refs/sb/a_lock");
	session_case("a.", "refs/sb/a_");
	session_case("../../x", "refs/sb/______x");
	session_case("", "refs/sb/session");
	stash_cases();
	hostile_cases();
	json_case();
	random_cases();
	return done();
}
