# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	mkdir -p ws/d
	printf 'one\ntwo\nthree\n' >ws/d/f
	printf '#!/bin/sh\n' >ws/run
	chmod 755 ws/run
	ln -s d ws/link
	ln -s "$T/outside" ws/out
	mkdir outside
	echo '*.log' >ws/.gitignore
	make_store
	S=$SB_STORE/layer-stack
}

head_cat() { sb-stack-show | sb-layer-cat -- "$1"; }
blame() { sb-file-blame "$1" | jq -r '.ranges[]|"\(.start_line)+\(.line_count) \(.owner)"'; }

# unchanged: head is at its first version, and nothing is left anywhere.
unchanged() {
	is "$(sb-stack-version)" "${1:-1}"
	tidy
}
tidy() {
	is "$(ls -A "$S/leases" "$S/staging" "$S/queue" 2>/dev/null)" "$S/leases:

$S/queue:

$S/staging:"
}
# refused CODE KIND MESSAGE DETAILS ARG…: with x on stdin.
refused() {
	local code=$1 kind=$2 message=$3 details=$4
	shift 4
	run "-$code" --separate-stderr sb-file-write "$@" <<<x
	is "$output" "{\"error\":{\"kind\":\"$kind\",\"message\":\"$message\",\"details\":{$details}}}"
	has "$stderr" 'sb-file-write: fatal: '
	is "$(sb-stack-version)" 1
	is "$(ls -A "$S/leases" "$S/staging")" "$S/leases:

$S/staging:"
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-file-write </dev/null
	run -100 sb-file-write a b </dev/null
	run -100 sb-file-write -x a </dev/null
	run -100 sb-file-write -t x a </dev/null
	run -100 --separate-stderr sb-file-write -a '' a </dev/null
	has "$stderr" 'not a name for an owner'
	run -0 sb-file-write -h
	is "$output" "usage: sb-file-write [-a owner] [-s session] [-t ms] path"
	is "$(sb-stack-version)" 1
}

@test "a new file: its parents are made, and it is there for everybody" {
	echo hello | sb-file-write new/deep/f >got
	same got <(echo '{"type":"create","path":"new/deep/f","bytes_written":6}')
	is "$(head_cat new/deep/f)" hello
	is "$(sb-stack-version)" 2
	tidy
	sb-stack-show | sb-layer-check
	is "$(stat -c %a "$S/layers/$(sb-stack-show | head -n 1)"/{new,new/deep,new/deep/f} | xargs)" '755 755 644'
	[ ! -e ws/new ]
}

@test "a file that is there is updated, and keeps mode, xattrs and owner" {
	need xattr
	mkdir up
	echo old >up/f
	chmod 4751 up/f
	setfattr -n user.note -v kept up/f
	[ "$(id -u)" != 0 ] || chown 12:34 up/f
	chmod 4751 up/f
	id=$(sb-layer-scan up | sb-layer-commit -C up)
	{ echo "$id"; sb-stack-show; } | sb-stack-swap 1
	want=$(stat -c '%a %u %g' up/f)
	printf new | sb-file-write f >got
	same got <(echo '{"type":"update","path":"f","bytes_written":3}')
	f=$S/layers/$(sb-stack-show | head -n 1)/f
	is "$(cat "$f")" new
	is "$(stat -c '%a %u %g' "$f")" "$want"
	is "$(getfattr -n user.note --only-values --absolute-names "$f")" kept
	printf '#!/bin/bash\n' | sb-file-write run
	is "$(stat -c %a "$S/layers/$(sb-stack-show | head -n 1)/run")" 755
}

@test "directories on the way stay as they are" {
	need xattr
	mkdir -p up/d/e
	setfattr -n user.note -v kept up/d
	chmod 2750 up/d
	chmod 555 up/d/e
	touch -d 2001-01-01 up/d/e up/d
	chmod 711 up
	id=$(sb-layer-scan up | sb-layer-commit -C up)
	{ echo "$id"; sb-stack-show; } | sb-stack-swap 1
	root=$(stat -c '%a %y' "$S/layers/$id")
	echo x | sb-file-write d/e/f
	l=$S/layers/$(sb-stack-show | head -n 1)
	is "$(stat -c %a "$l/d" "$l/d/e" | xargs)" '2750 555'
	is "$(getfattr -n user.note --only-values --absolute-names "$l/d")" kept
	# A new name is a change of the directory that it is in, and of no other.
	is "$(stat -c %y "$l/d")" "$(stat -c %y "$S/layers/$id/d")"
	[ "$(stat -c %Y "$l/d/e")" -gt 1700000000 ]
	is "$(stat -c '%a %y' "$l")" "$root"
	touch -d 2002-02-02 "$l/d/e"
	echo y | sb-file-write d/e/f
	l=$S/layers/$(sb-stack-show | head -n 1)
	is "$(stat -c %y "$l/d/e" | cut -c 1-10)" 2002-02-02
}

