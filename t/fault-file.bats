# SPDX-License-Identifier: MIT
# Changes of a file of head that are killed, or fail, at each of their calls,
# and answers while something cannot be read; for changes in a session see
# flow-file.bats. Then both on a full disk.
bats_require_minimum_version 1.5.0
load lib
load fault

teardown() {
	! mountpoint -q "$T/small" 2>/dev/null || umount "$T/small"
	sb_teardown
}

# edits OLD NEW: the array.
edits() { jq -cn --arg a "$1" --arg b "$2" '[{old_string: $a, new_string: $b}]'; }

# ---- head ----

template() {
	need jq
	mkdir -p ws/d; seq 3 >ws/d/f; echo '*.log' >ws/.gitignore
	make_store
	edits 1 one | sb-file-edit -a operation:r1 d/f >out
	edits 2 two >e
	edits 3 three >again
	keep_template
}

# What is left of leases, stages, tickets and notes of layers.
rest() { (cd "$SB_STORE/layer-stack" && echo leases/* staging/* queue/* && find meta -type f | wc -l); }

# edit_round K: with "how", the options of inject.
edit_round() {
	local S=$SB_STORE/layer-stack
	new_round
	rc=0
	# shellcheck disable=SC2086 # several words
	inject $how -n "$1" -o rec sb-file-edit -a operation:r2 d/f <"$T/e" >out 2>err || rc=$?
	if [ "$how" != '' ]; then
		[ $rc = 0 ] || [ $rc = 111 ] || fail "exit $rc: $(cat err)" || return
		[ $rc = 0 ] || [ -s err ] || fail "no message" || return
	fi
	old_or_new || return
	[ $rc != 0 ] || is "$head" new || return
	# A store in which nothing changed works as before: try some.
	[ $head = new ] || [ $(($1 % 10)) = 0 ] || [ "$(rest)" != "$clean" ] || return 0
	sb-file-edit -t 60000 d/f <"$T/again" >out 2>err || fail "again: $(cat out)" || return
	history_is_whole && sb-stack-show >ids && sweep || return
	is "$(sb-layer-cat d/f <ids | xargs)" "one $([ $head = old ] && echo 2 || echo two) three" || return
	is "$(rest)" "leases/* staging/* queue/*
$((2 * $(sed '/^B/d; /^$/d' ids | wc -l)))"
}

# all_calls HOW: for each call of an edit of head.
all_calls() {
	local how=$1 reads= n clean
	template
	new_round
	clean=$(rest)
	[ "${how%-r}" = "$how" ] || reads=-r
	inject $reads -o rec sb-file-edit -a operation:r2 d/f <e >out
	n=$(wc -l <rec)
	shows >want
	rounds "sb-file-edit $how" "$n" edit_round
	echo "# $n calls" >&3
}

@test "killed at any call, an edit of head is made or not, and the rest is swept" { all_calls ''; }

@test "an edit of head that meets ENOSPC at any call is made or not, and says so" { all_calls '-e ENOSPC'; }

@test "an edit of head that meets EIO at any call, reads too, is made or not, and says so" { all_calls '-e EIO -r'; }

# ---- answers ----

# answer_round K: for the command in "cmd" whose answer is in $T/answer.
answer_round() {
	rc=0
	# shellcheck disable=SC2086
	inject -r -e EIO -n "$1" -o rec $cmd >out 2>err || rc=$?
	[ $rc = 0 ] || [ $rc = 111 ] || fail "exit $rc: $(cat err)" || return
	[ $rc = 0 ] || [ -s err ] || fail "no message" || return
	# The last calls are those that print: whether all arrived is not known.
	cmp -s out "$T/answer" || { [ $rc != 0 ] && { [ ! -s out ] || jq -e '.error.kind | . == "operation_failed" or . == "internal_error"' out >json; }; } ||
	    fail "exit $rc: $(cat out)"
}

@test "what cannot be read is said, never half an answer" {
	local cmd n sum=0
	template
	new_round
	need overlay userns
	s=$(sb-session-new)
	sb-run "$s" sh -c 'sed -i s/3/three/ d/f'
	for cmd in 'sb-file-read d/f' 'sb-file-list d' 'sb-file-blame d/f' \
	    "sb-file-read -s $s d/f" "sb-file-list -s $s d" "sb-file-blame -s $s d/f"; do
		$cmd >answer
		inject -r -o rec $cmd >out
		n=$(wc -l <rec)
		sum=$((sum + n))
		for ((k = 1; k <= n; k++)); do
			answer_round $k || fail "$cmd: call $k: $(sed -n ${k}p rec)"
		done
		$cmd >out
		same out answer
	done
	sb-stack-unused | sb-layer-rm >removed
	is "$(ls "$SB_STORE/layer-stack/leases")" ''
	echo "# EIO at $sum calls" >&3
}

# ---- a full disk ----

@test "on a file system that is really full: a named error, nothing changed; with room again all works" {
	need root overlay userns jq
	truncate -s 24M image
	mkfs.ext4 -q -F -m 0 image
	mkdir -p small ws/d
	seq 3 >ws/d/f
	mount -o loop image small 2>/dev/null || skip "no loop devices"
	export SB_STORE=$T/small/store
	sb-store-init
	sb-base-import ws >/dev/null
	s=$(sb-session-new)
	edits 2 two | sb-file-edit -s "$s" d/f >out
	edits 2 TWO | sb-file-edit d/f >out
	head -c 3000000 /dev/urandom >large
	edits 1 one >e
	for n in 64k 4k 512; do dd if=/dev/zero of=small/fill.$n bs=$n 2>/dev/null || :; done
	listing "$SB_STORE" | grep -v " ./observability" >before
	for on in "-s $s" ''; do
		for path in d/f d/new n/n/f; do
			run -111 --separate-stderr sb-file-write $on $path <large
			is "$(jq -r .error.kind <<<"$output")" operation_failed
			has "$stderr" 'No space left on device'
		done
	done
	# Here it may be that the head of the session has the room.
	run --separate-stderr sb-file-edit d/f <e
	[ "$status" = 0 ] || has "$stderr" 'No space left on device'
	[ "$status" = 0 ] || { listing "$SB_STORE" | grep -v " ./observability" >after; same after before; }
	sb-stack-show | sb-layer-check
	is "$(sb-file-read -s "$s" d/f | jq -r .content | xargs)" '1 two 3'
	# To read head needs no room.
	for n in 64k 4k 512; do dd if=/dev/zero of=small/more.$n bs=$n 2>/dev/null || :; done
	mkdir "$SB_STORE/layer-stack/leases/full" 2>/dev/null && rmdir "$SB_STORE/layer-stack/leases/full"
	sb-file-read d/f >out
	sb-file-list . >out
	sb-file-blame d/f >out
	rm small/more.*
	rm small/fill.*
	edits 3 three | sb-file-edit -s "$s" d/f >out
	sb-file-write n/n/f <large >out
	is "$(jq .bytes_written out)" 3000000
	is "$(sb-run "$s" cat d/f | xargs)" '1 two three'
	sb-stack-show | sb-layer-check
	sb-session-end "$s"
	umount small
}
