/* SPDX-License-Identifier: MIT */
#include "jobenv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_PATH \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const char *const passed[] = { "HOME", "USER", "LOGNAME", "LANG",
	"LC_ALL", "TZ", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
	"http_proxy", "https_proxy", "no_proxy", "all_proxy", NULL };

static const char *const refused[] = { "LD_PRELOAD", "LD_LIBRARY_PATH",
	"LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "PATH",
	"PYTHONPATH", "BASH_ENV", "ENV", "SB_SESSION", "SB_JOB", NULL };

/* Where the field of that name is in b; b->len without one. */
static size_t
find(const struct buf *b, const char *name, size_t n)
{
	size_t at = 0;

	while (at < b->len &&
	    (strncmp(b->data + at, name, n) != 0 || b->data[at + n] != '='))
		at += strlen(b->data + at) + 1;
	return at;
}

int
jobenv_give(struct buf *given, const char *pair)
{
	const size_t n = strcspn(pair, "=");
	size_t at, old;

	errno = EINVAL;
	if (n == 0 || pair[n] != '=')
		return -1;
	errno = EPERM;
	for (const char *const *p = refused; *p; p++)
		if (strlen(*p) == n && memcmp(*p, pair, n) == 0)
			return -1;
	at = find(given, pair, n);
	if (at < given->len) {
		old = strlen(given->data + at) + 1;
		memmove(given->data + at, given->data + at + old,
		    given->len - at - old);
		buf_cut(given, given->len - old);
	}
	buf_add(given, pair, strlen(pair) + 1);
	return 0;
}

static void
set(struct buf *env, const char *name, const char *value)
{
	buf_addf(env, "%s=%s", name, value);
	buf_addc(env, '\0');
}

static void
set_default(struct buf *env, const struct buf *given, const char *name,
    const char *value)
{
	if (value && find(given, name, strlen(name)) == given->len)
		set(env, name, value);
}

void
jobenv_make(struct buf *env, const struct buf *given, const struct job_meta *m)
{
	const char *path = getenv("SB_PATH");

	if (!path)
		path = getenv("PATH");
	for (const char *const *p = passed; *p; p++)
		set_default(env, given, *p, getenv(*p));
	set(env, "PATH", path && *path ? path : DEFAULT_PATH);
	if (m->pty)
		set_default(env, given, "TERM", m->term);
	else
		/* Nobody could answer. */
		set_default(env, given, "GIT_TERMINAL_PROMPT", "0");
	set_default(env, given, "GIT_OPTIONAL_LOCKS", "0");
	/* On a terminal they would wait for a key, and nobody has any. */
	set_default(env, given, "GIT_PAGER", "cat");
	set_default(env, given, "PAGER", "cat");
	if (given->len > 0)
		buf_add(env, given->data, given->len);
	set(env, "SB_SESSION", m->session);
}
