#!/usr/bin/env bash
# The loss of three epochs is the same for 1, 2, 4 and 8 ranks, to 1e-4: each rank's shard counts once and only once.
. "$(dirname "$0")/lib.sh"

for ranks in 1 2 4 8; do
  trainer $ranks --epochs 3 --no-save >out || fail "$ranks ranks ended with $?: $(cat out)"
  awk -v ranks=$ranks '$1 == "epoch" {print ranks, $2, $4}' out >>losses
done
cat losses

[ "$(wc -l <losses)" -eq 12 ] || fail "expected 4 times 3 epochs"
awk '
  $1 == 1 {reference[$2] = $3}
  {
    difference = ($3 - reference[$2]) / reference[$2]
    if (difference < 0) difference = -difference
    if (!($3 > 0) || difference > 1e-4) {printf "%d ranks, epoch %d: %s, one rank has %s\n", $1, $2, $3, reference[$2]; bad = 1}
    if (difference > worst) worst = difference
  }
  END {printf "largest relative difference %.1e\n", worst; exit bad}
' losses || fail "the losses differ by more than 1e-4"
