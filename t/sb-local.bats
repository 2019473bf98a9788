# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib
load box

# sb-local, and the steps that it is composed of.

@test "usage" {
	for a in "" x "new" "new a b" "new -n x /" "new -x /" "start" "rm a b" "stop -t x a" "logs" "ls x" "stat a b" "images x"; do
		# shellcheck disable=SC2086 # words
		run -100 sb-local $a
	done
	run -100 sb-box-new /x
	run -100 sb-box-new -n 0 /x true
	run -100 sb-box-new -n 101 /x true
	run -100 sb-box-busy a ready
	run -100 sb-box-ready
	run -100 sb-box-stop
	run -100 sb-box-stop -t x a
	run -100 sb-dir-list a b
	run -111 sh -c 'sb-dir-list >/dev/full'
}

@test "a sandbox is created, shown, listed and removed, and nothing is left" {
	box_start
	new
	is "$(jq -c 'del(.shared_base.root_hash, .shared_base.source, .id, .readonly_mounts)' new.out)" \
	    '{"workspace_root":"'"$T"'/ws","state":"ready","activity_revision":0,"daemon":null,"daemon_http":null,"shared_base":{"target":"/eos/layer-stack/base","readonly":true},"resource_profile":null,"provider":"local","image":"host"}'
	grep -qxE 'eos-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}' <<<"$id"
	[ -d "$(jq -r .shared_base.source new.out)/B000001-base/d" ]
	sb-local show "$id" >shown
	same new.out shown
	is "$(sb-local ls | jq -c '.sandboxes[0]')" "$(cat shown)"
	is "$(stat -c %a "$box" "$SB_RUN/box/$id" "$SB_RUN/box/$id/gate" | tr '\n' ' ')" "700 700 600 "
	sb-local stat "$id" | jq -e '.sandboxes[0].availability == "available"'
	sb-local logs "$id" | grep -q '^gate: '
	sb-local rm "$id" >removed 3>&-
	is "$(jq -c '.state = "ready"' removed)" "$(cat shown)"
	is "$(jq -r .state removed)" stopped
	nothing_left
	run -1 --separate-stderr sb-local rm "$id"
	is "$(jq -r '.error.kind, .error.message' <<<"$output" | tr '\n' ' ')" "invalid_request sandbox not found: $id "
	is "$(cat ws/f ws/d/g | tr '\n' ' ')" "one two "
}

@test "a box has the limits of the profile that is configured; its control groups go with it" {
	box_start
	limit_boxes
	new -v 2>err
	is "$(jq -c .resource_profile new.out)" \
	    '{"name":"standard","nano_cpus":1000000000,"memory_high_bytes":402653184,"memory_max_bytes":536870912,"pids_max":256,"workload_memory_high_bytes":402653184,"workload_memory_max_bytes":402653184,"workload_pids_max":224,"control_plane_pids_reserve":32,"daemon_runtime_profile":"standard","separate_workload_cgroup":true}'
	sb-local show "$id" >shown
	same new.out shown
	# All of them, or it was said which are not there.
	for kind in cpu memory pids; do
		grep -qE ":(|[^:]*,)($kind)(|,[^:]*):.*/sb-$id\$|^0::.*/sb-$id\$" "/proc/$(cut -d ' ' -f 1 "$box/hold")/cgroup" ||
		    grep -q "^sb-local: info: $id: limits are not available: .*$kind: " err ||
		    fail "$kind" "$(cat err "/proc/$(cut -d ' ' -f 1 "$box/hold")/cgroup")"
	done
	for d in $(groups_of_box "$id"); do
		[ ! -e "$d/pids.max" ] || is "$(cat "$d/pids.max")" 256
		[ ! -e "$d/memory.limit_in_bytes" ] || is "$(cat "$d/memory.limit_in_bytes")" 536870912
		[ ! -e "$d/memory.max" ] || is "$(cat "$d/memory.max")" 536870912
	done
	groups_of_box "$id" >before
	sb-local stop "$id" >out 3>&-
	is "$(groups_of_box "$id")" ""
	# They are the box's: what is configured later is for others.
	rm "$SB_STATE/conf"
	sb-local start "$id" >out 3>&-
	groups_of_box "$id" >after
	same before after
	kill_box "$id"
	sb-local rm "$id" >out 3>&-
	is "$(groups_of_box "$id")" ""
	new
	is "$(jq .resource_profile new.out)" null
	is "$(groups_of_box "$id")" ""
}

