# SPDX-License-Identifier: MIT
# kill -9 of a publish, of each of its programs, at each call that changes
# something: head is the old one or the new one, and nothing is lost.
bats_require_minimum_version 1.5.0
load lib
load fault

start() {
	need overlay userns strace xattr
	publish_template
	new_round
	inject -o rec sb-publish "$s" >out
	calls=$(wc -l <rec)
}

@test "every call that changes something is counted, as strace finds them" {
	start
	new_round
	strace -f -qq -e signal=none -o trace sb-publish "$s" >out
	sed -nE 's/^[0-9]+ +(<\.\.\. )?([a-z0-9_]+)(\(| resumed).*/\2/p' trace | sort -u >found
	inject -l | sort >harmless
	comm -23 found harmless >want
	cut -d' ' -f4 rec | sort -u >got
	same got want
}

killed() {
	new_round
	inject -n "$1" -o rec sb-publish "$s" >out 2>&1
	old_or_new && goes_on
}

@test "killed at any call of a publish: head is old or new, the session is published, nothing is left" {
	start
	[ "$calls" -gt 250 ]
	rounds killed $((calls + 3)) killed
	echo "# killed at $calls calls of $(cut -d' ' -f2 rec | sort -u | wc -l) processes" >&3
}

@test "a program of a publish that is killed is named, and the publish is 111" {
	local prog rc
	start
	for prog in sb-layer-scan sb-change-route sb-change-resolve sb-layer-commit sb-stack-swap; do
		new_round
		rc=0
		# Of its name the kernel keeps 15 bytes.
		inject -p "${prog:0:15}" -n 2 sb-publish "$s" >out 2>err || rc=$?
		is "$prog $rc" "$prog 111"
		has "$(cat err)" "$prog"
		old_or_new
		is "$head" old
		goes_on
	done
}

# The calls before the changes are read and after the swap, with a session that
# runs, and processes left behind in it.
alive() {
	new_round
	s=$(sb-session-new)
	sb-run "$s" sh -c "$changes
	    (sleep 1000 >/dev/null 2>&1 &)" || return
	inject -n "$1" -o rec sb-publish "$s" >out 2>&1
	head=old
	cmp -s "$SB_STORE/layer-stack/manifest.json" "$T/orig/layer-stack/manifest.json" || head=new
	if [ -d "$SB_STORE/workspace/$s" ]; then
		# Whatever was stopped can be ended.
		sb-publish -t 30000 "$s" >again 2>&1 || fail "again: exit $?: $(cat again)" || return
	elif [ $head = old ]; then
		fail "the session is gone, and not published"
		return
	fi
	is "$(ls "$SB_STORE/workspace" | wc -l)" 1 || return
	is "$(sb-stack-show | sb-layer-cat f | grep -c mine)" 1 || return
	is "$(our_processes "$SB_STORE")" ""
}

@test "killed while it stops or ends a session that runs: nothing is lost, no process stays" {
	start
	# The parked session of the template stays in the way of nobody.
	new_round
	s=$(sb-session-new)
	sb-run "$s" sh -c "$changes; (sleep 1000 >/dev/null 2>&1 &)"
	inject -o rec sb-publish "$s" >out
	awk '$3 == "sb-layer-scan" && !scan { scan = $1 } $3 == "sb-stack-swap" { swap = $1 }
	    { n = $1 } END { for (i = 1; i <= n; i++) if (i < scan || i > swap) print i }' rec >at
	mapfile -t at <at
	nth() { alive "${at[$1 - 1]}"; }
	rounds alive ${#at[@]} nth
	echo "# killed at ${#at[@]} calls" >&3
}

tree() { sb-stack-show | sb-layer-list -r | tr '\0' '\n' | sed 's/ [^ ]* .\t/ /' >"$1"; }

# As a whole: everything that the publish started belongs to its group.
moment() {
	local v
	RANDOM=$((seed + $1))
	v=$((RANDOM * us * 2 / 32768))
	new_round
	setsid sb-publish "$s" >out 2>&1 &
	sleep $((v / 1000000)).$(printf %06d $((v % 1000000)))
	kill -KILL -- -$! 2>/dev/null
	wait $!
	tree got
	if cmp -s "$SB_STORE/layer-stack/manifest.json" "$T/orig/layer-stack/manifest.json"; then
		echo old >>"$T/heads" && same got "$T/before" || return
	else
		echo new >>"$T/heads" && same got "$T/after" || return
	fi
	sb-stack-show | sb-layer-check >bad 2>&1 || fail "$(cat bad)" || return
	if [ -d "$SB_STORE/workspace/$s" ]; then
		sb-publish -t 30000 "$s" >again 2>&1 || fail "again: exit $?: $(cat again)" || return
	fi
	tree got
	same got "$T/after" && is "$(sb-session-ls)" "" && sweep || return
	holds | sed '/ID\.[a-z]*/d' | grep -v '^workspace/\.end\.' >left
	is "$(grep -E '/(staging|leases|queue|layers)/' left)" "layer-stack/layers/ID d"
}

@test "a change set of 500 files, killed as a whole at 50 random moments" {
	local seed us
	need overlay userns
	seed=${SB_SEED:-$RANDOM}
	echo "# SB_SEED=$seed" >&3
	mkdir ws
	for i in $(seq 400); do mkdir -p "ws/d$((i % 20))"; echo "base $i" >"ws/d$((i % 20))/f$i"; done
	make_store
	s=$(sb-session-new)
	sb-run "$s" sh -c 'for i in $(seq 400); do
		d=d$((i % 20))
		case $((i % 4)) in 0) rm $d/f$i ;; 1) echo mine $i >$d/f$i ;; esac
	    done
	    for i in $(seq 298); do mkdir -p n$((i % 20)); echo $i >n$((i % 20))/f$i; done
	    rm -r d3; mkdir d3; echo x >d3/x; rm -r d7'
	sb-ns-kill "$s"
	tree before
	keep_template
	new_round
	is "$(sb-layer-scan "$SB_STORE/workspace/$s/upper" | tr '\0' '\n' | grep -c '^[wx]')" 500
	us=${EPOCHREALTIME/./}
	sb-publish "$s" >out
	us=$((${EPOCHREALTIME/./} - us))
	tree after
	rounds "SB_SEED=$seed" 50 moment
	echo "# $(grep -c old heads) times the old head, $(grep -c new heads) times the new one" >&3
}
