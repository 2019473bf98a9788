# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib
load gate
load svc

# sandbox-gateway, and start-sandbox-docker-gateway, which starts it.

gw_start() {
	need s6-ipcserver tcpserver jq
	export SANDBOX_GATEWAY_AUTH_TOKEN=secret TMPDIR=$T/tmp
	mkdir -p tmp
	# shellcheck disable=SC2034 # for request
	TOKEN=secret
	sock=$T/sock pid=$T/gw.pid
}
# gw FLAG…: in the background; returns when there is a pid file. A shell has
# what it starts in the background ignore INT.
gw() {
	env --default-signal=INT sandbox-gateway serve --pid-file "$pid" "$@" >gw.out 2>gw.err 3>&- &
	gw=$!
	listens() { [ -s "$pid" ] || ! kill -0 $gw; }
	eventually listens
	[ -s "$pid" ] || fail "$(cat gw.err)"
}
# Everything of it is gone.
no_rest() {
	is "$(ls -A tmp)" ""
	[ ! -e "$pid" ] && [ ! -e "$sock" ] && [ ! -e "$sock.lock" ]
}
teardown() {
	[ -z "${gw:-}" ] || kill "$gw" 2>/dev/null || :
	[ ! -s "${pid:-/dev/null}" ] || kill "$(cat "$pid")" 2>/dev/null || :
	gate_stop
	sb_teardown
}

@test "serve: the pid file when it listens; TERM and INT end it, and nothing is left" {
	gw_start
	for sig in TERM INT; do
		gw --gateway-socket "unix://$sock"
		is "$(cat "$pid")" $gw
		is "$(tail -c 1 "$pid" | tr -d 0-9)" ""
		is "$(stat -c %a "$sock")" 600
		is "$(cat /proc/$gw/comm)" sandbox-gateway
		answers "$sock"
		kill -$sig $gw
		wait $gw
		no_rest
	done
	port=$(free_port)
	gw --gateway-endpoint="127.0.0.1:$port"
	answers "$port"
	kill $gw
	wait $gw
	no_rest
	run ! answers "$port"
	is "$(cat gw.err)" ""
	gw --gateway-endpoint="0.0.0.0:$(free_port)"
	has "$(cat gw.err)" "other machines reach it"
	kill $gw
	wait $gw
}

@test "a path that exists is refused and left alone, and so is a port in use" {
	gw_start
	echo mine >"$sock"
	run -1 --separate-stderr sandbox-gateway serve --gateway-socket "unix://$sock" --pid-file "$pid"
	has "$stderr" "$sock already exists"
	is "$(cat "$sock")" mine
	rm "$sock"
	serve_tcp "$ops"
	echo 12 >"$pid"
	run -1 --separate-stderr sandbox-gateway serve --gateway-socket "127.0.0.1:$PORT" --pid-file "$pid"
	has "$stderr" "gateway io error"
	is "$(cat "$pid")" 12
	rm "$pid"
	no_rest
}

@test "the token: from the flag or the environment, not blank, not in an argument of ours" {
	gw_start
	gw --gateway-socket "unix://$sock"
	answers "$sock"
	run ! grep -qa secret /proc/[0-9]*/cmdline
	request list_sandboxes {} system | TOKEN=x sed s/secret/other/ | "$SB_T/wire" "$sock" | grep -q unauthorized
	kill $gw
	wait $gw
	SANDBOX_GATEWAY_AUTH_TOKEN=other gw --auth-token secret --gateway-socket "unix://$sock"
	answers "$sock"
	for t in "" "  "; do
		run -1 --separate-stderr sandbox-gateway serve --auth-token "$t"
		is "$stderr" "sandbox-gateway: gateway auth token is required; pass --auth-token or set SANDBOX_GATEWAY_AUTH_TOKEN"
		run -1 env SANDBOX_GATEWAY_AUTH_TOKEN="$t" sandbox-gateway serve
	done
	run -1 sandbox-gateway serve --auth-token "a
b"
}

