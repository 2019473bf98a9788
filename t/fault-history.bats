# SPDX-License-Identifier: MIT
# Swaps, killed and failed at every call that changes something: the history
# tells of every version that the stack had, once, and of no other.
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	need strace
	make_store
	S=$SB_STORE/layer-stack
	H=$S/history/main.ndjson
	B=B000001-base
	a=$(records "$(rec_x a)" | sb-layer-commit)
	b=$(records "$(rec_x b)" | sb-layer-commit)
	echo '{"owner":"a","time":"now"}' >"$S/meta/$a.json"
	echo '{"owner":"b","time":"now"}' >"$S/meta/$b.json"
}

teardown() {
	! mountpoint -q "$T/small" 2>/dev/null || umount "$T/small"
	sb_teardown
}

CALLS="mkdirat openat openat2 write fsync ftruncate lseek pread64 renameat fcntl close"

# What the next swap is tried on: three stores, and $1 says which.
#	new	no history yet, nor its directory
#	one	a version is in it
#	torn	a swap was killed in it, and left a line of a version that did
#		not come, and a part of another
template() {
	rm -rf "$SB_STORE"
	cp -a "$T/start" "$SB_STORE"
	case $1 in
	new) rmdir "$S/history" ;;
	*) ids "$a" $B | sb-stack-swap 1 >/dev/null ;;
	esac
	if [ "$1" = torn ]; then
		printf '{"version":3,"cause":"write","layer":"%s"}\n{"versi' "$a" >>"$H"
	fi
	version=$(sb-stack-version)
	rm -rf "$T/orig"
	cp -a "$SB_STORE" "$T/orig"
}

again() {
	rm -rf "$SB_STORE"
	cp -a "$T/orig" "$SB_STORE"
}

# Versions that sb-log prints, oldest first.
logged() { sb-log 2>log.err | sed -nE 's/^\{"version":([0-9]+),"cause":"[a-z]+","layer":"[^"]+".*\}$/\1/p' | tac | paste -sd' '; }

# tells WHAT: head is the old list or the new one, and the history tells how it
# came to that; and so after the next swap, when nothing else is in the file.
tells() {
	local now
	now=$(sb-stack-version)
	[ "$now" = "$version" ] || [ "$now" = $((version + 1)) ] || fail "$1: version $now"
	is "$1: $(logged)" "$1: $(seq -s' ' 2 "$now")"
	sb-stack-show | sb-layer-check >/dev/null || fail "$1: a layer is damaged"
	{ echo "$b"; sb-stack-show | grep -vx "$b"; } | sb-stack-swap -c write "$now" >/dev/null || fail "$1: swap"
	# Where head had it already nothing happened.
	now=$(sb-stack-version)
	is "$1: $(logged)" "$1: $(seq -s' ' 2 "$now")"
	is "$1: $(cat log.err)" "$1: "
	is "$1: $(wc -l <"$H")" "$1: $((now - 1))"
	is "$1: $(sb-log -n 1)" "$1: $(tail -n 1 "$H")"
	ids0 | sb-layer-rm >/dev/null
	is "$1: $(find "$S" -maxdepth 1 -name '.*.tmp')" "$1: "
}

@test "killed at any call, the history tells of every version there was" {
	local call n count what total=0
	cp -a "$SB_STORE" start
	for what in new one torn; do
		template $what
		{ echo "$b"; sb-stack-show; } >in
		for call in $CALLS; do
			again
			count=$(count_calls $call sb-stack-swap "$version" <in)
			for ((n = 1; n <= count; n++)); do
				again
				kill_at $call $n sb-stack-swap "$version" <in >/dev/null 2>&1 || :
				tells "$what $call $n"
				total=$((total + 1))
			done
		done
	done
	echo "# killed $total times" >&3
	[ $total -gt 100 ]
}

@test "with an error at any call, too; and before the manifest nothing happened" {
	local call n count rc what err total=0 failed=0
	cp -a "$SB_STORE" start
	for what in new one torn; do
		template $what
		{ echo "$b"; sb-stack-show; } >in
		for call in $CALLS; do
			again
			count=$(count_calls $call sb-stack-swap "$version" <in)
			for err in ENOSPC EIO; do
				for ((n = 1; n <= count; n++)); do
					again
					rc=0
					fault_at $call $n $err sb-stack-swap "$version" <in >out 2>err || rc=$?
					total=$((total + 1))
					if [ $rc != 0 ]; then
						failed=$((failed + 1))
						# 127: the loader could not read a library.
						case $rc in 111 | 127) ;; *) fail "$what $call $n $err: $rc" ;; esac
						[ -s err ] || fail "$what $call $n: no message"
					else
						is "$(sb-stack-version)" $((version + 1))
					fi
					tells "$what $call $n $err"
				done
			done
		done
	done
	echo "# $total errors, $failed refused" >&3
	[ $failed -gt 60 ]
}

@test "a history that cannot be written keeps the stack as it is" {
	local call n
	cp -a "$SB_STORE" start
	template one
	{ echo "$b"; sb-stack-show; } >in
	# The first write and the first sync are those of the history.
	for call in write:ENOSPC fsync:EIO; do
		again
		run -111 --separate-stderr fault_at "${call%:*}" 1 "${call#*:}" sb-stack-swap 2 <in
		has "$stderr" "unable to append to history/main.ndjson"
		same "$S/manifest.json" "$T/orig/layer-stack/manifest.json"
		same "$H" "$T/orig/layer-stack/history/main.ndjson"
	done
}

@test "the line is synced before the manifest is replaced, its name as well" {
	local order
	cp -a "$SB_STORE" start
	template new
	{ echo "$b"; sb-stack-show; } >in
	strace -qq -y -o trace -e trace=fsync,renameat,write sb-stack-swap 1 <in >out
	order=$(sed -nE 's/^fsync\([0-9]+<([^>]*)>.*/sync \1/p; s/^renameat.*/rename/p
	    s/^write\([0-9]+<([^>]*ndjson)>.*/write \1/p' trace | sed "s,$S,," | grep -v tmp)
	is "$order" "$(printf '%s\n' "write /history/main.ndjson" "sync /history/main.ndjson" \
	    "sync /history" "sync " rename "sync ")"
}

@test "on a file system that is really full, the history tells the truth" {
	need root
	local v
	truncate -s 16M image
	mkfs.ext4 -q -F -m 0 image
	mkdir small
	mount -o loop image small 2>/dev/null || skip "no loop devices"
	export SB_STORE=$T/small/store
	S=$SB_STORE/layer-stack
	H=$S/history/main.ndjson
	make_store
	version=1
	a=$(records "$(rec_x a)" | sb-layer-commit)
	b=$(records "$(rec_x b)" | sb-layer-commit)
	ids "$a" $B | sb-stack-swap 1 >/dev/null
	# To the last block: in the file's own the line may still find room.
	dd if=/dev/zero of=small/fill bs=64k 2>/dev/null || :
	dd if=/dev/zero of=small/fill2 bs=512 2>/dev/null || :
	ids "$b" $B >in
	for v in 1 2 3; do
		run -111 sb-stack-swap 2 <in
	done
	is "$(sb-stack-version)" 2
	is "$(logged)" 2
	rm small/fill small/fill2
	version=2
	sb-stack-swap 2 <in
	tells "really full"
	umount small
}
