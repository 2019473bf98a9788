# SPDX-License-Identifier: MIT
# The root of a sandbox, and sessions in it.
bats_require_minimum_version 1.5.0
load lib

# A sandbox without services: the program that is the first in it reads
# commands from a fifo and prints what they print to out.
start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	SB_STORE=$SB_STATE/sandboxes/b/eos
	export SB_ROOT=$SB_STATE/sandboxes/b/root
	mkdir -p "$SB_STORE" "$SB_RUN"
	sb-store-init
	sb-base-import "$T/ws" >base.hash
	touch "$HOME/secret"
}

# box [-i IMAGE] COMMANDS: runs them in a sandbox, from its beginning to its end.
box() {
	local image=host
	[ "$1" != -i ] || { image=$2; shift 2; }
	sb-box-hold -i "$image" -m "$SB_STATE" -m "$SB_RUN" b sh -euc "$1" 3>&-
}

# A directory with busybox and nothing else.
make_image() {
	need busybox
	mkdir -p image/bin image/etc
	cp "$(command -v busybox)" image/bin/busybox
	for p in sh ls cat id touch echo mkdir mv rm grep; do ln -s busybox image/bin/$p; done
	echo image >image/etc/which
}

@test "a session in a sandbox sees its root, at the workspace's own path, with the home and /tmp of the sandbox" {
	start
	box 's=$(sb-session-new)
		sb-run $s sh -c "pwd; cat f; ls -A /tmp $HOME; ls /usr/bin/env; ls -A $SB_STATE || :; ls -A $SB_RUN || :
			echo x >$HOME/mine; echo x >/tmp/mine; echo new >>f"
		t=$(sb-session-new)
		sb-run $t cat $HOME/mine /tmp/mine f' >out 2>err
	is "$(sed -n 1,2p out)" "$(printf '%s\n' "$T/ws" base)"
	has "$(cat out)" /usr/bin/env
	run grep -c secret out
	is "$output" 0
	is "$(tail -n 3 out)" "$(printf '%s\n' x x base)"
	is "$(ls "$HOME")" secret
	[ ! -e /tmp/mine ]
	is "$(cat ws/f)" base
}

@test "what is written to the system stays in the sandbox, as root" {
	need root
	start
	box 's=$(sb-session-new)
		sb-run $s sh -c "echo x >/usr/local/sb-$$; rm -r /usr/share/doc; mv /etc/hostname /etc/old"'
	box 's=$(sb-session-new)
		sb-run $s sh -c "ls /usr/local /usr/share; cat /etc/old"' >out
	grep -q '^sb-[0-9]*$' out
	run grep -cx doc out
	is "$output" 0
	ls /usr/local >host
	run grep -c '^sb-[0-9]*$' host
	is "$output" 0
	[ -d /usr/share/doc ] && [ -e /etc/hostname ]
}

@test "an ordinary user's sandbox has the system read-only" {
	need user
	start
	box 's=$(sb-session-new)
		sb-run $s sh -c "! touch /usr/local/x && ! touch /etc/x && touch /tmp/x && id -u"' >out 2>err
	is "$(cat out)" 0
	has "$(cat err)" "Read-only file system"
}

@test "what of /proc and /sys writes to the kernel is read-only in a sandbox" {
	start
	box 's=$(sb-session-new)
		sb-run $s sh -c "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/profiling; do
			if [ -e \$f ] && (: >\$f) 2>/dev/null; then echo \$f; fi; done
			cat /proc/1/comm; ls /dev/pts; ls -A /dev/shm"
		sb-exec -s $s tty' >out
	is "$(head -n 1 out)" sb-ns-hold
	is "$(sed -n '2,$p' out | grep -v '^{')" ptmx
	is "$(tail -n 1 out | jq -r .output)" /dev/pts/0
	run grep -c "$T" /proc/self/mountinfo
	is "$output" 0
}

@test "devices of a sandbox work, but their modes are the host's to change, and no others can be used" {
	start
	# As they are: should it succeed, nothing is lost.
	box 's=$(sb-session-new)
		sb-run $s sh -c "echo x >/dev/null && head -c 4 /dev/zero | od -An -c; chmod 666 /dev/null || chown 0 /dev/zero || echo kept" 2>/dev/null' >out
	has "$(cat out)" '\0'
	is "$(tail -n 1 out)" kept
	[ "$(id -u)" = 0 ] || return 0
	unshare -m sh -euc 'mount -t tmpfs none /srv; mknod /srv/null c 1 3; chmod 666 /srv/null
		sb-box-hold b sh -euc "s=\$(sb-session-new)
			sb-run \$s sh -c \"! echo x >/srv/null\""' 3>&- 2>err
	has "$(cat err)" "Permission denied"
}

