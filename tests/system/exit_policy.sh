#!/bin/bash
# --keep-going lets the others finish; --exit-policy says whose exit code counts.
. "$(dirname "$0")/lib.sh"

# Rank 2 fails first, rank 1 after it, rank 0 ends well at last.
job='case $RANK in
  2) exit 3 ;;
  1) await grep -q failed "$0/seen"; : >"$0/second"; exit 9 ;;
  0) await test -e "$0/second"; echo finished ;;
esac'
try() { # CODE OPTIONS…
  local code=$1
  shift
  rm -f "$work/second" "$work/two"
  : >"$work/seen"
  # colrun reports at the end, so that rank 2 has ended is seen by its process.
  (
    wait_until 20 "the end of rank 2" ended "$work/two"
    echo failed >"$work/seen"
  ) &
  expect_exit "$code" "$COLRUN" -n 3 --keep-going "$@" bash -c '[ $RANK = 2 ] && say_pid "$0/two"; '"$job" "$work"
  wait
  expect_in "$out" '^finished$'
}
try 3
expect_in "$err" '^colrun: rank 2 .* exited with code 3'
expect_in "$err" '^colrun: 1 other rank failed, too \(rank 1: exit code 9\)$'
try 3 --exit-policy first
try 9 --exit-policy max
expect_in "$err" 'rank 1 .*exit.* code 9'
try 0 --exit-policy rank0
expect_in "$err" 'rank 2.* exit.* code 3'
expect_in "$err" 'rank 1.* exit.* code 9'
expect_not_in "$err" 'rank 0 .*(failed|exited with code 0)'
# A signal counts as 128 and its number.
expect_exit 137 "$COLRUN" -n 2 --keep-going --exit-policy max sh -c '[ $RANK = 0 ] && exit 5; kill -KILL $$'
# Without --keep-going those that were ended do not count.
expect_exit 4 "$COLRUN" -n 2 --exit-policy max sh -c '[ $RANK = 0 ] && exit 4; exec sleep 60'
expect_exit 4 "$COLRUN" -n 2 --exit-policy rank0 bash -c 'if [ $RANK = 1 ]; then await test -e "$0/zero"; exit 4; fi; : >"$0/zero"; exec sleep 60' "$work"
expect_in "$err" '^colrun: rank 1 .*exited with code 4'
expect_exit 0 "$COLRUN" -n 2 --keep-going --exit-policy max true
expect_exit 2 "$COLRUN" -n 2 --exit-policy best true
nothing_left
