# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
# shellcheck disable=SC2030,SC2031 # each test is a subshell
# shellcheck disable=SC2154 # set by run --separate-stderr
# What commands say of what they do: one trace for each, its spans inside each
# other as the programs were, sb-event(5).
bats_require_minimum_version 1.5.0
load lib

log=observability/observability.ndjson

start() {
	need overlay userns jq
	mkdir -p ws; printf 'one\ntwo\nthree\n' >ws/f
	make_store
}

# Forgets what was written before.
anew() { rm -rf "$SB_STORE/observability"; }

# The trees: a line for each span and event, by name; what is inside of a span
# stands below it and further to the right.
tree() {
	jq -rs '
	    def show($all; $depth):
		"\("  " * $depth // "")\(.name)\(if .kind == "event" then " !" elif .status == "completed" then "" else " " + .status end)",
		(.span as $id | if $id then [$all[] | select(.parent == $id)] | sort_by(.name)[] | show($all; $depth + 1) else empty end);
	    . as $all | [.[].span | select(.)] as $ids |
	    [.[] | select(.parent as $p | $ids | index([$p]) | not)] | sort_by(.name)[] | show($all; 0)
	    ' "$SB_STORE/$log"
}

# attrs NAME: the attributes of all that is called so, one object a line.
attrs() { jq -c --arg n "$1" 'select(.name == $n) | .attrs' "$SB_STORE/$log"; }

# Is job $1 over? Settles it, if it was left.
over() { sb-job-ls -v 3>&- | jq -es --arg j "$1" 'any(.[]; .command_session_id == $j and .status != "running")' >/dev/null; }

# Every line is as the page has it, nothing was lost, and all is of one trace.
sound() {
	jq -es --argjson traces "${1:-1}" '
	    all(.[];
		(keys_unsorted == if .kind == "span"
		    then ["kind","ts","trace","span"] + (if .parent then ["parent"] else [] end) + ["name","dur_ms","status","attrs"]
		    else ["kind","ts","trace"] + (if .parent then ["parent"] else [] end) + ["name","attrs"] end) and
		(.ts | type == "number") and (.attrs | type == "object")) and
	    ([.[].span | select(.)] | length == (unique | length)) and
	    ([.[].trace] | unique | length == $traces)' "$SB_STORE/$log" >/dev/null || fail "$(cat "$SB_STORE/$log")" || return
	[ ! -e "$SB_STORE/$log.counts" ] || fail "$(cat "$SB_STORE/$log.counts")"
}

@test "an automatic command: from its session to the layer that it made" {
	start
	sb-exec 'echo x >g; exit 3' >answer 3>&-
	s=$(jq -r .workspace_session_id answer)
	sound
	is "$(tree)" 'command.exec
  namespace.exec.run_shell error
  workspace_session.create
    lease.acquired !
    namespace.runner.spawn_child
      namespace.exec.mount_overlay
  workspace_session.finalize
    layerstack.publish
      lease.acquired !
      lease.released !
    workspace_session.capture_changes
    workspace_session.destroy
      lease.released !'
	is "$(attrs command.exec)" '{"session_created":true,"finalize_policy":"publish_then_destroy"}'
	is "$(attrs workspace_session.create)" '{"finalize_policy":"publish_then_destroy"}'
	is "$(attrs namespace.exec.run_shell)" '{"exit_code":3}'
	is "$(attrs workspace_session.finalize)" '{"workspace_session_id":"'"$s"'","published":true}'
	is "$(attrs layerstack.publish)" '{"base":1,"bytes":2,"revision":2,"no_op":false,"layers_added":1}'
	is "$(attrs lease.acquired)" "$(printf '{"revision":1}\n{"revision":1}')"
	is "$(attrs lease.released)" "$(printf '{"revision":1}\n{"revision":1}')"
}

