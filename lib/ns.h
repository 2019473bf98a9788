/* SPDX-License-Identifier: MIT */
/*
 * Namespaces: namespaces(7), user_namespaces(7), pid_namespaces(7). A session
 * is held by two processes: the outer one, whose lock is the session's life,
 * and the init of a pid namespace, whose death ends everything in it. The file
 * "hold" names the init by pid and start time, so that a pid given to somebody
 * else is not taken for it.
 */
#ifndef SB_NS_H
#define SB_NS_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Descriptor in the init that pins the user namespace of commands. It appears
 * when the session is ready: before, nobody can enter it half made.
 */
#define NS_USER_FD 20

/*
 * With this signal the init kills all other processes of the session, which
 * needs no fork. It listens only to those outside.
 */
#define NS_KILL_ALL SIGUSR2

struct hold {
	pid_t pid; /* of the init, as the host counts */
	uint64_t start; /* field 22 of /proc/PID/stat */
};

int hold_write(int dirfd, const struct hold *h);

/* ENOENT when there is none, or an empty one; EINVAL when it cannot be
 * understood. */
int hold_read(int dirfd, struct hold *h);

/*
 * The init of session id as /proc shows it, for when hold is missing or damaged:
 * a sb-ns-hold that was given the id and is the first in its pid namespace.
 * ESRCH when there is none. Reads all of /proc.
 */
int hold_find(const char *id, struct hold *h);

/*
 * A pidfd of the recorded init; ESRCH when it is gone, also when its number
 * now belongs to somebody else. Any other errno: it may live.
 */
int hold_open(const struct hold *h);

/* Start time of a process; ESRCH when there is none. */
int ns_start_time(pid_t pid, uint64_t *out);

/*
 * Like fork(2), into new mount, pid, ipc and uts namespaces; when we are not
 * root, into a new user namespace as well, whose maps ns_map_init writes: our
 * own ids become those of root. The child has to wait for that.
 */
pid_t ns_fork_init(void);
int ns_map_init(pid_t pid);

/*
 * The beginning of that child: waits for a byte from go, the end of a pipe
 * whose other end its parent has open as long as it lives; from then on the
 * kernel kills it when the parent dies. A session of its own, no mount that
 * reaches the host, a fresh /proc. -1 with errno, and in what what failed;
 * NULL: the parent has gone.
 */
int ns_begin(int go, const char **what);

/* Writes setgroups (deny), uid_map and gid_map of a process as its parent. */
int ns_map(pid_t pid, const char *uid_map, const char *gid_map);

/* The same with every id that we have, each as itself. */
int ns_map_same(pid_t pid);

/* Enters a new user namespace in which we are root over our own files. */
int ns_own_user(void);

/*
 * A session's user may take all permissions off a file: inside it is root of
 * its namespace and reads it still. This gives an ordinary user the same power
 * over its own files, in a user namespace (user_namespaces(7)); root has it.
 */
int ns_own_files(void);

/*
 * Has the init processes besides those that were started from outside: what
 * ended commands left behind? 1, 0, -1 with errno.
 */
int ns_has_leftovers(pid_t init);

#endif
