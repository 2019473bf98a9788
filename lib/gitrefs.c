/* SPDX-License-Identifier: MIT */
#include "gitrefs.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "mem.h"
#include "out.h"

enum {
	LOOSE_MAX = 4096, /* bytes of a file with one ref */
	PACKED_MAX = 256 << 20, /* of packed-refs and of a log */
	NAME_BYTES_MAX = 250, /* one component, and ".lock" behind it */
	SYMREF_MAX = 5 /* steps, as in git */
};

#define HEX "0123456789abcdefABCDEF"

/* ---- names ---- */

static bool
begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static bool
ends(const char *s, size_t n, const char *with)
{
	size_t len = strlen(with);

	return n >= len && memcmp(s + n - len, with, len) == 0;
}

/* The rules of git-check-ref-format(1), for a name of any depth. */
static bool
name_is_valid(const char *s)
{
	size_t len;

	if (*s == '\0' || ends(s, strlen(s), "."))
		return false;
	for (const char *p = s; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || strchr(" ~^:?*[\\\177", *p))
			return false;
	if (strstr(s, "..") || strstr(s, "@{"))
		return false;
	for (;; s += len + 1) {
		len = strcspn(s, "/");
		if (len == 0 || s[0] == '.' || ends(s, len, ".lock"))
			return false;
		if (s[len] == '\0')
			return true;
	}
}

static bool
ref_is_valid(const char *s)
{
	return begins(s, "refs/") && name_is_valid(s);
}

/* Can a file of that name be made, and be locked by git? */
static bool
is_writable(const char *name, size_t room)
{
	size_t len;

	if (strlen(name) > room)
		return false;
	for (;; name += len + 1) {
		len = strcspn(name, "/");
		if (len > NAME_BYTES_MAX)
			return false;
		if (name[len] == '\0')
			return true;
	}
}

/* Length of the object name at s: 40, 64, or 0 when there is none. */
static size_t
hex_len(const char *s)
{
	size_t len = strspn(s, HEX);

	if ((len != 40 && len != 64) || strspn(s, "0") == len)
		return 0;
	return len;
}

/* "NAME/HEAD" → true with *rest "HEAD", for a component NAME. */
static bool
split(const char *path, const char **rest)
{
	const char *slash = strchr(path, '/');

	*rest = slash ? slash + 1 : NULL;
	return slash && slash > path;
}

enum git_part
git_part_of(const char *path)
{
	const char *rest, *p = path;

	if (begins(path, "worktrees/") &&
	    split(path + strlen("worktrees/"), &rest))
		p = rest;
	if (strcmp(p, "HEAD") == 0 || path_is_below(p, "refs"))
		return GIT_REF;
	if (strcmp(path, "packed-refs") == 0)
		return GIT_REF;
	if (strcmp(path, "objects/info/packs") == 0 ||
	    strcmp(path, "objects/info/commit-graph") == 0 ||
	    path_is_below(path, "objects/info/commit-graphs") ||
	    begins(path, "objects/pack/multi-pack-index"))
		return GIT_CACHE;
	if (begins(path, "objects/pack/pack-"))
		return strchr(path + strlen("objects/pack/"), '/') ? GIT_OTHER
								   : GIT_OBJECT;
	if (begins(path, "objects/")) {
		size_t len;

		p = path + strlen("objects/");
		len = strspn(p, HEX);
		if (len != 2 || p[2] != '/')
			return GIT_OTHER;
		len = strspn(p + 3, HEX);
		if ((len == 38 || len == 62) && p[3 + len] == '\0')
			return GIT_OBJECT;
	}
	return GIT_OTHER;
}

/* ---- repositories and objects ---- */

static int
list(const struct git_reader *r, const char *dir, struct names *out)
{
	int rc = r->list(r->arg, dir, out);

	if (rc == 1)
		names_sort(out);
	return rc;
}

