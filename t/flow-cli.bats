# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib
load gate

# Command line, gateway, the gate of a sandbox, command, and back.

start() {
	need overlay userns jq s6-ipcserver
	mkdir -p ws
	[ -e ws/f ] || printf 'l1\nl2\nl3\n' >ws/f
	gate_start store
	box_start
	# A path that an endpoint may have, however long that of the test is.
	local short=$BATS_RUN_TMPDIR/$BATS_SUITE_TEST_NUMBER
	ln -s "$T" "$short"
	serve "$T/gw" "$ops"
	export SANDBOX_GATEWAY_SOCKET=unix://$short/gw
	: >asked
}

# What is promised of every call: one object on one of the two.
ask_by() {
	local rc=0
	"$@" >out 2>err </dev/null || rc=$?
	if [ $rc = 0 ]; then
		is "$(wc -l <out)" 1 && jq -e 'type == "object" and (has("error") | not)' out >/dev/null && [ ! -s err ] ||
		    fail "$*:" "$(cat out)" "$(cat err)"
	else
		[ ! -s out ] && is "$(wc -l <err)" 1 &&
		    is "$(jq -c '[keys, (.error | keys), (.error.details | type)]' err)" '[["error"],["details","kind","message"],"object"]' ||
		    fail "$*: $rc" "$(cat out)" "$(cat err)"
	fi
	return $rc
}

cli() {
	printf '%s\n' "$1" >>asked
	ask_by sandbox-runtime-cli --sandbox-id eos-1 "$@"
}
manager() { ask_by sandbox-manager-cli "$@"; }
observe() { ask_by sandbox-observability-cli "$@"; }

get() { jq -cr "$1" out; }

# refused CODE KIND MESSAGE ARGS…: an answer that has this text.
refused() {
	local code=$1 kind=$2 message=$3 rc=0
	shift 3
	cli "$@" || rc=$?
	is "$rc" "$code"
	is "$(jq -r .error.kind err)" "$kind"
	has "$(jq -r .error.message err)" "$message"
}

session() { cli create_workspace_session && get .workspace_session_id; }

@test "every operation of a sandbox, by its command line" {
	start
	# Commands.
	s=$(session)
	cli exec_command --workspace-session-id "$s" --yield-time-ms 60000 'cat f; echo new >g; printf "\342\202\254"'
	is "$(get '[.status, .exit_code, .output, .workspace_session_id]')" "[\"ok\",0,\"l1\\nl2\\nl3\\n€\",\"$s\"]"
	cli exec_command --workspace-session-id "$s" --yield-time-ms 0 'cat; exit 3'
	is "$(get '[.status, .exit_code]')" '["running",null]'
	c=$(get .command_session_id)
	cli list_commands --state running
	is "$(get '[.commands[].command_session_id]')" "[\"$c\"]"
	cli write_command_stdin --command-session-id "$c" --yield-time-ms 0 $'hello\n'
	both() { cli read_command_lines --command-session-id "$c" && [ "$(get .output)" = $'hello\nhello' ]; }
	eventually both
	cli read_command_lines --command-session-id "$c" --start-offset 1 --limit 1
	is "$(get '[.start_offset, .end_offset, .output]')" '[1,2,"hello"]'
	cli resize_command --command-session-id "$c" --columns 50 --rows 20
	cli end_command_stdin --command-session-id "$c" --yield-time-ms 60000
	is "$(get '[.status, .exit_code]')" '["error",3]'
	cli exec_command --workspace-session-id "$s" --yield-time-ms 0 'echo up; exec sleep 1000'
	c=$(get .command_session_id)
	cli wait_command --command-session-id "$c" --yield-time-ms 0
	is "$(get .status)" running
	cli kill_command --command-session-id "$c"
	cli wait_command --command-session-id "$c" --yield-time-ms 60000
	is "$(get .status)" cancelled
	# Files of the session.
	cli file_read --path g --workspace-session-id "$s"
	is "$(get .content)" new
	cli file_write --path h --content $'one\ntwo\n' --workspace-session-id "$s"
	is "$(get .type)" create
	cli file_edit --path h --edits '[{"old_string":"two","new_string":"2"}]' --workspace-session-id "$s"
	is "$(get .replacements)" 1
	cli list_files --workspace-session-id "$s"
	is "$(get '[.entries[].name]')" '["f","g","h"]'
	cli diff_workspace_session --workspace-session-id "$s" --form names
	has "$(get .diff)" h
	cli list_workspace_sessions
	is "$(get '.sessions | length')" 1
	cli publish_workspace_session --workspace-session-id "$s"
	is "$(get '[.workspace_session_id, .publish.no_op, .publish.revision.manifest_version, .destroyed]')" "[\"$s\",false,2,true]"
	# Published files.
	cli file_read --path h --offset 2 --limit 1
	is "$(get '[.content, .start_line, .total_lines]')" '["2",2,2]'
	sandbox-runtime-cli --sandbox-id eos-1 --request-id edit:1 file_edit --path h --edits '[{"old_string":"one","new_string":"1"}]' >out
	cli file_blame --path h
	is "$(get '[.ranges[].owner]')" "[\"operation:edit:1\",\"workspace_session:$s\"]"
	s=$(session)
	cli destroy_workspace_session --workspace-session-id "$s" --grace-s 0.5
	is "$(get .destroyed)" true
	# None was left out.
	is "$(sort -u asked)" "$(cd "$ops/runtime" && printf '%s\n' *.json | sed 's/\.json$//' | sort)"
}

