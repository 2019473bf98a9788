# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib
load gate

# The command lines against a gateway that is a shell script, which leaves what
# it got in the file "got".

m=sandbox-manager-cli r=sandbox-runtime-cli o=sandbox-observability-cli

setup() {
	sb_setup
	gateway_place
}

# refused CODE KIND MESSAGE PROG ARGS…: says so on standard error, and only so.
refused() {
	local code=$1 kind=$2 message=$3 rc=0
	shift 3
	"$@" >out 2>err || rc=$?
	is "$*: $rc" "$*: $code"
	is "$(cat out)" ""
	is "$(wc -l <err)" 1
	is "$*: $(cat err)" "$*: $(error "$kind" "$message")"
}

# usage MESSAGE PROG ARGS…: refused; config: the same.
usage() { refused 2 invalid_request "$@"; }
config() { refused 2 config_error "$@"; }

# sends MEMBERS PROG ARGS…: what is sent, without id, token and progress.
sends() {
	local want=$1
	shift
	rm -f got
	"$@" >out 2>err || fail "$*: $?" "$(cat err)"
	is "$*: $(sed -E 's/"request_id":"[^"]*",//; s/,"_stream_logs":false//; s/,"_sandbox_gateway_auth_token":"[^"]*"//' got)" "$*: $want"
}

scope='"scope":{"kind":"sandbox","sandbox_id":"b"}'
system='"scope":{"kind":"system"}'

# ---- what is not sent ----

@test "operations and flags that there are not" {
	usage "unknown operation: x" $m x
	usage "unknown operation: exec_command" $m exec_command
	usage "unknown operation: list_sandboxes" $r --sandbox-id b list_sandboxes
	usage "unknown operation: squash_layerstack" $r --sandbox-id b squash_layerstack
	usage "unknown operation: ../runtime/exec_command" $m ../runtime/exec_command
	usage "unknown operation: " $m ""
	usage "unknown flag for list_sandboxes: --x" $m list_sandboxes --x
	usage "unknown flag for exec_command: --x" $r --sandbox-id b exec_command pwd --x 1
	usage "unknown flag for exec_command: --x=1" $r --sandbox-id b exec_command pwd --x=1
	usage "unknown flag for exec_command: --cmd" $r --sandbox-id b exec_command --cmd pwd
	usage "unknown flag for exec_command: --help" $r --sandbox-id b exec_command pwd --help
	usage "unknown flag for inspect_sandbox: --gateway-socket" $m inspect_sandbox --sandbox-id a --gateway-socket x
	usage "unknown flag for exec_command: --sandbox-id" $r --sandbox-id b exec_command pwd --sandbox-id c
	usage "unknown flag for list_sandboxes: --progress" $m list_sandboxes -- --progress
}

@test "flags without a value, words too many, things twice, things missing" {
	usage "--path requires a value" $r --sandbox-id b file_read --path
	usage "--sandbox-id requires a value" $m inspect_sandbox --sandbox-id
	usage "unexpected positional argument for list_sandboxes: x" $m list_sandboxes x
	usage "unexpected positional argument for list_sandboxes: -x" $m list_sandboxes -x
	usage "unexpected positional argument for exec_command: b" $r --sandbox-id b exec_command a b
	usage "--path was provided more than once" $r --sandbox-id b file_read --path a --path b
	usage "--path was provided more than once" $r --sandbox-id b file_read --path a --path=b
	usage "--path is required for file_read" $r --sandbox-id b file_read
	usage "COMMAND is required for exec_command" $r --sandbox-id b exec_command
	usage "TEXT is required for write_command_stdin" $r --sandbox-id b write_command_stdin --command-session-id c
	usage "--command-session-id is required for write_command_stdin" $r --sandbox-id b write_command_stdin
	usage "--sandbox-id is required for inspect_sandbox" $m inspect_sandbox
}

@test "values that are none of their kind" {
	for v in x -1 1.0 1e3 "" " 1" 18446744073709551616 0x1 ++1 +; do
		usage "--limit must be an unsigned integer" $r --sandbox-id b file_read --path a --limit "$v"
	done
	for v in x "" "1 " 1e 0x10 . -; do
		usage "--grace-s must be a finite number" $r --sandbox-id b destroy_workspace_session --workspace-session-id a --grace-s "$v"
	done
	for v in inf -inf NaN Infinity 1e999; do
		usage "--grace-s must be finite" $r --sandbox-id b destroy_workspace_session --workspace-session-id a --grace-s "$v"
	done
	for v in x '{}' '"[]"' '[' '[1] 2' "" null; do
		usage "--edits must be a JSON array" $r --sandbox-id b file_edit --path a --edits "$v"
	done
	usage "COMMAND must be valid UTF-8" $r --sandbox-id b exec_command $'\xff'
}

@test "which sandbox, which request" {
	usage "runtime operations require --sandbox-id" $r exec_command pwd
	usage "runtime operations require --sandbox-id" $r nothing
	usage "runtime sandbox id must be non-empty" $r --sandbox-id "" exec_command pwd
	usage "runtime sandbox id must be non-empty" $r --sandbox-id " " exec_command pwd
	usage "--sandbox-id must be non-empty" $o history --sandbox-id ""
	usage "--sandbox-id must be non-empty" $o history --sandbox-id "  "
	usage "--sandbox-id is required for history" $o history
	local id="--request-id must be 1-128 ASCII letters, digits, period, underscore, colon, or dash"
	for v in "" "a b" ä "$(printf '%0129d' 0)" a/b; do
		usage "$id" $r --request-id "$v" --sandbox-id b exec_command pwd
	done
	# Before help, and before the sandbox is asked for.
	usage "$id" $r --request-id "a b" help
	usage "$id" $r --request-id "a b" exec_command
}

@test "options: unknown ones, twice, without a value" {
	local tail='\\n\\nUsage: sandbox-manager-cli [OPTIONS] [OPERATION [ARGUMENTS]]\\n\\nFor more information, try '"'--help'."
	tail=${tail//\\\\/\\}
	usage "error: unexpected argument '--x' found$tail" $m --x
	usage "error: unexpected argument '-x' found$tail" $m -x list_sandboxes
	usage "error: unexpected argument '--sandbox-id' found$tail" $m --sandbox-id a list_sandboxes
	usage "error: the argument '--gateway-endpoint <URI>' cannot be used multiple times$tail" \
	    $m --gateway-socket a --gateway-endpoint b list_sandboxes
	usage "error: the argument '--progress' cannot be used multiple times$tail" $m --progress list_sandboxes --progress
	usage "error: a value is required for '--gateway-auth-token <TOKEN>' but none was supplied$tail" $m --gateway-auth-token
	usage "error: a value is required for '--jq <FILTER>' but none was supplied$tail" $m --jq --progress list_sandboxes
	usage "error: unexpected value 'x' for '--progress' found; no more were expected$tail" $m --progress=x list_sandboxes
	usage "error: invalid value '0' for '--connect-timeout-ms <MS>': milliseconds, 1 to 2147483647$tail" \
	    $m --connect-timeout-ms 0 list_sandboxes
	usage "error: invalid value 'x' for '--completion <SHELL>': bash or zsh$tail" $m --completion x
	# They come before all else.
	usage "error: unexpected argument '--x' found$tail" $m --help --x
}

@test "endpoints" {
	config "gateway socket path must be non-empty" $m --gateway-socket "" list_sandboxes
	SANDBOX_GATEWAY_SOCKET="" config "gateway socket path must be non-empty" $m list_sandboxes
	bad() { config "invalid gateway endpoint: $2" $m --gateway-socket "$1" list_sandboxes; }
	bad " " "gateway endpoint must not contain surrounding whitespace"
	bad " a:1" "gateway endpoint must not contain surrounding whitespace"
	bad "a:1 " "gateway endpoint must not contain surrounding whitespace"
	for e in http://a:1 unixx://a x://; do
		bad $e "unsupported gateway endpoint scheme"
	done
	for e in a a: :1 a:x a:65536 a:b:1 tcp://a tcp://:1 /a/b a/b:1 'a\b:1' 'a b:1' ::1:80 '[::1]' '[::1]80' '[x]:1' a:+1 a:-1; do
		bad "$e" "TCP gateway endpoint must be a valid host:port address"
	done
	bad a:0 "TCP gateway endpoint port must be non-zero"
	bad 'tcp://[::1]:0' "TCP gateway endpoint port must be non-zero"
	bad unix:// "Unix-domain socket path must be absolute"
	bad unix://a "Unix-domain socket path must be absolute"
	for e in unix:/// unix:////a unix:///a//b unix:///a/; do
		bad $e "Unix-domain socket path must not contain empty segments"
	done
	for e in unix:///. unix:///a/../b; do
		bad $e "Unix-domain socket path must not contain dot segments"
	done
	bad "unix:///$(printf '%0100d' 0)" "Unix-domain socket path exceeds the portable 100-byte limit"
	for e in 'unix:///a\b' $'unix:///a\tb' $'unix:///a\x7fb'; do
		bad "$e" "Unix-domain socket path contains an unsafe character"
	done
	bad npipe://a "Windows named-pipe path must begin with ./pipe/"
	bad npipe://./pipe/a//b "Windows named-pipe path must not contain empty segments"
	# Only what is used is looked at.
	SANDBOX_GATEWAY_SOCKET=x refused 1 connection_error "gateway connection failed: No such file or directory" \
	    $m --gateway-socket "unix://$BATS_RUN_TMPDIR/none" list_sandboxes
	refused 1 connection_error "gateway connection failed: Operation not supported" $m --gateway-socket npipe://./pipe/a/b list_sandboxes
}

@test "tokens" {
	config "gateway auth token must be non-empty" $m --gateway-auth-token "" list_sandboxes
	config "gateway auth token must be non-empty" $m --gateway-auth-token " " list_sandboxes
	SANDBOX_GATEWAY_AUTH_TOKEN="" config "gateway auth token must be non-empty" $m list_sandboxes
	# Also where another is used.
	SANDBOX_GATEWAY_AUTH_TOKEN=" " config "gateway auth token must be non-empty" $m --gateway-auth-token a list_sandboxes
	export SANDBOX_GATEWAY_TOKEN_FILE=$T/tok
	echo t >tok
	chmod 644 tok
	config "token file $T/tok: is open to others: chmod 600" $m list_sandboxes
	chmod 600 tok
	: >tok
	config "token file $T/tok: has no token" $m list_sandboxes
	printf 'a\nb\n' >tok
	config "token file $T/tok: has more than one line" $m list_sandboxes
	# The endpoint comes first.
	config "gateway socket path must be non-empty" $m --gateway-socket "" list_sandboxes
}

@test "what is checked first" {
	local bad="--gateway-socket="
	# Configuration before operation and arguments.
	config "gateway socket path must be non-empty" $m $bad nothing
	config "gateway socket path must be non-empty" $o $bad history
	# The sandbox before the configuration.
	usage "runtime operations require --sandbox-id" $r $bad nothing
	config "gateway socket path must be non-empty" $r --sandbox-id b $bad nothing
	# Arguments before the selector.
	usage "unknown flag for history: --x" $o history --x
	# Help before the configuration.
	$m $bad help >out
	$r $bad --help >out
	$o $bad >out
}

@test "operation files that are missing or damaged" {
	SB_OPS=$T/none config "unable to open the operations in $T/none: No such file or directory (SB_OPS names another directory)" $m list_sandboxes
	op look '"scope":"sandbox_required","box":{"argv":["x"]},"y":1'
	SB_OPS=$T/ops config "operation look: runtime/look.json: y: unknown" $r --sandbox-id b look
	SB_OPS=$T/ops config "unable to read the operations: runtime/look.json: y: unknown" $r help
}

# ---- what is sent ----

@test "the line that is sent, byte for byte" {
	gateway 'echo "{}"'
	$r --sandbox-id b --request-id r:1 --gateway-auth-token TOK exec_command pwd >out
	is "$(cat got)" '{"op":"exec_command","request_id":"r:1","scope":{"kind":"sandbox","sandbox_id":"b"},"args":{"cmd":"pwd"},"_sandbox_gateway_auth_token":"TOK","_stream_logs":false}'
	is "$(cat out)" '{}'
	# Without a token there is no member.
	$m list_sandboxes >out
	grep -qxE '\{"op":"list_sandboxes","request_id":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}","scope":\{"kind":"system"\},"args":\{\},"_stream_logs":false\}' got
	mv got first
	$m list_sandboxes >out
	run -1 cmp -s first got
}

@test "arguments: declared order, then what clients fill in" {
	gateway 'echo "{}"'
	local b="$r --sandbox-id b"
	sends '{"op":"exec_command",'"$scope"',"args":{"workspace_session_id":"s","cmd":"pwd","timeout_ms":5,"yield_time_ms":0}}' \
	    $b exec_command pwd --yield-time-ms 0 --timeout-ms 5 --workspace-session-id s
	sends '{"op":"read_command_lines",'"$scope"',"args":{"command_session_id":"c","limit":3,"start_offset":0}}' \
	    $b read_command_lines --limit 3 --command-session-id c
	sends '{"op":"file_read",'"$scope"',"args":{"path":"p","offset":1,"limit":2000}}' $b file_read --path p
	sends '{"op":"create_workspace_session",'"$scope"',"args":{"network_profile":"shared"}}' $b create_workspace_session
	sends '{"op":"write_command_stdin",'"$scope"',"args":{"command_session_id":"c","stdin":"yes\n"}}' \
	    $b write_command_stdin --command-session-id c $'yes\n'
	sends '{"op":"inspect_sandbox",'"$system"',"args":{"sandbox_id":"a"}}' $m inspect_sandbox --sandbox-id a
	sends '{"op":"history",'"$scope"',"args":{"last_n":50}}' $o history --sandbox-id b
	sends '{"op":"history","scope":{"kind":"sandbox","sandbox_id":"a\"\u0001b"},"args":{"last_n":50}}' $o history --sandbox-id $'a"\x01b'
}

@test "values: what becomes of them" {
	gateway 'echo "{}"'
	local b="$r --sandbox-id b" p='"path":"p","offset":'
	value() { sends '{"op":"file_read",'"$scope"',"args":{"path":"p","offset":'"$2"',"limit":2000}}' $b file_read --path p --offset "$1"; }
	value 007 7
	value +7 7
	value 0 0
	value 000 0
	value 18446744073709551615 18446744073709551615
	value 9007199254740993 9007199254740993
	value() { sends '{"op":"destroy_workspace_session",'"$scope"',"args":{"workspace_session_id":"s","grace_s":'"$2"'}}' $b destroy_workspace_session --workspace-session-id s --grace-s "$1"; }
	value 5 5.0
	value 0.25 0.25
	value -1 -1.0
	value +.5 0.5
	value 1. 1.0
	value 1e3 1000.0
	value 1E21 1e21
	value 123456789012345680000.5 1.2345678901234568e20
	value 1e-7 1e-7
	value 0.00001 0.00001
	value 9007199254740993 9007199254740992.0
	value 0e9 0.0
	value 0.1 0.1
	value() { sends '{"op":"file_edit",'"$scope"',"args":{"path":"p","edits":'"$2"'}}' $b file_edit --path p --edits "$1"; }
	value '[]' '[]'
	value $' [\n{ "a b" : "c\\" d" , "n":\t9007199254740993.50 } ]\n' '[{"a b":"c\" d","n":9007199254740993.50}]'
	sends '{"op":"file_write",'"$scope"',"args":{"path":"-p","content":"ä\t\"\\\u0001\u007f"}}' $b file_write --path -p --content $'ä\t"\\\x01\x7f' ||
	    sends '{"op":"file_write",'"$scope"',"args":{"path":"-p","content":"ä\t\"\\\u0001'$'\x7f''"}}' $b file_write --path -p --content $'ä\t"\\\x01\x7f'
	sends '{"op":"file_write",'"$scope"',"args":{"path":"a","content":""}}' $b file_write --path a --content ""
}

@test "words that look like something else" {
	gateway 'echo "{}"'
	local b="$r --sandbox-id b"
	cmd() { printf '{"op":"exec_command",%s,"args":{%s}}' "$scope" "$1"; }
	# A flag takes the next word whatever it is; -x is a word.
	sends "$(cmd '"workspace_session_id":"--timeout-ms","cmd":"-x"')" $b exec_command --workspace-session-id --timeout-ms -x
	sends "$(cmd '"workspace_session_id":"--","cmd":"x"')" $b exec_command --workspace-session-id -- x
	# --flag=value
	sends "$(cmd '"workspace_session_id":"a=b","cmd":"x=1"')" $b exec_command --workspace-session-id=a=b x=1
	sends "$(cmd '"workspace_session_id":"","cmd":"x"')" $b exec_command --workspace-session-id= x
	# A "--" before or behind the operation is swallowed.
	sends "$(cmd '"cmd":"x","timeout_ms":5')" $b -- exec_command --timeout-ms 5 x
	sends "$(cmd '"cmd":"x","timeout_ms":5')" $b exec_command -- --timeout-ms 5 x
	sends "$(cmd '"cmd":"x","timeout_ms":5')" $b -- exec_command -- --timeout-ms 5 x
	usage "unknown flag for exec_command: --x" $b exec_command -- --x
	# A later one ends the flags.
	sends "$(cmd '"cmd":"--x"')" $b exec_command -- -- --x
	sends "$(cmd '"cmd":"--timeout-ms","timeout_ms":5')" $b exec_command --timeout-ms 5 -- --timeout-ms
	sends "$(cmd '"cmd":"--"')" $b exec_command -- -- --
}

@test "options directly behind the operation, and as --option=value" {
	gateway 'echo "{}"'
	unset SANDBOX_GATEWAY_SOCKET
	local g=unix://$sock
	sends '{"op":"list_sandboxes",'"$system"',"args":{}}' $m list_sandboxes --gateway-socket "$g"
	sends '{"op":"list_sandboxes",'"$system"',"args":{}}' $m --gateway-endpoint="$g" list_sandboxes
	sends '{"op":"exec_command",'"$scope"',"args":{"cmd":"x"}}' $r exec_command --sandbox-id=b --gateway-socket "$g" --request-id -1 x
	$r exec_command --sandbox-id=b --gateway-socket "$g" --request-id -1 x >out
	grep -q '"request_id":"-1"' got
}

@test "names of arguments that differ from those on the wire, and aliases" {
	gateway 'echo "{}"'
	mkdir -p ops/management && cp "$ops/families.json" ops/
	printf '%s' '{"name":"make","family":"management","order":1,"summary":"s","description":"d","scope":"system","args":[
	    {"name":"image","kind":"string","required":true,"help":"h"},
	    {"name":"workspace_root","kind":"path","required":true,"flag":"--workspace-bind-root","aliases":["--workspace-root"],"help":"h"},
	    {"name":"count","kind":"integer","client_default":1,"help":"h"}],"host":{"argv":["x","{?progress -v}"]}}' >ops/management/make.json
	export SB_OPS=$T/ops
	sends '{"op":"make",'"$system"',"args":{"image":"a","workspace_root":"/w","count":1}}' $m make --workspace-root /w --image a
	sends '{"op":"make",'"$system"',"args":{"image":"a","workspace_root":"/w","count":2}}' $m make --workspace-bind-root /w --image a --count 2
	usage "--workspace-bind-root was provided more than once" $m make --workspace-root /w --image a --workspace-bind-root /v
	usage "--workspace-bind-root is required for make" $m make --image a
	# It says how it gets on, so that may be asked for among its words,
	# where no flag takes it as its value.
	$m make --image a --workspace-root /w --progress >out 2>err
	grep -q '"_stream_logs":true' got
	is "$(cat err)" "[Output]"
	$m make --workspace-root /w --image --progress >out
	grep -q '"image":"--progress".*"_stream_logs":false' got
	is "$($m help make | grep -c progress)" 0
}

