# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

@test "an empty store has no sessions, in both forms" {
	make_store
	is "$(sb-session-ls | od -An -c)" "$(echo | od -An -c)"
	is "$(sb-session-ls -v)" '{}'
}

@test "running and parked are told from the lock" {
	start
	sb-session-ls -v | head -n 1 >one
	is "$(jq -c '[.workspace_session_id, .state, .manifest_version, .layer_count]' one)" "[\"$s\",\"running\",1,1]"
	sb-ns-kill "$s"
	sb-session-ls -v | head -n 1 >one
	is "$(jq -r .state one)" parked
}

@test "a damaged lease is said and hides nothing" {
	start
	cp "$SB_STORE/workspace/$s/lease" good
	echo garbage >"$SB_STORE/workspace/$s/lease"
	run -0 --separate-stderr sb-session-ls -v
	has "$output" "$s"
	has "$stderr" "lease"
	cp good "$SB_STORE/workspace/$s/lease"
}

@test "a full disk is 111" {
	make_store
	run -111 bash -c 'sb-session-ls >/dev/full'
}
