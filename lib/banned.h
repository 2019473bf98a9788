/* SPDX-License-Identifier: MIT */
/*
 * Functions that are not used here. make lint compiles everything with this
 * header in front, so that calling one is an error. The system headers that
 * declare them come first. Why: they do not know the size of what they write,
 * keep hidden state, take "12abc" for a number, use the local time zone, run a
 * shell, or look a path up a second time that somebody may have changed.
 */
#ifndef SB_BANNED_H
#define SB_BANNED_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BANNED(name) sorry_##name##_is_a_banned_function

#undef strcpy
#define strcpy(...) BANNED(strcpy)
#undef strcat
#define strcat(...) BANNED(strcat)
#undef strncpy
#define strncpy(...) BANNED(strncpy)
#undef strncat
#define strncat(...) BANNED(strncat)
#undef sprintf
#define sprintf(...) BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef gets
#define gets(...) BANNED(gets)
#undef strtok
#define strtok(...) BANNED(strtok)
#undef atoi
#define atoi(...) BANNED(atoi)
#undef atol
#define atol(...) BANNED(atol)
#undef mktemp
#define mktemp(...) BANNED(mktemp)
#undef tmpnam
#define tmpnam(...) BANNED(tmpnam)
#undef system
#define system(...) BANNED(system)
#undef popen
#define popen(...) BANNED(popen)
#undef vfork
#define vfork(...) BANNED(vfork)
#undef gmtime
#define gmtime(...) BANNED(gmtime)
#undef localtime
#define localtime(...) BANNED(localtime)
#undef ctime
#define ctime(...) BANNED(ctime)
#undef asctime
#define asctime(...) BANNED(asctime)
#undef realpath
#define realpath(...) BANNED(realpath)
#undef access
#define access(...) BANNED(access)
#ifndef SB_MAY_SIGNAL /* err and spawn restore defaults with it */
#	undef signal
#	define signal(...) BANNED(signal)
#endif

#endif