@test "flags: each once, with a value, known" {
	gw_start
	run -2 sandbox-gateway
	run -2 sandbox-gateway server
	run -0 sandbox-gateway --help
	run -0 --separate-stderr sandbox-gateway serve --help
	has "$output" "--max-concurrent-connections"
	run -2 --separate-stderr sandbox-gateway serve --pid-file a --pid-file=b
	has "$stderr" "--pid-file cannot be used multiple times"
	run -2 sandbox-gateway serve --gateway-socket a --gateway-endpoint b
	run -2 sandbox-gateway serve --pid-file
	run -2 sandbox-gateway serve --what x
	run -2 sandbox-gateway serve x
	run -2 sandbox-gateway serve --backend podman
	run -2 sandbox-gateway serve --max-concurrent-connections -1
	run -1 --separate-stderr sandbox-gateway serve --backend docker
	has "$stderr" "--config-yaml is required when --backend docker"
	for e in localhost:1 127.0.0.1:0 unix://x npipe://./pipe/x; do
		run -1 sandbox-gateway serve --gateway-socket "$e" --pid-file "$pid"
	done
	no_rest
}

@test "flag, environment, document, in this order" {
	gw_start
	printf 'gateway: {bind_addr: "unix://%s", pid_path: %s}\n' "$T/y" "$T/y.pid" >c.yml
	sandbox-gateway serve --config-yaml c.yml 2>gw.err 3>&- &
	gw=$!
	eventually test -s y.pid
	answers "$T/y"
	kill $gw
	wait $gw
	SANDBOX_GATEWAY_SOCKET=unix://$T/e gw --config-yaml c.yml
	answers "$T/e"
	[ ! -e y ]
	kill $gw
	wait $gw
	SANDBOX_GATEWAY_SOCKET=unix://$T/e gw --gateway-socket "unix://$sock" --config-yaml c.yml --max-concurrent-connections 0
	is "$(request list_sandboxes {} system | "$SB_T/wire" "$sock" | jq -c .error.details.max_concurrent_connections)" 0
	kill $gw
	wait $gw
	# A blank one is none.
	SANDBOX_GATEWAY_SOCKET=unix://$T/e gw --gateway-socket ' '
	answers "$T/e"
	echo 'gateway: {auth_token: x}' >bad.yml
	run -1 --separate-stderr sandbox-gateway serve --config-yaml bad.yml --pid-file other
	has "$stderr" "gateway.auth_token"
	run -1 sandbox-gateway serve --config-yaml missing.yml --pid-file other
	[ ! -e other ]
}

