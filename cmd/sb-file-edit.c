/* SPDX-License-Identifier: MIT */
/*
 * sb-file-edit: replace strings in a text file, on head or in a session. Shape:
 * sink; a JSON array of edits in, one JSON object out.
 *
 *   1. Read the edits and check them, each as far as the file need not be
 *      known.
 *   2. Apply one edit after the other to the file, each to what the one before
 *      left.
 *   3. Put the result in its place, unless the file has changed meanwhile: then
 *      once more (putsession.h, putlayer.h). Print.
 *
 * Invariant: all edits are made or none, bytes that no edit replaces are what
 * they were, and two edits at once are both made.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "edit.h"
#include "err.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "out.h"
#include "putlayer.h"
#include "putsession.h"

static const char usage[] = "sb-file-edit [-a owner] [-s session] [-t ms] path";

enum {
	EDITS_MAX = 16777216, /* bytes, as much as a request may have */
	TEXT_MAX = 67108864, /* of the result */
	SNIPPET_MAX = 60 /* characters of a string in a message */
};

struct job {
	struct edit *edit;
	size_t n, cap;
	struct buf json; /* where they come from */
	/* of the file as it was read last */
	const char *path;
	struct buf result;
	size_t replacements;
};

/* ---- the edits ---- */

__attribute__((noreturn, format(printf, 1, 2))) static void
invalid(const char *fmt, ...)
{
	char *message;
	va_list ap;

	va_start(ap, fmt);
	message = xvasprintf(fmt, ap);
	va_end(ap);
	answer_error(EXIT_USAGE, KIND_INVALID, NULL, "%s", message);
}

static bool
is_word(struct span s, const char *word)
{
	return s.n == strlen(word) && memcmp(s.p, word, s.n) == 0;
}

static void
take_string(struct span item, size_t i, const char *name, struct buf *out)
{
	if (!json_string(json_member(item, name), out))
		invalid("edits[%zu].%s must be a string", i, name);
}

static void
take_edit(struct job *job, struct span item)
{
	size_t i = job->n;
	struct span all;
	struct edit *e;

	if (item.n == 0 || *item.p != '{')
		invalid("edits[%zu] must be an object", i);
	if (job->n == job->cap)
		job->edit = xgrow(job->edit, &job->cap, sizeof *job->edit);
	e = &job->edit[job->n++];
	*e = (struct edit){ .all = false };
	take_string(item, i, "old_string", &e->old);
	take_string(item, i, "new_string", &e->new);
	all = json_member(item, "replace_all");
	e->all = all.p && is_word(all, "true");
	if (all.p && !e->all && !is_word(all, "false") && !is_word(all, "null"))
		invalid("edits[%zu].replace_all must be a boolean", i);
}

static void
read_json(struct buf *b)
{
	const char *why = NULL;
	size_t at = 0;

	if (io_read_buf(STDIN_FILENO, b, EDITS_MAX) == -1) {
		if (errno == EFBIG)
			invalid("edits have more than %d bytes", EDITS_MAX);
		answer_sys("unable to read the edits");
	}
	if (!json_is_valid(buf_str(b), b->len, &why, &at))
		invalid("edits are not JSON, at byte %zu: %s", at, why);
}

/* An array, or a string that holds one. */
static struct span
find_array(struct job *job)
{
	struct span all = { buf_str(&job->json), job->json.len };
	struct buf inner = BUF_INIT;

	all.p += strspn(all.p, " \t\n\r");
	all.n -= (size_t)(all.p - job->json.data);
	if (json_string(all, &inner)) {
		if (!json_is_valid(buf_str(&inner), inner.len, NULL, NULL))
			invalid("edits must be an array");
		buf_release(&job->json);
		job->json = inner;
		all = (struct span){ buf_str(&inner), inner.len };
		all.p += strspn(all.p, " \t\n\r");
		all.n -= (size_t)(all.p - job->json.data);
	}
	if (*all.p != '[')
		invalid("edits must be an array");
	return all;
}

static void
read_edits(struct job *job)
{
	struct span array, item;
	size_t pos = 0;

	read_json(&job->json);
	array = find_array(job);
	while (json_element(array, &pos, &item))
		take_edit(job, item);
	if (job->n == 0)
		invalid("edits must not be empty");
}

