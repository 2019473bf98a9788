/* SPDX-License-Identifier: MIT */
#include "proctree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "clock.h"
#include "io.h"
#include "mem.h"
#include "num.h"
#include "path.h"
#include "sys.h"

enum {
	FILE_BYTES = 1 << 22,
	QUICK_ROUNDS = 50, /* before we give others the processor */
	CLEAN_ROUNDS = 2,
	READ_MS = 250
};

/* State and parent of a process; false when it is gone. */
static bool
look(int procfd, pid_t pid, char *state, pid_t *parent)
{
	struct buf b = BUF_INIT;
	char name[32], *p;
	long ppid;
	bool good = false;

	snprintf(name, sizeof name, "%ld/stat", (long)pid);
	if (io_read_file_at(procfd, name, &b, FILE_BYTES) == 0) {
		/* The name is in parentheses and may hold anything. */
		p = strrchr(buf_str(&b), ')');
		good = p && sscanf(p, ") %c %ld", state, &ppid) == 2;
		if (good)
			*parent = (pid_t)ppid;
	}
	buf_release(&b);
	return good;
}

static void
add(struct proctree *t, int procfd, pid_t pid)
{
	struct proctree_one one = { .pid = pid };

	if (!look(procfd, pid, &one.state, &one.parent))
		return;
	if (t->n == t->cap)
		t->one = xgrow(t->one, &t->cap, sizeof *t->one);
	t->one[t->n++] = one;
	t->alive += !strchr("ZXx", one.state);
}

/* A child belongs to the thread that made it. */
static int
add_children(struct proctree *t, int procfd, pid_t pid)
{
	struct names tasks = NAMES_INIT;
	char name[96];
	int fd;

	snprintf(name, sizeof name, "%ld/task", (long)pid);
	fd = openat(procfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || names_read(fd, &tasks) == -1) {
		io_drop(&fd);
		names_release(&tasks);
		return errno == ENOENT || errno == ESRCH ? 0 : -1;
	}
	for (size_t i = 0; i < tasks.n; i++) {
		struct buf b = BUF_INIT;
		char *word, *save = NULL;
		uint64_t child;

		snprintf(name, sizeof name, "%s/children", tasks.name[i]);
		if (io_read_file_at(fd, name, &b, FILE_BYTES) == 0 && b.data)
			for (word = strtok_r(b.data, " ", &save); word;
			    word = strtok_r(NULL, " ", &save))
				if (num_dec(word, 1, INT32_MAX, &child))
					add(t, procfd, (pid_t)child);
		buf_release(&b);
	}
	names_release(&tasks);
	io_drop(&fd);
	return 0;
}

int
proctree_read(int procfd, pid_t root, struct proctree *t)
{
	const long end = clock_ms() + READ_MS;

	*t = (struct proctree)PROCTREE_INIT;
	if (add_children(t, procfd, root) == -1)
		return -1;
	/* One that grows as fast as we read has no end. */
	for (size_t i = 0; i < t->n && clock_ms() < end; i++)
		if (add_children(t, procfd, t->one[i].pid) == -1)
			return -1;
	return 0;
}

void
proctree_release(struct proctree *t)
{
	free(t->one);
	*t = (struct proctree)PROCTREE_INIT;
}

void
proctree_signal(int procfd, pid_t root, const struct proctree *t, int sig)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct proctree_one *one = &t->one[i];
		pid_t parent;
		char state;
		int fd = sys_pidfd_open(one->pid);

		if (fd == -1)
			continue;
		/* The number cannot change hands any more: is it still that
		 * child, or one that the root took over? */
		if (look(procfd, one->pid, &state, &parent) &&
		    (parent == one->parent || parent == root))
			sys_pidfd_send_signal(fd, sig);
		io_drop(&fd);
	}
}

int
proctree_kill(int procfd, pid_t root, int ms)
{
	const long end = clock_ms() + ms;
	int clean = 0;

	for (int round = 0; clean < CLEAN_ROUNDS; round++) {
		struct proctree t;

		if (proctree_read(procfd, root, &t) == -1)
			return -1;
		clean = t.alive == 0 ? clean + 1 : 0;
		proctree_signal(procfd, root, &t, SIGKILL);
		proctree_release(&t);
		if (clock_ms() > end) {
			errno = ETIMEDOUT;
			return -1;
		}
		if (round > QUICK_ROUNDS)
			poll(NULL, 0, 1);
	}
	return 0;
}

pid_t
proctree_inner(int procfd, pid_t pid)
{
	struct buf b = BUF_INIT;
	char name[32], *line, *tab;
	uint64_t n = 0;

	snprintf(name, sizeof name, "%ld/status", (long)pid);
	if (io_read_file_at(procfd, name, &b, FILE_BYTES) == 0) {
		line = strstr(buf_str(&b), "\nNSpid:");
		if (line) {
			line[1 + strcspn(line + 1, "\n")] = '\0';
			tab = strrchr(line, '\t');
			if (!tab || !num_dec(tab + 1, 1, INT32_MAX, &n))
				n = 0;
		}
	}
	buf_release(&b);
	return (pid_t)n;
}
