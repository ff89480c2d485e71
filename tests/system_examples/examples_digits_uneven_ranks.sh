#!/usr/bin/env bash
# Ranks that do not divide the batch, and more ranks than images in it: the same loss again.
. "$(dirname "$0")/lib.sh"

loss() {
  trainer "$@" --no-save >out || fail "$* ended with $?: $(cat out)"
  awk '$1 == "epoch" {print $4}' out
}

one=$(loss 1 --epochs 1 --batch 300)
seven=$(loss 7 --epochs 1 --batch 300)
echo "batch of 300: one rank $one, seven ranks $seven"
awk -v a="$one" -v b="$seven" 'BEGIN {d = (a - b) / a; exit !(a > 0 && d < 1e-4 && d > -1e-4)}' || fail "they differ"

# The last batch of an epoch has 1438 mod 479 = 1 image: most ranks have nothing to do in it.
one=$(loss 1 --epochs 1 --batch 479)
three=$(loss 3 --epochs 1 --batch 479)
echo "batch of 479: one rank $one, three ranks $three"
awk -v a="$one" -v b="$three" 'BEGIN {d = (a - b) / a; exit !(a > 0 && d < 1e-4 && d > -1e-4)}' || fail "they differ"
