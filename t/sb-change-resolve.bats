# SPDX-License-Identifier: MIT
# The decision table: what becomes of each kind of change, for each thing that
# head may have done meanwhile.
bats_require_minimum_version 1.5.0
load lib

gone() { for f; do rm -rf "$f"; mknod "$f" c 0 0; done; }	# a whiteout in an upper
opaque() { setfattr -n user.overlay.opaque -v y "$1"; }

# resolve BASE HEAD MINE: three scripts. The first makes the base, the others
# uppers over it; head's is published. Output: records (kind, mode, from, path)
# or, after "refused", path and kind of each conflict. OPTS: more options.
resolve() {
	need xattr
	mkdir -p ws head mine merge
	(cd ws && eval "$1")
	make_store ws 2>/dev/null || return
	sb-stack-show >base
	(cd head && eval "$2")
	if [ -n "$(ls -A head)" ]; then
		id=$(sb-layer-scan head | sb-change-route | sb-layer-commit -C head)
		{ echo "$id"; cat base; } | sb-stack-swap 1 >/dev/null
	fi
	sb-stack-show >now
	(cd mine && eval "$3")
	code=0
	sb-layer-scan mine | sb-change-route base |
	    sb-change-resolve ${OPTS-} -C mine -M merge -X list base now >out 2>err || code=$?
	if [ $code = 2 ]; then
		echo refused
		jq -r '.path + " " + .kind' list
	elif [ $code != 0 ]; then
		echo "exit $code"; cat err
	else
		tr '\0' '\n' <out | sed -n 's/^\([a-z]\) \([0-7]*\) [^ ]* \([^ ]*\) .\t/\1 \2 \3 /p'
	fi
	rm -rf "$SB_STORE" ws head mine merge list
}

row() { is "$(resolve "$1" "$2" "$3")" "$(printf "$4")"; }

@test "write: head unmoved takes mine; equal to head is dropped" {
	row 'echo 1 >f' '' 'echo 2 >f' 'w 0644 u f'
	row 'echo 1 >f' 'echo 2 >f' 'echo 2 >f' ''
	row '' 'echo 2 >f' 'echo 2 >f' ''
	row 'echo 1 >f' 'echo 2 >f' 'cp ../ws/f f' ''
	row 'printf "a\0" >f' 'printf "b\0" >f' 'printf "b\0" >f' ''
}

@test "write against write: merged, or content, binary, add_add" {
	row 'seq 9 >f' 'seq 9 | sed s/2/x/ >f' 'seq 9 | sed s/7/y/ >f' 'w 0644 m f'
	row 'seq 9 >f' 'seq 9 | sed s/2/x/ >f' 'seq 9 | sed s/2/y/ >f' 'refused\nf content'
	row 'printf "a\0" >f' 'printf "b\0" >f' 'printf "c\0" >f' 'refused\nf binary'
	row '' 'echo a >f' 'echo b >f' 'refused\nf add_add'
	row '' 'echo a >f' ': >f' ''
	row '' ': >f' 'echo b >f' 'w 0644 u f'
	row '' 'printf "a\0" >f' 'printf "b\0" >f' 'refused\nf binary'
	row 'seq 9 >f' 'seq 9 | sed "s/2/x/;s/7/y/" >f' 'seq 9 | sed s/7/y/ >f' ''
}

@test "write against delete conflicts unless nothing was changed" {
	row 'seq 3 >f' 'gone f' 'seq 4 >f' 'refused\nf delete_modify'
	row 'seq 3 >f' 'gone f' 'seq 2 >f' 'refused\nf delete_modify'
	row 'seq 3 >f' 'gone f' 'cp ../ws/f f; chmod 755 f' 'refused\nf delete_modify'
	row 'seq 3 >f' 'gone f' 'cp ../ws/f f' ''
	row ': >f' 'gone f' 'echo x >f' 'refused\nf delete_modify'
}

@test "write against another kind is a conflict of type" {
	row 'seq 3 >f' 'ln -s x f' 'seq 4 >f' 'refused\nf type'
	row 'seq 3 >f' 'mkdir f' 'seq 4 >f' 'refused\nf type'
	row '' 'ln -s x f' 'seq 4 >f' 'refused\nf type'
	row 'ln -s x f' 'ln -s y f' 'seq 4 >f' 'refused\nf type'
}

