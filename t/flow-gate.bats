# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib
load gate

# Gateway, the gate of a sandbox, command, and back.

start() {
	need overlay userns jq s6-ipcserver
	mkdir -p ws; printf 'l1\nl2\nl3\n' >ws/f
	gate_start store
	box_start
}

# get FILTER: of the answer in the file out, which is an object.
get() { jq -cr "$1" out; }

# The fields of a command's answer, in the order of the interface, without
# what is different each time.
plain='del(.wall_time_seconds, .command_total_time_seconds, .workspace_session_id, .live_from, .publish)'
session() { ask create_workspace_session {} | jq -r .workspace_session_id; }

@test "a command that ends at once: its session is published and gone" {
	start
	ask exec_command '{"cmd":"printf hi; echo n >new","yield_time_ms":60000}' >out
	is "$(get "$plain")" '{"status":"ok","exit_code":0,"start_offset":0,"end_offset":1,"total_lines":1,"original_token_count":1,"output":"hi"}'
	is "$(get '[.wall_time_seconds, .command_total_time_seconds | type] | unique | tostring')" '["number"]'
	is "$(ask list_workspace_sessions {})" '{"sessions":[]}'
	is "$(ask file_read '{"path":"new"}' | jq -r .content)" n
}

@test "exit codes, signals, time limits" {
	start
	s=$(session)
	ask exec_command '{"cmd":"exit 3","workspace_session_id":"'"$s"'","yield_time_ms":60000}' >out
	is "$(get "$plain")" '{"status":"error","exit_code":3,"start_offset":0,"end_offset":0,"total_lines":0,"original_token_count":0,"output":""}'
	is "$(get .workspace_session_id)" "$s"
	ask exec_command '{"cmd":"kill -9 $$","workspace_session_id":"'"$s"'","yield_time_ms":60000}' >out
	is "$(get '.status, .exit_code' | tr '\n' ' ')" "error -9 "
	ask exec_command '{"cmd":"sleep 50","workspace_session_id":"'"$s"'","timeout_ms":100,"yield_time_ms":60000}' >out
	is "$(get '.status, .exit_code' | tr '\n' ' ')" "timed_out 124 "
}

@test "a command goes on: input, rows, cancel" {
	start
	s=$(session)
	ask exec_command '{"cmd":"printf \"building\\nstep\\n\"; cat","workspace_session_id":"'"$s"'","yield_time_ms":0}' >out
	is "$(get '.status, .exit_code, .command_session_id' | tr '\n' ' ')" "running null namespace_execution_1 "
	rows() { ask read_command_lines '{"command_session_id":"namespace_execution_1"}' >out && [ "$(get .total_lines)" -ge "$1" ]; }
	eventually rows 2
	ask write_command_stdin '{"command_session_id":"namespace_execution_1","stdin":"yo\n","yield_time_ms":0}' >out
	eventually rows 4
	is "$(get .output)" "building
step
yo
yo"
	is "$(ask read_command_lines '{"command_session_id":"namespace_execution_1","start_offset":1,"limit":2}' | jq -c '[.start_offset, .end_offset, .output]')" \
	    '[1,3,"step\nyo"]'
	ask write_command_stdin '{"command_session_id":"namespace_execution_1","stdin":"\u0003"}' >out
	is "$(get '.status, .exit_code' | tr '\n' ' ')" "cancelled 130 "
	ask write_command_stdin '{"command_session_id":"namespace_execution_1","stdin":"x"}' >out
	is "$(get .error.message)" "command already completed: namespace_execution_1"
	ask read_command_lines '{"command_session_id":"namespace_execution_999"}' >out
	is "$(get "$plain")" '{"status":"ok","exit_code":null,"start_offset":0,"end_offset":0,"total_lines":0,"original_token_count":0,"output":"","command_session_id":"namespace_execution_999","found":false}'
}

