# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Helpers of tests that run jobs.

start() {
	need overlay userns jq
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
	# shellcheck disable=SC2034 # for those who load this
	upper=$SB_STORE/workspace/$s/upper
}

# ex ARG…: sb-exec in the session; its answer goes to $answer, its job to $job.
ex() {
	answer=$(sb-exec -s "$s" "$@" 3>&-)
	job=$(sb-job-ls | grep . | tail -n 1)
}
# of NAME: a member of the answer.
of() { printf %s "$answer" | jq -r ".$1"; }
# later PROG…: the answer of another program.
later() { answer=$("$@" 3>&-); }
row() { later sb-pty-read "$job" && printf %s "$(of output)" | grep -qxF -- "$1"; }
active() { sb-job-ls -r | grep -qxF "$1"; }
over() { ! active "$1"; }
# Processes of the session, its init and the holder of this question aside.
inside() { sb-run "$s" sh -c 'ps -e -o pid=,args= | grep -v " ps -e\| grep \| sh -c ps" | grep -v "^ *1 "'; }
# whole: the answer, with the times W and C, the session S, the job J.
whole() {
	printf %s "$answer" | sed -E 's/("wall_time_seconds":)[0-9]+\.[0-9]{3},/\1W,/
	    s/("command_total_time_seconds":)[0-9]+\.[0-9]{3},/\1C,/
	    s/"namespace_execution_[0-9]+"/"J"/; s/("workspace_session_id":)"[0-9a-f]{22}"/\1"S"/'
}
