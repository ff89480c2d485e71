#!/usr/bin/env bash
# Strategy "ps" takes the steps of an allreduce: each step adds up the same gradients of the same images. With two ranks all
# bits are equal, as a sum of two floats is the same in either order. With more, the servers add up in rank order, where an
# allreduce may have another, and a float sum is rounded after each addition: 1e-4, as between numbers of ranks.
. "$(dirname "$0")/lib.sh"

for ranks in 1 2 3 4; do
  trainer $ranks --epochs 4 --model allreduce.$ranks >out || fail "$ranks ranks, allreduce: $(cat out)"
  epochs_of out >allreduce
  trainer $ranks --epochs 4 --model ps.$ranks --strategy ps >out || fail "$ranks ranks, ps: $(cat out)"
  epochs_of out >ps.losses
  [ "$(wc -l <ps.losses)" -eq 4 ] || fail "$ranks ranks: not four epochs: $(cat out)"
  near allreduce ps.losses 1e-4 || fail "$ranks ranks: ps has other losses: $(paste allreduce ps.losses)"
  [ $ranks -gt 2 ] || cmp allreduce.$ranks ps.$ranks || fail "$ranks ranks: the models differ"
  grep -q '^strategy ps: every rank is a worker and a server; rank 0 serves [0-9]* of 9610 parameters$' out ||
    fail "$ranks ranks: no header: $(cat out)"
done

# Every run has the same bits, whichever message comes first.
trainer 4 --epochs 4 --model again --strategy ps >out
cmp ps.4 again || fail "two runs differ"

# Another strategy goes on from its model as from one of its own, and it from theirs.
trainer 2 --epochs 2 --model half --strategy ps >out
trainer 2 --epochs 2 --model whole --resume half >out
cmp whole allreduce.2 || fail "allreduce does not go on from ps's model as from its own"
trainer 2 --epochs 2 --model half --strategy zero >out
trainer 2 --epochs 2 --model whole --resume half --strategy ps >out
cmp whole allreduce.2 || fail "ps does not go on from zero's model as from its own"
