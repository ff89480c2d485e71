#!/bin/bash
# Two nodes of two ranks: neighbours share memory, the wire is for the others. Who asks for the wire alone gets it, and a
# rank that dies is named on both nodes.
. "$(dirname "$0")/nodes_lib.sh"
: "${DIGITS_TRAINER:?set DIGITS_TRAINER to the digits trainer}" "${COLCHECK:?set COLCHECK to colcheck}"
make_hosts 2

# on_both ARGUMENT…: colrun on both nodes.
on_both() {
  local number
  for number in 1 2; do
    start_node n$number --nnodes 2 --node-rank $((number - 1)) --rdzv-endpoint n1:29400 -n 2 "$@"
  done
}

on_both "$DIGITS_TRAINER" --no-save --epochs 2
expect_node 0 n1 60
expect_node 0 n2
expect_in "$work/n1.out" '4 ranks over hosts'
nothing_left

# Who asks for the wire alone gets it.
on_both env COL_BACKEND=gloo "$DIGITS_TRAINER" --no-save --epochs 1
expect_node 0 n1 60
expect_node 0 n2
expect_in "$work/n1.out" '4 ranks over gloo'
nothing_left

on_both "$COLCHECK" --only exact,messages,async,v_forms,programs --backend hosts --np 2,3,4 --device cpu --seed 1
expect_node 0 n1 120
expect_node 0 n2
expect_in "$work/n1.out" '^[1-9][0-9,]* cases passed, 0 failed, 0 skipped'
nothing_left

# A rank that is killed: its neighbour and the other node name it.
on_both "$DIGITS_TRAINER" --no-save --epochs 100000
wait_until 20 "ranks on n2" eval '[ "$(processes_on n2 | wc -l)" -ge 4 ]'
wait_until 30 "an epoch" grep -q epoch "$work/n1.out"
victim=
for pid in $(processes_on n2); do
  grep -qz '^RANK=3$' "/proc/$pid/environ" 2>/dev/null && [ "$(cat "/proc/$pid/comm")" = digits_trainer ] && victim=$pid
done
[ -n "$victim" ] || fail "no rank 3 on n2: $(describe_processes)"
kill -KILL "$victim"
expect_node 137 n1 20
expect_node 137 n2 20
for number in 1 2; do expect_in "$work/n$number.err" '^colrun: rank 3 \(pid [0-9]+, host n2\) was killed by SIGKILL'; done
nothing_left_soon