/* The beginning of a string, for people. Caller frees. */
static char *
snippet(const struct buf *b)
{
	const char *p = buf_str(b);
	size_t n = 0, chars = 0;

	while (n < b->len && p[n] != '\0') {
		if (((unsigned char)p[n] & 0xc0) != 0x80 &&
		    chars++ == SNIPPET_MAX)
			break;
		n++;
	}
	return xasprintf("%.*s%s", (int)n, p, n < b->len ? "\u2026" : "");
}

static void
check_edits(const struct job *job)
{
	for (size_t i = 0; i < job->n; i++) {
		if (job->edit[i].old.len == 0)
			invalid("edits[%zu]: old_string not found in %s: it is "
				"empty",
			    i, job->path);
		if (buf_equal(&job->edit[i].old, &job->edit[i].new))
			invalid("edits[%zu] changes nothing: old_string and "
				"new_string are the same",
			    i);
	}
}

/* ---- the file ---- */

static void
apply(struct job *job, struct document *d, size_t i)
{
	const struct edit *e = &job->edit[i];
	size_t count;

	switch (document_edit(d, e, TEXT_MAX, &count)) {
	case EDIT_DONE:
		job->replacements += count;
		return;
	case EDIT_NOT_FOUND:
		invalid("edits[%zu]: old_string not found in %s: %s", i,
		    job->path, snippet(&e->old));
	case EDIT_NOT_UNIQUE:
		invalid("edits[%zu]: old_string is not unique in %s: found %zu "
			"times, give more of what is around it or set "
			"replace_all: %s",
		    i, job->path, count, snippet(&e->old));
	case EDIT_TOO_LARGE:
		invalid("edits[%zu]: %s would be too large, with more than %d "
			"bytes",
		    i, job->path, TEXT_MAX);
	}
}

static void
read_text(const struct job *job, const struct file *f, struct buf *out)
{
	uint64_t max = file_limit(CONF_MAX_EDIT);

	if ((uint64_t)f->st.st_size > max)
		invalid("file is too large to edit: %s has %jd bytes, the "
			"maximum is %" PRIu64,
		    job->path, (intmax_t)f->st.st_size, max);
	if (io_read_buf(f->fd, out, (size_t)max) == -1) {
		if (errno == EFBIG)
			invalid("file is too large to edit: %s", job->path);
		answer_sys("unable to read %s", job->path);
	}
	if (!utf8_is_valid(buf_str(out), out->len))
		invalid("file is not valid UTF-8: %s", job->path);
}

static const struct buf *
make(void *arg, const struct file *old)
{
	struct buf text = BUF_INIT, before = BUF_INIT;
	struct document d = DOCUMENT_INIT;
	struct job *job = arg;

	read_text(job, old, &text);
	document_load(&d, buf_str(&text), text.len);
	buf_add(&before, buf_str(&d.text), d.text.len);
	job->replacements = 0;
	for (size_t i = 0; i < job->n; i++)
		apply(job, &d, i);
	if (buf_equal(&before, &d.text))
		invalid("edits change nothing in %s", job->path);
	buf_cut(&job->result, 0);
	document_save(&d, &job->result);
	document_release(&d);
	buf_release(&before);
	buf_release(&text);
	return &job->result;
}

static void
print(const struct job *job)
{
	struct buf b = BUF_INIT;

	buf_addc(&b, '{');
	out_str(&b, "type", "edit");
	out_path(&b, "path", job->path);
	out_num(&b, "edits_applied", job->n);
	out_num(&b, "replacements", job->replacements);
	out_num(&b, "bytes_written", job->result.len);
	buf_addc(&b, '}');
	puts(b.data);
	stdout_done();
}

int
main(int argc, char **argv)
{
	struct job job = { .n = 0 };
	struct put p = { .make = make, .arg = &job, .reads = true };

	err_init();
	answer_always();
	put_options(&p, argc, argv, usage);
	job.path = p.path;
	read_edits(&job);
	check_edits(&job);
	if (p.session)
		put_in_session(&p, p.session);
	else
		put_on_head(&p);
	print(&job);
	return EXIT_OK;
}