@test "a directory is an image: it is the root, and stays as it is" {
	start
	make_image
	listing image >before
	box -i "$T/image" 's=$(sb-session-new)
		sb-run $s sh -c "cat /etc/which; ls /; echo y >/etc/new; rm /etc/which; echo new >>f"
		sb-publish $s >/dev/null'
	box -i "$T/image" 's=$(sb-session-new)
		sb-run $s sh -c "cat /etc/new f; ls /etc"' >out
	is "$(sed -n 1,3p out)" "$(printf '%s\n' y base new)"
	run grep -c which out
	is "$output" 0
	listing image >after
	same before after
}

# make_package: sbtest.deb, with a file of group staff.
make_package() {
	mkdir -p deb/DEBIAN deb/usr/share/sbtest
	echo hello >deb/usr/share/sbtest/f
	printf '%s\n' 'Package: sbtest' 'Version: 1' 'Architecture: all' 'Maintainer: t <t@sb.invalid>' \
	    'Description: test' >deb/DEBIAN/control
	printf '%s\n' '#!/bin/sh' 'chgrp staff /usr/share/sbtest/f' >deb/DEBIAN/postinst
	chmod 755 deb/DEBIAN/postinst
	dpkg-deb --root-owner-group -b deb sbtest.deb >/dev/null
}

@test "packages are installed into the sandbox, for all its sessions, and the host does not notice" {
	need root dpkg-deb
	start
	make_package
	export T
	box 's=$(sb-session-new)
		sb-run $s sh -c "cat >/tmp/sbtest.deb && apt-get install -y /tmp/sbtest.deb" <$T/sbtest.deb >$T/log 2>&1
		t=$(sb-session-new)
		sb-run $t sh -c "dpkg -s sbtest | grep ^Status; stat -c %G /usr/share/sbtest/f"' >out || { cat log; false; }
	is "$(cat out)" "$(printf '%s\n' 'Status: install ok installed' staff)"
	[ ! -e /usr/share/sbtest ]
	run ! dpkg -s sbtest
}

# as_user PROG…: as an ordinary user with subordinate ids, a directory of its
# own for $T. By root alone.
as_user() {
	own=$(mktemp -d /tmp/sb-user.XXXXXX)
	chown 1000:1000 "$own"
	echo 1000:700000:65536 >"$T/subids"
	printf '%s\n' root:x:0:0::/root:/bin/sh ${NAME:+$NAME:x:1000:1000::/:/bin/sh} >"$T/subids.passwd"
	env SB_STATE="$own/state" SB_STORE="$own/state/sandboxes/b/eos" SB_ROOT="$own/state/sandboxes/b/root" \
	    XDG_CACHE_HOME="$own/cache" HOME=/root OWN="$own" \
	    unshare -m sh -euc 'mount --bind "$1" /etc/subuid; mount --bind "$1" /etc/subgid
		mount --bind "$1.passwd" /etc/passwd; shift
		exec setpriv --reuid 1000 --regid 1000 --clear-groups "$@"' - "$T/subids" "$@"
}

@test "an image's users exist for who has subordinate ids" {
	need root newuidmap
	start
	make_image
	chmod 711 "$T" "$BATS_RUN_TMPDIR" 2>/dev/null || :
	tar -cf image.tar image
	exec 4<image.tar
	NAME=sbtest as_user sh -euc 'cd "$OWN"; mkdir ws; echo base >ws/f; tar -xf - <&4
		mkdir -p "$SB_STORE"; sb-store-init; sb-base-import "$OWN/ws"
		sb-box-hold -i "$OWN/image" b sh -euc "s=\$(sb-session-new)
			sb-run \$s sh -c \"touch /etc/mine; chown 42:7 /etc/mine; ls -ln /etc/mine; cat /proc/self/uid_map\""' 3>&- >out || { rm -rf "$own"; false; }
	is "$(stat -c %u:%g "$own/state/sandboxes/b/mounts/%2F/upper/etc/mine")" 700041:700006
	rm -rf "$own"
	exec 4<&-
	has "$(cat out)" "42       7"
	# newuidmap does nothing for who has no name: one id, as without any.
	as_user sh -euc 'cd "$OWN"; mkdir -p ws image/bin "$SB_STORE"; echo base >ws/f
		sb-store-init; sb-base-import "$OWN/ws"
		sb-box-hold -i "$OWN/image" b cat /proc/self/uid_map' 3>&- >out || { rm -rf "$own"; false; }
	rm -rf "$own"
	is "$(tail -n 1 out | tr -s ' ')" " 0 1000 1"
}

