# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	L=$SB_STORE/layer-stack/layers
	mkdir -p "$L/L3-a" "$L/L2-a" "$L/B000001-base"
}

# What the layers show: kind, path and FROM of each record on a line.
show() { sb-layer-list "$@" | tr '\0' '\n' | sed -n 's/^\(.\) [0-7]* [0-9-]* \([^ ]*\) -\t/\1 \2 /p'; }
opaque() { setfattr -n user.overlay.opaque -v y "$1"; }

@test "three layers: the root is merged, sorted, with kinds, modes and sizes" {
	mkdir "$L/B000001-base/d" "$L/L2-a/d"
	chmod 750 "$L/L2-a/d"
	echo base >"$L/B000001-base/a"
	echo older >"$L/L2-a/b"
	echo b >"$L/L3-a/b"
	ln -s ../target "$L/L3-a/c"
	mkfifo "$L/L2-a/e"
	ids L3-a L2-a B000001-base | sb-layer-list >out
	{
		printf 'w 0644 5 B000001-base -\ta\0w 0644 2 L3-a -\tb\0'
		printf 'l 0777 - L3-a -\tc\0../target\0d 0750 - L2-a -\td\0'
		printf 's 0000 - - -\te\0\0'
	} >want
	same out want
}

@test "a newer, shorter file shows its own size, a deleted one nothing" {
	mkdir "$L/B000001-base/dir" "$L/L2-a/dir" "$L/L3-a/dir"
	echo longer >"$L/B000001-base/dir/a"
	echo longer >"$L/B000001-base/dir/b"
	echo s >"$L/L2-a/dir/a"
	is "$(ids L2-a B000001-base | sb-layer-list dir | tr '\0' ,)" \
	    $'w 0644 2 L2-a -\tdir/a,w 0644 7 B000001-base -\tdir/b,,'
	mknod "$L/L3-a/dir/a" c 0 0
	is "$(ids L3-a L2-a B000001-base | show dir)" "w B000001-base dir/b"
}

@test "-r lists everything below in path order" {
	mkdir -p "$L/B000001-base/d/e" "$L/L2-a/d"
	touch "$L/B000001-base/d/e/f" "$L/L2-a/d-" "$L/L2-a/d/g"
	is "$(ids L2-a B000001-base | show -r | tr '\n' ,)" \
	    "d L2-a d,d B000001-base d/e,w B000001-base d/e/f,w L2-a d/g,w L2-a d-,"
	is "$(ids L2-a B000001-base | show -r d | tr '\n' ,)" \
	    "d B000001-base d/e,w B000001-base d/e/f,w L2-a d/g,"
}

@test "a whiteout of a directory hides all of it, in both its forms" {
	mkdir "$L/B000001-base/dir"
	touch "$L/B000001-base/dir/f" "$L/B000001-base/keep" "$L/L2-a/.wh.dir"
	is "$(ids L2-a B000001-base | show -r)" "w B000001-base keep"
	mknod "$L/L3-a/dir" c 0 0
	is "$(ids L3-a B000001-base | show -r)" "w B000001-base keep"
	run -1 bash -c 'printf "L2-a\nB000001-base\n\n" | sb-layer-list dir'
}

@test "an empty file with a whiteout xattr hides its name, but not in a base" {
	need xattr
	touch "$L/B000001-base/f" "$L/B000001-base/g" "$L/L2-a/f"
	setfattr -n user.overlay.whiteout -v y "$L/L2-a/f"
	setfattr -n user.overlay.whiteout -v y "$L/B000001-base/g"
	is "$(ids L2-a B000001-base | show)" "w B000001-base g"
}

@test "an opaque directory shows its own content only, by the entry or the xattr" {
	mkdir "$L/B000001-base/dir" "$L/L2-a/dir" "$L/L3-a/dir"
	touch "$L/B000001-base/dir/old" "$L/L2-a/dir/new" "$L/L3-a/dir/new"
	mknod "$L/L2-a/dir/.wh..wh..opq" c 0 0
	opaque "$L/L3-a/dir"
	is "$(ids L2-a B000001-base | show -r)" "$(printf 'd L2-a dir\nw L2-a dir/new')"
	is "$(ids L3-a B000001-base | show -r)" "$(printf 'd L3-a dir\nw L3-a dir/new')"
}

@test "a directory below an opaque one in the same layer is listed" {
	mkdir -p "$L/B000001-base/d/sub" "$L/L2-a/d/sub"
	touch "$L/B000001-base/d/sub/old" "$L/L2-a/d/sub/new"
	opaque "$L/L2-a/d"
	is "$(ids L2-a B000001-base | show d/sub)" "w L2-a d/sub/new"
}

@test "a file or a link in the way ends what is below, and is not followed" {
	mkdir -p "$L/B000001-base/dir" "$L/B000001-base/l" out
	touch "$L/B000001-base/dir/old" "$L/B000001-base/l/old" out/secret "$L/L2-a/dir"
	ln -s "$T/out" "$L/L2-a/l"
	is "$(ids L2-a B000001-base | show -r)" "$(printf 'w L2-a dir\nl L2-a l')"
	run -1 bash -c 'printf "L2-a\nB000001-base\n\n" | sb-layer-list -r l'
}