@test "mode and xattrs are units of their own" {
	row 'seq 9 >f' 'cp ../ws/f f; chmod 755 f' 'seq 10 >f' 'w 0755 m f'
	row 'seq 9 >f' 'seq 10 >f' 'cp ../ws/f f; chmod 755 f' 'w 0755 m f'
	row 'seq 9 >f' 'cp ../ws/f f; chmod 755 f' 'cp ../ws/f f; chmod 755 f' ''
	row 'seq 9 >f' 'cp ../ws/f f; chmod 755 f' 'cp ../ws/f f; chmod 600 f' 'refused\nf mode'
	row 'seq 9 >f' 'cp ../ws/f f; setfattr -n user.a -v 1 f' 'seq 10 >f' 'w 0644 m f'
	row 'seq 9 >f' 'cp ../ws/f f; setfattr -n user.a -v 1 f' 'cp ../ws/f f; setfattr -n user.a -v 2 f' 'refused\nf xattr'
	row '' 'echo a >f' 'echo a >f; chmod 755 f' 'refused\nf mode'
}

@test "delete: agrees with delete, conflicts with change" {
	row 'echo 1 >f' '' 'gone f' 'x 0000 - f'
	row 'echo 1 >f' 'gone f' 'gone f' ''
	row 'echo 1 >f' 'echo 2 >f' 'gone f' 'refused\nf modify_delete'
	row 'echo 1 >f' 'cp ../ws/f f; chmod 755 f' 'gone f' 'refused\nf modify_delete'
	row 'mkdir d; echo 1 >d/f' 'gone d' 'gone d' ''
}

@test "delete of a directory: what head added or changed below is a conflict" {
	row 'mkdir d; echo 1 >d/f' 'mkdir d; echo 2 >d/g' 'gone d' 'refused\nd/g child'
	row 'mkdir d; echo 1 >d/f' 'mkdir d; echo 2 >d/f' 'gone d' 'refused\nd/f child'
	row 'mkdir d; echo 1 >d/f' 'mkdir d; gone d/f' 'gone d' 'x 0000 - d'
	row 'mkdir d; echo 1 >d/f; echo 1 >u' 'echo 2 >u' 'gone d' 'x 0000 - d'
	row 'mkdir d; echo 1 >d/f' 'mkdir -p d/e' 'gone d' 'refused\nd/e child'
	row 'mkdir d; echo 1 >d/f' 'mkdir d; echo 2 >d/g' 'echo 3 >d' 'refused\nd/g child'
	row 'mkdir d; echo 1 >d/f' 'mkdir d; echo 2 >d/g' 'ln -s x d' 'refused\nd/g child'
}

@test "symbolic links: same target agrees, another is a conflict" {
	row '' 'ln -s a l' 'ln -s a l' ''
	row 'ln -s a l' '' 'ln -s b l' 'l 0777 u l'
	row 'ln -s a l' 'ln -s b l' 'ln -s c l' 'refused\nl content'
	row '' 'ln -s a l' 'ln -s b l' 'refused\nl content'
	row '' '' 'ln -s "! 2 x" l' 'l 0777 u l'
}

@test "directories: made twice agrees, gone at head with something of mine conflicts" {
	row '' 'mkdir d' 'mkdir d' ''
	row '' 'mkdir d; echo 1 >d/a' 'mkdir d; echo 2 >d/b' 'd 0755 u d\nw 0644 u d/b'
	row 'mkdir d; echo 1 >d/f' 'gone d' 'mkdir d' ''
	row 'mkdir d; echo 1 >d/f' 'gone d' 'mkdir d; echo 2 >d/g' 'refused\nd delete_modify'
	row 'mkdir d; echo 1 >d/f' 'gone d' 'mkdir d; chmod 700 d' 'refused\nd delete_modify'
	row 'mkdir d' 'echo 1 >d' 'mkdir d; echo 2 >d/g' 'refused\nd type'
	row '' 'echo 1 >d' 'mkdir d' 'refused\nd type'
	row 'echo 1 >d' 'ln -s x d' 'mkdir d; opaque d' 'refused\nd type'
	row 'mkdir d' '' 'mkdir d; chmod 700 d' 'd 0700 u d'
	row 'mkdir d' 'mkdir d; chmod 750 d' 'mkdir d; echo 1 >d/f' 'd 0750 u d\nw 0644 u d/f'
	row 'mkdir d' 'mkdir d; chmod 750 d' 'mkdir d; chmod 700 d' 'refused\nd mode'
}

