# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib
load gate
load box

# Sandboxes through the gateway, and what may happen to them.

inject() { "$SB_T/inject" "$@"; }

# create [MEMBERS]: create_sandbox; its answer is in the file created.
create() {
	request create_sandbox '{"image":"host","workspace_root":"'"$T"'/ws"'"${1:-}"'}' system |
	    sb-gate "$ops" >created 3>&-
	id=$(jq -r '.id // empty' created)
	box=$SB_STATE/sandboxes/$id
}
manage() { ask "$1" '{"sandbox_id":"'"${2:-$id}"'"}' system 3>&-; }
within() { ask "$1" "$2" "$id"; }
run_in() { within exec_command '{"cmd":"'"$2"'","workspace_session_id":"'"$1"'","yield_time_ms":60000}'; }
new_session() { within create_workspace_session {} | jq -r .workspace_session_id; }
kind() { jq -r '.error.kind, .error.message' <<<"$1" | tr '\n' ' '; }

setup() { sb_setup; }
teardown() {
	local rc=0
	sb-down -t 0 3>&- || :
	gate_stop
	boxes_end
	sb_teardown || rc=$?
	return $rc
}
start() {
	box_start
	gate_start
}

@test "created, listed, inspected, used, destroyed" {
	start
	create
	is "$(jq -r .state created)" ready
	is "$(manage inspect_sandbox)" "$(cat created)"
	is "$(ask list_sandboxes {} system | jq -c '.sandboxes[0]')" "$(cat created)"
	s=$(new_session)
	is "$(run_in "$s" "cat f; echo mine >>f; pwd" | jq -r .output)" "one"$'\n'"$T/ws"
	is "$(run_in "$s" "command -v sb-local sb-exec || echo \$PATH" | jq -r .output)" "${PATH#"$SB_BIN:"}"
	is "$(within publish_workspace_session '{"workspace_session_id":"'"$s"'"}' | jq -r .publish.no_op)" false
	is "$(within file_read '{"path":"f"}' | jq -r .content)" "one"$'\n'"mine"
	is "$(manage inspect_sandbox | jq .activity_revision)" 4
	is "$(cat ws/f)" one
	is "$(manage destroy_sandbox | jq -r .state)" stopped
	is "$(ask list_sandboxes {} system)" '{"sandboxes":[]}'
	is "$(kind "$(manage destroy_sandbox)")" "invalid_request sandbox not found: $id "
	nothing_left
}

@test "A14: absolute paths of a command land in its session only" {
	start
	create
	s=$(new_session)
	run_in "$s" "echo mine >$T/ws/f; mkdir -p $T/ws/new/dir; echo x >$T/ws/new/dir/x; rm -r $T/ws/d; cat $T/ws/f" >out
	is "$(jq -r .output out)" mine
	is "$(cat ws/f; cat ws/d/g; ls ws)" "$(printf '%s\n' one two d f)"
	t=$(new_session)
	is "$(run_in "$t" "cat $T/ws/f; ls $T/ws" | jq -r .output)" "$(printf '%s\n' one 'd  f')"
	is "$(within file_read '{"path":"'"$T"'/ws/f","workspace_session_id":"'"$s"'"}' | jq -r .content)" mine
	within publish_workspace_session '{"workspace_session_id":"'"$s"'"}' >out
	is "$(within list_files '{"path":"'"$T"'/ws"}' | jq -r '.entries[].name' | tr '\n' ' ')" "f new "
	is "$(cat ws/f)" one
}