@test "what is kept back for services depends on the profile" {
	mkdir -p ws
	for p in "8000 64 7936" "100 12 88" "9 8 1"; do
		read -r pids kept rest <<<"$p"
		limit_boxes 1 5 5 "$pids"
		sed -i 's/profile standard/profile build-heavy/' "$SB_STATE/conf"
		sb-box-new "$T/ws" sh -c 'sb-box-ls "$1"' - >out
		is "$(jq -r '.resource_profile | "\(.control_plane_pids_reserve) \(.workload_pids_max) \(.workload_memory_max_bytes) \(.daemon_runtime_profile)"' out)" \
		    "$kept $rest 5 build-heavy"
		sb-box-rm -p local "$(boxes)" >out
	done
}

@test "a profile that is not there, or says too little, is refused before anything is made" {
	mkdir -p ws
	for p in none small; do
		limit_boxes 1 2 3 9
		sed -i "s/^\(manager.local.resource_profile\) .*/\1 $p/; /cpus/d" "$SB_STATE/conf"
		run -111 --separate-stderr sb-box-new "$T/ws" true
		has "$output" "manager.local.resource_profile: $p is none of the resource_profiles"
		is "$(boxes)" ""
	done
}

@test "a record names the mounts that cannot be written in the box only" {
	box_start
	new
	is "$(jq -r '.readonly_mounts[].path' new.out)" "$(cat "$box/readonly")"
	: >"$box/readonly"
	is "$(sb-local show "$id" | jq -c .readonly_mounts)" "[]"
	printf '/srv/a "b"\n/srv/\377\n' >"$box/readonly"
	is "$(sb-local ls | jq -c '.sandboxes[0].readonly_mounts')" '[{"path":"/srv/a \"b\""},{"path_b64":"L3Nydi//"}]'
	rm "$box/readonly"
	is "$(sb-local rm "$id" 3>&- | jq -c .readonly_mounts)" "[]"
}

@test "commands have the caller's PATH without our programs, over an image that of a system" {
	box_start
	PATH=$PATH:$SB_BIN:/opt/x
	new
	is "$(cat "$box/env/SB_PATH")" "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/x"
	[ ! -e "$box/env/USER" ]
	mkdir -p img/bin
	new -i "$T/img"
	is "$(cat "$box/env/SB_PATH" "$box/env/USER" "$box/env/LOGNAME")" "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/binrootroot"
}

@test "several at once, in order, over one copy of the workspace" {
	box_start
	sb-local new -n 3 "$T/ws" >out 3>&-
	is "$(jq -r '.sandboxes | length' out)" 3
	is "$(jq -r '.sandboxes[].state' out | sort -u)" ready
	is "$(jq -r '.sandboxes[].id' out | sort)" "$(boxes)"
	is "$(find "$XDG_CACHE_HOME/sb/bases" -mindepth 1 -maxdepth 1 -type d | wc -l)" 1
}

@test "progress is told only when it is asked for" {
	box_start
	sb-local new "$T/ws" 2>err >out 3>&-
	is "$(cat err)" ""
	sb-local new -v "$T/ws" 2>err >out 3>&-
	grep -q "^sb-local: info: .*building shared workspace base" err
	grep -q "^sb-local: info: .*creating runtime sandbox for $T/ws" err
	grep -qE '^sb-base-import: info: [0-9]+ entries, [0-9]+ bytes: (copied|nothing to copy)$' err
	is "$(grep -v ': info: ' err || :)" ""
}

