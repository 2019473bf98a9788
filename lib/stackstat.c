/* SPDX-License-Identifier: MIT */
#include "stackstat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "num.h"
#include "out.h"
#include "session.h"
#include "store.h"

struct measure
stackstat_budget(const struct conf *conf)
{
	uint64_t depth = conf_number(conf, CONF_WALK_DEPTH);

	return (struct measure){
		.nodes = conf_number(conf, CONF_WALK_NODES),
		/* Each level has a descriptor, and no path is longer. */
		.depth = (unsigned)(depth < 1024 ? depth : 1024),
	};
}

void
stackstat_out(struct buf *b, const char *name, bool known, uint64_t n)
{
	if (known)
		out_num(b, name, n);
	else
		out_null(b, name);
}

/* ---- sessions ---- */

static void
add_session(struct stackstat *s, const char *id, struct buf *errors)
{
	struct stackstat_session *e;
	struct session session;
	const char *why = NULL;

	/* It may have ended meanwhile. */
	if (session_open(&session, id) == -1)
		return;
	if (s->nsessions == s->cap)
		s->session = xgrow(s->session, &s->cap, sizeof *s->session);
	e = &s->session[s->nsessions++];
	*e = (struct stackstat_session){ .lease = MANIFEST_INIT };
	memcpy(e->id, session.id, sizeof e->id);
	errno = ENOENT;
	if (manifest_read(session.dirfd, "lease", &e->lease, &why) == -1 ||
	    e->lease.n == 0) {
		buf_addf(errors, "workspace %s: its lease cannot be read: %s\n",
		    id, why ? why : strerror(errno));
		manifest_release(&e->lease);
		e->lease = (struct manifest)MANIFEST_INIT;
	}
	session_close(&session);
}

void
stackstat_sessions(struct stackstat *s, struct buf *errors)
{
	struct names v = NAMES_INIT;
	int fd = store_open_workspace();

	if (names_read(fd, &v) == -1)
		buf_addf(errors, "workspace: %s\n", strerror(errno));
	for (size_t i = 0; i < v.n; i++)
		if (id_is_valid(v.name[i]))
			add_session(s, v.name[i], errors);
	names_release(&v);
	io_drop(&fd);
}

/* ---- leases ---- */

static void
count_lease(struct stackstat *s, const struct manifest *lease)
{
	s->leases++;
	for (size_t i = 0; lease->n > 0 && i < s->m.n; i++)
		if (strcmp(s->m.id[i], lease->id[0]) == 0)
			s->layer[i].leased++;
}

static void
count_leases(struct stackstat *s, int stackfd)
{
	struct names v = NAMES_INIT;
	int fd = path_open(stackfd, "leases", O_RDONLY | O_DIRECTORY, 0);

	for (size_t i = 0; i < s->nsessions; i++)
		count_lease(s, &s->session[i].lease);
	if (fd != -1 && names_read(fd, &v) == 0)
		for (size_t i = 0; i < v.n; i++) {
			struct manifest m = MANIFEST_INIT;
			const char *why;
			char *path = xasprintf("%s/manifest", v.name[i]);

			if (id_is_valid(v.name[i]) &&
			    stack_lease_is_held(stackfd, v.name[i]) == 1 &&
			    manifest_read(fd, path, &m, &why) == 0)
				count_lease(s, &m);
			manifest_release(&m);
			free(path);
		}
	names_release(&v);
	io_drop(&fd);
}

/* ---- sizes ---- */

/* What the layer's maker noted. */
static bool
noted_bytes(int stackfd, const char *id, uint64_t *out)
{
	char *path = xasprintf(".layer-metadata/%s.bytes", id);
	struct buf text = BUF_INIT;
	bool good = io_read_file_at(stackfd, path, &text, 64) == 0 &&
	    num_dec(buf_str(&text), 0, INT64_MAX, out);

	buf_release(&text);
	free(path);
	return good;
}

static void
measure_layer(
    struct stackstat *s, size_t i, int stackfd, const struct conf *conf)
{
	struct stackstat_layer *l = &s->layer[i];
	struct measure m = stackstat_budget(conf);
	int fd = stack_open_layer(stackfd, s->m.id[i]);

	if (fd != -1)
		measure_tree(fd, &m);
	io_drop(&fd);
	l->has_allocated = m.complete;
	l->allocated = m.allocated;
	l->has_bytes = noted_bytes(stackfd, s->m.id[i], &l->bytes);
	if (!l->has_bytes) {
		l->has_bytes = m.complete;
		l->bytes = m.bytes;
	}
}

static void
count_staging(struct stackstat *s, int stackfd)
{
	struct names v = NAMES_INIT;
	int fd = path_open(stackfd, "staging", O_RDONLY | O_DIRECTORY, 0);

	s->has_staging = (fd != -1 && names_read(fd, &v) == 0) ||
	    (fd == -1 && errno == ENOENT);
	for (size_t i = 0; i < v.n; i++) {
		size_t n = strlen(v.name[i]);

		/* A lock is beside what it guards, and is none itself. */
		s->staging += n < 5 || strcmp(v.name[i] + n - 5, ".lock") != 0;
	}
	names_release(&v);
	io_drop(&fd);
}

int
stackstat_read(struct stackstat *s, const struct conf *conf, struct buf *why)
{
	int stackfd = store_open_stack();
	const char *trouble = NULL;

	buf_cut(why, 0);
	if (manifest_read(stackfd, STACK_MANIFEST, &s->m, &trouble) == -1) {
		int err = errno;

		buf_addf(why, "manifest.json: %s",
		    trouble ? trouble : strerror(err));
		io_drop(&stackfd);
		errno = err;
		return -1;
	}
	s->layer = xcalloc(s->m.n + 1, sizeof *s->layer);
	count_leases(s, stackfd);
	for (size_t i = 0; i < s->m.n; i++)
		measure_layer(s, i, stackfd, conf);
	s->storage = stackstat_budget(conf);
	measure_tree(stackfd, &s->storage);
	count_staging(s, stackfd);
	io_drop(&stackfd);
	return 0;
}

void
stackstat_release(struct stackstat *s)
{
	for (size_t i = 0; i < s->nsessions; i++)
		manifest_release(&s->session[i].lease);
	free(s->session);
	free(s->layer);
	manifest_release(&s->m);
	*s = (struct stackstat)STACKSTAT_INIT;
}

bool
stackstat_bytes(const struct stackstat *s, uint64_t *sum)
{
	*sum = 0;
	for (size_t i = 0; i < s->m.n; i++) {
		if (!s->layer[i].has_bytes)
			return false;
		*sum += s->layer[i].bytes;
	}
	return true;
}

bool
stackstat_allocated(const struct stackstat *s, uint64_t *sum)
{
	*sum = 0;
	for (size_t i = 0; i < s->m.n; i++) {
		if (!s->layer[i].has_allocated)
			return false;
		*sum += s->layer[i].allocated;
	}
	return true;
}
