# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

@test "a session that does not run is 111, one that does not exist 100" {
	start
	sb-ns-kill "$s"
	run -111 --separate-stderr sb-ns-enter "$s" true
	has "$stderr" "does not run"
	run -100 sb-ns-enter nobody true
}

@test "the exit code is the program's; signals are 128 and more" {
	start
	run -3 sb-ns-enter "$s" sh -c 'exit 3'
	run -137 sb-ns-enter "$s" sh -c 'kill -9 $$'
	run -128 sb-ns-enter "$s" sh -c 'exit 200'
	run -126 sb-ns-enter "$s" /
	run -127 sb-ns-enter "$s" nothing
}

@test "TERM is passed on" {
	start
	sb-ns-enter "$s" sh -c 'trap "exit 9" TERM; touch up; while :; do sleep 0.01; done' 3>&- &
	p=$!
	eventually [ -e "$SB_STORE/workspace/$s/upper/up" ]
	kill -TERM $p
	rc=0; wait $p || rc=$?
	is "$rc" 9
}
