# SPDX-License-Identifier: MIT
# What a session's programs may and may not do, and holders that are killed
# while they begin or end.
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

# until_ok PROG…: polls for ten seconds.
until_ok() {
	for _ in $(seq 500); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.02
	done
	fail "did not come true: $*"
}

state() { sb-session-ls -v | jq -r --arg s "$1" 'select(.workspace_session_id == $s).state'; }
is_parked() { [ "$(state "$s")" = parked ]; }

# Holds session $s by a setup that waits for a line in the fifo "go".
slow_holder() {
	mkfifo go
	cat >setup <<-EOF
		#!/bin/sh
		echo >"$T/setting-up"
		read -r line <"$T/go"
		exec sb-session-setup "$T/ws"
	EOF
	chmod +x setup
	sb-ns-kill "$s"
	sb-ns-hold -3 4 "$s" "$T/setup" 4>ready 3>&- &
	until_ok test -s setting-up
}

@test "nobody enters a session that is only half made" {
	start
	slow_holder
	is "$(state "$s")" running
	run -98 --separate-stderr sb-run "$s" sh -c 'echo outside >>"$T/ws/f"'
	has "$stderr" "is being started"
	is "$(cat ws/f)" base
	[ ! -s ready ]
	echo >go
	until_ok test -s ready
	is "$(sb-run "$s" cat "$T/ws/f")" base
}

@test "a holder that is still beginning is ended with its session" {
	start
	slow_holder
	sb-session-end "$s"
	is "$(ls -A "$SB_STORE/workspace")" ""
	until_ok test -z "$(our_processes "$SB_STORE")"
	[ ! -s ready ]
}

@test "absolute paths stay true, at the workspace's own place" {
	start
	mkdir ws/sub
	sb-run "$s" sh -c "pwd >where; echo new >'$T/ws/f'; mkdir '$T/ws/made'"
	is "$(sb-run "$s" cat "$T/ws/f" where)" "$(printf 'new\n%s' "$T/ws")"
	is "$(cat ws/f)" base
	[ ! -e ws/made ]
}

@test "a home in the workspace is the workspace's, any other is empty and private" {
	start
	is "$(sb-run "$s" sh -c 'ls -A "$HOME"; stat -c %a "$HOME"; touch "$HOME/x"')" 700
	[ ! -e home/x ]
	mkdir ws/home; echo rc >ws/home/.rc
	sb-session-end "$s"
	rm -rf "$SB_STORE"
	export HOME=$T/ws/home
	make_store
	s=$(sb-session-new)
	is "$(sb-run "$s" sh -c 'cat "$HOME/.rc"; echo 2 >"$HOME/.rc"')" rc
	is "$(cat ws/home/.rc)" rc
	sb-publish "$s" >/dev/null
	is "$(sb-stack-show | sb-layer-cat home/.rc)" 2
	# However the root is spelt, it is nobody's home.
	s=$(HOME=/../ sb-session-new)
	is "$(sb-run "$s" sh -c 'ls -d /usr/bin')" /usr/bin
}

@test "a process may write its own files in /proc, the kernel's are read-only" {
	start
	sb-run "$s" sh -c 'echo 500 >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj >score'
	is "$(sb-run "$s" cat score)" 500
	run -2 sb-run "$s" sh -c 'cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern'
	has "$output" "Read-only file system"
}

@test "namespaces made in a session do not undo its view" {
	start
	sb-run "$s" unshare -Ur true
	run ! sb-run "$s" unshare -Urm mount -o remount,rw,bind /
	run ! sb-run "$s" unshare -Urm umount /proc/sys
	run ! sb-run "$s" unshare -Urm umount "$SB_STORE"
	run ! sb-run "$s" unshare -Urmpf --mount-proc true
	run ! sb-run "$s" sh -c 'unshare -Urm sh -c "mount -t tmpfs none /proc/sys && echo y >/etc/x"'
	is "$(sb-run "$s" cat f)" base
}

@test "a device that lies about on the host cannot be opened" {
	need root
	start
	mkdir -p "$T/dev"
	mknod -m 666 "$T/dev/zero" c 1 5
	head -c 1 "$T/dev/zero" >/dev/null
	# Not below /tmp, where sessions see nothing of the host.
	mkdir bind /mnt/sb-test.$$
	unshare -m sh -euc "mount --bind '$T/dev' /mnt/sb-test.$$
	    sb-ns-kill $s; sb-run $s sh -c 'ls /mnt/sb-test.$$; ! head -c 1 /mnt/sb-test.$$/zero'" >out 2>err
	rmdir /mnt/sb-test.$$
	is "$(cat out)" zero
	has "$(cat err)" "Permission denied"
	is "$(sb-run "$s" sh -c 'head -c 3 /dev/zero | wc -c; echo x >/dev/null')" 3
}

@test "files of any owner keep it and can be given away, as root" {
	need root
	need overlay
	mkdir -p ws; echo 1 >ws/far; chown 70000:100000 ws/far
	make_store
	s=$(sb-session-new)
	is "$(sb-run "$s" sh -c 'stat -c %u:%g far; echo 2 >>far; chown 12:34 far; stat -c %u:%g far')" \
	    "$(printf '70000:100000\n12:34')"
}

@test "signals: QUIT works inside, INT and TERM to the front are passed on once" {
	start
	run -131 sb-run "$s" sh -c 'kill -QUIT $$; echo not reached'
	for sig in INT TERM QUIT USR1; do
		rm -f got
		sb-run "$s" sh -c "trap 'echo $sig; exit 7' $sig; touch ready.$sig
		    while :; do sleep 0.02; done" >got 3>&- &
		until_ok test -e "$SB_STORE/workspace/$s/upper/ready.$sig"
		kill -$sig $!
		rc=0; wait $! || rc=$?
		is "$rc $(cat got)" "7 $sig"
	done
}

