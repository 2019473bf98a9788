# SPDX-License-Identifier: MIT
# The main job, end to end: sessions at work side by side, published whole or
# refused.
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	make_store "$@"
}

in_session() { # SESSION SCRIPT
	sb-run "$1" sh -euc "$2"
}

head_cat() { sb-stack-show | sb-layer-cat "$1"; }
head_names() { sb-stack-show | sb-layer-list -r | tr '\0' '\n' | sed -n 's/^[^\t]*\t//p'; }

@test "a base file edited, added or deleted after the import is seen by no session" {
	mkdir ws; echo old >ws/f; echo h >ws/h
	start
	s=$(sb-session-new)
	echo new >ws/f; echo g >ws/g; rm ws/h
	is "$(in_session "$s" 'cat f; ls')" "$(printf 'old\nf\nh')"
	t=$(sb-session-new)
	is "$(in_session "$t" 'cat f; ls')" "$(printf 'old\nf\nh')"
}

@test "a directory deleted and made again holds only what is new" {
	mkdir -p ws/d; echo 1 >ws/d/old
	start
	s=$(sb-session-new)
	in_session "$s" 'rm -r d; mkdir d; touch d/new'
	is "$(sb-diff -n "$s")" "$(printf 'A d/new\nD d/old')"
	sb-publish "$s"
	is "$(head_names)" "$(printf 'd\nd/new')"
	t=$(sb-session-new)
	is "$(in_session "$t" 'ls -A d')" new
	# and once more, over the published one
	in_session "$t" 'rm -r d; mkdir d; touch d/newer'
	sb-publish "$t"
	is "$(head_names)" "$(printf 'd\nd/newer')"
}

@test "a directory becomes a symbolic link, and nothing is written below it" {
	mkdir -p ws/a ws/b; echo f >ws/a/f; echo g >ws/b/g
	start
	s=$(sb-session-new)
	in_session "$s" 'rm -r a; ln -s b a'
	is "$(sb-diff -n "$s")" "$(printf 'A a\nD a/f')"
	sb-publish "$s"
	t=$(sb-session-new)
	is "$(in_session "$t" 'readlink a; cat b/g a/g; ls b')" "$(printf 'b\ng\ng\ng')"
}

@test "mv of a base directory keeps files, modes and times under the new name" {
	mkdir -p ws/d/n; for i in $(seq 50); do echo "$i" >"ws/d/n/$i"; done
	chmod 750 ws/d/n; chmod 755 ws/d/n/7; touch -d 2001-02-03 ws/d/n/9
	start
	s=$(sb-session-new)
	in_session "$s" 'mv d d2'
	sb-publish "$s"
	t=$(sb-session-new)
	in_session "$t" 'test ! -e d; ls d2/n | wc -l; stat -c %a d2/n d2/n/7; stat -c %Y d2/n/9' >out
	printf '50\n750\n755\n981158400\n' >want
	same out want
}

@test "a FIFO and a socket are skipped and named, also in the place of a file" {
	mkdir ws; echo p >ws/p; echo t >ws/t
	start
	s=$(sb-session-new)
	in_session "$s" 'rm p; mkfifo p q; echo edit >>t'
	run -0 --separate-stderr timeout 10 sb-publish "$s"
	has "$output" '"skipped":[{"path":"p","reason":"unsupported_special_file"},{"path":"q","reason":"unsupported_special_file"}]'
	is "$(head_cat p)" p
	is "$(head_cat t)" "$(printf 't\nedit')"
	run -1 head_cat q
}

@test "edits of different lines of one file merge" {
	mkdir ws; seq 10 >ws/f
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'sed -i s/^2$/two/ f'
	in_session "$b" 'sed -i s/^6$/six/ f'
	sb-publish "$a"
	run -0 sb-publish "$b"
	has "$output" '"merged_count":1'
	is "$(head_cat f)" "$(seq 10 | sed 's/^2$/two/;s/^6$/six/')"
}

@test "the same line edited twice is refused with data, mended and published" {
	mkdir ws; seq 10 >ws/f
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'sed -i s/^3$/three/ f'
	in_session "$b" 'sed -i s/^3$/drei/ f; echo n >new'
	sb-publish "$a"
	cp "$SB_STORE/layer-stack/manifest.json" before
	run -2 --separate-stderr sb-publish "$b"
	has "$output" '"kind":"content"'
	has "$output" '"hunks":[{"base":[3,1],"head":[3,1],"mine":[3,1]}]'
	has "$output" '"session_retained":true'
	has "$output" '"reason":"source_conflict"'
	same before "$SB_STORE/layer-stack/manifest.json"
	run -1 head_cat new
	is "$(in_session "$b" 'cat new; sed -n 3p f')" "$(printf 'n\ndrei')"
	in_session "$b" 'sed -i s/^drei$/three/ f'
	sb-publish "$b"
	is "$(head_cat new)" n
}