@test "opaque directories: hidden changes conflict, children decide for themselves" {
	row 'mkdir d; echo 1 >d/f' '' 'mkdir d; opaque d; echo 2 >d/g' 'o 0755 u d\nw 0644 u d/g'
	row 'mkdir d; echo 1 >d/f' 'mkdir d; echo 3 >d/h' 'mkdir d; opaque d; echo 2 >d/g' 'refused\nd/h child'
	row 'mkdir d; seq 9 >d/f' 'mkdir d; seq 9 | sed s/2/x/ >d/f' 'mkdir d; opaque d; seq 9 | sed s/7/y/ >d/f' 'd 0755 u d\nw 0644 m d/f'
	row 'mkdir d; seq 9 >d/f; echo 1 >d/k' 'mkdir d; seq 9 | sed s/2/x/ >d/f' 'mkdir d; opaque d; cp ../ws/d/f d/f' 'o 0755 u d\nw 0644 m d/f'
	row 'mkdir d; echo 1 >d/f' 'gone d' 'mkdir d; opaque d; echo 2 >d/g' 'o 0755 u d\nw 0644 u d/g'
	row '' 'mkdir d; echo 1 >d/a' 'mkdir d; opaque d; echo 2 >d/b' 'd 0755 u d\nw 0644 u d/b'
	row 'mkdir d; echo 1 >d/f' '' 'mkdir d; opaque d; cp ../ws/d/f d/f' ''
	row 'mkdir d; echo 1 >d/p; echo 1 >d/k' '' 'mkdir d; opaque d; mkfifo d/p' 'o 0755 u d\nw 0644 m d/p'
}

@test "opaque below opaque: each hidden change is one conflict" {
	row 'mkdir -p d/e; echo 1 >d/e/f' 'mkdir -p d/e; echo 2 >d/e/g' 'mkdir d; opaque d; mkdir d/e; opaque d/e' 'refused\nd/e/g child'
	row 'mkdir -p d/e; echo 1 >d/e/f' '' 'mkdir d; opaque d; mkdir d/e; opaque d/e' 'o 0755 u d\nd 0755 u d/e'
}

@test "ignored paths: mine stands whatever head did, no-ops are left out" {
	row 'echo "*.o" >.gitignore; echo 1 >a.o' 'echo 2 >a.o' 'echo 3 >a.o' 'w 0644 u a.o'
	row 'echo "*.o" >.gitignore; echo 1 >a.o' 'echo 2 >a.o' 'echo 2 >a.o' ''
	row 'echo "*.o" >.gitignore; echo 1 >a.o' 'echo 2 >a.o' 'gone a.o' 'x 0000 - a.o'
	row 'echo "*.o" >.gitignore; echo 1 >a.o' 'gone a.o' 'gone a.o' ''
	row 'echo "*.o" >.gitignore; echo 1 >a.o' 'gone a.o' 'echo 3 >a.o' 'w 0644 u a.o'
	row 'echo "*.o" >.gitignore' 'mkdir a.o; echo x >a.o/x' 'echo 3 >a.o' 'w 0644 u a.o'
	row 'echo "*.o" >.gitignore' 'echo 3 >a.o' 'mkdir a.o; echo x >a.o/x' 'd 0755 u a.o\nw 0644 u a.o/x'
	row 'echo "*.o" >.gitignore; ln -s a a.o' 'rm -f a.o; ln -s b a.o' 'ln -s c a.o' 'l 0777 u a.o'
	row 'echo t/ >.gitignore; mkdir t; echo 1 >t/a' 'mkdir t; echo 2 >t/b' 'gone t' 'x 0000 - t'
	row 'echo t/ >.gitignore; mkdir t; echo 1 >t/a' 'mkdir t; echo 2 >t/b' 'mkdir t; opaque t; echo 3 >t/c' 'o 0755 u t\nw 0644 u t/c'
	row 'echo t/ >.gitignore; mkdir t; echo 1 >t/a' 'gone t' 'mkdir t; echo 3 >t/c' 'd 0755 u t\nw 0644 u t/c'
	row 'echo t/ >.gitignore; mkdir t; echo 1 >t/a' 'mkdir t; chmod 700 t' 'mkdir t; chmod 750 t' 'd 0750 u t'
	row 'echo t/ >.gitignore; mkdir t; echo 1 >t/a' 'mkdir t; chmod 700 t' 'mkdir t; echo 2 >t/a' 'd 0700 u t\nw 0644 u t/a'
}

@test "ignored paths: a source file that head put in their place is a conflict" {
	row 'echo b/ >.gitignore; mkdir b; echo 1 >b/x' 'rm -rf b; echo script >b' 'mkdir b; echo 2 >b/y' 'refused\nb type'
	row 'echo b/ >.gitignore; mkdir b; echo 1 >b/x' 'rm -rf b; echo script >b' 'mkdir b; opaque b; echo 2 >b/y' 'refused\nb type'
	row 'echo b/ >.gitignore; mkdir b; echo 1 >b/x' 'rm -rf b; echo script >b' 'gone b' 'refused\nb type'
	row 'echo b/ >.gitignore; echo script >b' '' 'rm -rf b; mkdir b; echo 2 >b/y' 'd 0755 u b\nw 0644 u b/y'
}

