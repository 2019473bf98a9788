# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# sb-box-add, sb-box-ls, sb-box-rm: what the gateway knows of sandboxes.

@test "no sandbox: an empty list, and one that is named is 1" {
	is "$(sb-box-ls)" '{"sandboxes":[]}'
	run -1 --separate-stderr sb-box-ls eos-1
	is "$output" '{"error":{"kind":"invalid_request","message":"sandbox not found: eos-1","details":{"reason":"sandbox_not_found"}}}'
	run -1 --separate-stderr sb-box-ls 'a/b'
	is "$output" '{"error":{"kind":"invalid_request","message":"invalid sandbox id: a/b","details":{}}}'
	for id in .. . .x "$(printf %065d 0)"; do
		run -1 --separate-stderr sb-box-ls "$id"
		has "$output" "sandbox not found: $id"
	done
	run -1 sb-box-rm eos-1
}

@test "a store becomes a sandbox, with a record in the order of the interface" {
	need jq
	make_store
	is "$(sb-box-add eos-1)" eos-1
	sb-box-ls eos-1 >out
	is "$(jq -c 'del(.shared_base.root_hash)' out)" \
	    '{"id":"eos-1","workspace_root":"'"$T"'/ws","state":"ready","activity_revision":0,"daemon":null,"daemon_http":null,"shared_base":{"source":"'"$T"'/ws","target":"/eos/layer-stack/base","readonly":true},"resource_profile":null}'
	is "$(jq -r .shared_base.root_hash out)" "$(cat base.hash)"
	is "$(cat state/sandboxes/eos-1/env/SB_STORE)" "$SB_STORE"
	is "$(stat -c %a state/sandboxes/eos-1)" 700
	is "$(ls -A state/sandboxes)" eos-1
}

@test "an id that is none given is eos- and a UUID; the list is sorted" {
	need jq
	make_store
	sb-box-add zz; sb-box-add >id; sb-box-add aa
	grep -qxE 'eos-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}' id
	is "$(sb-box-ls | jq -r '.sandboxes[].id' | tr '\n' ' ')" "aa $(cat id) zz "
}

@test "an id that is taken is 2, and nothing changes; no id at all is 100" {
	make_store
	sb-box-add eos-1
	sb-box-ls >before
	run -2 sb-box-add eos-1
	sb-box-ls >after
	same before after
	is "$(ls -A state/sandboxes)" eos-1
	for id in a/b .a '' "a b"; do run -100 sb-box-add "$id"; done
}

@test "a store without a base is no sandbox" {
	sb-store-init
	run ! sb-box-add eos-1
	is "$(ls -A state/sandboxes)" ""
	SB_STORE=$T/no run ! sb-box-add eos-1
}

@test "the changes that were counted are in the record" {
	need jq
	make_store
	sb-box-add eos-1
	printf +++ >state/sandboxes/eos-1/activity
	is "$(sb-box-ls eos-1 | jq .activity_revision)" 3
	is "$(sb-box-ls | jq '.sandboxes[0].activity_revision')" 3
}

@test "a damaged record is named, and the others are listed" {
	need jq
	make_store
	sb-box-add eos-1; sb-box-add eos-2
	echo '{"id":' >state/sandboxes/eos-1/record.json
	sb-box-ls >out 2>err
	is "$(jq -r '.sandboxes[].id' out)" eos-2
	has "$(cat err)" "record of eos-1"
	run -111 --separate-stderr sb-box-ls eos-1
	has "$output" '"kind":"internal_error"'
	is "$(sb-box-rm eos-1)" eos-1
	is "$(sb-box-ls | jq -r '.sandboxes[].id')" eos-2
}

@test "removed it is not there, and the store is" {
	need jq
	make_store
	sb-box-add eos-1
	is "$(sb-box-rm eos-1)" eos-1
	is "$(ls -A state/sandboxes)" ""
	is "$(sb-stack-version)" 1
	sb-box-add eos-1
}

@test "a full device is 111, and usage 100" {
	run -111 bash -c 'sb-box-ls >/dev/full'
	run -100 sb-box-ls a b
	run -100 sb-box-add a b
	run -100 sb-box-rm
	SB_STATE=relative run -100 sb-box-ls
}

@test "killed midway, adding leaves nothing or all of it" {
	need strace jq
	make_store
	for call in mkdir mkdirat openat renameat; do
		n=$(count_calls $call sb-box-add probe)
		sb-box-rm probe >out
		for ((i = 1; i <= n; i++)); do
			kill_at $call "$i" sb-box-add eos-1 >out 2>&1 || :
			sb-box-ls >list
			if jq -e '.sandboxes | length == 1' list >out; then
				is "$(cat state/sandboxes/eos-1/env/SB_STORE)" "$SB_STORE"
				sb-box-rm eos-1 >out
			fi
		done
	done
	is "$(sb-box-ls)" '{"sandboxes":[]}'
}
