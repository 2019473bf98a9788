# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
# shellcheck disable=SC2030,SC2031 # each test is a subshell
# Automatic sessions, those who ride in them, and what else is asked of a session
# while it ends. The numbers are those of the scenarios of the original's tests.
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns jq
	mkdir -p ws; echo base >ws/f
	make_store
	W=$SB_STORE/workspace
}

# auto ARG…: sb-exec without a session; its answer, and what it names.
auto() {
	answer=$(sb-exec -y 60000 "$@" 3>&-)
	a=$(of workspace_session_id) job=$(of command_session_id)
}
# begin LINE: a command that says that it is ready after LINE, and ends with the
# line that it is fed.
begin() {
	auto -y 0 "$1; echo ready; read x; eval \"\$x\""
	eventually row ready "$job"
}
# ride LINE: the same in session $a.
ride() {
	answer=$(sb-exec -s "$a" -y 0 "$1; echo ready; read x; eval \"\$x\"" 3>&-)
	rider=$(of command_session_id)
	eventually row ready "$rider"
}
# go JOB [LINE]: ends it, and takes its last answer.
go() { answer=$(echo "${2:-}" | sb-pty-feed -y 60000 "$1" 3>&-); }
of() { printf %s "$answer" | jq -r ".$1"; }
row() { sb-pty-read "$2" | jq -r .output | grep -qxF -- "$1"; }
shows() { sb-stack-show | sb-layer-cat "$1"; }
gone() { [ ! -e "$W/$1" ] && ! sb-session-ls | grep -qxF "$1"; }
has_ended() { [ -e "$SB_STORE/jobs/$1/ended" ]; }
over() { [ -e "$SB_STORE/jobs/$1/status" ]; }
unfinished() { [ ! -e "$SB_STORE/jobs/$1/status" ]; }
# Has process $2 something of session $1 open? Then it waits for the gate.
waits_in() { [ -n "$(find "/proc/$2/fd" -lname "$W/$1/*" 2>/dev/null)" ]; }
# Is there a program $1 of the test that was stopped? Its number goes to $pid.
stopped() {
	local p
	for p in $(our_processes "$SB_STORE"); do
		[ "$(cat "/proc/$p/comm")" = "$1" ] && grep -q '^State:.*[tT] ' "/proc/$p/status" && pid=$p && return
	done
	return 1
}
# without PROG…: a directory of all our programs but these, first in PATH.
without() {
	local x
	mkdir -p "$T/bin"
	ln -s "$SB_BIN"/* "$T/bin/"
	for x; do rm "$T/bin/$x"; done
	PATH=$T/bin:/usr/bin:/bin
}
# Stops at fifo go when PROG is started, having said so in file in.
pausing() {
	mkfifo go
	mkdir -p "$T/pause"
	printf '#!/bin/sh\necho in >%s\nread x <%s\nexec %s "$@"\n' "$T/in" "$T/go" "$SB_BIN/$1" >"$T/pause/$1"
	chmod +x "$T/pause/$1"
}

# ---- what becomes of an automatic session ----

@test "1: a command without a session: its answer, and then the session is unknown" {
	start
	auto 'echo hi'
	is "$(of '|[.status,.exit_code,.output,.publish]' | tr -d ' \n')" '["ok",0,"hi",null]'
	gone "$a"
	run -1 --separate-stderr sb-exec -s "$a" true
	has "$output" "workspace session not found: $a"
	is "$(ls -A "$W")" ""
}

@test "2: a file and an empty directory are there for the next command; the answer says what was published" {
	start
	auto 'echo a >a.txt; mkdir d'
	is "$(of '|[.publish.no_op,.publish.revision.manifest_version,.publish.route_summary.source_count]' | tr -d ' \n')" '[false,2,2]'
	auto 'cat a.txt; ls -d d'
	is "$(of output)" $'a\nd'
}

@test "3: a command that changes nothing, or back, leaves the version, and starts no publish" {
	start
	without sb-publish
	auto true
	is "$(of '|[.status,.publish,.finalization_failed]' | tr -d ' \n')" '["ok",null,null]'
	PATH=$SB_BIN:$PATH
	auto 'echo x >f; echo base >f'
	is "$(of publish.no_op)" true
	is "$(sb-stack-version)" 1
	is "$(ls -A "$W")" ""
}

@test "a changed root alone is a change" {
	start
	auto 'chmod 750 .'
	is "$(sb-stack-version)" 2
	auto 'stat -c %a .'
	is "$(of output)" 750
}

@test "4: names that the original reserves are ordinary" {
	start
	auto 'mkdir layers && touch ok.txt layers/x'
	is "$(of status) $(of publish_rejected)" "ok null"
	is "$(shows ok.txt; shows layers/x)" ""
}

@test "5: one bad name refuses the whole; the stack is untouched, the work is kept" {
	start
	auto 'echo b >b'
	auto 'echo a >a; rm b; touch .wh.bad'
	is "$(of '|[.status,.exit_code,.publish_rejected,.publish_reject_class,.conflicted,.session_retained]' | tr -d ' \n')" \
	    '["ok",0,true,"protected_path",true,true]'
	is "$(sb-stack-version)" 2
	is "$(shows b)" b
	is "$(sb-exec -s "$a" 'rm .wh.bad; cat a' 3>&- | jq -r .output)" a
	sb-publish "$a" >out
	is "$(shows a)" a
	run -1 shows b
}

@test "17: a directory removed and made again hides what was in it" {
	start
	auto 'mkdir -p d/e; echo 1 >d/1; echo 2 >d/e/2'
	auto 'rm -rf d; mkdir d; echo new >d/new'
	auto 'find d | sort'
	is "$(of output)" $'d\nd/new'
}

@test "18: special files are left out and named, and refuse nothing" {
	start
	auto 'mkfifo p; echo x >x'
	is "$(of publish_rejected)" null
	is "$(of '|.publish.skipped' | tr -d ' \n')" '[{"path":"p","reason":"unsupported_special_file"}]'
	is "$(shows x)" x
}

@test "a time limit, a cancel and a failure end in a publish" {
	start
	auto -t 300 'echo a >a; sleep 1000'
	is "$(of status) $(of exit_code) $(of publish.revision.manifest_version)" "timed_out 124 2"
	begin 'echo b >b'
	sb-job-kill "$job" >out
	eventually over "$job"
	answer=$(sb-pty-read "$job")
	is "$(of status) $(of publish.revision.manifest_version)" "cancelled 3"
	auto 'echo c >c; exit 7'
	is "$(of exit_code) $(of publish.revision.manifest_version)" "7 4"
	is "$(shows a; shows b; shows c)" $'a\nb\nc'
	is "$(ls -A "$W")" ""
}

@test "what was left in the background is ended before its session is read" {
	start
	auto 'setsid sh -c "trap \"\" TERM HUP; i=0; while :; do i=\$((i+1)); echo \$i >m; mv m n; done" >/dev/null 2>&1 & until [ -s n ]; do :; done'
	is "$(of status) $(of publish_rejected)" "ok null"
	nobody() { [ -z "$(our_processes "$SB_STORE")" ]; }
	eventually nobody
	[ "$(shows n)" -gt 0 ]
	sb-stack-show | sb-layer-check
}

# ---- riders ----

@test "6: the last out publishes, once, and its answer says so" {
	start
	begin 'echo a >a'
	ride 'echo b >b'
	go "$job"
	is "$(of '|[.status,.publish,.publish_rejected,.workspace_session_id]' | tr -d ' \n')" '["ok",null,null,"'"$a"'"]'
	[ -e "$W/$a" ]
	is "$(sb-stack-version)" 1
	go "$rider"
	is "$(of publish.revision.manifest_version)" 2
	is "$(shows a; shows b)" $'a\nb'
	gone "$a"
	# The first one's answer stays what it was.
	is "$(sb-pty-read "$job" | jq -c '[.status,.publish]')" '["ok",null]'
}

@test "a rider outlives the job that made the session, and takes in riders of its own" {
	start
	begin 'echo a >a'
	ride 'echo b >b'
	go "$job"
	first=$rider
	ride 'cat a b >c'
	go "$first"
	is "$(sb-stack-version)" 1
	go "$rider"
	is "$(of publish.revision.manifest_version)" 2
	is "$(shows c)" $'a\nb'
}

# end_together: all of $job and riders are at their ends, and none could begin to
# finalise; then all do.
end_together() {
	local k
	mkfifo go
	sb-session-gate "$a" sh -c "echo in >$T/in; read x <$T/go" 3>&- &
	eventually [ -s in ]
	for k; do echo | sb-pty-feed -y 0 "$k" 3>&- >out; done
	for k; do eventually has_ended "$k"; done
	for k; do unfinished "$k"; done
	echo >go
	wait $!
	for k; do eventually over "$k"; done
	rm go in
}

@test "when several end at once exactly one publishes and says so" {
	start
	for round in 1 2 3; do
		begin "echo $round >a"
		ride "echo $round >b"; r1=$rider
		ride "echo $round >c"; r2=$rider
		end_together "$job" "$r1" "$r2"
		for k in "$job" "$r1" "$r2"; do sb-pty-read "$k"; done >answers
		is "$(jq -c 'select(.publish).publish.revision.manifest_version' answers)" $((round + 1))
		is "$(jq -c 'select(.publish_rejected or .finalization_failed or .status != "ok")' answers)" ""
		is "$(shows a; shows b; shows c)" "$(printf '%s\n' $round $round $round)"
		gone "$a"
	done
	is "$(ls -A "$W")" ""
}

@test "when several end at once and it is refused exactly one says so, and the session is kept" {
	start
	begin 'echo mine >f'
	ride 'echo b >b'
	first=$a
	j=$job
	auto 'echo theirs >f'
	a=$first
	end_together "$j" "$rider"
	for k in "$j" "$rider"; do sb-pty-read "$k"; done >answers
	is "$(jq -c 'select(.publish_rejected) | [.publish_reject_class, .conflicted, .session_retained, .workspace_session_id, .publish_rejection.path]' answers)" \
	    '["source_conflict",true,true,"'"$a"'","f"]'
	is "$(jq -r .status answers | tr '\n' ' ')" "ok ok "
	is "$(sb-session-ls | tr -d '\n')" "$a"
}

# ---- the orders of a race ----

@test "8: a file operation works beside the command, and neither ends nor prolongs the session" {
	start
	begin 'echo a >a'
	is "$(sb-file-read -s "$a" a | jq -r .content)" a
	printf b | sb-file-write -s "$a" b >out
	[ -e "$W/$a" ]
	go "$job" 'cat b'
	has "$(of output)" b
	gone "$a"
	is "$(shows b)" b
}

@test "9: a file operation against the last end: the end first, and it finds no session" {
	start
	pausing sb-publish
	PATH=$T/pause:$PATH begin 'echo a >a'
	echo | sb-pty-feed -y 0 "$job" 3>&- >out
	eventually [ -s in ]
	printf x | sb-file-write -s "$a" x >said 2>&1 3>&- &
	eventually waits_in "$a" "$!"
	echo >go
	rc=0
	wait $! || rc=$?
	is $rc 1
	has "$(cat said)" "not found: $a"
	eventually over "$job"
	is "$(shows a)" a
	run -1 shows x
}

@test "9: a file operation against the last end: the operation first, and it is published" {
	need strace
	start
	begin 'echo a >a'
	# Stopped with the gate in its hands.
	printf x >content
	strace -qq -o trace -e trace=fsync -e inject=fsync:signal=STOP:when=1 \
	    sb-file-write -s "$a" x <content >said 2>&1 3>&- &
	eventually stopped sb-file-write
	echo | sb-pty-feed -y 0 "$job" 3>&- >out
	eventually has_ended "$job"
	unfinished "$job"
	kill -CONT "$pid"
	wait $!
	eventually over "$job"
	is "$(shows a; shows x)" $'a\nx'
	gone "$a"
}

@test "a command against the last end: the end first, and it finds no session" {
	start
	pausing sb-publish
	PATH=$T/pause:$PATH begin 'echo a >a'
	echo | sb-pty-feed -y 0 "$job" 3>&- >out
	eventually [ -s in ]
	sb-exec -s "$a" true >said 2>&1 3>&- &
	eventually waits_in "$a" "$!"
	echo >go
	rc=0
	wait $! || rc=$?
	is $rc 1
	has "$(cat said)" "workspace session not found: $a"
	eventually over "$job"
	is "$(shows a)" a
}

@test "a command against the last end: the command first, and the session goes on with it" {
	need strace
	start
	begin 'echo a >a'
	# Stopped with the gate in its hands, before there is a job of it.
	strace -qq -o trace -e trace=renameat -e inject=renameat:signal=STOP:when=1 \
	    sb-exec -s "$a" -y 60000 'cat a >b' >said 2>&1 3>&- &
	eventually stopped sb-exec
	echo | sb-pty-feed -y 0 "$job" 3>&- >out
	eventually has_ended "$job"
	kill -CONT "$pid"
	wait $!
	eventually over "$job"
	gone "$a"
	is "$(shows b)" a
	is "$(sb-stack-version)" 2
}

@test "34: an end that comes while a command is being admitted waits, and then refuses" {
	start
	pausing sb-session-setup
	a=$(sb-session-new)
	sb-ns-kill "$a"
	PATH=$T/pause:$PATH sb-exec -s "$a" -y 0 'sleep 1000' >said 2>&1 3>&- &
	eventually [ -s in ]
	sb-session-end -t 30000 "$a" >refused 2>&1 3>&- &
	ender=$!
	eventually waits_in "$a" "$ender"
	echo >go
	rc=0
	wait $ender || rc=$?
	is $rc 98
	has "$(cat refused)" '"active_command_session_ids":["namespace_execution_1"]'
	sb-job-kill namespace_execution_1
	sb-session-end "$a"
}

@test "42: a command that comes while its session is published finds none" {
	start
	pausing sb-stack-swap
	a=$(sb-session-new)
	sb-run "$a" sh -c 'echo a >a'
	PATH=$T/pause:$PATH sb-publish "$a" >out 3>&- &
	publish=$!
	eventually [ -s in ]
	sb-exec -s "$a" true >said 2>&1 3>&- &
	x=$!
	eventually waits_in "$a" "$x"
	echo >go
	wait $publish
	rc=0
	wait $x || rc=$?
	is $rc 1
	has "$(cat said)" "workspace session not found: $a"
}

# ---- what goes wrong ----

@test "10, 11: a job's process that cannot be started: an error, no job, no automatic session; an explicit one stays" {
	start
	s=$(sb-session-new)
	without sb-pty-run
	run -111 --separate-stderr sb-exec -y 60000 true
	has "$output" 'unable to start sb-pty-run'
	is "$(sb-session-ls | tr -d '\n')" "$s"
	is "$(ls "$SB_STORE/jobs")" ""
	run -111 --separate-stderr sb-exec -s "$s" -y 60000 true
	is "$(ls "$SB_STORE/jobs")$(sb-job-ls -r)" ""
	PATH=$SB_BIN:$PATH
	is "$(sb-exec -s "$s" -y 60000 'echo on' 3>&- | jq -r .output)" on
}

@test "12: a job's directory that cannot be made: an error; the explicit session stays, the automatic one is gone" {
	start
	s=$(sb-session-new)
	mkdir -p "$SB_STORE/jobs/.last"
	run -111 --separate-stderr sb-exec -s "$s" true
	has "$output" '"kind":"operation_failed"'
	run -111 sb-exec true
	is "$(sb-session-ls | tr -d '\n')" "$s"
	rmdir "$SB_STORE/jobs/.last"
	is "$(sb-exec -s "$s" -y 60000 'echo on' 3>&- | jq -r .output)" on
}

@test "a holder that cannot start: an error, and no automatic session" {
	start
	mkdir bin; printf '#!/bin/sh\nexit 1\n' >bin/sb-session-setup; chmod +x bin/sb-session-setup
	PATH=$T/bin:$PATH run -111 --separate-stderr sb-exec true
	has "$output" 'unable to start session'
	is "$(ls -A "$W")" ""
}

@test "13: the state of the holder cannot be read for a moment: it is tried again" {
	need strace
	start
	# Unchanged, so that nobody else reads it.
	begin :
	strace -f -qq -o trace -p "$(job_process "$job")" -P "$W/$a/hold" -e trace=read -e inject=read:error=EIO:when=1..2 3>&- &
	tracer=$!
	traced() { grep -q '^TracerPid:[[:blank:]]*[1-9]' "/proc/$(job_process "$job")/status"; }
	eventually traced
	go "$job"
	wait $tracer || :
	has "$(cat trace)" INJECTED
	is "$(of '|[.status,.finalization_failed,.session_retained]' | tr -d ' \n')" '["ok",null,null]'
	gone "$a"
}

@test "14: it cannot be read for good: said, with class and attempts; the session is kept, and whole" {
	need strace
	start
	begin 'echo a >a'
	strace -f -qq -o trace -p "$(job_process "$job")" -P "$W/$a/hold" -e trace=read -e inject=read:error=EIO 3>&- &
	tracer=$!
	traced() { grep -q '^TracerPid:[[:blank:]]*[1-9]' "/proc/$(job_process "$job")/status"; }
	eventually traced
	go "$job"
	wait $tracer || :
	is "$(of '|[.status,.finalization_failed,.finalization_failure_class,.finalization_attempts,.session_retained,.workspace_session_id]' | tr -d ' \n')" \
	    '["ok",true,"holder_finalization_observation_failed",3,true,"'"$a"'"]'
	has "$(of message)" "workspace/$a/hold"
	is "$(sb-exec -s "$a" -y 60000 'cat a' 3>&- | jq -r .output)" a
	sb-publish "$a" >out
	is "$(shows a)" a
}

@test "15: changes that cannot be read: said with the class, and the session is kept, and whole" {
	start
	mkdir bin; printf '#!/bin/sh\nexit 111\n' >bin/sb-layer-scan; chmod +x bin/sb-layer-scan
	PATH=$T/bin:$PATH auto 'echo a >a'
	is "$(of '|[.status,.exit_code,.finalization_failed,.finalization_failure_class,.conflicted,.session_retained]' | tr -d ' \n')" \
	    '["ok",0,true,"holder_finalization_capture_failed",true,true]'
	is "$(sb-session-ls -v | head -n 1 | jq -c '[.workspace_session_id,.state,.finalize_policy,.conflicted]')" '["'"$a"'","parked","no_op",true]'
	sb-publish "$a" >out
	is "$(shows a)" a
	is "$(ls -A "$W")" ""
}

@test "a publish that is killed keeps the session, and that is said" {
	start
	mkdir bin; printf '#!/bin/sh\nkill -9 $$\n' >bin/sb-publish; chmod +x bin/sb-publish
	PATH=$T/bin:$PATH auto 'echo a >a'
	is "$(of '|[.status,.finalization_failure_class,.session_retained,.message]' | tr -d '\n' | tr -s ' ')" \
	    '[ "ok", "holder_finalization_capture_failed", true, "sb-publish was killed"]'
	sb-publish "$a" >out
	is "$(shows a)" a
}

@test "40: published, and cannot be ended: said; a second publish finds nothing, and it can be ended" {
	start
	mkdir bin
	# All of it, but its word on the end.
	cat >bin/sb-publish <<-EOF
		#!/bin/sh
		printf '{"workspace_session_id":"%s","publish":{"no_op":false},"destroyed":false}\\n' "\$3"
		exit 111
	EOF
	chmod +x bin/sb-publish
	PATH=$T/bin:$PATH auto 'echo a >a'
	is "$(of '|[.status,.finalization_failure_class,.session_retained,.publish.no_op]' | tr -d ' \n')" \
	    '["ok","holder_finalization_destroy_failed",true,false]'
	sb-session-end "$a"
	gone "$a"
}

@test "the holder killed with 9 while jobs run: each says so, and what they changed is published" {
	start
	begin 'echo a >a'
	ride 'echo b >b'
	kill -KILL "$(awk '$1 == "PPid:" { print $2 }' "/proc/$(cut -d' ' -f1 "$W/$a/hold")/status")"
	eventually over "$job"
	eventually over "$rider"
	for k in "$job" "$rider"; do sb-pty-read "$k"; done >answers
	is "$(jq -c '[.status,.exit_code,.message]' answers)" \
	    '["error",-9,"session '"$a"' ended with all that ran in it"]
["error",-9,"session '"$a"' ended with all that ran in it"]'
	is "$(jq -c 'select(.publish).publish.revision.manifest_version' answers)" 2
	is "$(shows a; shows b)" $'a\nb'
	gone "$a"
}

@test "the processes of all jobs killed with 9: the first who looks publishes, once" {
	start
	begin 'echo a >a'
	ride 'echo b >b'
	kill -KILL "$(job_process "$job")" "$(job_process "$rider")"
	dead() { ! sb-job-ls -r | grep -q .; }
	eventually dead
	is "$(sb-stack-version)" 2
	is "$(shows a; shows b)" $'a\nb'
	gone "$a"
}

@test "the process of a job killed with 9 while another runs: the other publishes" {
	start
	begin 'echo a >a'
	ride 'echo b >b'
	kill -KILL "$(job_process "$job")"
	settled() { sb-job-ls >out; over "$job"; }
	eventually settled
	[ -e "$W/$a" ]
	go "$rider"
	is "$(of publish.revision.manifest_version)" 2
	is "$(shows a; shows b)" $'a\nb'
}

@test "the process of a job killed with 9 while its session is published: who settles it says what became of it" {
	start
	pausing sb-publish
	PATH=$T/pause:$PATH begin 'echo mine >f'
	auto_job=$job first=$a
	auto 'echo theirs >f'
	a=$first job=$auto_job
	echo | sb-pty-feed -y 0 "$job" 3>&- >out
	eventually [ -s in ]
	# It, and the child of it that does the work.
	kill -KILL $(job_process "$job")
	echo >go
	settled() { sb-job-ls >out; over "$job"; }
	eventually settled
	answer=$(sb-pty-read "$job")
	is "$(of '|[.status,.exit_code,.publish_rejected,.conflicted]' | tr -d ' \n')" '["ok",0,true,true]'
	is "$(sb-session-ls | tr -d '\n')" "$a"
	is "$(sb-stack-version)" 2
}

@test "what a killed process had written of an end that it did not finish is forgotten" {
	start
	pausing sb-publish
	PATH=$T/pause:$PATH begin 'echo a >a'
	echo | sb-pty-feed -y 0 "$job" 3>&- >out
	eventually [ -s in ]
	# As if a refusal had been written down, and then nothing done.
	printf 'publish_reject_class source_conflict\nparked 1\nnote refused\n' >>"$SB_STORE/jobs/$job/ended"
	kill -KILL $(job_process "$job")
	echo >go
	settled() { sb-job-ls >out; over "$job"; }
	eventually settled
	gone "$a"
	is "$(shows a)" a
	answer=$(sb-pty-read "$job")
	is "$(of '|[.status,.exit_code,.publish_rejected,.conflicted,.message]' | tr -d ' \n')" '["ok",0,null,null,null]'
}

# ---- refused ----

@test "a refused session is explicit from then on: every operation of a session works on it" {
	start
	begin 'echo mine >f; echo g >g'
	first=$a j=$job
	auto 'echo theirs >f'
	a=$first
	go "$j"
	is "$(of '|[.status,.publish_rejected,.publish_reject_class,.publish_rejection.source_conflict.path,.conflicted,.workspace_session_id]' | tr -d ' \n')" \
	    '["ok",true,"source_conflict","f",true,"'"$a"'"]'
	is "$(sb-session-ls -v | head -n 1 | jq -c '[.state,.finalize_policy,.conflicted]')" '["parked","no_op",true]'
	nobody() { [ -z "$(our_processes "$SB_STORE")" ]; }
	eventually nobody
	is "$(jq -r .error.details.conflicts[0].path "$W/$a/conflicted")" f
	is "$(sb-file-read -s "$a" f | jq -r .content)" mine
	printf h | sb-file-write -s "$a" h >out
	sb-diff "$a" | grep -qx '+mine'
	# A job in it does not publish it; a sweep leaves it alone.
	answer=$(sb-exec -s "$a" -y 60000 'cat f h' 3>&-)
	is "$(of '|[.output,.publish_rejected,.conflicted]' | tr -d ' \n')" '["mine\nh",null,null]'
	is "$(sb-sweep)" ""
	run -2 sb-publish "$a"
	sb-exec -s "$a" -y 60000 'echo base >f' 3>&- >out
	sb-publish "$a" >out
	is "$(shows f; shows g; shows h)" $'theirs\ng\nh'
	gone "$a"
}

@test "as many refused sessions as may be kept: then automatic ones are refused, nothing is deleted, all else works" {
	start
	echo 'runtime.workspace.max_parked 2' >"$SB_STORE/conf"
	for k in 1 2; do
		begin "echo mine$k >f"
		first=$a j=$job
		auto "echo theirs$k >f"
		a=$first
		go "$j"
		is "$(of conflicted)" true
		eval "kept$k=\$a"
	done
	run -2 --separate-stderr sb-exec true
	is "$(printf %s "$output" | jq -c '[.error.kind,.error.details]')" '["operation_failed",{"max_parked":2,"parked":2}]'
	has "$output" 'publish or end some of them'
	is "$(sb-session-ls | grep -c .)" 2
	s=$(sb-session-new)
	is "$(sb-exec -s "$s" -y 60000 'cat f' 3>&- | jq -r .output)" theirs2
	is "$(sb-exec -s "$kept1" -y 60000 'cat f' 3>&- | jq -r .output)" mine1
	run -2 sb-exec true
	sb-session-end "$kept1"
	auto 'cat f'
	is "$(of output)" theirs2
	echo 'runtime.workspace.max_parked 0' >"$SB_STORE/conf"
	run -100 sb-exec true
}

@test "a session that runs already when the bound is reached is still kept" {
	start
	echo 'runtime.workspace.max_parked 1' >"$SB_STORE/conf"
	begin 'echo one >f'
	a1=$a j1=$job
	begin 'echo two >f'
	a2=$a j2=$job
	auto 'echo theirs >f'
	go "$j1"
	is "$(of conflicted)" true
	go "$j2"
	is "$(of conflicted)" true
	is "$(sb-session-ls | sort | tr -d '\n')" "$(printf '%s\n' "$a1" "$a2" | sort | tr -d '\n')"
}

# ---- explicit sessions ----

@test "21: a command's end leaves an explicit session; the next one sees its files" {
	start
	s=$(sb-session-new)
	sb-exec -s "$s" -y 60000 'echo x >x' 3>&- >out
	is "$(sb-exec -s "$s" -y 60000 'cat x' 3>&- | jq -r .output)" x
	is "$(sb-session-ls -v | head -n 1 | jq -c '[.state,.finalize_policy]')" '["running","no_op"]'
	is "$(sb-stack-version)" 1
}

@test "22, 23: an end is refused with the list while a command runs, and works after ctrl-c" {
	start
	s=$(sb-session-new)
	job=$(sb-exec -s "$s" -y 0 'echo ready; sleep 1000' 3>&- | jq -r .command_session_id)
	run -98 --separate-stderr sb-session-end "$s"
	is "$(printf %s "$output" | jq -c '.error.details.active_command_session_ids')" "[\"$job\"]"
	is "$(sb-job-ls -r | tr -d '\n')" "$job"
	printf '\003' | sb-pty-feed -y 60000 "$job" 3>&- >out
	sb-session-end "$s"
	gone "$s"
}

@test "24, 44: an ended session is unknown to everybody, and leaves nothing but its jobs' results" {
	start
	s=$(sb-session-new)
	sb-exec -s "$s" -y 60000 'echo x' 3>&- >out
	sb-session-end "$s"
	run -1 sb-exec -s "$s" true
	run -1 sb-publish "$s"
	run -1 sb-session-end "$s"
	run -1 sb-file-read -s "$s" f
	run -100 sb-run "$s" true
	is "$(ls -A "$W")" ""
	is "$(sb-pty-read namespace_execution_1 | jq -r .output)" x
}

@test "25: a bad time to wait is a mistake, and touches nothing" {
	start
	s=$(sb-session-new)
	for t in -1 x '' 1.5 NaN; do
		run -100 sb-session-end -t "$t" "$s"
		run -100 sb-publish -t "$t" "$s"
	done
	is "$(sb-run "$s" cat f)" base
}

@test "26: eight ends at once: one does it, all have its success; a later one finds none" {
	start
	s=$(sb-session-new)
	mkfifo go
	sb-session-gate "$s" sh -c "echo in >$T/in; read x <$T/go" 3>&- &
	gate=$!
	eventually [ -s in ]
	for k in 1 2 3 4 5 6 7 8; do
		(rc=0; sb-session-end -t 60000 "$s" >"said$k" 2>&1 || rc=$?; echo $rc >"rc$k") 3>&- &
	done
	waiting() { [ "$(find /proc/[0-9]*/fd -lname "$W/$s/gate.turn" 2>/dev/null | wc -l)" = 8 ] || [ "$(pgrep -s 0 -xc sb-session-end)" = 8 ]; }
	eventually waiting
	echo >go
	wait
	is "$(cat rc? | tr -d '\n')" 00000000
	is "$(cat said?)" ""
	run -1 sb-session-end "$s"
	is "$(ls -A "$W")" ""
}

