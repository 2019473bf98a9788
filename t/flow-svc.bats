# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib
load gate
load svc

# sb-up, sb-down, and the services between them.

@test "sb-up returns when all sockets answer; sb-down leaves no process and no socket" {
	svc_start
	run -0 up
	is "$output" ""
	answers "$unix"
	answers "$second"
	answers "$unix" eos-1
	answers "$second" eos-1
	is "$(stat -c %a "$unix" "$second" "$SB_RUN/box/eos-1/gate" | tr '\n' ' ')" "600 600 600 "
	run -0 sb-down
	is "$output" ""
	all_down
	[ ! -e "$second" ]
	run -0 sb-down
}

@test "a port, by long options and by the configuration; the token is made" {
	need s6-svscan tcpserver jq
	port=$(free_port)
	run -0 sb-up --timeout=20000 --listen "tcp://127.0.0.1:$port" 3>&-
	TOKEN=$(sandbox-gateway-token read)
	answers "$port"
	answers "$SB_RUN/gateway"
	run -0 sb-down --timeout=20000
	run ! answers "$port"
	printf 'gateway: {bind_addr: "127.0.0.1:%s", max_concurrent_connections: 1}\n' "$port" >c.yml
	run -0 --separate-stderr sb-conf -d "$SB_STATE" -r gateway c.yml
	is "$stderr" ""
	run -0 sb-up 3>&-
	answers "$port"
	is "$(cat "$SB_RUN/svc/gateway/env/SB_GATE_COUNT")" 1
}

@test "a second sb-up is refused and touches nothing" {
	svc_start
	run -0 up
	sb-box-add eos-2 >/dev/null
	look() { find "$SB_RUN" "$SB_STATE" "$HOME" -not -path '*/log/*' -printf '%p %i %m %s %C@\n' | sort; for s in gateway gateway-unix gate.eos-1 janitor.eos-1 sampler.eos-1 logger; do pid_of $s; done; }
	look >before
	run -98 --separate-stderr sb-up 3>&-
	has "$stderr" "is up already"
	run -98 sb-up -p -l "unix://$T/third" 3>&-
	run -100 sb-up -l "unix://$T/third" eos-2 3>&-
	look >after
	same before after
}

@test "a clock that is set while it comes up or ends is nothing to it" {
	svc_start
	program date <<-EOT
	#!/bin/sh
	echo x >>$T/days
	exec /bin/date -d "\$(wc -l <$T/days) days" "\$@"
	EOT
	run -0 up
	answers "$second" eos-1
	run -0 sb-down eos-1
	run -0 sb-down
	all_down
}

@test "a second tree over the same state is refused, while the first is there" {
	need overlay userns
	svc_start
	run -0 up
	# Sessions and their commands are nothing of it.
	request exec_command '{"cmd":"read x","yield_time_ms":0}' | asked "$unix" >out
	look() { find "$SB_RUN" "$SB_STATE" "$HOME" -not -path '*/log/*' -printf '%p %i %m %s %C@\n' | sort; }
	look >before
	SB_RUN=$T/other run -98 --separate-stderr sb-up -l "unix://$T/third" 3>&-
	has "$stderr" "$SB_STATE is served already, from $SB_RUN"
	look >after
	same before after
	answers "$unix" eos-1
	# As long as anything of it is.
	end "$(svscan)"
	SB_RUN=$T/other run -98 sb-up -l "unix://$T/third" 3>&-
	run -0 sb-down
	SB_RUN=$T/other run -0 sb-up -l "unix://$T/third" 3>&-
	answers "$T/third"
	SB_RUN=$T/other run -0 sb-down
}

@test "directories whose sockets have longer names than addresses may have" {
	svc_start
	SB_RUN=$T/$(head -c 120 /dev/zero | tr '\0' r)
	unix=$SB_RUN/gateway
	run -0 up
	answers "$unix" eos-1
	answers "$second" eos-1
	run -0 sb-down
	all_down
}

@test "of several at once one starts the tree" {
	svc_start
	pids=
	for i in 1 2 3; do
		up 2>"err.$i" &
		pids="$pids $!"
	done
	for p in $pids; do
		rc=0
		wait "$p" || rc=$?
		echo $rc >>codes
	done
	is "$(sort -n codes | tr '\n' ' ')" "0 98 98 "
	is "$(servers)" 3
	answers "$unix" eos-1
}

