# SPDX-License-Identifier: MIT
# What nobody should find in a store, found by every command that comes across
# it: the message names it, the exit code is that of sb-exit(7), nothing
# changes, and nothing crashes.
bats_require_minimum_version 1.5.0
load lib
load fault

setup() {
	sb_setup
	need overlay userns xattr
	# A store with one published layer $top and the parked session $s; the
	# lock files of a session are there once it was used.
	mkdir -p ws/d
	seq 20 >ws/f
	echo 1 >ws/d/g
	make_store
	a=$(sb-session-new)
	s=$(sb-session-new)
	sb-run "$a" sh -c 'sed -i s/^2$/theirs/ f; rm d/g'
	sb-publish "$a" >out
	sb-run "$s" sh -c 'sed -i s/^18$/mine/ f; echo n >n'
	sb-ns-kill "$s"
	top=$(sb-stack-show | head -n 1)
	ids "$top" B000001-base >"$T/ids"
	ids0 >"$T/none"
	sb-layer-scan "$SB_STORE/workspace/$s/upper" | sb-change-route >"$T/changes"
	S=$SB_STORE/layer-stack W=$SB_STORE/workspace
	L=$W/$s
	keep_template
	new_round
}

teardown() {
	[ ! -d "$SB_STORE/workspace" ] || chattr -R -i "$SB_STORE/workspace" 2>/dev/null || :
	# What was damaged is not there to be ended.
	[ ! -d "$T/orig" ] || { stop_all && new_round; }
	sb_teardown
}

# Ends what runs, whatever the store looks like.
stop_all() {
	local pid
	for pid in $(our_processes "$SB_STORE"); do kill -KILL "$pid" 2>/dev/null || :; done
}

# All of the store: kinds, modes, sizes, links, contents, xattrs; but for the
# file hold and the directory work, which a start that fails may touch, and the
# account of what was tried.
state() {
	(
		cd "$SB_STORE" || exit
		find . \( -path './workspace/*/work' -o -path './workspace/*/hold' -o -path ./observability \) -prune -o -printf '%P %y %m %s %l\n' |
		    sed -E 's/^(.* d [0-7]+) [0-9]+/\1/' | LC_ALL=C sort
		# Paths may be too long for these.
		find . \( -path './workspace/*/work' -o -path ./observability \) -prune -o -type f ! -name hold -print0 | LC_ALL=C sort -z |
		    xargs -0 sha256sum 2>&1 || :
		getfattr -R -h -d -m '^user\.' . 2>/dev/null || :
	)
}

# refused CODE TEXT PROG…: PROG, which reads $in, ends with CODE, says TEXT and
# has changed nothing. CODE may be a pattern.
refused() {
	local code=$1 text=$2 rc=0
	shift 2
	[ -n "${before:-}" ] || before=$(state)
	timeout 60 "$@" <"${in:-$T/none}" >out 2>err || rc=$?
	# shellcheck disable=SC2254 # a pattern
	case $rc in
	$code) ;;
	*) fail "$what: $*: exit $rc, not $code: $(cat err)" ;;
	esac || return
	case $(cat err) in
	*"$text"*) ;;
	*) fail "$what: $*: does not say \"$text\": $(cat err)" ;;
	esac || return
	case $(head -n 1 out) in
	'{"error":'*) ;;
	*[0-9a-zA-Z]*) [ -n "${prints:-}" ] || [ "$rc" = 2 ] || fail "$what: $*: prints $(head -c 300 out)" || return ;;
	esac
	[ "$(state)" = "$before" ] || fail "$what: $*: changed $(diff <(echo "$before") <(state))"
}

# damage NAME PROG…: a fresh store, then PROG.
damage() {
	what=$1
	shift
	stop_all
	new_round
	"$@"
	before=
}

# works PROG…: PROG succeeds in spite of it.
works() {
	local rc=0
	"$@" >out 2>err || rc=$?
	[ $rc = 0 ] || fail "$what: $*: exit $rc: $(cat err)"
}

