# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Helpers of the tests of the gate; loaded after lib.

ops=$SB_TOP/svc/ops

# A gateway's token, and a sandbox eos-1 over a store (with "store").
gate_start() {
	TOKEN=$(sandbox-gateway-token ensure)
	[ "${1:-}" != store ] || { make_store && sb-box-add eos-1 >/dev/null; }
}

# Serves the box's gate until gate_stop. Everything it starts has SB_STORE.
box_start() {
	mkdir -p "$SB_RUN/box/eos-1"
	serve "$SB_RUN/box/eos-1/gate" -b eos-1 "${@:-$ops}"
}

# serve SOCKET ARGS…: sb-gate ARGS behind a unix socket, ready when it returns.
serve() {
	local sock=$1
	shift
	s6-ipcserver -1 -c 1000 -C 1000 -b 1000 "$sock" sb-gate "$@" >"$T/ready.$$" 2>>"$T/serve.err" 3>&- &
	echo $! >>"$T/servers"
	eventually test -s "$T/ready.$$"
	rm "$T/ready.$$"
}

# serve_tcp ARGS…: the same on a port of 127.0.0.1, which it prints.
serve_tcp() {
	tcpserver -1 -H -R -l 0 -c 1000 127.0.0.1 0 sb-gate "$@" >"$T/ready.$$" 2>>"$T/serve.err" 3>&- &
	echo $! >>"$T/servers"
	eventually test -s "$T/ready.$$"
	# shellcheck disable=SC2034 # for the test
	PORT=$(cat "$T/ready.$$")
	rm "$T/ready.$$"
}

gate_stop() {
	local pid
	[ -e "$T/servers" ] || return 0
	while read -r pid; do
		kill "$pid" 2>/dev/null || :
		while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
	done <"$T/servers"
	rm "$T/servers"
}

setup() { sb_setup; }
teardown() { gate_stop; sb_teardown; }

# request OP ARGS [SCOPE [MORE]]: a line; SCOPE is "system" or a sandbox's id.
request() {
	local scope='{"kind":"sandbox","sandbox_id":"'${3:-eos-1}'"}'
	[ "${3:-}" != system ] || scope='{"kind":"system"}'
	printf '{"op":"%s","request_id":"r1","scope":%s,"args":%s,"_sandbox_gateway_auth_token":"%s","_stream_logs":false%s}\n' \
	    "$1" "$scope" "$2" "$TOKEN" "${4:-}"
}

# ask …: the answer to such a line, by a gateway without a server.
ask() { request "$@" | sb-gate "$ops"; }

# ask_box OP ARGS: of the box's own gate.
ask_box() {
	printf '{"op":"%s","request_id":"r1","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":%s}\n' "$1" "$2" |
	    sb-gate -b eos-1 "${OPS:-$ops}"
}

# op NAME MEMBERS: an operation of the test, runtime, done by box and host.
op() {
	mkdir -p ops/runtime ops/management ops/observability ops/internal bin
	printf '{"name":"%s","family":"f","order":1,"summary":"s","description":"d",%s}' "$1" "$2" >"ops/runtime/$1.json"
}

# program NAME: a program of the test, from standard input.
program() {
	mkdir -p bin
	cat >"bin/$1"
	chmod +x "bin/$1"
	case :$PATH: in *":$T/bin:"*) ;; *) PATH=$T/bin:$PATH ;; esac
}

error() { printf '{"error":{"kind":"%s","message":"%s","details":{%s}}}' "$1" "$2" "${3:-}"; }

# sleeper [ready]: a program that says "started" in a file, is perhaps ready,
# and sleeps; it says "ended" when it is told to end.
sleeper() {
	local say=
	[ -z "${1:-}" ] || say='open(R, ">&=", 3) or die; syswrite R, "\n";'
	program sleeper <<EOT
#!/usr/bin/perl
\$SIG{TERM} = sub { open(F, ">$T/ended") or die; print F "x"; exit 143 };
open(F, ">$T/started") or die; print F "x"; close F;
$say
sleep 600;
EOT
}

# holder: a program that waits for the file "go", then answers.
holder() {
	program holder <<EOT
#!/bin/sh
echo x >>$T/started
until [ -e $T/go ]; do sleep 0.02; done
echo x >>$T/finished
echo '{}'
EOT
}

# fake SCRIPT: a box's gate that is a shell script, behind eos-1's socket.
fake() {
	printf '%s\n' '#!/bin/sh' "$1" | tee "$T/fake" >/dev/null
	chmod +x "$T/fake"
	[ -e "$SB_RUN/box/eos-1/gate" ] || {
		mkdir -p "$SB_RUN/box/eos-1"
		s6-ipcserver -1 "$SB_RUN/box/eos-1/gate" "$T/fake" >"$T/ready.$$" 3>&- &
		echo $! >>"$T/servers"
		eventually test -s "$T/ready.$$"
		rm "$T/ready.$$"
	}
}

# gateway_place: $sock, a path that an endpoint may have, however long that of
# the test is, where clients look for a gateway.
gateway_place() {
	ln -s "$T" "$BATS_RUN_TMPDIR/$BATS_SUITE_TEST_NUMBER"
	sock=$BATS_RUN_TMPDIR/$BATS_SUITE_TEST_NUMBER/gw
	export SANDBOX_GATEWAY_SOCKET=unix://$sock
}

# gateway SCRIPT: one that answers every request so, at $sock. The line is in
# $line and in the file "got".
gateway() {
	# shellcheck disable=SC2016 # what is quoted is for the script
	printf '%s\n' '#!/bin/sh' 'IFS= read -r line; printf "%s\n" "$line" >'"$T"'/got' "$1" >"$T/script.new"
	chmod +x "$T/script.new"
	mv "$T/script.new" "$T/script"
	[ ! -e "$sock" ] || return 0
	rm -f "$T/ready.$$"
	(
		# Not the ends of a test that talks to somebody.
		# shellcheck disable=SC2154 # of mcp-lines.bash
		[ -z "${to:-}" ] || exec {to}>&- {from}<&-
		exec s6-ipcserver -1 "$sock" "$T/script"
	) >"$T/ready.$$" 3>&- &
	echo $! >>"$T/servers"
	eventually test -s "$T/ready.$$"
}