@test "a service that is killed is started again, and clients get an answer" {
	svc_start
	run -0 up
	for s in gateway gateway-unix gate.eos-1 janitor.eos-1 sampler.eos-1 gateway/log gate.eos-1/log logger; do
		old=$(pid_of $s)
		end "$old"
		again() { p=$(pid_of $s) && [ "$p" != "$old" ] && [ "$p" != 0 ]; }
		eventually again
		for a in "$unix" "$second"; do eventually answers "$a" eos-1; done
	done
	is "$(servers)" 3
}

@test "a supervisor that is killed takes its server along" {
	svc_start
	run -0 up
	for s in gateway gate.eos-1; do
		old=$(pid_of $s)
		end "$(ps -o ppid= -p "$old" | tr -d ' ')"
		gone() { ! kill -0 "$old" 2>/dev/null; }
		eventually gone
		eventually answers "$unix" eos-1
	done
	is "$(servers)" 3
	run -0 sb-down
	all_down
}

@test "s6-svscan is killed: sb-up ends what it left and starts all again, once" {
	svc_start
	run -0 up
	our_services | sort >before
	end "$(svscan)"
	answers "$unix" eos-1
	run -0 up
	for a in "$unix" "$second"; do answers "$a" eos-1; done
	is "$(servers)" 3
	is "$(svscan | wc -l)" 1
	is "$(our_services | sort | comm -12 - before | grep -v /proc || :)" ""
	# And sb-down ends what is left of a tree.
	end "$(svscan)"
	run -0 sb-down
	all_down
	# Everything at once: the sockets are stale.
	run -0 up
	# shellcheck disable=SC2046 # numbers
	end $(our_services | grep -v /proc)
	[ -S "$unix" ] && [ -S "$second" ]
	run -0 up
	for a in "$unix" "$second"; do answers "$a" eos-1; done
}

@test "sb-down lets a running request finish, and listens no more" {
	need overlay userns
	svc_start
	run -0 up
	s=$(ask create_workspace_session {} | jq -r .workspace_session_id)
	request exec_command '{"cmd":"read x","workspace_session_id":"'"$s"'","yield_time_ms":600000}' |
	    asked "$second" >answer 3>&- &
	client=$!
	runs() { sb-job-ls -r | grep -q .; }
	eventually runs
	sb-down -t 60000 3>&- &
	down=$!
	refused() { ! answers "$second" 2>/dev/null; }
	eventually refused
	[ ! -s answer ]
	echo text | sb-pty-feed "$(sb-job-ls -r | head -n 1)"
	wait $client
	# The output goes to either of those that wait for it.
	is "$(jq -r '.status, .exit_code' answer | tr '\n' ' ')" "ok 0 "
	wait $down
	all_down
}

@test "sb-down -t ends requests that wait; sessions and commands go on" {
	need overlay userns
	svc_start
	run -0 up
	s=$(ask create_workspace_session {} | jq -r .workspace_session_id)
	request exec_command '{"cmd":"read x; echo $x >here","workspace_session_id":"'"$s"'","yield_time_ms":600000}' |
	    asked "$unix" >answer 3>&- &
	client=$!
	runs() { sb-job-ls -r | grep -q .; }
	eventually runs
	run -0 sb-down -t 0
	wait $client || :
	all_down
	is "$(cat answer)" ""
	echo text | sb-pty-feed "$(sb-job-ls -r | head -n 1)"
	ended() { [ -z "$(sb-job-ls -r | grep .)" ]; }
	eventually ended
	is "$(sb-file-read -s "$s" here | jq -r .content)" text
}

@test "what a command inherits: no lock, no signal that is ignored, none of our variables" {
	need overlay userns
	svc_start
	run -0 up
	request exec_command '{"cmd":"ls /proc/$$/fd; grep SigIgn /proc/self/status; env | grep -E ^SB_LOG; umask","yield_time_ms":60000}' |
	    asked "$second" | jq -r .output >out
	is "$(grep -c '^[79]$' out)" 0
	# Signals 32 and 33 are the C library's, which lets nobody change them.
	grep -Ex 'SigIgn:.[0-9a-f]{8}[08]0{7}' out
	is "$(tail -n 1 out)" 0022
}