@test "what create_sandbox refuses" {
	start
	refused() { is "$(kind "$(ask create_sandbox "$1" system)")" "$2 "; }
	refused '{"workspace_root":"/"}' "invalid_request image is required for create_sandbox"
	refused '{"image":"","workspace_root":"/"}' "invalid_request image must be non-empty"
	refused '{"image":"host"}' "invalid_request workspace_root is required for create_sandbox"
	refused '{"image":"host","workspace_root":"ws"}' "invalid_request invalid workspace root: ws"
	for n in 0 101; do
		refused '{"image":"host","workspace_root":"'"$T"'/ws","count":'$n'}' "invalid_request invalid sandbox count: $n"
	done
	refused '{"image":"host","workspace_root":"'"$T"'/none"}' \
	    "operation_failed workspace setup failed: $T/none: No such file or directory"
	has "$(kind "$(ask create_sandbox '{"image":" ","workspace_root":"'"$T"'/ws"}' system)")" "invalid_request invalid image:  "
	has "$(kind "$(ask create_sandbox '{"image":"nope","workspace_root":"'"$T"'/ws"}' system)")" "invalid_request invalid image: nope"
	is "$(ask create_sandbox '{"image":"nope","workspace_root":"'"$T"'/ws"}' system | jq -r .error.details.reason)" image_not_found
	mkdir -p "$SB_STATE"
	echo "manager.workspace_roots $T/home" >"$SB_STATE/conf"
	refused '{"image":"host","workspace_root":"'"$T"'/ws"}' "invalid_request invalid workspace root: $T/ws"
	is "$(kind "$(ask list_workspace_directories '{"path":"'"$T"'/ws"}' system)")" \
	    "invalid_request invalid workspace root: $T/ws "
	is "$(ask list_workspace_directories {} system | jq -r '.directories[].path')" "$T/home"
	is "$(ask list_docker_images {} system)" '{"images":["host"]}'
	is "$(boxes)" ""
}

@test "a box that cannot be made: internal_error, and no record; a batch is all or nothing" {
	start
	alter
	rm alt/bin/sb-box-hold
	printf '#!/bin/sh\necho x >>%s\n[ "$(wc -l <%s)" -lt 3 ] || { echo "sb-box-hold: fatal: no luck" >&2; exit 111; }\nexec %s "$@"\n' \
	    "$T/held" "$T/held" "$SB_BIN/sb-box-hold" >alt/bin/sb-box-hold
	chmod +x alt/bin/sb-box-hold
	create ',"count":3'
	is "$(kind "$(cat created)")" "internal_error sandbox runtime failed: no luck "
	is "$(wc -l <held)" 3
	nothing_left
	rm held
	create ',"count":2'
	is "$(jq -r '.sandboxes[].state' created | tr '\n' ' ')" "ready ready "
}

@test "progress is passed on, the first and the last" {
	start
	request create_sandbox '{"image":"host","workspace_root":"'"$T"'/ws"}' system |
	    sed 's/"_stream_logs":false/"_stream_logs":true/' | sb-gate "$ops" >out 3>&-
	head -n 1 out | grep -q '^cli_log(".*building shared workspace base'
	grep -q "^cli_log(\".*creating runtime sandbox for $T/ws" out
	is "$(tail -n 1 out | jq -r .state)" ready
}

@test "one that is being created, or failed, gets no request; nobody but the host manages it" {
	start
	export TOKEN ops
	export -f request ask
	sb-box-new "$T/ws" bash -c 'ask list_workspace_sessions {} "$0"; ask inspect_sandbox "{\"sandbox_id\":\"$0\"}" system' >out
	id=$(boxes)
	is "$(kind "$(head -n 1 out)")" "invalid_request invalid state transition for $id: creating -> ready "
	is "$(tail -n 1 out | jq -r .state)" creating
	is "$(kind "$(within list_workspace_sessions {})")" "invalid_request invalid state transition for $id: failed -> ready "
	for op in create_sandbox list_docker_images list_workspace_directories destroy_sandbox start_sandbox stop_sandbox; do
		is "$(kind "$(within $op '{"sandbox_id":"x","image":"x","workspace_root":"/"}')")" \
		    "invalid_request manager operation requires system scope "
	done
	is "$(manage destroy_sandbox | jq -r .state)" stopped
	nothing_left
}

