/* SPDX-License-Identifier: MIT */
/*
 * The error object of a command that prints one JSON object either way:
 *
 *	{"error":{"kind":"not_found","message":"...","details":{...}}}
 *
 * As err it prints and ends the program: the object on stdout, the message on
 * stderr as die does.
 */
#ifndef SB_ANSWER_H
#define SB_ANSWER_H

#include "buf.h"

#define KIND_NOT_FOUND "not_found"
#define KIND_INVALID   "invalid_request"
#define KIND_FAILED    "operation_failed"
#define KIND_BUSY      "server_busy"
#define KIND_INTERNAL  "internal_error"

/*
 * From now on also what ends the program by die and die_sys is told by such an
 * object: kind and details go by the code. For commands whose answer is an
 * object, before they read what they were given.
 */
void answer_always(void);

/* An option's argument that is not what it takes: EXIT_USAGE. */
__attribute__((noreturn)) void answer_bad(
    int option, const char *arg, const char *wanted);

/* Leaves with code. details: members, or NULL for none. */
__attribute__((noreturn, format(printf, 4, 5))) void answer_error(int code,
    const char *kind, const struct buf *details, const char *fmt, ...);

/* KIND_FAILED and EXIT_NO; why follows the id in the message, or is "". */
__attribute__((noreturn)) void answer_no_session(
    const char *id, const char *why);

/* KIND_FAILED and EXIT_SYS, the message followed by the text of errno. */
__attribute__((noreturn, format(printf, 1, 2))) void answer_sys(
    const char *fmt, ...);

#endif
