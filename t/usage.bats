# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# The SYNOPSIS of a page as one line of text.
synopsis() {
	mandoc -T ascii -O width=1000 "$1" | sed 's/.\x08//g' |
	    awk '/^[A-Z]/ { on = $0 == "SYNOPSIS"; next } on { print }' |
	    tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
}

# each FUNCTION: calls it with every command; fails naming those that failed.
each() {
	local x n=0 bad=
	for x in "$SB_BIN"/sb*; do
		"$1" "${x##*/}" || bad="$bad ${x##*/}"
		n=$((n + 1))
	done
	[ $n -gt 0 ]
	[ -z "$bad" ] || fail "failed:$bad"
}

@test "-h prints the SYNOPSIS of the page and exits 0" {
	need mandoc
	check() {
		"$1" -h </dev/null >out 2>err || fail "$1 -h: exit $?" || return
		[ ! -s err ] || fail "$1 -h wrote to stderr" || return
		is "$(cat out)" "usage: $(synopsis "$SB_TOP/doc/man1/$1.1")"
	}
	each check
}

@test "an unknown option is 100 and prints the usage to stderr" {
	check() {
		local rc=0
		"$1" -% </dev/null >out 2>err || rc=$?
		is "$rc" 100 && is "$(cat out)" "" || return
		is "$(cat err)" "$1: usage: $("$1" -h | sed 's/^usage: //')"
	}
	each check
}

@test "the name in each page, its file and its command are the same" {
	need mandoc
	check() {
		local page=$SB_TOP/doc/man1/$1.1
		grep -qx ".Nm $1" "$page" && grep -qx ".Dt ${1^^} 1" "$page"
	}
	each check
}

@test "the first word of each DESCRIPTION is the shape" {
	check() {
		grep -A1 -x '.Sh DESCRIPTION' "$SB_TOP/doc/man1/$1.1" |
		    grep -qE '^(Source|Filter|Sink|Chain|Porcelain)[.,: ]'
	}
	each check
}

@test "each page of section 1 describes a command" {
	local page bad=
	for page in "$SB_TOP"/doc/man1/*.1; do
		[ -x "$SB_BIN/$(basename "$page" .1)" ] || bad="$bad $page"
	done
	is "$bad" ""
}

@test "sb(7) names every command" {
	check() { grep -qE "^\.(It )?Xr $1 1" "$SB_TOP/doc/man7/sb.7"; }
	each check
}
