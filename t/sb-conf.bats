# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib
shopt -s extglob

setup() {
	sb_setup
	sb-store-init
	C=$SB_STORE/conf
	D=manager.docker P=manager.docker.resource_profiles
	unset SANDBOX_GATEWAY_SOCKET
	required | yaml >base.yml
}

# Lines "dotted.key value", those of a mapping side by side, as YAML.
yaml() {
	awk '{
		n = split($1, part, ".")
		for (i = 1; i < n && part[i] == last[i]; i++)
			;
		for (; i < n; i++) {
			printf "%*s%s:\n", 2 * (i - 1), "", part[i]
			last[i] = part[i]
		}
		last[n] = ""
		sub(/^[^ ]+ /, "")
		printf "%*s%s: %s\n", 2 * (n - 1), "", part[n], $0
	}'
}

# What a document has to say, for everybody.
required() {
	cat <<'EOT'
daemon.server.socket_path /run/d.sock
daemon.server.pid_path /run/d.pid
daemon.server.worker_threads 3
runtime.workspace.layer_stack_root /stack
runtime.workspace.scratch_root /scratch
runtime.workspace.setup_timeout_s 31
runtime.workspace.exit_grace_s 0.5
runtime.workspace.rfc1918_egress deny
runtime.namespace_execution.scratch_root /exec
runner.mount_mask.hidden_paths [/hidden]
manager.docker.daemon_binary_path /d
manager.docker.daemon_config_yaml_path /d.yml
EOT
}

# Each key with a value of its own, but for profiles: what it is (i whole
# number, d decimal, b boolean, t text or path, l list; ~ may be null), name,
# default, what is accepted, what is not. "-" is none.
keys() {
	cat <<'EOT'
t daemon.server.socket_path ! /x,/ x,"",./x
t daemon.server.pid_path ! /x x,""
i daemon.server.worker_threads ! 1,64 0,65
i daemon.server.max_blocking_threads 8 1,256 0,257
d daemon.server.blocking_thread_keep_alive_s 5 0.001,300 0,0.0,300.1,301
i daemon.server.max_concurrent_connections 64 1,4096 0,4097
i daemon.server.max_request_bytes 16777216 65536,4294967296 65535,0
d daemon.server.request_read_timeout_s 30 0.1,1e6 0,1e10
d daemon.http.forward.connect_timeout_s 10 0.1,600 0
d daemon.http.forward.response_timeout_s 30 0.1,600 0
t gateway.bind_addr 127.0.0.1:7878 0.0.0.0:1,"[::1]:65535",tcp://10.0.0.1:80,"tcp://[::]:1",unix:///run/x,npipe://./pipe/a/b.c_d-e "",":1",127.0.0.1,127.0.0.1:0,127.0.0.1:65536,"127.0.0.1:","::1:80",tcp://127.0.0.1:0,tcp://localhost:80,localhost:80,http://127.0.0.1:80,unix://x,unix:///,unix:///a//b,unix:///a/,unix:///a/./b,unix:///a/../b,'unix:///a\b',npipe://x,npipe://./pipe/,npipe://./pipe/a//b,npipe://./pipe/..,npipe://./pipe/a:b
t gateway.pid_path /tmp/eos-gateway.pid /x "","_","\t\n"
i gateway.max_concurrent_connections 256 1,100000 0
t runtime.workspace.layer_stack_root ! /x,/.x,/x/..,/..x x,/,//,/.,/..,/./../,""
t runtime.workspace.scratch_root ! /x x,/
d runtime.workspace.setup_timeout_s ! 0.000000001,5 0,0.0000000001
d runtime.workspace.exit_grace_s ! 0,0.0,5 -0.1
t runtime.workspace.rfc1918_egress ! allow,deny Allow,"",allow_deny
t runtime.namespace_execution.scratch_root ! /x x,/
d runtime.namespace_execution.freeze_budget_s 0.5 0,1 -1
d runtime.namespace_execution.stdin_write_deadline_s 2 0.1 0
i runtime.namespace_execution.max_terminal_entries 512 1 0
i runtime.namespace_execution.max_transcript_window_bytes 1048576 1 0
i runtime.namespace_execution.max_runner_result_bytes 8388608 1 0
i runtime.layerstack.remount_sweep_width 4 1,1000 0
i runtime.layerstack.export_chunk_bytes 2097152 1 0
i runtime.layerstack.spool_zstd_level 3 1,22 0,23
i~ runtime.layerstack.autosquash_policies.squash_at_n_layers - 3,100 2,0
t runtime.layerstack.ignored_changes publish discard,publish keep
t runtime.publish.git keep conflict,keep discard
t runtime.workspace.root shared private,shared public
t runtime.workspace.on_restart keep reap,keep kill
i runtime.workspace.max_parked 100 1,100000 0,100001
i runtime.workspace.private_bytes 2147483648 1048576 1048575
i runtime.command.max_active 32 1,1024 0,1025
i runtime.command.read_lines_default 200 1,1000 0,1001
i runtime.command.read_lines_max 1000 200,100000 0,199
i runtime.file.read_lines_default 2000 1,2147483647 0,2147483648
i runtime.file.max_output_bytes 262144 1 0
i runtime.file.max_edit_bytes 4194304 1 0
i runtime.file.max_list_entries 2000 1 0
l runner.mount_mask.hidden_paths ! [/a],[/a,/a],[/] [],[a],[""],[/a,b],/a,[1],[~],[[/a]]
t~ manager.registry_path - /x,x/y "","_"
l~ manager.workspace_roots - [/a],[/a,/b] [],[a],/a,[/a,~]
i manager.export.max_stream_bytes 2147483648 1 0
i manager.export.max_decompressed_bytes 8589934592 1 0
i manager.export.max_apply_entries 1000000 1 0
i manager.observability_snapshot.max_concurrent_requests 8 1 0
i manager.observability_snapshot.timeout_ms 1500 1 0
t~ manager.local.resource_profile - standard,build-heavy x,""
d manager.local_daemon.ready_timeout_s 2 0.1 0
d manager.local_daemon.stop_timeout_s 2 0.1 0
t~ manager.docker.docker_endpoint - /run/x.sock,tcp://h:1,"" -
t~ manager.docker.default_image - ubuntu:24.04 -
t~ manager.docker.platform - linux/amd64 -
t manager.docker.daemon_binary_path ! /x,x/y "","_"
t manager.docker.daemon_config_yaml_path ! /x,x/y "","_"
t manager.docker.container_daemon_binary_path /eos/bin/sandbox-daemon /x x,""
t manager.docker.container_daemon_config_yaml_path /eos/config/daemon.yml /x x,""
t manager.docker.container_workspace_root /workspace /x,/ x,""
b manager.docker.privileged false true,false -
i manager.docker.daemon_port 7000 1,65535 0,65536
i manager.docker.daemon_http_port 7001 1,65535,7000 0,65536
t manager.docker.gateway_instance_id eos-gateway x "","_"
i manager.docker.readiness_timeout_ms 60000 1 0
i manager.docker.readiness_poll_ms 250 1 0
i manager.docker.connect_timeout_s 120 1 0
i manager.docker.stop_timeout_s 5 1 0
i manager.docker.port_publish_attempts 200 1 0
i manager.docker.port_publish_retry_delay_ms 50 1 0
t manager.docker.resource_profile standard standard,build-heavy x,""
t manager.docker.shared_base auto auto,bind,volume copy
i~ manager.docker.memory_bytes - 402653185 402653184,1,0
i~ manager.docker.nano_cpus - 1 0
b observability.enabled true true,false -
i observability.max_disk_bytes 4194304 1048576,16777216 1048575,16777217,0
i observability.max_line_bytes 16384 1,16384 0,16385
b observability.resource_stats.enabled true true,false -
i observability.resource_stats.sample_interval_ms 2000 250,600000 249,600001
i observability.resource_stats.max_disk_bytes 1048576 131072,4194304 131071,4194305,131073,4194303
i observability.sampling.max_walk_nodes 1024 1 0
i observability.sampling.max_walk_depth 64 1 0
i observability.views.resource_window_ms 600000 1 0
i observability.views.layer_delta_default_limit 500 1,5000 0,5001
i observability.views.layer_delta_max_limit 5000 500 0,499
b observability.diagnostics.enabled true true,false -
d observability.diagnostics.cpu_threshold_percent 2 0.1,2.0,10000 0,10000.1
i observability.diagnostics.anonymous_memory_threshold_bytes 16777216 1 0
i observability.diagnostics.sustained_window_ms 30000 1 0
i observability.diagnostics.cooldown_ms 300000 1 0
i observability.diagnostics.max_artifact_bytes 1048576 4096,1048576 4095,1048577
EOT
}

