# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Helpers of the tests. A test file begins with
#	bats_require_minimum_version 1.5.0
#	load lib
# and each test reads as arrange, one pipeline, assert. Everything a test makes
# is below $BATS_TEST_TMPDIR; a test that leaves a process or a mount fails.
# fd 3 belongs to bats: start background programs with 3>&-.

# Where the tree is, and the build whose commands are tested (set by t/run).
SB_TOP=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
: "${SB_BIN:=$SB_TOP/build/bin}"
: "${SB_T:=$SB_TOP/build/t}"	# unit programs and helpers

sb_setup() {
	T=$BATS_TEST_TMPDIR
	mkdir -p "$T/home"
	export HOME=$T/home XDG_CACHE_HOME=$T/cache SB_STORE=$T/store
	export PATH=$SB_BIN:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	export LC_ALL=C TZ=UTC
	export SB_STATE=$T/state SB_RUN=$T/run
	unset SB_SESSION SB_JOB SB_EVENTS SB_TRACE SB_SPAN SB_GATE_GROUPS
	unset SANDBOX_GATEWAY_AUTH_TOKEN SANDBOX_GATEWAY_TOKEN_FILE XDG_RUNTIME_DIR XDG_STATE_HOME
	umask 022
	cd "$T" || return
}

sb_teardown() {
	local s pid pids rest=
	# A session is not ended while jobs are active in it.
	if [ -d "$SB_STORE/jobs" ]; then
		for s in $(sb-job-ls -r 2>/dev/null); do
			sb-job-kill "$s" 3>&- || rest="sb-job-kill $s"
		done
	fi
	if [ -d "$SB_STORE/workspace" ]; then
		# By directory, not sb-session-ls: what a test damages on
		# purpose must not hide a session from its end.
		for s in "$SB_STORE"/workspace/*/; do
			[ ! -d "$s" ] || sb-session-end -t 5000 "$(basename "$s")" \
			    >"$T/end.out" 2>&1 3>&- || rest="sb-session-end: $(cat "$T/end.out")"
		done
	fi
	for _ in $(seq 100); do
		pids=$(our_processes "$SB_STORE")
		[ -n "$pids" ] || break
		sleep 0.05
	done
	if [ -n "$pids" ]; then
		rest=$(for pid in $pids; do
			echo "still running: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
		done)
		# shellcheck disable=SC2086 # a list of numbers
		kill -KILL $pids
	fi
	if grep -F " $T" /proc/self/mountinfo; then
		rest="$rest mount left behind"
	fi
	# Rootless, bats could not remove directories without permissions.
	[ "$(id -u)" = 0 ] || chmod -R u+rwX "$T" 2>/dev/null || :
	[ -z "$rest" ] || { echo "$rest"; return 1; }
}

setup() { sb_setup; }
teardown() { sb_teardown; }

# Processes started with store $1, wherever they are by now. The
# shell of the test itself was started without it.
our_processes() {
	(
		cd /proc && unset SB_STORE &&
		    grep -lzxFe "SB_STORE=$1" [0-9]*/environ | cut -d/ -f1
	) 2>/dev/null || :
}

# stop_job JOB: its process is stopped.
stop_job() {
	local pid
	pid=$(job_process "$1")
	kill -STOP "$pid"
	eventually grep -q '^State:.*T' "/proc/$pid/status"
}

# The process of job $1 of the store; not its keeper in the session, which
# looks the same.
job_process() {
	local pid
	for pid in $(our_processes "$SB_STORE"); do
		tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "^sb-pty-run .*$1 \$" &&
		    grep -q '^NSpid:[[:blank:]]*[0-9]*$' "/proc/$pid/status" && echo "$pid"
	done 2>/dev/null || :
}

fail() {
	printf '%s\n' "$@"
	return 1
}

# need NAME…: skips the test when the machine cannot do it; fails instead where
# SB_MUST_WORK=1. "root" and "user" only say who runs the test: always a skip.
need() {
	local what why
	for what; do
		why=$(lacks "$what") || continue
		[ "${SB_MUST_WORK:-}" != 1 ] || [ "$what" = root ] || [ "$what" = user ] || fail "need $what: $why" || return
		skip "$what: $why"
	done
}