@test "a stopped program is continued by its own signals, not lost" {
	start
	sb-run "$s" sh -c 'echo $$ >pid; while [ ! -e end ]; do sleep 0.02; done; exit 5' 3>&- &
	until_ok test -s "$SB_STORE/workspace/$s/upper/pid"
	sb-ns-kill -s STOP "$s"
	sb-ns-kill -s CONT "$s"
	sb-run "$s" touch end
	rc=0; wait $! || rc=$?
	is "$rc" 5
}

@test "when the session is killed, its programs end with 137 and it is parked" {
	start
	sb-run "$s" sh -c 'touch here; exec sleep 1000' 3>&- &
	until_ok test -e "$SB_STORE/workspace/$s/upper/here"
	sb-ns-kill "$s"
	rc=0; wait $! || rc=$?
	is "$rc" 137
	is "$(state "$s")" parked
	is "$(sb-run "$s" ls)" "$(printf 'f\nhere')"
}

@test "sessions begin and end beside each other, and sweep nothing that lives" {
	start
	for i in 1 2 3 4 5 6 7 8; do
		(
			for j in 1 2 3 4 5; do
				x=$(sb-session-new) && sb-run "$x" sh -c "echo $i >i; cat f" &&
				    sb-session-end "$x" || echo "failed: $i $j"
			done
		) >out.$i 2>&1 3>&- &
	done
	wait
	is "$(cat out.* | sort | uniq -c | tr -s ' ')" " 40 base"
	is "$(ls -A "$SB_STORE/workspace")" "$s"
}

@test "a holder killed at any call while it begins: the next use begins again" {
	need strace
	start
	sb-run "$s" sh -c 'echo mine >f'
	total=0
	for call in clone mount mount_setattr move_mount open_tree fsconfig unshare mkdir openat \
	    renameat write prctl symlink; do
		for k in $(seq 40); do
			sb-ns-kill "$s"
			# Each process of the set-up dies at its k-th such call.
			strace -f -qq -o trace -e trace="$call" -e inject="$call:signal=KILL:when=$k" \
			    sb-ns-hold -3 4 "$s" sb-session-setup "$T/ws" 4>ready 2>err 3>&- &
			until_ok sh -c "test -s ready || ! kill -0 $!"
			total=$((total + 1))
			is "$(sb-run "$s" cat f)" mine
			sb-ns-kill "$s"
			wait $! || :
			grep -q SIGKILL trace && grep -q "$call(" trace || break
			[ ! -s ready ] || break
		done
	done
	echo "# sb-ns-hold killed at $total calls" >&3
	[ "$total" -gt 40 ]
	is "$(cd "$SB_STORE/workspace/$s" && echo * '')" "gate gate.turn hold lease lock merged upper work "
}

@test "an end killed at any call: the session is whole, or gone with the next end" {
	need strace
	start
	total=0
	for call in openat pidfd_send_signal fcntl renameat fsync unlinkat; do
		for k in $(seq 60); do
			t=$(sb-session-new)
			sb-run "$t" sh -c 'echo mine >f; mkdir d; echo 1 >d/e'
			rc=0
			kill_at "$call" "$k" sb-session-end "$t" >out 2>&1 3>&- || rc=$?
			total=$((total + 1))
			# At once; what still exists has lost nothing.
			if [ -d "$SB_STORE/workspace/$t" ]; then
				is "$(sb-run "$t" cat f d/e)" "$(printf 'mine\n1')"
				sb-session-end "$t"
			fi
			[ $rc != 0 ] || break
		done
	done
	echo "# sb-session-end killed at $total calls" >&3
	sb-session-end "$s"
	is "$(ls -A "$SB_STORE/workspace")" ""
	is "$(our_processes "$SB_STORE")" ""
}

@test "hold removed or damaged while the holder lives: everything works, and the session can be ended" {
	need overlay userns jq
	mkdir -p ws; echo base >ws/f
	make_store
	for how in "rm -f" "truncate -s 0" "ln -sfn /etc/passwd" "cp /proc/version" "mkdir"; do
		for end in sb-session-end sb-publish "sb-ns-kill"; do
			s=$(sb-session-new)
			init=$(cut -d' ' -f1 "$SB_STORE/workspace/$s/hold")
			rm "$SB_STORE/workspace/$s/hold"
			[ "$how" = "rm -f" ] || $how "$SB_STORE/workspace/$s/hold"
			[ "$how" = mkdir ] || is "$(sb-run "$s" cat f)" base
			rm -rf "$SB_STORE/workspace/$s/hold"
			[ "$how" = "rm -f" ] || $how "$SB_STORE/workspace/$s/hold"
			$end "$s" >out || fail "$how, $end"
			[ ! -e "/proc/$init" ] || fail "$how, $end: the init lives"
			[ $end != sb-ns-kill ] || { rm -rf "$SB_STORE/workspace/$s/hold"; sb-session-end "$s"; }
		done
	done
}

@test "an automatic session without hold is swept" {
	need overlay userns
	make_store
	s=$(sb-session-new -a)
	rm "$SB_STORE/workspace/$s/hold"
	touch -d '2 minutes ago' "$SB_STORE/workspace/$s/auto"
	is "$(sb-sweep)" "$s"
	is "$(our_processes "$SB_STORE")" ""
}

@test "the directory of a session is removed: its holder ends by itself" {
	need overlay userns
	make_store
	s=$(sb-session-new)
	rm -rf "${SB_STORE:?}/workspace/$s"
	nobody() { [ -z "$(our_processes "$SB_STORE")" ]; }
	eventually nobody
}