@test "the token: option, environment, file" {
	gateway 'echo "{}"'
	token() {
		local want=$1
		shift
		"$@" >out
		is "$(sed -nE 's/.*"_sandbox_gateway_auth_token":("[^"]*").*/\1/p' got)" "$want"
	}
	token "" $m list_sandboxes
	mkdir "$HOME/.ephemeral-sandbox"
	(umask 077 && echo home >"$HOME/.ephemeral-sandbox/gateway.token" && printf file >tok)
	token '"home"' $m list_sandboxes
	export SANDBOX_GATEWAY_TOKEN_FILE=$T/tok
	token '"file"' $m list_sandboxes
	SANDBOX_GATEWAY_AUTH_TOKEN="" token '"file"' $m list_sandboxes
	SANDBOX_GATEWAY_AUTH_TOKEN=env token '"env"' $m list_sandboxes
	SANDBOX_GATEWAY_AUTH_TOKEN=env token '" flag"' $m --gateway-auth-token " flag" list_sandboxes
	SANDBOX_GATEWAY_TOKEN_FILE=$T/none token "" $m list_sandboxes
	# Not looked at where it is not needed.
	chmod 644 tok
	SANDBOX_GATEWAY_AUTH_TOKEN=env token '"env"' $m list_sandboxes
}