@test "TERM: a request that is being answered has some time" {
	gw_start
	mkdir -p ops bin
	op slow '"scope":"system","args":[],"host":{"argv":["holder"]}'
	holder
	gw --gateway-socket "unix://$sock"
	# The operations of the test, in the place of ours.
	kill $gw
	wait $gw
	mkdir -p fake/bin fake/share/sb
	cp "$SB_BIN"/* fake/bin/
	cp -R ops fake/share/sb/
	PATH=$T/fake/bin:$T/bin:$PATH gw --gateway-socket "unix://$sock"
	request slow {} system | "$SB_T/wire" "$sock" >answer 3>&- &
	client=$!
	eventually test -s started
	kill $gw
	gone() { [ ! -e "$sock" ]; }
	eventually gone
	echo >go
	wait $client
	is "$(cat answer)" "{}"
	wait $gw
	no_rest
}

@test "a pid file that is another's, or none, is left as it is" {
	gw_start
	gw --gateway-socket "unix://$sock"
	run -1 --separate-stderr sandbox-gateway serve --gateway-socket "unix://$T/second" --pid-file "$pid" 3>&-
	is "$stderr" "sandbox-gateway: $pid is that of a gateway that runs, $gw"
	is "$(cat "$pid")" $gw
	[ ! -e second ]
	answers "$sock"
	kill $gw
	wait $gw
	# One that has ended, or a stranger's.
	for n in $gw $$ 1 x; do
		echo $n >stale
		mv stale "$pid"
		env --default-signal=INT sandbox-gateway serve --pid-file "$pid" --gateway-socket "unix://$sock" 2>gw.err 3>&- &
		gw=$!
		mine() { [ "$(cat "$pid")" = $gw ]; }
		eventually mine
		is "$(stat -c %a "$pid")" 644
		kill $gw
		wait $gw
		no_rest
	done
	mkdir dir
	run -1 --separate-stderr sandbox-gateway serve --gateway-socket "unix://$sock" --pid-file "$T/dir" 3>&-
	has "$stderr" "unable to write $T/dir"
	is "$(ls -A dir tmp)" $'dir:\n\ntmp:'
	is "$(find . -name 'dir.*')" ""
	# Through a link nothing is written.
	echo mine >file
	ln -s file link
	gw=
	pid=$T/link
	env --default-signal=INT sandbox-gateway serve --pid-file "$pid" --gateway-socket "unix://$sock" 2>gw.err 3>&- &
	gw=$!
	eventually mine
	is "$(cat file)" mine
	kill $gw
	wait $gw
}

@test "killed: its server ends as well, and start- puts another in its place" {
	gw_start
	export SANDBOX_GATEWAY_PID_FILE=$pid SANDBOX_GATEWAY_SOCKET=unix://$sock
	gw
	kill -KILL $gw
	refused() { ! answers "$sock" 2>/dev/null; }
	eventually refused
	[ -S "$sock" ] && [ -s "$pid" ]
	run -0 start-sandbox-docker-gateway --rebuild-binary 3>&-
	answers "$sock"
	[ "$(cat "$pid")" != "$gw" ]
}

@test "start-: token, log, one in the place of the other" {
	gw_start
	unset SANDBOX_GATEWAY_AUTH_TOKEN
	run -0 --separate-stderr start-sandbox-docker-gateway --gateway-socket "unix://$sock" --pid-file="$pid" 3>&-
	[ -n "$(command -v sb-docker)" ] || has "$stderr" "sb-docker is not installed"
	has "$output" "log: $T/gw.log"
	TOKEN=$(sandbox-gateway-token read)
	is "$(printf %s "$TOKEN" | tr -d 0-9a-f | wc -c) ${#TOKEN}" "0 64"
	answers "$sock"
	first=$(cat "$pid")
	run -0 start-sandbox-docker-gateway --gateway-socket "unix://$sock" --pid-file="$pid" 3>&-
	answers "$sock"
	[ "$(cat "$pid")" != "$first" ]
	gone() { ! kill -0 "$first" 2>/dev/null; }
	eventually gone
	kill "$(cat "$pid")"
	# A document says where both are.
	sb-conf -D | sed "s|^\( *pid_path:\) /tmp/eos.*|\1 $T/y.pid|; s|^\( *bind_addr:\).*|\1 unix://$T/y|" >c.yml
	sed -i 's/^ *docker: null.*/  docker: {daemon_binary_path: \/x, daemon_config_yaml_path: \/y}/' c.yml
	SANDBOX_GATEWAY_CONFIG_YAML=c.yml run -0 start-sandbox-docker-gateway 3>&-
	has "$output" "pid file: $T/y.pid"
	answers "$T/y"
	kill "$(cat y.pid)"
	# The environment's token becomes the file's.
	SANDBOX_GATEWAY_AUTH_TOKEN=given run -0 start-sandbox-docker-gateway --gateway-socket "unix://$sock" --pid-file="$pid" 3>&-
	is "$(sandbox-gateway-token read)" given
	run -0 start-sandbox-docker-gateway --help
	has "$output" "--pid-file"
}

@test "start-: fails with the log when the gateway does not start, and ends no stranger" {
	gw_start
	sleep 600 3>&- &
	echo $! >"$pid"
	echo x >"$sock.x"
	run -1 --separate-stderr start-sandbox-docker-gateway --gateway-socket "unix://$sock.x" --pid-file "$pid" 3>&-
	has "$stderr" "already exists"
	kill $!
	# Nor does it take the socket of one that another pid file names.
	gw --gateway-socket "unix://$sock"
	run -1 start-sandbox-docker-gateway --gateway-socket "unix://$sock" --pid-file "$T/other.pid" 3>&-
	answers "$sock"
	kill $gw
	wait $gw
	echo 'nonsense: 1' >bad.yml
	SANDBOX_GATEWAY_CONFIG_YAML=bad.yml run ! start-sandbox-docker-gateway --gateway-socket "unix://$sock" --pid-file "$pid" 3>&-
	[ ! -e "$sock" ]
}