@test "the same edit on both sides agrees, and the second publish changes nothing" {
	mkdir ws; seq 10 >ws/f
	start
	a=$(sb-session-new); b=$(sb-session-new)
	for s in "$a" "$b"; do in_session "$s" 'sed -i s/^3$/three/ f; ln -s f l; rm -f gone'; done
	sb-publish "$a"
	v=$(sb-stack-version)
	run -0 sb-publish "$b"
	has "$output" '"no_op":true'
	is "$(sb-stack-version)" "$v"
}

@test "sixteen sessions publish at once and all succeed" {
	mkdir ws; seq 400 >ws/f
	start
	for i in $(seq 16); do
		s=$(sb-session-new); echo "$s" >>sessions
		in_session "$s" "mkdir -p own; for j in 1 2 3 4 5; do echo $i >own/$i.\$j; done
		    [ $i -gt 8 ] || sed -i 's/^$((i * 40))\$/by $i/' f"
	done
	while read -r s; do sb-publish "$s" >"out.$s" 3>&- & done <sessions
	wait
	run grep -L '"no_op":false' out.*
	is "$output" ""
	is "$(sb-stack-version)" 17
	is "$(head_names | grep -c '^own/')" 80
	is "$(head_cat f | grep -c '^by ')" 8
	sb-stack-show | sb-layer-check
}

@test "binary files: one side is taken, two sides conflict, no byte is changed" {
	mkdir ws; printf 'a\0b' >ws/img; printf 'c\0d' >ws/other
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	in_session "$a" 'printf "A\0b" >img'
	in_session "$b" 'printf "a\0B" >img'
	in_session "$c" 'printf "C\0d" >other'
	sb-publish "$a"
	run -2 --separate-stderr sb-publish "$b"
	has "$output" '"kind":"binary"'
	sb-publish "$c"
	printf 'A\0b' >want; head_cat img >got; same got want
	printf 'C\0d' >want; head_cat other >got; same got want
}

@test "absolute paths land in the session only" {
	mkdir ws; echo 1 >ws/f
	start
	s=$(sb-session-new)
	in_session "$s" "echo x >'$T/ws/f'; echo y >'$T/ws/g'; pwd" >out
	is "$(cat out)" "$T/ws"
	is "$(cat ws/f; ls ws)" "$(printf '1\nf')"
	is "$(sb-diff -n "$s")" "$(printf 'M f\nA g')"
}

@test "git in four sessions does not disturb the others" {
	need git
	mkdir ws; git -C ws init -q; echo 1 >ws/f
	git -C ws -c user.name=t -c user.email=t@t add -A
	git -C ws -c user.name=t -c user.email=t@t commit -qm 1
	start
	for i in 1 2 3 4; do
		s=$(sb-session-new); echo "$s" >>sessions
		in_session "$s" "for n in 1 2 3 4 5 6 7 8; do echo \$n >f$i
		    git add -A; git -c user.name=t -c user.email=t@t commit -qm \$n; done" >"log.$i" 2>&1 3>&- &
	done
	wait
	cat log.*
	while read -r s; do
		is "$(in_session "$s" 'git rev-list --count HEAD; git fsck 2>&1')" 9
		sb-diff -n "$s" >/dev/null
	done <sessions
	is "$(git -C ws rev-list --count HEAD)" 1
	sb-publish "$(head -n 1 sessions)"
	t=$(sb-session-new)
	is "$(in_session "$t" 'git rev-list --count HEAD; git fsck 2>&1; git status --short')" 9
}

@test "hard names are published byte for byte" {
	mkdir ws
	for n in 'a b' '"q"' 实测.md $'tab\tx' $'line\ntwo' ' -> ' -rf ' lead' 'back\slash' $'\xff\xfe' manifest.json; do
		printf x >"ws/$n"
	done
	start
	s=$(sb-session-new)
	in_session "$s" 'for f in ./* ./.[!.]* ./" "*; do [ ! -f "$f" ] || printf y >>"$f"; done'
	sb-diff -z "$s" | tr '\0' '\n' | grep -c '^M' >count
	sb-publish "$s"
	sb-stack-show | sb-layer-list -r | tr -d '\n' | tr '\0' '\n' | grep -c '^w.*L0' >published
	same count published
	t=$(sb-session-new)
	is "$(in_session "$t" 'ls | wc -l; cat ./-rf')" "$(in_session "$t" 'ls | wc -l; echo xyy' | sed 's/xyy/xy/')"
}

