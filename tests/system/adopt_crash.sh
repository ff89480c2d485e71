#!/bin/bash
# Without colrun, a rank that dies is noticed by the others, and what a killed job leaves the next one removes.
. "$(dirname "$0")/adopt_lib.sh"

COL_FAULT=kill:rank=1,op=1,step=0 expect_exit 137 "$each" torchrun 4 "$HELLO"
# Counted by words: lines of processes that abort at the same time may run into one another.
[ "$(grep -o 'peer_lost: group .default.: rank 1 ' "$err" | wc -l)" -eq 3 ] || fail "not every survivor says peer_lost of rank 1"
one_world 2 "$each" slurm 2 "$HELLO"

# Two of three ranks wait for the third, and are killed.
entered() { [ "$(cat "$TMPDIR"/col-*/torchrun-*/members 2>/dev/null | wc -l)" -eq 3 ]; }  # a line before those of the ranks
MISSING=1 "$each" torchrun 3 "$HELLO" >"$out" 2>"$err" &
waiting=$!
wait_until 20 "two ranks that have entered" entered
kill -9 $(pgrep -P "$waiting")
expect_status 137 "$waiting"
left=("$TMPDIR"/col-*/torchrun-*)
[ -d "${left[0]}" ] || fail "nothing is left, so nothing can be tidied: ${left[*]}"
# The rank that was missing comes with the next run under the same name: it meets that run's ranks.
one_world 3 "$each" torchrun 3 "$HELLO"

# A directory that somebody else could write to is not used.
mkdir -m 0777 "$TMPDIR/col-$(id -u)"
chmod 0777 "$TMPDIR/col-$(id -u)"
expect_exit 134 "$each" torchrun 2 "$HELLO"
expect_in "$err" "io: .*has mode 0777.*set TMPDIR"
