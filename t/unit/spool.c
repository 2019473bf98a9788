/* SPDX-License-Identifier: MIT */
/* Spools keep the beginning and the end; directories stay in the workspace. */
#include "spool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "path.h"

#include "tap.h"

enum {
	KEEP = 16384
};

static char
byte_at(off_t at)
{
	return (char)('a' + at % 23);
}

/* Every byte that is kept is the one that was written there. */
static bool
is_right(int dirfd, off_t len)
{
	int fd = openat(dirfd, "log", O_RDONLY | O_CLOEXEC);
	struct gap gap;
	struct stat st;
	char c;

	if (fd == -1 || spool_gap(dirfd, "log", &gap) == -1 ||
	    fstat(fd, &st) == -1 || st.st_size != len)
		return false;
	if (gap.to > 0 && (gap.from != SPOOL_HEAD || len - gap.to < KEEP))
		return false;
	for (off_t i = 0; i < len; i++) {
		if (i >= gap.from && i < gap.to)
			continue;
		if (pread(fd, &c, 1, i) != 1 || c != byte_at(i))
			return false;
	}
	close(fd);
	/* Head, end, what is between two trims, and a block of each. */
	return st.st_blocks * 512 <= SPOOL_HEAD + 2 * KEEP + 3 * 4096;
}

static void
test_spool(int dirfd, size_t piece)
{
	struct spool s;
	char words[80], *p = malloc(piece);
	off_t len = 0;
	bool good = p && spool_make(&s, dirfd, "log", KEEP) == 0;

	for (int i = 0; good && len < 400000; i++) {
		for (size_t k = 0; k < piece; k++)
			p[k] = byte_at(len + (off_t)k);
		good = spool_add(&s, p, piece) == 0;
		len += (off_t)piece;
		if (i % 10 == 0)
			good = good && is_right(dirfd, len);
	}
	snprintf(words, sizeof words,
	    "pieces of %zu bytes: beginning and end are kept, bounded", piece);
	ok(good && is_right(dirfd, len) && s.len == len, words);
	ok(spool_make(&s, dirfd, "log", KEEP) == -1,
	    "a spool is made only once");
	spool_close(&s);
	free(p);
	unlinkat(dirfd, "log", 0);
	unlinkat(dirfd, "log.gap", 0);
}

static const struct {
	const char *dir, *wanted; /* NULL: it leaves */
} v[] = {
	{ "", "" },
	{ ".", "" },
	{ "a", "a" },
	{ "a/b", "a/b" },
	{ "a//b/./c/", "a/b/c" },
	{ "a/../b", "b" },
	{ "a/b/..", "a" },
	{ "a/..", "" },
	{ "..", NULL },
	{ "a/../..", NULL },
	{ "a/../../ws", NULL },
	{ "/ws", "" },
	{ "/ws/", "" },
	{ "/ws/a", "a" },
	{ "/ws/../etc", NULL },
	{ "/ws2", NULL },
	{ "/etc", NULL },
	{ "/", NULL },
	{ "...", "..." },
	{ "a/...b", "a/...b" },
	{ "..a", "..a" },
};

int
main(void)
{
	char name[] = "/tmp/sb-spool.XXXXXX";
	struct gap gap;
	int fd;

	if (!mkdtemp(name))
		return 1;
	fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok(spool_gap(fd, "log", &gap) == 0 && gap.to == 0,
	    "what is not there has no gap");
	test_spool(fd, 997);
	test_spool(fd, 4096);
	test_spool(fd, 100000);
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		char words[40], *got = inside_dir("/ws", v[i].dir);

		snprintf(words, sizeof words, "\"%s\" in /ws", v[i].dir);
		ok(v[i].wanted ? got && strcmp(got, v[i].wanted) == 0 : !got,
		    words);
		free(got);
	}
	path_rm_tree(AT_FDCWD, name);
	close(fd);
	return done();
}
