# SPDX-License-Identifier: MIT
# The base: what is copied, what is left out and named, what is not copied
# again, and that nothing half-made is ever seen.
bats_require_minimum_version 1.5.0
load lib

golden=e1dfd0574f0bf8783159b50c2d1547ba1f8f86a78f45f238ae519940396aa839

# A workspace of every kind and attribute that travels.
sample() {
	mkdir -p "$1/dir/empty" && printf 'hello\n' >"$1/dir/f"
	ln "$1/dir/f" "$1/again" && ln -s dir/f "$1/link" && ln -s /nowhere "$1/dangling"
	echo x >"$1/exec" && chmod 755 "$1/exec"
	chmod 700 "$1/dir/empty"
	touch -d '2001-02-03 04:05:06.123456789' "$1/exec" "$1/dir/empty"
	touch -h -d '1999-01-01 00:00:00.5' "$1/link"
}

store() { # NAME: a new store there
	export SB_STORE=$T/$1
	sb-store-init
}

cache() { echo "$XDG_CACHE_HOME/sb/bases"; }
entries() { ls "$(cache)"; }			# the keys
tree() { echo "$SB_STORE/layer-stack/base/B000001-base"; }
count() { entries | wc -l; }

# Everything that an import keeps, but owners.
kept() {
	(cd "$1" && find . -printf '%P\t%y\t%m\t%T@\t%l\t%n\n' | sed 's/\([0-9]*\)\t\([0-9]*\)$/\1/; /\td\t/s/\t[0-9]*$//' | LC_ALL=C sort
	    find . -printf '%P\0' | LC_ALL=C sort -z | while IFS= read -r -d '' f; do
		[ ! -f "$f" ] || [ -L "$f" ] || sha256sum <"$f"
		[ -L "./$f" ] || getfattr -d -e hex -m '^user\.' -- "./$f" 2>/dev/null
	    done)
}

# kept_equal A B
kept_equal() {
	kept "$1" >a.kept && kept "$2" >b.kept && same a.kept b.kept
}

# What nobody may have changed: the store and the cache.
world() { listing "$SB_STORE"; listing "$XDG_CACHE_HOME"; }

