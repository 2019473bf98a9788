# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	mkdir -p ws/d
	printf 'line1\nline2\nline3\n' >ws/a.txt
	make_store
	S=$SB_STORE/layer-stack
}

# publish: commits what is in up/ (made anew), and swaps it in.
publish() {
	local id
	id=$(sb-layer-scan up | sb-layer-commit -C up) || return
	{ echo "$id"; sb-stack-show; } | sb-stack-swap "$(sb-stack-version)" >/dev/null
	rm -rf up
	mkdir up
}

# answer PATH CONTENT START NUM LINES READ BYTES NEXT
answer() {
	local truncated=true
	[ "$8" != null ] || truncated=false
	printf '{"path":"%s","content":"%s","start_line":%s,"num_lines":%d,"total_lines":%d,"bytes_read":%d,"total_bytes":%d,"next_offset":%s,"truncated":%s}\n' \
	    "$1" "$2" "$3" "$4" "$5" "$6" "$7" "$8" "$truncated"
}

# refused CODE KIND MESSAGE DETAILS ARG…
refused() {
	local code=$1 kind=$2 message=$3 details=$4
	shift 4
	run "-$code" --separate-stderr sb-file-read "$@"
	is "$output" "{\"error\":{\"kind\":\"$kind\",\"message\":\"$message\",\"details\":{$details}}}"
	has "$stderr" 'sb-file-read: fatal: '
	is "$(ls -A "$S/leases")" ""
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-file-read
	run -100 sb-file-read a b
	run -100 sb-file-read -x a
	run -100 sb-file-read -o -1 a
	run -100 sb-file-read -l x a
	run -100 sb-file-read -t 1.5 a
	run -0 sb-file-read -h
	is "$output" "usage: sb-file-read [-c bytes] [-l limit] [-o offset] [-s session] [-t ms] path"
}

@test "a whole file: content without its last newline, and all the figures" {
	sb-file-read a.txt >got
	same got <(answer a.txt 'line1\nline2\nline3' 1 3 3 17 18 null)
	is "$(ls -A "$S/leases")" ""
}

@test "a window of lines, and where the next one begins" {
	sb-file-read -o 2 -l 1 a.txt >got
	same got <(answer a.txt line2 2 1 3 5 18 3)
	sb-file-read -o 2 -l 2 a.txt >got
	same got <(answer a.txt 'line2\nline3' 2 2 3 11 18 null)
	for o in 0 1; do
		sb-file-read -o $o -l 1 a.txt >got
		same got <(answer a.txt line1 1 1 3 5 18 2)
	done
}

@test "beyond the last line there is nothing, which is no error" {
	sb-file-read -o 99 a.txt >got
	same got <(answer a.txt '' 99 0 3 0 18 null)
	sb-file-read -o 18446744073709551615 a.txt >got
	same got <(answer a.txt '' 18446744073709551615 0 3 0 18 null)
}

@test "a file that is not there is not_found" {
	refused 1 not_found 'file not found: no' '"path":"no"' no
	refused 1 not_found 'file not found: d/no/x' '"path":"d/no/x"' d/no/x
	# Below a file there is nothing either, for a reader of layers.
	refused 1 not_found 'file not found: a.txt/x' '"path":"a.txt/x"' a.txt/x
}

@test "a byte order mark is left out; CRLF and CR end lines" {
	mkdir up
	printf '\xef\xbb\xbfa\r\nb\rc\n' >up/mixed
	: >up/empty
	echo >up/lf
	publish
	sb-file-read mixed >got
	same got <(answer mixed 'a\nb\nc' 1 3 3 5 10 null)
	sb-file-read empty >got
	same got <(answer empty '' 1 0 0 0 0 null)
	sb-file-read lf >got
	same got <(answer lf '' 1 1 1 0 1 null)
}

@test "what is no UTF-8 is refused, wherever it is; NUL is a character" {
	mkdir up
	printf 'fine\nnot \xff\n' >up/bad
	{ yes fine | head -n 50000; printf '\xe2\x82'; } >up/late
	printf 'a\0b\n' >up/nul
	publish
	refused 100 invalid_request 'file is not valid UTF-8: bad' '' bad
	refused 100 invalid_request 'file is not valid UTF-8: bad' '' -l 1 bad
	refused 100 invalid_request 'file is not valid UTF-8: late' '' -l 1 late
	sb-file-read nul >got
	same got <(answer nul 'a\u0000b' 1 1 1 3 4 null)
}

@test "few lines of a large file" {
	mkdir up
	seq 5000 >up/large
	publish
	sb-file-read -l 5 large >got
	same got <(answer large '1\n2\n3\n4\n5' 1 5 5000 9 23893 6)
	sb-file-read large | jq -c '[.num_lines, .next_offset, .total_lines]' >got
	same got <(echo '[2000,2001,5000]')
}

