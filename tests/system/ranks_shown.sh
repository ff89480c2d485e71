#!/bin/bash
# --ranks: the console shows these ranks only; the others run all the same.
. "$(dirname "$0")/lib.sh"

expect_exit 0 "$COLRUN" -n 7 --ranks 0,3-5 sh -c 'echo $RANK; echo $RANK >&2; : >"$0/ran.$RANK"' "$work"
sort "$out" | cmp - <(printf '0\n3\n4\n5\n') || fail "stdout is not of ranks 0,3-5"
sort "$err" | cmp - <(printf '0\n3\n4\n5\n') || fail "stderr is not of ranks 0,3-5"
[ "$(ls "$work"/ran.* | wc -l)" -eq 7 ] || fail "not all ranks ran"
# A rank that is not shown is not held up by what it prints, and its last words are still known.
expect_exit 5 "$COLRUN" -n 2 --ranks 0 sh -c '[ $RANK = 0 ] && exec sleep 60; seq 100000; seq 100000 >&2; echo hidden reason >&2; exit 5'
[ ! -s "$out" ] || fail "a rank that is not to be shown is shown"
expect_in "$err" '^colrun:   hidden reason$'
expect_lines "$err" 23 # who failed, whose lines follow, twenty of them, who was ended
# Files get all ranks.
expect_exit 0 "$COLRUN" -n 3 --ranks 1 --tee --output "file=$work/%r" sh -c 'echo $RANK'
printf '1\n' | cmp - "$out" || fail "the console has not just rank 1"
for rank in 0 1 2; do echo $rank | cmp - "$work/$rank" || fail "the file of rank $rank"; done
for list in 7 x 0- 2-1 '' ,; do
  expect_exit 2 "$COLRUN" -n 7 --ranks "$list" true
  expect_lines "$err" 1
done
nothing_left
