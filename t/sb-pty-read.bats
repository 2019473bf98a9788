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

@test "-c: rows as far as they fit as JSON; the others are there" {
	start 'seq -f "row \"%g\"" 100'
	run -100 sb-pty-read -c 0 $job
	run -100 sb-pty-read -r -c 9 $job
	sb-pty-read -c 200 $job >out
	is "$(jq -c '[.start_offset, .end_offset, .total_lines, (.output | tojson | length <= 202)]' out)" '[0,17,100,true]'
	for ((at = 0; at < 100; at = $(jq .end_offset out))); do
		sb-pty-read -c 200 -o $at $job >out
		jq -r .output out
	done >all
	is "$(cat all)" "$(seq -f 'row "%g"' 100)"
	sb-pty-read -c 50 -n 1 $job >out
	is "$(jq -r .output out)" 'row "1"'
	sb-pty-read -c 4 $job >out
	is "$(jq -r .output out)" "[... 7 bytes cut ...]"
	# What does not fit comes with the next answer.
	sb-exec -s "$s" -y 60000 -c 20 'echo 11111111111111; echo 22222222222222; echo 3333333333333' >out 3>&-
	is "$(jq -c '[.output, .command_session_id]' out)" '["11111111111111","namespace_execution_2"]'
	sb-job-wait -c 20 namespace_execution_2 >out
	is "$(jq -r .output out)" 22222222222222
	sb-job-wait namespace_execution_2 >out
	is "$(jq -r .output out)" 3333333333333
	run -100 sb-exec -c 0 true
	run -100 sb-job-wait -c 0 namespace_execution_2
	run -100 sb-pty-feed -c 0 namespace_execution_2
	sb-exec -s "$s" -y 0 'read x; seq 100 120; read y' >out 3>&-
	echo | sb-pty-feed -c 20 -y 0 namespace_execution_3 >out
	eventually eval 'sb-pty-read -o 1 namespace_execution_3 | grep -q 120'
	run -99 sb-job-wait -c 20 -t 0 namespace_execution_3
	is "$(jq '.output | tojson | length <= 22' <<<"$output")" true
}