@test "with -d ignored changes come out as skipped records, no-ops not at all" {
	OPTS=-d
	row 'echo "*.o" >.gitignore; echo 1 >a.o' 'echo 2 >a.o' 'echo 3 >a.o; echo 4 >b' 's 0644 u a.o\nw 0644 u b'
	row 'echo "*.o" >.gitignore; echo 1 >a.o' '' 'cp ../ws/a.o a.o' ''
	row 'echo "*.o" >.gitignore; mkdir d' '' 'mkdir d; echo 1 >d/a.o' 's 0644 u d/a.o'
	row 'echo "*.o" >.gitignore; mkdir d; echo 1 >d/a.o; echo 2 >d/f' '' 'mkdir d; opaque d; echo 3 >d/a.o' 'o 0755 u d\nw 0644 m d/a.o'
}

@test "source files that head added where mine cleared ignored ones come along" {
	row 'printf "t/**\\n!t/k*\\n" >.gitignore; mkdir t; echo 1 >t/a' 'mkdir t; echo 2 >t/k' 'mkdir t; opaque t; echo 3 >t/c' 'o 0755 u t\nw 0644 u t/c\nw 0644 m t/k'
	row 'printf "t/**\\n!t/k*\\n" >.gitignore; mkdir t; echo 1 >t/k1' 'mkdir t; echo 2 >t/k' 'mkdir t; opaque t; echo 3 >t/c' 'refused\nt/k child'
}

@test "the root comes out as a directory of its own, and conflicts like one" {
	row 'chmod 755 .' '' 'chmod 700 .' 'd 0700 u .'
	row 'chmod 755 .' '' 'setfattr -n user.a -v 1 .; echo 1 >f' 'd 0755 u .\nw 0644 u f'
}

# owners BASE HEAD MINE: as resolve, but what -B says, as path: ranges
owners() {
	resolve "$1" "$2" "$3" >/dev/null
	tr '\n\0' ',\n' <blame | awk -F'\t' 'NF { print $2 ": " $1 }'
	rm -f blame
}

@test "-B names the owner of each line of what comes out" {
	OPTS='-a me -B blame'
	is "$(owners 'seq 3 >f' '' 'seq 4 >f; seq 2 >n; : >e; printf "\0" >b')" "$(printf 'b: * me\ne: * me\nf: 3 original,1 me\nn: 2 me')"
	is "$(owners 'seq 9 >f' '' 'cp ../ws/f f; chmod 755 f')" ''
	is "$(owners 'echo "*.o" >.gitignore' '' 'seq 3 >a.o')" 'a.o: * me'
	# Head's layer has no blame of its own here: what it holds is unknown.
	is "$(owners 'seq 5 >f' 'seq 5 | sed s/1/x/ >f' 'seq 5 | sed s/5/y/ >f')" 'f: 4 unknown,1 me'
	is "$(owners 'mkdir d; seq 2 >d/f; seq 3 >d/g' '' 'mkdir d; opaque d; cp ../ws/d/f d/f')" 'd/f: 2 original'
	run -100 sb-change-resolve -a me base base
	run -100 sb-change-resolve -B blame base base
	run -100 sb-change-resolve -B blame -a "$(printf 'a\tb')" base base
}

@test "conflicts come all, in path order, with the three versions" {
	row 'for i in a b c; do seq 3 >$i; done' 'for i in a b c; do (seq 3; echo 4) >$i; done' \
	    'for i in c a; do (seq 3; echo 5) >$i; done; gone b' 'refused\na content\nb modify_delete\nc content'
}

@test "input cut before the full stop is 111, a refusal passes, nothing is written" {
	make_store
	sb-stack-show >base
	mkdir merge
	records "$(rec_d d 0755 u s)" | cut_stream >in
	run -111 --separate-stderr sb-change-resolve -C ws -M merge base base <in
	has "$stderr" "ended early"
	refusal -z 98 later >in
	run -98 --separate-stderr sb-change-resolve -C ws -M merge base base <in
	is "$stderr" ""
	is "$(ls -A merge)" ""
	records0 | sb-change-resolve base base >out
	records0 >want
	same out want
}

@test "missing options, layers and files are named" {
	make_store
	sb-stack-show >base
	records "$(rec_w f 1 0644 u s)" >in
	run -100 --separate-stderr sb-change-resolve base base <in
	has "$stderr" "-C"
	ids L000009-00000000 >other
	run -111 --separate-stderr sb-change-resolve -C ws base other <in
	has "$stderr" L000009-00000000
	run -111 sb-change-resolve -C ws base nothing <in
	run -111 bash -c 'sb-change-resolve base base < <(printf "\0") >/dev/full'
}
