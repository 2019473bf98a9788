/* SPDX-License-Identifier: MIT */
/*
 * sb-change-resolve: make changes that were made against one list of layers
 * valid on top of another. Shape: filter.
 *
 * Changes, routed, come in on stdin; their content lies under -C. base and
 * head are files of id lines: what the changes were made against, and what
 * they shall lie upon. Out go the changes that are still needed, merged ones
 * with their content under -M; or a refusal, when both sides changed the same
 * thing in two ways, with every conflict as one JSON object a line in -X.
 *
 *   1. Read everything; open both views.
 *   2. For each change, in path order, compare three versions (base, head,
 *      mine) of content, mode and xattrs, each by itself: a change of one side
 *      stands, equal changes agree, text is merged by lines, the rest is a
 *      conflict. On an ignored path mine stands, below .git head's, and refs
 *      are merged by name.
 *   3. Directories last, from below: one that says what head says is kept only
 *      to carry what is below it; one that is gone at head may not carry any.
 *   4. Print, with the owner of each line in -B, or refuse.
 *
 * Invariant: nothing but the files and directories of the options is written,
 * and what comes out, applied to head, shows exactly head's changes and mine.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blame.h"
#include "buf.h"
#include "change.h"
#include "err.h"
#include "gitmerge.h"
#include "io.h"
#include "mem.h"
#include "merge3.h"
#include "out.h"
#include "path.h"
#include "rec.h"
#include "route.h"
#include "state.h"
#include "store.h"
#include "tree.h"
#include "view.h"

static const char usage[] =
    "sb-change-resolve [-dg] [-a owner] [-B file] [-C dir] [-K file] [-M dir] "
    "[-s session] [-X file] base head";

enum verdict {
	KEEP, /* as it came */
	REPLACED, /* with content and attributes under -M */
	SAME, /* mine is what head has */
	AS_HEAD, /* head's version stands */
	CARRIER, /* a directory that head has just so: only to carry others */
	GONE, /* a directory that is no directory at head any more */
	LEFT_OUT, /* ignored, and -d */
};

struct item {
	struct change c;
	size_t parent; /* index of the directory's record, or SIZE_MAX */
	enum verdict verdict;
	bool carries; /* something below it comes out */
	bool carries_source; /* and some of that is neither ignored nor git's */
	bool mine_changed; /* GONE: mine changed the directory itself */
	struct owners owners; /* of content that is not head's */
};

/* A path that comes out though it is no change of mine. */
enum extra_kind {
	EXTRA_HEAD, /* as head has it, to lie in an opaque directory */
	EXTRA_BASE, /* as base has it */
	EXTRA_TEXT, /* a file with this text */
	EXTRA_GONE,
	EXTRA_DIR, /* only to carry others */
};

struct extra {
	enum extra_kind kind;
	char *path;
	const struct git_file *text;
};

struct conflict {
	char *path;
	size_t seq;
	char *line;
};

static struct item *items;
static size_t nitems;
static struct extra *extras;
static size_t nextras, extra_cap;
static struct view *base_view, *head_view; /* the same when lists are equal */
static struct route *route; /* by the rules of base */
static struct blame *blame; /* of head; NULL when nobody asks */
static const char *me, *session; /* -a, -s */
static struct buf owners_out; /* for -B */
static struct git_repos repos; /* that both sides changed */
static bool discard, refuse_git;
static int upper = -1, merged = -1;
static const char *merged_name;
static struct conflict *conflicts;
static size_t nconflicts, conflict_cap;

/* ---- states, or the end ---- */

static void
load(struct view *view, const char *path, struct state *s)
{
	if (state_of_view(s, view, path) == -1)
		die_sys("unable to look up %s in the layers", path);
}

static void
load_mine(const struct change *c, struct state *s)
{
	if (state_of_change(s, c, upper) == 0)
		return;
	if (errno == EBADF && upper == -1)
		die(EXIT_USAGE, "%s: content is under -C, which is not given",
		    c->path);
	if (errno == ESTALE)
		die(EXIT_SYS, "%s changed while it was captured", c->path);
	die_sys("unable to open %s under -C", c->path);
}

static bool
sure(int rc, const char *path)
{
	if (rc == -1)
		die_sys("unable to read %s", path);
	return rc == 1;
}

static bool
same(struct state *a, struct state *b, const char *path)
{
	return sure(state_same(a, b), path);
}

static bool
same_xattrs(struct state *a, struct state *b, const char *path)
{
	return sure(state_same_xattrs(a, b), path);
}

static bool
is_text(struct state *s, const char *path)
{
	return sure(state_is_text(s), path);
}

static const struct buf *
text_of(struct state *s, const char *path)
{
	const struct buf *b = state_text(s);

	if (!b)
		die_sys("unable to read %s", path);
	return b;
}

static const struct buf *
xattrs(struct state *s, const char *path)
{
	const struct buf *b = state_xattrs(s);

	if (!b)
		die_sys("unable to read xattrs of %s", path);
	return b;
}

/* ---- conflicts ---- */

static void
out_state(struct buf *b, const char *name, struct state *s, const char *path)
{
	if (state_out(b, name, s) == -1)
		die_sys("unable to read %s", path);
}

