# SPDX-License-Identifier: MIT
# Who wrote each line, through merges, deletes, changes of type and of mode;
# and the history of versions.
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	make_store "$@"
}
in_session() { sb-run "$1" sh -euc "$2"; }
# publish NAME SCRIPT: a session of its own, published as NAME.
publish() {
	local s
	s=$(sb-session-new)
	in_session "$s" "$2"
	sb-publish -a "$1" "$s" >/dev/null
}
blame() { sb-file-blame "$1" | jq -r '.ranges[]|"\(.start_line)+\(.line_count) \(.owner)"'; }

@test "after a merge each line is credited to the session that published it" {
	mkdir ws; seq 10 >ws/f
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'sed -i "2s/.*/two/;3s/.*/three/" f'
	in_session "$b" 'sed -i "8s/.*/eight/;8a inserted" f'
	sb-publish "$a"; sb-publish "$b"
	is "$(sb-stack-show | sb-layer-cat f)" "$(seq 10 | sed '2s/.*/two/;3s/.*/three/;8s/.*/eight/;8a inserted')"
	is "$(blame f)" "1+1 original
2+2 workspace_session:$a
4+4 original
8+2 workspace_session:$b
10+2 original"
}

@test "the same edit on both sides belongs to the first publisher" {
	mkdir ws; seq 5 >ws/f
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'sed -i 3s/.*/x/ f'
	in_session "$b" 'sed -i "3s/.*/x/;5s/.*/y/" f'
	sb-publish -a A "$a"; sb-publish -a B "$b"
	is "$(blame f)" '1+2 original
3+1 A
4+1 original
5+1 B'
}

@test "a new file is wholly its maker's, and later lines are added to it" {
	mkdir ws; echo x >ws/x
	start
	publish A 'seq 3 >n'
	is "$(blame n)" '1+3 A'
	publish B 'echo 4 >>n'
	is "$(blame n)" '1+3 A
4+1 B'
	publish C 'sed -i 2d n'
	is "$(blame n)" '1+2 A
3+1 B'
}

@test "delete and make again starts anew, and so does a change of type" {
	mkdir ws; seq 3 >ws/f
	start
	publish A 'echo 4 >>f'
	publish B 'rm f'
	run -1 --separate-stderr sb-file-blame f
	has "$stderr" f
	publish C 'seq 4 >f'
	is "$(blame f)" '1+4 C'
	publish D 'rm f; ln -s x f'
	run -1 sb-file-blame f
	publish E 'rm f; seq 4 >f'
	is "$(blame f)" '1+4 E'
	publish F 'rm f; mkdir f; seq 2 >f/f'
	run -1 sb-file-blame f
	is "$(blame f/f)" '1+2 F'
}

@test "a directory cleared and filled again hides what was blamed below it" {
	mkdir -p ws/d; seq 3 >ws/d/f
	start
	publish A 'echo 4 >>d/f; echo a >d/g'
	publish B 'rm -r d; mkdir d; seq 3 >d/h'
	run -1 sb-file-blame d/g
	publish C 'echo g >d/g'
	is "$(blame d/g)" '1+1 C'
	is "$(blame d/h)" '1+3 B'
}

@test "a chmod changes no owner; neither does a rename keep one" {
	mkdir ws; seq 2 >ws/f
	start
	publish A 'echo 3 >>f'
	publish B 'chmod 755 f'
	is "$(blame f)" '1+2 original
3+1 A'
	publish C 'echo 4 >>f'
	is "$(blame f)" '1+2 original
3+1 A
4+1 C'
	publish D 'mv f g'
	is "$(blame g)" '1+4 D'
}

@test "mode of one side and text of the other: the lines keep their owners" {
	mkdir ws; seq 5 >ws/f
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'sed -i 2s/.*/two/ f'
	in_session "$b" 'chmod 755 f'
	sb-publish -a A "$a"; sb-publish -a B "$b"
	is "$(blame f)" '1+1 original
2+1 A
3+3 original'
}

@test "binary, empty and ignored files are owned as a whole, and text on top of that too" {
	mkdir ws; echo '*.log' >ws/.gitignore
	start
	publish A 'printf "a\0b\nc\n" >bin; : >empty; seq 3 >x.log'
	is "$(blame bin)" '1+2 A'
	is "$(blame empty)" ''
	is "$(blame x.log)" '1+3 A'
	publish B 'seq 3 >empty; printf "a\nb\n" >bin'
	is "$(blame empty)" '1+3 B'
	is "$(blame bin)" '1+2 B'
	publish C 'echo 4 >>x.log'
	is "$(blame x.log)" '1+4 C'
}

@test "a file that stays through an opaque directory keeps its owners" {
	mkdir -p ws/d; seq 3 >ws/d/f; seq 3 >ws/d/g
	start
	publish A 'echo 4 >>d/f'
	publish B 'cp -a d e; rm -r d; mkdir d; cp -a e/f d/f; rm -r e'
	is "$(blame d/f)" '1+3 original
4+1 A'
}

@test "a path that nobody published, or that is no file, is not found" {
	mkdir -p ws/d; echo x >ws/x
	start
	publish A 'mkdir -p d/e; ln -s x l'
	for p in x nothing d l d/e x/y; do
		run -1 --separate-stderr sb-file-blame "$p"
		is "$(printf '%s' "$output" | jq -r .error.kind)" not_found
		has "$stderr" "$p"
	done
	run -1 sb-file-blame ../x
	run -100 sb-file-blame
}

@test "ranges tile a file of 20 000 lines edited by many" {
	mkdir ws; seq 20000 >ws/f
	start
	for i in 1 2 3 4 5; do publish "S$i" "sed -i '$((i * 7))~50s/\$/ $i/' f"; done
	sb-file-blame f | jq -e '(reduce .ranges[] as $r (1; if $r.start_line == . and $r.line_count > 0 then . + $r.line_count else -1 end)) == 20001' >/dev/null
	sb-file-blame f | jq -e '[.ranges[].owner] as $o | [range(1; $o|length)] | all($o[.] != $o[. - 1])' >/dev/null
	is "$(sb-file-blame f | jq -c '[.ranges[].owner]|unique')" '["S1","S2","S3","S4","S5","original"]'
}

@test "the log has one line a version, newest first, with owner, session and counts" {
	mkdir ws; echo '*.log' >ws/.gitignore; seq 9 >ws/f
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'sed -i 1s/.*/x/ f; echo 1 >a.log'
	in_session "$b" 'sed -i 9s/.*/y/ f'
	sb-publish -a ann "$a"; sb-publish "$b"
	sb-log >log
	is "$(jq -r '[.version,.cause,.owner,.session,.source_count,.ignored_count,.merged_count]|@tsv' log)" \
	    "$(printf '3\tpublish\tworkspace_session:%s\t%s\t1\t0\t1\n2\tpublish\tann\t%s\t1\t1\t0' "$b" "$b" "$a")"
	is "$(jq -r .layer log)" "$(sb-stack-show | sed -n 1,2p)"
	jq -r .time log | grep -qE '^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z$'
	# A refusal and a no-op leave no line.
	c=$(sb-session-new)
	sb-publish "$c"
	is "$(sb-log | wc -l)" 2
	is "$(sb-log -n 1 | jq .version)" 3
}