# After a failure or a kill: the store is bound and whole, or not bound.
whole() {
	if [ -e "$SB_STORE/layer-stack/workspace.json" ]; then
		is "$(jq -r .base_root_hash "$SB_STORE/layer-stack/workspace.json")" "$1" || return
		is "$(cat "$SB_STORE/layer-stack/.layer-metadata/B000001-base.digest")" "$1" || return
		is "$(sb-stack-show)" "B000001-base" || return
		sb-stack-show | sb-layer-check >check.out || fail "$(cat check.out)" || return
	fi
	# A name that is a key is complete.
	local key
	for key in "$(cache)"/*; do
		[ -e "$key" ] || continue
		kept_equal ws "$key/B000001-base" || return
	done
}

# The index is believed only 2 s after the last change.
old_enough() {
	until [ "$(find "$1" -printf '%C@\n' | sort -n | tail -1 | cut -d. -f1)" -lt $(($(date +%s) - 3)) ]; do
		sleep 0.1
	done
}

# How many regular files below ws an import opens; it prints the hash.
opened() {
	strace -qq -y -e trace=openat -o trace sb-base-import ws >hash || return
	grep -c "openat([0-9]*<$T/ws[^>]*>, \"[^\"]*\", O_RDONLY|O_NOCTTY" trace || :
}

# Ends a job of this shell.
stop_job() {
	kill "$1"
	wait "$1" 2>/dev/null || :
}

# stop_at CALL N [-P PATH]: an import of ws that stops in its Nth such call, in
# the background as $pid, with its answer in hash. go_on lets it finish.
stop_at() {
	local call=$1 n=$2
	shift 2
	rm -f trace
	strace -qq -o trace -e trace="$call" "$@" -e inject="$call:signal=STOP:when=$n" \
	    sb-base-import ws >hash 2>err 3>&- &
	pid=$!
	for _ in $(seq 2000); do
		! grep -q 'stopped by SIGSTOP' trace 2>/dev/null || return 0
		kill -0 $pid 2>/dev/null || break
		sleep 0.02
	done
	fail "it did not stop in $call" "$(cat err)"
}

go_on() {
	kill -CONT "$(tr -d ' ' <"/proc/$pid/task/$pid/children")"
	wait "$pid"
}

@test "a directory becomes the base: hash, manifest, digest, binding, link" {
	store store
	mkdir -p ws/dir && printf 'hello\n' >ws/dir/f.txt && ln -s dir/f.txt ws/l
	run -0 --separate-stderr sb-base-import ws
	is "$output" $golden
	is "$stderr" ""
	cd store/layer-stack
	printf '%s\n' '{' '  "workspace_root": "'"$T"'/ws",' \
	    '  "layer_stack_root": "'"$T"'/store/layer-stack",' \
	    '  "base_root_hash": "'$golden'"' >want
	printf '}' >>want
	same workspace.json want
	is "$(cat .layer-metadata/B000001-base.digest)" $golden
	is "$(cat .layer-metadata/B000001-base.bytes)" 6
	is "$(jq -c . manifest.json)" '{"layers":[{"layer_id":"B000001-base","path":"base/B000001-base"}],"schema_version":1,"version":1}'
	is "$(sb-stack-version)" 1
	key=$(entries)
	is "${#key}" 64
	is "$(readlink base)" "$(cache)/$key"
	is "$(cat "$(cache)/$key/digest")" $golden
	is "$(stat -c %a "$(cache)/$key")" 700
	kept_equal "$T/ws" base/B000001-base
}

@test "the current directory is the default" {
	store store
	mkdir ws && cd ws && sb-base-import >../hash
	is "$(jq -r .workspace_root "$SB_STORE/layer-stack/workspace.json")" "$T/ws"
}

@test "modes, times, links, hard links and attributes are kept" {
	need xattr
	sample ws
	chmod 4755 ws/exec && chmod 2750 ws/dir && chmod 1777 ws
	setfattr -n user.a -v 1 ws/exec && setfattr -n user.d -v 0x00ff ws/dir && setfattr -n user.r -v r ws
	touch -d '2002-02-02 02:02:02.2' ws/dir ws
	store store && sb-base-import ws >hash
	kept_equal ws "$(tree)"
	is "$(stat -c %h "$(tree)/again")" 2
	[ "$(tree)/again" -ef "$(tree)/dir/f" ]
	is "$(getfattr --only-values -n user.r --absolute-names "$(tree)")" r
}

@test "owners are kept by root" {
	need root
	sample ws
	chown 12:34 ws/exec && chown -h 56:78 ws/link && chown 90:12 ws/dir && chmod 6755 ws/exec
	store store && sb-base-import ws >hash
	is "$(stat -c '%u:%g %a' "$(tree)/exec")" "12:34 6755"
	is "$(stat -c %u:%g "$(tree)/link" "$(tree)/dir" | xargs)" "56:78 90:12"
}

@test "holes stay holes, and are hashed as zeros" {
	mkdir ws
	truncate -s 100M ws/hole
	printf x | dd of=ws/mid bs=1 seek=50000000 conv=notrunc status=none
	truncate -s 60M ws/mid
	{ head -c 300000 /dev/urandom; } >ws/tail && truncate -s 20M ws/tail
	store store && sb-base-import ws >hash
	cmp ws/hole "$(tree)/hole" && cmp ws/mid "$(tree)/mid" && cmp ws/tail "$(tree)/tail"
	[ "$(du -sk "$(tree)/" | cut -f1)" -lt 1000 ]
	sb-stack-show | sb-layer-check
}

@test "uncommitted and ignored files of a repository are taken as they are" {
	need git
	git init -q ws && cd ws && git config user.email a@b && git config user.name a
	echo 1 >m && echo 1 >s && echo ignored >.gitignore && git add . && git commit -qm c
	echo 2 >m && echo 2 >s && git add s && echo new >untracked && echo i >ignored
	git status --porcelain --ignored >../before
	cd .. && store store && sb-base-import ws >hash
	cp -a "$(tree)" copy && git -C copy status --porcelain --ignored >after
	same before after
}

@test "names are bytes" {
	mkdir ws && cd ws
	for f in 'a b' '"q"' '实测.md' $'tab\tx' $'line\ntwo' ' -> ' -rf $'\xff\xfe' 'back\slash' ' lead' '*' .wh "$(printf 'n%.0s' {1..255})"; do
		printf %s "$f" >"./$f" && mkdir "./d$(printf %.250s "$f")"
	done
	cd .. && store store && sb-base-import ws >hash
	kept_equal ws "$(tree)"
	sb-stack-show | sb-layer-check
}

@test "2000 levels, longer than any path, need few descriptors" {
	mkdir ws && mkdir -p "ws/$(printf 'a-level/%.0s' {1..2000})"
	store store && (ulimit -n 128 && sb-base-import ws >hash)
	is "$(sb-base-import ws)" "$(cat hash)"
	depth() { (cd "$1" && find . | wc -l); }
	is "$(depth "$(tree)")" "$(depth ws)"
	rm -rf store && (ulimit -n 128 && sb-base-import -g >removed)
	is "$(entries)" ""
}

@test "what cannot be copied is named, and nothing waits for it" {
	mkdir -p ws/.wh.dir/x ws/d && echo t >ws/t && echo 1 >ws/.wh.t && echo 1 >ws/d/.wh..wh..opq
	mkfifo ws/fifo ws/d/p1 ws/d/p2 ws/d/p3 ws/d/p4 ws/d/p5
	(cd ws && "$SB_T/mksocket" sock)
	store store
	run -0 --separate-stderr timeout 60 sb-base-import ws
	has "$stderr" "sb-base-import: warning: not imported, sockets (1): sock"
	has "$stderr" "not imported, FIFOs (6): d/p1, d/p2, d/p3, d/p4, d/p5, +1 more"
	has "$stderr" "not imported, names beginning .wh. (3): .wh.dir, .wh.t, d/.wh..wh..opq"
	is "$(cd "$(tree)" && find . | sort | xargs)" ". ./d ./t"
	# An unchanged tree says it again.
	store other
	run -0 --separate-stderr sb-base-import ws
	has "$stderr" "FIFOs (6)"
}

@test "devices and attributes of the system are left out and counted" {
	need root xattr
	mkdir ws && echo t >ws/t && mknod ws/null c 1 3 && mknod ws/wh c 0 0
	setfattr -n trusted.sb -v 1 ws/t && setfattr -n user.overlay.opaque -v y ws
	setfattr -n security.sb -v 1 ws/t && setfattr -n user.mine -v 1 ws/t
	store store
	run -0 --separate-stderr sb-base-import ws
	has "$stderr" "devices (2): null, wh"
	has "$stderr" "extended attributes (3): security.*, trusted.*, user.overlay.*"
	is "$(getfattr --absolute-names -d -m - "$(tree)" "$(tree)/t" | grep -c =)" 1
	is "$(getfattr --absolute-names --only-values -n user.mine "$(tree)/t")" 1
	old_enough ws
	sb-base-import ws 2>/dev/null && opened >n 2>err
	has "$(cat err)" "extended attributes (3)"
}

@test "a file system that the kernel makes up is left out; others are crossed" {
	need root userns
	mkdir -p ws/proc ws/real ws/sys && echo 1 >ws/f
	store store
	unshare -m sh -c 'mount -t proc p ws/proc && mount -t sysfs s ws/sys && mount -t tmpfs t ws/real &&
	    echo 1 >ws/real/g && sb-base-import ws' >hash 2>err
	has "$(cat err)" "not imported, pseudo file systems (2): proc, sys"
	is "$(cd "$(tree)" && find . | sort | xargs)" ". ./f ./real ./real/g"
	store other
	run -100 --separate-stderr sb-base-import /proc/self
	has "$stderr" "is a file system that the kernel makes up"
}

@test "an unchanged tree is walked, but no file is opened or read" {
	need strace
	sample ws && mkdir ws/many && for i in $(seq 50); do echo "$i" >"ws/many/$i"; done
	old_enough ws
	store one && sb-base-import ws >first
	store two
	is "$(opened)" 0
	is "$(grep -c "<$T/ws.*O_DIRECTORY" trace)" 4 # ws itself, dir, dir/empty, many
	same hash first
	is "$(count)" 1
	# Nor are links and attributes read.
	store three
	strace -qq -e trace=readlinkat,flistxattr,fgetxattr -o trace sb-base-import ws >hash
	run ! grep -v exited trace
}

@test "files younger than 2 s are read again, and then believed" {
	need strace
	begin=$(date +%s)
	sample ws
	store one && sb-base-import ws >first
	store two
	n=$(opened)
	# dir/f and exec; this machine may be too slow to be that quick.
	[ "$n" = 2 ] || [ $(($(date +%s) - begin)) -gt 2 ] || fail "opened $n"
	same hash first
	old_enough ws
	store three && sb-base-import ws >hash
	store four
	is "$(opened)" 0
	same hash first
	is "$(count)" 1
}

@test "a change of the same size and time is seen" {
	sample ws && old_enough ws
	store one && sb-base-import ws >first
	touch -r ws/exec stamp && echo y >ws/exec && touch -r stamp ws/exec
	store two && sb-base-import ws >second
	run ! cmp first second
	is "$(cat "$(tree)/exec")" y
	is "$(count)" 2
}

@test "one file changed: the new tree is imported, the old entry stays as it was" {
	sample ws
	store one && sb-base-import ws >first
	kept "$(tree)" >before
	echo more >>ws/dir/f && rm ws/exec && echo new >ws/new
	store two && sb-base-import ws >second
	kept_equal ws "$(tree)"
	SB_STORE=$T/one
	kept "$(tree)" >after
	same before after
	is "$(count)" 2
}

@test "the same content from two directories is one entry" {
	sample ws && cp -a ws other
	store one && sb-base-import ws >first
	store two && sb-base-import other >second
	same first second
	is "$(count)" 1
	is "$(ls "$(cache)"/*/pins | wc -l)" 2
	# Only the names' being one file differs.
	rm other/again && cp -a other/dir/f other/again && touch -r ws other
	store three && sb-base-import other >third
	same first third
	is "$(count)" 2
	is "$(stat -c %h "$(tree)/again")" 1
}

