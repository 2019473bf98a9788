# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034 # for others
# Helpers of the tests of boxes; loaded after lib.

# A workspace, and the environment of a user without any sandbox.
box_start() {
	need overlay userns s6-svscan s6-ipcserver jq
	mkdir -p "$T/ws/d"
	echo one >"$T/ws/f"
	echo two >"$T/ws/d/g"
	unset SB_STORE
}

# new [ARGS…]: one sandbox over the workspace; its id is in $id.
new() {
	sb-local new "$@" "$T/ws" >"$T/new.out" 3>&- || return
	id=$(jq -r .id "$T/new.out")
	box=$SB_STATE/sandboxes/$id
}
state() { sb-box-ls "$1" | jq -r .state; }
boxes() { sb-box-ls | jq -r '.sandboxes[].id'; }

# limit_boxes [CPUS HIGH MAX PIDS]: new boxes have these limits; else those of
# the profile standard.
limit_boxes() {
	local p=manager.docker.resource_profiles.small
	mkdir -p "$SB_STATE"
	if [ $# = 0 ]; then
		echo "manager.local.resource_profile standard"
	else
		printf "$p.%s %s\n" nano_cpus "$1" memory_high_bytes "$2" memory_max_bytes "$3" pids_max "$4" \
		    daemon_runtime_profile standard separate_workload_cgroup true
		echo "manager.local.resource_profile small"
	fi >"$SB_STATE/conf"
}

# Control groups of the box $1.
groups_of_box() { find /sys/fs/cgroup -type d -name "sb-$1" 2>/dev/null || :; }

# Processes of boxes: those that run from their service directories, and those
# that see their roots.
box_processes() {
	pgrep -f -- "$SB_RUN/box/" || :
	grep -lsF " $SB_STATE/sandboxes/" /proc/[0-9]*/mountinfo | cut -d / -f 3 || :
}

no_box() { [ -z "$(box_processes)" ]; }

# Nothing is there that no record names.
nothing_left() {
	eventually no_box
	is "$(grep -F " $T" /proc/self/mountinfo || :)" ""
	is "$(find "$SB_RUN" -path '*/box/*' 2>/dev/null)" ""
	is "$(find "$SB_STATE/sandboxes" -mindepth 1 2>/dev/null)" ""
}

# Ends pid 1 of the box $1 as a crash would, and waits until it has ended.
kill_box() {
	kill -KILL "$(cut -d ' ' -f 1 "$SB_STATE/sandboxes/$1/hold")"
	gone() { [ "$(state "$1")" = stopped ]; }
	eventually gone "$1"
}

# The commands, in which those that the test puts into $T/alt/bin stand for
# others; and first in PATH.
alter() {
	mkdir -p "$T/alt/bin" "$T/alt/share"
	ln -s "$SB_BIN"/* "$T/alt/bin/"
	ln -s "$SB_TOP/svc" "$T/alt/share/sb"
	for c in sb-local "$@"; do
		rm -f "$T/alt/bin/$c"
		cp "$SB_BIN/$c" "$T/alt/bin/$c"
	done
	PATH=$T/alt/bin:$PATH
}

# boxes_end: removes all of them, whatever the test left.
boxes_end() {
	local d
	for d in "$SB_STATE"/sandboxes/*/; do
		[ ! -d "$d" ] || "$SB_BIN/sb-local" rm "$(basename "$d")" >"$T/rm.out" 2>&1 3>&- ||
		    { cat "$T/rm.out"; "$SB_BIN/sb-box-stop" "$(basename "$d")"; } || :
	done
}

setup() { sb_setup; }
teardown() {
	boxes_end
	sb_teardown
}
