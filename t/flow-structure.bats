# SPDX-License-Identifier: MIT
# Changes of whole directories beside what others publish.
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	make_store "$@"
}
in_session() { sb-run "$1" sh -euc "$2"; }
answer() { printf '%s' "$output" | jq -c "$1"; }
head_names() { sb-stack-show | sb-layer-list -r | tr '\0' '\n' | sed -n 's/^[^\t]*\t//p'; }
many() { # DIR COUNT: files d0/f0 …
	mkdir -p "$1"
	(cd "$1" && for ((i = 0; i < 50; i++)); do mkdir "d$i"; done &&
	    for ((i = 0; i < $2; i++)); do echo "$i" >"d$((i % 50))/f$i"; done)
}

@test "rm -rf of 5 000 files beside publishes that have nothing to do with it" {
	many ws/big 5000; echo 1 >ws/u
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new); d=$(sb-session-new)
	in_session "$a" 'rm -rf big'
	in_session "$b" 'rm -rf big; mkdir big; echo new >big/n'
	in_session "$c" 'rm -rf big'
	for i in 1 2 3; do
		s=$(sb-session-new)
		in_session "$s" "echo $i >u; echo $i >v$i"
		sb-publish "$s"
	done
	run -0 --separate-stderr sb-publish "$a"
	is "$(answer .publish.route_summary.source_count)" 1
	# The other two removed the same: that agrees.
	run -0 --separate-stderr sb-publish "$c"
	is "$(answer .publish.no_op)" true
	sb-publish "$b"
	is "$(head_names)" "$(printf 'big\nbig/n\nu\nv1\nv2\nv3')"
	in_session "$d" 'rm -rf big/d7'
	sb-publish "$d"
	is "$(head_names)" "$(printf 'big\nbig/n\nu\nv1\nv2\nv3')"
}

@test "one file changed among 5 000 below a removed directory is the only conflict" {
	many ws/big 5000
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	in_session "$a" 'echo x >>big/d7/f57'
	in_session "$b" 'rm -rf big'
	in_session "$c" 'rm -rf big; mkdir big; echo y >big/y'
	sb-publish "$a"
	for s in "$b" "$c"; do
		run -2 --separate-stderr sb-publish "$s"
		is "$(answer '[.error.details.conflicts[]|.path,.kind]')" '["big/d7/f57","child"]'
	done
}

@test "a conflict in each of 5 000 children: 200 are listed" {
	many ws/big 5000
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'find big -type f -exec chmod 600 {} +'
	in_session "$b" 'rm -rf big'
	sb-publish "$a"
	run -2 --separate-stderr sb-publish "$b"
	is "$(answer '.error.details|[(.conflicts|length),.truncated,.conflicts[0].path]')" '[200,true,"big/d0/f0"]'
}

@test "directories renamed, swapped and replaced, published and seen" {
	mkdir -p ws/a/x ws/b/y; echo 1 >ws/a/x/f; echo 2 >ws/b/y/g; echo 3 >ws/c
	start
	s=$(sb-session-new)
	in_session "$s" 'mv a t; mv b a; mv t b; mv c d; mkdir c; echo 4 >c/h; rm -r a/y; ln -s ../b a/y'
	sb-publish "$s"
	is "$(head_names)" "$(printf 'a\na/y\nb\nb/x\nb/x/f\nc\nc/h\nd')"
	t=$(sb-session-new)
	is "$(in_session "$t" 'cat a/y/x/f c/h d')" "$(printf '1\n4\n3')"
	# And back, over the published layer.
	in_session "$t" 'rm a/y; mkdir a/y; echo 2 >a/y/g; mv a t; mv b a; mv t b; rm -r c; mv d c'
	sb-publish "$t"
	is "$(head_names)" "$(printf 'a\na/x\na/x/f\nb\nb/y\nb/y/g\nc')"
}

@test "an opaque directory inside an opaque one, over head's growth beside it" {
	mkdir -p ws/d/e; echo 1 >ws/d/f; echo 2 >ws/d/e/g; echo 3 >ws/u
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	in_session "$a" 'rm -r d; mkdir -p d/e; echo n >d/e/n'
	in_session "$b" 'echo x >u'
	in_session "$c" 'echo more >d/e/h'
	sb-publish "$b"; sb-publish "$a"
	is "$(head_names)" "$(printf 'd\nd/e\nd/e/n\nu')"
	# c added a file to a directory that was cleared and made again.
	run -0 sb-publish "$c"
	is "$(head_names)" "$(printf 'd\nd/e\nd/e/h\nd/e/n\nu')"
	e=$(sb-session-new); f=$(sb-session-new)
	in_session "$e" 'rm -r d; mkdir -p d/e; echo m >d/e/m'
	in_session "$f" 'echo i >d/e/i'
	sb-publish "$f"
	run -2 --separate-stderr sb-publish "$e"
	is "$(answer '[.error.details.conflicts[]|.path,.kind]')" '["d/e/i","child"]'
}

@test "every kind becomes every other, once alone and once over an unrelated layer" {
	local kinds='f d l x' k j
	mkdir ws
	make_kind() { case $1 in f) echo "echo $2 >$2" ;; d) echo "mkdir $2; echo c >$2/c" ;; l) echo "ln -s t$2 $2" ;; x) echo : ;; esac; }
	for k in $kinds; do for j in $kinds; do (cd ws && eval "$(make_kind $k $k$j)"); done; done
	start
	script=
	for k in $kinds; do for j in $kinds; do script="$script rm -rf $k$j; $(make_kind $j $k$j);"; done; done
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'echo other >other'
	sb-publish "$a"
	in_session "$b" "$script"
	run -0 sb-publish "$b"
	mkdir want; cp -a ws/. want/; (cd want && eval "$script"; echo other >other)
	c=$(sb-session-new)
	mkdir got
	sb-run "$c" tar c . | tar x -C got
	listing want >w; listing got >g
	same w g
}
