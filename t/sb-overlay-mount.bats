# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# Runs a script as root of a mount namespace of its own.
inside() {
	local u=-m
	[ "$(id -u)" = 0 ] || u=-Urm
	unshare $u sh -euc "$1"
}

stack() { # three layers: base, one that deletes and hides, one on top
	need overlay userns xattr
	mkdir -p ws/d ws/e one/e two u w m
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
	for way in fd string page; do
		inside "sb-stack-show | sb-overlay-mount -p $way m; cd m; ls -A . e; cat f g e/y" >out.$way
	done
	printf '.:\ne\nf\ng\n\ne:\ny\n1\n3\n2\n' >want
	same out.fd want; same out.string want; same out.page want
}

@test "with an upperdir it is writable, and whiteouts and opaque marks are ours" {
	stack
	for way in fd page; do
		rm -rf u w; mkdir u w
		inside "sb-stack-show | sb-overlay-mount -p $way -u u -w w m; cd m; rm f; rm -r e; mkdir e; echo 4 >e/z"
		sb-layer-scan u | tr '\0' '\n' | cut -c1 | tr -d '\n' >kinds
		is "$(cat kinds)" owx
		chmod -R u+rwx w
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
	for way in fd string page; do
		is "$(inside "sb-overlay-mount -p $way m <ids500; cat m/x")" x
	done
	run -100 --separate-stderr sb-overlay-mount m <ids501
	has "$stderr" "at most 500"
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
