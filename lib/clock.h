/* SPDX-License-Identifier: MIT */
/*
 * CLOCK_MONOTONIC, for durations and deadlines: it does not jump.
 */
#ifndef SB_CLOCK_H
#define SB_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void);
long clock_ms(void);

#endif
