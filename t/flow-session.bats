# SPDX-License-Identifier: MIT
# Sessions and their holders: what commands see, and that nothing is lost when
# any process dies.
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

holder() { # pid of the outer process of session $1
	local pid
	for pid in $(our_pids); do
		[ "$(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | cut -d' ' -f1)" = sb-ns-hold ] || continue
		tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qx "$1" || continue
		[ "$pid" != "$(cut -d' ' -f1 "$SB_STORE/workspace/$1/hold")" ] || continue
		echo "$pid"
	done
}

our_pids() { (cd /proc && grep -lzxFe "SB_STORE=$SB_STORE" [0-9]*/environ 2>/dev/null | cut -d/ -f1); }

state() { sb-session-ls -v | grep -F "\"$1\"" | grep -o '"state":"[a-z]*"'; }

wait_parked() {
	for _ in $(seq 500); do
		[ "$(state "$1")" != '"state":"parked"' ] || return 0
		sleep 0.01
	done
	fail "session is not parked"
}

@test "the host is read-only, the workspace is writable, the rest is private" {
	start
	sb-run "$s" sh -c 'for d in / /etc /usr /var; do touch $d/sb-x 2>/dev/null && echo "$d is writable"; done
	    touch f /tmp/sb-test-private /var/tmp/x /run/x /dev/shm/x "$HOME/x" && ls -A "$HOME" /tmp | grep -c . >/dev/null
	    [ "$$" -lt 100 ] && echo private pids
	    echo x >/dev/null && head -c 1 /dev/zero | wc -c' >out
	printf 'private pids\n1\n' >want
	same out want
	[ ! -e /tmp/sb-test-private ] && [ ! -e "$HOME/x" ]
}

@test "commands cannot undo the view: remount, mount, host kernel parameters, devices" {
	start
	run sb-run "$s" sh -c 'mount -o remount,rw /; umount /proc/sys; mknod d b 1 1 && head -c 1 d
	    cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern
	    ls -d /dev/vda /dev/sda /dev/mem /dev/kmsg 2>/dev/null; wc -c </proc/kcore; echo end'
	has "$output" "Read-only file system"
	has "$output" end
	run ! sb-run "$s" sh -c 'mount -o remount,rw /'
	run ! sb-run "$s" sh -c 'umount /proc/sys'
	run ! sb-run "$s" sh -c 'cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern'
	run ! sb-run "$s" sh -c 'mknod d b 1 1 && head -c 1 d'
}

@test "the store and the host's workspace cannot be reached from a session" {
	start
	echo later >>ws/f
	is "$(sb-run "$s" cat "$T/ws/f")" base
	run ! sb-run "$s" ls "$SB_STORE/layer-stack"
}

@test "exit codes are the program's own" {
	start
	run -7 sb-run "$s" sh -c 'exit 7'
	run -143 sb-run "$s" sh -c 'kill -TERM $$'
	run -127 sb-run "$s" no-such-program
	run -126 sb-run "$s" /etc/passwd
	run -100 sb-run nobody true
}

@test "kill 1 and kill -1 inside do not end the session" {
	start
	run sb-run "$s" sh -c 'kill 1; kill -9 1; kill -TERM 1; true'
	run sb-run "$s" sh -c 'kill -9 -1'
	is "$(state "$s")" '"state":"running"'
	is "$(sb-run "$s" cat f)" base
}

@test "the holder killed: parked, nothing lost, the next use revives it" {
	start
	sb-run "$s" sh -c 'echo mine >f; rm -rf gone; echo g >g'
	kill -KILL "$(holder "$s")"
	wait_parked "$s"
	is "$(sb-diff -n "$s")" "$(printf 'M f\nA g')"
	is "$(sb-run "$s" cat f g)" "$(printf 'mine\ng')"
	is "$(state "$s")" '"state":"running"'
}

@test "a parked session is published without being revived" {
	start
	sb-run "$s" sh -c 'echo mine >f'
	kill -KILL "$(holder "$s")"
	wait_parked "$s"
	sb-publish "$s"
	is "$(sb-stack-show | sb-layer-cat f)" mine
}

@test "TERM to the holder ends its processes and parks the session" {
	start
	sb-run "$s" sh -c 'sleep 1000 >/dev/null 2>&1 &' 3>&-
	init=$(cut -d' ' -f1 "$SB_STORE/workspace/$s/hold")
	kill -TERM "$(holder "$s")"
	wait_parked "$s"
	[ ! -e "/proc/$init" ]
}