@test "what is refused is refused before anything is made" {
	box_start
	refused() {
		local kind=$1 text=$2
		shift 2
		run --separate-stderr sb-local new "$@"
		[ "$status" != 0 ]
		is "$(jq -r .error.kind <<<"$output")" "$kind"
		has "$(jq -r .error.message <<<"$output")" "$text"
		is "$(find "$SB_STATE" "$SB_RUN" "$XDG_CACHE_HOME" 2>/dev/null)" ""
	}
	refused invalid_request "invalid image: " -i "" "$T/ws"
	refused invalid_request "invalid image:  " -i " " "$T/ws"
	refused invalid_request "invalid image: ubuntu:24.04" -i ubuntu:24.04 "$T/ws"
	refused invalid_request "invalid image: $T/none: No such file" -i "$T/none" "$T/ws"
	refused invalid_request "no line of UTF-8" -i $'/a\tb' "$T/ws"
	refused invalid_request "invalid workspace root: ws" ws
	refused invalid_request "invalid workspace root: " ""
	refused operation_failed "workspace setup failed: $T/none: No such file" "$T/none"
	refused operation_failed "workspace setup failed: $T/ws/f: Not a dir" "$T/ws/f"
}

@test "a workspace that cannot be imported: operation_failed, and all is undone" {
	box_start
	export SB_STATE=$T/ws/state
	run -2 --separate-stderr sb-local new "$T/ws"
	has "$stderr" "sb-local: fatal: workspace setup failed: "
	is "$output" ""
	nothing_left
}

@test "workspace_roots: only there, by the canonical path" {
	box_start
	mkdir -p "$SB_STATE" roots/repo "roots/Z y"
	ln -s "$T/roots/repo" roots/link
	ln -s "$T/ws" roots/out
	echo "manager.workspace_roots $T/roots" >"$SB_STATE/conf"
	run -100 --separate-stderr sb-local new "$T/ws"
	has "$output" "invalid workspace root: $T/ws"
	run -100 sb-local new "$T/roots/out"
	run -100 sb-local new "$T/roots/none"
	sb-local new "$T/roots/link" >out 3>&-
	is "$(jq -r .workspace_root out)" "$T/roots/repo"
	is "$(sb-dir-list)" '{"path":null,"parent":null,"truncated":false,"directories":[{"name":"'"$T"'/roots","path":"'"$T"'/roots"}]}'
	is "$(sb-dir-list "$T/roots")" '{"path":"'"$T"'/roots","parent":null,"truncated":false,"directories":[{"name":"link","path":"'"$T"'/roots/repo"},{"name":"Z y","path":"'"$T"'/roots/Z y"}]}'
	is "$(sb-dir-list "$T/roots/repo/" | jq -r .parent)" "$T/roots"
	for p in "$T" / relative "" "$T/roots/none" "$T/roots/out" "$T/ws/f"; do
		run -100 --separate-stderr sb-dir-list "$p"
		is "$(jq -r '.error.kind, .error.message' <<<"$output" | tr '\n' ' ')" "invalid_request invalid workspace root: $p "
	done
	echo "manager.workspace_roots $T/none" >"$SB_STATE/conf"
	run -111 --separate-stderr sb-dir-list
	has "$output" "manager.workspace_roots: $T/none: No such file"
	run -100 --separate-stderr sb-up -l "unix://$T/second" 3>&-
	has "$stderr" "manager.workspace_roots: $T/none: No such file"
	[ ! -e "$SB_RUN/svc" ]
}

@test "without roots the home directory can be looked at, at most 500 names of it" {
	need jq
	for i in $(seq 501); do mkdir "home/d$i"; done
	touch home/file
	mkdir "home/$(printf 'bad\377')" home/.hidden
	sb-dir-list "$HOME" >out
	is "$(jq '.directories | length' out)" 500
	is "$(jq .truncated out)" true
	is "$(jq -r '.directories[0].name' out)" .hidden
	rmdir home/d1 home/d2
	sb-dir-list "$HOME" >out
	is "$(jq -c '[.truncated, (.directories | length)]' out)" "[false,500]"
	is "$(sb-dir-list | jq -r '.directories[].path')" "$HOME"
}

# The third box fails to start.
third_fails() {
	alter sb-box-hold
	mv alt/bin/sb-box-hold alt/bin/real-hold
	printf '#!/bin/sh\necho x >>%s\n[ "$(wc -l <%s)" -lt 3 ] || { echo "sb-box-hold: fatal: no luck" >&2; exit 111; }\nexec real-hold "$@"\n' \
	    "$T/held" "$T/held" >alt/bin/sb-box-hold
	chmod +x alt/bin/sb-box-hold
}