# What is of the wrong type for kind $1, and what null is.
wrong() {
	case $1 in
	i*) echo '"5" 5.0 5e0 five true [5] {a: 5} -1 +-1 1_000 99999999999999999999 .inf' ;;
	d*) echo '"5" five true [5] {a: 5} -1 .inf -.inf .nan 1_000 5s' ;;
	b*) echo '"true" 1 yes off [true] {a: true} t' ;;
	t*) echo '5 5.5 true .inf [/x] {a: /x}' ;;
	l*) echo '5 true {a: /x} "[/x]"' ;;
	esac
	case $1 in
	*~) ;;
	*) echo null '~' ;;
	esac
}

# split LIST: its items, one a line; a comma in brackets divides none, and "_"
# in quotes is a blank.
items() {
	[ "$1" = - ] || sed 's/"_"/" "/g; s/\[\([^],]*\),\([^]]*\)\]/[\1\x01\2]/g' <<<"$1" |
	    tr ',' '\n' | tr '\001' ','
}

# An override that gives key $1 the value $2, to be laid over base.yml.
over() {
	local close=${1//[!.]/}
	echo "${1//./: \{}: $2${close//./\}}" >o.test.yml
}

# accepts KEY VALUE: as it is, or as the flat file would have it.
accepts() {
	local want=$2 got
	over "$1" "$2"
	sb-conf -p -o o.test.yml base.yml >out 2>err || fail "$1: $2: $(<err)" || return
	case $2 in
	0.0) want=0.0 ;;
	1e6) want=1000000.0 ;;
	x/y) want=$T/$2 ;;
	\[/* | \"\[*) want=${2//[\[\]\"]/} ;;
	esac
	case $1 in gateway.bind_addr) want=${2//\"/} ;; esac
	got=$(<out)
	case $want in
	null | '~' | '')
		[[ $got != *$'\n'"$1 "* ]] || fail "$1 has a value" ;;
	*,*)
		[[ $got == *$'\n'"$1 ${want%%,*}"$'\n'"$1 ${want#*,}"$'\n'* ]] || fail "$1: $2" ;;
	*) [[ $got == *$'\n'"$1 $want"$'\n'* || $got == *$'\n'"$1 $want" ]] || fail "$1: $2" ;;
	esac
}

# refuses KEY VALUE: naming the key, the file and the line; what was said is in
# $said.
refuses() {
	local rc=0
	over "$1" "$2"
	sb-conf -p -o o.test.yml base.yml >out 2>err || rc=$?
	said=$(<err)
	[ $rc = 100 ] || fail "$1: $2: $rc $said" || return
	[ ! -s out ] || fail "$1: $2: it printed" || return
	said=${said##*$'\n'}
	[[ $said == "sb-conf: fatal: o.test.yml: line "+([0-9])": $1: "?* ]] || fail "$2: $said"
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-conf
	run -100 sb-conf a b
	run -100 sb-conf -D base.yml
	run -100 sb-conf -D -r all
	run -100 sb-conf -e runtime -o x
	run -100 sb-conf -cp base.yml
	run -100 sb-conf -c -d . base.yml
	run -100 sb-conf --nonsense base.yml
	run -100 sb-conf --explain
	run -100 sb-conf -o x.test.yml -
	run -0 sb-conf -h
	is "$output" "usage: sb-conf [-cDp] [-d dir] [-e key] [-o file] ... [-r role] [file]"
	run -0 sb-conf --help
	run -100 --separate-stderr sb-conf -r king base.yml
	has "$stderr" "king: no role: all, daemon, docker or gateway"
}

@test "the test's table and the program's have the same keys" {
	sb-conf -p base.yml 2>/dev/null | sed '/^#/d; s/ .*//' | grep -v "^$P" | sort -u >got
	keys | awk '$3 != "-" { print $2 }' | sort >want
	same got want
	for k in $(keys | awk '$3 == "-" { print $2 }'); do
		sb-conf -e "$k" | grep -qx '  default: none' || fail "$k"
	done
	sb-conf -e "$D.container_env.X" | grep -qx '  default: no names'
	for k in nano_cpus memory_high_bytes memory_max_bytes pids_max daemon_runtime_profile separate_workload_cgroup; do
		sb-conf -e "$P.x.$k" | grep -q '^  default: build-heavy='
	done
	is "$(for s in daemon gateway manager observability runner runtime; do sb-conf -e $s; done | grep -c '^[a-z]')" \
	    "$(($(keys | wc -l) + 7))"
}

