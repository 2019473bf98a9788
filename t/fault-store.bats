# SPDX-License-Identifier: MIT
# Commit and swap, killed and failed at every call that changes something.
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	need strace
	mkdir -p ws/d
	printf base >ws/d/f
	make_store
	S=$SB_STORE/layer-stack
	B=B000001-base
	mkdir -p up/d/e up/op
	printf 'some content\n' >up/d/f
	printf '' >up/d/e/empty
	chmod 4711 up/d/e/empty
	ln -s ../f up/d/e/l
	setfattr -n user.x -v 1 up/d/f
	records "$(rec_d d)" "$(rec_d d/e)" "$(rec_w d/e/empty 0 4711)" \
	    "l 0777 - u -	d/e/l" ../f "$(rec_w d/f 13)" "$(rec_x gone)" \
	    "o 0755 - u -	op" "$(rec_x op/x)" >changes
}

teardown() {
	! mountpoint -q "$T/small" 2>/dev/null || umount "$T/small"
	sb_teardown
}

# A layer is whole or nothing is there; head is as before; a sweep leaves
# nothing else. $1: what was done, for the message.
intact() {
	cmp -s "$S/manifest.json" manifest || fail "$1: the manifest changed"
	sb-stack-show | sb-layer-check >bad 2>&1 || fail "$1: $(cat bad)"
	ls "$S/layers" >layers
	{ cat layers; echo; } | sb-layer-check >bad 2>&1 ||
	    fail "$1: what is visible is not whole: $(cat bad)"
	sb-stack-unused | sb-layer-rm >removed
	same removed <(cat layers; echo)
	is "$1: $(ls -A "$S/staging" "$S/layers" "$S/leases")" \
	    "$1: $(printf '%s:\n\n' "$S/layers" "$S/leases" "$S/staging")"
	is "$1: $(ls -A "$S/.layer-metadata")" "$1: $B.digest"
	is "$1: $(find "$S" -maxdepth 1 -name '.*.tmp')" "$1: "
}

CHANGING="mkdirat openat openat2 write copy_file_range ioctl sync_file_range fchmod
	fchmodat fchownat utimensat mknodat symlinkat fsetxattr fsync renameat
	renameat2 unlinkat fcntl close"

@test "a commit killed at any call leaves head, and rubbish for one sweep" {
	local call n count total=0
	cp "$S/manifest.json" manifest
	for call in $CHANGING; do
		count=$(count_calls $call sb-layer-commit -C up <changes)
		sb-stack-unused | sb-layer-rm >/dev/null
		for ((n = 1; n <= count; n++)); do
			kill_at $call $n sb-layer-commit -C up <changes >id 2>/dev/null || :
			intact "$call $n"
			total=$((total + 1))
		done
	done
	echo "# killed $total times" >&3
	[ $total -gt 100 ]
}

# errors ERRNO: each call fails once with it.
errors() {
	local call n count rc total=0 failed=0
	cp "$S/manifest.json" manifest
	sb-layer-commit -C up <changes >id
	listing "$S/layers/$(cat id)" >want
	sb-stack-unused | sb-layer-rm >/dev/null
	for call in $CHANGING; do
		count=$(count_calls $call sb-layer-commit -C up <changes)
		sb-stack-unused | sb-layer-rm >/dev/null
		for ((n = 1; n <= count; n++)); do
			rc=0
			fault_at $call $n "$1" sb-layer-commit -C up <changes >id 2>err || rc=$?
			total=$((total + 1))
			if [ $rc = 0 ]; then
				# A hint, a second way, or only the cleaning up.
				listing "$S/layers/$(cat id)" >got
				same got want
			else
				failed=$((failed + 1))
				[ $rc != 101 ] && [ $rc -lt 128 ] || fail "$call $n: $rc"
				# Closing stdout is the last thing that can fail.
				[ $call = close ] || is "$call $n: $(cat id)" "$call $n: "
				is "$call $n: $(ls "$S/layers")" "$call $n: "
				[ -s err ] || fail "$call $n: no message"
			fi
			intact "$call $n"
		done
	done
	echo "# $total times $1, $failed refused" >&3
	[ $failed -gt 60 ]
}

@test "a commit that meets ENOSPC at any call is whole or nothing" {
	errors ENOSPC
}

@test "a commit that meets EIO at any call is whole or nothing" {
	errors EIO
}

@test "whatever is not synced or not renamed is 111 and undone" {
	local call n count
	cp "$S/manifest.json" manifest
	for call in fsync renameat; do
		count=$(count_calls $call sb-layer-commit -C up <changes)
		sb-stack-unused | sb-layer-rm >/dev/null
		for ((n = 1; n <= count; n++)); do
			run -111 fault_at $call $n EIO sb-layer-commit -C up <changes
			is "$(ls -A "$S/layers" "$S/staging" "$S/.layer-metadata")" \
			    "$(printf '%s:\n%s\n\n%s:\n\n%s:\n' "$S/.layer-metadata" $B.digest "$S/layers" "$S/staging")"
		done
	done
	intact "at the end"
}

