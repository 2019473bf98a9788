# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

box() { sb-stat-box eos-1 >out && jq -e . out >/dev/null; }
get() { jq -c "$1" out; }

@test "usage and what there is not" {
	run -0 sb-stat-box -h
	run -100 sb-stat-box
	run -100 sb-stat-box a b
	run -100 sb-stat-box ../x
	run -111 sb-stat-box a
	unset SB_STORE
	run -100 sb-stat-box a
	export SB_STORE=$T/store
	make_store
	run -111 bash -c "sb-stat-box a >/dev/full"
	run -111 bash -c "sb-stat-box a >&-"
}

@test "without sessions: fields in order" {
	need jq
	make_store
	box
	is "$(jq -c keys_unsorted out)" '["sandbox_id","lifecycle_state","availability","sampled_at_unix_ms","errors","daemon","resources","workspaces","stack"]'
	is "$(get 'del(.sampled_at_unix_ms, .daemon, .stack.layers_allocated_bytes, .stack.storage_allocated_bytes)')" \
	    '{"sandbox_id":"eos-1","lifecycle_state":"ready","availability":"available","errors":[],"resources":{"latest":null,"history":[]},"workspaces":[],"stack":{"layer_count":1,"layers_bytes":0,"staging_entry_count":0,"active_leases":0}}'
	is "$(get '.stack | keys_unsorted')" '["layer_count","layers_bytes","layers_allocated_bytes","storage_allocated_bytes","staging_entry_count","active_leases"]'
	is "$(get '.daemon | keys_unsorted')" '["daemon_pid","runtime_dir","event_store"]'
	is "$(get .daemon.event_store)" '{"dropped_storage":0,"dropped_oversized":0,"truncated_records":0}'
	is "$(get .daemon.runtime_dir)" "\"$SB_RUN/box/eos-1\""
	[ "$(get .daemon.daemon_pid)" -gt 0 ]
	local now
	now=$(date +%s)
	is "$(get ".sampled_at_unix_ms / 1000 | . > $now - 60 and . < $now + 60")" true
}

@test "sessions and the commands that run in them" {
	need jq overlay userns
	make_store
	sb-session-new >s1
	echo 1 | sb-file-write a >/dev/null
	sb-session-new >s2
	sb-exec -y 0 -s "$(cat s1)" -- 'echo ä; cat' >job
	box
	is "$(get '[.workspaces[].workspace_id] | . == sort')" true
	is "$(get '.workspaces[0] | keys_unsorted')" '["workspace_id","lifecycle_state","finalization_state","network_profile","finalize_policy","layers","namespace_fd_count","resources","active_namespace_executions","running"]'
	one() { jq -c --arg s "$(cat "$1")" ".workspaces[] | select(.workspace_id == \$s) | $2" out; }
	is "$(one s1 '[.lifecycle_state, .finalization_state, .network_profile, .finalize_policy, .layers.layer_count, .namespace_fd_count, .running]')" \
	    '["active","active","shared","no_op",1,3,true]'
	is "$(one s2 .layers.layer_count)" 2
	is "$(one s1 .active_namespace_executions)" '[{"namespace_execution_id":"namespace_execution_1","operation":"exec_command","lifecycle_state":"running","command":"echo ä; cat"}]'
	is "$(one s2 .active_namespace_executions)" '[]'
	is "$(get .stack.active_leases)" 2
	is "$(one s2 .layers.base_root_hash)" "$(sb-stat-stack | jq -c .root_hash)"
	sb-job-kill namespace_execution_1
	box
	is "$(one s1 .active_namespace_executions)" '[]'
}

@test "a session without processes, an automatic one, and a long command" {
	need jq overlay userns
	make_store
	sb-session-new >s1
	sb-exec -y 0 -- "cat; : $(head -c 9000 /dev/zero | tr '\0' x)" >job
	box
	is "$(get '[.workspaces[] | .finalize_policy] | sort')" '["no_op","publish_then_destroy"]'
	is "$(get '.workspaces[].active_namespace_executions[].command | length')" 4096
	kill -KILL "$(head -1 "$SB_STORE/workspace/$(cat s1)/hold" | cut -d' ' -f1)"
	parked() { box && [ "$(jq -c --arg s "$(cat s1)" '.workspaces[] | select(.workspace_id == $s) | [.running, .namespace_fd_count]' out)" = '[false,null]' ]; }
	eventually parked
	is "$(get .availability)" '"available"'
}

