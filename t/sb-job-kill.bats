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
	run -99 --separate-stderr sb-job-kill -t 50 namespace_execution_1
	# shellcheck disable=SC2154 # bats sets it
	has "$stderr" 'does not answer'
	echo >go
	wait
}

@test "a stopped process of a job goes on, to end the job" {
	need overlay userns jq
	mkdir -p ws; make_store
	s=$(sb-session-new)
	sb-exec -s "$s" -y 0 'sleep 1000' >out 3>&-
	stop_job namespace_execution_1
	run -99 --separate-stderr sb-job-kill -t 0 namespace_execution_1
	has "$stderr" 'does not answer'
	run -99 sb-job-kill -t 0 -s KILL namespace_execution_1
	sb-job-kill namespace_execution_1
	is "$(sb-pty-read namespace_execution_1 | jq -r .status)" cancelled
	# KILL by name, too.
	sb-exec -s "$s" -y 0 'sleep 1000' >out 3>&-
	stop_job namespace_execution_2
	sb-job-kill -s KILL namespace_execution_2
	sb-job-wait -t 60000 namespace_execution_2 >out
	is "$(jq -r .exit_code out)" -9
}

@test "a process of a job that cannot go on is killed, with all of the job; its session is published" {
	need root overlay userns jq
	cg=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
	[ -n "$cg" ] || skip "no cgroup2"
	mkdir -p ws; make_store
	sb-exec -y 0 'echo done >made; trap "" TERM; setsid sleep 1000 & sleep 1000' >out 3>&-
	s=$(jq -r .workspace_session_id out)
	eventually [ -e "$SB_STORE/workspace/$s/upper/made" ]
	# Frozen: it does not go on, whatever it is told, but can be killed.
	mkdir "$cg/sb-frozen.$$" || skip "no cgroup can be made"
	job_process namespace_execution_1 >"$cg/sb-frozen.$$/cgroup.procs"
	echo 1 >"$cg/sb-frozen.$$/cgroup.freeze"
	eventually grep -qx 'frozen 1' "$cg/sb-frozen.$$/cgroup.events"
	sb-job-kill -t 2000 namespace_execution_1
	rmdir "$cg/sb-frozen.$$"
	sb-pty-read namespace_execution_1 >out
	is "$(jq -r '.status+" "+.message' out)" "cancelled the process of the job did not answer and was killed"
	is "$(jq -r .publish.no_op out)" false
	is "$(sb-session-ls | grep -c .)" 0
}

@test "-t 0 of a job that is well is 99, or it is over by then" {
	need overlay userns
	mkdir -p ws; make_store
	s=$(sb-session-new)
	sb-exec -s "$s" -y 0 'sleep 1000' >out 3>&-
	rc=0
	sb-job-kill -t 0 namespace_execution_1 || rc=$?
	[ $rc = 99 ] || [ $rc = 0 ]
	sb-job-kill namespace_execution_1
}