# Prints why and returns 0 when the machine lacks it.
lacks() {
	local u=-m
	[ "$(id -u)" = 0 ] || u=-Urm
	case $1 in
	root) [ "$(id -u)" != 0 ] && echo "not run as root" ;;
	user) [ "$(id -u)" = 0 ] && echo "run as root" ;;
	userns) ! unshare -Ur true 2>/dev/null && echo "no user namespaces" ;;
	overlay)
		mkdir -p "$T/need/l" "$T/need/u" "$T/need/w" "$T/need/m"
		! unshare $u mount -t overlay -o "userxattr,lowerdir=$T/need/l,upperdir=$T/need/u,workdir=$T/need/w" \
		    none "$T/need/m" 2>/dev/null && echo "no overlay mount" ;;
	strace) ! strace -qq -o /dev/null true 2>/dev/null && echo "strace does not work" ;;
	xattr) ! { touch "$T/need" && setfattr -n user.sb -v 1 "$T/need"; } 2>/dev/null && echo "no user xattrs" ;;
	*) ! command -v "$1" >/dev/null && echo "not installed" ;;
	esac
}

# Streams: items and the full stop; without it; with a refusal instead.
ids() { printf '%s\n' "$@" ''; }
ids0() { echo; }			# the empty stream
# Each argument is one NUL-terminated field: a symbolic link takes two.
records() { printf '%s\0' "$@" ''; }
records0() { printf '\0'; }
rec_w() { printf '%s' "w ${3:-0644} $2 ${4:-u} ${5:--}"$'\t'"$1"; }	# path size [mode [from [route]]]
rec_d() { printf '%s' "d ${2:-0755} - ${3:-u} ${4:--}"$'\t'"$1"; }	# path [mode [from [route]]]
rec_x() { printf '%s' "x 0000 - - ${2:--}"$'\t'"$1"; }			# path [route]
cut_stream() { head -c -1; }
# refusal [-z] CODE MESSAGE; -z for records
refusal() {
	if [ "$1" = -z ]; then printf '! %s %s\0' "$2" "$3"; else printf '! %s %s\n' "$1" "$2"; fi
}

# Assertions.
is() { [ "$1" = "$2" ] || fail "is:     $(printf %s "$1" | od -c)" "wanted: $(printf %s "$2" | od -c)"; }
has() { case $1 in *"$2"*) ;; *) fail "is:      $1" "lacks:   $2" ;; esac; }
same() { cmp -- "$1" "$2" || fail "$1:" "$(od -c -- "$1" | head -50)" "$2:" "$(od -c -- "$2" | head -50)"; }

# Everything about a tree but times, sorted: kind, mode, path, content or target.
listing() {
	(
		cd -- "$1" && find . -mindepth 1 -print0 | LC_ALL=C sort -z |
		    while IFS= read -r -d '' f; do
			printf '%s %q' "$(stat -c '%F %a' -- "$f")" "$f"
			if [ -L "$f" ]; then printf ' %q' "$(readlink -- "$f")"
			elif [ -f "$f" ]; then printf ' %s' "$(sha256sum <"$f")"; fi
			getfattr -h --absolute-names -d -m '^user\.' -- "$f" 2>/dev/null | grep -v '^# file' | tr -d '\n'
			echo
		done
	)
}

# eventually PROG…: tries until it succeeds; a minute without is a failure.
eventually() {
	local end=$((SECONDS + 60))
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "still not: $*" || return
		sleep 0.02
	done
}

# kill_at SYSCALL N PROG…: kills each process of PROG as it makes its Nth such
# call, before the call has effect. FOLLOW= kill_at … traces PROG alone, which
# must be so when a child stays behind: strace waits for all it traces.
kill_at() {
	local call=$1 n=$2
	shift 2
	# shellcheck disable=SC2086 # nothing or one word
	strace ${FOLLOW--f} -qq -o /dev/null -e trace="$call" -e inject="$call:signal=KILL:when=$n" "$@"
}

# fault_at SYSCALL N ERRNO PROG…: the same with an error instead.
fault_at() {
	local call=$1 n=$2 err=$3
	shift 3
	# shellcheck disable=SC2086 # nothing or one word
	strace ${FOLLOW--f} -qq -o /dev/null -e trace="$call" -e inject="$call:error=$err:when=$n" "$@"
}

# count_calls SYSCALL PROG…: the most such calls that one process of PROG makes.
count_calls() {
	local call=$1
	shift
	# shellcheck disable=SC2086 # nothing or one word
	strace ${FOLLOW--f} -qq -e signal=none -o "$T/calls" -e trace="$call" "$@" >/dev/null 3>&- || return
	awk -v f="${FOLLOW--f}" '!/ resumed>/ { n[f ? $1 : 0]++ }
	    END { for (p in n) if (n[p] > max) max = n[p]; print max + 0 }' "$T/calls"
}

# A store over a copy of directory $1 (made when missing), which becomes $T/ws.
make_store() {
	mkdir -p "$T/ws"
	[ $# = 0 ] || cp -a "$1/." "$T/ws/"
	sb-store-init && sb-base-import "$T/ws" >"$T/base.hash"
}
