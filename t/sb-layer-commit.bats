# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	sb-store-init
	S=$SB_STORE/layer-stack
	mkdir up
}

# Nothing was made, or nothing stayed.
untouched() {
	is "$(ls -A "$S/layers" "$S/staging" "$S/.layer-metadata" "$S/meta")" \
	    "$(printf '%s:\n\n' "$S/.layer-metadata" "$S/layers" "$S/meta" "$S/staging")"
	[ ! -e "$S/manifest.json" ]
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-layer-commit x
	run -100 sb-layer-commit -C
	run -100 sb-layer-commit -x
	run -100 sb-layer-commit -B
	run -100 sb-layer-commit -m
	run -100 sb-layer-commit -l a/b </dev/null
	run -0 sb-layer-commit -h
	is "$output" "usage: sb-layer-commit [-B file] [-C dir] [-M dir] [-l lease] [-m file]"
}

@test "one file becomes a layer with digest and size" {
	mkdir up/src
	printf 'hello\n!' >up/src/a.txt
	sb-layer-scan up | sb-layer-commit -C up >id
	grep -qxE 'L000001-[0-9a-f]{8}' id
	is "$(ls "$S/layers")" "$(cat id)"
	is "$(ls -A "$S/staging")" ""
	is "$(cat "$S/.layer-metadata/$(cat id).bytes")" 7
	is "$(stat -c %s "$S/.layer-metadata/$(cat id).bytes")" 1
	is "$(stat -c %s "$S/.layer-metadata/$(cat id).digest")" 64
	same "$S/layers/$(cat id)/src/a.txt" up/src/a.txt
	ids "$(cat id)" | sb-layer-check >/dev/null
}

@test "the digest is that of the format" {
	mkdir -p up/src
	printf 'hello\n' >up/src/a.txt
	records "$(rec_d src)" "$(rec_w src/a.txt 6)" | sb-layer-commit -C up >id
	is "$(cat "$S/.layer-metadata/$(cat id).digest")" \
	    "$({ printf 'directory\0src\0\0'; printf 'write\0src/a.txt\0hello\n\0'; } |
		sha256sum | cut -d' ' -f1)"
	records "$(rec_x gone)" | sb-layer-commit >id
	is "$(cat "$S/.layer-metadata/$(cat id).digest")" \
	    a94b4d997bdc88828b493a85c698a785923af0dc6b29a92aa6ceb2b40d2c92d4
}

@test "the version in the id is head's plus one, and ids differ" {
	make_store
	touch up/f
	sb-layer-scan up >in
	sb-layer-commit -C up <in >a
	sb-layer-commit -C up <in >b
	grep -q '^L000002-' a
	grep -q '^L000002-' b
	run -1 cmp -s a b
}

@test "names, modes, times, xattrs and links come back as they were" {
	need xattr
	local odd=$'a b\n-\xff\t'
	mkdir -p "up/$odd" up/-rf up/ro
	printf x >"up/$odd/f"
	printf '' >"up/-rf/-e"
	printf '%070000d' 1 >up/big
	ln -s -- $'-\n\xfe t' "up/$odd/l"
	ln -s nowhere up/dangling
	ln up/big up/hard
	touch up/ro/f
	chmod 4751 up/big
	chmod 2755 up/-rf
	chmod 0400 "up/$odd/f"
	setfattr -n user.a -v "$(printf '%0500d' 0)" up/big
	setfattr -n user.b "up/$odd"
	setfattr -n user.overlay.opaque -v y up/-rf
	setfattr -n user.r -v root up
	touch -h -d '2001-02-03 04:05:06.123456789' "up/$odd/l" "up/$odd/f" up/big
	touch -d '1969-12-31 23:59:59.5' "up/$odd" up/ro
	chmod 0555 up/ro
	chmod 0751 up
	touch -d '2002-01-01' up
	sb-layer-scan up >in
	sb-layer-commit -C up <in >id
	sb-layer-scan "$S/layers/$(cat id)" >again
	same again in
	is "$(listing "$S/layers/$(cat id)" | grep -v overlay.opaque)" \
	    "$(listing up | grep -v overlay.opaque)"
	is "$(cd "$S/layers/$(cat id)" && find . -printf '%m %u %g %T@ %p\n' | sort)" \
	    "$(cd up && find . -printf '%m %u %g %T@ %p\n' | sort)"
	getfattr -d "$S/layers/$(cat id)" | grep -q 'user.r="root"'
	ids "$(cat id)" | sb-layer-check >/dev/null
}

