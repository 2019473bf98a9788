# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
# shellcheck disable=SC2030,SC2031 # each test is a subshell
# shellcheck disable=SC2034,SC2154 # load exec shares them
bats_require_minimum_version 1.5.0
load lib
load exec

# ---- terminal ----

@test "the command has a controlling terminal of 120 columns and 40 rows, and job control" {
	start
	ex 'tty; stty size; echo $TERM; echo to-tty >/dev/tty; test -t 0 -a -t 1 -a -t 2 && echo all'
	is "$(of output)" $'/dev/pts/0\n40 120\nxterm-256color\nto-tty\nall'
	ex -w 80x24 -T vt100 'stty size; echo $TERM'
	is "$(of output)" $'24 80\nvt100'
	ex -y 10000 'set -m; sleep 1000 & kill -STOP %1; wait %1; jobs -l | grep -c Stopped; kill -9 %1'
	has "$(of output)" 1
}

@test "the window is resized while the command runs, and it is told" {
	start
	ex -y 0 'trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done'
	eventually row ready
	sb-pty-feed -w 100x50 -y 0 "$job" >out
	eventually row '50 100'
	sb-job-kill "$job"
	ex -P -I -y 0 cat
	run -2 sb-pty-feed -w 90x30 "$job"
	sb-job-kill "$job"
}

