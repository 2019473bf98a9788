# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# publish NAME CONTENT: one file, as a layer of its own.
publish() { printf %s "$2" | sb-file-write "$1" >/dev/null; }
stack() { sb-stat-stack "$@" >out && jq -e . out >/dev/null; }
get() { jq -c "$1" out; }
refused() {
	local code=$1 kind=$2 message=$3
	shift 3
	run "-$code" --separate-stderr sb-stat-stack "$@"
	is "$output" "{\"error\":{\"kind\":\"$kind\",\"message\":\"$message\",\"details\":{}}}"
}

@test "usage and what there is not" {
	run -0 sb-stat-stack -h
	run -100 sb-stat-stack x
	run -100 sb-stat-stack -n x
	run -100 sb-stat-stack -t -1
	run -111 sb-stat-stack
	unset SB_STORE
	run -100 sb-stat-stack
	export SB_STORE=$T/store
	make_store
	refused 100 invalid_request "unknown workspace: x" -w x
	refused 100 invalid_request "unknown workspace: ../x" -w ../x
	refused 100 invalid_request "unknown layer: L000002-00000000" -l L000002-00000000
	refused 100 invalid_request "unknown layer: ../base" -l ../base
	refused 100 invalid_request "workspace_id and layer_id exclude each other" -l a -w b
	refused 100 invalid_request "limit exceeds max (5000)" -l B000001-base -n 5001
	run -111 bash -c "sb-stat-stack >/dev/full"
	run -111 bash -c "sb-stat-stack >&-"
}

@test "the stack: fields in order, newest layer first" {
	need jq
	mkdir ws
	printf 12345 >ws/f
	make_store
	stack
	is "$(jq -c keys_unsorted out)" '["view","manifest_version","root_hash","active_lease_count","total_bytes","total_allocated_bytes","storage_logical_bytes","storage_allocated_bytes","staging_entry_count","layers"]'
	is "$(get '[.view, .manifest_version, .active_lease_count, .total_bytes, .staging_entry_count]')" '["layerstack",1,0,5,0]'
	is "$(get '.layers[] | [keys_unsorted, .layer_id, .bytes, .leased_by_workspaces, .booked_by]')" \
	    '[["layer_id","bytes","allocated_bytes","leased_by_workspaces","booked_by"],"B000001-base",5,0,[]]'
	publish a 1234567
	publish d/b 89
	stack
	is "$(get '[.layers[].layer_id]')" \
	    "$(sb-stack-show | sed '/^$/d' | jq -R . | jq -cs .)"
	is "$(get '[.layers[].bytes]')" '[2,7,5]'
	is "$(get '[.manifest_version, .total_bytes]')" '[3,14]'
	is "$(get '.total_allocated_bytes == ([.layers[].allocated_bytes] | add)')" true
	# The root hash is the one that publishing says.
	is "$(get .root_hash)" "$(sb-session-new >s; sb-publish "$(cat s)" | jq -c .publish.revision.root_hash)"
}

@test "allocated bytes and storage are what du says" {
	need jq
	mkdir -p ws/d/e
	head -c 100000 /dev/zero >ws/d/e/f
	ln ws/d/e/f ws/g
	make_store
	stack
	local base=$SB_STORE/layer-stack/base/B000001-base
	is "$(get '.layers[0].bytes')" 200000
	is "$(get '.layers[0].allocated_bytes')" "$(find -H "$base" -mindepth 1 -printf '%b\n' | awk '{ n += $1 * 512 } END { print n }')"
	is "$(get .storage_allocated_bytes)" "$(find "$SB_STORE/layer-stack" -mindepth 1 -printf '%b\n' | awk '{ n += $1 * 512 } END { print n }')"
	is "$(get .storage_logical_bytes)" "$(find "$SB_STORE/layer-stack" -type f -printf '%s\n' | awk '{ n += $1 } END { print n }')"
}

@test "leases: whose newest layer it is, and who is booked above" {
	need jq
	make_store
	sb-session-new >s1
	publish a 1
	sb-session-new >s2
	sb-session-new >s3
	publish b 2
	stack
	is "$(get .active_lease_count)" 3
	is "$(get '[.layers[].leased_by_workspaces]')" '[0,2,1]'
	local l
	l=$(get '.layers[1].layer_id')
	is "$(get '[.layers[].booked_by]')" "[[],[],[$l]]"
	# Work that is going on has a lease, too.
	sb-stack-lease work sh -c 'sb-stat-stack >out'
	is "$(get '[.active_lease_count, .layers[].leased_by_workspaces]')" '[4,1,2,1]'
}

