/* SPDX-License-Identifier: MIT */
/*
 * Strict numbers: the whole string, nothing but digits, within a range. "7x",
 * "", " 7", "+7" and "-0" are not numbers.
 */
#ifndef SB_NUM_H
#define SB_NUM_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal, min ≤ value ≤ max. False leaves *out alone. */
bool num_dec(const char *s, uint64_t min, uint64_t max, uint64_t *out);

/* Octal mode, 0 to 07777, at most six digits. */
bool num_mode(const char *s, unsigned *out);

/* The number of the signal of that name, without "SIG"; 0: there is none. */
int num_signal(const char *name);

#endif