@test "a swap killed at any call leaves the old stack or the new one" {
	local call n count total=0 a
	a=$(sb-layer-commit -C up <changes)
	cp -a "$SB_STORE" orig
	cp "$S/manifest.json" old
	ids "$a" $B >in
	sb-stack-swap 1 <in >/dev/null
	cp "$S/manifest.json" new
	for call in openat openat2 write fsync renameat unlinkat fcntl close; do
		rm -rf "$SB_STORE" && cp -a orig "$SB_STORE"
		count=$(count_calls $call sb-stack-swap 1 <in)
		for ((n = 1; n <= count; n++)); do
			rm -rf "$SB_STORE" && cp -a orig "$SB_STORE"
			kill_at $call $n sb-stack-swap 1 <in >/dev/null 2>&1 || :
			cmp -s "$S/manifest.json" old || same "$S/manifest.json" new
			sb-stack-show | sb-layer-check >/dev/null
			ids0 | sb-layer-rm >/dev/null
			is "$call $n: $(find "$S" -maxdepth 1 -name '.*.tmp')" "$call $n: "
			total=$((total + 1))
		done
	done
	echo "# killed $total times" >&3
	[ $total -gt 20 ]
}

@test "a swap that meets an error says 111; the stack is as it was, or the new one" {
	local call n count rc total=0 a err
	a=$(sb-layer-commit -C up <changes)
	cp -a "$SB_STORE" orig
	cp "$S/manifest.json" old
	ids "$a" $B >in
	sb-stack-swap 1 <in >/dev/null
	cp "$S/manifest.json" new
	for call in write:ENOSPC fsync:EIO fsync:ENOSPC renameat:EIO renameat:ENOSPC close:EIO; do
		err=${call#*:} call=${call%:*}
		rm -rf "$SB_STORE" && cp -a orig "$SB_STORE"
		count=$(count_calls $call sb-stack-swap 1 <in)
		for ((n = 1; n <= count; n++)); do
			rm -rf "$SB_STORE" && cp -a orig "$SB_STORE"
			rc=0
			fault_at $call $n $err sb-stack-swap 1 <in >out 2>/dev/null || rc=$?
			total=$((total + 1))
			if [ $rc = 0 ]; then
				same "$S/manifest.json" new
			elif [ $call != close ]; then
				is "$call $n: $rc" "$call $n: 111"
			fi
			# Only after the rename is the new list there: the sync of
			# the directory and the answer come behind it.
			case $call$n in
			write1 | fsync1 | renameat1) same "$S/manifest.json" old ;;
			*) cmp -s "$S/manifest.json" old || same "$S/manifest.json" new ;;
			esac
			is "$call $n: $(find "$S" -maxdepth 1 -name '.*.tmp')" "$call $n: "
		done
	done
	echo "# $total errors" >&3
	[ $total -gt 8 ]
}

@test "on a file system that is really full, nothing is lost and the rest works" {
	need root
	local v
	truncate -s 16M image
	mkfs.ext4 -q -F -m 0 image
	mkdir small
	mount -o loop image small 2>/dev/null || skip "no loop devices"
	export SB_STORE=$T/small/store
	S=$SB_STORE/layer-stack
	sb-store-init
	sb-base-import ws >/dev/null
	sb-layer-commit -C up <changes >id
	{ cat id; ids $B; } | sb-stack-swap 1 >/dev/null
	# Everything, to the last block.
	dd if=/dev/zero of=small/fill bs=64k 2>/dev/null || :
	dd if=/dev/zero of=small/fill2 bs=512 2>/dev/null || :
	head -c 300000 /dev/urandom >up/d/f
	sb-layer-scan up >in
	cp "$S/manifest.json" manifest
	run -111 --separate-stderr sb-layer-commit -C up <in
	has "$stderr" "No space left on device"
	same "$S/manifest.json" manifest
	is "$(ls "$S/layers")" "$(cat id)"
	ids $B | run -111 sb-stack-swap 2
	same "$S/manifest.json" manifest
	sb-stack-show | sb-layer-check >/dev/null
	# The sweep needs no room.
	sb-stack-unused | sb-layer-rm >/dev/null
	is "$(ls -A "$S/staging")" ""
	rm small/fill small/fill2
	v=$(sb-layer-commit -C up <in)
	{ echo "$v"; sb-stack-show; } | sb-stack-swap 2 >/dev/null
	sb-stack-show | sb-layer-check >/dev/null
	umount small
}
