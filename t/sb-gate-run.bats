# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib
load gate

# Time, slots, progress, clients that go.

there() { [ -e "$1" ]; }
no_gate() { ! pgrep -P "$(paste -sd , "$T/servers")" >/dev/null; }
line() { printf '{"op":"%s","request_id":"r1","scope":{"kind":"sandbox","sandbox_id":"eos-1"},"args":%s%s}\n' "$1" "$2" "${3:-}"; }

@test "the client has gone: what changes nothing is ended" {
	sleeper
	op look '"scope":"sandbox_required","box":{"argv":["sleeper"]},"cancel":true'
	serve "$T/sock" -b eos-1 ops
	serve_tcp -b eos-1 ops
	line look {} | "$SB_T/wire" -x "$T/sock"
	line look {} | "$SB_T/wire" -r "$PORT"
	# Which ends when its command has.
	eventually no_gate
}

@test "a client that only ends its side is answered" {
	holder
	op look '"scope":"sandbox_required","box":{"argv":["holder"]},"cancel":true'
	serve "$T/sock" -b eos-1 ops
	serve_tcp -b eos-1 ops
	line look {} | "$SB_T/wire" -h "$T/sock" >one 3>&- &
	pids=$!
	line look {} | "$SB_T/wire" -h "$PORT" >two 3>&- &
	pids="$pids $!"
	both() { [ "$(wc -l <started)" = 2 ]; }
	eventually there started
	eventually both
	touch go
	# shellcheck disable=SC2086 # two numbers
	wait $pids
	is "$(cat one)$(cat two)" '{}{}'
}

@test "the client has gone: what changes something is left to finish" {
	holder
	op make '"scope":"sandbox_required","box":{"argv":["holder"]}'
	serve "$T/sock" -b eos-1 ops
	line make {} | "$SB_T/wire" -x "$T/sock"
	eventually there started
	touch go
	eventually there finished
	eventually no_gate
}

@test "what has done its work and says so may be ended, not before" {
	sleeper ready
	op make '"scope":"sandbox_required","box":{"argv":["sleeper"],"ready":true}'
	serve "$T/sock" -b eos-1 ops
	line make {} | "$SB_T/wire" -x "$T/sock"
	eventually there ended
	rm ended
	program sleeper <<-EOT
	#!/bin/sh
	echo x >$T/started
	until [ -e $T/go ]; do sleep 0.02; done
	echo done >$T/done
	echo >&3
	exec perl -e '\$SIG{TERM} = sub { open(F, ">$T/ended"); exit }; sleep 600'
	EOT
	rm started
	line make {} | "$SB_T/wire" -x "$T/sock"
	eventually there started
	touch go
	eventually no_gate
	is "$(cat done)" "done"
}

@test "beyond its deadline what changes nothing is ended, with an error" {
	sleeper
	op look '"scope":"sandbox_required","box":{"argv":["sleeper"]},"cancel":true,"deadline_ms":50'
	is "$(line look {} | sb-gate -b eos-1 ops)" "$(error operation_failed "look did not end within 50 ms" '"reason":"timeout"')"
	program sleeper <<-'EOT'
	#!/usr/bin/perl
	$SIG{TERM} = 'IGNORE'; sleep 600
	EOT
	is "$(line look {} | sb-gate -b eos-1 ops)" "$(error operation_failed "look did not end within 50 ms" '"reason":"timeout"')"
}

@test "the deadline has in it what the request wants to wait" {
	sleeper
	op look '"scope":"sandbox_required","args":[{"name":"ms","kind":"integer","help":"h"}],
	    "box":{"argv":["sleeper"]},"cancel":true,"deadline_ms":50,"waits":"ms"'
	is "$(line look '{"ms":20}' | sb-gate -b eos-1 ops)" "$(error operation_failed "look did not end within 70 ms" '"reason":"timeout"')"
}

