# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib
load gate
load mcp-clients

# sandbox-mcp and clients that people have, as far as no sandbox is needed.

sets='management runtime observability'

# names SET: of its tools, sorted.
names() { jq -r 'select(.mcp).name' "$ops/$1"/*.json | sort; }

# inspector ARGS…: its command line, which may have nothing to complain of.
inspector() {
	package inspector clients/launcher/build/index.js --cli --format json "$@" >out 2>err || fail "$*:" "$(cat out err)"
}

# A gateway that knows no sandbox.
empty_gateway() {
	need s6-ipcserver
	gate_start
	serve "$T/gw" "$ops"
	gateway_place
}

@test "A24 (R87): the SDK and client v2 in each era take all tools of every set, and so do the rules" {
	mcp_start
	for set in $sets; do
		mcp list v1 sandbox-mcp --set "$set" >names
		is "$(sort names)" "$(names "$set")"
		for kind in legacy auto 2026-07-28; do
			mcp list $kind sandbox-mcp --set "$set" >others
			same names others
		done
		cat names >>all
	done
	# A client may have all three servers.
	is "$(sort all | uniq -d)" ""
}

@test "A24 (R87): the inspector has nothing to say of any schema" {
	mcp_start
	for set in $sets; do
		for era in legacy auto modern; do
			inspector --protocol-era $era --method tools/list --strict sandbox-mcp --set "$set"
			is "$(jq -r '.result.tools[].name' out | sort)" "$(names "$set")"
			run ! grep -iE 'warning|error' err
		done
	done
}

# handshake VERSION: what a client begins with.
handshake() {
	echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"'"$1"'","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
	echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
	echo '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
}

@test "A24 (R84): nothing but JSON-RPC on standard output, whatever fails, and the end of input is 0" {
	need jq
	empty_gateway
	for set in $sets; do
		case $set in
		management) call='"list_sandboxes"' ;;
		runtime) call='"list_files","arguments":{"sandbox_id":"none"}' ;;
		observability) call='"layerstack","arguments":{"sandbox_id":"none"}' ;;
		esac
		{
			handshake 2025-11-25
			echo '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":'$call'}}'
			echo '{"jsonrpc":"2.0","id":4,"method":"none/such"}'
			echo 'not JSON'
		} >in
		works() { sandbox-mcp --set $set; }
		down() { SANDBOX_GATEWAY_SOCKET=unix://$T/none sandbox-mcp --set $set; }
		wrong() { sandbox-mcp --set $set --gateway-auth-token none; }
		bare() { (cd / && env -i "PATH=$PATH" "SANDBOX_GATEWAY_SOCKET=$SANDBOX_GATEWAY_SOCKET" sandbox-mcp --set $set); }
		loud() { DEBUG=1 SB_TRACE=1 RUST_LOG=debug sandbox-mcp --set $set; }
		for mode in works down wrong bare loud; do
			$mode <in >out 2>err || fail "$set, $mode: exit $?" "$(cat err)"
			is "$set, $mode: $(cat err)" "$set, $mode: "
			jq -es 'all(.jsonrpc == "2.0" and (has("result") != has("error")))' out >/dev/null || fail "$set, $mode:" "$(cat out)"
			is "$(jq -r '.id' out | sort | tr '\n' ' ')" "1 2 3 4 null "
			is "$(jq -c 'select(.id == 4 or .id == null).error.code' out | sort | tr '\n' ' ')" "-32601 -32700 "
			kind=$(jq -r 'select(.id == 3).result.structuredContent.error.kind' out)
			case $mode in
			down) is "$mode: $kind" "$mode: connection_error" ;;
			wrong | bare) is "$mode: $kind" "$mode: unauthorized" ;;
			*) is "$mode: $kind" "$mode: $([ $set = management ] && echo null || echo invalid_request)" ;;
			esac
		done
	done
}

@test "A24 (R85): the version that was asked for, or the newest that begins with a handshake" {
	need jq
	while read -r asked answer; do
		handshake "$asked" | sandbox-mcp --set runtime >out
		is "$asked: $(jq -r 'select(.id == 1).result.protocolVersion' out)" "$asked: $answer"
		jq -e 'select(.id == 2).result.tools | length > 0' out >/dev/null
	done <<-EOT
		2024-11-05 2024-11-05
		2025-03-26 2025-03-26
		2025-06-18 2025-06-18
		2025-11-25 2025-11-25
		2026-07-28 2025-11-25
		2099-01-01 2025-11-25
		1900-01-01 2025-11-25
	EOT
}

@test "the inspector's load: 500 calls, twenty at once, and none fails" {
	mcp_start
	empty_gateway
	inspector --method tools/call --tool-name list_sandboxes --load --load-requests 500 --load-concurrency 20 \
	    sandbox-mcp --set management --gateway-endpoint "$SANDBOX_GATEWAY_SOCKET"
	is "$(jq -c '.result | [.ok, .toolErrors, .errors]' out)" '[500,0,0]'
}

@test "a client that is given what sb-mcp-config prints has the tools, and the rights of its set" {
	mcp_start
	empty_gateway
	sb-mcp-config -s management -s runtime claude-code >config.json
	for set in management runtime; do
		inspector --config config.json --server sb-$set --method tools/list
		is "$(jq -r '.result.tools[].name' out | sort)" "$(names $set)"
	done
	inspector --config config.json --server sb-management --method tools/call --tool-name list_sandboxes
	is "$(jq -c .result.structuredContent out)" '{"sandboxes":[]}'
}

# scenario NAME VERSION: of the conformance suite; what it counted.
scenario() {
	package conformance dist/index.js server --url "http://127.0.0.1:$port/mcp" --scenario "$1" --spec-version "$2" \
	    --timeout 120000 >"$1.out" 2>&1 || :
	grep -oE '^Passed: [0-9]+/[0-9]+, [0-9]+ failed, [0-9]+ warnings' "$1.out"
}

@test "the conformance suite: what it asks of a server that has tools alone" {
	mcp_start
	empty_gateway
	"$NODE" mcp/bridge.mjs sandbox-mcp --set runtime >port 2>err 3>&- &
	echo $! >>"$T/servers"
	eventually test -s port
	port=$(cat port)
	while read -r name version passed; do
		is "$name: $(scenario "$name" "$version")" "$name: Passed: $passed" || fail "$(cat "$name.out")"
	done <<-EOT
		server-initialize 2025-11-25 2/2, 0 failed, 0 warnings
		ping 2025-11-25 2/2, 0 failed, 0 warnings
		tools-list 2025-11-25 3/3, 0 failed, 0 warnings
		tools-list 2026-07-28 4/4, 0 failed, 0 warnings
		server-stateless 2026-07-28 26/28, 2 failed, 0 warnings
	EOT
	# The two want a tool of the suite's own, which there is not.
	is "$(sed 's/\x1b\[[0-9;]*m//g' server-stateless.out | awk '/ FAILURE / { print $2 }' | tr '\n' ' ')" \
	    "[sep-2575-server-rejects-undeclared-capability [sep-2575-missing-capability-http-400 "
}
