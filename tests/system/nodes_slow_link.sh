#!/bin/bash
# Two nodes over a link of 1 Gbit/s: the trainer ends right.
. "$(dirname "$0")/nodes_lib.sh"
: "${DIGITS_TRAINER:?set DIGITS_TRAINER to the digits trainer}"
make_hosts 2
shape_link n1 1gbit
shape_link n2 1gbit

for number in 1 2; do
  start_node n$number --nnodes 2 --node-rank $((number - 1)) --rdzv-endpoint n1:29400 -n 2 "$DIGITS_TRAINER" --no-save
done
expect_node 0 n1 40
expect_node 0 n2
expect_in "$work/n1.out" 'digits_trainer: 4 ranks over'
expect_in "$work/n1.out" '^test accuracy 0\.9[0-9]+ after 15 epochs on 4 ranks'
# The 9,610 gradients of each of 180 steps went over that link, not past it.
for host in n1 n2; do
  bytes=$(on $host tc -s qdisc show dev eth0 | sed -n 's/^ *Sent \([0-9]*\) bytes.*/\1/p')
  [ "${bytes:-0}" -gt $((180 * 9610 * 4)) ] || fail "$host has sent only ${bytes:-0} bytes over its link"
done
nothing_left
