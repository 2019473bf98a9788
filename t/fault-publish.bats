# SPDX-License-Identifier: MIT
# Errors at every call of a publish, and kills and errors at every call of what
# makes and ends sessions and leases and removes layers: what is there stays
# whole, the message says what failed, and the same once more works.
bats_require_minimum_version 1.5.0
load lib
load fault

teardown() {
	! mountpoint -q "$T/small" 2>/dev/null || umount "$T/small"
	sb_teardown
}

# What a command that met an error may say: nothing but success, or 111 and why.
honest() {
	[ "$rc" = 0 ] || [ "$rc" = 111 ] || fail "exit $rc: $(cat err)" || return
	[ "$rc" = 0 ] || [ -s err ] || fail "no message"
}

# ---- publish ----

# All of the store, without reading it.
look() {
	(cd "$SB_STORE" && find . -name observability -prune -o -type d -printf '%P d %m\n' -o -printf '%P %y %m %s %T@\n' | LC_ALL=C sort)
}

publish_fails() {
	[ -n "${fresh:-}" ] || new_round
	fresh=
	rc=0
	inject $reads -e $error -n "$1" -o rec sb-publish "$s" >out 2>err || rc=$?
	echo "$rc" >>"$T/codes"
	honest && old_or_new || return
	if [ "$rc" = 0 ]; then
		is "$head" new && has "$(cat out)" '"no_op":false' || return
	elif [ $head = old ]; then
		# A store in which nothing changed will do for the next round.
		[ "$(look)" != "$(<"$T/look")" ] || fresh=1
		[ -z "$fresh" ] || [ $(($1 % 40)) -lt 2 ] || return 0
	fi
	fresh=
	goes_on
}

# publish_errors ERRNO [-r]: each call of a publish fails once.
publish_errors() {
	local error=$1 reads=${2:-} n
	need overlay userns xattr strace
	publish_template
	new_round
	look >look
	inject $reads -o rec sb-publish "$s" >out
	n=$(wc -l <rec)
	rounds "sb-publish, $error" "$n" publish_fails
	echo "# $n times $error, $(grep -cx 111 codes) refused" >&3
}

@test "a publish that meets ENOSPC at any call is whole or nothing, and works the next time" {
	publish_errors ENOSPC
}

@test "a publish that meets EIO at any call, also at those that read, is whole or nothing" {
	publish_errors EIO -r
}

# ---- sessions ----

session_template() {
	need overlay userns strace
	mkdir ws
	echo base >ws/f
	make_store
	keep_template
}

# What session $1 shows of file f, once a holder that was left behind while it
# began has got ready or ended.
content() {
	local rc
	for _ in {1..500}; do
		rc=0
		sb-run "$1" cat f 2>busy || rc=$?
		[ $rc = 98 ] || break
		sleep 0.02
	done
	[ $rc = 0 ] || cat busy
}

# Each session there is can be used and ended, and the last end sweeps.
sessions_are_whole() {
	local x
	for x in $(sb-session-ls); do
		is "$(content "$x")" base && sb-session-end -t 30000 "$x" || return
	done
	if [ -n "$(ls -A "$SB_STORE/workspace")" ]; then
		x=$(sb-session-new) && sb-session-end "$x" || return
	fi
	is "$(ls -A "$SB_STORE/workspace")" "" && quiet
}

quiet() {
	local pids
	for _ in {1..100}; do
		pids=$(our_processes "$SB_STORE")
		[ -n "$pids" ] || return 0
		sleep 0.05
	done
	fail "still running: $(ps -o pid=,args= -p "$(echo $pids | tr ' ' ,)")"
}

new_killed() {
	new_round
	inject -d -n "$1" -o rec sb-session-new >out 2>&1
	sessions_are_whole
}

new_fails() {
	new_round
	rc=0
	inject -d -e $error -n "$1" -o rec sb-session-new >out 2>err || rc=$?
	honest || return
	if [ "$rc" = 0 ]; then
		is "$(sb-session-ls)" "$(ids "$(cat out)")" || return
	else
		# Closing stdout is the last thing that can fail.
		case $(sed -n "${1}p" rec) in *close) ;; *) is "$(cat out)" "" ;; esac &&
		    is "$(ls -A "$SB_STORE/workspace")" "" || return
	fi
	sessions_are_whole
}