@test "an end that waits while its session is published finds none, for nothing was thrown away" {
	start
	pausing sb-stack-swap
	s=$(sb-session-new)
	sb-run "$s" sh -c 'echo x >x'
	PATH=$T/pause:$PATH sb-publish "$s" >out 3>&- &
	publish=$!
	eventually [ -s in ]
	sb-session-end -t 60000 "$s" >said 2>&1 3>&- &
	x=$!
	eventually waits_in "$s" "$x"
	echo >go
	wait $publish
	rc=0
	wait $x || rc=$?
	is $rc 1
	is "$(shows x)" x
}

@test "33: a session whose gate is held hinders no other" {
	start
	s=$(sb-session-new) t=$(sb-session-new)
	mkfifo go
	sb-session-gate -x "$s" sh -c "echo in >$T/in; read x <$T/go" 3>&- &
	eventually [ -s in ]
	is "$(sb-exec -s "$t" -y 60000 'echo t' 3>&- | jq -r .output)" t
	auto 'echo auto'
	is "$(of output)" auto
	is "$(sb-session-ls -v | grep -c running)" 2
	sb-sweep >out
	sb-session-end "$t"
	echo >go
	wait
}

@test "35, 36: a publish says what it did and closes the session; of nothing too, without a layer" {
	start
	s=$(sb-session-new)
	sb-exec -s "$s" -y 60000 'echo x >x' 3>&- >out
	is "$(sb-publish "$s" | jq -c '[.publish.no_op,.publish.revision.manifest_version,.destroyed,.evicted_upperdir_bytes]')" '[false,2,true,2]'
	gone "$s"
	s=$(sb-session-new)
	is "$(sb-publish "$s" | jq -c '[.publish.no_op,.publish.revision.manifest_version,.destroyed]')" '[true,2,true]'
	gone "$s"
}

