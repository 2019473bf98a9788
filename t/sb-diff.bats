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
		index e8823e1766638e70fd9e260913a383f8fe68a237..d7a03fb575035d80f4c5c417e4024dc4519c6635 100644
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
	sb-diff s >out
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
		index 2e65efe2a145dda7ee51d1741299f848e5bf752e..61780798228d17af2d34fce4cfbdf35556832472
		--- a/both
		+++ b/both
		@@ -1 +1 @@
		-a
		\ No newline at end of file
		+b
		diff --git a/empty b/empty
		new file mode 100644
		index 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391
		diff --git a/gone b/gone
		deleted file mode 100644
		index 3367afdbbf91e638efe983616377c60477cc6612..0000000000000000000000000000000000000000
		--- a/gone
		+++ /dev/null
		@@ -1 +0,0 @@
		-old
		diff --git a/gone-empty b/gone-empty
		deleted file mode 100644
		index e69de29bb2d1d6434b8b29ae775ad8c2e48c5391..0000000000000000000000000000000000000000
		diff --git a/new b/new
		new file mode 100755
		index 0000000000000000000000000000000000000000..8ba3a16384aacc37d01564b28401755ce8053f51
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
		index 8e27be7d6154a1f68ea9160ef0e18691d20560dc..0000000000000000000000000000000000000000
		--- a/f
		+++ /dev/null
		@@ -1 +0,0 @@
		-text
		diff --git a/f b/f
		new file mode 120000
		index 0000000000000000000000000000000000000000..173c86dec15d849c71443fcb086f706783fb900b
		--- /dev/null
		+++ b/f
		@@ -0,0 +1 @@
		+else
		\ No newline at end of file
		diff --git a/l b/l
		index 43dd47ea691c90a5fa7827892c70241913351963..64c5e5885a4b06010b3a0c20edb7900dd0311025 120000
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

@test "a file with a NUL byte is a binary patch, forward and back" {
	mkdir ws
	printf 'a\0b' >ws/b
	printf 'text\n' >ws/t
	new_store
	printf 'a\0c' >"$U/b"
	printf '\0' >"$U/n"
	printf 't\0' >"$U/t"
	cat >want <<-'E'
		diff --git a/b b/b
		index 20b5be91886d0b6f26dc98a225c0dac05fe2c86e..88f37001cec36655decf891d4244853aaa51a00a 100644
		GIT binary patch
		literal 3
		KcmYdfNCp4_i2%g_

		literal 3
		KcmYdfNCE%>hycU@

		diff --git a/n b/n
		new file mode 100644
		index 0000000000000000000000000000000000000000..f76dd238ade08917e6712764a16a22005a50573d
		GIT binary patch
		literal 1
		IcmZPo000310RR91

		literal 0
		HcmV?d00001

	E
	sb-diff s >out
	head -n "$(wc -l <want)" out >got
	same got want
	tail -n +$(($(wc -l <want) + 1)) out >got
	has "$(sed -n 3p got)" "GIT binary patch"
}

# What git itself says about the trees ws and mine: everything but what it finds
# out by comparing different files.
git_says() {
	local tree
	git init -q --bare repo
	for tree in ws mine; do
		rm -f repo/index
		(
			export GIT_DIR=$T/repo GIT_WORK_TREE=.
			cd "$tree" && git add -Af . && git write-tree
		) >"id.$tree"
	done
	git --git-dir=repo diff --binary --full-index --no-renames --no-color "$(cat id.ws)" "$(cat id.mine)"
}