static void
out_sha256(struct buf *b, const char *name, struct state *s, const char *path)
{
	const char *digest;

	if (s->kind != NODE_FILE) {
		out_null(b, name);
		return;
	}
	digest = state_digest(s);
	if (!digest)
		die_sys("unable to read %s", path);
	out_str(b, name, digest);
}

static void
add_conflict(const char *path, const char *kind, struct state *base,
    struct state *head, struct state *mine, const struct merge *m)
{
	struct buf b = BUF_INIT;

	buf_addc(&b, '{');
	out_path(&b, "path", path);
	out_str(&b, "kind", kind);
	out_state(&b, "expected", base, path);
	out_state(&b, "actual", head, path);
	out_state(&b, "proposed", mine, path);
	out_sha256(&b, "base_sha256", base, path);
	out_sha256(&b, "head_sha256", head, path);
	out_sha256(&b, "mine_sha256", mine, path);
	out_key(&b, "hunks");
	buf_addc(&b, '[');
	for (size_t i = 0; m && i < m->nhunks; i++) {
		const struct merge_hunk *h = &m->hunk[i];

		buf_addf(&b,
		    "%s{\"base\":[%zu,%zu],\"head\":[%zu,%zu],"
		    "\"mine\":[%zu,%zu]}",
		    i ? "," : "", h->base, h->base_count, h->head,
		    h->head_count, h->mine, h->mine_count);
	}
	buf_adds(&b, "]}\n");
	if (nconflicts == conflict_cap)
		conflicts = xgrow(conflicts, &conflict_cap, sizeof *conflicts);
	conflicts[nconflicts] =
	    (struct conflict){ xstrdup(path), nconflicts, buf_steal(&b) };
	nconflicts++;
}

static int
conflict_cmp(const void *a, const void *b)
{
	const struct conflict *x = a, *y = b;
	int order = path_cmp(x->path, y->path);

	return order ? order : x->seq < y->seq ? -1 : 1;
}

/* ---- writing under -M ---- */

static void
need_merged(const char *path)
{
	if (merged == -1)
		die(EXIT_USAGE, "%s has to be merged, but -M is not given",
		    path);
}

static off_t
merged_file(const char *path, const struct buf *text, struct state *from,
    unsigned mode, const struct buf *xa)
{
	off_t size;

	need_merged(path);
	size = tree_file(merged, path, text, from, mode, xa);
	if (size == -1)
		die_sys("unable to write %s/%s", merged_name, path);
	return size;
}

static void
merged_dir(const char *path, const struct stat *st, unsigned mode,
    const struct buf *xa)
{
	need_merged(path);
	if (tree_dir(merged, path, st, mode, xa) == -1)
		die_sys("unable to make directory %s/%s", merged_name, path);
}

static void
merged_link(const char *path, const char *target, const struct stat *st)
{
	need_merged(path);
	if (tree_link(merged, path, target, st) == -1)
		die_sys("unable to make link %s/%s", merged_name, path);
}

/* ---- owners of lines ---- */

__attribute__((noreturn)) static void
blame_failed(const char *path)
{
	const char *where = blame_where(blame);

	die_sys("unable to find out who wrote %s%s%s", path,
	    where ? ", by " : "", where ? where : "");
}

/* True when somebody published head's version of the file; owners in out. */
static bool
head_owners(const char *path, struct owners *out)
{
	int rc = blame_get(blame, path, out);

	if (rc == -1)
		blame_failed(path);
	return rc == 1;
}

/*
 * Owners of text b: m says which lines are head's; without it b is mine, and
 * compared with head.
 */
static void
attribute(struct item *it, struct state *head, const struct buf *b,
    const struct merge *m)
{
	const char *path = it->c.path;
	const struct buf *old = NULL;

	if (head->kind == NODE_FILE && is_text(head, path))
		old = text_of(head, path);
	if (blame_text(blame, path, old, b, m, me, &it->owners) == -1)
		blame_failed(path);
}

/* Mine is on its way out as it came: who wrote what? */
static void
attribute_mine(struct item *it, struct state *head, struct state *mine)
{
	const char *path = it->c.path;

	if (!blame || it->c.kind != CHANGE_WRITE ||
	    (head->kind == NODE_FILE &&
		sure(state_same_content(head, mine), path)))
		return;
	if (it->c.route == 's' && mine->st.st_size > 0 && is_text(mine, path))
		attribute(it, head, text_of(mine, path), NULL);
	else
		owners_set_whole(&it->owners, me);
}

/* ---- decisions ---- */

static void
replaced(struct item *it, enum change_kind kind, unsigned mode, off_t size)
{
	it->verdict = REPLACED;
	it->c.kind = kind;
	it->c.mode = mode;
	it->c.size = size;
	memcpy(it->c.from, "m", 2);
}

/* One unit of three: the side that differs from base, or a conflict. */
enum side {
	HEAD,
	MINE,
	BOTH
};

static enum side
pick(bool head_is_mine, bool head_is_base, bool mine_is_base)
{
	if (head_is_mine || mine_is_base)
		return HEAD;
	return head_is_base ? MINE : BOTH;
}

static enum side
pick_mode(const struct state *base, const struct state *head,
    const struct state *mine)
{
	bool known = base->kind == mine->kind;

	return pick(head->mode == mine->mode, known && base->mode == head->mode,
	    known && base->mode == mine->mode);
}