@test "names of hosts are looked up as on the host" {
	start
	make_image
	ln -s ../run/there/resolv.conf image/etc/resolv.conf
	box -i "$T/image" 's=$(sb-session-new)
		sb-run $s cat /etc/resolv.conf' >out
	same out /etc/resolv.conf
	rm image/etc/resolv.conf; echo old >image/etc/resolv.conf
	box -i "$T/image" 's=$(sb-session-new)
		sb-run $s cat /etc/resolv.conf' >out
	same out /etc/resolv.conf
	is "$(cat image/etc/resolv.conf)" old
}

@test "with a private root sessions do not see what others do outside the workspace" {
	start
	make_image
	echo 'runtime.workspace.root private' >"$SB_STORE/conf"
	box -i "$T/image" 's=$(sb-session-new); t=$(sb-session-new)
		sb-run $s sh -c "echo x >/etc/new; echo x >/tmp/new; echo x >$HOME/new; rm /etc/which"
		sb-run $t sh -c "cat /etc/which; ls /etc/new /tmp/new $HOME/new" 2>&1 || :
		sb-ns-kill $s
		sb-run $s cat /etc/new /tmp/new
		sb-session-end $s; ls $SB_STORE/workspace' >out
	is "$(head -n 1 out)" image
	is "$(grep -c 'No such' out)" 3
	is "$(sed -n '5,6p' out)" "$(printf '%s\n' x x)"
	is "$(sed -n '7,$p' out | grep -c .)" 1
}

@test "each file system below the root is one of its own: writable, read-only where it is so" {
	need root
	start
	unshare -m sh -euc '
		mount -t tmpfs none /srv; echo host >/srv/f; mkdir /srv/ro /srv/hidden
		mount -t tmpfs none /srv/hidden/; echo lost >/srv/hidden/f; mount -t tmpfs none /srv/hidden
		mount -t tmpfs -o ro none /srv/ro
		d=/srv/$(printf %0240d 0); mkdir $d; mount -t tmpfs none $d
		sb-box-hold -m "$SB_STATE" b sh -euc "s=\$(sb-session-new)
			sb-run \$s sh -c \"cat /srv/f; echo box >/srv/f; cat /srv/f; ls /srv/hidden; ! touch /srv/ro/x; ! touch $d/x\" 2>/dev/null"
		cat /srv/f' 3>&- >out
	is "$(cat out)" "$(printf '%s\n' host box host)"
	is "$(cat "$SB_STATE/sandboxes/b/readonly")" "/srv/$(printf %0240d 0)"
}

@test "kill -9 of the holder ends all of the sandbox; the next one has its changes and its sessions" {
	start
	make_image
	mkfifo said
	sb-box-hold -i "$T/image" -m "$SB_STATE" b sh -euc 's=$(sb-session-new)
		sb-run $s sh -c "echo kept >f; echo kept >/etc/new"
		echo "$s"; exec sleep 1000' >said 3>&- &
	pid=$!
	read -r s <said
	run -98 sb-box-hold b true
	kill -KILL $pid
	wait $pid || :
	box -i "$T/image" "sb-run $s cat f /etc/new; sb-publish $s >/dev/null" >out
	is "$(cat out)" "$(printf '%s\n' kept kept)"
	run grep -c "$T" /proc/self/mountinfo
	is "$output" 0
}

@test "killed while the root is begun: the next one has the mode of what it covers" {
	need strace
	start
	make_image
	chmod 751 image
	run ! kill_at fchmod 1 sb-box-hold -i "$T/image" b true
	box -i "$T/image" 's=$(sb-session-new); sb-run $s sh -c "ls -ld /"' >out
	has "$(cat out)" drwxr-x--x
}

@test "TERM ends the program, and what does not listen to it" {
	start
	mkfifo said
	sb-box-hold b sh -c 'trap "echo ended; exit" TERM; echo up; while :; do sleep 0.1; done' >said 3>&- &
	pid=$!
	exec 5<said
	read -r line <&5
	is "$line" up
	kill $pid
	read -r line <&5
	is "$line" ended
	wait $pid
	exec 5<&-
	sb-box-hold b sh -c 'echo up; exec sleep 1000' >said 3>&- &
	pid=$!
	read -r line <said
	kill $pid
	wait $pid
	sb-box-hold b true
}

@test "what cannot be run or mounted is 111, named, and leaves nothing" {
	start
	run -111 --separate-stderr sb-box-hold b no-such-program
	has "$stderr" "no-such-program"
	run -111 --separate-stderr sb-box-hold -i "$T/nowhere" b true
	has "$stderr" "$T/nowhere"
	sb-box-hold b true
	run grep -c "$T" /proc/self/mountinfo
	is "$output" 0
}
