/* SPDX-License-Identifier: MIT */
#include "ladder.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "clock.h"
#include "io.h"
#include "path.h"
#include "proctree.h"
#include "stage.h"
#include "sys.h"

#define KILLED "killed" /* of a session: the job that ended all others */

enum {
	KEY_MS = 200,
	TERM_MS = 100,
	LEAF_MS = 5000,
	WALK_MS = 1000,
	STAT_BYTES = 65536,
	EXITING = 4 /* PF_EXITING of proc(5) */
};

void
ladder_signal(const struct ladder *l, int sig)
{
	struct proctree t;

	if (l->keeper == 0)
		return;
	if (proctree_read(l->procfd, l->keeper, &t) == 0)
		proctree_signal(l->procfd, l->keeper, &t, sig);
	proctree_release(&t);
}

uint64_t
ladder_count(const struct ladder *l)
{
	struct proctree t;
	uint64_t n = 0;

	if (l->keeper == 0)
		return 0;
	if (proctree_read(l->procfd, l->keeper, &t) == 0)
		n = t.alive;
	proctree_release(&t);
	return n;
}

void
ladder_reap(struct ladder *l)
{
	while (l->keeper != 0 && waitpid(l->keeper, NULL, 0) == -1)
		if (errno != EINTR)
			break;
	l->keeper = 0;
}

/* Whoever else loses a job so reads here why. */
static void
kill_session(struct ladder *l)
{
	char text[ID_MAX + 2];
	int n = snprintf(text, sizeof text, "%s\n", l->job);

	snprintf(l->trouble, sizeof l->trouble,
	    "its processes could not be ended one by one: all commands of "
	    "session %s were ended",
	    l->session);
	stage_file_nosync(l->sessionfd, KILLED, text, (size_t)n, 0600);
	sys_pidfd_send_signal(l->initfd, NS_KILL_ALL);
}

static void
kill_all(struct ladder *l)
{
	if (l->keeper == 0)
		return;
	if (leaf_kill(&l->leaf, LEAF_MS) == -1 &&
	    proctree_kill(l->procfd, l->keeper, WALK_MS) == -1)
		kill_session(l);
	/* By now it has no children; its own end is certain. */
	kill(l->keeper, SIGKILL);
	ladder_reap(l);
}

void
ladder_climb(struct ladder *l, enum rung to)
{
	if (l->rung >= to)
		return;
	l->rung = to;
	l->due = 0;
	switch (to) {
	case RUNG_GROUND:
		break;
	case RUNG_KEY:
		l->due = clock_ms() + KEY_MS;
		break;
	case RUNG_TERM:
		ladder_signal(l, SIGTERM);
		/* Who is stopped would not hear it. */
		ladder_signal(l, SIGCONT);
		l->due = clock_ms() + TERM_MS;
		break;
	case RUNG_KILL:
		kill_all(l);
		break;
	}
}

void
ladder_type(struct ladder *l, int terminal, char key)
{
	if (terminal == -1)
		ladder_signal(l, SIGINT);
	else if (write(terminal, &key, 1) == -1)
		/* It is full: the key would come too late. */
		ladder_climb(l, RUNG_TERM);
	ladder_climb(l, RUNG_KEY);
}

void
ladder_on_time(struct ladder *l)
{
	if (l->due == 0 || clock_ms() < l->due)
		return;
	ladder_climb(l, l->rung == RUNG_KEY ? RUNG_TERM : RUNG_KILL);
}

/*
 * Has the session's init ended, or is it about to? It waits for everybody
 * else, and so for us to reap the keeper.
 */
static bool
init_ends(const struct ladder *l)
{
	struct buf b = BUF_INIT;
	unsigned flags = 0;
	char name[32], *p;

	if (io_wait(l->initfd, 0) == 0)
		return true;
	snprintf(name, sizeof name, "%ld/stat", (long)l->hold.pid);
	if (io_read_file_at(l->procfd, name, &b, STAT_BYTES) == -1)
		return true;
	p = strrchr(buf_str(&b), ')');
	if (!p || sscanf(p, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		flags = 0;
	buf_release(&b);
	return (flags & EXITING) != 0;
}

/* The job that ended all others of the session since then. */
static bool
read_killer(const struct ladder *l, uint64_t since, struct buf *b)
{
	struct stat st;

	if (path_lstat(l->sessionfd, KILLED, &st) == -1 ||
	    (uint64_t)st.st_mtim.tv_sec * 1000000000 +
		    (uint64_t)st.st_mtim.tv_nsec <
		since)
		return false;
	return io_read_file_at(l->sessionfd, KILLED, b, ID_MAX + 1) == 0;
}

void
ladder_lost(struct ladder *l, uint64_t since)
{
	struct buf b = BUF_INIT;

	/* What the keeper kept together. */
	leaf_kill(&l->leaf, LEAF_MS);
	if (init_ends(l))
		snprintf(l->trouble, sizeof l->trouble,
		    "session %s ended with all that ran in it", l->session);
	else if (read_killer(l, since, &b))
		snprintf(l->trouble, sizeof l->trouble,
		    "ended with all commands of session %s: %.*s could not be "
		    "ended otherwise",
		    l->session, (int)strcspn(buf_str(&b), "\n"), buf_str(&b));
	else
		snprintf(l->trouble, sizeof l->trouble,
		    "the first process of the job was killed");
	buf_release(&b);
}
