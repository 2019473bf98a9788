# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	mkdir -p ws/d
	printf 'host\nport:1\ndebug:0\n' >ws/cfg
	printf 'never touched\n' >ws/d/base
	make_store
	S=$SB_STORE/layer-stack
	B=B000001-base
}

# publish BLAME: commits what is in up/ (made anew) with the blame file BLAME
# (printf, # standing for NUL; none without), and swaps it in.
publish() {
	local id
	id=$(sb-layer-scan up | sb-layer-commit -C up) || return
	[ $# = 0 ] || printf "$1" | tr '#' '\0' >"$S/meta/$id.blame"
	{ echo "$id"; sb-stack-show; } | sb-stack-swap "$(sb-stack-version)" >/dev/null
	rm -rf up
	mkdir up
	echo "$id" >last
}

# Is nothing known of $1?
unknown() {
	local message="no auditability record for path: $1"
	run -1 --separate-stderr sb-file-blame -- "$1"
	is "$output" "{\"error\":{\"kind\":\"not_found\",\"message\":\"$message\",\"details\":{\"path\":\"$1\"}}}"
	has "$stderr " "${message% }"
	is "$(ls -A "$S/leases")" ""
}

# range START COUNT OWNER, or several of them, as the object of path $1.
ranges() {
	local path=$1 sep=
	shift
	printf '{"path":"%s","ranges":[' "$path"
	for (( ; $#; )); do
		printf '%s{"start_line":%d,"line_count":%d,"owner":"%s"}' "$sep" "$1" "$2" "$3"
		sep=,
		shift 3
	done
	printf ']}\n'
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-file-blame
	run -100 sb-file-blame a b
	run -100 sb-file-blame -x a
	run -100 sb-file-blame -t x a
	run -0 sb-file-blame -h
	is "$output" "usage: sb-file-blame [-s session] [-t ms] path"
}

@test "ranges tile the file; one owner after the other" {
	mkdir up
	printf 'host\nport:2\ndebug:0\n' >up/cfg
	publish '1 original\n1 workspace_session:s3\n1 original\tcfg##'
	sb-file-blame cfg >got
	same got <(ranges cfg 1 1 original 2 1 workspace_session:s3 3 1 original)
	printf 'HOST\nport:2\ndebug:1' >up/cfg
	publish '1 operation:r9\n1 workspace_session:s3\n1 a "b"\\ä\tcfg##'
	sb-file-blame cfg >got
	same got <(ranges cfg 1 1 operation:r9 2 1 workspace_session:s3 3 1 'a \"b\"\\ä')
	[ -z "$(ls -A "$S/leases")" ]
}

@test "the path may be written in several ways" {
	mkdir -p up/d
	echo x >up/d/f
	publish '1 a\td/f##'
	ranges d/f 1 1 a >want
	for path in d/f ./d/f d//f d/./f .//d/f/ d/f/. "$T/ws/d/f"; do
		sb-file-blame "$path" >got
		same got want
	done
}

@test "what nothing published is not found, by its name" {
	local path
	mkdir up
	echo x >up/f
	publish '1 a\tf##'
	for path in cfg d/base no d d/no cfg/x f/x '' . .. ../f d/../f /f / /etc/passwd "$T/ws" "$T/ws/../f"; do
		unknown "$path"
	done
	path=$(printf '%0256d' 0)
	unknown "$path"
	path=$(printf 'd/%.0s' {1..3000})x
	run -1 --separate-stderr sb-file-blame "$path"
	# A name that is no text.
	run -1 --separate-stderr sb-file-blame $'\xff'
	is "$output" '{"error":{"kind":"not_found","message":"no auditability record for path: \ufffd","details":{"path_b64":"/w=="}}}'
}

@test "links, directories and what is deleted are not found" {
	mkdir -p up/dir
	ln -s f up/link
	echo x >up/f
	publish '1 a\tf##'
	unknown link
	unknown dir
	records "$(rec_x f)" | sb-layer-commit >id
	printf '\0' >"$S/meta/$(cat id).blame"
	{ cat id; sb-stack-show; } | sb-stack-swap 2
	unknown f
	# Made again it is the new one's.
	printf 'x\ny\n' >up/f
	publish '2 b\tf##'
	sb-file-blame f >got
	same got <(ranges f 1 2 b)
}

@test "a change of the mode keeps the owners, in a file of the base too" {
	mkdir up
	echo x >up/f
	publish '1 a\tf##'
	printf 'x\n' >up/f
	chmod 755 up/f
	cp ws/cfg up/cfg
	chmod 755 up/cfg
	publish '#'
	sb-file-blame f >got
	same got <(ranges f 1 1 a)
	sb-file-blame cfg >got
	same got <(ranges cfg 1 3 original)
	unknown d/base
}

@test "one owner for the whole is one range over the lines that there are" {
	mkdir up
	printf 'a\nb\nc' >up/f
	printf 'a\0\n\nb' >up/binary
	: >up/empty
	publish '* a\tbinary#* b\tempty#* c\tf##'
	sb-file-blame f >got
	same got <(ranges f 1 3 c)
	sb-file-blame binary >got
	same got <(ranges binary 1 3 a)
	sb-file-blame empty >got
	same got <(ranges empty)
}

@test "a layer without any blame is nobody's, and so is what others say below it" {
	mkdir up
	echo x >up/f
	publish '1 a\tf##'
	printf 'x\ny\n' >up/f
	publish
	sb-file-blame f >got
	same got <(ranges f 1 2 unknown)
	# A store that is older than all this.
	rm -r "$S/meta"
	sb-file-blame f >got
	same got <(ranges f 1 2 unknown)
}

@test "names with blanks, newlines, dashes and other bytes" {
	mkdir up
	for f in ' ' -n $'a\nb\tc' $'\xff'; do echo x >"up/$f"; done
	publish '1 a\t #1 a\t-n#1 a\ta\nb\tc#1 a\t\xff##'
	sb-file-blame ' ' >got
	same got <(ranges ' ' 1 1 a)
	sb-file-blame -- -n >got
	same got <(ranges -n 1 1 a)
	sb-file-blame $'a\nb\tc' >got
	same got <(ranges 'a\nb\tc' 1 1 a)
	sb-file-blame $'\xff' >got
	same got <(printf '%s\n' '{"path_b64":"/w==","ranges":[{"start_line":1,"line_count":1,"owner":"a"}]}')
}

@test "rollback answers as before" {
	mkdir up
	echo x >up/f
	publish '1 a\tf##'
	sb-stack-show >head
	echo y >up/f
	publish '1 b\tf##'
	ranges f 1 1 b >want
	sb-file-blame f >got
	same got want
	sb-stack-swap 3 <head
	sb-file-blame f >got
	same got <(ranges f 1 1 a)
	ids $B | sb-stack-swap 4
	unknown f
}

# damaged MESSAGE
damaged() {
	run -111 --separate-stderr sb-file-blame f
	is "$output" "{\"error\":{\"kind\":\"operation_failed\",\"message\":\"$1\",\"details\":{}}}"
	is "$stderr" "sb-file-blame: fatal: $1"
	is "$(ls -A "$S/leases")" ""
}

@test "damage is 111 and named, and no range is printed" {
	local text
	mkdir up
	printf 'x\ny\n' >up/f
	publish '2 a\tf##'
	f=meta/$(cat last).blame
	for text in '' '2 a\tf#' '2 a f##' '0 a\tf##'; do
		printf "$text" | tr '#' '\0' >"$S/$f"
		damaged "$f is damaged"
	done
	printf '3 a\tf\0\0' >"$S/$f"
	damaged 'what is recorded of f is of another text: it has 2 lines, recorded are 3'
	rm "$S/$f"
	ln -s /etc/passwd "$S/$f"
	damaged "unable to read $f: Too many levels of symbolic links"
}

@test "an unknown session is not_found, an empty one is none" {
	mkdir up
	echo x >up/f
	publish '1 a\tf##'
	for s in no ../x; do
		run -1 --separate-stderr sb-file-blame -s $s f
		is "$output" "{\"error\":{\"kind\":\"not_found\",\"message\":\"workspace session not found: $s\",\"details\":{\"workspace_session_id\":\"$s\"}}}"
	done
	sb-file-blame -s '' f >got
	same got <(ranges f 1 1 a)
}

@test "the layers are held while they are read" {
	need strace
	local id pid
	mkdir up
	echo x >up/f
	publish '1 a\tf##'
	id=$(cat last)
	# Held up again and again: the layers, the blame and the file are
	# opened when the lease is there.
	strace -qq -o trace -e trace=openat2 -e inject=openat2:delay_enter=600000 \
	    sb-file-blame f >got 3>&- &
	pid=$!
	for _ in {1..500}; do
		[ -z "$(ls "$S/leases")" ] || break
		sleep 0.01
	done
	ids $B | sb-stack-swap 2
	sb-stack-unused | sb-layer-rm >removed
	same removed <(ids0)
	wait $pid
	same got <(ranges f 1 1 a)
	sb-stack-unused | sb-layer-rm >removed
	same removed <(ids "$id")
}

@test "the answer is JSON" {
	need jq
	mkdir up
	printf 'a\nb\n' >up/f
	publish '1 a"b\n1 c\tf##'
	is "$(sb-file-blame f | jq -r '.ranges[] | [.start_line, .line_count, .owner] | @tsv')" \
	    "$(printf '1\t1\ta"b\n2\t1\tc')"
}

@test "a full disk, a closed stdout and a missing store are 111" {
	mkdir up
	echo x >up/f
	publish '1 a\tf##'
	run -111 sh -c 'sb-file-blame f >/dev/full'
	run -111 sh -c 'sb-file-blame no >/dev/full'
	run -111 sh -c 'sb-file-blame f >&-'
	is "$(ls -A "$S/leases")" ""
	SB_STORE=$T/none run -111 sb-file-blame f
	SB_STORE='' run -100 sb-file-blame f
}
