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
 *      conflict.
 *   3. Directories last, from below: one that says what head says is kept only
 *      to carry what is below it; one that is gone at head may not carry any.
 *   4. Print, or refuse.
 *
 * Invariant: nothing but -M and -X is written, and what comes out, applied to
 * head, shows exactly the head's changes and mine.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attr.h"
#include "buf.h"
#include "change.h"
#include "err.h"
#include "hash.h"
#include "io.h"
#include "mem.h"
#include "merge3.h"
#include "out.h"
#include "path.h"
#include "rec.h"
#include "store.h"
#include "view.h"

static const char usage[] =
    "sb-change-resolve [-C dir] [-M dir] [-X file] base head";

/* One of the three versions of a path. Filled as it is needed. */
struct version {
	enum node_kind kind;
	struct stat st; /* of what exists */
	unsigned mode;
	int fd; /* open file or directory; -1 until asked for */
	bool have_xattrs, have_text;
	struct buf xattrs, text, target;
	const char *layer; /* NULL for mine */
	char hex[HASH_HEX + 1]; /* of a file, "" until asked for */
};

enum verdict {
	KEEP, /* as it came */
	REPLACED, /* with content and attributes under -M */
	SAME, /* mine is what head has */
	AS_HEAD, /* mine is what base had: head's version stands */
	CARRIER, /* a directory that head has just so: only to carry others */
	GONE, /* a directory that is no directory at head any more */
};

struct item {
	struct change c;
	size_t parent; /* index of the directory's record, or SIZE_MAX */
	enum verdict verdict;
	bool carries; /* something below it comes out */
	bool mine_changed; /* GONE: mine changed the directory itself */
};

struct conflict {
	char *path;
	size_t seq;
	char *line;
};

static struct item *items;
static size_t nitems;
static struct view *base_view, *head_view; /* the same when lists are equal */
static int upper = -1, merged = -1;
static const char *merged_name;
static struct conflict *conflicts;
static size_t nconflicts, conflict_cap;

/* ---- versions ---- */

static void
version_release(struct version *v)
{
	io_drop(&v->fd);
	buf_release(&v->xattrs);
	buf_release(&v->text);
	buf_release(&v->target);
}

static void
load(struct view *view, const char *path, struct version *v)
{
	struct node n;

	*v = (struct version){ .fd = -1 };
	if (view_get(view, path, &n) == -1)
		die_sys("unable to look up %s in the layers", path);
	v->kind = n.kind;
	if (n.kind == NODE_ABSENT)
		return;
	v->st = n.st;
	v->mode = n.st.st_mode & 07777;
	v->layer = view_layer_id(view, n.layer);
	if (n.kind == NODE_SYMLINK &&
	    view_readlink(view, path, &n, &v->target) == -1)
		die_sys("unable to read link %s in layer %s", path, v->layer);
	if (n.kind == NODE_FILE || n.kind == NODE_DIR) {
		v->fd = view_fd(view, path, &n);
		if (v->fd == -1)
			die_sys(
			    "unable to open %s in layer %s", path, v->layer);
	}
}

/* Mine, from the record and the tree under -C. */
static void
load_mine(const struct change *c, struct version *v)
{
	bool dir = c->kind == CHANGE_DIR || c->kind == CHANGE_OPAQUE;
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;

	*v = (struct version){ .fd = -1, .mode = c->mode };
	if (c->kind == CHANGE_DELETE || c->kind == CHANGE_SPECIAL)
		return;
	if (c->kind == CHANGE_SYMLINK) {
		v->kind = NODE_SYMLINK;
		buf_adds(&v->target, c->target);
		return;
	}
	v->kind = dir ? NODE_DIR : NODE_FILE;
	if (upper == -1)
		die(EXIT_USAGE, "%s: content is under -C, which is not given",
		    c->path);
	v->fd = path_open(upper, c->path, dir ? flags | O_DIRECTORY : flags, 0);
	if (v->fd == -1 || fstat(v->fd, &v->st) == -1)
		die_sys("unable to open %s under -C", c->path);
	if (!dir && (!S_ISREG(v->st.st_mode) || v->st.st_size != c->size))
		die(EXIT_SYS, "%s changed while it was captured", c->path);
}

