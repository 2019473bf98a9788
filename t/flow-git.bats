# SPDX-License-Identifier: MIT
# Agents that use git at the same time: all publish, no commit is lost, and the
# repository is whole afterwards.
bats_require_minimum_version 1.5.0
load lib

setup() {
	sb_setup
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@sb.invalid
	export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@sb.invalid
	export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_EDITOR=true
}

in_session() { # SESSION SCRIPT
	sb-run "$1" sh -euc "$2"
}

# Publishes, and leaves the answer in $T/answer.SESSION too.
publish() {
	sb-publish "$1" >"answer.$1"
}

# Those in the file sessions, in that order; s is the last one.
publish_all() {
	while read -r s; do publish "$s"; done <sessions
	s=$(tail -n 1 sessions)
}

kept() { # SESSION: a line for each ref that was kept
	jq -r '.publish.git_kept[]? | "\(.path) \(.ref) \(.kept)"' "answer.$1"
}

# A repository with two branches, tags, a merge, a stash and dangling commits.
make_repo() {
	mkdir -p "$1"
	(
		cd "$1" || exit
		git init -qb main .
		for i in 1 2 3; do
			seq "$i" 40 >f$i
			git add -A
			git commit -qm "base $i"
		done
		git tag -am v0 v0
		git checkout -qb feature
		echo feature >feature; git add -A; git commit -qm feature
		git checkout -q main
		git checkout -qb old HEAD~1
		echo old >oldfile; git add -A; git commit -qm old
		git checkout -q main
		git merge -q --no-edit -s ours old
		echo dropped >f1; git commit -qam dropped; git reset -q --hard HEAD~1
	)
}

start() {
	need overlay userns git jq
	make_store
}

# The same with packs, and with the indexes over them.
pack_repo() {
	git -C "$1" gc -q
	git -C "$1" commit-graph write --reachable
	git -C "$1" multi-pack-index write
}

# What the four of them do, and how to list the commits that git keeps.
# shellcheck disable=SC2016 # it is for the session's shell
commits='
	git rev-list --all HEAD
	git reflog --format=%H refs/stash -- 2>/dev/null || :'
# shellcheck disable=SC2016
agents=(
	[1]='
	for i in 1 2 3; do echo $i >one; git add -A; git commit -qm one.$i; done
	git branch one-topic HEAD~1
	git tag -am one v1 && git tag one-light
	git gc -q'
	[2]='
	git checkout -q feature
	echo two >two; git add -A; git commit -qm two
	git rebase -q main
	echo s1 >>two; git stash -q; echo s2 >>two; git stash -q; echo s3 >two.s; git stash -qu
	git pack-refs --all
	git commit -q --allow-empty -m "two, after packing"'
	[3]='
	echo three >three; git add -A; git commit -qm three
	echo more >>three; git commit -qam three.more
	git commit -q --amend -m three.amended
	git branch -qD old
	git tag -am three v1
	git branch one-topic HEAD
	git reflog expire --expire=now --expire-unreachable=now --all
	git gc -q --prune=now'
	[4]='
	git branch -qm old older
	git checkout -q --detach
	echo four >four; git add -A; git commit -qm four
	echo s >>four; git stash -q
	git tag v4
	git checkout -qb dir/four; git commit -q --allow-empty -m dir/four
	git repack -qad
	git commit-graph write --reachable
	git checkout -q --detach; git commit -q --allow-empty -m "four, detached"'
)