@test "the patch is what git prints, byte by byte, for every kind of change and name" {
	need git overlay
	mkdir -p ws/d/e 'ws/sp sp' ws/a/b ws/b/a ws/todir ws/mode
	cd ws
	printf 'a\r\nb\r\n' >crlf
	printf 'a\r\nb\r\nc' >crlf-no-end
	printf 'x\0y' >bin && head -c 300 /dev/zero >nuls
	printf 'a\0' >bin-text && printf 'a\n' >text-bin && printf 'a\0' >bin-gone
	printf 'l\n' >todir/f && printf 'l\n' >file-link && printf 'l\n' >file-dir
	printf '\200\377\n' >latin && : >empty-full && echo x >full-empty
	ln -s one link && ln -s x link-file && ln -s x link-dir && ln -s "$(printf 'two\nlines')" link-lines
	head -c 70000 /dev/zero | tr '\0' x >long
	echo x >'sp sp/f' && echo x >'sp sp/x' && echo x >'sp sp/m' && printf 'x\0' >'sp sp/b'
	echo x >mode/x && echo x >mode/minus && echo x >mode/none && printf '\0' >mode/bin
	chmod 755 mode/minus
	echo 1 >a/b/c && echo 1 >b/a/c && echo 1 >d/e/f && echo 1 >d/g && echo 1 >'d/z b'
	cd ..
	new_store
	inside '
		printf "a\r\nB\r\n" >crlf && printf "a\r\nb\nc" >crlf-no-end
		printf "x\0z" >bin && head -c 200 /dev/zero >nuls
		printf "a\n" >bin-text && printf "a\0" >text-bin && rm bin-gone && printf "n\0" >bin-new
		rm -r todir file-link file-dir && echo f >todir && ln -s l file-link && mkdir file-dir && echo f >file-dir/f
		printf "\200\376\n" >latin && echo x >empty-full && : >full-empty
		ln -sfn two link && rm link-file link-dir && echo x >link-file && mkdir link-dir && echo x >link-dir/x
		ln -sfn "$(printf "2\nlines\n.")" link-lines && ln -s "$(printf "end\n/x\n\n")x" link-new
		printf y >>long && head -c 9000 /dev/zero | tr "\0" x >long-new
		echo y >"sp sp/f" && rm "sp sp/x" && chmod 755 "sp sp/m" && printf "y\0" >"sp sp/b" && : >"sp sp/e"
		chmod 755 mode/x mode/bin && chmod 644 mode/minus && chmod 600 mode/none
		echo 2 >a/b/c && echo 2 >b/a/c && rm -r d && ln -s a d
		mkdir -- -rf && echo x >-rf/--help && echo x >"--- a" && : >"+++ b" && echo x >"@@ -1 +1 @@"
		mkdir dev "x b" && echo x >dev/null && : >"a~ " && printf "\0" >"x b/x" && : >"x b/b"
		for n in "\"q\"" "$(printf "\\t")" "$(printf "n\\nl")" "$(printf "\\345\\256\\236")" "$(printf "\\377")" "b\\s" " " " -> "; do
			echo x >"$n" && printf "\0" >"$n.b" && : >"$n.e" && ln -s "$n" "$n.l"
		done
		cp -a . "'"$T"'/mine"'
	git_says ws mine >want
	sb-diff s >out
	same out want
}

@test "an index line has what git apply -3 needs to merge with what others did" {
	need git
	mkdir ws
	seq 20 >ws/f
	new_store
	sed '10s/$/ mine/' ws/f >"$U/f"
	sb-diff s >patch
	git init -q repo
	seq 20 >repo/f
	git -C repo add f
	git -C repo -c user.name=x -c user.email=x@x.invalid commit -qm base
	sed -i '8s/$/ theirs/' repo/f
	git -C repo add f
	run ! git -C repo apply ../patch
	git -C repo apply -3 ../patch
	seq 20 | sed '10s/$/ mine/; 8s/$/ theirs/' >want
	same repo/f want
}

