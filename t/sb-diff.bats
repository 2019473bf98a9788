# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# A store whose base is a copy of $T/ws and a parked session s over it, made
# by hand: what a session changes is all in its upper.
new_store() {
	mkdir -p ws "$SB_STORE/layer-stack/layers" "$SB_STORE/workspace"
	cp -a ws "$SB_STORE/layer-stack/layers/B000001-base"
	new_session B000001-base
}

# The kernel leaves a directory without permissions in there.
rm_work() {
	[ ! -e "$1" ] || chmod -R u+rwX "$1"
	rm -rf "$1"
}

# The session with its lease, layers newest first.
new_session() {
	local s=$SB_STORE/workspace/s id sep=
	rm_work "$s"
	mkdir -p "$s/upper" "$s/work" "$s/merged"
	U=$s/upper
	touch "$s/lock" "$s/gate" "$s/gate.turn"
	{
		printf '{"layers":['
		for id; do
			printf '%s{"layer_id":"%s","path":"layers/%s"}' "$sep" "$id" "$id"
			sep=,
		done
		printf '],"schema_version":1,"version":1}'
	} >"$s/lease"
	LOWER=$(printf ":$SB_STORE/layer-stack/layers/%s" "$@")
	LOWER=${LOWER#:}
}

# Runs a script of bash in the session's mount, as a real session would. The
# mount is volatile: else each umount waits for everybody's dirty pages.
inside() {
	local u=-m work=${U%upper}work
	rm_work "$work"
	mkdir "$work"
	[ "$(id -u)" = 0 ] || u=-Urm
	unshare $u bash -euc 'mount -t overlay -o "userxattr,volatile,lowerdir=$1,upperdir=$2,workdir=$3" none "$4"
		cd "$4"; eval "$5"; cd /; umount "$4"' inside \
	    "$LOWER" "$U" "$work" "${U%upper}merged" "$1"
}

@test "a patch has hunks with three lines of context and marks a missing newline" {
	mkdir ws
	seq 30 >ws/f
	new_store
	sed '2d; 15s/$/!/; 18s/$/!/' ws/f | head -c -1 >"$U/f"
	cat >want <<-'E'
		diff --git a/f b/f
		--- a/f
		+++ b/f
		@@ -1,5 +1,4 @@
		 1
		-2
		 3
		 4
		 5
		@@ -12,10 +11,10 @@
		 12
		 13
		 14
		-15
		+15!
		 16
		 17
		-18
		+18!
		 19
		 20
		 21
		@@ -27,4 +26,4 @@
		 27
		 28
		 29
		-30
		+30
		\ No newline at end of file
	E
	sb-diff s >out
	same out want
}

@test "the hunks are those of git on a long file with scattered edits" {
	need git
	mkdir ws
	seq 2000 >ws/f
	new_store
	awk 'NR % 97 == 0 { next } NR % 61 == 0 { print "new", NR } { print }' ws/f >"$U/f"
	sb-diff s | grep -v '^index' >out
	git diff --no-index --no-color --no-indent-heuristic -- ws/f "$U/f" | sed 's/^\(@@ [^@]*@@\).*/\1/' |
	    sed -n '/^@@/,$p' >want
	sed -n '/^@@/,$p' out >got
	same got want
}

@test "created, deleted, empty and executable files have git's headers" {
	mkdir ws
	echo old >ws/gone
	: >ws/gone-empty
	echo x >ws/run
	printf 'a' >ws/both
	new_store
	inside 'rm gone gone-empty; chmod +x run; echo b >both; chmod +x both; : >empty; echo n >new; chmod 700 new'
	cat >want <<-'E'
		diff --git a/both b/both
		old mode 100644
		new mode 100755
		--- a/both
		+++ b/both
		@@ -1 +1 @@
		-a
		\ No newline at end of file
		+b
		diff --git a/empty b/empty
		new file mode 100644
		diff --git a/gone b/gone
		deleted file mode 100644
		--- a/gone
		+++ /dev/null
		@@ -1 +0,0 @@
		-old
		diff --git a/gone-empty b/gone-empty
		deleted file mode 100644
		diff --git a/new b/new
		new file mode 100755
		--- /dev/null
		+++ b/new
		@@ -0,0 +1 @@
		+n
		diff --git a/run b/run
		old mode 100644
		new mode 100755
	E
	sb-diff s >out
	same out want
	is "$(sb-diff -n s | tr '\n' ,)" "M both,A empty,D gone,D gone-empty,A new,m run,"
}

@test "a symbolic link is mode 120000 with its target as content" {
	mkdir ws
	ln -s one ws/l
	echo text >ws/f
	new_store
	inside 'ln -sfn two l; rm f; ln -s else f'
	cat >want <<-'E'
		diff --git a/f b/f
		deleted file mode 100644
		--- a/f
		+++ /dev/null
		@@ -1 +0,0 @@
		-text
		diff --git a/f b/f
		new file mode 120000
		--- /dev/null
		+++ b/f
		@@ -0,0 +1 @@
		+else
		\ No newline at end of file
		diff --git a/l b/l
		--- a/l
		+++ b/l
		@@ -1 +1 @@
		-one
		\ No newline at end of file
		+two
		\ No newline at end of file
	E
	sb-diff s >out
	same out want
	is "$(sb-diff -n s | tr '\n' ,)" "T f,M l,"
}

@test "a directory deleted and made again says exactly what is gone and new" {
	mkdir -p ws/d/sub ws/d/empty
	echo old >ws/d/old
	echo deep >ws/d/sub/deep
	echo same >ws/d/same
	new_store
	inside 'rm -r d; mkdir d; echo new >d/new; echo same >d/same; mkdir d/sub; echo x >d/sub/x'
	is "$(getfattr --only-values -n user.overlay.opaque "$U/d")" y
	is "$(sb-diff -n s | tr '\n' ,)" "D d/empty/,A d/new,D d/old,D d/sub/deep,A d/sub/x,"
}

@test "a directory made anew under an opaque one is not counted twice" {
	mkdir -p ws/d/a/b
	echo 1 >ws/d/a/b/f
	echo 2 >ws/d/a/g
	echo 3 >ws/d/h
	new_store
	mkdir -p "$U/d/a"
	setfattr -n user.overlay.opaque -v y "$U/d"
	setfattr -n user.overlay.opaque -v y "$U/d/a"
	echo 4 >"$U/d/a/b"
	is "$(sb-diff -n s | tr '\n' ,)" "A d/a/b,D d/a/b/f,D d/a/g,D d/h,"
}

@test "a deleted directory becomes one deletion for each file in all layers" {
	mkdir -p ws/d/e ws/d/none
	echo 1 >ws/d/1
	echo 2 >ws/d/e/2
	new_store
	inside 'rm d/1; echo 3 >d/3; ln -s x d/l'
	cp -a "$U" "$SB_STORE/layer-stack/layers/L000002-1"
	new_session L000002-1 B000001-base
	inside 'rm -r d'
	is "$(sb-diff -n s | tr '\n' ,)" "D d/3,D d/e/2,D d/l,D d/none/,"
}

@test "a directory replaced by a link or a file is a deletion of all and one new entry" {
	mkdir -p ws/d/e ws/g
	echo 1 >ws/d/e/f
	echo 2 >ws/g/f
	new_store
	inside 'rm -r d g; ln -s /etc d; echo x >g'
	is "$(sb-diff -n s | tr '\n' ,)" "A d,D d/e/f,A g,D g/f,"
}

@test "a file or link replaced by a directory is a deletion and what is in it" {
	mkdir ws
	echo 1 >ws/f
	echo 1 >ws/g
	ln -s x ws/l
	new_store
	inside 'rm f l g; mkdir f g l; echo 2 >f/new; echo 3 >l/new'
	is "$(sb-diff -n s | tr '\n' ,)" "D f,A f/new,D g,A g/,D l,A l/new,"
}

@test "what was touched but not changed is not listed" {
	mkdir -p ws/d
	echo 1 >ws/d/f
	ln -s x ws/d/l
	new_store
	inside 'touch d d/f; chmod 600 d/f; chmod 644 d/f; cp d/f t; mv t d/f; ln -sfn x d/l; echo n >n; rm n'
	[ -e "$U/d/f" ]
	is "$(sb-diff s)" ""
	is "$(sb-diff -n s)" ""
}

@test "a mode git does not know and xattrs are in the list only" {
	need xattr
	mkdir -p ws/d
	echo 1 >ws/f
	echo 1 >ws/g
	new_store
	inside 'chmod 600 f; chmod 700 d; setfattr -n user.k -v 1 g'
	is "$(sb-diff s)" ""
	is "$(sb-diff -n s | tr '\n' ,)" "m d/,m f,m g,"
}

@test "new directories that are empty are listed with a slash" {
	new_store
	inside 'mkdir -p a/b c; echo x >c/f'
	is "$(sb-diff -n s | tr '\n' ,)" "A a/b/,A c/f,"
}

@test "special files are listed and no part of the patch" {
	mkdir ws
	echo kept >ws/p
	new_store
	inside 'mkfifo f; rm p; mkfifo p; mkdir d; mkfifo d/f'
	is "$(sb-diff s)" ""
	is "$(sb-diff -n s | tr '\n' ,)" "A d/,S d/f,S f,S p,"
}

@test "a file with a NUL byte differs as a binary file" {
	mkdir ws
	printf 'a\0b' >ws/b
	new_store
	printf 'a\0c' >"$U/b"
	printf '\0' >"$U/n"
	cat >want <<-'E'
		diff --git a/b b/b
		Binary files a/b and b/b differ
		diff --git a/n b/n
		new file mode 100644
		Binary files /dev/null and b/n differ
	E
	sb-diff s >out
	same out want
}

@test "names are quoted as git quotes them, on one line" {
	need git
	new_store
	for f in 'a b' '"q"' $'\xe5\xae\x9e.md' $'tab\tx' $'line\ntwo' ' -> ' -rf $'\a\b\v\f\r\x1f\x7f' 'b\s' $'\xff'; do
		echo x >"$U/$f"
	done
	sb-diff -n s >list
	is "$(wc -l <list)" 10
	mkdir g
	cp -a "$U/." g/
	(cd g && git init -q && git add -A && git diff --cached --no-color --no-prefix) >patch
	sed -n 's/^+++ //p' patch | sed "s/$(printf '\t')\$//" | sort >want
	sed 's/^A //' list | sort >got
	same got want
	sb-diff s | sed -n 's/^+++ //p' | sort >got
	(cd g && git diff --cached --no-color) | sed -n 's/^+++ //p' | sort >want
	same got want
}

@test "-z gives the bare names, each ended by a NUL" {
	mkdir ws
	echo x >ws/-rf
	new_store
	inside 'mkdir -- "$(printf "n\nl")"; rm -- -rf; echo x >"$(printf "\377 \"")"'
	sb-diff -z s >out
	printf 'D -rf\0A n\nl/\0A \377 "\0' >want
	same out want
	sb-diff -nz s >out
	same out want
}

# Links to directories in base that are directories in mine.
links_made_dirs() {
	find base -type l -xtype d -printf '%P\0' | while IFS= read -r -d '' l; do
		[ -L "mine/$l" ] || [ ! -d "mine/$l" ] || echo found
	done
}

@test "git apply of the patch gives what the session shows, for random changes" {
	need git overlay
	seed=${SEED:-$((RANDOM * 32768 + RANDOM + 1))}
	sets=${SETS:-50}
	echo "# SEED=$seed SETS=$sets" >&3
	export GIT_CEILING_DIRECTORIES=$T GIT_CONFIG_NOSYSTEM=1
	total=0 applied=0
	for i in $(seq "$sets"); do
		rm_work "$SB_STORE"
		rm -rf ws base mine
		mkdir ws
		(cd ws && "$SB_T/edittree" $((seed + 3 * i)) make)
		new_store
		inside "'$SB_T/edittree' $((seed + 3 * i + 1)) edit"
		# Every other time what was done so far is a layer of the lease.
		if [ $((i % 2)) = 0 ]; then
			cp -a "$U" "$SB_STORE/layer-stack/layers/L000002-1"
			new_session L000002-1 B000001-base
			inside "cp -a . '$T/base'"
			inside "'$SB_T/edittree' $((seed + 3 * i + 2)) edit"
		else
			cp -a ws base
		fi
		inside "cp -a . '$T/mine'"
		sb-diff -z s | { grep -zv '/$' || :; } >list
		"$SB_T/treediff" base mine >want
		cmp list want || fail "set $i: lists:" "$(tr '\0' '\n' <list | diff -a - <(tr '\0' '\n' <want) | head -30)"
		total=$((total + $(tr -cd '\0' <list | wc -c)))
		sb-diff s >patch
		# Two things that git-apply(1) itself cannot do: to look below a
		# link to a directory that the patch makes a directory, it
		# follows the link; and a patch cannot remove an empty directory
		# from the place of a file.
		[ -z "$(links_made_dirs)" ] || continue
		find base -mindepth 1 -depth -type d -empty -delete
		applied=$((applied + 1))
		[ ! -s patch ] || (cd base && git apply ../patch 2>../apply.err) ||
		    fail "set $i: git apply: $(grep -a error apply.err)"
		"$SB_T/treediff" base mine >got
		[ ! -s got ] || fail "set $i: trees:" "$(tr '\0' '\n' <got | head -30)"
	done
	echo "# $total changes in $sets sets, $applied of them applied" >&3
	[ "$total" -gt $((sets * 5)) ]
	[ "$applied" -gt $((sets / 2)) ]
}

@test "a session that does not exist is 1, a name that cannot be one 100" {
	new_store
	run -1 --separate-stderr sb-diff t
	is "$output" ""
	has "$stderr" "no such session: t"
	run -100 --separate-stderr sb-diff ../s
	run -100 --separate-stderr sb-diff
	run -100 --separate-stderr sb-diff s s
	run -100 --separate-stderr sb-diff -q s
	run -0 sb-diff -h
	is "$output" "usage: sb-diff [-nz] session"
}

@test "a missing or damaged lease, layer or upper is 111 and named" {
	new_store
	mv "$SB_STORE/layer-stack/layers/B000001-base" "$T/b"
	run -111 --separate-stderr sb-diff s
	has "$stderr" "unable to open layer B000001-base"
	mv "$T/b" "$SB_STORE/layer-stack/layers/B000001-base"
	mv "$U" u
	run -111 --separate-stderr sb-diff s
	has "$stderr" "upper of session s"
	mv u "$U"
	echo '{' >"$SB_STORE/workspace/s/lease"
	run -111 --separate-stderr sb-diff s
	has "$stderr" "lease of session s"
	rm "$SB_STORE/workspace/s/lease"
	run -111 --separate-stderr sb-diff s
	has "$stderr" "lease of session s"
}

@test "a missing store is 111, none named 100" {
	run -111 --separate-stderr sb-diff s
	has "$stderr" "$SB_STORE"
	unset SB_STORE
	run -100 --separate-stderr sb-diff s
}

@test "a full or closed stdout is 111" {
	mkdir ws
	new_store
	echo x >"$U/f"
	run -111 --separate-stderr bash -c 'sb-diff s >/dev/full'
	run -111 --separate-stderr bash -c 'sb-diff -n s >&-'
}

@test "links in the upper are never followed" {
	mkdir -p ws/d
	echo 1 >ws/d/f
	new_store
	echo secret >"$T/secret"
	ln -s "$T" "$U/d"
	is "$(sb-diff -n s | tr '\n' ,)" "A d,D d/f,"
	run sb-diff s
	[[ "$output" != *secret* ]] || fail "followed a link"
}

@test "it writes nothing, neither killed nor finished" {
	need strace
	mkdir -p ws/d
	seq 100 >ws/f
	new_store
	echo x >>"$U/f"
	before=$(listing "$SB_STORE")
	sb-diff s >/dev/null
	is "$(listing "$SB_STORE")" "$before"
	kill_at openat2 3 sb-diff s >/dev/null || :
	is "$(listing "$SB_STORE")" "$before"
}
