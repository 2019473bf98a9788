# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	mkdir -p ws/d
	printf 'alpha\nbeta\ngamma\n' >ws/f
	printf 'a\r\nb\nc' >ws/mixed
	printf 'x x x\n' >ws/three
	ln -s f ws/link
	make_store
	S=$SB_STORE/layer-stack
}

head_cat() { sb-stack-show | sb-layer-cat -- "$1"; }
# edits OLD NEW [true|false]…: the array.
edits() {
	jq -cn '$ARGS.positional | [range(0; length; 3) as $i |
	    {old_string: .[$i], new_string: .[$i + 1], replace_all: (.[$i + 2] == "true")}]' --args -- "$@"
}
# put PATH TEXT (printf): on head.
put() { printf "$2" | sb-file-write "$1" >/dev/null; }

# refused CODE KIND MESSAGE DETAILS PATH: with the edits of stdin.
refused() {
	local version
	version=$(sb-stack-version)
	run "-$1" --separate-stderr sb-file-edit "$5"
	is "$output" "{\"error\":{\"kind\":\"$2\",\"message\":\"$3\",\"details\":{$4}}}"
	has "$stderr" 'sb-file-edit: fatal: '
	is "$(sb-stack-version)" "$version"
	is "$(ls -A "$S/leases" "$S/staging")" "$S/leases:

$S/staging:"
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-file-edit </dev/null
	run -100 sb-file-edit a b </dev/null
	run -100 sb-file-edit -x a </dev/null
	run -100 sb-file-edit -a $'\n' a </dev/null
	run -0 sb-file-edit -h
	is "$output" "usage: sb-file-edit [-a owner] [-s session] [-t ms] path"
}

@test "one string is replaced, the rest stays" {
	edits beta BETA | sb-file-edit f >got
	same got <(echo '{"type":"edit","path":"f","edits_applied":1,"replacements":1,"bytes_written":17}')
	is "$(head_cat f)" $'alpha\nBETA\ngamma'
	is "$(sb-stack-version)" 2
	is "$(sb-log -n 1 | jq -r .cause)" write
	is "$(ls -A "$S/leases" "$S/staging" "$S/queue" | grep -v : | xargs)" ''
	sb-stack-show | sb-layer-check
}

@test "several edits, each in what the one before left, are one layer" {
	edits beta one false 'one' two false $'two\ngamma' $'three\nfour\n' | sb-file-edit f >got
	same got <(echo '{"type":"edit","path":"f","edits_applied":3,"replacements":3,"bytes_written":18}')
	is "$(head_cat f)" $'alpha\nthree\nfour'
	is "$(sb-stack-version)" 2
}

@test "replace_all replaces each; without it a string must be unique" {
	edits x y | refused 100 invalid_request 'edits[0]: old_string is not unique in three: found 3 times, give more of what is around it or set replace_all: x' '' three
	edits x yy true | sb-file-edit three >got
	same got <(echo '{"type":"edit","path":"three","edits_applied":1,"replacements":3,"bytes_written":9}')
	is "$(head_cat three)" 'yy yy yy'
	# null is as if it were not there.
	echo '[{"old_string":"yy yy yy","new_string":"z","replace_all":null}]' | sb-file-edit three
}

@test "all edits are made or none" {
	edits alpha ALPHA false no x | refused 100 invalid_request 'edits[1]: old_string not found in f: no' '' f
	is "$(head_cat f)" "$(cat ws/f)"
}

@test "edits that cannot be are refused before the file is looked at" {
	echo '[]' | refused 100 invalid_request 'edits must not be empty' '' no
	edits '' x | refused 100 invalid_request 'edits[0]: old_string not found in no: it is empty' '' no
	edits a b false same same | refused 100 invalid_request 'edits[1] changes nothing: old_string and new_string are the same' '' no
	echo '{}' | refused 100 invalid_request 'edits must be an array' '' f
	echo '"x"' | refused 100 invalid_request 'edits must be an array' '' f
	echo '"{}"' | refused 100 invalid_request 'edits must be an array' '' f
	echo null | refused 100 invalid_request 'edits must be an array' '' f
	echo '[1]' | refused 100 invalid_request 'edits[0] must be an object' '' f
	echo '[{}]' | refused 100 invalid_request 'edits[0].old_string must be a string' '' f
	echo '[{"old_string":"a","new_string":"b"},{"old_string":1,"new_string":"b"}]' |
	    refused 100 invalid_request 'edits[1].old_string must be a string' '' f
	echo '[{"old_string":"a"}]' | refused 100 invalid_request 'edits[0].new_string must be a string' '' f
	echo '[{"old_string":"a","new_string":null}]' | refused 100 invalid_request 'edits[0].new_string must be a string' '' f
	echo '[{"old_string":"a","new_string":"b","replace_all":"yes"}]' |
	    refused 100 invalid_request 'edits[0].replace_all must be a boolean' '' f
	printf '[{"old_string":"a","new_string":"b"}' | refused 100 invalid_request "edits are not JSON, at byte 36: ',' or a closing bracket expected" '' f
	printf '' | refused 100 invalid_request 'edits are not JSON, at byte 0: value expected' '' f
	printf '[{"old_string":"\xff","new_string":"b"}]' | refused 100 invalid_request 'edits are not JSON, at byte 0: not UTF-8' '' f
	printf '[{"old_string":"a","new_string":"b"}] x' | refused 100 invalid_request 'edits are not JSON, at byte 38: bytes after the value' '' f
}

