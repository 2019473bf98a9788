/* SPDX-License-Identifier: MIT */
/*
 * Workspace sessions: directories workspace/ID of the store, sb-store(5). A
 * session exists while its directory is there, runs while its lock is held,
 * and is parked otherwise. What it changed is in its upperdir, whatever its
 * processes do.
 */
#ifndef SB_SESSION_H
#define SB_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "path.h"

/* What becomes of it after its last job: nothing, or sb-publish. */
#define POLICY_EXPLICIT  "no_op"
#define POLICY_AUTOMATIC "publish_then_destroy"

struct session {
	char id[ID_MAX + 1];
	int workfd; /* the directory workspace */
	int dirfd; /* workspace/ID */
	int gatefd; /* the gate, or -1 */
	int lockfd; /* the lock, after session_stop, or -1 */
	bool ended; /* see session_gate */
	pid_t unmounts; /* private: a process of session_kill, or 0 */
};

#define SESSION_INIT { .workfd = -1, .dirfd = -1, .gatefd = -1, .lockfd = -1 }

/*
 * For messages: "" or ": " and which of the session's files the last failure
 * of a function here was about. Borrowed until the next call.
 */
const char *session_trouble(void);

/* ENOENT: no such session. EINVAL: not an id. */
int session_open(struct session *s, const char *id);

/* Lets go of everything but its processes. */
void session_close(struct session *s);

/*
 * Takes the gate, see lock.h for ms and errno. ENOENT: the session is gone, and
 * s->ended says that while we waited somebody ended it with session_mark_ended.
 */
int session_gate(struct session *s, bool exclusive, int ms);

/* Tells those who wait for the gate that the session ends without being
 * published; or that it does not after all. */
int session_mark_ended(const struct session *s, bool ends);

/* 1 running, 0 parked, -1 errno. */
int session_is_running(const struct session *s);

/*
 * Does it run, and does its init live? 1, 0, -1 errno. A holder that is about
 * to end has its lock a moment longer than its init.
 */
int session_can_be_entered(const struct session *s);

/*
 * Makes a session run whose gate is held exclusively: waits for the end of a
 * holder that is about to, starts one and waits until it is ready. EIO when
 * the holder failed, having said why.
 */
int session_start(struct session *s);

/*
 * Ends the holder and waits until the last process is gone; also one that is
 * just starting, left behind by a starter that was killed. Keeps the lock, so
 * that no other can come. The gate is held exclusively.
 */
int session_stop(struct session *s);

/*
 * As session_stop, for a session that goes: its processes are gone then, and
 * nobody can enter it, but its mounts are undone by a process of their own.
 * (The kernel writes all of a file system to disk for that, and makes the last
 * who knows the mount wait.) session_await_unmount before anybody mounts it
 * again.
 */
int session_kill(struct session *s);
void session_await_unmount(struct session *s);

/* Are there processes that ended commands left behind? */
int session_has_leftovers(const struct session *s);

/*
 * Takes the directory out of sight, for good if sync is true, and removes it;
 * also removes what earlier ends and failed beginnings left.
 */
int session_remove(struct session *s, bool sync);

/* Removes what killed beginnings and ends left below the directory workspace.
 * Failure leaves it for the next one. */
void session_sweep(int workfd);

/* Is there the file of that name in its directory? */
bool session_has(const struct session *s, const char *file);

/* How many sessions have the file of that name; -1 with errno. */
int64_t session_count(const char *file);

/*
 * The name that a file of session id, or a directory with it, has while
 * sb-file-write or sb-file-edit are at it. What a killed one left under this
 * name is no part of the session's tree. session_is_aside: is path that, or
 * below it?
 */
#define SESSION_ASIDE_BYTES (ID_MAX + 16)

void session_aside(const char *id, char out[SESSION_ASIDE_BYTES]);
bool session_is_aside(const char *id, const char *path);

/*
 * Path of the workspace, from workspace.json: the directory that was
 * imported. Caller frees. NULL with errno; EINVAL for a damaged file.
 */
char *session_workspace(void);

#endif
