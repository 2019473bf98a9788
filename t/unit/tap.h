/* SPDX-License-Identifier: MIT */
/* Test Anything Protocol for unit tests: ok() per check, done() at the end. */
#ifndef SB_TAP_H
#define SB_TAP_H

#include <stdbool.h>
#include <stdio.h>

static int tap_n, tap_bad;

__attribute__((unused)) static bool
ok(bool good, const char *what)
{
	printf("%s %d - %s\n", good ? "ok" : "not ok", ++tap_n, what);
	tap_bad += !good;
	return good;
}

__attribute__((unused)) static int
done(void)
{
	printf("1..%d\n", tap_n);
	return tap_bad != 0;
}

#endif
