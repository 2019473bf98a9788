/* SPDX-License-Identifier: MIT */
#include "stack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "json.h"
#include "lock.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "stage.h"

enum {
	MANIFEST_MAX = 64 << 20
};

void
manifest_add(struct manifest *m, const char *id, const char *path)
{
	if (m->n == m->cap) {
		m->id = xreallocarray(
		    m->id, m->cap ? m->cap * 2 : 16, sizeof *m->id);
		m->path = xgrow(m->path, &m->cap, sizeof *m->path);
	}
	m->id[m->n] = xstrdup(id);
	m->path[m->n] = path ? xstrdup(path) : xasprintf("layers/%s", id);
	m->n++;
}

void
manifest_release(struct manifest *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->id[i]);
		free(m->path[i]);
	}
	free(m->id);
	free(m->path);
	*m = (struct manifest)MANIFEST_INIT;
}

bool
manifest_has(const struct manifest *m, const char *id)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->id[i], id) == 0)
			return true;
	return false;
}

bool
manifest_equal_layers(const struct manifest *a, const struct manifest *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->id[i], b->id[i]) != 0 ||
		    strcmp(a->path[i], b->path[i]) != 0)
			return false;
	return true;
}

/* Relative, not empty, no "..", no NUL: what a layer path may be. */
static bool
layer_path_is_good(const struct buf *b)
{
	const char *p = buf_str(b);

	if (b->len == 0 || strlen(p) != b->len || *p == '/')
		return false;
	for (; p; p = strchr(p, '/')) {
		if (*p == '/')
			p++;
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
			return false;
	}
	return true;
}

static int
parse_layer(struct span v, struct manifest *m, const char **why)
{
	struct buf id = BUF_INIT, path = BUF_INIT;
	int rc = -1;

	if (!json_string(json_member(v, "layer_id"), &id) ||
	    strlen(buf_str(&id)) != id.len || !id_is_valid(buf_str(&id)))
		*why = "a layer has no usable layer_id";
	else if (!json_string(json_member(v, "path"), &path) ||
	    !layer_path_is_good(&path))
		*why = "a layer path is not a relative path without ..";
	else if (m->n >= STACK_LAYERS_MAX)
		*why = "too many layers";
	else
		rc = 0;
	if (rc == 0)
		manifest_add(m, buf_str(&id), buf_str(&path));
	buf_release(&id);
	buf_release(&path);
	return rc;
}

