/* SPDX-License-Identifier: MIT */
#include "putstage.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "answer.h"
#include "attr.h"
#include "blame.h"
#include "change.h"
#include "io.h"
#include "lock.h"
#include "mem.h"
#include "out.h"
#include "route.h"

/* The one that there is. */
static struct stage {
	int stackfd, staging, tree, lock;
	char name[ID_MAX + 1];
} stage = { -1, -1, -1, -1, "" };

/* What is found out about it on the way. */
struct work {
	struct change file;
	unsigned *mode; /* of the directories above it, the deepest first */
	size_t new_dirs; /* so many of them are new, the deepest */
	uint64_t source, ignored; /* changes by route */
};

void
stage_drop(void)
{
	char name[ID_MAX + 16];

	if (stage.lock == -1)
		return;
	snprintf(name, sizeof name, "%s.staging", stage.name);
	path_rm_tree(stage.staging, name);
	/* The lock goes last, it keeps sweeps away from the rest. */
	snprintf(name, sizeof name, "%s.lock", stage.name);
	unlinkat(stage.staging, name, 0);
	io_drop(&stage.lock);
	io_drop(&stage.tree);
	io_drop(&stage.staging);
}

static void
make_stage(const struct tree *t, int ms)
{
	char name[ID_MAX + 16];
	int lock;

	memcpy(stage.name, t->lease, sizeof stage.name);
	stage.staging =
	    path_open(t->stackfd, "staging", O_RDONLY | O_DIRECTORY, 0);
	if (stage.staging == -1)
		answer_sys("unable to open layer-stack/staging");
	/* Sweeps run under the exclusive lock: none sees it half made. */
	lock = lock_take(t->stackfd, STACK_LOCK, false, ms);
	if (lock == -1)
		put_no_lock("the stack lock");
	snprintf(name, sizeof name, "%s.lock", stage.name);
	stage.lock = lock_create(stage.staging, name);
	if (stage.lock == -1)
		answer_sys("unable to make staging/%s", name);
	io_drop(&lock);
	snprintf(name, sizeof name, "%s.staging", stage.name);
	if (mkdirat(stage.staging, name, 0700) == 0)
		stage.tree =
		    path_open(stage.staging, name, O_RDONLY | O_DIRECTORY, 0);
	if (stage.tree == -1)
		answer_sys("unable to make staging/%s", name);
}

/*
 * One directory on the way, "" is the root: n is what head has there. It gets
 * the attributes of that, but for its time when a name in it is new. Returns
 * the mode.
 */
static unsigned
dress(
    const struct tree *t, const char *path, const struct node *n, bool new_name)
{
	struct buf xattrs = BUF_INIT;
	struct stat st, now;
	int from = -1, to;

	to = path_open(stage.tree, path, O_RDONLY | O_DIRECTORY, 0);
	if (to == -1 || fstat(to, &now) == -1)
		answer_sys("unable to open %s", path);
	st = now;
	st.st_mode = 0755 | (now.st_mode & S_ISGID);
	if (n->kind == NODE_DIR) {
		from = view_fd(t->view, path, n);
		if (from == -1 || attr_xattrs(from, &xattrs, NULL) == -1)
			answer_sys("unable to read the attributes of %s", path);
		st = n->st;
		if (new_name)
			st.st_mtim = now.st_mtim;
	}
	if (attr_set_xattrs(to, buf_str(&xattrs), xattrs.len) == -1 ||
	    attr_set(to, &st, st.st_mode & 07777) == -1)
		answer_sys("unable to set the attributes of %s", path);
	buf_release(&xattrs);
	io_drop(&from);
	io_drop(&to);
	return st.st_mode & 07777;
}

int
memory_file(const char *name, const struct buf *b)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd == -1)
		answer_sys("unable to make a memory file");
	if (b &&
	    (io_write_all(fd, buf_str(b), b->len) == -1 ||
		lseek(fd, 0, SEEK_SET) == -1))
		answer_sys("unable to write to a memory file");
	return fd;
}

/*
 * What is made in a directory with the set-group-ID bit gets its group, and a
 * directory the bit: so the kernel does when it is staged in one like it.
 */
static void
pass_group(const struct tree *t, const char *path)
{
	struct node n;
	int fd;

	if (view_get(t->view, path, &n) == -1)
		answer_sys("unable to look up %s", path);
	if (n.kind != NODE_DIR || !(n.st.st_mode & S_ISGID))
		return;
	fd = path_open(stage.tree, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -1)
		answer_sys("unable to open %s", path);
	/* Not everybody may give everything away. */
	if (fchown(fd, (uid_t)-1, n.st.st_gid) == 0)
		fchmod(fd, S_ISGID | 0700);
	io_drop(&fd);
}

/* Makes the directories on the way, from the top. */
static void
make_dirs(const struct tree *t, char *path)
{
	pass_group(t, "");
	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdirat(stage.tree, path, 0700) == -1)
			answer_sys("unable to make %s", path);
		pass_group(t, path);
		*p = '/';
	}
}

