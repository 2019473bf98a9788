# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "wrong arguments are 100, no job is 1, a missing store 111" {
	make_store
	run -100 sb-job-kill
	run -100 sb-job-kill -t x y
	run -100 sb-job-kill -s NOPE namespace_execution_1
	run -1 sb-job-kill namespace_execution_1
	SB_STORE=$T/no run -111 sb-job-kill namespace_execution_1
}

@test "what ignores TERM and left its session ends; a job that is over is no mistake" {
	need overlay userns jq
	mkdir -p ws; make_store
	s=$(sb-session-new)
	sb-exec -s "$s" -y 0 'trap "" TERM HUP INT; setsid sh -c "trap \"\" TERM; touch a; sleep 1000; touch b" & sleep 1000' >out 3>&-
	eventually [ -e "$SB_STORE/workspace/$s/upper/a" ]
	sb-job-kill namespace_execution_1
	is "$(sb-pty-read namespace_execution_1 | jq -r '.status')" cancelled
	is "$(sb-run "$s" sh -c 'ps -e -o args= | grep -c "[s]leep 1000"')" 0
	sb-job-kill namespace_execution_1
	sb-job-kill -s HUP namespace_execution_1
}

@test "a job that has just begun is waited for, and ended" {
	need overlay userns jq
	mkdir -p ws bin; make_store
	s=$(sb-session-new)
	mkfifo go
	# shellcheck disable=SC2016 # for the script
	printf '#!/bin/sh\nread x <%s\nexec %s "$@"\n' "$T/go" "$SB_BIN/sb-pty-run" >bin/sb-pty-run
	chmod +x bin/sb-pty-run
	PATH=$T/bin:$PATH sb-exec -s "$s" -y 0 'sleep 1000' >out 3>&- &
	eventually [ -e "$SB_STORE/jobs/namespace_execution_1" ]
	sb-job-kill -t 60000 namespace_execution_1 3>&- &
	echo >go
	wait $!
	is "$(sb-pty-read namespace_execution_1 | jq -r .status)" cancelled
	wait
}

@test "one that never begins to listen is not called ended" {
	need overlay userns
	mkdir -p ws bin; make_store
	s=$(sb-session-new)
	mkfifo go
	printf '#!/bin/sh\nread x <%s\n' "$T/go" >bin/sb-pty-run
	chmod +x bin/sb-pty-run
	PATH=$T/bin:$PATH sb-exec -s "$s" -y 0 'sleep 1000' >out 2>&1 3>&- &
	eventually [ -e "$SB_STORE/jobs/namespace_execution_1" ]
	run -111 --separate-stderr sb-job-kill -t 50 namespace_execution_1
	# shellcheck disable=SC2154 # bats sets it
	has "$stderr" 'unable to reach the process'
	echo >go
	wait
}
