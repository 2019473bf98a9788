# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "a module includes only modules above it in lib/ORDER" {
	cd "$SB_TOP"
	run -0 awk -f t/order.awk lib/ORDER lib/*.[ch]
	is "$output" ""
}

@test "an include of a later module is found" {
	mkdir lib
	printf '%s\n' low high >lib/ORDER
	echo '#include "high.h"' >lib/low.c
	echo '#include "low.h"' >lib/high.c
	run -1 awk -f "$SB_TOP/t/order.awk" lib/ORDER lib/high.c lib/low.c
	is "$output" "lib/low.c:1: includes high.h, which is not above it in lib/ORDER"
}

@test "each module stands once in lib/ORDER" {
	run -0 sh -c 'sort "$1" | uniq -d' - "$SB_TOP/lib/ORDER"
	is "$output" ""
}
