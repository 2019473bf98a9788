# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
# shellcheck disable=SC2030,SC2031 # each test is a subshell
# shellcheck disable=SC2154 # load exec sets them
bats_require_minimum_version 1.5.0
load lib
load exec

# What programs are told of a command: whole objects, rows, cursors.

# state STATUS CODE: the beginning of an answer.
state() { printf '{"status":"%s","exit_code":%s,"wall_time_seconds":W,"command_total_time_seconds":C,' "$1" "$2"; }
# rows START END TOTAL TOKENS OUTPUT: what follows.
rows() { printf '"start_offset":%s,"end_offset":%s,"total_lines":%s,"original_token_count":%s,"output":"%s",' "$@"; }
# now: what sb-exec would say if asked again.
now() { answer=$(sb-job-wait -t 0 "$@" "$job" 3>&-) || :; }
# printed N: as many rows are there.
printed() { later sb-pty-read "$job" && [ "$(of total_lines)" = "$1" ]; }
job_='"command_session_id":"J",'
ses_='"workspace_session_id":"S"'

# ---- whole answers ----

@test "done at once, in a session of its own: ok, 0, its row, no job" {
	start
	answer=$(sb-exec -y 60000 'echo hi' 3>&-)
	is "$(whole)" "$(state ok 0)$(rows 0 1 1 1 hi)$ses_}"
	is "$(of '|.wall_time_seconds >= .command_total_time_seconds')" true
	[ ! -e "$SB_STORE/workspace/$(of workspace_session_id)" ]
}

@test "exit 3: error, 3, nothing printed" {
	start
	ex -y 60000 'exit 3'
	is "$(whole)" "$(state error 3)$(rows 0 0 0 0 '')$ses_}"
	is "$(of workspace_session_id)" "$s"
}

@test "it goes on: running, null, both rows; the job; the last rows can change" {
	start
	ex -y 0 'printf "building\nstep 1 of 9"; sleep 1000'
	eventually row 'step 1 of 9'
	now
	is "$(whole)" "$(state running null)$(rows 0 2 2 5 'building\nstep 1 of 9')$job_$ses_,\"live_from\":0}"
	is "$(of '|.wall_time_seconds == .command_total_time_seconds')" true
}

@test "a time limit: timed_out, 124, and the command's time ends before the rest" {
	start
	ex -t 200 -y 60000 'sleep 1000'
	is "$(whole)" "$(state timed_out 124)$(rows 0 0 0 0 '')$ses_}"
	is "$(of '|.wall_time_seconds >= .command_total_time_seconds and .command_total_time_seconds >= 0.2')" true
	ex -t 0 -y 60000 'sleep 1000'
	is "$(whole)" "$(state timed_out 124)$(rows 0 0 0 0 '')$ses_}"
}

@test "a shell killed by signal 9: error, -9; one killed under it is the shell's affair" {
	start
	ex -y 60000 'kill -9 $$'
	is "$(whole)" "$(state error -9)$(rows 0 0 0 0 '')$ses_}"
	ex -y 60000 'kill -SEGV $$'
	is "$(whole)" "$(state error -11)$(rows 0 0 0 0 '')$ses_}"
	ex -y 60000 'sh -c "kill -9 \$\$"; exit $?'
	is "$(of status) $(of exit_code)" "error 137"
	ex -y 60000 'exit 255'
	is "$(of status) $(of exit_code)" "error 255"
}

@test "input to cat comes back twice, by echo and by cat; ctrl-c ends it: cancelled, 130" {
	start
	ex -R -y 0 cat
	is "$(whole)" "$(state running null)$(rows 0 0 0 0 '')$job_$ses_}"
	printf 'yo\n' | sb-pty-feed -y 0 "$job" >out
	eventually printed 2
	now -R
	is "$(whole)" "$(state running null)$(rows 0 2 2 2 'yo\nyo')$job_$ses_}"
	# The terminal echoes the key.
	answer=$(printf '\003' | sb-pty-feed -R "$job" 3>&-)
	is "$(whole)" "$(state cancelled 130)$(rows 2 3 3 1 '^C')$job_$ses_}"
	ex -y 0 cat
	printf 'yo\n' | sb-pty-feed -y 0 "$job" >out
	eventually printed 2
	now
	is "$(whole)" "$(state running null)$(rows 0 2 2 2 'yo\nyo')$job_$ses_,\"live_from\":0}"
	# Rows that could still change come again, once they cannot.
	answer=$(printf '\003' | sb-pty-feed "$job" 3>&-)
	is "$(whole)" "$(state cancelled 130)$(rows 0 3 3 2 'yo\nyo\n^C')$job_$ses_}"
}

