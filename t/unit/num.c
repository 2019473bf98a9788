/* SPDX-License-Identifier: MIT */
/* Strict numbers: what is one, what is none, and that *out is left alone. */
#include "num.h"

#include <stddef.h>

#include "tap.h"

static void
test_dec(void)
{
	static const struct {
		const char *s;
		uint64_t min, max, want;
		bool good;
	} v[] = {
		{ "0", 0, 9, 0, true },
		{ "7", 7, 7, 7, true },
		{ "007", 0, 9, 7, true },
		{ "18446744073709551615", 0, UINT64_MAX, UINT64_MAX, true },
		{ "18446744073709551616", 0, UINT64_MAX, 0, false },
		{ "99999999999999999999999", 0, UINT64_MAX, 0, false },
		{ "6", 7, 9, 0, false },
		{ "10", 7, 9, 0, false },
		{ "", 0, 9, 0, false },
		{ "7x", 0, 9, 0, false },
		{ "x7", 0, 9, 0, false },
		{ " 7", 0, 9, 0, false },
		{ "7 ", 0, 9, 0, false },
		{ "7\n", 0, 9, 0, false },
		{ "+7", 0, 9, 0, false },
		{ "-0", 0, 9, 0, false },
		{ "0x7", 0, 9, 0, false },
		{ "1e1", 0, 99, 0, false },
		{ "1.0", 0, 9, 0, false },
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		uint64_t n = 42;
		bool good = num_dec(v[i].s, v[i].min, v[i].max, &n);

		ok(good == v[i].good && n == (good ? v[i].want : 42), v[i].s);
	}
}

static void
test_mode(void)
{
	static const struct {
		const char *s;
		unsigned want;
		bool good;
	} v[] = {
		{ "0", 0, true },
		{ "0644", 0644, true },
		{ "7777", 07777, true },
		{ "007777", 07777, true },
		{ "10000", 0, false },
		{ "0000644", 0, false },
		{ "8", 0, false },
		{ "", 0, false },
		{ "-1", 0, false },
		{ "644 ", 0, false },
		{ "u+x", 0, false },
	};

	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		unsigned n = 42;
		bool good = num_mode(v[i].s, &n);

		ok(good == v[i].good && n == (good ? v[i].want : 42), v[i].s);
	}
}

int
main(void)
{
	test_dec();
	test_mode();
	return done();
}