# ---- what comes back ----

@test "an answer is passed on as it came, with a newline" {
	gateway 'printf "%s\n" "{ \"n\" : 9007199254740993,\"f\":1.50, \"s\":\"\\u00e4\\/\"}"'
	$m list_sandboxes >out 2>err
	is "$(cat out)" '{ "n" : 9007199254740993,"f":1.50, "s":"\u00e4\/"}'
	is "$(wc -l <out)" 1
	is "$(cat err)" ""
	# What comes behind the line is not ours.
	gateway 'printf "{}\nmore\n"'
	is "$($m list_sandboxes)" '{}'
	gateway 'printf "{\"a\":\"error\"}\n"'
	is "$($m list_sandboxes)" '{"a":"error"}'
}

@test "an error is passed on as it came, to standard error, with 1" {
	gateway 'echo "{ \"error\":{\"kind\":\"k\",\"message\":\"m\",\"details\":{\"n\":9007199254740993}}}"'
	run -1 --separate-stderr $m list_sandboxes
	is "$output" ""
	is "$stderr" '{ "error":{"kind":"k","message":"m","details":{"n":9007199254740993}}}'
	gateway 'echo "{\"error\":null}"'
	run -1 --separate-stderr $m list_sandboxes
	is "$stderr" '{"error":null}'
}

