# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

@test "without the layers of its lease it fails and says which" {
	start
	sb-ns-kill "$s"
	cp "$SB_STORE/workspace/$s/lease" good
	sed -i s/B000001-base/B000002-base/ "$SB_STORE/workspace/$s/lease"
	run -111 sb-run "$s" true
	has "$output" B000002-base
	cp good "$SB_STORE/workspace/$s/lease"
	is "$(sb-run "$s" cat f)" base
}