@test "a change of mode, time or attribute is a new entry with the same hash" {
	need xattr
	sample ws
	store one && sb-base-import ws >first
	chmod 600 ws/exec
	store two && sb-base-import ws >second
	same first second
	is "$(stat -c %a "$(tree)/exec")" 600
	touch -d '2003-03-03' ws/dir/empty
	store three && sb-base-import ws >third
	same first third
	setfattr -n user.x -v y ws/exec
	store four && sb-base-import ws >fourth
	same first fourth
	is "$(count)" 4
	kept_equal ws "$(tree)"
}

@test "the base does not change when its source does" {
	sample ws
	store store && sb-base-import ws >hash
	kept "$(tree)" >before
	echo edit >>ws/dir/f && echo new >ws/g && rm ws/exec && chmod 777 ws/dir && ln -sf other ws/link
	kept "$(tree)" >after
	same before after
	sb-stack-show | sb-layer-check
}

@test "an index that is damaged or of another form is ignored" {
	sample ws && old_enough ws
	store one && sb-base-import ws >first
	index=("$XDG_CACHE_HOME"/sb/index/*)
	is "${#index[@]}" 1
	is "$(head -1 "${index[0]}")" "sb-index 1"
	for damage in 'truncate -s 100' 'truncate -s 0' 'sed -i 1s/1/2/' 'dd if=/dev/zero bs=1 seek=90 count=9 conv=notrunc status=none of='; do
		cp "${index[0]}" good
		case $damage in *=) $damage"${index[0]}" ;; *) $damage "${index[0]}" ;; esac
		rm -rf two
		store two && sb-base-import ws >second 2>err
		same first second
		is "$(cat err)" ""
		same "${index[0]}" good || is "$(stat -c %s "${index[0]}")" "$(stat -c %s good)"
	done
	is "$(count)" 1
}

@test "importing into the store that has it prints the hash and changes nothing" {
	sample ws && old_enough ws
	store store && sb-base-import ws >first
	world >before
	sb-base-import ws >second
	same first second
	world >after
	same before after
	# Also after others have published on top of it.
	sed -i 's/"version": 1$/"version": 7/' store/layer-stack/manifest.json
	sb-base-import ws >third
	same first third
	is "$(sb-stack-version)" 7
}

@test "a store that is bound to something else is refused, naming both" {
	sample ws && mkdir other && old_enough ws
	store store && sb-base-import ws >first
	world >before
	run -100 --separate-stderr sb-base-import other
	has "$stderr" "$T/ws"
	has "$stderr" "$T/other"
	echo x >>ws/exec
	run -100 --separate-stderr sb-base-import ws
	has "$stderr" "$(cat first)"
	is "$output" ""
	world >after
	same <(grep -v /index/ before) <(grep -v /index/ after)
	is "$(count)" 1
}

@test "a bound store whose directory has other modes is refused, naming both" {
	sample ws
	store store && sb-base-import ws >first
	chmod 600 ws/exec
	run -100 --separate-stderr sb-base-import ws
	has "$stderr" "$(entries)"
	has "$stderr" "modes, times or attributes"
	is "$(count)" 1
}

@test "a store with layers but without a binding is refused" {
	store store && mkdir ws
	sb-base-import -g >out
	printf '{"layers":[{"layer_id":"L000001-00000000","path":"layers/L000001-00000000"}],"schema_version":1,"version":1}' >store/layer-stack/manifest.json
	world >before
	run -100 --separate-stderr sb-base-import ws
	has "$stderr" "has layers but no workspace.json"
	sed -i 's/"schema_version":1/"schema_version":2/' store/layer-stack/manifest.json
	run -100 --separate-stderr sb-base-import ws
	has "$stderr" "schema_version"
	sed -i 's/"schema_version":2/"schema_version":1/' store/layer-stack/manifest.json
	world >after
	same before after
}

@test "a damaged bound store is refused, saying what is wrong" {
	sample ws
	store store && sb-base-import ws >hash
	mv store/layer-stack/base moved
	run -100 --separate-stderr sb-base-import ws
	has "$stderr" "its base cannot be opened"
	mv moved store/layer-stack/base && rm store/layer-stack/manifest.json
	run -100 --separate-stderr sb-base-import ws
	has "$stderr" "manifest.json: it is missing, but the store has a base"
	echo '{' >store/layer-stack/workspace.json
	run -100 --separate-stderr sb-base-import ws
	has "$stderr" "workspace.json is not a binding"
}

@test "a store inside the directory, or the other way round, is refused, naming both" {
	mkdir -p ws/sub
	store ws/store
	run -100 --separate-stderr sb-base-import ws
	has "$stderr" "store $T/ws/store is inside the directory $T/ws: set SB_STORE, for sandboxes SB_STATE, to"
	run -100 --separate-stderr sb-base-import ws/store
	has "$stderr" "$T/ws/store"
	run -100 --separate-stderr sb-base-import ws/store/workspace
	has "$stderr" "directory $T/ws/store/workspace is inside the store $T/ws/store"
	ln -s ws/sub link
	run -100 --separate-stderr sb-base-import /
	has "$stderr" "/ cannot be imported"
	[ ! -e "$XDG_CACHE_HOME" ]
	[ ! -e ws/store/layer-stack/workspace.json ]
	# Beside it by a name that only begins alike.
	SB_STORE=$T/ws-store && sb-store-init && sb-base-import ws/sub >hash
}

@test "a store that another mount shows inside the directory is refused" {
	need root userns
	mkdir -p ws/sub
	store store
	run -100 --separate-stderr unshare -m sh -c 'mount --bind store ws/sub && sb-base-import ws'
	has "$stderr" "store $T/store is inside the directory, as $T/ws/sub"
	is "$(entries)" ""
}

@test "the cache inside the directory is left out, so that a home can be imported" {
	mkdir -p home/src && echo 1 >home/src/f
	unset XDG_CACHE_HOME
	store store
	run -0 --separate-stderr sb-base-import home
	has "$stderr" "not imported, the cache itself (1): .cache/sb"
	is "$(cd "$(tree)" && find . -type f | xargs)" "./src/f"
	run -100 --separate-stderr sb-base-import home/.cache/sb/bases
	has "$stderr" "is inside the cache $T/home/.cache/sb"
}

@test "a link given as the directory stands for what it names" {
	sample ws && ln -s ws link
	store store && sb-base-import link >hash
	is "$(jq -r .workspace_root store/layer-stack/workspace.json)" "$T/ws"
	is "$(sb-base-import ws)" "$(cat hash)"
}

@test "a file that changes while it is copied is copied again" {
	need strace
	mkdir ws && head -c 400000 /dev/zero >ws/f
	store store
	stop_at read 1 -P "$T/ws/f"
	printf new >>ws/f
	go_on
	cmp ws/f "$(tree)/f"
	sb-stack-show | sb-layer-check
}

@test "a file that changes all the time fails the import, naming it" {
	mkdir ws && head -c 30000000 /dev/zero >ws/log
	store store
	while :; do echo line >>ws/log; done 3>&- &
	pid=$!
	run -111 --separate-stderr sb-base-import ws
	stop_job $pid
	has "$stderr" "$T/ws/log changes all the time"
	is "$(entries)" ""
	is "$(ls -A "$(cache)")" .lock
	[ ! -e store/layer-stack/workspace.json ]
}

@test "a directory that turns into a link is never followed" {
	mkdir -p ws/d outside && echo inside >ws/d/f && echo secret >outside/f && ln -s "$T/outside" ws/l
	"$SB_T/swap" ws/d ws/l 3>&- &
	pid=$!
	for i in $(seq 40); do
		store "store$i" && sb-base-import ws >hash 2>err || fail "$(cat err)" || break
		for name in d l; do
			f=$(tree)/$name
			if [ -L "$f" ]; then is "$(readlink "$f")" "$T/outside"
			elif [ -d "$f" ]; then is "$(cat "$f/f")" inside
			else [ ! -e "$f" ]; fi || break 2
		done
	done
	stop_job $pid
	is "$i" 40
	run ! grep -r secret "$(cache)"
}

@test "files that vanish during the walk are as if they had gone before" {
	mkdir -p ws/keep && for i in $(seq 20); do echo 1 >"ws/keep/$i"; done
	while :; do mkdir -p ws/x/y && echo 1 >ws/x/y/f && ln -s f ws/x/l && rm -rf ws/x; done 2>/dev/null 3>&- &
	pid=$!
	for i in $(seq 20); do
		store "store$i" && sb-base-import ws >hash 2>err || fail "$(cat err)" || break
		is "$(ls "$(tree)/keep" | wc -l)" 20 || break
	done
	stop_job $pid
}

# kill_loop WHAT: kills the import at every call that changes something.
kill_loop() {
	local call n max total=0 hash
	hash=$(cat want.hash)
	for call in openat mkdirat renameat renameat2 symlinkat linkat unlinkat write fsync fchmod fchownat utimensat ftruncate; do
		"fresh_$1"
		max=$(count_calls $call sb-base-import ws) || return
		for n in $(seq "$max"); do
			"fresh_$1"
			run ! kill_at $call "$n" sb-base-import ws
			whole "$hash" || fail "killed at $call $n" || return
			is "$(sb-base-import ws)" "$hash" || fail "after a kill at $call $n" || return
			whole "$hash" || fail "finished after $call $n" || return
			is "$(cd "$(cache)" && ls -A | grep -v '^[0-9a-f]*$')" .lock ||
			    fail "left by $call $n" || return
			total=$((total + 1))
		done
	done
	echo "# $1: $total kills" >&3
}

fresh_first() { rm -rf store cache && store store; }
fresh_known() { rm -rf store && store store; }

@test "killed at any call of a first import, the next one finishes it" {
	need strace
	sample ws && store store && sb-base-import ws >want.hash
	kill_loop first
}

@test "killed at any call of an import of what is known, the next one finishes it" {
	need strace
	sample ws && old_enough ws && store store && sb-base-import ws >want.hash
	kill_loop known
}

@test "a failing call leaves nothing half-made and nothing behind" {
	need strace
	sample ws && store store && sb-base-import ws >want.hash
	total=0
	for what in mkdirat:ENOSPC renameat:ENOSPC symlinkat:ENOSPC linkat:ENOSPC write:ENOSPC fsync:EIO fsync:ENOSPC fchmod:EPERM utimensat:EROFS; do
		call=${what%:*} err=${what#*:}
		fresh_first
		max=$(count_calls $call sb-base-import ws)
		for n in $(seq "$max"); do
			fresh_first
			rc=0
			fault_at "$call" "$n" "$err" sb-base-import ws >out 2>err || rc=$?
			total=$((total + 1))
			# Writing the index or the answer may be what failed.
			[ $rc = 111 ] || { [ $rc = 0 ] && is "$(cat out)" "$(cat want.hash)" && has "$(cat err)" /index/; } ||
			    fail "$call $n $err: $rc $(cat err)"
			has "$(cat err)" "sb-base-import: " || fail "$call $n $err"
			whole "$(cat want.hash)" || fail "$call $n $err"
			is "$(ls -A "$(cache)" 2>/dev/null | grep -v '^[0-9a-f]*$' | sed 's/^\.lock$//')" "" || fail "$call $n $err"
			is "$(sb-base-import ws)" "$(cat want.hash)" || fail "after $call $n $err"
			whole "$(cat want.hash)"
		done
	done
	echo "# $total failures" >&3
}

# full FSTYPE: 3 MiB into a file system of 2.
full() {
	unshare -m sh -c '
	    mkdir -p cache && mount '"$1"' cache || exit 77
	    sb-base-import ws >out 2>err; rc=$?
	    find cache/sb -mindepth 2 >left; rm ws/big
	    sb-base-import ws >out2 2>err2 || exit 78
	    cat store/layer-stack/base/B000001-base/f >f
	    exit $rc'
}

on_full() {
	mkdir ws && head -c 3000000 /dev/urandom >ws/big && echo small >ws/f
	store store
	run -111 full "$1"
	has "$(cat err)" "No space left on device"
	is "$(cat out)" ""
	is "$(cat left)" "cache/sb/bases/.lock"
	is "$(cat f)" small
}

@test "on a full disk the import is 111, nothing is left, and it works with room" {
	need root userns
	on_full "-t tmpfs -o size=2m none"
}

@test "the same on a full ext4" {
	need root userns mkfs.ext4
	truncate -s 2M image && mkfs.ext4 -q -m 0 image
	mkdir m && unshare -m mount -o loop image m 2>/dev/null || skip "no loop devices"
	on_full "-o loop image"
}

@test "imports at the same time make one entry and are all bound" {
	sample ws
	for i in 1 2 3 4; do store "s$i"; done
	for i in 1 2 3 4; do
		SB_STORE=$T/s$i sb-base-import ws >"hash$i" 3>&- &
	done
	wait
	for i in 1 2 3 4; do
		same "hash$i" hash1
		SB_STORE=$T/s$i
		kept_equal ws "$(tree)"
	done
	is "$(count)" 1
	is "$(ls -A "$(cache)" | grep -c .)" 2 # and the lock
	is "$(ls "$(cache)"/*/pins | wc -l)" 4
}