@test "what is new in a directory with the set-group-ID bit gets its group" {
	mkdir -p up/d/e
	chmod 2775 up/d/e
	[ "$(id -u)" != 0 ] || chgrp 1234 up/d/e
	chmod 2775 up/d/e
	want=$(stat -c %g up/d/e)
	id=$(sb-layer-scan up | sb-layer-commit -C up)
	{ echo "$id"; sb-stack-show; } | sb-stack-swap 1
	echo x | sb-file-write d/e/new/f
	echo x | sb-file-write d/f
	l=$S/layers/$(sb-stack-show | sed -n 2p)/d
	is "$(stat -c '%g %a' "$l/e" "$l/e/new" "$l/e/new/f" | xargs)" "$want 2775 $want 2755 $want 644"
	is "$(stat -c %g "$S/layers/$(sb-stack-show | head -n 1)/d/f")" "$(id -g)"
}

@test "the same content makes no layer, and is a success" {
	printf 'one\ntwo\nthree\n' | sb-file-write d/f >got
	same got <(echo '{"type":"update","path":"d/f","bytes_written":14}')
	unchanged
}

@test "an empty file, and any bytes" {
	sb-file-write empty </dev/null >got
	same got <(echo '{"type":"create","path":"empty","bytes_written":0}')
	head_cat empty >is
	[ -f is ] && [ ! -s is ]
	printf 'a\0\xff\r\n' >bytes
	sb-file-write bytes <bytes >got
	same got <(echo '{"type":"create","path":"bytes","bytes_written":5}')
	head_cat bytes >is
	same is bytes
	sb-file-write bytes </dev/null >got
	same got <(echo '{"type":"update","path":"bytes","bytes_written":0}')
}

@test "lines that stay keep their owners, the others are the writer's" {
	printf 'one\nTWO\nthree\nfour\n' | sb-file-write -a operation:r1 d/f
	is "$(blame d/f)" '1+1 original
2+1 operation:r1
3+1 original
4+1 operation:r1'
	printf 'ONE\nTWO\nthree\nfour\n' | sb-file-write -a 'me "x"' d/f
	is "$(blame d/f)" '1+1 me "x"
2+1 operation:r1
3+1 original
4+1 operation:r1'
	echo x | sb-file-write n
	is "$(sb-file-blame n | jq -r '.ranges[0].owner | test("^operation:[0-9a-f]{16}$")')" true
	printf 'a\0b\n' | sb-file-write -a b d/f
	is "$(blame d/f)" '1+1 b'
	printf 'x\ny\n' | sb-file-write -a i x.log
	is "$(blame x.log)" '1+2 i'
}

@test "the history says who, what and when" {
	echo x | sb-file-write -a operation:r1 d/n
	sb-log | jq -c 'select(.version == 2) | [.cause, .owner, .path, .source_count, .ignored_count, .layer]' >got
	same got <(echo "[\"write\",\"operation:r1\",\"d/n\",1,0,\"$(sb-stack-show | head -n 1)\"]")
	echo x | sb-file-write x.log
	sb-log | jq -c 'select(.version == 3) | [.cause, .source_count, .ignored_count]' >got
	same got <(echo '["write",0,1]')
}

@test "a directory, a link, what is behind a link and what is below a file are refused" {
	refused 100 invalid_request 'not a regular file: d (it is a directory)' '' d
	refused 100 invalid_request 'not a regular file: link (it is a symbolic link)' '' link
	refused 100 invalid_request 'not a regular file: link/n (a directory on the way is a symbolic link)' '' link/n
	refused 100 invalid_request 'not a regular file: out/pwn (a directory on the way is a symbolic link)' '' out/pwn
	# Never replaced by a directory.
	refused 100 invalid_request 'not a regular file: d/f/n (something on the way is no directory)' '' d/f/n
	is "$(ls outside)" ""
	unchanged
}

