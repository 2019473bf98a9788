# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib
load gate

boxes() { sb-stat-boxes "$@" >out && jq -e . out >/dev/null; }
get() { jq -c "$1" out; }

# record ID [STATE]: a sandbox of the host.
record() {
	mkdir -p "$SB_STATE/sandboxes/$1"
	printf '{"id":"%s","workspace_root":"/w","state":"%s","activity_revision":0,"daemon":null,"daemon_http":null,"shared_base":null,"resource_profile":null}' \
	    "$1" "${2:-ready}" >"$SB_STATE/sandboxes/$1/record.json"
}

# gates SCRIPT ID…: that is the gate of each.
gates() {
	local script=$1 id
	shift
	for id; do
		mkdir -p "$SB_RUN/box/$id"
		printf '%s\n' '#!/bin/sh' "id=$id" 'IFS= read -r line; printf "%s\n" "$line" >>'"$T/got.$id" "$script" >"$T/gate.$id"
		chmod +x "$T/gate.$id"
		s6-ipcserver -1 "$SB_RUN/box/$id/gate" "$T/gate.$id" >"$T/up.$id" 3>&- &
		echo $! >>"$T/servers"
		eventually test -s "$T/up.$id"
	done
}

unavailable() {	# id state error
	printf '{"sandbox_id":"%s","lifecycle_state":"%s","availability":"unavailable","sampled_at_unix_ms":null,"errors":["%s"],"daemon":{"host":null,"port":null,"daemon_pid":null,"runtime_dir":null},"resources":{"latest":null,"history":[]},"workspaces":[]}' "$@"
}

answer='echo "{\"sandbox_id\":\"x\",\"lifecycle_state\":\"odd\",\"availability\":\"partial\",\"sampled_at_unix_ms\":9007199254740993,\"errors\":[\"e\"],\"daemon\":{\"daemon_pid\":7},\"resources\":{\"latest\":{\"ts\":1},\"history\":[]},\"workspaces\":[1],\"stack\":{\"layer_count\":1}}"'

@test "usage; no sandboxes; output that cannot be written" {
	run -0 sb-stat-boxes -h
	run -100 sb-stat-boxes a b
	run -100 sb-stat-boxes -x
	is "$(sb-stat-boxes)" '{"sandboxes":[]}'
	run -111 bash -c "sb-stat-boxes >/dev/full"
	run -111 bash -c "sb-stat-boxes >&-"
}

@test "those that are ready, by id, each asked once" {
	record s2
	record s1
	record s3 creating
	record s4
	gates "$answer" s1 s2
	boxes -r r1
	is "$(cat out)" '{"sandboxes":[{"sandbox_id":"s1","lifecycle_state":"ready","availability":"partial","sampled_at_unix_ms":9007199254740993,"errors":["e"],"daemon":{"daemon_pid":7},"resources":{"latest":{"ts":1},"history":[]},"workspaces":[1],"stack":{"layer_count":1}},{"sandbox_id":"s2","lifecycle_state":"ready","availability":"partial","sampled_at_unix_ms":9007199254740993,"errors":["e"],"daemon":{"daemon_pid":7},"resources":{"latest":{"ts":1},"history":[]},"workspaces":[1],"stack":{"layer_count":1}}]}'
	is "$(cat got.s1)" '{"op":"snapshot","request_id":"r1:s1:observability_snapshot","scope":{"kind":"sandbox","sandbox_id":"s1"},"args":{}}'
	is "$(wc -l <got.s2)" 1
}

@test "one by its id, whatever its state; one that is not there" {
	record s1
	record s2 creating
	record s3
	gates "$answer" s1
	boxes s1
	is "$(get '[.sandboxes[].sandbox_id]')" '["s1"]'
	sb-stat-boxes s2 >out
	is "$(cat out)" "{\"sandboxes\":[$(unavailable s2 creating 'invalid state transition for s2: creating -> ready')]}"
	is "$(sb-stat-boxes s3)" "{\"sandboxes\":[$(unavailable s3 ready 'sandbox daemon unavailable for s3')]}"
	run -100 --separate-stderr sb-stat-boxes s9
	is "$output" '{"error":{"kind":"invalid_request","message":"sandbox not found: s9","details":{"reason":"sandbox_not_found"}}}'
	run -100 --separate-stderr sb-stat-boxes ../x
	has "$output" '"message":"invalid sandbox id: ../x"'
}

@test "one that answers badly, or not in time, is unavailable; the others are there" {
	need jq
	mkdir -p "$SB_STATE"
	echo 'manager.observability_snapshot.timeout_ms 200' >"$SB_STATE/conf"
	for s in 1 2 3 4 5 6; do record s$s; done
	gates "$answer" s1
	gates 'echo $$ >'"$T"'/pid; exec sleep 600' s2
	gates 'echo "{\"error\":{\"kind\":\"k\",\"message\":\"no luck\",\"details\":{}}}"' s3
	gates 'echo "[]"' s4
	gates ':' s5
	gates 'echo "{\"error\":{\"message\":\"$(head -c 5000 /dev/zero | tr "\0" x)\"}}"' s6
	boxes
	is "$(get '[.sandboxes[].availability]')" '["partial","unavailable","unavailable","unavailable","unavailable","unavailable"]'
	is "$(get '.sandboxes[1].errors')" '["sandbox daemon forwarding failed: daemon request timed out after 200 ms"]'
	is "$(get '.sandboxes[2].errors')" '["no luck"]'
	is "$(get '.sandboxes[3].errors')" '["sandbox daemon forwarding failed: daemon response is not JSON"]'
	is "$(get '.sandboxes[4].errors')" '["sandbox daemon forwarding failed: daemon returned an empty response"]'
	is "$(get '.sandboxes[5].errors[0] | length')" 4096
	kill "$(cat pid)"
}