@test "what cannot be read makes it partial, and the rest is there" {
	need jq
	make_store
	sb-session-new >s1
	sb-session-new >s2
	echo x >"$SB_STORE/workspace/$(cat s1)/lease"
	box
	is "$(get .availability)" '"partial"'
	is "$(get '.errors | length')" 1
	has "$(get '.errors[0]')" "workspace $(cat s1): its lease cannot be read: "
	is "$(get '.workspaces | length')" 2
	is "$(jq -c --arg s "$(cat s1)" '.workspaces[] | select(.workspace_id == $s).layers' out)" '{"base_root_hash":null,"layer_count":null}'
	cp "$SB_STORE/workspace/$(cat s2)/lease" "$SB_STORE/workspace/$(cat s1)/lease"
	cp "$SB_STORE/layer-stack/manifest.json" m
	echo x >"$SB_STORE/layer-stack/manifest.json"
	box
	is "$(get '[.availability, has("stack"), (.workspaces | length)]')" '["partial",false,2]'
	has "$(get '.errors[0]')" "stack: manifest.json: "
	cp m "$SB_STORE/layer-stack/manifest.json"
	echo 'no.such.key 1' >"$SB_STORE/conf"
	box
	is "$(get '[.availability, has("stack")]')" '["partial",true]'
	rm "$SB_STORE/conf"
}

@test "the newest sample of what it uses" {
	need jq
	make_store
	sb-stat-sample
	sb-stat-sample
	box
	is "$(get '.resources | keys_unsorted')" '["latest","history"]'
	is "$(get '.resources.latest | keys_unsorted')" '["ts","sample_delta_ms","metrics","deltas"]'
	is "$(get .resources.latest.metrics)" "$(tail -n 1 "$SB_STORE/observability/resources.ndjson" | jq -c 'del(.kind, .ts, .scope, ._counters)')"
	is "$(get .resources.latest.ts)" "$(tail -n 1 "$SB_STORE/observability/resources.ndjson" | jq -c .ts)"
	# What is none is passed over: not JSON, not UTF-8, another kind, cut off.
	log=$SB_STORE/observability/resources.ndjson
	printf '%s\n' '{"kind":"sample","ts":5,"scope":"sandbox","mem_cur":7,"_counters":[]}' '{"kind":"span","ts":6,"scope":"sandbox"}' \
	    '{"kind":"sample","ts":-1,"scope":"sandbox"}' '{"kind":"sample","ts":8,"scope":"stack"}' $'{"\xff":1}' '{' '' >"$log"
	printf '{"kind":"sample","ts":9,"scope":"sandbox"}' >>"$log"
	box
	is "$(get .resources)" '{"latest":{"ts":5,"sample_delta_ms":null,"metrics":{"mem_cur":7},"deltas":{}},"history":[]}'
	mv "$log" "$log.1"
	box
	is "$(get .resources.latest.ts)" 5
	rm "$log.1"
	mkdir "$log"
	box
	is "$(get '[.availability, .resources.latest]')" '["partial",null]'
	has "$(get '.errors[0]')" "resources: "
	rmdir "$log"
}

@test "what its log has lost" {
	need jq
	make_store
	mkdir -p "$SB_STORE/observability"
	printf 'busy 2\nstorage 5\noversized 11\ntruncated 13\n' >"$SB_STORE/observability/observability.ndjson.counts"
	box
	is "$(get .daemon.event_store)" '{"dropped_storage":7,"dropped_oversized":11,"truncated_records":13}'
}

@test "reading changes nothing" {
	make_store
	sb-session-new >s
	listing "$SB_STORE" >before
	sb-stat-box eos-1 >out
	listing "$SB_STORE" >after
	same before after
}
