# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # of and for others
# Helpers of the tests of services; loaded after lib and gate.

# One store, which is the sandbox eos-1, and where its gateway listens.
svc_start() {
	need s6-svscan s6-ipcserver tcpserver jq
	gate_start store
	unix=$SB_RUN/gateway
	second=$T/second
}
up() { sb-up -l "unix://$second" "$@" 3>&-; }

# answers ADDRESS [SANDBOX]: does a request to it, or through it, get one?
answers() {
	local got
	if [ -n "${2:-}" ]; then
		got=$(request list_workspace_sessions {} "$2" | "$SB_T/wire" "$1") || :
		[[ $got == '{"sessions":'*'}' ]] || fail "$2 at $1: ${got:-no answer}"
	else
		got=$(request list_sandboxes {} system | "$SB_T/wire" "$1") || :
		[[ $got == '{"sandboxes":'*'}' ]] || fail "$1: ${got:-no answer}"
	fi
}
asked() { "$SB_T/wire" "$1" 2>/dev/null; }

# Processes of services and of what they started, by where they are.
our_services() {
	local p
	for p in /proc/[0-9]*; do
		case $(readlink "$p/cwd") in "$SB_RUN/svc" | "$SB_RUN"/svc/*) echo "${p#/proc/}" ;; esac
	done
	find -L /proc/[0-9]*/fd/9 -maxdepth 0 -samefile "$SB_RUN/svc.lock" 2>/dev/null || :
}
all_down() {
	is "$(our_services)" ""
	is "$(find "$SB_RUN" -type s -o -name '*.pid' -o -name svc -o -name '*gat*.lock')" ""
}
# How many servers of this test there are; others may run in the same tree.
servers() {
	local p
	for p in $(pgrep -f -- "s6-ipcserverd .*$ops\$"); do
		case $(readlink "/proc/$p/cwd") in "$T" | "$T"/*) echo "$p" ;; esac
	done | wc -l
}
# The process of a service; 0: none.
pid_of() {
	local pid
	pid=$(s6-svstat -o pid "$SB_RUN/svc/$1" 2>/dev/null) && [ "$pid" -gt 1 ] || pid=0
	echo "$pid"
}
svscan() { pgrep -fx "s6-svscan -c 4000 $SB_RUN/svc"; }
# end PID…: by SIGKILL, and only what can be one of ours.
end() {
	local pid
	for pid; do
		[ "$pid" -gt 1 ] || fail "no process: $pid" || return
		kill -KILL "$pid" 2>/dev/null || [ ! -e "/proc/$pid" ] || fail "$pid cannot be killed" || return
	done
}

free_port() { perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport'; }

setup() { sb_setup; }
teardown() {
	sb-down -t 0 3>&- || :
	gate_stop
	sb_teardown
}
