# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib
load gate
load box
load mcp-clients

# Clients of MCP, its server, the gateway, sandboxes, and what comes of it.

# start: a gateway.
start() {
	need overlay userns s6-svscan s6-ipcserver tcpserver
	mcp_start
	sb-up -l "unix://$T/gw" 3>&-
	gateway_place
}

# workspace NAME: a directory.
workspace() {
	mkdir "$1"
	printf 'l%d\n' 1 2 3 >"$1/f"
	printf 'l%d\n' 1 2 3 4 5 6 7 8 9 >"$1/shared"
}

# sandbox: one over the directory ws.
sandbox() {
	workspace ws
	sandbox=$(sandbox-manager-cli create_sandbox --image host --workspace-root "$T/ws" | jq -r .id)
}

teardown() {
	local rc=0
	boxes_end
	sb-down -t 0 3>&- || :
	sb_teardown || rc=$?
	nothing_left || rc=$?
	return $rc
}

@test "every tool of every set, once by a client and once by the command line: the answers are the same bytes" {
	start
	workspace one
	cp -a one two # with its times
	mcp ops "$T/one" "$T/two"
}

@test "three agents at once by MCP alone: edits, a merge, a refusal, its mending, who wrote what" {
	start
	sandbox
	listing ws >before
	for agent in ann bob cat; do sb-token new -g runtime $agent >>tokens; done
	# shellcheck disable=SC2046 # three words
	mcp agents "$sandbox" $(cat tokens)
	listing ws >after
	same before after
	# A token is good for its own set.
	echo 'list_sandboxes {}' | mcp talk v1 sandbox-mcp --set management --gateway-auth-token "$(head -n 1 tokens)" >out
	is "$(tail -n 1 out | jq -r .error.kind)" unauthorized
}

@test "calls that wait: others are answered, progress is told, and one that is cancelled is over" {
	start
	sandbox
	mcp wait v1 "$sandbox" &
	v1=$!
	mcp wait 2026-07-28 "$sandbox"
	wait $v1
}

@test "what is too long for one answer comes in parts that are the whole" {
	start
	seq 1000 9999 >lines
	sandbox
	sandbox-runtime-cli --sandbox-id "$sandbox" file_write --path big --content "$(cat lines)" >out
	mcp parts file_read '{"sandbox_id":"'"$sandbox"'","path":"big"}' content >whole 2>count
	same whole lines
	[ "$(cat count)" -gt 4 ]
	session=$(sandbox-runtime-cli --sandbox-id "$sandbox" create_workspace_session | jq -r .workspace_session_id)
	sandbox-runtime-cli --sandbox-id "$sandbox" file_write --workspace-session-id "$session" --path big \
	    --content "$(tac lines)" >out
	mcp parts diff_workspace_session '{"sandbox_id":"'"$sandbox"'","workspace_session_id":"'"$session"'"}' diff >whole 2>count
	sandbox-runtime-cli --sandbox-id "$sandbox" diff_workspace_session --workspace-session-id "$session" | jq -j .diff >lines
	same whole lines
	[ "$(cat count)" -gt 4 ]
}

# content: of the file, or the kind of the error, by the server of the coprocess.
content() {
	echo 'file_read {"sandbox_id":"'"$sandbox"'","path":"f"}' >&"${TALK[1]}"
	IFS= read -r -t 300 -u "${TALK[0]}" answer
	content=$(printf %s "$answer" | jq -r '.content // .error.kind')
}

@test "a gateway that is down is an error of the call; when it is back the same server goes on" {
	start
	sandbox
	coproc TALK { mcp talk legacy sandbox-mcp --set runtime; }
	IFS= read -r -t 300 -u "${TALK[0]}" server
	pid=$TALK_PID
	for again in 1 2; do
		content
		is "$content" $'l1\nl2\nl3'
		for s in gateway gateway-unix; do s6-svc -wD -dk "$SB_RUN/svc/$s"; done
		content
		is "$content" connection_error
		for s in gateway gateway-unix; do s6-svc -wU -u "$SB_RUN/svc/$s"; done
	done
	content
	is "$content" $'l1\nl2\nl3'
	kill -0 "$server"
	exec {TALK[1]}>&-
	wait "$pid"
}