put() { rm -rf "$1"; cat >"$1"; }			# content of file $1
replace() {						# what file
	rm -rf "$2"
	case $1 in
	directory) mkdir "$2" ;;
	link) ln -s /etc/passwd "$2" ;;
	dangling) ln -s nowhere "$2" ;;
	fifo) mkfifo "$2" ;;
	empty) : >"$2" ;;
	zeros) head -c 4096 /dev/zero >"$2" ;;
	garbage) head -c 3000 /dev/urandom >"$2" ;;
	huge) truncate -s 65M "$2" ;;
	missing) ;;
	*) fail "replace $1" ;;
	esac
}

# ---- the manifest ----

# Everything that has to read the manifest.
manifest_refused() {
	refused 111 manifest.json sb-stack-show
	refused 111 manifest.json sb-stack-version
	refused 111 manifest.json sb-stack-unused
	refused 111 manifest.json sb-stack-lease work touch "$T/ran"
	[ ! -e ran ]
	refused 111 manifest.json sb-session-new
	refused 111 manifest.json sb-publish "$s"
	refused 1[01][01] manifest.json sb-base-import ws
	in=$T/none refused 111 manifest.json sb-layer-rm
	in=$T/ids refused 111 manifest.json sb-stack-swap 2
	in=$T/changes refused 111 manifest.json sb-layer-commit -C "$L/upper"
	# A session has its own list, and layers are found by their names.
	in=$T/ids works sb-layer-check <"$T/ids"
	works sb-diff "$s"
	is "$(sb-run "$s" cat n)" n
	works sb-session-end "$s"
}

@test "a manifest cut at any byte is refused" {
	local n size rc
	size=$(stat -c %s "$S/manifest.json")
	for ((n = 0; n < size; n++)); do
		head -c "$n" "$T/orig/layer-stack/manifest.json" >"$S/manifest.json"
		rc=0
		sb-stack-show >out 2>err || rc=$?
		is "$n $rc $(cat out)" "$n 111 "
		has "$(cat err)" manifest.json
	done
}

@test "a manifest that is something else than a file is refused by all that read it" {
	local kind
	for kind in directory link fifo empty zeros garbage huge missing; do
		damage "manifest: $kind" replace $kind "$S/manifest.json"
		manifest_refused
	done
}