@test "commands are listed, waited for, resized, ended" {
	start
	s=$(session)
	ask exec_command '{"cmd":"stty size; read x; stty size; cat","workspace_session_id":"'"$s"'","yield_time_ms":0,"columns":90,"rows":20}' >out
	c=namespace_execution_1
	is "$(ask list_commands '{"state":"running"}' | jq -r '.commands[].command_session_id')" $c
	first() { ask read_command_lines '{"command_session_id":"'$c'"}' | jq -e '.output == "20 90"' >/dev/null; }
	eventually first
	ask resize_command '{"command_session_id":"'$c'","columns":100,"rows":30}' >out
	ask write_command_stdin '{"command_session_id":"'$c'","stdin":"\n","yield_time_ms":0}' >out
	second() { ask read_command_lines '{"command_session_id":"'$c'"}' | jq -e '.output | contains("30 100")' >/dev/null; }
	eventually second
	is "$(ask wait_command '{"command_session_id":"'$c'","yield_time_ms":10}' | jq -r .status)" running
	ask end_command_stdin '{"command_session_id":"'$c'","yield_time_ms":60000}' >out
	is "$(get '.status, .exit_code' | tr '\n' ' ')" "ok 0 "
	ask exec_command '{"cmd":"sleep 600","workspace_session_id":"'"$s"'","yield_time_ms":0}' >out
	is "$(ask kill_command '{"command_session_id":"namespace_execution_2"}')" '{"command_session_id":"namespace_execution_2","signal":null}'
	is "$(ask wait_command '{"command_session_id":"namespace_execution_2"}' | jq -r .status)" cancelled
	ask kill_command '{"command_session_id":"namespace_execution_3"}' >out
	is "$(get .error.kind)" not_found
}

@test "sessions: made, worked in, compared, published; then they are none" {
	start
	s=$(session)
	is "$(ask file_write '{"path":"f","content":"l1\nmine\nl3\n","workspace_session_id":"'"$s"'"}')" '{"type":"update","path":"f","bytes_written":11}'
	is "$(ask file_edit '{"path":"f","edits":[{"old_string":"mine","new_string":"ours"}],"workspace_session_id":"'"$s"'"}' | jq -r .replacements)" 1
	is "$(ask diff_workspace_session '{"workspace_session_id":"'"$s"'","form":"names"}' | jq -r .diff)" "M f"
	ask diff_workspace_session '{"workspace_session_id":"'"$s"'"}' | jq -r .diff | grep -qx '+ours'
	ask publish_workspace_session '{"workspace_session_id":"'"$s"'","grace_s":0.5}' >out
	is "$(get '.publish.no_op, .destroyed, .publish.revision.manifest_version' | tr '\n' ' ')" "false true 2 "
	is "$(ask file_blame '{"path":"f"}' | jq -c '[.ranges[].owner]')" '["original","workspace_session:'"$s"'","original"]'
	is "$(ask history {} | jq -c '[.versions[].cause]')" '["publish"]'
	for o in publish_workspace_session destroy_workspace_session; do
		is "$(ask $o '{"workspace_session_id":"'"$s"'"}')" \
		    "$(error operation_failed "workspace session not found: $s" "\"workspace_session_id\":\"$s\"")"
	done
	ask file_read '{"path":"f","workspace_session_id":"'"$s"'"}' >out
	is "$(get '.error.kind, .error.message')" "not_found
workspace session not found: $s"
}

@test "a conflict: kind, stage and the sides in the details, and the session goes on" {
	start
	s=$(session)
	ask file_write '{"path":"f","content":"x\n","workspace_session_id":"'"$s"'"}' >out
	is "$(ask file_write '{"path":"f","content":"y\n"}')" '{"type":"update","path":"f","bytes_written":2}'
	is "$(ask file_blame '{"path":"f"}' | jq -r '.ranges[].owner')" operation:r1
	ask publish_workspace_session '{"workspace_session_id":"'"$s"'"}' >out
	is "$(get '.error.kind, .error.details.stage, .error.details.session_retained, .error.details.publish_rejection.path' | tr '\n' ' ')" \
	    "operation_failed publish true f "
	is "$(ask destroy_workspace_session '{"workspace_session_id":"'"$s"'"}')" \
	    '{"workspace_session_id":"'"$s"'","destroyed":true,"evicted_upperdir_bytes":2}'
}

