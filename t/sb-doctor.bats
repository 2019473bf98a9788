# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# What a check says: ok, detail or mend.
says() { jq -r --arg n "$1" '.checks[] | select(.name == $n) | .'"$2" out; }

# fails CHECK MEND: it does, and the mend has these words.
fails() {
	is "$(says "$1" ok)" false || return
	has "$(says "$1" mend)" "$2"
}

# Which of those that are required fail.
failing() { jq -r '[.checks[] | select(.group == "required" and (.ok | not)) | .name] | join(" ")' out; }

# A script in mounts of its own, where it is root.
inside() {
	local u=-m
	[ "$(id -u)" = 0 ] || u=-Urm
	unshare $u sh -euc "$1"
}

# The directories of all doctors are gone, and their groups.
clean() {
	[ -z "$(ls -d "$T"/sb-doctor.* "$T"/*/sb-doctor.* 2>/dev/null)" ] &&
	    [ -z "$(find /sys/fs/cgroup -type d -name 'sb-doctor-*' -o -type d -name 'sbdoctor-*' 2>/dev/null |
	    grep -xf <(sed 's,^,.*-,' pid) || :)" ]
}

@test "all that is required is there, and a line says so of each" {
	need jq overlay userns xattr
	run -0 --separate-stderr sb-doctor
	is "$stderr" ""
	is "${lines[-1]}" "All that boxes and sessions need is there."
	has "${lines[0]}" "ok       kernel                  Linux "
	case $output in *FAILED*) fail "$output" ;; esac
	sb-doctor --json >out
	is "$(jq -c 'keys, .ok, (.checks[0] | keys)' out)" \
	    "$(printf '["checks","ok"]\ntrue\n["detail","group","mend","name","ok"]')"
	# The same names, in the same order; one line.
	is "$(wc -l <out)" 1
	is "$(jq -r '.checks[].name' out)" "$(sed -n 's/^\(ok\|missing\)  *\([^ ]*\) .*/\2/p' <<<"$output")"
	is "$(jq -r '.checks[] | select(.ok) | .mend' out | sort -u)" null
}

@test "a store elsewhere is looked at as well, one beside the state is not" {
	need jq overlay userns xattr
	sb-doctor -j >out
	is "$(says store-overlay ok)" ""
	mkdir store
	inside 'mount -t tmpfs -o size=600m tmpfs store; sb-doctor -j >out || :; ls -A store'
	has "$(says store-locks ok)" true
	is "$(says store-room ok)" true
}

@test "without user namespaces the sysctl is named" {
	need jq userns
	run -1 unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec sb-doctor -j >out'
	fails user-namespaces "sysctl -w user.max_user_namespaces="
	has "$(says user-namespaces detail)" "unable to make a user namespace: No space left on device"
	run -1 unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_mnt_namespaces && exec sb-doctor -j >out'
	is "$(says namespaces ok)" false
	is "$(says state-overlay ok)" false
	is "$(jq .ok out)" false
}

@test "programs that are not there are named with their package" {
	need jq overlay userns xattr
	PATH=$SB_BIN run -1 "$SB_BIN/sb-doctor" -j
	echo "$output" >out
	is "$(failing)" "s6-svscan s6-svc s6-envdir s6-ipcserver s6-log tcpserver setpriv getopt"
	for p in s6-svscan s6-log; do fails "$p" "apt-get install s6"; done
	fails tcpserver "apt-get install ucspi-tcp"
	fails setpriv "apt-get install util-linux"
	has "$(says s6-svscan detail)" "No such file or directory"
	# One that is there, but whose libraries are not.
	mkdir bin
	printf '#!/bin/sh\nexit 127\n' >bin/s6-log
	chmod +x bin/s6-log
	PATH=$T/bin:$PATH run -1 sb-doctor -j
	echo "$output" >out
	is "$(failing)" s6-log
	PATH=/usr/bin:/bin run ! "$SB_BIN/sb-doctor" -j
	echo "$output" >out
	fails sb "PATH"
}

# uname(2) with five empty fields of 65 bytes but for the third, the release.
@test "an old kernel is told" {
	need jq strace
	old() {
		strace -f -qq -o /dev/null -e trace=uname -e inject=uname:poke_exit="@arg1=$(printf %0260d 0)$(printf %s "$1" | od -An -tx1 | tr -d ' \n')00" \
		    sb-doctor -j >out || :
	}
	old 5.14.21
	fails kernel "Linux 5.15"
	is "$(says kernel detail)" "Linux 5.14.21"
	old 5.15.0-1-amd64
	is "$(says kernel ok)" true
}

@test "a file system that cannot be under an overlay is told, with those that can" {
	need jq overlay userns xattr
	mkdir l u w m
	run -1 inside "mount -t overlay -o userxattr,lowerdir=l,upperdir=u,workdir=w none m
	    SB_STATE=$T/m/state sb-doctor -j >out"
	fails state-overlay "ext4, xfs, btrfs"
	has "$(says state-overlay detail)" "unable to mount an overlay"
	fails state-whiteout "ext4, xfs, btrfs"
	is "$(says state-locks ok)" true
	is "$(ls -A u)" ""
}