@test "answers that are none" {
	bad() { refused 1 protocol_error "$1" $m list_sandboxes; }
	gateway ''
	bad "gateway returned an empty response"
	gateway 'printf "{}"'
	bad "gateway response was not newline terminated"
	gateway 'printf "cli_log(\"a\")\n"'
	run -1 --separate-stderr $m list_sandboxes
	is "${stderr#*s] a$'\n'}" "$(error protocol_error "gateway closed before returning a final response")"
	gateway 'printf "cli_log(\"a"'
	bad "gateway cli_log line was not terminated"
	gateway 'echo "{"'
	run -1 --separate-stderr $m list_sandboxes
	has "$stderr" '"kind":"protocol_error","message":"gateway response json failed: '
	gateway 'echo'
	run -1 --separate-stderr $m list_sandboxes
	has "$stderr" '"kind":"protocol_error","message":"gateway response json failed: '
	gateway 'head -c 16777217 /dev/zero | tr "\0" x'
	bad "gateway response exceeded 16777216 bytes"
	gateway 'printf "{\"x\":\""; head -c 16777207 /dev/zero | tr "\0" x; echo "\"}"'
	is "$($m list_sandboxes | wc -c)" 16777216
}

@test "who cannot be reached, or does not answer" {
	refused 1 connection_error "gateway connection failed: No such file or directory" $m --gateway-socket "unix://$sock" list_sandboxes
	gateway 'echo "{}"'
	gate_stop
	refused 1 connection_error "gateway connection failed: Connection refused" $m list_sandboxes
	rm -f "$sock"
	gateway 'echo $$ >'"$T"'/pid; exec sleep 600'
	run -1 --separate-stderr $m --answer-timeout-ms 20 list_sandboxes
	is "$stderr" "$(error connection_error "gateway connection failed: no answer within 20 ms" '"reason":"timeout"')"
	kill "$(cat pid)"
	# Who gave an answer before it had read all is heard.
	gateway 'exec <&-; echo "{\"error\":{\"kind\":\"busy\",\"message\":\"m\",\"details\":{}}}"'
	head -c 100000 /dev/zero | tr '\0' x >big
	run -1 --separate-stderr $r --sandbox-id b file_write --path a --content "$(cat big)"
	is "$stderr" '{"error":{"kind":"busy","message":"m","details":{}}}'
}