static enum side
pick_xattrs(struct state *base, struct state *head, struct state *mine,
    const char *path)
{
	bool known = base->kind == mine->kind;

	return pick(same_xattrs(head, mine, path),
	    known && same_xattrs(base, head, path),
	    known && same_xattrs(base, mine, path));
}

/* Who wins on route c what both changed; BOTH: nobody. */
static enum side
winner(char c)
{
	return c == 'i' ? MINE : c == 'g' && !refuse_git ? HEAD : BOTH;
}

/*
 * Content of a file that both sides have. Returns the side whose content
 * stands, or BOTH: then m->text is the merged text, or a conflict was added.
 */
static enum side
merge_content(const char *path, struct state *base, struct state *head,
    struct state *mine, struct merge *m, bool *conflict)
{
	bool known = base->kind == NODE_FILE;
	enum side side = pick(sure(state_same_content(head, mine), path),
	    known && sure(state_same_content(base, head), path),
	    known && sure(state_same_content(base, mine), path));

	*conflict = false;
	if (side != BOTH)
		return side;
	if (!is_text(head, path) || !is_text(mine, path) ||
	    (known && !is_text(base, path))) {
		add_conflict(path, "binary", base, head, mine, NULL);
		*conflict = true;
		return BOTH;
	}
	if (!known) {
		/* Both made it: only nothing gives way to something. */
		if (head->st.st_size == 0)
			return MINE;
		if (mine->st.st_size == 0)
			return HEAD;
		add_conflict(path, "add_add", base, head, mine, NULL);
		*conflict = true;
		return BOTH;
	}
	if (merge3(m, text_of(base, path), text_of(head, path),
		text_of(mine, path)) == -1)
		die_sys("unable to merge %s", path);
	if (m->nhunks > 0) {
		add_conflict(path, "content", base, head, mine, m);
		*conflict = true;
		return BOTH;
	}
	/* All of mine is at head already, as after a publish cut short. */
	if (buf_equal(&m->text, text_of(head, path)))
		return HEAD;
	return BOTH;
}

/* Both sides have a source file here, different ones. */
static void
merge_files(
    struct item *it, struct state *base, struct state *head, struct state *mine)
{
	const char *path = it->c.path;
	enum side content, mode, xa;
	struct merge m = MERGE_INIT;
	struct state *from;
	bool bad;
	off_t size;

	content = merge_content(path, base, head, mine, &m, &bad);
	mode = pick_mode(base, head, mine);
	xa = pick_xattrs(base, head, mine, path);
	if (mode == BOTH)
		add_conflict(path, "mode", base, head, mine, NULL);
	if (xa == BOTH)
		add_conflict(path, "xattr", base, head, mine, NULL);
	if (bad || mode == BOTH || xa == BOTH)
		goto out;
	if (content == HEAD && mode == HEAD && xa == HEAD) {
		it->verdict = AS_HEAD;
		goto out;
	}
	if (content == MINE)
		attribute_mine(it, head, mine);
	if (content == MINE && (mode == MINE || head->mode == mine->mode) &&
	    (xa == MINE || same_xattrs(head, mine, path)))
		goto out; /* as it came */
	if (content == BOTH && blame)
		attribute(it, head, &m.text, &m);
	from = content == MINE ? mine : head;
	size = merged_file(path, content == BOTH ? &m.text : NULL, from,
	    mode == MINE ? mine->mode : head->mode,
	    xattrs(xa == MINE ? mine : head, path));
	replaced(
	    it, CHANGE_WRITE, mode == MINE ? mine->mode : head->mode, size);
out:
	merge_release(&m);
}

static size_t
find_item(const char *path)
{
	size_t lo = 0, hi = nitems;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int order = path_cmp(items[mid].c.path, path);

		if (order == 0)
			return mid;
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return SIZE_MAX;
}

static void
add_extra(enum extra_kind kind, const char *path, const struct git_file *text)
{
	if (nextras == extra_cap)
		extras = xgrow(extras, &extra_cap, sizeof *extras);
	extras[nextras++] = (struct extra){ kind, xstrdup(path), text };
}

static char
route_for(const char *path, const struct node *n)
{
	int c = route_of(route, path, n->kind == NODE_DIR);

	if (c == -1)
		die_sys("unable to read the ignore rules for %s", path);
	return (char)c;
}

/* What head shows below a directory that mine replaces or removes. */
struct hidden {
	bool any; /* mine hides something */
	bool opaque; /* and the directory stays one */
	int all_ignored; /* so is everything that base had below; -1: unknown */
	const char *dir;
};

static int
find_source(void *arg, const char *path, const struct node *n)
{
	(void)arg;
	return route_for(path, n) != 'i';
}

static bool
base_is_all_ignored(struct hidden *hidden)
{
	int rc;

	if (hidden->all_ignored == -1) {
		rc = view_walk(base_view, hidden->dir, find_source, NULL);
		if (rc == -1)
			die_sys("unable to list %s in the layers", hidden->dir);
		hidden->all_ignored = rc == 0;
	}
	return hidden->all_ignored == 1;
}

/*
 * A source path that head added or changed, and that mine would hide without
 * having seen it, is a conflict; it stays where mine only cleared a directory
 * of ignored files. One that mine has as well is decided by itself.
 */
