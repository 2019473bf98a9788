# SPDX-License-Identifier: MIT
# Sessions over stacks of 1, 100, 400 and 500 layers, by each way of handing
# layers to the kernel; what happens at the limit; paths that would have to be
# quoted.
bats_require_minimum_version 1.5.0
load lib

# One stack for all tests: layer N adds fN and writes last; each 25th deletes
# what the one before it added, and a directory of the base as long as there is
# one; between them d is cleared and filled again. want.N is the tree, as an
# ordinary file system has it, with N layers over the base.
setup_file() {
	# The tests' own shells must not look like programs of this store.
	(BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR && sb_setup && set -e && build_stack)
}

build_stack() {
	local n
	mkdir -p ws/d ws/deep/er up
	for n in $(seq 25 25 500); do mkdir "ws/b$n" && echo "$n" >"ws/b$n/f"; done
	echo old >ws/d/old; echo base >ws/deep/er/f; echo base >ws/last
	make_store
	cp -a ws tree
	for n in $(seq 0 499); do
		[ "$n" = 0 ] || one_layer "$n"
		case $n in 0 | 99 | 399 | 498 | 499) listing_of tree >"want.$n" ;; esac
	done
}

one_layer() {
	rm -rf up
	mkdir -p up/deep/er
	echo "$1" >"up/f$1"; echo "$1" >up/last
	echo "$1" >"up/deep/er/f$(($1 % 10))"
	case $(($1 % 25)) in
	0)
		mknod "up/f$(($1 - 1))" c 0 0; rm "tree/f$(($1 - 1))"
		mknod "up/b$1" c 0 0; rm -r "tree/b$1"
		;;
	12)
		mkdir up/d; setfattr -n user.overlay.opaque -v y up/d; echo "$1" >"up/d/f$1"
		rm -r tree/d; mkdir tree/d; echo "$1" >"tree/d/f$1"
		;;
	13) mkdir up/d; echo "$1" >up/d/g; echo "$1" >tree/d/g ;;
	esac
	cp "up/f$1" up/last tree/
	cp "up/deep/er/f$(($1 % 10))" tree/deep/er/
	sb-layer-scan up | sb-change-route | sb-layer-commit -C up >>layers
}

setup() {
	sb_setup
	export SB_STORE=$BATS_FILE_TMPDIR/store
	F=$BATS_FILE_TMPDIR
	need overlay userns xattr
}

# Text that a shell can run anywhere: all names of a tree, and what files say.
LISTING='find . ! -type f | LC_ALL=C sort; find . -type f | LC_ALL=C sort | xargs grep -H ""'
listing_of() { (cd "$1" && sh -c "$LISTING"); }
seen() { sb-run "$1" sh -c "$LISTING"; }

# N: puts the base and the first N layers in place.
depth() {
	{
		tac "$F/layers" | tail -n "$1"
		ids B000001-base
	} | sb-stack-swap "$(sb-stack-version)" >/dev/null
}

EDIT='echo edit >>deep/er/f; rm -r d; mkdir d; echo new >d/new; rm last'
edited() { # N: want.N after that
	sed -E '/^\.\/(d\/|last:|deep\/er\/f:)/d' "$F/want.$1"
	printf './deep/er/f:%s\n' base edit
	echo ./d/new:new
}

# What is left of short work, and of sessions.
rests() {
	(
		cd "$SB_STORE" && ls -A workspace layer-stack/leases layer-stack/queue layer-stack/staging
		our_processes "$SB_STORE"
	)
}

# The same names from our own view of head, and from a listing.
names() { sed 's/^\.\///; s/:.*//' | sed '/^\.$/d' | LC_ALL=C sort -u; }
head_listing() { sb-stack-show | sb-layer-list -r | tr '\0' '\n' | sed -n 's/^[^\t]*\t//p' | LC_ALL=C sort; }

by() { # WAY: sessions that start from now on are mounted by it
	local dir=$BATS_TEST_TMPDIR/by.$1
	[ -d "$dir" ] || "$SB_TOP/t/shim" "$SB_BIN" "$1" "$dir"
	PATH=$dir:$PATH
}