static int
find_repos(const struct git_reader *r, const char *dir, struct names *out)
{
	struct names inside = NAMES_INIT, names = NAMES_INIT;
	int rc;

	rc = list(r, dir, &names);
	for (size_t i = 0; rc == 1 && i < names.n; i++) {
		char *path = xasprintf("%s/%s", dir, names.name[i]);
		char *modules = NULL;

		rc = list(r, path, &inside);
		if (rc == 1 && names_has(&inside, "HEAD") &&
		    names_has(&inside, "objects") &&
		    names_has(&inside, "refs")) {
			names_add(out, path);
			modules = xasprintf("%s/modules", path);
		}
		names_release(&inside);
		if (rc == 1)
			rc = find_repos(r, modules ? modules : path, out);
		free(modules);
		free(path);
		rc = rc == -1 ? -1 : 1;
	}
	names_release(&names);
	return rc == -1 ? -1 : 0;
}

int
git_repos(const struct git_reader *reader, struct names *out)
{
	names_add(out, "");
	return find_repos(reader, "modules", out);
}

/* The same for one directory of objects. */
static int
dir_gone(
    const struct git_reader *const side[3], const char *dir, struct names *out)
{
	struct names have[3] = { NAMES_INIT, NAMES_INIT, NAMES_INIT };
	int rc = 0;

	for (size_t i = 0; rc != -1 && i < 3; i++)
		rc = list(side[i], dir, &have[i]);
	for (size_t i = 0; rc != -1 && i < have[0].n; i++) {
		const char *name = have[0].name[i];
		char *path;

		if (names_has(&have[1], name) || !names_has(&have[2], name))
			continue;
		path = xasprintf("%s/%s", dir, name);
		if (git_part_of(path) == GIT_OBJECT)
			names_add(out, path);
		free(path);
	}
	for (size_t i = 0; i < 3; i++)
		names_release(&have[i]);
	return rc == -1 ? -1 : 0;
}

int
git_objects_gone(const struct git_reader *base, const struct git_reader *head,
    const struct git_reader *mine, struct names *out)
{
	const struct git_reader *const side[3] = { base, head, mine };
	struct names dirs = NAMES_INIT;
	int rc;

	rc = list(base, "objects", &dirs) == -1 ? -1 : 0;
	for (size_t i = 0; rc == 0 && i < dirs.n; i++) {
		char *dir = xasprintf("objects/%s", dirs.name[i]);

		if (strcmp(dirs.name[i], "pack") == 0 ||
		    (strlen(dirs.name[i]) == 2 &&
			strspn(dirs.name[i], HEX) == 2))
			rc = dir_gone(side, dir, out);
		free(dir);
	}
	names_release(&dirs);
	return rc;
}

/* ---- one side's refs ---- */

enum value_kind {
	NONE,
	OBJECT, /* text is its name */
	SYMBOLIC, /* text is a valid ref */
	STRANGE, /* no ref to git; text is what is there, cut */
};

struct value {
	enum value_kind kind;
	char *text;
	bool loose, packed; /* where something is stored for the ref */
};

struct ref {
	char *name;
	struct value v;
};

struct refs {
	struct ref *v; /* by path_cmp, none below another */
	size_t n, cap;
	struct buf packed; /* the file */
	bool is_repo; /* refs is a directory */
};

static const struct value none;

static void
refs_add(struct refs *refs, const char *name, struct value v)
{
	if (refs->n == refs->cap)
		refs->v = xgrow(refs->v, &refs->cap, sizeof *refs->v);
	refs->v[refs->n++] = (struct ref){ xstrdup(name), v };
}

static void
refs_release(struct refs *refs)
{
	for (size_t i = 0; i < refs->n; i++) {
		free(refs->v[i].name);
		free(refs->v[i].v.text);
	}
	free(refs->v);
	buf_release(&refs->packed);
}