@test "an automatic command that changed nothing: looked at, and nothing published" {
	start
	sb-exec true >answer 3>&-
	sound
	is "$(tree)" 'command.exec
  namespace.exec.run_shell
  workspace_session.create
    lease.acquired !
    namespace.runner.spawn_child
      namespace.exec.mount_overlay
  workspace_session.finalize
    workspace_session.capture_changes
    workspace_session.destroy
      lease.released !'
	is "$(attrs namespace.exec.run_shell)" '{"exit_code":0}'
	is "$(jq -c .published < <(attrs workspace_session.finalize))" false
}

@test "a session made, used, written to and published: a trace for each command" {
	start
	s=$(sb-session-new)
	is "$(tree)" 'workspace_session.create
  lease.acquired !
  namespace.runner.spawn_child
    namespace.exec.mount_overlay'
	is "$(attrs workspace_session.create)" '{"finalize_policy":"no_op"}'
	sb-exec -s "$s" 'echo x >g' >answer 3>&-
	is "$(attrs command.exec)" '{"session_created":false,"finalize_policy":"no_op"}'
	echo new | sb-file-write -s "$s" h >answer
	sound 3
	anew
	sb-publish "$s" >answer
	sound
	is "$(tree)" 'workspace_session.publish
  layerstack.publish
    lease.acquired !
    lease.released !
  workspace_session.capture_changes
  workspace_session.destroy
    lease.released !'
	is "$(attrs workspace_session.publish)" '{"workspace_session_id":"'"$s"'","no_op":false,"revision":2,"source_count":2,"ignored_count":0,"committed":true,"destroyed":true,"cleanup_outcome":"destroyed"}'
	is "$(attrs layerstack.publish)" '{"base":1,"bytes":6,"revision":2,"no_op":false,"layers_added":1}'
	is "$(attrs workspace_session.capture_changes)$(attrs workspace_session.destroy)" '{}{}'
}

@test "a publish that changed nothing is no layer" {
	start
	s=$(sb-session-new)
	anew
	sb-publish "$s" >answer
	sound
	is "$(attrs layerstack.publish)" '{"base":1,"bytes":0,"revision":1,"no_op":true,"layers_added":0}'
	is "$(attrs workspace_session.publish)" '{"workspace_session_id":"'"$s"'","no_op":true,"revision":1,"source_count":0,"ignored_count":0,"committed":false,"destroyed":true,"cleanup_outcome":"destroyed"}'
}

@test "a refused publish says where, and that the session was kept" {
	start
	s=$(sb-session-new)
	t=$(sb-session-new)
	sb-run "$s" sh -c 'echo mine >f'
	sb-run "$t" sh -c 'echo other >f'
	sb-publish "$t" >answer
	anew
	run -2 sb-publish "$s"
	sound
	is "$(tree)" 'workspace_session.publish error
  layerstack.publish error
    lease.acquired !
    lease.released !
  workspace_session.capture_changes'
	is "$(attrs workspace_session.publish)" '{"workspace_session_id":"'"$s"'","stage":"publish","session_retained":true}'
	is "$(attrs layerstack.publish)" '{"base":1,"bytes":5,"reason":"manifest_conflict"}'
}

@test "a publish that is busy is an error; one that waited in vain timed out" {
	start
	s=$(sb-session-new)
	sb-exec -s "$s" -y 0 'sleep 1000' >answer 3>&-
	anew
	run -98 sb-publish "$s"
	is "$(tree)" 'workspace_session.publish error'
	run -98 sb-session-end "$s"
	sb-job-kill "$(jq -r .command_session_id answer)"
	anew
	run -99 sb-session-gate -x "$s" sb-publish -t 1 "$s"
	is "$(tree)" 'workspace_session.publish timed_out'
}