@test "paths that cannot be are refused" {
	local path
	for path in '' . / /etc/x ../x d/../n "$T/ws" "$T/ws/../x"; do
		refused 100 invalid_request "invalid path: $path" '' "$path"
	done
	path=$(printf '%0256d' 0)
	refused 100 invalid_request "invalid path: d/$path" '' "d/$path"
	for path in .wh.x d/.wh. .wh..wh..opq d/.wh.d/f; do
		refused 2 operation_failed "ProtectedPath: names beginning .wh. cannot be published: $path" \
		    "\"publish_rejection\":{\"path\":\"$path\",\"reason\":\"protected_path\",\"source_conflict\":null,\"protected_drop\":null,\"message\":null}" \
		    "$path"
	done
	unchanged
	# These only look like it, or were names of the store once.
	for path in .wh .whx x.wh.y manifest.json layers/x workspace.json staging/x .layer-metadata/x .git/x; do
		echo "$path" | sb-file-write "$path"
		is "$(head_cat "$path")" "$path"
	done
}

@test "names keep their bytes" {
	local f
	for f in 'a\b' ' lead' 'trail ' $'a\nb\tc' -n '"q"' $'\xff' "$(printf '%0255d' 0)"; do
		printf %s "$f" | sb-file-write -- "$f" >got
		printf %s "$f" >want
		head_cat "$f" >is
		same is want
	done
	is "$(sb-file-list | jq -r '.entries[] | select(.name_b64) | .name_b64')" /w==
	echo abs | sb-file-write "$T/ws/d/abs" >got
	same got <(echo '{"type":"create","path":"d/abs","bytes_written":4}')
}

@test "a long path" {
	path=$(printf 'd/%.0s' {1..2000})x
	echo x | sb-file-write "$path" >got
	has "$(cat got)" '"type":"create"'
	is "$(head_cat "$path")" x
	tidy
}

@test "a path that was deleted can be made again" {
	mkdir -p up
	records "$(rec_x d)" | sb-layer-commit >id
	{ cat id; sb-stack-show; } | sb-stack-swap 1
	echo x | sb-file-write d/g >got
	same got <(echo '{"type":"create","path":"d/g","bytes_written":2}')
	sb-file-list d | jq -r '.entries[].name' >got
	same got <(echo g)
}

@test "eight writers at once: each makes a version, the last one's content is whole" {
	local i
	for i in 1 2 3 4 5 6 7 8; do
		yes $i | head -n 2000 | sb-file-write -t 120000 shared >/dev/null 3>&- &
	done
	wait
	is "$(sb-stack-version)" 9
	head_cat shared >is
	is "$(sort -u is | wc -l) $(wc -l <is)" '1 2000'
	tidy
}

# An OFD lock of the test's own on descriptor 9.
hold_fd_9() {
	perl -e 'use Fcntl; my $l = pack("s s l! l! i", F_WRLCK, 0, 0, 0, 0);
	    open(F, "+<&=", 9) && fcntl(F, 37, $l) or die $!'
}

@test "a writer waits for its turn, or says that it cannot" {
	exec 9<>"$S/queue/1"
	hold_fd_9
	run -99 --separate-stderr sb-file-write -t 200 n <<<x 9>&-
	has "$output" '{"error":{"kind":"operation_failed",'
	has "$stderr" 'gave up waiting for the publishers before this one'
	run -98 --separate-stderr sb-file-write -t 0 n <<<x 9>&-
	unchanged_but_queue
	sb-file-write n <<<x >got 3>&- 9>&- &
	eventually [ -e "$S/queue/2" ]
	is "$(sb-stack-version)" 1
	exec 9>&-
	wait
	is "$(sb-stack-version)" 2
	tidy
}
unchanged_but_queue() {
	is "$(sb-stack-version)" 1
	is "$(ls -A "$S/leases" "$S/staging")" "$S/leases:

$S/staging:"
}

