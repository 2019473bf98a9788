# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib
load gate
load mcp-lines

@test "clients and sets that there are not are 100" {
	for a in "" x "claude-code codex" "--command codex" "-s x codex" "-x codex"; do
		# shellcheck disable=SC2086 # words
		run -100 --separate-stderr sb-mcp-config $a
		is "$output" ""
		has "$stderr" "sb-mcp-config: usage: sb-mcp-config"
	done
	run -100 sb-mcp-config -e $'a\nb' codex
	run -111 bash -c 'sb-mcp-config codex >/dev/full'
	HOME='' SB_STATE='' run sb-mcp-config codex
	[ "$status" != 0 ] || [ "$(id -u)" = 0 ]
}

@test "the examples are what is printed" {
	mkdir -p state/tokens
	printf 'TOKEN\nruntime\n' >state/tokens/mcp-runtime
	for f in "$SB_TOP"/mcp/*.*; do
		sb-mcp-config -e unix:///run/sb/gateway "$(basename "${f%.*}")" |
		    sed "s,\"command\": \".*/sandbox-mcp,\"command\": \"/usr/local/bin/sandbox-mcp,; s,^command = \".*/sandbox-mcp,command = \"/usr/local/bin/sandbox-mcp," >out
		same out "$f"
	done
}

@test "each set has a token of its own, made once, which grants that and nothing else" {
	need jq
	sb-mcp-config -s runtime -s observability -s runtime claude-code >out
	is "$(jq -c '.mcpServers | map_values(.args)' out)" '{"sb-runtime":["--set","runtime"],"sb-observability":["--set","observability"]}'
	for s in runtime observability; do
		is "$(jq -r ".mcpServers[\"sb-$s\"].env | .SANDBOX_GATEWAY_AUTH_TOKEN" out)" "$(head -n 1 state/tokens/mcp-$s)"
		is "$(jq -r ".mcpServers[\"sb-$s\"].env | keys | length" out)" 1
	done
	is "$(sb-token ls)" "$(printf 'mcp-observability\tobservability\nmcp-runtime\truntime\n')"
	sb-mcp-config -s runtime -s observability claude-code >again
	same again out
	[ ! -e state/tokens/mcp-management ]
	is "$(stat -c %a state/tokens/mcp-runtime)" 600
}

@test "a token may be named; it must be there and grant the set" {
	sb-token new -g management,runtime both >both
	sb-mcp-config -t both -s management -s runtime gemini >out
	is "$(jq -r '.mcpServers[].env.SANDBOX_GATEWAY_AUTH_TOKEN' out | uniq)" "$(cat both)"
	run -2 --separate-stderr sb-mcp-config -t both -s management -s observability codex
	is "$output" ""
	is "$stderr" "sb-mcp-config: fatal: token both does not grant observability"
	run -1 --separate-stderr sb-mcp-config -t no codex
	is "$stderr" "sb-mcp-config: fatal: no such token: no (sb-token new -g runtime no)"
}

@test "what is odd in an endpoint is quoted" {
	sb-mcp-config -e "unix:///a'b\"c\\d e" vscode >out
	is "$(jq -r '.servers["sb-runtime"].env.SANDBOX_GATEWAY_SOCKET' out)" "unix:///a'b\"c\\d e"
	sb-mcp-config -e "unix:///a'b\"c\\d e" --command >out
	has "$(cat out)" "SANDBOX_GATEWAY_SOCKET='unix:///a'\''b\"c\\d e'"
	SANDBOX_GATEWAY_SOCKET=127.0.0.1:1 sb-mcp-config cursor >out
	is "$(jq -r '.mcpServers["sb-runtime"].env.SANDBOX_GATEWAY_SOCKET' out)" 127.0.0.1:1
}

@test "without an endpoint it is that of sb-up, where that is up" {
	need jq
	socket() { sb-mcp-config cursor | jq -r '.mcpServers["sb-runtime"].env.SANDBOX_GATEWAY_SOCKET'; }
	is "$(socket)" null
	gateway_place
	unset SANDBOX_GATEWAY_SOCKET
	mkdir -p run
	serve "$SB_RUN/gateway" "$ops"
	is "$(socket)" "unix://$SB_RUN/gateway"
	is "$(SANDBOX_GATEWAY_SOCKET=127.0.0.1:1 socket)" 127.0.0.1:1
}

@test "the command serves its set through a real gateway, and nothing else" {
	need jq
	gateway_place
	gate_start store
	serve "$sock" "$ops"
	box_start
	# asks COMMAND REQUEST: its answer is in $heard.
	asks() {
		mcp_by bash -c "exec $1"
		legacy
		say "$2"
		hear
		mcp_end
	}
	sb-mcp-config -s runtime -s management --command >commands
	asks "$(sed -n 1p commands)" "$(rpc 2 tools/call "$(tool list_files '{"sandbox_id":"eos-1"}')")"
	is "$(jq -c .result.structuredContent <<<"$heard")" '{"path":"","entries":[],"truncated":false}'
	asks "$(sed -n 2p commands)" "$(rpc 2 tools/call "$(tool list_sandboxes)")"
	is "$(jq -c '.result.structuredContent.sandboxes[].id' <<<"$heard")" '"eos-1"'
	# The token of one in the server of the other.
	asks "$(sed -n 1p commands | sed 's/runtime$/management/')" "$(rpc 2 tools/call "$(tool list_sandboxes)")"
	is "$(jq -r .result.structuredContent.error.kind <<<"$heard")" unauthorized
	# The launchers of the sources do the same.
	asks "'$SB_TOP/mcp/observability'" "$(rpc 2 tools/list)"
	is "$(jq -r '.result.tools[0].name' <<<"$heard")" snapshot
}