@test "who loses the race for the name uses the winner's entry" {
	need strace
	sample ws
	store one
	stop_at linkat 1
	store two && sb-base-import ws >second
	go_on && mv hash first
	same first second
	is "$(count)" 1
	is "$(ls -A "$(cache)" | grep -c .)" 2
	is "$(readlink one/layer-stack/base)" "$(readlink two/layer-stack/base)"
}

@test "two imports into one store: both say the same, or one is refused" {
	sample ws && sample other && echo other >other/exec
	store store
	sb-base-import ws >a 3>&- & sb-base-import ws >b 3>&- &
	wait
	same a b
	rm -rf store && store store
	sb-base-import ws >a 2>a.err 3>&- & p=$!
	sb-base-import other >b 2>b.err 3>&- & q=$!
	ra=0 rb=0
	wait $p || ra=$?
	wait $q || rb=$?
	is "$((ra + rb))" 100
	is "$(cat a b | wc -l)" 1
	is "$(jq -r .base_root_hash store/layer-stack/workspace.json)" "$(cat a b)"
}

@test "-g removes the entries that no store uses, and says which" {
	sample ws
	store one && sb-base-import ws >hash && used=$(entries)
	echo 2 >ws/exec
	store two && sb-base-import ws >hash && unused=$(entries | grep -v "$used")
	sb-base-import -g >out
	same out <(ids0)
	is "$(count)" 2
	rm -rf two
	sb-base-import -g >out
	same out <(ids "$unused")
	is "$(entries)" "$used"
	is "$(ls -A "$(cache)" | xargs)" ".lock $used"
	kept_equal one/layer-stack/base/B000001-base one/layer-stack/base/B000001-base
	# A store that has moved, or links to something else, uses nothing.
	mv one three
	sb-base-import -g >out
	same out <(ids "$used")
}