@test "one of several fails: all are removed, the last first" {
	box_start
	third_fails
	run -111 --separate-stderr sb-local new -v -n 4 "$T/ws" 3>&-
	is "$output" ""
	is "$(tail -n 1 <<<"$stderr")" "sb-local: fatal: sandbox runtime failed: no luck"
	is "$(wc -l <held)" 3
	grep '^sb-local: info: removing ' <<<"$stderr" >removing
	is "$(wc -l <removing)" 4
	nothing_left
}

@test "a box that does not answer: its log is named, and it is removed" {
	box_start
	alter
	rm alt/share/sb
	cp -R "$SB_TOP/svc" alt/share/sb
	printf '#!/bin/sh\nexit 1\n' >alt/share/sb/gate/run
	sed -i 's/sb-box-ready "/sb-box-ready -t 300 "/' alt/bin/sb-local
	run -111 --separate-stderr sb-local new "$T/ws" 3>&-
	has "$stderr" "sandbox daemon install failed: "
	nothing_left
}

@test "told to end while it creates, it removes what it made" {
	box_start
	alter sb-box-ready
	mv alt/bin/sb-box-ready alt/bin/real-ready
	printf '#!/bin/sh\necho x >%s\nuntil [ -e %s ]; do sleep 0.02; done\nexec real-ready "$@"\n' "$T/asked" "$T/go" >alt/bin/sb-box-ready
	chmod +x alt/bin/sb-box-ready
	setsid -w sb-local new -n 2 "$T/ws" >out 2>err 3>&- &
	eventually test -e asked
	# Meanwhile it is being created, and can neither be started nor removed.
	for id in $(boxes); do
		is "$(state "$id")" creating
		run -100 --separate-stderr sb-local rm "$id"
		is "$(jq -r .error.message <<<"$output")" "invalid state transition for $id: creating -> stopping"
		run -100 sb-local start "$id"
	done
	kill "$(pgrep -f "sb-local held new .* $T/ws ")"
	touch go
	rc=0
	wait $! || rc=$?
	is $rc 111
	nothing_left
}

@test "stopped and started: what it has stays; states that do not fit are refused" {
	box_start
	new
	run -100 --separate-stderr sb-local start "$id"
	is "$(jq -r .error.message <<<"$output")" "invalid state transition for $id: ready -> ready"
	is "$(sb-local stop "$id" 3>&- | jq -r .state)" stopped
	is "$(state "$id")" stopped
	is "$(box_processes)" ""
	is "$(find "$SB_RUN" -path '*/box/*')" ""
	is "$(sb-local stop "$id" 3>&- | jq -r .state)" stopped
	is "$(sb-local start "$id" 3>&- | jq -r .state)" ready
	is "$(sb-local stat "$id" | jq -r '.sandboxes[0].availability')" available
	sb-local stop -t 0 "$id" >out 3>&-
	sb-local rm "$id" >out 3>&-
	nothing_left
}

@test "a box that is killed is stopped, and starts again; removed in any state" {
	box_start
	new
	kill_box "$id"
	is "$(sb-local stat "$id" | jq -r '.sandboxes[0].availability')" unavailable
	is "$(sb-local start "$id" 3>&- | jq -r .state)" ready
	# Its outer process takes it along.
	kill -KILL "$(pgrep -f "^sb-box-hold .*$id")"
	gone() { [ "$(state "$id")" = stopped ] && [ -z "$(box_processes)" ]; }
	eventually gone
	is "$(sb-local rm "$id" 3>&- | jq -r .state)" stopped
	nothing_left
	# Half created, half removed: failed.
	for was in creating stopping; do
		new
		sed -i "s/\"ready\"/\"$was\"/" "$box/record.json"
		is "$(state "$id")" failed
		run -100 --separate-stderr sb-local start "$id"
		is "$(jq -r .error.message <<<"$output")" "invalid state transition for $id: failed -> ready"
		[ "$was" = creating ] || rm -rf "$box/eos" "$box/env" "$SB_RUN/box/$id"
		sb-local rm "$id" >out 3>&-
		nothing_left
	done
	# Just a record.
	sb-box-new "$T/ws" true
	id=$(boxes)
	is "$(state "$id")" failed
	sb-local rm "$id" >out
	nothing_left
}

