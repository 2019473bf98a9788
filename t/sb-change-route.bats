# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# store SCRIPT: a store whose base the script makes; base is its list of layers.
store() {
	rm -rf ws "$SB_STORE"
	mkdir ws
	(cd ws && eval "$1")
	make_store 2>/dev/null && sb-stack-show >base
}

# routes RECORD…: "letter path" of each, by the rules in base, one a line.
routes() {
	records "$@" | sb-change-route base | tr '\0' '\n' |
	    sed -n 's/^[a-z] [0-7]* [^ ]* [^ ]* \(.\)\t/\1 /p'
}

lines() { printf '%s\n' "$@"; }

@test "every change is marked source, names byte for byte" {
	records "$(rec_x -rf)" "$(rec_d d)" "$(rec_w $'d/a b\n\xff' 3)" >in
	records "$(rec_x -rf s)" "$(rec_d d 0755 u s)" "$(rec_w $'d/a b\n\xff' 3 0644 u s)" >want
	sb-change-route <in >out
	same out want
}

@test "the empty stream passes" {
	records0 | sb-change-route >out
	records0 >want
	same out want
}

@test "input cut before the full stop is 111 and has no full stop" {
	records "$(rec_d d)" | cut_stream >in
	run -111 --separate-stderr sb-change-route <in
	has "$stderr" "ended early"
	sb-change-route <in >out 2>/dev/null || :
	records "$(rec_d d 0755 u s)" | cut_stream >want
	same out want
}

@test "a refusal passes through with its code, silently" {
	refusal -z 2 "no way" >in
	run -2 --separate-stderr sb-change-route <in
	is "$stderr" ""
	sb-change-route <in >out || :
	same out in
}

@test "a name beginning .wh. is refused, at any depth, and all are listed" {
	records "$(rec_w .wh.x 1)" "$(rec_d a)" "$(rec_w a/.wh..wh..opq 0)" "$(rec_w $'b.wh.\xff' 1)" >in
	run -2 --separate-stderr sb-change-route -X list <in
	has "$stderr" "protected path: .wh.x (2 in all)"
	is "$(cat list)" "$(printf '%s\n' '{"path":".wh.x","kind":"protected"}' '{"path":"a/.wh..wh..opq","kind":"protected"}')"
	sb-change-route <in 2>/dev/null | tr '\0' '\n' | grep -q '^! 2 '
}

@test "look-alikes of protected names pass" {
	records "$(rec_w .wh 1)" "$(rec_w .whx 1)" "$(rec_w manifest.json 1)" "$(rec_w wh.foo 1)" "$(rec_w x.wh.y 1)" |
	    sb-change-route | tr '\0' '\n' | grep -c '^w' >n
	is "$(cat n)" 5
}

@test "malformed records are 100: no TAB, bad order, twice, bad paths, bad numbers" {
	for r in 'w 0644 1 u -' $'w 0644 1 u -\t/abs' $'w 0644 1 u -\ta/../b' $'w 0644 x u -\ta' $'w 9644 1 u -\ta' $'q 0644 1 u -\ta' $'w 0644 1 u -\t'; do
		records "$r" >in
		run -100 sb-change-route <in
	done
	records "$(rec_w b 1)" "$(rec_w a 1)" >in
	run -100 sb-change-route <in
	records "$(rec_w a 1)" "$(rec_w a 1)" >in
	run -100 sb-change-route <in
	{ records "$(rec_w a 1)"; echo more; } >in
	run -100 sb-change-route <in
	ids a >in
	run -111 sb-change-route <in
}

@test "without base there are no rules, and .git is known all the same" {
	unset SB_STORE
	records "$(rec_w .git/HEAD 1)" "$(rec_w a/.git/x 1)" "$(rec_w a.log 1)" >in
	records "$(rec_w .git/HEAD 1 0644 u g)" "$(rec_w a/.git/x 1 0644 u g)" "$(rec_w a.log 1 0644 u s)" >want
	sb-change-route <in >out
	same out want
}

@test "directories: a rule for them, deleted ones, files and links of the name" {
	store 'echo target/ >.gitignore; mkdir target old; echo x >target/f; echo x >file'
	is "$(routes "$(rec_x target)")" "i target"
	is "$(routes "$(rec_x file)" "$(rec_x old)" "$(rec_x target/f)")" "$(lines 's file' 's old' 'i target/f')"
	is "$(routes "$(rec_w target 1)")" "s target"
	is "$(routes "$(rec_d target)" "$(rec_w target/n 1)")" "$(lines 'i target' 'i target/n')"
	is "$(routes $'o 0755 - u -\ttarget')" "i target"
	is "$(routes $'l 0777 - u -\ttarget' to)" "s target"
	is "$(routes $'s 0644 - - -\ttarget')" "s target"
	is "$(routes "$(rec_d a)" "$(rec_d a/target)" "$(rec_w b/target/x 1)" "$(rec_x c/target)")" \
	    "$(lines 's a' 'i a/target' 'i b/target/x' 's c/target')"
}