static int
hide(void *arg, const char *path, const struct node *n)
{
	struct hidden *hidden = arg;
	struct state base, head, mine = STATE_INIT;

	if (find_item(path) != SIZE_MAX)
		return 0;
	hidden->any = true;
	if (base_view == head_view || route_for(path, n) == 'i')
		return 0;
	load(base_view, path, &base);
	load(head_view, path, &head);
	if (!same(&base, &head, path)) {
		if (hidden->opaque && base_is_all_ignored(hidden))
			add_extra(EXTRA_HEAD, path, NULL);
		else
			add_conflict(path, "child", &base, &head, &mine, NULL);
	}
	state_release(&base);
	state_release(&head);
	return 0;
}

static bool
hides_something(const char *path, bool opaque)
{
	struct hidden hidden = {
		.opaque = opaque, .all_ignored = -1, .dir = path
	};

	if (view_walk(head_view, path, hide, &hidden) != 0)
		die_sys("unable to list %s in the layers", path);
	return hidden.any;
}

static bool
under_opaque(const struct item *it)
{
	for (size_t p = it->parent; p != SIZE_MAX; p = items[p].parent)
		if (items[p].c.kind == CHANGE_OPAQUE)
			return true;
	return false;
}

/*
 * Did head put something in an ignored path's place that is not ignored? The
 * rules can tell a directory from a file of the same name.
 */
static bool
head_is_source(const struct item *it, struct state *base, struct state *head)
{
	struct node n = { .kind = head->kind };

	return it->c.route == 'i' && head->kind != NODE_ABSENT &&
	    base_view != head_view && route_for(it->c.path, &n) != 'i' &&
	    !same(base, head, it->c.path);
}

/* Both sides have a directory: children decide for themselves. */
static void
merge_dirs(
    struct item *it, struct state *base, struct state *head, struct state *mine)
{
	const char *path = it->c.path;
	enum side mode = pick_mode(base, head, mine);
	enum side xa = pick_xattrs(base, head, mine, path);

	/*
	 * Opaque over what base did not have as a directory hides nothing on
	 * purpose; over nothing at all, or below another one, it is an
	 * ordinary directory too.
	 */
	if (it->c.kind == CHANGE_OPAQUE &&
	    (base->kind != NODE_DIR || under_opaque(it) ||
		!hides_something(path, true)))
		it->c.kind = CHANGE_DIR;
	if (mode == BOTH)
		mode = winner(it->c.route);
	if (xa == BOTH)
		xa = winner(it->c.route);
	if (mode == BOTH)
		add_conflict(path, "mode", base, head, mine, NULL);
	if (xa == BOTH)
		add_conflict(path, "xattr", base, head, mine, NULL);
	if (mode == BOTH || xa == BOTH)
		return;
	if (mode == HEAD)
		it->c.mode = head->mode;
	if (xa == HEAD && !same_xattrs(head, mine, path)) {
		merged_dir(path, &mine->st, it->c.mode, xattrs(head, path));
		memcpy(it->c.from, "m", 2);
	}
	if (mode == HEAD && xa == HEAD && it->c.kind == CHANGE_DIR)
		it->verdict = CARRIER;
}

static int
differs(void *arg, const char *path, const struct node *n)
{
	struct state base, head;
	bool equal;

	(void)arg;
	(void)n;
	load(base_view, path, &base);
	load(head_view, path, &head);
	equal = same(&base, &head, path);
	state_release(&base);
	state_release(&head);
	return !equal;
}

/*
 * Did head put a file or link where mine has the directory path, or one above
 * it in the repository?
 */
static bool
is_cut_off(const char *path, const char *inside, bool is_dir)
{
	char *part = xstrdup(path);
	size_t n = is_dir ? strlen(part) : path_parent_len(part);
	size_t repo = (size_t)(inside - path);
	bool cut = false;

	for (; !cut && n > repo; n = path_parent_len(part)) {
		struct node node;

		part[n] = '\0';
		if (view_get(head_view, part, &node) == -1)
			die_sys("unable to look up %s in the layers", part);
		cut = node.kind != NODE_DIR && node.kind != NODE_ABSENT &&
		    differs(NULL, part, &node);
	}
	free(part);
	return cut;
}

/*
 * Mine in a repository that both sides changed, where it is not for the file
 * to decide. True when that is all.
 */
static bool
resolve_in_repo(struct item *it)
{
	const char *path = it->c.path, *inside;
	enum git_part part;
	struct node head;
	int below;

	if (!git_repo_of(&repos, path, &inside))
		return false;
	if (view_get(head_view, path, &head) == -1)
		die_sys("unable to look up %s in the layers", path);
	part = git_part_of(inside);
	if (it->c.kind == CHANGE_OPAQUE)
		it->c.kind = CHANGE_DIR; /* nothing of head's is hidden */
	if (it->c.kind == CHANGE_DIR) {
		/* A directory of refs is there for the refs in it. */
		if ((part == GIT_REF && head.kind != NODE_DIR) ||
		    is_cut_off(path, inside, true))
			it->verdict = GONE;
		return it->verdict == GONE;
	}
	if (is_cut_off(path, inside, false)) {
		it->verdict = AS_HEAD;
		return true;
	}
	/* One that head took away comes back, even if mine only touched it. */
	if (part == GIT_OBJECT && it->c.kind == CHANGE_WRITE &&
	    head.kind == NODE_ABSENT)
		return true;
	it->verdict = AS_HEAD;
	if (part == GIT_REF || part == GIT_CACHE)
		return true;
	if (it->c.kind == CHANGE_DELETE && path_is_below(inside, "objects"))
		return true;
	/* In the place of a directory that head wrote into. */
	below = view_walk(head_view, path, differs, NULL);
	if (below == -1)
		die_sys("unable to list %s in the layers", path);
	if (below == 0)
		it->verdict = KEEP;
	return below == 1;
}