static char *
object_name(const char *s, size_t len)
{
	char *name = xstrndup(s, len);

	for (char *p = name; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	return name;
}

static struct value
parse_loose(const struct buf *b)
{
	struct value v = { .loose = true };
	const char *s = buf_str(b);
	size_t len = hex_len(s);

	if (len > 0 && strchr(" \t\r\n\v\f", s[len])) {
		v.kind = OBJECT;
		v.text = object_name(s, len);
		return v;
	}
	if (begins(s, "ref:")) {
		s += strlen("ref:");
		s += strspn(s, " \t\r\n\v\f");
		len = strlen(s);
		while (len > 0 && strchr(" \t\r\n\v\f", s[len - 1]))
			len--;
		v.text = xstrndup(s, len);
		v.kind = ref_is_valid(v.text) ? SYMBOLIC : STRANGE;
		return v;
	}
	v.kind = STRANGE;
	v.text = xstrdup(s);
	return v;
}

/* The ref stored at path: 1, 0 when no regular file is there, or -1. */
static int
load_loose(const struct git_reader *r, const char *path, struct refs *refs)
{
	struct value v = { .kind = STRANGE, .loose = true };
	struct buf b = BUF_INIT;
	int rc = r->read(r->arg, path, LOOSE_MAX, &b);

	if (rc == 1) {
		refs_add(refs, path, parse_loose(&b));
	} else if (rc == -1 && errno == EFBIG) {
		v.text = xstrdup("");
		refs_add(refs, path, v);
		rc = 1;
	}
	buf_release(&b);
	return rc;
}

/* Everything below dir: 1, 0 when it is no directory, or -1. */
static int
load_dir(const struct git_reader *r, const char *dir, struct refs *refs)
{
	struct names names = NAMES_INIT;
	int rc = list(r, dir, &names);

	for (size_t i = 0; rc == 1 && i < names.n; i++) {
		char *path = xasprintf("%s/%s", dir, names.name[i]);

		if (name_is_valid(path)) {
			rc = load_loose(r, path, refs);
			if (rc == 0)
				rc = load_dir(r, path, refs);
			if (rc == 0) {
				/* A link or the like: a name in the way. */
				refs_add(refs, path,
				    (struct value){
					STRANGE, xstrdup(""), true, false });
				rc = 1;
			}
		}
		free(path);
	}
	names_release(&names);
	return rc;
}

static int
load_worktrees(const struct git_reader *r, struct refs *refs)
{
	struct names names = NAMES_INIT;
	int rc = list(r, "worktrees", &names);

	for (size_t i = 0; rc != -1 && i < names.n; i++) {
		char *head, *dir;

		if (!name_is_valid(names.name[i]))
			continue;
		head = xasprintf("worktrees/%s/HEAD", names.name[i]);
		dir = xasprintf("worktrees/%s/refs", names.name[i]);
		rc = load_loose(r, head, refs);
		if (rc != -1)
			rc = load_dir(r, dir, refs);
		free(head);
		free(dir);
	}
	names_release(&names);
	return rc;
}

/*
 * The ref of the line that ends before end, in *name and with its object's
 * length, or 0: a comment, what a tag peels to, or nothing that git takes.
 */
static size_t
packed_line(const char *line, const char *end, char **name)
{
	size_t len = hex_len(line);

	if (len == 0 || line[len] != ' ')
		return 0;
	*name = xstrndup(line + len + 1, (size_t)(end - line) - len - 1);
	if (strlen(*name) == (size_t)(end - line) - len - 1 &&
	    ref_is_valid(*name))
		return len;
	free(*name);
	return 0;
}

static const char *
line_end(const struct buf *b, const char *line)
{
	size_t left = (size_t)(b->data + b->len - line);
	const char *end = memchr(line, '\n', left);

	return end ? end : line + left;
}

static int
load_packed(const struct git_reader *r, struct refs *refs)
{
	struct buf *b = &refs->packed;
	const char *end;
	int rc = r->read(r->arg, "packed-refs", PACKED_MAX, b);

	if (rc != 1 || b->len == 0)
		return rc;
	for (const char *p = b->data; p < b->data + b->len; p = end + 1) {
		struct value v = { .kind = OBJECT, .packed = true };
		char *name;
		size_t len;

		end = line_end(b, p);
		len = packed_line(p, end, &name);
		if (len == 0)
			continue;
		v.text = object_name(p, len);
		refs_add(refs, name, v);
		free(name);
	}
	return 1;
}

static int
ref_cmp(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;
	int order = path_cmp(x->name, y->name);

	/* A file of its own stands before, and hides, what is packed. */
	return order ? order : (int)y->v.loose - (int)x->v.loose;
}

/* Sorts; each name once, and none below another, where git has no refs. */
static void
tidy(struct refs *refs)
{
	size_t n = 0;

	if (refs->n > 0)
		qsort(refs->v, refs->n, sizeof *refs->v, ref_cmp);
	for (size_t i = 0; i < refs->n; i++) {
		struct ref *last = n > 0 ? &refs->v[n - 1] : NULL;
		struct ref *r = &refs->v[i];

		if (last && path_is_below(r->name, last->name)) {
			if (strcmp(r->name, last->name) == 0)
				last->v.packed |= r->v.packed;
			free(r->name);
			free(r->v.text);
			continue;
		}
		refs->v[n++] = *r;
	}
	refs->n = n;
}

static int
load(const struct git_reader *r, struct refs *refs)
{
	int rc;

	if (load_loose(r, "HEAD", refs) == -1 || load_packed(r, refs) == -1)
		return -1;
	rc = load_dir(r, "refs", refs);
	if (rc == -1 || load_worktrees(r, refs) == -1)
		return -1;
	refs->is_repo = rc == 1;
	tidy(refs);
	return 0;
}

/* ---- the merge ---- */

struct entry {
	const char *name;
	const struct value *base, *head, *mine;
	const struct value *result; /* head's or mine's */
	bool lost; /* mine's object has to be kept */
};

/* An entry of mine's stash that would be lost, STASH@{index}. */
struct stashed {
	size_t index;
	char *object;
};

struct work {
	struct refs base, head, mine;
	struct entry *v; /* by path_cmp */
	size_t n, cap;
	struct stashed *stash;
	size_t nstash, stash_cap;
	struct names shown; /* by path_cmp: names that the result takes */
	size_t room; /* bytes of the longest name that can be written */
	char *session;
	char *dir; /* refs/sb, or what stands for it */
	struct git_merge *out;
};

static bool
same(const struct value *a, const struct value *b)
{
	return a->kind == b->kind &&
	    (a->kind == NONE || strcmp(a->text, b->text) == 0);
}

static struct entry *
find(struct work *w, const char *name)
{
	size_t lo = 0, hi = w->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int order = path_cmp(w->v[mid].name, name);

		if (order == 0)
			return &w->v[mid];
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static void
lose(struct entry *e)
{
	e->result = e->head;
	e->lost = e->mine->kind == OBJECT && !same(e->mine, e->base) &&
	    !same(e->mine, e->head);
}

static void
decide(struct work *w, struct entry *e)
{
	e->result = e->head;
	if (!w->mine.is_repo || e->mine->kind == STRANGE ||
	    same(e->mine, e->base) || same(e->mine, e->head))
		return;
	if (!same(e->head, e->base) ||
	    (e->mine->kind != NONE && !is_writable(e->name, w->room)))
		lose(e);
	else
		e->result = e->mine;
}

/* The names of all three, each with its three values. */
static void
unite(struct work *w)
{
	struct refs *side[3] = { &w->base, &w->head, &w->mine };
	size_t at[3] = { 0, 0, 0 };

	for (;;) {
		const struct value *value[3];
		const char *name = NULL;

		for (size_t i = 0; i < 3; i++) {
			const char *its;

			if (at[i] == side[i]->n)
				continue;
			its = side[i]->v[at[i]].name;
			if (!name || path_cmp(its, name) < 0)
				name = its;
		}
		if (!name)
			return;
		for (size_t i = 0; i < 3; i++) {
			struct ref *r = &side[i]->v[at[i]];

			value[i] = &none;
			if (at[i] == side[i]->n || strcmp(r->name, name) != 0)
				continue;
			value[i] = &r->v;
			at[i]++;
		}
		if (w->n == w->cap)
			w->v = xgrow(w->v, &w->cap, sizeof *w->v);
		w->v[w->n] = (struct entry){ .name = name,
			.base = value[0],
			.head = value[1],
			.mine = value[2] };
		decide(w, &w->v[w->n++]);
	}
}

/*
 * A name cannot be a ref and the directory of another one. Head has no such
 * pair, nor has mine: the one that head lacks gives way. True when one did.
 */
static bool
separate(struct work *w)
{
	struct entry *above = NULL;
	bool changed = false;

	for (size_t i = 0; i < w->n; i++) {
		struct entry *e = &w->v[i];

		if (e->result->kind == NONE)
			continue;
		if (above && path_is_below(e->name, above->name)) {
			changed = true;
			if (e->head->kind == NONE) {
				lose(e);
				continue;
			}
			lose(above);
		}
		above = e;
	}
	return changed;
}

/*
 * What a symbolic ref of the result names, HEAD above all, is not deleted by
 * mine; and one of mine does not come to name what head deleted. True when
 * something changed.
 */
static bool
protect(struct work *w)
{
	bool changed = false;

	for (size_t i = 0; i < w->n; i++) {
		struct entry *e = &w->v[i], *to = e;

		for (int n = 0; n < SYMREF_MAX; n++) {
			if (to->result->kind != SYMBOLIC)
				break;
			to = find(w, to->result->text);
			if (!to)
				break;
			if (to->result->kind == NONE &&
			    to->head->kind != NONE) {
				to->result = to->head;
				changed = true;
			}
		}
		if (to && to->result->kind == NONE && to->mine->kind != NONE &&
		    e->result == e->mine) {
			lose(e);
			changed = true;
		}
	}
	return changed;
}

/* The branch of mine's HEAD, or NULL when it is detached or unborn. */
static struct entry *
branch_of_mine(struct work *w)
{
	struct entry *e = find(w, "HEAD");

	if (!e || e->mine->kind != SYMBOLIC)
		return NULL;
	for (int n = 0; e && n < SYMREF_MAX && e->mine->kind == SYMBOLIC; n++)
		e = find(w, e->mine->text);
	return e;
}

/* What one ref says about others. Each step gives one of mine up. */
static void
decide_together(struct work *w, bool index_moved)
{
	struct entry *head = find(w, "HEAD"), *branch = branch_of_mine(w);
	bool changed;

	if (!w->mine.is_repo)
		return;
	if (head && (head->mine->kind == NONE || index_moved))
		lose(head);
	do {
		changed = protect(w);
		changed |= separate(w);
		/* Mine's HEAD with another commit than mine's is no use. */
		if (head && branch && head->result == head->mine &&
		    !same(branch->result, branch->mine)) {
			lose(head);
			changed = true;
		}
	} while (changed);
}

/* ---- the stash, whose older entries are in a log only ---- */

#define STASH     "refs/stash"
#define STASH_LOG "logs/refs/stash"

/* What each line of a reflog set its ref to, oldest first. */
static void
log_objects(const struct buf *log, struct names *out)
{
	const char *end;

	if (log->len == 0)
		return;
	for (const char *p = log->data; p < log->data + log->len; p = end + 1) {
		size_t old = strspn(p, HEX), len;
		char *object;

		end = line_end(log, p);
		if (p[old] != ' ')
			continue;
		len = hex_len(p + old + 1);
		if (len == 0 || len != old)
			continue;
		object = object_name(p + old + 1, len);
		names_add(out, object);
		free(object);
	}
}

static void
merge_logs(struct work *w, const struct buf log[3])
{
	struct names known = NAMES_INIT, mine = NAMES_INIT;
	struct entry *e = find(w, STASH);

	if (e)
		lose(e);
	log_objects(&log[0], &known);
	log_objects(&log[1], &known);
	if (e && e->mine->kind == OBJECT)
		names_add(&known, e->mine->text);
	names_sort(&known);
	log_objects(&log[2], &mine);
	for (size_t i = mine.n; i-- > 0;) {
		if (names_has(&known, mine.name[i]))
			continue;
		if (w->nstash == w->stash_cap)
			w->stash =
			    xgrow(w->stash, &w->stash_cap, sizeof *w->stash);
		w->stash[w->nstash++] =
		    (struct stashed){ mine.n - 1 - i, xstrdup(mine.name[i]) };
	}
	names_release(&known);
	names_release(&mine);
}

/* The ref goes with its log, and the log is head's where both changed it. */
static int
decide_stash(struct work *w, const struct git_reader *const side[3])
{
	struct buf log[3] = { BUF_INIT, BUF_INIT, BUF_INIT };
	int there[3] = { 0, 0, 0 };
	bool same01, same02, same12;
	int rc = 0;

	if (!w->mine.is_repo)
		return 0;
	for (size_t i = 0; rc != -1 && i < 3; i++)
		rc = there[i] =
		    side[i]->read(side[i]->arg, STASH_LOG, PACKED_MAX, &log[i]);
	if (rc != -1) {
		same01 = there[0] == there[1] && buf_equal(&log[0], &log[1]);
		same02 = there[0] == there[2] && buf_equal(&log[0], &log[2]);
		same12 = there[1] == there[2] && buf_equal(&log[1], &log[2]);
		if (!same01 && !same02 && !same12)
			merge_logs(w, log);
	}
	for (size_t i = 0; i < 3; i++)
		buf_release(&log[i]);
	return rc == -1 ? -1 : 0;
}

/* ---- what is kept ---- */

static size_t
shown_at(const struct work *w, const char *name)
{
	size_t lo = 0, hi = w->shown.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (path_cmp(w->shown.name[mid], name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Is name a ref of the result, below one, or a directory of refs? */
static bool
is_taken(const struct work *w, const char *name)
{
	size_t at = shown_at(w, name);
	char *part;
	bool taken;

	taken = at < w->shown.n && path_is_below(w->shown.name[at], name);
	part = xstrdup(name);
	for (size_t len = path_parent_len(part); !taken && len > 0;
	    len = path_parent_len(part)) {
		part[len] = '\0';
		at = shown_at(w, part);
		taken = at < w->shown.n && strcmp(w->shown.name[at], part) == 0;
	}
	free(part);
	return taken;
}

static void
add_file(struct git_merge *m, const char *path, char *content, size_t len)
{
	if (m->nfiles == m->file_cap)
		m->file = xgrow(m->file, &m->file_cap, sizeof *m->file);
	m->file[m->nfiles++] = (struct git_file){ xstrdup(path), content, len };
}

static void
write_ref(struct git_merge *m, const char *path, const struct value *v)
{
	char *content =
	    xasprintf("%s%s\n", v->kind == SYMBOLIC ? "ref: " : "", v->text);

	add_file(m, path, content, strlen(content));
}

/*
 * Keeps object as DIR/SESSION TAIL; SESSION-2 and so on where that is taken
 * by something else.
 */
static int
keep(struct work *w, const char *ref, const char *object, const char *tail)
{
	struct git_merge *m = w->out;
	struct value v = { .kind = OBJECT, .text = xstrdup(object) };
	char *name;

	for (size_t n = 1;; n++) {
		struct entry *e;

		if (n == 1)
			name = xasprintf("%s/%s%s", w->dir, w->session, tail);
		else
			name = xasprintf(
			    "%s/%s-%zu%s", w->dir, w->session, n, tail);
		if (!is_writable(name, w->room)) {
			free(name);
			free(v.text);
			errno = ENAMETOOLONG;
			return -1;
		}
		e = find(w, name);
		if (e && same(e->result, &v))
			break;
		if (!is_taken(w, name)) {
			write_ref(m, name, &v);
			break;
		}
		free(name);
	}
	if (m->nkept == m->kept_cap)
		m->kept = xgrow(m->kept, &m->kept_cap, sizeof *m->kept);
	m->kept[m->nkept++] = (struct git_kept){ xstrdup(ref), name, v.text };
	return 0;
}

/* SESSION.refs/heads/x for refs/heads/x, or a number where that is too long. */
static int
keep_entry(struct work *w, const struct entry *e, size_t number)
{
	char *tail = xasprintf(".%s", e->name);
	int rc;

	rc = keep(w, e->name, e->mine->text, tail);
	free(tail);
	if (rc == 0 || errno != ENAMETOOLONG)
		return rc;
	tail = xasprintf(".long/%zu", number);
	rc = keep(w, e->name, e->mine->text, tail);
	free(tail);
	return rc;
}

static int
keep_lost(struct work *w)
{
	struct entry *head = find(w, "HEAD"), *branch = branch_of_mine(w);
	struct entry *first = NULL;
	int rc = 0;

	if (head && head->lost)
		first = head;
	else if (branch && branch->lost)
		first = branch;
	if (first)
		rc = keep(w, first->name, first->mine->text, "");
	for (size_t i = 0; rc == 0 && i < w->n; i++)
		if (w->v[i].lost && &w->v[i] != first)
			rc = keep_entry(w, &w->v[i], i);
	for (size_t i = 0; rc == 0 && i < w->nstash; i++) {
		char *tail = xasprintf(".stash/%zu", w->stash[i].index);
		char *ref = xasprintf(STASH "@{%zu}", w->stash[i].index);

		rc = keep(w, ref, w->stash[i].object, tail);
		free(tail);
		free(ref);
	}
	return rc;
}

/* A name for the session that git takes as a part of a ref. */
static char *
session_name(const char *session)
{
	char *name = xstrdup(*session == '\0' ? "session" : session);

	for (char *p = name; *p != '\0'; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			*p = '_';
	if (!name_is_valid(name))
		for (char *p = name; *p != '\0'; p++)
			if (*p == '.')
				*p = '_';
	return name;
}

static void
show(struct work *w)
{
	size_t n = 1;

	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].result->kind != NONE)
			names_add(&w->shown, w->v[i].name);
	w->dir = xstrdup("refs/sb");
	for (;;) {
		size_t at = shown_at(w, w->dir);

		if (at == w->shown.n || strcmp(w->shown.name[at], w->dir) != 0)
			return;
		free(w->dir);
		w->dir = xasprintf("refs/sb-%zu", ++n);
	}
}

/* ---- the files ---- */

/* Head's packed-refs without the refs that the result has not. */
static void
cut_packed(struct work *w)
{
	const struct buf *b = &w->head.packed;
	struct buf out = BUF_INIT;
	const char *end, *next;
	bool cut = false;
	size_t len;

	for (const char *p = b->data; p < b->data + b->len; p = next) {
		char *name;

		end = line_end(b, p);
		next = end < b->data + b->len ? end + 1 : end;
		/* What a tag peels to stands behind it and goes with it. */
		if (*p != '^' || !cut) {
			cut = false;
			if (packed_line(p, end, &name) > 0) {
				struct entry *e = find(w, name);

				cut = e && e->result->kind == NONE;
				free(name);
			}
		}
		if (!cut)
			buf_add(&out, p, (size_t)(next - p));
	}
	buf_reserve(&out, 0);
	len = out.len;
	add_file(w->out, "packed-refs", buf_steal(&out), len);
}

static int
file_cmp(const void *a, const void *b)
{
	const struct git_file *x = a, *y = b;

	return path_cmp(x->path, y->path);
}

/* Sorts; what a directory's coming or going says already is left out. */
static void
tidy_files(struct git_merge *m)
{
	const char *above = NULL;
	size_t n = 0;

	if (m->nfiles > 0)
		qsort(m->file, m->nfiles, sizeof *m->file, file_cmp);
	for (size_t i = 0; i < m->nfiles; i++) {
		struct git_file *f = &m->file[i];

		if (!f->content &&
		    ((above && path_is_below(f->path, above)) ||
			(i + 1 < m->nfiles &&
			    path_is_below(m->file[i + 1].path, f->path)))) {
			free(f->path);
			continue;
		}
		if (f->content)
			above = f->path;
		m->file[n++] = *f;
	}
	m->nfiles = n;
}

static void
write_changed(struct work *w)
{
	bool cut = false;

	for (size_t i = 0; i < w->n; i++) {
		struct entry *e = &w->v[i];

		if (same(e->result, e->head))
			continue;
		if (e->result->kind != NONE) {
			write_ref(w->out, e->name, e->result);
			continue;
		}
		cut |= e->head->packed;
		if (e->head->loose)
			add_file(w->out, e->name, NULL, 0);
	}
	if (cut)
		cut_packed(w);
}

static bool
writes_below_refs(const struct git_merge *m)
{
	for (size_t i = 0; i < m->nfiles; i++)
		if (m->file[i].content &&
		    path_is_below(m->file[i].path, "refs"))
			return true;
	return false;
}

int
gitrefs_merge(const char *repo, const char *session, bool index_moved,
    const struct git_reader *base, const struct git_reader *head,
    const struct git_reader *mine, struct git_merge *m)
{
	const struct git_reader *const side[3] = { base, head, mine };
	struct work w = { .out = m };
	size_t used = strlen(repo) + strlen("/.lock");
	int rc = -1, err;

	w.room = used < PATH_BYTES_MAX ? PATH_BYTES_MAX - used : 0;
	if (load(base, &w.base) == -1 || load(head, &w.head) == -1 ||
	    load(mine, &w.mine) == -1)
		goto out;
	w.session = session_name(session);
	unite(&w);
	if (decide_stash(&w, side) == -1)
		goto out;
	decide_together(&w, index_moved);
	show(&w);
	write_changed(&w);
	rc = keep_lost(&w);
	if (rc == 0 && !w.head.is_repo && writes_below_refs(m)) {
		errno = ENOTDIR;
		rc = -1;
	}
	tidy_files(m);
out:
	err = errno;
	refs_release(&w.base);
	refs_release(&w.head);
	refs_release(&w.mine);
	for (size_t i = 0; i < w.nstash; i++)
		free(w.stash[i].object);
	free(w.stash);
	names_release(&w.shown);
	free(w.session);
	free(w.dir);
	free(w.v);
	if (rc == -1)
		git_merge_release(m);
	errno = err;
	return rc;
}

void
git_merge_release(struct git_merge *m)
{
	for (size_t i = 0; i < m->nfiles; i++) {
		free(m->file[i].path);
		free(m->file[i].content);
	}
	for (size_t i = 0; i < m->nkept; i++) {
		free(m->kept[i].ref);
		free(m->kept[i].kept);
		free(m->kept[i].commit);
	}
	free(m->file);
	free(m->kept);
	*m = (struct git_merge)GIT_MERGE_INIT;
}

void
git_kept_json(const struct git_kept *k, const char *repo, struct buf *out)
{
	buf_addc(out, '{');
	out_path(out, "path", repo);
	out_path(out, "ref", k->ref);
	out_path(out, "kept", k->kept);
	out_str(out, "commit", k->commit);
	buf_addc(out, '}');
}
