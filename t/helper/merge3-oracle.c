/* SPDX-License-Identifier: MIT */
/*
 * merge3-oracle [cases]: compares the merge with git merge-file on random
 * cases, in the current directory. Both must agree on what is a conflict and,
 * where it is none, on every byte.
 *
 * Cases have distinct lines, so that there is one shortest script only, and no
 * changes of the two sides that touch without overlapping: those git calls a
 * conflict and we merge. Both sides change something in every case.
 *
 * Many cases go into one call of git, with runs of lines between them that
 * nobody changed; each is cut out of the answer again. That the packing has no
 * say in the result is checked by giving every hundredth case to git alone,
 * then also with final newlines missing. SB_SEED chooses other cases.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "io.h"
#include "merge3.h"
#include "num.h"
#include "spawn.h"

enum {
	BASE,
	HEAD,
	MINE,
	SIDES,
	PACK = 200, /* cases in one call of git */
	ALONE = 100, /* one in so many is checked alone as well */
	APART = 8, /* unchanged lines between two cases */
	CASE_LINES = 9
};

struct span {
	size_t from, to; /* lines of base */
};

static const char *const file[SIDES] = { "base", "head", "mine" };
static uint64_t rng, seed, fresh;
static size_t calls;

/* Steele, Lea and Flood's SplitMix64. */
static uint64_t
rnd(uint64_t below)
{
	uint64_t z = rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % below;
}

static void
add_new_lines(struct buf *b)
{
	for (uint64_t n = 1 + rnd(2); n > 0; n--)
		buf_addf(b, "new %" PRIu64 "\n", fresh++);
}

/*
 * Places are the gaps and lines of base in turn: gap 0, line 0, gap 1, …. At
 * each a side does what it likes, or mine does what head did there.
 */
static void
make_case(struct buf text[SIDES])
{
	size_t lines = rnd(CASE_LINES);

	for (size_t place = 0; place <= 2 * lines; place++) {
		struct buf did[SIDES] = { BUF_INIT, BUF_INIT, BUF_INIT };

		if (place % 2 == 1)
			buf_addf(&did[BASE], "old %" PRIu64 "\n", fresh++);
		for (int s = HEAD; s <= MINE; s++) {
			if (s == MINE && rnd(4) == 0)
				buf_add(&did[s], did[HEAD].data, did[HEAD].len);
			else if (rnd(10) == 0)
				add_new_lines(&did[s]);
			else if (rnd(10) > 0)
				buf_add(&did[s], did[BASE].data, did[BASE].len);
		}
		for (int s = BASE; s < SIDES; s++) {
			buf_add(&text[s], did[s].data, did[s].len);
			buf_release(&did[s]);
		}
	}
}

/* What a side changed in base, worked out without any search. */
static size_t
changes(const struct buf *base, const struct buf *side, struct span *span)
{
	struct lines b, s;
	size_t n = 0, next = 0, added = 0;

	lines_split(&b, base->data, base->len);
	lines_split(&s, side->data, side->len);
	for (size_t i = 0; i <= s.n; i++) {
		size_t at = next;

		if (i == s.n)
			at = b.n;
		else
			while (at < b.n &&
			    (b.start[at + 1] - b.start[at] !=
				    s.start[i + 1] - s.start[i] ||
				memcmp(b.text + b.start[at],
				    s.text + s.start[i],
				    s.start[i + 1] - s.start[i]) != 0))
				at++;
		if (i < s.n && at == b.n) {
			added++;
			continue;
		}
		if (at > next || added > 0)
			span[n++] = (struct span){ next, at };
		next = at + 1;
		added = 0;
	}
	lines_release(&b);
	lines_release(&s);
	return n;
}

static bool
case_counts(const struct buf text[SIDES])
{
	struct span h[CASE_LINES + 1], m[CASE_LINES + 1];
	size_t nh = changes(&text[BASE], &text[HEAD], h);
	size_t nm = changes(&text[BASE], &text[MINE], m);

	for (size_t i = 0; i < nh; i++)
		for (size_t j = 0; j < nm; j++)
			if (h[i].from != m[j].from &&
			    (h[i].to == m[j].from || m[j].to == h[i].from))
				return false;
	return nh > 0 && nm > 0;
}

static int
create(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1)
		die_sys("unable to create %s", name);
	return fd;
}

/* The answer of git in out; returns whether it found conflicts. */
static bool
git_merge(const struct buf text[SIDES], struct buf *out)
{
	static const char *const argv[] = { "git", "-c",
		"merge.conflictStyle=merge", "merge-file", "-p", "head", "base",
		"mine", NULL };
	struct spawn_fd map = { .theirs = STDOUT_FILENO };
	pid_t pid;
	int code;

	for (int s = BASE; s < SIDES; s++) {
		int fd = create(file[s]);

		if (io_write_all(fd, text[s].data, text[s].len) == -1 ||
		    io_close(fd) == -1)
			die_sys("unable to write %s", file[s]);
	}
	map.ours = create("out");
	pid = spawn(argv, &map, 1);
	if (pid == -1)
		die_sys("unable to run git");
	io_drop(&map.ours);
	/* The number of conflicts, 127 at most; 255 when git failed. */
	code = spawn_wait(pid);
	if (code == -1 || code > 127)
		die(EXIT_SYS, "git merge-file failed with %d", code);
	if (io_read_file_at(AT_FDCWD, "out", out, SIZE_MAX / 4) == -1)
		die_sys("unable to read out");
	calls++;
	return code > 0;
}

