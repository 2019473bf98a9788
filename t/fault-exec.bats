# SPDX-License-Identifier: MIT
# kill -9 and errors at the calls of a command as a job, of all its programs, in
# an automatic session and in an explicit one: what the command did is published
# exactly once, or the session is kept and named; after a sweep nothing is left.
#
# There are more calls than one wants to wait for: of each loop a sample is
# tried, another one with each SB_SEED; SB_FAULTS=all tries every call.
bats_require_minimum_version 1.5.0
load lib
load fault
load exec

# The command is no shell, whose own errors would be misread: it copies f to n,
# and when it says that it did, it did.
template() {
	need overlay userns strace jq
	mkdir -p ws
	echo base >ws/f
	make_store
	sb-sweep >out
	holds | grep -v ^jobs >names
}

# sample N: sets at to the calls of N to try.
sample() {
	local k step=$((($1 + SAMPLE - 1) / SAMPLE))
	[ "${SB_FAULTS:-}" != all ] || step=1
	seed=${SB_SEED:-$RANDOM}
	RANDOM=$seed
	at=()
	for ((k = 1 + RANDOM % step; k <= $1; k += step)); do at+=("$k"); done
}
SAMPLE=60

nobody() { [ -z "$(sb-job-ls -r 2>/dev/null)" ]; }
still() { [ -z "$(our_processes "$SB_STORE")" ]; }
leaves() {
	find /sys/fs/cgroup -name "sbjob-$(printf '%s-%x' "$(stat -c %D "$SB_STORE/jobs")" "$(stat -c %i "$SB_STORE/jobs")")-*" 2>/dev/null
}
# What is known of jobs that do not end.
stuck() {
	sb-job-ls -rv 2>&1
	tail "$SB_STORE"/jobs/*/messages "$SB_STORE"/jobs/*/ended 2>&1
	our_processes "$SB_STORE" | while read -r p; do
		echo "$p $(tr '\0' ' ' <"/proc/$p/cmdline") $(cat "/proc/$p/wchan")"
	done
}
# The shell that calls it was started with another store than this round's.
swept() {
	# What was begun has had its minute.
	find "$SB_STORE/workspace" -mindepth 2 -maxdepth 2 -name auto -exec touch -d '2 minutes ago' {} +
	sb-sweep >swept 2>>said || return
	[ -z "$(leaves)" ]
}

answered() { # the answer says that all is well
	[ "$rc" = 0 ] && [ "$(jq -r '[.status,.exit_code,.publish_rejected,.finalization_failed]|@csv' out)" = '"ok",0,,' ]
}

# What is left when all is done: f and n, once, or nothing at all.
auto_is_whole() {
	local kept n v
	: >said
	eventually nobody || fail "$(stuck)" || return
	eventually swept || return
	# A session is kept only if somebody said so; nothing of it is lost.
	for kept in $(sb-session-ls); do
		cat out err said | grep -qF "$kept" || fail "session $kept is kept, and nobody said so" || return
		sb-publish -t 30000 "$kept" >again 2>&1 || fail "kept: exit $?: $(cat again)" || return
	done
	eventually still || return
	v=$(sb-stack-version)
	[ "$v" -le 2 ] || fail "published $((v - 1)) times" || return
	n=$(sb-stack-show | sb-layer-cat n 2>/dev/null) || [ "$v" = 1 ] || fail "published without n" || return
	# Whoever asks later is told the same.
	if answered || sb-job-ls -v | jq -e 'select(.exit_code == 0)' >ok; then
		is "$v $n" "2 base" || return
	fi
	sb-stack-show | sb-layer-check >bad 2>&1 || fail "$(cat bad)" || return
	sb-sweep >swept 2>&1 || fail "sweep: $(cat swept)" || return
	holds | grep -v ^jobs | sed '/\/ID/d; /history\/main/d' >left
	diff "$T/names" left >differ || fail "left: $(cat differ)" || return
	[ ! -e "$SB_STORE/jobs/.new" ] && is "$(leaves)" ""
}

auto_killed() {
	rc=0
	new_round
	inject -d -n "${at[$1 - 1]}" -o rec sb-exec -y 60000 cp f n >out 2>err || rc=$?
	auto_is_whole
}

auto_fails() {
	rc=0
	new_round
	inject -d -e $error -n "${at[$1 - 1]}" -o rec sb-exec -y 60000 cp f n >out 2>err || rc=$?
	[ "$rc" = 0 ] || [ -s err ] || fail "exit $rc without a word" || return
	auto_is_whole
}

auto_start() {
	template
	keep_template
	new_round
	inject -d -o rec sb-exec -y 60000 cp f n >out
	answered || fail "$(cat out)"
	rc=0
	eventually still
	sample "$(wc -l <rec)"
	calls=$(wc -l <rec)
}