@test "each key has its default" {
	sb-conf -p base.yml >out 2>err
	keys | while read -r _ key default _; do
		case $default in
		! | -) ;;
		*) grep -qxF "$key $default" out || fail "$key: $(grep "^$key" out)" ;;
		esac
	done
	keys | awk '$3 == "-" { print $2 }' | while read -r key; do
		run -1 grep "^$key" out
	done
	required | grep -v '\[' | while read -r line; do grep -qxF "$line" out || fail "$line"; done
	grep -qx 'runner.mount_mask.hidden_paths /hidden' out
}

@test "each key accepts what is within its bounds" {
	keys | while read -r kind key _ good _; do
		items "$good" | while IFS= read -r value; do accepts "$key" "$value" || exit; done || exit
		case $kind in *~) accepts "$key" null && accepts "$key" '~' || exit ;; esac
	done
}

@test "each key refuses what is beyond its bounds" {
	keys | while read -r _ key _ _ bad; do
		items "$bad" | while IFS= read -r value; do refuses "$key" "$value" || exit; done || exit
	done
}

@test "each key refuses what is of another type" {
	keys | while read -r kind key _; do
		wrong "$kind" | sed 's/{a: /{a:/g' | tr ' ' '\n' | sed 's/{a:/{a: /' |
		    while IFS= read -r value; do refuses "$key" "$value" || exit; done || exit
	done
}

