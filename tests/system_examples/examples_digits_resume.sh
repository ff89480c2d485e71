#!/usr/bin/env bash
# Two epochs and one more are three, bit for bit, at an equal number of ranks.
. "$(dirname "$0")/lib.sh"

for ranks in 1 3; do
  trainer $ranks --epochs 3 --seed 7 --batch 100 --lr 0.05 --model through.model >/dev/null
  trainer $ranks --epochs 2 --seed 7 --batch 100 --lr 0.05 --model half.model >/dev/null
  trainer $ranks --epochs 1 --resume half.model --model joined.model >out
  grep -q '^epoch   3 ' out || fail "the resumed run does not call its epoch the third: $(cat out)"
  cmp through.model joined.model || fail "$ranks ranks: the resumed model differs"
done

# A model may be continued by another number of ranks, and is not changed by that.
cp half.model before.model
trainer 2 --epochs 1 --resume half.model --no-save >out
grep -q '^test accuracy .* after 3 epochs on 2 ranks$' out || fail "2 ranks cannot go on from 3: $(cat out)"
cmp half.model before.model || fail "--no-save changed the file that was resumed from"