@test "37, 38: a conflict keeps the session active with its fingerprints, to be mended; another path merges" {
	start
	s=$(sb-session-new)
	sb-exec -s "$s" -y 60000 'echo mine >f; echo x >x' 3>&- >out
	auto 'echo theirs >f; echo y >y'
	run -2 --separate-stderr sb-publish "$s"
	is "$(printf %s "$output" | jq -c '.error.details|[.stage,.session_retained,.publish_rejection.reason,.publish_rejection.source_conflict.expected.kind,.publish_rejection.source_conflict.actual.kind]')" \
	    '["publish",true,"source_conflict","file","file"]'
	is "$(sb-session-ls -v | head -n 1 | jq -c '[.state,.conflicted]')" '["running",null]'
	sb-exec -s "$s" -y 60000 'echo base >f' 3>&- >out
	sb-publish "$s" >out
	is "$(shows f; shows x; shows y)" $'theirs\nx\ny'
}

@test "41: nobody but its jobs publishes an automatic session; it can be ended when none is active" {
	start
	begin 'echo a >a'
	run -1 --separate-stderr sb-publish "$a"
	has "$output" "workspace session not found: $a: it is automatic"
	run -98 sb-session-end "$a"
	go "$job"
	is "$(shows a)" a
	a=$(sb-session-new -a)
	run -1 sb-publish "$a"
	sb-session-end "$a"
	is "$(sb-stack-version)" 2
}