@test "a required key that is missing is an error" {
	required | while read -r key _; do
		required | grep -v "^$key " | yaml >less.yml
		[ "${key%%.*}" != runner ] || echo 'runner: {}' >>less.yml
		run -100 --separate-stderr sb-conf -c less.yml
		[[ ${stderr##*$'\n'} == "sb-conf: fatal: less.yml: line "*": $key: missing" ]] || fail "$stderr"
	done
}

@test "a missing key is looked for where its mapping begins" {
	printf 'runtime:\n\n  namespace_execution: {scratch_root: /x}\n  workspace:\n    scratch_root: /y\n' >x.yml
	run -100 --separate-stderr sb-conf -c x.yml
	has "$stderr" "x.yml: line 5: runtime.workspace.exit_grace_s: missing"
	printf 'runner: {}\n' >x.yml
	run -100 --separate-stderr sb-conf -c x.yml
	has "$stderr" "x.yml: line 1: runner.mount_mask.hidden_paths: missing"
}

@test "numbers may be written as YAML has them" {
	accepts_as() {
		over "$1" "$2"
		sb-conf -p -o o.test.yml base.yml 2>err | grep -qxF "$1 $3" || fail "$1 $2"
	}
	accepts_as daemon.server.max_blocking_threads 0x10 16
	accepts_as daemon.server.max_blocking_threads 0o17 15
	accepts_as daemon.server.max_blocking_threads +9 9
	accepts_as daemon.server.max_blocking_threads 010 10
	accepts_as runtime.workspace.exit_grace_s .5 0.5
	accepts_as runtime.workspace.exit_grace_s 1. 1.0
	accepts_as runtime.workspace.exit_grace_s 25e-2 0.25
	accepts_as runtime.workspace.exit_grace_s 0x10 16
	accepts_as runtime.workspace.exit_grace_s 0.1234567891 0.123456789
	accepts_as manager.docker.privileged TRUE true
	refuses daemon.server.max_blocking_threads 0xffffffffffffffffff
	refuses daemon.server.max_blocking_threads 0b1
}

@test "worker_threads has an old name, which warns; both are an error" {
	sed 's/ worker_threads/ max_worker_threads/' base.yml >old.yml
	run -0 --separate-stderr sb-conf -p old.yml
	has "$stderr" "sb-conf: warning: old.yml: line 5: daemon.server.max_worker_threads: old name of daemon.server.worker_threads"
	has "$output" "daemon.server.worker_threads 3"
	sed 's/ worker_threads: 3/ max_worker_threads: 65/' base.yml >old.yml
	run -100 --separate-stderr sb-conf -p old.yml
	has "$stderr" "old.yml: line 5: daemon.server.max_worker_threads: 65 is no number from 1 to 64"
	over daemon.server.max_worker_threads 3
	run -100 --separate-stderr sb-conf -p -o o.test.yml base.yml
	has "$stderr" "daemon.server.max_worker_threads: given beside daemon.server.worker_threads"
	printf 'daemon: {server: {max_worker_threads: 3, worker_threads: 3}}\n' >both.yml
	run -100 --separate-stderr sb-conf -c both.yml
	has "$stderr" "daemon.server.worker_threads: given beside daemon.server.max_worker_threads"
}

@test "max_file_bytes is half of max_disk_bytes, at most its maximum; both are an error" {
	is_disk() {
		over observability.max_file_bytes "$1"
		sb-conf -p -o o.test.yml base.yml >out 2>err
		grep -qxF "observability.max_disk_bytes $2" out &&
		    has "$(cat err)" "o.test.yml: line 1: observability.max_file_bytes: old name of observability.max_disk_bytes, which is 2 times as much"
	}
	is_disk 2097152 4194304
	is_disk 524288 1048576
	is_disk 8388608 16777216
	is_disk 268435456 16777216
	is_disk 99999999999999999999 16777216
	refuses observability.max_file_bytes 524287
	refuses observability.max_file_bytes 0
	refuses observability.max_file_bytes -1
	refuses observability.max_file_bytes '"1048576"'
	refuses observability.max_file_bytes null
	printf 'observability: {max_file_bytes: 2097152, max_disk_bytes: 4194304}\n' >both.yml
	run -100 --separate-stderr sb-conf -c both.yml
	has "$stderr" "observability.max_disk_bytes: given beside observability.max_file_bytes"
	printf 'observability: {max_disk_bytes: 4194304, max_file_bytes: 2097152}\n' >both.yml
	run -100 --separate-stderr sb-conf -c both.yml
	has "$stderr" "observability.max_file_bytes: given beside observability.max_disk_bytes"
}

@test "unknown keys are errors in every mapping, unknown sections are passed over" {
	for key in gateway.auth_token gateway.x daemon.x daemon.server.x daemon.http.x daemon.http.forward.x runtime.x \
	    runtime.workspace.x runtime.layerstack.autosquash_policies.x runner.x runner.mount_mask.x manager.x manager.docker.x \
	    manager.docker.resource_profiles.standard.x observability.x observability.views.x \
	    runtime.workspace.scratch_root_ manager.docker.auth_token; do
		refuses $key 1
		has "$said" "$key: no such key"
	done
	printf '"daemon.server": {worker_threads: 1}\n"*": 1\nruntme: {a: [1, {b: 2}]}\n"": 1\n' >>base.yml
	run -0 --separate-stderr sb-conf -c base.yml
	has "$stderr" "warning: base.yml: line 24: runtme: no such section, passed over"
	has "$stderr" 'line 22: daemon.server: no such section'
	printf 'daemon: {"server.worker_threads": 3}\n' >x.yml
	run -100 --separate-stderr sb-conf -c x.yml
	has "$stderr" "daemon.server.worker_threads: no such key"
	printf 'manager: {docker: {resource_profiles: {s: {"*": 3}}}}\n' >x.yml
	run -100 --separate-stderr sb-conf -c x.yml
	has "$stderr" "s.*: no such key"
}

@test "null where a mapping belongs is an error, but for manager.docker" {
	for key in daemon gateway runtime runner manager observability runtime.workspace observability.views \
	    manager.docker.container_env manager.docker.resource_profiles manager.docker.resource_profiles.x; do
		for value in null 1 x '[]'; do
			refuses $key "$value"
			has "$said" "instead of a mapping"
		done
	done
	over manager.docker null
	sb-conf -p -o o.test.yml base.yml >out
	run -1 grep manager.docker out
	refuses manager.docker '[]'
	over observability '{}'
	sb-conf -p -o o.test.yml base.yml >out 2>err
	grep -qx 'observability.enabled true' out
}

profile() {
	printf '{nano_cpus: %s, memory_high_bytes: %s, memory_max_bytes: %s, pids_max: %s, daemon_runtime_profile: %s, separate_workload_cgroup: %s}' "$@"
}

@test "a given map of profiles takes the place of the default one" {
	sb-conf -p base.yml 2>err | grep "^$P" >out
	is "$(grep -c "^$P.standard" out) $(grep -c "^$P.build-heavy" out)" "6 6"
	for line in standard.nano_cpus\ 1000000000 standard.memory_high_bytes\ 402653184 standard.memory_max_bytes\ 536870912 \
	    standard.pids_max\ 256 standard.daemon_runtime_profile\ standard standard.separate_workload_cgroup\ true \
	    build-heavy.nano_cpus\ 4000000000 build-heavy.memory_high_bytes\ 3221225472 build-heavy.memory_max_bytes\ 4294967296 \
	    build-heavy.pids_max\ 1024 build-heavy.daemon_runtime_profile\ build-heavy build-heavy.separate_workload_cgroup\ true; do
		grep -qxF "$P.$line" out || fail "$line"
	done
	over $P "{standard: $(profile 1 2 3 9 standard false)}"
	sb-conf -p -o o.test.yml base.yml 2>err | grep "^$P" >out
	is "$(wc -l <out)" 6
	grep -qx "$P.standard.memory_max_bytes 3" out
	over $P "{my.own: $(profile 1 2 3 9 standard false)}"
	run -100 --separate-stderr sb-conf -p -o o.test.yml base.yml
	has "$stderr" "$D.resource_profile: standard is none of the resource_profiles"
	printf 'manager:\n  docker:\n    resource_profile: my.own\n    resource_profiles: {my.own: %s}\n' \
	    "$(profile 1 2 2 9 build-heavy false)" >o.test.yml
	sb-conf -p -o o.test.yml base.yml 2>err | grep -qx "$P.my.own.pids_max 9"
}

@test "overrides of a profile are merged into the one that is there" {
	printf '    resource_profiles:\n      standard: %s\n' "$(profile 1 2 3 9 standard true)" >>base.yml
	over $P.standard.pids_max 10
	sb-conf -p -o o.test.yml base.yml 2>err >out
	grep -qx "$P.standard.pids_max 10" out
	grep -qx "$P.standard.memory_max_bytes 3" out
}

@test "each profile has all its keys, and what they say goes together" {
	refuse() { refuses "$1" "$2" && has "$said" "$3"; }
	whole=$(profile 1 2 3 9 standard true)
	for k in nano_cpus memory_high_bytes memory_max_bytes pids_max daemon_runtime_profile separate_workload_cgroup; do
		over $P "{standard: $(sed -E "s/$k: [^,}]*,? ?//" <<<"$whole")}"
		run -100 --separate-stderr sb-conf -c -o o.test.yml base.yml
		has "$stderr" "o.test.yml: line 1: $P.standard.$k: missing"
	done
	refuse_profile() {
		local key=$1
		shift
		over $P "{standard: $(profile "$@")}"
		run -100 --separate-stderr sb-conf -c -o o.test.yml base.yml
		has "$stderr" "o.test.yml: line 1: $P.standard.$key: "
	}
	refuse_profile nano_cpus 0 2 3 9 standard true
	refuse_profile memory_high_bytes 1 0 3 9 standard true
	refuse_profile memory_max_bytes 1 2 0 9 standard true
	refuse_profile pids_max 1 2 3 0 standard true
	refuse_profile pids_max 1 2 3 8 standard true
	refuse_profile pids_max 1 2 3 8 build-heavy false
	refuse_profile daemon_runtime_profile 1 2 3 9 other true
	refuse_profile separate_workload_cgroup 1 2 3 9 standard yes
	refuse_profile memory_high_bytes 1 4 3 9 standard false
	refuse_profile memory_high_bytes 1 3 3 9 standard true
	refuse_profile nano_cpus '"1"' 2 3 9 standard true
	over $P "{standard: $(profile 1 3 3 9 standard false)}"
	run -0 sb-conf -c -o o.test.yml base.yml
	refuses $P '{}'
	# A profile that nobody selected counts too.
	over $P "{standard: $whole, other: $(profile 1 3 3 9 standard true)}"
	run -100 --separate-stderr sb-conf -c -o o.test.yml base.yml
	has "$stderr" "$P.other.memory_high_bytes: 3 is not less than memory_max_bytes"
}

@test "memory_bytes is above the selected profile's high only where the workload is apart" {
	refuses $D.memory_bytes 402653184
	printf 'manager:\n  docker:\n    memory_bytes: 402653185\n    resource_profile: build-heavy\n' >o.test.yml
	run -100 --separate-stderr sb-conf -c -o o.test.yml base.yml
	has "$stderr" "o.test.yml: line 3: $D.memory_bytes: 402653185 is not more than memory_high_bytes of profile build-heavy"
	printf 'manager:\n  docker:\n    memory_bytes: 1\n    resource_profiles: {standard: %s}\n' \
	    "$(profile 1 2 3 9 standard false)" >o.test.yml
	run -0 sb-conf -c -o o.test.yml base.yml
}

@test "profiles force nothing" {
	over daemon.server.worker_threads 64
	run -0 sb-conf -c -r docker -o o.test.yml base.yml
	over daemon.server.max_blocking_threads 256
	run -0 sb-conf -c -r daemon -o o.test.yml base.yml
	over runtime.command.max_active 1024
	run -0 sb-conf -c -r daemon -o o.test.yml base.yml
}

@test "container_env is any names and any text" {
	cat >o.test.yml <<'EOT'
manager:
  docker:
    container_env:
      HTTP_PROXY: http://proxy:3128
      EMPTY: ""
      "dotted.name-1": " blanks around "
      LINES: "a\nb\t\"c\"\\\x01"
      ä: "#"
      NUMBER: "5"
EOT
	sb-conf -p -o o.test.yml base.yml 2>err | sed -n "s/^$D.container_env.//p" >got
	cat >want <<'EOT'
HTTP_PROXY http://proxy:3128
EMPTY ""
dotted.name-1 " blanks around "
LINES "a\x0ab\x09\"c\"\\\x01"
ä #
NUMBER 5
EOT
	same got want
	refuses $D.container_env.N 5
	has "$said" "$D.container_env.N: a whole number instead of: text (put it in quotes)"
	refuses $D.container_env.N true
	refuses $D.container_env.N null
	refuses $D.container_env.N '[x]'
	refuses $D.container_env.N '"a\0b"'
	has "$said" "a NUL in it"
	for name in '""' '" "' '"a b"' '"a\tb"' '"a=b"' '"="' '"a\0b"'; do
		echo "manager: {docker: {container_env: {$name: x}}}" >o.test.yml
		run -100 --separate-stderr sb-conf -c -o o.test.yml base.yml
		has "$stderr" "o.test.yml: line 1: $D.container_env."
	done
}

@test "each role asks for its sections and passes over the others" {
	bad='{nonsense: 1}'
	for r in daemon docker; do
		run -0 sb-conf -c -r $r base.yml
		for s in daemon runtime; do
			required | grep -v "^$s" | yaml >less.yml
			run -100 --separate-stderr sb-conf -c -r $r less.yml
			has "$stderr" "less.yml: line 1: $s: missing"
			run -0 sb-conf -c less.yml
			run -0 sb-conf -c -r gateway less.yml
		done
	done
	required | grep -v ^runner | yaml >less.yml
	run -100 --separate-stderr sb-conf -c -r daemon less.yml
	has "$stderr" "runner: missing"
	run -0 sb-conf -c -r docker less.yml
	required | grep -v ^manager | yaml >less.yml
	run -0 sb-conf -c -r daemon less.yml
	run -100 --separate-stderr sb-conf -c -r docker less.yml
	has "$stderr" "manager: missing"
	printf 'manager: {registry_path: /x}\n' >>less.yml
	run -100 --separate-stderr sb-conf -c -r docker less.yml
	has "$stderr" "manager.docker: missing"
	run -0 sb-conf -c -r gateway less.yml
	for s in daemon runtime runner manager gateway observability; do
		{ required | grep -v "^$s" | yaml; echo "$s: $bad"; } >with.yml
		for r in all daemon docker gateway; do
			case $r:$s in
			daemon:gateway | docker:runner | docker:observability | gateway:[dro]*) want=0 ;;
			*) want=100 ;;
			esac
			rc=0
			sb-conf -c -r $r with.yml 2>err || rc=$?
			is "$r $s $rc" "$r $s $want"
		done
	done
	: >empty.yml
	run -100 sb-conf -c empty.yml
	echo '{}' >empty.yml
	run -0 sb-conf -c empty.yml
	run -0 sb-conf -c -r gateway empty.yml
}