@test "a manifest that says what it may not is refused by all that read it" {
	local line edit
	while IFS= read -r line; do
		edit() { sed -i "$line" "$S/manifest.json"; }
		damage "manifest: $line" edit
		! cmp -s "$S/manifest.json" orig/layer-stack/manifest.json || fail "$line does nothing"
		manifest_refused
	done <<-EOT
		s/"schema_version": 1/"schema_version": 2/
		s/"schema_version": 1/"schema_version": "1"/
		s/"version": 2\$/"version": 18446744073709551615/
		s/"version": 2\$/"version": 9223372036854775808/
		s/"version": 2\$/"version": 1e400/
		s/"version": 2\$/"version": -2/
		s/"version": 2\$/"version": 2.5/
		s/"version": 2\$/"version": "2"/
		s/"version": 2\$/"version": 02/
		s/"version": 2\$/"size": 2/
		s/"layers": \[/"layers": [17,/
		s/"layers"/"players"/
		s/B000001-base/$top/g
		s/"layer_id": "$top"/"layer_id": ""/
		s/"layer_id": "$top"/"layer_id": "..\/$top"/
		s/"layer_id": "$top"/"layer_id": ".hidden"/
		s/"layer_id": "$top"/"layer_id": "a\\\\u0000b"/
		s/"layer_id": "$top"/"layer_id": 7/
		s/"path": "layers\//"path": "layers\/..\/..\//
		s/"path": "layers\//"path": "\/layers\//
		s/"path": "layers\/$top"/"path": ""/
		s/"path": "layers\/$top"/"path": "layers\/\\\\u0000$top"/
		s/\$/\\x00/
		s/layers/\\xff/
		\$s/\$/ x/
	EOT
}

@test "a manifest that names a layer which is not there is refused by all that need it" {
	edit() { sed -i "s/$top/L000009-99999999/g" "$S/manifest.json"; }
	damage "a missing layer" edit
	refused 111 L000009-99999999 sb-session-new
	refused 111 L000009-99999999 sb-publish "$s"
	sb-stack-show >list
	in=list prints=1 refused 1 L000009-99999999 sb-layer-check
	in=list refused 111 L000009-99999999 sb-layer-list
	in=list refused 111 L000009-99999999 sb-layer-cat f
	in=list refused 100 L000009-99999999 sb-stack-swap 2
	is "$(sb-run "$s" cat n)" n
}

# ---- a session ----

@test "a session whose lease is damaged: named, not published, not run, nothing collected; it can be ended" {
	local kind
	cut() { head -c 100 "$T/orig/workspace/$s/lease" >"$L/lease"; }
	twice() { sed -i 's/"layers": \[\({*\)/"layers": [{"layer_id": "B000001-base", "path": "base"},\1/' "$L/lease"; }
	up() { sed -i 's/base\//..\//' "$L/lease"; }
	for kind in directory link fifo empty zeros garbage huge missing cut twice up; do
		case $kind in
		cut | twice | up) damage "lease: $kind" $kind ;;
		*) damage "lease: $kind" replace $kind "$L/lease" ;;
		esac
		refused 111 lease sb-publish "$s"
		refused 111 lease sb-run "$s" touch "$T/ran"
		[ ! -e ran ]
		refused 111 lease sb-diff "$s"
		refused 111 lease sb-stack-show -l "$L/lease"
		refused 111 "workspace/$s/lease" sb-stack-unused
		refused 111 "workspace/$s/lease" sb-layer-rm
		prints=1 refused 0 lease sb-session-ls -v
		has "$(cat out)" '"manifest_version":null'
		works sb-session-end "$s"
		is "$(ls -A "$W")" ""
		works sb-stack-unused
	done
}

@test "a session whose lease names a layer that is not there: named, nothing changed" {
	edit() { sed -i "s/B000001-base/L000001-11111111/" "$L/lease"; }
	damage "a missing layer" edit
	refused 111 L000001-11111111 sb-publish "$s"
	refused 111 L000001-11111111 sb-run "$s" true
	refused 111 L000001-11111111 sb-diff "$s"
	works sb-session-end "$s"
}

@test "a damaged file hold of a parked session: nobody lives, and it is made anew" {
	local kind
	zero() { echo 0 0 >"$L/hold"; }
	far() { echo 99999999999 1 >"$L/hold"; }
	part() { printf '1 ' >"$L/hold"; }
	for kind in directory link fifo garbage zero far part; do
		case $kind in
		zero | far | part) damage "hold: $kind" $kind ;;
		fifo) damage "hold: fifo" replace fifo "$L/hold" ;;
		*) damage "hold: $kind" replace $kind "$L/hold" ;;
		esac
		works sb-ns-kill "$s"
		if [ $kind = directory ]; then
			run -111 sb-run "$s" touch "$T/ran"
			has "$output" "workspace/$s/hold"
			[ ! -e ran ]
		fi
		works sb-diff "$s"
		works sb-session-ls -v
		has "$(cat out)" '"state":"parked"'
		[ $kind != directory ] || rmdir "$L/hold"
		is "$(sb-run "$s" cat n)" n
		works sb-publish "$s"
	done
}

@test "an empty hold, which a crash of the machine may leave, names nobody" {
	local kind
	for kind in empty zeros missing; do
		truncated() { if [ $kind = zeros ]; then head -c 12 /dev/zero >"$L/hold"; else replace $kind "$L/hold"; fi; }
		damage "hold: $kind" truncated
		works sb-ns-kill "$s"
		is "$(sb-run "$s" cat n)" n
		sb-ns-kill "$s"
		truncated
		works sb-publish "$s"
		is "$(sb-stack-show | sb-layer-cat n)" n
	done
}