static void
resolve_dir(
    struct item *it, struct state *base, struct state *head, struct state *mine)
{
	const char *path = it->c.path;

	if (head->kind == NODE_DIR) {
		merge_dirs(it, base, head, mine);
		return;
	}
	if (head->kind == NODE_ABSENT && base->kind == NODE_ABSENT)
		return;
	if (same(base, head, path))
		return; /* mine made a directory of a file or link */
	if (base->kind == NODE_DIR) {
		/* Removed and made again by mine: that it is gone, agrees. */
		if (head->kind == NODE_ABSENT &&
		    (it->c.kind == CHANGE_OPAQUE || under_opaque(it)))
			return;
		it->verdict = GONE;
		it->mine_changed = !same(base, mine, path);
		return;
	}
	if (it->c.route != 'i')
		add_conflict(path, "type", base, head, mine, NULL);
}

static void
resolve_file(
    struct item *it, struct state *base, struct state *head, struct state *mine)
{
	const char *path = it->c.path;

	if (head->kind == NODE_FILE) {
		if (base->kind == NODE_FILE || base->kind == NODE_ABSENT)
			merge_files(it, base, head, mine);
		else
			add_conflict(path, "type", base, head, mine, NULL);
	} else if (same(base, mine, path)) {
		it->verdict = AS_HEAD;
	} else if (base->kind == NODE_FILE && head->kind == NODE_ABSENT) {
		add_conflict(path, "delete_modify", base, head, mine, NULL);
	} else {
		add_conflict(path, "type", base, head, mine, NULL);
	}
}

static void
resolve_item(struct item *it)
{
	const char *path = it->c.path;
	struct state base, head, mine;
	bool unmoved;

	if (it->c.kind == CHANGE_SPECIAL)
		return;
	if (it->c.route == 'g' && resolve_in_repo(it))
		return;
	load(base_view, path, &base);
	load(head_view, path, &head);
	load_mine(&it->c, &mine);
	unmoved = base_view == head_view || same(&base, &head, path);

	if (head_is_source(it, &base, &head) && !same(&head, &mine, path)) {
		add_conflict(path, "type", &base, &head, &mine, NULL);
	} else if (it->c.kind == CHANGE_DIR || it->c.kind == CHANGE_OPAQUE) {
		resolve_dir(it, &base, &head, &mine);
	} else if (same(&head, &mine, path)) {
		it->verdict = SAME;
	} else if (unmoved || it->c.route == 'i') {
		if (head.kind == NODE_DIR && it->c.route != 'i')
			hides_something(path, false);
		attribute_mine(it, &head, &mine);
	} else if (same(&base, &mine, path) || winner(it->c.route) == HEAD) {
		it->verdict = AS_HEAD;
	} else if (it->c.route == 'g') {
		add_conflict(path, "git", &base, &head, &mine, NULL);
	} else if (it->c.kind == CHANGE_WRITE) {
		resolve_file(it, &base, &head, &mine);
	} else if (it->c.kind == CHANGE_DELETE) {
		add_conflict(path, "modify_delete", &base, &head, &mine, NULL);
	} else {
		add_conflict(path, "content", &base, &head, &mine, NULL);
	}
	if (discard && it->c.route == 'i' &&
	    (it->verdict == KEEP || it->verdict == REPLACED))
		it->verdict = LEFT_OUT;
	state_release(&base);
	state_release(&head);
	state_release(&mine);
}

/*
 * The root of the tree has no change record of its own when it comes in. When
 * mine changed its attributes one goes out, with the path ".".
 */
static bool
resolve_root(struct change *c)
{
	struct state base, head, mine;
	enum side mode, xa;
	bool out = false;

	if (upper == -1)
		return false;
	load(base_view, "", &base);
	load(head_view, "", &head);
	if (state_of_dir(&mine, upper) == -1)
		die_sys("unable to look at the directory of -C");
	*c = (struct change){ .kind = CHANGE_DIR, .from = "u", .route = 's' };
	c->path = xstrdup(CHANGE_ROOT);
	if (base.kind == NODE_DIR && head.kind == NODE_DIR &&
	    !same(&base, &mine, ".") && !same(&head, &mine, ".")) {
		mode = pick_mode(&base, &head, &mine);
		xa = pick_xattrs(&base, &head, &mine, ".");
		out = mode != HEAD || xa != HEAD;
		if (mode == BOTH)
			add_conflict(".", "mode", &base, &head, &mine, NULL);
		if (xa == BOTH)
			add_conflict(".", "xattr", &base, &head, &mine, NULL);
		c->mode = mode == HEAD ? head.mode : mine.mode;
		if (out && xa == HEAD && !same_xattrs(&head, &mine, ".")) {
			merged_dir(".", &mine.st, c->mode, xattrs(&head, "."));
			memcpy(c->from, "m", 2);
		}
	}
	state_release(&base);
	state_release(&head);
	state_release(&mine);
	return out;
}

/* ---- repositories ---- */

