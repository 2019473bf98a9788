# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib
load gate
load svc

# A sandbox eos-1 over ws, served; we are in ws.
begin() {
	need overlay
	mkdir -p ws/src
	seq -f 'line %g' 12 >ws/README
	svc_start
	up 8>&- 9>&-
	cd ws || return
}
cli() { SANDBOX_GATEWAY_SOCKET=unix://$unix "sandbox-$1-cli" "${@:2}"; }
rt() { cli runtime --sandbox-id eos-1 "$@"; }
# Standard error apart: what takes longer than a second says so there.
on_terminal() { TERM=xterm script -qec "{ $1; } 2>$T/err" /dev/null </dev/null | tr -d '\r'; }
teardown() {
	for d in "$SB_STATE"/sandboxes/*/busy; do
		[ ! -e "$d" ] || sb-local rm "$(basename "$(dirname "$d")")" >/dev/null 3>&- || :
	done
	sb-down -t 0 3>&- || :
	sb_teardown
}
version() { (SB_STORE=$T/store sb-stack-version); }

@test "each verb has a usage, which the page and the list of verbs have too" {
	local verb n=0
	run -0 sb help
	is "$(sb)" "$output"
	for verb in $(sb help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
		n=$((n + 1))
		run -0 sb "$verb" -h
		has "$output" "usage: sb $verb"
		is "$(sb help "$verb")" "$output"
		grep -qE "^\.It Cm $verb( |\$)" "$SB_TOP/doc/man1/sb.1" || grep -qE "^\.Cm $verb " "$SB_TOP/doc/man1/sb.1" ||
		    fail "the page lacks $verb"
		run -100 --separate-stderr sb "$verb" -%
		is "$stderr" "sb: $(sb "$verb" -h)"
	done
	[ "$n" -ge 14 ]
	run -100 sb nothing
	run -100 sb rm
	run -100 sb exec
	run -100 sb new a
	run -111 sh -c 'sb -h >/dev/full'
	run -111 sh -c 'sb help >/dev/full'
}

@test "without a gateway the way to one is named" {
	run -111 --separate-stderr sb ls -a
	has "$stderr" "sb up"
	run -0 sb down
}

@test "the sandbox is that of the directory, or a name that begins so" {
	begin
	is "$(sb ls -a)" "$(printf 'eos-1\tready\t%s' "$T/ws")"
	s=$(sb new)
	is "$(sb ls)" "$(printf '%s\trunning\t0\t0' "$s")"
	cd src
	is "$(sb ls)" "$(printf '%s\trunning\t0\t0' "$s")"
	cd "$T"
	run -1 --separate-stderr sb ls
	has "$stderr" "no sandbox over $T: sb up makes one"
	is "$(sb -b eos ls; sb ls -b eos-1; SB_SANDBOX=eos-1 sb ls)" "$(printf '%s\trunning\t0\t0\n' "$s" "$s" "$s")"
	run -1 sb -b none ls
	mkdir ws2
	(SB_STORE=$T/store2 && export SB_STORE && sb-store-init && sb-base-import ws2 && sb-box-add eos-2) >/dev/null
	run -100 --separate-stderr sb -b eos ls
	has "$stderr" "eos-2 ready $T/ws2"
	cd ws
	is "$(sb ls)" "$(printf '%s\trunning\t0\t0' "$s")"
	# Names of directories are bytes, and ids stand in lines.
	mkdir "$T/"$'a\nb\tc\n'
	(SB_STORE=$T/store3 && export SB_STORE && sb-store-init && sb-base-import "$T/"$'a\nb\tc\n' && sb-box-add eos-3) >/dev/null
	run -100 --separate-stderr sb -b eos-3 ls
	has "$stderr" "daemon unavailable for eos-3"
	cd "$T/"$'a\nb\tc\n' || return
	run -100 --separate-stderr sb ls
	has "$stderr" "daemon unavailable for eos-3"
	run -100 --separate-stderr sb -b eos ls
	has "$stderr" "eos-3 ready $T/"'a\nb\tc\n'
}

@test "a session is named by how it begins, or not at all when it is the only one" {
	begin
	run -1 --separate-stderr sb diff
	has "$stderr" "sb new makes one"
	a=$(sb new)
	sb exec -s "$a" touch a
	is "$(sb diff -n)" "A a"
	b=$(sb new)
	run -100 --separate-stderr sb diff -n
	has "$stderr" "$b"
	is "$(sb diff -n "${a%?}")$(SB_SESSION_ID=$a sb diff -n)" "A aA a"
	run -1 sb diff nothing
	run -100 sb diff ''
	sb rm "$a" "$b"
	is "$(sb ls)" ""
	run -1 sb rm "$a"
}

@test "a command is run as one line, or as words; its exit code is passed on" {
	begin
	is "$(sb exec 'echo a  b | tr a-z A-Z')" "A B"
	is "$(sb exec printf '%s|' a "it's" '$HOME  *' '')" "a|it's|\$HOME  *||"
	is "$(sb exec printf '%s\n' $'two\nlines\n' | od -c)" "$(printf 'two\nlines\n\n' | od -c)"
	run -3 sb exec 'exit 3'
	run -137 sb exec 'kill -9 $$'
	is "$(sb exec 'echo; sleep 0.3; echo; echo x; sleep 0.3; echo' | od -c)" "$(printf '\n\nx\n\n' | od -c)"
	is "$(cd src && sb exec pwd)" "$T/ws/src"
	is "$(sb exec 'seq 3000' | sha256sum)" "$(seq 3000 | sha256sum)"
	# Nobody types, and nobody turns pages.
	is "$(timeout 100 sb exec 'cat; read x; echo $?; tty >/dev/tty')" $'1\nnot a tty'
	is "$(sb ps -a | tail -n 1 | cut -f 5)" 'cat; read x; echo $?; tty >/dev/tty'
	# What is not there is said, where the output goes and to who looks on.
	s=$(sb new)
	run -0 --separate-stderr sb exec -s "$s" 'seq 300000'
	is "${lines[0]} ${lines[${#lines[@]} - 1]}" "1 300000"
	printf '%s\n' "${lines[@]}" | sed -n 's/^\[\.\.\. \([0-9]*\) rows dropped \.\.\.]$/\1/p' >"$T/dropped"
	is "$stderr" "$(sed 's/.*/sb: & lines of output were not kept/' "$T/dropped")"
	n=0
	while read -r dropped; do n=$((n + dropped - 1)); done <"$T/dropped"
	is $((${#lines[@]} + n)) 300000
	run -1 --separate-stderr sb exec -s none true
	has "$stderr" "no session none"
}

@test "what a command without a session changed is published, or kept" {
	begin
	run -0 --separate-stderr sb exec 'echo x >new; mkfifo fifo'
	is "$output$stderr" "sb: not published: fifo: unsupported_special_file"
	is "$(sb cat new)" x
	sb exec 'sed -i "1s/$/ mine/" README; trap "exit 0" USR1; echo ready; echo; while :; do sleep 0.05; done' \
	    >"$T/out" 2>"$T/err" 3>&- &
	pid=$!
	eventually grep -q ready "$T/out"
	read -r job s _ < <(sb ps)
	sb exec 'sed -i "1s/$/ theirs/" README'
	rt kill_command --command-session-id "$job" --signal USR1 >/dev/null
	rc=0
	wait "$pid" || rc=$?
	is $rc 2
	has "$(cat "$T/err")" "not published"
	has "$(cat "$T/err")" "session $s keeps it"
	is "$(sb ls)" "$(printf '%s\tconflicted\t1\t0' "$s")"
	is "$(sb cat README | head -n 1) $(sb cat -s "$s" README | head -n 1)" "line 1 theirs line 1 mine"
}

@test "output comes while the command runs" {
	begin
	s=$(sb new)
	mkfifo "$T/out"
	sb exec -s "$s" 'echo one; echo two; until [ -e /tmp/go ]; do sleep 0.05; done; echo three' >"$T/out" 3>&- &
	exec 5<"$T/out"
	read -r line <&5
	is "$line" one
	is "$(sb ps | cut -f 2,3)" "$(printf '%s\trunning' "$s")"
	is "$(sb ls | cut -f 4)" 1
	run -2 --separate-stderr sb publish "$s"
	has "$stderr" "these run in it, sb kill ends them: namespace_execution_1"
	sb exec -s "$s" touch /tmp/go
	is "$(cat <&5)" $'two\nthree'
	exec 5<&-
	wait $!
	is "$(sb ps)" ""
	is "$(sb ps -a | wc -l)" 2
}

@test "an interrupt ends the command, and so does a reader that goes" {
	begin
	env --default-signal=INT sb exec 'echo x >kept; echo one; echo two; sleep 600' >"$T/out" 3>&- &
	eventually grep -q one "$T/out"
	kill -INT $!
	rc=0
	wait $! || rc=$?
	is $rc 130
	is "$(sb ps)" ""
	is "$(sb ps -a | cut -f 3)" cancelled
	is "$(sb cat kept)" x
	run -0 bash -c 'sb exec yes | head -n 1'
	is "${lines[0]}" y
	idle() { [ -z "$(sb ps)" ]; }
	eventually idle
	sb exec 'echo one; echo two; sleep 600' >"$T/out" 3>&- &
	eventually grep -q one "$T/out"
	sb kill "$(sb ps | cut -f 1)"
	rc=0
	wait $! || rc=$?
	is $rc 130
}

@test "what is typed goes to the command that is run" {
	need script
	begin
	mkfifo "$T/keys"
	TERM=xterm script -qefc 'sb run bash --norc' "$T/screen" <"$T/keys" >/dev/null 3>&- &
	exec 6>"$T/keys"
	eventually grep -q 'bash-.*[#$] ' "$T/screen"
	printf 'echo he""llo\r' >&6
	eventually grep -q hello "$T/screen"
	printf '%s\r' "sh -c 'trap \"echo st\"\"opped; exit\" INT; echo re\"\"ady; while :; do sleep 0.1; done'" >&6
	eventually grep -q ready "$T/screen"
	printf '\003' >&6
	eventually grep -q stopped "$T/screen"
	printf 'exit 3\r' >&6
	rc=0
	wait $! || rc=$?
	exec 6>&-
	is $rc 3
	run -100 sb run true </dev/null
}

@test "a patch is printed byte for byte" {
	begin
	s=$(sb new)
	sb exec -s "$s" 'printf "a\377\n" >latin; printf "no newline" >README; printf "\0" >bin'
	sb diff "$s" >"$T/got"
	(SB_STORE=$T/store sb-diff "$s") >"$T/wanted"
	same "$T/got" "$T/wanted"
	is "$(sb diff -n)" $'M README\nA bin\nA latin'
	sb rm "$s"
	sb new >/dev/null
	is "$(sb diff)" ""
}

@test "a session is published, or refused with every conflict named" {
	begin
	a=$(sb new) b=$(sb new)
	sb exec -s "$a" sed -i '2s/$/ a/' README
	sb exec -s "$b" sed -i '2,3s/$/ b/' README
	is "$(sb publish "$a")" 2
	is "$(version)" 2
	run -2 --separate-stderr sb publish "$b"
	is "$output" ""
	has "$stderr" "README: content (lines 2-3)"
	has "$stderr" "the session goes on: $b"
	sb exec -s "$b" sed -i -e '2s/ b$//' -e '$s/$/ b/' README
	is "$(sb publish)" 3
	is "$(sb blame README | sed -n '1p;2p;3p;12p' | cut -f 1,2)" "$(printf 'original\t1\n%s\t2\n%s\t3\n%s\t12' "$a" "$b" "$b")"
	is "$(sb log | cut -f 1,3-)" "$(printf '3\tpublish\t1\t1\t%s\n2\tpublish\t1\t0\t%s' "$b" "$a")"
	is "$(sb log -n 1 | cut -f 1)" 3
	is "$(on_terminal "sb new >$T/id; sb publish")" "nothing was changed, nothing published"
}

@test "a file is printed to its end, from where we are" {
	begin
	sb exec 'seq 5000 >src/many; printf "a\n\nb" >src/few; printf "a\n\n\n" >src/blank; : >src/none'
	is "$(sb cat src/many | sha256sum)" "$(seq 5000 | sha256sum)"
	cd src
	is "$(sb cat many | sha256sum)" "$(seq 5000 | sha256sum)"
	is "$(sb cat few | od -c)" "$(printf 'a\n\nb\n' | od -c)"
	is "$(sb cat none | wc -c)" 0
	is "$(sb cat "$T/ws/src/few")" $'a\n\nb'
	is "$(sb blame few | cut -f 2,3)" $'1\ta\n2\t\n3\tb'
	is "$(sb blame blank | cut -f 2)$(sb blame none)" $'1\n2\n3'
	is "$(sb blame ../README | head -n 1)" $'original\t1\tline 1'
	run -100 sb cat ../../README
	run -1 sb cat nothing
	run -1 sb blame nothing
}

@test "on a terminal lists have headings and aligned columns" {
	need script
	begin
	a=$(sb new)
	is "$(NO_COLOR=1 on_terminal 'sb ls')" "$(printf '%s\n%s' 'SESSION                 STATE    CHANGES  COMMANDS' "$a  running  0        0")"
	is "$(on_terminal 'sb ls' | head -n 1)" $'\e[1mSESSION                 STATE    CHANGES  COMMANDS\e[m'
	is "$(TERM=dumb script -qec 'sb ls' /dev/null </dev/null | grep -c "$(printf '\033')")" 0
	sb exec -s "$a" sed -i '1s/$/ a/' README
	sb exec -s "$a" mkfifo fifo
	has "$(on_terminal sb\ diff)" $'\e[32m+line 1 a\e[m'
	is "$(NO_COLOR=1 on_terminal sb\ diff)" "$(sb diff)"
	is "$(on_terminal "sb publish")" $'published as version 2: 1 path\nnot published: fifo: unsupported_special_file'
	# A name cannot write on the screen what it likes.
	sb exec "$(printf ': \033[2J')"
	has "$(NO_COLOR=1 on_terminal 'sb ps -a')" ': ?[2J'
	# The command's own colours are for the terminal; it has the whole row.
	is "$(on_terminal "sb exec 'printf \"\\033[1mx\\033[m\\ny\"'")" $'\e[1mx\e[m\ny'
	is "$(on_terminal "sb exec 'echo >f'")$(cat "$T/err")" "sb: published as version 3"
}

@test "-j prints what the gateway answered, and errors likewise" {
	begin
	s=$(sb -j new | jq -r .workspace_session_id)
	is "$(sb -j ls)" "$(rt list_workspace_sessions)"
	is "$(sb ls -aj)" "$(cli manager list_sandboxes)"
	is "$(sb up -j)" "$(cli manager inspect_sandbox --sandbox-id eos-1)"
	is "$(sb exec -j -s "$s" 'echo a >a; echo b' | jq -s 'any(.output == "b")')" true
	is "$(sb -j diff)" "$(rt diff_workspace_session --workspace-session-id "$s")"
	is "$(sb -j cat README)" "$(rt file_read --path README)"
	run -0 sb publish --json
	is "$(jq -c .publish.revision.manifest_version <<<"$output")" 2
	is "$(sb -j log)" "$(cli observability history --sandbox-id eos-1)"
	is "$(sb -j blame a)" "$(rt file_blame --path a)"
	run -1 --separate-stderr sb -j cat nothing
	is "$output" ""
	is "$(jq -c .error.kind <<<"$stderr")" '"not_found"'
}

@test "output that cannot be written is an error" {
	begin
	for verb in ls\ -a new 'cat README' 'blame README' 'exec echo x'; do
		run -111 bash -c "sb $verb >/dev/full"
		run -111 bash -c "sb $verb >&-"
	done
}

@test "a sandbox is made, stopped, started and destroyed, and nothing is lost unsaid" {
	need overlay s6-svscan jq
	mkdir -p ws/src
	echo a >ws/f
	id=$(sb up ws 3>&-)
	is "$(sb up ws)$(cd ws/src && sb up)$(sb up -b "$id")" "$id$id$id"
	is "$(sb ls -a)" "$(printf '%s\tready\t%s' "$id" "$T/ws")"
	cd ws
	s=$(sb new)
	sb exec -s "$s" 'echo b >f'
	run -2 --separate-stderr sb destroy
	has "$stderr" "session $s has changes that are not published"
	sb exec -s "$s" 'echo one; echo two; sleep 600' >"$T/out" 2>&1 3>&- &
	eventually grep -q one "$T/out"
	run -2 --separate-stderr sb down
	has "$stderr" "sb down -f ends them"
	sb down -f
	wait $! || :
	run -111 --separate-stderr sb ls
	has "$stderr" "sb up"

	is "$(sb up 3>&-)" "$id"
	is "$(sb ls)" "$(printf '%s\tparked\t1\t0' "$s")"
	is "$(sb publish) $(sb cat f)" "2 b"
	run -2 --separate-stderr sb destroy
	has "$stderr" "what was published in $id is nowhere else"
	sb down
	is "$(sb up 3>&-) $(sb cat f)" "$id b"
	is "$(cat f)" a
	sb destroy -f
	is "$(sb ls -a)" ""
	is "$(ls "$SB_STATE/sandboxes")" ""
	sb down
	all_down
}

@test "two that ask for a sandbox at once get the same" {
	need overlay s6-svscan
	mkdir ws
	sb up ws >first 2>err.1 3>&- &
	sb up ws >second 2>err.2 3>&-
	wait $!
	same first second
	is "$(grep -hE 'fatal|warning' err.1 err.2)" ""
	is "$(sb ls -a | cut -f 1)" "$(cat first)"
}

@test "the gateway stays while another sandbox is ready" {
	need overlay s6-svscan
	mkdir a b
	a=$(sb up a 3>&-) b=$(sb up b 3>&-)
	(cd a && sb down)
	is "$(sb ls -a | sort -k 3)" "$(printf '%s\tstopped\t%s\n%s\tready\t%s' "$a" "$T/a" "$b" "$T/b")"
	run -1 --separate-stderr sb -b "$a" ls
	has "$stderr" "is stopped; sb up starts it"
	run -1 sb down
	run -2 --separate-stderr sb -b "$a" destroy
	has "$stderr" "is stopped"
	sb destroy -f -b "$a"
	sb down -a
	all_down
}

@test "what is asked of up and cannot be is said" {
	need overlay s6-svscan
	run -100 sb up nothing
	run -100 sb up ''
	run -100 sb up a b
	mkdir gone
	cd gone || return
	rmdir ../gone
	run -100 --separate-stderr sb up
	has "$stderr" "sb: fatal: the current directory is gone"
	cd ..
	mkdir ws
	run -100 --separate-stderr sb up -i "$T/no-image" ws 3>&-
	has "$stderr" "sb: fatal: "
	has "$stderr" "no-image"
	# An image is named from where we are.
	mkdir img
	run -111 --separate-stderr sb up -i img ws 3>&-
	has "$stderr" "$T/img has neither bin nor usr"
	# What is in the directory cannot have the state in it.
	run -2 --separate-stderr sb up "$T"
	is "$output" ""
	has "$stderr" "sb: fatal: workspace setup failed: "
	is "$(sb ls -a)" ""
}

@test "progress is said when it takes longer than a second" {
	mkdir -p ws bin
	ln -s "$SB_BIN/../share" share
	cp "$SB_BIN/sb" bin/sb
	cat >bin/sandbox-manager-cli <<-'EOT'
		#!/bin/sh
		case $* in *create_sandbox*)
			printf '%s\n' '[progress 0.999s] one' '[progress 1.000s] two [x] y' '[Output]' >&2
			echo eos-1
		esac
	EOT
	chmod +x bin/sandbox-manager-cli
	PATH=$T/bin:$PATH run -0 --separate-stderr bin/sb up ws
	is "$output" eos-1
	is "$stderr" "sb: two [x] y"
}

@test "verbs and ids are completed, in bash and in zsh" {
	begin
	s=$(sb new)
	in_bash() {
		bash -c '. "$1"; shift; COMP_WORDS=(sb "$@") COMP_CWORD=$#; _sb sb; echo "${COMPREPLY[@]}"' \
		    - "$SB_TOP/completion/bash-completion/completions/sb" "$@"
	}
	is "$(in_bash d)" "diff down destroy"
	is "$(in_bash -b "")" eos-1
	is "$(in_bash -b eos-1 exec -s "${s:0:2}")" "$s"
	is "$(in_bash rm "$s" "")" "$s"
	is "$(in_bash diff -)" ""
	is "$(in_bash cat "")" ""
	is "$(in_bash -b none publish "")" ""
	is "$(in_bash help pub)" publish
	need zsh
	in_zsh() {
		zsh -fc '_files() { echo files; }; _describe() { print -l -- "${(@P)2}"; }
		    f=$1; shift; words=(sb "$@") CURRENT=$(($# + 1)); . $f' - "$SB_TOP/completion/zsh/site-functions/_sb" "$@"
	}
	is "$(in_zsh "" | grep '^new')" "new:make a session, print its id"
	is "$(in_zsh -b "")" eos-1
	is "$(in_zsh -b eos-1 exec -s "")" "$s"
	is "$(in_zsh publish "")" "$s"
	is "$(in_zsh cat "")" files
}
