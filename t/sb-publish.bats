# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

start() {
	need overlay userns
	mkdir -p ws/d; seq 9 >ws/f; echo 1 >ws/d/g
	make_store
	s=$(sb-session-new)
}

# An open-file-description lock (37 is F_OFD_SETLK) on descriptor 9.
hold_fd_9() {
	perl -e 'use Fcntl; my $l = pack("s s l! l! i", F_WRLCK, 0, 0, 0, 0);
	    open(F, "+<&=", 9) && fcntl(F, 37, $l) or die $!'
}

@test "an unknown session is 1, a missing store 111, no store 100" {
	make_store
	run -1 --separate-stderr sb-publish nobody
	has "$stderr" "workspace session not found: nobody"
	has "$output" '"details":{"workspace_session_id":"nobody"}'
	run -1 sb-publish ../../x
	SB_STORE=$T/nothing run -111 sb-publish x
	SB_STORE='' run -100 sb-publish x
}

@test "a session without changes publishes as a no-op and ends" {
	start
	run -0 sb-publish "$s"
	has "$output" '"no_op":true'
	has "$output" '"manifest_version":1'
	is "$(sb-stack-version)" 1
	is "$(sb-session-ls)" ""
}

@test "changes that were taken back are a no-op" {
	start
	sb-run "$s" sh -c 'cp f x; echo 1 >>f; cat x >f; rm x; mkdir e; rmdir e'
	run -0 sb-publish "$s"
	has "$output" '"no_op":true'
}

@test "the answer is one JSON object with revision and counts" {
	start
	sb-run "$s" sh -c 'echo 10 >>f; rm d/g; mkdir n; echo x >n/x'
	sb-publish "$s" >out
	is "$(wc -l <out)" 1
	is "$(jq -c '[.publish.revision.manifest_version, .publish.revision.layer_count, .publish.route_summary.source_count, .publish.merged_count, .destroyed, .evicted_upperdir_bytes]' out)" '[2,2,4,0,true,23]'
	is "$(jq -r .workspace_session_id out)" "$s"
}

@test "merged text keeps mode, and merging spends the session's merge directory" {
	start
	t=$(sb-session-new)
	sb-run "$s" sh -c 'sed -i s/^2$/two/ f; chmod 755 f'
	sb-run "$t" sed -i s/^8$/eight/ f
	sb-publish "$s"; sb-publish "$t"
	is "$(sb-stack-show | sb-layer-list | tr '\0' '\n' | grep f$ | cut -c1-6)" 'w 0755'
}

@test "a refusal lists 200 conflicts at most and says that it is cut" {
	need overlay userns
	mkdir ws; for i in $(seq 210); do echo 1 >"ws/$i"; done
	make_store
	a=$(sb-session-new); b=$(sb-session-new)
	sb-run "$a" sh -c 'for f in *; do echo a >$f; done'
	sb-run "$b" sh -c 'for f in *; do echo b >$f; done'
	sb-publish "$a"
	run -2 --separate-stderr sb-publish "$b"
	is "$(printf %s "$output" | jq -c '[(.error.details.conflicts | length), .error.details.truncated]')" '[200,true]'
}

@test "when the answer cannot be printed it is 111 and published all the same" {
	start
	sb-run "$s" sh -c 'echo new >n'
	run -111 bash -c "sb-publish $s >/dev/full"
	is "$(sb-stack-version)" 2
	is "$(sb-session-ls)" ""
}

@test "a program of a publish that is killed is named, and the next try works" {
	start
	sb-run "$s" sh -c 'echo new >n'
	mkdir bin
	printf '#!/bin/sh\nkill -9 $$\n' >bin/sb-layer-commit
	chmod +x bin/sb-layer-commit
	PATH=$T/bin:$PATH run -111 --separate-stderr sb-publish "$s"
	has "$stderr" "sb-layer-commit was killed by signal 9"
	is "$output" ""
	is "$(sb-stack-version)" 1
	is "$(ls -A "$SB_STORE/layer-stack/queue" "$SB_STORE/layer-stack/leases" | grep -v : | grep .)" ""
	sb-publish "$s"
	is "$(sb-stack-version)" 2
}

@test "publishers that arrive in order commit in that order" {
	start
	for i in 1 2 3 4; do x=$(sb-session-new); echo "$x" >>sessions; sb-run "$x" sh -c "echo $i >n$i"; done
	# A ticket before all of them, held by us, keeps the queue closed.
	exec 9<>"$SB_STORE/layer-stack/queue/1"
	hold_fd_9
	n=0
	while read -r x; do
		n=$((n + 1))
		sb-publish "$x" >"out.$n" 3>&- 9>&- &
		eventually [ -e "$SB_STORE/layer-stack/queue/$((n + 1))" ]
	done <sessions
	is "$(sb-stack-version)" 1
	exec 9>&-
	wait
	is "$(cat out.* | jq .publish.revision.manifest_version)" "$(seq 2 5)"
}

@test "head that moves while a publisher waits is merged with" {
	start
	sb-run "$s" sed -i s/^8$/eight/ f
	exec 9<>"$SB_STORE/layer-stack/queue/1"
	hold_fd_9
	sb-publish "$s" >out 3>&- 9>&- &
	eventually [ -e "$SB_STORE/layer-stack/queue/2" ]
	mkdir up; sed s/^2$/two/ ws/f >up/f
	id=$(sb-layer-scan up | sb-change-route | sb-layer-commit -C up)
	{ echo "$id"; sb-stack-show; } | sb-stack-swap 1
	exec 9>&-
	wait
	is "$(jq -c '[.publish.merged_count, .publish.revision.manifest_version]' out)" '[1,3]'
	is "$(sb-stack-show | sb-layer-cat f)" "$(seq 9 | sed 's/^2$/two/;s/^8$/eight/')"
}
