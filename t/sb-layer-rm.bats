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
	c=$(layer c)
	ids "$a" $B | sb-stack-swap 1 >/dev/null
}

# Commits a layer with the file $1; prints its id.
layer() {
	mkdir -p "up-$1/d"
	printf x >"up-$1/d/$1"
	sb-layer-scan "up-$1" | sb-layer-commit -C "up-$1"
}

# Everything but the stack lock, which is never touched.
state() { listing "$SB_STORE"; }

@test "usage errors are 100, -h is 0" {
	run -100 sb-layer-rm x </dev/null
	run -100 sb-layer-rm -x </dev/null
	run -0 sb-layer-rm -h
	is "$output" "usage: sb-layer-rm"
}

@test "removes what is not in use, with its sidecars" {
	ids "$c" "$b" | sb-layer-rm >out
	same out <(ids "$c" "$b")
	is "$(ls "$S/layers")" "$a"
	is "$(ls "$S/.layer-metadata")" "$(printf '%s\n' $B.bytes $B.digest "$a.bytes" "$a.digest")"
	is "$(ls -A "$S/staging")" ""
}

@test "passes over what is in use, missing, or a base" {
	mkdir "$S/layers/B000002-old"
	ids "$a" "$b" L000009-00000000 $B B000002-old | sb-layer-rm >out
	same out <(ids "$b")
	[ -d "$S/layers/B000002-old" ]
	ids0 | sb-layer-rm >out
	same out <(ids0)
}

@test "the lease of a session is respected, whether or not it runs" {
	mkdir "$SB_STORE/workspace/s1" "$SB_STORE/workspace/.new.x"
	cp "$S/manifest.json" "$SB_STORE/workspace/s1/lease"
	sed "s/$a/$b/g" "$S/manifest.json" >"$SB_STORE/workspace/.new.x/lease"
	ids $B | sb-stack-swap 2 >/dev/null
	ids "$a" "$b" "$c" | sb-layer-rm >out
	same out <(ids "$c")
	rm -r "$SB_STORE/workspace/s1" "$SB_STORE/workspace/.new.x"
}

@test "what a lease has added is respected" {
	sb-stack-lease work sh -c "echo $b >>'$S/leases/work/added'; sb-stack-unused | sb-layer-rm" >out
	same out <(ids "$c")
}

@test "without a manifest that can be read nothing is removed at all" {
	mkdir "$S/staging/L000009-00000000.staging" "$S/leases/dead" "$S/layers/Sx"
	touch "$S/queue/7" "$S/.layer-metadata/Sx.digest"
	mv "$S/manifest.json" manifest
	state >before
	ids "$b" >in
	run -111 --separate-stderr sb-layer-rm <in
	is "$output" ""
	has "$stderr" "manifest.json is missing"
	is "$(state)" "$(cat before)"
	head -c 1000 /dev/urandom >"$S/manifest.json"
	state >before
	run -111 --separate-stderr sb-layer-rm <in
	has "$stderr" "manifest.json is unreadable"
	is "$(state)" "$(cat before)"
}

@test "without the lease of every session nothing is removed at all" {
	mkdir "$SB_STORE/workspace/s1" "$S/staging/L000009-00000000.staging"
	state >before
	ids "$b" >in
	run -111 --separate-stderr sb-layer-rm <in
	is "$output" ""
	has "$stderr" "workspace/s1/lease"
	is "$(state)" "$(cat before)"
	printf '{' >"$SB_STORE/workspace/s1/lease"
	state >before
	run -111 --separate-stderr sb-layer-rm <in
	has "$stderr" "workspace/s1/lease"
	is "$(state)" "$(cat before)"
	rm -r "$SB_STORE/workspace/s1"
}

@test "sweeps what killed programs left, and nothing else" {
	state >before
	mkdir -p "$S/staging/L000009-00000000.staging/d" "$S/staging/L000008-00000000.rm/d" \
	    "$S/leases/dead" "$S/leases/.made.00000000"
	chmod 0 "$S/staging/L000009-00000000.staging/d"
	touch "$S/staging/L000009-00000000.lock" "$S/staging/L000007-00000000.lock" \
	    "$S/staging/.L000007-00000000.lock.77" "$S/leases/dead/lock" "$S/queue/7" "$S/queue/.8.77" \
	    "$S/.manifest.json.77.tmp" "$S/.layer-metadata/L000009-00000000.digest" \
	    "$S/.layer-metadata/L000009-00000000.bytes" \
	    "$S/.layer-metadata/.L000009-00000000.digest.77.tmp"
	ids0 | sb-layer-rm >out
	same out <(ids0)
	is "$(state)" "$(cat before)"
}

@test "what somebody holds is not swept" {
	local n
	need strace
	printf x >f
	records "$(rec_w f 1)" >in
	# Held up when tree and sidecars are there: their rename is the last.
	n=$(count_calls renameat sb-layer-commit -C . <in)
	ls "$S/layers" | grep L000003 >made
	{ cat made; echo; } | sb-layer-rm >/dev/null
	printf '* a\tf\0\0' >blame
	strace -qq -o trace -e trace=renameat -e "inject=renameat:delay_enter=3000000:when=$n" \
	    sb-layer-commit -B blame -C . <in >id 2>err 3>&- &
	for _ in {1..500}; do
		! ls "$S"/.layer-metadata/L000003-*.bytes >/dev/null 2>&1 || break
		sleep 0.01
	done
	sb-stack-lease work sh -c '
		cp "$SB_STORE/layer-stack/manifest.json" "$SB_STORE/layer-stack/.manifest.json"
		echo | sb-layer-rm; ls -A "$SB_STORE/layer-stack/leases"' >out
	is "$(cat out)" $'\nwork'
	is "$(ls "$S/layers" | grep -c L000003)" 0
	wait $!
	is "$(cat err)" ""
	ids "$(cat id)" | sb-layer-check
	[ -e "$S/.layer-metadata/$(cat id).bytes" ]
	same "$S/meta/$(cat id).blame" blame
}

