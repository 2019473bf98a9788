# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

@test "shared users do not exclude each other, an exclusive one does" {
	start
	sb-session-gate "$s" sb-session-gate "$s" true
	run -98 sb-session-gate "$s" sb-session-gate -x "$s" true
	run -98 sb-session-gate -x "$s" sb-session-gate "$s" true
	run -99 sb-session-gate -x "$s" sb-session-gate -t 30 "$s" true
}

@test "a waiting exclusive user is not overtaken by new shared ones" {
	start
	mkfifo go
	exec 9<>go
	sb-session-gate -t 20000 "$s" sh -c 'read -r x <&9' 3>&- &
	eventually eval '! sb-session-gate -x "$s" true 2>/dev/null'
	sb-session-gate -x -t 20000 "$s" sh -c 'echo x >>order' 3>&- 9>&- &
	eventually eval '! sb-session-gate "$s" true 2>/dev/null'
	sb-session-gate -t 20000 "$s" sh -c 'echo s >>order' 3>&- 9>&- &
	echo >&9
	wait
	is "$(cat order)" "$(printf 'x\ns')"
}

@test "the exit code is the program's, and a program that is missing is 127" {
	start
	run -5 sb-session-gate "$s" sh -c 'exit 5'
	run -127 sb-session-gate "$s" no-such-program
	run -100 sb-session-gate nobody true
}