@test "names beginning .wh. are refused, and the session stays publishable" {
	mkdir ws; echo 1 >ws/f
	start
	s=$(sb-session-new)
	in_session "$s" 'echo x >.wh.f; echo y >g'
	run -2 --separate-stderr sb-publish "$s"
	has "$output" '"reason":"protected_path"'
	has "$output" '"path":".wh.f"'
	is "$(sb-stack-version)" 1
	in_session "$s" 'rm .wh.f'
	sb-publish "$s"
	is "$(head_cat g)" y
}

@test "mode and content are merged each by itself" {
	mkdir ws; seq 5 >ws/run.sh; chmod 644 ws/run.sh
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	in_session "$a" 'chmod 755 run.sh'
	in_session "$b" 'echo 6 >>run.sh'
	in_session "$c" 'chmod 600 run.sh'
	sb-publish "$a"
	sb-publish "$b"
	t=$(sb-session-new)
	is "$(in_session "$t" 'stat -c %a run.sh; tail -n 1 run.sh')" "$(printf '755\n6')"
	run -2 --separate-stderr sb-publish "$c"
	has "$output" '"kind":"mode"'
}

@test "delete against change conflicts both ways, delete against delete agrees" {
	mkdir ws; seq 3 >ws/x; seq 3 >ws/y; seq 3 >ws/z
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'rm x z; echo 4 >>y'
	in_session "$b" 'rm y z; echo 4 >>x'
	sb-publish "$a"
	run -2 --separate-stderr sb-publish "$b"
	is "$(printf %s "$output" | jq -r '.error.details.conflicts[] | .path + " " + .kind')" \
	    "$(printf 'x delete_modify\ny modify_delete')"
}

@test "a child added at head below a directory that mine removed is a conflict" {
	mkdir -p ws/d; echo 1 >ws/d/f
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	in_session "$a" 'echo 2 >d/added'
	in_session "$b" 'rm -r d'
	in_session "$c" 'rm -r d; mkdir d; echo 3 >d/mine'
	sb-publish "$a"
	for s in "$b" "$c"; do
		run -2 --separate-stderr sb-publish "$s"
		is "$(printf %s "$output" | jq -r '.error.details.conflicts[] | .path + " " + .kind')" 'd/added child'
	done
}

@test "two sessions that make the same directory both publish into it" {
	mkdir ws; echo 1 >ws/f
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'mkdir n; echo a >n/a'
	in_session "$b" 'mkdir n; echo b >n/b'
	sb-publish "$a"; sb-publish "$b"
	is "$(head_names)" "$(printf 'f\nn\nn/a\nn/b')"
}

@test "a command that runs keeps publish out, and is not disturbed by it" {
	mkdir ws; echo 1 >ws/f; mkfifo go
	start
	s=$(sb-session-new)
	exec 9<>go
	sb-run "$s" sh -c 'touch up; read -r x; echo done >f' <go 3>&- 9>&- &
	job=$!
	eventually [ -e "$SB_STORE/workspace/$s/upper/up" ]
	run -98 sb-publish "$s"
	run -98 sb-session-end "$s"
	echo go >&9; exec 9>&-
	wait $job
	sb-publish "$s"
	is "$(head_cat f)" done
}

@test "what an ended command left running is stopped for a publish and goes on after a refusal" {
	mkdir ws; echo 1 >ws/f
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'echo 2 >f'; sb-publish "$a"
	in_session "$b" 'echo 3 >f; (while :; do echo tick >>ticks; sleep 0.01; done) >/dev/null 2>&1 &' 3>&-
	run -2 sb-publish "$b"
	n=$(in_session "$b" 'wc -l <ticks')
	for _ in $(seq 200); do
		[ "$(in_session "$b" 'wc -l <ticks')" = "$n" ] || break
		sleep 0.02
	done
	[ "$(in_session "$b" 'wc -l <ticks')" -gt "$n" ]
}

@test "an ordinary edit inside keeps a file that its user may not read" {
	mkdir ws; echo 1 >ws/f
	start
	s=$(sb-session-new)
	in_session "$s" 'echo secret >k; chmod 000 k; echo 2 >f; chmod 400 f'
	sb-diff "$s" >patch
	grep -q '^+secret' patch
	sb-publish "$s"
	is "$(sb-stack-show | sb-layer-list | tr '\0' '\n' | cut -c1-6)" "$(printf 'w 0400\nw 0000\n')"
}