@test "beyond its deadline what changes something is left to finish, and answered" {
	program slow <<-'EOT'
	#!/bin/sh
	sleep 0.2
	echo '{"done":true}'
	EOT
	op make '"scope":"sandbox_required","box":{"argv":["slow"]},"deadline_ms":1'
	is "$(line make {} | sb-gate -b eos-1 ops)" '{"done":true}'
}

@test "progress: only for who asked, the first at once, what comes too fast not, always the last; warnings always" {
	program talk <<-'EOT'
	#!/bin/sh
	[ "$1" != -v ] || printf 'talk: info: one\ntalk: info: t"wo\nnoise\ntalk: info: three: info: x\ntalk: warning: w\n' >&2
	echo "{\"args\":$#}"
	EOT
	op talk '"scope":"sandbox_required","box":{"argv":["talk","{?progress -v}"]}'
	is "$(line talk {} | sb-gate -b eos-1 ops)" '{"args":0}'
	is "$(line talk {} ',"_stream_logs":"true"' | sb-gate -b eos-1 ops)" '{"args":0}'
	is "$(line talk {} ',"_stream_logs":true' | sb-gate -b eos-1 ops)" 'cli_log("one")
cli_log("three: info: x")
cli_log("warning: w")
{"args":1}'
	# An error is the last line as well.
	is "$(line talk '{}' ',"_stream_logs":true' | sed 's/talk/talk2/' | sb-gate -b eos-1 ops)" "$(error unknown_op "unknown operation")"
}

# hold N: so many requests of the operation "make" in the background, each
# begun when the one before runs its program.
hold() {
	local i
	held=
	begun() { [ "$(cat started 2>/dev/null | wc -l)" = "$1" ]; }
	for i in $(seq "$1"); do
		line make {} | "$SB_T/wire" "$T/sock" >"held.$i" 3>&- &
		held="$held $!"
		eventually begun "$i"
	done
}

busy='{"error":{"kind":"server_busy","message":"daemon is at connection capacity","details":{"max_concurrent_connections":16,"fields":{"max_concurrent_connections":16}}}}'

@test "slots: beyond them the answer is capacity, but what lists and ends has its own" {
	holder
	program quick <<<'#!/bin/sh
echo "{}"'
	op make '"scope":"sandbox_required","box":{"argv":["holder"]}'
	op look '"scope":"sandbox_required","box":{"argv":["quick"]}'
	op stop '"scope":"sandbox_required","box":{"argv":["quick"]},"urgent":true'
	serve "$T/sock" -c 16 -b eos-1 ops
	hold 15
	is "$(line look {} | "$SB_T/wire" "$T/sock")" "$busy"
	is "$(line stop {} | "$SB_T/wire" "$T/sock")" '{}'
	touch go
	# shellcheck disable=SC2086 # numbers
	wait $held
	is "$(cat held.* | sort -u)" '{}'
	is "$(line look {} | "$SB_T/wire" "$T/sock")" '{}'
}

@test "slots: who only waits has none" {
	holder
	sleeper ready
	program quick <<<'#!/bin/sh
echo "{}"'
	op make '"scope":"sandbox_required","args":[{"name":"ms","kind":"integer","help":"h"}],
	    "box":{"argv":["holder"]},"waits":"ms","cancel":true'
	op run '"scope":"sandbox_required","args":[{"name":"ms","kind":"integer","help":"h"}],
	    "box":{"argv":["sleeper"],"ready":true},"waits":"ms"'
	op look '"scope":"sandbox_required","box":{"argv":["quick"]}'
	serve "$T/sock" -c 1 -b eos-1 ops
	hold 2
	is "$(line look {} | "$SB_T/wire" "$T/sock")" '{}'
	touch go
	rm started
	line run {} | "$SB_T/wire" "$T/sock" >out 3>&- &
	eventually there started
	free() { [ "$(line look {} | "$SB_T/wire" "$T/sock")" = '{}' ]; }
	eventually free
	kill $!
}

