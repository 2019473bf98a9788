# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

@test "the program runs in the workspace, or where we are in it" {
	mkdir -p ws/sub
	start
	is "$(sb-run "$s" pwd)" "$T/ws"
	is "$(cd ws/sub && sb-run "$s" pwd)" "$T/ws/sub"
	is "$(cd / && sb-run "$s" sh -c 'echo "$SB_SESSION"')" "$s"
}

@test "standard input, output and error are the caller's, byte for byte" {
	start
	head -c 100000 /dev/urandom >in
	sb-run "$s" sh -c 'cat; echo e >&2' <in >out 2>err
	same in out
	is "$(cat err)" e
}

@test "no descriptor above 2 reaches the program" {
	start
	exec 7<ws/f
	is "$(sb-run "$s" sh -c 'ls /proc/self/fd | grep -v "^[0-3]$"')" ""
}

@test "a missing session is 100, a missing store 111" {
	make_store
	run -100 --separate-stderr sb-run nobody true
	has "$stderr" nobody
	SB_STORE=$T/no run -111 sb-run x true
}

@test "a session that is being published is 98, or 99 after waiting" {
	start
	run -98 sb-session-gate -x "$s" sb-run -t 0 "$s" true
	run -99 sb-session-gate -x "$s" sb-run -t 50 "$s" true
}

@test "killed with 9 it takes its program along" {
	start
	sb-run "$s" sh -c 'echo $$ >pid; exec sleep 1000' 3>&- &
	eventually [ -s "$SB_STORE/workspace/$s/upper/pid" ]
	kill -KILL $!
	wait $! || :
	eventually sb-session-end "$s"
}