static void
find_repos(void)
{
	struct change **changes = xcalloc(nitems, sizeof(struct change *));
	struct git_sides sides = { base_view, head_view, changes, nitems, upper,
		session };
	char *where = NULL;

	if (base_view == head_view || refuse_git)
		return;
	for (size_t i = 0; i < nitems; i++)
		changes[i] = &items[i].c;
	if (git_find(&sides, &repos, &where) == -1)
		die_sys("unable to merge the repository %s", where);
	if (repos.n > 0 && !session)
		die(EXIT_USAGE,
		    "%s was changed on both sides: -s says what its refs are "
		    "kept for",
		    repos.v[0].path);
}

/* Sees to it that the directories above path come out. */
static void
need_parents(const char *path)
{
	char *part = xstrdup(path);

	for (size_t n = path_parent_len(part); n > 0;
	    n = path_parent_len(part)) {
		size_t at;

		part[n] = '\0';
		at = find_item(part);
		if (at != SIZE_MAX && items[at].c.kind == CHANGE_DIR) {
			items[at].carries = true;
			break;
		}
		add_extra(EXTRA_DIR, part, NULL);
	}
	free(part);
}

static void
add_repo_extras(const struct git_repo *repo)
{
	for (size_t i = 0; i < repo->merge.nfiles; i++) {
		const struct git_file *f = &repo->merge.file[i];
		char *path = xasprintf("%s/%s", repo->path, f->path);

		add_extra(f->content ? EXTRA_TEXT : EXTRA_GONE, path, f);
		need_parents(path);
		free(path);
	}
	for (size_t i = 0; i < repo->restore.n; i++) {
		char *path =
		    xasprintf("%s/%s", repo->path, repo->restore.name[i]);

		if (find_item(path) == SIZE_MAX) {
			add_extra(EXTRA_BASE, path, NULL);
			need_parents(path);
		}
		free(path);
	}
}

static int
extra_cmp(const void *a, const void *b)
{
	const struct extra *x = a, *y = b;
	int order = path_cmp(x->path, y->path);

	return order ? order : (int)x->kind - (int)y->kind;
}

/* Sorted, each path once. */
static void
settle_extras(void)
{
	size_t n = 0;

	for (size_t i = 0; i < repos.n; i++)
		add_repo_extras(&repos.v[i]);
	if (nextras > 0)
		qsort(extras, nextras, sizeof *extras, extra_cmp);
	for (size_t i = 0; i < nextras; i++)
		if (n == 0 || strcmp(extras[i].path, extras[n - 1].path) != 0)
			extras[n++] = extras[i];
	nextras = n;
}

/* ---- what comes out ---- */

static bool
comes_out(const struct item *it)
{
	switch (it->verdict) {
	case KEEP:
	case REPLACED:
		return it->c.kind != CHANGE_SPECIAL;
	case SAME:
	case AS_HEAD:
		/* Below an opaque directory head's version would be hidden. */
		return it->c.kind != CHANGE_DELETE && under_opaque(it);
	case CARRIER:
	case GONE:
		return it->carries || it->mine_changed || under_opaque(it);
	case LEFT_OUT:
		return false;
	}
	return true;
}

static void
refuse_gone(const struct item *it)
{
	struct state base, head, mine;

	load(base_view, it->c.path, &base);
	load(head_view, it->c.path, &head);
	load_mine(&it->c, &mine);
	/* Mine stands on ignored paths, and must lie somewhere. */
	if (it->c.route != 'i' && it->c.route != 'g' &&
	    (head.kind != NODE_ABSENT || it->carries_source ||
		it->mine_changed)) {
		add_conflict(it->c.path,
		    head.kind == NODE_ABSENT ? "delete_modify" : "type", &base,
		    &head, &mine, NULL);
	}
	state_release(&base);
	state_release(&head);
	state_release(&mine);
}

/*
 * Marks, from below, the directories that carry something, and refuses those
 * that carry something but are gone at head.
 */
static void
settle_dirs(void)
{
	for (size_t i = nitems; i-- > 0;) {
		struct item *it = &items[i], *up;
		bool out = comes_out(it);

		if (it->verdict == GONE && out)
			refuse_gone(it);
		if (!out || it->parent == SIZE_MAX)
			continue;
		up = &items[it->parent];
		up->carries = true;
		if (it->carries_source ||
		    (it->c.route == 's' && it->verdict != CARRIER &&
			it->verdict != GONE))
			up->carries_source = true;
	}
}

/* Adds what -B says about a file that comes out. */
static void
add_owners(const char *path, const struct owners *o)
{
	if (blame && (o->whole || o->n > 0))
		blame_format(&owners_out, path, o);
}

/* The content of head's file is in this layer again: so are its owners. */
static void
add_head_owners(const char *path)
{
	struct owners o = OWNERS_INIT;
	struct state s;
	struct lines l;

	if (!blame)
		return;
	load(head_view, path, &s);
	if (s.kind == NODE_FILE && !head_owners(path, &o)) {
		if (s.st.st_size > 0 && is_text(&s, path)) {
			lines_split(&l, buf_str(text_of(&s, path)),
			    text_of(&s, path)->len);
			owners_add(&o, l.n, OWNER_ORIGINAL);
			lines_release(&l);
		} else {
			owners_set_whole(&o, OWNER_ORIGINAL);
		}
	}
	add_owners(path, &o);
	owners_release(&o);
	state_release(&s);
}