static const struct buf *
xattrs(struct version *v, const char *path)
{
	if (!v->have_xattrs && v->fd != -1 &&
	    attr_xattrs(v->fd, &v->xattrs, NULL) == -1)
		die_sys("unable to read xattrs of %s", path);
	v->have_xattrs = true;
	return &v->xattrs;
}

static const char *
digest(struct version *v, const char *path)
{
	struct hash h;

	if (v->hex[0] == '\0') {
		hash_init(&h);
		if (hash_add_fd(&h, v->fd) == -1)
			die_sys("unable to read %s", path);
		hash_hex(&h, v->hex);
	}
	return v->hex;
}

/* Both views show the very same file of one layer. */
static bool
same_place(const struct version *a, const struct version *b)
{
	return a->layer && b->layer && strcmp(a->layer, b->layer) == 0 &&
	    a->kind == b->kind;
}

static bool
same_bytes(struct version *a, struct version *b, const char *path)
{
	int same;

	if (same_place(a, b))
		return true;
	if (a->st.st_size != b->st.st_size)
		return false;
	same = io_same(a->fd, b->fd);
	if (same == -1)
		die_sys("unable to read %s", path);
	return same == 1;
}

static bool
same_xattrs(struct version *a, struct version *b, const char *path)
{
	return same_place(a, b) || buf_equal(xattrs(a, path), xattrs(b, path));
}

/* Equal in kind, content, mode and xattrs: no change worth a record. */
static bool
same(struct version *a, struct version *b, const char *path)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == NODE_SYMLINK)
		return strcmp(buf_str(&a->target), buf_str(&b->target)) == 0;
	if (a->kind != NODE_FILE && a->kind != NODE_DIR)
		return a->kind == NODE_ABSENT;
	if (a->mode != b->mode || !same_xattrs(a, b, path))
		return false;
	return a->kind == NODE_DIR || same_bytes(a, b, path);
}

/* ---- conflicts ---- */

static void
out_version(
    struct buf *b, const char *name, struct version *v, const char *path)
{
	char mode[8];

	out_key(b, name);
	buf_addc(b, '{');
	switch (v->kind) {
	case NODE_ABSENT:
		out_str(b, "kind", "absent");
		break;
	case NODE_FILE:
		out_str(b, "kind", "file");
		out_str(b, "digest", digest(v, path));
		out_bool(b, "executable", (v->mode & 0111) != 0);
		break;
	case NODE_SYMLINK:
		out_str(b, "kind", "symlink");
		out_path(b, "target", buf_str(&v->target));
		break;
	case NODE_DIR:
		out_str(b, "kind", "directory");
		break;
	case NODE_SPECIAL:
		out_str(b, "kind", "special");
		break;
	}
	if (v->kind == NODE_FILE || v->kind == NODE_DIR) {
		snprintf(mode, sizeof mode, "%04o", v->mode);
		out_str(b, "mode", mode);
	}
	buf_addc(b, '}');
}

static void
out_sha256(struct buf *b, const char *name, struct version *v, const char *path)
{
	if (v->kind == NODE_FILE)
		out_str(b, name, digest(v, path));
	else
		out_null(b, name);
}

static void
add_conflict(const char *path, const char *kind, struct version *base,
    struct version *head, struct version *mine, const struct merge *m)
{
	struct buf b = BUF_INIT;

