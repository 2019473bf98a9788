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
	is "$(ls "$S/history")" ""
	is "$(find "$S" -maxdepth 1 -name '.manifest*')" ""
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-stack-swap </dev/null
	run -100 sb-stack-swap 1 2 </dev/null
	run -100 sb-stack-swap 1x </dev/null
	run -100 sb-stack-swap -- -1 </dev/null
	run -100 sb-stack-swap -x 1 </dev/null
	run -0 sb-stack-swap -h
	is "$output" "usage: sb-stack-swap [-c cause] version"
	ids "$a" $B >in
	run -100 --separate-stderr sb-stack-swap -c merge 1 <in
	has "$stderr" "not a cause: merge"
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

# The history, times replaced.
lines() { sed -E 's/"time":"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\.[0-9]{3}Z"/TIME/' "$S/history/main.ndjson"; }

@test "a version is in the history, with what is noted of its layer" {
	printf '{\n  "owner": "a",\n  "n": {"x":[1]}\n}\n' >"$S/meta/$a.json"
	ids "$a" $B | sb-stack-swap 1
	ids "$b" "$a" $B | sb-stack-swap -c write 2
	lines >got
	same got <(echo "{\"version\":2,\"cause\":\"publish\",\"layer\":\"$a\",\"owner\": \"a\",   \"n\": {\"x\":[1]} }"
		echo "{\"version\":3,\"cause\":\"write\",\"layer\":\"$b\",TIME}")
	is "$(stat -c %a "$S/history/main.ndjson")" 600
}

@test "one layer more on top is a publish, anything else a rollback" {
	echo '{"owner":"a"}' >"$S/meta/$a.json"
	ids "$a" $B | sb-stack-swap 1
	ids $B | sb-stack-swap 2
	ids "$b" "$a" $B | sb-stack-swap 3
	ids "$a" $B | sb-stack-swap -c squash 4
	ids "$b" $B | sb-stack-swap 5
	lines >got
	# What a layer's maker noted tells nothing about who goes back to it.
	same got <(echo "{\"version\":2,\"cause\":\"publish\",\"layer\":\"$a\",\"owner\":\"a\"}"
		echo "{\"version\":3,\"cause\":\"rollback\",\"layer\":\"$B\",TIME}"
		echo "{\"version\":4,\"cause\":\"rollback\",\"layer\":\"$b\",TIME}"
		echo "{\"version\":5,\"cause\":\"squash\",\"layer\":\"$a\",\"owner\":\"a\"}"
		echo "{\"version\":6,\"cause\":\"rollback\",\"layer\":\"$b\",TIME}")
}

@test "what does not change the stack adds no line" {
	ids "$a" $B >in
	sb-stack-swap 1 <in
	cp "$S/history/main.ndjson" want
	sb-stack-swap 2 <in
	run -2 sb-stack-swap 1 <in
	ids L000009-00000000 $B | run -100 sb-stack-swap 2
	same "$S/history/main.ndjson" want
}

@test "what a swap that was killed left behind in the history is cut off" {
	local tail
	ids "$a" $B >in
	sb-stack-swap 1 <in
	cp "$S/history/main.ndjson" good
	ids $B | sb-stack-swap 2
	for tail in '{"vers' '{"version":4,"cause":"write","layer":"L1"}'$'\n' $'\n\n' 'a b'$'\n''c'; do
		{ cat good; sed -n 2p "$S/history/main.ndjson"; printf %s "$tail"; } >torn
		cp torn "$S/history/main.ndjson"
		cp "$S/manifest.json" manifest
		sb-stack-swap 3 <in
		is "$(lines | wc -l)" 3
		same <(head -n 2 torn) <(head -n 2 "$S/history/main.ndjson")
		cp manifest "$S/manifest.json"
		head -n 2 torn >"$S/history/main.ndjson"
	done
}

@test "a store older than its history gets one" {
	rmdir "$S/history" "$S/meta"
	ids "$a" $B | sb-stack-swap 1
	is "$(lines)" "{\"version\":2,\"cause\":\"publish\",\"layer\":\"$a\",TIME}"
	is "$(stat -c %a "$S/history")" 700
}

@test "what is noted of a layer must be an object that leaves the version alone" {
	local json
	ids "$a" $B >in
	for json in '' '[]' '{"a":1' '{"version":7}' '{"layer":1,"a":2}'; do
		printf %s "$json" >"$S/meta/$a.json"
		run -111 --separate-stderr sb-stack-swap 1 <in
		has "$stderr" "meta/$a.json is damaged"
		untouched
	done
	head -c 70000 /dev/zero | tr '\0' ' ' >"$S/meta/$a.json"
	run -111 sb-stack-swap 1 <in
	ln -sf /etc/passwd "$S/meta/$a.json"
	run -111 sb-stack-swap 1 <in
	untouched
}

@test "without a history that can be written the stack stays" {
	ids "$a" $B >in
	mkdir "$S/history/main.ndjson"
	run -111 --separate-stderr sb-stack-swap 1 <in
	has "$stderr" "history/main.ndjson"
	rmdir "$S/history/main.ndjson"
	ln -s "$T/elsewhere" "$S/history/main.ndjson"
	run -111 sb-stack-swap 1 <in
	[ ! -e elsewhere ]
	rm "$S/history/main.ndjson"
	mkfifo "$S/history/main.ndjson"
	run -111 sb-stack-swap 1 <in
	rm "$S/history/main.ndjson"
	untouched
}

@test "a long history costs no more than a short one" {
	need strace
	ids "$a" $B | sb-stack-swap 1
	for ((i = 0; i < 100; i++)); do
		printf '{"version":0,"layer":"L%d","x":"%010000d"}\n' $i 0
	done >long
	cat "$S/history/main.ndjson" >>long
	cp long "$S/history/main.ndjson"
	ids $B >in
	strace -qq -o trace -e trace=pread64 sb-stack-swap 2 <in
	# The loader reads with this call as well, less at once.
	is "$(awk -F' = ' '$2 > 4096 { print $2 }' trace)" 65536
	is "$(lines | tail -n 1)" "{\"version\":3,\"cause\":\"rollback\",\"layer\":\"$B\",TIME}"
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