static void
merge(struct merge *m, const struct buf text[SIDES])
{
	if (merge3(m, &text[BASE], &text[HEAD], &text[MINE]) == -1)
		die_sys("unable to merge");
}

__attribute__((noreturn)) static void
differ(const struct buf text[SIDES], const struct merge *m, const char *git,
    size_t n)
{
	for (int s = BASE; s < SIDES; s++)
		printf("--- %s\n%s\n", file[s], buf_str(&text[s]));
	printf("--- ours: %zu conflicts\n%s\n", m->nhunks, buf_str(&m->text));
	printf("--- git\n%.*s\n", (int)n, git);
	printf("differ, SB_SEED=%" PRIu64 "\n", seed);
	exit(EXIT_NO);
}

static void
agree(const struct buf text[SIDES], const struct merge *m, bool conflict,
    const char *git, size_t n)
{
	if (conflict != (m->nhunks > 0) ||
	    (!conflict &&
		(m->text.len != n ||
		    (n > 0 && memcmp(m->text.data, git, n) != 0))))
		differ(text, m, git, n);
}

static void
check_alone(struct buf text[SIDES])
{
	struct merge m = MERGE_INIT;
	struct buf out = BUF_INIT;
	bool conflict;

	conflict = git_merge(text, &out);
	merge(&m, text);
	agree(text, &m, conflict, out.data, out.len);
	merge_release(&m);
	buf_release(&out);
}

/* The same case without some of its final newlines, if it still counts. */
static bool
cut_newlines(struct buf text[SIDES])
{
	bool any = false;

	for (int s = BASE; s < SIDES; s++)
		if (text[s].len > 0 && rnd(2) == 0) {
			buf_cut(&text[s], text[s].len - 1);
			any = true;
		}
	return any && case_counts((const struct buf *)text);
}

static void
add_run(struct buf *b, size_t n)
{
	for (int i = 0; i < APART; i++)
		buf_addf(b, "between %zu %d\n", n, i);
}

/* What stands between the n-th run of unchanged lines and the next. */
static const char *
cut_out(const struct buf *out, size_t n, size_t *len)
{
	struct buf run = BUF_INIT;
	const char *from, *to;

	add_run(&run, n);
	from = memmem(out->data, out->len, run.data, run.len);
	if (!from)
		die(EXIT_BUG, "git lost the lines before case %zu", n);
	from += run.len;
	buf_cut(&run, 0);
	add_run(&run, n + 1);
	to = memmem(
	    from, out->len - (size_t)(from - out->data), run.data, run.len);
	if (!to)
		die(EXIT_BUG, "git lost the lines after case %zu", n);
	buf_release(&run);
	*len = (size_t)(to - from);
	return from;
}

int
main(int argc, char **argv)
{
	static struct buf text[PACK][SIDES];
	size_t done = 0, clean = 0, conflicts = 0, alone = 0, open_ended = 0;
	const char *env = getenv("SB_SEED");
	uint64_t want = 24000;

	err_init();
	if (argc > 2 || (argc == 2 && !num_dec(argv[1], 1, 1 << 30, &want)))
		usage_die("merge3-oracle [cases]");
	if (!env || !num_dec(env, 0, UINT64_MAX, &seed))
		seed = 20261130;
	rng = seed;
	printf("SB_SEED=%" PRIu64 "\n", seed);

	while (done < want) {
		struct buf pack[SIDES] = { BUF_INIT, BUF_INIT, BUF_INIT };
		struct buf out = BUF_INIT;
		struct merge whole = MERGE_INIT;
		size_t hunks = 0, n;
		bool conflict;

		for (n = 0; n < PACK && done + n < want; n++) {
			do {
				for (int s = BASE; s < SIDES; s++)
					buf_cut(&text[n][s], 0);
				make_case(text[n]);
			} while (!case_counts((const struct buf *)text[n]));
			for (int s = BASE; s < SIDES; s++) {
				add_run(&pack[s], n);
				buf_add(
				    &pack[s], text[n][s].data, text[n][s].len);
			}
		}
		for (int s = BASE; s < SIDES; s++)
			add_run(&pack[s], n);
		conflict = git_merge((const struct buf *)pack, &out);
		for (size_t i = 0; i < n; i++) {
			struct merge m = MERGE_INIT;
			size_t len;
			const char *git = cut_out(&out, i, &len);
			bool marked = memmem(git, len, "<<<<<<< ", 8);

			merge(&m, (const struct buf *)text[i]);
			agree(
			    (const struct buf *)text[i], &m, marked, git, len);
			hunks += m.nhunks;
			clean += !marked;
			conflicts += marked;
			merge_release(&m);
		}
		merge(&whole, (const struct buf *)pack);
		if (whole.nhunks != hunks || conflict != (hunks > 0))
			die(EXIT_NO, "a pack has %zu conflicts, its cases %zu",
			    whole.nhunks, hunks);
		for (size_t i = 0; i < n; i += ALONE) {
			check_alone(text[i]);
			alone++;
			if (cut_newlines(text[i])) {
				check_alone(text[i]);
				open_ended++;
			}
		}
		done += n;
		merge_release(&whole);
		buf_release(&out);
		for (int s = BASE; s < SIDES; s++)
			buf_release(&pack[s]);
	}
	printf("%zu cases agree: %zu clean, %zu conflicts; checked alone too: "
	       "%zu, and %zu without final newlines; %zu calls of git\n",
	    done, clean, conflicts, alone, open_ended, calls);
	stdout_done();
	return EXIT_OK;
}
