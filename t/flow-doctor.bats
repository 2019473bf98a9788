# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# What the doctor says is true: where it is content, a session works.

@test "where the doctor is content, a session can be had" {
	need jq overlay userns xattr
	sb-doctor -j | jq -c '[.ok, ([.checks[] | select(.group == "required" and (.ok | not))] | length)]' >out
	is "$(cat out)" "[true,0]"
	make_store
	s=$(sb-session-new)
	sb-run "$s" sh -c 'echo hello >f'
	sb-publish "$s" >out
	is "$(sb-stack-show | sb-layer-cat f)" hello
}