is_by() { # WAY SESSION: the kernel shows what it was given
	local option
	option=$(sb-run "$2" grep -o ' overlay [a-z]* rw,lowerdir+\?=[^:,]*' /proc/self/mountinfo)
	case $1,${option#*lowerdir} in
	fd,+=/proc/*) ;;
	fd,+=/* | string,+=/proc/self/fd/[0-9]* | page,=[0-9]*) return ;;
	esac
	fail "not mounted by $1: $option"
}

@test "over 1, 100, 400 and 499 layers, and over one more when published, each way" {
	local way n
	rests >before
	for way in $("$SB_TOP/t/shim"); do
		by "$way"
		for n in 0 99 399 498; do
			depth "$n"
			s=$(sb-session-new)
			is_by "$way" "$s"
			seen "$s" >got; same got "$F/want.$n"
			sb-run "$s" sh -euc "$EDIT"
			sb-publish "$s" | jq .publish.revision.layer_count >count
			is "$(cat count)" $((n + 2))
			s=$(sb-session-new)
			seen "$s" | sort >got
			edited "$n" | sort >want
			same got want
			sb-session-end "$s"
		done
	done
	rests >after; same after before
}

@test "over 500 layers: publishing goes on, new sessions are refused, with what to do" {
	local way
	for way in $("$SB_TOP/t/shim"); do
		by "$way"
		depth 499
		rests >before
		a=$(sb-session-new); b=$(sb-session-new)
		seen "$a" >got; same got "$F/want.499"
		sb-ns-kill "$b"
		sb-run "$a" sh -euc "$EDIT"
		sb-publish "$a" | jq .publish.revision.layer_count >count
		is "$(cat count)" 501
		head_listing >got
		edited 499 | names >want
		same got want
		is "$(sb-stack-show | sb-layer-cat deep/er/f)" "$(printf 'base\nedit')"

		find "$SB_STORE" -printf '%P %y %T@\n' | grep -v '^workspace d\|^observability' | sort >store
		run -100 --separate-stderr sb-session-new
		is "$output" ""
		is "$stderr" "sb-session-new: fatal: the stack has 501 layers, of which a session can mount 500: put a shorter list in place with sb-stack-swap"
		find "$SB_STORE" -printf '%P %y %T@\n' | grep -v '^workspace d\|^observability' | sort >store.after
		same store.after store

		# A parked one keeps its own 500, sees them again, and publishes.
		seen "$b" >got; same got "$F/want.499"
		sb-run "$b" sh -euc 'rm f1; echo b >b'
		sb-publish "$b" | jq .publish.revision.layer_count >count
		is "$(cat count)" 502
		{ edited 499 | grep -v '^\./f1:'; echo ./b:b; } | names >want
		head_listing >got
		same got want
		sb-stack-show | sb-layer-check

		# As the message says.
		sb-stack-show | tail -n +3 | sb-stack-swap "$(sb-stack-version)" >/dev/null
		s=$(sb-session-new)
		seen "$s" >got; same got "$F/want.499"
		sb-session-end "$s"
		rests >after; same after before
	done
}

@test "nothing in the path of a store or a workspace has to be quoted, each way" {
	local top=$T T way
	for T in "$top/a:b,c d" "$top/e\\:\\,f" "$top/lowerdir=g,upperdir=h" "$top/"$'é"\n'"i'#"; do
		mkdir -p "$T/ws/d"; cd "$T"
		export SB_STORE=$T/store XDG_CACHE_HOME=$T/cache HOME=$T/home
		mkdir home
		echo 1 >ws/d/f; echo 2 >ws/d/g
		make_store
		for way in $("$SB_TOP/t/shim"); do
			by "$way"
			s=$(sb-session-new)
			is_by "$way" "$s"
			is "$(sb-run "$s" sh -euc 'cd d; cat f; echo "$1" >f; rm g; cat f; [ "$PWD" = "$2" ]' - "$way" "$T/ws/d")" "$(printf '1\n%s' "$way")"
			sb-ns-kill "$s"
			is "$(sb-diff -n "$s")" "$(printf 'M d/f\nD d/g')"
			sb-publish "$s" >/dev/null
			s=$(sb-session-new)
			is "$(sb-run "$s" sh -euc 'cat d/*; ls d; echo 1 >d/f; echo 2 >d/g')" "$(printf '%s\nf' "$way")"
			sb-publish "$s" >/dev/null
		done
		is "$(cat ws/d/f; ls -d ws* store*)" "$(printf '1\nstore\nws')"
		is "$(ls -A store/workspace)" ""
	done
}