@test "-g keeps what a store links to, whatever else pinned it" {
	sample ws
	store one && sb-base-import ws >hash
	pins=$(cache)/$(entries)/pins
	printf %s "$T/gone" >"$pins/$(printf %s "$T/gone" | sha256sum | cut -c1-64)"
	printf x >"$pins/.half.1.tmp"
	sb-base-import -g >out
	same out <(ids0)
	is "$(ls -A "$pins" | wc -l)" 1
	# An entry without pins that no store finished.
	ln -sfn /nowhere one/layer-stack/base
	sb-base-import -g >out
	is "$(count)" 0
}

@test "-g removes leftovers, and index files of directories that are gone" {
	sample ws && mkdir other
	store one && sb-base-import ws >hash
	store two && sb-base-import other >hash
	mkdir -p "$(cache)/.building-1-0/B000001-base/d" "$(cache)/.gone-1-0" && : >"$(cache)/.building-1-0.lock"
	: >"$(cache)/..building-2-0.lock.2" && : >"$XDG_CACHE_HOME/sb/index/.x.1.tmp" && echo x >"$XDG_CACHE_HOME/sb/index/foreign"
	chmod 0 "$(cache)/.building-1-0/B000001-base/d"
	rm -rf other
	sb-base-import -g >out
	is "$(ls -A "$(cache)" | grep -vc '^[0-9a-f]*$')" 1
	is "$(ls -A "$XDG_CACHE_HOME/sb/index")" "$(printf %s "$T/ws" | sha256sum | cut -c1-64)"
}