@test "-g takes the gate of this session and no other" {
	start
	s=$(sb-session-new) t=$(sb-session-new)
	run -100 bash -c 'exec 7<>"$1"; sb-publish -g 7 "$2"' - "$W/$t/gate" "$s"
	run -111 bash -c 'exec 7>&-; sb-publish -g 7 "$1"' - "$s"
	run -100 sb-publish -g 2 "$s"
	gate='exec 7<>"$1"; sb-publish -g 7 "$2"'
	bash -c "$gate" - "$W/$s/gate" "$s" | grep -q '"destroyed":true'
}

# ---- who finalises is killed, and what is taken away from us ----

# The finaliser: the parent of sb-publish, and not the job's process.
finaliser() {
	local p
	pid=
	for p in $(our_processes "$SB_STORE"); do
		[ "$(cat "/proc/$p/comm")" = sb-publish ] || continue
		p=$(ps -o ppid= -p "$p" | tr -d ' ')
		[ "$(cat "/proc/$p/comm")" = sb-pty-run ] && pid=$p
	done 2>/dev/null
	[ -n "$pid" ]
}
# Holds the lock of the stack until go is written.
hold_stack() {
	mkfifo go
	python3 -c 'import fcntl, struct, sys
f = open(sys.argv[1], "r+")
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
open("held", "w").close()
open("go").read()' "$SB_STORE/layer-stack/.storage-writer.lock" 3>&- &
	eventually [ -e held ]
}

