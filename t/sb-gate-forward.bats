# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib
load gate

# The gateway and the gate of a sandbox, which is a shell script here.

there() { [ -e "$1" ]; }
failed() { error internal_error "sandbox daemon forwarding failed: $1"; }
revision() { sb-box-ls eos-1 | jq .activity_revision; }

@test "the sandbox gets the members as they came, and nothing of the gateway's" {
	gate_start store
	fake 'read -r line; printf "%s\n" "$line" >'"$T"'/got; echo "{ \"ok\" : 9007199254740993 }"'
	printf '{"x":1, "args" : {"cmd":"\\u0061\\/","n":123456789012345678901234567890.50,"a":[ 1,2 ]},"op":"exec_command" ,"_stream_logs":false,"_sandbox_gateway_auth_token":"%s","scope":{"sandbox_id":"eos-1","kind":"sandbox","more":null},"request_id":"r\\n"}\n' "$TOKEN" |
	    sb-gate "$ops" >out
	is "$(cat got)" '{"op":"exec_command","request_id":"r\n","scope":{"sandbox_id":"eos-1","kind":"sandbox","more":null},"args":{"cmd":"\u0061\/","n":123456789012345678901234567890.50,"a":[ 1,2 ]}}'
	is "$(cat out)" '{ "ok" : 9007199254740993 }'
}

@test "what the gateway does not know is sent on as well, and checked there" {
	gate_start store
	box_start
	is "$(ask nothing {})" "$(error unknown_op "unknown operation")"
	is "$(ask sandbox_daemon_ready {})" '{"status":"ready","sandbox_id":"eos-1","daemon":"sandbox-daemon"}'
	is "$(ask file_read {})" "$(error invalid_request "path is required for file_read")"
}

@test "answers that are none" {
	gate_start store
	fake 'read -r line'
	is "$(ask file_read {})" "$(failed "daemon returned an empty response")"
	fake 'read -r line; printf "{}"'
	is "$(ask file_read {})" "$(failed "daemon response was not newline terminated")"
	for answer in x '[]' '{' ''; do
		fake 'read -r line; echo '"'$answer'"
		is "$(ask file_read {})" "$(failed "daemon response is not JSON")"
	done
	fake 'read -r line; printf "\"\377\"\n"'
	is "$(ask file_read {})" "$(failed "daemon response is not JSON")"
	fake 'read -r line; head -c 16777216 /dev/zero | tr "\0" x; echo'
	is "$(ask file_read {})" "$(failed "daemon response exceeded 16777216 bytes")"
	gate_stop
	is "$(ask file_read {})" "$(failed "Connection refused")"
}

@test "an answer of 16777216 bytes passes" {
	gate_start store
	fake 'read -r line; printf "{\"x\":\""; head -c 16777207 /dev/zero | tr "\0" x; echo "\"}"'
	ask file_read {} >out
	is "$(wc -c <out)" 16777216
}

@test "who does not answer in time: an error that says how long" {
	gate_start store
	fake 'read -r line; cat >/dev/null'
	op look '"scope":"sandbox_required","args":[{"name":"ms","kind":"integer","help":"h"}],"host":{"forward":true},
	    "box":{"argv":["x"]},"deadline_ms":1,"waits":"ms"'
	is "$(request look '{"ms":9}' | sb-gate ops)" \
	    '{"error":{"kind":"internal_error","message":"sandbox daemon forwarding failed: daemon request timed out after 5010 ms","details":{"reason":"timeout"}}}'
}