@test "-g takes no copy that is being made" {
	need strace
	sample ws
	store store
	stop_at linkat 1
	sb-base-import -g >out
	same out <(ids0)
	go_on
	kept_equal ws "$(tree)"
}

@test "-g waits while an entry is named and not yet linked to" {
	need strace
	sample ws
	store store
	stop_at symlinkat 3 # the first two are links of ws
	is "$(count)" 1
	run -124 timeout 0.5 sb-base-import -g
	go_on
	is "$(sb-base-import -g)" ""
	kept_equal ws "$(tree)"
}

@test "-g in a cache that is not there makes nothing to remove" {
	run -0 sb-base-import -g
	is "$output" ""
}

@test "it says how far it is once it takes longer than a second, unless -q" {
	need strace
	sample ws
	store one
	strace -qq -o /dev/null -e trace=getdents64 -e inject=getdents64:delay_exit=1100000:when=1+2 sb-base-import ws >hash 2>err
	grep -qE '^sb-base-import: info: [0-9]+ entries, [0-9]+ bytes$' err
	rm -rf cache && store two
	strace -qq -o /dev/null -e trace=getdents64 -e inject=getdents64:delay_exit=1100000:when=1+2 sb-base-import -q ws >hash 2>err
	is "$(cat err)" ""
}

