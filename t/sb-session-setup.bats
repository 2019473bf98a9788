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

@test "the programs that it stands for make the same view" {
	start
	look='cut -d" " -f5,6 /proc/self/mountinfo; for d in / /dev; do stat -c "%A %u %g %n" $d/*; done'
	sb-run "$s" sh -c "$look" >one
	sb-ns-kill "$s"
	mkdir bin
	cat >bin/sb-session-setup <<-'EOF'
		#!/bin/sh
		sb-stack-show -l lease | sb-overlay-mount -u upper -w work merged &&
		    exec sb-ns-root -m "$SB_STORE" merged "$1"
	EOF
	chmod +x bin/sb-session-setup
	PATH=$T/bin:$PATH sb-run "$s" sh -c "$look" >two
	diff one two
}

@test "a relative workspace, another way or a missing lease is refused" {
	make_store
	run -100 --separate-stderr sb-session-setup ws
	has "$stderr" usage
	run -100 sb-session-setup -p x /ws
	run -111 --separate-stderr sb-session-setup /ws
	has "$stderr" 'unable to open directory upper'
	mkdir upper work merged
	run -111 --separate-stderr sb-session-setup /ws
	has "$stderr" 'unable to read the lease: no layers'
}
