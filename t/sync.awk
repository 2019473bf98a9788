# SPDX-License-Identifier: MIT
# awk -v stack=/…/layer-stack -f t/sync.awk TRACE: reads what
#	strace -f -y -o TRACE PROG…
# wrote, and says what was not synced when it had to be. Exit 1 then, and also
# when the trace shows no layer, no manifest or no answer at all.
#
# Every file or directory that is made, written, linked, renamed or given other
# attributes is unsynced until fsync(2) of itself succeeds; and so is the
# directory that got or lost a name. What has to be synced when:
#   a layer becomes visible (a rename to layers/ID): everything in its tree,
#	its files in .layer-metadata/ and meta/, and these directories;
#   manifest.json is replaced: the new one, and everything in layers/, meta/,
#	.layer-metadata/, history/, and the directory of the stack;
#   an answer is given (a write to descriptor 1): the same, manifest.json too.
# Exceptions: ID.bytes (only statistics read it); locks, leases and tickets of
# the queue (they end with the machine); names that end in .tmp, which are
# renamed or nobody reads; what is in staging/ and not renamed. Symbolic links
# and whiteouts cannot be synced by themselves: their directory stands for them.
#
# A call that is not known here and names something in the stack is an error,
# so that no change can pass unseen.

BEGIN {
	reads = " access readlink readlinkat newfstatat fstatat fstat statx" \
	    " lstat stat statfs fstatfs read pread64 readv lseek getdents64" \
	    " close close_range dup dup2 dup3 fcntl flistxattr llistxattr" \
	    " listxattr fgetxattr lgetxattr getxattr mmap munmap mprotect poll" \
	    " ppoll fadvise64 sync_file_range fchdir chdir execve faccessat" \
	    " faccessat2 fdatasync getcwd pidfd_open lstat name_to_handle_at" \
	    " inotify_add_watch flock splice vmsplice socket connect sendto "
	by_fd = " write pwrite64 writev ftruncate fallocate fchmod fchown" \
	    " fsetxattr fremovexattr ioctl sendfile "
	by_name = " fchmodat fchownat utimensat setxattr lsetxattr" \
	    " removexattr lremovexattr chmod chown lchown truncate "
}