@test "owners travel when root commits" {
	need root
	touch up/f
	ln -s x up/l
	mkdir up/d
	chown -h 12:34 up/f up/l up/d
	chmod 6755 up/f
	sb-layer-scan up | sb-layer-commit -C up >id
	is "$(cd "$S/layers/$(cat id)" && stat -c '%u %g %a %n' d f l)" \
	    "$(printf '%s\n' '12 34 755 d' '12 34 6755 f' '12 34 777 l')"
}

@test "deletions are devices of mode 0644, opaque directories carry the xattr" {
	need xattr
	umask 077
	records "o 0750 - u -	d" "$(rec_x d/gone)" "$(rec_x x)" >in
	mkdir up/d
	sb-layer-commit -C up <in >id
	is "$(stat -c '%F %a %t:%T' "$S/layers/$(cat id)/d/gone")" \
	    "character special file 644 0:0"
	is "$(getfattr --only-values -n user.overlay.opaque "$S/layers/$(cat id)/d")" y
	is "$(stat -c %a "$S/layers/$(cat id)/d")" 750
	sb-layer-scan "$S/layers/$(cat id)" >again
	same again in
}

@test "merged content and mode come from -M and the record" {
	mkdir merge
	printf mine >up/f
	printf merged! >merge/f
	touch -d 2001-01-01 merge/f
	records "$(rec_w f 7 0755 m)" | sb-layer-commit -C up -M merge >id
	same "$S/layers/$(cat id)/f" merge/f
	is "$(stat -c '%a %Y' "$S/layers/$(cat id)/f")" "755 $(stat -c %Y merge/f)"
}

@test "the root's attributes are those of head, not of an upper made on an older one" {
	need xattr
	mkdir ws
	chmod 0710 ws
	setfattr -n user.h -v head ws
	touch -d 2001-01-01 ws
	make_store
	records "$(rec_x f)" | sb-layer-commit >id
	is "$(stat -c '%a %Y' "$S/layers/$(cat id)")" "$(stat -c '%a %Y' ws)"
	chmod 0777 up
	setfattr -n user.u -v upper up
	touch -d 2000-01-01 up
	records "$(rec_x f)" | sb-layer-commit -C up >id
	is "$(stat -c '%a %Y' "$S/layers/$(cat id)")" "$(stat -c '%a %Y' ws)"
	is "$(getfattr -d -m '^user' "$S/layers/$(cat id)" | grep -v '^#')" 'user.h="head"'
}

@test "the root's time is that of the upper when it has a new name since" {
	mkdir ws
	touch -d 2001-01-01 ws
	make_store
	touch up/f
	touch -d 2002-02-02 up
	sb-layer-scan up | sb-layer-commit -C up >id
	is "$(stat -c %Y "$S/layers/$(cat id)")" "$(stat -c %Y up)"
}

@test "a record of the root itself gives the layer's root its attributes" {
	need xattr
	mkdir ws merge
	make_store
	chmod 0711 up merge
	setfattr -n user.u -v upper up
	setfattr -n user.m -v merged merge
	touch up/-x
	records "$(rec_d . 1751)" "$(rec_w -x 0)" | sb-layer-commit -C up >id
	is "$(stat -c %a "$S/layers/$(cat id)")" 1751
	is "$(getfattr -d -m '^user' "$S/layers/$(cat id)" | grep -v '^#')" 'user.u="upper"'
	is "$(ls "$S/layers/$(cat id)")" -x
	ids "$(cat id)" | sb-layer-check >/dev/null
	# It is a change by itself.
	records "$(rec_d . 0700 m)" | sb-layer-commit -M merge >id
	is "$(stat -c %a "$S/layers/$(cat id)")" 700
	is "$(getfattr -d -m '^user' "$S/layers/$(cat id)" | grep -v '^#')" 'user.m="merged"'
	is "$(cat "$S/.layer-metadata/$(cat id).digest")" "$(printf '' | sha256sum | cut -d' ' -f1)"
	if [ "$(id -u)" = 0 ]; then
		chown 12:34 up
		records "$(rec_d . 0755)" | sb-layer-commit -C up >id
		is "$(stat -c %u:%g "$S/layers/$(cat id)")" 12:34
	fi
}

