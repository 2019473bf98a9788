# SPDX-License-Identifier: MIT
# What is ignored, against git itself; more of it is in t/unit/ignore.c.
bats_require_minimum_version 1.5.0
load lib

@test "agrees with git check-ignore on 2000 random sets of rules, 50 paths each" {
	need git
	run -0 "$SB_T/ignore-oracle" 2000 50
	echo "# $output" | tr '\n' ' ' >&3
	echo >&3
}