@test "what meta/ says of a removed layer stays while the history names it" {
	local id
	for id in "$a" "$b" "$c" L000009-00000000 B000002-old; do
		printf '\0' >"$S/meta/$id.blame"
		echo '{}' >"$S/meta/$id.json"
	done
	touch "$S/meta/.$b.json.77.tmp" "$S/meta/other" "$S/meta/.other"
	# Names a and b; c is of no version.
	ids "$b" "$a" $B | sb-stack-swap 2 >/dev/null
	ids $B | sb-stack-swap 3 >/dev/null
	ids "$a" "$b" "$c" | sb-layer-rm >out
	same out <(ids "$a" "$b" "$c")
	is "$(ls -A "$S/meta")" "$(printf '%s\n' .other B000002-old.{blame,json} \
	    {"$a","$b"}.{blame,json} other | LC_ALL=C sort)"
	# What a swap that was killed has written names it as well.
	echo "{\"version\":9,\"cause\":\"publish\",\"layer\":\"$c\"}" >>"$S/history/main.ndjson"
	touch "$S/meta/$c.json"
	ids0 | sb-layer-rm
	[ -e "$S/meta/$c.json" ]
	sed -i '$d' "$S/history/main.ndjson"
	ids0 | sb-layer-rm
	[ ! -e "$S/meta/$c.json" ]
}

@test "without a history that can be read meta/ is not swept, all else is" {
	touch "$S/meta/$b.json" "$S/queue/7"
	ids "$b" >in
	echo x >>"$S/history/main.ndjson"
	run -0 --separate-stderr sb-layer-rm <in
	is "$output" "$b"
	has "$stderr" "history/main.ndjson is damaged"
	[ -e "$S/meta/$b.json" ]
	[ ! -e "$S/queue/7" ]
	sed -i '$d' "$S/history/main.ndjson"
	# A torn line names nothing that was committed.
	printf '{"version":9' >>"$S/history/main.ndjson"
	run -0 --separate-stderr sb-layer-rm < <(ids0)
	is "$stderr" ""
	[ ! -e "$S/meta/$b.json" ]
}

@test "a store older than meta/ is swept too" {
	rm -r "$S/meta" "$S/history"
	ids "$b" | sb-layer-rm >out
	same out <(ids "$b")
}

@test "input cut before the full stop is 111 and changes nothing" {
	state >before
	ids "$b" | cut_stream >in
	run -111 --separate-stderr sb-layer-rm <in
	is "$output" ""
	has "$stderr" "input ended early"
	is "$(state)" "$(cat before)"
}

@test "a refusal passes through with its code, silently" {
	state >before
	{ echo "$b"; refusal 2 'conflict: a'; } >in
	run -2 --separate-stderr sb-layer-rm <in
	is "$output$stderr" ""
	is "$(state)" "$(cat before)"
}

@test "what is no id is 100 and changes nothing" {
	state >before
	ids "$b" ../x | run -100 sb-layer-rm
	ids "$b" "$b" | run -100 sb-layer-rm
	records "$(rec_x $'a\nb')" | run -100 sb-layer-rm
	is "$(state)" "$(cat before)"
}

@test "killed at any call, what is in use is whole and the rest goes next time" {
	local call n count total=0 id
	need strace
	ids "$b" "$c" >in
	cp -a "$SB_STORE" orig
	for call in /^rename unlinkat,unlink /^fsync openat,openat2; do
		count=$(count_calls "$call" sb-layer-rm <in)
		for ((n = 1; n <= count; n++)); do
			rm -rf "$SB_STORE"
			cp -a orig "$SB_STORE"
			kill_at "$call" $n sb-layer-rm <in >/dev/null 2>&1 || :
			total=$((total + 1))
			sb-stack-show | sb-layer-check >/dev/null
			sb-stack-unused | sb-layer-rm >/dev/null
			is "$(ls -A "$S/layers" "$S/staging")" "$(printf '%s:\n%s\n\n%s:\n' "$S/layers" "$a" "$S/staging")"
			is "$(ls "$S/.layer-metadata" | wc -l)" 4
		done
	done
	echo "# killed $total times" >&3
	[ $total -gt 20 ]
}

@test "a tree of 2000 levels is removed" {
	mkdir -p "deep/$(printf 'd/%.0s' {1..2000})"
	sb-layer-scan deep | sb-layer-commit -C deep >id
	ids "$(cat id)" | sb-layer-rm >out
	same out <(ids "$(cat id)")
	is "$(ls -A "$S/staging")" ""
}

@test "a full disk, a closed stdout and a missing store are 111" {
	ids0 >in
	run -111 sh -c 'sb-layer-rm <in >/dev/full'
	run -111 sh -c 'sb-layer-rm <in >&-'
	SB_STORE=$T/none run -111 sb-layer-rm <in
	SB_STORE='' run -100 sb-layer-rm <in
}