@test "a file named .wh. is a file, and its neighbours are there" {
	touch "$L/L2-a/.wh." "$L/L2-a/a" "$L/L2-a/.whx" "$L/B000001-base/b"
	is "$(ids L2-a B000001-base | show | tr '\n' ,)" \
	    "w L2-a .wh.,w L2-a .whx,w L2-a a,w B000001-base b,"
}

@test "no such directory is 1, so is a file, and the reader is told" {
	touch "$L/L2-a/f"
	run -1 --separate-stderr bash -c 'printf "L2-a\n\n" | sb-layer-list none/x'
	is "$stderr" "sb-layer-list: fatal: none/x: no such directory"
	run -1 --separate-stderr bash -c 'printf "L2-a\n\n" | sb-layer-list f'
	is "$stderr" "sb-layer-list: fatal: f: not a directory"
	ids L2-a | sb-layer-list f >out 2>err || :
	printf '! 1 f: not a directory\0' >want
	same out want
}

@test "names are bytes: blanks, line feeds, dashes, anything above 127" {
	touch -- "$L/L2-a/a b" "$L/L2-a/"$'n\nl' "$L/L2-a/-r" "$L/L2-a/"$'\xff'
	ids L2-a | sb-layer-list >out
	printf 'w 0644 0 L2-a -\t%s\0' -r 'a b' $'n\nl' $'\xff' >want
	printf '\0' >>want
	same out want
	mkdir -- "$L/L2-a/-d"
	touch -- "$L/L2-a/-d/f"
	is "$(ids L2-a | show -- -d)" "w L2-a -d/f"
}

@test "no ids show nothing" {
	ids0 | sb-layer-list >out
	records0 >want
	same out want
	run -1 bash -c 'echo | sb-layer-list d'
}

@test "input that is cut, refused or no ids" {
	run -111 --separate-stderr bash -c 'printf "L2-a\n" | sb-layer-list'
	is "$output" ""
	has "$stderr" "input ended early"
	refusal 2 "no luck" | sb-layer-list >out 2>err && rc=0 || rc=$?
	is "$rc $(cat err)" "2 "
	# The same words, ended as records are.
	[ "$(head -c 12 out)" = "! 2 no luck" ] || fail "$(od -c out)"
	run -100 bash -c 'printf "a/b\n\n" | sb-layer-list'
	run -100 bash -c 'printf "L2-a\nL2-a\n\n" | sb-layer-list'
	run -100 bash -c 'printf "L2-a\n\nL3-a\n" | sb-layer-list'
}

@test "a layer that is not there is 111 and named" {
	run -111 --separate-stderr bash -c 'printf "L2-a\nL9-x\n\n" | sb-layer-list'
	has "$stderr" "unable to open layer L9-x"
	is "$output" ""
}

@test "usage" {
	run -100 --separate-stderr sb-layer-list -x
	run -100 --separate-stderr sb-layer-list a b
	for p in /abs ../x a/../b a//b ''; do
		run -100 --separate-stderr sb-layer-list "$p" </dev/null
	done
	run -0 sb-layer-list -h
	is "$output" "usage: sb-layer-list [-r] [path]"
}

@test "a full or closed stdout is 111" {
	touch "$L/L2-a/f"
	run -111 bash -c 'printf "L2-a\n\n" | sb-layer-list >/dev/full'
	run -111 bash -c 'printf "L2-a\n\n" | sb-layer-list >&-'
}

@test "a missing store is 111, none named 100" {
	rm -rf "$SB_STORE"
	run -111 --separate-stderr bash -c 'echo | sb-layer-list'
	has "$stderr" "$SB_STORE"
	unset SB_STORE
	run -100 bash -c 'echo | sb-layer-list'
}

@test "random stacks show what a kernel overlay of them shows" {
	need overlay xattr
	seed=${SEED:-$((RANDOM * 32768 + RANDOM + 1))}
	stacks=${STACKS:-300}
	echo "# SEED=$seed STACKS=$stacks" >&3
	u=-m
	[ "$(id -u)" = 0 ] || u=-Urm
	mkdir mnt
	cd "$SB_STORE/layer-stack"
	rm -rf layers
	"$SB_T/genstack" "$seed" 0 "$stacks"
	# Half of the layers as if sb-layer-commit had made them.
	mkdir -p meta
	RANDOM=$seed
	for l in layers/L*; do
		[ $((RANDOM % 2)) = 0 ] || : >"meta/${l#layers/}.json"
	done
	unshare $u bash -euc '
		records=0
		for s in stacks/*; do
			lower=
			while read -r id && [ -n "$id" ]; do
				lower=$lower:$PWD/layers/$id
			done <"$s"
			mount -t overlay -o "userxattr,lowerdir=${lower#:}" none "$1/mnt"
			"$2/walkmount" "$1/mnt" >"$1/kernel"
			umount "$1/mnt"
			sb-layer-list -r <"$s" >"$1/view"
			cmp "$1/kernel" "$1/view" || { echo "$s differs"; exit 1; }
			records=$((records + $(tr -cd "\0" <"$1/view" | wc -c)))
		done
		echo "# $records fields in $(ls stacks | wc -l) stacks"' cmp "$T" "$SB_T" >"$T/said" || fail "$(cat "$T/said")"
	cat "$T/said" >&3
}
