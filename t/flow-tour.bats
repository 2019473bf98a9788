# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# A small project to be shown around in.
project() {
	mkdir -p "$T/ws/src"
	seq -f 'line %g of the story' 20 >"$T/ws/README"
	printf '\0\1\2' >"$T/ws/src/blob"
	ln -s ../README "$T/ws/src/link"
	chmod 700 "$T/ws/src"
}

value() { sed -n "s/^= $1 //p" "$T/out"; }

tour() { sb-tour "$@" >"$T/out" 2>"$T/err" 3>&- || fail "exit $?" "$(cat "$T/out" "$T/err")"; }

# Processes that were started for a tour whose state is below DIR.
left() { grep -lz "^SB_STATE=$1" /proc/[0-9]*/environ 2>/dev/null || :; }

@test "what the tour says is what the kept store holds" {
	need overlay jq
	project
	listing ws >before
	tour -k "$T/kept" ws

	# Head, layer by layer.
	SB_STORE=$(value store)
	is "$SB_STORE" "$(echo "$T"/kept/sandboxes/*/eos)"
	is "$(sb-stack-version)" 4
	is "$(value 'publish A') $(value 'publish B') $(value 'publish C')" "2 3 4"
	is "$(sb-stack-show -a | grep -c .)" "$(value layers)"
	is "$(sb-stack-show | tail -n 2)" "B000001-base"
	is "$(cat "$(readlink "$SB_STORE/layer-stack/base")/digest")" "$(value base)"
	run -0 --separate-stderr bash -c 'sb-stack-show | sb-layer-check'
	is "$output" ""

	# The file: all edits but the refused one, nothing else.
	is "$(value file)" README
	sed -e '2s/$/ [edited in A]/' -e '19s/$/ [edited in B]/' \
	    -e '6s/$/ [another edit in C]/' ws/README >wanted
	sb-stack-show | sb-layer-cat README >merged
	same merged wanted

	# Each edit belongs to its session, and to no other.
	for s in A:2 B:19 C:6; do
		id=$(value "session ${s%:*}")
		is "$(sb-file-blame README | jq -c --arg o "workspace_session:$id" '[.ranges[]|select(.owner == $o)|.start_line,.line_count]')" \
		    "[${s#*:},1]"
		grep -qxF "$(printf '%s\t%s\t%s' "$id" "${s#*:}" "$(sed -n "${s#*:}p" wanted)")" out
	done
	is "$(value versions)" 3
	sb-log | jq -r '[.version, .time[:19] + "Z", .cause, .source_count + .ignored_count, .merged_count, .session] | @tsv' >log
	is "$(grep -cxFf log out)" 3

	# Each layer holds that file and no other.
	for id in $(sb-stack-show -a); do
		is "$(cd "$SB_STORE/layer-stack/layers/$id" && find . -type f)" ./README
	done

	# The directory is untouched, sessions are gone, nothing runs.
	listing ws >after
	same after before
	is "$(value before)" "$(value after)"
	is "$(sb-session-ls)" ""
	is "$(SB_STATE=$T/kept sb-box-ls | jq -r '.sandboxes[].state')" stopped
	is "$(left "$T/kept")" ""
}

@test "a directory without a text file gets one" {
	need overlay
	mkdir ws
	tour ws
	is "$(value file)" sb-tour.txt
	is "$(value layers)" 4
	is "$(ls -A ws)" ""
}

@test "three commands run at the same time, a conflict is data, and nothing is left" {
	need overlay jq
	project
	mkdir tmp
	TMPDIR=$T/tmp tour ws
	local s e last=0 first=
	for s in A B C; do
		e=$(value "started $s")
		[ "$e" -le "$last" ] || last=$e
		e=$(value "ended $s")
		[ -n "$first" ] && [ "$e" -ge "$first" ] || first=$e
	done
	[ "$last" -gt 0 ] && [ "$last" -le "$first" ]
	is "$(value overlap)" yes
	is "$(value 'session A' | wc -c)" 23

	is "$(value 'refused C')" content
	run -0 jq -r '.error.details.conflicts[] | .path, .kind, (.hunks[0].base | @csv)' \
	    <<<"$(grep '^{"error"' out)"
	is "$output" $'README\ncontent\n2,1'

	is "$(ls -A tmp)" ""
	[ ! -e "$SB_STORE" ] && [ ! -e "$SB_STATE" ] && [ ! -e "$SB_RUN" ] && [ ! -e "$XDG_CACHE_HOME" ]
	is "$(left "$T/tmp")" ""
}

@test "a state directory that exists, or that would lie in the directory, is refused" {
	project
	mkdir state2
	run -100 sb-tour -k "$T/state2" ws
	run -100 sb-tour -k "$T/ws/state" ws
	run -100 sb-tour -k ws/state ws
	[ ! -e ws/state ]
	run -100 sb-tour nothing-there
	run -100 sb-tour a b
	run -100 sb-tour -x
	run -0 sb-tour -h
	is "$output" "usage: sb-tour [-k state] [dir]"
}

# tour_with SCRIPT: a tour with an sb that runs SCRIPT, then the real one.
tour_with() {
	project
	mkdir tmp bin
	printf '#!/bin/sh\n%s\nexec %s/sb "$@"\n' "$1" "$SB_BIN" >bin/sb
	chmod +x bin/sb
	run "$2" env TMPDIR="$T/tmp" PATH="$T/bin:$PATH" sb-tour ws
	is "$(ls -A tmp)" ""
	is "$(left "$T/tmp")" ""
}

@test "the tour ends with the first command that fails, and tidies" {
	need overlay
	tour_with '[ "$1" != diff ] || exit 111' -111
}

@test "a tour that is told to end while commands run ends all of them" {
	need overlay
	tour_with '[ "$1" != ps ] || kill -TERM $PPID' -130
}

@test "an interrupt while the sandbox is being made leaves nothing" {
	need overlay
	project
	mkdir tmp
	TMPDIR=$T/tmp setsid env --default-signal=INT sb-tour ws >out 2>&1 3>&- &
	eventually bash -c "[ -e $T/tmp/*/state/sandboxes/*/record.json ]"
	kill -INT -- -$!
	rc=0
	wait $! || rc=$?
	is $rc 130
	is "$(ls -A tmp)" ""
	is "$(left "$T/tmp")" ""
}

@test "a full disk and a closed stdout are 111" {
	project
	run -111 sh -c 'sb-tour ws >/dev/full'
	run -111 sh -c 'sb-tour ws >&-'
	run -111 sh -c 'sb-tour -h >/dev/full'
}
