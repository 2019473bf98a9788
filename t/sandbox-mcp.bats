# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib
load gate
load mcp-lines

# The protocol, line by line, against a gateway that is a shell script. What
# tools do is in flow-mcp.bats.

setup() {
	sb_setup
	gateway_place
}

# invalid ID MESSAGE: a tool says so.
invalid() { result "$1" "$(error invalid_request "$2")" true; }

# pong: the server is there, and has nothing else to say.
pong() {
	say "$(rpc '"p"' ping)"
	hears '{"jsonrpc":"2.0","id":"p","result":{}}'
}

# ---- start ----

@test "without a set, or with another, or two, it says so, prints nothing and is 2" {
	for a in "" "--set x" "--set" "--set management,runtime" "--set internal" "--set management --set runtime" "--set runtime x" "--x" "--set runtime --reference=1"; do
		# shellcheck disable=SC2086 # words
		run -2 --separate-stderr sandbox-mcp $a
		is "$output" ""
		has "$stderr" "--set management|runtime|observability"
	done
	run -0 sandbox-mcp -h
	has "$output" "usage: sandbox-mcp --set"
	run -0 sandbox-mcp --help
	is "$(sandbox-mcp --version)" "sandbox-mcp 0.1.0"
}

@test "the usage is the SYNOPSIS of the page" {
	need mandoc
	is "$(sandbox-mcp -h | sed 's/^usage: //')" \
	    "$(mandoc -T ascii -O width=1000 "$SB_TOP/doc/man1/sandbox-mcp.1" | sed 's/.\x08//g' |
		awk '/^[A-Z]/ { on = $0 == "SYNOPSIS"; next } on { print }' | tr -s ' \n' ' ' | sed 's/^ //; s/ $//')"
}

@test "a bad endpoint or token is a configuration error" {
	config() {
		local why=$1
		shift
		run -2 --separate-stderr sandbox-mcp --set runtime "$@"
		is "$output" ""
		is "$stderr" "sandbox-mcp configuration error: $why"
	}
	config "invalid gateway endpoint: TCP gateway endpoint must be a valid host:port address" --gateway-endpoint x
	config "gateway socket path must be non-empty" --gateway-socket=
	config "gateway auth token must be non-empty" --gateway-auth-token " "
	SB_OPS=$T/no config "unable to open the operations in $T/no: No such file or directory (SB_OPS names another directory)"
	mkdir -p ops/runtime && echo '{' >ops/runtime/x.json
	SB_OPS=$T/ops config "runtime/x.json: string expected"
}

@test "an input that ends at once is 0" {
	run -0 --separate-stderr sandbox-mcp --set management </dev/null
	is "$output$stderr" ""
}

# ---- the era of handshakes ----

@test "1, 2: each version that there was is agreed on, any other becomes the last" {
	mcp --set runtime
	for v in 2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28 2099-01-01 2024-10-07 1.0 ""; do
		say "$(rpc 1 initialize '{"protocolVersion":"'"$v"'","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}')"
		case $v in 2024-11-05 | 2025-*) ;; *) v=2025-11-25 ;; esac
		hears '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"'"$v"'","capabilities":{"tools":{}},"serverInfo":'"$SERVER"'}}'
		say "$(rpc 2 tools/list)"
		hear
		has "$heard" '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"exec_command",'
	done
	mcp_end
}

@test "3, 5: before a version is agreed on only that, and pings, are answered" {
	mcp --set runtime
	say "$(rpc 0 ping)"
	hears '{"jsonrpc":"2.0","id":0,"result":{}}'
	for m in tools/list tools/call; do
		say "$(rpc 1 $m)"
		hears "$(rpc_error 1 -32602 "send initialize first, or put io.modelcontextprotocol/protocolVersion into params._meta")"
	done
	say "$(rpc 1 foo/bar)"
	hears "$(rpc_error 1 -32601 foo/bar)"
	for p in "" '{}' '{"protocolVersion":5}' '{"protocolVersion":null}' '[]' '"x"'; do
		say "$(rpc 2 initialize "$p")"
		hear
		has "$heard" '{"jsonrpc":"2.0","id":2,"error":{"code":-32602,'
	done
	legacy
	pong
	mcp_end
}

@test "8: the list has one page; what is no parameter is said" {
	mcp --set management
	legacy
	for p in '' '{}' '{"cursor":null}' '{"_meta":{"progressToken":1}}' '{"cursor":null,"x":1}'; do
		say "$(rpc 1 tools/list "$p")"
		hear
		is "$(jq -c '.result | keys' <<<"$heard")" '["tools"]'
	done
	for p in '{"cursor":""}' '{"cursor":"x"}' '{"cursor":1}'; do
		say "$(rpc 1 tools/list "$p")"
		hears "$(rpc_error 1 -32602 "Invalid cursor")"
	done
	for p in '[]' '"x"' 1 null; do
		say "$(rpc 1 tools/list "$p")"
		hears "$(rpc_error 1 -32602 "params must be an object")"
	done
	say "$(rpc 1 tools/call)"
	hears "$(rpc_error 1 -32602 "name must be a string")"
	say "$(rpc 1 tools/call '{"name":5}')"
	hears "$(rpc_error 1 -32602 "name must be a string")"
	for a in '[]' '"{}"' 1 true; do
		say "$(rpc 1 tools/call '{"name":"list_sandboxes","arguments":'"$a"'}')"
		hears "$(rpc_error 1 -32602 "arguments must be an object")"
	done
	mcp_end
}

