# SPDX-License-Identifier: MIT
# Commit and swap, killed and failed at every call that changes something.
bats_require_minimum_version 1.5.0
load lib

# Calls that change neither files nor locks; loops pass over them, and over
# nothing else that strace sees.
# open is the sanitizers' own: the C library makes openat of it.
NOT_CHANGING="access arch_prctl brk clock_gettime execve exit_group fgetxattr
	flistxattr fstat futex getdents64 geteuid getpid getrandom lseek mmap
	mprotect open munmap newfstatat pread64 prlimit64 read readlinkat rseq
	rt_sigaction rt_sigprocmask set_robust_list set_tid_address umask"

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
	ln up/d/f up/h
	setfattr -n user.x -v 1 up/d/f
	truncate -s 64k up/s
	printf x >>up/s
	chmod 0555 up
	records "$(rec_d . 0555)" "$(rec_d d)" "$(rec_d d/e)" "$(rec_w d/e/empty 0 4711)" \
	    "l 0777 - u -	d/e/l" ../f "$(rec_w d/f 13)" "$(rec_x gone)" \
	    "$(rec_w h 13)" "o 0755 - u -	op" "$(rec_x op/x)" "$(rec_w s 65537)" >changes
	printf '* me\td/f\0\0' >blame
	printf '{"owner":"me"}' >members
}

teardown() {
	[ -z "${holder:-}" ] || release
	! mountpoint -q "$T/small" 2>/dev/null || umount "$T/small"
	sb_teardown
}

# All that it can do. The lease is held by somebody else, so that faults are
# the commit's only.
COMMIT="sb-layer-commit -B blame -C up -l work -m members"

hold() {
	mkfifo fifo
	sb-stack-lease work sh -c 'echo >held; read -r _ <fifo' 3>&- &
	holder=$!
	for _ in {1..500}; do
		[ ! -s held ] || return 0
		sleep 0.02
	done
	fail "no lease"
}
release() {
	timeout 10 sh -c 'echo >fifo'
	wait "$holder"
	holder=
}

# changing IN PROG…: lines of each changing call and how often PROG, one
# process that reads IN, makes it.
changing() {
	local in=$1
	shift
	strace -f -qq -c -o "$T/counts" "$@" <"$in" >/dev/null || return
	awk -v not="$NOT_CHANGING" 'BEGIN { n = split(not, w); for (i = 1; i <= n; i++) skip[w[i]] = 1 }
	    $4 ~ /^[0-9]+$/ && $NF != "total" && !($NF in skip) { print $NF, $4 }' "$T/counts"
}

# said_calls TOTAL WHAT: what a loop over the file calls did.
said_calls() {
	echo "# $1 times $2: $(tr '\n' ',' <calls | sed 's/,$//; s/,/, /g')" >&3
}

# As if the lease had ended, so that it keeps nothing.
sweep() {
	rm -f "$S/leases/work/added"
	sb-stack-unused | sb-layer-rm >removed
}

# head CONTENT: is that what is in the manifest?
is_head() {
	local now
	mapfile -d '' now <"$S/manifest.json"
	[ "${now[0]}" = "$1" ]
}

# A layer is whole or nothing is there; head is as before; a sweep leaves
# nothing else. $1: what was done, for the message. Few programs: it runs
# hundreds of times.
intact() {
	local visible id
	is_head "$head" || fail "$1: the manifest changed"
	shopt -s nullglob
	visible=("$S"/layers/*)
	shopt -u nullglob
	for id in "${visible[@]##*/}"; do
		ids "$id" | sb-layer-check >bad 2>&1 ||
		    fail "$1: what is visible is not whole: $(cat bad)"
		cmp -s "$S/meta/$id.blame" blame && cmp -s "$S/meta/$id.json" members ||
		    fail "$1: what belongs to $id is not there"
	done
	sweep
	mapfile -t id <removed
	[ "${id[*]}" = "${visible[*]##*/} " ] || [ "${id[*]}${#visible[@]}" = 0 ] ||
	    fail "$1: removed ${id[*]}, not ${visible[*]##*/}"
	nothing_left "$1"
}

