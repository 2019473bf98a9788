# SPDX-License-Identifier: MIT
# Floods: one command that prints a great deal. Who runs it makes no difference,
# so this is not run twice.
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns jq
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

# flood OPTION… COMMAND: runs it with the option; its answer goes to the file
# answer, the KiB that the job's process and its client had in memory at most to
# $peak and $client, those of the job's directory to $disk.
flood() {
	local command=${*: -1} pid=0 now done=$SB_STORE/workspace/$s/upper/done
	set -- "${@:1:$#-1}"
	rm -f client
	"$SB_T/peak" client sb-exec -s "$s" "$@" -y 1200000 \
	    "$command; touch done; until [ -e stop ]; do sleep 0.1; done; rm done stop" >answer 3>&- &
	eventually is_active
	job=$(sb-job-ls -r | grep .)
	disk=0
	until [ -e "$done" ]; do
		now=$(du -sk "$SB_STORE/jobs/$job" | cut -f1)
		[ "$now" -le "$disk" ] || disk=$now
		kill -0 $! || fail "$(cat answer)" || return
		sleep 0.2
	done
	pid=$(job_process "$job")
	peak=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$pid/status")
	sb-run "$s" touch stop
	wait
	client=$(cut -d' ' -f2 client)
	echo "$command: job $peak KiB, client $client KiB, disk $disk KiB"
}
is_active() { sb-job-ls -r | grep -q .; }
of() { jq -r ".$1" answer; }

# What a flood needs is what a word needs, and room for what is on its way: a
# piece of 64 KiB of the output, rows of 256 KiB that wait to be written, the
# rows of a window. On disk are bytes and rows, for each of them a window of
# 1 MiB; the bytes' beginning; and what is cut off at a time, a quarter of it.
is_flat() {
	[ "$peak" -lt $((small + ${1:-1536})) ]
	[ "$client" -lt 16384 ]
	[ "$disk" -lt "${2:-4096}" ]
}

@test "1 GiB on a terminal, in lines of 63 bytes: what is kept is right, memory is that of a word, disk is bounded" {
	start
	flood 'echo word'
	small=$peak
	flood 'awk "BEGIN { for (k = 1; k <= 16777216; k++) printf \"%010d %052d\n\", k, 7 * k }"; echo END'
	is_flat
	is "$(of '|[.status, .exit_code, .start_offset, .end_offset, .total_lines] | @csv')" \
	    '"ok",0,0,16777217,16777217'
	of output >rows
	awk -v dropped="$(of dropped_lines)" '
	$0 == "[... " dropped " rows dropped ...]" { k += dropped; gaps++; next }
	$0 == "END" && k == 16777216 { end = 1; next }
	$0 != sprintf("%010d %052d", ++k, 7 * k) { print "row " k ": " $0; exit 1 }
	END { if (!end || gaps != 1) { print k " rows, " gaps " gaps"; exit 1 } }' rows
	is "$(sb-pty-read -r "$job" 2>/dev/null | tail -n 2 | tr -d '\r')" \
	    "$(printf '%010d %052d\nEND' 16777216 117440512)"
}

@test "R73: yes | head -c 2G; echo END: beginning, end and the number between, in flat memory" {
	start
	flood -P 'echo word'
	small=$peak
	flood -P 'yes | head -c 2G; echo END'
	is_flat
	is "$(of '|[.status, .exit_code, .total_lines, .stderr_total_lines] | @csv')" '"ok",0,1073741825,0'
	of output >rows
	is "$(sort rows | uniq -c | grep -vc ' y$')" 2
	is "$(head -n 1 rows) $(tail -n 1 rows)" 'y END'
	is "$(grep -n dropped rows | cut -d: -f2)" "[... $(of dropped_lines) rows dropped ...]"
	is $(($(wc -l <rows) - 1 + $(of dropped_lines))) 1073741825
}

@test "one line of 128 MiB on a terminal, and of 1 GiB without: rows of 1 MiB, in bounded memory" {
	# What lib/lineterm.h says of the largest rows; of those the first, the
	# newest and the one before it on disk, instead of a window.
	local rows_max=10240 rows_disk=$((4096 + 2048))
	start
	flood 'echo word'
	small=$peak
	flood 'stty -opost; head -c 128M /dev/zero | tr "\0" x; echo; echo END'
	is_flat "$rows_max" "$rows_disk"
	is "$(of '|[.status, .total_lines, .wrapped] | @csv') $(sb-pty-read -o 128 "$job" | jq -r .output)" '"ok",129,true END'
	flood -P 'head -c 1G /dev/zero | tr "\0" x; echo; echo END'
	is_flat "$rows_max" "$rows_disk"
	is "$(of '|[.status, .total_lines, .wrapped] | @csv') $(sb-pty-read -o 1024 "$job" | jq -r .output)" '"ok",1025,true END'
}