@test "a record that is damaged does not keep anybody from ending and removing it" {
	box_start
	new
	echo '{"id":' >"$box/record.json"
	run -111 --separate-stderr sb-local rm "$id"
	has "$output" "sandbox registry failed: record of $id"
	run -98 sb-box-rm "$id"
	sb-box-stop "$id"
	is "$(sb-box-rm "$id")" "$id"
	nothing_left
}

@test "two want to start it: one does, the other finds it started" {
	box_start
	new
	sb-local stop "$id" >out 3>&-
	sb-local start "$id" >one 2>&1 3>&- &
	p=$!
	sb-local start "$id" >two 2>&1 3>&- || :
	wait $p || :
	is "$(grep -l '"state":"ready"' one two | wc -l)" 1
	is "$(cat one two | grep -c 'ready -> ready')" 2
	is "$(state "$id")" ready
}

@test "whoever is busy keeps others waiting, for a time" {
	box_start
	new
	mkfifo go
	sb-box-busy "$id" stopped sh -c "echo x >$T/got; read -r x <$T/go" 3>&- &
	eventually test -e got
	run -98 --separate-stderr sb-box-busy -t 0 "$id" stopping true
	is "$(jq -r .error.kind <<<"$output")" server_busy
	is "$(state "$id")" ready
	sb-local rm "$id" >out 3>&- &
	echo >go
	wait
	is "$(jq -r .state out)" stopped
	nothing_left
}

@test "sandboxes of sb-box-add are none of this provider's, and the other way round" {
	box_start
	new
	SB_STORE=$T/store make_store
	SB_STORE=$T/store sb-box-add eos-1 >out
	is "$(sb-local ls | jq -r '.sandboxes[].id')" "$id"
	run -100 --separate-stderr sb-local rm eos-1
	has "$output" "sandbox eos-1 was made by sb-box-add"
	run -2 sb-box-rm "$id"
	run -98 sb-box-rm -p local "$id"
	is "$(state "$id")" ready
	run -100 --separate-stderr sb-up "$id" 3>&-
	has "$stderr" "$id has a box of its own"
	sb-box-rm eos-1
}

@test "an image is a directory, or a tar file that is unpacked once" {
	box_start
	mkdir -p img/bin img/etc
	echo mine >img/etc/issue
	is "$(sb-local images)" host
	new -i "$T/img"
	is "$(jq -r .image new.out)" "$T/img"
	is "$(cat "$box/image")" "$T/img"
	sb-local stop "$id" >out 3>&-
	mv img away
	run -111 --separate-stderr sb-local start "$id" 3>&-
	has "$stderr" "image $T/img is not there"
	mv away img
	sb-local start "$id" >out 3>&-
	sb-local rm "$id" >out 3>&-
	tar -c -C img -f 'a "1.tar' .
	tar -c -z -C img -f b.tgz .
	set -- 'a "1.tar' b.tgz
	! command -v zstd >/dev/null || { set -- "$@" c.tar.zst && tar -c --zstd -C img -f c.tar.zst .; }
	for tar; do
		new -i "$T/$tar"
		is "$(cat "$(cat "$box/image")/etc/issue")" mine
		sb-local rm "$id" >out 3>&-
	done
	is "$(sb-local images)" "$(printf "$T/%s\n" "$@" && echo host)"
	is "$(sb-local images -j | jq -r '.images[]')" "$(sb-local images)"
	images=$XDG_CACHE_HOME/sb/images
	ls -id "$images"/*/ | sort >before
	new -i "$T/b.tgz"
	ls -id "$images"/*/ | sort >after
	same before after
	# Another file by that name is another image.
	sb-local rm "$id" >out 3>&-
	new -i "$T/b.tgz"
	echo yours >img/etc/issue
	tar -c -z -C img -f new.tgz .
	mv new.tgz b.tgz
	old=$id
	new -i "$T/b.tgz"
	is "$(cat "$(cat "$box/image")/etc/issue")" yours
	is "$(cat "$(cat "$SB_STATE/sandboxes/$old/image")/etc/issue")" mine
	# Those that sandboxes have stay.
	sb-local images -g >out
	is "$(ls -d "$images"/*/ | wc -l)" 2
	is "$(cat out | tr '\n' ' ')" "$T/b.tgz host "
}

