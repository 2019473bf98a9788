/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <time.h>

uint64_t
clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

long
clock_ms(void)
{
	return (long)(clock_ns() / 1000000);
}