@test "the finaliser killed, sb-publish goes on: the exit code stands, and what was published is said" {
	need python3
	start
	begin 'echo k >k; trap "exit 7" EXIT'
	hold_stack
	echo | sb-pty-feed -y 60000 "$job" >fed 2>&1 3>&- &
	eventually finaliser
	kill -KILL "$pid"
	echo >go
	wait
	answer=$(sb-job-wait -t 60000 "$job")
	is "$(of '|[.status,.exit_code,.finalization_failed,.session_retained,.publish.no_op,.publish.revision.manifest_version,.publish.route_summary.source_count]' | tr -d ' \n')" \
	    '["error",7,null,null,false,2,1]'
	is "$(shows k)" k
	is "$(ls -A "$W")" ""
}

@test "the finaliser killed together with sb-publish: another one publishes" {
	need python3
	start
	begin 'echo k >k; trap "exit 7" EXIT'
	hold_stack
	echo | sb-pty-feed -y 60000 "$job" >fed 2>&1 3>&- &
	eventually finaliser
	# shellcheck disable=SC2046 # numbers
	kill -KILL "$pid" $(ps -o pid= --ppid "$pid")
	echo >go
	wait
	answer=$(sb-job-wait -t 60000 "$job")
	is "$(of '|[.status,.exit_code,.finalization_failed,.publish.no_op]' | tr -d ' \n')" '["error",7,null,false]'
	is "$(shows k)" k
	is "$(ls -A "$W")" ""
}

