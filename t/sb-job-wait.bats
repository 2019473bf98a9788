# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib

@test "wrong arguments are 100, no job is 1, a missing store 111" {
	make_store
	run -100 sb-job-wait
	run -100 sb-job-wait -t x y
	run -1 sb-job-wait namespace_execution_1
	SB_STORE=$T/no run -111 sb-job-wait namespace_execution_1
}

@test "waits until the job is over, or as long as is said; 99 then" {
	need overlay userns jq
	mkdir -p ws; make_store
	s=$(sb-session-new)
	sb-exec -s "$s" -y 0 'read x; echo got $x' >out 3>&-
	run -99 --separate-stderr sb-job-wait -t 50 namespace_execution_1
	has "$output" '"status":"running"'
	sb-job-wait namespace_execution_1 >answer 3>&- &
	echo text | sb-pty-feed -y 0 namespace_execution_1 >out
	wait $!
	is "$(jq -r .status answer)" ok
	sb-job-wait -t 0 namespace_execution_1 >answer
	run -111 bash -c 'sb-job-wait namespace_execution_1 >/dev/full'
}