@test "a pid that now belongs to somebody else is not taken for the init" {
	start
	kill -KILL "$(holder "$s")"
	wait_parked "$s"
	sleep 1000 3>&- &
	other=$!
	echo "$other 1" >"$SB_STORE/workspace/$s/hold"
	is "$(state "$s")" '"state":"parked"'
	is "$(timeout 20 sb-run "$s" cat f)" base
	sb-ns-kill "$s"
	kill -0 "$other"
	kill "$other"
}

@test "eight writers of 200 MiB: no second mount while one of them lives" {
	[ "$(awk '/MemAvailable/ { print $2 }' /proc/meminfo)" -gt 3000000 ] || skip "not enough memory"
	start
	for i in 1 2 3 4 5 6 7 8; do
		# Left behind: what runs in front keeps the gate, and so the next use out.
		sb-run "$s" sh -c "perl -e '\$x = \"x\" x (200 << 20); open F, \">>\", \"w$i\"; \$| = 1; select F; \$| = 1; while (1) { print F \"$i\\n\" }' >/dev/null 2>&1 &" 3>&-
	done
	for i in 1 2 3 4 5 6 7 8; do
		for _ in $(seq 1000); do [ -s "$SB_STORE/workspace/$s/upper/w$i" ] && break; sleep 0.02; done
	done
	mnt=$(readlink "/proc/$(cut -d' ' -f1 "$SB_STORE/workspace/$s/hold")/ns/mnt")
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/ns/mnt" 2>/dev/null)" = "$mnt" ] || continue
		echo "${p#/proc/}"
	done >old
	is "$(wc -l <old)" 9
	kill -KILL "$(holder "$s")"
	# At once: what mounts next must find none of them alive. Below the new
	# /proc lies the host's, which still counts them as we did.
	mkdir bin
	cat >bin/sb-session-setup <<-EOF
		#!/bin/sh
		unshare -m sh -c 'umount /proc && [ -e /proc/self ] || echo no proc
		    for p in \$(cat "$T/old"); do
			case \$(cat /proc/\$p/stat 2>/dev/null) in ""|*") Z "*|*") X "*) ;; *) echo alive \$p ;; esac
		    done' >"$T/alive"
		exec "$SB_BIN/sb-session-setup" "\$@"
	EOF
	chmod +x bin/sb-session-setup
	is "$(PATH=$T/bin:$PATH timeout 60 sb-run -t 50000 "$s" sh -c 'ls w? | wc -l')" 8
	same alive /dev/null
	sizes=$(cd "$SB_STORE/workspace/$s/upper" && stat -c %s w?)
	sleep 0.2
	is "$(cd "$SB_STORE/workspace/$s/upper" && stat -c %s w?)" "$sizes"
}

@test "two uses of a parked session revive it once" {
	start
	kill -KILL "$(holder "$s")"
	wait_parked "$s"
	for i in 1 2 3 4 5 6; do sb-run "$s" sh -c 'echo x >>f; cat f >/dev/null' 3>&- & done
	wait
	is "$(holder "$s" | wc -l)" 1
	is "$(sb-run "$s" grep -c x f)" 6
}

@test "ended sessions leave no directory, process or mount" {
	start
	sb-run "$s" sh -c 'sleep 1000 >/dev/null 2>&1 & rm -rf f; mkdir -p a/b; chmod 000 a' 3>&-
	sb-session-end "$s"
	is "$(ls -A "$SB_STORE/workspace")" ""
	run -1 sb-session-end "$s"
	run grep -c "$T" /proc/self/mountinfo
	is "$output" 0
}

@test "killed at any mutating call, sb-session-new leaves a session or what an end sweeps" {
	need strace
	start
	total=0
	for call in mkdir mkdirat renameat openat fsync write fchmod unlinkat; do
		n=$(FOLLOW='' count_calls "$call" sb-session-new)
		for k in $(seq "${n:-0}"); do
			FOLLOW='' kill_at "$call" "$k" sb-session-new >/dev/null 2>&1 3>&- || :
			total=$((total + 1))
		done
	done
	echo "# sb-session-new killed at $total calls" >&3
	for x in $(sb-session-ls); do
		is "$(sb-run "$x" cat f)" base
		sb-session-end "$x"
	done
	is "$(ls -A "$SB_STORE/workspace")" ""
}