@test "-v: how far it is from the beginning, at most once a second, and last all there is" {
	need strace
	sample ws
	head -c 100000 /dev/zero >ws/zeros
	store one
	sb-base-import -v ws >hash 2>err
	n=$(find ws | wc -l)
	is "$(tail -n 1 err)" "sb-base-import: info: $n entries, $(cat "$SB_STORE/layer-stack/.layer-metadata/B000001-base.bytes") bytes: copied"
	is "$(head -n 1 err)" "sb-base-import: info: 1 entries, 0 bytes"
	[ "$(wc -l <err)" -ge 2 ]
	# It takes as long as it sleeps, and more; it says no more than once a second.
	rm -rf cache && store two
	begin=$(date +%s)
	strace -qq -o /dev/null -e trace=newfstatat,statx -e inject=newfstatat,statx:delay_exit=300000 sb-base-import -v ws >hash 2>err
	[ "$(wc -l <err)" -le $(($(date +%s) - begin + 3)) ]
	# Nothing is copied of what has been, and -q is quiet.
	sb-base-import -v ws >hash 2>err
	has "$(tail -n 1 err)" ": nothing to copy"
	is "$(sb-base-import -qv ws 2>&1 >/dev/null)" ""
}

@test "usage errors are 100, -h is 0" {
	store store
	for args in 'a b' '-g a' '-x'; do
		# shellcheck disable=SC2086 # words
		run -100 --separate-stderr sb-base-import $args
		is "$stderr" "sb-base-import: usage: sb-base-import [-gqv] [dir]"
	done
	run -0 sb-base-import -h
	is "$output" "usage: sb-base-import [-gqv] [dir]"
}

