#!/bin/bash
# find_bugs.sh PROGRAM BUGS COUNT: each of the planted bugs, numbered 1 to BUGS, is found within COUNT seeds; and without
# one of them, nothing is.
set -euo pipefail
program=$1
bugs=$2
count=$3

said=$("$program" --bug 0 --seeds 1 "$count") || { echo "wrong without a bug: $said" >&2; exit 1; }
echo "no bug: $said"
missed=0
for ((bug = 1; bug <= bugs; bug++)); do
  said=$("$program" --bug "$bug" --until-wrong --seeds 1 "$count") || true
  if found=$(grep -m1 '^seed' <<<"$said"); then
    echo "bug $bug: $found"
    grep -m1 WRONG <<<"$said" || true
  else
    echo "bug $bug: not found: $said" >&2
    missed=$((missed + 1))
  fi
done
exit $((missed > 0))
