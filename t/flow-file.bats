# SPDX-License-Identifier: MIT
# Files of a session, read, listed, written and edited from outside: what they
# show and change, who waits for whom, and that nothing outside is ever touched.
bats_require_minimum_version 1.5.0
load lib

start() {
	[ -e need ] || need overlay userns jq
	make_store "$@"
	s=$(sb-session-new)
	W=$SB_STORE/workspace/$s
}
run_in() { sb-run "$s" sh -euc "$1"; }
# edits OLD NEW…: the array.
edits() {
	jq -cn '$ARGS.positional | [range(0; length; 2) as $i |
	    {old_string: .[$i], new_string: .[$i + 1]}]' --args -- "$@"
}
content() { sb-file-read -s "$s" "$1" | jq -r .content; }
# refused CODE KIND MESSAGE PROG ARG…
refused() {
	local code=$1 kind=$2 message=$3
	shift 3
	run "-$code" --separate-stderr "$@"
	is "$(printf %s "$output" | jq -r .error.kind)" "$kind"
	has "$(printf %s "$output" | jq -r .error.message)" "$message"
	has "$stderr" "$1: fatal: "
}
# No file aside is left in the session's tree, and no note of one.
no_rest() {
	is "$(find "$W/upper" -name '.sb-*'; ls "$W" | grep -x edit)" ""
}
# An OFD lock on descriptor 9: exclusive, of the test's own.
hold_fd_9() {
	perl -e 'use Fcntl; my $l = pack("s s l! l! i", F_WRLCK, 0, 0, 0, 0);
	    open(F, "+<&=", 9) && fcntl(F, 37, $l) or die $!'
}

@test "files are those that commands of the session see" {
	mkdir -p ws/d; printf 'base\n' >ws/d/f; printf 'old\n' >ws/gone
	start
	run_in 'echo made >d/made; rm gone; mkdir -p e/e; ln -s f d/link; mkfifo d/pipe'
	is "$(content d/f) $(content d/made)" 'base made'
	refused 1 not_found 'file not found: gone' sb-file-read -s "$s" gone
	sb-file-list -s "$s" >got
	same got <(echo '{"path":"","entries":[{"name":"d","kind":"directory","size":null},{"name":"e","kind":"directory","size":null}],"truncated":false}')
	sb-file-list -s "$s" d >got
	same got <(printf '%s' '{"path":"d","entries":[{"name":"f","kind":"file","size":5},{"name":"link","kind":"symlink","size":null},' \
	    '{"name":"made","kind":"file","size":5},{"name":"pipe","kind":"other","size":null}],"truncated":false}' $'\n')
	sb-file-list -s "$s" e/e >got
	same got <(echo '{"path":"e/e","entries":[],"truncated":false}')
	sb-file-list -s "$s" -l 1 d >got
	same got <(echo '{"path":"d","entries":[{"name":"f","kind":"file","size":5}],"truncated":true}')
	echo hello | sb-file-write -s "$s" n/n/f >got
	same got <(echo '{"type":"create","path":"n/n/f","bytes_written":6}')
	edits base BASE | sb-file-edit -s "$s" d/f >got
	same got <(echo '{"type":"edit","path":"d/f","edits_applied":1,"replacements":1,"bytes_written":5}')
	is "$(sb-run "$s" cat n/n/f d/f | xargs)" 'hello BASE'
	is "$(sb-run "$s" stat -c %a n n/n n/n/f | xargs)" '755 755 644'
	echo again | sb-file-write -s "$s" n/n/f >got
	same got <(echo '{"type":"update","path":"n/n/f","bytes_written":6}')
	no_rest
}

