# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	make_store
	S=$SB_STORE/layer-stack
	B=B000001-base
	a=$(layer a)
	b=$(layer b)
	cp "$S/manifest.json" before
}

# Commits a layer with the deletion of $1; prints its id.
layer() { records "$(rec_x "$1")" | sb-layer-commit; }

untouched() {
	same "$S/manifest.json" before
	is "$(find "$S" -maxdepth 1 -name '.manifest*')" ""
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-stack-swap </dev/null
	run -100 sb-stack-swap 1 2 </dev/null
	run -100 sb-stack-swap 1x </dev/null
	run -100 sb-stack-swap -- -1 </dev/null
	run -100 sb-stack-swap -x 1 </dev/null
	run -0 sb-stack-swap -h
	is "$output" "usage: sb-stack-swap version"
	untouched
}

@test "swaps and prints the version; the form is that of the page" {
	ids "$a" $B | sb-stack-swap 1 >out
	same out <(echo 2)
	printf '%s\n' '{' '  "layers": [' '    {' "      \"layer_id\": \"$a\"," \
	    "      \"path\": \"layers/$a\"" '    },' '    {' \
	    "      \"layer_id\": \"$B\"," "      \"path\": \"base/$B\"" '    }' \
	    '  ],' '  "schema_version": 1,' '  "version": 2' '}' | head -c -1 >want
	same "$S/manifest.json" want
	is "$(stat -c %a "$S/manifest.json")" 600
	is "$(find "$S" -maxdepth 1 -name '.manifest*')" ""
}

@test "refuses when the version moved, and changes nothing" {
	ids "$a" $B >in
	run -2 --separate-stderr sb-stack-swap 0 <in
	has "$stderr" "stack is at 1, not 0"
	run -2 sb-stack-swap 2 <in
	untouched
}

@test "the same list again is no change and no error" {
	ids $B | sb-stack-swap 1 >out
	same out <(echo 1)
	untouched
}

@test "paths of layers that stay are kept" {
	mv "$S/layers/$a" "$S/layers/elsewhere"
	ln -s elsewhere "$S/layers/$a"
	sed -i "s,base/$B,./base/$B," "$S/manifest.json"
	ids "$b" $B | sb-stack-swap 1 >/dev/null
	grep -q "\"path\": \"./base/$B\"" "$S/manifest.json"
}

@test "refuses an unknown id, one given twice and an empty list" {
	ids L000009-00000000 $B >in
	run -100 --separate-stderr sb-stack-swap 1 <in
	has "$stderr" L000009-00000000
	ids "$a" "$a" $B | run -100 sb-stack-swap 1
	ids0 | run -100 sb-stack-swap 1
	ids ../base | run -100 sb-stack-swap 1
	ids .staging | run -100 sb-stack-swap 1
	records "$(rec_x $'a\nb')" | run -100 sb-stack-swap 1
	untouched
}

@test "refuses a layer without a digest, and what is no directory" {
	rm "$S/.layer-metadata/$a.digest"
	ids "$a" $B >in
	run -100 --separate-stderr sb-stack-swap 1 <in
	has "$stderr" "$a"
	touch "$S/layers/L1"
	ids L1 $B | run -111 sb-stack-swap 1
	ln -s "$b" "$S/layers/L2"
	ids L2 $B | run -111 sb-stack-swap 1
	untouched
}

@test "input cut before the full stop is 111 and changes nothing" {
	ids "$a" $B | cut_stream >in
	run -111 --separate-stderr sb-stack-swap 1 <in
	has "$stderr" "input ended early"
	run -111 sb-stack-swap 1 </dev/null
	{ ids "$a" $B; echo x; } | run -100 sb-stack-swap 1
	untouched
}

@test "a refusal passes through with its code, silently" {
	{ echo "$a"; refusal 2 'conflict: a'; } >in
	run -2 --separate-stderr sb-stack-swap 1 <in
	is "$output$stderr" ""
	untouched
}

@test "a manifest that is none is not replaced" {
	printf x >"$S/manifest.json"
	cp "$S/manifest.json" before
	ids "$a" $B | run -111 sb-stack-swap 1
	untouched
}

@test "a full disk or a closed stdout is 111 after the swap" {
	ids "$a" $B >in
	run -111 sh -c 'sb-stack-swap 1 <in >/dev/full'
	is "$(sb-stack-version)" 2
	run -111 sh -c 'sb-stack-swap 2 <in >&-'
	SB_STORE=$T/none run -111 sb-stack-swap 1 <in
}

# race FIRST SECOND: FIRST is held up in its rename, with the lock, until
# SECOND waits for that.
race() {
	local inode
	inode=$(stat -c %i "$S/.storage-writer.lock")
	ids "$1" $B >in1
	ids "$2" $B >in2
	strace -qq -o trace -e trace=/^rename -e inject=/^rename:delay_enter=2000000 \
	    sb-stack-swap 1 <in1 >out1 2>err1 3>&- &
	for _ in {1..500}; do
		! grep -q "OFDLCK.*WRITE.*:$inode " /proc/locks || break
		sleep 0.01
	done
	sb-stack-swap 1 <in2 >out2 2>err2 3>&- &
	# Before the first one ended, or nothing was tried.
	for _ in {1..500}; do
		! grep -q -- "-> OFDLCK.*WRITE.*:$inode " /proc/locks || break
		sleep 0.01
	done
	kill -0 %1
	wait %2 || is $? 2
	has "$(cat err2)" "stack is at 2, not 1"
	wait %1
	is "$(cat out1)" 2
	is "$(cat out2)" ""
	is "$(sb-stack-show)" "$(ids "$1" $B)"
}

@test "two racers, the first wins, the second gets 2" {
	need strace
	race "$a" "$b"
}

@test "two racers in the other order" {
	need strace
	race "$b" "$a"
}

@test "the lock is not held while the input is awaited" {
	mkfifo pipe
	ids "$b" $B >in
	sb-stack-swap 1 <pipe >out1 2>err1 3>&- &
	exec 9>pipe
	sb-stack-swap 1 <in >out2
	ids "$a" $B >&9
	exec 9>&-
	wait $! || is $? 2
	is "$(sb-stack-show)" "$(ids "$b" $B)"
}

@test "waiting too long for the lock is 99" {
	local n
	need strace
	ids "$a" $B >in
	# The kernel says what it would say after thirty seconds.
	n=$(strace -qq -e trace=fcntl sb-stack-swap 0 <in 2>&1 >/dev/null |
	    awk '/F_OFD_SETLK/ { print NR; exit }')
	run -99 --separate-stderr fault_at fcntl "$n" ETIMEDOUT sb-stack-swap 1 <in
	has "$stderr" "gave up"
	untouched
}