@test "an automatic publish that is refused: an event says why, the session is kept" {
	start
	sb-exec -y 0 'until [ -e go ]; do sleep 0.02; done; echo mine >f' >answer 3>&-
	s=$(jq -r .workspace_session_id answer) j=$(jq -r .command_session_id answer)
	echo other | sb-file-write f >out
	anew
	sb-run "$s" touch go
	sb-job-wait "$j"
	sound
	is "$(tree)" 'namespace.exec.run_shell
workspace_session.finalize error
  layerstack.publish error
    lease.acquired !
    lease.released !
  workspace_session.capture_changes
  workspace_session.finalize.publish_failed !'
	is "$(attrs workspace_session.finalize)" '{"workspace_session_id":"'"$s"'","published":false,"publish_reject_class":"source_conflict","recovery_preserved":true}'
	is "$(jq -c 'del(.detail)' < <(attrs workspace_session.finalize.publish_failed))" '{"workspace_session_id":"'"$s"'","reject_class":"source_conflict"}'
	has "$(attrs workspace_session.finalize.publish_failed)" '"detail":"'
}

@test "a job that is killed was cancelled, one that took too long timed out" {
	start
	s=$(sb-session-new)
	anew
	sb-exec -s "$s" -y 0 'sleep 1000' >answer 3>&-
	sb-job-kill "$(jq -r .command_session_id answer)"
	sb-job-wait "$(jq -r .command_session_id answer)" || :
	sound
	is "$(tree)" 'command.exec
  namespace.exec.run_shell cancelled'
	is "$(attrs namespace.exec.run_shell)" '{"exit_code":130}'
	anew
	sb-exec -s "$s" -t 1 -y 60000 'sleep 1000' >answer 3>&-
	is "$(tree)" 'command.exec
  namespace.exec.run_shell timed_out'
	is "$(attrs namespace.exec.run_shell)" '{"exit_code":124}'
}

@test "of a job whose process is killed, who settles it tells" {
	start
	sb-exec -y 0 'echo x >g; touch there; sleep 1000' >answer 3>&-
	s=$(jq -r .workspace_session_id answer) j=$(jq -r .command_session_id answer)
	eventually [ -e "$SB_STORE/workspace/$s/upper/there" ]
	kill -KILL "$(job_process "$j")"
	eventually over "$j"
	sound
	is "$(tree)" 'command.exec
  namespace.exec.run_shell cancelled
  workspace_session.create
    lease.acquired !
    namespace.runner.spawn_child
      namespace.exec.mount_overlay
  workspace_session.finalize
    layerstack.publish
      lease.acquired !
      lease.released !
    workspace_session.capture_changes
    workspace_session.destroy
      lease.released !'
	is "$(attrs namespace.exec.run_shell)" '{}'
}

@test "so does sb-exec, of the job for which it waits" {
	start
	s=$(sb-session-new)
	anew
	sb-exec -s "$s" -y 60000 'touch there; sleep 1000' >answer 3>&- &
	pid=$!
	eventually [ -e "$SB_STORE/workspace/$s/upper/there" ]
	kill -KILL "$(job_process namespace_execution_1)"
	wait "$pid" || :
	sound
	is "$(tree)" 'command.exec
  namespace.exec.run_shell cancelled'
}

@test "files of a session and of head" {
	start
	s=$(sb-session-new)
	anew
	sb-file-read -s "$s" f >out
	sb-file-list -s "$s" >out
	echo '[{"old_string":"two","new_string":"2"}]' | sb-file-edit -s "$s" f >out
	run -1 sb-file-read -s "$s" no
	is "$(tree)" 'namespace.exec.file_op
namespace.exec.file_op
namespace.exec.file_op
namespace.exec.file_op error'
	sound 4
	anew
	printf 'abc' | sb-file-write new >out
	sound
	is "$(tree)" 'layerstack.publish
  lease.acquired !
  lease.released !'
	is "$(attrs layerstack.publish)" '{"base":1,"bytes":3,"revision":2,"no_op":false,"layers_added":1}'
	anew
	printf 'abc' | sb-file-write new >out
	is "$(attrs layerstack.publish)" '{"base":2,"bytes":0,"revision":2,"no_op":true,"layers_added":0}'
	anew
	sb-file-read new >out
	[ ! -e "$SB_STORE/observability" ]
}

