/* SPDX-License-Identifier: MIT */
#include "boxmake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"
#include "io.h"
#include "json.h"
#include "lock.h"
#include "mem.h"
#include "out.h"
#include "path.h"
#include "place.h"
#include "stage.h"

#define BOXES_LOCK BOX_DIR ".lock"

void
box_new_id(char id[ID_MAX + 1])
{
	char uuid[37];

	call_uuid(uuid);
	snprintf(id, ID_MAX + 1, "eos-%s", uuid);
}

void
box_out_base(struct buf *b, const char *source, const char *root_hash)
{
	out_key(b, "shared_base");
	buf_addc(b, '{');
	out_str(b, "source", source);
	out_str(b, "target", "/eos/layer-stack/base");
	out_str(b, "root_hash", root_hash);
	out_bool(b, "readonly", true);
	buf_addc(b, '}');
}

void
box_format(const struct box_new *n, struct buf *b)
{
	buf_addc(b, '{');
	out_str(b, "id", n->id);
	out_str(b, "workspace_root", n->workspace);
	out_str(b, "state", n->state);
	out_num(b, "activity_revision", 0);
	out_null(b, "daemon");
	out_null(b, "daemon_http");
	if (n->root_hash)
		box_out_base(b, n->source, n->root_hash);
	else
		out_null(b, "shared_base");
	if (n->profile)
		profile_out(b, n->profile);
	else
		out_null(b, "resource_profile");
	if (n->provider) {
		out_str(b, "provider", n->provider);
		out_str(b, "image", n->image);
	}
	buf_adds(b, "}\n");
}

/* What the killed left. */
static int
sweep(int boxesfd)
{
	struct names v = NAMES_INIT;
	int rc = names_read(boxesfd, &v);

	for (size_t i = 0; i < v.n && rc == 0; i++)
		if (*v.name[i] == '.')
			rc = path_rm_tree(boxesfd, v.name[i]);
	names_release(&v);
	return rc;
}

int
box_lock_all(const char *state, int *lock)
{
	int fd = place_make(state, BOX_DIR), top = -1;

	*lock = -1;
	if (fd != -1)
		top = place_open(state, "");
	if (top != -1)
		*lock = lock_take(top, BOXES_LOCK, true, LOCK_FOREVER);
	io_drop(&top);
	if (*lock == -1 || sweep(fd) == -1) {
		io_drop(lock);
		io_drop(&fd);
	}
	return fd;
}

static int
write_all(int dirfd, const struct box_new *n, const char *store, int *busy)
{
	struct buf record = BUF_INIT;
	int rc = 0, envfd = -1;

	if (busy) {
		*busy = lock_create(dirfd, BOX_BUSY);
		rc = *busy == -1 ? -1 : mkdirat(dirfd, "log", 0700);
	}
	if (rc == 0)
		rc = mkdirat(dirfd, "env", 0700);
	if (rc == 0 && store) {
		envfd = path_open(dirfd, "env", O_RDONLY | O_DIRECTORY, 0);
		rc = envfd == -1
		    ? -1
		    : stage_file(envfd, "SB_STORE", store, strlen(store), 0600);
		io_drop(&envfd);
	}
	box_format(n, &record);
	if (rc == 0)
		rc = stage_file(
		    dirfd, BOX_RECORD, record.data, record.len, 0600);
	buf_release(&record);
	return rc;
}

int
box_make(int boxesfd, const struct box_new *n, const char *store, int *busy)
{
	char *aside = xasprintf(".%s", n->id);
	int dirfd = -1, rc, err;

	rc = mkdirat(boxesfd, aside, 0700);
	if (rc == 0) {
		dirfd = path_open(boxesfd, aside, O_RDONLY | O_DIRECTORY, 0);
		rc = dirfd == -1 ? -1 : write_all(dirfd, n, store, busy);
		io_drop(&dirfd);
		/* Onto one that is there, this fails: it is not empty. */
		if (rc == 0)
			rc = renameat(boxesfd, aside, boxesfd, n->id);
	}
	err = errno == ENOTEMPTY ? EEXIST : errno;
	if (rc == -1) {
		path_rm_tree(boxesfd, aside);
		if (busy)
			io_drop(busy);
	}
	free(aside);
	errno = err;
	return rc == 0 ? stage_sync_dir(boxesfd, ".") : -1;
}

int
box_set(struct box *box, const char *state, const struct buf *base)
{
	struct buf b = BUF_INIT, key = BUF_INIT;
	struct span v;
	size_t pos = 0;
	int rc;

	buf_addc(&b, '{');
	while (json_pair(box->record, &pos, &key, &v)) {
		if (strcmp(buf_str(&key), "state") == 0) {
			out_str(&b, "state", state);
		} else if (base && strcmp(buf_str(&key), "shared_base") == 0) {
			buf_addc(&b, ',');
			buf_add(&b, base->data, base->len);
		} else {
			if (b.data[b.len - 1] != '{')
				buf_addc(&b, ',');
			out_string(&b, buf_str(&key), key.len);
			buf_addc(&b, ':');
			buf_add(&b, v.p, v.n);
		}
	}
	buf_adds(&b, "}\n");
	rc = stage_file(box->dirfd, BOX_RECORD, b.data, b.len, 0600);
	buf_release(&key);
	buf_release(&b);
	return rc;
}

static int
remove_content(int dirfd)
{
	struct names v = NAMES_INIT;
	int rc = names_read(dirfd, &v);

	for (size_t i = 0; i < v.n && rc == 0; i++)
		if (strcmp(v.name[i], BOX_RECORD) != 0 &&
		    strcmp(v.name[i], BOX_BUSY) != 0)
			rc = path_rm_tree(dirfd, v.name[i]);
	names_release(&v);
	return rc;
}

int
box_remove(const char *state, const char *id)
{
	char *rel = xasprintf(BOX_DIR "/%s", id), *aside = xasprintf(".%s", id);
	int fd = place_open(state, rel), lock = -1, rc = -1, err;

	if (fd != -1)
		rc = remove_content(fd);
	io_drop(&fd);
	if (rc == 0) {
		fd = box_lock_all(state, &lock);
		rc = fd == -1 ? -1 : renameat(fd, id, fd, aside);
		if (rc == 0)
			rc = path_rm_tree(fd, aside);
	}
	err = errno;
	io_drop(&fd);
	io_drop(&lock);
	free(rel);
	free(aside);
	errno = err;
	return rc;
}
