# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# A tree with the skeleton as its only command: adding one is adding files.
setup_file() {
	local top="$BATS_TEST_DIRNAME/.." tree=$BATS_FILE_TMPDIR
	mkdir -p "$tree/cmd" "$tree/sh" "$tree/doc/man1"
	cp -R "$top/Makefile" "$top/lib" "$tree/"
	cp "$top/doc/skeleton.c" "$tree/cmd/sb-skeleton.c"
	cp "$top/doc/skeleton.1" "$tree/doc/man1/sb-skeleton.1"
	make -s -C "$tree" B=build WERROR=1 all
}

setup() {
	sb_setup
	PATH=$BATS_FILE_TMPDIR/build/bin:$PATH
}

@test "ids that begin with the prefix pass, in order" {
	ids L2 B1 L1 >in
	sb-skeleton L <in >out
	same out <(ids L2 L1)
	sb-skeleton -v L <in >out
	same out <(ids B1)
}

@test "nothing found is 1 with a whole, empty stream" {
	ids L2 | run -1 sb-skeleton B
	sb-skeleton B < <(ids L2) >out || is $? 1
	same out <(ids0)
	sb-skeleton B < <(ids0) >out || is $? 1
	same out <(ids0)
}

@test "input cut before the full stop is 111 and yields no answer" {
	ids L1 | cut_stream >in
	run -111 --separate-stderr sb-skeleton L <in
	is "$output" ""
	has "$stderr" "input ended early"
}

@test "a refusal passes through with its code, silently" {
	refusal 2 'conflict: a' >in
	run -2 --separate-stderr sb-skeleton L <in
	is "$output" "! 2 conflict: a"
	is "$stderr" ""
}

@test "what is no id is 100, and so is one given twice" {
	ids a/b | run -100 sb-skeleton L
	ids L1 L1 | run -100 sb-skeleton L
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-skeleton
	run -100 sb-skeleton a b
	run -100 sb-skeleton ''
	run -100 sb-skeleton -x L
	run -0 sb-skeleton -h
	is "$output" "usage: sb-skeleton [-v] prefix"
}

@test "a full disk and a closed stdout are 111" {
	ids L1 >in
	run -111 sh -c 'sb-skeleton L <in >/dev/full'
	run -111 sh -c 'sb-skeleton L <in >&-'
}

@test "the command and its page are installed below DESTDIR and PREFIX" {
	make -s -C "$BATS_FILE_TMPDIR" DESTDIR="$T/dest" PREFIX=/opt/sb install
	[ -x "$T/dest/opt/sb/bin/sb-skeleton" ]
	[ -f "$T/dest/opt/sb/share/man/man1/sb-skeleton.1" ]
}