# work SESSION SCRIPT [DIR]: runs it, and notes the commits that are new then.
work() {
	local d=${3:-.} name
	name=$1.${d##*/}
	in_session "$1" "cd $d; $commits" | sort -u >"before.$name"
	in_session "$1" "cd $d; $2" >"log.$name" 2>&1 || { cat "log.$name"; return 1; }
	in_session "$1" "cd $d; $commits" | sort -u | comm -13 "before.$name" - >"commits.$name"
	[ -s "commits.$name" ]
}

# Does a new session see a whole repository $1 with all the commits noted?
check_repo() {
	local t d=${1:-.}
	t=$(sb-session-new)
	in_session "$t" "cd $d
	    git fsck --full --strict --no-dangling --no-progress 2>&1
	    git status >/dev/null
	    git for-each-ref >/dev/null
	    git rev-list --objects --all >/dev/null" >fsck 2>&1 || { cat fsck; return 1; }
	grep -v '^notice: ' fsck && return 1
	in_session "$t" "cd $d; $commits" | sort -u >reachable
	cat commits.*."${d##*/}" | sort -u | comm -23 - reachable >lost
	[ ! -s lost ] || { echo "lost:"; cat lost; in_session "$t" 'git for-each-ref'; return 1; }
	sb-session-end "$t"
}

# Is each of the files either committed or shown by git status, and right?
check_work() {
	local t
	t=$(sb-session-new)
	in_session "$t" '{ git ls-tree -r --name-only HEAD; git status --porcelain -uall | cut -c4-; } | sort -u' >seen
	is "$(in_session "$t" 'cat one two three four feature')" "$(printf '3\ntwo\nthree\nmore\nfour\nfeature')"
	for f in one two three four feature; do
		grep -qx "$f" seen || fail "$f is neither committed nor shown by git status"
	done
	sb-session-end "$t"
}

# All four at work at once, published in the order given ("all": at once).
four() {
	local i s order=$1 pids=
	for i in 1 2 3 4; do sb-session-new >"session.$i"; done
	for i in 1 2 3 4; do work "$(cat session.$i)" "${agents[i]}" 3>&- & pids="$pids $!"; done
	for i in $pids; do wait "$i"; done
	if [ "$order" = all ]; then
		pids=
		for i in 1 2 3 4; do publish "$(cat session.$i)" 3>&- & pids="$pids $!"; done
		for i in $pids; do wait "$i"; done
	else
		for i in $order; do publish "$(cat "session.$i")"; done
	fi
	check_repo
	check_work
	sb-stack-show | sb-layer-check
}

@test "four agents, published 1 2 3 4: whole, and no commit lost" {
	make_repo ws
	start
	four '1 2 3 4'
}

@test "four agents, published 4 3 2 1: whole, and no commit lost" {
	make_repo ws
	start
	four '4 3 2 1'
}

@test "four agents, published 3 1 4 2 over a packed repository" {
	make_repo ws; pack_repo ws
	start
	four '3 1 4 2'
}

@test "four agents, published 2 4 1 3 over a packed repository" {
	make_repo ws; pack_repo ws
	start
	four '2 4 1 3'
}

@test "four agents that publish at the same moment" {
	make_repo ws
	start
	four all
}

@test "a session from before everything publishes last, after a second round" {
	make_repo ws
	start
	stale=$(sb-session-new)
	four '3 2 1 4'
	work "$stale" 'git checkout -q old; echo stale >stale; git add -A; git commit -qm stale'
	in_session "$stale" 'echo u >u; git stash -qu; git stash pop -q; git gc -q' >/dev/null
	for i in 1 2; do sb-session-new >"again.$i"; done
	for i in 1 2; do
		work "$(cat again.$i)" "git checkout -q main
		    echo again >again.$i; git add -A; git commit -qm again.$i
		    git gc -q --prune=now"
	done
	for i in 2 1; do publish "$(cat again.$i)"; done
	publish "$stale"
	check_repo
}

@test "two commits on one branch: head's stands, mine is kept and named in the answer" {
	make_repo ws
	start
	a=$(sb-session-new); b=$(sb-session-new)
	for s in "$a" "$b"; do
		work "$s" "echo $s >by-$s; git add -A; git commit -qm $s; git branch -f feature"
	done
	publish "$a"
	is "$(kept "$a")" ""
	publish "$b"
	is "$(kept "$b")" "$(printf '.git refs/heads/main refs/sb/%s\n.git refs/heads/feature refs/sb/%s.refs/heads/feature' "$b" "$b")"
	is "$(jq -r '.publish.git_kept[].commit' "answer.$b" | sort -u)" "$(cat "commits.$b..")"
	check_repo
	t=$(sb-session-new)
	is "$(in_session "$t" 'git rev-parse main')" "$(cat "commits.$a..")"
	is "$(in_session "$t" "git rev-parse refs/sb/$b")" "$(cat "commits.$b..")"
	is "$(in_session "$t" 'git status --porcelain')" "?? by-$b"
	# It can be taken over by ordinary means.
	work "$t" "git add -A; git commit -qm both; git merge -q -m m refs/sb/$b"
	publish "$t"
	is "$(kept "$t")" ""
	check_repo
}

@test "a commit of one side only is simply there, and status is clean" {
	make_repo ws; pack_repo ws
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'echo a >a'
	work "$b" 'git checkout -qb x; echo b >b; git add -A; git commit -qm b; git gc -q --prune=now'
	publish "$a"; publish "$b"
	is "$(kept "$b")" ""
	t=$(sb-session-new)
	is "$(in_session "$t" 'git symbolic-ref HEAD; git status --porcelain')" "$(printf 'refs/heads/x\n?? a')"
	check_repo
}

@test "gc of one side takes objects away for good" {
	make_repo ws
	start
	s=$(sb-session-new)
	in_session "$s" 'git gc -q --prune=now; git count-objects' >want
	publish "$s"
	t=$(sb-session-new)
	in_session "$t" 'git count-objects' >got
	same got want
	check_repo
}

@test "gc on both sides: no branch vanishes, packed or not" {
	make_repo ws
	start
	a=$(sb-session-new); b=$(sb-session-new)
	in_session "$a" 'git branch a-new; git gc -q; git branch a-loose'
	work "$b" 'git branch b-new; git branch -D old; git gc -q; git branch b-loose
	    git commit -q --allow-empty -m b'
	publish "$a"; publish "$b"
	check_repo
	t=$(sb-session-new)
	is "$(in_session "$t" 'git for-each-ref --format="%(refname)"')" \
	    "$(printf 'refs/%s\n' heads/a-loose heads/a-new heads/b-loose heads/b-new heads/feature heads/main tags/v0)"
	is "$(in_session "$t" 'git log -1 --format=%s main; git status --porcelain')" b
}

@test "what head pruned comes back when a stale session builds on it" {
	make_repo ws; pack_repo ws
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	work "$b" 'git checkout -q old; echo on >on; git add -A; git commit -qm on'
	# Nothing but the index: the object was there already, and unreachable.
	in_session "$c" 'echo dropped >f1; git add f1'
	in_session "$a" 'git tag -d v0; git update-ref -d refs/heads/old; git update-ref refs/heads/main feature
	    git reset -q --hard; git reflog expire --expire=now --expire-unreachable=now --all; git gc -q --prune=now' >/dev/null
	publish "$a"; publish "$b"; publish "$c"
	check_repo
}

@test "stash entries of two sessions are all kept" {
	make_repo ws
	start
	for i in 1 2; do
		s=$(sb-session-new); echo "$s" >>sessions
		work "$s" "for n in 1 2 3; do echo $i.\$n >f3; git stash -q; done"
	done
	publish_all
	is "$(kept "$s" | cut -d' ' -f2-)" "$(printf '%s\n' "refs/stash refs/sb/$s.refs/stash" \
	    "refs/stash@{1} refs/sb/$s.stash/1" "refs/stash@{2} refs/sb/$s.stash/2")"
	check_repo
	t=$(sb-session-new)
	is "$(in_session "$t" "git stash list | wc -l; git stash apply -q refs/sb/$s.stash/2; cat f3")" "$(printf '3\n2.1')"
}

@test "the first commits of two sessions in a repository without any" {
	mkdir ws; git -C ws init -qb main
	start
	for i in 1 2; do
		s=$(sb-session-new); echo "$s" >>sessions
		work "$s" "echo $i >f$i; git add -A; git commit -qm $i"
	done
	publish_all
	is "$(kept "$s")" ".git refs/heads/main refs/sb/$s"
	check_repo
}

@test "two sessions that both make the repository" {
	mkdir ws; echo 1 >ws/f
	start
	for i in 1 2; do
		s=$(sb-session-new); echo "$s" >>sessions
		in_session "$s" "git init -qb main"
		work "$s" "echo $i >f$i; git add -A; git commit -qm $i"
	done
	publish_all
	is "$(kept "$s")" ".git refs/heads/main refs/sb/$s"
	check_repo
}

@test "repositories below the top and submodules are merged each by itself" {
	make_repo src
	make_repo ws; make_repo ws/sub/deep; echo /sub >ws/.git/info/exclude
	git -C ws -c protocol.file.allow=always submodule --quiet add ../src lib/mod
	git -C ws commit -qm module
	start
	for i in 1 2; do
		s=$(sb-session-new); echo "$s" >>sessions
		for d in . sub/deep lib/mod; do
			work "$s" "echo $i >by$i; git add by$i; git commit -qm $i" "$d"
		done
	done
	publish_all
	is "$(kept "$s" | sort)" "$(printf '%s' ".git refs/heads/main refs/sb/$s
.git/modules/lib/mod refs/heads/main refs/sb/$s
sub/deep/.git refs/heads/main refs/sb/$s")"
	for d in . sub/deep lib/mod; do check_repo "$d"; done
}

@test "linked worktrees: commits in each are kept" {
	make_repo ws
	start
	w=$(sb-session-new)
	in_session "$w" 'git worktree add -q wt feature; git worktree add -q --detach wd'
	publish "$w"
	for i in 1 2; do
		s=$(sb-session-new); echo "$s" >>sessions
		for d in wt wd; do work "$s" "echo $i >by$i; git add -A; git commit -qm $i" $d; done
	done
	publish_all
	is "$(kept "$s" | cut -d' ' -f2- | sort)" "$(printf '%s\n' "refs/heads/feature refs/sb/$s.refs/heads/feature" \
	    "worktrees/wd/HEAD refs/sb/$s.worktrees/wd/HEAD")"
	t=$(sb-session-new)
	in_session "$t" 'git rev-list --all; git -C wd rev-list HEAD' | sort -u >reachable
	is "$(cat commits.*.wd commits.*.wt | sort -u | comm -23 - reachable)" ''
	is "$(in_session "$t" 'git fsck --full --strict --no-dangling --no-progress 2>&1')" ""
}

@test "what mine removed with its directory while head wrote into it stays head's" {
	make_repo ws
	git -C ws branch dir/x; git -C ws branch dir/y
	mkdir -p ws/.git/state/d; echo 1 >ws/.git/state/d/n
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	work "$a" 'git checkout -q dir/x; git commit -q --allow-empty -m x; echo 2 >.git/state/d/n'
	in_session "$b" 'git branch -qD dir/x dir/y; rm -r .git/state'
	in_session "$c" 'git branch -qD dir/x dir/y; git branch dir; rm -r .git/state; echo file >.git/state'
	work "$c" 'git commit -q --allow-empty -m c'
	publish "$a"; publish "$b"; publish "$c"
	check_repo
	t=$(sb-session-new)
	is "$(in_session "$t" 'git for-each-ref --format="%(refname)" refs/heads refs/sb; cat .git/state/d/n')" \
	    "$(printf 'refs/%s\n' heads/dir/x heads/feature heads/main heads/old "sb/$c.refs/heads/dir"; echo 2)"
}

@test "a branch on one side, one below that name on the other" {
	make_repo ws
	git -C ws branch e
	start
	for b in d d/x d/x/y e e/x; do
		s=$(sb-session-new); echo "$s" >>sessions
		work "$s" "[ $b != e/x ] || git branch -qD e
		    git checkout -qB $b; git commit -q --allow-empty -m $b"
	done
	publish_all
	check_repo
	jq -r '.publish.git_kept[].ref' answer.* | sort >got
	printf 'refs/heads/%s\n' d/x d/x/y e/x >want
	same got want
	t=$(sb-session-new)
	is "$(in_session "$t" 'git for-each-ref --format="%(refname:short)" refs/heads')" "$(printf '%s\n' d e feature main old)"
}

@test "a .git that is a file is merged like any other file" {
	mkdir -p ws/wt; echo 'gitdir: ../x' >ws/wt/.git
	start
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	in_session "$a" 'echo "gitdir: ../a" >wt/.git'
	in_session "$b" 'echo "gitdir: ../b" >wt/.git'
	in_session "$c" 'echo "gitdir: ../a" >wt/.git'
	publish "$a"
	run -2 --separate-stderr sb-publish "$b"
	has "$output" '"kind":"content"'
	publish "$c"
}

@test "runtime.publish.git conflict refuses, and publishes what only one side changed" {
	make_repo ws
	start
	echo 'runtime.publish.git conflict' >>"$SB_STORE/conf"
	a=$(sb-session-new); b=$(sb-session-new); c=$(sb-session-new)
	in_session "$a" 'echo a >a; git add -A; git commit -qm a'
	work "$b" 'echo b >b; git add -A; git commit -qm b'
	in_session "$c" 'echo c >c'
	publish "$a"
	cp "$SB_STORE/layer-stack/manifest.json" before
	run -2 --separate-stderr sb-publish "$b"
	is "$(printf %s "$output" | jq -r '.error.details.conflicts | map(select(.path == ".git/refs/heads/main"))[0].kind')" git
	is "$(printf %s "$output" | jq -r '.error.details.session_retained')" true
	same before "$SB_STORE/layer-stack/manifest.json"
	publish "$c"
	echo 'runtime.publish.git keep' >"$SB_STORE/conf"
	publish "$b"
	is "$(kept "$b")" ".git refs/heads/main refs/sb/$b"
	check_repo
}

@test "hostile content below .git harms nobody" {
	make_repo ws; echo precious >secret
	start
	for i in 1 2 3 4 5; do
		s=$(sb-session-new); echo "$s" >>sessions
		work "$s" "echo $i >f$i; git add -A; git commit -qm $i"
	done
	# shellcheck disable=SC2046 # ids have no blanks
	set -- $(cat sessions)
	in_session "$2" 'echo "ref: ../../../secret" >.git/HEAD; echo "ref: refs/../../x" >.git/refs/heads/up'
	in_session "$3" "rm -r .git/refs; ln -s '$T' .git/refs; rm .git/HEAD; ln -s '$T/secret' .git/HEAD"
	in_session "$4" "ln -s '$T' .git/refs/heads/link; rm -rf .git/logs; ln -s '$T' .git/logs; echo nonsense >.git/refs/heads/bad
	    yes 'cccccccccccccccccccccccccccccccccccccccc ../../etc/x' | head -c 10485760 >.git/packed-refs
	    mkdir -p .git/refs/sb; echo x >.git/refs/sb/$5"
	for s; do publish "$s"; done
	is "$(cat secret)" precious
	is "$(kept "$5")" ".git refs/heads/main refs/sb/$5"
	t=$(sb-session-new)
	is "$(in_session "$t" "git rev-parse refs/sb/$5")" "$(cat "commits.$5..")"
	is "$(in_session "$t" 'git symbolic-ref HEAD; git fsck --full --no-dangling 2>&1 | grep -v "^notice"')" refs/heads/main
}

# Things that people do with git, at random: SEED NAME TIMES. Each file is
# written once, so that only .git can be in conflict.
# shellcheck disable=SC2016
random_work='
RANDOM=$1
pick() { git for-each-ref --format="%(refname:short)" refs/heads | shuf -n 1 --random-source=<(yes "$RANDOM"); }
for i in $(seq "$3"); do
	b=$(pick)
	case $((RANDOM % 30)) in
	0|1|2|3) echo $RANDOM >"$2.$i"; git add "$2".*; git commit -qm "$2 $i" ;;
	4) git commit -q --amend --allow-empty -m "$2 amended $i" ;;
	5) git branch "n$((RANDOM % 4))" ;;
	6) git branch -qD "$b" ;;
	7|8) git checkout -q "$b" ;;
	9) git checkout -q --detach ;;
	10) git merge -q -s ours --no-edit "$b" ;;
	11) git rebase -q "$b" || git rebase --abort ;;
	12) git tag -am x "t$((RANDOM % 3))" ;;
	13) git tag -d "t$((RANDOM % 3))" ;;
	14|15) echo $RANDOM >"$2.s$i"; git stash -qu ;;
	16) git stash pop -q || git reset -q --hard ;;
	17) git stash drop -q ;;
	18) git gc -q ;;
	19) git reflog expire --expire=now --expire-unreachable=now --all; git gc -q --prune=now ;;
	20) git repack -qad ;;
	21) git pack-refs --all ;;
	22) git commit-graph write --reachable --split ;;
	23) git multi-pack-index write ;;
	24) git branch "d$((RANDOM % 2))" ;;
	25) git branch "d$((RANDOM % 2))/x" ;;
	26) git reset -q --hard HEAD~1 ;;
	27) echo $RANDOM >"$2.a$i"; git add "$2.a$i" ;;
	28) git checkout -qb "n$((RANDOM % 4))" ;;
	29) git notes add -f -m $RANDOM ;;
	esac