@test "a missing store, directory or cache is said with what to do" {
	mkdir ws
	run -111 --separate-stderr sb-base-import ws
	has "$stderr" "unable to open store"
	store store
	run -111 --separate-stderr sb-base-import nothing
	has "$stderr" "unable to open directory nothing: No such file"
	: >file
	run -111 --separate-stderr sb-base-import file
	run -100 --separate-stderr env -u SB_STORE sb-base-import ws
	has "$stderr" "SB_STORE is not set"
	run -100 --separate-stderr env -u XDG_CACHE_HOME -u HOME sb-base-import ws
	has "$stderr" "set XDG_CACHE_HOME"
	mkdir -m 777 -p "$XDG_CACHE_HOME/sb" && chmod 777 "$XDG_CACHE_HOME/sb"
	run -100 --separate-stderr sb-base-import ws
	has "$stderr" "can be written by others"
	chmod 755 "$XDG_CACHE_HOME/sb"
	mkdir $'\xff'
	run -100 --separate-stderr sb-base-import $'\xff'
	has "$stderr" "not UTF-8"
	[ ! -e store/layer-stack/workspace.json ]
}

@test "an answer that cannot be written is 111, though the store is bound" {
	mkdir ws
	store one
	run -111 sh -c 'sb-base-import ws >/dev/full'
	store two
	run -111 sh -c 'sb-base-import ws >&-'
	is "$(sb-base-import ws)" "$(jq -r .base_root_hash two/layer-stack/workspace.json)"
	run -111 sh -c 'sb-base-import -g >/dev/full'
}

@test "a cache that belongs to somebody else is refused" {
	need root
	mkdir ws && store store
	mkdir -p "$XDG_CACHE_HOME/sb" && chown 1000 "$XDG_CACHE_HOME/sb"
	run -100 --separate-stderr sb-base-import ws
	has "$stderr" "cache $XDG_CACHE_HOME/sb belongs to"
	run -100 sb-base-import -g
}