@test "of five rows two are read from the third on" {
	start
	ex -y 60000 'printf "a\nb\nc\nd\ne\n"'
	later sb-pty-read -o 2 -n 2 "$job"
	is "$(whole)" "$(state ok 0)$(rows 2 4 5 1 'c\nd')$job_$ses_}"
	later sb-pty-read -R -o 2 -n 2 "$job"
	is "$(whole)" "$(state ok 0)$(rows 2 4 5 1 'c\nd')$job_$ses_}"
}

@test "an unknown job reads as an empty success that says it was not found; input for it is an error" {
	start
	later sb-pty-read namespace_execution_999
	is "$answer" \
	    '{"status":"ok","exit_code":null,"wall_time_seconds":0.0,"command_total_time_seconds":0.0,"start_offset":0,"end_offset":0,"total_lines":0,"original_token_count":0,"output":"","command_session_id":"namespace_execution_999","found":false}'
	run -1 --separate-stderr sb-pty-feed namespace_execution_999 <<<x
	is "$output" '{"error":{"kind":"operation_failed","message":"command not found: namespace_execution_999","details":{}}}'
	run -1 --separate-stderr sb-job-wait namespace_execution_999
	is "$output" '{"error":{"kind":"operation_failed","message":"command not found: namespace_execution_999","details":{}}}'
}

@test "an automatic publish that is refused: what the command did counts, and the class is said" {
	start
	answer=$(sb-exec -y 60000 'touch .wh.x' 3>&-)
	has "$(whole)" "$(state ok 0)$(rows 0 0 0 0 '')$ses_,\"publish_rejected\":true,\"publish_reject_class\":\"protected_path\""
	is "$(of conflicted)" true
}

@test "input to a command that is over, or none, is an error with these words" {
	start
	ex -y 60000 true
	run -2 --separate-stderr sb-pty-feed "$job" <<<x
	is "$output" '{"error":{"kind":"operation_failed","message":"command already completed: '"$job"'","details":{}}}'
	ex -y 0 cat
	run -100 --separate-stderr sb-pty-feed "$job" </dev/null
	is "$output" '{"error":{"kind":"invalid_request","message":"stdin must be non-empty","details":{}}}'
}

@test "a yield of 0 answers at once; a wait for what is over too" {
	start
	ex -y 0 'read x'
	is "$(of status)" running
	echo | sb-pty-feed -y 60000 "$job" >out
	later sb-job-wait -t 0 "$job"
	is "$(of status)" ok
}

# ---- rows ----

@test "none behind the end; of limits 0 is 1 and 5000 is 1000" {
	start
	ex -y 60000 'seq 1500'
	for how in '' -R; do
		# shellcheck disable=SC2086 # nothing or one word
		later sb-pty-read $how -o 1509 "$job"
		is "$(of '|[.start_offset,.end_offset,.total_lines,.output]' | tr -d ' \n')" '[1509,1509,1500,""]'
		# shellcheck disable=SC2086
		later sb-pty-read $how -n 0 "$job"
		is "$(of end_offset) $(of output)" "1 1"
		# shellcheck disable=SC2086
		later sb-pty-read $how -n 5000 "$job"
		is "$(of end_offset)" 1000
		# shellcheck disable=SC2086
		later sb-pty-read $how -o 1000 -n 5000 "$job"
		is "$(of end_offset) $(of total_lines)" "1500 1500"
		# shellcheck disable=SC2086
		later sb-pty-read $how "$job"
		is "$(of end_offset)" 200
	done
}

@test "tokens are a quarter of the bytes of the output, rounded up" {
	start
	ex -y 60000 'printf "\303\244\303\244\303\244"'
	is "$(of original_token_count)" 2
	# Each of these is three bytes in the output.
	ex -R -P -y 60000 'printf "\377\377\377"'
	is "$(of original_token_count) $(of output)" "3 $(printf '\357\277\275\357\277\275\357\277\275')"
}

