# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "no job is 1, one that has a process 98, wrong arguments 100" {
	need overlay userns
	mkdir -p ws; make_store
	s=$(sb-session-new)
	run -1 sb-pty-run namespace_execution_1
	run -1 sb-pty-run ../x
	run -100 sb-pty-run
	run -100 sb-pty-run -l 2 namespace_execution_1
	sb-exec -s "$s" -y 0 'sleep 1000' >out 3>&-
	run -98 sb-pty-run namespace_execution_1
	SB_STORE=$T/no run -111 sb-pty-run namespace_execution_1
}

@test "TERM cancels the command" {
	need overlay userns jq
	mkdir -p ws; make_store
	s=$(sb-session-new)
	sb-exec -s "$s" -y 0 'sleep 1000' >out 3>&-
	kill -TERM "$(job_process namespace_execution_1)"
	is "$(sb-job-wait -t 60000 namespace_execution_1 | jq -r .status)" cancelled
}
