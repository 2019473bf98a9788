# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what is quoted is for another shell
bats_require_minimum_version 1.5.0
load lib

file=.ephemeral-sandbox/gateway.token

@test "path: beside HOME, or what the environment says; 1 without either" {
	is "$(sandbox-gateway-token path)" "$HOME/$file"
	is "$(SANDBOX_GATEWAY_TOKEN_FILE=/x/y sandbox-gateway-token path)" /x/y
	is "$(SANDBOX_GATEWAY_TOKEN_FILE='' sandbox-gateway-token path)" "$HOME/$file"
	run -1 env -u HOME sandbox-gateway-token path
}

@test "ensure makes 64 hexadecimal digits once, for the owner only" {
	sandbox-gateway-token ensure >one
	grep -qxE '[0-9a-f]{64}' one
	sandbox-gateway-token ensure >two
	same one two
	sandbox-gateway-token read >three
	same one three
	same "$HOME/$file" one
	is "$(stat -c %a "$HOME/$file") $(stat -c %a "$HOME/.ephemeral-sandbox")" "600 700"
	is "$(ls -A "$HOME/.ephemeral-sandbox")" gateway.token
}

@test "of sixteen at once all print the same" {
	for i in $(seq 16); do sandbox-gateway-token ensure >"o.$i" 3>&- & done
	wait
	is "$(sort -u o.* | wc -l)" 1
	is "$(ls -A "$HOME/.ephemeral-sandbox")" gateway.token
}

@test "read refuses what others may read, what is blank, what has two lines, and nothing" {
	run -1 sandbox-gateway-token read
	sandbox-gateway-token ensure >out
	for mode in 640 604 644; do
		chmod $mode "$HOME/$file"
		run -1 --separate-stderr sandbox-gateway-token read
		is "$output" ""
	done
	chmod 600 "$HOME/$file"
	for text in '' ' \n' 'a\nb\n' '\na\n'; do
		# shellcheck disable=SC2059 # a format on purpose
		printf "$text" >"$HOME/$file"
		run -1 --separate-stderr sandbox-gateway-token read
		is "$output" ""
	done
}

@test "write replaces the one beside HOME, not one that somebody chose" {
	echo first | sandbox-gateway-token write
	printf second | sandbox-gateway-token write
	is "$(sandbox-gateway-token read)" second
	is "$(od -An -c "$HOME/$file" | tr -d ' ')" 'second\n'
	export SANDBOX_GATEWAY_TOKEN_FILE=$T/chosen
	echo first | sandbox-gateway-token write
	echo first | sandbox-gateway-token write
	run -1 bash -c 'echo second | sandbox-gateway-token write'
	is "$(cat chosen)" first
	is "$(stat -c %a chosen)" 600
	for text in '' ' ' 'a\nb'; do
		run -1 bash -c 'printf "$1" | sandbox-gateway-token write' - "$text"
	done
	is "$(find "$T" -name '.gateway.token*')" ""
}

@test "other words are 2, with the usage on standard error" {
	for w in '' remove -h; do
		run -2 --separate-stderr sandbox-gateway-token $w
		is "$stderr" 'usage: sandbox-gateway-token {path|read|ensure|write}'
	done
	run -2 sandbox-gateway-token read read
}

@test "sourced it only defines: load takes the environment, then the file, else nothing" {
	load() { sh -c '. "$1"; sandbox_gateway_token_load && echo "${SANDBOX_GATEWAY_AUTH_TOKEN-none}"' launcher "$SB_BIN/sandbox-gateway-token"; }
	is "$(load)" none
	echo mine | sandbox-gateway-token write
	is "$(load)" mine
	is "$(SANDBOX_GATEWAY_AUTH_TOKEN=other load)" other
	chmod 644 "$HOME/$file"
	run ! load
}
