/* SPDX-License-Identifier: MIT */
/*
 * Functions that are not used here. make lint compiles everything with this
 * header in front, so each becomes a compile error. The system headers that
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

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok
#pragma GCC poison atoi atol mktemp tmpnam system popen vfork
#pragma GCC poison gmtime localtime ctime asctime realpath access
#ifndef SB_MAY_SIGNAL /* err and spawn restore defaults with it */
#pragma GCC poison signal
#endif

#endif