@test "a gate or a lock that is something else than a file: named, nothing changed" {
	local name kind
	for name in gate gate.turn; do
		for kind in directory link dangling; do
			damage "$name: $kind" replace $kind "$L/$name"
			refused 111 "$s" sb-publish "$s"
			has "$(cat err)" gate
			refused 111 "workspace/$s/gate" sb-run "$s" touch "$T/ran"
			refused 111 "workspace/$s/gate" sb-session-gate "$s" touch "$T/ran"
			refused 111 "workspace/$s/gate" sb-session-end "$s"
			[ ! -e ran ]
			works sb-diff "$s"
			works sb-session-ls -v
		done
	done
	for kind in directory link dangling; do
		damage "lock: $kind" replace $kind "$L/lock"
		refused 111 "workspace/$s/lock" sb-run "$s" touch "$T/ran"
		[ ! -e ran ]
		refused 111 "workspace/$s/lock" sb-session-end "$s"
		works sb-diff "$s"
		rm -rf "$L/lock"
		works sb-publish "$s"
	done
	# No command ever waits for somebody to open the other end.
	for name in gate gate.turn lock hold lease; do
		damage "$name: fifo" replace fifo "$L/$name"
		for prog in sb-publish sb-diff sb-session-end; do
			rc=0
			timeout 20 $prog "$s" >out 2>err || rc=$?
			case $rc in 0 | 1 | 111) ;; *) fail "$what: $prog: exit $rc: $(cat err)" ;; esac
		done
	done
	[ ! -s /etc/passwd ] || [ "$(head -c 4 /etc/passwd)" = root ]
}

@test "an upper that is a link, a file or missing: named, not followed, nothing changed" {
	local kind
	mkdir elsewhere
	echo secret >elsewhere/secret
	for kind in link file missing; do
		change() {
			rm -rf "$L/upper"
			case $kind in
			link) ln -s "$T/elsewhere" "$L/upper" ;;
			file) echo x >"$L/upper" ;;
			esac
		}
		damage "upper: $kind" change
		refused 111 upper sb-publish "$s"
		refused 111 upper sb-run "$s" touch "$T/ran"
		refused 111 upper sb-diff "$s"
		[ ! -e ran ]
		works sb-session-end "$s"
	done
	is "$(ls elsewhere)" secret
	for name in work merged; do
		for kind in link file missing; do
			change() {
				rm -rf "${L:?}/$name"
				case $kind in
				link) ln -s "$T/elsewhere" "$L/$name" ;;
				file) echo x >"$L/$name" ;;
				esac
			}
			damage "$name: $kind" change
			refused 111 "$name" sb-run "$s" touch "$T/ran"
			[ ! -e ran ]
			# A session that does not run needs none of them.
			works sb-publish "$s"
			is "$(ls -A "$W")" ""
		done
	done
	for kind in link file; do
		change() { if [ $kind = link ]; then ln -s "$T/elsewhere" "$L/merge"; else echo x >"$L/merge"; fi; }
		damage "merge: $kind" change
		works sb-publish "$s"
	done
	is "$(ls elsewhere)" secret
}

# ---- uppers ----

# upper PROG: the upper of session $s is what PROG makes in it.
upper() {
	rm -rf "$L/upper"
	mkdir "$L/upper"
	(cd "$L/upper" && "$@")
}

@test "special files in an upper are skipped and named, the rest is published" {
	make() {
		mkdir d
		mkfifo p d/p
		"$SB_T/mksocket" sock
		echo x >x
		[ "$(id -u)" != 0 ] || { mknod b b 7 0 && mknod c c 1 3; }
	}
	damage "special files" upper make
	works sb-publish "$s"
	for name in p d/p sock; do has "$(cat out)" "{\"path\":\"$name\",\"reason\":\"unsupported_special_file\"}"; done
	[ "$(id -u)" != 0 ] || for name in b c; do has "$(cat out)" "{\"path\":\"$name\",\"reason\""; done
	sb-stack-show | sb-layer-check
	is "$(sb-stack-show | sb-layer-list -r | tr '\0' '\n' | cut -f2 | tr '\n' ' ')" "d f x  "
}

