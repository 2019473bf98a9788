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
	x${tab}$(error bad_json "bad json: digit expected at byte 0")
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
