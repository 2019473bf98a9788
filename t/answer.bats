# SPDX-License-Identifier: MIT
# What is wrong with a request is an object on stdout, and a line on stderr.
bats_require_minimum_version 1.5.0
load lib

# refused CODE KIND TEXT PROG...
refused() {
	local code=$1 kind=$2 text=$3 rc=0
	shift 3
	"$@" >out 2>err </dev/null 3>&- || rc=$?
	is "$rc" "$code"
	jq -e . out >/dev/null || fail "no object: $*: $(cat out err)"
	is "$(wc -l <out)" 1
	is "$(jq -r .error.kind out)" "$kind"
	has "$(jq -r .error.message out)" "$text"
	has "$(cat err)" "$text"
	is "$(wc -l <err)" 1
}

# each KIND TEXT: of every command that answers with an object.
each() {
	local code=$1 kind=$2 text=$3 j=namespace_execution_1
	set -- "sb-exec true" "sb-pty-feed $j" "sb-pty-read $j" "sb-job-wait $j" \
	    "sb-publish s" "sb-session-end s" "sb-session-new -v" \
	    "sb-file-read f" "sb-file-write f" \
	    "sb-file-list" "sb-file-blame f"
	for c; do
		# shellcheck disable=SC2086 # words
		refused "$code" "$kind" "$text" $c
	done
}

@test "a store that is not named, not absolute, not there" {
	need jq
	unset SB_STORE
	each 100 invalid_request "SB_STORE is not set"
	SB_STORE=store each 100 invalid_request "SB_STORE is not an absolute path: store"
	SB_STORE=$T/no each 111 internal_error "unable to open"
}

@test "a damaged configuration" {
	need jq
	mkdir -p ws; make_store
	echo nonsense 1 >"$SB_STORE/conf"
	for c in "sb-exec true" "sb-publish s"; do
		# shellcheck disable=SC2086 # words
		refused 100 invalid_request nonsense $c
	done
	refused 100 operation_failed nonsense sb-file-read f
}

@test "arguments of options, which are named" {
	need jq
	mkdir -p ws; make_store
	j=namespace_execution_1
	for c in "t sb-exec -t x true" "y sb-exec -y -1 true" "w sb-exec -w 0x0 true" \
	    "T sb-exec -T a/b true" "3 sb-exec -3 9 true" "y sb-pty-feed -y x $j" \
	    "w sb-pty-feed -w x $j" "n sb-pty-read -n x $j" "o sb-pty-read -o x $j" \
	    "t sb-job-wait -t x $j" "t sb-publish -t x s" "g sb-publish -g 1 s" \
	    "t sb-session-end -t x s" "t sb-file-read -t x f" "l sb-file-read -l x f" \
	    "o sb-file-read -o x f" "t sb-file-write -t x f" "t sb-file-edit -t x f" \
	    "l sb-file-list -l x" "t sb-file-list -t x" "t sb-file-blame -t x f"; do
		# shellcheck disable=SC2086 # words
		refused 100 invalid_request "option -${c%% *} takes" ${c#* }
	done
	refused 100 invalid_request "not NAME=VALUE: x" sb-exec -e x true
	# A wrong call is answered by the usage.
	run -100 --separate-stderr sb-exec -Z
	is "$output" ""
	# shellcheck disable=SC2154 # bats sets it
	has "$stderr" usage:
}

@test "what is not there" {
	need jq
	mkdir -p ws; make_store
	refused 1 operation_failed "session not found" sb-publish nope
	refused 1 operation_failed "session not found" sb-session-end nope
	refused 1 operation_failed "session not found" sb-exec -s nope true
	refused 1 operation_failed "command not found" sb-job-wait namespace_execution_7
	refused 1 operation_failed "command not found" sb-pty-feed namespace_execution_7
}