@test "the answers about commands, example by example" {
	start
	# What is different each time, and what is ours.
	same='del(.wall_time_seconds, .command_total_time_seconds, .live_from, .publish, .workspace_session_id)'
	rest() { printf '"start_offset":%s,"end_offset":%s,"total_lines":%s,"original_token_count":%s,"output":"%s"' "$@"; }
	cli exec_command --yield-time-ms 60000 'printf hi'
	is "$(get "$same")" '{"status":"ok","exit_code":0,'"$(rest 0 1 1 1 hi)"'}'
	is "$(get '.workspace_session_id | test("^[0-9a-f]{22,}$")')" true
	s=$(session)
	in_s() { cli exec_command --workspace-session-id "$s" "$@" && is "$(get .workspace_session_id)" "$s"; }
	in_s --yield-time-ms 60000 'exit 3'
	is "$(get "$same")" '{"status":"error","exit_code":3,'"$(rest 0 0 0 0 "")"'}'
	in_s --yield-time-ms 60000 --timeout-ms 100 'exec sleep 500'
	is "$(get "$same")" '{"status":"timed_out","exit_code":124,'"$(rest 0 0 0 0 "")"'}'
	in_s --yield-time-ms 60000 'kill -9 $$'
	is "$(get "$same")" '{"status":"error","exit_code":-9,'"$(rest 0 0 0 0 "")"'}'
	in_s --yield-time-ms 0 'printf "building\nstep 1 of 9"; exec sleep 1000'
	c=$(get .command_session_id)
	rows() { cli read_command_lines --command-session-id "$c" && [ "$(get .total_lines)" = "$1" ]; }
	eventually rows 2
	is "$(get "$same")" '{"status":"running","exit_code":null,'"$(rest 0 2 2 5 'building\nstep 1 of 9')"',"command_session_id":"'"$c"'"}'
	cli kill_command --command-session-id "$c"
	in_s --yield-time-ms 0 cat
	c=$(get .command_session_id)
	cli write_command_stdin --command-session-id "$c" --yield-time-ms 200 $'yo\n'
	eventually rows 2
	is "$(get "$same")" '{"status":"running","exit_code":null,'"$(rest 0 2 2 2 'yo\nyo')"',"command_session_id":"'"$c"'"}'
	cli write_command_stdin --command-session-id "$c" $'\x03' --yield-time-ms 60000
	is "$(get '[.status, .exit_code, .command_session_id]')" "[\"cancelled\",130,\"$c\"]"
	in_s --yield-time-ms 60000 'printf "a\nb\nc\nd\ne\n"; sleep 0 & wait'
	cli list_commands
	c=$(get '.commands[-1].command_session_id')
	cli read_command_lines --command-session-id "$c" --start-offset 2 --limit 2
	is "$(get "$same")" '{"status":"ok","exit_code":0,'"$(rest 2 4 5 1 'c\nd')"',"command_session_id":"'"$c"'"}'
	cli read_command_lines --command-session-id namespace_execution_999
	is "$(cat out)" '{"status":"ok","exit_code":null,"wall_time_seconds":0.0,"command_total_time_seconds":0.0,'"$(rest 0 0 0 0 "")"',"command_session_id":"namespace_execution_999","found":false}'
	cli exec_command --yield-time-ms 60000 'mkdir d; : >d/.wh.x'
	is "$(get '[.status, .exit_code, .publish_rejected, .publish_reject_class]')" '["ok",0,true,"protected_path"]'
	cli destroy_workspace_session --workspace-session-id "$(get .workspace_session_id)"
}

