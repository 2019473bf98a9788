/* SPDX-License-Identifier: MIT */
/*
 * Jobs: directories jobs/ID of the store, sb-store(5). A job is active while
 * its lock is held and its shell has not ended; it is over when the file
 * status is there. A job whose lock is free and that has no status was left
 * behind by a process that was killed: job_settle.
 */
#ifndef SB_JOB_H
#define SB_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "buf.h"
#include "event.h"
#include "path.h"

#define JOB_PREFIX "namespace_execution_"

enum {
	JOBS_KEPT = 512, /* that are over */
	JOB_LOCK_MS = 30000,
	TERM_MAX = 64
};

struct job {
	char id[ID_MAX + 1];
	int jobsfd; /* the directory jobs */
	int dirfd; /* jobs/ID */
	int lockfd; /* the lock, for who made or settles it, or -1 */
};

#define JOB_INIT { .jobsfd = -1, .dirfd = -1, .lockfd = -1 }

/* What is known from the beginning: the files session and meta. */
struct job_meta {
	char session[ID_MAX + 1];
	uint64_t start; /* CLOCK_REALTIME, ns */
	bool limited; /* timeout_ms counts */
	uint64_t timeout_ms;
	bool pty;
	unsigned rows, cols; /* the first size of the window */
	bool automatic; /* it made its session */
	bool input; /* without a terminal: stdin is fed */
	uint64_t keep; /* bytes of output that are kept */
	char term[TERM_MAX + 1];
	struct event_place place; /* of its start */
};

/* How it ended: written into the file ended when the shell has, and into
 * status when all is done. */
struct job_end {
	char status[16]; /* ok, error, timed_out, cancelled */
	bool has_code;
	int code;
	uint64_t total_ns; /* from start to the end of the shell */
	uint64_t wall_ns; /* to the end of finalisation */
	uint64_t background; /* processes that were left */
	char note[512]; /* "" or what went wrong, one line */
	/* Of the session that it finalised: */
	bool rejected; /* publish_reject says why */
	char reject_class[64];
	bool failed;
	char failure_class[80];
	uint64_t attempts; /* it took, or 0 */
	bool parked; /* kept, without processes */
	bool lost; /* not written: who finalised it before was killed */
};

/* Directory jobs of the store, made if missing. Ends the program as
 * store.h does. */
int job_open_all(void);

/* ENOENT: no such job. EINVAL: not an id of a job. */
int job_open(struct job *j, const char *id);
void job_close(struct job *j);

/*
 * Makes a job with meta and its lock held, and the files cmd (fields that
 * each end in NUL: the directory to run in, or nothing, and the words) and
 * env (NAME=VALUE, each ends in NUL). Its number is the next of jobs/.last.
 * Removes the oldest that are over, beyond JOBS_KEPT. EBUSY: max_active
 * jobs are active. EBADMSG: jobs/.last is damaged, and there is no job to go on
 * from.
 */
int job_new(struct job *j, const struct job_meta *meta, const struct buf *cmd,
    const struct buf *env, uint64_t max_active);

/* Makes the number durable: before it is told to anybody. */
int job_sync_number(const struct job *j);

/* Removes what a killed job_new left; nothing while one is at work. -1 with
 * errno. */
int job_sweep(void);

/* Removes one that never ran. */
void job_remove(struct job *j);

/* EINVAL for a damaged file. */
int job_meta_read(const struct job *j, struct job_meta *m);

/* Appends the words of its command with blanks between them. -1 with errno. */
int job_command(const struct job *j, struct buf *out);

enum job_state {
	JOB_RUNS,
	JOB_ENDING, /* the shell has ended, its session is finalised */
	JOB_OVER,
	JOB_DEAD /* no process, no status */
};

/* -1 with errno. */
int job_state(const struct job *j, enum job_state *state);

/* file: "ended" or "status". ENOENT while there is none. */
int job_end_read(const struct job *j, const char *file, struct job_end *e);
int job_end_write(
    const struct job *j, const char *file, const struct job_end *e);

/*
 * What the file env has is destroyed; its block stays as the file room, which
 * job_end_write takes when the disk is full: how a command ended is not lost
 * for that. Best effort.
 */
void job_make_room(const struct job *j);

/*
 * Makes a job that is over survive a crash of the machine, best effort. Nobody
 * has to wait for that: it is not the command's work that would be lost.
 */
void job_sync(const struct job *j);

/*
 * Waits until the job's process lets go of the lock. ms: as in lock.h. -1 with
 * ETIMEDOUT.
 */
int job_wait(const struct job *j, int ms);

/*
 * Ids of the active jobs of a session (NULL: of all), oldest first; except, if
 * not NULL, is left out. With the session's gate held exclusively none can
 * come. Caller releases.
 */
int job_active(const char *session, const char *except, struct names *out);

/*
 * Has the session a job that is not over: active, or ending, or left behind by
 * a process that was killed? 1, 0, -1 errno.
 */
int job_is_pending(const char *session);

/*
 * Tells the jobs of a session that are not over, by the file gone of each, that
 * it is about to be ended by one of our programs: to be called before its
 * directory goes. A session that is gone without it was removed by others. -1
 * with errno.
 */
int job_tell_gone(const char *session);
bool job_was_told(const struct job *j);

/* All jobs, oldest first. */
int job_list(struct names *out);

/*
 * If jobs of a session are active, prints the error object that names them,
 * and ends the program with EXIT_BUSY. To be called with the session's gate
 * held exclusively.
 */
void job_refuse_active(const char *session);

uint64_t job_now(void); /* CLOCK_REALTIME, ns */

#endif
