# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
# shellcheck disable=SC2030,SC2031 # each test is a subshell
# Many commands at once and many in a row: every answer is right, and nothing
# of a command is left but its result. Floods of one command are in load.bats.
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns jq strace
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

# What there is of the store: its processes, with the descriptors they have and
# the mounts they see that are no other test's, our mounts, terminals and
# processes in the session, all directories and files but results, cgroups of
# jobs.
state() {
	local pid
	for pid in $(our_processes "$SB_STORE"); do
		printf 'process %s, %s descriptors, %s mounts\n' "$(tr '\0' ' ' <"/proc/$pid/cmdline")" \
		    "$(find "/proc/$pid/fd" -type l | wc -l)" \
		    "$(awk -v t="$T" '$5 ~ "^/(proc|dev)(/|$)" || index($5, t)' "/proc/$pid/mountinfo" | wc -l)"
	done >processes 2>/dev/null
	sort processes
	grep -cF " $T" /proc/self/mountinfo || :
	sb-run "$s" sh -c 'ls /dev/pts; ls -d /proc/[0-9]* | wc -l' 3>&-
	# One directory of the mount's nobody but root reads. Events are counted and kept as they come.
	(cd "$SB_STORE" && find . \( -path './jobs/namespace_execution_*' -o -path ./observability \) -prune -o -print 2>/dev/null) >files || :
	sort files
	find /sys/fs/cgroup -type d -name "$(printf 'sbjob-%s-%x-*' "$(stat -c %D "$SB_STORE/jobs")" \
	    "$(stat -c %i "$SB_STORE/jobs")")" 2>/dev/null || :
}
as_before() { state >now && cmp -s before now; }
# The process of a job that is over takes its time to leave.
ended() { [ -z "$(job_process "$1")" ]; }
nothing_left() { eventually as_before || { diff before now; return 1; }; }

# ---- 32 at once ----

# A row of job i is 63 bytes and LF; 160 Ki of them are 10 MiB.
ROWS=163840
write_print() {
	cat >ws/print <<-'EOT'
		until [ -e go ]; do sleep 0.1; done
		echo "begin $1"
		awk -v i="$1" -v n="$2" 'BEGIN { for (k = 1; k <= n; k++) printf "%02d %07d %052d\n", i, k, k * i }'
		until [ -e stop ]; do sleep 0.1; done
	EOT
}

rows_of() { awk -v i="$1" -v k="$2" -v n="$3" 'BEGIN { for (; k <= n; k++) printf "%02d %07d %052d\n", i, k, k * i }'; }

# Is file $1 what is kept of the rows of job $2, with a word about the others in
# their place, $3 of them?
kept() {
	awk -v i="$2" -v n="$ROWS" -v dropped="$3" '
	function bad(why) { print "job " i ", after row " k ": " why ": " $0; failed = 1; exit 1 }
	NR == 1 { if ($0 != "begin " i) bad("not the first row"); next }
	/^\[\.\.\. [0-9]+ rows dropped \.\.\.\]$/ {
		if (gap) bad("a second gap")
		gap = $2
		k += gap
		next
	}
	$0 != sprintf("%02d %07d %052d", i, k + 1, (k + 1) * i) { bad("not the next row") }
	{ k++ }
	END {
		if (!failed && (k != n || gap != dropped || gap == 0)) {
			print "job " i ": " k " of " n " rows, " gap " of " dropped " dropped"
			exit 1
		}
	}' "$1"
}

# KiB that a process has had in memory at most, and that a directory takes.
peak_of() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$1/status"; }
size_of() { du -sk "$1" | cut -f1; }

all_begun() { [ "$(sb-job-ls -r | grep -c .)" = 32 ]; }
printed() { sb-pty-read -n 1 "$1" 3>&- | jq -e ".total_lines == $ROWS + 1" >/dev/null; }

