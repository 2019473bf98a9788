# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws; echo base >ws/f
	make_store
	s=$(sb-session-new)
}

@test "every process of the session ends, also one that ignores TERM" {
	start
	sb-run "$s" sh -c '(trap "" TERM HUP INT; while :; do sleep 0.01; done) >/dev/null 2>&1 &' 3>&-
	init=$(cut -d' ' -f1 "$SB_STORE/workspace/$s/hold")
	sb-ns-kill "$s"
	[ ! -e "/proc/$init" ]
	sb-ns-kill "$s"
	run -1 sb-ns-kill nobody
}

@test "STOP returns when all have stopped, CONT lets them go on" {
	start
	sb-run "$s" sh -c '(while :; do echo t >>ticks; done) >/dev/null 2>&1 &' 3>&-
	u=$SB_STORE/workspace/$s/upper/ticks
	eventually [ -s "$u" ]
	sb-ns-kill -s STOP "$s"
	n=$(stat -c %s "$u")
	sleep 0.1
	is "$(stat -c %s "$u")" "$n"
	sb-ns-kill -s CONT "$s"
	eventually eval '[ "$(stat -c %s "$u")" -gt "$n" ]'
	run -100 sb-ns-kill -s NOSUCH "$s"
	sb-ns-kill -s 9 "$s"
	is "$(sb-run "$s" cat f)" base
}
