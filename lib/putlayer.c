/* SPDX-License-Identifier: MIT */
#include "putlayer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "err.h"
#include "event.h"
#include "io.h"
#include "lock.h"
#include "out.h"
#include "putstage.h"
#include "queue.h"
#include "spawn.h"
#include "stack.h"

enum {
	TRIES = 64
};

/* Where sb-layer-commit finds the descriptors that it is given by name. */
#define UPPER  "/proc/self/fd/6"
#define OWNERS "/proc/self/fd/9"
#define META   "/proc/self/fd/10"

static struct ticket ticket = TICKET_INIT;

static void
leave_head(void)
{
	stage_drop();
	queue_leave(&ticket);
	ticket = (struct ticket)TICKET_INIT;
}

static int
run(const char *const argv[], const struct spawn_fd *map, size_t n)
{
	pid_t pid = spawn(argv, map, n);
	int code = pid == -1 ? -1 : spawn_wait(pid);

	if (code == -1)
		answer_sys("unable to run %s", argv[0]);
	return code;
}

__attribute__((noreturn)) static void
failed(const char *prog, int code, const char *so)
{
	/* It said why on stderr. */
	answer_error(code == EXIT_TIMEOUT ? code : EXIT_SYS, KIND_FAILED, NULL,
	    "%s ended with %d: %s", prog, code, so);
}

static int
ids_file(const struct manifest *m, const char *first)
{
	struct buf b = BUF_INIT;
	int fd;

	buf_addf(&b, "%s\n", first);
	for (size_t i = 0; i < m->n; i++)
		buf_addf(&b, "%s\n", m->id[i]);
	buf_addc(&b, '\n');
	fd = memory_file("ids", &b);
	buf_release(&b);
	return fd;
}

/* The layer's id. Caller frees. */
static char *
commit(const struct tree *t, const struct staged *s)
{
	const char *const argv[] = { "sb-layer-commit", "-B", OWNERS, "-C",
		UPPER, "-l", t->lease, "-m", META, NULL };
	int answer = memory_file("id", NULL), code;
	struct buf b = BUF_INIT;

	code = run(argv,
	    (struct spawn_fd[]){ { s->changes, 0 }, { answer, 1 },
		{ s->tree, 6 }, { s->owners, 9 }, { s->meta, 10 } },
	    5);
	if (code != 0)
		failed(argv[0], code, "nothing was changed");
	if (lseek(answer, 0, SEEK_SET) == -1 ||
	    io_read_buf(answer, &b, 4096) == -1)
		answer_sys("unable to read an answer");
	buf_cut(&b, strcspn(buf_str(&b), "\n"));
	io_drop(&answer);
	return buf_steal(&b);
}

/* False when somebody without a ticket moved the stack. */
static bool
swap(const struct tree *t, const char *id)
{
	char version[24];
	const char *const argv[] = { "sb-stack-swap", "-c", "write", version,
		NULL };
	int ids = ids_file(&t->head, id), answer = memory_file("version", NULL);
	int code;

	snprintf(version, sizeof version, "%" PRIu64, t->head.version);
	code = run(argv, (struct spawn_fd[]){ { ids, 0 }, { answer, 1 } }, 2);
	io_drop(&ids);
	io_drop(&answer);
	if (code != 0 && code != EXIT_CONFLICT)
		failed(argv[0], code, "look at the file again");
	return code == 0;
}

static bool
is_same(const struct file *old, const struct buf *content)
{
	struct buf b = BUF_INIT;
	bool same;

	if (old->kind != FILE_REGULAR || old->st.st_size != (off_t)content->len)
		return false;
	if (lseek(old->fd, 0, SEEK_SET) == -1 ||
	    io_read_buf(old->fd, &b, content->len) == -1)
		answer_sys("unable to read what is there");
	same = buf_equal(&b, content);
	buf_release(&b);
	return same;
}