@test "what is changed in a session is nobody else's until it is published, and then the session's" {
	mkdir ws; seq 3 >ws/f
	start
	other=$(sb-session-new)
	edits 2 two | sb-file-edit -a operation:x -s "$s" f
	echo new | sb-file-write -s "$s" n
	is "$(sb-file-read f | jq -r .content | xargs)" '1 2 3'
	run -1 sb-file-read n
	run -1 sb-file-blame n
	run -1 sb-file-blame f
	is "$(sb-file-read -s "$other" f | jq -r .content | xargs)" '1 2 3'
	is "$(cat ws/f | xargs)" '1 2 3'
	is "$(sb-stack-version)" 1
	is "$(sb-diff -n "$s")" "M f
A n"
	sb-publish "$s" >out
	is "$(sb-file-read f | jq -r .content | xargs)" '1 two 3'
	is "$(sb-file-blame f | jq -r '.ranges[1].owner')" "workspace_session:$s"
	refused 1 not_found "workspace session not found: $s" sb-file-read -s "$s" f
	is "$(printf %s "$output" | jq -c .error.details)" "{\"workspace_session_id\":\"$s\"}"
	refused 1 not_found "workspace session not found: $s" sb-file-write -s "$s" f </dev/null
}

@test "blame in a session says what its publish will write down" {
	mkdir -p ws/d; seq 4 >ws/f; seq 3 >ws/same; seq 3 >ws/gone; seq 3 >ws/mode
	printf 'a\0b\n' >ws/bin; printf '*.log\n' >ws/.gitignore
	start
	edits 1 one | sb-file-edit -a operation:r1 f
	seq 2 | sb-file-write -a operation:r2 r
	s=$(sb-session-new)
	edits 3 three | sb-file-edit -s "$s" f
	run_in 'rm gone; chmod 755 mode r; ln -s f link; : >empty; printf "x\0\n" >bin; seq 5 >x.log; seq 2 >new
		mkdir .git; echo x >.git/y'
	blame() { sb-file-blame "$@" | jq -r '.ranges[] | "\(.start_line)+\(.line_count) \(.owner)"'; }
	is "$(blame -s "$s" f)" "1+1 operation:r1
2+1 original
3+1 workspace_session:$s
4+1 original"
	is "$(blame -s "$s" "$T/ws/r")" '1+2 operation:r2'
	is "$(blame -s "$s" new)" "1+2 workspace_session:$s"
	for p in same mode gone link d no ../x /etc/passwd; do
		refused 1 not_found "no auditability record for path: $p" sb-file-blame -s "$s" "$p"
	done
	# Nothing of it is on head yet.
	is "$(blame f)" '1+1 operation:r1
2+3 original'
	refused 1 not_found 'no auditability record for path: new' sb-file-blame new
	mkdir said
	for p in f r new x.log empty bin .git/y; do sb-file-blame -s "$s" $p >said/${p#.git/}; done
	same said/empty <(echo '{"path":"empty","ranges":[]}')
	sb-publish "$s" >out
	for p in f r new x.log empty bin .git/y; do
		sb-file-blame $p >got
		same got said/${p#.git/}
	done
	refused 1 not_found "workspace session not found: $s" sb-file-blame -s "$s" f
}

@test "head moves under a session without its seeing it" {
	mkdir ws; seq 3 >ws/f
	start
	edits 2 TWO | sb-file-edit f
	is "$(content f | xargs)" '1 2 3'
	edits 3 three | sb-file-edit -s "$s" f
	sb-publish "$s" >out
	is "$(sb-file-read f | jq -r .content | xargs)" '1 TWO three'
}

@test "A14: absolute paths land in the session only" {
	mkdir ws; echo base >ws/f; echo base >ws/g
	start
	other=$(sb-session-new)
	run_in "echo x >$T/ws/f"
	edits base edited | sb-file-edit -s "$s" "$T/ws/g" >got
	is "$(jq -r .path got)" g
	echo new | sb-file-write -s "$s" "$T/ws/n" >got
	is "$(jq -r .path got)" n
	is "$(sb-run "$s" cat "$T/ws/f" "$T/ws/g" "$T/ws/n" | xargs) $(sb-run "$s" pwd)" "x edited new $T/ws"
	for p in f g n; do
		is "$(sb-file-read -s "$s" "$T/ws/$p" | jq -c '[.path, .content]')" "$(sb-file-read -s "$s" $p | jq -c '[.path, .content]')"
	done
	is "$(sb-file-list -s "$s" "$T/ws" | jq -r '.entries[].name' | xargs)" 'f g n'
	# Neither the host, nor head, nor another session has any of it.
	is "$(ls ws | xargs) $(cat ws/f ws/g | xargs)" 'f g base base'
	is "$(sb-file-list | jq -r '.entries[].name' | xargs) $(sb-file-read "$T/ws/f" | jq -r .content)" 'f g base'
	is "$(sb-run "$other" sh -c 'ls; cat f g' | xargs)" 'f g base base'
	refused 100 invalid_request 'invalid path: /etc/passwd' sb-file-read -s "$s" /etc/passwd
	refused 100 invalid_request "invalid path: $T/ws/../x" sb-file-read -s "$s" "$T/ws/../x"
}

@test "A12: an edit touches no byte of the lines around it, in a session and on head" {
	mkdir ws; printf 'a\r\nb\nc' >ws/f; printf 'x\ry\r\nz\r\nend\n' >ws/cr
	start
	for on in "-s $s" ''; do
		edits c C | sb-file-edit $on f
		edits z Z | sb-file-edit $on cr
		# A new line ends as most do, also after one that ends otherwise.
		edits $'end\n' $'end\nmore\n' | sb-file-edit $on cr
	done
	sb-run "$s" cat f >is
	same is <(printf 'a\r\nb\nC')
	sb-stack-show | sb-layer-cat f >is
	same is <(printf 'a\r\nb\nC')
	sb-run "$s" cat cr >is
	same is <(printf 'x\ry\r\nZ\r\nend\nmore\r\n')
	sb-stack-show | sb-layer-cat cr | cmp - is
	# The difference is one line, and two.
	sb-diff "$s" | grep '^[-+]' | grep -v '^[-+][-+]' | tr -d '\r' >lines
	same lines <(printf '%s\n' -z +Z +more -c +C)
	is "$(sb-file-blame f | jq -c '[.ranges[].line_count]')" '[2,1]'
}

@test "A18: links that lead out are not followed, in a session and on head" {
	mkdir -p ws outside; echo base >ws/f; echo secret >outside/f
	start
	run_in "ln -s /etc e; ln -s ../../../../../../../../tmp t; ln -s /proc/self/root r
	    ln -s $T/outside o; ln -s $T/outside/f of; ln -s f in; mkdir d; ln -s ../d d/self"
	mkdir -p out
	for path in e/passwd of in o/f r/etc/passwd d/self/x; do
		refused 100 invalid_request 'not a regular file' sb-file-read -s "$s" "$path"
		echo "$output" >>out/all
		edits s S | refused 100 invalid_request 'not a regular file' sb-file-edit -s "$s" "$path"
	done
	for path in t/pwn r/tmp/pwn o/pwn of o/new/deep/pwn d/self/pwn; do
		echo pwn | refused 100 invalid_request 'not a regular file' sb-file-write -s "$s" "$path"
	done
	for path in e t r o o/. d/self; do
		refused 100 invalid_request 'not a directory' sb-file-list -s "$s" "$path"
	done
	! grep -q 'secret\|root:' out/all
	is "$(ls outside) $(cat outside/f)" 'f secret'
	[ ! -e /tmp/pwn ]
	is "$(sb-run "$s" ls d)" self
	sb-publish "$s" >out/publish
	for path in e/passwd of in o/f r/etc/passwd; do
		refused 100 invalid_request 'not a regular file' sb-file-read "$path"
		echo pwn | refused 100 invalid_request 'not a regular file' sb-file-write "$path"
	done
	refused 100 invalid_request 'not a directory' sb-file-list o
	is "$(ls outside) $(cat outside/f)" 'f secret'
}

@test "pipes and what is below a file are no regular files, and nobody waits for them" {
	mkdir ws; echo base >ws/f
	start
	run_in 'mkfifo p'
	refused 100 invalid_request 'not a regular file: p (it is a pipe, a socket or a device)' sb-file-read -s "$s" p
	refused 100 invalid_request 'not a regular file' sb-file-write -s "$s" p <<<x
	edits a b | refused 100 invalid_request 'not a regular file' sb-file-edit -s "$s" p
	refused 100 invalid_request 'not a regular file: f/x (something on the way is no directory)' sb-file-read -s "$s" f/x
	refused 100 invalid_request 'not a regular file' sb-file-write -s "$s" f/x/y <<<x
	refused 100 invalid_request 'not a directory' sb-file-list -s "$s" f
	refused 100 invalid_request 'not a directory' sb-file-list -s "$s" f/x
	refused 1 not_found 'directory not found: no' sb-file-list -s "$s" no
	is "$(content f)" base
}

@test "mode, xattrs and a hard link's other name stay; a failed edit changes nothing" {
	need overlay userns xattr
	mkdir ws; printf 'a\r\nb\n' >ws/f; chmod 751 ws/f; setfattr -n user.k -v v ws/f
	start
	run_in 'ln f g; chmod 4711 f'
	edits b B | sb-file-edit -s "$s" f
	is "$(sb-run "$s" stat -c %a f g | xargs)" '4711 4711'
	is "$(sb-run "$s" getfattr -n user.k --only-values f)" v
	sb-run "$s" cat f >is
	same is <(printf 'a\r\nB\n')
	sb-run "$s" cat g >is
	same is <(printf 'a\r\nb\n')
	before=$(sb-run "$s" stat -c '%i %Y %s' f)
	edits B C no D | refused 100 invalid_request 'edits[1]: old_string not found' sb-file-edit -s "$s" f
	is "$(sb-run "$s" stat -c '%i %Y %s' f)" "$before"
	no_rest
}

@test "the session's user is root over its files, whatever their modes" {
	mkdir ws; echo base >ws/f
	start
	run_in 'echo x >secret; chmod 000 secret; mkdir d; echo y >d/f; chmod 000 d'
	is "$(content secret) $(content d/f)" 'x y'
	edits x X | sb-file-edit -s "$s" secret
	echo n | sb-file-write -s "$s" d/n
	is "$(sb-run "$s" cat secret d/n | xargs) $(sb-run "$s" stat -c %a secret d | xargs)" 'X n 0 0'
	sb-publish "$s" >out
	is "$(sb-file-read secret | jq -r .content) $(sb-file-read d/n | jq -r .content)" 'X n'
	edits X Z | sb-file-edit secret
	echo more | sb-file-write d/more
	is "$(sb-file-read secret | jq -r .content) $(sb-file-read d/more | jq -r .content)" 'Z more'
	s=$(sb-session-new)
	is "$(sb-run "$s" stat -c %a secret d | xargs)" '0 0'
}

@test "names keep their bytes, and a name as long as can be is written" {
	local f
	mkdir ws
	start
	for f in 'a\b' ' lead' 'trail ' $'a\nb\tc' -n $'\xff' .wh.x "$(printf '%0255d' 0)"; do
		printf %s "$f" | sb-file-write -s "$s" -- "$f" >got
		sb-run "$s" cat -- "$f" >is
		printf %s "$f" >want
		same is want
	done
	sb-file-list -s "$s" | jq -r '.entries[].name_b64 // empty' >got
	same got <(echo /w==)
	path=$(printf 'd/%.0s' {1..1500})x
	echo deep | sb-file-write -s "$s" "$path" >got
	is "$(content "$path")" deep
	no_rest
	# That of the file aside is not to be had.
	refused 100 invalid_request "invalid path: .sb-$s.tmp" sb-file-write -s "$s" ".sb-$s.tmp" </dev/null
	# Such a name can be in a session, but not be published.
	run -2 sb-publish "$s"
	has "$output" '"reason":"protected_path"'
}

@test "a parked session is started by the first that looks into it" {
	mkdir ws; echo base >ws/f
	start
	echo x | sb-file-write -s "$s" n
	kill -9 "$(cut -d ' ' -f 1 "$W/hold")"
	eventually sh -c 'sb-session-ls -v | grep -q parked'
	is "$(content n)" x
	sb-session-ls -v | grep -q running
	sb-ns-kill "$s"
	edits base new | sb-file-edit -s "$s" f
	is "$(sb-run "$s" cat f)" new
}

@test "eight at once start a parked session once" {
	mkdir ws; echo base >ws/f
	start
	sb-ns-kill "$s"
	for i in 1 2 3 4 5 6 7 8; do
		echo $i | sb-file-write -t 120000 -s "$s" n$i >/dev/null 3>&- &
	done
	wait
	is "$(sb-run "$s" cat n1 n2 n3 n4 n5 n6 n7 n8 | xargs)" '1 2 3 4 5 6 7 8'
	no_rest
}

@test "a command that runs keeps nobody from the files, and is kept by nobody" {
	mkdir ws; echo base >ws/f
	start
	mkfifo go
	sb-run "$s" sh -c 'touch started; read x; cat f n' <go >out 3>&- &
	exec 8>go
	eventually sb-run "$s" test -e started
	is "$(content f)" base
	edits base edited | sb-file-edit -t 5000 -s "$s" f
	echo n | sb-file-write -t 5000 -s "$s" n
	sb-file-list -t 5000 -s "$s" >got
	echo >&8
	exec 8>&-
	wait
	is "$(xargs <out)" 'edited n'
}

@test "who finds the session being published waits, and says when it did not come to an end" {
	mkdir ws; echo base >ws/f
	start
	exec 9<>"$W/gate"
	hold_fd_9
	refused 98 operation_failed 'is being published or ended' sb-file-read -t 0 -s "$s" f
	refused 99 operation_failed 'is being published or ended' sb-file-list -t 100 -s "$s"
	is "$(printf %s "$output" | jq -c .error.details)" "{\"workspace_session_id\":\"$s\",\"reason\":\"timeout\"}"
	echo new | sb-file-write -s "$s" n >got 3>&- 9>&- &
	is "$(find "$W/upper" -type f)" ""
	exec 9>&-
	wait
	is "$(sb-run "$s" cat n)" new
}

@test "a session that ended while somebody waited for it is not found" {
	mkdir ws; echo base >ws/f
	start
	exec 9<>"$W/gate"
	hold_fd_9
	sb-file-read -s "$s" f >got 2>err 3>&- 9>&- &
	pid=$!
	eventually waits_for_gate
	mv "$W" "$SB_STORE/workspace/.end.$s"
	exec 9>&-
	code=0
	wait $pid || code=$?
	is $code 1
	is "$(jq -c .error.details got)" "{\"workspace_session_id\":\"$s\"}"
	mv "$SB_STORE/workspace/.end.$s" "$W"
}
waits_for_gate() { is_locked "$W/gate.turn"; }
# Is an exclusive OFD lock on file $1?
is_locked() {
	perl -e 'use Fcntl; my $l = pack("s s l! l! i", F_RDLCK, 0, 0, 0, 0);
	    open(F, "+<", $ARGV[0]) && fcntl(F, 36, $l) or die $!;
	    exit((unpack("s", $l))[0] == F_UNLCK)' "$1"
}

@test "sixteen edits at once of one file in a session: none is lost" {
	mkdir ws; seq -f 'line %02g.' 16 >ws/f
	start
	for round in 1 2 3; do
		for i in $(seq -w 16); do
			edits "line $i." "edited $i." | sb-file-edit -t 120000 -s "$s" f >/dev/null 3>&- &
		done
		wait
		is "$(sb-run "$s" cat f)" "$(seq -f 'edited %02g.' 16)"
		run_in 'sed -i s/edited/line/ f'
	done
	no_rest
}

@test "eight writers at once in a session: the content is one of theirs, and whole" {
	mkdir ws; start
	for i in 1 2 3 4 5 6 7 8; do
		yes $i | head -n 20000 | sb-file-write -t 120000 -s "$s" f >/dev/null 3>&- &
	done
	wait
	sb-run "$s" cat f >is
	is "$(sort -u is | wc -l) $(wc -l <is)" '1 20000'
	no_rest
}

@test "a command that changes the file under an edit is not overwritten" {
	need strace
	mkdir ws; seq 3 >ws/f
	start
	edits 2 two >e
	# Held up when the new content is written, before it is in place.
	strace -qq -o trace -e trace=fsync -e inject=fsync:delay_enter=1500000:when=1 \
	    sb-file-edit -s "$s" f <e >got 3>&- &
	eventually test -L "$W/edit"
	run_in 'sed -i s/3/three/ f'
	wait
	is "$(sb-run "$s" cat f | xargs)" '1 two three'
	# Or the string is gone by then.
	edits two 2 >e
	strace -qq -o trace -e trace=fsync -e inject=fsync:delay_enter=1500000:when=1 \
	    sb-file-edit -s "$s" f <e >got 2>err 3>&- &
	pid=$!
	eventually test -L "$W/edit"
	run_in 'echo other >f'
	code=0
	wait $pid || code=$?
	is $code 100
	has "$(cat got)" 'old_string not found'
	is "$(sb-run "$s" cat f)" other
	no_rest
}

@test "something else is put above the workspace by a command: that is noticed" {
	need overlay userns jq
	# A private directory, in which commands may do as they like.
	export HOME=$T/h
	mkdir -p h/a/ws; echo base >h/a/ws/f
	sb-store-init && sb-base-import "$T/h/a/ws" >/dev/null
	s=$(sb-session-new)
	run_in "cd $T/h; mv a moved; mkdir -p a/ws; echo planted >a/ws/f"
	refused 111 operation_failed 'not mounted' sb-file-read -s "$s" f
	refused 111 operation_failed 'not mounted' sb-file-write -s "$s" f <<<x
	run_in "cd $T/h; rm -r a; ln -s /etc a"
	refused 111 operation_failed 'unable to look into session' sb-file-list -s "$s"
	sb-ns-kill "$s"
	is "$(content f)" base
}

# ---- kills and faults ----

# A change in a session, for inject: an edit of f and a new file below new
# directories.
template() {
	need overlay userns jq
	mkdir -p ws/d; seq 3 >ws/d/f
	make_store
	s=$(sb-session-new)
	W=$SB_STORE/workspace/$s
	edits 2 two >e
	sb-file-read -s "$s" d/f >/dev/null
}
# reset: as it was at the beginning.
reset() { sb-run "$s" sh -c 'seq 3 >d/f; rm -rf n'; }
old_or_new() {
	is=$(sb-run "$s" sh -c 'cat d/f; ls -A d; ! test -e n || cat n/n/f' | xargs)
	case $is in
	'1 2 3 f' | '1 two 3 f' | '1 2 3 f new') ;;
	*) fail "neither old nor new: $is" ;;
	esac
}