@test "names of one inode become names of one inode" {
	need xattr
	mkdir up/d up/e merge
	printf 'some content\n' >up/d/a
	chmod 4711 up/d/a
	setfattr -n user.x -v 1 up/d/a
	touch -d 2001-01-01 up/d/a
	ln up/d/a up/d/b
	ln up/d/a up/e/c
	ln up/d/a elsewhere
	printf merged >merge/m
	ln merge/m merge/n
	records "$(rec_d d)" "$(rec_w d/a 13 4711)" "$(rec_w d/b 13 4711)" "$(rec_d e)" \
	    "$(rec_w e/c 13 4711)" "$(rec_w m 6 0644 m)" "$(rec_w n 6 0644 m)" |
	    sb-layer-commit -C up -M merge >id
	cd "$S/layers/$(cat id)"
	is "$(stat -c '%h %a %Y %s' d/a)" "3 4711 $(stat -c '%Y %s' "$T/up/d/a")"
	is "$(stat -c %i d/b e/c)" "$(stat -c %i d/a d/a)"
	is "$(stat -c '%h %i' m)" "2 $(stat -c %i n)"
	same e/c "$T/up/d/a"
	getfattr -d e/c | grep -q 'user.x="1"'
	is "$(cat "$S/.layer-metadata/$(cat "$T/id").bytes")" 19
	cd "$T"
	ids "$(cat id)" | sb-layer-check >/dev/null
	# The digest is that of files of their own.
	cp -a up apart
	for f in d/a d/b e/c; do
		cp up/d/a apart/new
		mv apart/new apart/$f
	done
	records "$(rec_d d)" "$(rec_w d/a 13)" "$(rec_w d/b 13)" "$(rec_d e)" "$(rec_w e/c 13)" |
	    sb-layer-commit -C apart >one
	records "$(rec_d d)" "$(rec_w d/a 13)" "$(rec_w d/b 13)" "$(rec_d e)" "$(rec_w e/c 13)" |
	    sb-layer-commit -C up >two
	same "$S/.layer-metadata/$(cat one).digest" "$S/.layer-metadata/$(cat two).digest"
	is "$(cat "$S/.layer-metadata/$(cat one).bytes" "$S/.layer-metadata/$(cat two).bytes")" 3913
}

@test "a name of the same inode with another mode is a file of its own" {
	printf x >up/a
	ln up/a up/b
	ln up/a up/c
	records "$(rec_w a 1 0600)" "$(rec_w b 1 0755)" "$(rec_w c 1 0600)" | sb-layer-commit -C up >id
	is "$(cd "$S/layers/$(cat id)" && stat -c '%h %a' a b c)" $'2 600\n1 755\n2 600'
	is "$(cat "$S/.layer-metadata/$(cat id).bytes")" 2
}

@test "more names and files than descriptors" {
	local i
	mkdir up/d
	printf x >up/d/0
	for i in {1..150}; do
		ln up/d/0 up/d/$i
		printf %s $i >up/d/f$i
	done
	for i in {200..250}; do mkdir up/d/$i; done
	chmod 0555 up/d
	sb-layer-scan up >in
	(ulimit -n 64; sb-layer-commit -C up <in >id)
	is "$(stat -c %h "$S/layers/$(cat id)/d/150")" 151
	sb-layer-scan "$S/layers/$(cat id)" >again
	same again in
	ids "$(cat id)" | sb-layer-check >/dev/null
	chmod 0755 up/d "$S/layers/$(cat id)/d"
}

@test "holes stay holes" {
	truncate -s 64M up/f
	printf x | dd of=up/f bs=1 seek=20000000 conv=notrunc status=none
	sb-layer-scan up | sb-layer-commit -C up >id
	same "$S/layers/$(cat id)/f" up/f
	is "$(stat -c %s "$S/layers/$(cat id)/f")" 67108864
	[ "$(stat -c %b "$S/layers/$(cat id)/f")" -lt 2048 ]
	is "$(cat "$S/.layer-metadata/$(cat id).bytes")" 67108864
}

