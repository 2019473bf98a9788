# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Helpers of the tests with real clients of MCP; loaded after lib.

: "${SB_NODE:=$SB_TOP/build/node}" # made by t/deps mcp

# The clients beside the programs that use them, as node looks for them there.
mcp_start() {
	local found
	found=$(echo "$SB_NODE"/node_modules/node-linux-*/bin/node)
	need "$found" jq "$@"
	NODE=$found
	cp -R "$SB_TOP/t/mcp" "$T/mcp"
	ln -s "$SB_NODE/node_modules" "$T/node_modules"
	export MCP_INSPECTOR_SECRET_STORE=memory
	# What runs here is asked directly.
	unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
}

# mcp PROGRAM ARGS…: one of t/mcp.
mcp() { "$NODE" "$T/mcp/$1.mjs" "${@:2}" 3>&-; }

# package NAME FILE ARGS…: a program of a package.
package() { "$NODE" "$T/node_modules/@modelcontextprotocol/$1/$2" "${@:3}" 3>&-; }