@test "18, 22: methods that there are not; notifications and replies are not answered" {
	mcp --set observability
	legacy
	for m in resources/list resources/templates/list resources/read resources/subscribe resources/unsubscribe \
	    prompts/list prompts/get completion/complete logging/setLevel tasks/get subscriptions/listen foo Ping; do
		say "$(rpc 1 $m)"
		hears "$(rpc_error 1 -32601 $m)"
	done
	say '{"jsonrpc":"2.0","method":"x/y"}' '{"jsonrpc":"2.0","method":"tools/list"}' \
	    '{"jsonrpc":"2.0","method":"notifications/initialized"}' '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}' \
	    '{"jsonrpc":"2.0","id":7,"result":{}}' '{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}' \
	    '{"jsonrpc":"2.0","method":"notifications/cancelled"}' '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}'
	pong
	mcp_end
}

@test "19: an id comes back as the bytes that it was, and null is none" {
	mcp --set runtime
	for id in 0 -1 9007199254740993 1.5 1e3 '"x"' '"\u0000a"' '""' '"\/\u00e4"' '"ä"'; do
		say "$(rpc "$id" ping)"
		hears '{"jsonrpc":"2.0","id":'"$id"',"result":{}}'
	done
	for id in null true '[]' '{}'; do
		say "$(rpc "$id" ping)"
		hears "$(rpc_error "" -32600 "Invalid Request")"
	done
	mcp_end
}

@test "20: what is no message is said, without an id where there is none" {
	mcp --set runtime
	for bad in '{' '"a' 'x' '{"a":01}' '{}}' '{"jsonrpc":"2.0","id":1,"method":"ping",}' $'\xff' $'{"\xc3":1}' $'{"a":"\x01"}' '"\ud800"' \
	    "$(printf '[%.0s' {1..300})" "$(printf '[%.0s' {1..129})$(printf ']%.0s' {1..129})"; do
		say "$bad"
		hears "$(rpc_error "" -32700 "Parse error")"
	done
	for bad in '[]' 5 '"x"' null '{}' '[1]' '{"jsonrpc":"2.0"}' '{"jsonrpc":"1.0","method":"ping"}' '{"jsonrpc":"2.0","method":5}'; do
		say "$bad"
		hears "$(rpc_error "" -32600 "Invalid Request")"
	done
	for bad in '{"id":3,"method":"ping"}' '{"jsonrpc":"1.0","id":3,"method":"ping"}' '{"jsonrpc":"2.0","id":3,"method":null}'; do
		say "$bad"
		hears "$(rpc_error 3 -32600 "Invalid Request")"
	done
	say "" "  " $'\r' $'\t\r' "$(rpc 4 ping)"$'\r' "  $(rpc 5 ping) "
	hears '{"jsonrpc":"2.0","id":4,"result":{}}'
	hears '{"jsonrpc":"2.0","id":5,"result":{}}'
	printf 'a\0b\n' >&"$to"
	hears "$(rpc_error "" -32700 "Parse error")"
	say "$(printf '{"jsonrpc":"2.0","id":6,"method":"ping","params":%s%s}' "$(printf '{"a":%.0s' {1..100})1" "$(printf '}%.0s' {1..100})")"
	hears '{"jsonrpc":"2.0","id":6,"result":{}}'
	mcp_end
}

@test "half of a surrogate pair is refused with the id of its message" {
	mcp --set runtime
	for half in '\ud800' '\uDFFF' 'a\udbffb' '\udc00\ud800' '\ud83d\ude00\ud83d' '\\\ud800'; do
		say "$(rpc 7 tools/call '{"name":"file_write","arguments":{"sandbox_id":"b","path":"a","content":"'"$half"'"}}')"
		hears "$(rpc_error 7 -32602 "a string has one half of a surrogate pair, which is no character")"
	done
	# Not one: an escaped backslash before it.
	say "$(rpc 8 ping '{"a":"\\ud800 \ud83d\ude00"}')"
	hears '{"jsonrpc":"2.0","id":8,"result":{}}'
	say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"\ud800"}}' "$(rpc 9 ping)"
	hears '{"jsonrpc":"2.0","id":9,"result":{}}'
	mcp_end
}

@test "a byte order mark at the start, and a line without an end, are taken" {
	printf '\xef\xbb\xbf%s\n%s' "$(rpc 1 ping)" "$(rpc 2 ping)" | sandbox-mcp --set runtime >out
	is "$(cat out)" $'{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":2,"result":{}}'
}

@test "20: a line that is too long is thrown away, one just below is not" {
	need perl
	perl -e 'print "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"" . "y" x 16777216 . "\"}\n";
	    print "z" x 20971520, "\n"; print "z" x 40000000, "\n";
	    print "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n"; print "z" x 20000000' |
	    sandbox-mcp --set runtime >out
	is "$(cat out)" "$(printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{}}' \
	    "$(rpc_error "" -32600 "the line is too long")" "$(rpc_error "" -32600 "the line is too long")" \
	    '{"jsonrpc":"2.0","id":2,"result":{}}' "$(rpc_error "" -32600 "the line is too long")")"
}

@test "21: batches are of 2025-03-26 only, and answered as one" {
	mcp --set runtime
	legacy 2025-03-26
	gateway 'echo "{\"a\":1}"'
	say "[$(rpc 1 ping),$(rpc 2 tools/call "$(tool list_files '{"sandbox_id":"e"}')"),{\"jsonrpc\":\"2.0\",\"method\":\"x\"},5,$(rpc 3 foo)]"
	hears '[{"jsonrpc":"2.0","id":1,"result":{}},'"$(rpc_error "" -32600 "Invalid Request"),$(rpc_error 3 -32601 foo),$(result 2 '{"a":1}' false)]"
	say '[{"jsonrpc":"2.0","method":"x"}]'
	for bad in '[]' "[$(rpc 1 ping),$(rpc 2 initialize '{"protocolVersion":"2025-03-26"}')]"; do
		say "$bad"
		hears "$(rpc_error "" -32600 "Invalid Request")"
	done
	legacy 2025-06-18
	say "[$(rpc 1 ping)]"
	hears "$(rpc_error "" -32600 "Invalid Request")"
	mcp_end
}