@test "progress goes to standard error, with the time, and [Output] before a success" {
	gateway 'printf "%s\n" "cli_log(\"one\")" "cli_log(\"t\\u00e4\\u000awo\")" {}'
	$m --progress list_sandboxes >out 2>err
	is "$(cat out)" '{}'
	is "$(sed -E 's/^\[progress [0-9]+\.[0-9]{3}s\]/P/' err)" "P one
P tä?wo
[Output]"
	grep -q '"_stream_logs":true' got
	gateway 'printf "cli_log(\"one\")\n{\"error\":{}}\n"'
	run -1 --separate-stderr $m list_sandboxes --progress
	is "$(sed -E 's/^\[progress [0-9]+\.[0-9]{3}s\]/P/' <<<"$stderr")" 'P one
{"error":{}}'
	# Not of the others.
	run -2 $r --progress --sandbox-id b exec_command x
	run -2 $o --progress history --sandbox-id b
}

@test "--jq: a string as it is, anything else as JSON, each on a line" {
	gateway 'echo "{\"s\":\"a b\",\"n\":[1,{\"x\":null}],\"b\":true}"'
	is "$($m --jq .s list_sandboxes)" "a b"
	is "$($m list_sandboxes --jq '.n, .b, (.n[] | .x?)')" '[1,{"x":null}]
true
null'
	is "$($m --jq empty list_sandboxes)" ""
	gateway 'echo "{\"error\":{\"kind\":\"k\"}}"'
	run -1 --separate-stderr $m --jq .x list_sandboxes
	is "$stderr" '{"error":{"kind":"k"}}'
}