@test "raw rows: split at LF, one CR removed, nothing rendered, NUL kept, bytes that are no UTF-8 replaced" {
	start
	printf 'a\r\nb\r\r\n10%%\r20%%\n\033[31mred\033[0m\t\bx\n\0\n\xe2\x82\xff\nend' >in
	ex -R -P -i in -y 60000 cat
	is "$(of '|.output|@json')" '"a\nb\r\n10%\r20%\n\u001b[31mred\u001b[0m\t\bx\n\u0000\n'"$(printf '\357\277\275\357\277\275')"'\nend"'
	is "$(of total_lines) $(of end_offset) $(of live_from)" "7 7 null"
	later sb-pty-read -R -o 1 -n 1 "$job"
	is "$(of '|.output|@json')" '"b\r"'
	later sb-pty-read -R -o 6 "$job"
	is "$(of output)" end
	ex -R -P -y 60000 'echo out; printf "e\r\n" >&2'
	is "$(of output) $(of '|.stderr|@json') $(of stderr_total_lines)" 'out "e" 1'
	later sb-pty-read -R -e "$job"
	is "$(of output)" e
	run -100 sb-pty-read -r -R "$job"
}

@test "NUL is nothing in rendered rows, and stays in raw ones" {
	start
	ex -y 0 'printf "a\0b\nc\0"; sleep 1000'
	eventually printed 2
	is "$(of '|.output|@json')" '"ab\nc"'
	sb-job-kill "$job"
	later sb-pty-read "$job"
	is "$(of '|.output|@json')" '"ab\nc"'
	later sb-pty-read -R "$job"
	is "$(of '|.output|@json')" '"a\u0000b\nc\u0000"'
}

@test "the cursor: what was shown half comes again whole, a last answer moves it too" {
	start
	ex -y 0 'printf "one\ntw"; read x; printf "o\nthree\n"; exit 4'
	eventually row tw
	now
	is "$(of output)" $'one\ntw'
	answer=$(echo | sb-pty-feed -y 60000 "$job" 3>&-)
	# Echo ends the row that was begun.
	is "$(of '|[.status,.start_offset,.end_offset,.output]' | tr -d ' \n')" '["error",0,4,"one\ntw\no\nthree"]'
	later sb-job-wait "$job"
	is "$(of '|[.status,.start_offset,.end_offset,.total_lines,.output]' | tr -d ' \n')" '["error",4,4,4,""]'
	# Reading by number stays as it was, and so do raw rows.
	later sb-pty-read "$job"
	is "$(of output)" $'one\ntw\no\nthree'
	later sb-job-wait -R "$job"
	is "$(of output)" $'one\ntw\no\nthree'
	later sb-job-wait -R "$job"
	is "$(of start_offset) $(of output)" "4 "
}

@test "the cursor of raw rows: a row without its end comes again, whole ones do not" {
	start
	ex -P -I -y 0 'printf "one\ntw"; read x; printf "o\nthree\n"'
	eventually row tw
	now -R
	is "$(of '|[.end_offset,.live_from,.output]' | tr -d ' \n')" '[2,1,"one\ntw"]'
	answer=$(echo | sb-pty-feed -R -y 60000 "$job" 3>&-)
	is "$(of '|[.start_offset,.end_offset,.output]' | tr -d ' \n')" '[1,3,"two\nthree"]'
}

@test "rows that are printed in the background come with the next answer" {
	start
	ex -y 60000 'mkfifo go; echo first; (read x <go; echo second; read x <go) &'
	is "$(of '|[.status,.end_offset,.output]' | tr -d ' \n')" '["ok",1,"first"]'
	sb-run "$s" sh -c 'echo >go'
	eventually printed 2
	now
	is "$(of '|[.status,.start_offset,.output]' | tr -d ' \n')" '["ok",1,"second"]'
}

@test "of a job whose process was killed rows that were live stay, and can change no more" {
	start
	ex -P -y 0 'echo a; echo e >&2; printf b; sleep 1000'
	eventually row b
	kill -KILL "$(job_process "$job")"
	eventually over "$job"
	later sb-pty-read "$job"
	is "$(of status) $(of exit_code)" "error null"
	is "$(of output) $(of live_from)" $'a\nb null'
	later sb-pty-read -e "$job"
	is "$(of output)" e
	later sb-pty-read -R "$job"
	is "$(of output) $(of live_from)" $'a\nb null'
}

@test "the same when it was over, and only what was left in the background printed" {
	start
	ex -P -y 60000 'echo a; (until [ -e 1 ]; do sleep 0.02; done; printf x; until [ -e 2 ]; do sleep 0.02; done; echo y; printf z; sleep 1000) &'
	sb-run "$s" touch 1
	eventually printed 2
	sb-run "$s" touch 2
	more() { grep -q z "$SB_STORE/jobs/$job/log"; }
	eventually more
	kill -KILL "$(job_process "$job")"
	gone() { [ -z "$(job_process "$job")" ]; }
	eventually gone
	# Nobody had asked for more of what could change; the bytes are there.
	later sb-pty-read "$job"
	is "$(of output) $(of live_from)" $'a\nx null'
	later sb-pty-read -R "$job"
	is "$(of output) $(of live_from)" $'a\nxy\nz null'
}

