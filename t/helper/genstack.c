/* SPDX-License-Identifier: MIT */
/*
 * genstack seed first count: makes random layers below the current directory
 * (layers/ID) and the id lines of each stack, newest first, in stacks/N for
 * N = first … first+count-1. Names come from a small pool, so that layers
 * meet: whiteouts over anything, opaque directories with and without the
 * entry, files over directories and back. Every object tells its layer, in
 * content, target or user.from, so that who shows it can be read from a mount.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "num.h"
#include "whiteout.h"

enum {
	LAYERS = 6,
	DEPTH = 4
};

static const char *const pool[] = { "a", "b", "a-b", "a b", "-n", "n\nl",
	"q\"\\", "\xc3\xa9", "\xff" };

static uint64_t state;

/* xorshift64*, the same everywhere for one seed. */
static unsigned
rnd(unsigned n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)(state * UINT64_C(2685821657736338717) >> 33) % n;
}

static void
check(int rc, const char *what)
{
	if (rc == -1)
		die_sys("unable to make %s", what);
}

static int
make_dir(int dirfd, const char *name, const char *id)
{
	int fd;

	check(mkdirat(dirfd, name, 0700), name);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(fd, name);
	check(fchmod(fd, 0700 | rnd(0100)), name);
	check(fsetxattr(fd, "user.from", id, strlen(id), 0), name);
	return fd;
}

static void
make_file(int dirfd, const char *name, const char *id)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	check(fd, name);
	check(io_write_all(fd, id, rnd(8)), name);
	check(fsetxattr(fd, "user.from", id, strlen(id), 0), name);
	/* Last: a mode without w refuses xattrs to an ordinary user. */
	check(fchmod(fd, 0400 | rnd(0400)), name);
	check(close(fd), name);
}

static void
opaque(int fd, bool entry)
{
	check(whiteout_mark_opaque(fd), "an opaque mark");
	/* Layers made by others carry this as well; the kernel sees nothing. */
	if (entry)
		check(whiteout_make(fd, WHITEOUT_OPAQUE_NAME), "an entry");
}

static void
fill(int fd, const char *id, int depth)
{
	char target[80];
	int sub;

	for (size_t i = 0; i < sizeof pool / sizeof *pool; i++) {
		const char *name = pool[i];

		switch (rnd(20)) {
		case 0:
		case 1:
			make_file(fd, name, id);
			break;
		case 2:
			snprintf(target, sizeof target, "%s/%u", id, rnd(9));
			check(symlinkat(target, fd, name), name);
			break;
		case 3:
			check(whiteout_make(fd, name), name);
			break;
		case 4:
			check(mkfifoat(fd, name, 0600), name);
			break;
		case 5:
		case 6:
		case 7:
		case 8:
		case 9:
			if (depth == DEPTH)
				break;
			sub = make_dir(fd, name, id);
			fill(sub, id, depth + 1);
			/* Rarely, so that most stacks stay deep. */
			if (rnd(4) == 0)
				opaque(sub, rnd(2) == 0);
			close(sub);
			break;
		default:
			break;
		}
	}
}

static void
make_stack(uint64_t n)
{
	unsigned layers = 2 + rnd(LAYERS - 1);
	char id[64], path[80];
	FILE *ids;
	int fd;

	snprintf(path, sizeof path, "stacks/%u", (unsigned)n);
	ids = fopen(path, "we");
	if (!ids)
		die_sys("unable to open %s", path);
	for (unsigned i = 0; i < layers; i++) {
		bool base = i + 1 == layers;

		snprintf(id, sizeof id, "%c%06u-%u", base ? 'B' : 'L',
		    (unsigned)n, i);
		snprintf(path, sizeof path, "layers/%s", id);
		fd = make_dir(AT_FDCWD, path, id);
		fill(fd, id, 1);
		/* The kernel looks at no opaque mark of a layer's root. */
		if (rnd(8) == 0)
			opaque(fd, false);
		close(fd);
		fprintf(ids, "%s\n", id);
	}
	fputc('\n', ids);
	if (fclose(ids) != 0)
		die_sys("unable to write %s", path);
}

int
main(int argc, char **argv)
{
	uint64_t seed, first, count;

	err_init();
	if (argc != 4 || !num_dec(argv[1], 1, UINT32_MAX, &seed) ||
	    !num_dec(argv[2], 0, 99999, &first) ||
	    !num_dec(argv[3], 1, 99999, &count))
		usage_die("genstack seed first count");
	umask(022);
	if ((mkdir("layers", 0755) == -1 || mkdir("stacks", 0755) == -1) &&
	    errno != EEXIST)
		die_sys("unable to make layers and stacks");
	for (uint64_t n = first; n < first + count; n++) {
		state = seed * UINT64_C(0x9e3779b97f4a7c15) + n + 1;
		for (int i = 0; i < 8; i++)
			rnd(2);
		make_stack(n);
	}
	return 0;
}
