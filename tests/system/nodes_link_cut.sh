#!/bin/bash
# The link of a node is cut in mid-run: both sides end soon, say which node is lost, and leave nothing.
. "$(dirname "$0")/ssh_lib.sh"
: "${DIGITS_TRAINER:?set DIGITS_TRAINER to the digits trainer}"
make_hosts 3
serve_ssh

# train EPOCHS: on n1 and n2; n1 is the host of the endpoint.
train() {
  local number
  for number in 1 2; do
    start_node n$number --nnodes 2 --node-rank $((number - 1)) --rdzv-endpoint n1:29400 -n 2 \
      "$DIGITS_TRAINER" --no-save --epochs "$1"
  done
  wait_until 20 "the first epoch" grep -qs '^epoch' "$work/n1.out"
}

# A short cut is no loss: it ends before anybody has to be given up.
train 100
cut_link n2
wait_until 10 "a cut that is felt" felt_on n1 n2
mend_link n2
expect_node 0 n1 90  # a ceiling: so many epochs take long beside other work
expect_node 0 n2
expect_in "$work/n1.out" 'after 100 epochs on 4 ranks'
nothing_left

train 1000000
cut_link n2
expect_node 125 n1 15
expect_node 125 n2 15
expect_in "$work/n1.err" '^colrun: .*n2'
expect_in "$work/n2.err" '^colrun: .*n1'
nothing_left_soon
mend_link n2

# The node that a command on another host has started.
start_node n1 --ssh "$ssh_command" --host n2:1,n3:1 "$DIGITS_TRAINER" --no-save --epochs 1000000
wait_until 20 "the first epoch" grep -qs '^epoch' "$work/n1.out"
cut_link n3
expect_node 125 n1 15
expect_in "$work/n1.err" '^colrun: .*n3'
nothing_left_soon 15
mend_link n3

# Its power fails, and nothing there says goodbye.
train 1000000
lose_host n2
expect_node 125 n1 15
expect_in "$work/n1.err" '^colrun: .*n2'
nothing_left_soon