static int
by_id(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool
names_one_twice(const struct manifest *m)
{
	char **id = xreallocarray(NULL, m->n ? m->n : 1, sizeof *id);
	bool twice = false;

	for (size_t i = 0; i < m->n; i++)
		id[i] = m->id[i];
	qsort(id, m->n, sizeof *id, by_id);
	for (size_t i = 1; i < m->n; i++)
		if (strcmp(id[i - 1], id[i]) == 0)
			twice = true;
	free(id);
	return twice;
}

int
manifest_parse(const char *p, size_t n, struct manifest *m, const char **why)
{
	struct span all = { p, n }, v;
	uint64_t schema = 1;
	size_t pos = 0;

	*m = (struct manifest)MANIFEST_INIT;
	if (!json_is_valid(p, n, why, NULL))
		goto bad;
	v = json_member(all, "schema_version");
	if (v.p && (!json_uint(v, &schema) || schema != 1)) {
		*why = "its schema_version is not 1";
		goto bad;
	}
	if (!json_uint(json_member(all, "version"), &m->version)) {
		*why = "it has no version";
		goto bad;
	}
	if (m->version > STACK_VERSION_MAX) {
		*why = "its version is too large";
		goto bad;
	}
	v = json_member(all, "layers");
	if (!v.p || *v.p != '[') {
		*why = "it has no list of layers";
		goto bad;
	}
	for (struct span e; json_element(v, &pos, &e);)
		if (parse_layer(e, m, why) == -1)
			goto bad;
	if (names_one_twice(m)) {
		*why = "it names a layer twice";
		goto bad;
	}
	return 0;
bad:
	manifest_release(m);
	errno = EINVAL;
	return -1;
}

int
manifest_read(int dirfd, const char *name, struct manifest *m, const char **why)
{
	struct buf b = BUF_INIT;
	struct stat st;
	int rc;

	*m = (struct manifest)MANIFEST_INIT;
	*why = NULL;
	if (io_read_file_at(dirfd, name, &b, MANIFEST_MAX) == -1) {
		buf_release(&b);
		if (errno != ENOENT)
			return -1;
		/* Written last of all, it promises a manifest. */
		if (path_lstat(dirfd, STACK_BINDING, &st) == -1)
			return errno == ENOENT ? 0 : -1;
		*why = "it is missing, but the store has a base";
		errno = EINVAL;
		return -1;
	}
	rc = manifest_parse(buf_str(&b), b.len, m, why);
	buf_release(&b);
	return rc;
}

void
manifest_format(const struct manifest *m, struct buf *out)
{
	buf_adds(out, "{\n  \"layers\": [");
	for (size_t i = 0; i < m->n; i++) {
		buf_adds(out,
		    i ? ",\n    {\n      \"layer_id\": "
		      : "\n    {\n      \"layer_id\": ");
		out_string(out, m->id[i], strlen(m->id[i]));
		buf_adds(out, ",\n      \"path\": ");
		out_string(out, m->path[i], strlen(m->path[i]));
		buf_adds(out, "\n    }");
	}
	buf_addf(out,
	    "%s],\n  \"schema_version\": 1,\n  \"version\": %" PRIu64 "\n}",
	    m->n ? "\n  " : "", m->version);
}

void
manifest_root_hash(const struct manifest *m, char hex[HASH_HEX + 1])
{
	struct buf b = BUF_INIT;
	struct hash h;

	buf_adds(&b, "{\"layers\":[");
	for (size_t i = 0; i < m->n; i++) {
		buf_adds(&b, i ? ",{\"layer_id\":" : "{\"layer_id\":");
		out_string_ascii(&b, m->id[i], strlen(m->id[i]));
		buf_adds(&b, ",\"path\":");
		out_string_ascii(&b, m->path[i], strlen(m->path[i]));
		buf_addc(&b, '}');
	}
	buf_adds(&b, "]}");
	hash_init(&h);
	hash_add(&h, b.data, b.len);
	hash_hex(&h, hex);
	buf_release(&b);
}

void
stack_layer_path(int stackfd, const char *id, struct buf *out)
{
	struct stat st;

	/* What cannot be asked is there: the opening says why it fails. */
	if (id[0] == 'B' &&
	    (fstatat(stackfd, "base", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
		errno != ENOENT))
		buf_addf(out, "base/%s", id);
	else
		buf_addf(out, "layers/%s", id);
}

static bool
is_trusted(const struct stat *st)
{
	return st->st_uid == geteuid() || st->st_uid == 0;
}

/*
 * The only link that is followed: base, once. Whoever could replace it, or
 * what it names, could show sessions another base: so both must be ours or
 * root's. Inside a box base is a directory that was bound there.
 */
static int
open_base(int stackfd)
{
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	char target[PATH_BYTES_MAX + 1];
	struct stat st;
	ssize_t n;
	int link, fd;

	link = openat(stackfd, "base", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (link == -1 || fstat(link, &st) == -1 || !S_ISLNK(st.st_mode))
		return link;
	n = readlinkat(link, "", target, sizeof target);
	io_drop(&link);
	if (n == -1)
		return -1;
	if (n == sizeof target) {
		errno = ENAMETOOLONG;
		return -1;
	}
	target[n] = '\0';
	if (!is_trusted(&st)) {
		errno = EPERM;
		return -1;
	}
	fd = openat(stackfd, target, O_RDONLY | flags);
	if (fd == -1)
		return -1;
	if (fstat(fd, &st) == -1 || !is_trusted(&st)) {
		io_drop(&fd);
		errno = EPERM;
	}
	return fd;
}

int
stack_open_layer(int stackfd, const char *id)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct buf path = BUF_INIT;
	int base, fd;

	if (!id_is_valid(id)) {
		errno = EINVAL;
		return -1;
	}
	stack_layer_path(stackfd, id, &path);
	if (path.data[0] != 'b') {
		fd = path_open(stackfd, path.data, flags, 0);
	} else {
		base = open_base(stackfd);
		fd = base == -1 ? -1 : openat(base, id, flags);
		io_drop(&base);
	}
	buf_release(&path);
	return fd;
}

/* ---- leases ---- */

/*
 * What could not be read, for people. One buffer: the caller ends with it.
 */
static char trouble[512];

__attribute__((format(printf, 2, 3))) static int
blame(const char **why, const char *fmt, ...)
{
	const char *reason = *why ? *why : strerror(errno);
	int err = errno;
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	vsnprintf(trouble, sizeof trouble, fmt, ap);
	va_end(ap);
	n = strlen(trouble);
	snprintf(trouble + n, sizeof trouble - n, ": %s", reason);
	*why = trouble;
	errno = err;
	return -1;
}

/* Unlike manifest_read, a missing file is a failure here. */
static int
use_manifest(int dirfd, const char *name, struct ids *used, const char **why)
{
	struct buf b = BUF_INIT;
	struct manifest m;
	int rc = -1;

	if (io_read_file_at(dirfd, name, &b, MANIFEST_MAX) == 0)
		rc = manifest_parse(buf_str(&b), b.len, &m, why);
	buf_release(&b);
	if (rc == -1)
		return -1;
	for (size_t i = 0; i < m.n; i++)
		if (!ids_have(used, m.id[i]))
			ids_add(used, m.id[i]);
	manifest_release(&m);
	return 0;
}

static int
use_head(int storefd, struct ids *used, const char **why)
{
	int fd = path_open(storefd, "layer-stack", O_RDONLY | O_DIRECTORY, 0);
	int rc = -1;

	if (fd == -1)
		return blame(why, "layer-stack");
	if (use_manifest(fd, STACK_MANIFEST, used, why) == 0)
		rc = 0;
	else if (errno == ENOENT)
		*why = STACK_MANIFEST " is missing";
	else
		blame(why, STACK_MANIFEST " is unreadable");
	io_drop(&fd);
	return rc;
}

static int
use_added(int dirfd, struct ids *used)
{
	struct buf b = BUF_INIT;
	int rc = io_read_file_at(dirfd, "added", &b, MANIFEST_MAX);
	char *end;

	if (rc == -1 && errno == ENOENT)
		rc = 0;
	for (char *at = b.data; rc == 0 && at; at = end ? end + 1 : NULL) {
		end = strchr(at, '\n');
		if (end)
			*end = '\0';
		if (id_is_valid(at) && !ids_have(used, at))
			ids_add(used, at);
	}
	buf_release(&b);
	return rc;
}

bool
stack_lease_never_was(int dirfd)
{
	struct stat st;

	return path_lstat(dirfd, "auto", &st) == 0 &&
	    (path_lstat(dirfd, "lease", &st) == 0 ? st.st_size == 0
						  : errno == ENOENT);
}

static int
use_session(int dirfd, const char *name, struct ids *used, const char **why)
{
	if (stack_lease_never_was(dirfd))
		return 0;
	if (use_manifest(dirfd, "lease", used, why) == 0)
		return 0;
	/*
	 * A dot name is a session that is being made, whose lease comes under
	 * the stack lock, or what is left of one that ended.
	 */
	if (errno == ENOENT && !id_is_valid(name))
		return 0;
	return blame(why, "workspace/%s/lease is unreadable", name);
}

static int
use_lease(int dirfd, const char *name, struct ids *used, const char **why)
{
	int held = lock_is_held(dirfd, "lock");

	if (held == 0)
		return 0;
	if (held == 1 && use_manifest(dirfd, "manifest", used, why) == 0 &&
	    use_added(dirfd, used) == 0)
		return 0;
	/* Half made, or half removed: not in force. See sb-store(5). */
	if (name[0] == '.' && errno == ENOENT)
		return 0;
	return blame(why, "leases/%s is unreadable", name);
}

static int
use_each(int storefd, const char *where,
    int (*use)(int, const char *, struct ids *, const char **),
    struct ids *used, const char **why)
{
	struct names v = NAMES_INIT;
	int fd, rc = 0;

	fd = path_open(storefd, where, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -1 && errno == ENOENT)
		return 0;
	if (fd == -1 || names_read(fd, &v) == -1)
		rc = blame(why, "%s", where);
	for (size_t i = 0; i < v.n && rc == 0; i++) {
		int one = openat(fd, v.name[i],
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (one != -1)
			rc = use(one, v.name[i], used, why);
		else if (errno != ENOENT && errno != ENOTDIR)
			rc = blame(why, "%s/%s", where, v.name[i]);
		io_drop(&one);
	}
	io_drop(&fd);
	names_release(&v);
	return rc;
}

int
stack_used(int storefd, struct ids *used, const char **why)
{
	*why = NULL;
	if (use_head(storefd, used, why) == -1 ||
	    use_each(storefd, "workspace", use_session, used, why) == -1)
		return -1;
	return use_each(storefd, "layer-stack/leases", use_lease, used, why);
}

static int
open_leases(int stackfd)
{
	return path_open(stackfd, "leases", O_RDONLY | O_DIRECTORY, 0);
}

/* A dot name of our own, also where process ids repeat (boxes). */
static int
aside_name(const char *name, char out[ID_MAX + 24])
{
	uint32_t r;

	if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
		return -1;
	snprintf(out, ID_MAX + 24, ".%s.%08" PRIx32, name, r);
	return 0;
}

/*
 * Gives leases/FROM the name NAME. A dead lease of that name goes; one that
 * came to life since it was looked at is put back.
 */
static int
take_name(int leases, const char *from, const char *name)
{
	char gone[ID_MAX + 24], lock[ID_MAX + 32];

	for (;;) {
		if (renameat2(leases, from, leases, name, RENAME_NOREPLACE) ==
		    0)
			return 0;
		if (errno != EEXIST || aside_name(name, gone) == -1)
			return -1;
		snprintf(lock, sizeof lock, "%s/lock", name);
		if (lock_is_held(leases, lock) == 1) {
			errno = EEXIST;
			return -1;
		}
		if (renameat(leases, name, leases, gone) == -1) {
			if (errno == ENOENT)
				continue;
			return -1;
		}
		snprintf(lock, sizeof lock, "%s/lock", gone);
		if (lock_is_held(leases, lock) == 1) {
			renameat2(leases, gone, leases, name, RENAME_NOREPLACE);
			errno = EEXIST;
			return -1;
		}
		if (path_rm_tree(leases, gone) == -1)
			return -1;
	}
}

int
stack_lease(int stackfd, const char *name, const struct manifest *m)
{
	struct buf text = BUF_INIT;
	char tmp[ID_MAX + 24];
	int leases = -1, dir = -1, lock = -1, err;

	if (!id_is_valid(name)) {
		errno = EINVAL;
		return -1;
	}
	if (aside_name(name, tmp) == -1 ||
	    (mkdirat(stackfd, "leases", 0700) == -1 && errno != EEXIST))
		return -1;
	leases = open_leases(stackfd);
	if (leases == -1 || mkdirat(leases, tmp, 0700) == -1)
		goto out;
	dir = path_open(leases, tmp, O_RDONLY | O_DIRECTORY, 0);
	manifest_format(m, &text);
	if (dir != -1)
		lock = lock_take(dir, "lock", true, 0);
	if (lock == -1 ||
	    stage_file_nosync(dir, "manifest", text.data, text.len, 0600) ==
		-1 ||
	    take_name(leases, tmp, name) == -1) {
		err = errno;
		path_rm_tree(leases, tmp);
		errno = err;
		io_drop(&lock);
	}
out:
	buf_release(&text);
	io_drop(&dir);
	io_drop(&leases);
	return lock;
}

int
stack_lease_is_held(int stackfd, const char *name)
{
	char path[ID_MAX + 24];

	if (!id_is_valid(name)) {
		errno = EINVAL;
		return -1;
	}
	snprintf(path, sizeof path, "leases/%s/lock", name);
	return lock_is_held(stackfd, path);
}

int
stack_lease_add(int stackfd, const char *name, const char *id)
{
	char path[ID_MAX + 24], line[ID_MAX + 2];
	struct stat st;
	int fd, rc = -1, n;

	if (!id_is_valid(name) || !id_is_valid(id)) {
		errno = EINVAL;
		return -1;
	}
	snprintf(path, sizeof path, "leases/%s/added", name);
	n = snprintf(line, sizeof line, "%s\n", id);
	fd = path_open(stackfd, path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd != -1 && fstat(fd, &st) == 0) {
		rc = io_write_all(fd, line, (size_t)n);
		/* Half a line would swallow the next one. */
		if (rc == -1 && ftruncate(fd, st.st_size) == -1)
			rc = -1;
		if (rc == 0) {
			rc = io_close(fd);
			fd = -1;
		}
	}
	io_drop(&fd);
	return rc;
}

int
stack_lease_drop(int stackfd, const char *name)
{
	int leases = open_leases(stackfd), rc = -1;
	char gone[ID_MAX + 24];

	if (leases == -1 || !id_is_valid(name) || aside_name(name, gone) == -1)
		goto out;
	/* Aside first: the name may be taken again while we delete. */
	rc = renameat(leases, name, leases, gone);
	if (rc == 0)
		rc = path_rm_tree(leases, gone);
	else if (errno == ENOENT)
		rc = 0;
out:
	io_drop(&leases);
	return rc;
}