@test "a session with active commands is neither published nor destroyed, and they are named" {
	start
	s=$(session)
	ask exec_command '{"cmd":"cat","workspace_session_id":"'"$s"'","yield_time_ms":0}' >out
	for o in publish_workspace_session destroy_workspace_session; do
		ask $o '{"workspace_session_id":"'"$s"'"}' >out
		is "$(get .error.kind)" operation_failed
		has "$(get .error.message)" "active command sessions"
		is "$(get .error.details.active_command_session_ids[])" namespace_execution_1
		is "$(get .error.details.workspace_session_id)" "$s"
	done
	ask kill_command '{"command_session_id":"namespace_execution_1"}' >out
	ask destroy_workspace_session '{"workspace_session_id":"'"$s"'"}' >out
	is "$(get .destroyed)" true
}

@test "an automatic publish that is refused: the class, and the session is kept" {
	start
	ask exec_command '{"cmd":"touch .wh.x","yield_time_ms":60000}' >out
	is "$(get '.status, .publish_rejected, .publish_reject_class' | tr '\n' ' ')" "ok true protected_path "
	s=$(get .workspace_session_id)
	is "$(ask list_workspace_sessions {} | jq -c '[.sessions[] | [.workspace_session_id, .conflicted]]')" "[[\"$s\",true]]"
	ask destroy_workspace_session '{"workspace_session_id":"'"$s"'"}' >out
	is "$(get .destroyed)" true
}

@test "beyond the commands that may be active the answer is server_busy" {
	start
	echo 'runtime.command.max_active 1' >"$SB_STORE/conf"
	s=$(session)
	ask exec_command '{"cmd":"cat","workspace_session_id":"'"$s"'","yield_time_ms":0}' >out
	ask exec_command '{"cmd":"true","workspace_session_id":"'"$s"'"}' >out
	is "$(get '.error.kind, .error.details.max_active_commands' | tr '\n' ' ')" "server_busy 1 "
}

