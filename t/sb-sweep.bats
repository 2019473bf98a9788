# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns jq
	mkdir -p ws; echo base >ws/f
	make_store
}
of() { printf %s "$answer" | jq -r ".$1"; }
# Automatic sessions that nobody has begun with are left alone for a minute.
age() {
	local s
	for s; do touch -d '2 minutes ago' "$SB_STORE/workspace/$s/auto"; done
}
gone() { [ ! -e "$SB_STORE/workspace/$1" ]; }

@test "an empty store: nothing, and the full stop; operands are refused; a full disk is 111" {
	make_store
	is "$(sb-sweep | od -An -c)" "$(echo | od -An -c)"
	run -100 --separate-stderr sb-sweep x
	has "$stderr" usage
	run -111 bash -c 'sb-sweep >/dev/full'
	SB_STORE=$T/no run -111 sb-sweep
}

@test "what lives is left alone: jobs, sessions that run or are parked, a session that is being made" {
	start
	a=$(sb-session-new) b=$(sb-session-new)
	sb-ns-kill "$b"
	answer=$(sb-exec -y 0 'echo 1 >one; sleep 1000' 3>&-)
	auto=$(of workspace_session_id) job=$(of command_session_id)
	c=$(sb-session-new -a) d=$(sb-session-new -a)
	age "$c"
	mkfifo go
	sb-session-gate "$c" sh -c 'echo in >in; read x <go' 3>&- &
	eventually [ -s in ]
	is "$(sb-sweep)" ""
	is "$(sb-session-ls | sort | tr -d '\n')" "$(printf '%s\n' "$a" "$b" "$c" "$d" "$auto" | sort | tr -d '\n')"
	is "$(sb-job-ls -r | tr -d '\n')" "$job"
	echo >go
	wait
	is "$(sb-sweep)" "$c"
	gone "$c"
	[ -d "$SB_STORE/workspace/$d" ]
	is "$(sb-exec -y 60000 -s "$d" 'echo d' 3>&- | jq -r .output)" d
	sb-job-kill "$job"
}

@test "an automatic session without a job is ended, or published when it has changes" {
	start
	a=$(sb-session-new -a) b=$(sb-session-new -a)
	sb-run "$b" sh -c 'echo b >b'
	sb-ns-kill "$b"
	age "$a" "$b"
	is "$(sb-sweep | sort | tr '\n' ' ')" "$(printf '\n%s\n%s\n' "$a" "$b" | sort | tr '\n' ' ')"
	gone "$a" && gone "$b"
	is "$(sb-stack-version)" 2
	is "$(sb-stack-show | sb-layer-cat b)" b
}

@test "one whose publish is refused is kept, and that is said once" {
	start
	a=$(sb-session-new -a)
	sb-run "$a" sh -c 'echo mine >f'
	age "$a"
	sb-exec -y 60000 'echo theirs >f' 3>&- >out
	run -0 --separate-stderr sb-sweep
	is "$output" "$a"
	has "$stderr" "session $a is kept: it could not be published (source_conflict)"
	is "$(sb-session-ls -v | head -n 1 | jq -c '[.state,.finalize_policy,.conflicted]')" '["parked","no_op",true]'
	run -0 --separate-stderr sb-sweep
	is "$output$stderr" ""
}

@test "a job whose process was killed gets its end, and its session is published" {
	start
	answer=$(sb-exec -y 0 'echo kept >k; sleep 1000' 3>&-)
	auto=$(of workspace_session_id) job=$(of command_session_id)
	eventually [ -s "$SB_STORE/workspace/$auto/upper/k" ]
	kill -KILL "$(job_process "$job")"
	swept() { sb-sweep | grep -qxF "$job"; }
	eventually swept
	gone "$auto"
	is "$(sb-stack-show | sb-layer-cat k)" kept
	answer=$(sb-pty-read "$job")
	is "$(of status) $(of publish_rejected)" "error null"
}

@test "an automatic session that has lost its lease in a crash of the machine never was" {
	start
	a=$(sb-session-new -a)
	sb-ns-kill "$a"
	: >"$SB_STORE/workspace/$a/lease"
	age "$a"
	# It pins nothing, and hinders nothing.
	sb-stack-unused | sb-layer-rm >out
	is "$(sb-sweep)" "$a"
	gone "$a"
}

@test "beginnings and ends, half made jobs, leases, tickets and staging are swept" {
	start
	S=$SB_STORE/layer-stack
	mkdir -p "$SB_STORE/workspace/.new.x/upper" "$SB_STORE/workspace/.end.y/upper/d" \
	    "$SB_STORE/jobs/.new" "$S/leases/dead" "$S/staging/L000009-00000000.staging/d"
	touch "$S/leases/dead/lock" "$S/queue/7" "$S/staging/L000009-00000000.lock"
	is "$(sb-sweep)" ""
	is "$(ls -A "$SB_STORE/workspace" "$S/leases" "$S/queue" "$S/staging" | grep -v ':$' | tr -d '\n')" ""
	[ ! -e "$SB_STORE/jobs/.new" ]
}

@test "what cannot be swept is named, and the rest is swept: 111" {
	start
	a=$(sb-session-new -a) b=$(sb-session-new)
	sb-ns-kill "$b"
	age "$a"
	cp "$SB_STORE/workspace/$b/lease" good
	echo garbage >"$SB_STORE/workspace/$b/lease"
	run -111 --separate-stderr sb-sweep
	is "$output" "$a"
	has "$stderr" "$b/lease"
	gone "$a"
	cp good "$SB_STORE/workspace/$b/lease"
	run -0 sb-sweep
}

@test "sweeps beside each other end each thing once" {
	start
	for _ in 1 2 3 4; do sb-session-new -a; done >ids
	while read -r s; do sb-run "$s" sh -c "echo x >n$s"; age "$s"; done <ids
	for k in 1 2 3 4; do sb-sweep >"swept$k" 2>"said$k" 3>&- & done
	wait
	is "$(cat swept? | grep . | sort)" "$(sort ids)"
	is "$(cat said?)" ""
	is "$(sb-session-ls)" ""
	is "$(sb-stack-version)" 5
}