@test "a string that holds the array is as good, with blanks around both" {
	edits beta BETA | jq -R . | sed 's/^/ /' | sb-file-edit f
	is "$(head_cat f)" $'alpha\nBETA\ngamma'
	printf '\n [ {"old_string" : "BETA" , "new_string":"\\u00e9\\ud83d\\ude00" , "more": [1] } ]\t\n' | sb-file-edit f
	is "$(head_cat f)" $'alpha\né😀\ngamma'
}

@test "a file that is not there, and what is none" {
	edits a b | refused 1 not_found 'file not found: no' '"path":"no"' no
	edits a b | refused 1 not_found 'file not found: f/x' '"path":"f/x"' f/x
	edits a b | refused 100 invalid_request 'not a regular file: d (it is a directory)' '' d
	edits a b | refused 100 invalid_request 'not a regular file: link (it is a symbolic link)' '' link
	edits a b | refused 100 invalid_request 'invalid path: ../x' '' ../x
	run -1 --separate-stderr sb-file-edit -s nope f < <(edits a b)
	is "$output" '{"error":{"kind":"not_found","message":"workspace session not found: nope","details":{"workspace_session_id":"nope"}}}'
}

@test "binary and too large files are refused; what is large is not read" {
	put bin 'a\xff'
	head -c 4194304 /dev/zero | tr '\0' a | sb-file-write large
	edits b c | refused 100 invalid_request 'edits[0]: old_string not found in large: b' '' large
	head -c 4194305 /dev/zero | tr '\0' a | sb-file-write large
	edits a b | refused 100 invalid_request 'file is not valid UTF-8: bin' '' bin
	edits a b | refused 100 invalid_request 'file is too large to edit: large has 4194305 bytes, the maximum is 4194304' '' large
	echo 'runtime.file.max_edit_bytes 16' >"$SB_STORE/conf"
	edits a b | refused 100 invalid_request 'file is too large to edit: f has 17 bytes, the maximum is 16' '' f
}

@test "what an edit makes has a limit" {
	put f aaaaa
	{ printf '[{"old_string":"a","new_string":"'; head -c 14000000 /dev/zero | tr '\0' b; printf '","replace_all":true}]'; } |
	    refused 100 invalid_request 'edits[0]: f would be too large, with more than 67108864 bytes' '' f
	is "$(head_cat f)" aaaaa
}

@test "untouched bytes stay: line ends, lone CR, byte order mark, last line" {
	edits c C | sb-file-edit mixed
	head_cat mixed >is
	same is <(printf 'a\r\nb\nC')
	put cr 'a\rstill a\nb\n'
	edits b B | sb-file-edit cr
	head_cat cr >is
	same is <(printf 'a\rstill a\nB\n')
	put bom '\xef\xbb\xbfone\r\ntwo\r\n'
	edits one 1 | sb-file-edit bom
	head_cat bom >is
	same is <(printf '\xef\xbb\xbf1\r\ntwo\r\n')
	put nul 'a\0b\n'
	edits b B | sb-file-edit nul
	head_cat nul >is
	same is <(printf 'a\0B\n')
}