function parent(p) { sub(/\/[^\/]*$/, "", p); return p }
function base(p) { sub(/.*\//, "", p); return p }
function below(p, dir) { return p == dir || index(p, dir "/") == 1 }

# The path behind a descriptor as strace shows it: 5</path>
function path_of(arg) {
	if (!match(arg, /^[0-9A-Z_]+<[^>]*>/))
		return arg ~ /^AT_FDCWD/ ? ENVIRON["PWD"] : ""
	arg = substr(arg, 1, RLENGTH - 1)
	sub(/^[^<]*</, "", arg)
	sub(/ \(deleted\)$/, "", arg)
	return arg
}

function name_of(arg) { gsub(/^"|"$/, "", arg); return arg }

function at(dir, arg,  name) {
	name = name_of(arg)
	dir = path_of(dir)
	if (name ~ /^\//)
		return name
	return name == "" || name == "." ? dir : dir "/" name
}

function canon(p) { return p in first ? first[p] : p }

function excepted(p) {
	if (p ~ /\/\.layer-metadata\/[^\/]*\.bytes$/ || p ~ /\.tmp$/)
		return 1
	return below(p, stack) && base(p) ~ /\.lock(\.[0-9]+)?$/
}

function watched(p) {
	if (excepted(p))
		return 0
	return p == stack || p == stack "/manifest.json" ||
	    below(p, stack "/layers") || below(p, stack "/meta") ||
	    below(p, stack "/.layer-metadata") || below(p, stack "/history")
}

# p itself has changed; its directory has.
function changed(p) {
	p = canon(p)
	if (below(p, stack) && (!excepted(p) || p ~ /\.tmp$/) && !(p in single))
		unsynced[p] = NR ": " $2
}
function named(p) {
	if (!excepted(p))
		changed(parent(p))
}

function complain(when, p) {
	printf "%d: %s, but this is not synced since line %s: %s\n", NR, when,
	    unsynced[p], substr(p, length(stack) + 2)
	bad = 1
}

function all_synced(when,  p) {
	for (p in unsynced)
		if (watched(p))
			complain(when, p)
}

# Has p to be synced before the layer whose tree is from is called id?
function belongs(p, from, id,  dir) {
	if (below(p, from) || p == stack)
		return 1
	dir = "/\\.layer-metadata$|/meta$"
	return p ~ dir || (parent(p) ~ dir && index(base(p), id ".") == 1)
}

# What a rename shows to others, looked at before it is made.
function look_at_rename(from, to,  p) {
	if (to == stack "/manifest.json") {
		manifests++
		if (from in unsynced)
			complain("the manifest is replaced", from)
		all_synced("the manifest is replaced")
	}
	if (parent(to) != stack "/layers")
		return
	layers++
	for (p in unsynced)
		if (belongs(p, from, base(to)) && !excepted(p))
			complain("a layer becomes visible", p)
}

function move(from, to,  p, q, keys, n, i) {
	for (p in unsynced)
		if (below(p, from))
			keys[++n] = p
	for (i = 1; i <= n; i++) {
		q = to substr(keys[i], length(from) + 1)
		unsynced[q] = unsynced[keys[i]]
		delete unsynced[keys[i]]
	}
	named(from)
	named(to)
}

function early(call, a) {
	if (call ~ /^rename/)
		look_at_rename(at(a[1], a[2]), at(a[3], a[4]))
	else if (call == "write" && a[1] ~ /^1</ && !below(path_of(a[1]), stack)) {
		answers++
		all_synced("an answer is given")
	}
}

function late(call, a, n, result,  p, i) {
	if (call == "openat" || call == "openat2") {
		if (a[3] a[4] !~ /O_CREAT|O_TRUNC/)
			return
		p = path_of(result)
		changed(p)
		if (a[3] a[4] ~ /O_CREAT/)
			named(p)
	} else if (call == "mkdirat" || call == "symlinkat" || call == "mknodat") {
		p = call == "symlinkat" ? at(a[2], a[3]) : at(a[1], a[2])
		if (call == "mkdirat")
			changed(p)
		else
			single[p] = 1
		named(p)
	} else if (call == "linkat") {
		p = at(a[3], a[4])
		first[p] = canon(at(a[1], a[2]))
		changed(p)
		named(p)
	} else if (call == "unlinkat") {
		p = at(a[1], a[2])
		delete unsynced[p]
		delete single[p]
		delete first[p]
		named(p)
	} else if (call ~ /^renameat/) {
		move(at(a[1], a[2]), at(a[3], a[4]))
	} else if (call == "fsync") {
		p = path_of(a[1])
		if (below(p, stack))
			syncs++
		delete unsynced[canon(p)]
	} else if (call == "copy_file_range") {
		changed(path_of(a[3]))
	} else if (index(by_fd, " " call " ")) {
		if (call != "ioctl" || a[2] ~ /FICLONE/)
			changed(path_of(a[1]))
	} else if (index(by_name, " " call " ")) {
		if (a[2] == "NULL" || a[2] == "\"\"")
			p = path_of(a[1])
		else
			p = at(a[1], a[2])
		if (p in single)
			changed(parent(p))
		changed(p)
	} else if (!index(reads, " " call " ")) {
		for (i = 1; i <= n; i++)
			if (below(path_of(a[i]), stack) || below(name_of(a[i]), stack)) {
				printf "%d: %s changes nothing that is known here\n", NR, call
				bad = 1
			}
	}
}

function parse(line,  pid) {
	sub(/^[0-9]+ +/, "", line)
	sub(/^[0-9]+\.[0-9]+ /, "", line)
	call = line
	sub(/\(.*/, "", call)
	result = line
	sub(/.*\) += /, "", result)
	sub(/^[^(]*\(/, "", line)
	sub(/\) += [^=]*$/, "", line)
	gsub(/ <unfinished \.\.\.>$/, "", line)
	nargs = split(line, args, /, /)
}

/ \+\+\+ | --- / { next }
/<unfinished \.\.\.>$/ {
	begun[$1] = $0
	parse($0)
	early(call, args)
	next
}
/^[0-9]+ +<\.\.\. [a-z0-9_]+ resumed>/ {
	rest = $0
	sub(/^[0-9]+ +<\.\.\. [a-z0-9_]+ resumed>/, "", rest)
	sub(/ <unfinished \.\.\.>$/, "", begun[$1])
	parse(begun[$1] rest)
	if (result !~ /^-1|^\?/)
		late(call, args, nargs, result)
	next
}
{
	parse($0)
	if (result ~ /^-1|^\?/)
		next
	early(call, args)
	late(call, args, nargs, result)
}

END {
	if (!layers || !manifests || !answers) {
		print "the trace shows " layers + 0 " layers, " manifests + 0 \
		    " manifests, " answers + 0 " answers"
		bad = 1
	}
	printf "# %d syncs, %d layers, %d manifests, %d answers\n", syncs,
	    layers, manifests, answers
	exit bad
}