@test "whiteouts in odd places delete nothing that is not there, and publish" {
	make() {
		mkdir new op
		mknod new/x c 0 0
		mknod nothing c 0 0
		setfattr -n user.overlay.opaque -v y op
		mknod op/y c 0 0
		: >empty
		setfattr -n user.overlay.whiteout -v y empty
	}
	damage whiteouts upper make
	works sb-publish "$s"
	sb-stack-show | sb-layer-check
	is "$(sb-stack-show | sb-layer-list -r | tr '\0' '\n' | cut -f2 | tr '\n' ' ')" "d f new op  "
	t=$(sb-session-new)
	is "$(sb-run "$t" sh -c 'find * | sort | tr "\n" " "')" "d f new op "
}

@test "names beginning .wh. are refused in whatever form, and stay in the session" {
	local kind
	for kind in file device directory link below; do
		make() {
			case $kind in
			file) echo x >.wh.f ;;
			device) mknod .wh.f c 0 0 ;;
			directory) mkdir .wh.f ;;
			link) ln -s x .wh.f ;;
			below) mkdir e && : >e/.wh..wh..opq ;;
			esac
			echo good >good
		}
		damage ".wh. $kind" upper make
		prints=1 refused 2 .wh. sb-publish "$s"
		has "$(cat out)" '"reason":"protected_path"'
		# Mended, it is published.
		rm -rf "$L/upper/.wh.f" "$L/upper/e"
		works sb-publish "$s"
		is "$(sb-stack-show | sb-layer-cat good)" good
	done
}

@test "only the value y makes a directory opaque" {
	local value
	for value in x yy Y '' 0 $'y\n' 'y '; do
		make() {
			mkdir d
			echo n >d/n
			chmod 755 d
			setfattr -n user.overlay.opaque -v "0x$(printf %s "$value" | od -An -tx1 | tr -d ' \n')" d
		}
		damage "opaque $value" upper make
		# What head has in d stays: there is d/k by now.
		t=$(sb-session-new)
		sb-run "$t" sh -c 'echo k >d/k'
		sb-publish "$t" >out
		works sb-publish "$s"
		is "$(sb-stack-show | sb-layer-cat d/k) $(sb-stack-show | sb-layer-cat d/n)" "k n"
	done
}

@test "set-user-ID and sticky bits, xattrs and times come through as they are" {
	make() {
		echo x >su
		chmod 6755 su
		mkdir sd
		chmod 3770 sd
		setfattr -n user.a -v "$(printf '%01000d' 0)" su
		touch -d @1000000000.123456789 su
	}
	damage modes upper make
	works sb-publish "$s"
	x=$S/layers/$(sb-stack-show | head -n 1)
	is "$(stat -c '%a %y' "$x/su" "$x/sd" | cut -c1-40 | head -n 1)" "6755 2001-09-09 01:46:40.123456789 +0000"
	is "$(stat -c %a "$x/sd")" 3770
	is "$(getfattr --only-values -n user.a "$x/su" | wc -c)" 1000
}

@test "a file that nobody may remove is published; the rest of the session waits" {
	need root
	make() {
		mkdir e
		echo fixed >e/im
		chattr +i e/im 2>/dev/null || skip "no immutable files here"
	}
	damage immutable upper make
	rc=0
	sb-publish "$s" >out 2>err || rc=$?
	is $rc 111
	has "$(cat err)" "Operation not permitted"
	has "$(cat out)" '"destroyed":false'
	is "$(sb-stack-show | sb-layer-cat e/im)" fixed
	sb-stack-show | sb-layer-check
	is "$(sb-session-ls)" ""
	chattr -R -i "$W"
	sb-session-end "$(sb-session-new)"
	is "$(ls -A "$W")" ""
}