@test "--jq: a bad program is not sent; one that fails shows the answer" {
	gateway 'echo "{\"s\":\"a\"}"'
	run -2 --separate-stderr $m --jq '.[' list_sandboxes
	is "$output" ""
	has "$stderr" '{"error":{"kind":"invalid_request","message":"--jq: '
	[ ! -e got ]
	run -1 --separate-stderr $m --jq '.s, .s.x' list_sandboxes
	is "$output" ""
	has "$stderr" '{"error":{"kind":"invalid_request","message":"--jq: '
	has "$stderr" '"details":{"reply":{"s":"a"}}}}'
}

@test "--error-jq: the same of an error, wherever it comes from" {
	gateway 'echo "{\"error\":{\"kind\":\"k\",\"message\":\"a b\",\"details\":{\"n\":1}}}"'
	run -1 --separate-stderr $m --error-jq '.error | .message, .details' list_sandboxes
	is "$output" ""
	is "$stderr" $'a b\n{"n":1}'
	run -2 --separate-stderr $m --error-jq .error.kind no_such
	is "$stderr" invalid_request
	for bad in '.[' .error.kind.x; do
		run -1 --separate-stderr $m --error-jq "$bad" list_sandboxes
		is "$stderr" '{"error":{"kind":"k","message":"a b","details":{"n":1}}}'
	done
	gateway 'echo "{\"s\":1}"'
	is "$($m --jq .s --error-jq .error.kind list_sandboxes)" 1
}