@test "owners of lines and what is said of the layer lie beside it" {
	printf x >up/f
	sb-layer-scan up >in
	printf '1 workspace_session:a\tf\0\0' >blame
	printf '{"owner":"workspace_session:a"}' >members
	sb-layer-commit -B blame -C up -m members <in >id
	same "$S/meta/$(cat id).blame" blame
	same "$S/meta/$(cat id).json" members
	is "$(stat -c %a "$S/meta/$(cat id).json" "$S/meta/$(cat id).blame" "$S/meta")" $'600\n600\n700'
	sb-layer-commit -C up <in >id
	is "$(ls "$S/meta" | grep -c "$(cat id)")" 0
	rm -r "$S/meta"
	sb-layer-commit -B blame -C up <in >id
	is "$(ls "$S/meta")" "$(cat id).blame"
	is "$(stat -c %a "$S/meta")" 700
}

@test "what is said of the layer is read after the full stop" {
	printf x >up/f
	{
		sb-layer-scan up | cut_stream
		printf '\0' >blame
		printf '{}' >members
		printf '\0'
	} | sb-layer-commit -B blame -C up -m members >id
	is "$(cat "$S/meta/$(cat id).json")" {}
}

@test "what is no blame, no object or not there is refused and changes nothing" {
	local i
	printf x >up/f
	sb-layer-scan up >in
	for i in '' '[]' '{} {}' '"x"' '{"version":1}' '{"layer":"x"}' '{"cause":null}' '{'; do
		printf %s "$i" >members
		run -100 --separate-stderr sb-layer-commit -C up -m members <in
		has "$stderr" members
	done
	for i in '' 'x' '1 a\tf\0' 'a\tf\0\0' '0 a\tf\0\0'; do
		# shellcheck disable=SC2059 # escapes are wanted
		printf "$i" >blame
		run -100 --separate-stderr sb-layer-commit -B blame -C up <in
		has "$stderr" blame
	done
	{ printf '{"a":"'; head -c 70000 /dev/zero | tr '\0' x; printf '"}'; } >members
	run -100 sb-layer-commit -C up -m members <in
	run -111 sb-layer-commit -C up -m none <in
	run -111 sb-layer-commit -C up -B none <in
	run -111 sb-layer-commit -C up -B up <in
	untouched
	# Nobody looks when there is nothing to commit.
	run -1 sb-layer-commit -m none -B none < <(records0)
}

@test "nothing to commit is 1, prints and makes nothing" {
	run -1 sb-layer-commit < <(records0)
	is "$output" ""
	records "s 0600 - - -	fifo" | run -1 sb-layer-commit -C up
	untouched
}

@test "special files are passed over" {
	printf x >up/f
	mkfifo up/a
	sb-layer-scan up | sb-layer-commit -C up >id
	is "$(ls "$S/layers/$(cat id)")" f
}

@test "input cut before the full stop is 111 and changes nothing" {
	printf x >up/f
	sb-layer-scan up | cut_stream >in
	run -111 --separate-stderr sb-layer-commit -C up <in
	has "$stderr" "input ended early"
	run -111 sb-layer-commit -C up </dev/null
	untouched
}

@test "a refusal passes through with its code, silently" {
	{ rec_x a; printf '\0'; refusal -z 2 'conflict: a'; } >in
	run -2 --separate-stderr sb-layer-commit -C up <in
	is "$output$stderr" ""
	untouched
}

@test "malformed streams are 100 and change nothing" {
	local i
	touch up/f
	mkdir up/d up/.wh.d
	touch up/d/f
	for i in "$(rec_w d/f 0)" "$(rec_d . 0755 m)" "$(rec_w . 0)" "$(rec_x .)" \
	    "$(rec_w .wh.x 0)" "$(rec_d .wh.d)" "$(rec_x /abs)" "$(rec_x a/../b)" \
	    "$(rec_w f 0 0644 m)" "$(rec_w f 0 0644 -)" "$(rec_w f 0 0644 L000001-00000000)" \
	    "w 0644 x u -	f" "L000001-00000000"; do
		records "$i" >in
		run -100 sb-layer-commit -C up <in
	done
	records "$(rec_x b)" "$(rec_x a)" | run -100 sb-layer-commit
	records "$(rec_x a)" "$(rec_x a)" | run -100 sb-layer-commit
	records "$(rec_x -)" "$(rec_d .)" | run -100 sb-layer-commit -C up
	# Below what is no directory, or has no record.
	records "$(rec_w d 0)" "$(rec_w d/f 0)" | run -100 sb-layer-commit -C up
	records "$(rec_x d)" "$(rec_x d/f)" | run -100 sb-layer-commit -C up
	records "$(rec_d d)" "$(rec_x d/e/f)" | run -100 sb-layer-commit -C up
	records "$(rec_w f 0)" | run -100 sb-layer-commit
	{ records "$(rec_x a)"; printf x; } | run -100 sb-layer-commit
	untouched
}

