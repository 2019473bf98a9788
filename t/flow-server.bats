# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
# shellcheck disable=SC2030,SC2031 # each test is a subshell
# Servers that run for long, and questions that nobody answers.
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns jq git
	# What runs here is asked directly.
	unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
	mkdir -p ws; echo '<p>page</p>' >ws/index.html
	cp "$SB_T/httpd" ws/
	make_store
	s=$(sb-session-new)
}

# ex ARG…: sb-exec in the session; its answer goes to $answer, its job to $job.
ex() {
	answer=$(sb-exec -s "$s" "$@" 3>&-)
	job=$(sb-job-ls | grep . | tail -n 1)
}
of() { printf %s "$answer" | jq -r ".$1"; }
row() { answer=$(sb-pty-read "$job" 3>&-) && printf %s "$(of output)" | grep -qxF -- "$1"; }
over() { ! sb-job-ls -r | grep -qxF "$1"; }

# The server of $job: its port.
serves() { answer=$(sb-pty-read "$job" 3>&-) && port=$(of output | sed -n 's/^serving on port //p') && [ -n "$port" ]; }
fetch() { ex -P -y 60000 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && printf "GET /%s HTTP/1.0\r\n\r\n" "$2" >&3 && cat <&3' - "$port" "$1"; }
port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && { fetch index.html; [ "$(of exit_code)" = 1 ]; }; }

@test "R77: a server goes on: polled, fetched from, ended by its job, and its port is free" {
	start
	ex -y 0 ./httpd
	is "$(of status)" running
	local server=$job
	eventually serves
	fetch index.html
	is "$(of exit_code)" 0
	has "$(of output)" 'HTTP/1.0 200 OK'
	has "$(of output)" '<p>page</p>'
	fetch none
	has "$(of output)" '404 Not Found'
	# Its log is read as it comes; it holds the session.
	job=$server
	eventually row 'GET /index.html 200'
	eventually row 'GET /none 404'
	is "$(of status)" running
	run -98 --separate-stderr sb-session-end "$s"
	has "$output" "$server"
	sb-job-kill "$server"
	port_is_free
	job=$server
	row 'GET /none 404'
	is "$(of status)" cancelled
}

@test "R77: a server in the background of a command that is over: polled, fetched from, gone with its session" {
	start
	ex -y 60000 './httpd & echo started'
	is "$(of status) $(of background_count)" "ok 1"
	is "$(of '|.background_processes[0].command')" ./httpd
	local server=$job
	eventually serves
	fetch index.html
	has "$(of output)" '<p>page</p>'
	job=$server
	eventually row 'GET /index.html 200'
	sb-session-end "$s"
	run ! bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
	nothing() { [ -z "$(our_processes "$SB_STORE")" ]; }
	eventually nothing
	# What it said can still be read.
	row 'GET /index.html 200'
}

@test "R75: without a terminal nothing waits for input: read, git that wants a password, a port where nobody is" {
	start
	ex -P -y 60000 'read x; echo "read: $?"'
	is "$(of status) $(of output)" 'ok read: 1'
	ex -y 0 ./httpd
	eventually serves
	local server=$job
	# Nor does git find a terminal elsewhere.
	ex -P -y 60000 "git clone -q http://127.0.0.1:$port/private/x 2>&1"
	is "$(of status) $(of exit_code)" 'error 128'
	has "$(of output)" 'could not read Username'
	sb-job-kill "$server"
	ex -P -y 60000 "git clone -q http://127.0.0.1:$port/x"
	is "$(of status) $(of exit_code)" 'error 128'
	has "$(of stderr)" 'unable to access'
}

@test "R75: on a terminal the question is read, and answered or ended" {
	start
	ex -y 0 ./httpd
	eventually serves
	local server=$job url
	url=http://127.0.0.1:$port
	ex -y 0 "git clone -q $url/private/x"
	eventually row "Username for '$url': "
	is "$(of status)" running
	echo somebody | sb-pty-feed -y 0 "$job" >fed
	eventually row "Password for 'http://somebody@127.0.0.1:$port': "
	echo secret | sb-pty-feed -y 60000 "$job" >fed
	eventually over "$job"
	row "fatal: Authentication failed for '$url/private/x/'"
	is "$(of status) $(of exit_code)" 'error 128'
	run ! has "$(of output)" secret
	sb-job-kill "$server"
}