@test "too many bytes in the window are refused; the setting says how many" {
	mkdir up
	head -c 300000 /dev/zero | tr '\0' x >up/long
	publish
	refused 100 invalid_request 'selected read output exceeds the maximum of 262144 bytes' '' long
	sb-file-read -o 2 long >got
	same got <(answer long '' 2 0 1 0 300000 null)
	echo 'runtime.file.max_output_bytes 300000' >"$SB_STORE/conf"
	sb-file-read long | jq .bytes_read >got
	same got <(echo 300000)
	echo 'runtime.file.max_output_bytes 16' >"$SB_STORE/conf"
	refused 100 invalid_request 'selected read output exceeds the maximum of 16 bytes' '' a.txt
	echo 'runtime.file.read_lines_default 2' >"$SB_STORE/conf"
	sb-file-read a.txt >got
	same got <(answer a.txt 'line1\nline2' 1 2 3 11 18 3)
	echo 'runtime.file.read_lines_default 0' >"$SB_STORE/conf"
	run -100 --separate-stderr sb-file-read a.txt
	has "$output" '"kind":"operation_failed"'
	has "$stderr" 'conf: line 1: runtime.file.read_lines_default: 0 is no number from 1'
}

@test "limits out of their range are refused" {
	local l
	for l in 0 2001 18446744073709551615; do
		refused 100 invalid_request 'limit must be between 1 and 2000' '' -l $l a.txt
	done
	sb-file-read -l 2000 a.txt >got
	same got <(answer a.txt 'line1\nline2\nline3' 1 3 3 17 18 null)
}

@test "directories, links and what is behind links are no regular files" {
	mkdir -p up/real "$T/outside"
	echo secret >"$T/outside/f"
	ln -s a.txt up/link
	ln -s real up/dirlink
	ln -s "$T/outside" up/out
	echo x >up/real/f
	publish
	refused 100 invalid_request 'not a regular file: d (it is a directory)' '' d
	refused 100 invalid_request 'not a regular file: link (it is a symbolic link)' '' link
	for path in dirlink/f out/f; do
		refused 100 invalid_request "not a regular file: $path (a directory on the way is a symbolic link)" '' $path
	done
}

@test "a path may be absolute below the workspace; others are invalid" {
	local path
	for path in "$T/ws/a.txt" ./a.txt .//a.txt "$T//ws/./a.txt" a.txt/ "/$T/ws//a.txt"; do
		sb-file-read "$path" >got
		same got <(answer a.txt 'line1\nline2\nline3' 1 3 3 17 18 null)
	done
	for path in '' . / /etc/passwd ../x d/../a.txt "$T/ws" "$T/ws/" "$T/wsx" "$T/ws/../ws/a.txt" "$T/ws/d/../../../etc/passwd"; do
		refused 100 invalid_request "invalid path: $path" '' "$path"
	done
	path=$(printf '%0256d' 0)
	refused 100 invalid_request "invalid path: d/$path" '' "d/$path"
	path=$(printf 'd/%.0s' {1..2100})x
	refused 100 invalid_request "invalid path: $path" '' "$path"
}

@test "names keep their bytes: backslashes, blanks, newlines, dashes, others" {
	local f
	mkdir -p up/a
	for f in 'a\b' ' lead' 'trail ' $'a\nb\tc' -n $'\xff'; do printf "%s\n" "$f" | tr -d '\n\t\377' >"up/$f"; done
	echo slash >up/a/b
	publish
	sb-file-read 'a\b' >got
	same got <(answer 'a\\b' 'a\\b' 1 1 1 3 3 null)
	sb-file-read ' lead' >got
	same got <(answer ' lead' ' lead' 1 1 1 5 5 null)
	sb-file-read 'trail ' >got
	same got <(answer 'trail ' 'trail ' 1 1 1 6 6 null)
	sb-file-read $'a\nb\tc' >got
	same got <(answer 'a\nb\tc' abc 1 1 1 3 3 null)
	sb-file-read -- -n >got
	same got <(answer -n -n 1 1 1 2 2 null)
	sb-file-read $'\xff' >got
	same got <(answer '' '' 1 0 0 0 0 null | sed 's!"path":""!"path_b64":"/w=="!')
	run -1 --separate-stderr sb-file-read $'\xfe'
	is "$output" '{"error":{"kind":"not_found","message":"file not found: \ufffd","details":{"path_b64":"/g=="}}}'
}

@test "what layers hide is not found, what they show is" {
	mkdir -p up/d
	echo x >up/d/f
	publish
	records "$(rec_x a.txt)" | sb-layer-commit >id
	{ cat id; sb-stack-show; } | sb-stack-swap "$(sb-stack-version)" >/dev/null
	refused 1 not_found 'file not found: a.txt' '"path":"a.txt"' a.txt
	sb-file-read d/f >got
	same got <(answer d/f x 1 1 1 1 2 null)
}