@test "management and observability" {
	start
	manager list_sandboxes
	is "$(get '[.sandboxes[] | .id, .state]')" '["eos-1","ready"]'
	manager inspect_sandbox --sandbox-id eos-1
	is "$(get .id)" eos-1
	! manager inspect_sandbox --sandbox-id eos-2
	is "$(jq -c '[.error.kind, .error.message]' err)" '["invalid_request","sandbox not found: eos-2"]'
	s=$(session)
	cli file_write --path new --content x
	observe snapshot
	is "$(get '[.sandboxes[] | .sandbox_id, .availability, [.workspaces[].workspace_id]]')" "[\"eos-1\",\"available\",[\"$s\"]]"
	observe snapshot --sandbox-id eos-1
	is "$(get '[.sandbox_id, .availability, .stack.layer_count, .stack.active_leases]')" '["eos-1","available",2,1]'
	observe layerstack --sandbox-id eos-1
	is "$(get '[.view, .manifest_version, (.layers | length), .trend]')" '["layerstack",2,2,[]]'
	observe layerstack --sandbox-id eos-1 --workspace-id "$s"
	is "$(get '[.workspace, [.mounts[].layer_id]]')" "[\"$s\",[\"B000001-base\"]]"
	observe layerstack --sandbox-id eos-1 --layer-id B000001-base --limit 1
	is "$(get '[.entries[].path]')" '["f"]'
	! observe layerstack --sandbox-id eos-1 --window-ms 600001
	is "$(jq -r .error.message err)" "window_ms exceeds max (600000)"
	observe history --sandbox-id eos-1
	is "$(get '[.versions[].cause]')" '["write"]'
}

@test "what goes wrong says what, with the codes of the interface" {
	start
	refused 1 operation_failed "workspace session not found" destroy_workspace_session --workspace-session-id 0000011a2b3c4d5e6f7081
	refused 1 not_found "file not found: none" file_read --path none
	refused 1 not_found "no auditability record for path: none" file_blame --path none
	refused 1 invalid_request "limit must be between 1 and 2000" file_read --path f --limit 0
	refused 1 invalid_request "network_profile must be one of shared or isolated" create_workspace_session --network-profile x
	refused 1 invalid_request "grace_s must be non-negative" destroy_workspace_session --workspace-session-id a --grace-s -1
	refused 1 operation_failed "command not found" write_command_stdin --command-session-id namespace_execution_9 x
	refused 2 invalid_request "unknown flag for file_read: --paht" file_read --paht f
	s=$(session)
	cli exec_command --workspace-session-id "$s" --yield-time-ms 0 cat
	refused 1 operation_failed "active command sessions" publish_workspace_session --workspace-session-id "$s"
	is "$(jq -c .error.details.active_command_session_ids err)" '["namespace_execution_1"]'
	# A command's own failure is none here.
	cli exec_command --yield-time-ms 60000 'exit 7'
	is "$(get '[.status, .exit_code]')" '["error",7]'
}

