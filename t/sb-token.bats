# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "a token is 64 hexadecimal digits, in a file for its owner only" {
	sb-token new one >out
	grep -qxE '[0-9a-f]{64}' out
	is "$(stat -c %a state/tokens/one)" 600
	is "$(cat state/tokens/one)" "$(cat out)
management runtime observability"
	is "$(stat -c %a state/tokens)" 700
}

@test "the list has names and groups, and never a token" {
	sb-token new -g runtime b >b
	sb-token new -g observability,management a >a
	is "$(sb-token ls; echo .)" "a	management observability
b	runtime

."
	run ! grep -F -f b <(sb-token ls)
}

@test "a name that is taken is 2 and its token stays; -r replaces it" {
	sb-token new -g runtime n >one
	run -2 sb-token new n
	is "$(head -n 1 state/tokens/n)" "$(cat one)"
	sb-token new -r -g management n >two
	is "$(cat state/tokens/n)" "$(cat two)
management"
	is "$(ls -A state/tokens)" n
}

@test "removed it is gone; twice is 1" {
	sb-token new n >out
	is "$(sb-token rm n)" n
	is "$(ls -A state/tokens)" ""
	run -1 sb-token rm n
}

@test "wrong words, names and groups are 100, and make nothing" {
	run -100 sb-token
	run -100 sb-token make n
	run -100 sb-token new
	run -100 sb-token ls n
	run -100 sb-token rm
	for name in ../n .n '' 'a b'; do run -100 sb-token new "$name"; done
	for groups in '' admin runtime,admin; do run -100 sb-token new -g "$groups" n; done
	is "$(ls -A state/tokens)" ""
}

@test "what is at fault is named and not listed" {
	sb-token new good >out
	sb-token new open >out && chmod 644 state/tokens/open
	printf 'x\nadmin\n' >state/tokens/groups
	printf 'x\n' >state/tokens/short
	printf ' \nruntime\n' >state/tokens/blank
	ln -s good state/tokens/link
	chmod 600 state/tokens/groups state/tokens/short state/tokens/blank
	sb-token ls >out 2>err
	is "$(cat out)" "good	management runtime observability"
	for name in open groups short blank link; do grep -q "token $name: " err; done
	grep -q "token link: is a symbolic link" err
}

@test "a full device is 111" {
	run -111 bash -c 'sb-token ls >/dev/full'
}