nothing_left() {
	shopt -s nullglob dotglob
	set -- "$1" "$S"/staging/* "$S"/layers/* "$S"/meta/* "$S"/leases/* "$S"/.layer-metadata/* "$S"/.*.tmp
	shopt -u nullglob dotglob
	[ "$*" = "$1${holder:+ $S/leases/work} $S/.layer-metadata/$B.bytes $S/.layer-metadata/$B.digest" ] || fail "left: $*"
}

begin() {
	mapfile -d '' head <"$S/manifest.json"
	hold
	changing changes $COMMIT >calls
	sweep
}

# All of a tree that the digest leaves out.
shape() {
	(cd "$1" && find . -printf '%y %m %s %n %p %l\n' | sort && getfattr -R -d -m '^user' .)
}

@test "a commit killed at any call leaves head, and rubbish for one sweep" {
	local call n count total=0
	begin
	while read -r call count; do
		for ((n = 1; n <= count; n++)); do
			kill_at $call $n $COMMIT <changes >id 2>/dev/null || :
			intact "$call $n"
			total=$((total + 1))
		done
	done <calls
	said_calls $total KILL
	[ $total -gt 120 ]
}

# errors ERRNO: each call fails once with it.
errors() {
	local call n count rc total=0 failed=0
	begin
	$COMMIT <changes >id
	shape "$S/layers/$(cat id)" >want
	sweep
	while read -r call count; do
		for ((n = 1; n <= count; n++)); do
			rc=0
			fault_at $call $n "$1" $COMMIT <changes >id 2>err || rc=$?
			total=$((total + 1))
			if [ $rc = 0 ]; then
				# A hint, a second way, or only the cleaning up.
				shape "$S/layers/$(cat id)" >got
				same got want
			else
				failed=$((failed + 1))
				[ $rc != 101 ] && [ $rc -lt 128 ] || fail "$call $n: $rc"
				# Closing stdout is the last thing that can fail.
				[ $call = close ] || [ ! -s id ] || fail "$call $n: an answer"
				# It undid all by itself.
				nothing_left "$call $n"
				[ -s err ] || fail "$call $n: no message"
			fi
			intact "$call $n"
		done
	done <calls
	said_calls $total "$1, $failed of them refused"
	[ $failed -gt 100 ]
}

@test "a commit that meets ENOSPC at any call is whole or nothing" {
	errors ENOSPC
}

@test "a commit that meets EIO at any call is whole or nothing" {
	errors EIO
}

@test "whatever is not synced or not renamed is 111 and undone" {
	local call n count
	begin
	release
	sweep
	for call in fsync renameat; do
		count=$(count_calls $call sb-layer-commit -B blame -C up -m members <changes)
		sweep
		for ((n = 1; n <= count; n++)); do
			run -111 fault_at $call $n EIO sb-layer-commit -B blame -C up -m members <changes
			nothing_left "$call $n"
		done
	done
}

# A store with a layer that in names and the manifest does not; new and told
# are the manifest and the history that a swap makes of it.
before_swap() {
	sb-layer-commit -B blame -C up -m members <changes >id
	ids "$(cat id)" $B >in
	cp -a "$SB_STORE" orig
	mapfile -d '' old <"$S/manifest.json"
	sb-stack-swap 1 <in >/dev/null
	mapfile -d '' new <"$S/manifest.json"
	cp "$S/history/main.ndjson" told
	again
	changing in sb-stack-swap 1 >calls
}
again() { chmod -R u+w "$S/layers" && rm -rf "$SB_STORE" && cp -a orig "$SB_STORE"; }

# The old list or the new one, whole; a swap after it makes the new one of
# either, and the history says that once. $1: what was done.
swapped_or_not() {
	ids0 | sb-layer-rm >/dev/null
	if is_head "$old"; then
		[ ! -s out ] || fail "$1: an answer"
		is "$1: $(sb-stack-swap 1 <in)" "$1: 2"
	fi
	is_head "$new"
	same "$S/history/main.ndjson" told
	set -- "$1" "$S"/.*.tmp
	[ "$2" = "$S/.*.tmp" ] || fail "left: $*"
}

@test "a swap killed at any call leaves the old stack or the new one" {
	local call n count total=0
	before_swap
	while read -r call count; do
		for ((n = 1; n <= count; n++)); do
			again
			kill_at $call $n sb-stack-swap 1 <in >out 2>/dev/null || :
			swapped_or_not "$call $n"
			total=$((total + 1))
		done
	done <calls
	said_calls $total KILL
	[ $total -gt 40 ]
}

@test "a swap that meets an error says so; the stack is as it was, or the new one" {
	local call n count rc err total=0 failed=0
	before_swap
	while read -r call count; do
		for ((n = 1; n <= count; n++)); do
			for err in ENOSPC EIO; do
				again
				rc=0
				fault_at $call $n $err sb-stack-swap 1 <in >out 2>said || rc=$?
				total=$((total + 1))
				if [ $rc = 0 ]; then
					is_head "$new" && [ "$(<out)" = 2 ] || fail "$call $n $err: no success"
				else
					failed=$((failed + 1))
					[ $rc != 101 ] && [ $rc -lt 128 ] || fail "$call $n $err: $rc"
					[ $call = close ] || [ ! -s out ] || fail "$call $n $err: an answer"
					[ -s said ] || fail "$call $n $err: no message"
				fi
				swapped_or_not "$call $n $err"
			done
		done
	done <calls
	said_calls $total "ENOSPC or EIO, $failed of them refused"
	[ $failed -gt 40 ]
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
	chmod 0755 up
	sb-layer-commit -B blame -C up -m members <changes >id
	{ cat id; ids $B; } | sb-stack-swap 1 >/dev/null
	# Everything, to the last block.
	dd if=/dev/zero of=small/fill bs=64k 2>/dev/null || :
	dd if=/dev/zero of=small/fill2 bs=512 2>/dev/null || :
	rm up/h
	head -c 300000 /dev/urandom >up/d/f
	sb-layer-scan up >in
	cp "$S/manifest.json" manifest
	run -111 --separate-stderr sb-layer-commit -B blame -C up -m members <in
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