@test "a result that cannot be written is an error" {
	gateway 'echo "{}"'
	run -1 --separate-stderr bash -c "$m list_sandboxes >/dev/full"
	is "$stderr" "$(error internal_error "unable to write the result: No space left on device")"
	run -1 --separate-stderr bash -c "$m list_sandboxes >&-"
	has "$stderr" '"message":"unable to write the result: '
	run -1 --separate-stderr bash -c "$m help >/dev/full"
	has "$stderr" '"message":"unable to write the result: '
}

@test "an interrupt ends it at once, and the gateway sees it go" {
	gateway 'trap "" PIPE; cat >/dev/null; echo >'"$T"'/waiting; while printf "cli_log(\"\")\n" 2>/dev/null; do sleep 0.02; done; echo >'"$T"'/gone'
	# A shell's background programs have SIGINT ignored.
	perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' $m list_sandboxes >out 2>err 3>&- &
	local pid=$! rc=0
	eventually test -e waiting
	kill -INT $pid
	wait $pid || rc=$?
	is $rc 130
	eventually test -e gone
	is "$(cat out)" ""
}

# ---- help ----

@test "help, nothing, and the options: text, 0, no gateway needed" {
	for p in $m $r $o; do
		$p help >help 2>err
		$p >none 2>>err
		same help none
		$p -h >h 2>>err
		$p --help >hh 2>>err
		same h hh
		grep -q "^Usage: $p " h
		is "$(cat err)" ""
		is "$($p --version)" "$p $(sed -n 's/^VERSION = //p' "$SB_TOP/Makefile")"
	done
	is "$($m help | head -1)" "Sandbox Manager Help"
	is "$($r help | head -1)" "Sandbox Runtime Help"
	is "$($o help | head -1)" "Sandbox Observability Help"
	is "$($m help | tail -2)" "Use:
  sandbox-manager-cli OPERATION"
	is "$($r help | tail -2)" "Use:
  sandbox-runtime-cli --sandbox-id ID [--request-id VALUE] OPERATION"
	is "$($o help | tail -2)" "Use:
  sandbox-observability-cli OPERATION"
	$r help >help
	is "$(grep -A4 -x 'Reserved paths' help)" "Reserved paths
  Names that cannot be published.

Shell security
  What a command may do."
	is "$(grep -A6 -x Command help)" "Command
  Run commands, give them input, read their output.

  exec_command
    Run a shell command.

  write_command_stdin"
}

