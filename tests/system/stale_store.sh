#!/bin/bash
# What an earlier job has left in a store directory is never taken for a peer: no hang, the right sums.
. "$(dirname "$0")/lib.sh"
: "${HELLO:?set HELLO to the hello program}"

store=$work/store
mkdir "$store"
# As a scheduler without colrun would start them.
rank() { # JOB RANK SIZE
  COL_JOB_ID=$1 COL_RANK=$2 COL_WORLD_SIZE=$3 COL_LOCAL_RANK=$2 COL_LOCAL_WORLD_SIZE=$3 COL_NODE_RANK=0 COL_NNODES=1 COL_RESTART_COUNT=0 \
    COL_STORE=file://$store exec timeout -k 1 20 "$HELLO"
}
job() { # JOB SIZE
  local number pids=()
  : >"$out"
  for ((number = 0; number < $2; number++)); do
    (rank "$1" "$number" "$2") >>"$out" 2>>"$err" &
    pids+=($!)
  done
  for number in "${pids[@]}"; do expect_status 0 "$number"; done
  expect_lines "$out" "$2"
}
: >"$err"
job one 2
expect_in "$out" 'rank 1 of 2: the sum is 3'
# A rank alone, which then is killed: what it has written stays.
(rank halfway 0 2) >/dev/null 2>&1 &
half=$!
changed() { [ "$(find "$store" -type f -size +0 | wc -l)" -gt 0 ] && [ "$(find "$store" | wc -l)" -gt 1 ]; }
wait_until 10 "its first word in the store" changed
pkill -KILL -P $half 2>/dev/null
kill -KILL $half 2>/dev/null
wait $half 2>/dev/null
echo garbage >"$store/garbage"
job two 3
expect_in "$out" 'rank 2 of 3: the sum is 6'
job three 1
expect_in "$out" 'rank 0 of 1: the sum is 1'
job four 2
[ ! -s "$err" ] || fail "something on stderr"
# Under colrun a world of one works whatever is said outside.
export COL_STORE=file://$store COL_JOB_ID=one
expect_exit 0 "$COLRUN" -n 1 "$HELLO"
expect_in "$out" 'rank 0 of 1: the sum is 1'
expect_exit 0 "$COLRUN" -n 2 "$HELLO"
nothing_left