	buf_addc(&b, '{');
	out_path(&b, "path", path);
	out_str(&b, "kind", kind);
	out_version(&b, "expected", base, path);
	out_version(&b, "actual", head, path);
	out_version(&b, "proposed", mine, path);
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

/* Makes the parents of path under -M and opens the last of them. */
static int
merged_parent(const char *path)
{
	char *part = xstrdup(path);
	const char *base;
	int fd;

	if (merged == -1)
		die(EXIT_USAGE, "%s has to be merged, but -M is not given",
		    path);
	for (char *p = strchr(part, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdirat(merged, part, 0700) == -1 && errno != EEXIST)
			die_sys("unable to make %s/%s", merged_name, part);
		*p = '/';
	}
	free(part);
	fd = path_open_parent(merged, path, &base);
	if (fd == -1)
		die_sys("unable to open %s/%s", merged_name, path);
	return fd;
}

static void
set_attrs(int fd, const char *path, const struct stat *st, unsigned mode,
    const struct buf *xa)
{
	if (attr_set_xattrs(fd, buf_str(xa), xa->len) == -1 ||
	    attr_set(fd, st, mode) == -1)
		die_sys("unable to set attributes of %s/%s", merged_name, path);
}

/*
 * A file under -M from content (text, or else the file from), with the given
 * attributes. A merged text keeps its new mtime: st is then given without it.
 */
static off_t
merged_file(const char *path, const struct buf *text, struct version *from,
    const struct stat *st, unsigned mode, const struct buf *xa)
{
	int dir = merged_parent(path), fd;
	struct stat now;
	off_t size;

	fd = openat(dir, path_base(path),
	    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		die_sys("unable to make %s/%s", merged_name, path);
	if (text) {
		size = (off_t)text->len;
		if (io_write_all(fd, buf_str(text), text->len) == -1)
			die_sys("unable to write %s/%s", merged_name, path);
	} else {
		if (lseek(from->fd, 0, SEEK_SET) == -1)
			die_sys("unable to read %s", path);
		size = io_copy(from->fd, fd);
		if (size == -1)
			die_sys("unable to copy to %s/%s", merged_name, path);
	}
	now = *st;
	if (text) {
		struct stat fresh;

		if (fstat(fd, &fresh) == -1)
			die_sys("unable to stat %s/%s", merged_name, path);
		now.st_mtim = fresh.st_mtim;
	}
	set_attrs(fd, path, &now, mode, xa);
	io_drop(&fd);
	io_drop(&dir);
	return size;
}

static void
merged_dir(const char *path, const struct stat *st, unsigned mode,
    const struct buf *xa)
{
	int dir = merged_parent(path), fd;

	if (mkdirat(dir, path_base(path), 0700) == -1 && errno != EEXIST)
		die_sys("unable to make %s/%s", merged_name, path);
	fd = openat(dir, path_base(path),
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		die_sys("unable to open %s/%s", merged_name, path);
	/*
	 * The mode is in the record; here the directory must stay enterable
	 * for what is merged below it.
	 */
	set_attrs(fd, path, st, mode | 0700, xa);
	io_drop(&fd);
	io_drop(&dir);
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
pick_mode(const struct version *base, const struct version *head,
    const struct version *mine)
{
	bool known = base->kind == mine->kind;

	return pick(head->mode == mine->mode, known && base->mode == head->mode,
	    known && base->mode == mine->mode);
}

static enum side
pick_xattrs(struct version *base, struct version *head, struct version *mine,
    const char *path)
{
	bool known = base->kind == mine->kind;

	return pick(same_xattrs(head, mine, path),
	    known && same_xattrs(base, head, path),
	    known && same_xattrs(base, mine, path));
}

static const struct buf *
text_of(struct version *v, const char *path)
{
	if (!v->have_text) {
		if (lseek(v->fd, 0, SEEK_SET) == -1 ||
		    io_read_buf(v->fd, &v->text, SIZE_MAX / 4) == -1)
			die_sys("unable to read %s", path);
		v->have_text = true;
	}
	return &v->text;
}

static bool
is_text(struct version *v, const char *path)
{
	const struct buf *b;

	if (v->st.st_size > MERGE_TEXT_MAX)
		return false;
	b = text_of(v, path);
	return text_is_mergeable(buf_str(b), b->len);
}

/*
 * Content of a file that both sides have. Returns the side whose content
 * stands, or BOTH: then m->text is the merged text, or a conflict was added.
 */
static enum side
merge_content(const char *path, struct version *base, struct version *head,
    struct version *mine, struct merge *m, bool *conflict)
{
	bool known = base->kind == NODE_FILE;
	enum side side = pick(same_bytes(head, mine, path),
	    known && same_bytes(base, head, path),
	    known && same_bytes(base, mine, path));

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
	}
	return BOTH;
}

/* Both sides have a file here, different ones. */
static void
merge_files(struct item *it, struct version *base, struct version *head,
    struct version *mine)
{
	const char *path = it->c.path;
	enum side content, mode, xa;
	struct merge m = MERGE_INIT;
	struct version *from;
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
	if (content == MINE && (mode == MINE || head->mode == mine->mode) &&
	    (xa == MINE || same_xattrs(head, mine, path)))
		goto out; /* as it came */
	from = content == MINE ? mine : head;
	size = merged_file(path, content == BOTH ? &m.text : NULL, from,
	    &from->st, mode == MINE ? mine->mode : head->mode,
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

/* What head shows below a directory that mine replaces or removes. */
struct hidden {
	bool any; /* mine hides something */
};

/*
 * A child that head added or changed, and that mine would hide without having
 * seen it, is a conflict. One that mine has as well is decided by itself.
 */
static int
hide(void *arg, const char *path, const struct node *n)
{
	struct hidden *hidden = arg;
	struct version base, head, mine = { .fd = -1 };

	(void)n;
	if (find_item(path) != SIZE_MAX)
		return 0;
	hidden->any = true;
	if (base_view == head_view)
		return 0;
	load(base_view, path, &base);
	load(head_view, path, &head);
	if (!same(&base, &head, path))
		add_conflict(path, "child", &base, &head, &mine, NULL);
	version_release(&base);
	version_release(&head);
	return 0;
}

static bool
hides_something(const char *path)
{
	struct hidden hidden = { false };

	if (view_walk(head_view, path, hide, &hidden) != 0)
		die_sys("unable to list %s in the layers", path);
	return hidden.any;
}

/* Both sides have a directory: children decide for themselves. */
static void
merge_dirs(struct item *it, struct version *base, struct version *head,
    struct version *mine)
{
	const char *path = it->c.path;
	enum side mode = pick_mode(base, head, mine);
	enum side xa = pick_xattrs(base, head, mine, path);

	/*
	 * Opaque over what base did not have as a directory hides nothing on
	 * purpose; over nothing at all it is an ordinary directory too.
	 */
	if (it->c.kind == CHANGE_OPAQUE &&
	    (base->kind != NODE_DIR || !hides_something(path)))
		it->c.kind = CHANGE_DIR;
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

static bool
under_opaque(const struct item *it)
{
	for (size_t p = it->parent; p != SIZE_MAX; p = items[p].parent)
		if (items[p].c.kind == CHANGE_OPAQUE)
			return true;
	return false;
}

static void
resolve_dir(struct item *it, struct version *base, struct version *head,
    struct version *mine)
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
	add_conflict(path, "type", base, head, mine, NULL);
}

static void
resolve_file(struct item *it, struct version *base, struct version *head,
    struct version *mine)
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
	struct version base, head, mine;
	bool unmoved;

	if (it->c.kind == CHANGE_SPECIAL)
		return;
	load(base_view, path, &base);
	load(head_view, path, &head);
	load_mine(&it->c, &mine);
	unmoved = base_view == head_view || same(&base, &head, path);

	if (it->c.kind == CHANGE_DIR || it->c.kind == CHANGE_OPAQUE) {
		resolve_dir(it, &base, &head, &mine);
	} else if (same(&head, &mine, path)) {
		it->verdict = SAME;
	} else if (unmoved) {
		if (head.kind == NODE_DIR && base_view != head_view)
			hides_something(path);
	} else if (it->c.kind == CHANGE_WRITE) {
		resolve_file(it, &base, &head, &mine);
	} else if (it->c.kind == CHANGE_DELETE) {
		add_conflict(path, "modify_delete", &base, &head, &mine, NULL);
	} else if (same(&base, &mine, path)) {
		it->verdict = AS_HEAD;
	} else {
		add_conflict(path, "content", &base, &head, &mine, NULL);
	}
	version_release(&base);
	version_release(&head);
	version_release(&mine);
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
		return it->carries || under_opaque(it);
	}
	return true;
}

/*
 * Marks, from below, the directories that carry something, and refuses those
 * that carry something but are gone at head.
 */
static void
settle_dirs(void)
{
	for (size_t i = nitems; i-- > 0;) {
		struct item *it = &items[i];
		bool out = comes_out(it);

		if (it->verdict == GONE && (out || it->mine_changed)) {
			struct version base, head, mine;
			bool absent;

			load(base_view, it->c.path, &base);
			load(head_view, it->c.path, &head);
			load_mine(&it->c, &mine);
			absent = head.kind == NODE_ABSENT;
			add_conflict(it->c.path,
			    absent ? "delete_modify" : "type", &base, &head,
			    &mine, NULL);
			version_release(&base);
			version_release(&head);
			version_release(&mine);
		}
		if (out && it->parent != SIZE_MAX)
			items[it->parent].carries = true;
	}
}

static void print_head(const char *path);

static int
print_below(void *arg, const char *path, const struct node *n)
{
	(void)arg;
	(void)n;
	print_head(path);
	return 0;
}

/* Head's own version of a path, copied under -M, as a record. */
static void
print_head(const char *path)
{
	struct change c = { .from = "m", .route = 's' };
	struct version v;
	int dir;

	load(head_view, path, &v);
	c.path = xstrdup(path);
	c.mode = v.mode;
	switch (v.kind) {
	case NODE_FILE:
		c.kind = CHANGE_WRITE;
		c.size = merged_file(
		    path, NULL, &v, &v.st, v.mode, xattrs(&v, path));
		break;
	case NODE_DIR:
		c.kind = CHANGE_DIR;
		merged_dir(path, &v.st, v.mode, xattrs(&v, path));
		break;
	case NODE_SYMLINK:
		c.kind = CHANGE_SYMLINK;
		c.target = xstrdup(buf_str(&v.target));
		dir = merged_parent(path);
		if (unlinkat(dir, path_base(path), 0) == -1 && errno != ENOENT)
			die_sys("unable to replace %s/%s", merged_name, path);
		if (symlinkat(c.target, dir, path_base(path)) == -1 ||
		    attr_set_link(dir, path_base(path), &v.st) == -1)
			die_sys("unable to make link %s/%s", merged_name, path);
		io_drop(&dir);
		break;
	case NODE_ABSENT:
	case NODE_SPECIAL:
		goto out;
	}
	change_write(stdout, &c);
out:
	change_release(&c);
	version_release(&v);
}

static void
print_items(void)
{
	for (size_t i = 0; i < nitems; i++) {
		struct item *it = &items[i];
		struct node n;

		if (it->c.kind == CHANGE_SPECIAL) {
			/* The path keeps what head has there. */
			if (!under_opaque(it) ||
			    view_get(head_view, it->c.path, &n) == -1 ||
			    n.kind == NODE_ABSENT || n.kind == NODE_SPECIAL) {
				change_write(stdout, &it->c);
				continue;
			}
			print_head(it->c.path);
			if (n.kind == NODE_DIR &&
			    view_walk(
				head_view, it->c.path, print_below, NULL) != 0)
				die_sys("unable to list %s", it->c.path);
			continue;
		}
		if (!comes_out(it))
			continue;
		if (it->verdict == AS_HEAD) {
			print_head(it->c.path);
			continue;
		}
		if (it->verdict == CARRIER)
			it->c.route = '-';
		change_write(stdout, &it->c);
	}
	change_stop(stdout);
	stdout_done();
}

static void
refuse(const char *file)
{
	struct buf all = BUF_INIT;
	char *message;
	int fd;

	qsort(conflicts, nconflicts, sizeof *conflicts, conflict_cmp);
	if (file) {
		for (size_t i = 0; i < nconflicts; i++)
			buf_adds(&all, conflicts[i].line);
		fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd == -1 || io_write_all(fd, all.data, all.len) == -1 ||
		    io_close(fd) == -1)
			die_sys("unable to write %s", file);
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
open_view(int stackfd, const struct ids *ids, const char *file)
{
	struct view *v;
	size_t bad = 0;

	v = view_open(stackfd, ids, &bad);
	if (!v)
		die_sys("unable to open layer %s of %s",
		    bad < ids->n ? ids->id[bad] : "?", file);
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
	const char *conflict_file = NULL;
	int opt, stackfd;

	err_init();
	while ((opt = getopt(argc, argv, "+C:M:X:h")) != -1) {
		if (opt == 'C')
			upper = open_dir(optarg);
		else if (opt == 'M')
			merged = open_dir(merged_name = optarg);
		else if (opt == 'X')
			conflict_file = optarg;
		else if (opt == 'h')
			usage_help(usage);
		else
			usage_die(usage);
	}
	if (optind + 2 != argc)
		usage_die(usage);

	changes_read_stdin(&cs, 1);
	ids_read_file(&base, argv[optind]);
	ids_read_file(&head, argv[optind + 1]);
	stackfd = store_open_stack();
	head_view = open_view(stackfd, &head, argv[optind + 1]);
	base_view = same_ids(&base, &head)
	    ? head_view
	    : open_view(stackfd, &base, argv[optind]);

	take_items(&cs);
	for (size_t i = 0; i < nitems; i++)
		resolve_item(&items[i]);
	settle_dirs();
	if (nconflicts > 0)
		refuse(conflict_file);
	print_items();
	return EXIT_OK;
}
