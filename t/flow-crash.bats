# SPDX-License-Identifier: MIT
# kill -9 of a publish, of each of its programs, at each call that changes
# something: head is the old one or the new one, and nothing is lost.
bats_require_minimum_version 1.5.0
load lib

tree() { sb-stack-show | sb-layer-list -r | tr '\0' '\n' | sed 's/ [^ ]* .\t/ /' >"$1"; sb-stack-show | sb-layer-cat f >>"$1"; }

@test "killed anywhere in a publish: old head or new, the session publishes again" {
	need overlay userns strace
	mkdir -p ws/d; seq 20 >ws/f; echo 1 >ws/d/g; ln -s f ws/l
	make_store
	tree old
	a=$(sb-session-new)
	sb-run "$a" sh -c 'sed -i s/^2$/two/ f'
	sb-publish "$a"
	tree old
	work='seq 20 | sed s/^18$/x/ >f; rm -r d; mkdir d; echo n >d/n; ln -sf n l; echo h >h'
	# What a whole publish gives, once, in a copy of the store.
	total=0
	for call in mkdirat mknodat openat symlinkat renameat renameat2 fsync unlinkat write copy_file_range; do
		k=0
		while :; do
			k=$((k + 1))
			[ $k -le 60 ] || break
			# The session is made over the old base: it has to merge.
			s=$(sb-session-new)
			sb-run "$s" sh -c "$work" 2>/dev/null
			v=$(sb-stack-version)
			hit=0
			timeout 60 strace -f -qq -o trace -e trace="$call" -e inject="$call:signal=KILL:when=$k" \
			    sb-publish "$s" >out 2>&1 3>&- || hit=1
			total=$((total + 1))
			if [ "$(sb-stack-version)" = "$v" ] && [ -d "$SB_STORE/workspace/$s" ]; then
				sb-publish "$s" >out 2>&1 || fail "$call $k: $(cat out)"
			elif [ -d "$SB_STORE/workspace/$s" ]; then
				run -0 sb-publish "$s"
				has "$output" '"no_op":true'
			fi
			tree new
			if [ ! -e want ]; then cp new want; fi
			same new want
			# The next round needs something to do: back to the old head.
			{ sb-stack-show | tail -n 3; } | sb-stack-swap "$(sb-stack-version)" >/dev/null
			if [ $hit = 0 ] || ! grep -q SIGKILL trace; then break; fi
		done
	done
	echo "# sb-publish killed at $total calls" >&3
	sb-stack-unused | sb-layer-rm >/dev/null
	is "$(ls -A "$SB_STORE/layer-stack/staging" "$SB_STORE/layer-stack/leases" "$SB_STORE/layer-stack/queue" | grep -v : | grep .)" ""
	sb-stack-show | sb-layer-check
	is "$(sb-session-ls)" ""
}