@test "names without a slash match at any depth, also a directory above" {
	store 'echo target >.gitignore'
	is "$(routes "$(rec_w a/target/x 1)" "$(rec_w target 1)" "$(rec_w targets 1)")" \
	    "$(lines 'i a/target/x' 'i target' 's targets')"
}

@test "a pattern with a slash is anchored at its file" {
	store 'mkdir pkg; echo /pkg.log >pkg/.gitignore; echo "logs/*.log" >.gitignore'
	is "$(routes "$(rec_w logs/a.log 1)" "$(rec_w logs/s/a.log 1)" "$(rec_w pkg/pkg/pkg.log 1)" \
	    "$(rec_w pkg/pkg.log 1)" "$(rec_w pkg.log 1)" "$(rec_w x/logs/a.log 1)")" \
	    "$(lines 'i logs/a.log' 's logs/s/a.log' 's pkg/pkg/pkg.log' 'i pkg/pkg.log' 's pkg.log' 's x/logs/a.log')"
}

@test "the last match wins, and the deeper file" {
	store 'mkdir d; printf "*.tmp\n!keep.tmp\n" >.gitignore'
	is "$(routes "$(rec_w a.tmp 1)" "$(rec_w d/keep.tmp 1)" "$(rec_w keep.tmp 1)")" \
	    "$(lines 'i a.tmp' 's d/keep.tmp' 's keep.tmp')"
	store 'mkdir d; echo "*.tmp" >.gitignore; echo "!*.tmp" >d/.gitignore'
	is "$(routes "$(rec_w a.tmp 1)" "$(rec_w d/a.tmp 1)")" "$(lines 'i a.tmp' 's d/a.tmp')"
	store 'mkdir d; printf "d/\n!d/\n" >.gitignore'
	is "$(routes "$(rec_w d/x 1)")" "s d/x"
}

@test "nothing below an ignored directory is taken back; the directory itself can be" {
	store 'mkdir -p d/e; printf "d/\n!x\n!d/x\n" >.gitignore; echo "!x" >d/.gitignore; echo "!*" >d/e/.gitignore'
	is "$(routes "$(rec_d d)" "$(rec_w d/e/x 1)" "$(rec_w d/x 1)")" "$(lines 'i d' 'i d/e/x' 'i d/x')"
	store 'mkdir -p a/build; echo build/ >.gitignore; echo "!build/" >a/.gitignore'
	is "$(routes "$(rec_w a/build/x 1)" "$(rec_w build/x 1)")" "$(lines 's a/build/x' 'i build/x')"
}

@test "case counts; CR, blanks at the end and a BOM do not; braces mean themselves" {
	store 'printf "*.log\n" >.gitignore'
	is "$(routes "$(rec_w A.LOG 1)" "$(rec_w a.log 1)")" "$(lines 's A.LOG' 'i a.log')"
	store 'printf "a\r\nb \r\nc  \nd\\ \n" >.gitignore'
	is "$(routes "$(rec_w a 1)" "$(rec_w b 1)" "$(rec_w c 1)" "$(rec_w d 1)" "$(rec_w 'd ' 1)")" \
	    "$(lines 'i a' 'i b' 'i c' 's d' 'i d ')"
	store 'printf "\357\273\277a\n{b,c}\n" >.gitignore'
	is "$(routes "$(rec_w a 1)" "$(rec_w b 1)" "$(rec_w '{b,c}' 1)")" "$(lines 'i a' 's b' 'i {b,c}')"
}

@test "a .gitignore that is a link or a directory gives no rules" {
	store 'echo "*" >rules; ln -s rules .gitignore; mkdir -p d/.gitignore'
	is "$(routes "$(rec_w a 1)" "$(rec_w d/a 1)")" "$(lines 's a' 's d/a')"
}

@test "a pattern that ends in ** is about what is inside" {
	store 'echo "out/**" >.gitignore'
	is "$(routes "$(rec_d out)" "$(rec_w out/a 1)" "$(rec_w out/b/c 1)")" "$(lines 's out' 'i out/a' 'i out/b/c')"
}