done
:'
fsck='git fsck --full --strict --no-dangling --no-progress 2>&1 || :'

# What is in commits, seen by a new session, to file $1; fsck to file $2.
look() {
	local t
	t=$(sb-session-new)
	in_session "$t" "$commits" 2>/dev/null | sort -u >"$1"
	in_session "$t" "$fsck" >"$2"
	sb-session-end "$t"
}

# Publishes session $1. Neither its new commits nor head's may be lost, and
# git may complain of nothing that it did not complain of before, on one side.
publish_random() {
	in_session "$1" "$commits" 2>/dev/null | sort -u | comm -13 "leased.$1" - >mine
	in_session "$1" "$fsck" >fsck.mine
	look all.head fsck.head
	comm -13 "leased.$1" all.head >theirs
	publish "$1"
	look all.now fsck.now
	is "$(sort -u mine theirs | comm -23 - all.now)" ""
	is "$(grep -vxFf fsck.mine -f fsck.head fsck.now)" ""
}

@test "random work with git in sessions of all ages loses nothing of either side" {
	local live=() i step
	make_repo ws; pack_repo ws
	start
	RANDOM=${SB_SEED:-7}
	echo "# SB_SEED=${SB_SEED:-7}"
	for step in $(seq 20); do
		if [ ${#live[@]} -lt 3 ]; then
			s=$(sb-session-new); live+=("$s")
			in_session "$s" "$commits" 2>/dev/null | sort -u >"leased.$s"
		fi
		i=$((RANDOM % ${#live[@]})); s=${live[i]}
		sb-run "$s" bash -c "$random_work" - "$RANDOM" "w$step" $((3 + RANDOM % 10)) >"log.$s" 2>&1
		[ $((RANDOM % 3)) != 0 ] || { publish_random "$s"; unset "live[i]"; live=("${live[@]}"); }
	done
	for s in "${live[@]}"; do publish_random "$s"; done
	[ "$(jq -s '[.[].publish.git_kept[]] | length' answer.*)" -gt 0 ]
}
