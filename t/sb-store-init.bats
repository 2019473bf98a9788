# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "usage errors are 100, -h is 0" {
	run -100 sb-store-init x
	run -100 sb-store-init -x
	run -0 sb-store-init -h
	is "$output" "usage: sb-store-init"
	[ ! -e "$SB_STORE" ]
}

@test "a store is made, mode 0700, and nothing is printed" {
	umask 0
	run -0 sb-store-init
	is "$output" ""
	is "$(cd "$SB_STORE" && find . -printf '%y %m %p\n' | LC_ALL=C sort)" \
	    "$(printf '%s\n' 'd 700 .' 'd 700 ./layer-stack' \
		'd 700 ./layer-stack/.layer-metadata' 'd 700 ./layer-stack/history' \
		'd 700 ./layer-stack/layers' 'd 700 ./layer-stack/leases' \
		'd 700 ./layer-stack/meta' 'd 700 ./layer-stack/queue' \
		'd 700 ./layer-stack/staging' 'd 700 ./workspace' \
		'f 600 ./layer-stack/.storage-writer.lock')"
	is "$(sb-stack-version)" 0
}

@test "a store that is there is left as it is" {
	make_store
	cp -a "$SB_STORE" before
	sb-store-init
	mkdir "$SB_STORE/jobs"
	sb-store-init
	rmdir "$SB_STORE/jobs"
	is "$(listing "$SB_STORE")" "$(listing before)"
}

@test "an older store gets what it lacks" {
	make_store
	cp -a "$SB_STORE" before
	rmdir "$SB_STORE/layer-stack/meta" "$SB_STORE/layer-stack/history"
	sb-store-init
	is "$(listing "$SB_STORE")" "$(listing before)"
}

@test "what a killed run left is finished" {
	local call n
	for call in mkdir mkdirat openat fsync; do
		for n in 1 2 3 4 5 6 7 8 9; do
			rm -rf "$SB_STORE"
			kill_at $call $n sb-store-init || :
			sb-store-init
			[ -d "$SB_STORE/workspace" ]
			[ -f "$SB_STORE/layer-stack/.storage-writer.lock" ]
		done
	done
}

@test "a directory that holds other things is refused" {
	mkdir "$SB_STORE"
	touch "$SB_STORE/a file"
	run -100 --separate-stderr sb-store-init
	has "$stderr" "a file"
	is "$(ls "$SB_STORE")" "a file"
}

@test "SB_STORE must be set and absolute, the directory above must be there" {
	SB_STORE= run -100 sb-store-init
	SB_STORE=store run -100 sb-store-init
	SB_STORE=$T/no/store run -111 sb-store-init
	touch file
	SB_STORE=$T/file run -111 sb-store-init
	ln -s nowhere link
	SB_STORE=$T/link run -111 sb-store-init
}

@test "a failing disk is 111" {
	need strace
	run -111 fault_at fsync 1 EIO sb-store-init
	run -111 fault_at mkdirat 2 ENOSPC sb-store-init
	sb-store-init
}

@test "a path that is not UTF-8 is refused before anything is made" {
	SB_STORE=$T/$'s\xff' run -100 sb-store-init
	has "$output" "not UTF-8"
	[ ! -e "$T/"$'s\xff' ]
	SB_STORE="$T/störe" sb-store-init
}
