# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "usage, ids and sandboxes that are not there" {
	run -0 sb-box-hold -h
	has "$output" sb-box-hold
	run -100 sb-box-hold
	run -100 sb-box-hold b
	run -100 sb-box-hold -i relative b true
	run -100 sb-box-hold -m relative b true
	run -100 sb-box-hold -3 2 b true
	run -100 sb-box-hold ../b true
	run -1 sb-box-hold b true
	mkdir -p "$SB_STATE/sandboxes"
	run -1 sb-box-hold b true
	ln -s / "$SB_STATE/sandboxes/l"
	run -111 sb-box-hold l true
}

@test "a newline says that the program runs, and nothing that it does not" {
	need overlay userns
	mkdir -p "$SB_STATE/sandboxes/b"
	mkfifo go
	exec 5<>go
	sb-box-hold -3 6 b sh -c 'read -r x <&0' <go 6>ready 3>&- 5>&- &
	pid=$!
	eventually test -s ready
	is "$(cat ready)" ''
	echo >&5
	wait $pid
	run -111 sb-box-hold -3 6 b no-such-program 6>ready
	[ ! -s ready ]
}