# ---- the era without ----

@test "11, 17: discovery comes first, asks nobody, and needs its keys" {
	mcp --set runtime
	say "$(modern '"server-discover-probe-1"' server/discover)"
	hears '{"jsonrpc":"2.0","id":"server-discover-probe-1","result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":300000,"cacheScope":"public",'"$INFO"'}}'
	for p in "" '{}' '{"_meta":{}}'; do
		say "$(rpc 1 server/discover "$p")"
		hears "$(rpc_error 1 -32602 "missing _meta keys io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities")"
	done
	legacy
	say "$(rpc 1 server/discover)"
	hear
	has "$heard" -32602
	mcp_end
}

@test "12, 13: what an answer is depends on its request, whatever came before" {
	mcp --set management
	say "$(modern 1 server/discover)" "$(rpc 2 initialize '{"protocolVersion":"2025-11-25"}')" "$(rpc 3 tools/list)" \
	    "$(modern 4 tools/list)" "$(rpc 5 ping)"
	hear
	has "$heard" '"supportedVersions"'
	hear
	has "$heard" '"protocolVersion":"2025-11-25"'
	hear
	is "$(jq -c '[.id, (.result | keys)]' <<<"$heard")" '[3,["tools"]]'
	hear
	is "$(jq -c '[.id, .result.resultType, .result.ttlMs, .result.cacheScope, (.result.tools | length > 0), .result._meta]' <<<"$heard")" \
	    "$(printf '[4,"complete",300000,"public",true,{"io.modelcontextprotocol/serverInfo":%s}]' "$SERVER")"
	hears '{"jsonrpc":"2.0","id":5,"result":{}}'
	mcp_end
}

@test "14, 15, 16: claims that are wrong, and methods that this era has not" {
	mcp --set runtime
	claim() { rpc 3 "${2:-tools/list}" '{"_meta":{'"$1"'}}'; }
	cap='"io.modelcontextprotocol/clientCapabilities":{}'
	for v in 2099-01-01 2025-11-25 ""; do
		say "$(claim '"io.modelcontextprotocol/protocolVersion":"'"$v"'",'$cap)"
		hears '{"jsonrpc":"2.0","id":3,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"'"$v"'"}}}'
	done
	say "$(claim "$V")"
	hears "$(rpc_error 3 -32602 "missing _meta key io.modelcontextprotocol/clientCapabilities")"
	for bad in "$V"',"io.modelcontextprotocol/clientCapabilities":"x"' '"io.modelcontextprotocol/protocolVersion":5,'$cap \
	    "$META"',"io.modelcontextprotocol/logLevel":"loud"' "$META"',"io.modelcontextprotocol/logLevel":5'; do
		say "$(claim "$bad" foo)"
		hear
		has "$heard" '{"jsonrpc":"2.0","id":3,"error":{"code":-32602,'
	done
	say "$(claim "$META"',"io.modelcontextprotocol/logLevel":"warning","x":1')"
	hear
	has "$heard" '"resultType":"complete"'
	for m in initialize ping logging/setLevel resources/list resources/subscribe tasks/get x/y; do
		say "$(modern 4 $m)"
		hears "$(rpc_error 4 -32601 $m)"
	done
	mcp_end
}

@test "28: a subscription is acknowledged, and then nothing" {
	mcp --set runtime
	say "$(modern '"s"' subscriptions/listen '"notifications":{"toolsListChanged":true}')"
	hears '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{}}}'
	pong
	say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}'
	pong
	mcp_end
}

# ---- tools ----

