# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns jq
	mkdir -p ws; make_store
	s=$(sb-session-new)
	sb-exec -s "$s" -y 60000 "$@" >out 3>&-
	job=namespace_execution_1
}

@test "wrong arguments are 100; with -r no job is 1; a missing store 111" {
	make_store
	run -100 sb-pty-read
	run -100 sb-pty-read -n x namespace_execution_1
	run -100 sb-pty-read -o -1 namespace_execution_1
	run -1 sb-pty-read -r namespace_execution_1
	sb-pty-read 'no/such "job"' >out
	SB_STORE=$T/no run -111 sb-pty-read namespace_execution_1
}

@test "bytes from an offset, of both streams" {
	start -P 'printf 0123456789; printf abcdef >&2'
	is "$(sb-pty-read -r -o 7 $job)" 789
	is "$(sb-pty-read -re -o 2 $job)" cdef
	is "$(sb-pty-read -r -o 100 $job)" ""
	is "$(sb-pty-read -e $job | jq -r .output)" abcdef
}

@test "files that are gone read as nothing" {
	start 'echo x'
	rm "$SB_STORE/jobs/$job/rows" "$SB_STORE/jobs/$job/index" "$SB_STORE/jobs/$job/log"
	is "$(sb-pty-read $job | jq -r '.output + "|" + .status')" '|ok'
	is "$(sb-pty-read -r $job)" ""
}

@test "reading moves no cursor" {
	start -y 0 'echo b; sleep 1000'
	eventually eval 'sb-pty-read $job | grep -q "\"b\""'
	is "$(printf '\003' | sb-pty-feed $job | jq -r '.output | split("\n")[0]')" b
}

@test "a full device is 111" {
	start 'echo x'
	run -111 bash -c 'sb-pty-read "$1" >/dev/full' - $job
	run -111 bash -c 'sb-pty-read -r "$1" >/dev/full' - $job
}

@test "-n is of rows, not of bytes" {
	make_store
	run -100 sb-pty-read -r -n 1 namespace_execution_1
}