@test "any name of any length comes through: newline, not UTF-8, 255 bytes, 4095 bytes of path" {
	local long
	long=$(printf '%0255d' 0)
	make() {
		echo 1 >"$long"
		echo 2 >$'nl\n\x01'
		echo 3 >$'bad\xff\xfe'
		ln -s $'t\n\xff' $'l\xff'
		mkdir -- $'-rf *' $'\xc3'
		mkfifo $'p\xff'
		# 19 directories of 200 bytes and what makes 4095 with the last.
		local c
		c=$(printf '%0199d' 1)
		(for _ in {1..20}; do mkdir "$c" && cd -P "$c" || exit; done
		    echo deep >"$(printf '%095d' 2)")
	}
	damage names upper make
	sb-layer-scan "$L/upper" | tr '\0' '\n' | grep -a deep || :
	listing "$L/upper" | grep -v fifo >want
	works sb-publish "$s"
	has "$(cat out)" "{\"path_b64\":\"cP8=\",\"reason\""
	sb-stack-show | sb-layer-check
	x=$S/layers/$(sb-stack-show | head -n 1)
	listing "$x" >got
	same got want
	t=$(sb-session-new)
	is "$(sb-run "$t" cat $'nl\n\x01' $'bad\xff\xfe' "$long" | tr '\n' ' ')" "2 3 1 "
}

@test "a path that is too long is named, with the limit, and nothing changed" {
	make() {
		perl -e 'for (1 .. 21) { mkdir "x" x 199; chdir "x" x 199 or die }'
	}
	damage "a long path" upper make
	refused 100 "longer than 4095 bytes" sb-publish "$s"
	refused 100 "longer than 4095 bytes" sb-diff "$s"
	works sb-session-end "$s"
	is "$(ls -A "$W")" ""
}

@test "a tree of 2000 levels is published, checked and seen" {
	make() { mkdir -p "$(printf 'x/%.0s' {1..2000})" && echo deep >"$(printf 'x/%.0s' {1..2000})f"; }
	damage "a deep tree" upper make
	works sb-diff -n "$s"
	works sb-publish "$s"
	has "$(cat out)" '"source_count":2001'
	sb-stack-show | sb-layer-check
	t=$(sb-session-new)
	is "$(sb-run "$t" sh -c 'find x | wc -l')" 2001
}

# ---- layers ----

@test "a layer removed or replaced behind our back: named, not followed, nothing changed" {
	local kind
	mkdir elsewhere
	echo secret >elsewhere/f
	for kind in missing file link; do
		change() {
			rm -rf "$S/layers/$top"
			case $kind in
			file) echo x >"$S/layers/$top" ;;
			link) ln -s "$T/elsewhere" "$S/layers/$top" ;;
			esac
		}
		damage "layer: $kind" change
		refused 111 "$top" sb-session-new
		refused 111 "$top" sb-publish "$s"
		in=$T/ids refused 111 "$top" sb-layer-list -r
		in=$T/ids refused 111 "$top" sb-layer-cat f
		in=$T/ids prints=1 refused 1 "$top" sb-layer-check
		in=$T/ids refused 1[01][01] "$top" sb-stack-swap 2
		# What is named by head is not forgotten because it cannot be seen.
		refused 0 "" sb-layer-rm
		works sb-diff "$s"
		is "$(sb-run "$s" cat n)" n
	done
	is "$(cat elsewhere/f)" secret
}

