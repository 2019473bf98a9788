# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	mkdir -p ws/sub/empty
	printf 'abcd' >ws/sub/a
	ln -s a ws/sub/link
	echo x >ws/file
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

root='{"path":"","entries":[{"name":"file","kind":"file","size":2},{"name":"sub","kind":"directory","size":null}],"truncated":false}'

# refused CODE KIND MESSAGE DETAILS ARG…
refused() {
	local code=$1 kind=$2 message=$3 details=$4
	shift 4
	run "-$code" --separate-stderr sb-file-list "$@"
	is "$output" "{\"error\":{\"kind\":\"$kind\",\"message\":\"$message\",\"details\":{$details}}}"
	is "$(ls -A "$S/leases")" ""
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-file-list a b
	run -100 sb-file-list -x
	run -100 sb-file-list -l x
	run -0 sb-file-list -h
	is "$output" "usage: sb-file-list [-l limit] [-s session] [-t ms] [path]"
}

@test "the root goes by several names" {
	local path
	sb-file-list >got
	same got <(echo "$root")
	for path in '' ' ' . / ./ "$T/ws" "$T/ws/" .//.; do
		sb-file-list "$path" >got
		same got <(echo "$root")
	done
	is "$(ls -A "$S/leases")" ""
}

@test "kinds and sizes, sorted" {
	local path
	for path in sub sub/ ./sub "$T/ws/sub"; do
		sb-file-list "$path" >got
		same got <(echo '{"path":"sub","entries":[{"name":"a","kind":"file","size":4},{"name":"empty","kind":"directory","size":null},{"name":"link","kind":"symlink","size":null}],"truncated":false}')
	done
	sb-file-list sub/empty >got
	same got <(echo '{"path":"sub/empty","entries":[],"truncated":false}')
}

@test "a fresh layer is seen, and what it deletes is not" {
	mkdir -p up/sub
	echo more >up/sub/b
	publish
	records "$(rec_x sub/a)" >stream
	mkdir -p up/sub
	{ printf '%s\0' "$(rec_d sub)"; cat stream; } | sb-layer-commit -C up >id
	{ cat id; sb-stack-show; } | sb-stack-swap "$(sb-stack-version)" >/dev/null
	sb-file-list sub | jq -r '.entries[].name' >got
	same got <(printf '%s\n' b empty link)
}

@test "below an opaque directory of the same layer everything is listed" {
	mkdir -p up/sub/deep
	echo x >up/sub/deep/f
	setfattr -n user.overlay.opaque -v y up/sub
	publish
	sb-file-list sub >got
	same got <(echo '{"path":"sub","entries":[{"name":"deep","kind":"directory","size":null}],"truncated":false}')
	sb-file-list sub/deep >got
	same got <(echo '{"path":"sub/deep","entries":[{"name":"f","kind":"file","size":2}],"truncated":false}')
}

@test "what is not there, is a file or a link, or lies outside" {
	mkdir -p "$T/outside" up
	ln -s "$T/outside" up/out
	ln -s sub up/in
	publish
	refused 1 not_found 'directory not found: no' '"path":"no"' no
	refused 1 not_found 'directory not found: file/x' '"path":"file/x"' file/x
	refused 100 invalid_request 'not a directory: file (it is a file)' '' file
	refused 100 invalid_request 'not a directory: sub/link (it is a symbolic link)' '' sub/link
	refused 100 invalid_request 'not a directory: out (it is a symbolic link)' '' out
	refused 100 invalid_request 'not a directory: in/empty (a directory on the way is a symbolic link)' '' in/empty
	refused 100 invalid_request 'invalid path: ../x' '' ../x
	refused 100 invalid_request 'invalid path: /etc' '' /etc
	refused 100 invalid_request "invalid path: $T/ws/../outside" '' "$T/ws/../outside"
	refused 1 not_found 'workspace session not found: no' '"workspace_session_id":"no"' -s no
}

@test "of many entries the first are printed" {
	mkdir -p up/many
	(cd up/many && seq -f %04.0f 2500 | xargs touch)
	publish
	sb-file-list -l 2 many >got
	same got <(echo '{"path":"many","entries":[{"name":"0001","kind":"file","size":0},{"name":"0002","kind":"file","size":0}],"truncated":true}')
	sb-file-list -l 99999 many | jq -c '[(.entries | length), .entries[-1].name, .truncated]' >got
	same got <(echo '[2000,"2000",true]')
	sb-file-list many | jq -c '[(.entries | length), .truncated]' >got
	same got <(echo '[2000,true]')
	echo 'runtime.file.max_list_entries 2500' >"$SB_STORE/conf"
	sb-file-list many | jq -c '[(.entries | length), .truncated]' >got
	same got <(echo '[2500,false]')
	refused 100 invalid_request 'limit must be at least 1' '' -l 0 many
}

@test "names keep their bytes" {
	mkdir -p up/n 'up/n/ '
	for f in -n $'a\nb' 'a\b' '"q"' $'\xff'; do : >"up/n/$f"; done
	: >'up/n/ /f'
	publish
	sb-file-list n >got
	same got <(printf '%s' '{"path":"n","entries":[{"name":" ","kind":"directory","size":null},' \
	    '{"name":"\"q\"","kind":"file","size":0},{"name":"-n","kind":"file","size":0},' \
	    '{"name":"a\nb","kind":"file","size":0},{"name":"a\\b","kind":"file","size":0},' \
	    '{"name_b64":"/w==","kind":"file","size":0}],"truncated":false}' $'\n')
	sb-file-list 'n/ ' | jq -r '.entries[].name' >got
	same got <(echo f)
}

@test "a full disk, a closed stdout and a missing store are 111" {
	run -111 sh -c 'sb-file-list >/dev/full'
	run -111 sh -c 'sb-file-list >&-'
	is "$(ls -A "$S/leases")" ""
	SB_STORE=$T/none run -111 sb-file-list
	SB_STORE='' run -100 sb-file-list
}
