# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "nothing mounted is 1, a missing directory 111" {
	mkdir m
	need root
	run -1 sb-overlay-umount m
	run -111 sb-overlay-umount nothing
}

@test "mounts that lie on each other go all, one in use stays" {
	need overlay userns
	mkdir m
	u=-m; [ "$(id -u)" = 0 ] || u=-Urm
	unshare $u sh -euc 'mount -t tmpfs x m; mount -t tmpfs y m; sb-overlay-umount m; grep -c "$PWD/m" /proc/self/mountinfo || :' >n
	is "$(cat n)" 0
	run unshare $u sh -c 'mount -t tmpfs x m; cd m; sb-overlay-umount ../m; echo $?'
	has "$output" "98"
}