@test "a trace that is given goes on, through all that is started, but for commands" {
	start
	export SB_TRACE=req-7 SB_SPAN=gate-3
	sb-exec 'env | grep ^SB_ >env' >answer 3>&-
	sb-file-read f >out
	unset SB_TRACE SB_SPAN
	is "$(jq -r .trace "$SB_STORE/$log" | sort -u)" req-7
	is "$(jq -r 'select(.parent == "gate-3") | .name' "$SB_STORE/$log")" "$(printf 'command.exec\nlease.acquired\nlease.released')"
	is "$(sb-stack-show | sb-layer-cat env | cut -d= -f1 | sort | tr '\n' ' ')" "SB_JOB SB_SESSION "
}

@test "what cannot be written is left out and counted, and nobody notices" {
	start
	need strace
	s=$(sb-session-new)
	sb-run "$s" sh -c 'echo x >g'
	before=$(<"$SB_STORE/$log")
	# As if somebody else was writing each time.
	run -0 strace -f -qq -o /dev/null -P "$SB_STORE/$log.lock" -e trace=fcntl -e inject=fcntl:error=EAGAIN sb-publish "$s"
	has "$output" '"manifest_version":2'
	is "$(<"$SB_STORE/$log")" "$before"
	is "$(awk '{ n += $2 } END { print $1, n }' "$SB_STORE/$log.counts")" "busy 7"
	x=$(sb-session-new)
	sb-session-end "$x"
	[ "$(wc -l <"$SB_STORE/$log")" -gt "$(wc -l <<<"$before")" ]
}

@test "a directory that cannot be used, or is missing, changes nothing" {
	start
	s=$(sb-session-new)
	anew
	ln -s /dev/null "$SB_STORE/observability"
	sb-run "$s" sh -c 'echo x >g'
	run -0 --separate-stderr sb-publish "$s"
	is "$stderr" ""
	rm "$SB_STORE/observability"
	mkdir -m 700 "$SB_STORE/observability"
	ln -s /dev/full "$SB_STORE/$log"
	run -0 --separate-stderr sb-exec true 3>&-
	is "$stderr" ""
	[ "$(awk '/^storage /{ n += $2 } END { print n }' "$SB_STORE/$log.counts")" -gt 0 ]
	SB_EVENTS=$T/no/where run -0 --separate-stderr sb-exec true 3>&-
	is "$stderr" ""
	SB_EVENTS=$T/there run -0 --separate-stderr sb-exec true 3>&-
	[ -s "$T/there/observability.ndjson" ]
}

@test "by the settings nothing is written, or less" {
	start
	echo 'observability.enabled false' >"$SB_STORE/conf"
	sb-exec true >answer 3>&-
	[ ! -e "$SB_STORE/observability" ]
	echo 'observability.max_line_bytes 200' >"$SB_STORE/conf"
	sb-exec true >answer 3>&-
	[ "$(awk 'length >= 200' "$SB_STORE/$log" | wc -l)" = 0 ]
	[ -s "$SB_STORE/$log.counts" ]
}

@test "it costs a process one write" {
	start
	need strace
	s=$(sb-session-new)
	sb-run "$s" sh -c 'echo x >g'
	strace -f -qq -y -e signal=none -e trace=write,fsync,fdatasync,fcntl -o calls sb-publish "$s" >answer 3>&-
	grep -F "$log" calls >ours
	is "$(grep -c 'write(.*ndjson>' ours)" 2
	is "$(grep -c 'ndjson.lock>.*F_OFD_SETLK,' ours)" 2
	is "$(grep -cE 'sync|F_OFD_SETLKW|counts' ours)" 0
}