@test "strings are found whatever ends lines, and new lines end as the others" {
	put crlf 'one\r\ntwo\r\nthree\r\n'
	edits $'one\ntwo' $'one\nnew\ntwo' | sb-file-edit crlf >got
	head_cat crlf >is
	same is <(printf 'one\r\nnew\r\ntwo\r\nthree\r\n')
	is "$(jq .bytes_written got)" "$(stat -c %s is)"
	put cr 'one\rtwo\r'
	edits $'one\r\ntwo' $'1\r\n2\r\n3' | sb-file-edit cr
	head_cat cr >is
	same is <(printf '1\r2\r3\r')
	# Context lines keep theirs, in a file that has both.
	put both 'one\r\ntwo\nthree\nfour\n'
	edits $'one\ntwo\nthree' $'one\nTWO\nthree' | sb-file-edit both
	head_cat both >is
	same is <(printf 'one\r\nTWO\nthree\nfour\n')
}

@test "what changes nothing is refused, but may be part of a batch" {
	put crlf 'alpha\r\nbeta\r\n'
	edits $'beta\r\n' $'beta\n' | refused 100 invalid_request 'edits change nothing in crlf' '' crlf
	edits alpha beta2 false beta2 alpha | refused 100 invalid_request 'edits change nothing in crlf' '' crlf
	edits $'beta\r\n' $'beta\n' false alpha ALPHA | sb-file-edit crlf >got
	is "$(jq .replacements got)" 2
	head_cat crlf >is
	same is <(printf 'ALPHA\r\nbeta\r\n')
}

@test "a long string is cut in the message" {
	long=$(printf 'é%.0s' {1..70})
	edits "$long" x | refused 100 invalid_request "edits[0]: old_string not found in f: $(printf 'é%.0s' {1..60})…" '' f
	edits "${long:0:60}" x | refused 100 invalid_request "edits[0]: old_string not found in f: ${long:0:60}" '' f
}

@test "owners: the edited lines are the editor's" {
	edits beta BETA | sb-file-edit -a operation:r9 f
	sb-file-blame f | jq -c '[.ranges[] | [.start_line, .line_count, .owner]]' >got
	same got <(echo '[[1,1,"original"],[2,1,"operation:r9"],[3,1,"original"]]')
	edits gamma $'G\ndelta' | sb-file-edit -a operation:r10 f
	sb-file-blame f | jq -c '[.ranges[] | [.start_line, .line_count, .owner]]' >got
	same got <(echo '[[1,1,"original"],[2,1,"operation:r9"],[3,2,"operation:r10"]]')
}

@test "mode and xattrs stay" {
	need xattr
	mkdir up
	printf 'a\n' >up/x
	chmod 750 up/x
	setfattr -n user.k -v v up/x
	sb-layer-scan up | sb-layer-commit -C up >id
	{ cat id; sb-stack-show; } | sb-stack-swap 1
	edits a b | sb-file-edit x
	f=$S/layers/$(sb-stack-show | head -n 1)/x
	is "$(cat "$f") $(stat -c %a "$f") $(getfattr -n user.k --only-values --absolute-names "$f")" 'b 750 v'
}

@test "names that cannot be published are refused" {
	run -2 --separate-stderr sb-file-edit .wh.x < <(edits a b)
	has "$output" '"reason":"protected_path"'
	has "$output" 'ProtectedPath'
	has "$output" '.wh.x'
}

@test "sixteen edits at once of one file: none is lost" {
	seq -f 'line %02g.' 16 | sb-file-write n
	for i in $(seq -w 16); do
		edits "line $i." "edited $i." | sb-file-edit -t 120000 -a "e$i" n >/dev/null 3>&- &
	done
	wait
	is "$(head_cat n)" "$(seq -f 'edited %02g.' 16)"
	is "$(sb-stack-version)" 18
	is "$(sb-file-blame n | jq -r '[.ranges[].owner] | join(" ")')" "$(seq -w 16 | sed s/^/e/ | xargs)"
}

@test "too many bytes of edits are refused" {
	{ printf '[{"old_string":"'; head -c 16777216 /dev/zero | tr '\0' a; printf '","new_string":"b"}]'; } |
	    refused 100 invalid_request 'edits have more than 16777216 bytes' '' f
}

@test "a full disk, a closed stdout, a closed stdin and a missing store are 111" {
	edits beta 1 >e
	run -111 sh -c 'sb-file-edit f <e >/dev/full'
	is "$(head_cat f)" $'alpha\n1\ngamma'
	run -111 sh -c 'sb-file-edit f <&-'
	edits 1 2 >e
	run -111 sh -c 'sb-file-edit f <e >&-'
	is "$(head_cat f)" $'alpha\n2\ngamma'
	SB_STORE=$T/none run -111 sb-file-edit f <e
	SB_STORE='' run -100 sb-file-edit f <e
}