@test "an unknown session is not_found, an empty one is none" {
	refused 1 not_found 'workspace session not found: no' '"workspace_session_id":"no"' -s no a.txt
	refused 1 not_found 'workspace session not found: ../x' '"workspace_session_id":"../x"' -s ../x a.txt
	sb-file-read -s '' a.txt >got
	same got <(answer a.txt 'line1\nline2\nline3' 1 3 3 17 18 null)
}

@test "the layers are held while they are read" {
	need strace
	local id pid
	mkdir up
	echo x >up/f
	publish
	id=$(sb-stack-show | head -n 1)
	strace -qq -o trace -e trace=openat2 -e inject=openat2:delay_enter=600000 \
	    sb-file-read f >got 3>&- &
	pid=$!
	for _ in {1..500}; do
		[ -z "$(ls "$S/leases")" ] || break
		sleep 0.01
	done
	ids B000001-base | sb-stack-swap 2
	sb-stack-unused | sb-layer-rm >removed
	same removed <(ids0)
	wait $pid
	same got <(answer f x 1 1 1 1 2 null)
	sb-stack-unused | sb-layer-rm >removed
	same removed <(ids "$id")
}

@test "killed at any point it leaves at most a dead lease" {
	need strace
	local n=0 call
	for call in mkdirat openat renameat2 unlinkat; do
		for ((n = 1; ; n++)); do
			kill_at $call $n sb-file-read a.txt >got 2>err && break
			[ ! -s got ] || same got <(answer a.txt 'line1\nline2\nline3' 1 3 3 17 18 null)
		done
	done
	sb-stack-unused | sb-layer-rm
	is "$(ls -A "$S/leases")" ""
}

@test "a damaged manifest, a missing layer and a store without a base say so" {
	mkdir up
	echo x >up/f
	publish
	mv "$S/layers/$(sb-stack-show | head -n 1)" away
	run -111 --separate-stderr sb-file-read f
	has "$output" '"kind":"operation_failed"'
	has "$stderr" "unable to open layer $(sb-stack-show | head -n 1)"
	echo '{' >"$S/manifest.json"
	run -111 --separate-stderr sb-file-read f
	has "$output" '"kind":"operation_failed"'
	has "$stderr" "manifest.json"
	SB_STORE=$T/new
	sb-store-init
	run -100 --separate-stderr sb-file-read f
	has "$stderr" "the store has no base"
}

@test "a full disk, a closed stdout and a missing store are 111" {
	run -111 sh -c 'sb-file-read a.txt >/dev/full'
	run -111 sh -c 'sb-file-read no >/dev/full'
	run -111 sh -c 'sb-file-read a.txt >&-'
	is "$(ls -A "$S/leases")" ""
	SB_STORE=$T/none run -111 sb-file-read a.txt
	SB_STORE='' run -100 sb-file-read a.txt
}

@test "head is read where no lease can be written, with the stack locked meanwhile" {
	need strace jq
	is "$(fault_at mkdirat 1..9 ENOSPC sb-file-read a.txt | jq -r .num_lines)" 3
	is "$(fault_at mkdirat 1..9 EROFS sb-file-read a.txt | jq -r .num_lines)" 3
	run -111 fault_at mkdirat 1..9 EIO sb-file-read a.txt
	run -111 --separate-stderr fault_at mkdirat 1..9 ENOSPC sb-file-write a.txt <base.hash
	has "$stderr" "No space left"
	sb-file-read a.txt >out
}

@test "-c: whole lines as far as they fit as JSON, and where the others begin" {
	need jq
	seq -f 'line "%g"' 1000 >ws/many
	{ head -c 300000 /dev/zero | tr '\0' x; echo; echo y; } >ws/long
	printf 'x%.0s' {1..300} >ws/one
	SB_STORE=$T/two
	make_store
	sb-file-read -c 1000 many >out
	is "$(jq '.content | tojson | length <= 1002' out)" true
	is "$(jq -c '[.num_lines, .next_offset, .truncated, .total_lines, (.content | split("\n") | length), .bytes_read == (.content | length)]' out)" \
	    '[77,78,true,1000,77,true]'
	# All of it in such pieces.
	for ((at = 1; at != 0; at = $(jq '.next_offset // 0' out))); do
		sb-file-read -c 1000 -o $at many >out
		jq -r .content out
	done >all
	same all ws/many
	sb-file-read -c 100 -l 2 many >out
	is "$(jq -c '[.content, .next_offset]' out)" '["line \"1\"\nline \"2\"",3]'
	run -100 sb-file-read long
	sb-file-read -c 100 long >out
	is "$(jq -r .content out)" "$(printf 'x%.0s' {1..36})[... the rest of this line is cut ...]"
	is "$(jq -c '[.num_lines, .next_offset, .truncated, .line_cut]' out)" '[1,2,true,true]'
	sb-file-read -c 100 one >out
	is "$(jq -c '[.num_lines, .next_offset, .truncated, .line_cut]' out)" '[1,null,true,true]'
	run -100 sb-file-read -c 0 many
}
