# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
# shellcheck disable=SC2154 # bats sets it
bats_require_minimum_version 1.5.0
load lib

# What a command does in a session is in flow-exec.bats.
start() {
	need overlay userns jq
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

@test "options that are none, or out of bounds, are 100" {
	make_store
	for o in "-w 0x1" "-w 120" "-w 1001x1" "-T a/b" "-t x" "-t -1" "-y x" "-g x"; do
		# shellcheck disable=SC2086 # option and value
		run -100 --separate-stderr sb-exec $o true
		has "$stderr" "option ${o%% *} takes"
	done
	run -100 --separate-stderr sb-exec -I -i f true
	has "$stderr" usage
	run -100 sb-exec
	run -100 sb-exec -s x
	run -100 sb-exec -e nothing true
}

@test "a missing store is 111, a damaged configuration 100" {
	SB_STORE=$T/no run -111 sb-exec -s x true
	make_store
	echo 'runtime.command.max_active 0' >"$SB_STORE/conf"
	run -100 --separate-stderr sb-exec true
	has "$stderr" max_active
}

@test "an empty id of a session is none: one is made" {
	start
	is "$(sb-exec -s '' -y 60000 'echo $SB_SESSION' 3>&- | jq -r '.output == .workspace_session_id and .output != "'"$s"'"')" true
}

@test "a command line that begins with a dash is no option of the shell" {
	start
	is "$(sb-exec -y 60000 -- '--version 2>/dev/null; echo b' 3>&- | jq -c '[.status, .exit_code, .output]')" '["ok",0,"b"]'
}

@test "the answer to a full device or a closed output is 111, and the job is there" {
	start
	run -111 bash -c 'sb-exec -s "$1" true >/dev/full' - "$s"
	run -111 bash -c 'sb-exec -s "$1" true >&-' - "$s"
	is "$(sb-job-ls | grep -c .)" 2
}

@test "a parked session is revived" {
	start
	sb-run "$s" sh -c 'echo w >w'
	sb-ns-kill "$s"
	is "$(sb-exec -s "$s" -y 60000 'cat w' 3>&- | jq -r .output)" w
}

@test "a session that is being published is waited for, one that ends meanwhile is none" {
	start
	mkfifo go
	sb-session-gate -x "$s" sh -c 'echo in >in; read x <go' 3>&- &
	eventually [ -s in ]
	sb-exec -s "$s" -y 60000 true >out 3>&- &
	echo >go
	wait
	is "$(jq -r .status out)" ok
}

@test "a session that goes on being published: an error object, after as long as -g says" {
	start
	mkfifo go
	sb-session-gate -x "$s" sh -c 'echo in >in; read x <go' 3>&- &
	eventually [ -s in ]
	run -98 --separate-stderr sb-exec -g 0 -s "$s" true
	is "$(printf %s "$output" | jq -c '.error|[.kind,.details.workspace_session_id,.details.reason]')" '["operation_failed","'"$s"'","busy"]'
	run -99 --separate-stderr sb-exec -g 100 -y 60000 -s "$s" true
	is "$(printf %s "$output" | jq -c '.error|[.kind,.message,.details.reason]')" '["operation_failed","session '"$s"' is being published or ended","timeout"]'
	# By default in time for who asks with -y 0.
	run -99 timeout 20 sb-exec -y 0 -s "$s" true
	run -100 sb-exec -g x -s "$s" true
	echo >go
	wait
	is "$(sb-job-ls)" ""
}

@test "killed it leaves a job that goes on" {
	start
	sb-exec -s "$s" -y 60000 'echo ready >r; read x; echo $x >done' >out 3>&- &
	eventually [ -s "$SB_STORE/workspace/$s/upper/r" ]
	kill -KILL $!
	wait $! || :
	echo text | sb-pty-feed -y 60000 namespace_execution_1 >out 3>&-
	is "$(cat "$SB_STORE/workspace/$s/upper/done")" text
}

@test "killed at any step it leaves nothing that hinders: the next job runs, the session ends" {
	need strace
	start
	sb-exec -s "$s" true >out 3>&-
	for call in openat mkdirat renameat pwrite64 fdatasync; do
		n=$(FOLLOW='' count_calls $call sb-exec -s "$s" -y 60000 true)
		for ((i = 1; i <= n; i++)); do
			FOLLOW='' kill_at $call $i sb-exec -s "$s" -y 60000 true >out 3>&- || :
		done
		is "$(sb-exec -s "$s" -y 60000 'echo x' 3>&- | jq -r .output)" x
	done
	quiet() { [ "$(sb-job-ls -r)" = "" ]; }
	eventually quiet
	is "$(find "$SB_STORE/jobs" -mindepth 1 -maxdepth 1 ! -name 'namespace_execution_*' ! -name .active -printf %f)" .last
}

@test "a job that cannot be started is an error with a reason" {
	start
	mkdir bin
	printf '#!/bin/sh\nexit 1\n' >bin/sb-pty-run
	chmod +x bin/sb-pty-run
	PATH=$T/bin:$PATH run -111 --separate-stderr sb-exec -s "$s" true
	has "$output" '"kind":"operation_failed"'
	sb-publish "$s" >out
}

@test "hostile words: newline, quotes, bytes that are no UTF-8" {
	start
	is "$(sb-exec -s "$s" -y 60000 printf '%s' $'a\n"b\\c\xff' 3>&- | jq -r .output | od -An -c | tr -s ' ')" \
	    "$(printf 'a\n"b\\c\xef\xbf\xbd\n' | od -An -c | tr -s ' ')"
	is "$(sb-exec -s "$s" -D $'d\n-x\xe4' -y 60000 'pwd >/dev/null; echo in' 3>&- | jq -r .output)" in
	[ -d "$SB_STORE/workspace/$s/upper/"$'d\n-x\xe4' ]
	sb-job-ls -v >list
	jq -e . list >/dev/null
}

@test "-3: a newline when the command has begun, and no child keeps the descriptor" {
	start
	sb-exec -3 4 -s "$s" -y 60000 'ls -l /proc/self/fd | grep -c ready; read x' 4>ready >out 3>&- &
	eventually [ -s ready ]
	is "$(od -An -c ready)" '  \n'
	kill -TERM $!
	wait $! || :
	is "$(sb-job-ls -r)" namespace_execution_1
	sb-job-kill namespace_execution_1
	run -100 sb-exec -3 9 -s "$s" true
	run -100 sb-exec -3 2 -s "$s" true
}

@test "the number of a job and the session made for it are synced before they are told" {
	need strace
	start
	strace -qq -o trace -e trace=fsync,fdatasync,write sb-exec -y 0 'sleep 1000' >out 3>&-
	is "$(grep -oE '^(fdatasync|fsync|write\(1,)' trace | tr '\n' ' ')" 'fdatasync fsync fsync fsync write(1, '
	sb-job-kill "$(jq -r .command_session_id out)"
	strace -qq -o trace -e trace=fsync,fdatasync,write sb-exec -s "$s" -y 0 'sleep 1000' >out 3>&-
	is "$(grep -oE '^(fdatasync|fsync|write\(1,)' trace | tr '\n' ' ')" 'fdatasync write(1, '
	sb-job-kill "$(jq -r .command_session_id out)"
}

@test "a damaged jobs/.last goes on from the newest job; without one it is named" {
	start
	sb-exec -s "$s" true >out 3>&-
	sb-exec -s "$s" true >out 3>&-
	echo garbage >"$SB_STORE/jobs/.last"
	sb-exec -s "$s" -y 0 true >out 3>&-
	[ -d "$SB_STORE/jobs/namespace_execution_3" ]
	is "$(cat "$SB_STORE/jobs/.last")" 00000000000000000003
	sb-job-wait namespace_execution_3 >out
	mv "$SB_STORE/jobs" jobs.old
	mkdir "$SB_STORE/jobs"
	echo garbage >"$SB_STORE/jobs/.last"
	run -111 sb-exec -s "$s" true
	has "$output" "jobs/.last of the store is no number"
	rm -r "$SB_STORE/jobs"
	mv jobs.old "$SB_STORE/jobs"
}

@test "an empty status is none: the job is settled" {
	start
	sb-exec -s "$s" -y 60000 true >out 3>&-
	: >"$SB_STORE/jobs/namespace_execution_1/status"
	sb-job-wait namespace_execution_1 >out
	is "$(jq -r .status out)" ok
	[ -s "$SB_STORE/jobs/namespace_execution_1/status" ]
}

@test "-I needs -P; a program of ours that is missing is named" {
	start
	run -100 sb-exec -s "$s" -I true
	mkdir few
	ln -s "$SB_BIN/sb-exec" few/
	PATH=few run -111 few/sb-exec -s "$s" true
	has "$output" "unable to start sb-pty-run, which is not in PATH"
}

@test "-K: ended while it waits, it ends the command; without it the command goes on" {
	start
	mkfifo ready
	for o in -K -R; do
		sb-exec $o -s "$s" -3 4 -y 600000 'sleep 1000' >out 4>ready 3>&- &
		pid=$!
		read -r _ <ready
		kill $pid
		wait $pid || :
		j=$(sb-job-ls | grep . | tail -n 1)
		if [ $o = -K ]; then
			is "$(sb-pty-read "$j" | jq -r .status)" cancelled
		else
			is "$(sb-pty-read "$j" | jq -r .status)" running
		fi
	done
	sb-job-kill "$j"
	is "$(sb-exec -K -s "$s" -y 60000 'echo x' 3>&- | jq -r .output)" x
}