@test "no slots at all: every request is told so, unread" {
	gate_start
	is "$(sb-gate -c 0 "$ops" </dev/null)" \
	    "$(error internal_error "gateway is at connection capacity" '"max_concurrent_connections":0,"fields":{"max_concurrent_connections":0}')"
}

@test "slots of the killed are free" {
	holder
	op make '"scope":"sandbox_required","box":{"argv":["holder"]}'
	for i in 1 2 3; do
		rm -f started
		line make {} | sb-gate -c 1 -b eos-1 ops >out 3>&- &
		eventually there started
		kill -KILL $!
		wait $! || :
	done
	touch go
	is "$(line make {} | sb-gate -c 1 -b eos-1 ops)" '{}'
}

@test "three hundred clients that send a byte and nothing more do not keep others away" {
	gate_start
	serve "$T/sock" "$ops"
	mkfifo stop
	perl -MIO::Socket::UNIX -e 'my @c;
	    for (1..300) { my $s = IO::Socket::UNIX->new("sock") or die; syswrite $s, "{"; push @c, $s }
	    open(F, ">slow"); print F "x"; close F; open(F, "<stop"); <F>' 3>&- &
	eventually test -s slow
	for i in 1 2 3; do
		is "$(request list_sandboxes {} system | "$SB_T/wire" "$T/sock")" '{"sandboxes":[]}'
	done
	echo >stop
	wait $!
}

@test "more than sixteen long requests at once wait for one another" {
	gate_start
	serve "$T/sock" "$ops"
	long() { printf '{"op":"list_sandboxes","request_id":"r","scope":{"kind":"system"},"args":{"x":"'
		head -c 1500000 /dev/zero | tr '\0' x; printf '"},"_sandbox_gateway_auth_token":"%s"}\n' "$TOKEN"; }
	long >request
	for i in $(seq 24); do "$SB_T/wire" "$T/sock" <request >"o.$i" 3>&- & pids="$pids $!"; done
	# shellcheck disable=SC2086 # numbers
	wait $pids
	is "$(cat o.* | sort | uniq -c | tr -s ' ')" ' 24 {"sandboxes":[]}'
}

@test "who has shown a token does not wait for strangers who send much" {
	gate_start
	serve "$T/sock" "$ops"
	mkfifo stop
	perl -MIO::Socket::UNIX -e 'my @c;
	    for (1..16) { my $s = IO::Socket::UNIX->new("sock") or die; $s->print("{\"a\":\"", "x" x 1100000); $s->flush; push @c, $s }
	    open(F, ">full"); print F "x"; close F; open(F, "<stop"); <F>' 3>&- &
	held=$!
	eventually test -s full
	printf '{"_sandbox_gateway_auth_token":"%s","op":"list_sandboxes","request_id":"r","scope":{"kind":"system"},"args":{"x":"' "$TOKEN" >request
	head -c 1500000 /dev/zero | tr '\0' x >>request
	printf '"}}\n' >>request
	is "$("$SB_T/wire" "$T/sock" <request)" '{"sandboxes":[]}'
	echo >stop
	wait $held
}

@test "a request that writes to a full device, or to nobody, is no success" {
	gate_start
	run -111 bash -c 'sb-gate "$1" </dev/null >/dev/full' - "$ops"
	run -111 bash -c 'sb-gate "$1" </dev/null >&-' - "$ops"
}

@test "-v logs a line for each request, with nothing secret in it" {
	gate_start
	request list_sandboxes {} system | sed 's/"r1"/"r\\n1\\u001b"/' | sb-gate -v "$ops" >out 2>err
	grep -qE '^sb-gate: info: list_sandboxes ok in [0-9]+ ms, request r\?1\?$' err
	request nothing {} system | sb-gate -v "$ops" >out 2>>err
	grep -q ': nothing unknown_op in ' err
	echo x | sb-gate -v "$ops" >out 2>>err
	grep -q ': - bad_json in ' err
	run ! grep -F "$TOKEN" err
}
