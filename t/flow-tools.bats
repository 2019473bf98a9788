# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib
load gate
load mcp-lines

# The tools of models: MCP, gateway, the gate of a sandbox, command, and back,
# line by line. With clients that people have it is flow-mcp.bats.

start() {
	need overlay userns jq s6-ipcserver
	gateway_place
	mkdir -p ws
	gate_start store
	box_start
	serve "$sock" "$ops"
	export SANDBOX_GATEWAY_AUTH_TOKEN=$TOKEN
	mcp --set runtime
	legacy
}

# use TOOL ARGUMENTS [MEMBERS]: its answer is in the file "text", which is short.
use() {
	say "$(rpc 1 tools/call "$(tool "$1" '{"sandbox_id":"eos-1",'"$2" "${3:-}")")"
	hear
	printf %s "$heard" | jq -r '.result.content[0].text' >text
	is "$(jq -c 'select(.result.structuredContent == (.result.content[0].text | fromjson)).result.isError' <<<"$heard")" "${error:-false}"
	[ "$(wc -c <text)" -lt 10000 ] || fail "$1: $(wc -c <text) bytes"
}
get() { jq -r "$1" text; }

# Nobody waits for a command any more.
ended() {
	local pid
	for pid in $(our_processes "$SB_STORE"); do
		! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q '^sb-exec ' || return 1
	done 2>/dev/null
}

@test "large files, outputs and directories come in short answers that say where the rest is" {
	mkdir -p ws/many
	seq -f 'line "%g" of a long file, with a	tab' 5000 >ws/big
	(cd ws/many && seq -f 'a_rather_long_name_for_a_file_%g' 300 | xargs touch)
	start
	for ((at = 1; at > 0; at = $(get '.next_offset // 0'))); do
		use file_read '"path":"big","offset":'$at'}'
		get .content
	done >all
	same all ws/big
	use file_read '"path":"big","limit":2}'
	is "$(get .next_offset)" 3
	use list_files '"path":"many"}'
	is "$(get '[.truncated, (.entries | length)] | @csv')" "true,100"
	use exec_command '"cmd":"cat big","yield_time_ms":25000}'
	is "$(get '.total_lines > .end_offset')" true
	c=$(get .command_session_id)
	{
		get .output
		while [ "$(get '.total_lines > .end_offset')" = true ]; do
			use read_command_lines '"command_session_id":"'"$c"'","limit":1000,"start_offset":'"$(get .end_offset)"'}'
			get .output
		done
	} >all
	same all ws/big
	use wait_command '"command_session_id":"'"$c"'"}'
	is "$(get '[.status, (.end_offset > .start_offset)] | @csv')" '"ok",true'
	mcp_end
}

@test "what a session changed, and long lists, come in parts" {
	start
	use create_workspace_session '"network_profile":"shared"}'
	s=$(get .workspace_session_id)
	use exec_command '"workspace_session_id":"'"$s"'","cmd":"for i in $(seq 2000); do echo \"line $i\"; done >new","yield_time_ms":20000}'
	for ((at = 1; at > 0; at = $(get '.next_offset // 0'))); do
		use diff_workspace_session '"workspace_session_id":"'"$s"'","offset":'$at'}'
		get .diff | sed '$d' >>parts
	done
	sb-diff "$s" >all
	same parts all
	# 30 commands with long words.
	long=$(printf 'x%.0s' {1..800})
	for i in $(seq 30); do
		use exec_command '"workspace_session_id":"'"$s"'","cmd":": '"$long"'"}'
	done
	use list_commands '"workspace_session_id":"'"$s"'"}'
	is "$(get '[.truncated, .total_lines] | @csv')" true,31
	for ((at = 1; at > 0; at = $(get '.next_offset // 0'))); do
		use list_commands '"offset":'$at'}'
		get '.commands[].command_session_id' >>ids
	done
	is "$(cat ids)" "$(sb-job-ls | grep .)"
	mcp_end
}

@test "a command whose call is cancelled goes on, or ends where the caller says so" {
	start
	for how in keep end; do
		say "$(rpc 7 tools/call "$(tool exec_command '{"sandbox_id":"eos-1","cmd":"echo up; sleep 1000","yield_time_ms":25000}' '"_meta":{"sb/on_cancel":"'$how'"}')")"
		running() { use list_commands '"state":"running"}' && [ "$(get '.commands | length')" = "$1" ]; }
		eventually running 1
		c=$(get '.commands[0].command_session_id')
		up() { use read_command_lines '"command_session_id":"'"$c"'"}' && [ "$(get .output)" = up ]; }
		eventually up
		say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'
		if [ $how = end ]; then
			eventually running 0
			use read_command_lines '"command_session_id":"'"$c"'"}'
			is "$(get .status)" cancelled
		else
			# The request has ended at the gate, and the command has not.
			eventually ended
			use read_command_lines '"command_session_id":"'"$c"'"}'
			is "$(get .status)" running
			use kill_command '"command_session_id":"'"$c"'"}'
		fi
	done
	mcp_end
}

@test "a conflict is an answer that says what to do next" {
	printf 'l%d\n' 1 2 3 4 5 >f
	mkdir ws && cp f ws/
	start
	use create_workspace_session '"network_profile":"shared"}'
	s=$(get .workspace_session_id)
	use file_edit '"path":"f","workspace_session_id":"'"$s"'","edits":"[{\"old_string\":\"l3\",\"new_string\":\"mine\"}]"}'
	use file_edit '"path":"f","edits":[{"old_string":"l3","new_string":"theirs"}]}'
	error=true use publish_workspace_session '"workspace_session_id":"'"$s"'"}'
	is "$(get '.error.details | [.session_retained, .conflicts[0].path] | @csv')" 'true,"f"'
	error=true use file_read '"path":"none"}'
	is "$(get .error.kind)" not_found
	use destroy_workspace_session '"workspace_session_id":"'"$s"'"}'
	mcp_end
}