@test "a base that is gone, or not ours: named, not followed, nothing changed" {
	local kind
	mkdir -p elsewhere/B000001-base
	echo secret >elsewhere/B000001-base/f
	for kind in missing dangling file foreign; do
		[ $kind != foreign ] || [ "$(id -u)" = 0 ] || continue
		change() {
			rm "$S/base"
			case $kind in
			dangling) ln -s nowhere "$S/base" ;;
			file) echo x >"$S/base" ;;
			foreign)
				chown -R 1234 "$T/elsewhere"
				ln -s "$T/elsewhere" "$S/base"
				;;
			esac
		}
		damage "base: $kind" change
		refused 111 B000001-base sb-session-new
		refused 111 B000001-base sb-publish "$s"
		refused 111 B000001-base sb-diff "$s"
		refused 111 B000001-base sb-run "$s" touch "$T/ran"
		[ ! -e ran ]
		in=$T/ids refused 111 B000001-base sb-layer-list -r
		in=$T/ids refused 111 B000001-base sb-layer-cat f
		in=$T/ids prints=1 refused 1 B000001-base sb-layer-check
		in=$T/ids refused 1[01][01] B000001-base sb-stack-swap 2
		refused 1[01][01] base sb-base-import ws
	done
}

@test "a forged, damaged or missing digest is found" {
	local kind
	for kind in empty zeros garbage huge directory link fifo missing; do
		damage "digest: $kind" replace $kind "$S/.layer-metadata/$top.digest"
		in=$T/ids prints=1 refused 1 "$top" sb-layer-check
		is "$(cat out)" "$(ids "$top")"
		works sb-stack-show
	done
	change() { tr 0-9a-f 1-9a-f0 <"$T/orig/layer-stack/.layer-metadata/$top.digest" >"$S/.layer-metadata/$top.digest"; }
	damage "digest: forged" change
	in=$T/ids prints=1 refused 1 "$top" sb-layer-check
	damage "content" sed -i s/theirs/THEIRS/ "$S/layers/$top/f"
	in=$T/ids prints=1 refused 1 "$top" sb-layer-check
	damage "an entry more" touch "$S/layers/$top/more"
	in=$T/ids prints=1 refused 1 "$top" sb-layer-check
}

# ---- the rest of a store ----

@test "a directory of the store that is missing or no directory: named or made again, and sb-store-init mends it" {
	local dir kind rc prog
	for dir in layers staging queue leases .layer-metadata meta history; do
		[ -d "orig/layer-stack/$dir" ] || [ "$dir" != history ] || continue
		for kind in missing link file; do
			change() {
				rm -rf "${S:?}/$dir"
				case $kind in
				link) mkdir -p "$T/elsewhere" && ln -s "$T/elsewhere" "$S/$dir" ;;
				file) echo x >"$S/$dir" ;;
				esac
			}
			for prog in "sb-publish $s" sb-session-new sb-stack-unused sb-layer-rm "sb-stack-lease work true" sb-stack-show; do
				damage "$dir: $kind" change
				before=$(state)
				rc=0
				# shellcheck disable=SC2086 # words
				$prog <"$T/none" >out 2>err || rc=$?
				case $rc in
				0) ;;
				111)
					has "$(cat err)" "$(echo "$dir" | sed 's/s$//; s/^\.//')" ||
					    fail "$what: $prog: $(cat err)"
					sweep_publish
					[ "$(state)" = "$before" ] || fail "$what: $prog: changed $(diff <(echo "$before") <(state))"
					;;
				*) fail "$what: $prog: exit $rc: $(cat err)" ;;
				esac
			done
			[ "$kind" = missing ] && [ "$dir" != layers ] && [ "$dir" != .layer-metadata ] || continue
			damage "$dir: $kind" change
			works sb-store-init
			works sb-publish "$s"
			sb-stack-show | sb-layer-check
			echo | sb-layer-rm >out
		done
	done
	damage "workspace: missing" rm -rf "$W"
	for prog in sb-session-new sb-session-ls "sb-publish $s" "sb-diff $s" "sb-run $s true" "sb-session-end $s"; do
		# shellcheck disable=SC2086 # words
		refused 111 "$W" $prog
	done
	works sb-store-init
	works sb-session-new
}

