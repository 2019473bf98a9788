# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	mkdir -p ws/dir up/d
	printf 'hello\n' >ws/dir/f.txt
	ln -s dir/f.txt ws/l
	make_store
	S=$SB_STORE/layer-stack
	printf x >up/d/f
	ln -s t up/d/l
	id=$({ records "$(rec_d d)" "$(rec_w d/f 1)" "l 0777 - u -	d/l" t "$(rec_x gone)"; } |
	    sb-layer-commit -C up)
	L=$S/layers/$id
}

# Says that $1 is wrong.
wrong() {
	ids B000001-base "$id" >in
	run -1 sb-layer-check <in
	sb-layer-check <in >out 2>err || is $? 1
	same out <(ids "$1")
	has "$(cat err)" "$1"
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-layer-check x </dev/null
	run -100 sb-layer-check -x </dev/null
	run -0 sb-layer-check -h
	is "$output" "usage: sb-layer-check"
}

@test "what was committed is right, the base too" {
	is "$(cat "$S/.layer-metadata/B000001-base.digest")" \
	    e1dfd0574f0bf8783159b50c2d1547ba1f8f86a78f45f238ae519940396aa839
	ids "$id" B000001-base | sb-layer-check >out
	same out <(ids0)
}

@test "the empty stream is the empty stream" {
	ids0 | sb-layer-check >out
	same out <(ids0)
}

@test "changed content is found" {
	printf y >"$L/d/f"
	wrong "$id"
}

@test "a changed link is found" {
	ln -sfn u "$L/d/l"
	wrong "$id"
}

@test "a missing deletion is found" {
	rm "$L/gone"
	wrong "$id"
}

@test "something added is found, special files too" {
	mkdir "$L/new"
	wrong "$id"
	rmdir "$L/new"
	mkfifo "$L/fifo"
	wrong "$id"
}

@test "an opaque mark makes a difference" {
	need xattr
	setfattr -n user.overlay.opaque -v y "$L/d"
	wrong "$id"
}

@test "a missing layer and a missing digest are wrong" {
	mv "$S/.layer-metadata/$id.digest" digest
	wrong "$id"
	mv digest "$S/.layer-metadata/$id.digest"
	mv "$L" layer
	wrong "$id"
}

@test "a damaged base is found" {
	chmod -R u+w "$S/base/"
	printf z >"$S/base/B000001-base/dir/f.txt"
	wrong B000001-base
}

# Blame of the layer: entries, "#" standing for NUL.
blame() { printf "$1" | tr '#' '\0' >"$S/meta/$id.blame"; }

@test "owners that tile the lines of its files are right" {
	blame '1 a\td/f##'
	echo '{"owner":"a"}' >"$S/meta/$id.json"
	ids "$id" B000001-base | sb-layer-check >out
	same out <(ids0)
	blame '* a\td/f##'
	ids "$id" | sb-layer-check
	blame '#'
	ids "$id" | sb-layer-check
}

@test "owners of other lines, or of what is no file, are wrong" {
	local e
	for e in '2 a\td/f##' '1 a\n1 b\td/f##' '1 a\td##' '1 a\td/l##' '1 a\tgone##' \
	    '* a\tgone##' '1 a\tno##' '* a\td##'; do
		blame "$e"
		wrong "$id"
	done
}

@test "a damaged blame file is found" {
	local e
	for e in '' '1 a\td/f#' '1 a\td/f' '1 a d/f##' '0 a\td/f##' '1 a\td/f#1 a\td/f##' 'x##'; do
		blame "$e"
		wrong "$id"
		has "$(cat err)" "meta/$id.blame"
	done
	rm "$S/meta/$id.blame"
	ln -s /etc/passwd "$S/meta/$id.blame"
	wrong "$id"
}

@test "what is noted of a layer must be an object" {
	local e
	for e in '' x '[]' '{' '{"version":1}'; do
		printf %s "$e" >"$S/meta/$id.json"
		wrong "$id"
		has "$(cat err)" "meta/$id.json"
	done
}

@test "what cannot be read is wrong and named" {
	local n
	need strace
	ids "$id" >in
	# The loader reads with this call as well, at first.
	n=$(count_calls pread64 sb-layer-check <in)
	run -1 --separate-stderr fault_at pread64 "$n" EIO sb-layer-check <in
	has "$stderr" "d/f"
}

@test "input cut before the full stop is 111 and yields no answer" {
	ids "$id" | cut_stream >in
	run -111 --separate-stderr sb-layer-check <in
	is "$output" ""
	has "$stderr" "input ended early"
}

@test "a refusal passes through with its code, silently" {
	refusal 2 'conflict: a' >in
	run -2 --separate-stderr sb-layer-check <in
	is "$output" "! 2 conflict: a"
	is "$stderr" ""
}

@test "what is no id is 100" {
	ids ../x | run -100 sb-layer-check
	ids "$id" "$id" | run -100 sb-layer-check
	records "$(rec_x $'a\nb')" | run -100 sb-layer-check
}

@test "a full disk, a closed stdout and a missing store are 111" {
	ids "$id" >in
	run -111 sh -c 'sb-layer-check <in >/dev/full'
	run -111 sh -c 'sb-layer-check <in >&-'
	SB_STORE=$T/none run -111 sb-layer-check <in
}
