# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	make_store
	S=$SB_STORE/layer-stack
	H=$S/history/main.ndjson
	B=B000001-base
}

# Commits a layer with the deletion of $1, and swaps it in.
publish() {
	local id
	id=$(records "$(rec_x "$1")" | sb-layer-commit)
	echo "{\"owner\":\"$1\"}" >"$S/meta/$id.json"
	{ echo "$id"; sb-stack-show; } | sb-stack-swap "$(sb-stack-version)" >/dev/null
}

# Versions printed by sb-log, newest first, on one line.
versions() { sb-log "$@" | sed -E 's/^\{"version":([0-9]+),.*\}$/\1/' | paste -sd' '; }

@test "usage errors are 100, -h is 0" {
	run -100 sb-log x
	run -100 sb-log -x
	run -100 sb-log -n
	run -100 sb-log -n -1
	run -100 sb-log -n 1x
	run -0 sb-log -h
	is "$output" "usage: sb-log [-n count]"
}

@test "an empty history prints nothing" {
	run -0 sb-log
	is "$output" ""
	: >"$H"
	run -0 sb-log
	is "$output" ""
	rm -r "$S/history"
	run -0 sb-log
	is "$output" ""
	SB_STORE=$T/other
	sb-store-init
	run -0 sb-log
	is "$output" ""
}

@test "prints what is written, newest first" {
	publish a
	publish ä
	ids $B | sb-stack-swap 3 >/dev/null
	tac "$H" >want
	run -0 sb-log
	sb-log >got
	same got want
	is "$(wc -l <got)" 3
	has "$(head -n 1 got)" '"version":4,"cause":"rollback"'
	has "$(sed -n 2p got)" '"owner":"ä"'
}

@test "-n is the most that is printed" {
	publish a
	publish b
	publish c
	is "$(versions)" "4 3 2"
	is "$(versions -n 2)" "4 3"
	is "$(versions -n 3)" "4 3 2"
	is "$(versions -n 18446744073709551615)" "4 3 2"
	is "$(versions -n 0)" ""
}

@test "every line is JSON" {
	need jq
	publish a
	publish b
	is "$(sb-log | jq -r '[.version, .cause, .owner] | join(" ")')" "$(printf '%s\n' '3 publish b' '2 publish a')"
}

@test "what is newer than the manifest is not shown, torn or whole" {
	publish a
	publish b
	cp "$H" good
	sb-log >want
	for tail in '{"version":4,"cause":"write","layer":"L1"}'$'\n' \
	    '{"version":4,"cause":"write","layer":"L1"}'$'\n''{"version":5,"cause":"wri'; do
		{ cat good; printf %s "$tail"; } >"$H"
		sb-log >got 2>err
		same got want
	done
}

@test "a torn tail is named and no error" {
	publish a
	sb-log >want
	printf '{"version":3,"cause' >>"$H"
	run -0 --separate-stderr sb-log
	is "$output" "$(cat want)"
	has "$stderr" "is torn"
	has "$stderr" "byte $(wc -c <want)"
	# Nothing behind the manifest's line was committed: no loss.
	printf 'x\n' >>"$H"
	run -0 --separate-stderr sb-log
	is "$output" "$(cat want)"
	has "$stderr" "is damaged"
	publish b
	run -0 --separate-stderr sb-log
	is "$stderr" ""
}

@test "a damaged line is named, the others are printed, and it is 111" {
	publish a
	publish b
	publish c
	sed -i 's/"version":3/"version":x/' "$H"
	run -111 --separate-stderr sb-log
	is "$(wc -l <<<"$output")" 2
	has "$stderr" "byte $(head -n 1 "$H" | wc -c) is damaged"
	run -0 --separate-stderr sb-log -n 1
	is "$stderr" ""
	sed -i 's/"version":x/"version":4/' "$H"
	run -111 --separate-stderr sb-log
	is "$(wc -l <<<"$output")" 2
	sed -i 's/"version":4/"version":0/; $s/.*/x/' "$H"
	run -111 --separate-stderr sb-log
	has "$stderr" "damaged"
	head -c 1000 /dev/urandom >"$H"
	echo >>"$H"
	run -111 --separate-stderr sb-log
	is "$output" ""
}

@test "a reader waits for a swap at work rather than call its line torn" {
	need strace
	publish a
	printf '{"version":3' >>"$H"
	ids $B >in
	# Held up in cutting that off, with the lock.
	strace -qq -o trace -e trace=ftruncate -e inject=ftruncate:delay_enter=1000000 \
	    sb-stack-swap 2 <in >out 3>&- &
	for _ in {1..500}; do
		! grep -q ftruncate trace 2>/dev/null || break
		sleep 0.01
	done
	sb-log >got 2>err
	is "$(cat err)" ""
	is "$(sed -E 's/.*"version":([0-9]+).*/\1/' got | paste -sd' ')" "3 2"
	wait $!
}

@test "read without a lock while versions are made, every line is whole" {
	local pid
	publish a
	(
		for ((i = 2; i < 60; i += 2)); do
			sb-stack-show >head
			ids $B | sb-stack-swap $i
			sb-stack-swap $((i + 1)) <head
		done
	) >swapped 3>&- &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		sb-log >got 2>err
		is "$(cat err)" ""
		sed -nE 's/^\{"version":([0-9]+),"cause":"(publish|rollback)",.*\}$/\1/p' got >read
		same read <(seq "$(wc -l <got)" -1 1 | awk '{ print $1 + 1 }')
	done
	wait $pid
	is "$(versions | wc -w)" 59
}

@test "a long history is read from its end" {
	need strace
	for ((i = 2; i < 2000; i++)); do
		printf '{"version":%d,"cause":"publish","layer":"L%d","x":"%0200d"}\n' $i $i 0
	done >"$H"
	sed -i 's/"version": 1/"version": 1999/' "$S/manifest.json"
	is "$(versions | wc -w)" 1998
	strace -qq -o trace -e trace=pread64 sb-log -n 3 >got
	is "$(wc -l <got)" 3
	# The loader reads with this call as well, less at once.
	is "$(awk -F' = ' '$2 > 4096 { print $2 }' trace)" 65536
}

@test "a manifest that cannot be read is 111" {
	publish a
	printf x >"$S/manifest.json"
	run -111 sb-log
	rm "$H"
	mkdir "$H"
	run -111 sb-log
}

@test "a full disk, a closed stdout and a missing store are 111" {
	publish a
	run -111 sh -c 'sb-log >/dev/full'
	run -111 sh -c 'sb-log >&-'
	SB_STORE=$T/none run -111 sb-log
	SB_STORE='' run -100 sb-log
}