@test "a size that takes too many steps is null, with a lower bound" {
	need jq
	mkdir -p ws/1/2/3
	for i in 1 2 3 4 5 6 7 8 9; do printf 1234 >ws/f$i; done
	make_store
	publish a 123
	echo 'observability.sampling.max_walk_nodes 5' >"$SB_STORE/conf"
	stack
	is "$(get '[.total_bytes, .total_allocated_bytes, .storage_logical_bytes, .storage_allocated_bytes]')" '[39,null,null,null]'
	# Nothing noted, as by an import that was killed.
	: >"$SB_STORE/layer-stack/.layer-metadata/B000001-base.bytes"
	stack
	is "$(get '[.total_bytes, .total_allocated_bytes, .storage_logical_bytes, .storage_allocated_bytes]')" '[null,null,null,null]'
	is "$(get '[.layers[].bytes]')" '[3,null]'
	is "$(get '.layers[1] | .bytes_at_least <= 20 and .allocated_bytes_at_least > 0')" true
	is "$(get '.layers[0] | has("bytes_at_least")')" false
	printf 'observability.sampling.max_walk_nodes 100\nobservability.sampling.max_walk_depth 3\n' >"$SB_STORE/conf"
	stack
	is "$(get '.layers[1].bytes')" 36
	echo 'observability.sampling.max_walk_depth 2' >"$SB_STORE/conf"
	stack
	is "$(get '.layers[1] | .bytes, .bytes_at_least' | tr '\n' ' ')" "null 36 "
	echo 'no.such.key 1' >"$SB_STORE/conf"
	run -100 sb-stat-stack
}

@test "a layer that cannot be measured makes only its own sizes unknown" {
	need jq
	make_store
	publish a 123
	publish b 4
	local l
	l=$(sb-stack-show | head -2 | tail -1)
	rm -r "$SB_STORE/layer-stack/layers/$l"
	rm "$SB_STORE/layer-stack/.layer-metadata/$l.bytes"
	stack
	is "$(get '[.layers[] | .bytes, .allocated_bytes == null]')" '[1,false,null,true,0,false]'
	is "$(get .total_bytes)" null
	echo x >"$SB_STORE/layer-stack/manifest.json"
	run -111 --separate-stderr sb-stat-stack
	has "$output" '{"error":{"kind":"internal_error","message":"the stack cannot be observed: manifest.json: '
}

@test "reading changes nothing" {
	make_store
	publish a 1
	sb-session-new >s
	listing "$SB_STORE" >before
	sb-stat-stack -t 1 >out
	sb-stat-stack -w "$(cat s)" >out
	sb-stat-stack -l B000001-base >out
	listing "$SB_STORE" >after
	same before after
}

@test "the trend is there when it is asked for" {
	need jq
	make_store
	stack -t 60000
	is "$(get .trend)" '[]'
	stack
	is "$(get 'has("trend")')" false
}

@test "a session: layers from the base on, and whom it shares them with" {
	need jq overlay userns
	make_store
	sb-session-new >s1
	publish a 1
	sb-session-new >s2
	stack -w "$(cat s2)"
	is "$(jq -c keys_unsorted out)" '["view","workspace","mounts","upper_bytes"]'
	is "$(get '[.workspace, .upper_bytes, [.mounts[].layer_id], [.mounts[].shared_with]]')" \
	    "[\"$(cat s2)\",0,[\"B000001-base\",\"$(sb-stack-show | head -1)\"],[[\"$(cat s1)\"],[]]]"
	printf 12345 | sb-file-write -s "$(cat s2)" d/x >/dev/null
	stack -w "$(cat s2)"
	is "$(get .upper_bytes)" 5
}

@test "the entries of a layer: kinds, order, limit" {
	need jq overlay userns
	mkdir -p ws/d ws/e/f
	touch ws/gone ws/d/x ws/a-b ws/e/f/y
	make_store
	sb-session-new >s
	sb-run "$(cat s)" sh -c 'echo 1 >new; ln -s new link; rm gone; rm -r d; mkdir d; echo 2 >d/z; mkdir -p a/c'
	sb-publish "$(cat s)" >/dev/null
	local l
	l=$(sb-stack-show | head -1)
	stack -l "$l"
	is "$(jq -c keys_unsorted out)" '["view","layer_id","entries","truncated"]'
	is "$(get .truncated)" false
	is "$(get '.entries[] | [.path // .path_b64, .kind]')" '["a","directory"]
["a/c","directory"]
["d","opaque_dir"]
["d/z","file"]
["gone","delete"]
["link","symlink"]
["new","file"]'
	stack -l "$l" -n 3
	is "$(get '.entries | length')" 3
	is "$(get .truncated)" true
	stack -l "$l" -n 7
	is "$(get .truncated)" false
	stack -l "$l" -n 0
	is "$(get '[.entries, .truncated]')" '[[],true]'
	stack -l B000001-base
	is "$(get '[.entries[].path]')" '["a-b","d","d/x","e","e/f","e/f/y","gone"]'
	echo 'observability.views.layer_delta_default_limit 2' >"$SB_STORE/conf"
	stack -l B000001-base
	is "$(get '[(.entries | length), .truncated]')" '[2,true]'
}

@test "a path that is no UTF-8" {
	need jq
	mkdir ws
	touch "ws/$(printf 'a\377')"
	make_store
	stack -l B000001-base
	is "$(get .entries)" '[{"path_b64":"Yf8=","kind":"file"}]'
}