@test "what a killed change left is neither listed, shown nor published" {
	need strace
	mkdir -p ws/d; seq 3 >ws/d/f
	start
	run_in 'echo mine >m'
	edits 2 two >e
	kill_at fsync 1 sb-file-edit -s "$s" d/f <e || :
	[ -f "$W/upper/d/.sb-$s.tmp" ]
	is "$(sb-file-list -s "$s" d | jq -r '.entries[].name')" f
	is "$(sb-diff -n "$s")" 'A m'
	# The next change removes it; killed as well, it leaves directories.
	echo x | kill_at fsync 2 sb-file-write -s "$s" n/n/f || :
	[ ! -e "$W/upper/d/.sb-$s.tmp" ]
	[ -f "$W/upper/.sb-$s.tmp/n/f" ]
	is "$(sb-file-list -s "$s" | jq -r '.entries[].name' | xargs)" 'd m'
	is "$(sb-diff -n "$s")" 'A m'
	! sb-diff "$s" | grep -q '\.sb-'
	sb-publish "$s" >out
	is "$(jq .publish.route_summary.source_count out)" 1
	is "$(sb-stack-show | sb-layer-list -r | tr '\0' '\n' | cut -f 2 | xargs)" 'd d/f m'
	is "$(sb-file-read d/f | jq -r .content | xargs)" '1 2 3'
}