@test "logs: a line for each request, in UTC, rotated within bounds" {
	svc_start
	export SB_LOG_SIZE=4096 SB_LOG_FILES=2
	run -0 up
	for _ in $(seq 150); do answers "$unix"; done
	log=$SB_STATE/log/gateway
	rotated() { [ "$(find "$log" -name '@*' | wc -l)" = 2 ]; }
	eventually rotated
	is "$(find "$log" -type f -size +4200c)" ""
	# Another, should the last have begun a new file.
	said() { answers "$unix" && tail -n 1 "$log/current" | grep -qE '^[0-9-]{10} [0-9:.]+ +sb-gate: info: list_sandboxes ok in [0-9]+ ms, request r1$'; }
	eventually said
	is "$(head -c 13 "$log/current")" "$(date -u '+%Y-%m-%d %H')" || is "$(date -u +%M)" 00
}

@test "the janitor ends what a killed job left" {
	need overlay userns
	svc_start
	run -0 up
	request exec_command '{"cmd":"echo done >f; read x","yield_time_ms":0}' | asked "$second" >out
	job=$(jq -r .command_session_id out)
	wrote() { request read_command_lines '{"command_session_id":"'"$job"'"}' | asked "$unix" >/dev/null; p=$(job_process "$(sb-job-ls -r | head -n 1)") && [ -n "$p" ]; }
	eventually wrote
	end "$p"
	said() { grep -q ' ended ' "$SB_STATE/log/janitor.eos-1/current"; }
	eventually said
	is "$(sb-job-ls -r | grep . || :)" ""
	is "$(cat "$SB_STATE/log/janitor.eos-1/current" | grep -vc ' ended ')" 0
}

@test "the sampler goes on, and the newest sample is in both snapshots" {
	svc_start
	echo 'observability.resource_stats.sample_interval_ms 250' >"$SB_STORE/conf"
	run -0 up
	newest() { request snapshot {} "$1" | asked "$second" | jq "$2.resources.latest.ts"; }
	first=$(newest eos-1 '')
	[ "$first" -gt 0 ]
	later() { [ "$(newest "$1" "$2")" -gt "$first" ]; }
	eventually later eos-1 ''
	eventually later system '.sandboxes[0]'
	run -0 sb-down
	cp "$SB_STORE/observability/resources.ndjson" last
	is "$(jq -r .kind last | sort -u)" sample
	is "$(our_processes "$SB_STORE")" ""
	same "$SB_STORE/observability/resources.ndjson" last
}

@test "tokens are given and taken without a restart" {
	svc_start
	run -0 up
	sb-token new -g observability one >one
	one() { TOKEN=$(cat one) request "$1" {} "${2:-}" | asked "$second"; }
	is "$(one list_workspace_sessions eos-1 | jq -r .error.details.required_groups)" runtime
	sb-token rm one
	is "$(one list_workspace_sessions eos-1 | jq -c .error.details)" "{}"
	is "$(one list_workspace_sessions eos-1 | jq -r .error.kind)" unauthorized
}

@test "peers of the unix socket have what rules give them, changed while it is up" {
	svc_start
	mkdir -p "$SB_STATE/peers/uid/$(id -u)/env"
	: >"$SB_STATE/peers/uid/$(id -u)/allow"
	echo runtime >"$SB_STATE/peers/uid/$(id -u)/env/SB_GATE_GROUPS"
	run -0 up
	plain() { printf '{"op":"%s","request_id":"r","scope":%s,"args":{}}\n' "$1" "$2" | asked "$unix"; }
	is "$(plain list_workspace_sessions '{"kind":"sandbox","sandbox_id":"eos-1"}')" '{"sessions":[]}'
	is "$(plain list_sandboxes '{"kind":"system"}' | jq -r .error.kind)" unauthorized
	echo management >"$SB_STATE/peers/uid/$(id -u)/env/SB_GATE_GROUPS"
	plain list_sandboxes '{"kind":"system"}' | grep -q '^{"sandboxes"'
	rm "$SB_STATE/peers/uid/$(id -u)/allow"
	is "$(plain list_sandboxes '{"kind":"system"}')" ""
	if [ "$(id -u)" = 0 ]; then
		mkdir -p "$SB_STATE/peers/uid/1000/env"
		: >"$SB_STATE/peers/uid/1000/allow"
		echo management >"$SB_STATE/peers/uid/1000/env/SB_GATE_GROUPS"
		cp "$SB_T/wire" wire
		chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$T"
		printf '{"op":"list_sandboxes","request_id":"r","scope":{"kind":"system"},"args":{}}\n' |
		    setpriv --reuid 1000 --regid 1000 --clear-groups ./wire "$unix" | grep -q '^{"sandboxes"'
	fi
}

