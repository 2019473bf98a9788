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

@test "what the tour says is what the kept store holds" {
	need overlay
	project
	listing ws >before
	tour -k "$SB_STORE" ws

	# Head, layer by layer.
	is "$(value store)" "$SB_STORE"
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
	done
	grep -qxF "$(sb-file-blame README)" out
	is "$(value versions)" 3
	sb-log >log
	is "$(grep -cxFf log out)" 3

	# Each layer holds that file and no other.
	for id in $(sb-stack-show -a); do
		is "$(cd "$SB_STORE/layer-stack/layers/$id" && find . -type f)" ./README
	done

	# The directory is untouched, sessions are gone.
	listing ws >after
	same after before
	is "$(value before)" "$(value after)"
	is "$(sb-session-ls)" ""
}

@test "the three commands ran at the same time" {
	need overlay
	project
	tour ws
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
}

@test "the conflict is shown as data" {
	need overlay jq
	project
	tour ws
	is "$(value 'refused C')" content
	run -0 jq -r '.error.details.conflicts[] | .path, .kind, (.hunks[0].base | @csv)' \
	    <<<"$(grep '^{"error"' out)"
	is "$output" $'README\ncontent\n2,1'
}

@test "a directory without a text file gets one" {
	need overlay
	mkdir ws
	tour ws
	is "$(value file)" sb-tour.txt
	is "$(value layers)" 4
	is "$(ls -A ws)" ""
}

@test "nothing is left of a temporary tour" {
	need overlay
	project
	mkdir tmp
	TMPDIR=$T/tmp tour ws
	is "$(ls -A tmp)" ""
	[ ! -e "$SB_STORE" ] && [ ! -e "$XDG_CACHE_HOME" ]
}

@test "a store that exists, or that would lie in the directory, is refused" {
	project
	mkdir store2
	run -100 sb-tour -k "$T/store2" ws
	run -100 sb-tour -k "$T/ws/store" ws
	run -100 sb-tour -k ws/store ws
	[ ! -e ws/store ]
	run -100 sb-tour nothing-there
	run -100 sb-tour a b
	run -100 sb-tour -x
	run -0 sb-tour -h
	is "$output" "usage: sb-tour [-k store] [dir]"
}

@test "the tour ends with the first command that fails, and tidies" {
	need overlay
	project
	mkdir tmp bin
	printf '#!/bin/sh\nexit 111\n' >bin/sb-diff
	chmod +x bin/sb-diff
	run -111 env TMPDIR="$T/tmp" PATH="$T/bin:$PATH" sb-tour ws
	is "$(ls -A tmp)" ""
}

@test "a full disk and a closed stdout are 111" {
	project
	run -111 sh -c 'sb-tour ws >/dev/full'
	run -111 sh -c 'sb-tour ws >&-'
	run -111 sh -c 'sb-tour -h >/dev/full'
}
