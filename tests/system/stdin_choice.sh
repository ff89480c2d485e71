#!/bin/bash
# --stdin: one rank, all or none get standard input; the others see its end at once.
. "$(dirname "$0")/lib.sh"

head -c 3000000 /dev/urandom >"$work/data"
sum=$(sha256sum <"$work/data")
empty=$(sha256sum </dev/null)
expect_sums() { # SUM_OF_0 SUM_OF_1 SUM_OF_2
  local rank
  for rank in 0 1 2; do
    expect_in "$out" "^$rank $1\$"
    shift
  done
}
try() { expect_exit 0 "$COLRUN" -n 3 --stdin "$1" sh -c 'echo "$RANK $(sha256sum)"' < <(cat "$work/data"); }
try 0; expect_sums "$sum" "$empty" "$empty"
try 2; expect_sums "$empty" "$empty" "$sum"
try none; expect_sums "$empty" "$empty" "$empty"
try all; expect_sums "$sum" "$sum" "$sum"
# All of it also reaches the others when one of them does not want it, and a file is input like any other.
expect_exit 0 "$COLRUN" -n 3 --stdin all sh -c '[ $RANK = 1 ] && exit 0; echo "$RANK $(sha256sum)"' <"$work/data"
expect_in "$out" "^0 $sum\$"
expect_in "$out" "^2 $sum\$"
expect_exit 0 "$COLRUN" -n 2 --stdin all cat </dev/null
[ ! -s "$out" ] || fail "input out of nothing"
expect_exit 0 "$COLRUN" -n 2 cat <&-
for who in 3 x -1 ''; do
  expect_exit 2 "$COLRUN" -n 3 --stdin "$who" true
  expect_lines "$err" 1
done
nothing_left
