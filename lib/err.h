/* SPDX-License-Identifier: MIT */
/*
 * Messages and exit codes. A message is one write(2) to stderr of at most
 * 1024 bytes, "prog: level: text", with control characters shown as '?', so
 * that two programs never interleave halves and a hostile file name cannot
 * forge a line. See sb-exit(7).
 */
#ifndef SB_ERR_H
#define SB_ERR_H

enum {
	EXIT_OK = 0,
	EXIT_NO = 1, /* ran well; the answer is no */
	EXIT_CONFLICT = 2, /* refused; nothing changed */
	EXIT_BUSY = 98, /* somebody else holds it */
	EXIT_TIMEOUT = 99, /* gave up waiting */
	EXIT_USAGE = 100, /* wrong arguments or malformed input */
	EXIT_BUG = 101, /* our own invariant broke */
	EXIT_SYS = 111, /* a system call failed, or input ended early */
	EXIT_NOEXEC = 126,
	EXIT_NOENT = 127,
};

/*
 * First call of every main: makes descriptors 0 to 2 exist (a closed one
 * becomes /dev/null opened the wrong way round, so that using it fails) and
 * restores SIGPIPE and SIGCHLD to their defaults.
 */
void err_init(void);

/* Name of this program, as it appears in messages. */
const char *err_progname(void);

__attribute__((noreturn, format(printf, 2, 3))) void die(
    int code, const char *fmt, ...);

/*
 * Before a message of die or die_sys is printed, fn gets the code and all of its
 * text. NULL: nobody does.
 */
void err_on_death(void (*fn)(int code, const char *text));

/* As die(EXIT_SYS), with ": " and the text of errno appended. */
__attribute__((noreturn, format(printf, 1, 2))) void die_sys(
    const char *fmt, ...);

__attribute__((format(printf, 1, 2))) void warn_msg(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void warn_sys(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void info_msg(const char *fmt, ...);

/* Prints "usage: TEXT" to stdout and leaves 0. */
__attribute__((noreturn)) void usage_help(const char *usage);

/* Prints "prog: usage: TEXT" to stderr and leaves 100. */
__attribute__((noreturn)) void usage_die(const char *usage);

#endif