@test "tokens: none, a wrong one, one for a group" {
	start
	SANDBOX_GATEWAY_TOKEN_FILE=$T/none refused 1 unauthorized "gateway authentication token is missing or invalid" list_commands
	SANDBOX_GATEWAY_AUTH_TOKEN=x refused 1 unauthorized "gateway authentication token is missing or invalid" list_commands
	t=$(sb-token new -g runtime r)
	SANDBOX_GATEWAY_AUTH_TOKEN=$t cli list_commands
	! SANDBOX_GATEWAY_AUTH_TOKEN=$t manager list_sandboxes
	is "$(jq -r .error.kind err)" unauthorized
	sb-token rm r
	SANDBOX_GATEWAY_AUTH_TOKEN=$t refused 1 unauthorized "gateway authentication token is missing or invalid" list_commands
	! grep -rF "$TOKEN" out err
}

@test "256 clients that send a byte a second do not keep calls from their answers" {
	start
	request exec_command '{"cmd":"true"}' >line
	perl -MIO::Socket::UNIX -e 'my ($line, @c) = (scalar <STDIN>);
	    push @c, IO::Socket::UNIX->new("gw") || die for 1..256;
	    for my $i (0 .. length($line) - 3) {
	        syswrite $_, substr($line, $i, 1) for @c;
	        open(F, ">slow"); print F $i; close F;
	        sleep 1;
	    }' <line 3>&- &
	slow=$!
	begun() { [ "$(cat slow 2>/dev/null || :)" != "" ]; }
	eventually begun
	for i in 1 2 3 4 5; do
		s=$(session)
		cli exec_command --workspace-session-id "$s" --yield-time-ms 60000 "echo $i"
		is "$(get .output)" $i
		cli file_read --path f
		cli destroy_workspace_session --workspace-session-id "$s"
	done
	manager list_sandboxes
	# They are still at it.
	kill $slow
	wait $slow || :
	manager list_sandboxes
}

@test "--jq over what a command printed" {
	start
	is "$(sandbox-runtime-cli --sandbox-id eos-1 --jq '.output' exec_command --yield-time-ms 60000 'cat f')" 'l1
l2
l3'
	is "$(sandbox-manager-cli --jq '.sandboxes[].id' list_sandboxes)" eos-1
}

@test "texts and names of any kind arrive as they are" {
	start
	cli exec_command --yield-time-ms 60000 -- '--version 2>/dev/null; printf %s "$0"'
	is "$(get .status)" ok
	cli file_write --path $'-a\n"b' --content $'\t"\\\x01\x7fä\n'
	cli file_read --path $'-a\n"b'
	is "$(get .content)" $'\t"\\\x01\x7fä'
	cli file_write --path big --content "$(head -c 100000 /dev/zero | tr '\0' y)"
	is "$(get .bytes_written)" 100000
}

@test "interrupted while it waits: a wait ends at the gate, a command goes on" {
	start
	cli exec_command --yield-time-ms 0 'echo in; exec sleep 1000'
	c=$(get .command_session_id)
	waiting() { our_processes "$SB_STORE" | while read -r p; do tr '\0' ' ' <"/proc/$p/cmdline"; echo; done | grep -q '^sb-job-wait'; }
	not_waiting() { ! waiting 2>/dev/null; }
	sandbox-runtime-cli --sandbox-id eos-1 wait_command --command-session-id "$c" --yield-time-ms 600000 >w.out 2>w.err 3>&- &
	pid=$! rc=0
	eventually waiting
	kill -TERM $pid
	wait $pid || rc=$?
	is $rc 143
	eventually not_waiting
	is "$(cat w.out w.err)" ""
	cli list_commands --state running
	is "$(get '[.commands[].command_session_id]')" "[\"$c\"]"
	cli kill_command --command-session-id "$c"
}