@test "a glance at all shows those that are ready, by id" {
	start
	for i in 1 2 3; do create; done
	manage stop_sandbox >out
	is "$(ask snapshot {} system 3>&- | jq -r '.sandboxes[].sandbox_id')" "$(boxes | grep -vx "$id")"
	is "$(ask snapshot {} system 3>&- | jq -r '.sandboxes[].availability' | sort -u)" available
	# What each uses itself, not what the machine does.
	sampled() { ask snapshot {} system 3>&- >all && [ "$(jq '[.sandboxes[].resources.latest.metrics.pids_cur | numbers] | length' all)" = 2 ]; }
	eventually sampled
	is "$(jq -c '[.sandboxes[].resources.latest.metrics.pids_cur | . > 5 and . < 100] | unique' all)" '[true]'
}

@test "stopped it takes no requests; started it does" {
	start
	create
	s=$(new_session)
	run_in "$s" "echo kept >k" >out
	is "$(manage stop_sandbox | jq -r .state)" stopped
	is "$(kind "$(within list_workspace_sessions {})")" "invalid_request invalid state transition for $id: stopped -> ready: it is stopped; start_sandbox, or sb up in its workspace, starts it "
	is "$(ask snapshot {} system)" '{"sandboxes":[]}'
	is "$(manage start_sandbox | jq -r .state)" ready
	is "$(within list_workspace_sessions {} | jq -r '.sessions[] | .workspace_session_id + " " + .state')" "$s parked"
	is "$(run_in "$s" "cat k" | jq -r .output)" kept
	is "$(kind "$(manage start_sandbox)")" "invalid_request invalid state transition for $id: ready -> ready "
}

# A13
@test "the box is killed with five sessions: all are there after the start, and publishable" {
	start
	run -0 sb-up -l "unix://$T/second" 3>&-
	send() { request "$@" | "$SB_T/wire" "$SB_RUN/gateway"; }
	id=$(send create_sandbox '{"image":"host","workspace_root":"'"$T"'/ws"}' system | jq -r .id)
	sessions=
	for i in 1 2 3 4 5; do
		s=$(send create_workspace_session {} "$id" | jq -r .workspace_session_id)
		send exec_command '{"cmd":"echo '"$i"' >s'"$i"'","workspace_session_id":"'"$s"'","yield_time_ms":60000}' "$id" |
		    jq -e '.exit_code == 0'
		sessions="$sessions $s"
	done
	kill_box "$id"
	# Nothing of it is mounted anywhere.
	eventually no_box
	is "$(send start_sandbox '{"sandbox_id":"'"$id"'"}' system | jq -r .state)" ready
	is "$(send list_workspace_sessions {} "$id" | jq -r '.sessions[].workspace_session_id' | sort)" \
	    "$(printf '%s\n' $sessions | sort)"
	for s in $sessions; do
		send publish_workspace_session '{"workspace_session_id":"'"$s"'"}' "$id" | jq -e '.destroyed'
	done
	for i in 1 2 3 4 5; do
		is "$(send file_read '{"path":"s'"$i"'"}' "$id" | jq -r .content)" $i
	done
	# The gateway ends without it, and comes back to it.
	run -0 sb-down
	is "$(state "$id")" ready
	run -0 sb-up -l "unix://$T/second" 3>&-
	is "$(send list_workspace_sessions {} "$id")" '{"sessions":[]}'
	is "$(find "$SB_RUN/svc" -name "*$id*")" ""
	is "$(send destroy_sandbox '{"sandbox_id":"'"$id"'"}' system | jq -r .state)" stopped
	nothing_left
}

@test "the machine starts again: the sandbox is stopped, and starts with its sessions" {
	start
	create
	s=$(new_session)
	run_in "$s" "echo kept >k" >out
	# All processes are killed, and what was in memory is gone.
	kill -KILL "$(pgrep -f "^sb-box-hold .*$id")"
	eventually no_box
	rm -rf "$SB_RUN"
	is "$(manage inspect_sandbox | jq -r .state)" stopped
	is "$(manage start_sandbox | jq -r .state)" ready
	is "$(run_in "$s" "cat k" | jq -r .output)" kept
	# Stopped, with nothing left but the disk: it can be destroyed.
	manage stop_sandbox >out
	rm -rf "$SB_RUN"
	is "$(manage destroy_sandbox | jq -r .state)" stopped
	nothing_left
}

