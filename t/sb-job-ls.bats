# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "an empty list, wrong arguments, a missing store" {
	make_store
	is "$(sb-job-ls; echo .)" $'\n.'
	is "$(sb-job-ls -v)" '{}'
	run -100 sb-job-ls x
	SB_STORE=$T/no run -111 sb-job-ls
}

@test "jobs by session and state, with what they run" {
	need overlay userns jq
	mkdir -p ws; make_store
	s=$(sb-session-new) t=$(sb-session-new)
	sb-exec -s "$s" -y 60000 'exit 3' >out 3>&-
	sb-exec -s "$t" -y 0 sleep 1000 >out 3>&-
	is "$(sb-job-ls | tr '\n' ' ')" 'namespace_execution_1 namespace_execution_2  '
	is "$(sb-job-ls -r | tr '\n' ' ')" 'namespace_execution_2  '
	is "$(sb-job-ls -s "$s" | tr '\n' ' ')" 'namespace_execution_1  '
	is "$(sb-job-ls -v -s "$t" | head -n 1 | jq -r '[.status, .exit_code, .command, .workspace_session_id, .mode] | @csv')" \
	    '"running",,"sleep 1000","'"$t"'","pty"'
	is "$(sb-job-ls -v -s "$s" | head -n 1 | jq -r '[.status, .exit_code, .command] | @csv')" '"error",3,"exit 3"'
	run -111 bash -c 'sb-job-ls >/dev/full'
}
