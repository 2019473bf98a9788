# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# A publish that has to do everything once, and what must hold when it is
# killed or fails at one of its calls; see t/helper/inject.c. Load lib first.

inject() { "$SB_T/inject" "$@"; }

# What a session changes in publish_template, for sb-run.
changes='sed -i s/^18$/mine/ f; rm -r d; mkdir d; echo n >d/n; ln -sf n l; echo h >h; rm gone
	echo log >a.log; mkdir -m 700 e; mkdir e/e; chmod 4755 h; setfattr -n user.k -v v h; mkfifo p
	head -c 200000 /dev/zero >big; echo mine >.git/one; printf "%040d\n" 3 >.git/refs/heads/main'

# Makes $T/orig: a store, and in it the parked session $s, which has to merge
# with head and changes every kind of thing. $T/want, $T/names: what head shows
# and what the store holds when it was published.
publish_template() {
	mkdir -p ws/d ws/.git/refs/heads
	seq 20 >ws/f
	echo 1 >ws/d/g
	echo gone >ws/gone
	ln -s f ws/l
	echo '*.log' >ws/.gitignore
	echo base >ws/.git/one
	# A repository whose branch both sides move: theirs stays, ours is kept.
	echo "ref: refs/heads/main" >ws/.git/HEAD
	printf '%040d\n' 1 >ws/.git/refs/heads/main
	make_store
	a=$(sb-session-new)
	s=$(sb-session-new)
	sb-run "$a" sh -c 'sed -i s/^2$/theirs/ f; echo theirs >t; printf "%040d\n" 2 >.git/refs/heads/main'
	sb-publish "$a" >out
	sb-run "$s" sh -c "$changes"
	sb-ns-kill "$s"
	keep_template
	new_round
	sb-publish "$s" >out
	shows >want
	sweep
	holds >names
	is "$(sb-stack-show | sb-layer-cat f | tr '\n' ' ')" "1 theirs 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 mine 19 20 "
}

# What is in the store now is where each round begins.
keep_template() {
	mv "$SB_STORE" orig
	# overlayfs leaves a directory that nobody but root may read.
	chmod -f 700 orig/workspace/*/work/work || :
}

new_round() {
	rm -rf "$SB_STORE" 2>/dev/null || { chmod -R u+rwX "$SB_STORE" && rm -rf "$SB_STORE"; }
	cp -a "$T/orig" "$SB_STORE"
}

# All paths that head shows, without the names of layers; then the digest of its
# newest layer, for what the files hold: that it is true is for sb-layer-check.
shows() {
	sb-stack-show >ids && sb-layer-list -r <ids >list && sed -z 's/ [^ ]* .\t/ /' <list | tr '\0' '\n' &&
	    cat "$SB_STORE/layer-stack/.layer-metadata/$(head -n 1 ids).digest"
}

sweep() { sb-stack-unused | sb-layer-rm >removed; }

# Names of all that the store holds, without what layers hold, and events.
holds() {
	find "$SB_STORE" \( -path '*/layers/*/*' -o -name observability \) -prune -o -printf '%P %y\n' |
	    sed -E 's/L[0-9]+-[0-9a-f]{8}/ID/' | LC_ALL=C sort
}

# All versions of the history, each once, in order, up to the one of head.
history_is_whole() {
	local v f=$SB_STORE/layer-stack/history/main.ndjson
	[ -e "$f" ] || return 0
	sed -nE 's/.*"version":([0-9]+).*/\1/p' "$f" >versions
	LC_ALL=C sort -n -u versions | cmp -s - versions && v=$(tail -n 1 versions) &&
	    is "$v" "$(sb-stack-version)" && is "$(wc -l <versions)" "$(wc -l <"$f")"
}

# Head is the old one, byte by byte, or the new one, whole.
old_or_new() {
	head=old
	[ "$(<"$SB_STORE/layer-stack/manifest.json")" != "$(<"$T/orig/layer-stack/manifest.json")" ] || return 0
	head=new
	shows >got && [ "$(<got)" = "$(<"$T/want")" ] ||
	    fail "head is neither the old nor the new one:" "$(cat got)" || return
	sb-layer-check <ids >bad 2>&1 || fail "$(cat bad)"
}

# The session, if head is the old one, is whole: it is published; and when all
# is swept nothing is left but what a publish leaves.
goes_on() {
	local was=$head
	if [ -d "$SB_STORE/workspace/$s" ]; then
		sb-publish -t 30000 "$s" >again 2>&1 || fail "again: exit $?: $(cat again)" || return
		[ "$was" = old ] || has "$(<again)" '"no_op":true' || return
	elif [ "$was" = old ]; then
		fail "the session is gone, and not published"
		return
	elif [ -n "$(ls -A "$SB_STORE/workspace")" ]; then
		# What an end began the next end goes on with.
		x=$(sb-session-new) && sb-session-end "$x" || return
	fi
	old_or_new && is "$head" new && history_is_whole && sweep || return
	holds >left
	[ "$(<left)" = "$(<"$T/names")" ] || fail "left: $(diff "$T/names" left)"
}

# rounds NAME COUNT FN ARG…: calls FN for each of 1 to COUNT, in directories and
# stores of their own, two at a time. FN says what is wrong and returns 1.
rounds() {
	local what=$1 n=$2 w pids=
	shift 2
	for w in 1 2; do
		mkdir -p "$T/work$w"
		(
			cd "$T/work$w" || exit
			export SB_STORE=$PWD/store
			for ((k = w; k <= n; k += 2)); do
				"$@" "$k" >say 2>&1 || { echo "$what, call $k ($(sed -n "${k}p" rec)): $(cat say)"; exit 1; }
			done
			echo "$n" >"$T/done$w"
		) >"$T/say$w" 2>&1 3>&- &
		pids="$pids $!"
	done
	for w in $pids; do wait "$w" || :; done
	cat "$T/say1" "$T/say2"
	[ ! -s "$T/say1" ] && [ ! -s "$T/say2" ] && [ -e "$T/done1" ] && [ -e "$T/done2" ] || return
	rm -rf "$T/done1" "$T/done2" "$T/work1" "$T/work2"
}