@test "no root file system: refused, and nothing is left" {
	box_start
	mkdir -p img/blobs
	tar -c -C img -f save.tar .
	head -c 3000 /dev/zero | tr '\0' x >bad.tar
	for i in img save.tar bad.tar; do
		run -111 --separate-stderr sb-local new -i "$T/$i" "$T/ws" 3>&-
		has "$stderr" "sb-local: fatal: sandbox runtime failed: "
	done
	has "$stderr" "tar: This does not look like a tar archive"
	nothing_left
	is "$(find "$XDG_CACHE_HOME/sb/images" -name '.new.*')" ""
}

@test "what users of an image own goes, too, for an ordinary user with subordinate ids" {
	need root newuidmap
	own=$(mktemp -d /tmp/sb-user.XXXXXX)
	mkdir "$own/ws"
	chown -R 1000:1000 "$own"
	echo 1000:700000:65536 >subids
	chmod 711 "$T" "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
	as_user() {
		env SB_STATE="$own/state" SB_RUN="$own/run" HOME="$own" unshare -m sh -euc '
			mount --bind "$1" /etc/subuid; mount --bind "$1" /etc/subgid; shift
			exec setpriv --reuid 1000 --regid 1000 --clear-groups "$@"' - "$T/subids" "$@"
	}
	as_user sb-box-new "$own/ws" true
	id=$(ls "$own/state/sandboxes")
	mkdir -p "$own/state/sandboxes/$id/mounts/d"
	touch "$own/state/sandboxes/$id/mounts/d/f"
	chown -R 700041:700006 "$own/state/sandboxes/$id/mounts"
	as_user sb-box-rm -p local "$id" >out || rm -rf "$own"
	is "$(ls -A "$own/state/sandboxes")" ""
	rm -rf "$own"
	is "$(jq -r .state out)" stopped
}

@test "two unpack one image at once" {
	box_start
	mkdir -p img/bin
	head -c 3000000 /dev/urandom >img/bin/large
	tar -c -C img -f a.tar .
	sb-local new -i "$T/a.tar" "$T/ws" >one 3>&- &
	sb-local new -i "$T/a.tar" "$T/ws" >two 3>&-
	wait
	is "$(ls -d "$XDG_CACHE_HOME"/sb/images/*/ | wc -l)" 1
	is "$(jq -r .state one two | tr '\n' ' ')" "ready ready "
}

@test "messages and names say a backslash as it is" {
	run -100 --separate-stderr env SB_STATE='a\tb\n' sb-local ls
	is "$stderr" 'sb-local: fatal: SB_STATE is not an absolute path: a\tb\n'
	run -100 --separate-stderr env SB_RUN='a\tb' sb-up -l 'unix:///x'
	is "$stderr" 'sb-up: fatal: SB_RUN is not an absolute path: a\tb'
	images=$XDG_CACHE_HOME/sb/images
	mkdir -p "$images/k"
	touch 'a\tb.tar'
	printf '%s\n' "$T/a\\tb.tar" >"$images/k.name"
	is "$(sb-local images)" "$(printf '%s\n' "$T/a\\tb.tar" host)"
}

@test "on a full disk a sandbox can be removed" {
	need root
	box_start
	mkdir -p "$SB_STATE"
	unshare -m sh -euc '
		mount -t tmpfs -o size=4m none "$SB_STATE"
		id=$(sb-local new "$1" | jq -r .id)
		box=$SB_STATE/sandboxes/$id
		! dd if=/dev/zero of="$box/tmp/fill" bs=4k
		sb-local stop "$id"
		! echo x >"$SB_STATE/x"
		rm -f "$SB_STATE/x"
		sb-local rm "$id"
		ls "$SB_STATE/sandboxes" >"$1/../left"' - "$T/ws" 3>&- >out 2>err || { cat out err; false; }
	is "$(cat left)" ""
}
