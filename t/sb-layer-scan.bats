# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	mkdir up
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-layer-scan
	run -100 sb-layer-scan a b
	run -100 sb-layer-scan -x up
	run -100 sb-layer-scan -s ../x up
	run -0 sb-layer-scan -h
	is "$output" "usage: sb-layer-scan [-s session] dir"
}

@test "an empty upper is the empty stream" {
	sb-layer-scan up >out
	same out <(records0)
}

@test "empty directories come in order, the outer first" {
	mkdir -p up/abc/nested
	chmod 1770 up/abc
	sb-layer-scan up >out
	same out <(records "$(rec_d abc 1770)" "$(rec_d abc/nested)")
}

@test "each kind is what overlayfs means by it" {
	need xattr
	printf hello >up/file
	chmod 4751 up/file
	touch up/wh up/empty
	setfattr -n user.overlay.whiteout up/wh
	mkdir up/op up/notop
	setfattr -n user.overlay.opaque -v y up/op
	setfattr -n user.overlay.opaque -v x up/notop
	ln -s ../target up/link
	sb-layer-scan up >out
	same out <(records "$(rec_w empty 0)" "$(rec_w file 5 4751)" \
	    "l 0777 - u -	link" ../target "$(rec_d notop)" \
	    "o 0755 - u -	op" "$(rec_x wh)")
}

@test "a device 0:0 is a deletion, other special files are named and not opened" {
	need root
	mknod up/gone c 0 0
	mknod up/null c 1 3
	mkfifo -m 600 up/fifo
	timeout 10 sb-layer-scan up >out
	same out <(records "s 0600 - - -	fifo" "$(rec_x gone)" "s 0644 - - -	null")
}

@test "names beginning .wh. are ordinary entries here" {
	mkdir up/dir
	touch up/foo up/.wh.foo up/dir/.wh..wh..opq up/.wh.
	sb-layer-scan up >out
	same out <(records "$(rec_w .wh. 0)" "$(rec_w .wh.foo 0)" "$(rec_d dir)" \
	    "$(rec_w dir/.wh..wh..opq 0)" "$(rec_w foo 0)")
}

@test "any byte may be in a name or a target" {
	local odd=$'a b\n-\xff\t' target=$'-\n\xfe t'
	printf 12 >"up/$odd"
	mkdir up/-rf
	ln -s -- "$target" up/-rf/l
	sb-layer-scan up >out
	same out <(records "$(rec_d -rf)" "l 0777 - u -	-rf/l" "$target" "$(rec_w "$odd" 2)")
}

@test "a directory, then all below it, then its siblings" {
	mkdir up/a
	touch up/a/b up/a-b up/a0 up/a.c
	sb-layer-scan up >out
	same out <(records "$(rec_d a)" "$(rec_w a/b 0)" "$(rec_w a-b 0)" \
	    "$(rec_w a.c 0)" "$(rec_w a0 0)")
}

@test "no link is followed" {
	mkdir out
	touch out/secret
	ln -s ../out up/dir
	sb-layer-scan up >got
	same got <(records "l 0777 - u -	dir" ../out)
}

@test "a tree of 2000 levels needs few descriptors" {
	mkdir -p "up/$(printf 'd/%.0s' {1..2000})"
	touch "up/$(printf 'd/%.0s' {1..2000})f"
	(ulimit -n 64; sb-layer-scan up >out)
	is "$(tr -cd '\0' <out | wc -c)" 2002
	is "$(tr '\0' '\n' <out | tail -n 2 | head -c 20)" "w 0644 0 u -	d/d/d/d"
}

@test "a path that is too long is 100, named, without a full stop" {
	local long
	long=$(printf '%0200d' 0)
	(
		cd up
		for _ in {1..21}; do mkdir "$long" && cd -P "$long"; done
	)
	run -100 --separate-stderr sb-layer-scan up
	has "$stderr" "longer than 4095 bytes"
	sb-layer-scan up >out 2>/dev/null || is $? 100
	is "$(tail -c 2 out | od -An -tx1)" " 30 00"
}

@test "an upper that cannot be read is 111, named" {
	need user
	mkdir -m 0 up/closed
	run -111 --separate-stderr sb-layer-scan up
	has "$stderr" "up/closed"
	chmod 700 up/closed
	run -111 sb-layer-scan nowhere
	touch file
	run -111 sb-layer-scan file
}

@test "an error while reading is 111, and no full stop is written" {
	need strace
	mkdir up/a up/b
	run -111 fault_at getdents64 3 EIO sb-layer-scan up
	fault_at getdents64 3 EIO sb-layer-scan up >out 2>/dev/null || is $? 111
	same out <(records "$(rec_d a)" | cut_stream)
}

@test "a full disk and a closed stdout are 111" {
	touch up/f
	run -111 sh -c 'sb-layer-scan up >/dev/full'
	run -111 sh -c 'sb-layer-scan up >&-'
}

@test "what a killed change left aside in the session is passed over, and nothing else" {
	mkdir -p up/d/.sb-s1.tmp/x up/.sb-s2.tmp up/.sb-s1.tmp.x
	: >up/d/.sb-s1.tmp/x/f
	: >up/.sb-s1.tmp
	sb-layer-scan -s s1 up >out
	same out <(records "$(rec_d .sb-s1.tmp.x)" "$(rec_d .sb-s2.tmp)" "$(rec_d d)")
	sb-layer-scan up | tr '\0' '\n' >all
	is "$(wc -l <all)" 8
}
