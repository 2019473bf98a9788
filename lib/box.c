/* SPDX-License-Identifier: MIT */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dial.h"
#include "io.h"
#include "lock.h"
#include "mem.h"
#include "out.h"
#include "place.h"

bool
box_id_is_valid(const char *s)
{
	return *s &&
	    s[strspn(s,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789._-")] == '\0';
}

static bool
not_found(struct failure *f, const char *id)
{
	out_str(&f->details, "reason", "sandbox_not_found");
	return failure_set(f, KIND_INVALID, "sandbox not found: %s", id);
}

static bool
damaged(struct failure *f, const char *id, const char *why)
{
	return failure_set(f, KIND_INTERNAL,
	    "sandbox registry failed: record of %s: %s", id, why);
}

/* False: it says nothing of an address, or something else than one. */
static void
take_address(struct box *box)
{
	struct span daemon = json_member(box->record, "daemon");
	uint64_t port;

	if (!json_uint(json_member(daemon, "port"), &port) || port == 0 ||
	    port > UINT16_MAX ||
	    !json_string(json_member(daemon, "host"), &box->host))
		return;
	box->port = (uint16_t)port;
}

/* What the locks say about the state. -1 with errno. */
static int
take_state(struct box *box)
{
	const char *was = buf_str(&box->recorded), *is = was;
	int held = 1;

	if (box->provider.len == 0)
		goto out;
	if (strcmp(was, STATE_CREATING) == 0 ||
	    strcmp(was, STATE_STOPPING) == 0) {
		held = lock_is_held(box->dirfd, BOX_BUSY);
		is = STATE_FAILED;
	} else if (strcmp(was, STATE_READY) == 0) {
		held = lock_is_held(box->dirfd, BOX_LOCK);
		is = STATE_STOPPED;
	}
out:
	buf_adds(&box->state, held == 0 ? is : was);
	return held == -1 ? -1 : 0;
}

bool
box_read(const char *state, const char *id, struct box *box, struct failure *f)
{
	const char *why = NULL;
	char *rel;

	if (!box_id_is_valid(id))
		return failure_set(
		    f, KIND_INVALID, "invalid sandbox id: %s", id);
	if (!id_is_valid(id))
		return not_found(f, id);
	memcpy(box->id, id, strlen(id) + 1);
	rel = xasprintf(BOX_DIR "/%s", id);
	box->dirfd = place_open(state, rel);
	free(rel);
	if (box->dirfd == -1 ||
	    io_read_file_at(
		box->dirfd, BOX_RECORD, &box->text, BOX_RECORD_MAX) == -1)
		return errno == ENOENT || errno == ENOTDIR
		    ? not_found(f, id)
		    : damaged(f, id, strerror(errno));
	while (box->text.len > 0 && box->text.data[box->text.len - 1] == '\n')
		buf_cut(&box->text, box->text.len - 1);
	box->record = (struct span){ buf_str(&box->text), box->text.len };
	if (!json_is_valid(box->record.p, box->record.n, &why, NULL))
		return damaged(f, id, why);
	if (!json_string(json_member(box->record, "state"), &box->recorded))
		return damaged(f, id, "it has no state");
	json_string(json_member(box->record, "provider"), &box->provider);
	if (take_state(box) == -1)
		return damaged(f, id, strerror(errno));
	take_address(box);
	return true;
}

void
box_release(struct box *box)
{
	io_drop(&box->dirfd);
	buf_release(&box->text);
	buf_release(&box->recorded);
	buf_release(&box->state);
	buf_release(&box->provider);
	buf_release(&box->host);
	*box = (struct box)BOX_INIT;
}

static int
open_run(const struct box *box, const char *run)
{
	char *rel = xasprintf("box/%s", box->id);
	int fd = place_open(run, rel), err = errno;

	free(rel);
	errno = err;
	return fd;
}

bool
box_is(const struct box *box, const char *state)
{
	return strcmp(buf_str(&box->state), state) == 0;
}

bool
box_cannot(const struct box *box, const char *to, struct failure *f)
{
	return failure_set(f, KIND_INVALID,
	    "invalid state transition for %s: %s -> %s", box->id,
	    buf_str(&box->state), to);
}

bool
box_is_ready(const struct box *box, const char *run, struct failure *f)
{
	struct stat st;
	bool there = box->host.len > 0;
	int fd;

	if (!box_is(box, STATE_READY)) {
		out_str(&f->details, "reason", "sandbox_not_ready");
		box_cannot(box, STATE_READY, f);
		if (box->provider.len > 0 && box_is(box, STATE_STOPPED))
			buf_adds(&f->message,
			    ": it is stopped; start_sandbox, or sb up in its "
			    "workspace, starts it");
		return false;
	}
	if (!there) {
		fd = open_run(box, run);
		there = fd != -1 && path_lstat(fd, BOX_SOCKET, &st) == 0;
		io_drop(&fd);
	}
	if (there)
		return true;
	out_str(&f->details, "reason", "sandbox_unavailable");
	return failure_set(
	    f, KIND_INVALID, "sandbox daemon unavailable for %s", box->id);
}

int
box_dial(const struct box *box, const char *run, int ms)
{
	int dirfd, fd, err;

	if (box->host.len > 0)
		return dial_tcp(buf_str(&box->host), box->port, ms);
	dirfd = open_run(box, run);
	if (dirfd == -1)
		return -1;
	fd = dial_unix(dirfd, BOX_SOCKET, ms);
	err = errno;
	io_drop(&dirfd);
	errno = err;
	return fd;
}

int
box_token(const struct box *box, struct buf *token)
{
	if (io_read_file_at(box->dirfd, "token", token, 4096) == -1)
		return errno == ENOENT ? 0 : -1;
	while (token->len > 0 && token->data[token->len - 1] == '\n')
		buf_cut(token, token->len - 1);
	return 0;
}

void
box_count(const struct box *box)
{
	/* One byte, appended: no lock, and never a count lost. */
	int fd = openat(box->dirfd, "activity",
	    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd == -1)
		return;
	/* That a change is not counted makes no error of it. */
	if (io_write_all(fd, "+", 1) == -1)
		errno = 0;
	io_drop(&fd);
}

/* Nothing is known of a box that has not run yet. */
static void
print_mounts(const struct box *box, struct buf *out)
{
	struct buf text = BUF_INIT;
	char *p, *save = NULL;

	out_key(out, "readonly_mounts");
	buf_addc(out, '[');
	if (io_read_file_at(box->dirfd, BOX_MOUNTS, &text, BOX_MOUNTS_MAX) ==
		0 &&
	    text.len > 0)
		for (p = strtok_r(text.data, "\n", &save); p;
		    p = strtok_r(NULL, "\n", &save)) {
			buf_adds(out, p == text.data ? "{" : ",{");
			out_path(out, "path", p);
			buf_addc(out, '}');
		}
	buf_addc(out, ']');
	buf_release(&text);
}

void
box_print(const struct box *box, struct buf *out)
{
	struct buf key = BUF_INIT;
	struct stat st;
	struct span v;
	size_t pos = 0;
	uint64_t count =
	    path_lstat(box->dirfd, "activity", &st) == 0 && st.st_size > 0
	    ? (uint64_t)st.st_size
	    : 0;

	buf_addc(out, '{');
	while (json_pair(box->record, &pos, &key, &v)) {
		if (out->data[out->len - 1] != '{')
			buf_addc(out, ',');
		out_string(out, buf_str(&key), key.len);
		buf_addc(out, ':');
		if (strcmp(buf_str(&key), "activity_revision") == 0)
			buf_addf(out, "%" PRIu64, count);
		else if (strcmp(buf_str(&key), "state") == 0)
			out_string(out, buf_str(&box->state), box->state.len);
		else
			buf_add(out, v.p, v.n);
	}
	if (box->provider.len > 0)
		print_mounts(box, out);
	buf_addc(out, '}');
	buf_release(&key);
}

int
box_list(const char *state, struct names *out)
{
	struct names all = NAMES_INIT;
	int fd = place_open(state, BOX_DIR), rc = 0;

	if (fd == -1)
		return errno == ENOENT ? 0 : -1;
	rc = names_read(fd, &all);
	for (size_t i = 0; i < all.n; i++)
		if (id_is_valid(all.name[i]))
			names_add(out, all.name[i]);
	names_release(&all);
	io_drop(&fd);
	return rc;
}