@test "a job ends with its box, and its cgroup goes with the sandbox" {
	start
	create
	s=$(new_session)
	within exec_command '{"cmd":"sed -n s,^0::.*/sbjob,sbjob,p /proc/self/cgroup >leaf; echo >>leaf; sleep 1000","workspace_session_id":"'"$s"'","yield_time_ms":0}' >out
	leaf() { within file_read '{"path":"leaf","workspace_session_id":"'"$s"'"}' | jq -re .content >leaf; }
	eventually leaf
	kill_box "$id"
	manage destroy_sandbox >out
	leaf=$(head -n 1 leaf)
	[ -z "$leaf" ] || is "$(find /sys/fs/cgroup -name "$leaf")" ""
	nothing_left
}

# A sandbox with limits, and a session in it. Where no limit can be set it says
# so, and that is all there is to see.
limited() {
	limit_boxes "$@"
	create
	s=$(new_session)
	! grep -q 'limits are not available: ' "$box/log/hold" || return
	[ -n "$(groups_of_box "$id")" ]
	pid1=$(cat "$box/hold")
}

# Nothing of what serves the box was ended: its first process has no dead child.
lives_on() {
	is "$(run_in "$s" "echo still here" | jq -r .output)" "still here"
	is "$(cat "$box/hold")" "$pid1"
	is "$(find "$SB_RUN/box/$id/svc" -name death_tally -size +0)" ""
	is "$(manage inspect_sandbox | jq -r .state)" ready
	is "$(manage destroy_sandbox | jq -r .state)" stopped
	is "$(groups_of_box "$id")" ""
}

@test "a command that takes more memory than its box may have is killed, and the box lives on" {
	start
	limited 4000000000 134217727 134217728 500 || return 0
	is "$(run_in "$s" "cat /proc/self/oom_score_adj" | jq -r .output)" 500
	is "$(cat "/proc/${pid1%% *}/oom_score_adj")" "$(cat /proc/self/oom_score_adj)"
	run_in "$s" "head -c 500000000 /dev/zero | exec tail -c 500000000 >big" >out
	is "$(jq .exit_code out)" 137
	lives_on
}

@test "there are no more processes in a box than there may be, and it lives on" {
	start
	# Each is the parent of the next: when one cannot be, all end.
	echo '[ "$1" -gt 0 ] || exit 0; sh down $(($1 - 1)); exit $?' >ws/down
	limited 4000000000 1000000000 1000000000 150 || return 0
	run_in "$s" "sh down 10" >out
	is "$(jq .exit_code out)" 0 || fail "$(cat out)"
	run_in "$s" "sh down 300" >out
	has "$(jq -r .output out)" fork
	jq -e '.exit_code != 0' out
	lives_on
}

@test "ten creates at once, and ten destroys" {
	start
	pids=
	for i in $(seq 10); do
		sb-local new "$T/ws" >"out$i" 2>"err$i" 3>&- &
		pids="$pids $!"
	done
	for p in $pids; do wait "$p"; done
	is "$(cat err*)" ""
	is "$(cat out* | jq -r .state | sort | uniq -c | tr -s ' ')" " 10 ready"
	is "$(boxes | wc -l)" 10
	pids=
	for id in $(boxes); do
		sb-local rm "$id" >"rm.$id" 2>&1 3>&- &
		pids="$pids $!"
	done
	for p in $pids; do wait "$p"; done
	nothing_left
}

