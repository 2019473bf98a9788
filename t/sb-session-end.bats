# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

@test "ending drops changes and the directory; twice is 1" {
	start
	sb-run "$s" sh -c 'echo 2 >f'
	sb-session-end "$s"
	is "$(ls -A "$SB_STORE/workspace")" ""
	is "$(sb-stack-version)" 1
	run -1 sb-session-end "$s"
	run -1 sb-session-end ../..
}

@test "killed midway, the next end of any session removes the rest" {
	need strace
	start
	t=$(sb-session-new)
	sb-run "$s" sh -c 'mkdir -p a/b; echo 1 >a/b/c'
	FOLLOW='' kill_at unlinkat 2 sb-session-end "$s" 2>/dev/null || :
	is "$(sb-session-ls | head -n 1)" "$t"
	[ -n "$(ls -A "$SB_STORE/workspace" | grep '^\.end')" ]
	sb-session-end "$t"
	is "$(ls -A "$SB_STORE/workspace")" ""
}

@test "eight ends at once: who waited while one ended it has its success, who came later finds none" {
	start
	for i in 1 2 3 4 5 6 7 8; do
		(rc=0; sb-session-end -t 5000 "$s" >/dev/null 2>&1 || rc=$?; echo $rc) >rc.$i 3>&- &
	done
	wait
	[ "$(cat rc.* | grep -cx 0)" -ge 1 ]
	is "$(cat rc.* | grep -cvx '[01]' || :)" 0
}

@test "-v prints what was thrown away, or an error object" {
	start
	sb-run "$s" sh -c 'mkdir -p d/e; printf 12345 >d/e/x; printf 123 >f; ln -s f l'
	is "$(sb-session-end -v "$s")" '{"workspace_session_id":"'"$s"'","destroyed":true,"evicted_upperdir_bytes":8}'
	run -1 --separate-stderr sb-session-end -v "$s"
	is "$output" '{"error":{"kind":"operation_failed","message":"workspace session not found: '"$s"'","details":{"workspace_session_id":"'"$s"'"}}}'
}

@test "an end that fails leaves a session that nobody takes for ended" {
	need strace
	start
	sb-run "$s" sh -c 'echo x >x'
	FOLLOW='' run -111 fault_at renameat 1 EIO sb-session-end "$s"
	has "$output" "unable to remove session $s"
	is "$(stat -c %a "$SB_STORE/workspace/$s")" 700
	is "$(sb-run "$s" cat x)" x
	sb-session-end "$s"
}
