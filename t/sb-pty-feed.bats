# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns jq
	mkdir -p ws; make_store
	s=$(sb-session-new)
	sb-exec -s "$s" -y 0 "$@" >out 3>&-
	job=namespace_execution_1
}

@test "wrong arguments are 100, no job is 1, a missing store 111" {
	make_store
	run -100 sb-pty-feed
	run -100 sb-pty-feed -w 1 x
	run -100 sb-pty-feed -y x x
	run -1 sb-pty-feed nobody </dev/null
	run -1 sb-pty-feed namespace_execution_1 </dev/null
	SB_STORE=$T/no run -111 sb-pty-feed namespace_execution_1 </dev/null
}

@test "a large input arrives whole through a pipe" {
	start -P -I 'cat'
	head -c 3000000 /dev/urandom >random
	sb-pty-feed -E -y 60000 $job <random >out
	is "$(jq -r .status out)" ok
	is "$(sb-pty-read -r $job | wc -c)" 3000000 ||
	    is "$(sb-pty-read -r $job 2>/dev/null | tail -c 1000000 | sha256sum)" "$(tail -c 1000000 random | sha256sum)"
}

@test "lines of two feeders arrive whole" {
	start -P -I 'cat'
	for i in 1 2; do
		(for k in $(seq 50); do echo "$i line $k"; done | sb-pty-feed -y 0 $job >"o$i" 3>&-) &
	done
	wait
	sb-pty-feed -E -y 60000 $job </dev/null >out
	is "$(sb-pty-read -r $job | grep -c 'line')" 100
}

@test "a command that ends while it is fed is answered with its end" {
	start 'read x; exit 4'
	is "$(echo q | sb-pty-feed -E -y 60000 $job | jq -c '[.status,.exit_code]')" '["error",4]'
	# Its input is closed before its end is known.
	for i in 2 3 4 5; do
		sb-exec -s "$s" -P -I -y 0 head -c 3 >out 3>&-
		is "$(yes | head -c 1000000 | sb-pty-feed -y 60000 namespace_execution_$i | jq -c '[.status,.output]')" '["ok","y\ny"]'
	done
	sb-exec -s "$s" -P -I -y 0 'head -c 3; exit 5' >out 3>&-
	is "$(yes | head -c 1000000 | sb-pty-feed -y 60000 namespace_execution_6 | jq -c '[.status,.exit_code,.output]')" '["error",5,"y\ny"]'
}

@test "what is fed at once stays together, also when there is no room for all of it" {
	start -P -I 'while [ ! -e go ]; do sleep 0.05; done; cat'
	for i in a b c d; do
		head -c 30000 /dev/zero | tr '\0' $i | sb-pty-feed -y 0 $job >"o$i" 3>&- &
	done
	# More than a pipe holds: one of them is not through, the others wait.
	sleep 0.5
	sb-run "$s" touch go
	wait
	sb-pty-feed -E -y 60000 $job </dev/null >out
	sb-pty-read -r $job >bytes
	is "$(wc -c <bytes)" 120000
	is "$(tr -s a-d <bytes | wc -c)" 4
}

@test "a full device is 111" {
	start cat
	echo x >in
	run -111 bash -c 'sb-pty-feed -y 0 "$1" <in >/dev/full' - $job
}

@test "-3: a newline when the input is delivered; then it may be ended" {
	start 'read x; echo "got $x"; read y'
	echo text | sb-pty-feed -3 4 -y 60000 $job 4>ready >out 3>&- &
	eventually [ -s ready ]
	kill -TERM $!
	wait $! || :
	got() { sb-pty-read $job | grep -q 'got text'; }
	eventually got
	run -100 sb-pty-feed -3 9 $job </dev/null
	sb-job-kill $job
}

@test "any number of milliseconds is a wait" {
	start true
	run -2 sb-pty-feed -y 18446744073709551615 $job <<<x
	sb-job-wait -t 18446744073709551615 $job >out
	is "$(jq -r .status out)" ok
}

@test "a stopped process of a job is an error, not a wait without end" {
	start cat
	stop_job $job
	run -99 sb-pty-feed -y 500 $job <<<x
	has "$output" "command io failed for $job: its process does not answer"
	sb-job-kill $job
}
