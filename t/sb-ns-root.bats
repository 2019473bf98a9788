# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

@test "usage: the target must be absolute" {
	run -100 sb-ns-root tree target
	run -100 sb-ns-root tree
}

@test "/proc counts the session's processes only, and hides what is the kernel's" {
	start
	is "$(sb-run "$s" sh -c 'cat /proc/kcore | wc -c; cat /proc/timer_list 2>/dev/null | wc -c')" "$(printf '0\n0')"
	run ! sb-run "$s" sh -c 'echo b >/proc/sysrq-trigger'
}

@test "terminals are the session's own" {
	start
	is "$(sb-run "$s" ls /dev/pts)" ptmx
	sb-run "$s" sh -c '[ -w /dev/null ] && [ -r /dev/urandom ] && [ -e /dev/fd/0 ] && : >/dev/shm/x'
}

@test "a workspace below the home directory is seen in the private one" {
	need overlay userns
	mkdir -p home/src; echo h >home/secret; echo 1 >home/src/f
	sb-store-init; sb-base-import home/src
	s=$(sb-session-new)
	is "$(sb-run "$s" sh -c 'pwd; cat f; ls -A ..')" "$(printf '%s\n1\nsrc' "$T/home/src")"
}

@test "the private directories share one bound, which the store's conf has" {
	start
	# 2 GiB by default, of one file system.
	is "$(sb-run "$s" sh -c 'stat -f -c "%b %S" /tmp /run /dev/shm /var/tmp ~ | sort -u')" '524288 4096'
	is "$(sb-run "$s" sh -c 'stat -c "%A %n" /tmp /run /dev/shm /var/tmp; stat -c %A ~')" \
	    $'drwxrwxrwt /tmp\ndrwxr-xr-x /run\ndrwxrwxrwt /dev/shm\ndrwxrwxrwt /var/tmp\ndrwx------'
	is "$(sb-run "$s" sh -c 'ls -A /tmp /run /dev/shm /var/tmp | grep -v ":$"' | tr -d '\n' | grep -v "$(echo "$T" | cut -d/ -f3)")" ''
	echo 'runtime.workspace.private_bytes 2097152' >"$SB_STORE/conf"
	t=$(sb-session-new)
	sb-run "$t" sh -c 'head -c 1500000 /dev/zero >/tmp/a'
	run ! sb-run "$t" sh -c 'head -c 1500000 /dev/zero >/dev/shm/b'
	has "$output" "No space left"
	sb-run "$t" sh -c 'rm /tmp/a; head -c 1500000 /dev/zero >~/b'
	# Empty files are bounded too.
	run ! sb-run "$t" sh -c 'cd /run; for i in $(seq 1000); do : >$i || exit; done'
	sb-run "$s" sh -c 'head -c 3000000 /dev/zero >/tmp/a'
	echo 'runtime.workspace.private_bytes 1' >"$SB_STORE/conf"
	run -111 sb-session-new
	has "$output" "private_bytes"
	rm "$SB_STORE/conf"
}