# at_once OPTION…: 32 jobs wait until all are there, print, and wait again.
at_once() {
	local i job pid pids=
	for i in $(seq 32); do
		"$SB_T/peak" "client$i" sb-exec -s "$s" "$@" -y 600000 "sh print $i $ROWS" >"answer$i" 3>&- &
		pids="$pids $!"
	done
	eventually all_begun
	sb-run "$s" touch go
	for job in $(sb-job-ls -r); do
		eventually printed "$job"
	done
	# What a job needs does not depend on what it prints: a piece of 64 KiB,
	# rows of 256 KiB at most that wait to be written, the rows of a window,
	# and the program.
	for job in $(sb-job-ls -r); do
		pid=$(job_process "$job")
		[ "$(peak_of "$pid")" -lt 8192 ] || fail "$job: $(peak_of "$pid") KiB"
	done
	sb-run "$s" touch stop
	for pid in $pids; do wait "$pid"; done
	is "$(sb-job-ls -r)" ""
}

answers_are_right() {
	local i job n dropped
	for i in $(seq 32); do
		is "$(jq -r '[.status, .exit_code, .start_offset, .end_offset, .total_lines] | @csv' "answer$i")" \
		    '"ok",0,0,'$((ROWS + 1)),$((ROWS + 1))
		dropped=$(jq .dropped_lines "answer$i")
		jq -r .output "answer$i" >rows
		kept rows "$i" "$dropped"
		# A window of 1 MiB for the rows and eight bytes of index for each;
		# an eighth less after each time that some were dropped.
		n=$(wc -c <rows)
		[ "$n" -lt 1048576 ] && [ "$n" -gt 700000 ]
		# Its client held the answer, and no more of what was printed.
		awk '$2 > 16 * 1024 { print "client: " $2 " KiB"; exit 1 }' "client$i"
		# The bytes are whole too: the beginning, and the end.
		job=$(jq -r .command_session_id "answer$i")
		sb-pty-read -r "$job" 2>words | tr -d '\r' >bytes
		has "$(cat words)" 'were not kept'
		head -n 900 bytes | cmp - <(echo "begin $i" && rows_of "$i" 1 899)
		tail -n 16000 bytes | cmp - <(rows_of "$i" $((ROWS - 15999)) "$ROWS")
		# Rows and bytes, each with a window; bytes have a head of 64 KiB and
		# are cut off by a quarter of the window at a time.
		[ "$(size_of "$SB_STORE/jobs/$job")" -lt 3072 ]
	done
}

@test "32 commands at once, 10 MiB each on a terminal: every answer is whole, in bounded memory and on bounded disk" {
	mkdir ws; write_print
	start
	sb-run "$s" touch go stop
	sb-exec -s "$s" -y 60000 true >out 3>&-
	eventually ended namespace_execution_1
	state >before
	sb-run "$s" rm go stop
	at_once
	answers_are_right
	nothing_left
}

@test "32 commands at once, 10 MiB each without a terminal: the same" {
	mkdir ws; write_print
	start
	sb-run "$s" touch go stop
	sb-exec -s "$s" -y 60000 true >out 3>&-
	eventually ended namespace_execution_1
	state >before
	sb-run "$s" rm go stop
	at_once -P
	answers_are_right
	is "$(jq -s -c '[.[].stderr] | unique' answer*)" '[""]'
	nothing_left
}

# ---- many in a row ----

@test "1 000 short commands in a row: right, and nothing is left but the last 512 results" {
	start
	sb-exec -s "$s" -y 60000 true >out 3>&-
	sb-exec -s "$s" -P -y 60000 true >out 3>&-
	eventually ended namespace_execution_2
	state >before
	for i in $(seq 3 1002); do
		p=-P; [ $((i % 2)) = 0 ] || p=
		# shellcheck disable=SC2086 # nothing or one word
		sb-exec -s "$s" $p -y 60000 "echo $i" 3>&-
	done >answers
	jq -r '"\(.status) \(.exit_code) \(.output)"' answers | cmp - <(seq -f 'ok 0 %g' 3 1002)
	nothing_left
	# One was over only after the last one had removed what was too old.
	sb-job-ls | grep . >ids
	seq -f 'namespace_execution_%g' 490 1002 | cmp - ids
	is "$(find "$SB_STORE/jobs" -mindepth 1 -maxdepth 1 ! -name ".*" | wc -l)" 513
	sb-pty-read namespace_execution_490 3>&- | jq -e '.output == "490"' >/dev/null
	sb-pty-read namespace_execution_489 3>&- | jq -e '.found == false' >/dev/null
	# Nobody looks into each of them for the next one.
	[ "$(count_calls newfstatat sb-exec -s "$s" -y 60000 true)" -lt 100 ]
}

