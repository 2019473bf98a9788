# SPDX-License-Identifier: MIT
# A change of a file of head that is killed, or fails, at each of its calls; for
# those in a session see flow-file.bats.
bats_require_minimum_version 1.5.0
load lib

# edits OLD NEW: the array.
edits() { jq -cn --arg a "$1" --arg b "$2" '[{old_string: $a, new_string: $b}]'; }

@test "killed at any call, a write to head is made or not, and the rest is swept" {
	need jq
	mkdir -p ws/d; seq 3 >ws/d/f
	make_store
	S=$SB_STORE/layer-stack
	edits 2 two >e
	cp -a "$SB_STORE" orig
	"$SB_T/inject" -o rec sb-file-edit d/f <e >got
	local n k err
	n=$(wc -l <rec)
	for err in KILL ENOSPC EIO; do
		for ((k = 1; k <= n; k++)); do
			rm -rf "$SB_STORE"
			cp -a orig "$SB_STORE"
			code=0
			if [ $err = KILL ]; then
				"$SB_T/inject" -n $k sb-file-edit d/f <e >got 2>err || code=$?
			else
				"$SB_T/inject" -e $err -n $k sb-file-edit d/f <e >got 2>err || code=$?
				[ $code = 0 ] || [ $code = 111 ] || fail "$err at $(sed -n ${k}p rec): $code"
				[ $code = 0 ] || [ -s err ] || fail "$err at $(sed -n ${k}p rec): no message"
			fi
			what="$err at call $k: $(sed -n ${k}p rec)"
			case $(sb-stack-version) in
			1) is "$(sb-stack-show | sb-layer-cat d/f | xargs)" '1 2 3' || fail "$what"
				[ $code != 0 ] || fail "$what: a success without a change" ;;
			2) is "$(sb-stack-show | sb-layer-cat d/f | xargs)" '1 two 3' || fail "$what"
				sb-stack-show | sb-layer-check || fail "$what" ;;
			*) fail "$what" ;;
			esac
			edits 3 three | sb-file-edit -t 60000 d/f >again || fail "$what: again: $(cat again)"
			sb-stack-unused | sb-layer-rm >/dev/null
			is "$(ls -A "$S/leases" "$S/staging" "$S/queue" | grep -v : | xargs)" '' || fail "$what"
		done
		echo "# $err at $n calls" >&3
	done
}