@test "the time of a job stops when it has ended" {
	start
	ex -y 60000 true
	local before
	before=$(of wall_time_seconds)
	later sb-pty-read "$job"
	is "$(of wall_time_seconds)" "$before"
}

@test "two models: what is written over, what the cursor moves to, an alternate screen" {
	start
	ex -y 60000 'printf "10%%\r50%%\r100%%\n"; printf "a\nb\n\033[2AX\n\n"; printf "\033[?1049hhidden\033[?1049lend\n"'
	is "$(of output)" $'100%\nX\nb\nend'
	ex -w 10x4 -y 0 'printf "\033[?1049h\033[HALT"; sleep 1000'
	eventually row ALT
	is "$(of live_from)" 0
	# A line is one row, however long it is.
	ex -w 10x4 -y 60000 'printf "%0500d\n" 7'
	is "$(of total_lines) $(of '|.output|length')" "1 500"
}

# ---- what was not kept ----

@test "a gap in a window is said, in the middle and at its start; reading goes on behind it" {
	start
	printf 'runtime.namespace_execution.max_transcript_window_bytes 65536\n' >"$SB_STORE/conf"
	ex -y 60000 'seq 300000'
	is "$(of total_lines) $(of command_session_id)" "300000 $job"
	local from lost
	from=$(of dropped_from) lost=$(of dropped_lines)
	is "$(of '|.output|split("\n")|.['"$from"']')" "[... $lost rows dropped ...]"
	is "$(of '|.output|split("\n")|.['"$((from - 1))"']')" "$from"
	is "$(of '|.output|split("\n")|.['"$((from + 1))"']')" "$((from + lost + 1))"
	# Within the gap.
	later sb-pty-read -o $((from + 10)) -n 3 "$job"
	is "$(of '|[.start_offset,.end_offset,.dropped_from,.dropped_lines]' | tr -d ' \n')" \
	    "[$((from + 10)),$((from + lost + 3)),$((from + 10)),$((lost - 10))]"
	is "$(of output)" "[... $((lost - 10)) rows dropped ...]"$'\n'"$((from + lost + 1))"$'\n'"$((from + lost + 2))"$'\n'"$((from + lost + 3))"
	# Before it, and behind it.
	later sb-pty-read -o $((from - 2)) -n 2 "$job"
	is "$(of output) $(of dropped_lines)" "$((from - 1))"$'\n'"$from null"
	later sb-pty-read -o $((from + lost)) -n 1 "$job"
	is "$(of output) $(of dropped_lines)" "$((from + lost + 1)) null"
}

@test "a gap among raw rows is said, and what follows begins with a whole one" {
	start
	printf 'runtime.namespace_execution.max_transcript_window_bytes 65536\n' >"$SB_STORE/conf"
	ex -R -P -y 60000 'seq 300000; printf last'
	local from lost
	from=$(of dropped_from) lost=$(of dropped_lines)
	is "$(of total_lines)" 300001
	# There is more than an answer has room for.
	while
		of output >>got
		[ "$(of end_offset)" != 300001 ]
	do
		later sb-job-wait -R "$job"
	done
	is "$(wc -l <got)" $((300001 - lost))
	is "$(sed -n $((from + 1))p got)" "$((from + lost + 1))"
	is "$(tail -n 1 got)" last
	later sb-pty-read -R -o $((from + 10)) -n 2 "$job"
	is "$(of output)" "$((from + lost + 1))"$'\n'"$((from + lost + 2))"
	is "$(of start_offset) $(of end_offset) $(of dropped_lines)" "$((from + 10)) $((from + lost + 2)) $((lost - 10))"
	later sb-pty-read -R -o 300000 "$job"
	is "$(of output)" last
}

@test "3 MiB with the settings as they are: the first row, the last row, all are counted" {
	start
	ex -P -y 60000 'yes 0123456789 | head -c 3145728'
	later sb-pty-read -n 1 "$job"
	is "$(of output) $(of total_lines) $(of dropped_lines)" "0123456789 285976 null"
	later sb-pty-read -R -o 285974 "$job"
	is "$(of output) $(of dropped_lines)" $'0123456789\n012 null'
	later sb-pty-read -o 100000 -n 1 "$job"
	[ "$(of dropped_lines)" -gt 1000 ]
}

