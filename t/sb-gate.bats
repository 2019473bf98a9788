# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
# shellcheck disable=SC2154 # bats sets it
bats_require_minimum_version 1.5.0
load lib
load gate

# rows COMMAND: reads rows of standard input, each a request, TAB, an answer,
# where TOKEN stands for the token; runs COMMAND with each request.
rows() {
	local request want got n=0
	while IFS=$'\t' read -r request want; do
		[ -n "$request" ] || continue
		n=$((n + 1))
		got=$(printf '%s\n' "${request//TOKEN/$TOKEN}" | "$@") || fail "exit $?: $request" || return
		[ "$got" = "$want" ] || fail "request: $request" "answer:  $got" "wanted:  $want" || return
	done
	[ $n -gt 0 ]
}

@test "wrong arguments are 100, no operations 111, a relative SB_RUN 100" {
	run -100 sb-gate
	run -100 sb-gate a b
	run -100 sb-gate -c x "$ops"
	run -100 sb-gate -m 0 "$ops"
	run -100 sb-gate -m 16777217 "$ops"
	run -100 sb-gate -t 0 "$ops"
	run -100 sb-gate -b a/b "$ops"
	run -111 sb-gate "$T/no"
	SB_RUN=run run -100 sb-gate "$ops"
}

@test "the form of a request, in the order of the checks" {
	gate_start
	tab=$'\t'
	rows sb-gate "$ops" <<-ROWS
	${tab}
	{"op"${tab}$(error bad_json "bad json: ':' expected at byte 5")
	{} x${tab}$(error bad_json "bad json: bytes after the value at byte 3")
	{"op":"\\ud800"}${tab}$(error bad_json "bad json: lone surrogate at byte 13")
	{"a":01}${tab}$(error bad_json "bad json: ',' or a closing bracket expected at byte 6")
	[]${tab}$(error bad_json "request message must be a json object")
	"x"${tab}$(error bad_json "request message must be a json object")
	null${tab}$(error bad_json "request message must be a json object")
	{}${tab}$(error unauthorized "gateway authentication token is missing or invalid")
	{"_sandbox_gateway_auth_token":null}${tab}$(error unauthorized "gateway authentication token is missing or invalid")
	{"_sandbox_gateway_auth_token":["TOKEN"]}${tab}$(error unauthorized "gateway authentication token is missing or invalid")
	{"_sandbox_gateway_auth_token":"TOKEN "}${tab}$(error unauthorized "gateway authentication token is missing or invalid")
	{"_sandbox_gateway_auth_token":""}${tab}$(error unauthorized "gateway authentication token is missing or invalid")
	{"_sandbox_gateway_auth_token":"TOKEN","_sandbox_gateway_auth_token":"x"}${tab}$(error unauthorized "gateway authentication token is missing or invalid")
	{"_sandbox_daemon_auth_token":"TOKEN"}${tab}$(error unauthorized "gateway authentication token is missing or invalid")
	{"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "op is required and must be a string")
	{"op":1,"request_id":1,"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "op is required and must be a string")
	{"op":null,"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "op is required and must be a string")
	{"op":"","_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "request_id is required and must be a string")
	{"op":"","request_id":1,"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "request_id is required and must be a string")
	{"op":"","request_id":"","_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "scope is required")
	{"op":"","request_id":"","scope":1,"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "scope is invalid: must be an object")
	{"op":"","request_id":"","scope":{},"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "scope is invalid: missing field \`kind\`")
	{"op":"","request_id":"","scope":{"kind":"x"},"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "scope is invalid: kind must be \`system\` or \`sandbox\`")
	{"op":"","request_id":"","scope":{"kind":"sandbox"},"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "scope is invalid: missing field \`sandbox_id\`")
	{"op":"","request_id":"","scope":{"kind":"sandbox","sandbox_id":1},"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "scope is invalid: sandbox_id must be a string")
	{"op":"","request_id":"","scope":{"kind":"sandbox","sandbox_id":" \\t"},"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "scope sandbox_id must be non-empty")
	{"op":"","request_id":"","scope":{"kind":"system"},"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "request must include op, request_id, and args")
	{"op":" ","request_id":"","scope":{"kind":"system"},"args":1,"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "op is required")
	{"op":"x","request_id":"","scope":{"kind":"system"},"args":[],"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "args must be an object")
	{"op":"x","request_id":"","scope":{"kind":"system"},"args":null,"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error invalid_request "args must be an object")
	{"op":"x","request_id":"","scope":{"kind":"system","more":1},"args":{},"other":1,"_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error unknown_op "unknown operation")
	{"op":"list_sandboxes","request_id":"","scope":{"kind":"system"},"args":{},"op":"x","_sandbox_gateway_auth_token":"TOKEN"}${tab}$(error unknown_op "unknown operation")
	 { "op" : "list_sandboxes" , "request_id" : "" , "scope" : { "kind" : "system" } , "args" : { } , "_sandbox_gateway_auth_token" : "TOKEN" } ${tab}{"sandboxes":[]}
	{"\\u006fp":"list_sandboxes","request_id":"","scope":{"kind":"sy\\u0073tem"},"args":{},"_sandbox_gateway_auth_token":"TOKEN"}${tab}{"sandboxes":[]}
	ROWS
}

@test "the raw examples of the interface" {
	gate_start
	make_store
	tab=$'\t'
	rows sb-gate "$ops" <<-ROWS
	{"op":"list_sandboxes","request_id":"9b7d1f0a-6c2e-4b1f-a2c4-52d0f7f1e8aa","scope":{"kind":"system"},"args":{},"_sandbox_gateway_auth_token":"TOKEN","_stream_logs":false}${tab}{"sandboxes":[]}
	{"op":"list_sandboxes","request_id":"r3","scope":{"kind":"system"},"args":{},"_stream_logs":false}${tab}{"error":{"kind":"unauthorized","message":"gateway authentication token is missing or invalid","details":{}}}
	{"op":"inspect_sandbox","request_id":"r4","scope":{"kind":"system"},"args":{"sandbox_id":"eos-x"},"_sandbox_gateway_auth_token":"TOKEN","_stream_logs":false}${tab}{"error":{"kind":"invalid_request","message":"sandbox not found: eos-x","details":{"reason":"sandbox_not_found"}}}
	ROWS
	rows sb-gate -b eos-1 "$ops" <<-ROWS
	{"op":"sandbox_daemon_ready","request_id":"docker-readiness","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":{},"_sandbox_daemon_auth_token":"DTOK"}${tab}{"status":"ready","sandbox_id":"eos-1","daemon":"sandbox-daemon"}
	ROWS
}

@test "where an operation is done, and what cannot be done" {
	gate_start store
	tab=$'\t'
	sandbox() { printf '{"op":"%s","request_id":"r","scope":{"kind":"sandbox","sandbox_id":"%s"},"args":{},"_sandbox_gateway_auth_token":"TOKEN"}\t' "$1" "$2"; }
	system() { printf '{"op":"%s","request_id":"r","scope":{"kind":"system"},"args":%s,"_sandbox_gateway_auth_token":"TOKEN"}\t' "$1" "$2"; }
	make_creating() { sb-box-add eos-2 >/dev/null && sed -i 's/"ready"/"creating"/' "$SB_STATE/sandboxes/eos-2/record.json"; }
	make_creating
	rows sb-gate "$ops" <<-ROWS
	$(system exec_command {})$(error unknown_op "unknown operation")
	$(system squash_layerstack {})$(error unknown_op "unknown operation")
	$(system file_list {})$(error unknown_op "unknown operation")
	$(system inspect_sandbox {})$(error invalid_request "sandbox_id is required for inspect_sandbox")
	$(system inspect_sandbox '{"sandbox_id":1}')$(error invalid_request "sandbox_id must be a string")
	$(system inspect_sandbox '{"sandbox_id":null}')$(error invalid_request "sandbox_id must be a string")
	$(system inspect_sandbox '{"sandbox_id":""}')$(error invalid_request "sandbox_id must be non-empty")
	$(system inspect_sandbox '{"sandbox_id":"a/b"}')$(error invalid_request "invalid sandbox id: a/b")
	$(system inspect_sandbox '{"sandbox_id":"../eos-1"}')$(error invalid_request "invalid sandbox id: ../eos-1")
	$(system ../management/list_sandboxes {})$(error unknown_op "unknown operation")
	$(system 'list_sandboxes\u0000' {})$(error unknown_op "unknown operation")
	$(sandbox squash_layerstack nobody)$(error invalid_request "internal operation is not publicly dispatchable")
	$(sandbox export_layerstack nobody)$(error invalid_request "internal operation is not publicly dispatchable")
	$(sandbox read_export_chunk nobody)$(error invalid_request "internal operation is not publicly dispatchable")
	$(sandbox file_list nobody)$(error invalid_request "file_list is available only through daemon HTTP")
	$(sandbox list_sandboxes nobody)$(error invalid_request "manager operation requires system scope")
	$(sandbox exec_command nobody)$(error invalid_request "sandbox not found: nobody" '"reason":"sandbox_not_found"')
	$(sandbox nothing nobody)$(error invalid_request "sandbox not found: nobody" '"reason":"sandbox_not_found"')
	$(sandbox exec_command 'a b')$(error invalid_request "invalid sandbox id: a b")
	$(sandbox exec_command ..)$(error invalid_request "sandbox not found: .." '"reason":"sandbox_not_found"')
	$(sandbox exec_command eos-2)$(error invalid_request "invalid state transition for eos-2: creating -> ready" '"reason":"sandbox_not_ready"')
	$(sandbox exec_command eos-1)$(error invalid_request "sandbox daemon unavailable for eos-1" '"reason":"sandbox_unavailable"')
	ROWS
}

@test "the box's gate: other scopes, other sandboxes, what it does not know" {
	make_store
	tab=$'\t'
	rows sb-gate -b eos-1 "$ops" <<-ROWS
	[]${tab}$(error bad_json "request message must be a json object")
	{"op":"file_read","request_id":"r","scope":{"kind":"system"},"args":{}}${tab}$(error invalid_request "daemon requests require sandbox scope")
	{"op":"file_read","request_id":"r","scope":{"kind":"sandbox","sandbox_id":"eos-2"},"args":{}}${tab}$(error invalid_request "sandbox id mismatch: daemon is configured for eos-1, request targeted eos-2")
	{"op":"sandbox_daemon_ready","request_id":"r","scope":{"kind":"sandbox","sandbox_id":"eos-2"},"args":{}}${tab}$(error invalid_request "sandbox id mismatch: daemon is configured for eos-1, request targeted eos-2")
	{"op":"nothing","request_id":"r","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":{}}${tab}$(error unknown_op "unknown operation")
	{"op":"list_sandboxes","request_id":"r","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":{}}${tab}$(error unknown_op "unknown operation")
	{"op":"file_list","request_id":"r","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":{}}${tab}{"path":"","entries":[],"truncated":false}
	ROWS
}

@test "the box's gate with a token asks for it, after the form" {
	make_store
	echo secret >key; chmod 600 key
	tab=$'\t'
	rows sb-gate -k key -b eos-1 "$ops" <<-ROWS
	x${tab}$(error bad_json "bad json: value expected at byte 0")
	{}${tab}$(error unauthorized "daemon request authentication failed")
	{"_sandbox_daemon_auth_token":"secreT"}${tab}$(error unauthorized "daemon request authentication failed")
	{"_sandbox_gateway_auth_token":"secret"}${tab}$(error unauthorized "daemon request authentication failed")
	{"_sandbox_daemon_auth_token":"secret"}${tab}$(error invalid_request "op is required and must be a string")
	ROWS
	chmod 644 key
	rows sb-gate -k key -b eos-1 "$ops" <<-ROWS
	{"_sandbox_daemon_auth_token":"secret"}${tab}$(error unauthorized "daemon request authentication failed")
	ROWS
}

@test "arguments: every check of the page, and null for what need not be given" {
	make_store
	tab=$'\t'
	box() { printf '{"op":"%s","request_id":"r","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":%s}\t' "$1" "$2"; }
	rows sb-gate -b eos-1 "$ops" <<-ROWS
	$(box exec_command {})$(error invalid_request "cmd is required for exec_command")
	$(box exec_command '{"cmd":1}')$(error invalid_request "cmd must be a string")
	$(box exec_command '{"cmd":null}')$(error invalid_request "cmd must be a string")
	$(box exec_command '{"cmd":""}')$(error invalid_request "cmd must be non-empty")
	$(box exec_command '{"cmd":"a\u0000"}')$(error invalid_request "cmd must not contain NUL")
	$(box exec_command '{"cmd":"  "}')$(error operation_failed "invalid command request: cmd must be non-empty")
	$(box exec_command '{"cmd":"x","timeout_ms":"1"}')$(error invalid_request "timeout_ms must be an integer")
	$(box exec_command '{"cmd":"x","timeout_ms":-1}')$(error invalid_request "timeout_ms must be an integer")
	$(box exec_command '{"cmd":"x","timeout_ms":5.0}')$(error invalid_request "timeout_ms must be an integer")
	$(box exec_command '{"cmd":"x","yield_time_ms":1e3}')$(error invalid_request "yield_time_ms must be an integer")
	$(box exec_command '{"cmd":"x","yield_time_ms":18446744073709551616}')$(error invalid_request "yield_time_ms is too large")
	$(box exec_command '{"cmd":"x","workspace_session_id":1,"timeout_ms":"x"}')$(error invalid_request "workspace_session_id must be a string")
	$(box exec_command '{"cmd":"x","workspace_session_id":"nobody"}')$(error operation_failed "workspace session not found: nobody" '"workspace_session_id":"nobody"')
	$(box write_command_stdin '{"command_session_id":"x"}')$(error invalid_request "stdin is required for write_command_stdin")
	$(box write_command_stdin '{"command_session_id":"x","stdin":""}')$(error invalid_request "stdin must be non-empty")
	$(box write_command_stdin '{"command_session_id":"x","stdin":"y"}')$(error operation_failed "command not found: x")
	$(box file_read {})$(error invalid_request "path is required for file_read")
	$(box file_read '{"path":""}')$(error invalid_request "path must be non-empty")
	$(box file_read '{"path":"x","limit":0}')$(error invalid_request "limit must be between 1 and 2000")
	$(box file_read '{"path":"x","limit":2001}')$(error invalid_request "limit must be between 1 and 2000")
	$(box file_read '{"path":"x","limit":null,"offset":null,"workspace_session_id":null}')$(error not_found "file not found: x" '"path":"x"')
	$(box file_read '{"path":"../x"}')$(error invalid_request "invalid path: ../x")
	$(box file_read '{"path":"-x"}')$(error not_found "file not found: -x" '"path":"-x"')
	$(box file_edit '{"path":"x"}')$(error invalid_request "edits is required for file_edit")
	$(box file_edit '{"path":"x","edits":1}')$(error invalid_request "edits must be an array")
	$(box file_edit '{"path":"x","edits":"x"}')$(error invalid_request "edits must be an array")
	$(box file_edit '{"path":"x","edits":[{}]}')$(error invalid_request "edits[0].old_string must be a string")
	$(box file_edit '{"path":"x","edits":"[{}]"}')$(error invalid_request "edits[0].old_string must be a string")
	$(box file_blame '{"path":"x"}')$(error not_found "no auditability record for path: x" '"path":"x"')
	$(box create_workspace_session '{"network_profile":"x"}')$(error invalid_request "network_profile must be one of shared or isolated")
	$(box create_workspace_session '{"network_profile":1}')$(error invalid_request "network_profile must be a string")
	$(box destroy_workspace_session {})$(error invalid_request "workspace_session_id is required for destroy_workspace_session")
	$(box destroy_workspace_session '{"workspace_session_id":""}')$(error invalid_request "workspace_session_id must be non-empty")
	$(box destroy_workspace_session '{"workspace_session_id":"x","grace_s":"1"}')$(error invalid_request "grace_s must be a number")
	$(box destroy_workspace_session '{"workspace_session_id":"x","grace_s":-1}')$(error invalid_request "grace_s must be non-negative")
	$(box destroy_workspace_session '{"workspace_session_id":"x","grace_s":1e999}')$(error invalid_request "grace_s must be finite")
	$(box destroy_workspace_session '{"workspace_session_id":"x","grace_s":0.5}')$(error operation_failed "workspace session not found: x" '"workspace_session_id":"x"')
	$(box publish_workspace_session '{"workspace_session_id":"x"}')$(error operation_failed "workspace session not found: x" '"workspace_session_id":"x"')
	$(box list_commands '{"state":"x"}')$(error invalid_request "state must be running")
	$(box list_commands {}){"commands":[]}
	$(box list_workspace_sessions {}){"sessions":[]}
	$(box history '{"last_n":0}')$(error invalid_request "last_n must be at least 1")
	$(box history {}){"versions":[]}
	ROWS
}

# ---- hostile input ----

@test "invalid UTF-8, NUL, control characters and depth are bad JSON" {
	gate_start
	for bytes in '{"op":"\xff"}' '{"op":"\xc0\x80"}' '{"op":"\xed\xa0\x80"}' '{"op":"a\x00b"}' '\x00' \
	    '{"op":"a\x01"}' '{"op":"a\tb"}' '\xef\xbb\xbf{}'; do
		# shellcheck disable=SC2059 # a format on purpose
		got=$(printf "$bytes\n" | sb-gate "$ops")
		has "$got" '{"error":{"kind":"bad_json","message":"bad json: '
	done
	deep() { printf '%*s' "$1" '' | tr ' ' '['; printf '%*s' "$1" '' | tr ' ' ']'; }
	has "$(deep 129 | sed 's/$/\n/' | sb-gate "$ops")" "nested too deep"
	has "$(deep 128 | sed 's/$/\n/' | sb-gate "$ops")" "must be a json object"
	has "$(head -c 1000000 /dev/zero | tr '\0' '[' | sed 's/$/\n/' | sb-gate "$ops")" "nested too deep"
}

@test "no newline, nothing at all" {
	gate_start
	is "$(request list_sandboxes {} system | tr -d '\n' | sb-gate "$ops")" \
	    "$(error invalid_request "gateway request was not newline terminated")"
	is "$(sb-gate "$ops" </dev/null)" "$(error invalid_request "gateway request was not newline terminated")"
	# A box's gate takes the end for the newline.
	is "$(printf '{"op":"sandbox_daemon_ready","request_id":"","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":{}}' |
	    sb-gate -b eos-1 "$ops")" '{"status":"ready","sandbox_id":"eos-1","daemon":"sandbox-daemon"}'
	is "$(sb-gate -b eos-1 "$ops" </dev/null)" "$(error bad_json "bad json: value expected at byte 0")"
}

@test "what stands behind the newline is ignored" {
	gate_start
	is "$(request list_sandboxes {} system 2>&1 | sed 'p;p' | sb-gate "$ops")" '{"sandboxes":[]}'
}

# padded BYTES: a request of that many bytes, its newline included.
padded() {
	local head tail
	head='{"op":"list_sandboxes","request_id":"r","scope":{"kind":"system"},"args":{"x":"'
	tail='"},"_sandbox_gateway_auth_token":"'$TOKEN'"}'
	printf %s "$head"
	head -c $(($1 - ${#head} - ${#tail} - 1)) /dev/zero | tr '\0' x
	printf '%s\n' "$tail"
}

@test "16777216 bytes are a request, one more is not" {
	gate_start
	is "$(padded 16777216 | wc -c)" 16777216
	is "$(padded 16777216 | sb-gate "$ops")" '{"sandboxes":[]}'
	large=$(error request_too_large "request exceeds 16777216 byte limit" '"limit":16777216,"fields":{"limit":16777216}')
	is "$(padded 16777217 | sb-gate "$ops")" "$large"
	is "$(head -c 16777216 /dev/zero | tr '\0' x | sb-gate "$ops")" "$large"
	is "$(padded 1000 | sb-gate -m 1000 "$ops")" '{"sandboxes":[]}'
	is "$(padded 1001 | sb-gate -m 1000 "$ops")" \
	    "$(error request_too_large "request exceeds 1000 byte limit" '"limit":1000,"fields":{"limit":1000}')"
}

@test "who sends too much, on a socket, still reads why" {
	gate_start
	serve "$T/sock" -m 100000 "$ops"
	serve_tcp -m 100000 "$ops"
	for address in "$T/sock" "$PORT"; do
		for n in 100001 30000000; do
			padded $n | "$SB_T/wire" "$address" >out
			has "$(cat out)" '"kind":"request_too_large"'
			is "$(wc -l <out)" 1
		done
	done
}

@test "a request may come byte by byte, with or without an end of its side" {
	gate_start
	serve "$T/sock" "$ops"
	serve_tcp "$ops"
	for address in "$T/sock" "$PORT"; do
		for how in "" -b -h -bh; do
			# shellcheck disable=SC2086 # an option or nothing
			is "$(request list_sandboxes {} system | "$SB_T/wire" $how "$address")" '{"sandboxes":[]}'
		done
	done
}

@test "who sends nothing is told so after the deadline" {
	gate_start
	mkfifo in
	sb-gate -t 50 "$ops" <in >out 3>&- &
	exec 5>in
	wait $!
	is "$(cat out)" "$(error internal_error "gateway io error: gateway request read timed out")"
	printf '{"op"' >&5 &
	sb-gate -t 50 -b eos-1 "$ops" <in >out 3>&- || :
	exec 5>&-
	wait
	is "$(cat out)" "$(error internal_error "daemon io error: daemon request read timed out")"
}

@test "clients that go at once leave nothing behind" {
	gate_start
	serve "$T/sock" "$ops"
	for how in -x -r; do
		for i in 1 2 3 4 5; do
			request list_sandboxes {} system | "$SB_T/wire" $how "$T/sock"
			printf '{"op"' | "$SB_T/wire" $how "$T/sock"
			"$SB_T/wire" $how "$T/sock" </dev/null
		done
	done
	none() { ! pgrep -P "$(cat "$T/servers")" >/dev/null; }
	eventually none
	is "$(request list_sandboxes {} system | "$SB_T/wire" "$T/sock")" '{"sandboxes":[]}'
}

# ---- tokens ----

@test "a token grants its groups, and nothing runs outside of them" {
	gate_start store
	groups() { printf '%s\n' "$(error unauthorized "gateway authentication token does not grant: $1" "\"required_groups\":\"$1\"")"; }
	TOKEN=$(sb-token new -g runtime r)
	is "$(ask list_sandboxes {} system)" "$(groups management)"
	is "$(ask list_sandboxes {})" "$(groups management)"
	is "$(ask history {})" "$(groups observability)"
	is "$(ask exec_command '{"cmd":"x"}')" "$(error invalid_request "sandbox daemon unavailable for eos-1" '"reason":"sandbox_unavailable"')"
	all="management runtime observability"
	for op in nothing sandbox_daemon_ready file_list squash_layerstack; do
		is "$(ask $op {})" "$(groups "$all")"
	done
	is "$(ask nothing {} system)" "$(groups "$all")"
	TOKEN=$(sb-token new -g management,observability m)
	has "$(ask list_sandboxes {} system)" '"id":"eos-1"'
	has "$(ask history {})" unavailable
	is "$(ask file_read '{"path":"x"}')" "$(groups runtime)"
	TOKEN=$(sb-token new a)
	is "$(ask nothing {} system)" "$(error unknown_op "unknown operation")"
}

@test "tokens are issued, changed and revoked without a restart" {
	gate_start
	no=$(error unauthorized "gateway authentication token is missing or invalid")
	master=$TOKEN
	TOKEN=$(sb-token new one)
	is "$(ask list_sandboxes {} system)" '{"sandboxes":[]}'
	old=$TOKEN
	TOKEN=$(sb-token new -r one)
	is "$(ask list_sandboxes {} system)" '{"sandboxes":[]}'
	TOKEN=$old
	is "$(ask list_sandboxes {} system)" "$no"
	TOKEN=$(head -n 1 "$SB_STATE/tokens/one")
	sb-token rm one
	is "$(ask list_sandboxes {} system)" "$no"
	TOKEN=$master
	is "$(ask list_sandboxes {} system)" '{"sandboxes":[]}'
	echo other | sandbox-gateway-token write
	is "$(ask list_sandboxes {} system)" "$no"
	TOKEN=other
	is "$(ask list_sandboxes {} system)" '{"sandboxes":[]}'
	rm "$HOME/.ephemeral-sandbox/gateway.token"
	is "$(ask list_sandboxes {} system)" "$no"
}

@test "a token file that others may read counts for nothing, and that is logged" {
	gate_start
	TOKEN=$(sb-token new one)
	chmod 640 "$SB_STATE/tokens/one"
	ask list_sandboxes {} system >out 2>err
	has "$(cat out)" '"kind":"unauthorized"'
	has "$(cat err)" "sb-gate: warning: token one: is open to others"
	run ! grep -F "$TOKEN" err
}

@test "a peer without a token has the groups that the server gave it, and no more" {
	gate_start
	export SB_GATE_GROUPS="runtime observability"
	line='{"op":"list_sandboxes","request_id":"r","scope":{"kind":"system"},"args":{}}'
	has "$(echo "$line" | sb-gate "$ops")" "does not grant: management"
	SB_GATE_GROUPS=management
	is "$(echo "$line" | sb-gate "$ops")" '{"sandboxes":[]}'
	SB_GATE_GROUPS=
	has "$(echo "$line" | sb-gate "$ops")" unauthorized
	SB_GATE_GROUPS=management
	has "$(echo "${line%\}},\"_sandbox_gateway_auth_token\":\"x\"}" | sb-gate "$ops")" "missing or invalid"
}

@test "over the network nobody has groups without a token" {
	gate_start
	export SB_GATE_GROUPS=management
	serve "$T/sock" "$ops"
	serve_tcp "$ops"
	line='{"op":"list_sandboxes","request_id":"r","scope":{"kind":"system"},"args":{}}'
	is "$(echo "$line" | "$SB_T/wire" "$T/sock")" '{"sandboxes":[]}'
	has "$(echo "$line" | "$SB_T/wire" "$PORT")" "missing or invalid"
}

@test "no program that is run has a token in its environment" {
	gate_start
	op show '"scope":"sandbox_required","host":{"argv":["show"]},"box":{"argv":["show"]}'
	program show <<-'EOT'
	#!/bin/sh
	env | grep -c -e SANDBOX_GATEWAY_AUTH -e SB_GATE_GROUPS -e SANDBOX_DAEMON_AUTH | sed 's/.*/{"n":&}/'
	EOT
	export SANDBOX_GATEWAY_AUTH_TOKEN=x SANDBOX_DAEMON_AUTH_TOKEN=y SB_GATE_GROUPS=management
	is "$(request show {} | sb-gate ops)" '{"n":0}'
}

# ---- what commands print and how they end ----

# An operation "end" whose program prints argument out and exits with code.
end_op() {
	op end '"scope":"sandbox_required","args":[{"name":"code","kind":"integer","help":"h"},
	    {"name":"out","kind":"string","help":"h"},{"name":"err","kind":"string","help":"h"}],
	    "box":{"argv":["end","{code}","{out}","{err}"]'"${1:-}"'}'
	program end <<-'EOT'
	#!/bin/sh
	printf %s "$2"
	[ -z "$3" ] || printf '%b\n' "$3" >&2
	exit "$1"
	EOT
	OPS=ops
}

@test "a command's object is the answer, on one line" {
	end_op
	is "$(ask_box end '{"code":0,"out":"{\"a\":1}","err":""}')" '{"a":1}'
	is "$(ask_box end '{"code":0,"out":"\n{\n\t\"a\": [1,\r\n 2]\n}\n","err":"noise"}')" '{ 	"a": [1,   2] }'
	is "$(ask_box end '{"code":0,"out":"{\"n\":123456789012345678901234567890.10}","err":""}')" '{"n":123456789012345678901234567890.10}'
}

@test "what is no object is an error of the command" {
	end_op
	for out in '' 'x' '[1]' '{\"a\":1}{}' '{\"a\":1' '{\"a\":\u0001}'; do
		is "$(ask_box end "{\"code\":0,\"out\":\"$out\",\"err\":\"\"}")" "$(error internal_error "end printed no JSON object")"
	done
}

@test "exit codes become kinds, the last line of standard error the message" {
	end_op
	details() { printf '"program":"end","exit_code":%s%s' "$1" "${2:-}"; }
	while read -r code kind more; do
		is "$(ask_box end "{\"code\":$code,\"out\":\"\",\"err\":\"first\\nend: fatal: last\"}")" \
		    "$(error "$kind" last "$(details "$code" "$more")")"
	done <<-'EOT'
	1 not_found
	2 operation_failed
	98 server_busy
	99 operation_failed ,"reason":"timeout"
	100 invalid_request
	101 internal_error
	111 internal_error
	3 internal_error
	126 internal_error
	EOT
	is "$(ask_box end '{"code":7,"out":"","err":""}')" "$(error internal_error "end failed with code 7" "$(details 7)")"
	is "$(ask_box end '{"code":100,"out":"","err":"end: usage: end code"}')" \
	    "$(error internal_error "end: usage: end code" "$(details 100)")"
	program end <<<'#!/bin/sh
kill -9 $$'
	is "$(ask_box end '{"code":0}')" "$(error internal_error "end was killed by signal 9" "$(details 137)")"
	program end <<<'#!/bin/sh
printf "end: fatal: bad \377 byte\n" >&2; exit 111'
	has "$(ask_box end '{"code":0}')" '"message":"bad \ufffd byte"'
	rm bin/end
	is "$(ask_box end '{"code":0}')" "$(error internal_error "unable to run end: No such file or directory" '"program":"end"')"
}

@test "a command's own error is passed on, whatever the code; an object with 1, 2 and 99, too" {
	end_op
	e='{\"error\":{\"kind\":\"k\",\"message\":\"m\",\"details\":{\"x\":1}}}'
	for code in 0 1 2 98 99 100 111; do
		is "$(ask_box end "{\"code\":$code,\"out\":\"$e\",\"err\":\"end: fatal: m\"}")" '{"error":{"kind":"k","message":"m","details":{"x":1}}}'
	done
	for code in 1 2 99; do
		is "$(ask_box end "{\"code\":$code,\"out\":\"{\\\"a\\\":1}\",\"err\":\"\"}")" '{"a":1}'
	done
	for code in 98 100 111; do
		has "$(ask_box end "{\"code\":$code,\"out\":\"{\\\"a\\\":1}\",\"err\":\"\"}")" '"error"'
	done
}

@test "lines become an array, text a string, nothing the members that stand before" {
	end_op ',"reply":"lines list","with":{"code":"{code}"}'
	is "$(ask_box end '{"code":0,"out":"{\"a\":1}\n{\"b\":2}\n{}\n","err":""}')" '{"code":0,"list":[{"a":1},{"b":2}]}'
	is "$(ask_box end '{"code":0,"out":"{}\n","err":""}')" '{"code":0,"list":[]}'
	is "$(ask_box end '{"code":0,"out":"","err":""}')" '{"code":0,"list":[]}'
	is "$(ask_box end '{"code":0,"out":"{}\n{\"a\":1}","err":""}')" '{"code":0,"list":[{},{"a":1}]}'
	has "$(ask_box end '{"code":0,"out":"x\n","err":""}')" "no JSON object"
	has "$(ask_box end '{"code":1,"out":"{}\n","err":"end: fatal: none"}')" '"kind":"not_found","message":"none"'
	end_op ',"reply":"text body"'
	is "$(ask_box end '{"code":0,"out":"a\n\"b\"\u00e9","err":""}')" '{"body":"a\n\"b\"'$'\xc3\xa9''"}'
	program end <<<'#!/bin/sh
printf "a\377\0"'
	is "$(ask_box end '{"code":0,"out":"","err":""}')" '{"body_b64":"Yf8A"}'
	end_op ',"reply":"none","with":{"done":"{code}","why":"{err}","who":"<{request_id}>"}'
	is "$(ask_box end '{"code":0,"out":"ignored"}')" '{"done":0,"why":null,"who":"<r1>"}'
}

# part REPLY PROGRAM: an operation "part" with the arguments of a part.
part() {
	op part '"scope":"sandbox_required","args":[{"name":"offset","kind":"integer","min":1,"help":"h"},{"name":"max_text","kind":"integer","min":1,"help":"h"}],
	    "box":{"argv":["part"],"reply":"'"$1"'"}'
	program part <<<"#!/bin/sh
$2"
	OPS=ops
}

@test "of lines and texts a part is answered, and where the rest begins" {
	part "text t" 'printf "a\\n\"b\"\\nccc\\ndd"'
	all='{"t":"a\n\"b\"\nccc\ndd"}'
	is "$(ask_box part '{}')" "$all"
	is "$(ask_box part '{"max_text":17}')" "$all"
	is "$(ask_box part '{"max_text":99,"offset":1}')" "$all"
	is "$(ask_box part '{"max_text":15}')" '{"t":"a\n\"b\"\nccc\n","total_lines":4,"next_offset":4,"truncated":true}'
	is "$(ask_box part '{"max_text":10}')" '{"t":"a\n\"b\"\n","total_lines":4,"next_offset":3,"truncated":true}'
	is "$(ask_box part '{"max_text":10,"offset":3}')" '{"t":"ccc\ndd","total_lines":4,"next_offset":null,"truncated":false}'
	is "$(ask_box part '{"offset":4}')" '{"t":"dd","total_lines":4,"next_offset":null,"truncated":false}'
	is "$(ask_box part '{"offset":5,"max_text":1}')" '{"t":"","total_lines":4,"next_offset":null,"truncated":false}'
	is "$(ask_box part '{"max_text":3,"offset":2}')" '{"t":"\"b[... the rest of this line is cut ...]","line_cut":true,"total_lines":4,"next_offset":3,"truncated":true}'
	part "text t" 'printf "aaaa"'
	is "$(ask_box part '{"max_text":3}')" '{"t":"aaa[... the rest of this line is cut ...]","line_cut":true}'
	part "text t" 'printf "\\377\\n\\n"'
	is "$(ask_box part '{"max_text":1}')" '{"t_b64":"/woK"}'
	part "lines l" 'echo "{\"a\":1}"; echo "{\"b\":22}"; echo "{\"c\":3}"; echo "{}"'
	is "$(ask_box part '{"max_text":25}')" '{"l":[{"a":1},{"b":22},{"c":3}]}'
	is "$(ask_box part '{"max_text":24}')" '{"l":[{"a":1},{"b":22}],"total_lines":3,"next_offset":3,"truncated":true}'
	is "$(ask_box part '{"max_text":1}')" '{"l":[{"a":1}],"total_lines":3,"next_offset":2,"truncated":true}'
	is "$(ask_box part '{"max_text":1,"offset":3}')" '{"l":[{"c":3}],"total_lines":3,"next_offset":null,"truncated":false}'
	is "$(ask_box part '{"offset":9}')" '{"l":[],"total_lines":3,"next_offset":null,"truncated":false}'
}

@test "an answer that is too long is an error" {
	end_op ',"reply":"text body"'
	program end <<<'#!/bin/sh
head -c 20000000 /dev/zero | tr "\0" x'
	is "$(ask_box end '{"code":0}')" "$(error operation_failed "the answer of end has more bytes than can be sent")"
	# As JSON it is twice as long.
	program end <<<'#!/bin/sh
head -c 10000000 /dev/zero | tr "\0" "\n"'
	is "$(ask_box end '{"code":0}')" "$(error operation_failed "the answer of end has more bytes than can be sent")"
}

@test "words go to the program as they are, and content to its standard input" {
	op words '"scope":"sandbox_required","args":[{"name":"a","kind":"string","help":"h"},{"name":"in","kind":"string","help":"h"}],
	    "box":{"argv":["words","{-a a}","--","{a}","x{a}"],"reply":"text all"}'
	program words <<-'EOT'
	#!/bin/sh
	for w; do printf '<%s>' "$w"; done; cat
	EOT
	OPS=ops
	is "$(ask_box words '{"a":"$(id) `id` ; * \" '"'"' \n -n"}')" \
	    '{"all":"<-a><$(id) `id` ; * \" '"'"' \n -n><--><$(id) `id` ; * \" '"'"' \n -n><x$(id) `id` ; * \" '"'"' \n -n>"}'
	is "$(ask_box words {})" '{"all":"<--><x>"}'
	has "$(ask_box words "{\"a\":\"$(head -c 131072 /dev/zero | tr '\0' x)\"}")" "a is too large"
	op words '"scope":"sandbox_required","args":[{"name":"in","kind":"string","help":"h"}],"box":{"argv":["words","{<in}"],"reply":"text all"}'
	is "$(ask_box words '{"in":"a\u0000b\n"}')" '{"all":"a\u0000b\n"}'
}

@test "three million bytes of content arrive, and a program that reads none is no deadlock" {
	op words '"scope":"sandbox_required","args":[{"name":"in","kind":"string","help":"h"}],"box":{"argv":["words","{<in}"]}'
	program words <<<'#!/bin/sh
wc -c | sed "s/.*/{\"n\":&}/"'
	big() { printf '{"op":"words","request_id":"r","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":{"in":"'; head -c 3000000 /dev/zero | tr '\0' x; echo '"}}'; }
	is "$(big | sb-gate -b eos-1 ops)" '{"n":3000000}'
	program words <<<'#!/bin/sh
echo "{\"n\":0}"'
	is "$(big | sb-gate -b eos-1 ops)" '{"n":0}'
	program words <<<'#!/bin/sh
head -c 3000000 /dev/zero | tr "\0" x >&2; echo "{\"n\":1}"; cat >/dev/null'
	is "$(big | sb-gate -b eos-1 ops)" '{"n":1}'
}

@test "a damaged operation file is an internal error that says where" {
	end_op
	echo '{"name":"end"' >ops/runtime/end.json
	ask_box end {} >out 2>err
	has "$(cat out)" "operation end is damaged: runtime/end.json: "
	has "$(cat err)" "sb-gate: warning: operation end: runtime/end.json: "
}

@test "what a child in the background holds open is not waited for" {
	end_op
	mkfifo hold
	program end <<<"#!/bin/sh
(read x <$T/hold) & echo '{}'"
	is "$(ask_box end '{"code":0}')" '{}'
	echo >hold
}
