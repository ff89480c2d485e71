#!/usr/bin/env bash
# Strategy "zero" trains as an allreduce does, to the last printed digit, while each rank keeps its part of the velocity. Its
# checkpoint has all of it.
. "$(dirname "$0")/lib.sh"

for ranks in 1 2 3 4; do
  trainer $ranks --epochs 4 --model allreduce.$ranks >out || fail "$ranks ranks, allreduce: $(cat out)"
  epochs_of out >allreduce
  trainer $ranks --epochs 4 --model zero.$ranks --strategy zero >out || fail "$ranks ranks, zero: $(cat out)"
  epochs_of out >zero
  [ "$(wc -l <zero)" -eq 4 ] || fail "$ranks ranks: not four epochs: $(cat out)"
  diff allreduce zero || fail "$ranks ranks: zero (>) prints other losses than allreduce (<)"
  # Rank 0 of n has the larger part of 9610 parameters and one loss.
  grep -q "^strategy zero: rank 0 keeps $(((9611 + ranks - 1) / ranks - (ranks == 1))) of 9610 velocities$" out ||
    fail "$ranks ranks: the header is not as expected: $(cat out)"
done
# A sum of two floats is the same in either order, so all bits are equal; a sum of more may be rounded in another way.
for ranks in 1 2; do
  cmp allreduce.$ranks zero.$ranks || fail "$ranks ranks: the models differ"
done

# Another strategy, and another number of ranks, goes on from its model as from one of their own, and it from theirs.
trainer 2 --epochs 2 --model half --strategy zero >out
trainer 2 --epochs 2 --model whole --resume half >out
cmp whole allreduce.2 || fail "allreduce does not go on from zero's model as from its own"
trainer 2 --epochs 2 --model half >out
trainer 2 --epochs 2 --model whole --resume half --strategy zero >out
cmp whole allreduce.2 || fail "zero does not go on from allreduce's model as from its own"
trainer 3 --epochs 2 --no-save --resume half --strategy zero >out
epochs_of out >rest
tail -n 2 allreduce >expected
near expected rest 1e-4 || fail "three ranks do not go on from two: $(cat out)"

# A restarted job goes on from what is written after every epoch.
for epochs in 2 4; do
  trainer 2 --epochs $epochs --model restarted --continue --strategy zero >out || fail "--continue: $(cat out)"
done
[ "$(grep -c '^epoch' out)" -eq 2 ] || fail "--continue does not go on: $(cat out)"
cmp restarted allreduce.2 || fail "--continue does not come to the model of a run without a restart"
