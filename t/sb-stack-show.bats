# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# list FILE VERSION ID…
list() {
	local file=$1 version=$2 sep=
	shift 2
	{
		printf '{"layers":['
		for id; do
			printf '%s{"layer_id":"%s","path":"layers/%s"}' "$sep" "$id" "$id"
			sep=,
		done
		printf '],"schema_version":1,"version":%s}' "$version"
	} >"$file"
}

setup() {
	sb_setup
	sb-store-init
	M=$SB_STORE/layer-stack/manifest.json
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-stack-show x
	run -100 sb-stack-show -x
	run -100 sb-stack-show -l
	run -0 sb-stack-show -h
	is "$output" "usage: sb-stack-show [-av] [-l file]"
}

@test "layers are listed newest first" {
	list "$M" 3 L000003-00000001 L000002-00000000 B000001-base
	sb-stack-show >out
	same out <(ids L000003-00000001 L000002-00000000 B000001-base)
}

@test "-a leaves the base out, -v puts the version first" {
	list "$M" 3 L3 B000001-base
	sb-stack-show -a >out
	same out <(ids L3)
	sb-stack-show -v >out
	same out <(ids 3 L3 B000001-base)
	sb-stack-show -av >out
	same out <(ids 3 L3)
}

@test "a store without a manifest has an empty stack of version 0" {
	sb-stack-show >out
	same out <(ids0)
	sb-stack-show -v >out
	same out <(ids 0)
}

@test "-l reads another manifest, by any name" {
	local odd=$'-a b\n\xff'
	list "$M" 3 L3 B000001-base
	list "$odd" 2 L2
	sb-stack-show -v -l "$odd" >out
	same out <(ids 2 L2)
	SB_STORE='' sb-stack-show -l "$odd" >out
	same out <(ids L2)
}

@test "-l needs a file that is there and no link" {
	run -111 --separate-stderr sb-stack-show -l none
	has "$stderr" "none"
	is "$output" ""
	list file 2 L2
	ln -s file link
	run -111 sb-stack-show -l link
}

@test "what is no manifest is 111, names the fault and prints nothing" {
	local path
	printf '{"layers":[],"schema_version":2,"version":1}' >"$M"
	run -111 --separate-stderr sb-stack-show
	is "$output" ""
	has "$stderr" schema_version
	for path in '' ../outside /abs/layer 'a\u0000b'; do
		printf '{"layers":[{"layer_id":"L1","path":"%s"}],"version":1}' "$path" >"$M"
		run -111 --separate-stderr sb-stack-show
		is "$output" ""
		has "$stderr" "layer path"
	done
	head -c 100000 /dev/urandom >"$M"
	run -111 sb-stack-show
}

@test "a full disk, a closed stdout and a missing store" {
	list "$M" 1 B1
	run -111 sh -c 'sb-stack-show >/dev/full'
	run -111 sh -c 'sb-stack-show >&-'
	SB_STORE=$T/none run -111 sb-stack-show
	SB_STORE='' run -100 sb-stack-show
}