static void
refuse_reserved(const char *path)
{
	struct buf b = BUF_INIT;

	if (!path_is_reserved(path))
		return;
	out_key(&b, "publish_rejection");
	buf_addc(&b, '{');
	out_path(&b, "path", path);
	out_str(&b, "reason", "protected_path");
	out_null(&b, "source_conflict");
	out_null(&b, "protected_drop");
	out_null(&b, "message");
	buf_addc(&b, '}');
	answer_error(EXIT_CONFLICT, KIND_FAILED, &b,
	    "ProtectedPath: names beginning .wh. cannot be published: %s",
	    path);
}

/* What head had at the path when it was looked at, and what is to be there. */
struct plan {
	struct tree tree;
	struct file old;
	char layer[ID_MAX + 1]; /* that has the old file */
	const struct buf *content;
};

static void
look(struct plan *l, const struct put *p)
{
	char was[ID_MAX + 1];

	memcpy(was, l->layer, sizeof was);
	tree_open(&l->tree, NULL, p->ms);
	if (l->tree.full != 0) {
		errno = l->tree.full;
		answer_sys("unable to make a lease");
	}
	tree_find(&l->tree, p->path, &l->old);
	file_require(&l->tree, &l->old, p->path, !p->reads);
	snprintf(l->layer, sizeof l->layer, "%s", l->old.layer);
	/* The same file of the same layer makes the same content. */
	if (!l->content || strcmp(was, l->layer) != 0)
		l->content = p->make(p->arg, &l->old);
}

static void
forget(struct plan *l)
{
	file_release(&l->old);
	tree_close(&l->tree);
}

/* Is head still what was looked at? */
static bool
is_current(const struct tree *t)
{
	struct manifest now = MANIFEST_INIT;
	const char *why = NULL;
	bool same;

	if (manifest_read(t->stackfd, STACK_MANIFEST, &now, &why) == -1)
		answer_error(EXIT_SYS, KIND_FAILED, NULL,
		    "unable to read %s: %s", STACK_MANIFEST,
		    why ? why : strerror(errno));
	same = now.version == t->head.version &&
	    manifest_equal_layers(&now, &t->head);
	manifest_release(&now);
	return same;
}

/* What it came to, for the span that is open. */
static void
account(const struct plan *l, bool no_op)
{
	struct buf *b = event_attrs(event_open());

	out_num(b, "base", l->tree.head.version);
	out_num(b, "bytes", no_op ? 0 : l->content->len);
	out_num(b, "revision", l->tree.head.version + !no_op);
	out_bool(b, "no_op", no_op);
	out_num(b, "layers_added", !no_op);
}

/* False when somebody without a ticket moved the stack. */
static bool
publish(const struct plan *l, const struct put *p)
{
	struct staged staged;
	bool done;
	char *id;

	stage_put(&staged, &l->tree, p, &l->old, l->content);
	id = commit(&l->tree, &staged);
	done = swap(&l->tree, id);
	free(id);
	io_drop(&staged.changes);
	io_drop(&staged.owners);
	io_drop(&staged.meta);
	stage_drop();
	return done;
}

bool
put_on_head(const struct put *p)
{
	struct plan l = { .content = NULL };
	bool done, new, no_op;

	event_begin("layerstack.publish");
	refuse_reserved(p->path);
	if (atexit(leave_head) != 0)
		die(EXIT_SYS, "out of memory");
	look(&l, p);
	done = no_op = is_same(&l.old, l.content);
	if (!done &&
	    (queue_draw(l.tree.stackfd, &ticket, p->ms) == -1 ||
		queue_wait(&ticket, p->ms) == -1))
		put_no_lock("the publishers before this one");
	for (int i = 0; i < TRIES && !done; i++) {
		if (!is_current(&l.tree)) {
			forget(&l);
			look(&l, p);
		}
		no_op = is_same(&l.old, l.content);
		done = no_op || publish(&l, p);
	}
	if (!done)
		answer_error(EXIT_SYS, KIND_FAILED, NULL,
		    "the stack is changed all the time by somebody without a "
		    "ticket");
	account(&l, no_op);
	new = l.old.kind == FILE_ABSENT;
	leave_head();
	forget(&l);
	return new;
}