@test "the flat file has the sections of the role's reader" {
	in_sections() { sb-conf -p -r "$1" base.yml 2>err | sed '/^#/d; s/\..*//' | uniq | paste -sd' '; }
	is "$(in_sections all)" "daemon gateway manager observability runner runtime"
	is "$(in_sections daemon)" "daemon observability runner runtime"
	is "$(in_sections docker)" "daemon gateway manager runtime"
	is "$(in_sections gateway)" "gateway manager"
}

@test "a gateway's endpoint in the environment stands above the document" {
	over gateway.bind_addr 10.0.0.1:80
	export SANDBOX_GATEWAY_SOCKET=unix:///run/gw
	addr() { sb-conf -p -o o.test.yml "$@" base.yml 2>err | sed -n 's/^gateway.bind_addr //p'; }
	is "$(addr -r gateway)" unix:///run/gw
	is "$(addr -r docker)" unix:///run/gw
	is "$(addr -r all)" 10.0.0.1:80
	is "$(addr -r daemon)" ""
	SANDBOX_GATEWAY_SOCKET=' 	'
	is "$(addr -r gateway)" 10.0.0.1:80
	SANDBOX_GATEWAY_SOCKET=
	is "$(addr -r gateway)" 10.0.0.1:80
	SANDBOX_GATEWAY_SOCKET=unix://x
	run -100 --separate-stderr sb-conf -c -r gateway base.yml
	has "$stderr" "SANDBOX_GATEWAY_SOCKET: gateway.bind_addr: unix://x: the path of a socket is absolute"
	unset SANDBOX_GATEWAY_SOCKET
	run -0 sb-conf -p -r gateway base.yml
	has "$output" "gateway.bind_addr 127.0.0.1:7878"
}

