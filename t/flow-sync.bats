# SPDX-License-Identifier: MIT
# Nothing is shown before it is on the disk: shown by the calls that were made,
# which t/sync.awk reads.
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	need strace
	mkdir -p ws/d
	printf base >ws/d/f
	mkdir -p ws/old/sub
	touch ws/old/sub/f
	make_store
	S=$SB_STORE/layer-stack
	# What only the first commit makes and syncs is there.
	{ records "$(rec_x none)" | sb-layer-commit; sb-stack-show; } | sb-stack-swap 1 >/dev/null
}

check() { awk -v stack="$S" -f "$SB_TOP/t/sync.awk" "$1"; }

# Of everything: files, hard links, links, whiteouts, directories of all kinds.
make_upper() {
	mkdir -p up/d/e/deep up/op up/ro
	printf 'some content\n' >up/d/f
	printf '' >up/d/e/empty
	printf x >up/d/e/deep/x
	ln up/d/e/deep/x up/x
	ln -s ../f up/d/e/l
	touch up/ro/f
	chmod 0555 up/ro
	records "$(rec_d d)" "$(rec_d d/e)" "$(rec_d d/e/deep)" "$(rec_w d/e/deep/x 1)" \
	    "$(rec_w d/e/empty 0 4711)" "l 0777 - u -	d/e/l" ../f "$(rec_w d/f 13)" \
	    "$(rec_x gone)" "o 0755 - u -	op" "$(rec_x op/x)" "$(rec_d ro 0555)" \
	    "$(rec_w ro/f 0)" "$(rec_w x 1)" >changes
	printf '* me\td/f\0\0' >blame
	printf '{"owner":"me"}' >members
}

# Without any one of the syncs that it shows, a trace does not pass.
each_is_needed() {
	local n
	grep -nE '^[0-9]+ +(fsync\(|<\.\.\. fsync resumed).*= 0$' "$1" | grep -F "$S" | cut -d: -f1 >syncs
	[ "$(wc -l <syncs)" -gt 8 ]
	while read -r n; do
		sed "${n}d" "$1" >less
		! check less >said || fail "not needed: $(sed -n "${n}p" "$1")"
	done <syncs
}

@test "commit and swap show nothing that is not synced" {
	make_upper
	# shellcheck disable=SC2016 # for the inner shell
	strace -f -y -o trace sh -c '{ sb-layer-commit -B blame -C up -m members <changes; sb-stack-show; } |
	    sb-stack-swap 2' >out
	is "$(cat out)" 3
	run -0 check trace
	echo "$output" >&3
	each_is_needed trace
	chmod 0755 up/ro
}

@test "so they do in a store that had no meta/, and with a root that may not be written" {
	make_upper
	rmdir "$S/meta"
	{ rec_d . 0555; printf '\0'; cat changes; } >in
	# shellcheck disable=SC2016 # for the inner shell
	strace -f -y -o trace sh -c '{ sb-layer-commit -B blame -C up -m members <in; sb-stack-show; } |
	    sb-stack-swap 2' >out
	is "$(cat out)" 3
	run -0 check trace
	each_is_needed trace
	chmod 0755 up/ro
	chmod u+w "$S"/layers/L*
}

@test "and with fewer descriptors than files" {
	local i
	mkdir -p up/d
	for i in {1..40}; do
		printf %s $i >up/d/$i
		ln up/d/1 up/d/l$i
	done
	sb-layer-scan up >changes
	# shellcheck disable=SC2016 # for the inner shell
	strace -f -y -o trace sh -c 'ulimit -n 48
		{ sb-layer-commit -C up <changes; sb-stack-show; } | sb-stack-swap 2' >out
	is "$(cat out)" 3
	# Some files are synced twice here: before and after a further name.
	run -0 check trace
}

@test "a publish answers when all of it is on the disk" {
	need overlay
	local s
	s=$(sb-session-new)
	# shellcheck disable=SC2016 # for the inner shell
	sb-run "$s" sh -c 'echo more >>d/f; rm -r old; mkdir -p old new/a; ln -s x new/l
		echo y >new/a/y; ln new/a/y new/a/z; chmod 0500 new/a; chmod 0711 .'
	strace -f -y -o trace sb-publish "$s" >out
	grep -q '"no_op":false' out
	run -0 check trace
	echo "$output" >&3
	each_is_needed trace
	chmod -R u+w "$S"/layers
}

@test "what is not known, not synced or not shown is found" {
	make_upper
	chmod 0755 up/ro
	# shellcheck disable=SC2016 # for the inner shell
	strace -f -y -o trace sh -c '{ sb-layer-commit -C up <changes; sb-stack-show; } | sb-stack-swap 2' >out
	run -0 check trace
	grep -v fsync trace >none
	run -1 check none
	has "$output" "a layer becomes visible"
	has "$output" "the manifest is replaced"
	has "$output" "an answer is given"
	# Each call that makes something, said once more before the rename.
	n=$(grep -nE '^[0-9]+ +renameat.*staging.*layers' trace | cut -d: -f1)
	grep -E '^[0-9]+ +(openat|openat2|copy_file_range|mkdirat|symlinkat|mknodat|linkat|fchmod|fchownat|utimensat|fsetxattr|write)\(' trace |
	    grep -E 'staging/[^>]*\.staging[>/]|metadata/?[^>]*>.*digest' | grep -vE 'O_RDONLY|O_PATH| = -1|<unfinished' >makes
	[ "$(wc -l <makes)" -gt 30 ]
	while IFS= read -r line; do
		{ head -n $((n - 1)) trace; printf '%s\n' "$line"; tail -n +"$n" trace; } >more
		run -1 check more
		has "$output" "a layer becomes visible"
	done <makes
	sed "s,^\([0-9]* *\)mkdirat(,\1mkdirbad(," trace >odd
	run -1 check odd
	has "$output" "mkdirbad changes nothing that is known here"
	run -1 check /dev/null
	has "$output" "shows 0 layers, 0 manifests, 0 answers"
}

@test "what cannot be answered goes again, also with a root that may not be written" {
	local base
	mkdir u
	printf x >u/f
	base=$(ls "$S/layers")
	records "$(rec_d . 0555)" "$(rec_w f 1)" >in
	printf '\0' >b
	printf '{}' >m
	run -111 sh -c 'sb-layer-commit -B b -C u -m m <in >/dev/full'
	is "$(ls "$S/layers")" "$base"
	is "$(ls -A "$S/staging" "$S/meta")" "$(printf '%s:\n\n' "$S/meta" "$S/staging")"
	is "$(ls "$S/.layer-metadata" | wc -l)" 4
}
