# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	sb-store-init
	M=$SB_STORE/layer-stack/manifest.json
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-stack-version x
	run -100 sb-stack-version -x
	run -0 sb-stack-version -h
	is "$output" "usage: sb-stack-version"
}

@test "a store without a manifest is at 0" {
	sb-stack-version >out
	same out <(echo 0)
}

@test "the version is printed" {
	printf '{"version":9223372036854775807,"layers":[]}' >"$M"
	sb-stack-version >out
	same out <(echo 9223372036854775807)
}

@test "a manifest that is none is 111 and says why" {
	printf '{"version":1,"layers":[],"schema_version":2}' >"$M"
	run -111 --separate-stderr sb-stack-version
	is "$output" ""
	has "$stderr" "manifest.json"
	has "$stderr" "schema_version"
	printf '{"version":9223372036854775808,"layers":[]}' >"$M"
	run -111 --separate-stderr sb-stack-version
	has "$stderr" "too large"
	: >"$M"
	run -111 sb-stack-version
	rm "$M"
	mkdir "$M"
	run -111 sb-stack-version
}

@test "a full disk, a closed stdout and a missing store" {
	run -111 sh -c 'sb-stack-version >/dev/full'
	run -111 sh -c 'sb-stack-version >&-'
	SB_STORE=$T/none run -111 sb-stack-version
	SB_STORE= run -100 sb-stack-version
}