@test "7: the tools of each set, in their order, and the same in each revision" {
	for set in management runtime observability; do
		want=$(cd "$ops/$set" && jq -s -r 'sort_by(.order)[] | select(.mcp) | .name' ./*.json)
		mcp --set $set
		for v in 2024-11-05 2025-03-26 2025-06-18 2025-11-25; do
			legacy $v
			say "$(rpc 1 tools/list)"
			hear
			jq -c .result.tools <<<"$heard" >$v
			same $v 2024-11-05
		done
		say "$(modern 1 tools/list)"
		hear
		jq -c .result.tools <<<"$heard" >modern
		same modern 2024-11-05
		is "$(jq -r '.[].name' modern)" "$want"
		is "$(jq -c '.[] | keys_unsorted' modern | sort -u)" '["name","description","inputSchema","annotations"]'
		mcp_end
	done
}

# tools [ARGS…]: the array of them.
tools() {
	printf '%s\n' "$(modern 1 tools/list)" | sandbox-mcp "$@" | jq -c .result.tools
}

@test "the tools keep the rules that clients enforce, all three sets together, too" {
	for set in management runtime observability; do
		tools --set $set >$set
		is "$(jq -r -f "$SB_TOP/t/mcp-rules.jq" $set)" ""
	done
	is "$(jq -r '.[].name' management runtime observability | sort | uniq -d)" ""
}

@test "the rules find what breaks them" {
	breaks() {
		tools --set runtime | jq -r "$2" | jq -r -f "$SB_TOP/t/mcp-rules.jq" >out
		has "$(cat out)" "$1"
	}
	breaks "exec_command: keyword anyOf" '.[0].inputSchema.anyOf = []'
	breaks "exec_command.cmd: keyword minLength" '.[0].inputSchema.properties.cmd.minLength = 1'
	breaks "exec_command.cmd: no single type" '.[0].inputSchema.properties.cmd.type = ["string", "null"]'
	breaks "exec_command.cmd: no object" '.[0].inputSchema.properties.cmd = true'
	breaks "exec_command.cmd: no description" 'del(.[0].inputSchema.properties.cmd.description)'
	breaks "file_edit.edits: items without a type" 'del(.[5].inputSchema.properties.edits.items)'
	breaks "file_edit.edits[].x: no single type" '.[5].inputSchema.properties.edits.items.properties.x = {}'
	breaks "exec_command: no required" 'del(.[0].inputSchema.required)'
	breaks "exec_command: required is no property: x" '.[0].inputSchema.required += ["x"]'
	breaks "exec_command: additionalProperties" '.[0].inputSchema.additionalProperties = true'
	breaks "exec_command.a[]: name" '.[0].inputSchema.properties["a[]"] = {}'
	breaks "file_read.limit: bound beyond 2^53" '.[3].inputSchema.properties.limit.maximum = 18446744073709551615'
	breaks "file_read.limit: default of another type" '.[3].inputSchema.properties.limit.default = "1"'
	breaks "a b: name" '.[0].name = "a b"'
	breaks "file_read: twice" '.[0].name = "file_read"'
	breaks "exec_command: description" '.[0].description = "x" * 1001'
	breaks "exec_command: annotations" 'del(.[0].annotations)'
	breaks 'null at [0,"title"]' '.[0].title = null'
}

@test "what is said of effects: who reads, who destroys, who reaches out" {
	hints() { jq -r "[.[] | select(.annotations.$1 == $2).name] | join(\" \")" all; }
	for set in management runtime observability; do tools --set $set; done | jq -s add >all
	has " $(hints readOnlyHint true) " " file_read file_blame "
	for n in list_sandboxes inspect_sandbox read_command_lines list_files snapshot layerstack; do
		has " $(hints readOnlyHint true) " " $n "
	done
	is "$(hints openWorldHint true)" "exec_command write_command_stdin"
	for n in exec_command write_command_stdin file_write file_edit destroy_workspace_session kill_command; do
		has " $(hints destructiveHint true) " " $n "
	done
}

@test "the tools of the reference have its properties, in order" {
	mcp --set runtime
	legacy
	say "$(rpc 1 tools/list)"
	hear
	props() {
		jq -r --arg n "$1" '.result.tools[] | select(.name == $n).inputSchema | . as $s | .properties | to_entries |
		    map(.key as $k | $k + (if any($s.required[]; . == $k) then "*" else "" end) +
			(if .value.default then "=\(.value.default)" else "" end)) | join(", ")' <<<"$heard"
	}
	is "$(props exec_command)" "sandbox_id*, workspace_session_id, cmd*, timeout_ms, yield_time_ms"
	is "$(props write_command_stdin)" "sandbox_id*, command_session_id*, stdin*, yield_time_ms"
	is "$(props read_command_lines)" "sandbox_id*, command_session_id*, start_offset=0, limit=200"
	is "$(props file_read)" "sandbox_id*, path*, offset=1, limit=2000, workspace_session_id"
	is "$(props file_write)" "sandbox_id*, path*, content*, workspace_session_id"
	is "$(props file_edit)" "sandbox_id*, path*, edits*, workspace_session_id"
	is "$(props file_blame)" "sandbox_id*, path*"
	is "$(props create_workspace_session)" "sandbox_id*, network_profile=shared"
	is "$(props publish_workspace_session)" "sandbox_id*, workspace_session_id*, grace_s"
	is "$(props destroy_workspace_session)" "sandbox_id*, workspace_session_id*, grace_s"
	mcp_end
}

@test "--reference: its tools, objects and results, and nothing else" {
	gateway 'echo "{\"a\": 1.50}"'
	mcp --set runtime --reference
	legacy
	say "$(rpc 1 tools/list)"
	hear
	is "$(jq -r '.result.tools | map(.name) | join(" ")' <<<"$heard")" \
	    "exec_command write_command_stdin read_command_lines file_read file_write file_edit file_blame create_workspace_session publish_workspace_session destroy_workspace_session"
	is "$(jq -c '.result.tools[] | keys_unsorted' <<<"$heard" | sort -u)" '["name","description","inputSchema"]'
	is "$(jq -c '[.result.tools[].inputSchema.properties[] | keys_unsorted] | unique' <<<"$heard")" \
	    '[["type","description"],["type","description","default"],["type","minimum","description"],["type","minimum","description","default"]]'
	is "$(jq -c '.result.tools[] | select(.name == "file_edit").inputSchema.properties.edits.type' <<<"$heard")" '"array"'
	say "$(rpc 2 tools/call "$(tool file_read '{"sandbox_id":"e","path":"a"}' '"_meta":{"progressToken":1}')")"
	hears '{"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{"a":1.50},"isError":false}}'
	is "$(jq -c 'del(.request_id)' got)" '{"op":"file_read","scope":{"kind":"sandbox","sandbox_id":"e"},"args":{"path":"a","offset":1,"limit":2000},"_stream_logs":false}'
	say "$(rpc 3 tools/call "$(tool file_read '{"sandbox_id":"e","path":"a","limit":null}')")"
	hear
	has "$heard" '"message":"limit must be an unsigned integer"'
	mcp_end
}

@test "a request is what the command line sends" {
	gateway 'echo "{}"'
	mcp --set runtime --gateway-auth-token tok
	legacy
	say "$(rpc 1 tools/call "$(tool file_read '{"limit":20,"path":"a\u00e4","sandbox_id":"e"}')")"
	hears "$(result 1 '{}' false)"
	is "$(jq -c 'del(.args.max_text) | .request_id |= length' got)" \
	    '{"op":"file_read","request_id":36,"scope":{"kind":"sandbox","sandbox_id":"e"},"args":{"path":"aä","limit":20,"offset":1},"_sandbox_gateway_auth_token":"tok","_stream_logs":false}'
	say "$(rpc 1 tools/call "$(tool file_edit '{"sandbox_id":"e","path":"a","edits":[ {"old_string": "a", "new_string":"b"} ]}')")"
	hear
	is "$(jq -c .args.edits got)" '[{"old_string":"a","new_string":"b"}]'
	mcp_end
	mcp --set observability
	legacy
	say "$(rpc 1 tools/call "$(tool snapshot)")"
	hear
	is "$(jq -c '[.scope, .args]' got)" '[{"kind":"system"},{}]'
	say "$(rpc 1 tools/call "$(tool snapshot '{"sandbox_id":"e"}')")"
	hear
	is "$(jq -c '[.scope, .args]' got)" '[{"kind":"sandbox","sandbox_id":"e"},{}]'
	mcp_end
	mcp --set management
	legacy
	say "$(rpc 1 tools/call "$(tool inspect_sandbox '{"sandbox_id":"e"}')")"
	hear
	is "$(jq -c '[.scope, .args]' got)" '[{"kind":"system"},{"sandbox_id":"e"}]'
	mcp_end
}

@test "arguments that are wrong, in the words of the interface and the order of its checks" {
	mcp --set runtime
	legacy
	wrong() {
		say "$(rpc 1 tools/call "$(tool "$2" "$3")")"
		hears "$(invalid 1 "$1")"
	}
	wrong "unknown operation: x" x
	wrong "unknown operation: list_sandboxes" list_sandboxes
	wrong "unknown operation: squash_layerstack" squash_layerstack
	wrong "unknown operation: resize_command" resize_command '{"x":1}'
	wrong "unknown operation: " ""
	wrong "sandbox_id is required for runtime operations" file_read '{"x":1}'
	wrong "sandbox_id is required for runtime operations" file_read
	wrong "sandbox_id must be a string" file_read '{"sandbox_id":5}'
	wrong "sandbox_id must be a string" file_read '{"sandbox_id":null}'
	wrong "sandbox_id must be non-empty" file_read '{"sandbox_id":" \t"}'
	wrong "unknown argument for file_read: b" file_read '{"sandbox_id":"e","c":1,"b":1,"path":5}'
	wrong "unknown argument for exec_command: cwd" exec_command '{"sandbox_id":"e","cmd":"x","cwd":"x"}'
	wrong "path must be a string" file_read '{"sandbox_id":"e","path":5}'
	wrong "path must be a string" file_read '{"sandbox_id":"e","path":null}'
	for v in '"5"' -1 1.5 true 18446744073709551616 1e99 '[]'; do
		wrong "limit must be an unsigned integer" file_read '{"sandbox_id":"e","path":"a","limit":'"$v"'}'
	done
	wrong "edits must be a JSON array" file_edit '{"sandbox_id":"e","path":"a","edits":{}}'
	wrong "edits must be a JSON array" file_edit '{"sandbox_id":"e","path":"a","edits":"{}"}'
	wrong "edits must be a JSON array" file_edit '{"sandbox_id":"e","path":"a","edits":"[,]"}'
	for v in '"1"' 1e999 true; do
		wrong "grace_s must be a finite number" destroy_workspace_session '{"sandbox_id":"e","workspace_session_id":"s","grace_s":'"$v"'}'
	done
	wrong "path is required for file_read" file_read '{"sandbox_id":"e","limit":1}'
	mcp_end
	mcp --set observability
	legacy
	wrong "sandbox_id is required for layerstack" layerstack '{}'
	wrong "--sandbox-id must be non-empty" snapshot '{"sandbox_id":""}'
	wrong "sandbox_id must be a string" snapshot '{"sandbox_id":[]}'
	mcp_end
	mcp --set management
	legacy
	wrong "sandbox_id is required for inspect_sandbox" inspect_sandbox '{}'
	wrong "sandbox_id must be a string" inspect_sandbox '{"sandbox_id":5}'
	wrong "unknown argument for list_sandboxes: sandbox_id" list_sandboxes '{"sandbox_id":"e"}'
	mcp_end
}

@test "27: what clients do to arguments is put right" {
	gateway 'echo "{}"'
	mcp --set runtime
	legacy
	right() {
		say "$(rpc 1 tools/call "$(tool "$2" "$3" "${4:-}")")"
		hears "$(result 1 '{}' false)"
		is "$(jq -c '.args | del(.max_text)' got)" "$1"
	}
	right '{"path":"a","limit":100}' list_files '{"sandbox_id":"e","path":"a","wait_for_previous":true}'
	right '{"path":"a","edits":[{"old_string":"x","new_string":"y"}]}' file_edit \
	    '{"sandbox_id":"e","path":"a","edits":"[{\"old_string\": \"x\",\"new_string\":\"y\"}]"}'
	right '{"path":"a","limit":200,"offset":1}' file_read '{"sandbox_id":"e","path":"a","limit":200.0,"offset":null}'
	right '{"path":"a","limit":200,"offset":1}' file_read '{"sandbox_id":"e","path":"a","limit":2e2,"workspace_session_id":null}'
	right '{"path":"a","offset":1,"limit":2000}' file_read '{"sandbox_id":"e","path":"a"}' '"_meta":{"claudecode/toolUseId":"x"},"task":{"ttl":1},"callId":"x"'
	right '{"cmd":"x","yield_time_ms":20000}' exec_command '{"sandbox_id":"e","cmd":"x","yield_time_ms":120000}'
	right '{"cmd":"x","yield_time_ms":20000}' exec_command '{"sandbox_id":"e","cmd":"x","yield_time_ms":18446744073709551615}'
	right '{"cmd":"x","yield_time_ms":7}' exec_command '{"sandbox_id":"e","cmd":"x","yield_time_ms":7}'
	mcp_end
	mcp --set management
	legacy
	for a in "" null '{}' '{"wait_for_previous":false}'; do
		say "$(rpc 1 tools/call "$(tool list_sandboxes "$a")")"
		hears "$(result 1 '{}' false)"
	done
	mcp_end
}

# ---- answers ----

@test "9: text and structure are equal, in both eras, and as JavaScript prints them" {
	gateway 'printf "%s\n" "{ \"a\\/b\": \"\\u00e4\\u0041\\u001F\\ud83d\\ude00\\u007f\\u000a\\\"\\\\\\b\", \"n\": [1.0, 0.100, 1.25, -0, 9007199254740993, 1e5, true, null, { }] }"'
	mcp --set management
	legacy
	want='{"a/b":"äA\u001f😀'$'\x7f''\n\"\\\b","n":[1,0.1,1.25,0,9007199254740993,1e5,true,null,{}]}'
	say "$(rpc 1 tools/call "$(tool list_sandboxes)")"
	hear
	is "${heard#*structuredContent\":}" "$want"',"isError":false}}'
	is "$(jq -r '.result.content[0].text' <<<"$heard")" "$want"
	say "$(modern 2 tools/call '"name":"list_sandboxes","arguments":{}')"
	hear
	has "$heard" '"structuredContent":'"$want"',"isError":false,'"$INFO"'}}'
	has "$heard" '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"'
	gateway 'echo "{\"error\":{\"kind\":\"k\",\"message\":\"m\",\"details\":{}}}"'
	say "$(modern 2 tools/call '"name":"list_sandboxes"')"
	hear
	is "$(jq -c '[.result.isError, .result.structuredContent, .result.content[0].text, .error]' <<<"$heard")" \
	    '[true,{"error":{"kind":"k","message":"m","details":{}}},"{\"error\":{\"kind\":\"k\",\"message\":\"m\",\"details\":{}}}",null]'
	mcp_end
}

@test "10: a gateway that is down is an error of the tool; when it is there again it is asked" {
	mcp --set management
	legacy
	say "$(rpc 1 tools/call "$(tool list_sandboxes)")"
	hears "$(result 1 "$(error connection_error "gateway connection failed: No such file or directory")" true)"
	pong
	gateway 'echo "{}"'
	say "$(rpc 2 tools/call "$(tool list_sandboxes)")"
	hears "$(result 2 '{}' false)"
	gate_stop
	say "$(rpc 3 tools/call "$(tool list_sandboxes)")"
	hear
	has "$heard" 'gateway connection failed: '
	rm -f "$sock"
	gateway 'echo "{}"'
	say "$(rpc 4 tools/call "$(tool list_sandboxes)")"
	hears "$(result 4 '{}' false)"
	mcp_end
	mcp --set management --gateway-endpoint 127.0.0.1:1
	legacy
	say "$(rpc 1 tools/call "$(tool list_sandboxes)")"
	hears "$(result 1 "$(error connection_error "gateway connection failed: Connection refused")" true)"
	mcp_end
}

@test "29: answers that are none, or too large, are errors of the tool" {
	mcp --set management
	legacy
	ends() {
		gateway "$1"
		say "$(rpc 1 tools/call "$(tool list_sandboxes)")"
		hear
		is "$(jq -r '.result | [.isError, .structuredContent.error.kind, .structuredContent.error.message] | join(" ")' <<<"$heard")" "$2"
		is "$(jq -r '.result | .content[0].text == (.structuredContent | tojson)' <<<"$heard")" true
	}
	ends 'exit' "true protocol_error gateway returned an empty response"
	ends 'echo "[1]"' "true protocol_error gateway response must be a JSON object"
	ends 'echo 5' "true protocol_error gateway response must be a JSON object"
	ends 'printf "{}"' "true protocol_error gateway response was not newline terminated"
	ends 'printf "{\"a\":\"\\377\"}\n"' "true protocol_error gateway response json failed: not UTF-8 at byte 0"
	ends 'echo "cli_log(\"a\")"' "true protocol_error gateway closed before returning a final response"
	ends 'printf "{\"a\":\""; head -c 12000000 /dev/zero | tr "\0" x; echo "\"}"' \
	    "true request_too_large the answer of list_sandboxes has 12000008 bytes, more than clients take: ask for less of it, by its arguments (offset and limit, where it has them)"
	ends 'head -c 17000000 /dev/zero | tr "\0" x; echo' "true protocol_error gateway response exceeded 16777216 bytes"
	gateway 'printf "{\"a\":\"\\342\\200\\250\"}\n"'
	say "$(rpc 1 tools/call "$(tool list_sandboxes)")"
	hears "$(result 1 $'{"a":"\xe2\x80\xa8"}' false)"
	gateway 'printf "{\"a\":\""; head -c 300000 /dev/zero | tr "\0" x; echo "\"}"'
	say "$(rpc 1 tools/call "$(tool list_sandboxes)")"
	hear
	is ${#heard} $((600000 + 130))
	mcp_end
}

# ---- at once ----

# waits: a gateway that answers {"n":"N"} when N is released, for the sandbox N;
# it is in the file "asked", and then in "answered".
waits() {
	gateway 'n=${line#*\"sandbox_id\":\"}; n=${n%%\"*}
	    mkfifo '"$T"'/go$n 2>/dev/null
	    echo $n >>'"$T"'/asked
	    [ $n != says ] || printf "%s\n" "cli_log(\"first\\n\\u00e4\")"
	    : <'"$T"'/go$n
	    echo "{\"n\":\"$n\"}"; echo $n >>'"$T"'/answered'
}
# release N: whoever waits, or will wait.
release() {
	mkfifo "$T/go$1" 2>/dev/null || :
	exec {released}<>"$T/go$1"
}

@test "23: calls run at once, and are answered as they end" {
	waits
	mcp --set runtime
	legacy
	for i in 1 2 3 4 5 6 7 8; do
		say "$(rpc $i tools/call "$(tool list_files '{"sandbox_id":"'$i'"}')")"
	done
	eventually eval '[ "$(sort asked | uniq | wc -l)" = 8 ]'
	pong
	say "$(rpc 9 tools/list)" "$(modern 10 server/discover)"
	hear
	is "$(jq .id <<<"$heard")" 9
	hear
	is "$(jq .id <<<"$heard")" 10
	for i in 5 8 1 3 2 7 4 6; do
		release $i
		hears "$(result $i '{"n":"'$i'"}' false)"
	done
	mcp_end
}

@test "25: a call that is cancelled is given up, nothing more is said of it, others go on" {
	waits
	mcp --set runtime
	legacy
	say "$(rpc 6 tools/call "$(tool list_files '{"sandbox_id":"e"}')")"
	eventually test -e asked
	for id in '"6"' 7 null '{}'; do
		say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":'$id',"reason":"x"}}'
	done
	pong
	say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6,"reason":"x"}}'
	say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}'
	pong
	release e
	# It holds no connection any more.
	is "$(find "/proc/$mcp/fd" -lname 'socket:*' | wc -l)" 0
	gateway 'echo "{}"'
	say "$(rpc 6 tools/call "$(tool list_files '{"sandbox_id":"e"}')")"
	hears "$(result 6 '{}' false)"
	mcp_end
}

@test "24: who gives a token hears how it gets on, until the answer; who gives none does not" {
	need strace
	waits
	mcp_by strace -qq -ttt -s 3000 -e trace=write -e signal=none -o trace sandbox-mcp --set runtime
	legacy
	say "$(rpc 1 tools/call "$(tool list_files '{"sandbox_id":"e"}')")"
	eventually test -s asked
	is "$(jq ._stream_logs got)" false
	say "$(rpc 2 tools/call "$(tool list_files '{"sandbox_id":"says"}' '"_meta":{"progressToken":"t\/1"}')")"
	progress() { printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t\/1","progress":%d,"message":"%s"}}' "$1" "$2"; }
	hears "$(progress 1 'first\nä')"
	is "$(jq ._stream_logs got)" true
	for i in 2 3; do
		hear
		is "$(sed -E 's/[0-9]+ s"/N s"/' <<<"$heard")" "$(progress $i "list_files: running, N s")"
	done
	release says
	until hear && [[ $heard = *'"id":2'* ]]; do
		has "$heard" '"progressToken"'
	done
	is "$heard" "$(result 2 '{"n":"says"}' false)"
	release e
	hears "$(result 1 '{"n":"e"}' false)"
	mcp_end
	# Not just before the answer.
	perl -ne '/^(\d+\.\d+) write\(1, / or next; $t = $1; $p = $t if /notifications\/progress/;
	    print $t - $p >= 0.015 ? "later" : "at once" if /\\"id\\":2,\\"result/' trace >when
	is "$(cat when)" later
}

@test "progress: tokens of any kind that is one, and none of a kind that is not" {
	gateway 'echo "cli_log(\"x\")"; echo "{}"'
	mcp --set runtime
	legacy
	for t in 0 -1 '""' '"\u0000"' 9007199254740993; do
		say "$(rpc 1 tools/call "$(tool list_files '{"sandbox_id":"e"}' '"_meta":{"progressToken":'$t'}')")"
		hears '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'$t',"progress":1,"message":"x"}}'
		hears "$(result 1 '{}' false)"
	done
	for t in null true 1.5 1e3 '{}' '[]'; do
		say "$(rpc 1 tools/call "$(tool list_files '{"sandbox_id":"e"}' '"_meta":{"progressToken":'$t'}')")"
		hears "$(result 1 '{}' false)"
	done
	mcp_end
}

@test "a call that nobody answers is answered within 30 s; one that takes long goes on for who listens" {
	waits
	mcp --set runtime
	legacy
	say "$(rpc 1 tools/call "$(tool list_files '{"sandbox_id":"e"}')")"
	say "$(rpc 2 tools/call "$(tool publish_workspace_session '{"sandbox_id":"e","workspace_session_id":"s"}')")"
	say "$(rpc 3 tools/call "$(tool publish_workspace_session '{"sandbox_id":"e","workspace_session_id":"s"}' '"_meta":{"progressToken":3}')")"
	while hear; do
		case $heard in
		*'"id":1'*) is "$heard" "$(result 1 "$(error connection_error "no answer within 29000 ms: given up" '"reason":"timeout"')" true)" ;;
		*'"id":2'*)
			is "$heard" "$(result 2 "$(error connection_error "no answer within 29000 ms: it may still go on, look before you try again" '"reason":"timeout"')" true)"
			break ;;
		*'"progress":'*) has "$heard" "publish_workspace_session: running" ;;
		*) fail "$heard" ;;
		esac
	done
	hear
	has "$heard" "publish_workspace_session: running"
	say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}'
	pong
	mcp_end
	release e
}

@test "on_cancel: who calls says what becomes of the command, or who starts the server" {
	gateway 'echo "{}"'
	wants() {
		say "$(rpc 1 tools/call "$(tool "$2" "$3" "${4:-}")")"
		hears "$(result 1 '{}' false)"
		is "$(jq -c .args.on_cancel got)" "$1"
	}
	end='"_meta":{"sb/on_cancel":"end"}'
	mcp --set runtime
	legacy
	wants null exec_command '{"sandbox_id":"e","cmd":"x"}'
	wants '"end"' exec_command '{"sandbox_id":"e","cmd":"x"}' "$end"
	wants null exec_command '{"sandbox_id":"e","cmd":"x"}' '"_meta":{"sb/on_cancel":"keep"}'
	wants null list_files '{"sandbox_id":"e"}' "$end"
	mcp_end
	mcp --set runtime --end-cancelled
	legacy
	wants '"end"' exec_command '{"sandbox_id":"e","cmd":"x"}'
	wants null exec_command '{"sandbox_id":"e","cmd":"x"}' '"_meta":{"sb/on_cancel":"keep"}'
	mcp_end
}

@test "200 calls may wait, and one more is told so" {
	waits
	mcp --set runtime
	legacy
	for i in $(seq 201); do
		rpc "$i" tools/call "$(tool list_files '{"sandbox_id":"1"}')"
		echo
	done >calls
	cat calls >&"$to"
	hears "$(result 201 "$(error server_busy "200 calls are waiting, which is the most")" true)"
	release 1
	for i in $(seq 200); do
		hear
		jq .id <<<"$heard"
	done >ids
	is "$(sort -n ids | tr '\n' ' ')" "$(seq -s ' ' 200) "
	mcp_end
}

# ---- the end ----

@test "26: calls that are there when the input ends are answered, others are left" {
	waits
	mcp --set runtime
	legacy
	say "$(rpc 1 tools/call "$(tool list_files '{"sandbox_id":"1"}')")" "$(rpc 2 tools/call "$(tool list_files '{"sandbox_id":"2"}')")"
	eventually eval '[ "$(sort asked | uniq | wc -l)" = 2 ]'
	# When it goes on the end is there, and an answer.
	kill -STOP "$mcp"
	release 1
	eventually grep -qx 1 answered
	exec {to}>&-
	kill -CONT "$mcp"
	is "$(cat <&"$from")" "$(result 1 '{"n":"1"}' false)"
	wait "$mcp"
	release 2
}

@test "26: signals end it, and a reader that has gone, too" {
	for s in TERM INT HUP; do
		# A background job of a shell would ignore INT.
		mcp_by env --default-signal=INT sandbox-mcp --set runtime
		legacy
		kill -$s "$mcp"
		wait "$mcp" || :
		is "$(cat mcp.err)" ""
		exec {to}>&- {from}<&-
	done
	for with in "" say; do
		mcp --set runtime
		legacy
		exec {from}<&-
		[ -z "$with" ] || (say "$(rpc 1 ping)") 2>/dev/null || :
		wait "$mcp"
		exec {to}>&-
		is "$(cat mcp.err)" ""
	done
}

@test "an output that cannot be written is 1" {
	run -1 --separate-stderr bash -c 'echo "$1" | sandbox-mcp --set runtime >/dev/full' - "$(rpc 1 ping)"
	is "$stderr" "sandbox-mcp server error: unable to write: No space left on device"
}

@test "who does not read holds up nothing but himself: all comes in the end" {
	mcp --set runtime
	legacy
	for i in $(seq 100); do
		rpc "$i" tools/list
		echo
	done >calls
	cat calls >&"$to"
	say "$(rpc '"last"' ping)"
	for i in $(seq 100); do
		hear
		case $heard in '{"jsonrpc":"2.0","id":'"$i"',"result":{"tools":['*) ;; *) fail "$heard" ;; esac
	done
	hears '{"jsonrpc":"2.0","id":"last","result":{}}'
	mcp_end
}

# ---- hostile input ----

# session: lines of all kinds.
session() {
	printf '%s\n' "$(rpc 1 initialize '{"protocolVersion":"2025-03-26"}')" "$(rpc '"ä\n"' ping)" "$(rpc 2 tools/list)" \
	    "$(modern 3 server/discover)" "$(modern '"s"' subscriptions/listen)" "$(rpc 4 tools/call "$(tool list_files '{"sandbox_id":"e"}')")" \
	    "[$(rpc 5 ping),$(rpc 6 foo)]" '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0041"}}' "$(rpc 7 tools/call "$(tool file_edit '{"sandbox_id":"e","path":"ä","edits":"[]"}')")"
}

@test "lines in pieces of any size are the same lines" {
	need perl
	session >lines
	sandbox-mcp --set runtime <lines | sort >want
	is "$(wc -l <want)" 8
	for n in 1 2 3 7 64; do
		perl -e '$| = 1; undef $/; $_ = <STDIN>; while (length) { syswrite STDOUT, substr $_, 0, $ARGV[0], "" }' $n <lines |
		    sandbox-mcp --set runtime | sort >out
		same out want
	done
}

@test "damaged lines: it lives, and says nothing but messages" {
	need perl
	session >lines
	perl -e 'srand 7; my @l = <STDIN>; for (1 .. 3000) { my $l = $l[rand @l]; chomp $l;
	    for (0 .. rand 4) { my $at = rand length $l; my $k = int rand 5;
		if ($k == 0) { substr $l, $at, 1, chr rand 256 } elsif ($k == 1) { substr $l, $at, 1 + rand 9, "" }
		elsif ($k == 2) { substr $l, $at, 0, substr $l, rand length $l, 20 }
		elsif ($k == 3) { substr $l, $at, 0, ("[", "{", "\"", "\\", "]", "}", "\0", "\xff", "\\u0000", "\xed\xa0\x80", "1e999", ",")[rand 12] }
		else { $l = substr $l, 0, $at } }
	    $l =~ s/\n//g; print "$l\n" } print "{\"jsonrpc\":\"2.0\",\"id\":\"end\",\"method\":\"ping\"}\n"' <lines >hostile
	sandbox-mcp --set runtime <hostile >out 2>err
	is "$(cat err)" ""
	is "$(jq -c 'if type == "array" then .[] else . end | select(.jsonrpc != "2.0")' out)" ""
	grep -qxF '{"jsonrpc":"2.0","id":"end","result":{}}' out
}
