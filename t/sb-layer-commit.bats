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
	is "$(ls -A "$S/layers" "$S/staging" "$S/.layer-metadata")" \
	    "$(printf '%s:\n\n' "$S/.layer-metadata" "$S/layers" "$S/staging")"
	[ ! -e "$S/manifest.json" ]
}

@test "usage errors are 100, -h is 0" {
	run -100 sb-layer-commit x
	run -100 sb-layer-commit -C
	run -100 sb-layer-commit -x
	run -100 sb-layer-commit -l a/b </dev/null
	run -0 sb-layer-commit -h
	is "$output" "usage: sb-layer-commit [-C dir] [-M dir] [-l lease]"
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

@test "without -C the root's attributes are those of the newest layer" {
	mkdir ws
	chmod 0710 ws
	make_store
	records "$(rec_x f)" | sb-layer-commit >id
	is "$(stat -c %a "$S/layers/$(cat id)")" 710
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
	for i in "$(rec_w d/f 0)" \
	    "$(rec_w .wh.x 0)" "$(rec_d .wh.d)" "$(rec_x /abs)" "$(rec_x a/../b)" \
	    "$(rec_w f 0 0644 m)" "$(rec_w f 0 0644 -)" "$(rec_w f 0 0644 L000001-00000000)" \
	    "w 0644 x u -	f" "L000001-00000000"; do
		records "$i" >in
		run -100 sb-layer-commit -C up <in
	done
	records "$(rec_x b)" "$(rec_x a)" | run -100 sb-layer-commit
	records "$(rec_x a)" "$(rec_x a)" | run -100 sb-layer-commit
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
	run -111 sh -c 'sb-layer-commit -C up <in >/dev/full'
	untouched
	run -111 sh -c 'sb-layer-commit -C up <in >&-'
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
	chmod 0555 up
	make_store
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