@test "A23 tokens and groups: what is not granted is refused, nothing is executed, and no token is seen" {
	need jq s6-ipcserver
	gate_start store
	# Whatever would be executed, here or in the sandbox, leaves a mark.
	fake "read -r _; echo ran >>$T/ran; echo '{}'"
	gate=$(command -v sb-gate)
	mkdir trap
	for p in "$SB_BIN"/sb-*; do
		printf '#!/bin/sh\necho ran >>%s/ran\necho "{}"\n' "$T" >"trap/${p##*/}"
	done
	chmod +x trap/*
	by() { TOKEN=$1 && request "$2" "$3" "$4" | PATH=$T/trap:$PATH "$gate" -v "$ops" 2>>log; }
	master=$TOKEN
	for g in management runtime observability; do sb-token new -g $g $g >$g; done
	sb-token new gone >gone && sb-token rm gone
	tries=0
	for f in "$ops"/*/*.json; do
		[ "${f##*/}" != families.json ] || continue
		set=$(basename "$(dirname "$f")") op=$(basename "$f" .json)
		for t in "" x "$master-" "${master%?}" "$(cat gone)" management runtime observability; do
			[ "$t" != "$set" ] || continue
			what="missing or invalid"
			[ ! -s "$t" ] || { t=$(cat "$t") && what="does not grant: "; }
			for scope in eos-1 system; do
				by "$t" "$op" {} $scope >out
				# What it is in a scope that it does not have is not told either.
				is "$(get .error.kind)" unauthorized
				has "$(get .error.message)" "$what"
				[ ! -e ran ] || fail "executed: $op $scope"
				tries=$((tries + 1))
			done
		done
	done
	[ $tries -gt 300 ]
	# No member at all, and one that is no string.
	for token in '"x":1' '"_sandbox_gateway_auth_token":null' '"_sandbox_gateway_auth_token":["'"$master"'"]'; do
		printf '{"op":"list_sandboxes","request_id":"r","scope":{"kind":"system"},"args":{},%s}\n' "$token" |
		    PATH=$T/trap:$PATH "$gate" "$ops" >out
		is "$(get .error.message)" "gateway authentication token is missing or invalid"
	done
	[ ! -e ran ]
	# The marks are no vain thing.
	for t in management:list_sandboxes:system runtime:list_commands:eos-1 observability:snapshot:system; do
		IFS=: read -r g op scope <<<"$t"
		rm -f ran
		by "$(cat $g)" $op {} $scope >>replies
		[ -e ran ] || fail "not executed: $op"
		rm ran
		by "$master" $op {} $scope >>replies
		[ -e ran ]
	done
	is "$(stat -c %a "$HOME/.ephemeral-sandbox" "$HOME/.ephemeral-sandbox/gateway.token" "$SB_STATE/tokens" "$SB_STATE"/tokens/* | tr '\n' ' ')" \
	    "700 600 700 600 600 600 "
	run ! grep -F -e "$master" -e "$(cat management)" -e "$(cat runtime)" -e "$(cat observability)" log replies out
	[ -s log ]
}

@test "A23 a token is in no argument and in no environment of what a request starts" {
	start
	serve "$T/sock" -v "$ops"
	s=$(session)
	request exec_command '{"cmd":"env; echo begun; read x","workspace_session_id":"'"$s"'","yield_time_ms":600000}' |
	    "$SB_T/wire" "$T/sock" >answer 3>&- &
	begun() { ask read_command_lines '{"command_session_id":"namespace_execution_1"}' >out && has "$(get .output)" begun; }
	eventually begun >/dev/null
	n=0
	for p in $(our_processes "$SB_STORE") $(cat servers) $(pgrep -P "$(paste -sd , servers)"); do
		tr '\0' '\n' <"/proc/$p/cmdline" >>seen && tr '\0' '\n' <"/proc/$p/environ" >>seen && n=$((n + 1))
	done 2>/dev/null
	[ $n -ge 6 ]
	run ! grep -F "$TOKEN" seen out serve.err
	ask kill_command '{"command_session_id":"namespace_execution_1"}' >out
	wait $!
	run ! grep -F "$TOKEN" answer
}

@test "a client that goes while it waits leaves the command running, and no gate" {
	start
	s=$(session)
	serve "$T/sock" "$ops"
	request exec_command '{"cmd":"cat","workspace_session_id":"'"$s"'","yield_time_ms":600000}' | "$SB_T/wire" -x "$T/sock"
	runs() { [ "$(ask list_commands '{"state":"running"}' | jq -r '.commands | length')" = 1 ]; }
	eventually runs
	none() { ! pgrep -P "$(paste -sd , "$T/servers")" >/dev/null; }
	eventually none
	runs
}

@test "gates that are killed while a command runs: it goes on and is found again" {
	start
	s=$(session)
	serve "$T/sock" "$ops"
	request exec_command '{"cmd":"echo begun; read x; echo got $x","workspace_session_id":"'"$s"'","yield_time_ms":600000}' |
	    "$SB_T/wire" "$T/sock" >answer 3>&- &
	begun() { [ "$(ask read_command_lines '{"command_session_id":"namespace_execution_1"}' | jq -r .output)" = begun ]; }
	eventually begun
	# shellcheck disable=SC2046 # numbers
	kill -KILL $(pgrep -P "$(paste -sd , "$T/servers")")
	wait $! || :
	is "$(cat answer)" ""
	ask write_command_stdin '{"command_session_id":"namespace_execution_1","stdin":"text\n","yield_time_ms":60000}' >out
	is "$(get '.status, .exit_code' | tr '\n' ' ')" "ok 0 "
	# By number: whoever waited for the answer that was lost may have had them.
	has "$(ask read_command_lines '{"command_session_id":"namespace_execution_1"}' | jq -r .output)" "got text"
}