@test "sb-session-new, killed or failing at any call of all its programs, leaves a whole session or none" {
	local n error
	session_template
	new_round
	inject -d -o rec sb-session-new >out
	n=$(wc -l <rec)
	sb-session-end "$(cat out)"
	rounds "sb-session-new, killed" "$n" new_killed
	for error in ENOSPC EIO; do
		rounds "sb-session-new, $error" "$n" new_fails
	done
	echo "# killed at $n calls, and as many times ENOSPC and EIO" >&3
}

end_prepare() {
	new_round
	s=$(sb-session-new) && sb-run "$s" sh -c 'echo mine >f; mkdir -p a/b; chmod 0 a/b; (sleep 1000 >/dev/null 2>&1 &)'
}

# It is whole as long as it is listed.
end_again() {
	rc=0
	if [ "$(sb-session-ls)" != "" ]; then
		is "$(content "$s")" mine && sb-session-end -t 30000 "$s" || return
	fi
	[ ! -d "$SB_STORE/workspace/$s" ] && sessions_are_whole
}

end_killed() {
	end_prepare || return
	inject -n "$1" -o rec sb-session-end "$s" >out 2>&1
	end_again
}

end_fails() {
	end_prepare || return
	rc=0
	inject -e $error -n "$1" -o rec sb-session-end "$s" >out 2>err || rc=$?
	honest && end_again
}

@test "sb-session-end, killed or failing at any call, leaves a whole session or none" {
	local n error
	session_template
	end_prepare
	inject -o rec sb-session-end "$s"
	n=$(wc -l <rec)
	rounds "sb-session-end, killed" "$n" end_killed
	for error in ENOSPC EIO; do
		rounds "sb-session-end, $error" "$n" end_fails
	done
	echo "# killed at $n calls, and as many times ENOSPC and EIO" >&3
}

# ---- leases and layers ----

# A store with head $a, an unused layer $b and rubbish of every kind.
layer_template() {
	need strace
	make_store
	a=$(records "$(rec_x a)" | sb-layer-commit)
	b=$(records "$(rec_d b)" "$(rec_x b/b)" | { mkdir up && mkdir up/b && sb-layer-commit -C up; })
	ids "$a" B000001-base | sb-stack-swap 1 >/dev/null
	sb-stack-lease old true
	cp -a "$SB_STORE" orig
	sweep
	holds >names
	cd orig/layer-stack
	mkdir -p staging/L000009-00000000.staging/d staging/L000008-00000000.rm/d leases/dead workspace
	touch staging/L000009-00000000.lock leases/dead/lock queue/7 .manifest.json.77.tmp .layer-metadata/L000009-00000000.digest
	cd "$T"
	rm -rf orig/layer-stack/workspace "$SB_STORE"
	ids "$b" >in
}

# Head is as it was and whole, and sweeping once more leaves nothing else.
layers_are_whole() {
	cmp "$SB_STORE/layer-stack/manifest.json" "$T/orig/layer-stack/manifest.json" &&
	    { sb-stack-show | sb-layer-check || fail damaged; } && sweep || return
	holds | diff "$T/names" - || fail "left behind"
}

lease_killed() {
	new_round
	inject -n "$1" -o rec sb-stack-lease work true >out 2>&1
	layers_are_whole
}

# The program runs under a lease, or not at all.
lease_fails() {
	new_round
	rc=0
	inject -e $error -n "$1" -o rec sb-stack-lease work sh -c \
	    '[ -s "$SB_STORE/layer-stack/leases/work/manifest" ] && echo ran' >out 2>err || rc=$?
	if [ -s out ]; then
		# Whatever went wrong afterwards, or in the program itself.
		[ "$rc" -lt 128 ] && [ "$rc" != 101 ] && is "$(cat out)" ran || return
	elif [ "$(sed -n "${1}p" rec | cut -d' ' -f3)" = sb-stack-lease ]; then
		case $rc in
		111 | 126 | 127) [ -s err ] || fail "no message" ;;
		*) fail "exit $rc: $(cat err)" ;;
		esac || return
	fi
	layers_are_whole
}