# What a patch would be of a new file ("") or link of that name.
patch_of() {
	local name=${1//\\/\\\\}
	if [ "$2" = link ]; then
		printf 'diff --git "a/%s" "b/%s"\nnew file mode 120000\n--- /dev/null\n+++ "b/%s"\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n' \
		    "$name" "$name" "$name"
	else
		printf 'diff --git "a/%s" "b/%s"\nnew file mode 100644\n' "$name" "$name"
	fi
}

@test "names that git apply refuses are listed and left out, and no others" {
	need git
	export GIT_CEILING_DIRECTORIES=$T
	mkdir plain
	names=(.git/f .GIT/f .git d/.git/f d/.gIt '.git ' '.git..' '.git . .' .git:x .git::x 'GIT~1' git~1/f 'git~1 .' 'x\.git' 'x\git~1'
		'x\.git\y' '.git\y' .gitx .git.x ' .git' git git~2 git~10 .gitmodules .GitModules '.gitmodules ' .gitmodules:x .gitmodules.x
		.gitmodules/f 'x\.gitmodules' gitmod~1 GITMOD~4 gitmod~5 gitmod~0 gitmodules gi7eba~1 GI7EBA~9 gi7eb~12 gi7e~123 g~123456
		'~1234567' gi7eba~0 gi7eba~12 gi7ebb~1 'gi7eba~1 .' gi7eba~1x .gitignore .gitattributes ..git .g .gi 'a\b' d/.gitmodules)
	refused=0
	for kind in file link; do
		rm -rf "$SB_STORE" ws
		new_store
		for i in "${!names[@]}"; do
			name=$i/${names[i]}
			mkdir -p "$(dirname -- "$U/$name")"
			if [ $kind = link ]; then ln -s x "$U/$name"; else : >"$U/$name"; fi
		done
		sb-diff -z s | tr '\0' '\n' | sort >got
		for i in "${!names[@]}"; do echo "A $i/${names[i]}"; done | sort >want
		same got want
		sb-diff s >patch
		(cd plain && git apply --check ../patch)
		for i in "${!names[@]}"; do
			patch_of "$i/${names[i]}" $kind >one
			if (cd plain && git apply --check ../one 2>../err); then
				grep -q "^diff .*b/$i/" patch || fail "$kind ${names[i]} is left out"
			else
				has "$(cat err)" "invalid path"
				! grep "^diff .*b/$i/" patch || fail "$kind ${names[i]} is not left out"
				refused=$((refused + 1))
			fi
		done
	done
	[ $refused -gt 40 ]
}

@test "what git apply cannot do from where it stands it can do elsewhere" {
	need git overlay
	export GIT_CEILING_DIRECTORIES=$T
	mkdir -p ws/d/empty/er
	ln -s l ws/l
	new_store
	inside 'rm -r d l; echo file >d; mkdir l; echo x >l/f'
	sb-diff s >patch
	# Through a link that points to itself.
	run ! git -C ws apply ../patch
	has "$output" "Too many levels of symbolic links"
	git init -q repo
	cp -a ws/. repo/
	git -C repo add -A
	git -C repo apply --cached ../patch
	rm -r repo/d repo/l
	git -C repo checkout-index -a
	is "$(cat repo/l/f repo/d)" "$(printf 'x\nfile')"
	# Empty directories in the place of a file.
	rm ws/l
	sed '/^diff --git a.l b.l/,$d' patch >patch.d
	run ! git -C ws apply ../patch.d
	has "$output" "Directory not empty"
	rm -r ws/d
	git -C ws apply ../patch.d
	is "$(cat ws/d)" file
}

# sb-diff in so many KiB; but a sanitizer takes memory of its own.
diff_within() {
	grep -q __asan "$SB_BIN/sb-diff" || ulimit -v "$1"
	sb-diff s
}

@test "large files, binary and text, new and gone, are not held in memory" {
	need git overlay
	export GIT_CEILING_DIRECTORIES=$T
	mkdir ws
	head -c 5242880 /dev/urandom >ws/bin
	head -c 5242880 /dev/urandom >ws/bin-gone
	seq 3000000 >ws/text-gone
	new_store
	cp ws/bin "$U/bin"
	printf x | dd of="$U/bin" bs=1 seek=4000000 conv=notrunc status=none
	seq 3000001 6000000 >"$U/text"
	truncate -s 40M "$U/nuls"
	inside 'rm bin-gone text-gone'
	(diff_within 24576) >patch
	(cd ws && git apply ../patch)
	cmp ws/bin "$U/bin" && cmp ws/text "$U/text" && cmp ws/nuls "$U/nuls"
	[ ! -e ws/bin-gone ] && [ ! -e ws/text-gone ]
}

@test "a text of 100 000 lines, changed all over, is compared in reasonable memory" {
	need git
	export GIT_CEILING_DIRECTORIES=$T
	mkdir ws
	seq 100000 >ws/f
	new_store
	awk 'NR % 97 == 0 { next } NR % 61 == 0 { print "new", NR } { print }' ws/f >"$U/f"
	(diff_within 65536) >patch
	(cd ws && git apply ../patch)
	cmp ws/f "$U/f"
}

@test "a file that changes between two readings is named, and ends the output with 111" {
	new_store
	mkfifo fifo
	for what in "changed" "became shorter"; do
		seq 600000 >"$U/f"
		sb-diff s >fifo 2>err 3>&- &
		# The index line tells the end of the first reading; the second
		# cannot end before we go on to read.
		exec 5<fifo
		for line in diff new index; do
			read -r -u 5 first _
			is "$first" $line
		done
		if [ "$what" = changed ]; then
			printf x | dd of="$U/f" bs=1 seek=3000000 conv=notrunc status=none
		else
			truncate -s 3000000 "$U/f"
		fi
		cat <&5 >out
		exec 5<&-
		rc=0
		wait $! || rc=$?
		is $rc 111
		has "$(cat err)" "f $what while it was read"
	done
}

@test "what is appended to a file while it is read is left out" {
	new_store
	mkfifo fifo
	seq 600000 >"$U/f"
	cp "$U/f" f
	sb-diff s >fifo 3>&- &
	exec 5<fifo
	read -r -u 5 _
	echo more >>"$U/f"
	grep -a '^+[0-9]' <&5 >out
	exec 5<&-
	wait $!
	sed 's/^+//' out >got
	same got f
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

# Sets $1 to the workspace as session $2 shows it, seen through its init.
shown() {
	local pid rest
	read -r pid rest <"$SB_STORE/workspace/$2/hold"
	printf -v "$1" %s "/proc/$pid/root$T/ws"
}

edit() {
	sb-run "$1" sh -c 'cat >/tmp/edit && chmod +x /tmp/edit && exec /tmp/edit "$@"' - "$2" edit <"$SB_T/edittree"
}

# apply LETTER [OPTION]: git apply of the patch in tree, as sb-diff(1) says: where
# a directory becomes a file (LETTER in the list), empty ones in it go first.
apply() {
	local d letter=$1
	shift
	for d in "${list[@]}"; do
		case $d in "$letter "*[!/]) d=tree/${d#??} ;; *) continue ;; esac
		[ ! -d "$d" ] || [ -L "$d" ] || find "$d" -mindepth 1 -depth -type d -empty -delete
	done
	[ ! -s patch ] || (cd tree && git apply --whitespace=nowarn "$@" ../patch 2>../apply.err)
}

# Two trees are the same, as git knows trees.
same_trees() {
	"$SB_T/treediff" -g "$1" "$2" >got
	[ ! -s got ] || fail "trees:" "$(tr '\0' '\n' <got | head -30)"
}

# step LETTER FROM TO [OPTION]: makes tree, which is what FROM shows, what TO
# shows, by the patch. What git cannot come to on disk it can do in an index.
step() {
	local letter=$1 from=$2 to=$3
	shift 3
	"$SB_T/treediff" -u "$from" "$to" >unreachable
	if [ ! -s unreachable ]; then
		apply "$letter" "$@" || fail "git apply $*: $(grep -a error apply.err)" || return
		same_trees tree "$to" || return
		applied=$((applied + 1))
		return
	fi
	! apply "$letter" --check "$@" || fail "git apply $* takes it after all" || return
	rm -rf repo out
	git init -q repo
	git --git-dir=repo/.git --work-tree=tree add -Af .
	git -C repo apply --whitespace=nowarn --cached "$@" ../patch
	mkdir out
	git -C repo checkout-index -a --prefix="$T/out/"
	same_trees out "$to" || return
	rm -rf tree
	mv out tree
	by_index=$((by_index + 1))
}

@test "git apply of the patch gives what the session shows, for random changes, and -R what it was" {
	need git overlay userns xattr
	seed=${SEED:-$((RANDOM * 32768 + RANDOM + 1))}
	sets=${SETS:-300}
	echo "# SEED=$seed SETS=$sets" >&3
	export GIT_CEILING_DIRECTORIES=$T GIT_CONFIG_NOSYSTEM=1
	changes=0 applied=0 by_index=0 s='' old=''
	for i in $(seq 0 $((sets - 1))); do
		# A base for eight sets; the third and sixth are published, and
		# the others remain in their session.
		if [ $((i % 8)) = 0 ]; then
			for x in $s $old; do sb-session-end "$x"; done
			[ ! -e ws ] || chmod -R u+rwX "$SB_STORE" "$XDG_CACHE_HOME"
			rm -rf "$SB_STORE" "$XDG_CACHE_HOME" ws tree
			mkdir ws
			(cd ws && "$SB_T/edittree" $((seed + i)) make)
			make_store
			cp -a ws tree
			s='' old=''
		fi
		if [ -z "$s" ]; then
			old=$(sb-session-new)
			s=$(sb-session-new)
			shown was "$old"
			shown is "$s"
		fi
		edit "$s" $((seed + i))
		sb-diff -z "$s" >list
		"$SB_T/treediff" "$was" "$is" >want
		cmp list want || fail "set $i: lists:" "$(tr '\0' '\n' <list | diff -a - <(tr '\0' '\n' <want) | head -30)"
		mapfile -d '' -t list <list
		changes=$((changes + ${#list[@]}))
		sb-diff "$s" >patch
		step A "$was" "$is" || fail "set $i"
		if [ $((i % 8)) = 2 ] || [ $((i % 8)) = 5 ]; then
			sb-publish "$s" >published
			sb-session-end "$old"
			s='' old=''
		else
			step D "$is" "$was" -R || fail "set $i"
		fi
	done
	echo "# $changes changes in $sets sets; $applied patches applied, there and back; $by_index by an index only" >&3
	[ "$changes" -gt $((sets * 3)) ]
	[ "$by_index" -le $((sets / 10)) ]
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