@test "A22: rows are what a terminal shows: overwritten, erased, drawn again, without colours; -r gives the bytes" {
	start
	local text='10%\r50%\r100%\nabc\rHello\033[K\n\033[31mred\033[0m\n' raw
	ex "printf '${text//%/%%}'"
	is "$(of output)" $'100%\nHello\nred'
	sb-pty-read -r "$job" >bytes
	# The terminal puts CR before LF.
	raw=${text//\\n/\\r\\n}
	printf %b "$raw" | cmp - bytes
	# Two rows are drawn again, and one below them stays.
	ex 'printf "first\nsecond\nthird\n"; printf "\033[2A\rSECOND\033[K\n"; printf "\nlast\n"'
	is "$(of output)" $'first\nSECOND\nthird\nlast'
	ex 'for p in 10 50 100; do printf "a: %d%%\033[K\nb: %d%%\033[K\n" $p $p; [ $p = 100 ] || printf "\033[2A"; done'
	is "$(of output)" $'a: 100%\nb: 100%'
}

@test "A22: a sequence and a character that come in two reads give the same rows" {
	start
	# Each part is on the screen before the next one is printed.
	ex -y 0 'stty -echo; printf "one\033[3"; read x; printf "1mred\033"; read x; printf "[0m\303"; read x
	    printf "\266\nabc\rHe"; read x; printf "llo\033[K\033[2"; read x; printf "A\rtop\033[K\n\n"'
	for part in one onered; do
		eventually row "$part"
		echo | sb-pty-feed -y 0 "$job" >fed
	done
	# Nothing of half a character is on it, but its byte is in the log.
	arrived() { sb-pty-read -r "$job" | tail -c 1 | od -An -tx1 | grep -q "$1"; }
	eventually arrived c3
	echo | sb-pty-feed -y 0 "$job" >fed
	eventually row $'onered\303\266'
	eventually row Hec
	echo | sb-pty-feed -y 0 "$job" >fed
	eventually arrived 32
	echo | sb-pty-feed -y 0 "$job" >fed
	eventually over "$job"
	later sb-pty-read "$job"
	is "$(of output)" $'top\nHello'
}

@test "ctrl-c as the only input cancels: the key first, then TERM, then a kill" {
	start
	ex -y 0 'trap "echo key; exit 7" INT; echo ready; while :; do sleep 0.05; done'
	eventually row ready
	answer=$(printf '\003' | sb-pty-feed "$job" 3>&-)
	is "$(of status) $(of exit_code)" "cancelled 130"
	has "$(of output)" key
	ex -y 0 'trap "" INT; trap "echo term; exit 7" TERM; echo ready; while :; do sleep 0.05; done'
	eventually row ready
	answer=$(printf '\003' | sb-pty-feed "$job" 3>&-)
	is "$(of status) $(of exit_code)" "cancelled 130"
	has "$(of output)" term
	ex -y 0 'trap "" INT TERM; echo ready; while :; do sleep 0.05; done'
	eventually row ready
	answer=$(printf '\004' | sb-pty-feed "$job" 3>&-)
	eventually over "$job"
	later sb-pty-read "$job"
	is "$(of status) $(of exit_code)" "cancelled 130"
}

@test "ctrl-c as a key, or with text around it, is only a key" {
	start
	ex -y 0 'trap "echo int" INT; echo ready; while :; do sleep 0.05; done'
	eventually row ready
	printf '\003' | sb-pty-feed -k -y 0 "$job" >out
	# The terminal shows the key as ^C, in the same row.
	eventually row '^Cint'
	active "$job"
	sb-job-kill "$job"
	ex -y 0 'trap "read x; echo got \$x; exit 3" INT; echo ready; while :; do sleep 0.05; done'
	eventually row ready
	printf 'abc\n\003def\n' | sb-pty-feed -y 0 "$job" >out
	eventually over "$job"
	later sb-pty-read "$job"
	is "$(of status) $(of exit_code)" "error 3"
}

@test "the end of input: on a terminal at the start of a line and within one, and on a pipe" {
	start
	ex -y 0 'cat; echo end'
	later sb-pty-feed -E -y 10000 "$job" </dev/null
	is "$(of status)" ok
	ex -y 0 'cat; echo end'
	answer=$(printf abc | sb-pty-feed -E -y 10000 "$job" 3>&-)
	is "$(of status)" ok
	ex -P -I -y 0 'wc -c'
	answer=$(printf 'a\0b' | sb-pty-feed -E -y 10000 "$job" 3>&-)
	is "$(of status) $(of output)" "ok 3"
}

@test "a command that reads nothing gives a backpressure error" {
	start
	ex -y 0 'stty raw -echo; echo ready; sleep 1000'
	eventually row ready
	head -c 1000000 /dev/zero >zeros
	run -99 --separate-stderr sb-pty-feed "$job" <zeros
	has "$output" stdin_backpressure
	# It can still be ended.
	sb-job-kill "$job"
	later sb-pty-read "$job"
	is "$(of status)" cancelled
}

@test "input to a command that is over is refused, and so is an empty one" {
	start
	ex true
	run -2 --separate-stderr sb-pty-feed "$job" <<<x
	has "$output" "command already completed: $job"
	ex -y 0 cat
	run -100 --separate-stderr sb-pty-feed "$job" </dev/null
	has "$output" invalid_request
	sb-job-kill "$job"
}

# ---- without a terminal ----

@test "without a terminal output and errors are apart, byte for byte, and input is empty" {
	start
	head -c 100000 /dev/urandom >ws/r 2>/dev/null || :
	head -c 100000 /dev/urandom >random
	sb-run "$s" sh -c 'cat >r' <random
	ex -P -y 10000 'cat r; cat; printf "e\0\377\n" >&2; tty </dev/tty'
	sb-pty-read -r "$job" >out
	same random out
	is "$(sb-pty-read -re "$job" | head -c 4 | od -An -tx1)" ' 65 00 ff 0a'
	has "$(of stderr)" /dev/tty
	later sb-pty-read -e "$job"
	has "$(of output)" /dev/tty
}

@test "without a terminal nothing waits for an answer: read and git fail at once" {
	need git
	start
	ex -P -y 60000 'read x; echo $?; git clone -q https://127.0.0.1:9/x; echo $?; echo $GIT_TERMINAL_PROMPT'
	is "$(of status) $(of output)" $'ok 1\n128\n0'
	ex -P -e GIT_TERMINAL_PROMPT=1 -y 60000 'echo $GIT_TERMINAL_PROMPT'
	is "$(of output)" 1
	ex -y 60000 'echo $GIT_TERMINAL_PROMPT'
	is "$(of output)" ''
}

@test "where there is no bash, sh runs the command" {
	start
	sb-session-end "$s"
	# The same /usr/bin, without bash, for a session that begins in there.
	cat >without <<-'END'
		set -eu
		mkdir -p up work
		mknod up/bash c 0 0
		mount -t overlay -o userxattr,lowerdir=/usr/bin,upperdir="$PWD/up",workdir="$PWD/work" none /usr/bin
		s=$(sb-session-new)
		sb-exec -s "$s" -y 60000 'ls /bin/bash; echo $0 $BASH_VERSION; exit 3' >answer
		sb-session-end "$s"
	END
	if [ "$(id -u)" = 0 ]; then unshare -m sh without 3>&-; else unshare -Urm sh without 3>&-; fi
	answer=$(cat answer)
	is "$(of exit_code)" 3
	has "$(of output)" $'\n/bin/sh'
}

@test "the content of a file can be the input, with and without a terminal" {
	start
	printf 'in\0put' >in
	ex -i in 'od -An -c; test -t 1 && echo tty'
	has "$(of output)" 'i   n  \0   p   u   t'
	has "$(of output)" tty
	answer=$(sb-exec -s "$s" -P -R -i - cat <in 3>&-)
	is "$(of '|.output|length')" 6
}

# ---- surroundings ----

@test "SB_PATH is the PATH of commands, in which they are looked for, and of sb-run" {
	start
	printf '#!/bin/sh\necho "$PATH${SB_PATH+ more}"\n' >tool
	chmod +x tool
	sb-run "$s" sh -c 'mkdir tools && cat >tools/sb-tool && chmod +x tools/sb-tool' <tool
	export SB_PATH=$T/ws/tools:/usr/bin:/bin
	is "$(sb-exec -s "$s" -y 60000 sb-tool "" 3>&- | jq -r .output)" "$SB_PATH"
	is "$(sb-exec -s "$s" -y 60000 sb-tool 3>&- | jq -r .output)" "$SB_PATH"
	is "$(sb-run "$s" sb-tool)" "$SB_PATH"
	run -127 sb-run "$s" sb-run
}

@test "environment, directory and words can be given" {
	start
	HTTP_PROXY=p https_proxy=q SECRET=x ex -e A=b -e 'C=d e' -e HTTP_PROXY=mine 'env | sort'
	has "$(of output)" $'A=b\nC=d e\n'
	has "$(of output)" 'HTTP_PROXY=mine'
	has "$(of output)" 'https_proxy=q'
	has "$(of output)" 'GIT_OPTIONAL_LOCKS=0'
	# Nobody is there to turn pages.
	has "$(of output)" $'\nGIT_PAGER=cat\n'
	has "$(of output)" $'\nPAGER=cat\n'
	# And what bash itself sets; nothing else.
	is "$(LANG=C USER=u LOGNAME=u HTTP_PROXY=a http_proxy=b no_proxy=c XDG_DATA_HOME=x sb-exec -s "$s" -y 60000 'env | sed "s/=.*//" | sort | tr "\n" " "' 3>&- | jq -r .output)" \
	    'GIT_OPTIONAL_LOCKS GIT_PAGER HOME HTTP_PROXY LANG LC_ALL LOGNAME PAGER PATH PWD SB_JOB SB_SESSION SHLVL TERM TZ USER _ http_proxy no_proxy '
	has "$(of output)" "SB_JOB=$job"
	run ! has "$(of output)" SECRET
	ex -e PAGER=less 'echo $PAGER $GIT_PAGER'
	is "$(of output)" 'less cat'
	run -100 sb-exec -s "$s" -e PATH=/x true
	run -100 sb-exec -s "$s" -e LD_PRELOAD=/x true
	run -100 sb-exec -s "$s" -e SB_JOB=x true
	run -100 sb-exec -s "$s" -e =x true
	# Each name once, also for who does not ask a shell.
	ex -e A=1 -e AB=2 -e A=3 env -u AC
	is "$(printf %s "$(of output)" | grep ^A)" $'AB=2\nA=3'
	ex -D 'sub/../deep/dir' pwd
	is "$(of output)" "$T/ws/deep/dir"
	for d in ../x /etc ws/../../x; do
		run -100 --separate-stderr sb-exec -s "$s" -D "$d" pwd
		has "$output" "cwd escapes workspace replacement root: $d"
	done
	ex printf '%s|' a 'b c' $'d\ne' -
	is "$(of output)" $'a|b c|d\ne|-|'
	ex no-such-program x
	is "$(of exit_code)" 127
}

@test "nothing is open above 2, and the terminal's master is not reachable" {
	start
	ex 'ls /proc/self/fd | tr "\n" " "'
	is "$(of output)" '0 1 2 3 '
}

@test "a command of blanks is refused before a session is made; an empty one too" {
	start
	run -100 --separate-stderr sb-exec '   '
	has "$output" 'invalid command request: cmd must be non-empty'
	run -100 --separate-stderr sb-exec ''
	has "$output" '"kind":"invalid_request"'
	is "$(sb-session-ls | grep -c .)" 1
	run -1 --separate-stderr sb-exec -s nobody true
	has "$output" '"message":"workspace session not found: nobody","details":{"workspace_session_id":"nobody"}'
}

# ---- the end of a job ----

@test "A19: a child in the background does not hold the answer, is listed, logged, and can be ended" {
	start
	ex -y 60000 '(while :; do echo tick; sleep 0.1; done) & echo started'
	is "$(of status) $(of exit_code)" "ok 0"
	has "$(of output)" started
	[ "$(of background_count)" -ge 1 ]
	is "$(of '|.background_processes|length')" "$(of background_count)"
	has "$(of '|.background_processes[0].command')" 'while :; do echo tick'
	[ "$(of '|.background_processes[0].pid')" -gt 1 ]
	over "$job"
	eventually eval 'row tick && [ "$(of total_lines)" -gt 4 ]'
	has "$(inside)" sleep
	sb-job-kill "$job"
	later sb-pty-read "$job"
	is "$(of status) $(of background_count)" "ok null"
}

@test "a daemon that let go of the terminal does not hold the answer and dies with the session" {
	start
	ex -y 60000 'setsid sh -c "sleep 1000" >/dev/null 2>&1 </dev/null & exit 4'
	is "$(of exit_code)" 4
	has "$(inside)" 'sleep 1000'
	sb-session-end "$s"
	# Its process goes with it.
	eventually eval '[ -z "$(our_processes "$SB_STORE")" ]'
}

@test "A20: a time limit ends the tree, also what left the group, the session and its parent" {
	start
	ex -y 0 'sleep 1000'
	other=$job
	ex -t 300 -y 60000 'setsid sh -c "trap \"\" TERM; sleep 2; touch canary" & (trap "" TERM; sleep 2; touch canary2) & sleep 30'
	is "$(of status)" timed_out
	run ! has "$(inside)" canary
	active "$other"
	sleep 2.5
	[ ! -e "$upper/canary" ] && [ ! -e "$upper/canary2" ]
	sb-job-kill "$other"
}

@test "A21: three times five hundred children that nobody waits for: no zombies, no process more than before" {
	start
	# Those of the question are in both counts.
	in_session() { sb-run "$s" sh -c 'cat /proc/[0-9]*/stat 2>/dev/null' >stat; }
	in_session
	local before
	before=$(wc -l <stat)
	for _ in 1 2 3; do
		ex -y 60000 'for i in $(seq 500); do (sleep 0.01 &); done; sleep 1'
		is "$(of status)" ok
	done
	none() { in_session && ! grep -q ') Z ' stat && [ "$(wc -l <stat)" = "$before" ]; }
	eventually none
	# Those of the init are no more than it had.
	is "$(of background_count)" null
}

@test "a program that forks faster than it can be killed is ended, whatever it takes" {
	start
	cp "$SB_T/bomb" .
	sb-run "$s" sh -c 'cat >bomb; chmod +x bomb' <bomb
	# Of this user there may be others: leave them room.
	local n
	n=$(($(pgrep -cu "$(id -u)" .) + 100))
	ex -t 200 -y 60000 "./bomb $n; sleep 1000"
	is "$(of status)" timed_out
	run ! has "$(inside)" bomb
}

@test "a shell that kills its parent or everybody ends as a killed one" {
	start
	ex -y 60000 'kill -9 $PPID; sleep 0.1; touch alive'
	is "$(of status) $(of exit_code)" "error -9"
	ex -y 60000 'kill -9 -1; sleep 0.1; touch alive'
	is "$(of status) $(of exit_code)" "error -9"
	[ ! -e "$upper/alive" ]
	ex 'echo still'
	is "$(of output)" still
}

@test "any signal by name reaches all processes of the job" {
	start
	ex -y 0 'trap "echo one; exit 5" USR1; sh -c "trap \"echo two; exit\" USR1; echo ready; while :; do sleep 0.05; done" & while :; do sleep 0.05; done'
	eventually row ready
	sb-job-kill -s SIGUSR1 "$job"
	eventually over "$job"
	eventually row two
	is "$(of exit_code)" 5
	has "$(of output)" one
	run -100 sb-job-kill -s NOPE "$job"
}

@test "the process of a job killed with 9: the command ends with it, and the job gets an end" {
	start
	ex -y 0 'echo ready; sleep 1000'
	eventually row ready
	kill -KILL "$(job_process "$job")"
	eventually over "$job"
	later sb-pty-read "$job"
	is "$(of status) $(of exit_code)" "error null"
	has "$(of output)" ready
	gone() { ! inside | grep -qF "sleep 1000"; }
	eventually gone
	sb-publish "$s" >out
}

@test "a session that ends under its commands: each says so" {
	start
	ex -y 0 'sleep 1000'
	sb-ns-kill "$s"
	eventually over "$job"
	later sb-pty-read "$job"
	is "$(of status) $(of exit_code)" "error -9"
	has "$(of message)" "session $s ended"
	ex 'echo again'
	is "$(of output)" again
}

@test "output is whole before the answer: a burst just before the end" {
	start
	for how in '' -P '' -P '' -P; do
		# shellcheck disable=SC2086 # nothing or one word
		ex $how -y 60000 'seq 20000; (sleep 1000 &)'
		is "$(of total_lines)" 20000
		is "$(of '|.output|split("\n")|last')" 20000
		sb-job-kill "$job"
	done
}

@test "a flood keeps the beginning and the end, counts the rest, in flat memory" {
	start
	printf 'runtime.namespace_execution.max_transcript_window_bytes 65536\n' >"$SB_STORE/conf"
	ex -y 600000 'seq 3000000; echo END'
	is "$(of status) $(of total_lines)" "ok 3000001"
	is "$(of '|.output|split("\n")|.[0]') $(of '|.output|split("\n")|last')" "1 END"
	[ "$(of dropped_lines)" -gt 2000000 ]
	is "$(of command_session_id)" "$job"
	has "$(of output)" 'rows dropped ...]'
	[ "$(du -sk "$SB_STORE/jobs/$job" | cut -f1)" -lt 1024 ]
	sb-pty-read -r "$job" >bytes 2>words
	has "$(cat words)" 'were not kept'
	is "$(head -n 1 bytes | tr -d '\r') $(tail -n 1 bytes | tr -d '\r')" "1 END"
}

# ---- others ----

@test "publish and end are refused with the list while jobs are active" {
	start
	ex -y 0 'sleep 1000'
	run -98 --separate-stderr sb-publish "$s"
	is "$output" '{"error":{"kind":"operation_failed","message":"workspace session has active command sessions","details":{"workspace_session_id":"'"$s"'","active_command_session_ids":["'"$job"'"]}}}'
	run -98 --separate-stderr sb-session-end "$s"
	has "$output" "$job"
	sb-job-kill "$job"
	sb-publish "$s" >out
	# What it did can still be read.
	later sb-pty-read "$job"
	is "$(of status) $(of workspace_session_id)" "cancelled $s"
}

@test "32 may be active if nothing else is said; the next is told so, and leaves nothing" {
	start
	for _ in $(seq 32); do sb-exec -s "$s" -y 0 'read x' 3>&- >out; done
	is "$(sb-job-ls -r | grep -c .)" 32
	run -98 --separate-stderr sb-exec true
	is "$output" '{"error":{"kind":"server_busy","message":"daemon is at active command capacity","details":{"max_active_commands":32}}}'
	is "$(sb-session-ls | tr -d '\n')" "$s"
	is "$(sb-job-ls | grep -c .)" 32
}

@test "as many jobs as may be active; the session made for one too many is gone" {
	start
	echo 'runtime.command.max_active 2' >"$SB_STORE/conf"
	ex -y 0 'sleep 1000'
	ex -y 0 'sleep 1000'
	run -98 --separate-stderr sb-exec -s "$s" true
	has "$output" '{"error":{"kind":"server_busy","message":"daemon is at active command capacity","details":{"max_active_commands":2}}}'
	run -98 sb-exec true
	is "$(sb-session-ls | grep -c .)" 1
	sb-job-kill "$job"
	ex true
	is "$(of status)" ok
}

@test "active commands are known also when the note of them is old, damaged, empty or lost" {
	start
	echo 'runtime.command.max_active 2' >"$SB_STORE/conf"
	local note=$SB_STORE/jobs/.active first
	ex -y 0 'sleep 1000'
	first=$job
	cp "$note" old
	ex true
	cp "$note" older
	ex -y 0 'sleep 1000'
	cp "$note" newest
	printf '9\nnamespace_execution_' >short
	printf '9\n\n' >damaged
	printf 'x\nnamespace_execution_1\n' >number
	printf '9\n\0' >nul
	: >empty
	for n in newest old older short damaged number nul empty lost; do
		rm -f "$note"
		[ $n = lost ] || cp $n "$note"
		run -98 --separate-stderr sb-session-end "$s"
		has "$output" '"active_command_session_ids":["'"$first"'","'"$job"'"]'
		run -98 --separate-stderr sb-exec -s "$s" true
		has "$output" server_busy
	done
	sb-job-kill "$first"
	ex true
	is "$(of status) $(sb-job-ls -r | tr '\n' ' ')" 'ok namespace_execution_3  '
}

@test "numbers are never given twice, also when jobs are removed or the counter is lost" {
	start
	ex true; ex true
	is "$job" namespace_execution_2
	# Its process takes its time to leave.
	eventually [ ! -e "$SB_STORE/jobs/$job/in" ]
	rm -r "$SB_STORE/jobs/$job"
	ex true
	is "$job" namespace_execution_3
	rm "$SB_STORE/jobs/.last"
	ex true
	is "$job" namespace_execution_4
}

@test "the oldest beyond 512 that are over go, active ones stay" {
	start
	ex -y 0 'sleep 1000'
	first=$job
	ex true
	eventually [ ! -e "$SB_STORE/jobs/$job/in" ]
	# Copies of one that is over stand for many that were.
	for i in $(seq 3 516); do
		cp -R "$SB_STORE/jobs/$job" "$SB_STORE/jobs/namespace_execution_$i"
	done
	ex true
	is "$job" namespace_execution_517
	is "$(sb-job-ls | grep -c .)" 514
	is "$(sb-job-ls | head -n 2 | tail -n 1)" namespace_execution_5
	sb-job-kill "$first"
}

@test "many at once: no result is lost, nothing is left" {
	start
	for i in 1 2 3 4 5 6 7 8; do
		(for k in 1 2 3 4 5; do sb-exec -s "$s" -y 60000 "echo $i-$k"; done) >"out$i" 2>&1 3>&- &
	done
	wait
	is "$(cat out? | jq -r .output | sort | tr '\n' ' ')" \
	    "$(for i in 1 2 3 4 5 6 7 8; do for k in 1 2 3 4 5; do echo "$i-$k"; done; done | sort | tr '\n' ' ')"
	is "$(sb-job-ls -r)" ""
	is "$(sb-job-ls | grep -c .)" 40
}

# ---- automatic sessions ----

@test "a command without a session: made, published, gone; nothing changed, nothing published" {
	start
	answer=$(sb-exec -y 60000 'echo new >n; echo done' 3>&-)
	is "$(of status) $(of output)" "ok done"
	auto=$(of workspace_session_id)
	[ "$auto" != "$s" ] && [ ! -e "$SB_STORE/workspace/$auto" ]
	is "$(sb-stack-version)" 2
	answer=$(sb-exec -y 60000 'cat n' 3>&-)
	is "$(of output)" new
	is "$(sb-stack-version)" 2
	is "$(sb-session-ls | tr -d '\n')" "$s"
}

@test "also a time limit, a cancel and a failed command publish what they did" {
	start
	answer=$(sb-exec -t 300 -y 60000 'echo a >a; sleep 1000' 3>&-)
	is "$(of status)" timed_out
	answer=$(sb-exec -y 60000 'echo b >b; exit 3' 3>&-)
	is "$(of exit_code)" 3
	answer=$(sb-exec -y 60000 'echo c >c; sleep 1000 & setsid sleep 1000 &' 3>&-)
	is "$(of status)" ok
	is "$(sb-stack-version)" 4
	answer=$(sb-exec -y 60000 'cat a b c' 3>&-)
	is "$(of output)" $'a\nb\nc'
	is "$(sb-session-ls | tr -d '\n')" "$s"
}

@test "riders put the end off; the last one publishes" {
	start
	answer=$(sb-exec -y 0 'echo a >a; read x' 3>&-)
	auto=$(of workspace_session_id) first=$(of command_session_id)
	s=$auto
	ex -y 0 'echo b >b; read x'
	run -1 sb-publish "$auto"
	echo | sb-pty-feed -y 60000 "$first" >out
	over "$first" && [ -e "$SB_STORE/workspace/$auto" ]
	is "$(sb-stack-version)" 1
	answer=$(echo | sb-pty-feed -y 60000 "$job" 3>&-)
	is "$(of status)" ok
	[ ! -e "$SB_STORE/workspace/$auto" ]
	is "$(sb-stack-version)" 2
	run -1 sb-exec -s "$auto" true
}

@test "a refused publish keeps the session: parked, explicit, named; it can be mended and published" {
	start
	answer=$(sb-exec -y 0 'echo mine >f; read x' 3>&-)
	auto=$(of workspace_session_id) job=$(of command_session_id)
	eventually [ -s "$SB_STORE/workspace/$auto/upper/f" ]
	sb-exec -y 60000 'echo theirs >f' 3>&- >out
	answer=$(echo | sb-pty-feed -y 60000 "$job" 3>&-)
	is "$(of status) $(of exit_code) $(of publish_rejected) $(of publish_reject_class) $(of conflicted)" \
	    "ok 0 true source_conflict true"
	is "$(of publish_rejection.path) $(of workspace_session_id)" "f $auto"
	is "$(sb-session-ls -v | jq -r 'select(.workspace_session_id == "'"$auto"'").state')" parked
	[ ! -e "$SB_STORE/workspace/$auto/auto" ] && [ -s "$SB_STORE/workspace/$auto/conflicted" ]
	s=$auto
	ex 'cat f; rm f; echo mended >g'
	is "$(of output)" mine
	is "$(of publish_rejected)" null
	run -2 sb-publish "$auto"
	ex 'printf "base\n" >f'
	sb-publish "$auto" >out
	answer=$(sb-exec -y 60000 'cat f g' 3>&-)
	is "$(of output)" $'theirs\nmended'
}

@test "the process of the last job killed with 9: who looks next publishes" {
	start
	answer=$(sb-exec -y 0 'echo kept >k; echo ready; sleep 1000' 3>&-)
	auto=$(of workspace_session_id) job=$(of command_session_id)
	eventually row ready
	kill -KILL "$(job_process "$job")"
	eventually over "$job"
	sb-job-ls >out
	[ ! -e "$SB_STORE/workspace/$auto" ]
	answer=$(sb-exec -y 60000 'cat k' 3>&-)
	is "$(of output)" kept
}

@test "git commits with an identity from the environment; as an ordinary user tar unpacks what has other owners" {
	need git overlay userns jq
	mkdir -p ws; git init -q ws
	(mkdir x && echo 1 >x/f && tar cf ws/x.tar --owner=12345 --group=12345 x)
	make_store
	sb-exec -y 60000 'git commit -q --allow-empty -m no' 3>&- >out
	is "$(jq -r .exit_code out)" 128
	sb-exec -y 60000 -e GIT_AUTHOR_NAME=a -e GIT_AUTHOR_EMAIL=a@x -e GIT_COMMITTER_NAME=a -e GIT_COMMITTER_EMAIL=a@x \
	    'git commit -q --allow-empty -m yes && git log --format=%an%s && tar xf x.tar --no-same-owner && cat x/f' 3>&- >out
	is "$(jq -r .output out)" $'ayes\n1'
}