@test "sb-stack-lease, killed or failing at any call, leaves nothing that counts" {
	local n error
	layer_template
	new_round
	inject -o rec sb-stack-lease work true
	n=$(wc -l <rec)
	rounds "sb-stack-lease, killed" "$n" lease_killed
	for error in ENOSPC EIO; do
		rounds "sb-stack-lease, $error" "$n" lease_fails
	done
	echo "# killed at $n calls, and as many times ENOSPC and EIO" >&3
}

rm_killed() {
	new_round
	inject -n "$1" -o rec sb-layer-rm <"$T/in" >out 2>&1
	layers_are_whole
}

rm_fails() {
	new_round
	rc=0
	inject $reads -e $error -n "$1" -o rec sb-layer-rm <"$T/in" >out 2>err || rc=$?
	# It says that it removed what it removed; or it does not say so, and 111.
	honest || return
	if [ "$rc" = 0 ]; then
		is "$(cat out)" "$(ids "$b")" && [ ! -e "$SB_STORE/layer-stack/layers/$b" ] || return
	fi
	layers_are_whole
}

@test "sb-layer-rm, killed or failing at any call, removes nothing that is in use" {
	local n error reads
	layer_template
	new_round
	inject -r -o rec sb-layer-rm <in >out
	n=$(wc -l <rec)
	rounds "sb-layer-rm, killed" "$n" rm_killed
	for error in ENOSPC EIO; do
		case $error in EIO) reads=-r ;; *) reads= ;; esac
		rounds "sb-layer-rm, $error" "$n" rm_fails
	done
	echo "# killed at $n calls, and as many times ENOSPC and EIO" >&3
}

# ---- a full disk ----

@test "on a file system that is really full: named errors, nothing changed; with room again all works" {
	need root overlay userns
	truncate -s 24M image
	mkfs.ext4 -q -F -m 0 image
	mkdir small ws
	seq 20 >ws/f
	mount -o loop image small 2>/dev/null || skip "no loop devices"
	export SB_STORE=$T/small/store
	S=$SB_STORE/layer-stack
	sb-store-init
	sb-base-import ws >/dev/null
	s=$(sb-session-new)
	t=$(sb-session-new)
	sb-run "$s" sh -c 'head -c 3000000 /dev/urandom >big; mkdir d; echo mine >d/f; sed -i s/^3$/three/ f'
	sb-run "$t" sh -c 'sed -i s/^18$/x/ f'
	sb-publish "$t" >out
	sb-layer-scan "$SB_STORE/workspace/$s/upper" | sb-change-route >changes
	# Everything, to the last block, in ever smaller pieces.
	for n in 64k 4k 512; do dd if=/dev/zero of=small/fill.$n bs=$n 2>/dev/null || :; done
	listing "$SB_STORE" | grep -v " ./observability" >before
	cp "$S/manifest.json" manifest
	run -111 --separate-stderr sb-publish "$s"
	has "$stderr" "No space left on device"
	run -111 --separate-stderr sb-session-new
	has "$stderr" "No space left on device"
	run -111 --separate-stderr sb-layer-commit -C "$SB_STORE/workspace/$s/upper" <changes
	has "$stderr" "No space left on device"
	run -111 --separate-stderr sb-stack-lease work true
	has "$stderr" "No space left on device"
	sb-stack-show | sb-layer-check
	sb-stack-unused | sb-layer-rm
	listing "$SB_STORE" | grep -v " ./observability" >after
	same after before
	# What could not be told was left out, whole lines of it.
	is "$(tail -c 1 "$SB_STORE/observability/observability.ndjson" | od -An -c | tr -d ' ')" '\n'
	is "$(sb-session-ls)" "$(ids "$s")"
	is "$(sb-run "$s" cat d/f)" mine
	# Ending needs no room.
	rm small/fill.*
	u=$(sb-session-new)
	for n in 64k 4k 512; do dd if=/dev/zero of=small/fill.$n bs=$n 2>/dev/null || :; done
	sb-session-end "$u"
	rm small/fill.*
	run -0 sb-publish "$s"
	has "$output" '"merged_count":1'
	sb-stack-show | sb-layer-check
	is "$(sb-stack-show | sb-layer-cat f | tr '\n' ' ')" "1 2 three 4 5 6 7 8 9 10 11 12 13 14 15 16 17 x 19 20 "
	sb-session-end "$(sb-session-new)"
	umount small
}