# A publish that was refused late leaves a lease and a layer for the next sweep.
sweep_publish() {
	local id
	for id in leases layers meta .layer-metadata; do
		[ -d "$S/$id" ] && [ ! -L "$S/$id" ] || return 0
	done
	rm -rf "$S"/leases/publish-*
	for id in $(cd "$S/layers" && ls -d L0*); do
		[ -e "orig/layer-stack/layers/$id" ] || rm -rf "$S/layers/$id" "$S/.layer-metadata/$id".* "$S/meta/$id".*
	done
}

@test "foreign files and directories in a store are left alone, and in nobody's way" {
	local dir
	change() {
		for dir in . layers staging queue leases .layer-metadata meta history ../workspace ..; do
			[ ! -d "$S/$dir" ] || echo mine >"$S/$dir/foreign"
		done
	}
	damage "foreign files" change
	find "$SB_STORE" -name foreign | sort >want
	[ "$(wc -l <want)" -ge 8 ]
	works sb-session-new
	t=$(cat out)
	is "$(sb-session-ls | sort)" "$(ids "$s" "$t" | sort)"
	is "$(sb-run "$s" cat n)" n
	works sb-diff "$s"
	works sb-publish "$s"
	works sb-session-end "$t"
	works sb-stack-lease work true
	is "$(sb-stack-unused)" ""
	sb-stack-unused | sb-layer-rm
	sb-stack-show | sb-layer-check
	works sb-store-init
	works sb-stack-version
	find "$SB_STORE" -name foreign | sort >got
	diff want got
}

@test "a binding that is damaged or missing: named, nothing changed" {
	local kind
	relative() { sed -i 's/"workspace_root": "[^"]*"/"workspace_root": "ws"/' "$S/workspace.json"; }
	for kind in directory link fifo empty zeros garbage huge missing relative; do
		case $kind in
		relative) damage "binding: $kind" relative ;;
		*) damage "binding: $kind" replace $kind "$S/workspace.json" ;;
		esac
		refused 111 workspace.json sb-session-new
		refused 111 workspace.json sb-run "$s" touch "$T/ran"
		[ ! -e ran ]
		[ $kind = relative ] || refused 1[01][01] workspace.json sb-base-import ws
		works sb-diff "$s"
		works sb-publish "$s"
	done
}

@test "what is no store at all is named by every command" {
	local prog kind
	mkdir empty
	echo x >file
	for kind in missing file relative unset empty; do
		for prog in sb-stack-show sb-stack-version sb-stack-unused "sb-stack-lease work true" "sb-stack-swap 1" \
		    sb-layer-check "sb-layer-list" "sb-layer-cat f" sb-layer-rm sb-layer-commit sb-session-new sb-session-ls \
		    "sb-session-end $s" "sb-session-gate $s true" "sb-run $s true" "sb-publish $s" "sb-diff $s" \
		    "sb-ns-kill $s" "sb-ns-enter $s true" "sb-ns-hold $s true" "sb-base-import ws"; do
			case $kind in
			missing) x=$T/none/such ;;
			file) x=$T/file ;;
			relative) x=store ;;
			unset) x='' ;;
			empty) x=$T/empty ;;
			esac
			in=$T/ids
			case $prog in sb-layer-rm | sb-layer-commit) in=$T/none ;; esac
			[ "$prog" != sb-layer-commit ] || in=$T/changes
			rc=0
			# shellcheck disable=SC2086 # words
			SB_STORE=$x timeout 20 $prog <"$in" >out 2>err || rc=$?
			case $kind,$rc in
			missing,111 | file,111 | empty,111) has "$(cat err)" "$x" ;;
			relative,100 | unset,100) has "$(cat err)" SB_STORE ;;
			# It makes or refuses what it was given.
			*,100) case $prog in sb-base* | sb-layer-commit) ;; *) fail "$kind: $prog: exit $rc: $(cat err)" ;; esac ;;
			*) fail "$kind: $prog: exit $rc: $(cat err)" ;;
			esac || return
		done
	done
	is "$(ls -A empty)" ""
	is "$(cat file)" x
}