@test "a socket's path has at most 100 bytes" {
	long=/$(printf '%099d' 0)
	accepts gateway.bind_addr "unix://$long"
	refuses gateway.bind_addr "unix://${long}0"
}

@test "overrides are laid over in their order, as the reference merges" {
	echo 'runtime: {command: {max_active: 5, read_lines_max: 300}}' >1.test.yml
	mkdir sub
	echo 'runtime: {command: {max_active: 6}}' >sub/2.test.yml
	echo 'runner: {mount_mask: {hidden_paths: [/a, /b]}}' >3.test.yml
	sb-conf -p -o 1.test.yml -o sub/2.test.yml --override=3.test.yml base.yml >out 2>err
	grep -qx 'runtime.command.max_active 6' out
	grep -qx 'runtime.command.read_lines_max 300' out
	grep -qx 'runtime.workspace.scratch_root /scratch' out
	is "$(grep hidden_paths out | paste -sd' ')" "runner.mount_mask.hidden_paths /a runner.mount_mask.hidden_paths /b"
	echo 'runner: {mount_mask: {hidden_paths: []}}' >3.test.yml
	run -100 sb-conf -c -o 3.test.yml base.yml
	for text in x '[]' 5 ''; do
		echo "$text" >3.test.yml
		run -100 --separate-stderr sb-conf -c -o 3.test.yml base.yml
		has "$stderr" "3.test.yml: line "
	done
	echo '[1]' >list.yml
	echo '{}' >3.test.yml
	run -100 --separate-stderr sb-conf -c -o 3.test.yml list.yml
	has "$stderr" "list.yml: line 1: a list instead of a mapping"
	run -100 --separate-stderr sb-conf -c list.yml
	has "$stderr" "list.yml: line 1: a list instead of a mapping"
}

@test "an override has its name, lies beside or below, and is another file" {
	mkdir tree other
	cp base.yml tree/base.yml
	for f in tree/x.yml tree/xtest.yml other/x.test.yml x.test.yml tree/y.test.yml; do echo '{}' >$f; done
	run -0 sb-conf -c -o tree/y.test.yml tree/base.yml
	for f in tree/x.yml tree/xtest.yml; do
		run -100 --separate-stderr sb-conf -c -o $f tree/base.yml
		has "$stderr" "$f: an override has a name that ends in .test.yml"
	done
	ln -s ../other/x.test.yml tree/away.test.yml
	for f in other/x.test.yml x.test.yml tree/../x.test.yml tree/away.test.yml; do
		run -100 --separate-stderr sb-conf -c -o $f tree/base.yml
		has "$stderr" "$f: an override lies in the directory"
	done
	ln -s base.yml tree/base.test.yml
	ln tree/base.yml tree/hard.test.yml
	for f in tree/base.test.yml tree/hard.test.yml; do
		run -100 --separate-stderr sb-conf -c -o $f tree/base.yml
		has "$stderr" "$f: an override is another file than what it is laid over"
	done
	ln -s y.test.yml tree/link.yml
	run -0 sb-conf -c -o tree/link.yml tree/base.yml
	ln -s tree/base.yml link.yml
	run -0 sb-conf -c -o tree/y.test.yml link.yml
}