@test "two users have sandboxes over one workspace, each their own" {
	need root
	start
	chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$T"
	alter
	mkdir -p user/home
	chown -R 1000:1000 user
	as_user() {
		setpriv --reuid 1000 --regid 1000 --clear-groups env HOME="$T/user/home" \
		    XDG_CACHE_HOME="$T/user/cache" SB_STATE="$T/user/state" SB_RUN="$T/user/run" "$@" 3>&-
	}
	as_user true || skip "no user 1000"
	as_user test -x "$SB_BIN/sb-box-ls" || skip "the build is not for others"
	new
	as_user sb-local new "$T/ws" >theirs
	other=$(jq -r .id theirs)
	is "$(jq -r .state theirs)" ready
	is "$(boxes)" "$id"
	is "$(as_user sb-box-ls | jq -r '.sandboxes[].id')" "$other"
	as_user sb-local stat "$other" | jq -e '.sandboxes[0].availability == "available"'
	run -1 as_user sb-local rm "$id"
	as_user sb-local rm "$other" >out
	is "$(as_user find "$T/user/run" "$T/user/state/sandboxes" -name "eos-*")" ""
	is "$(state "$id")" ready
}

# After a kill: what is there comes to rest, can be removed, and leaves nothing.
removable() {
	local id
	for id in $(boxes); do
		rests() { case $(state "$1") in creating | stopping) return 1 ;; esac; }
		eventually rests "$id" || return
		sb-local rm "$id" >removed 2>&1 3>&- || fail "$(cat removed)" || return
		is "$(groups_of_box "$id")" "" || return
	done
	# What was to become a record goes with the next that changes something.
	sb-box-new "$T/ws" sb-box-rm -p local >removed && nothing_left
}

# sample N POINTS: numbers up to N.
sample() { awk -v n="$1" -v k="$2" 'BEGIN { if (k > n) k = n; for (i = 0; i < k; i++) print 1 + int(i * n / k) }'; }

# points PROGRAM: how many calls the program makes that change something, by rec.
points() { awk -v p="$1" '$3 == p' rec | wc -l; }

@test "create is killed at any call: what is left is named by a record, and goes" {
	start
	limit_boxes
	inject -d -o rec sb-local new "$T/ws" >out 3>&-
	removable
	cp rec all
	rounds=0
	for what in sb-local:14 sb-box-new:5 sb-store-init:2 sb-base-import:3 sb-cgroup-run:3 sb-box-hold:3 sb-box-ready:5; do
		prog=${what%:*}
		cp all rec
		for k in $(sample "$(points "$prog")" "${what#*:}"); do
			group=
			[ $((k % 2)) = 0 ] || group=-g
			# shellcheck disable=SC2086 # nothing or one word
			inject -d $group -n "$k" -p "$prog" -o rec sb-local new "$T/ws" >out 2>&1 3>&- || :
			removable || fail "$prog, call $k: $(cat out)"
			rounds=$((rounds + 1))
		done
	done
	[ $rounds -ge 30 ]
}

@test "destroy is killed at any call: it can be destroyed again" {
	start
	limit_boxes
	new
	inject -d -o rec sb-local rm "$id" >out 3>&-
	nothing_left
	cp rec all
	rounds=0
	for what in sb-local:12 sb-box-busy:6 sb-box-stop:5 sb-cgroup-run:3 sb-box-rm:8; do
		prog=${what%:*}
		cp all rec
		for k in $(sample "$(points "$prog")" "${what#*:}"); do
			new
			inject -d -n "$k" -p "$prog" -o rec sb-local rm "$id" >out 2>&1 3>&- || :
			removable && is "$(groups_of_box "$id")" "" || fail "$prog, call $k: $(cat out)"
			rounds=$((rounds + 1))
		done
	done
	[ $rounds -ge 30 ]
}

@test "no file is left half written beside the records" {
	start
	create
	manage stop_sandbox >out
	manage start_sandbox >out
	is "$(find "$SB_STATE" -name '*.tmp' -o -name '.*.tmp')" ""
	is "$(find "$SB_STATE/sandboxes" -maxdepth 1 -name '.*')" ""
}