@test "sb-exec in an automatic session, a program killed at any call: published once, or kept and named" {
	local rc=0
	auto_start
	rounds "SB_SEED=$seed: killed" ${#at[@]} auto_killed
	echo "# SB_SEED=$seed: killed at ${#at[@]} of $calls calls" >&3
}

@test "sb-exec in an automatic session, ENOSPC at any call: published once, or kept and named" {
	local rc=0 error=ENOSPC
	auto_start
	rounds "SB_SEED=$seed: $error" ${#at[@]} auto_fails
	echo "# SB_SEED=$seed: $error at ${#at[@]} of $calls calls" >&3
}

@test "sb-exec in an automatic session, EIO at any call: published once, or kept and named" {
	local rc=0 error=EIO
	auto_start
	rounds "SB_SEED=$seed: $error" ${#at[@]} auto_fails
	echo "# SB_SEED=$seed: $error at ${#at[@]} of $calls calls" >&3
}

# Who enters a session and leaves a keeper there says so in a few messages.
told() {
	rc=0
	new_round
	inject -d -p sb-pty-run -n "${at[$1 - 1]}" -o rec sb-exec -y 60000 cp f n >out 2>err || rc=$?
	auto_is_whole
}

@test "a job whose parts are killed before they could tell each other of themselves ends all the same" {
	local rc=0
	template
	keep_template
	new_round
	inject -d -p sb-pty-run -o rec sb-exec -y 60000 cp f n >out
	eventually still
	mapfile -t at < <(sed -n 's/ .* sendmsg$//p' rec)
	[ ${#at[@]} -ge 4 ]
	rounds told ${#at[@]} told
}

# ---- explicit ----

# What session $s shows, once a holder that was starting has got ready.
shown() {
	local rc
	for _ in {1..500}; do
		rc=0
		sb-run "$s" cat "$1" 2>busy || rc=$?
		[ $rc = 98 ] || break
		sleep 0.02
	done
	[ $rc = 0 ] || cat busy
}

explicit_is_whole() {
	: >said
	eventually nobody || fail "$(stuck)" || return
	eventually swept || return
	is "$(sb-session-ls)" "$s" && is "$(shown f)" mine || return
	if answered || sb-job-ls -v | jq -e 'select(.exit_code == 0)' >ok; then
		is "$(shown n)" mine || return
	fi
	is "$(sb-stack-version)" 1 && is "$(cat said)" "" || return
	sb-session-end -t 30000 "$s" && eventually still || return
	holds | grep -v ^jobs >left
	diff "$T/names" left >differ || fail "left: $(cat differ)" || return
	[ ! -e "$SB_STORE/jobs/.new" ] && is "$(leaves)" ""
}

explicit_start() {
	template
	s=$(sb-session-new)
	sb-run "$s" sh -c 'echo mine >f'
	sb-ns-kill "$s"
	eventually still
	keep_template
	new_round
	rc=0
	inject -d -o rec sb-exec -s "$s" -y 60000 cp f n >out
	answered || fail "$(cat out)"
	sb-session-end -t 30000 "$s"
	eventually still
	sample "$(wc -l <rec)"
	calls=$(wc -l <rec)
}

explicit_killed() {
	rc=0
	new_round
	inject -d -n "${at[$1 - 1]}" -o rec sb-exec -s "$s" -y 60000 cp f n >out 2>err || rc=$?
	explicit_is_whole
}

explicit_fails() {
	rc=0
	new_round
	inject -d -e $error -n "${at[$1 - 1]}" -o rec sb-exec -s "$s" -y 60000 cp f n >out 2>err || rc=$?
	[ "$rc" = 0 ] || [ -s err ] || fail "exit $rc without a word" || return
	explicit_is_whole
}

@test "sb-exec in an explicit session, a program killed at any call: the session stays whole" {
	local rc=0
	explicit_start
	rounds "SB_SEED=$seed: killed" ${#at[@]} explicit_killed
	echo "# SB_SEED=$seed: killed at ${#at[@]} of $calls calls" >&3
}

@test "sb-exec in an explicit session, ENOSPC and EIO at any call: the session stays whole" {
	local rc=0 error SAMPLE=40
	explicit_start
	for error in ENOSPC EIO; do
		rounds "SB_SEED=$seed: $error" ${#at[@]} explicit_fails
	done
	echo "# SB_SEED=$seed: ENOSPC and EIO at ${#at[@]} of $calls calls" >&3
}

# Everything, to the last block; what was freed is free after a sync.
fill_up() {
	local n
	sync -f small
	for n in 64k 4k 512; do dd if=/dev/zero of=small/fill.$n bs=$n 2>/dev/null || :; done
}
# gap: log.gap of the job.
gap() { tr -s ' 0' ' 0' <"$SB_STORE/jobs/$job/log.gap" | sed -E 's/\b0+([0-9])/\1/g'; }

@test "output while the disk is full is a gap: what comes later stands where it was printed; a tail is missed too" {
	need root overlay userns jq
	truncate -s 24M image
	mkfs.ext4 -q -F -m 0 image
	mkdir small ws
	mount -o loop image small 2>/dev/null || skip "no loop devices"
	SB_STORE=$T/small/store
	make_store
	printf 'runtime.namespace_execution.max_transcript_window_bytes 4194304\n' >"$SB_STORE/conf"
	s=$(sb-session-new)
	mkfifo "$SB_STORE/workspace/$s/upper/go"
	printed() { [ "$(sb-pty-read -r "$job" 2>/dev/null | tail -c 3)" = "$1" ]; }
	lost() { [ "$(gap)" != "0 0" ] && [ "$(cut -d' ' -f2 <"$SB_STORE/jobs/$job/log.gap" | sed 's/^0*//')" = "$1" ]; }
	seq 20000 >all; seq 20001 40000 >>all; seq 40001 60000 >>all; echo END >>all
	# shellcheck disable=SC2016 # for the shell of the command
	ex -P -y 0 'seq 20000; read x <go; seq 20001 40000; read x <go; seq 40001 60000; echo END'
	eventually printed 00
	fill_up
	sb-run "$s" sh -c 'echo >go'
	eventually lost 228894
	rm small/fill.*
	sb-run "$s" sh -c 'echo >go'
	eventually printed ND
	from=$(gap); from=${from% *}
	[ "$from" -ge 108894 ] && [ "$from" -lt 228894 ]
	sb-pty-read -r "$job" >got 2>words
	has "$(cat words)" "bytes $from to 228893 were not kept"
	(head -c "$from" all; tail -c +228895 all) | cmp - got
	sb-pty-read -r -o 228894 "$job" | cmp - <(tail -c +228895 all)
	for how in '' -R; do
		# shellcheck disable=SC2086 # nothing or one word
		later sb-pty-read $how -o 40000 "$job"
		is "$(of '|.output|split("\n")|.[0]')" 40001
		# shellcheck disable=SC2086
		later sb-pty-read $how -o 19990 "$job"
		[ "$(of dropped_lines)" -gt 1000 ]
		is "$(of total_lines)" 60001
	done
	# Now to the end.
	ex -P -y 0 'seq 20000; read x <go; seq 20001 40000'
	eventually printed 00
	fill_up
	sb-run "$s" sh -c 'echo >go'
	eventually lost 228894
	eventually over "$job"
	from=$(gap); from=${from% *}
	later sb-pty-read -R -o 19990 "$job"
	is "$(of total_lines)" 40000
	[ "$(of dropped_lines)" -gt 15000 ]
	sb-pty-read -r "$job" >got 2>words
	head -c "$from" all | cmp - got
	has "$(cat words)" "bytes $from to 228893 were not kept"
	rm small/fill.*
	is "$(sb-pty-read "$job" | jq -r .message)" "unable to keep all output: No space left on device"
	sb-session-end "$s"
	umount small
}

# ---- a full disk ----

fill() { for n in 64k 4k 512; do dd if=/dev/zero of="small/$1.$n" bs=$n 2>/dev/null || :; done; }

@test "on a file system that is really full a job's end is known, and can be asked; with room again it is published" {
	need root overlay userns jq
	truncate -s 24M image
	mkfs.ext4 -q -F -m 0 image
	mkdir -p small ws
	echo base >ws/f
	mount -o loop image small 2>/dev/null || skip "no loop devices"
	export SB_STORE=$T/small/store
	sb-store-init
	sb-base-import ws >/dev/null
	for how in ends killed; do
		sb-exec -y 0 "echo $how >$how; echo ready; read x; exit 7" >out 3>&-
		a=$(jq -r .workspace_session_id out) job=$(jq -r .command_session_id out)
		eventually [ -s "$SB_STORE/workspace/$a/upper/$how" ]
		fill fill
		if [ $how = killed ]; then
			kill -KILL "$(job_process "$job")"
		else
			echo | sb-pty-feed "$job" >fed 2>&1 3>&- || :
		fi
		sb-job-wait -t 60000 "$job" >answer 2>said || fail "$how: $(cat answer said)"
		is "$how $(jq -c '[.status,.exit_code]' answer)" "$how $([ $how = killed ] && echo '["error",null]' || echo '["error",7]')"
		sb-job-ls -v >list 2>>said
		is "$(grep "\"$job\"" list | jq -r .status)" error
		rm small/fill.*
		touch -d '2 minutes ago' "$SB_STORE/workspace/$a/auto" 2>/dev/null || :
		sb-sweep >swept 2>>said
		# Refused once, it is kept, and nothing is lost.
		[ ! -d "$SB_STORE/workspace/$a" ] || sb-publish "$a" >out
		is "$(sb-stack-show | sb-layer-cat $how)" $how
	done
	umount small
}

teardown() {
	sb_teardown; local rc=$?
	! mountpoint -q "$T/small" 2>/dev/null || umount "$T/small"
	return $rc
}