/* What view has at a path, copied under -M, as a record on route c. */
static void
print_version(struct view *view, const char *path, char route_letter)
{
	struct change c = { .from = "m", .route = route_letter };
	struct state s;

	load(view, path, &s);
	c.path = xstrdup(path);
	c.mode = s.mode;
	switch (s.kind) {
	case NODE_FILE:
		c.kind = CHANGE_WRITE;
		c.size = merged_file(path, NULL, &s, s.mode, xattrs(&s, path));
		break;
	case NODE_DIR:
		c.kind = CHANGE_DIR;
		merged_dir(path, &s.st, s.mode, xattrs(&s, path));
		break;
	case NODE_SYMLINK:
		c.kind = CHANGE_SYMLINK;
		c.target = xstrdup(buf_str(&s.target));
		merged_link(path, c.target, &s.st);
		break;
	case NODE_ABSENT:
	case NODE_SPECIAL:
		goto out;
	}
	change_write(stdout, &c);
out:
	change_release(&c);
	state_release(&s);
}

static void
print_head(const char *path)
{
	print_version(head_view, path, 's');
	add_head_owners(path);
}

/* A directory that nothing changes: head's, or else one like base's. */
static void
print_carrier(const char *path)
{
	struct change c = {
		.kind = CHANGE_DIR, .mode = 0755, .from = "m", .route = 'g'
	};
	struct state s;
	struct node n;

	if (view_get(head_view, path, &n) == -1)
		die_sys("unable to look up %s in the layers", path);
	if (n.kind == NODE_DIR) {
		print_version(head_view, path, '-');
		return;
	}
	load(base_view, path, &s);
	if (s.kind == NODE_DIR) {
		print_version(base_view, path, 'g');
	} else {
		state_release(&s);
		load(head_view, "", &s);
		c.path = xstrdup(path);
		merged_dir(path, &s.st, c.mode, &(struct buf)BUF_INIT);
		change_write(stdout, &c);
		change_release(&c);
	}
	state_release(&s);
}

/* Owned by whom the repository's directory is owned by. */
static void
print_text(const char *path, const struct git_file *f)
{
	struct change c = {
		.kind = CHANGE_WRITE, .mode = 0644, .from = "m", .route = 'g'
	};
	struct buf text = BUF_INIT;
	struct owners o = OWNERS_INIT;
	const char *inside;
	struct state repo;

	load(head_view, git_repo_of(&repos, path, &inside)->path, &repo);
	c.path = xstrdup(path);
	buf_add(&text, f->content, f->len);
	c.size = merged_file(path, &text, &repo, c.mode, &(struct buf)BUF_INIT);
	change_write(stdout, &c);
	if (blame) {
		owners_set_whole(&o, me);
		blame_format(&owners_out, path, &o);
		owners_release(&o);
	}
	buf_release(&text);
	change_release(&c);
	state_release(&repo);
}

static void
print_gone(const char *path)
{
	struct change c = { .kind = CHANGE_DELETE, .from = "-", .route = 'g' };
	struct node n;

	if (view_get(head_view, path, &n) == -1)
		die_sys("unable to look up %s in the layers", path);
	if (n.kind == NODE_ABSENT)
		return;
	c.path = xstrdup(path);
	change_write(stdout, &c);
	change_release(&c);
}

static void
print_extra(const struct extra *e)
{
	switch (e->kind) {
	case EXTRA_HEAD:
		print_head(e->path);
		break;
	case EXTRA_BASE:
		print_version(base_view, e->path, 'g');
		break;
	case EXTRA_TEXT:
		print_text(e->path, e->text);
		break;
	case EXTRA_GONE:
		print_gone(e->path);
		break;
	case EXTRA_DIR:
		print_carrier(e->path);
		break;
	}
}

static int
print_below(void *arg, const char *path, const struct node *n)
{
	(void)arg;
	(void)n;
	print_head(path);
	return 0;
}

/*
 * A change that is not taken: the path keeps what head has there. Below an
 * opaque directory that has to be said.
 */
static void
print_left_out(struct item *it)
{
	const char *path = it->c.path;
	bool dir = it->c.kind == CHANGE_DIR || it->c.kind == CHANGE_OPAQUE;
	struct node n = { .kind = NODE_ABSENT };

	if (under_opaque(it) && view_get(head_view, path, &n) == -1)
		die_sys("unable to look up %s in the layers", path);
	if (n.kind == NODE_ABSENT || n.kind == NODE_SPECIAL) {
		it->c.kind = CHANGE_SPECIAL;
		change_write(stdout, &it->c);
		return;
	}
	print_head(path);
	/* Of a directory of mine the children speak for themselves. */
	if (n.kind == NODE_DIR && !dir &&
	    view_walk(head_view, path, print_below, NULL) != 0)
		die_sys("unable to list %s in the layers", path);
}

static void
print_item(struct item *it)
{
	if (it->c.kind == CHANGE_SPECIAL || it->verdict == LEFT_OUT) {
		print_left_out(it);
	} else if (!comes_out(it)) {
		return;
	} else if (it->verdict == AS_HEAD) {
		print_head(it->c.path);
	} else {
		if (it->verdict == CARRIER)
			it->c.route = '-';
		change_write(stdout, &it->c);
		if (it->verdict == SAME)
			add_head_owners(it->c.path);
		else
			add_owners(it->c.path, &it->owners);
	}
}

