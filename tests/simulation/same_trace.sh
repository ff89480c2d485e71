#!/bin/bash
# same_trace.sh PROGRAM COUNT [OTHER]: a seed is a run. Two processes, each with addresses of its own, write the same trace of
# a seed, byte by byte; and so do a process that has simulated other jobs before, and OTHER, built by another compiler.
set -euo pipefail
program=$1
count=$2
other=${3:-$program}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

for ((seed = 1; seed <= count; seed++)); do
  "$program" --seed "$seed" --trace "$dir/a" >"$dir/said" || { cat "$dir/said"; exit 1; }
  "$other" --seed "$seed" --trace "$dir/b" >"$dir/said" || { cat "$dir/said"; exit 1; }
  cmp "$dir/a" "$dir/b"
  [ -s "$dir/a" ] || { echo "seed $seed has no trace" >&2; exit 1; }
done
"$program" --seeds 1 "$count" --hashes | grep '^hash' >"$dir/batch"
for ((seed = 1; seed <= count; seed++)); do
  "$program" --seeds "$seed" 1 --hashes | grep '^hash'
done | cmp - "$dir/batch"
[ "$(cut -d' ' -f3 "$dir/batch" | sort -u | wc -l)" -eq "$count" ] || { echo "two seeds with one trace" >&2; exit 1; }
