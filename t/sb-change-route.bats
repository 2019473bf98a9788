# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

@test "every change is marked source, names byte for byte" {
	records "$(rec_x -rf)" "$(rec_d d)" "$(rec_w $'d/a b\n\xff' 3)" >in
	records "$(rec_x -rf s)" "$(rec_d d 0755 u s)" "$(rec_w $'d/a b\n\xff' 3 0644 u s)" >want
	sb-change-route <in >out
	same out want
}

@test "the empty stream passes" {
	records0 | sb-change-route >out
	records0 >want
	same out want
}

@test "input cut before the full stop is 111 and has no full stop" {
	records "$(rec_d d)" | cut_stream >in
	run -111 --separate-stderr sb-change-route <in
	has "$stderr" "ended early"
	sb-change-route <in >out 2>/dev/null || :
	records "$(rec_d d 0755 u s)" | cut_stream >want
	same out want
}

@test "a refusal passes through with its code, silently" {
	refusal -z 2 "no way" >in
	run -2 --separate-stderr sb-change-route <in
	is "$stderr" ""
	sb-change-route <in >out || :
	same out in
}

@test "a name beginning .wh. is refused, at any depth, and all are listed" {
	records "$(rec_w .wh.x 1)" "$(rec_d a)" "$(rec_w a/.wh..wh..opq 0)" "$(rec_w $'b.wh.\xff' 1)" >in
	run -2 --separate-stderr sb-change-route -X list <in
	has "$stderr" "protected path: .wh.x (2 in all)"
	is "$(cat list)" "$(printf '%s\n' '{"path":".wh.x","kind":"protected"}' '{"path":"a/.wh..wh..opq","kind":"protected"}')"
	sb-change-route <in 2>/dev/null | tr '\0' '\n' | grep -q '^! 2 '
}

@test "look-alikes of protected names pass" {
	records "$(rec_w .wh 1)" "$(rec_w .whx 1)" "$(rec_w manifest.json 1)" "$(rec_w wh.foo 1)" "$(rec_w x.wh.y 1)" |
	    sb-change-route | tr '\0' '\n' | grep -c '^w' >n
	is "$(cat n)" 5
}

@test "malformed records are 100: no TAB, bad order, twice, bad paths, bad numbers" {
	for r in 'w 0644 1 u -' $'w 0644 1 u -\t/abs' $'w 0644 1 u -\ta/../b' $'w 0644 x u -\ta' $'w 9644 1 u -\ta' $'q 0644 1 u -\ta' $'w 0644 1 u -\t'; do
		records "$r" >in
		run -100 sb-change-route <in
	done
	records "$(rec_w b 1)" "$(rec_w a 1)" >in
	run -100 sb-change-route <in
	records "$(rec_w a 1)" "$(rec_w a 1)" >in
	run -100 sb-change-route <in
	{ records "$(rec_w a 1)"; echo more; } >in
	run -100 sb-change-route <in
	ids a >in
	run -111 sb-change-route <in
}

@test "a full disk and a closed stdout are 111" {
	records "$(rec_d d)" >in
	run -111 bash -c 'sb-change-route <in >/dev/full'
	run -111 bash -c 'sb-change-route <in >&-'
}
