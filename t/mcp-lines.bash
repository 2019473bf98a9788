# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Helpers of tests of the MCP server; loaded after gate.

# mcp ARGS…: starts sandbox-mcp; its process is $mcp. say and hear talk to it.
mcp() { mcp_by sandbox-mcp "$@"; }

# mcp_by PROG…: by this.
mcp_by() {
	mkfifo "$T/to" "$T/from"
	"$@" <"$T/to" >"$T/from" 2>"$T/mcp.err" 3>&- &
	mcp=$!
	exec {to}>"$T/to" {from}<"$T/from"
	rm "$T/to" "$T/from"
}

say() { printf '%s\n' "$@" >&"$to"; }

# hear: the next line goes to $heard.
hear() { IFS= read -r -t 60 heard <&"$from" || fail "nothing heard; $(cat "$T/mcp.err")"; }

# hears JSON: just this line comes next.
hears() { hear && is "$heard" "$1"; }

# mcp_end: closes its input; it leaves, says nothing more, and its code is 0.
mcp_end() {
	local rest rc=0
	exec {to}>&-
	rest=$(cat <&"$from")
	exec {from}<&-
	wait "$mcp" || rc=$?
	is "$rest" ""
	is "$rc" 0
	is "$(cat "$T/mcp.err")" ""
}

V='"io.modelcontextprotocol/protocolVersion":"2026-07-28"'
META="$V"',"io.modelcontextprotocol/clientCapabilities":{}'
SERVER='{"name":"sandbox-mcp","title":"EphemeralOS Sandbox MCP","version":"0.1.0"}'
# shellcheck disable=SC2034 # for the tests
INFO='"_meta":{"io.modelcontextprotocol/serverInfo":'"$SERVER"'}'

# rpc ID METHOD [PARAMS]: a request; modern ID METHOD [MEMBERS]: one that claims
# the version it is of.
rpc() { printf '{"jsonrpc":"2.0","id":%s,"method":"%s"%s}' "$1" "$2" "${3:+,\"params\":$3}"; }
modern() { rpc "$1" "$2" "{${3:+$3,}\"_meta\":{$META}}"; }

# legacy [VERSION]: agrees on one.
legacy() {
	say "$(rpc '"init"' initialize '{"protocolVersion":"'"${1:-2025-11-25}"'","capabilities":{}}')"
	hear
	has "$heard" '"protocolVersion":"'"${1:-2025-11-25}"'"'
	say '{"jsonrpc":"2.0","method":"notifications/initialized"}'
}

# tool NAME [ARGUMENTS [MEMBERS]]: the parameters of a call.
tool() { printf '{"name":"%s"%s%s}' "$1" "${2:+,\"arguments\":$2}" "${3:+,$3}"; }

# result ID STRUCTURE IS_ERROR: the answer to a call.
result() {
	printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}],"structuredContent":%s,"isError":%s}}' \
	    "$1" "$(jq -Rs . <<<"$2" | sed 's/\\n"$/"/')" "$2" "$3"
}
rpc_error() { printf '{"jsonrpc":"2.0"%s,"error":{"code":%d,"message":"%s"}}' "${1:+,\"id\":$1}" "$2" "$3"; }
