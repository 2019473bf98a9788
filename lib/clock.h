/* SPDX-License-Identifier: MIT */
/*
 * CLOCK_MONOTONIC, for durations and deadlines: it does not jump.
 */
#ifndef SB_CLOCK_H
#define SB_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t clock_ns(void);
long clock_ms(void);

/*
 * For poll(2): ms until the first of n moments of clock_ms(), where 0 is never;
 * -1 when all are.
 */
int clock_left(const long *due, size_t n);

#endif
