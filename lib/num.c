/* SPDX-License-Identifier: MIT */
#include "num.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

static bool
parse(const char *s, unsigned base, uint64_t *out)
{
	uint64_t v = 0;

	if (*s == '\0')
		return false;
	for (; *s != '\0'; s++) {
		unsigned digit = (unsigned char)*s - (unsigned)'0';

		if (digit >= base)
			return false;
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit, &v))
			return false;
	}
	*out = v;
	return true;
}

bool
num_dec(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t v;

	if (!parse(s, 10, &v) || v < min || v > max)
		return false;
	*out = v;
	return true;
}

bool
num_mode(const char *s, unsigned *out)
{
	size_t len = 0;
	uint64_t v;

	while (len < 7 && s[len] != '\0')
		len++;
	if (len > 6 || !parse(s, 8, &v) || v > 07777)
		return false;
	*out = (unsigned)v;
	return true;
}

int
num_signal(const char *name)
{
	for (int sig = 1; sig < NSIG; sig++) {
		const char *known = sigabbrev_np(sig);

		if (known && strcmp(known, name) == 0)
			return sig;
	}
	return 0;
}
