/* SPDX-License-Identifier: MIT */
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "json.h"
#include "out.h"
#include "stage.h"

enum {
	WINDOW = 1 << 16 /* bytes read at once, more for longer lines */
};

static const char *const ours[] = { "version", "cause", "layer" };

/* ---- one line ---- */

int
history_format(struct buf *out, uint64_t version, const char *cause,
    const char *layer, const struct buf *meta)
{
	struct span all = { NULL, 0 };
	const char *end;
	size_t from;

	if (meta) {
		all = (struct span){ buf_str(meta), meta->len };
		if (!json_is_valid(all.p, all.n, NULL, NULL))
			goto bad;
		while (strchr(" \t\r\n", *all.p))
			all.p++;
		if (*all.p++ != '{')
			goto bad;
		end = strrchr(all.p, '}');
		all.n = (size_t)(end - all.p);
		for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
			if (json_member(
				(struct span){ buf_str(meta), meta->len },
				ours[i])
				.p)
				goto bad;
	}
	buf_addc(out, '{');
	out_num(out, ours[0], version);
	out_str(out, ours[1], cause);
	out_str(out, ours[2], layer);
	/* In a JSON text a newline is a blank between tokens, nothing else. */
	while (all.n > 0 && strchr(" \t\r\n", *all.p)) {
		all.p++;
		all.n--;
	}
	from = out->len;
	if (all.n > 0) {
		buf_addc(out, ',');
		buf_add(out, all.p, all.n);
	}
	for (char *at = out->data + from; at < out->data + out->len; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	buf_adds(out, "}\n");
	return 0;
bad:
	errno = EINVAL;
	return -1;
}

static bool
parse(struct history *h)
{
	struct span all = { h->p, h->n }, layer;
	struct buf id = BUF_INIT;
	bool good;

	if (!json_is_valid(h->p, h->n, NULL, NULL) ||
	    !json_uint(json_member(all, ours[0]), &h->version))
		return false;
	layer = json_member(all, ours[2]);
	good = json_string(layer, &id) && strlen(buf_str(&id)) == id.len &&
	    id_is_valid(buf_str(&id));
	if (good)
		memcpy(h->layer, id.data, id.len + 1);
	buf_release(&id);
	return good;
}

/* ---- reading ---- */

static int
open_file(int stackfd, int flags, struct history *h)
{
	struct stat st;

	*h = (struct history)HISTORY_INIT;
	h->fd = path_open(stackfd, HISTORY_FILE, flags | O_NONBLOCK, 0600);
	if (h->fd == -1 || fstat(h->fd, &st) == -1)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	h->at = h->end = h->window = st.st_size;
	return 1;
}

int
history_open(int stackfd, struct history *h)
{
	int rc = open_file(stackfd, O_RDONLY, h);

	return rc == -1 && errno == ENOENT ? 0 : rc;
}

void
history_close(struct history *h)
{
	io_drop(&h->fd);
	buf_release(&h->bytes);
	*h = (struct history)HISTORY_INIT;
}

/* Makes the bytes those before h->end, size of them or all that there are. */
static int
read_window(struct history *h, off_t size)
{
	size_t want, got = 0;

	h->window = h->end > size ? h->end - size : 0;
	want = (size_t)(h->end - h->window);
	buf_cut(&h->bytes, 0);
	buf_reserve(&h->bytes, want);
	while (got < want) {
		ssize_t r = pread(h->fd, h->bytes.data + got, want - got,
		    h->window + (off_t)got);

		if (r == -1 && errno == EINTR)
			continue;
		if (r == -1)
			return -1;
		if (r == 0) {
			errno = ESTALE;
			return -1;
		}
		got += (size_t)r;
	}
	buf_cut(&h->bytes, want);
	return 0;
}

enum history_kind
history_prev(struct history *h)
{
	bool torn = false;
	const char *lf = NULL;
	off_t size = WINDOW;
	size_t len;

	h->end = h->at;
	if (h->end == 0)
		return HISTORY_START;
	for (;;) {
		/* Whatever is before the end but for the newline itself. */
		if (h->window < h->end) {
			len = (size_t)(h->end - h->window);
			torn = h->bytes.data[len - 1] != '\n';
			len -= !torn;
			lf = memrchr(h->bytes.data, '\n', len);
			if (lf || h->window == 0)
				break;
			size = 2 * (h->end - h->window);
			if (size < WINDOW)
				size = WINDOW;
		}
		if (read_window(h, size) == -1)
			return HISTORY_ERROR;
	}
	h->p = lf ? lf + 1 : h->bytes.data;
	h->n = (size_t)(h->bytes.data + len - h->p);
	h->at = h->window + (h->p - h->bytes.data);
	if (torn)
		return HISTORY_TORN;
	return parse(h) ? HISTORY_LINE : HISTORY_BAD;
}

/* ---- writing ---- */

/*
 * Where the committed part ends. A line of a newer version than the manifest's
 * was never committed, nor was what follows it, or follows the manifest's own
 * line; nor is a line committed before its newline is there.
 */
static int
committed_end(struct history *h, uint64_t manifest, off_t *end)
{
	enum history_kind kind;

	*end = h->end;
	for (;;) {
		kind = history_prev(h);
		if (kind == HISTORY_ERROR)
			return -1;
		if (kind == HISTORY_START)
			return 0;
		if (kind == HISTORY_LINE && h->version <= manifest) {
			if (h->version == manifest)
				*end = h->end;
			return 0;
		}
		if (kind != HISTORY_BAD)
			*end = h->at;
	}
}

static int
open_or_make(int stackfd, struct history *h)
{
	int rc = open_file(stackfd, O_RDWR, h);

	if (rc != -1 || errno != ENOENT)
		return rc;
	/* Stores that are older than their history have no place for it. */
	if (mkdirat(stackfd, "history", 0700) == -1 && errno != EEXIST)
		return -1;
	return open_file(stackfd, O_RDWR | O_CREAT, h);
}

int
history_append(int stackfd, uint64_t manifest, const struct buf *line)
{
	struct history h;
	off_t end, size;
	int rc = -1, err;

	if (open_or_make(stackfd, &h) == -1)
		goto out;
	size = h.end;
	if (committed_end(&h, manifest, &end) == -1 ||
	    (end < size && ftruncate(h.fd, end) == -1) ||
	    lseek(h.fd, end, SEEK_SET) == -1)
		goto out;
	rc = io_write_all(h.fd, line->data, line->len);
	if (rc == 0)
		rc = fsync(h.fd);
	/*
	 * The first line: the file's own name may be new, or its maker have
	 * been killed before he synced it.
	 */
	if (rc == 0 && end == 0 &&
	    (stage_sync_dir(stackfd, "history") == -1 ||
		stage_sync_dir(stackfd, ".") == -1))
		rc = -1;
	/* Readers would report half a line as torn. */
	if (rc == -1) {
		err = errno;
		if (ftruncate(h.fd, end) == -1)
			rc = -1; /* the next one cuts it */
		errno = err;
	}
out:
	history_close(&h);
	return rc;
}