@test "a file that is not what the record says is 111 and named" {
	local spec
	printf 123 >up/f
	mkfifo up/fifo
	ln -s f up/link
	mkdir up/dir
	for spec in "f 2" "f 4" "fifo 0" "link 3" "dir 4096" "none 0"; do
		# shellcheck disable=SC2086 # two words
		records "$(rec_w $spec)" >in
		run -111 --separate-stderr timeout 10 sb-layer-commit -C up <in
		has "$stderr" "${spec% *}"
	done
	records "$(rec_w f 2)" >in
	run -111 --separate-stderr sb-layer-commit -C up <in
	has "$stderr" "f changed before publish"
	untouched
}

@test "a file that changes while it is copied is 111" {
	need strace
	printf 123 >up/f
	records "$(rec_w f 3)" >in
	# The copy is held up until its source was rewritten in place.
	strace -qq -o trace -e trace=sync_file_range,ioctl,copy_file_range \
	    -e inject=ioctl:delay_enter=3000000:when=1 sb-layer-commit -C up <in >out 2>err 3>&- &
	for _ in {1..500}; do
		! ls "$S"/staging/*.staging/f >/dev/null 2>&1 || break
		sleep 0.01
	done
	printf 456 >up/f
	wait $! || is $? 111
	has "$(cat err)" "f changed before publish"
	is "$(cat out)" ""
	untouched
}

@test "a link in the place of a directory is not followed" {
	mkdir outside
	printf x >outside/f
	ln -s ../outside up/d
	records "$(rec_d d)" "$(rec_w d/f 1)" >in
	run -111 sb-layer-commit -C up <in
	untouched
}

@test "a full disk or a closed stdout is 111, and the layer goes again" {
	printf x >up/f
	sb-layer-scan up >in
	printf '\0' >b
	printf '{}' >m
	run -111 sh -c 'sb-layer-commit -B b -C up -m m <in >/dev/full'
	untouched
	run -111 sh -c 'sb-layer-commit -B b -C up -m m <in >&-'
	untouched
}

@test "a live lease learns the id, a dead one is refused" {
	printf x >up/f
	sb-layer-scan up >in
	run -111 --separate-stderr sb-layer-commit -C up -l work <in
	has "$stderr" "lease work is not held"
	untouched
	mkdir -p "$S/leases/work"
	touch "$S/leases/work/lock"
	run -111 sb-layer-commit -C up -l work <in
	untouched
	sb-stack-lease work sh -c 'sb-layer-commit -C up -l work <in >id &&
		cp "$SB_STORE/layer-stack/leases/work/added" added'
	same added id
}

@test "a root that its owner may not write is committed and removed" {
	printf x >up/f
	mkdir ws
	chmod 0555 up ws
	sb-store-init
	sb-base-import ws >/dev/null
	sb-layer-scan up | sb-layer-commit -C up >id
	is "$(stat -c %a "$S/layers/$(cat id)")" 555
	sb-stack-unused | sb-layer-rm >removed
	same removed <(ids "$(cat id)")
	is "$(ls -A "$S/staging" "$S/layers")" "$(printf '%s:\n\n' "$S/layers" "$S/staging")"
	chmod 0755 up
}

@test "a tree of 2000 levels with few descriptors" {
	mkdir -p "up/$(printf 'd/%.0s' {1..2000})"
	touch "up/$(printf 'd/%.0s' {1..2000})f"
	sb-layer-scan up >in
	(ulimit -n 64; sb-layer-commit -C up <in >id)
	sb-layer-scan "$S/layers/$(cat id)" >again
	same again in
}

@test "the store must be there" {
	records "$(rec_x f)" >in
	SB_STORE= run -100 sb-layer-commit <in
	SB_STORE=$T/none run -111 sb-layer-commit <in
	SB_STORE=$T run -111 --separate-stderr sb-layer-commit <in
	has "$stderr" "layer-stack"
}