@test "sixteen clients at once, each with a command of its own" {
	start
	serve "$T/sock" "$ops"
	pids=
	for i in $(seq 16); do
		request exec_command '{"cmd":"echo '"$i"' >n'"$i"'; cat n'"$i"'","yield_time_ms":60000}' | "$SB_T/wire" "$T/sock" >"o.$i" 3>&- &
		pids="$pids $!"
	done
	# shellcheck disable=SC2086 # numbers
	wait $pids
	for i in $(seq 16); do is "$(jq -r '.status + " " + .output' "o.$i")" "ok $i"; done
	is "$(ask list_files {} | jq '.entries | length')" 17
}

@test "large content, both ways" {
	start
	head -c 3000000 /dev/urandom | base64 -w 76 >large
	printf '{"op":"file_write","request_id":"r1","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":{"path":"large","content":%s},"_sandbox_gateway_auth_token":"%s"}\n' \
	    "$(jq -Rs . <large)" "$TOKEN" >request
	sb-gate "$ops" <request >out
	is "$(get .bytes_written)" "$(stat -c %s large)"
	ask exec_command '{"cmd":"sha256sum <large","yield_time_ms":60000}' >out
	is "$(get .output)" "$(sha256sum <large)"
	ask file_read '{"path":"large"}' >out
	is "$(get .content)" "$(head -n 2000 large)"
}

@test "the trace of a request begins in the gate of the sandbox" {
	start
	# Written when the answer has gone.
	spans() { cat "$SB_STORE"/observability/* 2>/dev/null | grep '"daemon.dispatch"' | jq -c '[.trace, .attrs.op, .status]' >spans && grep -q "$1" spans; }
	ask file_write '{"path":"x","content":""}' >out
	eventually spans '"r1","file_write","completed"'
	ask file_read '{"path":"none"}' >out
	eventually spans '"r1","file_read","error"'
}

@test "a gate that is killed at any step leaves a store in which all goes on" {
	need strace
	start
	tries=0
	content() { ask file_read '{"path":"f"}' | jq -r .content; }
	request file_write '{"path":"f","content":"new\n"}' >host
	printf '{"op":"file_write","request_id":"r","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":{"path":"f","content":"new\\n"}}\n' >box
	for args in "host" "box -b eos-1"; do
		# shellcheck disable=SC2086 # a file, and options
		set -- $args
		in=$1
		shift
		for call in openat fcntl vfork clone connect sendto poll read write close; do
			n=$(FOLLOW='' count_calls $call sb-gate "$@" "$ops" <"$in") || continue
			# Of many the last, and some before.
			for i in $(seq 1 "$n" | sort -R --random-source=/dev/zero | head -n 4) "$n"; do
				[ "$i" -gt 0 ] || continue
				ask file_write '{"path":"f","content":"old\n"}' >out
				FOLLOW='' kill_at $call "$i" sb-gate "$@" "$ops" <"$in" >out 2>&1 3>&- || :
				tries=$((tries + 1))
				c=$(content)
				[ "$c" = old ] || [ "$c" = new ] || fail "killed at $call $i: $c"
			done
		done
	done
	echo "# killed $tries times" >&3
	[ $tries -gt 20 ]
	# Whatever was left to finish has.
	is "$(ask file_write '{"path":"g","content":"g\n"}' | jq -r .type)" create
	sb-layer-check <<<"$(sb-stack-show)
"
}