@test "what YAML could hide is refused, with the line" {
	say() {
		printf "$1" >x.yml
		run -100 --separate-stderr sb-conf -c x.yml
		is "$stderr" "sb-conf: fatal: x.yml: $2"
	}
	say 'gateway: &a {}\n' "line 1: &a: anchors are not accepted"
	say 'gateway: {}\nx: *a\n' "line 2: *a: aliases are not accepted, write it out"
	say 'gateway: !!map {}\n' "line 1: tag:yaml.org,2002:map: tags are not accepted"
	say 'gateway: {}\n---\ngateway: {}\n' "line 2: a second document"
	say 'gateway: {}\ngateway: {}\n' "line 2: gateway: given twice, before on line 1"
	say 'gateway:\n  pid_path: /a\n  pid_path: /b\n' "line 3: gateway.pid_path: given twice, before on line 2"
	say 'x: {a: 1, a: 1}\n' "line 1: x.a: given twice, before on line 1"
	say 'gateway:\n  pid_path: /\xff\n' "line 2: not UTF-8"
	say 'gateway: {<<: {pid_path: /a}}\n' "line 1: gateway.<<: no such key"
	say 'x\n' "line 1: text instead of a mapping"
	say '# x\n' "line 2: no document"
	printf 'a: &a [x,x,x,x,x,x,x,x,x]\n' >x.yml
	for i in b c d e f g h i; do printf '%s: &%s [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n' $i $i; done >>x.yml
	run -100 --separate-stderr sb-conf -c x.yml
	has "$stderr" "anchors are not accepted"
	head -c 1000000 /dev/zero | tr '\0' '[' >x.yml
	run -100 --separate-stderr sb-conf -c x.yml
	has "$stderr" "x.yml: line 1: more than 32 lists and mappings in each other"
	{ echo '{}'; head -c 1048573 /dev/zero | tr '\0' '#'; } >x.yml
	run -0 sb-conf -c x.yml
	echo >>x.yml
	run -100 --separate-stderr sb-conf -c x.yml
	has "$stderr" "x.yml: more than 1048576 bytes"
	{ printf 'manager: {docker: {container_env: {'; seq -f 'N%.0f: x,' 4097; echo '}}}'; } >x.yml
	run -100 --separate-stderr sb-conf -c x.yml
	has "$stderr" "more than 4096 entries"
	{ printf 'manager: {docker: {resource_profiles: {'; seq -f "N%.0f: {}," 257; echo '}}}'; } >x.yml
	run -100 --separate-stderr sb-conf -c x.yml
	has "$stderr" "$P.N257: more than 256 profiles"
}

@test "writes a file that commands read, whole or not at all" {
	printf '  layerstack: {ignored_changes: discard}\n' >tail
	required | grep ^runtime | yaml | cat - tail >x.yml
	run -0 --separate-stderr sb-conf x.yml
	is "$output" ""
	grep -qx 'runtime.layerstack.ignored_changes discard' "$C"
	is "$(stat -c %a "$C")" 600
	sb-conf -p x.yml 2>/dev/null >want
	same "$C" want
	is "$(find "$SB_STORE" -maxdepth 1 -name '.*.tmp')" ""
	run -0 --separate-stderr sb-conf - <x.yml
	same "$C" want
	echo 'gateway: {pid_paht: /x}' >>x.yml
	run -100 sb-conf x.yml
	same "$C" want
	mkdir other
	run -0 sb-conf -d other base.yml
	run -0 sb-conf --directory=other base.yml
	grep -qx 'daemon.server.worker_threads 3' other/conf
	same "$C" want
}

@test "the file goes on to be read by those who ask for it" {
	mkdir src
	seq 9 >src/f
	make_store src
	printf 'runtime: {file: {read_lines_default: 3}, workspace: {layer_stack_root: /a, scratch_root: /b,
	  setup_timeout_s: 1, exit_grace_s: 1, rfc1918_egress: allow}, namespace_execution: {scratch_root: /c}}\n' >x.yml
	sb-conf x.yml
	sb-file-read f >out
	has "$(cat out)" '"num_lines":3'
}

@test "paths of the host become absolute" {
	mkdir sub
	printf 'gateway: {pid_path: run/p}\nmanager: {registry_path: ../r}\n' >sub/x.yml
	cd sub
	run -0 --separate-stderr sb-conf -p -r gateway x.yml
	has "$output" "gateway.pid_path $T/sub/run/p"
	has "$output" "manager.registry_path $T/sub/../r"
	cd /
	run -0 --separate-stderr sb-conf -p -r gateway "$T/sub/x.yml"
	has "$output" "gateway.pid_path /run/p"
}

