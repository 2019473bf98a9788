# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	L=$SB_STORE/layer-stack/layers
	mkdir -p "$L/L3-a" "$L/L2-a/dir" "$L/B000001-base/dir"
	echo base >"$L/B000001-base/dir/f"
}

cat2() { ids L2-a B000001-base | sb-layer-cat "$1"; }

@test "the newest layer's bytes are printed, whatever they are" {
	is "$(cat2 dir/f)" base
	head -c 300000 /dev/urandom >"$L/L2-a/dir/f"
	cat2 dir/f >out
	same out "$L/L2-a/dir/f"
	: >"$L/L2-a/dir/f"
	cat2 dir/f >out
	is "$(stat -c %s out)" 0
}

@test "a deleted file is 1 without a word: by device, marker, and above it" {
	touch "$L/L2-a/dir/.wh.f"
	run -1 cat2 dir/f
	is "$output" ""
	rm "$L/L2-a/dir/.wh.f"
	mknod "$L/L2-a/dir/f" c 0 0
	run -1 cat2 dir/f
	is "$output" ""
	rm -r "$L/L2-a/dir"
	touch "$L/L2-a/.wh.dir"
	run -1 cat2 dir/f
	is "$output" ""
	run -1 cat2 none/x
	is "$output" ""
}

@test "behind an opaque directory nothing older is read, but its own is" {
	setfattr -n user.overlay.opaque -v y "$L/L2-a/dir"
	echo new >"$L/L2-a/dir/new"
	run -1 cat2 dir/f
	is "$(cat2 dir/new)" new
	setfattr -x user.overlay.opaque "$L/L2-a/dir"
	is "$(cat2 dir/f)" base
	touch "$L/L2-a/dir/.wh..wh..opq"
	run -1 cat2 dir/f
	is "$(cat2 dir/new)" new
}

@test "a file in the way of a directory hides it" {
	rmdir "$L/L2-a/dir"
	echo file >"$L/L2-a/dir"
	run -1 --separate-stderr cat2 dir/f
	is "$output$stderr" ""
	is "$(cat2 dir)" file
}

@test "no link is followed, last or before, within layers or out of them" {
	mkdir out
	echo secret >out/s
	ln -s "$T/out" "$L/L2-a/l"
	ln -s dir/f "$L/L2-a/m"
	run -1 --separate-stderr cat2 l/s
	is "$output$stderr" ""
	run -1 --separate-stderr cat2 m
	is "$output" ""
	has "$stderr" "m is not a regular file"
}

@test "a directory or FIFO is 1, said, and waits for nobody" {
	mkfifo "$L/L2-a/p"
	for p in dir p; do
		run -1 --separate-stderr cat2 "$p"
		is "$stderr" "sb-layer-cat: fatal: $p is not a regular file"
	done
}

@test "names are bytes" {
	for f in 'a b' $'n\nl' -h $'\xff'; do
		echo "in $f" >"$L/L2-a/$f"
		is "$(ids L2-a | sb-layer-cat -- "$f")" "in $f"
	done
}

@test "no ids show nothing: 1" {
	run -1 bash -c 'echo | sb-layer-cat dir/f'
	is "$output" ""
}

@test "input that is cut, refused or no ids" {
	run -111 --separate-stderr bash -c 'printf "B000001-base\n" | sb-layer-cat dir/f'
	is "$output" ""
	has "$stderr" "input ended early"
	run -2 --separate-stderr bash -c 'printf "B000001-base\n! 2 no\n" | sb-layer-cat dir/f'
	is "$output$stderr" ""
	run -100 bash -c 'printf "w 0644\tx\n\n" | sb-layer-cat dir/f'
}

@test "a layer that is not there is 111 and named" {
	run -111 --separate-stderr bash -c 'printf "L9-x\n\n" | sb-layer-cat f'
	has "$stderr" "unable to open layer L9-x"
}

@test "usage" {
	run -100 --separate-stderr sb-layer-cat
	run -100 --separate-stderr sb-layer-cat a b
	run -100 --separate-stderr sb-layer-cat -x a
	for p in /abs ../x a/../b a//b . ''; do
		run -100 --separate-stderr sb-layer-cat "$p" </dev/null
	done
	run -0 sb-layer-cat -h
	is "$output" "usage: sb-layer-cat path"
}

@test "a full or closed stdout is 111" {
	run -111 bash -c 'printf "B000001-base\n\n" | sb-layer-cat dir/f >/dev/full'
	run -111 bash -c 'printf "B000001-base\n\n" | sb-layer-cat dir/f >&-'
}

@test "a missing store is 111, none named 100" {
	rm -rf "$SB_STORE"
	run -111 --separate-stderr bash -c 'echo | sb-layer-cat f'
	has "$stderr" "$SB_STORE"
	unset SB_STORE
	run -100 bash -c 'echo | sb-layer-cat f'
}
