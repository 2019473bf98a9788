/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <limits.h>
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

int
clock_left(const long *due, size_t n)
{
	long first = 0, left;

	for (size_t i = 0; i < n; i++)
		if (due[i] != 0 && (first == 0 || due[i] < first))
			first = due[i];
	if (first == 0)
		return -1;
	left = first - clock_ms();
	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}
