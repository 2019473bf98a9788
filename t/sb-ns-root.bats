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
