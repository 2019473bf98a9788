/* SPDX-License-Identifier: MIT */
#include "stack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "json.h"
#include "lock.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "stage.h"

enum { MANIFEST_MAX = 64 << 20 };

void
manifest_add(struct manifest *m, const char *id, const char *path)
{
	if (m->n == m->cap) {
		m->id = xreallocarray(m->id, m->cap ? m->cap * 2 : 16,
		    sizeof *m->id);
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
	v = json_member(all, "layers");
	if (!v.p || *v.p != '[') {
		*why = "it has no list of layers";
		goto bad;
	}
	for (struct span e; json_element(v, &pos, &e);)
		if (parse_layer(e, m, why) == -1)
			goto bad;
	return 0;
bad:
	manifest_release(m);
	errno = EINVAL;
	return -1;
}

int
manifest_read(int dirfd, const char *name, struct manifest *m,
    const char **why)
{
	struct buf b = BUF_INIT;
	int rc;

	*m = (struct manifest)MANIFEST_INIT;
	*why = NULL;
	if (io_read_file_at(dirfd, name, &b, MANIFEST_MAX) == -1) {
		buf_release(&b);
		return errno == ENOENT ? 0 : -1;
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
		buf_adds(out, i ? ",\n    {\n      \"layer_id\": " :
				  "\n    {\n      \"layer_id\": ");
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

	if (id[0] == 'B' &&
	    fstatat(stackfd, "base", &st, AT_SYMLINK_NOFOLLOW) == 0)
		buf_addf(out, "base/%s", id);
	else
		buf_addf(out, "layers/%s", id);
}

/*
 * The only link that is followed: base, once. Whoever could replace it, or
 * what it names, could show sessions another base: so both must be ours or
 * root's.
 */
static int
open_base(int stackfd)
{
	struct stat link, dir;
	int fd;

	if (fstatat(stackfd, "base", &link, AT_SYMLINK_NOFOLLOW) == -1)
		return -1;
	fd = openat(stackfd, "base", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || fstat(fd, &dir) == -1)
		return -1;
	if ((link.st_uid != geteuid() && link.st_uid != 0) ||
	    (dir.st_uid != geteuid() && dir.st_uid != 0)) {
		io_drop(&fd);
		errno = EPERM;
		return -1;
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

static int
use_manifest(int dirfd, const char *name, struct ids *used, const char **why)
{
	struct manifest m;

	if (manifest_read(dirfd, name, &m, why) == -1)
		return -1;
	for (size_t i = 0; i < m.n; i++)
		if (!ids_have(used, m.id[i]))
			ids_add(used, m.id[i]);
	manifest_release(&m);
	return 0;
}

static int
use_added(int dirfd, struct ids *used)
{
	struct buf b = BUF_INIT;
	char *at, *end;

	if (io_read_file_at(dirfd, "added", &b, MANIFEST_MAX) == -1) {
		buf_release(&b);
		return errno == ENOENT ? 0 : -1;
	}
	for (at = b.data; at && (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		if (id_is_valid(at))
			ids_add(used, at);
	}
	buf_release(&b);
	return 0;
}

static int
use_lease(int dirfd, struct ids *used, bool session, const char **why)
{
	int held;

	if (session)
		return use_manifest(dirfd, "lease", used, why);
	held = lock_is_held(dirfd, "lock");
	if (held <= 0)
		return held;
	if (use_manifest(dirfd, "manifest", used, why) == -1)
		return -1;
	return use_added(dirfd, used);
}

static int
use_leases(int storefd, const char *where, bool session, struct ids *used,
    const char **why)
{
	struct names v = NAMES_INIT;
	int fd, one = -1, rc = -1;

	fd = path_open(storefd, where, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -1)
		return errno == ENOENT ? 0 : -1;
	if (names_read(fd, &v) == -1)
		goto out;
	for (size_t i = 0; i < v.n; i++) {
		one = path_open(fd, v.name[i], O_RDONLY | O_DIRECTORY, 0);
		if (one == -1 && errno != ENOENT && errno != ENOTDIR)
			goto out;
		if (one != -1 && use_lease(one, used, session, why) == -1)
			goto out;
		io_drop(&one);
	}
	rc = 0;
out:
	io_drop(&one);
	io_drop(&fd);
	names_release(&v);
	return rc;
}

int
stack_used(int storefd, struct ids *used, const char **why)
{
	int stackfd = path_open(storefd, "layer-stack",
	    O_RDONLY | O_DIRECTORY, 0);
	int rc;

	*why = NULL;
	if (stackfd == -1)
		return -1;
	rc = use_manifest(stackfd, STACK_MANIFEST, used, why);
	io_drop(&stackfd);
	if (rc == 0)
		rc = use_leases(storefd, "workspace", true, used, why);
	if (rc == 0)
		rc = use_leases(storefd, "layer-stack/leases", false, used,
		    why);
	return rc;
}

static int
open_lease(int stackfd, const char *name)
{
	char path[ID_MAX + 16] = "leases/";

	if (!id_is_valid(name)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(path + 7, name, strlen(name) + 1);
	return path_open(stackfd, path, O_RDONLY | O_DIRECTORY, 0);
}

int
stack_lease(int stackfd, const char *name, const struct manifest *m)
{
	struct buf text = BUF_INIT;
	int leases = -1, dir = -1, lock = -1, held;

	if (!id_is_valid(name)) {
		errno = EINVAL;
		return -1;
	}
	if (mkdirat(stackfd, "leases", 0700) == -1 && errno != EEXIST)
		return -1;
	leases = path_open(stackfd, "leases", O_RDONLY | O_DIRECTORY, 0);
	if (leases == -1)
		return -1;
	if (mkdirat(leases, name, 0700) == -1 && errno != EEXIST)
		goto out;
	dir = open_lease(stackfd, name);
	if (dir == -1)
		goto out;
	held = lock_is_held(dir, "lock");
	if (held != 0) {
		errno = held == 1 ? EEXIST : errno;
		goto out;
	}
	manifest_format(m, &text);
	unlinkat(dir, "added", 0);
	lock = lock_take(dir, "lock", true, 0);
	if (lock != -1 &&
	    stage_file_nosync(dir, "manifest", text.data, text.len, 0600) ==
		-1)
		io_drop(&lock);
out:
	buf_release(&text);
	io_drop(&dir);
	io_drop(&leases);
	return lock;
}

int
stack_lease_add(int stackfd, const char *name, const char *id)
{
	int dir = open_lease(stackfd, name), fd, rc = -1;
	char line[ID_MAX + 2];
	size_t n = strlen(id);

	if (dir == -1)
		return -1;
	fd = openat(dir, "added",
	    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd != -1) {
		memcpy(line, id, n);
		line[n] = '\n';
		rc = io_write_all(fd, line, n + 1);
	}
	io_drop(&fd);
	io_drop(&dir);
	return rc;
}

int
stack_lease_drop(int stackfd, const char *name)
{
	int leases = path_open(stackfd, "leases", O_RDONLY | O_DIRECTORY, 0);
	int rc;

	if (leases == -1)
		return -1;
	rc = path_rm_tree(leases, name);
	io_drop(&leases);
	return rc;
}