@test "a sandbox comes and goes while the others are served" {
	svc_start
	run -0 up
	before=$(pid_of gate.eos-1)
	SB_STORE=$T/other
	make_store
	sb-box-add eos-2 >/dev/null
	run -1 sb-up eos-3 3>&-
	run -98 sb-up eos-1 3>&-
	run -0 sb-up eos-2 3>&-
	is "$output" ""
	answers "$unix" eos-2
	answers "$second" eos-1
	run -98 sb-up eos-2 3>&-
	run -0 sb-down eos-2
	is "$(find "$SB_RUN/svc" -name '*eos-2*')" ""
	is "$(find "$SB_RUN/box/eos-2" -type s)" ""
	run -1 sb-down eos-2
	answers "$unix" eos-1
	is "$(pid_of gate.eos-1)" "$before"
	run -0 sb-up eos-2 3>&-
	is "$output" ""
	answers "$unix" eos-2
	# The next sb-up serves all that there are.
	run -0 sb-down
	run -0 up
	answers "$second" eos-1 && answers "$second" eos-2
	run -0 sb-down
	run -0 up eos-2
	answers "$unix" eos-2
	is "$(request list_workspace_sessions {} eos-1 | asked "$unix" | jq -r .error.kind)" invalid_request
}

@test "the directories work in a tree of the host" {
	svc_start
	run -0 up -d mine
	run -98 up -d mine
	mkdir tree
	ln -s "$T"/mine/* tree/
	s6-svscan tree </dev/null >svscan.log 2>&1 3>&- &
	host=$!
	answered() { [ -S "$second" ] && answers "$second" eos-1 2>/dev/null; }
	eventually answered
	run -0 sb-down
	answers "$unix" eos-1
	s6-svscanctl -t tree
	wait $host
	is "$(cat svscan.log)" ""
}

@test "what cannot be served is refused, and nothing is left" {
	svc_start
	for e in 0.0.0.0:7 "tcp://[::]:7" 10.0.0.1:7; do
		run -100 --separate-stderr sb-up -l $e 3>&-
		has "$stderr" "add --public"
	done
	for e in localhost:7 127.0.0.1 127.0.0.1:0 unix://x npipe://./pipe/x; do
		run -100 sb-up -l $e 3>&-
	done
	run -100 sb-up -t x 3>&-
	run -100 env SB_RUN=x sb-up
	run -100 env SB_RUN=x sb-down
	run -100 sb-up ../x 3>&-
	echo mine >"$second"
	run -2 --separate-stderr up
	has "$stderr" "$second already exists"
	is "$(cat "$second")" mine
	rm "$second"
	serve_tcp "$ops"
	run -111 --separate-stderr sb-up -l "127.0.0.1:$PORT" 3>&-
	has "$stderr" "gateway-tcp said: "
	has "$stderr" "address already used"
	answers "$PORT"
	all_down
}

@test "where no log can be written nothing is served, which is said at once and not with old words" {
	svc_start
	mkdir -p "$SB_STATE/log/gateway-unix"
	echo '2001-01-01 00:00:00.000000000  old words' >"$SB_STATE/log/gateway-unix/current"
	echo x >"$SB_STATE/log/gateway"
	run -111 --separate-stderr up -t 600000
	has "$stderr" "the gateway does not listen"
	has "$stderr" "sb-up: warning: logger said: "
	run ! has "$stderr" "old words"
	all_down
}

@test "a sandbox that cannot be served does not keep the others from it" {
	svc_start
	mkdir -p "$SB_STATE/sandboxes/eos-0/env"
	echo x >"$SB_RUN.f" && mkdir -p "$SB_RUN/box" && mv "$SB_RUN.f" "$SB_RUN/box/eos-0"
	run -0 --separate-stderr up
	has "$stderr" "eos-0: its gate is not ready"
	answers "$second" eos-1
	# One that is removed is not tried any more.
	rm -r "$SB_STATE/sandboxes/eos-0"
	quiet() { [ "$(pid_of gate.eos-0)" = 0 ] && [ "$(s6-svstat -o wantedup "$SB_RUN/svc/gate.eos-0")" = false ]; }
	eventually quiet
}
