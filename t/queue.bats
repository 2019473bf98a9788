# SPDX-License-Identifier: MIT
# Many publishers at once: nobody is refused without a conflict, nothing is
# lost, and the order is that of arrival.
bats_require_minimum_version 1.5.0
load lib

ROUNDS=${ROUNDS:-200}

start() {
	need overlay userns
	make_store "$@"
}

@test "sixteen publishers at once, $ROUNDS rounds: all succeed, every line is there" {
	mkdir -p ws/d; for i in $(seq 16); do seq 40 >"ws/d/f$i"; done; seq 200 >ws/shared
	start
	for ((r = 1; r <= ROUNDS; r++)); do
		v=$(sb-stack-version)
		for i in $(seq 16); do s[i]=$(sb-session-new); done
		for i in $(seq 16); do
			# Straight into the upper, as a command would leave it.
			u=$SB_STORE/workspace/${s[i]}/upper
			mkdir -p "$u/d"
			echo "$r" >"$u/d/n$i"
			sb-stack-show | sb-layer-cat shared | sed "$((i * 10))s/.*/$r by $i/" >"$u/shared"
		done
		pids=
		for i in $(seq 16); do
			sb-publish "${s[i]}" >"out$i" 2>"err$i" 3>&- & pids="$pids $!"
		done
		for p in $pids; do wait "$p" || fail "round $r: $(cat out* err*)"; done
		is "$(sb-stack-version)" $((v + 16))
		sb-stack-show | sb-layer-cat shared >got
		seq 200 | awk -v r="$r" '$1 % 10 == 0 && $1 <= 160 { print r " by " $1 / 10; next } { print }' >want
		same got want
		# A line of its own for each version, and none twice.
		is "$(sb-log -n 16 | jq .version | sort -un | wc -l)" 16
		# Back to few layers, so that each round costs the same.
		{ sb-stack-show | tail -n 2; } | sb-stack-swap -c rollback "$(sb-stack-version)" >/dev/null
		sb-stack-unused | sb-layer-rm >/dev/null
	done
	is "$(ls -A "$SB_STORE/layer-stack/queue" "$SB_STORE/layer-stack/leases" | grep -cv :)" "$(ls -A "$SB_STORE/layer-stack/queue" "$SB_STORE/layer-stack/leases" | grep -c '^$')"
}