@test "a line beyond 1 MiB is several rows, which say so" {
	start
	printf 'runtime.namespace_execution.max_transcript_window_bytes 8388608\n' >"$SB_STORE/conf"
	ex -P -y 60000 'head -c 1500000 /dev/zero | tr "\0" x'
	is "$(of total_lines) $(of wrapped) $(of '|.output|length')" "2 true 1500001"
	later sb-pty-read -R "$job"
	is "$(of total_lines) $(of wrapped) $(of '|.output|length')" "1 null 1500000"
}

@test "output that a full device refuses is lost, and said" {
	need strace
	start
	refused() { grep -q ENOSPC trace 2>/dev/null; }
	(eventually refused && sb-run "$s" touch go) 3>&- &
	answer=$(strace -f -qq -o trace -P "$SB_STORE/jobs/namespace_execution_1/log" -e trace=pwrite64 \
	    -e inject=pwrite64:error=ENOSPC:when=1 sb-exec -s "$s" -P -y 60000 'echo lost; until [ -e go ]; do sleep 0.02; done; echo kept; exit 3' 3>&-)
	wait
	is "$(of status) $(of exit_code) $(of message)" "error 3 unable to keep all output: No space left on device"
	# Of the other files there was room.
	is "$(of output)" $'lost\nkept'
	job=namespace_execution_1
	later sb-pty-read -R "$job"
	is "$(of output) $(of dropped_lines)" "kept 1"
}

# asked FILE: bytes that the traced program read from what it opened.
asked() { awk -F'= ' '/^(read|pread64)\(/ { n += $NF } END { print n + 0 }' "$1"; }

@test "reading costs what is read, not all that was printed" {
	need strace
	start
	printf 'runtime.namespace_execution.max_transcript_window_bytes 67108864\n' >"$SB_STORE/conf"
	ex -P -y 600000 'seq -f "%.0f a row that is somewhat longer" 500000'
	[ "$(stat -c %s "$SB_STORE/jobs/$job/log")" -gt 15000000 ]
	for how in '' -R; do
		# shellcheck disable=SC2086 # nothing or one word
		answer=$(strace -qq -e trace=read,pread64 -o calls sb-pty-read $how -o 450000 -n 5 "$job")
		is "$(of '|.output|split("\n")|.[0]')" '450001 a row that is somewhat longer'
		[ "$(asked calls)" -lt 200000 ] || fail "read $(asked calls) bytes"
	done
}

@test "results stay when their session has ended" {
	start
	ex -y 60000 'echo kept; exit 3'
	sb-session-end "$s"
	later sb-pty-read "$job"
	is "$(whole)" "$(state error 3)$(rows 0 1 1 1 kept)$job_$ses_}"
	is "$(of workspace_session_id)" "$s"
	sb-pty-read -r "$job" | grep -q kept
}

@test "an answer that could not be printed has read nothing" {
	start
	run -111 bash -c 'sb-exec -s "$1" -y 60000 "seq 3" 3>&- >/dev/full' - "$s"
	run -111 bash -c 'sb-job-wait namespace_execution_1 >/dev/full'
	later sb-job-wait namespace_execution_1
	is "$(of output)" $'1\n2\n3'
	later sb-job-wait namespace_execution_1
	is "$(of output)" ""
}

@test "an answer has no more bytes than the window; the rest comes with the next" {
	start
	printf 'runtime.namespace_execution.max_transcript_window_bytes 16384\n' >"$SB_STORE/conf"
	ex -P -R -y 60000 'seq -f "%030.0f" 2000'
	is "$(of total_lines) $(of end_offset) $(of '|.output|length')" "2000 528 16367"
	[ "$(of command_session_id)" = "$job" ]
	printf '%s\n' "$(of output)" >got
	for _ in 1 2 3; do
		later sb-job-wait -R "$job"
		printf '%s\n' "$(of output)" >>got
	done
	is "$(of end_offset)" 2000
	seq -f "%030.0f" 2000 | cmp - got
	# One row that is longer is cut, and says so.
	ex -P -R -y 60000 'head -c 80000 /dev/zero; echo; echo next'
	is "$(of '|.output|length') $(of end_offset)" "16409 1"
	has "$(of output)" "[... 63616 bytes cut ...]"
	later sb-job-wait -R "$job"
	is "$(of output)" next
	# NUL is nothing on a terminal.
	ex -y 60000 'head -c 30000 /dev/zero; printf "a\0b\n"'
	is "$(of output) $(of total_lines)" "ab 1"
	# Standard error has a window of its own.
	ex -P -R -y 60000 'seq -f "%030.0f" 2000 >&2; echo out'
	is "$(of output) $(of stderr_total_lines) $(of stderr_end_offset)" "out 2000 528"
}