static void
stage_content(
    const struct put *p, const struct file *old, const struct buf *content)
{
	int fd = path_open(
	    stage.tree, p->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	if (fd == -1 || put_fill(fd, old, content) == -1 || io_close(fd) == -1)
		answer_sys("unable to write %s aside", p->path);
}

/*
 * From below, because a mode may forbid what comes after it. A name is new in
 * the directories that are, and in the one above them. Sets the modes, the
 * deepest first, the root's last.
 */
static void
dress_dirs(const struct tree *t, struct work *w, bool new)
{
	char *path = xstrdup(w->file.path);
	size_t len = path_parent_len(path);
	struct node n;

	w->mode = xcalloc(len + 1, sizeof *w->mode);
	for (size_t depth = 0;; depth++) {
		path[len] = '\0';
		if (view_get(t->view, path, &n) == -1)
			answer_sys("unable to look up %s", path);
		w->mode[depth] = dress(t, path, &n, new);
		if (n.kind == NODE_DIR)
			new = false;
		else
			w->new_dirs++;
		if (len == 0)
			break;
		len = path_parent_len(path);
	}
	free(path);
}

/*
 * The route of a path that is in this change, as sb-change-route says it; and
 * counts it.
 */
static char
route_it(struct route *r, struct work *w, const char *path, bool dir)
{
	int c = route_of(r, path, dir);

	if (c == -1)
		answer_sys("unable to read the .gitignore files for %s", path);
	w->source += c != 'i';
	w->ignored += c == 'i';
	return (char)c;
}

/* As sb-change-resolve has them: directories that only carry have no route. */
static void
write_records(FILE *out, const struct tree *t, struct work *w)
{
	struct route *route = route_open(t->view);
	struct change dir = { .kind = CHANGE_DIR, .from = "u" };
	char *path = xstrdup(w->file.path);
	size_t depth = 0;

	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/'))
		depth++;
	dir.path = path;
	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		dir.mode = w->mode[--depth];
		dir.route =
		    depth < w->new_dirs ? route_it(route, w, path, true) : '-';
		change_write(out, &dir);
		*p = '/';
	}
	w->file.route = route_it(route, w, path, false);
	change_write(out, &w->file);
	change_stop(out);
	route_close(route);
	free(path);
}

/* Makes the tree of the change; gives the records of it. */
static int
write_change(struct work *w, const struct tree *t, const struct put *p,
    const struct file *old, const struct buf *content)
{
	bool new = old->kind == FILE_ABSENT;
	int fd = memory_file("changes", NULL), copy;
	FILE *out;

	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	out = copy == -1 ? NULL : fdopen(copy, "w");
	if (!out)
		answer_sys("unable to write to a memory file");
	w->file = (struct change){
		.kind = CHANGE_WRITE,
		.mode = new ? 0644 : old->st.st_mode & 07777,
		.size = (off_t)content->len,
		.from = "u",
		.path = xstrdup(p->path),
	};
	make_dirs(t, w->file.path);
	stage_content(p, old, content);
	dress_dirs(t, w, new);
	write_records(out, t, w);
	if (fclose(out) != 0 || lseek(fd, 0, SEEK_SET) == -1)
		answer_sys("unable to write to a memory file");
	return fd;
}

/* The text of a file, if it has lines; NULL when not. */
static const struct buf *
text_of(const struct file *old, struct buf *b)
{
	if (old->kind != FILE_REGULAR || old->st.st_size > MERGE_TEXT_MAX)
		return NULL;
	if (lseek(old->fd, 0, SEEK_SET) == -1 ||
	    io_read_buf(old->fd, b, MERGE_TEXT_MAX) == -1)
		answer_sys("unable to read what is there");
	return text_is_mergeable(buf_str(b), b->len) ? b : NULL;
}

/* Who wrote what: the file's entry, for a source text line by line. */
static int
owners_file(const struct tree *t, const struct put *p, const struct work *w,
    const struct file *old, const struct buf *content)
{
	struct blame *blame = blame_open(t->stackfd, t->view);
	struct buf text = BUF_INIT, out = BUF_INIT;
	struct owners o = OWNERS_INIT;
	const char *where;
	int fd;

	if (w->file.route != 's' || content->len == 0 ||
	    !text_is_mergeable(buf_str(content), content->len)) {
		owners_set_whole(&o, p->owner);
	} else if (blame_text(blame, p->path, text_of(old, &text), content,
		       NULL, p->owner, &o) == -1) {
		where = blame_where(blame);
		answer_sys("unable to find out who wrote %s%s%s", p->path,
		    where ? ", by " : "", where ? where : "");
	}
	blame_format(&out, p->path, &o);
	blame_stop(&out);
	fd = memory_file("owners", &out);
	owners_release(&o);
	buf_release(&out);
	buf_release(&text);
	blame_close(blame);
	return fd;
}

/* Who made the layer, and when: sb-store(5). */
static int
meta_file(const struct put *p, const struct work *w)
{
	struct buf b = BUF_INIT;
	int fd;

	buf_addc(&b, '{');
	out_str(&b, "owner", p->owner);
	out_now(&b, "time");
	out_path(&b, "path", p->path);
	out_num(&b, "source_count", w->source);
	out_num(&b, "ignored_count", w->ignored);
	out_num(&b, "merged_count", 0);
	buf_adds(&b, "}\n");
	fd = memory_file("meta", &b);
	buf_release(&b);
	return fd;
}

void
stage_put(struct staged *s, const struct tree *t, const struct put *p,
    const struct file *old, const struct buf *content)
{
	struct work w = { .mode = NULL };

	make_stage(t, p->ms);
	s->tree = stage.tree;
	s->changes = write_change(&w, t, p, old, content);
	s->owners = owners_file(t, p, &w, old, content);
	s->meta = meta_file(p, &w);
	free(w.mode);
	free(w.file.path);
}
