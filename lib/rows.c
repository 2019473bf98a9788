/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

enum {
	WAIT_MAX = 262144, /* bytes that wait to be written */
	WINDOW = 65536, /* bytes of text read at once */
	RECORDS = 512, /* records read at once */
	HOLE_ALIGN = 65536 /* no file system here has larger blocks */
};

size_t
rows_part(const char *text, size_t n)
{
	if (n <= ROW_BYTES_MAX)
		return n;
	for (n = ROW_BYTES_MAX; ((unsigned char)text[n] & 0xc0) == 0x80; n--)
		;
	return n;
}

static uint64_t
get_le(const unsigned char *p)
{
	uint64_t v = 0;
	int i;

	for (i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

/* --- Writing. --- */

int
rows_log_open(struct rows_log *l, int dirfd, uint64_t limit)
{
	int saved, flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

	memset(l, 0, sizeof *l);
	l->limit = limit;
	l->rows = openat(dirfd, ROWS_NAME, flags, 0600);
	if (l->rows == -1)
		return -1;
	l->index = openat(dirfd, ROWS_INDEX, flags, 0600);
	if (l->index == -1) {
		saved = errno;
		io_drop(&l->rows);
		(void)unlinkat(dirfd, ROWS_NAME, 0);
		errno = saved;
		return -1;
	}
	return 0;
}

/* Writes at an offset; returns how many bytes, fewer with errno. */
static size_t
write_at(int fd, const char *p, size_t n, uint64_t off)
{
	size_t at = 0;
	ssize_t k;

	while (at < n) {
		k = pwrite(fd, p + at, n - at, (off_t)(off + at));
		if (k == -1 && errno == EINTR)
			continue;
		if (k == 0)
			errno = EIO;
		if (k <= 0)
			return at;
		at += (size_t)k;
	}
	return n;
}

/* Record of a row in the file; 0 also when it cannot be read. */
static uint64_t
record(int index, uint64_t row)
{
	unsigned char b[8];
	ssize_t n;

	do
		n = pread(index, b, sizeof b, (off_t)(row * 8));
	while (n == -1 && errno == EINTR);
	return n == 8 ? get_le(b) : 0;
}

/*
 * What is written before a row, bytes of both files. For a row that was
 * dropped the next one that is there counts.
 */
static uint64_t
cost_before(const struct rows_log *l, uint64_t row, uint64_t *off)
{
	const struct rows_file f = { l->rows, l->index };
	int64_t next;
	uint64_t at;

	at = row < l->total ? record(l->index, row) : 0;
	if (row < l->total && (at & ROW_AT_PRESENT) == 0) {
		next = rows_next(&f, row);
		if (next >= 0 && (uint64_t)next < l->total)
			at = record(l->index, (uint64_t)next);
	}
	*off = (at & ROW_AT_PRESENT) != 0 ? at & ROW_AT_OFFSET : l->off;
	return *off + row * 8;
}

/* The first row from lo on, and before hi, before which cost is written. */
static uint64_t
row_at_cost(const struct rows_log *l, uint64_t lo, uint64_t hi, uint64_t cost)
{
	uint64_t mid, off;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (cost_before(l, mid, &off) < cost)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Blocks that a hole covers in part keep their place, so begins earlier, where
 * there is a hole already.
 */
static int
make_hole(int fd, uint64_t gap, uint64_t from, uint64_t to)
{
	from -= from % HOLE_ALIGN;
	if (from < gap)
		from = gap;
	if (from >= to)
		return 0;
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	    (off_t)from, (off_t)(to - from));
}

/* Drops the oldest rows behind the first quarter when the limit is passed. */
static void
make_room(struct rows_log *l)
{
	uint64_t all, cost, past, off, tail;

	all = l->off + l->total * 8;
	cost = all - (l->past_off - l->gap_off) - (l->past - l->gap) * 8;
	if (l->limit == 0 || cost <= l->limit || l->no_holes)
		return;
	if (l->past == 0) {
		l->gap = row_at_cost(l, 0, l->total - 1, l->limit / 4);
		(void)cost_before(l, l->gap, &l->gap_off);
		l->past = l->gap;
		l->past_off = l->gap_off;
	}
	/* An eighth more than needed, so as not to come here each time. */
	tail = l->limit - l->limit / 8;
	cost = l->gap_off + l->gap * 8;
	tail = tail > cost ? tail - cost : 0;
	past = row_at_cost(l, l->past, l->total - 1, all - tail);
	(void)cost_before(l, past, &off);
	if (past == l->past)
		return;
	/* The index first: a reader looks there after it has read text. */
	if (make_hole(l->index, l->gap * 8, l->past * 8, past * 8) == -1 ||
	    make_hole(l->rows, l->gap_off, l->past_off, off) == -1) {
		l->err = errno;
		l->no_holes = true;
		return;
	}
	l->lost += past - l->past;
	l->lost_bytes += off - l->past_off - (past - l->past);
	l->past = past;
	l->past_off = off;
}

/* The first n rows that wait are written, text bytes of them; the rest lost. */
static void
written(struct rows_log *l, uint64_t n, size_t text)
{
	uint64_t lost;

	lost = l->waiting - n;
	l->off += text;
	l->total += l->waiting;
	l->lost += lost;
	l->lost_bytes += l->text.len - text - lost;
	/* Zeros stand for what is lost, and cut off what is half a record. */
	if (lost > 0 &&
	    (ftruncate(l->index, (off_t)((l->total - lost) * 8)) == -1 ||
		ftruncate(l->index, (off_t)(l->total * 8)) == -1))
		l->err = errno;
	l->waiting = 0;
	buf_cut(&l->text, 0);
	buf_cut(&l->at, 0);
}

static void
write_waiting(struct rows_log *l)
{
	uint64_t n, used;
	size_t text;

	if (l->waiting == 0)
		return;
	used = l->off + l->total * 8 + l->text.len + l->at.len;
	if (l->no_holes && l->limit > 0 &&
	    used - (l->past_off - l->gap_off) - (l->past - l->gap) * 8 >
		l->limit) {
		l->err = EFBIG;
		written(l, 0, 0);
		return;
	}
	if (write_at(l->rows, l->text.data, l->text.len, l->off) <
	    l->text.len) {
		l->err = errno;
		written(l, 0, 0);
		return;
	}
	n = write_at(l->index, l->at.data, l->at.len, l->total * 8) / 8;
	if (n < l->waiting) {
		l->err = errno;
		text = (size_t)((get_le((unsigned char *)l->at.data + n * 8) &
				    ROW_AT_OFFSET) -
		    l->off);
		written(l, n, text);
		return;
	}
	written(l, n, l->text.len);
	make_room(l);
}

void
rows_log_add(const char *text, size_t n, unsigned flags, void *log)
{
	struct rows_log *l = log;
	uint64_t at;
	char b[8];
	int i;

	at = (l->off + l->text.len) | ROW_AT_PRESENT;
	if ((flags & ROW_WRAPPED) != 0)
		at |= ROW_AT_WRAPPED;
	for (i = 0; i < 8; i++)
		b[i] = (char)(at >> 8 * i & 0xff);
	buf_add(&l->at, b, sizeof b);
	buf_add(&l->text, text, n);
	buf_addc(&l->text, '\n');
	l->waiting++;
	if (l->text.len + l->at.len >= WAIT_MAX)
		write_waiting(l);
}

int
rows_log_flush(struct rows_log *l)
{
	write_waiting(l);
	if (l->err == 0)
		return 0;
	errno = l->err;
	l->err = 0;
	return -1;
}

uint64_t
rows_log_count(const struct rows_log *l)
{
	return l->total + l->waiting;
}

uint64_t
rows_log_lost(const struct rows_log *l, uint64_t *bytes)
{
	if (bytes != NULL)
		*bytes = l->lost_bytes;
	return l->lost;
}

int
rows_log_close(struct rows_log *l)
{
	int rc, saved;

	rc = rows_log_flush(l);
	saved = errno;
	if (io_close(l->rows) == -1 && rc == 0) {
		rc = -1;
		saved = errno;
	}
	if (io_close(l->index) == -1 && rc == 0) {
		rc = -1;
		saved = errno;
	}
	buf_release(&l->text);
	buf_release(&l->at);
	errno = saved;
	return rc;
}

/* --- Reading. --- */

int
rows_open(struct rows_file *f, int dirfd)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;

	f->rows = openat(dirfd, ROWS_NAME, flags);
	if (f->rows == -1)
		return -1;
	f->index = openat(dirfd, ROWS_INDEX, flags);
	if (f->index == -1) {
		io_drop(&f->rows);
		return -1;
	}
	return 0;
}

void
rows_close(struct rows_file *f)
{
	io_drop(&f->rows);
	io_drop(&f->index);
}

int64_t
rows_count(const struct rows_file *f)
{
	struct stat st;

	if (fstat(f->index, &st) == -1)
		return -1;
	return st.st_size / 8;
}

/* Reads up to n bytes at an offset; fewer only at the end. */
static ssize_t
read_at(int fd, void *p, size_t n, uint64_t off)
{
	size_t at = 0;
	ssize_t k;

	while (at < n) {
		k = pread(fd, (char *)p + at, n - at, (off_t)(off + at));
		if (k == -1 && errno == EINTR)
			continue;
		if (k == -1)
			return -1;
		if (k == 0)
			break;
		at += (size_t)k;
	}
	return (ssize_t)at;
}

/* Reads records of rows from row on; returns how many. */
static ssize_t
read_records(const struct rows_file *f, uint64_t row, uint64_t *at, size_t n)
{
	unsigned char b[RECORDS * 8];
	ssize_t k, i;

	k = read_at(f->index, b, n * 8, row * 8);
	if (k == -1)
		return -1;
	k /= 8;
	for (i = 0; i < k; i++)
		at[i] = get_le(b + i * 8);
	return k;
}

int64_t
rows_next(const struct rows_file *f, uint64_t row)
{
	uint64_t at[RECORDS];
	ssize_t n, i;
	off_t data;

	for (;;) {
		n = read_records(f, row, at, RECORDS);
		if (n <= 0)
			return n == 0 ? rows_count(f) : -1;
		for (i = 0; i < n; i++)
			if ((at[i] & ROW_AT_PRESENT) != 0)
				return (int64_t)row + i;
		row += (uint64_t)n;
		data = lseek(f->index, (off_t)(row * 8), SEEK_DATA);
		if (data == -1)
			return errno == ENXIO ? rows_count(f) : -1;
		if ((uint64_t)data > row * 8)
			row = (uint64_t)data / 8;
	}
}

/* Text of the file from an offset on. */
struct window {
	struct buf b;
	uint64_t off;
};

/*
 * Finds the row at off in the window, or reads on until it is there (*fresh).
 * Its text and LF end before end, or where that is 0, at the next LF. Returns
 * the text; NULL with errno, EILSEQ when there is something else.
 */
static const char *
find_row(const struct rows_file *f, struct window *w, uint64_t off,
    uint64_t end, size_t *n, bool *fresh)
{
	size_t have;
	ssize_t k;
	char *s, *lf;

	if (off < w->off || off > w->off + w->b.len) {
		buf_cut(&w->b, 0);
		w->off = off;
	}
	buf_reserve(&w->b, 0);
	s = w->b.data + (off - w->off);
	have = w->b.len - (size_t)(off - w->off);
	for (;;) {
		lf = NULL;
		if (end == 0)
			lf = memchr(s, '\n', have);
		else if (end > off && end - off <= have)
			lf = s + (end - off) - 1;
		if (lf != NULL && *lf == '\n' &&
		    (size_t)(lf - s) <= ROW_BYTES_MAX) {
			*n = (size_t)(lf - s);
			return s;
		}
		if (lf != NULL || have > ROW_BYTES_MAX)
			break;
		memmove(w->b.data, s, have);
		buf_cut(&w->b, have);
		w->off = off;
		buf_reserve(&w->b, WINDOW);
		s = w->b.data;
		k = read_at(f->rows, s + have, WINDOW, off + have);
		if (k == -1)
			return NULL;
		if (k == 0)
			break;
		*fresh = true;
		have += (size_t)k;
		w->b.len = have;
	}
	errno = EILSEQ;
	return NULL;
}

int64_t
rows_read(const struct rows_file *f, uint64_t first, uint64_t n,
    rows_read_fn *fn, void *arg)
{
	struct window w = { .b = BUF_INIT };
	uint64_t at[RECORDS], row, end, stop, batch = 0;
	int64_t count, next, rc = -1;
	ssize_t have = 0;
	size_t i, len;
	const char *s;
	bool fresh, more = true;

	count = rows_count(f);
	if (count == -1 || first >= (uint64_t)count)
		return count == -1 ? -1 : 0;
	end = n < (uint64_t)count - first ? first + n : (uint64_t)count;
	for (row = first; row < end && more; row = stop) {
		if (row < batch || row >= batch + (uint64_t)have) {
			have = read_records(f, row, at,
			    end - row < RECORDS ? (size_t)(end - row)
						: RECORDS);
			if (have == 0)
				errno = EILSEQ;
			if (have <= 0)
				goto out;
			batch = row;
		}
		i = (size_t)(row - batch);
		if ((at[i] & ROW_AT_PRESENT) == 0) {
			next = rows_next(f, row);
			if (next == -1)
				goto out;
			stop = (uint64_t)next < end ? (uint64_t)next : end;
			more = fn(row, NULL, stop - row, ROW_GAP, arg);
			continue;
		}
		fresh = false;
		s = find_row(f, &w, at[i] & ROW_AT_OFFSET,
		    i + 1 < (size_t)have && at[i + 1] != 0
			? at[i + 1] & ROW_AT_OFFSET
			: 0,
		    &len, &fresh);
		/*
		 * The writer makes holes in the index before those in the
		 * text: text is whole if its record is there after it was read.
		 */
		stop = row;
		if ((s == NULL || fresh) &&
		    (record(f->index, row) & ROW_AT_PRESENT) == 0) {
			at[i] = 0;
			continue;
		}
		if (s == NULL)
			goto out;
		stop = row + 1;
		more = fn(row, s, len,
		    (at[i] & ROW_AT_WRAPPED) != 0 ? ROW_WRAPPED : 0, arg);
	}
	rc = (int64_t)(row - first);
out:
	buf_release(&w.b);
	return rc;
}
