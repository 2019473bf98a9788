# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "a store without a base is 100 and leaves nothing" {
	sb-store-init
	run -100 --separate-stderr sb-session-new
	has "$stderr" sb-base-import
	is "$(ls -A "$SB_STORE/workspace")" ""
}

@test "the id is 22 hexadecimal digits, never the same" {
	need overlay userns
	make_store
	for i in 1 2 3; do sb-session-new; done >ids
	is "$(grep -cE '^[0-9a-f]{22}$' ids)" 3
	is "$(sort -u ids | wc -l)" 3
}

@test "the upperdir has mode, owner and xattrs of what it covers" {
	need overlay userns xattr
	mkdir ws; chmod 2750 ws; setfattr -n user.k -v v ws
	make_store
	s=$(sb-session-new)
	is "$(stat -c '%a %u' "$SB_STORE/workspace/$s/upper")" "2750 $(id -u)"
	is "$(sb-run "$s" stat -c %a .)" 2750
	is "$(getfattr --only-values -n user.k "$SB_STORE/workspace/$s/upper")" v
}

@test "a holder that cannot start leaves no session" {
	need overlay userns
	make_store
	mkdir bin; printf '#!/bin/sh\nexit 1\n' >bin/sb-session-setup; chmod +x bin/sb-session-setup
	PATH=$T/bin:$PATH run -111 sb-session-new
	is "$(ls -A "$SB_STORE/workspace")" ""
}

@test "a session over what was published sees it, an older one does not" {
	need overlay userns
	make_store
	a=$(sb-session-new); b=$(sb-session-new)
	sb-run "$a" sh -c 'echo 1 >n'
	sb-publish "$a"
	c=$(sb-session-new)
	is "$(sb-run "$c" ls)" n
	is "$(sb-run "$b" ls)" ""
}

@test "a closed stdout is 111 and leaves no session" {
	need overlay userns
	make_store
	run -111 bash -c 'sb-session-new >/dev/full'
	is "$(sb-session-ls)" ""
}

@test "-v prints one object, -N is an error" {
	need overlay userns jq
	make_store
	sb-session-new -v >out
	is "$(jq -c 'del(.workspace_session_id)' out)" '{"network_profile":"shared","finalize_policy":"no_op"}'
	is "$(jq -r .workspace_session_id out)" "$(sb-session-ls | head -n 1)"
	run -111 --separate-stderr sb-session-new -N
	has "$output" '"kind":"operation_failed"'
	is "$(sb-session-ls | grep -c .)" 1
}
