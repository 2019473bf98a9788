# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

log=observability/resources.ndjson
lines() { wc -l <"$SB_STORE/$log"; }

@test "usage and what there is not" {
	run -0 sb-stat-sample -h
	is "$output" "usage: sb-stat-sample [-nr] [-3 fd]"
	run -100 sb-stat-sample x
	run -100 sb-stat-sample -3 x
	run -100 sb-stat-sample -3 77
	run -111 sb-stat-sample
	run -100 env -u SB_STORE sb-stat-sample
	make_store
	run -111 bash -c "sb-stat-sample -n >/dev/full"
	run -111 bash -c "sb-stat-sample -nr >&-"
}

@test "a sample is a line of the log; -n prints one" {
	need jq
	make_store
	run -0 --separate-stderr sb-stat-sample
	is "$output$stderr" ""
	sb-stat-sample
	is "$(lines)" 2
	jq -ce '.kind == "sample" and .scope == "sandbox" and (._counters | type) == "array" and .uptime_ms > 0' "$SB_STORE/$log" >out
	is "$(sort -u out)" true
	is "$(stat -c %a "$SB_STORE/$log")" 600
	now=$(date +%s)
	sb-stat-sample -n >one
	is "$(jq -c ".ts / 1000 | . > $now - 60 and . < $now + 60" one)" true
	is "$(lines)" 2
}

@test "a box with processes of its own and no cgroup: they are added up" {
	need jq userns
	make_store
	# What was waited for counts: the shell's time is its children's too.
	unshare -Urpf --mount-proc sh -c 'sh -c "i=0; while [ \$i -lt 300000 ]; do i=\$((i + 1)); done"; sb-stat-sample -n; :' >one
	is "$(jq -c '[.pids_cur >= 2, .cpu_usec > 0, .mem_cur > 100000]' one)" '[true,true,true]'
	# Where there is a cgroup around us that shows nothing above it, that is it.
	if [ "$(jq -r .metrics_source one)" = sandbox_proc ]; then
		is "$(jq -c '[.cgroup_available, .pids_cur, .io_rbytes >= 0, has("mem_max")]' one)" '[false,2,true,false]'
		is "$(jq -r .cgroup_error one)" "mem_max: the box has no cgroup of its own"
	fi
}

@test "settings: none are written, when they are written again, and wrong ones are said" {
	need jq
	make_store
	echo 'observability.resource_stats.enabled false' >"$SB_STORE/conf"
	sb-stat-sample
	[ ! -e "$SB_STORE/$log" ]
	printf 'observability.resource_stats.sample_interval_ms 250\n' >"$SB_STORE/conf"
	mkfifo ready
	sb-stat-sample -r -3 4 4>ready 2>err 3>&- &
	read -r _ <ready
	[ "$(lines)" -ge 1 ]
	several() { [ "$(lines)" -ge 4 ]; }
	eventually several
	echo 'no.such.key 1' >"$SB_STORE/conf"
	said() { grep -q 'sb-stat-sample: warning: .*no.such.key' err; }
	eventually said
	echo 'observability.resource_stats.sample_interval_ms 250' >"$SB_STORE/conf"
	now=$(lines)
	more() { [ "$(lines)" -ge $((now + 3)) ]; }
	eventually more
	kill $!
	wait $! || :
	is "$(wc -l <err)" 1
	jq -e . "$SB_STORE/$log" >/dev/null
}

@test "what cannot be written is dropped and counted, and is no failure" {
	make_store
	sb-stat-sample
	rm "$SB_STORE/$log"
	ln -s /dev/full "$SB_STORE/$log"
	run -0 --separate-stderr sb-stat-sample
	is "$output$stderr" ""
	is "$(cat "$SB_STORE/$log.counts")" "storage 1"
}

@test "the log keeps to its bytes" {
	need jq
	make_store
	echo 'observability.resource_stats.max_disk_bytes 131072' >"$SB_STORE/conf"
	sb-stat-sample
	line=$(cat "$SB_STORE/$log")
	for _ in $(seq 2000); do printf '%s\n' "$line"; done >"$SB_STORE/$log"
	sb-stat-sample
	sb-stat-sample
	[ "$(cat "$SB_STORE/$log" "$SB_STORE/$log.1" | wc -c)" -le 131072 ]
	jq -e . "$SB_STORE/$log" >/dev/null
}