@test "killed at any call, a change in a session is made or not, and the next one sweeps" {
	template
	local n k prog left=0
	for prog in 'sb-file-edit d/f e' 'sb-file-write n/n/f content'; do
		set -- $prog
		echo new >content
		"$SB_T/inject" -o rec "$1" -s "$s" "$2" <"$3" >got
		n=$(wc -l <rec)
		for ((k = 1; k <= n; k++)); do
			reset
			"$SB_T/inject" -n $k "$1" -s "$s" "$2" <"$3" >got 2>err && code=0 || code=$?
			[ ! -L "$W/edit" ] || left=$((left + 1))
			echo x | sb-file-write -t 30000 -s "$s" swept >/dev/null
			no_rest || fail "call $k of $1: $(sed -n ${k}p rec)"
			old_or_new || fail "call $k of $1: $(sed -n ${k}p rec)"
		done
		echo "# $1: killed at $n calls, $left left something to sweep" >&3
	done
	[ $left -gt 0 ]
}

@test "a change in a session that fails at any call changes nothing and leaves nothing" {
	template
	local n k prog err
	# Reads fail as well, but not for want of room.
	for err in ENOSPC 'EIO -r'; do
		for prog in 'sb-file-edit d/f e' 'sb-file-write n/n/f content'; do
			set -- $prog
			echo new >content
			reset
			"$SB_T/inject" ${err##*[CO]} -o rec "$1" -s "$s" "$2" <"$3" >got
			n=$(wc -l <rec)
			for ((k = 1; k <= n; k++)); do
				reset
				code=0
				"$SB_T/inject" -e $err -n $k "$1" -s "$s" "$2" <"$3" >got 2>err || code=$?
				what="$err at call $k of $1: $(sed -n ${k}p rec)"
				[ $code = 0 ] || [ $code = 111 ] || fail "$what: $code"
				[ $code = 0 ] || [ -s err ] || fail "$what: no message"
				old_or_new || fail "$what"
				# But for the calls that remove what is aside.
				case $(sed -n ${k}p rec) in
				*unlink*) sb-file-write -s "$s" swept </dev/null >/dev/null ;;
				*) [ $code = 0 ] || case $is in '1 2 3 f') ;; *) grep -q 'write\|fsync\|close' <<<"$what" || fail "$what: $is" ;; esac ;;
				esac
				no_rest || fail "$what"
			done
			echo "# $1: $err at $n calls" >&3
		done
	done
}

