# SPDX-License-Identifier: MIT
# awk -f t/order.awk lib/ORDER lib/*.[ch]: prints each include of a module that
# does not stand above the including one in lib/ORDER, and each module that is
# not in it; exit 1 when it printed.
FNR == 1 { nfile++ }
nfile == 1 { rank[$1] = FNR; next }
FNR == 1 {
	me = FILENAME
	gsub(/^.*\/|\.[ch]$/, "", me)
	if (me == "banned") nextfile
	if (!(me in rank)) bad("is not in lib/ORDER")
}
/^#[ \t]*include[ \t]+"/ {
	split($0, part, "\"")
	it = part[2]
	sub(/\.h$/, "", it)
	if (it == me) next
	if (!(it in rank) || rank[it] > rank[me])
		bad("includes " part[2] ", which is not above it in lib/ORDER")
}
function bad(what) { print FILENAME ":" FNR ": " what; n++ }
END { exit n > 0 }
