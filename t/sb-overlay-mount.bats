# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# Runs a script as root of a mount namespace of its own.
inside() {
	local u=-m
	[ "$(id -u)" = 0 ] || u=-Urm
	unshare $u sh -euc "$1"
}

stack() {
	need overlay userns xattr
	three_layers
}

three_layers() { # base, one that deletes and hides, one on top
	mkdir -p ws/d ws/e one/e two u w m
	"$SB_TOP/t/shim" >ways
	echo 1 >ws/f; echo 1 >ws/d/x; echo 1 >ws/e/x
	make_store
	mknod one/d c 0 0; echo 2 >one/e/y; setfattr -n user.overlay.opaque -v y one/e
	echo 3 >two/g
	for l in one two; do
		id=$(sb-layer-scan $l | sb-change-route | sb-layer-commit -C $l)
		{ echo "$id"; sb-stack-show; } | sb-stack-swap "$(sb-stack-version)"
	done >/dev/null
}

@test "each way of handing layers over shows the same" {
	stack
	printf '.:\ne\nf\ng\n\ne:\ny\n1\n3\n2\n' >want
	while read -r way; do
		inside "sb-stack-show | sb-overlay-mount -p $way m; cd m; ls -A . e; cat f g e/y" >out
		same out want
	done <ways
}

@test "with an upperdir it is writable, and whiteouts and opaque marks are ours" {
	stack
	while read -r way; do
		rm -rf u w; mkdir u w
		inside "sb-stack-show | sb-overlay-mount -p $way -u u -w w m; cd m; rm f; rm -r e; mkdir e; echo 4 >e/z"
		sb-layer-scan u | tr '\0' '\n' | cut -c1 | tr -d '\n' >kinds
		is "$(cat kinds)" owx
		chmod -R u+rwx w
	done <ways
}

@test "by itself it takes the first way that the kernel has" {
	need strace
	stack
	run -0 inside 'sb-stack-show | strace -qq -o trace -e trace=fsconfig,mount sb-overlay-mount m; cat m/f m/g'
	is "$output" "$(printf '1\n3')"
	case $(head -n 1 ways) in
	fd) is "$(grep -c 'FSCONFIG_SET_FD, "lowerdir+", NULL, [0-9]*) = 0' trace)" 3 ;;
	string) is "$(grep -c 'FSCONFIG_SET_STRING, "lowerdir+", "/proc/self/fd/[0-9]*", 0) = 0' trace)" 3 ;;
	page) grep '^mount("overlay"' trace ;;
	esac
	[ "$(head -n 1 ways)" = page ] || run ! grep '^mount("overlay"' trace
}

@test "a kernel without lowerdir+, or that refuses it in the end, gets one page of options" {
	need strace
	stack
	sb-stack-show >ids
	# First each call fails; then, of two in a row, the first and the one that
	# makes the mount, as before Linux 6.5.
	for when in 1+ 1+9; do
		inside "strace -qq -o trace -e trace=fsconfig,mount -e inject=fsconfig:error=EINVAL:when=$when \
		    sb-overlay-mount m <ids; cat m/f m/g" >out
		is "$(cat out)" "$(printf '1\n3')"
		grep -q '^mount("overlay".* = 0' trace
	done
	! grep -qx string ways || grep -q 'FSCONFIG_CMD_CREATE.*EINVAL' trace
}

@test "nothing in the path of a store has to be quoted, any way, in namespaces of any kind" {
	need overlay userns xattr
	local top=$T T
	for T in "$top/a:b,c d" "$top/e\\:\\,f" "$top/lowerdir=g,upperdir=h"; do
		mkdir -p "$T"; cd "$T"
		export SB_STORE=$T/store XDG_CACHE_HOME=$T/cache
		three_layers
		while read -r way; do
			for u in -m -Urm; do
				[ "$(id -u)" = 0 ] || [ $u != -m ] || continue
				rm -rf u w; mkdir u w
				run -0 unshare $u sh -euc "sb-stack-show | sb-overlay-mount -p $way -u u -w w m
				    cd m; ls -A . e; cat f g e/y; rm g"
				is "$output" "$(printf '.:\ne\nf\ng\n\ne:\ny\n1\n3\n2')"
				is "$(stat -c %F u/g)" "character special file"
				run -0 unshare $u sh -euc "sb-stack-show | sb-overlay-mount -p $way m; cat m/f m/g"
				is "$output" "$(printf '1\n3')"
				chmod -R u+rwx w
			done
		done <ways
	done
}

@test "without an upperdir it is read-only" {
	stack
	run inside 'sb-stack-show | sb-overlay-mount m; touch m/x'
	has "$output" "Read-only file system"
}

@test "500 layers mount, each way; 501 are refused" {
	need overlay userns
	mkdir -p ws m one; make_store; echo x >one/x
	id=$(sb-layer-scan one | sb-change-route | sb-layer-commit -C one)
	sb-stack-show | grep . >base
	for i in $(seq 500); do
		cp -a "$SB_STORE/layer-stack/layers/$id" "$SB_STORE/layer-stack/layers/L$i"
		echo "L$i"
	done >many
	{ head -n 499 many; cat base; echo; } >ids500
	{ head -n 500 many; cat base; echo; } >ids501
	for way in $("$SB_TOP/t/shim"); do
		is "$(inside "sb-overlay-mount -p $way m <ids500; cat m/x")" x
		run -100 --separate-stderr sb-overlay-mount -p "$way" m <ids501
		has "$stderr" "501 layers"
		has "$stderr" "at most 500"
	done
}

@test "cut input is 111, a refusal passes, an unknown layer is named" {
	make_store; mkdir m
	ids a | cut_stream >cut
	run -111 sb-overlay-mount m <cut
	refusal 98 busy >no
	run -98 sb-overlay-mount m <no
	ids L000001-aaaaaaaa >unknown
	run -111 --separate-stderr sb-overlay-mount m <unknown
	has "$stderr" L000001-aaaaaaaa
	ids0 >none
	run -100 sb-overlay-mount m <none
}

@test "usage errors are 100, -h is 0" {
	mkdir u m
	ids a >in
	for args in '' 'm m' '-p m' '-p way m' '-u u m' '-w u m' '-x m'; do
		# shellcheck disable=SC2086 # words
		run -100 sb-overlay-mount $args <in
	done
	run -0 sb-overlay-mount -h
}
