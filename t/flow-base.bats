# SPDX-License-Identifier: MIT
# The base and what is done with it, as whoever runs this.
bats_require_minimum_version 1.5.0
load lib

cache() { echo "$XDG_CACHE_HOME/sb/bases"; }
tree() { echo "$SB_STORE/layer-stack/base/B000001-base"; }

@test "a session sees the base as it was imported, whatever the user does since" {
	need overlay userns
	mkdir ws && echo old >ws/f && echo gone >ws/h
	make_store
	s=$(sb-session-new)
	echo edited >ws/f && echo new >ws/g && rm ws/h
	sb-run "$s" sh -c 'cat f h; ls' >out
	printf '%s\n' old gone f h >want
	same out want
	# Nor one that begins later.
	s=$(sb-session-new)
	sb-run "$s" sh -c 'cat f h; ls' >out
	same out want
}

@test "what a session does never reaches the base or the source" {
	need overlay userns
	mkdir -p ws/d && echo old >ws/f && echo 1 >ws/d/f
	make_store
	listing ws >ws.before && listing "$(cache)" | grep -v pins >cache.before
	s=$(sb-session-new)
	sb-run "$s" sh -c 'echo mine >>f; chmod 600 d/f; rm -r d; mkdir d; mv f d/g'
	sb-publish "$s" >answer
	sb-stack-show | sb-layer-check
	listing ws >ws.after && listing "$(cache)" | grep -v pins >cache.after
	same ws.before ws.after
	same cache.before cache.after
	# The store still has this base.
	is "$(sb-base-import ws)" "$(cat base.hash)"
}

@test "a session's root directory has the mode and attributes of the source" {
	need overlay userns
	mkdir ws && chmod 751 ws && echo 1 >ws/f
	make_store
	is "$(stat -c %a "$(tree)")" 751
	s=$(sb-session-new)
	is "$(sb-run "$s" stat -c %a .)" 751
}

@test "sessions of many stores share one entry" {
	mkdir ws && echo 1 >ws/f
	make_store
	for i in 1 2 3; do
		SB_STORE=$T/store$i && sb-store-init && sb-base-import ws >hash
		same hash base.hash
		is "$(echo B000001-base | ids B000001-base | sb-layer-cat f)" 1
	done
	is "$(ls "$(cache)" | wc -l)" 1
	rm -rf store1 store2
	sb-base-import -g >out
	same out <(ids0)
	is "$(cat "$(cache)"/*/B000001-base/f)" 1
}

@test "read-only files and directories are imported, and removed again" {
	mkdir -p ws/ro/deep && echo 1 >ws/ro/deep/f && ln ws/ro/deep/f ws/ro/hard
	chmod 444 ws/ro/deep/f && chmod 555 ws/ro/deep ws/ro ws
	make_store
	is "$(stat -c '%a %n' "$(tree)" "$(tree)/ro" "$(tree)/ro/deep" "$(tree)/ro/hard" | cut -d' ' -f1 | xargs)" "555 555 555 444"
	sb-stack-show | sb-layer-check
	key=$(ls "$(cache)")
	rm -rf store
	sb-base-import -g >out
	same out <(ids "$key")
	is "$(ls -A "$(cache)")" .lock
	chmod -R u+w ws
}

@test "what cannot be read is named, and everything else is imported" {
	need user
	mkdir -p ws/closed/d ws/noexec && echo 1 >ws/f && echo 2 >ws/secret && echo 3 >ws/noexec/g
	chmod 0 ws/closed ws/secret && chmod 400 ws/noexec
	sb-store-init
	run -0 --separate-stderr sb-base-import ws
	chmod 700 ws/closed ws/noexec
	has "$stderr" "sb-base-import: warning: not imported, unreadable (3): closed, noexec/g, secret"
	is "$(cd "$(tree)/" && ls -A | xargs)" "f noexec"
	sb-base-import -g >out
}

@test "files of others that may be read are imported and belong to the importer" {
	need user
	mkdir ws && cp -P /etc/passwd ws/mine && ln -s /etc/passwd ws/l
	sb-store-init
	sb-base-import /etc/ssl >hash 2>err
	is "$(find "$(tree)/" ! -user "$(id -u)" | wc -l)" 0
	sb-stack-show | sb-layer-check
}

@test "a real tree: import, unchanged, one edit, its hash by other means" {
	cp -a "$SB_TOP/t" ws
	make_store
	(cd ws && find . -mindepth 1 -printf '%P\0' | LC_ALL=C sort -z | while IFS= read -r -d '' f; do
		if [ -L "$f" ]; then printf 'symlink\0%s\0%s\0' "$f" "$(readlink "$f")"
		elif [ -d "$f" ]; then printf 'directory\0%s\0\0' "$f"
		else printf 'file\0%s\0%s\0%s\0' "$f" "$(stat -c %s "$f")" "$(sha256sum <"$f" | cut -c1-64)"; fi
	done) | sha256sum | cut -c1-64 >want
	same base.hash want
	is "$(cat "$(cache)"/*/digest)" "$(cat want)"
	echo edit >>ws/lib.bash
	SB_STORE=$T/second && sb-store-init && sb-base-import ws >hash
	run ! cmp hash want
	cmp ws/lib.bash "$(tree)/lib.bash"
}
