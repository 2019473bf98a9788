# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	make_store
	S=$SB_STORE/layer-stack
	B=B000001-base
	a=$(records "$(rec_x a)" | sb-layer-commit)
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-stack-unused x
	run -100 sb-stack-unused -x
	run -0 sb-stack-unused -h
	is "$output" "usage: sb-stack-unused"
}

@test "a layer that nothing names is unused, until it is in the stack" {
	sb-stack-unused >out
	same out <(ids "$a")
	ids "$a" $B | sb-stack-swap 1 >/dev/null
	sb-stack-unused >out
	same out <(ids0)
}

@test "the lease of a session counts, whether or not it runs" {
	ids "$a" $B | sb-stack-swap 1 >/dev/null
	mkdir "$SB_STORE/workspace/s1" "$SB_STORE/workspace/.new.s2"
	cp "$S/manifest.json" "$SB_STORE/workspace/s1/lease"
	ids $B | sb-stack-swap 2 >/dev/null
	sb-stack-unused >out
	same out <(ids0)
	mv "$SB_STORE/workspace/s1" "$SB_STORE/workspace/.end.s1"
	sb-stack-unused >out
	same out <(ids0)
	rm -r "$SB_STORE/workspace/.end.s1"
	sb-stack-unused >out
	same out <(ids "$a")
}

@test "bases and what is no id are not listed" {
	mkdir "$S/layers/B000009-old" "$S/layers/.x" "$S/layers/a b"
	sb-stack-unused >out
	same out <(ids "$a")
}

@test "what cannot be read is 111, named, without a full stop" {
	mkdir "$SB_STORE/workspace/s1"
	run -111 --separate-stderr sb-stack-unused
	is "$output" ""
	has "$stderr" "workspace/s1/lease"
	rmdir "$SB_STORE/workspace/s1"
	printf x >"$S/manifest.json"
	run -111 --separate-stderr sb-stack-unused
	is "$output" ""
	has "$stderr" "manifest.json is unreadable"
	rm "$S/manifest.json"
	run -111 --separate-stderr sb-stack-unused
	is "$output" ""
	has "$stderr" "manifest.json is missing"
}

@test "a full disk, a closed stdout and a missing store are 111" {
	run -111 sh -c 'sb-stack-unused >/dev/full'
	run -111 sh -c 'sb-stack-unused >&-'
	SB_STORE=$T/none run -111 sb-stack-unused
}