# ---- the racing renamer ----

@test "ten thousand operations while directories and files become links: nothing outside is read or written" {
	mkdir -p ws outside/sub; echo base >ws/f
	echo secret >outside/f; echo secret >outside/sub/f
	before=$(listing outside)
	start
	# The tests' own directory may be hidden in a session.
	for p in swap relink; do sb-run "$s" sh -c "cat >$p; chmod 755 $p" <"$SB_T/$p"; done
	# d and a link to the outside change places all the time, and x/f is
	# now a file, now a link to one there.
	sb-run "$s" sh -euc "mkdir -p d/sub x; echo inside >d/f; echo inside >d/sub/f; ln -s $T/outside l"
	sb-run "$s" ./swap d l 3>&- 2>swap &
	sb-run "$s" ./relink x/f "$T/outside/f" 3>&- 2>relink &
	eventually sb-run "$s" test -L d
	eventually sb-run "$s" test -L x/f
	local i path
	edits inside inside2 >e1
	edits inside2 inside >e2
	echo inside >in
	: >out
	: >codes
	op() {
		local rc=0
		"sb-file-$1" -s "$s" "$2" >>out 2>>err || rc=$?
		echo "$1 $rc" >>codes
	}
	for ((i = 0; i < 1000; i++)); do
		for path in d/f d/sub/f x/f; do
			op read $path
			op write $path <in
			op edit $path <e$((i % 2 + 1))
		done
		op list d
	done
	is "$(cat swap relink)" ''
	kill %1 %2
	wait
	is "$(listing outside)" "$before"
	! grep -q secret out || fail "$(grep -m 3 secret out)"
	is "$(wc -l <codes)" 10000
	# Both happened often: the inside was there, and the link was.
	sort codes | uniq -c | sed 's/^/# /' >&3
	for op in read write list; do
		[ "$(grep -c "^$op 0" codes)" -gt 50 ] || fail "$op never succeeded"
		[ "$(grep -c "^$op 100" codes)" -gt 50 ] || fail "$op never met the link"
	done
	! grep -q '^[a-z]* \(101\|111\|1[3-9].\)$' codes || fail "$(sort codes | uniq -c)" "$(sort err | uniq -c | sort -rn | head -5)"
}