static void
print_all(const struct change *root)
{
	size_t e = 0;

	if (root)
		change_write(stdout, root);
	for (size_t i = 0; i < nitems; i++) {
		for (; e < nextras; e++) {
			if (path_cmp(extras[e].path, items[i].c.path) > 0)
				break;
			print_extra(&extras[e]);
		}
		print_item(&items[i]);
	}
	for (; e < nextras; e++)
		print_extra(&extras[e]);
	change_stop(stdout);
}

static void
write_file(const char *file, const struct buf *b)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1 || io_write_all(fd, buf_str(b), b->len) == -1 ||
	    io_close(fd) == -1)
		die_sys("unable to write %s", file);
}

static void
write_kept(const char *file)
{
	struct buf all = BUF_INIT;

	for (size_t i = 0; i < repos.n; i++) {
		const struct git_repo *repo = &repos.v[i];

		for (size_t k = 0; k < repo->merge.nkept; k++) {
			git_kept_json(&repo->merge.kept[k], repo->path, &all);
			buf_addc(&all, '\n');
		}
	}
	write_file(file, &all);
}

static void
refuse(const char *file)
{
	struct buf all = BUF_INIT;
	char *message;

	qsort(conflicts, nconflicts, sizeof *conflicts, conflict_cmp);
	if (file) {
		for (size_t i = 0; i < nconflicts; i++)
			buf_adds(&all, conflicts[i].line);
		write_file(file, &all);
	}
	message = xasprintf(
	    "conflict: %s (%zu in all)", conflicts[0].path, nconflicts);
	rec_refuse('\0', EXIT_CONFLICT, message);
	die(EXIT_CONFLICT, "%s", message);
}

/* ---- input ---- */

static void
take_items(struct changes *cs)
{
	size_t top = SIZE_MAX;

	if (cs->n > 0 && strcmp(cs->v[0].path, CHANGE_ROOT) == 0)
		die(EXIT_USAGE, "a record of the root comes out, never in");
	items = xcalloc(cs->n, sizeof *items);
	nitems = cs->n;
	for (size_t i = 0; i < cs->n; i++) {
		struct item *it = &items[i];

		it->c = cs->v[i];
		/* Sorted: the directory is the last one that contains it. */
		while (top != SIZE_MAX &&
		    !path_is_below(it->c.path, items[top].c.path))
			top = items[top].parent;
		it->parent = top;
		if (it->c.kind == CHANGE_DIR || it->c.kind == CHANGE_OPAQUE)
			top = i;
	}
}

static struct view *
open_view(int stackfd, const struct ids *ids)
{
	struct view *v;
	size_t bad = 0;

	v = view_open(stackfd, ids, &bad);
	if (!v)
		die_sys("unable to open layer %s",
		    bad < ids->n ? ids->id[bad] : "?");
	return v;
}

static bool
same_ids(const struct ids *a, const struct ids *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->id[i], b->id[i]) != 0)
			return false;
	return true;
}

static int
open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1)
		die_sys("unable to open directory %s", path);
	return fd;
}

int
main(int argc, char **argv)
{
	struct ids base = IDS_INIT, head = IDS_INIT;
	struct changes cs = CHANGES_INIT;
	const char *conflict_file = NULL, *owners_file = NULL;
	const char *kept_file = NULL;
	struct change root;
	bool with_root;
	int opt, stackfd;

	err_init();
	while ((opt = getopt(argc, argv, "+dga:B:C:K:M:s:X:h")) != -1) {
		if (opt == 'd')
			discard = true;
		else if (opt == 'g')
			refuse_git = true;
		else if (opt == 'a')
			me = optarg;
		else if (opt == 'B')
			owners_file = optarg;
		else if (opt == 'C')
			upper = open_dir(optarg);
		else if (opt == 'M')
			merged = open_dir(merged_name = optarg);
		else if (opt == 'K')
			kept_file = optarg;
		else if (opt == 's')
			session = optarg;
		else if (opt == 'X')
			conflict_file = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 2 != argc || !owners_file != !me)
		usage_die(usage);
	if (me && !owner_is_valid(me))
		die(EXIT_USAGE,
		    "not a name for an owner (1 to %d bytes of UTF-8, no "
		    "control characters): %s",
		    OWNER_MAX, me);

	if (session && !id_is_valid(session))
		die(EXIT_USAGE, "not a name for a session: %s", session);

	changes_read_stdin(&cs, 1);
	ids_read_file(&base, argv[optind]);
	ids_read_file(&head, argv[optind + 1]);
	stackfd = store_open_stack();
	head_view = open_view(stackfd, &head);
	base_view =
	    same_ids(&base, &head) ? head_view : open_view(stackfd, &base);
	route = route_open(base_view);
	if (owners_file)
		blame = blame_open(stackfd, head_view);

	take_items(&cs);
	find_repos();
	with_root = resolve_root(&root);
	for (size_t i = 0; i < nitems; i++)
		resolve_item(&items[i]);
	settle_extras();
	settle_dirs();
	if (nconflicts > 0)
		refuse(conflict_file);
	print_all(with_root ? &root : NULL);
	if (owners_file) {
		blame_stop(&owners_out);
		write_file(owners_file, &owners_out);
	}
	if (kept_file)
		write_kept(kept_file);
	stdout_done();
	return EXIT_OK;
}
