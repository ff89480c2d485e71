#!/usr/bin/env bash
# Strategy "pipeline" with two ranks is one process that is cut in two: it adds up the same images in the same order, so all
# bits are equal. Four ranks are two such processes that share a batch, as two ranks with an allreduce do: again the same bits. Six
# add up three floats, whose order may differ: 1e-4, as between numbers of ranks.
. "$(dirname "$0")/lib.sh"

for ranks in 1 2 3; do
  trainer $ranks --epochs 4 --model allreduce.$ranks >out || fail "$ranks ranks, allreduce: $(cat out)"
  epochs_of out >allreduce.$ranks.losses
  trainer $((2 * ranks)) --epochs 4 --model pipeline.$ranks --strategy pipeline >out || fail "$ranks pipelines: $(cat out)"
  epochs_of out >losses
  [ "$(wc -l <losses)" -eq 4 ] || fail "$ranks pipelines: not four epochs: $(cat out)"
  near allreduce.$ranks.losses losses 1e-4 ||
    fail "$ranks pipelines: other losses: $(paste allreduce.$ranks.losses losses)"
  [ $ranks -gt 2 ] || cmp allreduce.$ranks pipeline.$ranks || fail "$ranks pipelines: the model is not that of $ranks ranks"
  grep -qE "^strategy pipeline: $ranks pipelines? of 2 stages; rank 0 has the hidden layer, rank $ranks the output layer$" out ||
    fail "$ranks pipelines: no header: $(cat out)"
done

# Fewer images than micro-batches, and than pipelines: the last batch of an epoch has 1438 mod 479 = 1 image.
for batch in 3 479; do
  trainer 1 --epochs 1 --batch $batch --no-save >out
  epochs_of out >one
  trainer 4 --epochs 1 --batch $batch --no-save --strategy pipeline >out || fail "batch of $batch: $(cat out)"
  epochs_of out >losses
  near one losses 1e-4 || fail "batch of $batch: $(paste one losses)"
done

# Another strategy goes on from its model as from one of its own, and it from theirs.
trainer 4 --epochs 2 --model half --strategy pipeline >out
trainer 2 --epochs 2 --model whole --resume half --strategy zero >out
cmp whole allreduce.2 || fail "zero does not go on from pipeline's model as from its own"
trainer 2 --epochs 2 --model half --strategy ps >out
trainer 4 --epochs 2 --model whole --resume half --strategy pipeline >out
cmp whole allreduce.2 || fail "pipeline does not go on from ps's model as from its own"
trainer 1 --epochs 2 --model half >out
trainer 1 --epochs 2 --model whole --resume half --strategy pipeline >out
cmp whole allreduce.1 || fail "a pipeline in one rank does not train as one rank does"
