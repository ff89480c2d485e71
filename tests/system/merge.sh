#!/bin/bash
# --merge: stderr joins stdout in the order in which a rank wrote them.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 2 --merge -l sh -c 'for i in $(seq 500); do echo o$i; echo e$i >&2; done'
[ ! -s "$err" ] || fail "something on stderr"
for rank in 0 1; do
  sed -n "s/^\[$rank\] //p" "$out" | cmp - <(for i in $(seq 500); do echo "o$i"; echo "e$i"; done) ||
    fail "rank $rank's lines are not in the order in which it wrote them"
done
expect_exit 0 "$COLRUN" -n 2 --merge --output "file=$work/%r.%s" sh -c 'echo o; echo e >&2; echo p'
printf 'o\ne\np\n' | cmp - "$work/0.out" || fail "the file of a merged rank"
[ ! -e "$work/0.err" ] || fail "a file for a stream that there is not"
# colrun's own words stay on stderr.
expect_exit 3 "$COLRUN" -n 1 --merge sh -c 'echo reason >&2; exit 3'
printf 'reason\n' | cmp - "$out" || fail "stdout is not the rank's alone"
expect_in "$err" '^colrun: rank 0 .*exited with code 3'
expect_in "$err" '^colrun:   reason$'
nothing_left