@test "an address of a sandbox that cannot be reached is in its node" {
	need jq
	record s1
	jq -c '.daemon = {"host":"127.0.0.1","port":1}' "$SB_STATE/sandboxes/s1/record.json" >r
	cp r "$SB_STATE/sandboxes/s1/record.json"
	boxes
	is "$(get '.sandboxes[0] | [.availability, .daemon]')" '["unavailable",{"host":"127.0.0.1","port":1,"daemon_pid":null,"runtime_dir":null}]'
}

@test "missing members are filled, and a word for availability that is none" {
	record s1
	gates 'echo "{\"availability\":\"fine\",\"more\":1}"' s1
	is "$(sb-stat-boxes)" '{"sandboxes":[{"sandbox_id":"s1","lifecycle_state":"ready","availability":"partial","sampled_at_unix_ms":null,"errors":["the sandbox answered with an unknown availability"],"daemon":{"daemon_pid":null,"runtime_dir":null},"resources":{"latest":null,"history":[]},"workspaces":[],"more":1}]}'
}

@test "twelve sandboxes, and never more at a time than are allowed" {
	need jq
	mkdir -p "$SB_STATE" n
	printf 'manager.observability_snapshot.max_concurrent_requests 3\nmanager.observability_snapshot.timeout_ms 60000\n' >"$SB_STATE/conf"
	for i in 01 02 03 04 05 06 07 08 09 10 11 12; do record s$i; done
	# Each says that it is there, looks how many are, and goes.
	gates 'touch '"$T"'/n/$id; sleep 0.05; ls '"$T"'/n | wc -l >>'"$T"'/many; rm '"$T"'/n/$id; echo "{\"availability\":\"available\"}"' \
	    s01 s02 s03 s04 s05 s06 s07 s08 s09 s10 s11 s12
	boxes
	is "$(get '[.sandboxes[].sandbox_id] == ([.sandboxes[].sandbox_id] | sort) and (.sandboxes | length == 12)')" true
	is "$(get '[.sandboxes[].availability] | unique')" '["available"]'
	is "$(sort -n many | tail -1 | tr -d ' ')" 3
}

@test "a large answer passes whole" {
	need jq
	record s1
	gates 'printf "{\"availability\":\"available\",\"x\":\""; head -c 3000000 /dev/zero | tr "\0" x; echo "\"}"' s1
	boxes
	is "$(get '.sandboxes[0].x | length')" 3000000
}

@test "through the gateway: all, one, and one by its own gate" {
	need jq
	gate_start store
	box_start
	record s2 creating
	ask snapshot {} system >out
	is "$(get '[.sandboxes[] | .sandbox_id, .availability]')" '["eos-1","available"]'
	ask snapshot '{"sandbox_id":null}' system >out
	is "$(get '.sandboxes | length')" 1
	ask snapshot '{"sandbox_id":"s2"}' system >out
	is "$(get '[.sandboxes[] | .sandbox_id, .availability]')" '["s2","unavailable"]'
	is "$(ask snapshot '{"sandbox_id":"s9"}' system)" "$(error invalid_request "sandbox not found: s9" '"reason":"sandbox_not_found"')"
	is "$(ask snapshot '{"sandbox_id":1}' system)" "$(error invalid_request "sandbox_id must be a string")"
	ask snapshot {} >out
	is "$(get '[.sandbox_id, .availability, .stack.layer_count]')" '["eos-1","available",1]'
	# Not an argument there.
	ask snapshot '{"sandbox_id":"s2"}' >out
	is "$(get .sandbox_id)" '"eos-1"'
	ask layerstack '{"layer_id":"B000001-base","limit":1}' >out
	is "$(get '[.view, .entries, .truncated]')" '["layerstack",[],false]'
	is "$(ask layerstack '{"layer_id":"x"}')" "$(error invalid_request "unknown layer: x")"
	is "$(ask layerstack '{"limit":5001}')" "$(error invalid_request "limit exceeds max (5000)")"
	is "$(ask layerstack '{"window_ms":600001}')" "$(error invalid_request "window_ms exceeds max (600000)")"
	is "$(ask layerstack '{"workspace_id":"x"}')" "$(error invalid_request "unknown workspace: x")"
	is "$(ask layerstack '{"workspace_id":"x","layer_id":"y"}')" "$(error invalid_request "workspace_id and layer_id exclude each other")"
	ask layerstack '{"window_ms":60000}' >out
	is "$(get '[.view, .trend, .manifest_version]')" '["layerstack",[],1]'
}
