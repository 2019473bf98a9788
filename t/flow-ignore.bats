# SPDX-License-Identifier: MIT
# Ignored paths: routed by the .gitignore files of the layers that a session
# was made against, last writer wins, or left out where that is configured.
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	make_store "$@"
}
in_session() { sb-run "$1" sh -euc "$2"; }
answer() { printf '%s' "$output" | jq -c "$1"; }
head_cat() { sb-stack-show | sb-layer-cat "$1"; }
head_names() { sb-stack-show | sb-layer-list -r | tr '\0' '\n' | sed -n 's/^[^\t]*\t//p'; }
discard() { echo 'runtime.layerstack.ignored_changes discard' >"$SB_STORE/conf"; }

a16() {
	mkdir -p ws/node_modules
	printf 'node_modules/\n.env\n*.log\n!keep.log\n' >ws/.gitignore
	echo 1 >ws/.env; echo x >ws/node_modules/x
	start
	s=$(sb-session-new)
	in_session "$s" 'cat .env node_modules/x; echo 2 >.env; echo y >node_modules/y; echo a >a.log; echo k >keep.log; mkdir src; echo m >src/m'
}

@test "ignored files are seen in a session, published and counted" {
	a16
	run -0 --separate-stderr sb-publish "$s"
	is "$(answer .publish.route_summary)" '{"source_count":3,"ignored_count":3}'
	is "$(head_cat .env)" 2
	is "$(head_cat a.log)" a
	is "$(head_cat keep.log)" k
	is "$(head_cat node_modules/y)" y
}

@test "with ignored_changes discard they are left out and counted" {
	a16
	discard
	run -0 --separate-stderr sb-publish "$s"
	is "$(answer .publish.route_summary)" '{"source_count":3,"ignored_count":3}'
	is "$(answer .publish.skipped)" '[]'
	is "$(head_names)" "$(printf '.env\n.gitignore\nkeep.log\nnode_modules\nnode_modules/x\nsrc\nsrc/m')"
	is "$(head_cat .env)" 1
}

@test "with discard, nothing but ignored changes is a no-op" {
	mkdir ws; echo '*.o' >ws/.gitignore
	start
	discard
	v=$(sb-stack-version)
	s=$(sb-session-new)
	in_session "$s" 'echo 1 >a.o; mkdir b; echo 2 >b/c.o; rmdir b 2>/dev/null || :'
	in_session "$s" 'rm -r b'
	run -0 --separate-stderr sb-publish "$s"
	is "$(answer '[.publish.no_op,.publish.route_summary.ignored_count]')" '[true,1]'
	is "$(sb-stack-version)" "$v"
}

@test "a value that the configuration does not know is named, and nothing is published" {
	mkdir ws; echo 1 >ws/f
	start
	s=$(sb-session-new)
	in_session "$s" 'echo 2 >f'
	echo 'runtime.layerstack.ignored_changes sometimes' >"$SB_STORE/conf"
	run -100 --separate-stderr sb-publish "$s"
	has "$stderr" runtime.layerstack.ignored_changes
	has "$stderr" conf
	is "$(head_cat f)" 1
	rm "$SB_STORE/conf"
	sb-publish "$s"
}

@test "on an ignored path the last writer wins, whatever the two did" {
	mkdir -p ws/out; echo 'out/
*.bin' >ws/.gitignore; echo 0 >ws/out/f; echo 0 >ws/x.bin
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	in_session "$a" 'echo a >out/f; echo a >x.bin; echo a >new.bin; mkdir out/d'
	in_session "$b" 'echo b >out/f; rm x.bin; mkdir new.bin; echo b >out/d'
	in_session "$c" 'rm -r out; echo c >x.bin'
	sb-publish "$a"
	run -0 --separate-stderr sb-publish "$b"
	is "$(answer .publish.route_summary)" '{"source_count":0,"ignored_count":4}'
	is "$(head_names)" "$(printf '.gitignore\nnew.bin\nout\nout/d\nout/f')"
	is "$(head_cat out/f)" b
	sb-publish "$c"
	is "$(head_names)" "$(printf '.gitignore\nnew.bin\nx.bin')"
}

@test "the rules of the lease list count, not those of head or of the session" {
	mkdir ws; echo out.log >ws/.gitignore; seq 3 >ws/src
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	in_session "$a" ': >.gitignore; echo a >out.log'
	sb-publish "$a"
	in_session "$b" 'echo b >out.log; echo src >.gitignore.new'
	run -0 --separate-stderr sb-publish "$b"
	is "$(answer .publish.route_summary)" '{"source_count":1,"ignored_count":1}'
	in_session "$c" 'echo src >.gitignore; seq 4 >src'
	run -2 --separate-stderr sb-publish "$c"
	is "$(answer '[.error.details.conflicts[].path]')" '[".gitignore"]'
}

@test "clearing a directory of ignored files keeps a source file that head added there" {
	mkdir -p ws/out; printf 'out/**\n!out/keep*\n' >ws/.gitignore; echo 1 >ws/out/a; echo 1 >ws/out/b
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'echo source >out/keep; echo junk >out/c'
	in_session "$b" 'rm -r out; mkdir out; echo new >out/n'
	sb-publish "$a"
	sb-publish "$b"
	is "$(head_names)" "$(printf '.gitignore\nout\nout/keep\nout/n')"
	is "$(head_cat out/keep)" source
}

@test "a directory with source files that head added to is a conflict, ignored growth is none" {
	mkdir -p ws/d; echo '*.o' >ws/.gitignore; echo 1 >ws/d/a.c
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new); e=$(sb-session-new)
	in_session "$a" 'echo o >d/a.o'
	sb-publish "$a"
	in_session "$b" 'rm -r d; mkdir d; echo 2 >d/b.c'
	in_session "$c" 'rm -r d'
	in_session "$e" 'echo 3 >d/c.c'
	sb-publish "$e"
	for s in "$b" "$c"; do
		run -2 --separate-stderr sb-publish "$s"
		is "$(answer '[.error.details.conflicts[]|.path,.kind]')" '["d/c.c","child"]'
	done
}

@test "an ignored file below a source directory that is gone at head brings it back" {
	mkdir -p ws/d; echo '*.log' >ws/.gitignore; echo 1 >ws/d/a
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'rm -r d'
	in_session "$b" 'echo l >d/x.log'
	sb-publish "$a"
	sb-publish "$b"
	is "$(head_names)" "$(printf '.gitignore\nd\nd/x.log')"
}