@test "the finaliser and the job's process killed: who settles it finds the exit code, and what was published" {
	need python3
	start
	begin 'echo k >k; trap "exit 7" EXIT'
	hold_stack
	echo | sb-pty-feed -y 0 "$job" >fed 2>&1 3>&- &
	eventually finaliser
	# shellcheck disable=SC2046 # numbers: it is two of them
	kill -KILL $(job_process "$job")
	echo >go
	wait
	answer=$(sb-job-wait -t 60000 "$job")
	is "$(of '|[.status,.exit_code,.finalization_failed,.publish.revision.manifest_version]' | tr -d ' \n')" '["error",7,null,2]'
	is "$(shows k)" k
}

@test "killed between the stack and the end of the session: what was published is said, once" {
	start
	mkdir bin
	# The first one does its work and dies with its session in place.
	cat >bin/sb-stack-swap <<-EOF
		#!/bin/sh
		$SB_BIN/sb-stack-swap "\$@"
		[ -e $T/once ] && exit
		>$T/once
		kill -9 \$(ps -o ppid= -p \$PPID) \$PPID \$(ps -o ppid= -p \$(ps -o ppid= -p \$PPID))
	EOF
	chmod +x bin/sb-stack-swap
	PATH=$T/bin:$PATH auto 'echo k >k; exit 7'
	is "$(of '|[.status,.exit_code,.finalization_failed,.publish.no_op,.publish.revision.manifest_version]' | tr -d ' \n')" '["error",7,null,false,2]'
	is "$(sb-stack-version)" 2
	is "$(ls -A "$W")" ""
}

@test "the lease of an automatic session is removed: said, and what it changed is kept" {
	start
	begin 'echo k >k'
	rm "$W/$a/lease"
	go "$job" 'exit 7'
	is "$(of '|[.status,.exit_code,.finalization_failed,.finalization_failure_class,.conflicted,.session_retained,.publish]' | tr -d ' \n')" \
	    '["error",7,true,"holder_finalization_capture_failed",true,true,null]'
	has "$(of message)" "workspace/$a/lease is missing"
	is "$(cat "$W/$a/upper/k")" k
	run sb-sweep
	is "$(cat "$W/$a/upper/k")" k
}

@test "the directory of an automatic session is removed while its command runs: said" {
	start
	begin 'echo k >k'
	rm -rf "${W:?}/$a"
	go "$job" 'exit 7'
	answer=$(sb-job-wait -t 60000 "$job")
	is "$(of '|[.finalization_failed,.finalization_failure_class,.session_retained,.publish]' | tr -d ' \n')" \
	    '[true,"holder_finalization_observation_failed",null,null]'
	has "$(of message)" "workspace/$a is missing"
	is "$(sb-stack-version)" 1
}
