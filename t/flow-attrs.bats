# SPDX-License-Identifier: MIT
# What travels with a file from a session into the stack: mode, times, xattrs,
# hard links, holes; and what is no change at all.
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	make_store "$@"
}
in_session() { sb-run "$1" sh -euc "$2"; }
answer() { printf '%s' "$output" | jq -c "$1"; }
seen() { # SCRIPT: what a new session sees
	local s
	s=$(sb-session-new)
	in_session "$s" "$1"
	sb-session-end "$s"
}

@test "modes, times and xattrs of files and directories are published" {
	mkdir -p ws/d; echo f >ws/d/f; echo g >ws/g
	start
	s=$(sb-session-new)
	in_session "$s" 'chmod 4751 d/f; chmod 2770 d; touch -d 2003-04-05T06:07:08.5 g; echo n >n
	    chmod 600 n; touch -d 1999-12-31 n; mkdir -m 1777 t'
	sb-run "$s" setfattr -n user.a -v 1 d/f
	sb-run "$s" setfattr -n user.b -v 2 d
	sb-publish "$s"
	seen 'stat -c "%a %n" d d/f n t; stat -c "%Y %n" n; getfattr --only-values -n user.a d/f; getfattr --only-values -n user.b d' >out
	printf '2770 d\n4751 d/f\n600 n\n1777 t\n946598400 n\n12' >want
	same out want
}

@test "a change of nothing but a time is no change, one of a mode or xattr is" {
	mkdir -p ws/d; echo f >ws/f; echo g >ws/g
	start
	s=$(sb-session-new)
	in_session "$s" 'touch f; cat g >x; cat x >g; rm x; mkdir e; rmdir e; touch d; chmod 700 d; chmod 755 d'
	run -0 --separate-stderr sb-publish "$s"
	is "$(answer '[.publish.no_op,.publish.route_summary]')" '[true,{"source_count":0,"ignored_count":0}]'
	s=$(sb-session-new)
	in_session "$s" 'chmod 700 d; chmod 600 f; setfattr -n user.x -v y g'
	run -0 --separate-stderr sb-publish "$s"
	is "$(answer '[.publish.no_op,.publish.route_summary.source_count]')" '[false,3]'
	is "$(seen 'stat -c %a d f; getfattr --only-values -n user.x g')" "$(printf '700\n600\ny')"
}

@test "a chmod right after another session made the file equal is not lost" {
	mkdir ws; echo base >ws/b
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'echo x >n'
	sb-publish "$a"
	in_session "$b" 'echo x >n; chmod 755 n'
	run -2 --separate-stderr sb-publish "$b"
	is "$(answer '.error.details.conflicts[0]|[.path,.kind]')" '["n","mode"]'
	c=$(sb-session-new)
	in_session "$c" 'chmod 755 n'
	sb-publish "$c"
	is "$(seen 'stat -c %a n')" 755
}

@test "hard links stay links, and count once" {
	mkdir ws; echo base >ws/b
	start
	s=$(sb-session-new)
	in_session "$s" 'head -c 100000 /dev/zero >a; mkdir d; ln a d/b; ln a c; echo other >o'
	sb-publish "$s"
	seen 'stat -c "%h %i" a c d/b | sort -u | wc -l; stat -c %h a; stat -c %h o' >out
	printf '1\n3\n1\n' >want
	same out want
	is "$(cat "$SB_STORE"/layer-stack/.layer-metadata/L*.bytes)" 100006
	# A session that writes one name through parts it from the others only
	# in its own copy, as overlay does.
	s=$(sb-session-new)
	in_session "$s" 'echo x >c'
	sb-publish "$s"
	is "$(seen 'cat c; stat -c %s a d/b')" "$(printf 'x\n100000\n100000')"
}

@test "holes stay holes" {
	mkdir ws; echo base >ws/b
	start
	s=$(sb-session-new)
	in_session "$s" 'truncate -s 64M sparse; printf middle | dd of=sparse bs=1 seek=33554432 conv=notrunc 2>/dev/null'
	sb-publish "$s"
	f=$(echo "$SB_STORE"/layer-stack/layers/L*/sparse)
	[ "$(stat -c %b "$f")" -lt 1000 ]
	is "$(seen 'stat -c %s sparse; dd if=sparse bs=1 skip=33554432 count=6 2>/dev/null')" "$(printf '67108864\nmiddle')"
}

@test "the root of the workspace has a mode like any other directory" {
	mkdir ws; chmod 755 ws; echo f >ws/f
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new); d=$(sb-session-new)
	in_session "$a" 'chmod 750 .'
	sb-publish "$a"
	is "$(seen 'stat -c %a .')" 750
	# A session that began before does not set it back.
	in_session "$b" 'echo g >g'
	sb-publish "$b"
	is "$(seen 'stat -c %a .')" 750
	in_session "$c" 'chmod 700 .'
	run -2 --separate-stderr sb-publish "$c"
	is "$(answer '.error.details.conflicts[0]|[.path,.kind]')" '[".","mode"]'
	in_session "$d" 'setfattr -n user.r -v 1 .; echo h >h'
	sb-publish "$d"
	is "$(seen 'stat -c %a .; getfattr --only-values -n user.r .')" "$(printf '750\n1')"
}

@test "setuid, sticky and unreadable files come back as they were" {
	mkdir ws; echo base >ws/b
	start
	s=$(sb-session-new)
	in_session "$s" 'echo 1 >u; chmod 6755 u; echo 2 >r; chmod 0 r; mkdir p; echo 3 >p/f; chmod 0 p'
	sb-publish "$s"
	is "$(seen 'stat -c %a u r p; cat r p/f')" "$(printf '6755\n0\n0\n2\n3')"
	sb-stack-show | sb-layer-check
	is "$(sb-stack-show | sb-layer-list -r | tr '\0' '\n' | grep -c p/f)" 1
	is "$(sb-stack-show | sb-layer-cat p/f)" 3
}