@test "asking for what no command reads is said, once for each key" {
	printf 'runtime.workspace.rfc1918_egress deny\n' >want
	sb-conf -c base.yml 2>err
	has "$(cat err)" "base.yml: line 12: runtime.workspace.rfc1918_egress: no command of this version reads it"
	run -1 grep -q worker_threads err
	sed 's/deny/allow/' base.yml >x.yml
	sb-conf -c x.yml 2>err
	run -1 grep -q rfc1918 err
	over manager.docker.container_env '{A: x, B: y}'
	sb-conf -c -o o.test.yml base.yml 2>err
	is "$(grep -c container_env err)" 1
	sb-conf -c -r daemon -o o.test.yml base.yml 2>err
	run -1 grep -q container_env err
	over runtime.command.max_active 7
	sb-conf -c -o o.test.yml base.yml 2>err
	run -1 grep -q max_active err
}

@test "-D prints a document of all defaults, which is accepted" {
	sb-conf -D >d.yml
	sb-conf --defaults | cmp - d.yml
	for r in all daemon gateway; do
		run -0 --separate-stderr sb-conf -c -r $r d.yml
		is "$stderr" ""
	done
	echo '{}' >empty.yml
	sb-conf -p empty.yml >want
	sb-conf -D | sb-conf -p - >got
	same got want
	# The comments of manager.docker are its defaults.
	sed 's/^# //; /^  docker: null$/d; s/_path: ""$/_path: \/x/' d.yml >docker.yml
	run -0 --separate-stderr sb-conf -p -r docker docker.yml
	has "$output" "$D.resource_profiles.standard.pids_max 256"
	is "$(grep -c . <<<"$output")" "$(sb-conf -p -r docker base.yml 2>/dev/null | grep -c .)"
}

@test "-e explains a key, by any of its names, or a group" {
	run -0 sb-conf -e runtime.command.max_active
	is "$output" "runtime.command.max_active: number from 1 to 1024
  How many jobs may be active.
  default: 32"
	run -0 sb-conf --explain daemon.server.max_worker_threads
	has "$output" "daemon.server.worker_threads: number from 1 to 64"
	has "$output" "Old name: daemon.server.max_worker_threads"
	has "$output" "Checked, and without effect."
	run -0 sb-conf -e observability.max_file_bytes
	has "$output" "Old name: observability.max_file_bytes, of half as much"
	run -0 sb-conf -e $P.mine.pids_max
	has "$output" "default: build-heavy=1024 standard=256"
	run -0 sb-conf -e runtime.file
	is "$(grep -c '^runtime' <<<"$output")" 4
	run -0 sb-conf -e manager.workspace_roots
	has "$output" "list of: absolute path"
	has "$output" "May be null"
	for key in runtime.fil runtime. nonsense '' '*'; do
		run -100 --separate-stderr sb-conf -e "$key"
		has "$stderr" "no such key"
	done
}

@test "sb-conf(5) has each key as the table has it" {
	"$SB_T/confpage" >want
	sed '1,/^\.\\" Keys, as build.t.confpage prints them\.$/d; /^\.\\" End of keys\.$/,$d' "$SB_TOP/doc/man5/sb-conf.5" >got
	diff -u got want || fail "put what build/t/confpage prints into doc/man5/sb-conf.5"
}

@test "files that cannot be read are 111" {
	run -111 --separate-stderr sb-conf -c none.yml
	has "$stderr" "unable to open none.yml: No such file"
	run -111 sb-conf -c .
	run -111 sb-conf -c -o none.test.yml base.yml
	run -111 sb-conf -d none base.yml
	run -111 bash -c 'sb-conf - <&-'
	SB_STORE=$T/none
	run -111 sb-conf base.yml
	unset SB_STORE
	run -100 sb-conf base.yml
	run -0 sb-conf -c base.yml
	run -0 sb-conf -d . base.yml
}

@test "a name with blanks, a newline, a dash or any byte is shown, not obeyed" {
	for f in 'a b.yml' $'a\nb.yml' -x.yml $'\xff.yml'; do
		echo 'x: &a 1' >"./$f"
		run -100 --separate-stderr sb-conf -c -- "$f"
		is "$(wc -l <<<"$stderr")" 1
		has "$stderr" "anchors are not accepted"
	done
}

@test "a full or closed standard output is 111" {
	run -111 bash -c 'sb-conf -p base.yml >/dev/full'
	run -111 bash -c 'sb-conf -D >/dev/full'
	run -111 bash -c 'sb-conf -e runtime >/dev/full'
	run -111 bash -c 'sb-conf -D >&-'
}

@test "killed or failing at any call it leaves the old file or the new one" {
	need strace
	sb-conf base.yml 2>/dev/null
	cp "$C" old
	echo mine >"$SB_STORE/.conf.x"
	over runtime.command.max_active 7
	sb-conf -p -o o.test.yml base.yml >new 2>/dev/null
	left=0
	for call in openat write fsync rename,renameat,renameat2 unlink,unlinkat close; do
		n=$(count_calls "$call" sb-conf -o o.test.yml base.yml 2>/dev/null)
		cp old "$C"
		for i in $(seq "$n"); do
			! kill_at "$call" "$i" sb-conf -o o.test.yml base.yml 2>/dev/null || fail "not killed: $call $i"
			cmp -s "$C" old || same "$C" new
			[ -z "$(find "$SB_STORE" -maxdepth 1 -name '.conf.*.tmp')" ] || left=$((left + 1))
			sb-conf base.yml 2>/dev/null
			same "$C" old
			is "$(find "$SB_STORE" -maxdepth 1 -name '.conf.*' | sort)" "$(printf '%s\n' "$SB_STORE"/.conf.{lock,x})"
			fault_at "$call" "$i" EIO sb-conf -o o.test.yml base.yml 2>/dev/null || :
			cmp -s "$C" old || same "$C" new
			cp old "$C"
		done
	done
	echo "# $left killed runs left something" >&3
	[ $left -gt 0 ]
	rc=0
	fault_at fsync 1 ENOSPC sb-conf -r docker base.yml 2>/dev/null || rc=$?
	is "$rc" 111
	same "$C" old
}