@test "200 automatic sessions in a row: each is gone with its command" {
	start
	sb-exec -y 60000 true >out 3>&-
	eventually ended namespace_execution_1
	state >before
	for i in $(seq 200); do
		sb-exec -y 60000 "echo $i" 3>&-
	done >answers
	jq -r '"\(.status) \(.exit_code) \(.output)"' answers | cmp - <(seq -f 'ok 0 %g' 200)
	nothing_left
	is "$(sb-stack-version) $(sb-session-ls | tr -d '\n')" "1 $s"
}

@test "eight clients, many short commands: no result is lost, nothing is left" {
	start
	sb-exec -s "$s" -y 60000 true >out 3>&-
	eventually ended namespace_execution_1
	state >before
	for i in $(seq 8); do
		(for k in $(seq 40); do
			sb-exec -s "$s" -y 60000 "echo $i-$k; exit $k"
		done) >"out$i" 3>&- &
	done
	wait
	for i in $(seq 8); do
		jq -r '"\(.exit_code) \(.output)"' "out$i" | cmp - <(for k in $(seq 40); do echo "$k $i-$k"; done)
	done
	# No number was given twice.
	is "$(sb-job-ls | grep . | sort -u | wc -l)" 321
	nothing_left
}

@test "eight clients without sessions: what each changed is published, nothing is left" {
	start
	sb-exec -y 60000 true >out 3>&-
	eventually ended namespace_execution_1
	state | grep -v 'layer-stack/' >before
	as_before() { state | grep -v 'layer-stack/' >now && cmp -s before now; }
	for i in $(seq 8); do
		(for k in $(seq 10); do
			sb-exec -y 60000 "echo $i-$k >f$i-$k"
		done) >"out$i" 3>&- &
	done
	wait
	is "$(cat out? | jq -r .status | sort | uniq -c | tr -s ' ')" ' 80 ok'
	is "$(sb-stack-version)" 81
	answer=$(sb-exec -y 60000 'cat f?-* | sort' 3>&-)
	is "$(printf %s "$answer" | jq -r .output)" "$(for i in $(seq 8); do seq -f "$i-%g" 10; done | sort)"
	nothing_left
	is "$(sb-session-ls | tr -d '\n')" "$s"
}

# ---- asked many times ----

@test "a command asked, fed and resized hundreds of times: its process has what it had before" {
	start
	answer=$(sb-exec -s "$s" -y 0 'stty -echo; while read x; do echo "$x"; done' 3>&-)
	job=$(printf %s "$answer" | jq -r .command_session_id)
	pid=$(job_process "$job")
	ask() {
		for i in $(seq "$1" "$2"); do
			echo "$i" | sb-pty-feed -y 0 "$job"
			sb-pty-read -o 0 -n 1 "$job"
			sb-pty-feed -w $((100 + i % 2))x40 -y 0 "$job"
		done >out 3>&-
	}
	rows() { sb-pty-read -n 1 "$job" 3>&- | jq -e ".total_lines == $1" >/dev/null; }
	# So that what it needs once is there.
	ask 1 100
	eventually rows 100
	find "/proc/$pid/fd" -type l | wc -l >before
	rss=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$pid/status")
	ask 101 400
	# Clients that went away without waiting for an answer.
	for i in $(seq 20); do
		FOLLOW='' run -137 kill_at recvfrom 1 sb-pty-read "$job" 3>&-
	done
	eventually rows 400
	is "$(find "/proc/$pid/fd" -type l | wc -l)" "$(cat before)"
	# Less than half a KiB for each question.
	now=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$pid/status")
	[ "$now" -le $((rss + 128)) ] || fail "$rss KiB, now $now"
	sb-job-kill "$job"
	sb-pty-read -n 1000 "$job" 3>&- | jq -r .output | cmp - <(seq 400)
}