@test "one without extended attributes, or without room, is told" {
	need jq overlay userns xattr
	mkdir m
	if [ "$(id -u)" = 0 ]; then
		run -1 inside "mount -t ramfs none m; SB_STATE=$T/m/state sb-doctor -j >out"
		fails state-user-xattr "ext4, xfs, btrfs"
		fails state-opaque "ext4, xfs, btrfs"
	fi
	run -1 inside "mount -t tmpfs -o size=9m none m; SB_STATE=$T/m/state sb-doctor -j >out"
	fails state-room "256 MiB"
	has "$(says state-room detail)" "MiB are free"
}

@test "a place that cannot be written is told" {
	need jq
	SB_STATE=/proc/state run -1 sb-doctor -j
	echo "$output" >out
	fails state-overlay "can write"
	has "$(says state-overlay detail)" "unable to make a directory in /proc: "
	touch file
	SB_STATE=$T/file/state run -1 sb-doctor -j
	echo "$output" >out
	has "$(says state-locks detail)" "unable to make a directory in $T/file/state: Not a directory"
}

# The calls of later kernels, or those that a seccomp profile forbids.
@test "a system call that is refused fails its check, and no other" {
	need jq strace overlay userns xattr
	refused() { # CALLS CHECKS
		strace -f -qq -o /dev/null -e trace="$1" -e inject="$1:error=ENOSYS" sb-doctor -j >out || :
		is "$(failing)" "$2"
	}
	refused pidfd_open,openat2,seccomp,mount_setattr "mounts session-root pidfd calls seccomp state-box-root"
	has "$(says mounts detail)" "mount_setattr: Function not implemented"
	fails seccomp CONFIG_SECCOMP_FILTER
	refused pidfd_send_signal,close_range,setxattr,lsetxattr,rename,renameat2 \
	    "pidfd calls state-rename state-user-xattr"
	# What one can do without.
	refused clone3,landlock_create_ruleset ""
	fails landlock CONFIG_SECURITY_LANDLOCK
	is "$(jq .ok out)" true
}

@test "what is optional is missing, and all is well" {
	need jq overlay userns xattr
	run -0 inside 'mount -t tmpfs none /sys/fs/cgroup; sb-doctor -j >out'
	for k in memory pids cpu; do
		fails limit-$k "boxes run without this limit"
		is "$(says limit-$k detail)" "there is no such control group here"
	done
	[ ! -e /dev/net ] || {
		run -0 inside 'mount -t tmpfs none /dev/net; sb-doctor >out'
		grep -A1 '^missing  tun ' out >tun
		has "$(cat tun)" "unable to open /dev/net/tun: No such file or directory"
		has "$(cat tun)" "mend: "
		has "$(cat tun)" "modprobe tun"
		is "$(tail -n 1 out)" "All that boxes and sessions need is there."
	}
}

@test "a failure is counted for people" {
	PATH=$SB_BIN run -1 "$SB_BIN/sb-doctor"
	is "${lines[-1]}" "8 of what boxes and sessions need is not there."
	has "$output" "FAILED   tcpserver"
}

@test "nothing is left, also of one that was killed" {
	need strace overlay userns xattr
	cat /proc/self/mountinfo >before
	sh -c 'echo $$ >pid; exec sb-doctor' >/dev/null
	clean
	# As it awaits this and that check.
	for n in 1 16 23 35; do
		FOLLOW= run ! kill_at wait4 $n sh -c 'echo $$ >pid; exec sb-doctor'
		eventually clean
	done
	# In the checks themselves.
	run ! kill_at mount 2 sh -c 'echo $$ >pid; exec sb-doctor'
	has "$output" "Killed"
	eventually clean
	cat /proc/self/mountinfo >after
	same before after
}

@test "the operation gives the object, whether all is there or not" {
	need jq overlay userns xattr
	load gate
	gate_start
	ask doctor {} system >out
	is "$(jq .ok out)" true
	mkdir bin
	printf '#!/bin/sh\nexit 127\n' >bin/s6-log
	chmod +x bin/s6-log
	PATH=$T/bin:$PATH ask doctor {} system >out
	is "$(jq -c '[.ok, has("error")]' out)" "[false,false]"
	is "$(failing)" s6-log
}

@test "wrong options and operands are refused, and output that is lost" {
	run -100 sb-doctor -x
	run -100 sb-doctor all
	run -0 sb-doctor --help
	is "$output" "usage: sb-doctor [-j]"
	run -111 sh -c 'sb-doctor -j >/dev/full'
	run -111 sh -c 'sb-doctor >&-'
	unset SB_STATE HOME
	[ "$(id -u)" = 0 ] || run -100 sb-doctor
}