@test "many kinds of rules in one file" {
	store 'printf "%s\n" node_modules/ "logs/*.log" "**/build/" "*.tmp" "!important.tmp" sealed/ "!sealed/keep.tmp" >.gitignore'
	is "$(routes "$(rec_w important.tmp 1)" "$(rec_w logs/root.log 1)" "$(rec_w logs/sub/x.log 1)" \
	    "$(rec_w pkg/node_modules/a.js 1)" "$(rec_w sealed/keep.tmp 1)" "$(rec_w src/build/out.js 1)")" \
	    "$(lines 's important.tmp' 'i logs/root.log' 's logs/sub/x.log' 'i pkg/node_modules/a.js' 'i sealed/keep.tmp' 'i src/build/out.js')"
}

@test "an unclosed bracket matches nothing and does no harm" {
	store 'printf "[\n[a-\n[[:none:]]\n" >.gitignore'
	is "$(routes "$(rec_w '[' 1)" "$(rec_w a 1)" "$(rec_w file.log 1)")" "$(lines 's [' 's a' 's file.log')"
}

@test "names are bytes: newline, blank, dash, no UTF-8, in rules and paths" {
	store 'printf "a?b\n-x\nc d\n\377\n" >.gitignore'
	records "$(rec_w -x 1)" "$(rec_w $'a\nb' 1)" "$(rec_w 'c d' 1)" "$(rec_w $'e\xff' 1)" "$(rec_w $'\xff' 1)" >in
	records "$(rec_w -x 1 0644 u i)" "$(rec_w $'a\nb' 1 0644 u i)" "$(rec_w 'c d' 1 0644 u i)" \
	    "$(rec_w $'e\xff' 1 0644 u s)" "$(rec_w $'\xff' 1 0644 u i)" >want
	sb-change-route base <in >out
	same out want
}

@test "below .git is git's, whatever the rules say, but not in an ignored directory" {
	store 'printf "*\n" >.gitignore; mkdir -p v/.git; echo x >v/.git/HEAD'
	is "$(routes "$(rec_d .git)" "$(rec_w .git/config 1)" "$(rec_d v)" "$(rec_x v/.git)" \
	    "$(rec_w v/.git/a/b 1)" "$(rec_w v/.gitx 1)" "$(rec_w v/x.git/a 1)" "$(rec_w w/.git 1)")" \
	    "$(lines 's .git' 'g .git/config' 'i v' 'i v/.git' 'i v/.git/a/b' 'i v/.gitx' 'i v/x.git/a' 'i w/.git')"
}

@test "the rules are those of the list, not of head and not of the changes" {
	store 'echo out.log >.gitignore; mkdir d; echo x >d/.gitignore'
	mkdir -p upper/d
	: >upper/.gitignore
	records "$(rec_w .gitignore 0)" "$(rec_d d)" "$(rec_x d/.gitignore)" | sb-layer-commit -C upper >id
	{ cat id; cat base; } | sb-stack-swap 1 >/dev/null
	set -- "$(rec_w .gitignore 1)" "$(rec_w d/x 1)" "$(rec_w out.log 1)"
	is "$(routes "$@")" "$(lines 's .gitignore' 'i d/x' 'i out.log')"
	sb-stack-show >base
	is "$(routes "$@")" "$(lines 's .gitignore' 's d/x' 's out.log')"
}

@test "an empty list of layers has no rules" {
	sb-store-init
	ids0 >base
	is "$(routes "$(rec_w a 1)" "$(rec_x b)")" "$(lines 's a' 's b')"
}

@test "no store is 100 or 111, no list or layer 111, a bad list 100" {
	records "$(rec_w a 1)" >in
	ids B000001-base >base
	run -111 --separate-stderr sb-change-route base <in
	(unset SB_STORE && run -100 sb-change-route base <in)
	sb-store-init
	run -111 --separate-stderr sb-change-route base <in
	has "$stderr" "unable to open layer B000001-base"
	run -111 --separate-stderr sb-change-route missing <in
	has "$stderr" missing
	ids B000001-base | cut_stream >base
	run -111 sb-change-route base <in
	ids a/b >base
	run -100 sb-change-route base <in
}

@test "rules that cannot be read end in 111 and no full stop" {
	need strace
	store 'echo a >.gitignore'
	records "$(rec_w b 1)" >in
	is "$(count_calls openat2 sb-change-route base <in)" 1
	run -111 --separate-stderr fault_at openat2 1 EIO sb-change-route base <in
	has "$stderr" "unable to read the rules for b: Input/output error"
	fault_at openat2 1 EIO sb-change-route base <in >out 2>/dev/null || :
	[ ! -s out ]
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-change-route a b
	run -100 sb-change-route -x
	run -0 sb-change-route -h
	is "$output" "usage: sb-change-route [-X file] [base]"
}

@test "a full disk and a closed stdout are 111" {
	records "$(rec_d d)" >in
	run -111 bash -c 'sb-change-route <in >/dev/full'
	run -111 bash -c 'sb-change-route <in >&-'
}
