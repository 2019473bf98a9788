# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

@test "a session has one holder: a second is 98" {
	start
	run -98 --separate-stderr sb-ns-hold "$s" true
	has "$stderr" "has a holder"
}

@test "a setup that fails is 111 and leaves no process and a free lock" {
	start
	sb-ns-kill "$s"
	run -111 sb-ns-hold "$s" sh -c 'echo no >&2; exit 3'
	is "$(sb-session-ls -v | head -n 1 | jq -r .state)" parked
	run -111 sb-ns-hold "$s" no-such-program
	is "$(sb-run "$s" cat f)" base
}

@test "setup runs in the session's directory, as the second process of its own" {
	start
	sb-ns-kill "$s"
	run -111 sb-ns-hold "$s" sh -c 'pwd >where; echo "$SB_SESSION" >>where; [ "$$" -lt 9 ] && echo new >>where; exit 1'
	is "$(cat "$SB_STORE/workspace/$s/where")" "$(printf '%s\n' "$SB_STORE/workspace/$s" "$s" new)"
}

@test "no mount of a session shows on the host" {
	start
	run grep -c "$s" /proc/self/mountinfo
	is "$output" 0
}
