/* SPDX-License-Identifier: MIT */
/*
 * Trying what this machine can do: each thing is done in a child, in
 * namespaces of its own, and whoever asks is told what was seen and how to mend
 * it. Nothing that ends us leaves processes or mounts: children die with us,
 * mounts with their namespaces.
 */
#ifndef SB_PROBE_H
#define SB_PROBE_H

#include <stdbool.h>
#include <sys/types.h>

enum {
	PROBE_S = 60 /* what takes longer has failed */
};

struct probe_report {
	char seen[1024];
	char mend[512]; /* empty: no better advice than usual */
};

/* First of all, as the user that the machine is looked at for. */
int probe_init(void);
bool probe_is_root(void);

/* A name that nobody else has who probes now. */
const char *probe_name(void);

/*
 * Does fn(arg) in a child. True: it returned 0. The report is good until the
 * next.
 */
bool probe_run(int (*fn)(const void *arg), const void *arg,
    const struct probe_report **result);

/* ---- for what runs in such a child ---- */

/* What was seen: 0; that it is wrong: -1; or with the text of errno: -1. */
__attribute__((format(printf, 1, 2))) int probe_saw(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) int probe_no(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) int probe_fail(const char *fmt, ...);
void probe_mend(const char *text);
void probe_mend_user_namespaces(void);

/* A child that does not outlive us. */
pid_t probe_start(void);

/* The same: does fn, then waits for its end. -1 when that was not possible. */
pid_t probe_start_in(int (*fn)(void));
void probe_finish(pid_t pid);

/*
 * Enters a mount namespace, as a session does, an ordinary user with a user
 * namespace; the current directory comes along, or is an empty one in memory.
 */
int probe_enter(void);
int probe_enter_memory(void);

/*
 * Does fn as the first process of a pid namespace, with a fresh /proc, in an
 * empty directory in memory.
 */
int probe_in_pid_namespace(int (*fn)(void));

#endif