@test "what an edit makes is found out before its turn, and again when the file changed until then" {
	mkdir up
	exec 9<>"$S/queue/1"
	hold_fd_9
	edit() { printf '[{"old_string":"%s","new_string":"%s"}]' "$1" "$2"; }
	# What cannot be is said at once, and so is what is there already.
	run -100 --separate-stderr sb-file-edit d/f < <(edit no x) 9>&-
	has "$output" 'old_string not found'
	run -0 sb-file-write d/f < <(printf 'one\ntwo\nthree\n') 9>&-
	edit one ONE | sb-file-edit d/f >got 3>&- 9>&- &
	eventually [ -e "$S/queue/2" ]
	mkdir up/d
	printf 'one\ntwo\nTHREE\n' >up/d/f
	sb-layer-scan up | sb-layer-commit -C up >id 9>&-
	{ cat id; sb-stack-show; } | sb-stack-swap 1 9>&-
	exec 9>&-
	wait
	is "$(jq -r .replacements got)" 1
	is "$(head_cat d/f | xargs)" 'ONE two THREE'
	is "$(sb-stack-version)" 3
	tidy
}

@test "somebody who swaps without a ticket is no conflict" {
	mkdir up bin
	echo other >up/other
	sb-layer-scan up | sb-layer-commit -C up >id
	# The swap of the write meets a stack that has moved.
	cat >bin/sb-stack-swap <<-'END'
		#!/bin/sh
		PATH=${PATH#*:}
		if [ ! -e once ]; then
			: >once
			{ cat id; sb-stack-show; } | sb-stack-swap 1 >/dev/null
		fi
		exec sb-stack-swap "$@"
	END
	chmod +x bin/sb-stack-swap
	echo mine | PATH=$T/bin:$PATH sb-file-write n >got 2>err
	same got <(echo '{"type":"create","path":"n","bytes_written":5}')
	is "$(sb-stack-version)" 3
	is "$(head_cat n) $(head_cat other)" 'mine other'
	tidy
}

@test "what was written meanwhile by somebody without a ticket is not lost by an edit" {
	mkdir up bin
	printf 'one\ntwo\nTHREE\n' >up/f
	mkdir up/d
	mv up/f up/d
	sb-layer-scan up | sb-layer-commit -C up >id
	cat >bin/sb-stack-swap <<-'END'
		#!/bin/sh
		PATH=${PATH#*:}
		if [ ! -e once ]; then
			: >once
			{ cat id; sb-stack-show; } | sb-stack-swap 1 >/dev/null
		fi
		exec sb-stack-swap "$@"
	END
	chmod +x bin/sb-stack-swap
	echo '[{"old_string":"one","new_string":"ONE"}]' | PATH=$T/bin:$PATH sb-file-edit d/f
	is "$(head_cat d/f | xargs)" 'ONE two THREE'
}

leased() { [ -n "$(ls "$S/leases")" ]; }

@test "a layer cannot go while something is written upon it" {
	need strace
	local pid
	echo x | sb-file-write a
	id=$(sb-stack-show | head -n 1)
	strace -f -qq -o trace -e trace=execve -e inject=execve:delay_exit=700000 \
	    sb-file-write b <<<y >got 3>&- &
	pid=$!
	eventually leased
	ids B000001-base | sb-stack-swap 2
	sb-stack-unused | sb-layer-rm >removed
	same removed <(ids0)
	wait $pid
	# Rolled back meanwhile: the write is on top of what is head now.
	same got <(echo '{"type":"create","path":"b","bytes_written":2}')
	sb-file-list | jq -r '.entries[].name' >got
	has "$(cat got)" b
	! grep -qx a got
}

@test "input that cannot be read changes nothing" {
	run -111 --separate-stderr sh -c 'sb-file-write n <&-'
	has "$output" '"kind":"operation_failed"'
	run -111 --separate-stderr sh -c 'sb-file-write n <.'
	has "$stderr" 'unable to read the content'
	unchanged
}

@test "a full disk, a closed stdout and a missing store are 111" {
	run -111 sh -c 'echo x | sb-file-write a >/dev/full'
	is "$(head_cat a)" x
	run -111 sh -c 'echo y | sb-file-write a >&-'
	is "$(head_cat a)" y
	SB_STORE=$T/none run -111 sb-file-write a <<<x
	SB_STORE='' run -100 sb-file-write a <<<x
	tidy
}
