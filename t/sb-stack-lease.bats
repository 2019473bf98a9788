# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	make_store
	S=$SB_STORE/layer-stack
	B=B000001-base
	a=$(records "$(rec_x a)" | sb-layer-commit)
	b=$(records "$(rec_x b)" | sb-layer-commit)
	ids "$a" $B | sb-stack-swap 1 >/dev/null
}

# Waits until file $1 is there.
appears() {
	for _ in {1..500}; do
		[ ! -e "$1" ] || return 0
		sleep 0.01
	done
	fail "no $1"
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-stack-lease
	run -100 sb-stack-lease one
	run -100 sb-stack-lease -x one true
	run -100 sb-stack-lease a/b true
	run -100 sb-stack-lease .a true
	run -0 sb-stack-lease -h
	is "$output" "usage: sb-stack-lease name prog..."
}

@test "the layers stay as long as the program runs, and no longer" {
	ids $B >base
	run -0 sb-stack-lease work sh -c "
		sb-stack-swap 2 <base >/dev/null && sb-stack-unused | sb-layer-rm"
	is "$output" "$(ids "$b")"
	[ -d "$S/layers/$a" ]
	is "$(ls -A "$S/leases")" ""
	sb-stack-unused | sb-layer-rm >out
	same out <(ids "$a")
}

@test "the lease holds the manifest of the moment" {
	sb-stack-lease work sh -c "cp '$S/leases/work/manifest' lease"
	same lease "$S/manifest.json"
}

@test "two leases below one head: layers go with the last" {
	ids $B >base
	sb-stack-lease one sb-stack-lease two sh -c '
		sb-stack-swap 2 <base >/dev/null; sb-stack-unused >in'
	same in <(ids "$b")
	sb-stack-unused >out
	LC_ALL=C sort >want < <(printf '%s\n' "$a" "$b")
	same out <(cat want; echo)
}

@test "exits as the program did, with the codes of chains otherwise" {
	run -7 sb-stack-lease work sh -c 'exit 7'
	run -137 sb-stack-lease work sh -c 'kill -KILL $$'
	run -127 --separate-stderr sb-stack-lease work no-such-program
	has "$stderr" no-such-program
	mkdir dir
	run -126 sb-stack-lease work ./dir
	is "$(ls -A "$S/leases")" ""
}

@test "a lease that is held is 98, a dead one is taken over" {
	sb-stack-lease work sh -c 'sb-stack-lease work true; echo $?' >out 2>err
	is "$(cat out)" 98
	has "$(cat err)" "work"
	mkdir "$S/leases/work"
	echo L1 >"$S/leases/work/added"
	touch "$S/leases/work/lock"
	sb-stack-lease work sh -c "[ ! -e '$S/leases/work/added' ]"
}

@test "input, output and arguments are the program's" {
	printf 'a\nb' | sb-stack-lease work sh -c 'cat; printf "%s|" "$@"' sh -x '' $'c d\n' >out
	same out <(printf 'a\nb-x||c d\n|')
}

@test "killed, it leaves the lease to the program, which holds it" {
	ids $B >base
	mkfifo pipe
	sb-stack-lease work sh -c 'echo $PPID >pid.tmp; mv pid.tmp pid; read -r _ <pipe; touch over' 3>&- &
	appears pid
	kill -KILL "$(cat pid)"
	wait $! || is $? 137
	sb-stack-swap 2 <base >/dev/null
	sb-stack-unused | sb-layer-rm >out
	same out <(ids "$b")
	echo >pipe
	appears over
	for _ in {1..500}; do
		sb-stack-unused | sb-layer-rm >out
		[ "$(cat out)" = "" ] || break
		sleep 0.01
	done
	same out <(ids "$a")
	is "$(ls -A "$S/leases")" ""
}

@test "signals sent to it reach the program" {
	local sig
	for sig in TERM HUP INT QUIT USR1; do
		rm -f ready
		# A shell that is no terminal's ignores INT and QUIT here.
		env --default-signal sb-stack-lease work sh -c "trap 'exit 42' $sig; touch ready; while :; do sleep 0.05; done" 3>&- &
		appears ready
		kill -s $sig $!
		wait $! || is "$? $sig" "42 $sig"
	done
	is "$(ls -A "$S/leases")" ""
}

@test "the program's signals are as they were" {
	sb-stack-lease work grep -E '^Sig(Blk|Ign)' /proc/self/status >out
	(trap - PIPE; grep -E '^Sig(Blk|Ign)' /proc/self/status) >want
	is "$(grep SigBlk out)" $'SigBlk:\t0000000000000000'
	same out want
}

@test "killed at any call it leaves nothing that counts" {
	local call n count total=0
	need strace
	for call in mkdirat openat,openat2 fcntl write /^rename unlinkat,unlink; do
		count=$(FOLLOW='' count_calls "$call" sb-stack-lease work true)
		for ((n = 1; n <= count; n++)); do
			FOLLOW='' kill_at "$call" $n sb-stack-lease work true >/dev/null 2>&1 || :
			total=$((total + 1))
			echo | sb-layer-rm >/dev/null
			is "$(ls -A "$S/leases")" ""
		done
	done
	echo "# killed $total times" >&3
	[ $total -gt 10 ]
}

@test "no store and no manifest that can be read are refused" {
	SB_STORE=$T/none run -111 sb-stack-lease work true
	printf x >"$S/manifest.json"
	run -111 sb-stack-lease work touch ran
	[ ! -e ran ]
	is "$(ls -A "$S/leases")" ""
}