@test "changes are counted when they succeed, or may have" {
	need jq
	gate_start store
	is "$(revision)" 0
	fake 'read -r line; echo "{}"'
	for o in exec_command write_command_stdin file_write file_edit create_workspace_session publish_workspace_session destroy_workspace_session; do
		ask $o {} >out
	done
	is "$(revision)" 7
	for o in read_command_lines file_read file_blame list_commands list_workspace_sessions diff_workspace_session nothing; do
		ask $o {} >out
	done
	is "$(revision)" 7
	fake 'read -r line; echo "{\"error\":{\"kind\":\"k\",\"message\":\"m\",\"details\":{\"stage\":\"publish\",\"publish_completed\":true}}}"'
	ask publish_workspace_session {} >out
	is "$(revision)" 7
	fake 'read -r line; echo "{\"error\":{\"kind\":\"k\",\"message\":\"m\",\"details\":{\"stage\":\"destroy\",\"publish_completed\":true}}}"'
	ask publish_workspace_session {} >out
	is "$(revision)" 8
	fake 'read -r line; echo "{\"error\":{\"kind\":\"k\",\"message\":\"m\",\"details\":{\"stage\":\"destroy\",\"publish_completed\":false}}}"'
	ask publish_workspace_session {} >out
	is "$(revision)" 8
	rm "$SB_STATE/sandboxes/eos-1/activity"; mkdir "$SB_STATE/sandboxes/eos-1/activity"
	fake 'read -r line; echo "{\"x\":1}"'
	is "$(ask exec_command {})" '{"x":1}'
}

@test "progress of the sandbox is passed on to who asked, and asked for only then" {
	gate_start store
	fake 'read -r line; printf "%s\n" "$line" >'"$T"'/got; printf "cli_log(\"one\")\ncli_log(\"two\")\n{}\n"'
	is "$(ask file_read {})" '{}'
	run ! grep _stream_logs got
	is "$(request file_read {} | sed 's/"_stream_logs":false/"_stream_logs":true/' | sb-gate "$ops")" 'cli_log("one")
cli_log("two")
{}'
	grep -q '"_stream_logs":true' got
}

@test "the client has gone: the sandbox hears of it" {
	gate_start store
	fake 'read -r line; echo >'"$T"'/in; cat >/dev/null; echo >'"$T"'/gone'
	serve "$T/sock" "$ops"
	request file_read {} | "$SB_T/wire" -x "$T/sock"
	eventually there gone
	is "$(revision)" 0
	rm in gone
	# It may have changed something.
	request exec_command {} | "$SB_T/wire" -x "$T/sock"
	eventually there gone
	counted() { [ "$(revision)" = 1 ]; }
	eventually counted
}

@test "over TCP, with a token that nobody else gets" {
	need jq
	gate_start store
	echo secret >"$SB_STATE/sandboxes/eos-1/token"
	chmod 600 "$SB_STATE/sandboxes/eos-1/token"
	serve_tcp -k "$SB_STATE/sandboxes/eos-1/token" -b eos-1 "$ops"
	jq -c '.daemon = {"host":"127.0.0.1","port":'"$PORT"'}' "$SB_STATE/sandboxes/eos-1/record.json" >r
	cp r "$SB_STATE/sandboxes/eos-1/record.json"
	is "$(ask sandbox_daemon_ready {})" '{"status":"ready","sandbox_id":"eos-1","daemon":"sandbox-daemon"}'
	is "$(ask list_workspace_sessions {})" '{"sessions":[]}'
	run ! grep -r secret <(ask inspect_sandbox '{"sandbox_id":"eos-1"}' system)
	echo other >"$SB_STATE/sandboxes/eos-1/token.new"
	mv "$SB_STATE/sandboxes/eos-1/token.new" "$SB_STATE/sandboxes/eos-1/token"
	chmod 600 "$SB_STATE/sandboxes/eos-1/token"
	is "$(ask list_workspace_sessions {})" '{"sessions":[]}'
}

@test "a socket whose path is longer than an address may be" {
	gate_start store
	export SB_RUN
	SB_RUN=$T/$(printf '%0100d' 0)/$(printf '%0100d' 1)
	mkdir -p "$SB_RUN/box/eos-1"
	(cd "$SB_RUN/box/eos-1" && exec s6-ipcserver -1 gate sb-gate -b eos-1 "$ops" >"$T/up" 3>&-) &
	echo $! >>"$T/servers"
	eventually test -s "$T/up"
	is "$(ask list_workspace_sessions {})" '{"sessions":[]}'
}
