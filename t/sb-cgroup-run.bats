# SPDX-License-Identifier: MIT
bats_require_minimum_version 1.5.0
load lib

# Groups belong to the machine: no other test has this name.
setup() {
	sb_setup
	G=t$$-$BATS_TEST_NUMBER
}

teardown() {
	sb_teardown && sb-cgroup-run -d "$G" && [ -z "$(groups_of_test)" ]
}

groups_of_test() { find /sys/fs/cgroup -type d -name "sb-$G" 2>/dev/null; }

has_group() { [ -n "$(groups_of_test)" ]; }

# Where no limit can be set this is all there is to see, and true.
limited() {
	sb-cgroup-run -m 1000000000 -p 1000 -c 1000000000 "$G" true 2>err || return
	[ -s err ] || return 0
	grep -q '^sb-cgroup-run: warning: limits are not available: ' err || fail "$(cat err)"
	return 1
}

# value V1 V2: what is in that file of the group.
value() { cat "$(groups_of_test | while read -r d; do ls "$d/$1" "$d/$2" 2>/dev/null || :; done | head -n 1)"; }

@test "without limits a program runs as it is" {
	run -7 --separate-stderr sb-cgroup-run "$G" sh -c 'cat; exit 7' <<<hello
	is "$output" hello
	is "$stderr" ""
}

@test "what takes more memory than it may is killed" {
	limited || return 0
	run -0 sb-cgroup-run -m 50000000 "$G" sh -c 'head -c 1000000 /dev/zero | tail -c 1000000 | wc -c'
	is "$output" 1000000
	run ! sb-cgroup-run -m 50000000 "$G" sh -c 'head -c 200000000 /dev/zero | exec tail -c 200000000 >/dev/null'
}

@test "there are no more processes than there may be" {
	limited || return 0
	# Each is the parent of the next: when one cannot be, all end.
	echo '[ "$1" -gt 0 ] || exit 0; sh down $(($1 - 1)); exit $?' >down
	run -0 sb-cgroup-run -p 5 "$G" sh down 3
	run ! sb-cgroup-run -p 5 "$G" sh down 9
	has "$output" "fork"
}

@test "all three limits are set, and hold for what is started later" {
	limited || return 0
	sb-cgroup-run -m 104857600 -M 52428800 -p 9 -c 500000000 "$G" sh -c 'sh -c "cat /proc/self/cgroup; true"' >in
	is "$(value memory.limit_in_bytes memory.max)" 104857600
	is "$(value memory.soft_limit_in_bytes memory.high)" 52428800
	is "$(value pids.max pids.max)" 9
	has "$(value cpu.cfs_quota_us cpu.max)" 50000
	while read -r d; do
		grep -q ":.*/sb-$G\$" in || fail "not in $d" "$(cat in)"
	done <<<"$(groups_of_test)"
}

@test "a group that is left is used anew, without its old limits" {
	limited || return 0
	sb-cgroup-run -p 2 -m 104857600 "$G" true
	sb-cgroup-run -p 9 "$G" true
	is "$(value pids.max pids.max)" 9
	[ "$(value memory.limit_in_bytes memory.max)" != 104857600 ]
}

@test "-d removes the groups and all that is empty below them, but kills nothing" {
	limited || return 0
	mkfifo in
	sb-cgroup-run -p 9 "$G" cat in 3>&- &
	exec 4>in
	eventually has_group
	mkdir "$(groups_of_test | head -n 1)/empty"
	run -98 --separate-stderr sb-cgroup-run -d -t 0 "$G"
	has "$stderr" "processes run in /"
	has "$stderr" "/sb-$G"
	kill -0 $!
	exec 4>&-
	wait $!
	run -0 sb-cgroup-run -d -t 60000 "$G"
	is "$(groups_of_test)" ""
	run -0 sb-cgroup-run -d "$G"
}

@test "-d waits for what is ending" {
	limited || return 0
	mkfifo in
	sb-cgroup-run "$G" cat in 3>&- &
	exec 4>in
	eventually has_group
	sb-cgroup-run -d -t 60000 "$G" 3>&- 4>&- &
	exec 4>&-
	wait $!
	is "$(groups_of_test)" ""
}

@test "where no group can be made it says so once, with the reason, and goes on" {
	need strace
	run -7 --separate-stderr fault_at mkdirat 1+ EROFS sb-cgroup-run -m 5000000 -p 1 "$G" sh -c 'exit 7'
	is "${#stderr_lines[@]}" 1
	has "$stderr" "sb-cgroup-run: warning: limits are not available: memory: "
	has "$stderr" "; pids: "
	case $stderr in *cpu:*) fail "$stderr" ;; esac
	# The same of a kernel without any.
	run -0 --separate-stderr strace -f -qq -o /dev/null -P /proc/self/mountinfo -e inject=open,openat:error=ENOENT \
	    sb-cgroup-run -m 5000000 "$G" true
	has "$stderr" "memory: there is no such control group here"
	is "$(groups_of_test)" ""
}

@test "a limit that is refused is told, and the others hold" {
	need strace
	limited || return 0
	run -0 --separate-stderr fault_at write 1 EINVAL sb-cgroup-run -p 9 -c 500000000 "$G" true
	is "$stderr" "sb-cgroup-run: warning: limits are not available: pids: Invalid argument"
	has "$(value cpu.cfs_quota_us cpu.max)" 50000
}

@test "what is no limit, no name or no program is refused" {
	run -100 sb-cgroup-run
	run -100 sb-cgroup-run "$G"
	run -100 sb-cgroup-run -d "$G" true
	run -100 sb-cgroup-run a/b true
	run -100 sb-cgroup-run .. true
	for x in 0 -1 x 1k ''; do
		run -100 sb-cgroup-run -m "$x" "$G" true
		has "$output" "-m: not a number"
	done
	run -0 sb-cgroup-run -h
	run -127 sb-cgroup-run "$G" "$T/nothing"
	is "$output" "sb-cgroup-run: warning: unable to run $T/nothing: No such file or directory"
}
