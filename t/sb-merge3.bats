# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

lines() { printf '%s\n' "$@"; }

@test "changes of different lines are merged, neighbouring ones too" {
	lines a b c >base
	lines A b c >head
	lines a B c d >mine
	sb-merge3 base head mine >out
	same out <(lines A B c d)
}

@test "bytes survive: CR, a missing final newline, text beyond ASCII" {
	printf 'a\r\n\xc3\xa9\r\nz' >base
	printf 'A\r\n\xc3\xa9\r\nz' >head
	printf 'a\r\n\xc3\xa9\r\n\xe2\x82\xac' >mine
	sb-merge3 base head mine >out
	same out <(printf 'A\r\n\xc3\xa9\r\n\xe2\x82\xac')
}

@test "empty files merge to nothing" {
	: >empty
	run -0 --separate-stderr sb-merge3 empty empty empty
	is "$output$stderr" ""
}

@test "an overlap is 2, writes nothing and names the first lines" {
	lines a b c d e f >base
	lines a X Y c d E f >head
	lines a b2 c d E2 f >mine
	run -2 --separate-stderr sb-merge3 base head mine
	is "$output" ""
	has "$stderr" "base line 2, head lines 2-3, mine line 2 (overlap 1 of 2)"
	run -2 --separate-stderr sb-merge3 base mine head
	is "$output" ""
	has "$stderr" "base line 2, head line 2, mine lines 2-3 (overlap 1 of 2)"
}

@test "two appended lines are an overlap before the line after the last" {
	lines a >base
	lines a b >head
	lines a c >mine
	run -2 --separate-stderr sb-merge3 base head mine
	has "$stderr" "base before line 2, head line 2, mine line 2"
}

@test "a NUL, bytes that are not UTF-8 and too many bytes are 100, by name" {
	local bad
	lines a >good
	printf 'a\0b\n' >nul
	printf 'a\xff\n' >latin
	printf '\xed\xa0\x80\n' >surrogate
	head -c 8388609 /dev/zero | tr '\0' x >large
	for bad in nul latin surrogate large; do
		local why="is not UTF-8"
		[ $bad != nul ] || why="contains a NUL byte"
		[ $bad != large ] || why="is larger than 8388608 bytes"
		for at in "$bad good good" "good $bad good" "good good $bad"; do
			# shellcheck disable=SC2086 # three names
			run -100 --separate-stderr sb-merge3 $at
			is "$output" ""
			has "$stderr" "unable to merge $bad: it $why"
		done
	done
}

@test "8388608 bytes are not too many" {
	head -c 8388608 /dev/zero | tr '\0' x >large
	sb-merge3 large large large | cmp - large
}

@test "a missing file is 111 and named" {
	lines a >a
	run -111 --separate-stderr sb-merge3 a gone a
	is "$output" ""
	has "$stderr" "gone: No such file or directory"
}

@test "a FIFO or a directory is refused at once" {
	lines a >a
	mkfifo pipe
	mkdir dir
	run -100 --separate-stderr timeout 10 sb-merge3 a a pipe
	has "$stderr" "pipe: not a regular file"
	run -100 --separate-stderr timeout 10 sb-merge3 pipe a a
	run -100 --separate-stderr sb-merge3 a dir a
	has "$stderr" "dir: not a regular file"
}

@test "names may begin with a dash and hold any byte" {
	local odd=$'-o d\nd\xff'
	lines a b >-a
	lines A b >"$odd"
	sb-merge3 -- -a "$odd" -a >out
	same out "./$odd"
	lines B b >-a2
	run -2 --separate-stderr sb-merge3 -- -a "$odd" -a2
	has "$stderr" "unable to merge -a2"
	is "$(lines "$stderr" | wc -l)" 1
	run -111 --separate-stderr sb-merge3 -- "$odd" $'g\none' -a
	has "$stderr" "g?one"
}

@test "usage errors are 100, -h is 0" {
	lines a >a
	run -100 sb-merge3
	run -100 sb-merge3 a a
	run -100 sb-merge3 a a a a
	run -100 sb-merge3 -x a a a
	run -0 sb-merge3 -h
	is "$output" "usage: sb-merge3 base head mine"
}

@test "a full disk and a closed stdout are 111" {
	lines a >a
	run -111 sh -c 'sb-merge3 a a a >/dev/full'
	run -111 sh -c 'sb-merge3 a a a >&-'
}

@test "the inputs are only read" {
	lines a b >base
	lines A b >head
	lines a B >mine
	mkdir before && cp -p base head mine before
	sb-merge3 base head mine >/dev/null
	for f in base head mine; do same $f before/$f; done
}

@test "agrees with git merge-file on 24000 random cases" {
	need git
	run -0 "$SB_T/merge3-oracle" 24000
	echo "# $output" | tr '\n' ' ' >&3
	echo >&3
}