@test "help names each operation once, and has a page for each" {
	for p in "$m management" "$r runtime" "$o observability"; do
		read -r prog set <<<"$p"
		$prog help >help
		for f in "$ops/$set"/*.json; do
			f=$(basename "$f" .json)
			is "$f: $(grep -cx "  $f" help)" "$f: 1"
			$prog help "$f" >page
			$prog "$f" --help >page2
			same page page2
			$prog "$f" -h >page2
			same page page2
			is "$(head -1 page)" "$f"
		done
	done
}

@test "the page of an operation" {
	is "$($r help read_command_lines)" "read_command_lines

Family
  Command

Description
  Rows by number, of a command that runs or of one of the last 512 that have ended.

Usage
  sandbox-runtime-cli --sandbox-id ID [--request-id VALUE] read_command_lines --command-session-id COMMAND_SESSION_ID [--start-offset START_OFFSET] [--limit LIMIT] [--render RENDER] [--max-text MAX_TEXT]

Arguments
  --command-session-id string required
    The command.

  --start-offset integer optional
    The first row, from 0.
    Default: 0

  --limit integer optional
    At most so many rows, 1 to 1000.
    Default: 200

  --render string optional
    rows: as a terminal would show them, the default; raw: as they came, split at newlines.

  --max-text integer optional
    At most so many bytes of output, as JSON has it; the rows behind come with the next answer.

Examples
  sandbox-runtime-cli --sandbox-id eos-1 read_command_lines --command-session-id namespace_execution_1 --start-offset 200

Related Operations
  exec_command
  list_commands"
	has "$($m help list_sandboxes)" "Arguments
  None

Examples"
	has "$($r help exec_command)" "  COMMAND string required"
	is "$($r help file_read | tail -c 2 | od -An -c | tr -d ' ')" 's\n'
}

@test "help for what there is not" {
	usage 'unknown runtime operation for help: PaTcH\nDid you mean:\n  diff_workspace_session\nUse:\n  sandbox-runtime-cli --sandbox-id ID [--request-id VALUE] OPERATION' $r help PaTcH
	usage 'unknown manager operation for help: zzz\nUse:\n  sandbox-manager-cli OPERATION' $m help zzz
	usage 'unknown manager operation for help: zzz\nUse:\n  sandbox-manager-cli OPERATION' $m zzz --help
	usage 'unknown observability operation for help: zzz\nUse:\n  sandbox-observability-cli OPERATION' $o help -- zzz
	usage "help accepts at most one operation" $r help a b
}

# ---- completion ----

# offers WORDS WANTED…: what is offered for the last of the words.
offers() {
	local words=$1
	shift
	# shellcheck disable=SC2086 # words
	is "$words: $($r --complete $words "${last-}" | cut -f1 | tr '\n' ' ')" "$words: $*${1:+ }"
}

@test "completion: operations, options, flags, values" {
	last=file_ offers "" file_read file_write file_edit file_blame
	last=ex offers "--sandbox-id b" exec_command
	last=he offers "" help
	last=--gateway-e offers "" --gateway-endpoint
	last=--sand offers "--sandbox-id b"
	last="" offers "--sandbox-id"
	last=exec offers "help" exec_command
	last="" offers "exec_command --render" rows raw
	last=--render=r offers "exec_command" --render=rows --render=raw
	last=--w offers "exec_command --render raw" --workspace-session-id
	last=--render offers "exec_command --render raw"
	last="" offers "exec_command --cwd"
	last=--h offers "exec_command" --help
	last="" offers "nothing"
	is "$($r --complete create_workspace_session --network-profile i)" "isolated	The network of its commands: shared with the sandbox, or isolated."
	last=x offers ""
	run -0 $r --complete
}

@test "completion in bash" {
	complete_in_bash() {
		local want=$1
		shift
		is "$(bash -c 'eval "$('$r' --completion bash)"
		    COMP_WORDS=('$r' "$@") COMP_CWORD=$#
		    '"_${r//-/_} $r"'; echo "${COMPREPLY[@]}"' - "$@")" "$want"
	}
	complete_in_bash "file_read file_write file_edit file_blame" file_
	complete_in_bash "rows raw" exec_command --render ""
	complete_in_bash "raw" exec_command --render = ra
	complete_in_bash "rows raw" exec_command --render =
	complete_in_bash "exec_command" --sandbox-id = b ex
	complete_in_bash "" --sandbox-id ""
	for p in $m $r $o; do
		$p --completion bash | bash -n
		$p --completion bash | grep -qx "complete -o default -F _${p//-/_} $p"
	done
}

@test "completion in zsh" {
	need zsh
	is "$(zsh -fc 'compdef() { :; }; _files() { echo files; }
	    _describe() { print -l -- "${(@P)2}"; }
	    eval "$('$r' --completion zsh)"
	    words=('$r' --sandbox-id b create_workspace_session --network-profile "") CURRENT=6
	    '"_${r//-/_}"'
	    words=('$r' --sandbox-id "") CURRENT=3; '"_${r//-/_}")" \
"shared:The network of its commands: shared with the sandbox, or isolated.
isolated:The network of its commands: shared with the sandbox, or isolated.
files"
	for p in $m $r $o; do
		$p --completion zsh >comp
		zsh -n comp
		is "$(head -1 comp)" "#compdef $p"
	done
}

@test "called by another name it says by which" {
	run -100 sandbox-cli
	has "$output" "sandbox-cli: fatal: to be called as sandbox-manager-cli"
}

# ---- a gateway over TCP ----

@test "over TCP, and a name that is none" {
	TOKEN=$(sandbox-gateway-token ensure)
	serve_tcp "$ops"
	for e in 127.0.0.1:$PORT tcp://127.0.0.1:$PORT localhost:$PORT; do
		is "$($m --gateway-endpoint "$e" list_sandboxes)" '{"sandboxes":[]}'
	done
	is "$(SANDBOX_GATEWAY_SOCKET=127.0.0.1:$PORT $m list_sandboxes)" '{"sandboxes":[]}'
	refused 1 connection_error "gateway connection failed: Cannot assign requested address" $m --gateway-endpoint no.such.name.invalid:1 list_sandboxes
	refused 1 unauthorized "gateway authentication token is missing or invalid" $m --gateway-endpoint "127.0.0.1:$PORT" --gateway-auth-token x list_sandboxes
}
